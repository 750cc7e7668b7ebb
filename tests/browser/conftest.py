"""A real Chromium and real servers for the tests in this folder; skipped where no Chromium is installed."""

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from tests.browser.chromium import wait_until_healthy
from tests.loopback import free_port

ROOT = Path(__file__).parents[2]
# of `own`
N = 300
FILES = ("a.npz", "b.parquet")
THIRD = "c.npz"


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def serve():
    """``serve(command, folder, **environment) -> address``, for all tests; sessions keep them apart."""
    running = []

    def start(command, folder=ROOT, **environment):
        port = free_port()
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        filled = [sys.executable, "-m", *command.format(port=port).split()]
        running.append(subprocess.Popen(filled, cwd=folder, env=environment))
        wait_until_healthy(running[-1], f"http://localhost:{port}")
        return f"http://localhost:{port}"

    yield start
    for process in running:
        process.terminate()
    for process in running:
        process.wait(timeout=20)


APP = "relcore app --no-browser --port={port} "


@pytest.fixture(scope="session")
def demo(serve):
    settings = "--server.port={port} --server.headless=true --server.fileWatcherType=none"
    command = (
        f"streamlit run tests/browser/demo_linked_scatter.py {settings} --browser.gatherUsageStats=false"
    )
    return serve(command, RELSCOPE_NO_TOKEN="1")


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """The store of `app`: the digits in four encoders, not trained, but turned and noisy pixels in their place."""
    from relcore.catalog.encodings import encoding_key, put_encoding
    from relcore.encoders.dataset import DatasetSpec
    from relcore.encoders.datasets import load_dataset
    from relcore.encoders.vision import SmallVision
    from relcore.runs.store import Store
    from relcore.spaces.space import LatentSpace

    folder = tmp_path_factory.mktemp("store")
    store = Store(folder)
    spec = DatasetSpec("digits")
    rng = np.random.default_rng(0)
    dataset = load_dataset(spec)
    pixels = np.reshape([np.asarray(item) for item in dataset.items(0, len(dataset))], (-1, 64)) / 16
    for name, noise in (("mlp", 0.1), ("cnn", 0.1), ("residual", 0.1), ("vit", 0.6)):
        encoder = SmallVision(name)
        (output, *_) = encoder.outputs
        title = f"{encoder.title} · {dataset.name}"
        rows = pixels @ np.linalg.qr(rng.normal(size=(64, 64)))[0] + noise * rng.normal(size=pixels.shape)
        space = LatentSpace(rows.astype(np.float32), dataset.ids, name=title, labels=dataset.labels)
        about = {"dataset_spec": spec.to_json(), "encoder": encoder.to_record(), "output": output}
        put_encoding(store, encoding_key(dataset.digest, encoder, output), space, about)
    return folder


@pytest.fixture(scope="session")
def app(serve, store):
    return serve(f"{APP} --no-token", RELSCOPE_STORE=str(store), RELSCOPE_DATA="")


@pytest.fixture(scope="session")
def own(serve, tmp_path_factory):
    """The address and the folder: 300 rows in ten classes, the same rotated, and 240 of them in 4 dimensions."""
    folder = tmp_path_factory.mktemp("own")
    rng = np.random.default_rng(0)
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
    command = f"{APP} --no-token {' '.join(FILES)} {THIRD}"
    return serve(command, folder, RELSCOPE_STORE=str(folder / "store"), RELSCOPE_DATA=""), folder


@pytest.fixture
def watched(page):
    """A page that asks no other host, opens no dialog and logs no error."""
    hosts = set()
    complaints = []

    # A route would switch the browser's cache off.
    page.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))
    page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))

    def listen(said):
        # Streamlit looks for its server below the page's own path first.
        if said.type == "error" and "/_stcore/" not in said.location["url"]:
            complaints.append(said.text)

    page.on("console", listen)
    yield page
    assert hosts <= {"localhost", None}
    assert complaints == []


@pytest.fixture(scope="session")
def renderer(browser):
    """A page that stays open, because the first drawing in a page takes ten times as long as the next."""
    page = browser.new_context(viewport={"width": 1360, "height": 900}, reduced_motion="reduce").new_page()
    page.set_default_timeout(120_000)
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    return page, errors


@pytest.fixture
def panes(renderer):
    """A page for `draw`, in the state of a page in which no test has drawn."""
    page, errors = renderer
    page.set_viewport_size({"width": 1360, "height": 900})
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.evaluate("window.clear?.()")
    yield page
    assert not errors, errors
    errors.clear()
