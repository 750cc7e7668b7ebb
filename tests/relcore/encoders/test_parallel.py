"""The bundled parallel sentences: complete, distinct, each in its own writing, the same ids in every
language.
"""

import pytest

from relcore.encoders.datasets import LANGUAGES, N_SENTENCES, load_dataset, load_parallel
from relcore.encoders.encoder import DatasetSpec


@pytest.fixture(scope="module")
def sentences():
    return load_parallel(tuple(LANGUAGES))


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
