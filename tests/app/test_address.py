"""Who reaches the server: this machine alone, or others where whoever starts it says so; and no web page
of another site.
"""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from app import sharing
from relcore.commands.app import own_address
from tests.waiting import until

ROOT = Path(__file__).parents[2]
HANDSHAKE = (
    "GET /_stcore/stream HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nConnection: Upgrade\r\nUpgrade:"
    " websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def answers(
    address: str, port: int, request: str = "GET /_stcore/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
) -> str:
    try:
        with socket.create_connection((address, port), timeout=20) as connection:
            connection.sendall(request.encode())
            return connection.recv(4096).decode(errors="replace").split("\r\n", 1)[0]
    except OSError:
        return ""


def other_addresses() -> list[str]:
    """Addresses of this machine besides 127.0.0.1; a second loopback address stands for a machine without
    a network.
    """
    own = own_address()
    return sorted({"127.0.0.2", own if own[0].isdigit() else "127.0.0.2"} - {"127.0.0.1"})


@pytest.fixture(scope="module")
def serve(tmp_path_factory):
    """``serve(*arguments) -> port``: relscope app with these, in a folder of its own."""
    running = []

    def start(*arguments):
        port, folder = free_port(), tmp_path_factory.mktemp("server")
        inherited = {name: value for name, value in os.environ.items() if name != "RELSCOPE_SHARE"}
        environment = {
            **inherited,
            "PYTHONPATH": str(ROOT),
            "RELSCOPE_STORE": str(folder / "store"),
        }
        command = [sys.executable, "-m", "relcore", "app", "--no-browser", f"--port={port}", *arguments]
        output = (folder / "output").open("w")
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        running.append((process, output))
        until(lambda: process.poll() is not None or answers("127.0.0.1", port), seconds=120)
        assert process.poll() is None, (folder / "output").read_text()
        return port

    yield start
    for process, output in running:
        process.terminate()
        process.wait(timeout=20)
        output.close()


@pytest.fixture(scope="module")
def usual(serve):
    return serve()


def test_by_default_nothing_answers_from_another_address(usual):
    assert "200" in answers("127.0.0.1", usual)
    for address in other_addresses():
        assert not answers(address, usual)


@pytest.mark.slow
def test_a_shared_app_answers_from_every_address(serve):
    port = serve("--share")
    for address in ("127.0.0.1", *other_addresses()):
        assert "200" in answers(address, port)


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost:{port}", "http://localhost:{port}", 101),
        # a page whose name was made to lead here
        ("rebound.example:{port}", "http://rebound.example:{port}", 403),
        ("localhost.rebound.example:{port}", "http://localhost:{port}", 403),
        ("localhost:{port}", "https://other.example", 403),
    ],
)
def test_no_page_of_another_site_drives_the_app(usual, host, origin, status):
    request = HANDSHAKE.format(host=host, origin=origin).format(port=usual)
    assert f" {status} " in answers("127.0.0.1", usual, request)


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
    + [(address, True) for address in (None, "", "0.0.0.0", "::", "machine.example", "unix:///tmp/socket")],
)
def test_a_server_on_another_address_counts_as_shared_however_it_was_started(monkeypatch, address, shared):
    monkeypatch.setenv("RELSCOPE_SHARE", "0")
    monkeypatch.setattr(sharing.st.runtime, "exists", lambda: True)
    monkeypatch.setattr(sharing.st.runtime, "get_instance", lambda: object.__new__(sharing.Runtime))
    monkeypatch.setattr(sharing.st.config, "get_option", {"server.address": address}.get)
    sharing.confine_if_reachable()
    assert os.environ["RELSCOPE_SHARE"] == ("1" if shared else "0")
