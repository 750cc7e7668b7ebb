"""The app as a server sends it: a browser gets a key, by which its sessions are found again, and a
Content-Security-Policy.

The policy is a second wall behind `app.plain_text`, so that the browser asks no other host for anything: if a
text of a user became a picture or a script, the browser would not fetch it. Streamlit and Plotly need scripts
within the page, and compile some.
"""

import os
import sys
import threading
from pathlib import Path

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import App

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:  # Streamlit puts only this file's folder there
    sys.path.insert(0, str(ROOT))

from app import first_imports  # noqa: E402
from app.sharing import Recognised, UncompressedHere  # noqa: E402

POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self'"
    " 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' data: blob:;"
    " worker-src 'self' blob:; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'self'"
)


def _start_reader() -> None:
    from relcore.files import confined

    confined.start()


class Secured:
    """Adds the policy to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {
                    **message,
                    "headers": [*message["headers"], (b"content-security-policy", POLICY.encode())],
                }
            await send(message)

        await self._app(scope, receive, with_policy)


os.environ.setdefault("RELSCOPE_CONFINED", "1")
first_imports.begin()
threading.Thread(target=_start_reader, daemon=True).start()
app = App("main.py", middleware=[Middleware(Secured), Middleware(UncompressedHere), Middleware(Recognised)])
