"""Heads that read rows of another encoder: across domains, languages, layers, pictures and words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.names import METRICS
from relcore.base.numbers import band, short
from relcore.base.rows import mean_row, unit_rows
from relcore.catalog.encodings import encode
from relcore.compare.all_pairs import AllPairs
from relcore.encoders.dataset import Dataset
from relcore.encoders.encoder import Encoder
from relcore.encoders.sentences import TfidfSvd
from relcore.encoders.vision import SmallVision
from relcore.figures.charts import Lines
from relcore.figures.matrices import Matrices, MatrixPanel
from relcore.represent.heads import fit_head
from relcore.runs.store import Store
from relcore.runs.work import Progress
from relcore.scores.estimate import Estimate
from relcore.scores.score import ChanceLevel
from relcore.spaces.space import LatentSpace
from relcore.stitch.stitching import StitchSpec, stitch_matrix
from relcore.studies.data import dataset_of, test_ids_of
from relcore.studies.estimates import (
    average,
    chart,
    count_of,
    finding,
    findings_table,
    lines_over,
    mean,
    mean_at,
    sentence,
)
from relcore.studies.study import Option, RunResult, Settings, Study, states


def _minilm(*layers: tuple[int, ...]) -> Encoder:
    from relcore.encoders.transformers import MiniLM

    return MiniLM(*layers)


TEMPLATES = (
    "a hand-written {}",
    "a photo of the number {}",
    "the digit {}",
    "someone wrote {} on paper",
    "this is a {}",
    "a small grey picture of a {}",
)
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_SENTENCES = {"tfidf": "TF-IDF + SVD", "minilm": "MiniLM"}
_PICTURES = (10, 20, 50, 100, 200, 500, 1000)
_VISION = SmallVision("cnn")


class PicturesAndWords(Study):
    """Digits through a CNN and sentences through an encoder of texts, trained apart. Some pictures have a
    caption, "the digit seven"; a held-out picture is the class whose sentence, "a hand-written seven", is
    most similar relative to these pairs. Captions are made of the labels, so none is wrong; the CNN saw the
    labels of other pictures.
    """

    title = "Pictures and words"
    question = "How many pictures with captions does it take to classify pictures by sentences?"
    paper = "Norelli et al. 2023 (ASIF)"

    cost = 2.0
    options = (
        Option("encoder", "Sentences by", tuple(_SENTENCES), "tfidf", names=tuple(_SENTENCES.values())),
        Option(
            "keep", "Similarities to keep", (10, 30, 100, 300), 100, help="ASIF keeps 800 of 1.6 million."
        ),
        Option("exponent", "Exponent", (1, 2, 4, 8), 8, help="ASIF uses 8."),
        states("the pictures with captions", 5),
    )
    by = "n_pairs"
    measures: ClassVar = {"accuracy": "accuracy by sentences"}

    shared = "encoder keep exponent"
    varied: ClassVar = {"n_pairs": _PICTURES}

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        (images,) = encode(dataset_of("digits"), _VISION, store, report)
        sentences = [template.format(word) for word in _DIGITS for template in TEMPLATES]
        ids = [f"caption/{number}" for number in range(len(sentences))]
        captions = Dataset(lambda start, stop: sentences[start:stop], ids, name="captions", kind="texts")
        if settings["encoder"] == "minilm":
            encoder = _minilm()
        else:
            encoder = TfidfSvd(15, min_texts=1)
        (texts,) = encode(captions, encoder, store, report)
        by_class = texts.vectors.reshape(len(_DIGITS), len(TEMPLATES), -1)
        test = images.rows(test_ids_of("digits", images))
        names = ("n_pairs", "keep", "exponent", "random_state")
        return RunResult(zero_shot(images, by_class, test, **{name: settings[name] for name in names}))

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        lines = lines_over(table, "n_pairs", {"accuracy": _SENTENCES[options["encoder"]]})
        titles = ("pictures with captions", "accuracy")
        rows = count_of(table, "held-out digits, 10 classes")
        levels = {"chance": "chance", "head trained on labels": "head"}
        look = {"y_range": (0, 1.02)}
        return {"accuracy": chart(table, lines, titles, rows, levels, log_x=True, **look)}

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        most = table.n_pairs.max()
        return sentence(
            f"From {most:,} pictures with captions, sentences classify {{}} of the held-out digits; a head"
            f" trained on all labels {short(average(table, 'head'))}.",
            mean_at(table, "n_pairs", most, "accuracy"),
        )


def zero_shot(
    images: LatentSpace,
    texts: np.ndarray,
    test: np.ndarray,
    *,
    n_pairs: int,
    keep: int = 100,
    exponent: float = 8.0,
    random_state: int = 0,
) -> dict[str, float]:
    """The accuracy on held-out pictures by captions alone, of a head trained on all other labels, and of the
    most frequent class.

    Of the texts (C, T, d), T per sorted class, the first is the query, the others are captions of `n_pairs`
    random pictures, balanced by class. Raises a SpaceError for missing sentences or too few pictures.
    """
    classes, targets = np.unique(images.labels.astype(str), return_inverse=True)
    rng = np.random.default_rng(random_state)
    train = np.setdiff1d(np.arange(len(images)), test)
    groups = [rng.permutation(train[targets[train] == number]) for number in range(len(classes))]
    longest = max(map(len, groups))
    turns = np.array([group[i] for i in range(longest) for group in groups if i < len(group)])
    if len(classes) != len(texts) or len(turns) < n_pairs:
        raise SpaceError(
            f"expected pictures of {len(texts)} classes and at least {n_pairs:,} of them not held out, got"
            f" {len(classes)} classes and {len(turns):,} pictures"
        )
    pairs = turns[:n_pairs]
    turn = 1 + np.arange(n_pairs) // len(classes) % (texts.shape[1] - 1)
    similar = zero_shot_similarities(
        images.vectors[test],
        texts[:, 0],
        images.vectors[pairs],
        texts[targets[pairs], turn],
        keep=keep,
        exponent=exponent,
    )
    head = fit_head(images.vectors[train], targets[train], len(classes))
    truth = targets[test]
    return {
        "accuracy": float(np.mean(similar.argmax(axis=1) == truth)),
        "head": float(np.mean(head.probabilities(images.vectors[test]).argmax(axis=1) == truth)),
        "chance": float(np.mean(truth == np.bincount(targets[train]).argmax())),
        "test rows": len(test),
    }


def zero_shot_similarities(
    images: np.ndarray,
    prompts: np.ndarray,
    image_anchors: np.ndarray,
    text_anchors: np.ndarray,
    *,
    keep: int = 100,
    exponent: float = 8.0,
) -> np.ndarray:
    """Similarity (n, C), 0 … 1, of images to prompts through paired anchors (ASIF; Norelli et al. 2023).

    Images (n, d_image) and prompts (C, d_text) become cosines to their anchors, (k, d_image) and (k, d_text).
    The `keep` largest of each (the paper: 800 of 1.6 million) are raised to `exponent`, all others are 0, and
    the cosine of the two is taken.
    """
    return _sparse(images, image_anchors, keep, exponent) @ _sparse(prompts, text_anchors, keep, exponent).T


def _sparse(rows: np.ndarray, anchors: np.ndarray, keep: int, exponent: float) -> np.ndarray:
    mean = mean_row(anchors)
    cosines = np.maximum(unit_rows(rows, mean) @ unit_rows(anchors, mean).T, 0)
    if keep < len(anchors):
        least = np.partition(cosines, -keep, axis=1)[:, -keep, None]
        cosines[cosines < least] = 0
    return unit_rows(cosines**exponent)


PERMUTATIONS = 1000
_LAYERS = tuple(range(7))
_SIMILARITIES = ("cka", "debiased cka", "mutual knn")
_LAYER_NAMES = ("embedding", *(f"layer {layer}" for layer in _LAYERS[1:]))


class Layers(Study):
    """Wikipedia sentences of 16 articles by MiniLM's embedding and its six layers. Left: similarity of the
    absolute spaces. Right: accuracy of each column's head, trained on relative rows of its own layer, on the
    rows of each row's layer.
    """

    title = "Layer by layer"
    question = "Which layers of a model are alike, and which heads read them?"
    paper = "ours; heads as in Moschella et al. 2023, Table 5"

    cost = 40.0
    options = (
        Option(
            "metric",
            "Similarity",
            _SIMILARITIES,
            "cka",
            names=tuple(METRICS[name].title for name in _SIMILARITIES),
        ),
        Option("method", "Heads on", ("relative", "whitened"), "relative"),
        Option("n_anchors", "Anchors", (100, 300), 300),
        states("the anchors and the test rows", choices=(3, 5)),
    )

    shared = "metric method n_anchors"

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        spaces = encode(dataset_of("sentences"), _minilm(_LAYERS), store, report)
        values = stitched_values(spaces, settings)
        if settings["random_state"] == 0:  # the absolute spaces are the same in all random states
            values |= similarity_values(spaces, settings["metric"])
        return RunResult(values)

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Matrices]:
        if table.random_state.min() > 0:
            return {}
        metric = METRICS[options["metric"]].title
        run = table[table.random_state == 0].iloc[0]
        diagonal = tuple((layer, layer) for layer in _LAYERS)
        similar = f"{run['most similar']}, by chance {band(run['similar, low'], run['similar, high'])}"
        chance = f"chance {short(average(table, 'chance'))}; {run['test rows']:,} held-out rows"
        panels = []
        for title, values, note in (
            (metric, np.array(run.similarity), f"most alike {similar}; {int(run.rows):,} rows"),
            ("accuracy", np.mean(np.array(table.accuracy.tolist()), axis=0), chance),
        ):
            off = np.where(np.eye(len(values), dtype=bool), -np.inf, values)
            best = tuple(int(place) for place in np.unravel_index(off.argmax(), off.shape))
            look = {"note": note, "marked": diagonal, "framed": (best,)}
            panels.append(MatrixPanel(title, _LAYER_NAMES, _LAYER_NAMES, values, **look))
        notes = "; ".join(f"{panel.title}: {panel.note}" for panel in panels)
        texts = (f"{metric}, accuracy", f"Heat maps, 7 by 7 layers. {notes}.", "rows of", "heads of; columns")
        return {"layers": Matrices(tuple(panels), (0.0, 1.0), *texts, across=2)}

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        return findings_table(
            [finding(f"accuracy, heads {apart} layers away", _apart(table, apart)) for apart in _LAYERS]
        )

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        chance = band(average(table, "stitched, low"), average(table, "stitched, high"))
        return sentence(
            "Heads read the next layer with an accuracy of {} and the one six layers away with {}; the best"
            f" of all stitched pairs is {chance} by chance.",
            *(_apart(table, apart) for apart in (1, 6)),
        )


def similarity_values(spaces: Sequence[LatentSpace], metric: str) -> dict[str, Any]:
    similarity = AllPairs.of(metric).run(spaces)
    first, second, score = similarity.best
    return {
        "similarity": similarity.values.tolist(),
        "most similar": f"{first} and {second}, {short(score)}",
        "similar, low": similarity.best_chance.low,
        "similar, high": similarity.best_chance.high,
        "rows": len(spaces[0]),
    }


def stitched_values(spaces: Sequence[LatentSpace], settings: Settings) -> dict[str, Any]:
    """Accuracy of the heads of all spaces (columns) on all spaces (rows), and the best stitched one.

    That one is compared with permuted labels of the held-out rows, by one permutation for all cells; the
    heads never saw these labels.
    """
    method = settings["method"]
    state = settings["random_state"]
    result = stitch_matrix(
        spaces, StitchSpec((method,), random_states=(state,), n_anchors=settings["n_anchors"])
    )
    run = result.runs[0]
    stitched = ~np.eye(len(spaces), dtype=bool)
    answers = run.answers[method][stitched]
    rng = np.random.default_rng(0)
    permuted = (rng.permutation(run.truth) for _ in range(PERMUTATIONS))
    best_chance = ChanceLevel.from_draws(
        np.array([(answers == truth).mean(axis=1).max() for truth in permuted])
    )
    accuracy = result.by_state(method)[0]
    return {
        "accuracy": accuracy.tolist(),
        "best stitched": float(accuracy[stitched].max()),
        "stitched, low": best_chance.low,
        "stitched, high": best_chance.high,
        "chance": result.chance(),
        "test rows": len(run.truth),
    }


def _apart(table: pd.DataFrame, apart: int) -> Estimate:
    matrices = np.array(table.accuracy.tolist())
    diagonals = [np.diagonal(matrices, shift, 1, 2).mean(axis=1) for shift in (apart, -apart)]
    return mean(np.mean(diagonals, axis=0))
