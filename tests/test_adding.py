"""Who adds a stitching method writes one file and one line in `relcore.base.names`: page, command line and recipe then
have it. `test_plugins.py` shows the same of packages, `test_docs.py` of the extensions that docs/extend describes.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from app import results
from app.workspace import Workspace
from relcore.base import names
from relcore.catalog.catalog import SpaceSpec
from relcore.cli import main
from relcore.compare.scene import exportable
from tests.app.conftest import Session

METHOD = '''
"""Carry rows of the source to the target's mean row: a method that knows nothing of the row it carries."""

import numpy as np


def to_the_mean(source, target, settings, random_state):
    return lambda rows: np.repeat(target.mean[None], len(rows), axis=0)
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    (tmp_path / "toys").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "toys")

    def make(text):
        (tmp_path / "toys" / "my_toy.py").write_text(text, encoding="utf-8")
        monkeypatch.delitem(sys.modules, "my_toy", raising=False)
        return "my_toy"

    yield make
    sys.modules.pop("my_toy", None)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Two labelled spaces as files, one a turn of the other with some noise; the working folder is theirs."""
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    rng, labels = np.random.default_rng(0), np.array(["cat", "dog", "fox"])[np.arange(240) % 3]
    points = rng.normal(size=(3, 8))[np.arange(240) % 3] * 2 + rng.normal(size=(240, 8))
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    for name, rows in {"a": points, "b": points @ turn + 0.3 * rng.normal(size=points.shape)}.items():
        np.savez(
            f"{name}.npz",
            vectors=rows.astype(np.float32),
            ids=[f"r{row}" for row in range(240)],
            labels=labels,
        )
    return tuple(SpaceSpec("file", str(tmp_path / f"{name}.npz")) for name in "ab")


def command(capsys, *arguments):
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def test_a_stitching_method(package, files, monkeypatch, capsys):
    monkeypatch.setattr(results, "AT_ONCE_SECONDS", 60.0)
    place = f"{package(METHOD)}:to_the_mean"
    monkeypatch.setitem(names.METHODS, "to-the-mean", names.Method("to the mean row", place, knows="both"))

    found = command(
        capsys,
        "stitch",
        "a.npz",
        "b.npz",
        "--methods",
        "to-the-mean",
        "--anchors",
        "32",
        "--recipe",
        "r.json",
    )
    assert "to the mean row" in found
    with pytest.raises(SystemExit):
        main(["stitch", "--help"])
    assert "to-the-mean" in capsys.readouterr().out.replace("\n", "").replace(" ", "")

    recipe = json.loads(Path("r.json").read_text(encoding="utf-8"))
    assert recipe["stitching"]["methods"] == ["to-the-mean"]
    table = exportable(recipe).table()
    stitched = table[(table["encoder"] != table["head"]) & (table["metric"] == "accuracy")]
    np.testing.assert_allclose(
        stitched["score"], 1 / 3, atol=0.15
    )  # one answer for all rows: chance, ± 3 standard errors

    session = Session(None, Workspace(files, *files), ("connect", "Stitch"))
    assert "to the mean row" in session.at.pills(key="stitch.methods").options
