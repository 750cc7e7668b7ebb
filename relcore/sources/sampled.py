"""Samples of folders of shards in the store: `relcore.sharded.kept_sample` draws them, and a spec names them by their key."""

from __future__ import annotations

from relcore import access
from relcore.sources.encodings import load_encoding
from relcore.sources.series import files_in
from relcore.spaces import LatentSpace, SpaceError
from relcore.store import Store, digest_of


def is_address(place: str) -> bool:
    """Whether a folder is at an address that fsspec opens, rather than at a path of this machine."""
    return "://" in place


def need_sample_access(place: str) -> None:
    """Raise a SpaceError unless whoever asks may read the folder that a sample was drawn from."""
    if is_address(place):
        access.need_own_machine(place)
    else:
        access.allowed(place)


def folder_stamp(place: str) -> str:
    """Changes when a file of the folder is written again, added or removed; "" for an address, which is not asked.

    Raises
    ------
    SpaceError
        The folder cannot be read.
    """
    if is_address(place):
        return ""
    try:
        told = [(path.name, (about := path.stat()).st_mtime_ns, about.st_size) for path in files_in(access.allowed(place))]
    except OSError as error:
        raise SpaceError(f"{place!r:.200}: expected a folder of shards, got {error.strerror}; check the spelling") from error
    return digest_of("folder", told)


def load_sample(store: Store, place: str, key: str) -> LatentSpace:
    """The sample under this key, which was drawn from the folder at this place.

    Raises
    ------
    SpaceError
        It is not in the store (any more), is of another folder, or the folder has changed since.
    """
    again = f"draw it again on the Spaces page, or by relscope app {place}"
    found = store.summary(key)
    if found is None:
        raise SpaceError(f"expected a sample of {place!r:.200} in {store.root}, got none (removed to make room); {again}")
    drawn_from = found.metadata.get("sample of")
    if drawn_from is None or (access.shared() and drawn_from != place):  # a session file names any key that it likes
        raise SpaceError(f"expected a sample of {place!r:.200} under the key {key[:8]}…, got another result; {again}")
    if folder_stamp(drawn_from) != found.metadata["stamp"]:
        raise SpaceError(f"{drawn_from!r:.200}: expected the shards that its sample was drawn from, got others; {again}")
    return load_encoding(store, key)
