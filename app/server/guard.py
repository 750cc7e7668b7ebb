"""The guard checks every request, including those of the WebSocket. It admits only the app's own pages, and
only in a browser that has shown the token.

As in Jupyter, each start has a new token, so a link from an earlier start opens nothing. In exchange for the
token, a browser gets cookies. They outlive a restart, because a secret in the store signs them. If the app is
shared, or the user chose the token, the cookies are valid only as long as the token.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
import threading
import time
import webbrowser
from collections import deque
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, quote

import streamlit
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose
from streamlit import config, net_util
from streamlit.web.server.server_util import get_url
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

from app.sharing import KEPT_DAYS, is_same, key_cookie, key_in, own_address, signature
from relcore.base import access, environment

HEALTH = "/_stcore/health"  # container platforms check it without a token, at any address
_FETCHED_FIRST = "/_stcore/host-config"  # the page's script loads it before connecting
_TRIES = 10
_SECONDS = 60
_UNGUESSED = 32  # nobody can guess a token of at least this many characters
_MOST_BYTES = 4096  # number of bytes of a form
_PAGE = Path(__file__).with_name("login.html").read_text(encoding="utf-8")
_ASK = "This app asks for a token: open the link that the terminal in which it was started shows."
_WRONG = "This is not the token of this app. Each start can have a new one: copy what the terminal shows now."
_TOO_MANY = "Too many wrong tokens. Wait a minute, then try again."
_NOT_OWN = "This request comes from another site, or names a host that this app does not answer for."
# This policy protects against scripts in data if `app.plain_text` fails. It must allow inline and compiled
# scripts, because Streamlit and Plotly use them.
POLICY = (
    b"default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self'"
    b" 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' data: blob:;"
    b" worker-src 'self' blob:; object-src 'none'; base-uri 'self'; form-action 'self';"
    b" frame-ancestors 'self'"
)


# Streamlit's script for charts takes a second to load. So pages that begin with a chart tell the
# browser at once to load it.
_CHARTS = [
    f"<./static/js/{script.name}>; rel=modulepreload".encode()
    for script in (Path(streamlit.__file__).parent / "static" / "static" / "js").glob("PlotlyChart.*.js")
]
_WITH_CHARTS = ("connect", "stitch", "migrate", "research", "studies")


class Gate:
    """The rule for admission: a browser must show the token. If there is no token, everybody is admitted.

    `once` is the token in the link that Relscope opens in a browser. Other accounts can read it in the list
    of processes, so it works only once, and only in a browser of this account.
    """

    def __init__(self, token: str = "", chosen: bool = False) -> None:
        self.token = token
        self._chosen = chosen
        if token:
            self.once = secrets.token_urlsafe(32)
        else:
            self.once = ""
        self._wrong: deque[float] = deque(maxlen=_TRIES)

    @classmethod
    def of_environment(cls) -> Gate:
        """The gate that RELSCOPE_TOKEN and RELSCOPE_NO_TOKEN describe. The token is removed from the
        environment, so processes started later do not inherit it."""
        chosen = access.chosen_token()
        os.environ.pop(access.TOKEN, None)
        if environment.flag(access.NO_TOKEN):
            return cls()
        return cls(chosen or secrets.token_urlsafe(32), bool(chosen))

    def pass_of(self, key: str, port: int, days_ago: int = 0) -> str:
        """The cookie that admits this browser, signed for one day. It depends on the day, so that a stolen
        cookie expires."""
        day = str(int(time.time() // 86_400) - days_ago)
        token = ""
        if self._chosen or access.is_shared():
            token = self.token
        return signature("pass", key, str(port), day, token)

    def has_let_in(self, key: str, port: int, shown: str) -> bool:
        return any(is_same(shown, self.pass_of(key, port, days)) for days in range(KEPT_DAYS + 1))

    def refusal(self, offered: str, request: HTTPConnection) -> str:
        """The reason why the offered token does not open the app. Returns "" if it does."""
        if self.once and is_same(offered, self.once) and _of_this_account(request.scope):
            self.once = ""
            return ""
        now = time.monotonic()
        all_wrong = len(self._wrong) == _TRIES
        if all_wrong and now - self._wrong[0] < _SECONDS and len(self.token) < _UNGUESSED:
            return _TOO_MANY
        if is_same(offered, self.token):
            return ""
        self._wrong.append(now)
        return _WRONG

    def announce(self) -> None:
        """Print the link and, if there is a screen, open the app in a browser.

        The link contains the server's own address instead of `localhost`, because another account may listen
        at `localhost` over IPv6.
        """
        address = config.get_option("server.address")
        if own_address(address):
            host = address
        else:
            host = net_util.get_internal_ip()
        link = get_url(host)
        with_token = link
        if self.token:
            with_token = f"{link}/?token="
        print(f"\nRelscope is at {with_token}{quote(self.token, '')}\n", flush=True)
        if not config.get_option("server.headless"):
            threading.Thread(target=webbrowser.open, args=(with_token + self.once,), daemon=True).start()


_CONNECTIONS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))  # of this machine; only Linux has them


def _of_this_account(scope: Scope) -> bool:
    """Whether a process of this account made this loopback connection. Returns True if the system does not
    tell: other accounts can read the arguments of a browser only on Linux."""
    tables = [table for table in _CONNECTIONS if table.exists()]
    if not tables:
        return True
    if b"x-forwarded-for" in dict(scope["headers"]):  # behind a proxy, `client` may be forged
        return False
    with suppress(OSError):
        client = _in_table(*scope["client"])
        server = _in_table(*scope["server"])
        for table in tables:
            for line in table.read_text().splitlines():
                # The columns are: number, local address, remote address, state, two queues, timer, user.
                columns = line.split()
                if columns[1].endswith(client) and columns[2].endswith(server):
                    return int(columns[7]) == os.getuid()
    return False


def _in_table(host: str, port: int) -> str:
    """An address as it ends in /proc/net/tcp and /proc/net/tcp6."""
    return f"{int.from_bytes(socket.inet_aton(host), sys.byteorder):08X}:{port:04X}"


class Guard:
    """Middleware that passes requests from the app's own pages in admitted browsers. Other browsers get the
    login page.

    It adds the Content-Security-Policy to every answer, and the cookies to the first answer of a visit. Files
    for this machine are not compressed, because compression would take longer than sending them over the
    loopback.
    """

    def __init__(self, app: ASGIApp, entry: Gate) -> None:
        self._app = app
        self._entry = entry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        key = key_in(request.cookies)
        answer, sets_cookies = await self._answer(request, receive, self._has_entered(request, key))
        added = [(b"content-security-policy", POLICY), (b"cross-origin-resource-policy", b"same-origin")]
        if scope["path"].rpartition("/")[2] in _WITH_CHARTS:
            added += [(b"link", script) for script in _CHARTS]
        if sets_cookies:
            added += self._cookies(scope, key or secrets.token_hex(32))
        if answer is self._app and _is_file_for_this_machine(scope):
            scope = _without_compression(scope)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        await answer(scope, receive, with_headers)

    async def _answer(self, request: HTTPConnection, receive: Receive, entered: bool) -> tuple[ASGIApp, bool]:
        """The app that answers the request, and whether its answer also sets the cookies."""
        scope = request.scope
        if scope["type"] == "websocket":
            if entered and _is_own(request):
                return self._app, False
            return WebSocketClose(1008), False
        if scope["path"] == HEALTH and scope["method"] in ("GET", "HEAD") and not entered:
            return PlainTextResponse("ok"), False
        if not _is_own(request):
            return PlainTextResponse(_NOT_OWN, 403), False
        wants_page = "text/html" in request.headers.get("accept", "")
        offered = None
        if scope["method"] == "GET":
            offered = request.query_params.get("token")
        if wants_page and scope["method"] == "POST":  # only the login page has a form
            offered = await _posted(Request(scope, receive))
        why = ""
        if offered is not None:
            if not entered:
                why = self._entry.refusal(offered, request)
            if not why:
                return RedirectResponse(_without_token(request), 303, {"cache-control": "no-store"}), True
        if entered:
            return self._app, scope["path"].endswith(_FETCHED_FIRST)
        status = 429 if why == _TOO_MANY else 403
        if not wants_page:
            return PlainTextResponse(why or _ASK, status), False
        return HTMLResponse(_PAGE.replace("{why}", why), status, {"cache-control": "no-store"}), False

    def _has_entered(self, request: HTTPConnection, key: str) -> bool:
        if not self._entry.token:
            return True
        port = request.scope["server"][1]
        shown = request.cookies.get(f"{key_cookie()}_{port}", "")
        return bool(key and shown) and self._entry.has_let_in(key, port, shown)

    def _cookies(self, scope: Scope, key: str) -> list[tuple[bytes, bytes]]:
        port = scope["server"][1]
        values = {key_cookie(): key + signature("key", key)}
        if self._entry.token:
            values[f"{key_cookie()}_{port}"] = self._entry.pass_of(key, port)
        kept = f"Max-Age={KEPT_DAYS * 86_400}; Path=/; HttpOnly; SameSite=Strict"
        if scope.get("scheme") == "https":
            kept += "; Secure"
        return [(b"set-cookie", f"{name}={value}; {kept}".encode()) for name, value in values.items()]


def _is_file_for_this_machine(scope: Scope) -> bool:
    client = scope.get("client") or ("",)
    return "/media/" in scope["path"] and client[0] in ("127.0.0.1", "::1")


def _without_compression(scope: Scope) -> Scope:
    """The same request, from a browser that accepts no compressed answer."""
    headers = [header for header in scope["headers"] if header[0].lower() != b"accept-encoding"]
    return {**scope, "headers": headers}


def _is_own(request: HTTPConnection) -> bool:
    """Whether the request names this server as its host, and does not come from a page of another scheme,
    host or port."""
    host = request.headers.get("host")
    origin = request.headers.get("origin")
    # The app may see plain HTTP although a proxy in front of it uses TLS.
    if access.is_shared():
        schemes = ("http", "https")
    else:
        schemes = (request.scope["scheme"].replace("ws", "http"),)
    return is_host_allowed(host) and origin in (None, *(f"{scheme}://{host}" for scheme in schemes))


async def _posted(request: Request) -> str:
    """The token from a form. The user may paste the token itself or the whole link."""
    body = b""
    with suppress(ClientDisconnect):
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MOST_BYTES:
                return ""
    pasted = parse_qs(body.decode(errors="replace")).get("token", [""])[0].strip()
    return parse_qs(pasted.rpartition("?")[2]).get("token", [pasted])[0]


def _without_token(request: HTTPConnection) -> str:
    """The same address without the token. It is relative, because a proxy may have shortened the path."""
    parts = request.scope["query_string"].decode("latin-1").split("&")
    query = [part for part in parts if part and not part.startswith("token=")]
    last = quote(request.scope["path"].rpartition("/")[2])
    if not query:
        return f"./{last}"
    return f"./{last}?{'&'.join(query)}"
