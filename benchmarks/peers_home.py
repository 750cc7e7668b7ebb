"""A JupyterLab with our panes and those of peers in one environment, which the benchmark makes for itself."""

from __future__ import annotations

import json
import os
import site
import socket
import subprocess
import sys
import time
import urllib.request
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
PEERS = ["jupyterlab", "jupyter-scatter"]
# Embedding Atlas asks for PyTorch and more, to embed and to project. For given coordinates its server needs
# only these.
ATLAS = [
    "click",
    "cryptography",
    "duckdb",
    "fastapi",
    "inquirer",
    "narwhals",
    "platformdirs",
    "pyarrow",
    "tqdm",
    "uvicorn",
]
ATLAS += ["uvloop", "websockets"]


def environment(folder: Path) -> Path:
    """The Python of an environment with the peers, which sees our libraries behind its own; made where it
    is not there.
    """
    python = folder / "bin" / "python"
    if (folder / "whole").exists():
        return python
    venv.create(folder, with_pip=True)
    for packages in (PEERS, ["--no-deps", "embedding-atlas"], ATLAS):
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    (own,) = (folder / "lib").glob("python*/site-packages")
    (own / "ours.pth").write_text("\n".join([*site.getsitepackages(), str(ROOT)]))
    (folder / "whole").touch()
    return python


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextmanager
def server(command: list[str], url: str, **settings) -> Iterator[subprocess.Popen]:
    """A server of web pages, once it answers; it is ended afterwards, with the processes that it started."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **settings)
    try:
        until = time.monotonic() + 180
        while True:
            try:
                urllib.request.urlopen(url, timeout=2).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > until:
                    raise SystemExit(f"{command[0]}: expected a server at {url}, got none") from None
                time.sleep(0.2)
        yield process
    finally:
        process.terminate()
        process.wait(timeout=60)


@contextmanager
def jupyterlab(python: Path, folder: Path) -> Iterator[tuple[str, subprocess.Popen]]:
    """The address of a JupyterLab without a password on this folder, and its process."""
    port = free_port()
    own = {f"JUPYTER_{name}_DIR": str(folder / f".{name.lower()}") for name in ("CONFIG", "DATA", "RUNTIME")}
    command = [
        str(python),
        "-m",
        "jupyterlab",
        "--no-browser",
        f"--port={port}",
        "--ServerApp.port_retries=0",
        "--allow-root",
    ]
    command += ["--IdentityProvider.token=", "--ServerApp.password=", f"--ServerApp.root_dir={folder}"]
    command += ["--LabApp.news_url=", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    url = f"http://127.0.0.1:{port}"
    with server(command, f"{url}/api/status", cwd=folder, env={**os.environ, **own}) as process:
        yield url, process


def write_notebook(path: Path, *cells: str) -> None:
    """A notebook of these cells of code."""
    code = [
        {
            "cell_type": "code",
            "id": f"cell{number}",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": source,
        }
        for number, source in enumerate(cells)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path.write_text(json.dumps({"cells": code, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}))


def memory(process: int) -> dict[str, float]:
    """Megabytes of a process with all that it started, shared pages counted once; browser and others
    apart.
    """
    found = {"browser": 0.0, "python": 0.0}
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(after_name[1]), []).append(int(status.parent.name))
    waiting = [process]
    while waiting:
        one = waiting.pop()
        waiting += children.get(one, [])
        try:
            pss = next(
                line
                for line in Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
                if line.startswith("Pss:")
            )
            name = Path(f"/proc/{one}/comm").read_text()
        except (OSError, StopIteration):
            continue
        found["browser" if "chrom" in name else "python"] += int(pss.split()[1]) / 1024
    return found


def own_memory() -> dict[str, float]:
    """`memory` of this process and of all that it started."""
    return memory(os.getpid())


def version_of(python: Path, package: str) -> str:
    script = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([python, "-c", script], capture_output=True, text=True, check=True).stdout.strip()


def interpreter() -> str:
    return ".".join(map(str, sys.version_info[:3]))
