"""A real Chromium and a real Streamlit server for the tests in this folder; skipped where no Chromium is
installed.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLAGS = [
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
]
FLAGS += [
    "--disable-sync",
    "--disable-gpu",
    "--enable-unsafe-swiftshader",
]  # WebGL by software, in the browser's own process


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


def find_chromium() -> str | None:
    """RELSCOPE_CHROMIUM, a Chromium or Chrome on the path, or the one that Playwright installed."""
    named = os.environ.get("RELSCOPE_CHROMIUM")
    installed = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    found = named or next(filter(None, installed), None)
    if found:
        return found
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[..., str]]:
    """``serve(script, env={…}) -> url``: run a Streamlit script on a free port; the same call again gives the
    same server.

    With `arguments` it is ``relscope app`` with these, run in `folder`, and `output` the file that gets what
    it prints.
    """
    running: dict[tuple, tuple[subprocess.Popen, str]] = {}

    def start(
        script: str | Path = "",
        env: dict[str, str] | None = None,
        arguments: tuple[str, ...] = (),
        folder: Path = ROOT,
        output: Path | None = None,
    ) -> str:
        call = (str(script), arguments, folder, output, tuple(sorted((env or {}).items())))
        if call not in running:
            port = _free_port()
            options = {
                "server.port": port,
                "server.headless": "true",
                "browser.gatherUsageStats": "false",
                "server.fileWatcherType": "none",
            }
            command = [
                sys.executable,
                "-m",
                "streamlit",
                "run",
                str(script),
                *(f"--{name}={value}" for name, value in options.items()),
            ]
            if arguments:
                command = [
                    sys.executable,
                    "-m",
                    "relcore",
                    "app",
                    *arguments,
                    "--no-browser",
                    f"--port={port}",
                ]
            environment = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
            with open(output, "w") if output else nullcontext() as printed:
                process = subprocess.Popen(command, cwd=folder, env=environment, stdout=printed)
            running[call] = (process, f"http://localhost:{port}")
            _wait_until_healthy(process, running[call][1])
        return running[call][1]

    yield start
    for process, _ in running.values():
        process.terminate()
    for process, _ in running.values():
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return listener.getsockname()[1]


def _wait_until_healthy(process: subprocess.Popen, url: str, seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if process.poll() is not None:
            pytest.fail(f"the Streamlit server ended with code {process.returncode} before it was up")
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    pytest.fail(f"the Streamlit server at {url} was not up after {seconds:.0f} s")
