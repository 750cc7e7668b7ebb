"""The bundled parallel sentences: complete, distinct, each in its own writing, the same ids in every
language.
"""

import re
import unicodedata
from pathlib import Path

import pytest

from relcore.encoders import datasets
from relcore.encoders.datasets import LANGUAGES, N_SENTENCES, load_dataset, load_parallel
from relcore.encoders.encoder import DatasetSpec

FILE = Path(datasets.__file__).parents[1] / "data" / "parallel" / "everyday.tsv"


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


def test_datasets_of_two_languages_match_by_id(sentences):
    english, japanese = (
        load_dataset(DatasetSpec("parallel", "en")),
        load_dataset(DatasetSpec("parallel", "ja")),
    )
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
