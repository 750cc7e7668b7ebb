"""The bundled parallel sentences: complete, distinct, each in its own writing, the same ids in every
language.
"""

import re
import unicodedata
from pathlib import Path

import pytest

from relcore.base.errors import SpaceError
from relcore.encoders import parallel
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import available_datasets, load_dataset
from relcore.encoders.parallel import LANGUAGES, N_SENTENCES, load_parallel, parallel_dataset

FILE = Path(parallel.__file__).parents[1] / "data" / "parallel" / "everyday.tsv"
LATIN = {
    "en": r"[A-Za-z ',.?!-]+",
    "es": r"[A-Za-zÁÉÍÓÚÑáéíóúüñ ,.?!¿¡-]+",
    "fr": r"[A-Za-zÀÂÇÈÉÊÎÔàâçèéêëîïôùûœ ',.?!-]+",
}


@pytest.fixture(scope="module")
def sentences():
    return load_parallel(tuple(LANGUAGES))


def test_the_file_is_a_plain_table():
    lines = FILE.read_text(encoding="utf-8").split("\n")
    assert lines[0] == "id\ten\tes\tfr\tja"
    assert lines[-1] == ""
    cells = [line.split("\t") for line in lines[1:-1]]
    assert len(cells) == N_SENTENCES >= 400
    assert [row for row in cells if len(row) != 5 or not all(row)] == []
    assert [row[0] for row in cells] == [f"s{number:03d}" for number in range(1, N_SENTENCES + 1)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_sentence_is_its_own(sentences, language):
    column = sentences[language]
    bare = [re.sub(r"\W", "", sentence).casefold() for sentence in column]
    assert len(set(bare)) == len(column) == N_SENTENCES
    untidy = [
        s for s in column if s != " ".join(s.split()) or s != unicodedata.normalize("NFC", s) or '"' in s
    ]
    assert untidy == []


@pytest.mark.parametrize("language", LATIN)
def test_latin_letters_four_to_fourteen_words_and_an_end(sentences, language):
    for sentence in sentences[language]:
        assert re.fullmatch(LATIN[language], sentence), sentence
        assert 4 <= len(re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*", sentence.replace("n't", "nt"))) <= 14, (
            sentence
        )
        assert sentence[-1] in ".?!", sentence


def test_japanese_is_in_kana_and_kanji(sentences):
    for sentence in sentences["ja"]:
        assert sentence.endswith("。"), sentence
        written = sentence.replace("Wi-Fi", "")
        assert re.fullmatch(r"[\u3041-\u3096\u30a1-\u30fa\u30fc\u4e00-\u9fff々、。]+", written), sentence
        assert re.search(r"[\u3041-\u3096]", sentence), sentence


def test_marks_stand_as_each_language_sets_them(sentences):
    for spanish in sentences["es"]:
        assert [spanish.count(mark) for mark in "¿¡"] == [spanish.count(mark) for mark in "?!"], spanish
    assert [s for s in sentences["fr"] if re.search(r"[^ ][?!:;]", s)] == []
    assert [s for s in sentences["en"] + sentences["es"] if re.search(r" [?!:;,.]", s)] == []
    asks = [[sentence.endswith("?") for sentence in sentences[language]] for language in LATIN]
    assert asks[0] == asks[1] == asks[2]


def test_the_languages_asked_for_in_the_order_asked_for(sentences):
    assert list(load_parallel()) == ["en", "es"]
    assert list(load_parallel(["ja", "fr"])) == ["ja", "fr"]
    row = sentences["en"].index("Two plus two makes four.")
    said = [sentences[language][row] for language in ("es", "fr", "ja")]
    assert said == ["Dos más dos son cuatro.", "Deux et deux font quatre.", "二足す二は四です。"]


def test_datasets_of_two_languages_match_by_id(sentences):
    english, japanese = parallel_dataset("en"), load_dataset(DatasetSpec("parallel", "ja"))
    assert english.ids.tolist() == japanese.ids.tolist()
    assert (english.ids[0], english.kind, english.labels, len(english)) == (
        "s001",
        "texts",
        None,
        N_SENTENCES,
    )
    assert tuple(japanese.items(0, N_SENTENCES)) == sentences["ja"]
    assert english.digest != japanese.digest
    first = load_dataset(DatasetSpec("parallel", "fr", limit=3))
    assert (first.ids.tolist(), first.items(0, 3)) == (["s001", "s002", "s003"], list(sentences["fr"][:3]))


def test_every_language_is_listed_and_loads():
    listed = {entry.name: entry for entry in available_datasets() if entry.spec.source == "parallel"}
    assert list(listed) == [
        f"everyday sentences, {name}" for name in ("English", "Spanish", "French", "Japanese")
    ]
    for entry in listed.values():
        dataset = load_dataset(entry.spec)
        assert (len(dataset), dataset.kind, entry.where) == (entry.n, entry.kind, "here")


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (
            lambda: load_parallel(("en", "de")),
            r"languages: expected some of 'en', 'es', 'fr', 'ja', got 'de'",
        ),
        (
            lambda: parallel_dataset("English"),
            r"language: expected one of 'en', 'es', 'fr', 'ja', got 'English'",
        ),
        (lambda: load_dataset(DatasetSpec("parallel")), r"language: expected one of .*, got ''"),
        (
            lambda: load_dataset(DatasetSpec("parallel", "en", options=(("a", 1),))),
            r"expected none for .*'parallel', got 'a'",
        ),
    ],
)
def test_an_unknown_language_says_which_there_are(load, message):
    with pytest.raises(SpaceError, match=message):
        load()


def test_a_missing_file_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(parallel, "_FILE", tmp_path / "everyday.tsv")
    with pytest.raises(
        SpaceError, match=r"everyday\.tsv, which comes with the project, got no such file; check it out again"
    ):
        load_parallel()
