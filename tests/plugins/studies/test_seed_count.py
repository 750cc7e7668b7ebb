"""How many seeds: known answers on words, and two languages from a tiny corpus."""

import lzma

import numpy as np
import pytest
from relscope_studies.links import SeedCount

from relcore.runs.store import Store
from relcore.studies.study import study_of

STUDY = SeedCount("seed-count")


def run(store, **settings):
    usual = {"spaces": "words", "method": "self-learning", "rows": 500, "seeds": 8, "random_state": 0}
    return STUDY.measure(usual | settings, store, lambda *told: None).values


def test_words_are_found_from_eight_seeds(tmp_path):
    found = run(Store(tmp_path))
    assert found["found"] > 0.95
    assert (found["hidden"], found["chance"]) == (292, 1 / 500)


def test_the_anchor_optimisation_finds_words_and_says_so_itself(tmp_path):
    study = study_of("anchor-optimisation")
    settings = {"pair": "words", "rows": 200, "seeds": 30, "random_state": 0}
    found = study.measure(settings, Store(tmp_path), lambda *told: None).values
    assert min(found["found"], found["returned"]) > 0.95
    assert (found["hidden"], found["chance"]) == (170, 1 / 200)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two languages of 24 topics: a sentence has words of one topic, which in French end with x."""
    rng = np.random.default_rng(0)
    (tmp_path / "corpora").mkdir()
    (tmp_path / "swadesh").mkdir()
    letters = "abcdefghijklmnopqrstuvwx"
    words = [[f"{one}{other}" for other in letters] for one in letters]
    sentences = [rng.choice(words[topic], 8).tolist() for topic in rng.integers(24, size=2000)]
    for name, ending in (("english", ""), ("french", "x")):
        with lzma.open(tmp_path / "corpora" / f"{name}.txt.xz", "wt") as file:
            file.writelines(" ".join(word + ending for word in one) + "\n" for one in sentences)
    basic = [words[number][number] for number in range(24)]
    (tmp_path / "swadesh" / "en").write_text("\n".join([f"{word} (a note), other" for word in basic]))
    (tmp_path / "swadesh" / "fr").write_text("\n".join([f"{word}x/other" for word in basic]))
    monkeypatch.setenv("RELSCOPE_DATA", str(tmp_path))
    return tmp_path


def test_two_languages_are_judged_by_the_listed_words_that_are_no_seeds(folder, tmp_path):
    store = Store(tmp_path / "store")
    found = run(store, spaces="english-french", rows=4000, seeds=15)
    assert found["hidden"] == 24 - 15
    # Both were trained from one text with one seed, so they are equal but for the endings: all are found.
    assert found["found"] == 1.0
    assert run(store, spaces="english-french", rows=4000, seeds=15) == found


def test_a_language_without_structure_is_at_chance(folder, tmp_path):
    """French sentences of words at random: by chance 1 in 576 is right, of 9 none, or one."""
    rng = np.random.default_rng(1)
    with lzma.open(folder / "corpora" / "french.txt.xz", "rt") as file:
        words = file.read().split()
    with lzma.open(folder / "corpora" / "french.txt.xz", "wt") as file:
        file.writelines(" ".join(line) + "\n" for line in rng.permutation(words).reshape(-1, 8))
    found = run(Store(tmp_path / "store"), spaces="english-french", rows=4000, seeds=15)
    assert found["found"] <= 1 / 9 + 1e-9
