"""A browser's key: a random secret in a cookie, by which the server finds the sessions that this browser left.

No script can read the cookie, and no page of another site can make the browser send it. It is set with the answer that the
page's own script fetches before it connects, so the first run of a session knows it.
"""

from __future__ import annotations

import re
import secrets
from http.cookies import CookieError, SimpleCookie

import streamlit as st
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "relscope_browser"
KEPT_DAYS = 7  # for which a browser keeps its key, and the server what was saved under it, after they were last used
_FETCHED_FIRST = "/_stcore/host-config"
_KEY = re.compile(r"[0-9a-f]{64}")


class Recognised:
    """Gives each browser that has no key a new one of 256 random bits, and prolongs the key of the others."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].endswith(_FETCHED_FIRST):
            await self._app(scope, receive, send)
            return
        own = key_in(dict(scope["headers"]).get(b"cookie", b"").decode("latin-1")) or secrets.token_hex(32)
        secure = "; Secure" * (scope.get("scheme") == "https")
        cookie = f"{COOKIE}={own}; Max-Age={KEPT_DAYS * 86_400}; Path=/; HttpOnly; SameSite=Strict{secure}"

        async def with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], (b"set-cookie", cookie.encode())]}
            await send(message)

        await self._app(scope, receive, with_cookie)


def key_in(cookies: str) -> str:
    """The key in a Cookie header; "" where there is none, or another text than a key."""
    try:
        found = SimpleCookie(cookies).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found and _KEY.fullmatch(found.value) else ""


def browser_key() -> str:
    """The key of the browser of this session; "" where it keeps no cookies."""
    found = st.context.cookies.get(COOKIE, "")
    return found if isinstance(found, str) and _KEY.fullmatch(found) else ""  # AppTest has a stand-in for cookies
