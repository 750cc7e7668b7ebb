"""What studies are made on: frozen encoders of labelled items, and pairs of word spaces."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.records import parse
from relcore.catalog.catalog import SpaceSpec, load
from relcore.catalog.encoding import encode
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import Encoder
from relcore.encoders.images import pixel_array
from relcore.encoders.parallel import LANGUAGES
from relcore.encoders.sentences import PooledWords, TfidfSvd
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace, Match, match
from relcore.spaces.split import TEST_FRACTION, Split, row_keys
from relcore.stitch.stitching import StitchSpec, stitch_matrix
from relcore.studies.study import Opening, Option

LABELLED = ("digits", "sentences")
DATA = Option(
    "data",
    "Encoders of",
    LABELLED,
    "digits",
    help=(
        "Digits: an MLP, a CNN, a residual CNN and a ViT, tested on digits that none of them was trained on."
        " Sentences of 16 Wikipedia articles: TF-IDF + SVD and MiniLM's layers 2, 4 and 6. The first run"
        " encodes them, which takes half a minute or two; the others find them in the store."
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
    """Four encoders; those of sentences give one and three spaces."""
    if data == "digits":
        from relcore.encoders.small_vision import SmallVision

        return tuple(SmallVision(name) for name in ("mlp", "cnn", "residual", "vit"))
    from relcore.encoders.sentences import TfidfSvd
    from relcore.encoders.transformers import MiniLM

    return TfidfSvd(), MiniLM((2, 4, 6))


def labelled_spaces(data: str, store: Store, report: Report) -> list[LatentSpace]:
    """Four spaces over the same items; encoded now where the store does not have them."""
    return [
        space for encoder in encoders_of(data) for space in encode(dataset_of(data), encoder, store, report)
    ]


def digit_pictures(store: Store) -> tuple[Dataset, np.ndarray]:
    """The digits, and their pictures (n, 8, 8) float32, 0 … 1."""
    dataset = load_dataset(DatasetSpec("digits"), store)
    images = dataset.items(0, len(dataset))
    pixels = pixel_array(images, "L", (images[0].height, images[0].width), dataset.name)[:, 0]
    return dataset, pixels / np.float32(255)


def test_ids_of(data: str, space: LatentSpace) -> tuple[str, ...]:
    """Items that the encoders were not trained on; () where encoders are trained without labels."""
    from relcore.encoders.small_vision import held_out_rows

    return tuple(space.ids[held_out_rows(len(space))]) if data == "digits" else ()


def opening_of(data: str, anchors: Sequence[str] = ()) -> Opening:
    """The encoders of these data, for a session."""
    return Opening(dataset=dataset_of(data), encoders=encoders_of(data), anchors=tuple(anchors))


def word_specs(spaces: Sequence[str]) -> tuple[SpaceSpec, SpaceSpec]:
    """Two specs from their JSON with digests, as a session gives them; none: the bundled ones.

    Raises
    ------
    SpaceError
        Not two, or no spaces in JSON.
    """
    if not spaces:
        return _WORDS
    source, target = (spec for spec, _ in _read(spaces))
    return source, target


def word_pair(spaces: Sequence[str], store: Store) -> Match:
    """The two spaces, paired by id.

    Raises
    ------
    SpaceError
        As in `word_specs`; a space that has changed since its digest was taken.
    """
    if not spaces:
        return match(*(load(spec, store) for spec in _WORDS))
    loaded = []
    for spec, digest in _read(spaces):
        space = load(spec, store)
        if digest and space.digest != digest:
            raise SpaceError(
                f"{space.name!r}: expected the content {digest[:8]}, got {space.digest[:8]}: it has changed"
                " since"
            )
        loaded.append(space)
    return match(*loaded)


def _read(spaces: Sequence[str]) -> list[tuple[SpaceSpec, str]]:
    try:
        records = [parse(text, "spaces") for text in spaces]
        found = [
            (SpaceSpec.from_json({k: v for k, v in one.items() if k != "digest"}), one.get("digest", ""))
            for one in records
        ]
    except (ValueError, AttributeError, TypeError) as error:
        raise SpaceError(f"spaces: expected two spaces as JSON, got something else ({error})") from error
    if len(found) != 2:
        raise SpaceError(f"spaces: expected two, a source and a target, got {len(found)}")
    return found


# What the studies of the open questions are measured on: spaces over the same rows, and anchors that no test
# row is among.

_HELP = {
    "languages": (
        "438 everyday sentences in English, Spanish, French and Japanese, each language by its own TF-IDF +"
        " SVD."
    ),
    "pooled": "2,000 Wikipedia sentences as plain means of the bundled Word2Vec and FastText word vectors.",
    "words": "The two bundled word spaces.",
    "digits": "An MLP, a CNN, a residual CNN and a ViT, tested on digits that none of them was trained on.",
    "reduced": "The bundled word spaces, each cut to its own first 3, 6, 12, 25 or 50 principal components.",
    "trainings": "MLPs and CNNs of width 8, 32 and 128 on the digits, each trained from two random states.",
    "sentences": (
        "TF-IDF + SVD and MiniLM's layers 2, 4 and 6; the first run encodes them, which takes some minutes."
    ),
}


def data_option(*choices: str, default: Sequence[str] = ()) -> Option:
    """The choice of data among these, several at once; default all of them."""
    told = " ".join(f"{name.capitalize()}: {_HELP[name]}" for name in choices)
    return Option("data", "On", choices, tuple(default or choices), many=True, help=told)


def studied_spaces(data: str, store: Store, report: Report) -> list[LatentSpace]:
    """Two or four spaces over the same ids, row for row."""
    if data == "words":
        pair = word_pair((), store)
        return [pair.source, pair.target]
    if data == "languages":
        encoder = TfidfSvd(128, min_texts=1)
        return [
            encode(DatasetSpec("parallel", language), encoder, store, report)[0] for language in LANGUAGES
        ]
    if data == "pooled":
        encoders = [PooledWords(words, "plain") for words in ("word2vec-novels", "fasttext-novels")]
        return [encode(dataset_of("sentences"), encoder, store, report)[0] for encoder in encoders]
    return labelled_spaces(data, store, report)


def ordered_pairs(spaces: Sequence[LatentSpace]) -> list[tuple[int, int]]:
    """Every source with every other target."""
    return list(permutations(range(len(spaces)), 2))


def studied_split(
    data: str, space: LatentSpace, n_anchors: int, random_state: int, most_rows: int | None = None
) -> Split:
    """Anchors, training rows and test rows; digits are tested on rows that the networks were not trained
    on either.
    """
    return anchored_split(
        space.ids,
        n_anchors,
        test_ids=test_ids_of(data, space) if data in LABELLED else (),
        labels=space.labels if data in LABELLED else None,
        most_rows=most_rows,
        random_state=random_state,
    )


def anchored_split(
    ids: Sequence[str],
    n_anchors: int,
    *,
    test_fraction: float = TEST_FRACTION,
    test_ids: Sequence[str] = (),
    labels: Sequence | None = None,
    most_rows: int | None = None,
    random_state: int = 0,
) -> Split:
    """Test rows as `Split.draw` draws them, and anchors at random among the others: fewer anchors are the
    first of more.

    Parameters
    ----------
    most_rows : int, optional
        Keep only this number of rows, drawn by their ids; the others are in no part.

    Raises
    ------
    SpaceError
        More anchors than rows that are not tested on; what `Split.draw` raises.
    """
    ids = np.asarray(ids, dtype=object)
    drawn = Split.draw(
        ids, test_fraction=test_fraction, test_ids=test_ids, labels=labels, random_state=random_state
    )
    train, test = drawn.train, drawn.test
    if most_rows is not None and most_rows < len(ids):
        kept = np.zeros(len(ids), dtype=bool)
        kept[np.argsort(row_keys(ids, "rows", random_state))[:most_rows]] = True
        train, test = train[kept[train]], test[kept[test]]
    if not 1 <= n_anchors <= len(train):
        raise SpaceError(
            f"n_anchors: expected 1 … {len(train):,}, the rows that are not tested on, got {n_anchors:,}"
        )
    order = np.argsort(row_keys(ids[train], "anchors", random_state))
    return Split(ids, train[order[:n_anchors]], np.sort(train[order[n_anchors:]]), test, random_state)


# What a stitching of frozen encoders gives a study: accuracies in the same space and stitched, as plain
# numbers.

OWN = "absolute, same space"
MEASURES = {
    "relative, same space": "relative heads, same space",
    "relative, stitched": "relative heads, stitched",
    "whitened, same space": "whitened heads, same space",
    "whitened, stitched": "whitened heads, stitched",
}
BASELINE = "absolute heads, not stitched"


def stitched_values(
    spaces: list[LatentSpace], spec: StitchSpec, metrics: tuple[str, ...] = ("accuracy",)
) -> dict[str, Any]:
    """For each method of the spec ``"<method>, same space"`` and ``"<method>, stitched"``, means over
    encoders and over pairs.

    Accuracy without a prefix, weighted F1 as ``"F1, …"``; and "chance", always the most frequent class.
    """
    result = stitch_matrix(spaces, spec)
    values: dict[str, Any] = {}
    stitched = ~np.eye(len(spaces), dtype=bool)
    for metric in metrics:
        prefix = "" if metric == "accuracy" else f"{metric.upper()}, "
        for method in spec.methods:
            scores = result.matrix(method, metric)[0]
            values[f"{prefix}{method}, same space"] = float(scores[~stitched].mean())
            pairs = scores[stitched]
            values[f"{prefix}{method}, stitched"] = (
                None if np.isnan(pairs).all() else float(np.nanmean(pairs))
            )
    return values | {"chance": result.chance(), "test rows": result.n_test}
