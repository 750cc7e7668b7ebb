"""The exported page of the panes: it holds every number, and its policy lets its own script run."""

import base64
import gzip
import hashlib
import json
import re

import numpy as np

from relcore.figures.export import read_recipe
from relcore.figures.scene import Pane, Scene
from relcore.panes.page import panes_page


def make_scene(n=50):
    rng = np.random.default_rng(0)
    panes = tuple(Pane(title, rng.normal(size=(n, 2))) for title in ("first", "second"))
    texts = np.array([f"Text é {i}" for i in range(n)], dtype=object)
    return Scene(
        panes,
        np.array([f"row {i}" for i in range(n)], dtype=object),
        np.full(n, -1),
        texts=texts,
        caption="Fifty.",
    )


def test_a_page_holds_every_number_and_what_hovers_show():
    scene, page = make_scene(), panes_page(make_scene(), "panes").decode()
    content = gzip.decompress(base64.b64decode(re.search(r'id="relscope-panes">([^<]+)<', page)[1]))
    length = int.from_bytes(content[:4], "little")
    header = json.loads(content[4 : 4 + length])

    def array(name):
        start, size, _ = header["arrays"][name]
        return content[4 + length + start : 4 + length + start + size]

    for i, pane in enumerate(scene.panes):
        np.testing.assert_array_equal(
            np.frombuffer(array(f"pane{i}"), "<f4"), pane.coordinates.astype(np.float32).ravel()
        )
    assert array("texts").decode().split("\x1f") == scene.texts.tolist()
    assert header["files"] == {"texts": "texts"}


def test_the_policy_names_the_script_that_runs_and_no_other():
    page = panes_page(make_scene(), "a <title>", recipe='{"figure": "</script>"}').decode()
    (run,) = re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(run.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'; style-src" in page
    assert "<title>a &lt;title&gt;</title>" in page
    assert read_recipe(page.encode()) == {"figure": "</script>"}
