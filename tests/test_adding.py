"""To add a stitching method, one file and one line in `relcore.base.names` are enough: page, command line and
recipes then offer it. `test_plugins.py` shows the same of packages, `test_docs.py` of the extensions that
docs/extend describes.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from app import results
from app.workspace import Workspace
from relcore.base import families, names
from relcore.catalog.catalog import SpaceSpec
from relcore.cli import main
from relcore.compare.pictures import exportable
from tests.app.conftest import Session

METHOD = '''
"""Carry rows of the source to the target's mean row: a method that ignores the row."""

import numpy as np


def to_the_mean(source, target, settings, random_state):
    return lambda rows: np.repeat(target.mean[None], len(rows), axis=0)
'''


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Two labelled spaces as files, the second a rotation of the first with some noise; the working folder is theirs."""
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    classes = np.arange(240) % 3
    points = rng.normal(size=(3, 8))[classes] * 2 + rng.normal(size=(240, 8))
    turned = points @ np.linalg.qr(rng.normal(size=(8, 8)))[0] + 0.3 * rng.normal(size=points.shape)
    about = {"ids": [f"r{row}" for row in range(240)], "labels": np.array(["cat", "dog", "fox"])[classes]}
    for name, rows in {"a": points, "b": turned}.items():
        np.savez(f"{name}.npz", vectors=rows.astype(np.float32), **about)
    return tuple(SpaceSpec("file", str(tmp_path / f"{name}.npz")) for name in "ab")


def test_a_stitching_method(files, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(results, "AT_ONCE_SECONDS", 60.0)
    (tmp_path / "my_toy.py").write_text(METHOD)
    monkeypatch.syspath_prepend(tmp_path)
    added = families.Method("to the mean row", "my_toy:to_the_mean", knows="both")
    monkeypatch.setitem(names.METHODS, "to-the-mean", added)
    settings = ["--methods", "to-the-mean", "--anchors", "32", "--recipe", "r.json"]
    assert main(["stitch", "a.npz", "b.npz", *settings]) == 0
    assert "to the mean row" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["stitch", "--help"])
    assert "to-the-mean" in capsys.readouterr().out.replace("\n", "").replace(" ", "")

    recipe = json.loads(Path("r.json").read_text(encoding="utf-8"))
    assert recipe["stitching"]["methods"] == ["to-the-mean"]
    table = exportable(recipe).table()
    stitched = table[(table["encoder"] != table["head"]) & (table["metric"] == "accuracy")]
    # One answer for all rows: chance, ± 3 standard errors.
    np.testing.assert_allclose(stitched["score"], 1 / 3, atol=0.15)

    session = Session(None, Workspace(files, *files), ("connect", "Stitch"))
    assert "to the mean row" in session.at.pills(key="stitch.methods").options
    sys.modules.pop("my_toy")
