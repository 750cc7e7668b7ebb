"""The panes' files as they are, for a browser on this machine.

Coordinates hardly shrink, and to compress those of a million rows takes longer than to send them over the
loopback.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

_HERE = ("127.0.0.1", "::1")


class UncompressedHere:
    """Takes the wish for compression out of requests for files that come from this machine, before
    Streamlit reads it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope.get("client") or ("",)
        if scope["type"] == "http" and "/media/" in scope["path"] and client[0] in _HERE:
            kept = [header for header in scope["headers"] if header[0].lower() != b"accept-encoding"]
            scope = {**scope, "headers": kept}
        await self._app(scope, receive, send)
