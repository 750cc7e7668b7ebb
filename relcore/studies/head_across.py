"""A head trained on rows of one encoder classifies the rows of another, through pairs of items that belong
to neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, quote
from relcore.base.names import METHODS
from relcore.catalog.encoding import encode
from relcore.charts.lines import Lines
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import Encoder, TrainedEncoder
from relcore.encoders.parallel import load_parallel
from relcore.encoders.sentences import TfidfSvd
from relcore.represent.similarity import mean_row, rows_among
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split
from relcore.stitch.heads import fit_head
from relcore.stitch.methods import Side, carrier, representation
from relcore.stitch.stitching import StitchSpec
from relcore.studies.material import dataset_of
from relcore.studies.runs import average, circumstances, findings_over, lines_over, means_at
from relcore.studies.study import Opening, Option, RunResult, Settings, Study, findings_table, grid

_METHODS = ("relative", "whitened", "procrustes")
_MEASURES = {name: METHODS[name].title for name in _METHODS}
_NUMBERS = (20, 100, 438)


class HeadAcross(Study):
    """Wikipedia sentences of 16 articles by TF-IDF + SVD and by MiniLM. A head trained on one classifies the
    rows of the other; the two share only everyday sentences, which do not concern the task. The mean of both
    directions. A row that both have is held out of both.
    """

    kind = "across-languages"
    title = "Heads through everyday sentences"
    question = "How many pairs of sentences that do not concern the task does a head need to change encoders?"
    paper = "Moschella et al. 2023, Table 14"
    options = (
        Option("head", "Head", ("logistic", "mlp"), "logistic"),
        Option("n_states", "Random states", (3, 5), 3, help="Each draws the sentences and the test rows."),
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        return grid(options, {"head": options["head"]}, n_pairs=_NUMBERS)

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        state = settings["random_state"]
        sides = [sentence_side(encoder, store, report) for encoder in _encoders()]
        alive = np.flatnonzero(np.all([np.linalg.norm(rows, axis=1) > 0 for _, rows in sides], axis=0))
        chosen = np.random.default_rng(state).permutation(alive)[: settings["n_pairs"]]
        spec = StitchSpec(_METHODS, settings["head"], (state,))
        results = [
            head_across(home, away, ours[chosen], theirs[chosen], spec)
            for (home, ours), (away, theirs) in (sides, sides[::-1])
        ]
        values = {name: np.mean([result.accuracy[name] for result in results]) for name in _METHODS}
        values |= {
            name: np.mean([getattr(result, name) for result in results]) for name in ("ceiling", "chance")
        }
        values["same space"] = np.mean([result.home["relative"] for result in results])
        numbers = {name: float(value) for name, value in values.items()}
        return RunResult(numbers | {"pairs": len(chosen), "test rows": results[0].n})

    def seconds(self, settings: Settings) -> float:
        return 15.0

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        if not len(table):
            return {}
        baselines = (
            ("head of its own", average(table, "ceiling")),
            ("relative head at home", average(table, "same space")),
            ("chance", average(table, "chance")),
        )
        note = circumstances(table, f"{int(table['test rows'].iloc[0]):,} held-out rows, 16 classes")
        lines = tuple(lines_over(table, "pairs", _MEASURES))
        return {
            "accuracy": Lines(
                lines, "pairs of everyday sentences", "accuracy", log_x=True, baselines=baselines, note=note
            )
        }

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        return findings_table(findings_over(table, "pairs", _MEASURES) if len(table) else [])

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        most = table.pairs.max() if len(table) else 0
        estimates = dict(zip(_METHODS, means_at(table, "pairs", most, _METHODS), strict=False))
        if not estimates:
            return ""
        best = max(estimates, key=lambda name: estimates[name].value)
        return (
            f"Through {most} everyday sentences, heads classify {estimates[best].told()} of the other"
            f" encoder's rows by {_MEASURES[best]}; chance level {average(table, 'chance'):.3f}, a head of"
            f" its own {average(table, 'ceiling'):.3f}."
        )

    def opening(self, settings: Settings) -> Opening:
        return Opening(dataset=dataset_of("sentences"), encoders=_encoders())


def _encoders() -> tuple[Encoder, ...]:
    from relcore.encoders.transformers import MiniLM

    return TfidfSvd(), MiniLM()


def sentence_side(encoder: Encoder, store: Store, report: Report) -> tuple[LatentSpace, np.ndarray]:
    """The space of the labelled sentences, and the everyday sentences as the same encoder sees them."""
    (space,) = encode(dataset_of("sentences"), encoder, store, report)
    everyday = list(load_parallel(("en",))["en"])
    if not isinstance(encoder, TrainedEncoder):
        return space, encode(DatasetSpec("parallel", "en"), encoder, store, report)[0].vectors
    dataset = load_dataset(dataset_of("sentences"), store)
    (rows,) = encoder.restore(encoder.train(dataset, silent), dataset)(everyday).values()
    return space, rows


@dataclass(frozen=True)
class AcrossResult:
    """Accuracies, 0 … 1.

    Attributes
    ----------
    accuracy : method → accuracy
        Of the head on the held-out rows of the other space. A method that needs equal widths is left out
        where they differ.
    home : method → accuracy
        Of the same head on held-out rows of its own space, not stitched.
    ceiling : float
        Of a head trained on the rows and labels of the other space.
    chance : float
        Of always answering the most frequent class of the head's space.
    n : int
        Held-out rows of the other space.
    """

    accuracy: dict[str, float]
    home: dict[str, float]
    ceiling: float
    chance: float
    n: int


def head_across(
    head_space: LatentSpace,
    row_space: LatentSpace,
    head_anchors: np.ndarray,
    row_anchors: np.ndarray,
    spec: StitchSpec,
) -> AcrossResult:
    """Train a head on the first space and score it on the second, by each method, with the first random state
    of the spec.

    A share of the rows is held out by their ids, so a row that both spaces have is held out of both.
    `test_ids` of the spec replace the drawn rows. Anchors that are rows of the spaces are not scored.

    Parameters
    ----------
    head_anchors, row_anchors : arrays (k, d_head), (k, d_row)
        Row for row the same thing, such as a sentence and its translation.

    Raises
    ------
    SpaceError
        No shared class, one class only, no held-out row that the head was not trained on.
    """
    state, spaces, anchors = spec.random_states[0], (head_space, row_space), (head_anchors, row_anchors)
    classes = _classes(*spaces)
    parts = _parts(spaces, anchors, classes, spec)
    sides = [
        Side(space.vectors[part.train], given.astype(np.float32), mean_row(space.vectors[part.train]))
        for space, part, given in zip(spaces, parts, anchors, strict=True)
    ]
    (home, away), rows = parts, row_space.vectors[parts[1].test]

    def share(head, X: np.ndarray, truth: np.ndarray) -> float:
        return float(np.mean(head.probabilities(X).argmax(axis=1) == truth))

    accuracy, at_home, heads = {}, {}, {}
    for method in spec.methods:
        kind = METHODS[method].heads
        represent = [representation(kind, side, spec.settings) for side in sides]
        carry = (
            carrier(method, sides[1], sides[0], spec.settings, state) if kind == "absolute" else represent[1]
        )
        if carry is None:
            continue
        if kind not in heads:
            heads[kind] = fit_head(
                represent[0](sides[0].train), home.targets[home.train], len(classes), spec.head, state
            )
        accuracy[method] = share(heads[kind], carry(rows), away.targets[away.test])
        at_home[method] = share(
            heads[kind], represent[0](head_space.vectors[home.test]), home.targets[home.test]
        )
    own = fit_head(sides[1].train, away.targets[away.train], len(classes), spec.head, state)
    majority = np.bincount(home.targets[home.targets >= 0]).argmax()
    return AcrossResult(
        accuracy,
        at_home,
        share(own, rows, away.targets[away.test]),
        float(np.mean(away.targets[away.test] == majority)),
        len(away.test),
    )


@dataclass(frozen=True)
class _Part:
    """Row numbers of the labelled rows to train on and of those held out; the class of every row, −1 for
    one not shared.
    """

    train: np.ndarray
    test: np.ndarray
    targets: np.ndarray


def _parts(
    spaces: Sequence[LatentSpace], anchors: Sequence[np.ndarray], classes: Sequence[str], spec: StitchSpec
) -> tuple[_Part, _Part]:
    """The split of both spaces, drawn by the ids: a row that both have is held out of both, or of neither.

    The split must make exceptions for anchors and for the last training row of a class. A row of the second
    space is then not scored if the head was trained on it.
    """
    numbers = {label: number for number, label in enumerate(classes)}
    parts = []
    for space, given in zip(spaces, anchors, strict=True):
        targets = np.array([numbers.get(label, -1) for label in space.labels], dtype=np.int64)
        rows = np.flatnonzero(targets >= 0)
        split = Split.draw(
            space.ids[rows],
            anchors=np.flatnonzero(rows_among(space.vectors[rows], given)),
            test_fraction=spec.test_fraction,
            test_ids=spec.test_ids,
            labels=targets[rows],
            random_state=spec.random_states[0],
        )
        parts.append(_Part(rows[split.known], rows[split.test], targets))
    home, away = parts
    test = away.test[~np.isin(spaces[1].ids[away.test], spaces[0].ids[home.train])]
    if not len(test):
        raise SpaceError(
            f"{spaces[1].name!r}: expected held-out rows that the head was not trained on, got none"
        )
    return home, replace(away, test=test)


def _classes(head_space: LatentSpace, row_space: LatentSpace) -> tuple[str, ...]:
    counts = [
        dict(zip(*np.unique(space.labels.astype(str), return_counts=True), strict=True))
        for space in (head_space, row_space)
    ]
    shared = sorted(name for name in counts[0] if name and min(counts[0][name], counts[1].get(name, 0)) > 1)
    if len(shared) < 2:
        raise SpaceError(
            "expected two classes or more that both spaces have, with two rows each, got"
            f" {quote(shared) or 'none'}; choose label columns that mean the same"
        )
    return tuple(shared)
