"""Sending texts to a provider: its address, its host, and the consent without which no text is sent."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from relcore.base.access import SEND_TO, is_shared
from relcore.base.errors import SpaceError, brief
from relcore.encoders.dataset import Dataset

# Consent is never part of an encoder, a recipe or a session, which may come from others. It is given for
# each computation: by --send-to, by a click, or by an argument.
_consent: ContextVar[tuple[str, ...]] = ContextVar("consent", default=())
_PORTS = {"https": 443, "http": 80}
_LEAST_DOLLARS = 0.0001  # the smallest cost that is shown as a number
_BYTES_PER_TOKEN = 4  # of English text; other languages need fewer bytes per token, often 2 to 3


@dataclass(frozen=True)
class Address:
    """The address of a provider, such as https://api.openai.com/v1.

    Attributes
    ----------
    url : str
        Without a slash at its end.
    host : str
        The host in small letters, and the port unless it is the usual one: "api.openai.com",
        "127.0.0.1:8000".
    """

    url: str
    host: str
    is_encrypted: bool
    is_here: bool  # whether the host is this machine

    @property
    def consent(self) -> str:
        """What a user writes after --send-to. It tells if the texts would be sent without encryption to
        another machine."""
        if self.is_encrypted or self.is_here:
            return self.host
        return f"http://{self.host}"


def read_address(text: str) -> Address:
    """The address that a user typed.

    Raises
    ------
    SpaceError
        It is no address of http or https, or it contains a user's name, a password, a query or a fragment,
        which would be stored.
    """
    try:
        parts = urlsplit(text.strip())
        port = parts.port
        name = parts.hostname or ""
    except ValueError:
        raise _wrong_address(text) from None
    if parts.scheme not in _PORTS or not name or not text.isascii() or not text.isprintable():
        raise _wrong_address(text)
    if " " in text.strip() or "\\" in text:
        raise _wrong_address(text)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise SpaceError(
            "address: expected one without user name, password, “?” and “#”, because it is stored; put the"
            " key into an environment variable, and what follows Azure's “?api-version=” into --api-version"
        )
    if ":" in name:
        name = f"[{name}]"
    host = name
    if port is not None and port != _PORTS[parts.scheme]:
        host = f"{name}:{port}"
    path = parts.path.rstrip("/").removesuffix("/embeddings").rstrip("/")  # the client adds it
    url = f"{parts.scheme}://{host}{path}"
    return Address(url, host, parts.scheme == "https", _is_loopback(parts.hostname or ""))


def _wrong_address(text: str) -> SpaceError:
    return SpaceError(
        f"address: expected one such as https://api.openai.com/v1 or http://127.0.0.1:8000/v1, got"
        f" {brief(text, 120)}"
    )


def _is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


@contextmanager
def sending_to(hosts: str | Sequence[str]) -> Iterator[None]:
    """A context in which texts may be sent to these hosts (see `Address.consent`)."""
    if isinstance(hosts, str):
        hosts = (hosts,)
    token = _consent.set(tuple(host.strip().lower().rstrip("/") for host in hosts if host.strip()))
    try:
        yield
    finally:
        _consent.reset(token)


def need_consent(address: Address, note: str) -> None:
    """Raise a SpaceError unless texts may be sent to this address now. `note` says what would be sent (see
    `leaving_note`)."""
    if reason := refused_by_operator(address):
        raise SpaceError(reason)
    given = _consent.get()
    if address.consent in given:
        return
    got = "none"
    if given:
        got = f"consent for {brief(', '.join(given), 120)}"
    raise SpaceError(
        f"expected consent to send texts, got {got}. {note} If you agree, add --send-to {address.consent} to"
        f" the command, or send_to={address.consent!r} in Python; in the app, encode them again in Data"
    )


def leaving_note(address: Address, what: str, key_variable: str = "") -> str:
    """A sentence on what is sent where. `what` is a phrase such as "300 texts". `key_variable` names the
    environment variable with the key; "" if no key is sent."""
    if address.is_here:
        note = f"{what} are sent to the server {address.host} on this machine"
    else:
        note = f"{what} leave this machine for {address.host}"
    if key_variable:
        note += f", with the key in ${key_variable}"
    if not (address.is_encrypted or address.is_here):
        note += ", without encryption: everybody on the way can read them"
    return f"{note}."


def refused_by_operator(address: Address) -> str:
    """Why a shared app does not send texts to this address; "" if it does, or if the app is not shared."""
    if not is_shared() or address.consent in operators_hosts():
        return ""
    return (
        f"this app is shared and sends no texts to {address.host}; whoever runs it can allow that with"
        f" relscope app --share --send-to {address.consent}"
    )


def operators_hosts() -> tuple[str, ...]:
    """The hosts to which a shared app may send texts."""
    return tuple(filter(None, os.environ.get(SEND_TO, "").lower().split(",")))


def size_of(texts: Dataset) -> tuple[int, int]:
    """The number of texts, and their number of bytes in UTF-8."""
    sizes = (len(text.encode("utf-8", "replace")) for _, block in texts.blocks() for text in block)
    return len(texts), sum(sizes)


def expected_tokens(n_bytes: int, n_texts: int) -> int:
    """About how many tokens a provider counts for `n_texts` of together `n_bytes` in UTF-8. The estimate is
    meant for English; each provider has its own vocabulary."""
    return -(-n_bytes // _BYTES_PER_TOKEN) + n_texts


def cost_note(n_tokens: int, price: float) -> str:
    """The tokens, and the cost if the price per million tokens is known: "about 7,200 tokens, $.0002"."""
    note = f"about {n_tokens:,} tokens"
    dollars = n_tokens * price / 1e6
    if 0 < dollars < _LEAST_DOLLARS:
        note += f", less than ${_LEAST_DOLLARS}"
    elif price:
        note += f", ${dollars:,.4f}"
    return note
