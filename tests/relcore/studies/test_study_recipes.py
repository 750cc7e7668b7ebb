"""A study's figure from its recipe: the numbers of the store, and a recipe that draws the same again."""

import json

import pytest

from relcore.compare.scene import exportable
from relcore.runs.jobs import JobQueue
from relcore.runs.store import Store
from relcore.studies.study import StudyChart, StudyRuns, StudySpec, study_of

SPEC = StudySpec.of(study_of("trained-count"))


@pytest.fixture
def stored(tmp_path, monkeypatch):
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    monkeypatch.setattr(
        JobQueue, "submit", lambda *arguments, **settings: pytest.fail("computed what the store has")
    )
    runs = StudyRuns(study_of("trained-count"), SPEC)
    for settings, key in zip(runs.settings, runs.keys, strict=True):
        score = 0.5 + 0.001 * settings["n_anchors"] + 0.01 * settings["random_state"]
        scores = dict.fromkeys(("relative, same space", "relative, stitched", "absolute"), score)
        facts = {"settings": settings, "values": {**scores, "test rows": 100, "chance": 0.01}, "seconds": 1.0}
        Store().put(key, {}, facts)
    return runs


def test_the_recipe_draws_the_same_numbers_again_from_the_store(stored):
    drawn = StudyChart(SPEC.to_json()).draw(stored.table(Store()))
    again = exportable(json.loads(drawn.bytes("json", full_paths=True)))
    assert again.bytes("csv") == drawn.bytes("csv")
    assert again.filename("pdf") == "relscope-trained-count-accuracy.pdf"
    first = again.table().iloc[0]
    assert (first.x, first.y) == pytest.approx((2, 0.512))
    assert b"anchors 2, relative" in again.bytes("tex")
