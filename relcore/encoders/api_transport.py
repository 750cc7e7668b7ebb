"""The connection to a provider. It sends requests to one address. Answers are bounded in size and time."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

from relcore.base.errors import SpaceError, brief

if TYPE_CHECKING:
    import httpx2

SECONDS = 120.0  # for one answer, from the connection to its last byte
_ERROR_BYTES = 64 * 1024  # of an answer that is an error; the rest is not read
# Only these headers are sent. The client adds others from the environment (OPENAI_ORG_ID, OPENAI_PROJECT_ID,
# OPENAI_CUSTOM_HEADERS) and about this machine.
_HEADERS = ("host", "accept", "content-type", "content-length", "user-agent")


# The variables in which OpenSSL, Python and curl look for the certificates of authorities.
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


class Refused(Exception):
    """An answer that is not read to its end, because asking again would give the same."""

    def __init__(self, message: str, remedy: str = "check the address") -> None:
        super().__init__(message)
        self.remedy = remedy


def trusted_certificates() -> ssl.SSLContext | bool:
    """The certificates of authorities that are trusted: those that SSL_CERT_FILE or SSL_CERT_DIR names, or
    else (True) those of the system.

    Raises
    ------
    SpaceError
        There is no such file or folder, or it holds no certificates.
    """
    named = {name: os.environ[name] for name in _CERTIFICATES if os.environ.get(name)}
    if not named:
        return True
    try:
        trusted = ssl.create_default_context(
            cafile=named.get("SSL_CERT_FILE"), capath=named.get("SSL_CERT_DIR")
        )
    except (OSError, ValueError) as error:
        paths = " and ".join(f"{name}={brief(path, 120)}" for name, path in named.items())
        raise SpaceError(
            f"{paths}: expected certificates (PEM), got {error!s:.120}; correct the variable before you start"
            " Relscope"
        ) from None
    return trusted


def _refused_connection(reason: str) -> Refused | None:
    """The error of a connection whose encryption fails, which asking again does not mend; None for others."""
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        return Refused(
            f"a certificate that is not trusted ({_in_short(reason)})",
            "if its authority is your own, name the file of its certificate (PEM) in SSL_CERT_FILE before you"
            " start Relscope",
        )
    if "WRONG_VERSION_NUMBER" in reason or "RECORD_LAYER_FAILURE" in reason:
        return Refused("an answer without encryption", "write http:// if the server has no https")
    return None


def _in_short(reason: str) -> str:
    """The message of OpenSSL without the name and the place in its code."""
    return reason.partition("certificate verify failed: ")[2].partition(" (_ssl.c")[0] or reason[:120]


class BoundedTransport:
    """The transport of an `httpx2.Client`. Requests go to addresses that begin with `url`, and nowhere else.
    Answers have at most `most` bytes. `key_header` is added here, so that the client, whose exceptions hold
    its requests, never has the key."""

    def __init__(self, url: str, most: int, key_header: Mapping[str, str]) -> None:
        import httpx2

        self._url = f"{url}/"
        self._most = most
        self._key_header = key_header
        # Proxies of the environment do not count: texts go straight to the host that the user has read.
        verify: ssl.SSLContext | bool = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # not used, and fast to make
        if url.startswith("https:"):
            verify = trusted_certificates()
        self._inner = httpx2.HTTPTransport(verify=verify, trust_env=False)
        self._stream: Any = None

    def __enter__(self) -> BoundedTransport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._inner.close()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        import httpx2

        if not str(request.url).startswith(self._url):
            raise Refused(f"expected a request to {self._url}, got one to another address")
        headers = [(name, request.headers[name]) for name in _HEADERS if name in request.headers]
        headers += self._key_header.items()
        # Without compression, the bytes on the wire bound the bytes in memory.
        headers.append(("accept-encoding", "identity"))
        sent = httpx2.Request(
            request.method,
            request.url,
            headers=headers,
            content=request.read(),
            extensions={"timeout": httpx2.Timeout(SECONDS, connect=20.0).as_dict(), "trace": self._remember},
        )
        end = monotonic() + SECONDS
        # The timeout of a socket does not stop a server that sends a byte a minute. Closing the socket does.
        guard = threading.Timer(SECONDS, self._break_off)
        guard.daemon = True
        guard.start()
        reason = ""
        try:
            answer = self._inner.handle_request(sent)
            try:
                content = self._content(answer)
            finally:
                answer.close()
        except httpx2.TransportError as error:
            reason = str(error) or type(error).__name__
        finally:
            guard.cancel()
        # Raise outside of the handler: the error would keep the request with its key.
        if monotonic() >= end:
            raise httpx2.ReadTimeout(f"no whole answer within {SECONDS:,.0f} seconds")
        if refused := _refused_connection(reason):
            raise refused
        if reason:
            raise httpx2.ReadError(reason)
        return httpx2.Response(answer.status_code, headers=answer.headers, content=content, request=request)

    def _content(self, answer: httpx2.Response) -> bytes:
        encoding = answer.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            raise Refused("expected an answer without compression, got a compressed one")
        pieces = []
        size = 0
        for piece in answer.iter_raw():
            pieces.append(piece)
            size += len(piece)
            if answer.status_code != 200 and size > _ERROR_BYTES:
                break
            if size > self._most:
                raise Refused(f"expected an answer of at most {self._most:,} bytes, got more")
        return b"".join(pieces)

    def _remember(self, event: str, info: dict[str, Any]) -> None:
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._stream = info["return_value"]

    def _break_off(self) -> None:
        with suppress(OSError, AttributeError):
            opened = self._stream.get_extra_info("socket")
            socket.socket.shutdown(opened, socket.SHUT_RDWR)
