"""Figures of parallel anchors: drawn, drawn again from their recipes to the same numbers, and refused
where they are broken.
"""

from __future__ import annotations

import json

import pandas as pd
import pytest

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import encoding_key, encoding_spec
from relcore.catalog.encoding import encode
from relcore.compare.figures import exportable
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.parallel import load_parallel
from relcore.encoders.sentences import TfidfSvd
from relcore.encoders.small_vision import SmallVision
from relcore.figures.style import LIGHT
from relcore.runs.store import Store
from relcore.stitch.captioned import CaptionSpec
from relcore.stitch.languages import AcrossLanguages, CrossLingual, PicturesAndWords, RetrievalSpec
from relcore.stitch.stitching import StitchSpec


@pytest.fixture
def make_spec(monkeypatch, tmp_path):
    """``make_spec(dataset, encoder) -> SpaceSpec``, encoded."""
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))

    def make(dataset, encoder):
        [space] = encode(dataset, encoder, Store())
        return encoding_spec(
            dataset, encoder, "", encoding_key(load_dataset(dataset).digest, encoder), space.name
        )

    return make


def drawn_again(figure):
    assert figure.interactive(LIGHT).layout.meta["alt"]
    assert r"\toprule" in figure.bytes("tex").decode()
    again = exportable(json.loads(figure.bytes("json", full_paths=True)))
    pd.testing.assert_frame_equal(again.table(), figure.table())
    return again


def test_everyday_sentences_find_their_translation(make_spec):
    specs = tuple(
        make_spec(DatasetSpec("parallel", name), TfidfSvd(200, min_texts=1)) for name in ("en", "fr")
    )
    figure = CrossLingual(spaces=specs, retrieval=RetrievalSpec()).draw()
    table = drawn_again(figure).table().set_index(["method", "metric"])["score"]
    assert table["relative", "MRR"] > 0.7  # measured .78, absolute .02
    assert table["absolute", "MRR"] < 0.1


def test_a_head_and_rows_meet_through_sentences_from_outside(make_spec, tmp_path):
    lines = [f"{text}\t{'question' if '?' in text else 'told'}" for text in load_parallel(["en"])["en"]]
    path = tmp_path / "mine.tsv"
    path.write_text("text\tlabel\n" + "\n".join(lines), encoding="utf-8")
    specs = tuple(make_spec(DatasetSpec("file", str(path)), TfidfSvd(width)) for width in (40, 60))
    sentences = load_parallel(["en"])["en"][:200]
    pairs = tuple(zip(sentences, sentences, strict=True))
    figure = AcrossLanguages(
        spaces=specs, stitching=StitchSpec(methods=("relative", "procrustes")), pairs=pairs
    ).draw()
    table = drawn_again(figure).table()
    assert table["anchors"].tolist() == [200, 200]


def test_digits_are_told_apart_by_sentences(make_spec):
    spec = make_spec(DatasetSpec("digits", limit=500), SmallVision("mlp", width=16, epochs=4))
    few = CaptionSpec(n_pairs=100)
    figure = PicturesAndWords(spaces=(spec,), encoder=TfidfSvd(15, min_texts=1), captions=few).draw()
    table = drawn_again(figure).table()
    assert table["y"].iloc[:-2].max() > 0.7
    with pytest.raises(SpaceError, match="expected more than 384 sentences for TF-IDF"):
        PicturesAndWords(spaces=(spec,), encoder=TfidfSvd(), captions=few).draw()


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (
            {"figure": "cross-lingual", "spaces": []},
            "recipe of cross-lingual: spaces: expected a list of length 2",
        ),
        (
            {"figure": "zero-shot", "spaces": [{}], "captions": {}},
            "recipe of zero-shot: .*setting '.*' is missing",
        ),
        (
            {
                "figure": "cross-lingual",
                "spaces": [{"source": "file", "name": "x"}] * 2,
                "retrieval": {},
                "pairs": [["a"]],
            },
            "recipe of cross-lingual: pairs.*: expected a list of length 2",
        ),
        (
            {
                "figure": "across-languages",
                "spaces": [{"source": "file", "name": "x"}] * 2,
                "stitching": {},
                "pairs": [],
            },
            "expected two pairs or more, got 0",
        ),
    ],
)
def test_broken_recipes_are_refused(recipe, message):
    with pytest.raises(SpaceError, match=message):
        exportable(recipe)
