"""`relscope app a.npy b.parquet`, run in another folder, opens on these two files."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from relcore.figures.style import LIGHT


@pytest.fixture
def folder(tmp_path):
    """90 rows in 6 dimensions, and the same rotated, in two formats; both without ids, so their numbers
    pair them.
    """
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(90, 6)).astype(np.float32)
    rotation, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    rotated = (vectors @ rotation).astype(np.float32)
    np.save(tmp_path / "a.npy", vectors)
    ids = pa.array([str(row) for row in range(90)])
    table = {"id": ids, "vector": pa.FixedSizeListArray.from_arrays(pa.array(rotated.ravel()), 6)}
    parquet.write_table(pa.table(table), tmp_path / "b.parquet")
    return tmp_path


def test_the_panes_show_the_two_files(page, serve, folder):
    url = serve(
        env={"RELSCOPE_STORE": str(folder / "store")}, arguments=("a.npy", "b.parquet"), folder=folder
    )
    page.goto(url)
    page.wait_for_selector(".ls-root[data-drawn]")
    assert len(json.loads(page.get_attribute(".ls-root", "data-views"))) == 4
    titles = page.locator(".ls-root").inner_text()
    assert {"a · absolute", "b · absolute", "a · relative", "b · relative"} <= set(titles.splitlines())
    sidebar = page.locator("[data-testid=stSidebar]")
    assert "90 rows in both · 6 d each" in sidebar.inner_text()
    colour = sidebar.evaluate("element => getComputedStyle(element).backgroundColor")
    assert colour == f"rgb{tuple(bytes.fromhex(LIGHT.page[1:]))}"  # the theme is found from any folder
