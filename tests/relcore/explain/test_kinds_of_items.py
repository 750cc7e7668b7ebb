"""Features of words, texts and pictures, by hand; a plugin's features are tried, too."""

import numpy as np
import pytest
from PIL import Image

from relcore import LatentSpace, explain
from relcore.base.names import FEATURES, FeaturesName
from relcore.explain.families import partition
from relcore.explain.pictures import picture_families
from relcore.explain.texts import script_of, text_families
from relcore.explain.words import are_words, word_families


def members(families, name):
    family = next(one for one in families if one.name == name)
    places = {short: place for place, short in enumerate(family.shorts)}
    return {short: family.members[:, [place]].nonzero()[0].tolist() for short, place in places.items()}


def test_endings_need_a_stem_and_30_rows():
    words = [f"{chr(97 + n % 26)}{chr(97 + n // 26)}ing" for n in range(40)] + ["ing"] * 40 + ["red"] * 20
    found = members(list(word_families(words)), "ending of 3 letters")
    assert found == {"-ing": list(range(40))}


def test_the_name_of_endings_as_a_whole_fits_longer_ones_too():
    together = {family.name: family.together for family in word_families(["singing", "standing"] * 40)}
    assert together["ending of 2 letters"] == "words with the same ending of 2 letters or more"


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (["king", "queen", "L'été", "well-known"], True),
        (["r1", "r2", "r3"], False),
        (["17", "18"], False),
        (["digits/1", "a", "digits/2"], False),
    ],
)
def test_which_ids_are_words(ids, words):
    assert are_words(ids) == words


def test_signs_of_texts():
    texts = ["In 1984 it rained."] * 40 + ["Why?"] * 40 + ["He said “no”."] * 40 + ["It costs 7."] * 40
    found = members(list(text_families(texts)), "signs")
    assert found["year"] == list(range(40))
    assert found["question"] == list(range(40, 80))
    assert found["quotation"] == list(range(80, 120))
    assert found["number"] == [*range(40), *range(120, 160)]


def test_words_of_texts_are_neither_rare_nor_stop_words():
    texts = ["the river and the sea"] * 40 + ["the hill"] * 160 + ["the rare word"] * 5
    family = next(one for one in text_families(texts) if one.name == "word")
    assert set(family.shorts) == {"river", "sea", "the river", "river and", "the sea"}


@pytest.mark.parametrize(
    ("text", "script"), [("abc", "latin"), ("чай", "cyrillic"), ("7!", ""), ("猫", "cjk")]
)
def test_scripts(text, script):
    assert script_of(text) == script


def test_pictures_by_brightness_and_hue():
    rng = np.random.default_rng(0)
    pictures = []
    for number in range(120):
        color = ((250, 20, 20), (20, 20, 250))[number % 2]
        level = 0.3 + 0.7 * rng.random()
        pictures.append(Image.new("RGB", (8, 8 + number % 3), tuple(int(one * level) for one in color)))
    families = list(picture_families(pictures))
    assert members(families, "hue") == {"red": list(range(0, 120, 2)), "blue": list(range(1, 120, 2))}
    hues = next(one for one in families if one.name == "hue")
    assert hues.titles == ("pictures that are mostly blue", "pictures that are mostly red")
    brightness = next(one for one in families if one.name == "brightness")
    grey = np.array([np.asarray(picture, dtype=float).mean() for picture in pictures])
    order = np.argsort(np.argsort(grey))
    for place, short in enumerate(brightness.shorts):
        inside = order[brightness.members[:, [place]].nonzero()[0]]
        assert np.ptp(inside) < 24, short


def shouting(texts):
    yield partition("voice", ["loud" if text.isupper() else "" for text in texts], "{} texts", "")


def test_features_of_a_plugin_are_tried(monkeypatch):
    rng = np.random.default_rng(1)
    texts = ["AB" if row % 4 == 0 else "ab" for row in range(400)]
    rows = rng.normal(size=(400, 6)).astype(np.float32)
    moved = rows.copy()
    moved[::4] += 8
    monkeypatch.setitem(FEATURES.own, "voice", FeaturesName("Voice", f"{__name__}:shouting", of="any"))
    ids = [f"r{row}" for row in range(400)]
    found = explain(LatentSpace(rows, ids, payload=texts), LatentSpace(moved, ids))
    assert "voice" in found.families
    assert found.reasons[0].title == "loud texts"
