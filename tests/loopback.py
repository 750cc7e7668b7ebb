"""Servers of tests, on the loopback address."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextmanager
def serving(
    handler: type[BaseHTTPRequestHandler], encryption: ssl.SSLContext | None = None, **state: Any
) -> Iterator[tuple[ThreadingHTTPServer, str]]:
    """A server with this state and its address; its `stopped` is set in the end, for answers that wait."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    scheme = "http"
    if encryption is not None:
        scheme = "https"
        # Without a handshake on connect, which would block the server's loop.
        server.socket = encryption.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    vars(server).update(state, stopped=Event(), daemon_threads=True)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server, f"{scheme}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.stopped.set()
        server.shutdown()
        server.server_close()
