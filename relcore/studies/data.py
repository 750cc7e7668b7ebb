"""Data that several studies use: datasets with encoders, pairs of words, and stitched values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.records import parse
from relcore.catalog.catalog import SpaceSpec, load
from relcore.catalog.encodings import encode
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.encoder import Encoder
from relcore.encoders.sentences import TfidfSvd
from relcore.encoders.vision import SmallVision, held_out_rows
from relcore.runs.store import Store
from relcore.runs.work import Progress
from relcore.spaces.matching import Match, match
from relcore.spaces.space import LatentSpace
from relcore.stitch.stitching import StitchSpec, stitch_matrix
from relcore.studies.study import Option

# The data of studies. Anchors are never test rows.

LABELLED = ("digits", "sentences")
DATA = Option(
    "data",
    "Encoders of",
    LABELLED,
    "digits",
    help=(
        "Digits: an MLP, a CNN, a residual CNN and a ViT, tested on digits that none of them was trained on."
        " Sentences of 16 Wikipedia articles: TF-IDF + SVD and MiniLM's layers 2, 4 and 6. The first run"
        " encodes them, which takes a minute or two."
    ),
)
SPACES = Option(
    "spaces", "The session's two spaces", (), (), many=True, help="Instead of the two bundled word spaces."
)
_WORDS = (SpaceSpec("bundled", "word2vec-novels"), SpaceSpec("bundled", "fasttext-novels"))


def dataset_of(data: str) -> DatasetSpec:
    if data == "digits":
        return DatasetSpec("digits")
    return DatasetSpec("wikipedia", limit=2000, options=(("articles", 16), ("per_article", 400)))


def encoders_of(data: str) -> tuple[Encoder, ...]:
    if data == "digits":
        return tuple(SmallVision(name) for name in ("mlp", "cnn", "residual", "vit"))
    from relcore.encoders.transformers import MiniLM

    return TfidfSvd(), MiniLM((2, 4, 6))


def labelled_spaces(data: str, store: Store, report: Progress) -> list[LatentSpace]:
    encoders = encoders_of(data)
    dataset = dataset_of(data)
    return [space for encoder in encoders for space in encode(dataset, encoder, store, report)]


def test_ids_of(data: str, space: LatentSpace) -> tuple[str, ...]:
    """The ids of the rows on which the encoders were not trained; () if the encoders are trained without
    labels."""
    if data == "digits":
        return tuple(space.ids[held_out_rows(len(space))])
    return ()


def _specs_and_digests(spaces: Sequence[str]) -> list[tuple[SpaceSpec, str]]:
    if not spaces:
        return [(spec, "") for spec in _WORDS]
    try:
        records = [dict(parse(text, "spaces")) for text in spaces]
        digests = [record.pop("digest", "") for record in records]
        specs = [SpaceSpec.from_json(record) for record in records]
    except (ValueError, AttributeError, TypeError) as error:
        raise SpaceError(f"spaces: expected two spaces as JSON, got something else ({error})") from error
    if len(specs) != 2:
        raise SpaceError(f"spaces: expected two, a source and a target, got {len(specs)}")
    return list(zip(specs, digests, strict=True))


def word_pair(spaces: Sequence[str], store: Store) -> Match:
    """Match two word spaces by id. `spaces` are descriptions as JSON from a session; if it is empty, the
    bundled spaces are used.

    Raises a SpaceError if a description is invalid or a space has changed since.
    """
    loaded = []
    for spec, digest in _specs_and_digests(spaces):
        space = load(spec, store)
        if digest and space.digest != digest:
            got = f"{space.digest[:8]}: it has changed since"
            raise SpaceError(f"{space.name!r}: expected the content {digest[:8]}, got {got}")
        loaded.append(space)
    return match(*loaded)


OWN = "absolute, same space"
MEASURES = {
    "relative, same space": "relative, same space",
    "relative, stitched": "relative, stitched",
    "whitened, same space": "whitened, same space",
    "whitened, stitched": "whitened, stitched",
}
BASELINES = {"absolute, not stitched": OWN, "chance": "chance"}


def stitched_values(spaces: list[LatentSpace], spec: StitchSpec) -> dict[str, Any]:
    """The mean accuracy of each method: ``"<method>, same space"`` is the mean over encoders, and
    ``"<method>, stitched"`` is the mean over pairs.

    Missing values are None. "chance" is the accuracy of always predicting the most frequent class.
    """
    result = stitch_matrix(spaces, spec)
    values = {}
    stitched = ~np.eye(len(spaces), dtype=bool)
    for method in spec.methods:
        scores = result.matrix(method, "accuracy")[0]
        pairs = scores[stitched]
        values[f"{method}, same space"] = float(scores[~stitched].mean())
        if np.isnan(pairs).all():
            values[f"{method}, stitched"] = None
        else:
            values[f"{method}, stitched"] = float(np.nanmean(pairs))
    return values | {"chance": result.chance(), "test rows": result.n_test}
