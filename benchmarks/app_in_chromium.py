"""A server of the app with a store of its own, and the Chromium that looks at it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[1]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
]
FLAGS += ["--disable-component-update", "--disable-sync", "--enable-unsafe-swiftshader"]


def find_chromium() -> str | None:
    """RELSCOPE_CHROMIUM, or a Chromium on the path; None: Playwright's own."""
    return os.environ.get("RELSCOPE_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


def serve(store: str, *files: str) -> tuple[subprocess.Popen, str]:
    """The app with an empty store on a free port, opened on these files."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    command = [sys.executable, "-m", "relcore", "app", "--no-browser", f"--port={port}", *files]
    process = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "RELSCOPE_STORE": store}, stdout=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    while process.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/_stcore/health", timeout=2).close()
            return process, url
        except OSError:
            time.sleep(0.2)
    raise SystemExit(f"the app ended with code {process.returncode} before it was up")
