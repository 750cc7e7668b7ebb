"""What studies are made on: frozen encoders of labelled items, pairs of word spaces, and anchors that no test
row is among.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.records import parse
from relcore.base.settings import Setting
from relcore.catalog.catalog import SpaceSpec, load
from relcore.catalog.encoding import encode
from relcore.encoders.bundled import LANGUAGES
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import Encoder
from relcore.encoders.images import pixel_array
from relcore.encoders.sentences import PooledWords, TfidfSvd
from relcore.encoders.vision import SmallVision, held_out_rows
from relcore.represent.anchors import select_anchors
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace, Match, match
from relcore.spaces.split import Split, row_keys
from relcore.stitch.stitching import StitchSpec, stitch_matrix
from relcore.studies.study import Option, Settings

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
_HELP = {
    "languages": "438 everyday sentences in four languages, each by its own TF-IDF + SVD.",
    "pooled": "2,000 Wikipedia sentences as plain means of the bundled word vectors.",
    "words": "The two bundled word spaces.",
    "digits": "An MLP, a CNN, a residual CNN and a ViT, tested on digits that none of them was trained on.",
    "reduced": "The bundled word spaces, each cut to its first 3, 6, 12, 25 or 50 principal components.",
    "trainings": "MLPs and CNNs of width 8, 32 and 128 on the digits, each trained from two random states.",
    "sentences": "TF-IDF + SVD and MiniLM's layers 2, 4 and 6; the first run takes some minutes.",
}


def data_option(*choices: str, default: Sequence[str] = ()) -> Setting:
    explained = " ".join(f"{name.capitalize()}: {_HELP[name]}" for name in choices)
    return Option("data", "On", choices, tuple(default or choices), many=True, help=explained)


# Frozen encoders of labelled items.


def dataset_of(data: str) -> DatasetSpec:
    if data == "digits":
        return DatasetSpec("digits")
    return DatasetSpec("wikipedia", limit=2000, options=(("articles", 16), ("per_article", 400)))


def encoders_of(data: str) -> tuple[Encoder, ...]:
    if data == "digits":
        return tuple(SmallVision(name) for name in ("mlp", "cnn", "residual", "vit"))
    from relcore.encoders.transformers import MiniLM

    return TfidfSvd(), MiniLM((2, 4, 6))


def labelled_spaces(data: str, store: Store, report: Report) -> list[LatentSpace]:
    encoders, dataset = encoders_of(data), dataset_of(data)
    return [space for encoder in encoders for space in encode(dataset, encoder, store, report)]


def digit_pictures(store: Store) -> tuple[Dataset, np.ndarray]:
    """The digits, and their pictures (n, 8, 8) float32, 0 … 1."""
    dataset = load_dataset(DatasetSpec("digits"), store)
    images = dataset.items(0, len(dataset))
    pixels = pixel_array(images, "L", (images[0].height, images[0].width), dataset.name)[:, 0]
    return dataset, pixels / np.float32(255)


def test_ids_of(data: str, space: LatentSpace) -> tuple[str, ...]:
    """Items that the encoders were not trained on; () where encoders are trained without labels."""
    return tuple(space.ids[held_out_rows(len(space))]) if data == "digits" else ()


# Pairs of word spaces: bundled, or the session's.


def _described(spaces: Sequence[str]) -> list[tuple[SpaceSpec, str]]:
    """Two specs with digests from their JSON, as a session gives them; none: the bundled ones.

    Raises
    ------
    SpaceError
        Not two, or no spaces in JSON.
    """
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
    """The two spaces, paired by id.

    Raises
    ------
    SpaceError
        Not two, or no spaces in JSON; a space that has changed since its digest was taken.
    """
    loaded = []
    for spec, digest in _described(spaces):
        space = load(spec, store)
        if digest and space.digest != digest:
            got = f"{space.digest[:8]}: it has changed since"
            raise SpaceError(f"{space.name!r}: expected the content {digest[:8]}, got {got}")
        loaded.append(space)
    return match(*loaded)


def random_anchors(settings: Settings, pair: Match) -> list[str]:
    return select_anchors(pair.source, settings["n_anchors"], random_state=settings["random_state"]).tolist()


# Of the open questions: spaces over the same rows.


def studied_spaces(data: str, store: Store, report: Report) -> list[LatentSpace]:
    if data == "words":
        pair = word_pair((), store)
        return [pair.source, pair.target]
    if data == "languages":
        sets = [DatasetSpec("parallel", language) for language in LANGUAGES]
        return [encode(one, TfidfSvd(128, min_texts=1), store, report)[0] for one in sets]
    if data == "pooled":
        encoders = [PooledWords(words, "plain") for words in ("word2vec-novels", "fasttext-novels")]
        return [encode(dataset_of("sentences"), encoder, store, report)[0] for encoder in encoders]
    return labelled_spaces(data, store, report)


def ordered_pairs(spaces: Sequence[LatentSpace]) -> list[tuple[int, int]]:
    return list(permutations(range(len(spaces)), 2))


def studied_split(
    data: str, space: LatentSpace, n_anchors: int, random_state: int, most_rows: int | None = None
) -> Split:
    """Anchors, training rows and test rows; digits are tested on rows that the networks were not trained
    on either.
    """
    test_ids, labels = (test_ids_of(data, space), space.labels) if data in LABELLED else ((), None)
    return anchored_split(space.ids, n_anchors, test_ids, labels, most_rows, random_state)


def anchored_split(
    ids: Sequence[str],
    n_anchors: int,
    test_ids: Sequence[str] = (),
    labels: Sequence | None = None,
    most_rows: int | None = None,
    random_state: int = 0,
) -> Split:
    """Test rows as `Split.draw` draws them, and anchors at random among the others: fewer anchors are the
    first of more. Of at most `most_rows` rows, drawn by their ids; the others are in no part.

    Raises
    ------
    SpaceError
        More anchors than rows that are not tested on; what `Split.draw` raises.
    """
    ids = np.asarray(ids, dtype=object)
    drawn = Split.draw(ids, test_ids=test_ids, labels=labels, random_state=random_state)
    train, test = drawn.train, drawn.test
    if most_rows is not None and most_rows < len(ids):
        kept = np.argsort(row_keys(ids, "rows", random_state))[:most_rows]
        train, test = (part[np.isin(part, kept)] for part in (train, test))
    if not 1 <= n_anchors <= len(train):
        allowed = f"1 … {len(train):,}, the rows that are not tested on"
        raise SpaceError(f"n_anchors: expected {allowed}, got {n_anchors:,}")
    order = np.argsort(row_keys(ids[train], "anchors", random_state))
    return Split(ids, train[order[:n_anchors]], np.sort(train[order[n_anchors:]]), test, random_state)


# What a stitching of frozen encoders gives a study.

OWN = "absolute, same space"
MEASURES = {
    "relative, same space": "relative heads, same space",
    "relative, stitched": "relative heads, stitched",
    "whitened, same space": "whitened heads, same space",
    "whitened, stitched": "whitened heads, stitched",
}
BASELINES = {"absolute heads, not stitched": OWN, "chance": "chance"}


def stitched_values(spaces: list[LatentSpace], spec: StitchSpec) -> dict[str, Any]:
    """Mean accuracy of each method of the spec, ``"<method>, same space"`` over the encoders and
    ``"<method>, stitched"`` over the pairs, None where there is none; "chance", always the most frequent
    class.
    """
    result, values = stitch_matrix(spaces, spec), {}
    stitched = ~np.eye(len(spaces), dtype=bool)
    for method in spec.methods:
        scores = result.matrix(method, "accuracy")[0]
        pairs = scores[stitched]
        values[f"{method}, same space"] = float(scores[~stitched].mean())
        values[f"{method}, stitched"] = None if np.isnan(pairs).all() else float(np.nanmean(pairs))
    return values | {"chance": result.chance(), "test rows": result.n_test}
