"""Arrays of a payload that are served as files, so that a browser loads each of them once."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

import streamlit as st

from relcore.panes.payload import Payload

_LARGE = 1 << 15  # bytes; a larger array is sent as a file that the browser loads once
_CARRIED = 1 << 22  # bytes; if new files are larger in all, the browser fetches them by a request of its own

_SECRET = secrets.token_hex(16)  # one secret per server: sessions with the same data share its files


def data_of(payload: Payload, key: str) -> bytes:
    """The payload as bytes for the component with this key. Large arrays that the browser has are left
    out."""
    served = _serve_arrays(payload, key)
    return payload.leaving(served, _new(payload, served, key)).to_bytes()


def _serve_arrays(payload: Payload, key: str) -> dict[str, str]:
    """Serve the large arrays as files, and return their addresses. Selections change too often for this."""
    large = {
        name: (payload.arrays[name], digest, "application/octet-stream")
        for name, (_, size, digest) in payload.header["arrays"].items()
        if size >= _LARGE and name != "selected"
    }
    return addresses(large, f"{key}:array")


def _new(payload: Payload, served: Mapping[str, str], key: str) -> list[str]:
    """The names of the served arrays that the last payload lacked, and that are small enough to be sent in
    this one. Returns [] for the first payload: its files are loaded in parallel."""
    about = {name: payload.header["arrays"][name] for name in served}
    digests = {digest for _, _, digest in about.values()}
    before = st.session_state.get(f"{key}:served", digests)
    st.session_state[f"{key}:served"] = digests
    new = {name: size for name, (_, size, digest) in about.items() if digest not in before}
    if sum(new.values()) <= _CARRIED:
        return list(new)
    return []


def addresses(files: Mapping[str, tuple[bytes, str, str]], key: str) -> dict[str, str]:
    """The address of each file (content, digest, type). The browser loads each file once."""
    if not st.runtime.exists():
        return {}
    # Files get their names here. Streamlit names a large file by a sample of its bytes, so a changed file
    # might keep its name. The secret prevents a session from guessing the address of another session's file.
    media = st.runtime.get_instance().media_file_mgr
    base = st.get_option("server.baseUrlPath").strip("/")
    urls = {
        name: media.add(content, mimetype, f"{key}:{name}", file_name=f"{_SECRET} {digest}")
        for name, (content, digest, mimetype) in files.items()
    }
    return {name: f"/{base}{url}" if base else url for name, url in urls.items()}
