"""The example notebook in a real JupyterLab, in Chromium, from the wheel: brush, read, set anchors, see
the panes follow.
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.browser.panes import ROOT, drag, pixels, views, zoom
from tests.installed.wheel_environment import clean_environment, installed

EXAMPLE = Path(__file__).parents[2] / "assets" / "notebook" / "compare_two_spaces.ipynb"
# Cells that this test adds: what Python holds; the rows in the left half of the first map, by NumPy; three
# anchors less.
ADDED = {
    "held": """import json
print(json.dumps([list(panes.selection), list(panes.selected_rows), list(panes.anchors)]))""",
    "left": """import numpy as np
x = panes.scene.panes[0].coordinates[:, 0]
middle, half = (x.min() + x.max()) / 2, (x.max() - x.min()) / 2
print(json.dumps([[str(panes.scene.ids[row]) for row in np.flatnonzero(x < middle + edge * half)] for edge in (-.01, .01)]))""",
    "set": "panes.anchors = panes.anchors[:-3]\nprint('[]')",
}

KERNEL_IDLE = "Python 3 (ipykernel) | Idle"  # in the status line, once cells can run

pytestmark = [pytest.mark.slow, pytest.mark.browser]


def serve_lab(python, home, environment=os.environ):
    """The process of this Python's JupyterLab and its address; the folder `home` holds its settings."""
    settings = home / "config" / "labconfig"
    settings.mkdir(parents=True)
    news = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}
    (settings / "page_config.json").write_text(json.dumps(news), encoding="utf-8")
    folders = {f"JUPYTER_{name.upper()}_DIR": str(home / name) for name in ("config", "data", "runtime")}
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        port = listener.getsockname()[1]
    options = [f"--port={port}", "--no-browser", "--allow-root", "--IdentityProvider.token="]
    options += [f"--ServerApp.root_dir={home}", "--LabApp.expose_app_in_browser=True"]
    process = subprocess.Popen(
        [python, "-m", "jupyterlab", *options],
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
    raise RuntimeError(f"JupyterLab was not up after 300 s, or ended with code {process.poll()}")


@pytest.fixture(scope="module")
def lab(wheel, tmp_path_factory):
    """The address of JupyterLab in an environment with the wheel; its folder holds the example with the
    added cells.
    """
    pytest.importorskip("jupyterlab", reason="the notebook test needs JupyterLab: pip install jupyterlab")
    environment = installed(
        wheel, tmp_path_factory.mktemp("lab"), extras=("notebook",), beside=("jupyterlab",)
    )
    for folder in ("share", "etc"):  # pages and scripts, which are no packages of Python
        (environment / folder).symlink_to(Path(sys.prefix) / folder)
    home = tmp_path_factory.mktemp("home")
    notebook = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    plain = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    notebook["cells"] += [{**plain, "id": name, "source": source} for name, source in ADDED.items()]
    (home / "example.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    process, url = serve_lab(environment / "bin" / "python", home, clean_environment())
    yield f"{url}/lab/tree/example.ipynb"
    process.terminate()
    process.wait(timeout=30)


def run_cells(page, name=""):
    """Run the cell of this name and give what it prints; without a name run all, which gives the errors of
    all cells.
    """
    return page.evaluate(
        """async name => {
          const { commands, shell } = window.jupyterapp;
          const notebook = shell.currentWidget.content;
          const cells = [...notebook.model.cells];
          const outputs = cell => Array.from({ length: cell.outputs?.length ?? 0 }, (_, i) => cell.outputs.get(i).toJSON());
          if (!name) {
            await commands.execute("notebook:run-all-cells");
            return cells.flatMap(outputs).filter(one => one.output_type === "error").map(one => one.evalue);
          }
          notebook.activeCellIndex = cells.findIndex(cell => cell.id === name);
          await commands.execute("notebook:run-cell");
          notebook.scrollToItem(1);
          return JSON.parse(outputs(cells[notebook.activeCellIndex])[0].text);
        }""",
        name,
    )


def test_python_and_the_panes_share_selection_and_anchors(lab, page):
    page.goto(lab)
    page.get_by_text(KERNEL_IDLE).wait_for()
    assert run_cells(page) == []
    selection, rows, anchors = run_cells(page, "held")
    assert (selection, len(rows), len(anchors)) == (["king", "queen", "ring", "string"], 4, 47)
    page.wait_for_selector(f"{ROOT}[data-drawn][data-selected='4'][data-anchors='47']")
    assert page.locator(".ls-points").count() == 4

    page.click(f"{ROOT} [data-tool=box]")
    drag(page, 0, [(0.002, 0.002), (0.5, 0.998)])
    page.wait_for_function("root => Number(document.querySelector(root).dataset.selected) > 4", arg=ROOT)
    shown = int(page.get_attribute(ROOT, "data-selected"))
    selection, rows, _ = run_cells(page, "held")
    assert len(selection) == len(rows) == shown
    surely, perhaps = run_cells(page, "left")
    assert set(surely) <= set(selection) <= set(perhaps)
    assert 1000 < len(surely) < 19_000

    zoom(page, 2, clicks=2)
    zoomed = views(page)
    before = [pixels(page, pane) for pane in range(4)]
    run_cells(page, "set")
    page.wait_for_selector(f"{ROOT}[data-anchors='44'][data-selected='{shown}']")
    page.wait_for_function(
        "([i, before]) => document.querySelectorAll('.ls-points')[i].toDataURL() !== before",
        arg=[2, before[2]],
    )
    assert pixels(page, 0) == before[0]
    assert views(page) == zoomed
    assert len(run_cells(page, "held")[2]) == 44
