"""Heads across languages by captions: a made-up language that is English in other letters, and captions
that do not match.
"""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.papers import measured as captions
from relcore.papers.measured import across_languages, parted
from relcore.runs.store import Store

N = 300
SETTINGS = {
    "languages": ["en", "de"],
    "n_captions": N,
    "n_classes": 3,
    "n_components": 24,
    "n_anchors": 90,
    "random_states": [0, 1],
}


@pytest.fixture
def scores(tmp_path, monkeypatch):
    """``scores(translated=False)``: F1 by label and metric; captions of three subjects of twenty words
    each.
    """

    def measured(translated=True):
        rng = np.random.default_rng(0)
        subjects = rng.integers(3, size=N)
        words = [
            [f"{'abc'[subject]}word{number}" for number in rng.integers(20, size=6)] for subject in subjects
        ]
        english = [" ".join(one) for one in words]
        german = [" ".join(word.replace("word", "wort") for word in one) for one in words]
        order = np.arange(N) if translated else rng.permutation(N)
        path = tmp_path / f"captions-{translated}.csv"
        lines = [f"{one},{german[row]}" for one, row in zip(english, order, strict=True)]
        path.write_text("\n".join(["en,de", *lines]))
        monkeypatch.setattr(captions, "captions", lambda: path)
        monkeypatch.setattr(captions, "LANGUAGES", {"en": "English"})
        monkeypatch.setattr(
            captions, "english_classes", lambda *given: [str(subject) for subject in subjects]
        )
        found = across_languages(SETTINGS, Store(tmp_path / "store"), lambda *told: None)
        return {(number.label, number.metric): number for number in found.numbers}

    return measured


def test_a_head_reads_a_language_whose_words_are_others(scores):
    found = scores()
    relative = "relative, translated anchors: weighted F1"
    stitched, own = (
        found[f"mean over en, de, {which}", relative] for which in ("stitched pairs", "not stitched")
    )
    assert own.value > 0.95
    assert stitched.value == pytest.approx(own.value, abs=0.05)
    assert (stitched.repeats, own.baseline < 0.5) == (2, True)
    assert not any("everyday" in metric for _, metric in found)


def test_captions_that_are_no_translations_give_no_more_than_chance(scores):
    found = scores(translated=False)
    # The other language's captions know nothing of the classes, so a head is right for a third of the 44 test
    # rows of each of two draws: standard error √(1/3 · 2/3 / 88) = .05. Weighted F1 is at most about the
    # accuracy. Four errors above a third.
    for method in (
        "absolute",
        "relative, translated anchors",
        "relative, whitened (ours), translated anchors",
    ):
        assert found["decoder en, encoder de", f"{method}: weighted F1"].value < 1 / 3 + 4 * 0.05


def test_anchors_and_test_rows_are_different_captions():
    ids = np.array([f"caption {number}" for number in range(200)], dtype=object)
    split = parted(ids, 60, 0)
    assert len(split.anchors) == 60
    assert not set(split.anchors) & set(split.test)
    assert not set(split.test) & set(split.train)
    assert set(parted(ids, 60, 1).anchors) != set(split.anchors)
    with pytest.raises(SpaceError, match="n_anchors: expected at most half of 200 captions, got 101"):
        parted(ids, 101, 0)
