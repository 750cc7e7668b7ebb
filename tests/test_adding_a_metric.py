"""A toy metric and a toy similarity, registered in `relcore.base.names` alone, are on pages, on the
command line, in recipes.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from app.workspace import Workspace
from relcore.base import names
from relcore.base.numbers import short
from relcore.catalog.catalog import load
from relcore.cli import main
from relcore.compare.scene import Scores, exportable
from relcore.compare.scoring import AllPairs
from relcore.maps.views import ViewSpec
from relcore.tasks.recipe import ComparisonRecipe
from tests.app.conftest import Session, save_space
from tests.app.test_universe_page import charts, similarity_of

METRIC = '''
import numpy as np

from relcore.scores.score import ChanceLevel, Score
from relcore.scores.comparison import Metric


class SameSign(Metric):
    """Share of the coordinates that have the same sign in both spaces."""

    def score(self, pair):
        if not pair.same_width:
            return None
        first, second = pair.source > 0, pair.target > 0
        rng = np.random.default_rng(0)
        null = ChanceLevel.from_draws(np.array([(first == rng.permutation(second)).mean() for _ in range(200)]))
        return Score((first == second).mean(), metric="same sign", n=len(first), null=null)
'''
SIMILARITY = '''
import numpy as np

from relcore.represent.similarity import Similarity


class Farthest(Similarity):
    """Minus the largest difference of a coordinate."""

    def between(self, X, anchors):
        return -np.abs(X[:, None] - anchors).max(axis=2)
'''


@pytest.fixture(autouse=True)
def toys(tmp_path, monkeypatch):
    (tmp_path / "package" / "toys").mkdir(parents=True)
    (tmp_path / "package" / "toys" / "__init__.py").touch()
    (tmp_path / "package" / "toys" / "same_sign.py").write_text(METRIC)
    (tmp_path / "package" / "toys" / "farthest.py").write_text(SIMILARITY)
    monkeypatch.syspath_prepend(tmp_path / "package")
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    monkeypatch.setitem(
        names.METRICS,
        "same sign",
        names.MetricName("same sign", "toys.same_sign:SameSign", "of the coordinates"),
    )
    monkeypatch.setitem(names.SIMILARITIES, "farthest", names.Named("Farthest", "toys.farthest:Farthest"))
    yield
    for name in ("toys", "toys.same_sign", "toys.farthest"):
        sys.modules.pop(name, None)


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(4)
    vectors = rng.normal(size=(90, 6))
    return [
        save_space(tmp_path / f"{name}.npz", vectors + noise * rng.normal(size=vectors.shape))
        for name, noise in (("first", 0), ("near", 0.3), ("far", 3))
    ]


@pytest.fixture
def session(files):
    anchors, view = tuple(f"r{row}" for row in range(12)), ViewSpec(("r1", "r2"), n_nearest=20)
    return Session(workspace=Workspace(tuple(files), files[0], files[1], anchors, view=view))


def test_it_stands_in_the_table_of_the_compare_page_and_among_its_choices(session, files):
    assert '<th scope="col">same sign</th>' in session.html
    session.open("research", "Universe").change(*similarity_of(session))
    assert "same sign" in session.selectbox(key="all-pairs.metric").options
    session.change("selectbox", "all-pairs.metric", "same sign")
    assert not session.errors
    assert "of the coordinates" in session.selectbox(key="all-pairs.metric").help
    (shown,) = (one for one in charts(session) if not one.get("frames"))
    score = AllPairs("same sign").run([load(spec) for spec in files]).scores[0][1]
    assert any(short(score) in told for told in shown["data"][-1]["hovertext"])


def test_the_measures_of_the_literature_are_chosen_below_the_table(session):
    assert "RSA</th>" not in session.html
    session.change("multiselect", "scores.measures", ["rsa", "imd"])
    assert not session.errors
    assert 'scope="col">RSA</th>' in session.html
    assert 'scope="col">IMD</th>' in session.html


def test_unrelated_spaces_lie_within_its_chance_level(tmp_path):
    unrelated = [
        load(save_space(tmp_path / f"u{n}.npz", np.random.default_rng(n).normal(size=(300, 5))))
        for n in (1, 2)
    ]
    score = AllPairs("same sign").run(unrelated).scores[0][1]
    assert score.null.low <= score <= score.null.high


def test_the_command_prints_it(files, capsys):
    assert main(["compare", files[0].name, files[1].name, "--anchors", "12", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {row["form"] for row in rows if row["metric"] == "same sign"} == {
        "absolute",
        "relative",
        "whitened",
        "procrustes",
    }
    with pytest.raises(SystemExit):
        main(["compare", "--help"])
    told = capsys.readouterr().out
    assert "same sign" in told
    assert "farthest" in told


def test_a_recipe_draws_it_and_the_similarity(files, tmp_path):
    settings = ComparisonRecipe(files[0], files[1], tuple(f"r{row}" for row in range(8)))
    drawn = Scores.of(settings, k=5).draw()
    assert (drawn.table().metric == "same sign").sum() == 4
    recipe = json.loads(drawn.bytes("json", full_paths=True)) | {"projection": {"similarity": "farthest"}}
    again = exportable(recipe).table()
    assert len(again) == len(drawn.table())
    assert "same sign" in set(again.metric)
