"""A lasso in `relscope app --print-selection` comes out as one line of JSON, with the rows that the lasso
holds.
"""

import json

import numpy as np
import pytest

from relcore import load_space, read_selections
from tests.browser.panes import drag, settle
from tests.waiting import until


@pytest.fixture
def folder(tmp_path):
    """200 rows in 6 dimensions, and the same rotated, without ids: their numbers pair them."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(200, 6)).astype(np.float32)
    rotation, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    np.save(tmp_path / "a.npy", vectors)
    np.save(tmp_path / "b.npy", (vectors @ rotation).astype(np.float32))
    return tmp_path


def test_a_lasso_ends_up_in_a_script(page, serve, folder):
    out = folder / "lines.jsonl"
    store = {"RELSCOPE_STORE": str(folder / "store")}
    page.goto(serve(env=store, arguments=("a.npy", "b.npy", "--print-selection"), folder=folder, output=out))
    page.wait_for_selector(".ls-root[data-drawn]")
    settle(page)
    assert out.read_text() == ""  # the server prints its address elsewhere
    drag(page, 0, [(0.5, 0.02), (0.98, 0.02), (0.98, 0.98), (0.5, 0.98)])
    until(lambda: out.read_text().endswith("\n"))
    settle(page)
    (selection,) = read_selections(out.read_text().splitlines())
    spaces = [load_space(folder / name) for name in ("a.npy", "b.npy")]
    assert 0 < len(selection.ids) < 200
    assert page.locator(".relscope-word").inner_text() == f"{len(selection.ids)} selected"
    for space, chosen in zip(spaces, selection.spaces, strict=True):
        assert (chosen.name, chosen.digest) == (space.name, space.digest)
        assert list(chosen.rows) == selection.rows_in(space).tolist()
    page.locator(".st-key-inspector-clear button").click()
    until(lambda: out.read_text().count("\n") == 2)
    cleared = json.loads(out.read_text().splitlines()[1])
    assert (cleared["n"], cleared["session"]) == (0, selection.session)
