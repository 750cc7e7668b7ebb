import json
import os
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path

import pytest
from streamlit import net_util

from app import sharing
from tests.loopback import free_port
from tests.waiting import until

ROOT = Path(__file__).parents[2]
TOKEN = "the token of these tests, which is long"
STREAM = "/_stcore/stream"
UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
UPGRADE["Sec-WebSocket-Key"] = "MDEyMzQ1Njc4OWFiY2RlZg=="
# Routes of pages, of Streamlit and of its components.
ROUTES = f"""/ /anchors /favicon.png /static/x /media/x /app/static/x /nothing/here //x /%2e%2e/x {STREAM}
/_stcore/host-config /_stcore/metrics /_stcore/script-health-check /_stcore/upload_file/x/y
/component/x/y /_stcore/bidi-components/x/y /_stcore/agent/mcp /auth/login""".split()


def answers(port, path="/_stcore/health", method="GET", address="127.0.0.1", **headers):
    """The status, headers and body of the answer; None where nothing listens."""
    connection = HTTPConnection(address, port, timeout=20)
    try:
        sent = {"Host": f"localhost:{port}", **(UPGRADE if path.endswith(STREAM) else {}), **headers}
        connection.request(method, path, headers=sent)
        response = connection.getresponse()
        return response.status, response.headers, response.read() if response.status != 101 else b""
    except OSError:
        return None
    finally:
        connection.close()


def enters(port):
    _, headers, _ = answers(port, "/?token=" + TOKEN.replace(" ", "+"))
    return {"Cookie": "; ".join(one.partition(";")[0] for one in headers.get_all("Set-Cookie"))}


def other_addresses():
    """Addresses of this machine besides 127.0.0.1; 127.0.0.2 is there without a network, too."""
    return sorted({"127.0.0.2", net_util.get_internal_ip()} - {"127.0.0.1"})


@pytest.fixture(scope="module")
def serve(tmp_path_factory):
    """``serve(*arguments) -> port``: relscope app with these, in a folder of its own."""
    running = []

    def start(*arguments, folder=None):
        port = free_port()
        folder = folder or tmp_path_factory.mktemp("server")
        browser = folder / "browser"
        browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {folder}/link && mv {folder}/link {folder}/opened')
        browser.chmod(0o755)
        environment = {name: value for name, value in os.environ.items() if name != "RELSCOPE_SHARE"}
        environment |= {"PYTHONPATH": str(ROOT), "RELSCOPE_STORE": str(folder / "store")}
        environment |= {"RELSCOPE_TOKEN": TOKEN, "BROWSER": str(browser), "DISPLAY": ":9"}
        command = [sys.executable, "-m", "relcore", "app", f"--port={port}", *arguments]
        process = subprocess.Popen(command, cwd=folder, env=environment)
        running.append(process)
        until(lambda: process.poll() is not None or answers(port))
        assert process.poll() is None
        return port

    yield start
    for process in running:
        process.terminate()
        process.wait(timeout=20)


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    return tmp_path_factory.mktemp("usual") / "opened"


@pytest.fixture(scope="module")
def usual(serve, opened):
    return serve(folder=opened.parent)


def test_by_default_nothing_answers_from_another_address(usual):
    assert answers(usual)
    for address in other_addresses():
        assert not answers(usual, address=address)


@pytest.mark.slow
def test_a_shared_app_asks_for_its_token_on_every_address(serve):
    port = serve("--share")
    cookies = enters(port)
    for address in ("127.0.0.1", *other_addresses()):
        assert answers(port, "/", address=address)[0] == 403
        assert answers(port, address=address, Host=f"{address}:{port}", **cookies)[0] == 200


def test_no_route_answers_more_than_the_login_to_others(usual):
    own = f"http://localhost:{usual}"
    cookies = enters(usual)
    key = cookies["Cookie"].partition("=")[2][:128]
    others = [  # test_guard.py has more
        {},
        {**cookies, "Host": f"evil.test:{usual}", "Origin": f"http://evil.test:{usual}"},
        {**cookies, "Origin": "null"},
        {"Cookie": cookies["Cookie"].replace(key, "0" * 128), "Origin": own},
    ]
    for headers in others:
        for path in ROUTES:
            for method in ["GET"] if path == STREAM else ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"]:
                status, _, body = answers(usual, path, method, **headers)
                assert status == 403, (method, path, headers)
                assert b"<title>" not in body, (method, path, headers)
    for path, status in (("/", 200), ("/_stcore/health", 200), ("/_stcore/host-config", 200), (STREAM, 101)):
        assert answers(usual, path, Origin=own, **cookies)[0] == status
    assert b"Log in" in answers(usual, "/", Accept="text/html")[2]


OTHER_ACCOUNT = """
import encodings.idna, json, os, pathlib, sys, urllib.error, urllib.request
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
backwards, secret, *links = sys.argv[1:]
found = [[], []]
for path in [pathlib.Path(secret), *pathlib.Path("/proc").glob("[0-9]*/environ"), *pathlib.Path("/proc").glob("[0-9]*/cmdline")]:
    try:
        if backwards[::-1].encode() in path.read_bytes() or str(path) == secret:
            found[0].append(str(path))
    except OSError:
        pass
for link in links:
    try:
        found[1].append(urllib.request.urlopen(link, timeout=20).status)
    except urllib.error.HTTPError as error:
        found[1].append(error.code)
print(json.dumps(found))
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid(), reason="only root can become another account")
def test_another_account_gets_the_login_with_any_link(usual, opened):
    secret = opened.parent / "store" / "secret"
    url = f"http://127.0.0.1:{usual}"
    until(opened.exists)
    link = opened.read_text()
    assert link.startswith(f"{url}/?token=")
    assert TOKEN not in link
    links = [link, *(f"{url}/{path}" for path in ("", "_stcore/host-config", "_stcore/metrics"))]
    command = [sys.executable, "-c", OTHER_ACCOUNT, TOKEN[::-1], str(secret), *links]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout) == [[], [403] * 4]
    assert [answers(usual, link.removeprefix(url))[0] for _ in range(2)] == [303, 403]


def test_the_app_is_configured_against_other_sites():
    import tomllib

    server = tomllib.loads((ROOT / "app" / ".streamlit" / "config.toml").read_text())["server"]
    assert server["address"] == "127.0.0.1"
    assert server["enableCORS"] is server["enableXsrfProtection"] is True
    assert "*" not in server["allowedHosts"]
    assert "enableAgentApi" not in server
    assert "enableStaticServing" not in server


@pytest.mark.parametrize(
    ("address", "shared"),
    [("127.0.0.9", False), ("localhost", False), ("::1", False)]
    + [(address, True) for address in (None, "0.0.0.0", "::", "unix:///tmp/socket")],
)
def test_a_server_on_another_address_counts_as_shared(monkeypatch, address, shared):
    monkeypatch.setenv("RELSCOPE_SHARE", "0")
    monkeypatch.setattr(sharing.st.runtime, "exists", lambda: True)
    monkeypatch.setattr(sharing.st.runtime, "get_instance", lambda: object.__new__(sharing.Runtime))
    monkeypatch.setattr(sharing.st.config, "get_option", {"server.address": address}.get)
    sharing.confine_if_reachable()
    assert os.environ["RELSCOPE_SHARE"] == ("1" if shared else "0")
