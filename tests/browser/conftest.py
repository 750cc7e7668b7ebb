"""A real Chromium and a real Streamlit server for the tests in this folder; skipped where no Chromium is
installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from tests.loopback import free_port

ROOT = Path(__file__).parents[2]
N, FILES, THIRD = 300, ("a.npz", "b.parquet"), "c.npz"  # of `own`


LOOKED_FOR = "/_stcore/"  # Streamlit looks for its server below the page's own path first


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


class Servers:
    """The servers of this process of tests. Equal calls give the same one, so that all tests share three: the app
    on its bundled data, the app on two files, and the demo of the panes. Sessions keep the tests apart.
    """

    def __init__(self) -> None:
        self.running: dict[tuple, tuple[subprocess.Popen, str]] = {}

    def app(self, store: Path, arguments: tuple[str, ...] = (), folder: Path = ROOT) -> str:
        """``relscope app`` with these arguments, run in the folder."""
        command = ["-m", "relcore", "app", *arguments, "--no-token", "--no-browser", "--port={port}"]
        return self.start(command, folder, {"RELSCOPE_STORE": str(store), "RELSCOPE_DATA": ""})

    def script(self, script: Path) -> str:
        """A script of Streamlit."""
        options = {"port": "{port}", "headless": "true", "fileWatcherType": "none"}
        settings = [f"--server.{name}={value}" for name, value in options.items()]
        command = ["-m", "streamlit", "run", str(script), *settings, "--browser.gatherUsageStats=false"]
        return self.start(command, ROOT, {"RELSCOPE_NO_TOKEN": "1"})

    def start(self, command: list[str], folder: Path, env: dict[str, str]) -> str:
        call = (*command, folder, *sorted(env.items()))
        if call not in self.running:
            port = free_port()
            environment = {**os.environ, "PYTHONPATH": str(ROOT), **env}
            filled = [sys.executable, *(one.format(port=port) for one in command)]
            process = subprocess.Popen(filled, cwd=folder, env=environment)
            self.running[call] = (process, f"http://localhost:{port}")
            wait_until_healthy(*self.running[call])
        return self.running[call][1]

    def close(self) -> None:
        for process, _ in self.running.values():
            process.terminate()
        for process, _ in self.running.values():
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    servers = Servers()
    yield servers
    servers.close()


@pytest.fixture(scope="session")
def demo(servers) -> str:
    """The address of the linked panes alone in Streamlit."""
    return servers.script(Path(__file__).parent / "demo_linked_scatter.py")


@pytest.fixture(scope="session")
def store(tmp_path_factory) -> Path:
    """The store of `app`: the digits in four encoders, not trained, but turned and noisy pixels in their place."""
    from relcore.catalog.catalog import encoding_key, put_encoding
    from relcore.encoders.datasets import load_dataset
    from relcore.encoders.encoder import DatasetSpec
    from relcore.encoders.vision import SmallVision
    from relcore.runs.store import Store
    from relcore.spaces.space import LatentSpace

    folder = tmp_path_factory.mktemp("store")
    store, spec, rng = Store(folder), DatasetSpec("digits"), np.random.default_rng(0)
    dataset = load_dataset(spec)
    pixels = (
        np.array([np.asarray(item, dtype=np.float32).ravel() for item in dataset.items(0, len(dataset))]) / 16
    )
    for number, name in enumerate(("mlp", "cnn", "residual", "vit")):
        encoder = SmallVision(name)
        turn = np.linalg.qr(rng.normal(size=(64, 64)))[0]
        rows = pixels @ turn + (0.1 + 0.5 * (number == 3)) * rng.normal(size=pixels.shape)
        title = f"{encoder.title} · {dataset.name}"
        space = LatentSpace(rows.astype(np.float32), dataset.ids, name=title, labels=dataset.labels)
        about = {
            "dataset_spec": spec.to_json(),
            "encoder": encoder.to_record(),
            "output": encoder.outputs[0],
        }
        put_encoding(store, encoding_key(dataset.digest, encoder, encoder.outputs[0]), space, about)
    return folder


@pytest.fixture(scope="session")
def app(servers, store) -> str:
    """The address of the app, which opens on the bundled words."""
    return servers.app(store)


@pytest.fixture(scope="session")
def own(servers, tmp_path_factory):
    """The address and the folder: 300 rows in ten classes, the same rotated, and 240 of them in 4 dimensions."""
    folder, rng = tmp_path_factory.mktemp("own"), np.random.default_rng(0)
    labels = np.array([f"class {row % 10}" for row in range(N)])
    vectors = 2 * rng.normal(size=(10, 6))[np.arange(N) % 10] + rng.normal(size=(N, 6))
    ids = [f"r{row}" for row in range(N)]
    np.savez(folder / FILES[0], vectors=vectors.astype(np.float32), ids=ids, labels=labels)
    rotated = (vectors @ np.linalg.qr(rng.normal(size=(6, 6)))[0]).astype(np.float32)
    columns = {
        "id": ids,
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(rotated.ravel()), 6),
        "label": labels,
    }
    parquet.write_table(pa.table(columns), folder / FILES[1])
    np.savez(folder / THIRD, vectors=vectors[60:, :4].astype(np.float32), ids=ids[60:], labels=labels[60:])
    return servers.app(folder / "store", (*FILES, THIRD), folder), folder


@pytest.fixture
def watched(page) -> Iterator:
    """A page that asks no other host, opens no dialog and logs no error."""
    hosts, complaints = set(), []

    # A route would switch the browser's cache off.
    page.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))
    page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
    page.on(
        "console",
        lambda said: (
            said.type == "error" and LOOKED_FOR not in said.location["url"] and complaints.append(said.text)
        ),
    )
    yield page
    assert hosts <= {"localhost", None}
    assert complaints == []


@pytest.fixture(scope="session")
def renderer(browser):
    """A page that stays open, because the first drawing in a page takes ten times as long as the next."""
    page = browser.new_context(viewport={"width": 1360, "height": 900}, reduced_motion="reduce").new_page()
    page.set_default_timeout(120_000)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    return page, errors


@pytest.fixture
def panes(renderer) -> Iterator:
    """A page for `draw` as no test had drawn in it."""
    page, errors = renderer
    page.set_viewport_size({"width": 1360, "height": 900})
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.evaluate("window.clear?.()")
    yield page
    assert not errors, errors
    errors.clear()


def wait_until_healthy(process: subprocess.Popen, url: str, seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if process.poll() is not None:
            pytest.fail(f"the Streamlit server ended with code {process.returncode} before it was up")
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2):
                return
        except urllib.error.HTTPError:  # it asks for its token
            return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"the Streamlit server at {url} was not up after {seconds:.0f} s")
