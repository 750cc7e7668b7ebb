from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from relcore.base import access, records
from relcore.catalog.catalog import SpaceSpec
from tests.loopback import free_port

ROOT = Path(__file__).parents[2]
REST = 0.25  # seconds without change after which a page is at rest; not counted in what an action takes
IDLE = (
    "document.querySelector('[data-test-script-state=notRunning]') &&"
    " !document.querySelector('[data-stale=true]')"
)
SETTLED = f"""() => new Promise(done => {{
  let since = performance.now();
  const look = () => {{
    if (!({IDLE})) since = performance.now();
    performance.now() - since > {REST * 1000} ? done(true) : setTimeout(look, 25);
  }};
  look();
}})"""
FLAGS = [
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
]
# WebGL by software, in the browser's own process
FLAGS += ["--disable-component-update", "--disable-gpu", "--enable-unsafe-swiftshader"]


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


def serve(store: str, *files: str, specs: Sequence[SpaceSpec] = ()) -> tuple[subprocess.Popen, str]:
    """The app with this store on a free port, opened on these files or specs."""
    port = free_port()
    command = [sys.executable, "-m", "relcore", "app", "--no-token", "--no-browser", f"--port={port}"]
    environment = {**os.environ, "RELSCOPE_STORE": store}
    if specs:
        environment |= {
            access.OPENED: json.dumps([records.to_json(spec) for spec in specs]),
            access.NO_TOKEN: "1",
        }
        command = [sys.executable, "app/server/launch.py", "run", "app/serve.py", "--server.headless=true"]
        command.append(f"--server.port={port}")
    process = subprocess.Popen([*command, *files], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    wait_until_healthy(process, url)
    return process, url


def wait_until_healthy(process: subprocess.Popen, url: str) -> None:
    while process.poll() is None:
        try:
            return urllib.request.urlopen(f"{url}/_stcore/health", timeout=2).close()
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"the app ended with code {process.returncode} before it was up")
