"""A head of one space on the rows of another that shares no row with it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from relcore.base.errors import SpaceError
from relcore.runs.progress import silent
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split
from relcore.stitch.stitching import StitchSpec
from relcore.studies import head_across as head_across_study
from relcore.studies.head_across import _parts, head_across
from relcore.studies.study import StudySpec, study_of

SPEC = StitchSpec(methods=("absolute", "relative", "whitened", "procrustes"))


def test_the_study_says_which_method_reads_the_other_encoder_best(monkeypatch, worlds):
    home, away, first, second = worlds
    sides = iter([(home, first), (away, second)] * 2)
    monkeypatch.setattr(head_across_study, "sentence_side", lambda *given: next(sides))
    study = study_of("across-languages")
    runs = [run for run in study.runs(StudySpec.of(study).settings) if run["n_pairs"] == 100][:2]
    values = [{**run, **study.measure(run, None, silent).values} for run in runs]
    table = pd.DataFrame(values)
    assert table.pairs.tolist() == [60, 60]
    assert (table[["relative", "whitened", "procrustes"]] > 0.9).all(axis=None)
    settings = StudySpec.of(study).settings
    assert set(study.charts(settings, table)) == {"accuracy"}
    assert len(study.findings(settings, table)) == 3
    assert study.conclusion(settings, table).startswith("Through 60 everyday sentences, heads classify ")


@pytest.fixture
def worlds(rng):
    """Three classes of which each space has rows of its own, in turned coordinates, and 60 parallel
    anchors from outside.
    """
    centres, (turned, _) = 3 * rng.normal(size=(3, 10)), np.linalg.qr(rng.normal(size=(10, 10)))

    def space(prefix, basis, labels):
        vectors = (centres[labels] + rng.normal(size=(len(labels), 10))) @ basis
        return LatentSpace(
            vectors, [f"{prefix}{row}" for row in range(len(labels))], name=prefix, labels=[*map(str, labels)]
        )

    labels = [np.repeat([0, 1, 2], size) for size in (60, 40)]
    anchors = 2 * rng.normal(size=(60, 10))
    return space("home", np.eye(10), labels[0]), space("away", turned, labels[1]), anchors, anchors @ turned


def test_what_was_turned_is_understood_and_absolute_is_not(worlds):
    result = head_across(*worlds, SPEC)
    away = Split.draw(worlds[1].ids, labels=worlds[1].labels)
    assert result.n == len(away.test)
    assert result.chance == np.mean(away.test < 40)  # all are as frequent, and the first is predicted
    for method in ("relative", "whitened", "procrustes"):
        assert result.accuracy[method] > 0.9
        assert result.home[method] > 0.9
    assert result.accuracy["absolute"] < 0.7
    assert result.ceiling > 0.9


def test_of_rows_that_overlap_partly_none_is_trained_on_and_tested(worlds):
    home, _, anchors, _ = worlds
    part = home.take(np.arange(1, len(home)), name="part")
    for state in range(5):
        spec = StitchSpec(random_states=(state,))
        parts = _parts((home, part), (anchors, anchors), ("0", "1", "2"), spec)
        assert not set(home.ids[parts[0].train]) & set(part.ids[parts[1].test])
        assert len(parts[1].test) > 15


def test_anchors_that_are_rows_are_not_tested(worlds):
    home, away, _, _ = worlds
    rows = np.arange(0, 120, 2)
    head, other = _parts((home, away), (home.vectors[rows], away.vectors[rows]), ("0", "1", "2"), SPEC)
    assert not set(rows) & set(head.test)
    assert not set(rows) & set(other.test)
    assert set(rows) <= set(head.train)


def test_classes_that_are_not_shared_are_left_out_and_one_alone_is_refused(worlds):
    home, away, first, second = worlds
    strange = LatentSpace(
        away.vectors, away.ids, name="away", labels=["x", *away.labels[1:].tolist()[:-1], "y"]
    )
    kept = away.take(np.arange(1, len(away) - 1))  # the other two have classes of their own
    assert head_across(home, strange, first, second, SPEC).n == head_across(home, kept, first, second, SPEC).n
    other = LatentSpace(away.vectors, away.ids, name="away", labels=["x"] * len(away))
    with pytest.raises(SpaceError, match="expected two classes or more that both spaces have"):
        head_across(home, other, first, second, SPEC)
