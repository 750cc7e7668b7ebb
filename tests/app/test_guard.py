import os
import socket

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from app import sharing
from app.server import guard
from app.server.guard import Gate, Guard
from relcore.base.access import ENVIRONMENT

TOKEN = "t" * 40
PAGE = {"accept": "text/html"}


@pytest.fixture(autouse=True)
def own_secret(monkeypatch, tmp_path):
    """Use a secret of this test only. Call ``own_secret()`` to forget the cached secret, as a restart of the app does."""
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    sharing._secret.cache_clear()
    yield sharing._secret.cache_clear
    sharing._secret.cache_clear()


def browser(entry, cookies=(), port=8501, scheme="http"):
    everything = [Route("/{path:path}", lambda asked: PlainTextResponse(sharing.key_in(asked.cookies)))]
    app = Starlette(routes=everything, middleware=[Middleware(Guard, entry=entry)])
    return TestClient(app, f"{scheme}://localhost:{port}", cookies=dict(cookies), follow_redirects=False)


def entered():
    visitor = browser(Gate(TOKEN))
    visitor.get("/", params={"token": TOKEN})
    return visitor


def kept(visitor):
    return {cookie.name: cookie.value for cookie in visitor.cookies.jar}


def test_the_link_opens_the_app_and_the_address_later():
    visitor = browser(Gate(TOKEN))
    assert visitor.get("/").status_code == 403
    found = visitor.get(f"/a/anchors?k=5&token={TOKEN}&source=a%20b")
    assert (found.status_code, found.headers["location"]) == (303, "./anchors?k=5&source=a%20b")
    assert visitor.get("/", params={"token": TOKEN}).headers["location"] == "./"
    for cookie in found.headers.get_list("set-cookie"):
        assert cookie.split("; ")[1:] == ["Max-Age=604800", "Path=/", "HttpOnly", "SameSite=Strict"]
    assert len(visitor.get("/").text) == 64
    assert visitor.get("/?token=of+an+earlier+start").status_code == 303
    assert len(visitor.get("/_stcore/host-config").headers.get_list("set-cookie")) == 2
    found = browser(Gate(TOKEN), scheme="https").get(f"/?token={TOKEN}")
    assert all("; Secure" in cookie for cookie in found.headers.get_list("set-cookie"))


def test_health_alone_answers_containers_which_have_no_token():
    probe = browser(Gate(TOKEN)).get("/_stcore/health", headers={"host": "10.0.0.7:8501"})
    assert (probe.status_code, probe.text, probe.headers.get_list("set-cookie")) == (200, "ok", [])
    visitor = browser(Gate(TOKEN))
    assert visitor.head("/_stcore/health").status_code == 200
    others = ("/_stcore/health/", "/_stcore/script-health-check", "/x/_stcore/health", "/_stcore/host-config")
    assert {visitor.get(path).status_code for path in others} == {403}
    assert visitor.post("/_stcore/health").status_code == 403


@pytest.mark.parametrize("pasted", [TOKEN, f" http://127.0.0.1:8501/?token={TOKEN}\n"])
def test_the_login_takes_the_token_or_the_whole_link(pasted):
    visitor = browser(Gate(TOKEN))
    assert "<form" in visitor.get("/?k=5", headers=PAGE).text
    assert guard._WRONG in visitor.post("/?k=5", data={"token": "x"}, headers=PAGE).text
    for wrong in ("x" * 5000, "http://[::?token", "\xff"):
        assert visitor.post("/?k=5", data={"token": wrong}, headers=PAGE).status_code == 403
    found = visitor.post("/?k=5", data={"token": pasted}, headers=PAGE)
    assert (found.status_code, found.headers["location"]) == (303, "./?k=5")
    assert visitor.get("/").status_code == 200


@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize(("first", "then"), [("a" * 40, "b" * 40), ("same" * 9, "same" * 9)])
@pytest.mark.parametrize("chosen", [False, True])
def test_cookies_outlive_a_start_unless_a_given_token_changed(
    monkeypatch, own_secret, shares, first, then, chosen
):
    monkeypatch.setenv(ENVIRONMENT, str(int(shares)))
    visitor = browser(Gate(first, chosen))
    visitor.get("/", params={"token": first})
    own_secret()
    again = browser(Gate(then, chosen), kept(visitor))
    lasts = first == then or not (shares or chosen)
    assert (again.get("/").status_code == 200) == lasts
    key = visitor.get("/").text
    again.get("/", params={"token": then})
    assert again.get("/").text == key  # so saved sessions are found after a login, too


def test_cookies_of_a_shared_app_open_no_other(monkeypatch):
    monkeypatch.setenv(ENVIRONMENT, "1")
    visitor = entered()
    monkeypatch.setenv(ENVIRONMENT, "0")
    assert browser(Gate("another" * 6), kept(visitor)).get("/").status_code == 403


def test_cookies_end_seven_days_after_their_last_use(monkeypatch):
    now = [guard.time.time()]
    monkeypatch.setattr(guard.time, "time", lambda: now[0])
    visitor = entered()
    stolen = kept(visitor)
    for days, mine, thiefs in ((6, 200, 200), (6, 200, 403), (9, 403, 403)):
        now[0] += days * 86_400
        assert browser(Gate(TOKEN), stolen).get("/").status_code == thiefs
        visitor = browser(Gate(TOKEN), kept(visitor))
        assert visitor.get("/_stcore/host-config").status_code == mine


def test_a_pass_holds_for_one_browser_at_one_port():
    visitor = entered()
    other = browser(Gate("u" * 40), kept(visitor), port=8502)
    assert other.get("/").status_code == 403
    other.get("/", params={"token": "u" * 40})
    assert other.get("/").text == visitor.get("/").text
    assert browser(Gate(TOKEN), kept(other)).get("/").status_code == 200
    renamed = {name.replace("_8501", "_8502"): value for name, value in kept(visitor).items()}
    assert browser(Gate("u" * 40), renamed, port=8502).get("/").status_code == 403
    another = entered()
    mixed = {**kept(visitor), sharing.key_cookie(): kept(another)[sharing.key_cookie()]}
    assert browser(Gate(TOKEN), mixed).get("/").status_code == 403


@pytest.mark.parametrize("token", ["", TOKEN])
def test_a_key_that_was_not_issued_here_is_refused(own_secret, monkeypatch, tmp_path, token):
    visitor = browser(Gate(token))
    visitor.get("/_stcore/host-config", params={"token": token} if token else {})
    visitor.get("/_stcore/host-config")
    key = visitor.get("/").text
    name = sharing.key_cookie()
    assert len(key) == 64
    own = kept(visitor)[name]
    for sent in ("", key, "0" * 64, "0" * 128, own[:-1] + "x", own.upper()):
        cookies = {**kept(visitor), name: sent}
        found = browser(Gate(token), cookies).get("/")
        assert found.text == "" if not token else found.status_code == 403
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "another"))
    own_secret()
    assert key not in browser(Gate(), {sharing.key_cookie(): kept(visitor)[name]}).get("/").text


@pytest.mark.parametrize(
    ("host", "origin", "shares", "passes"),
    [
        ("localhost:8501", "http://localhost:8501", False, True),
        ("localhost:8501", None, False, True),
        ("localhost:9000", "http://localhost:9000", False, True),  # through a forwarded port
        ("localhost:8501", "http://localhost:8637", False, False),
        ("localhost:8501", "http://localhost", False, False),
        ("localhost:8501", "https://localhost:8501", False, False),
        ("localhost:8501", "http://127.0.0.1:8501", False, False),
        ("localhost:8501", "null", False, False),
        ("evil.test:8501", "http://evil.test:8501", False, False),
        ("evil.test", None, False, False),
        ("localhost.evil.test", None, False, False),
        ("localhost:x", None, False, False),
        ("a.test", "https://a.test", True, True),  # through a proxy that adds TLS
        ("a.test", "https://b.test", True, False),
    ],
)
def test_only_own_pages_are_answered(monkeypatch, host, origin, shares, passes):
    if shares:
        hosts = ["*"]
    else:
        hosts = ["localhost", "127.0.0.1"]
    monkeypatch.setattr(guard.config, "get_option", {"server.allowedHosts": hosts}.get)
    monkeypatch.setenv(ENVIRONMENT, str(int(shares)))
    headers = {"host": host} | ({"origin": origin} if origin else {})
    for method in ("GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD"):
        found = browser(Gate()).request(method, "/media/x", headers=headers)
        assert (found.status_code != 403) == passes


def test_a_short_token_cannot_be_found_by_trying(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(guard.time, "monotonic", lambda: now[0])
    for token, status in (("short one", 429), (TOKEN, 303)):
        visitor = browser(Gate(token, chosen=True))
        wrong = [visitor.get("/", params={"token": str(number)}).status_code for number in range(10)]
        assert wrong == [403] * 10
        assert visitor.get("/", params={"token": token}).status_code == status
    now[0] = 61.0
    assert visitor.get("/", params={"token": token}).status_code == 303


def test_the_token_for_this_accounts_browser_counts_once(monkeypatch):
    entry = Gate(TOKEN)
    once = entry.once
    monkeypatch.setattr(guard, "_of_this_account", lambda scope: False)
    assert browser(entry).get("/", params={"token": once}).status_code == 403
    monkeypatch.setattr(guard, "_of_this_account", lambda scope: True)
    assert browser(entry).get("/", params={"token": once}).status_code == 303
    for again in (once, ""):
        assert browser(entry).get("/", params={"token": again}).status_code == 403
    assert not Gate().once


@pytest.mark.skipif(not os.path.exists("/proc/net/tcp"), reason="only Linux tells whose a connection is")
def test_the_account_at_the_other_end_is_known(monkeypatch):
    others = [("headers", [(b"x-forwarded-for", b"127.0.0.1")])]
    others += [("client", ("127.0.0.1", 1)), ("client", ("::1", 1))]
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        ends = {"client": client.getsockname(), "server": server.getsockname(), "headers": []}
        assert guard._of_this_account(ends)
        for name, value in others:
            assert not guard._of_this_account({**ends, name: value})
        monkeypatch.setattr(guard.os, "getuid", lambda: os.geteuid() + 1)
        assert not guard._of_this_account(ends)


@pytest.mark.parametrize("how", ["open to others", "cut", "a link", "another account's"])
def test_a_secret_that_others_may_know_is_replaced(own_secret, monkeypatch, tmp_path, how):
    before = sharing._secret()
    path = tmp_path / "store" / "secret"
    assert path.stat().st_mode & 0o777 == 0o600
    own_secret()
    assert sharing._secret() == before
    if how == "open to others":
        path.chmod(0o640)
    elif how == "cut":
        path.write_bytes(before[:31])
    elif how == "a link":
        path.rename(tmp_path / "secret")
        path.symlink_to(tmp_path / "secret")
    else:
        monkeypatch.setattr(sharing.os, "getuid", lambda: os.geteuid() + 1)
    own_secret()
    assert len(sharing._secret()) == 32
    assert sharing._secret() != before


def test_the_environment_decides_and_is_not_inherited(monkeypatch):
    monkeypatch.delenv("RELSCOPE_NO_TOKEN", raising=False)
    assert len(Gate.of_environment().token) > 40
    monkeypatch.setenv("RELSCOPE_TOKEN", "one of my own")
    assert Gate.of_environment().token == "one of my own"
    assert "RELSCOPE_TOKEN" not in os.environ
    monkeypatch.setenv("RELSCOPE_NO_TOKEN", "1")
    assert Gate.of_environment().token == ""


@pytest.mark.parametrize("headless", [False, True])
def test_the_link_is_printed_and_a_browser_gets_another_one(monkeypatch, capsys, headless):
    options = {"server.address": "127.0.0.1", "server.headless": headless, "server.baseUrlPath": "/base"}
    monkeypatch.setattr(guard.config, "get_option", (options | {"browser.serverPort": 8501}).get)
    opened = []
    monkeypatch.setattr(guard.webbrowser, "open", opened.append)
    monkeypatch.setattr(guard.threading.Thread, "start", guard.threading.Thread.run)
    entry = Gate("a token & more")
    entry.announce()
    link = "http://127.0.0.1:8501/base/?token="
    assert capsys.readouterr().out.split() == ["Relscope", "is", "at", f"{link}a%20token%20%26%20more"]
    assert opened == ([] if headless else [link + entry.once])
