"""Who adds a stitching method, a similarity or a study writes one file and one line in `relcore.base.names`: page, command
line and recipe then have it. `test_plugins.py` shows the same of a metric, an encoder and a format, from a package.
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

SIMILARITY = '''
import numpy as np

from relcore.represent.similarity import Similarity


class Farthest(Similarity):
    """Minus the largest difference of a coordinate."""

    def between(self, X, anchors):
        return -np.abs(X[:, None] - anchors).max(axis=2)
'''

STUDY = '''
"""Is twice a number on a line? A study of nothing much."""

from relcore.figures.charts import Line, Lines
from relcore.studies.study import correlation, finding, findings_table
from relcore.studies.study import Option, RunResult, Study


class Doubling(Study):
    options = (Option("n_runs", "Runs", (4, 8), 4),)

    def runs(self, options):
        return [{"x": x} for x in range(options["n_runs"])]

    def measure(self, settings, store, report):
        return RunResult({"double": 2.0 * settings["x"]})

    def seconds(self, settings):
        return 0.01

    def charts(self, options, table):
        return {"line": Lines((Line("double", table["x"], table["double"]),), "x", "double")} if len(table) else {}

    def findings(self, options, table):
        return findings_table([finding("correlation", correlation(table["x"], table["double"]))])
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


def test_a_similarity(package, files, monkeypatch, capsys):
    place = f"{package(SIMILARITY)}:Farthest"
    monkeypatch.setitem(names.SIMILARITIES, "farthest", names.Named("Farthest", place))
    arguments = ["compare", "a.npz", "b.npz", "--anchors", "20", "--similarity", "farthest"]
    assert "relative" in command(capsys, *arguments, "--recipe", "r.json")
    recipe = json.loads(Path("r.json").read_text(encoding="utf-8"))
    assert recipe["projection"]["similarity"] == "farthest"
    assert "relative" in set(exportable(recipe).table().form)
    session = Session(workspace=Workspace(files, *files, tuple(f"r{row}" for row in range(20))))
    session.change("selectbox", "projection.similarity", "farthest")
    assert not session.errors


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

    session = Session(workspace=Workspace(files, *files)).open("connect", "Stitch")
    assert "to the mean row" in session.at.pills(key="stitch.methods").options


def test_a_study(package, files, monkeypatch, capsys):
    monkeypatch.setitem(
        names.STUDIES,
        "doubling",
        names.StudyName(
            "Twice a number", f"{package(STUDY)}:Doubling", "Is twice a number on a line?", "none"
        ),
    )
    assert "doubling" in command(capsys, "study")
    monkeypatch.setattr("relcore.studies.study.StudyRuns.start", run_here)
    found = json.loads(command(capsys, "study", "doubling", "--json", "--recipe", "r.json"))
    assert [row["double"] for row in found["rows"]] == [0.0, 2.0, 4.0, 6.0]
    assert found["findings"][0]["value"] == pytest.approx(1.0)
    assert exportable(json.loads(Path("r.json").read_text(encoding="utf-8"))).table()["y"].tolist() == [
        0,
        2,
        4,
        6,
    ]
    page = (
        Session().open("research", "Studies").change("segmented_control", "studies.topic", "More questions")
    )
    assert "Is twice a number on a line?" in page.at.radio(key="studies.kind").options


def run_here(runs, queue):
    from relcore.studies.study import finished_run

    for settings in runs.settings:
        finished_run(runs.study, settings, queue.store, lambda *told: None)
