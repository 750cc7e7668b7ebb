"""JupyterLab for a browser: a server of its own, without a token and without the questions that it asks on
a first start.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

KERNEL_IDLE = "Python 3 (ipykernel) | Idle"  # in the status line, once cells can run


def serve_lab(
    python: str | Path, home: Path, environment: Mapping[str, str] = os.environ
) -> tuple[subprocess.Popen, str]:
    """The process of this Python's JupyterLab and its address; `home` is its folder, and holds its
    settings.
    """
    settings = home / "config" / "labconfig"
    settings.mkdir(parents=True)
    news = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}
    (settings / "page_config.json").write_text(json.dumps(news), encoding="utf-8")
    folders = {f"JUPYTER_{name.upper()}_DIR": str(home / name) for name in ("config", "data", "runtime")}
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        port = listener.getsockname()[1]
    options = [
        f"--port={port}",
        "--no-browser",
        "--allow-root",
        "--IdentityProvider.token=",
        f"--ServerApp.root_dir={home}",
    ]
    process = subprocess.Popen(
        [python, "-m", "jupyterlab", *options, "--LabApp.expose_app_in_browser=True"],
        cwd=home,
        env={**environment, **folders, "HOME": str(home), "IPYTHONDIR": str(home / "ipython")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://localhost:{port}"
    until = time.monotonic() + 300
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/api", timeout=2):
                return process, url
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    process.kill()
    raise RuntimeError(
        f"JupyterLab was not up after 300 s, or ended with code {process.poll()}; run it by hand to see why"
    )
