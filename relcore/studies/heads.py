"""Studies of heads that read rows of another encoder: across domains, and by TF-IDF and MiniLM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, quote
from relcore.base.names import METHODS
from relcore.base.numbers import short
from relcore.base.rows import mean_row
from relcore.catalog.encoding import encode
from relcore.encoders.bundled import LOOKS, load_parallel
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import Encoder, TrainedEncoder
from relcore.encoders.sentences import TfidfSvd
from relcore.encoders.vision import NAMES, SmallVision, held_out_rows
from relcore.figures.charts import Lines, Matrices, MatrixPanel
from relcore.represent.heads import fit_heads
from relcore.represent.methods import FittedSpace, MethodSettings, fit_translation, representation
from relcore.runs.progress import Progress, silent
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split
from relcore.studies.study import (
    Option,
    RunResult,
    Settings,
    Study,
    average,
    chart,
    count_of,
    dataset_of,
    finding,
    findings_table,
    grid,
    lines_over,
    mean_at,
    mean_score,
    states,
)

_METHODS = (
    *("irp-pruned", "irp-ridge", "irp-whitened", "relative", "whitened"),
    *("procrustes", "least-squares", "absolute"),
)
_USUAL = MethodSettings()
_GROUPS = ("not stitched", "same domain", "other domain")


class AcrossDomains(Study):
    """A head that is trained on one look of the digits and one network classifies rows of another look and
    network. The looks share labels and anchors: digit 17 as scanned and digit 17 inverted are the same
    anchor. The test rows are a fifth of the digits, on which no network was trained. The bars are means over
    each row (encoder) and each column (head), without the diagonal.
    """

    options = (
        Option(
            "looks",
            "Looks of the digits",
            tuple(LOOKS),
            ("plain", "inverted", "thick"),
            many=True,
            help=" ".join(f"{look}: {explanation}." for look, explanation in LOOKS.items()),
        ),
        Option(
            "networks",
            "Networks, trained on each",
            tuple(NAMES),
            ("mlp", "cnn"),
            many=True,
            names=tuple(NAMES.values()),
        ),
        Option(
            "methods",
            "Methods",
            _METHODS,
            ("irp-pruned", "procrustes", "absolute"),
            many=True,
            names=tuple(METHODS[name].title for name in _METHODS),
        ),
        Option("n_anchors", "Anchors", (64, 256, 1000), 256),
        states("the anchors and the prunings"),
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        runs = grid(options, "looks networks methods n_anchors")
        return [{**run, "omega": _USUAL.omega, "delta": _USUAL.delta} for run in runs]

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        datasets = [
            DatasetSpec("digits", options=(("look", look),) if look != "plain" else ())
            for look in settings["looks"]
        ]
        encoders = [SmallVision(name) for name in settings["networks"]]
        parts = trained_parts(datasets, encoders, store, report)
        inverse = MethodSettings(omega=settings["omega"], delta=settings["delta"])
        drawn = settings["n_anchors"], settings["random_state"]
        matrices = cross_domain_matrices(parts, settings["methods"], *drawn, inverse)
        values = {
            "parts": [part.name for part in parts],
            "chance": float(np.mean([part.chance for part in parts])),
            "test rows": len(parts[0].test),
        }
        domains = np.array([part.domain for part in parts])
        same, own = np.equal.outer(domains, domains), np.eye(len(parts), dtype=bool)
        for method, accuracy in matrices.items():
            values[method] = accuracy.tolist()
            for group, cells in zip(_GROUPS, (own, same & ~own, ~same), strict=True):
                average = _known_mean(accuracy[cells])
                values[f"{method}, {group}"] = None if np.isnan(average) else float(average)
        return RunResult(values)

    def seconds(self, settings: Settings) -> float:
        n = len(settings["looks"]) * len(settings["networks"])
        return 5.0 + 0.03 * n**2 * len(settings["methods"])

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Matrices]:
        return {METHODS[method].title: _matrix(table, method) for method in options["methods"]}

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        rows = [
            finding(f"{METHODS[method].title}, {group}", mean_score(table[f"{method}, {group}"]))
            for method in options["methods"]
            for group in _GROUPS
        ]
        return findings_table([row for row in rows if row["n"]])

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        if len(table) < 2 or len(options["looks"]) < 2:
            return ""
        methods = options["methods"]
        accuracies = [
            f"{mean_score(table[f'{name}, other domain']):2} by {METHODS[name].title}" for name in methods
        ]
        own, chance = average(table, f"{methods[0]}, not stitched"), average(table, "chance")
        return (
            f"Heads read the rows of another domain with an accuracy of {', '.join(accuracies)}; not stitched"
            f" {short(own, 2)}, chance {short(chance, 2)}."
        )


def _matrix(table: pd.DataFrame, method: str) -> Matrices:
    accuracy = np.array(table[method].tolist(), dtype=float).mean(axis=0)
    names = tuple(table.parts.iloc[0])
    n = len(names)
    stitched = np.where(np.eye(n, dtype=bool), np.nan, accuracy)
    rows, columns = (
        tuple(f"{name} (mean {short(one, 2)})" for name, one in zip(names, means, strict=True))
        for means in (_known_mean(stitched, 1), _known_mean(stitched, 0))
    )
    panel = MatrixPanel("", rows, columns, accuracy, marked=tuple((i, i) for i in range(n)))
    alt = (
        f"Heat map of accuracy by {METHODS[method].title}, {n} by {n} encoders of domains, mean of"
        f" {len(table)} random states, {table['test rows'].iloc[0]:,} test rows each, chance"
        f" {short(average(table, 'chance'), 2)}."
    )
    return Matrices((panel,), (0.0, 1.0), "accuracy", alt, "encoded by", "head trained on")


def _known_mean(values: np.ndarray, axis: int | None = None) -> Any:
    counts = (~np.isnan(values)).sum(axis=axis)
    return np.where(counts, np.nansum(values, axis=axis) / np.maximum(counts, 1), np.nan)[()]


@dataclass(frozen=True, eq=False)
class Part:
    """The labelled space of one domain by one encoder; `test` are the row numbers of the heads' test rows.

    Anchors are drawn from `anchors` (m, d), whose row i is the same item in every part.
    """

    domain: str
    encoder: str
    space: LatentSpace
    test: np.ndarray
    anchors: np.ndarray

    @property
    def name(self) -> str:
        return f"{self.encoder} · {self.domain}"

    @property
    def chance(self) -> float:
        classes, counts = np.unique(self.space.labels, return_counts=True)
        return float(np.mean(self.space.labels[self.test] == classes[counts.argmax()]))


def cross_domain_matrices(
    parts: Sequence[Part],
    methods: Sequence[str],
    n_anchors: int = 256,
    random_state: int = 0,
    settings: MethodSettings = _USUAL,
    head: str = "logistic",
) -> Mapping[str, np.ndarray]:
    """Method → accuracies (s, s) on the test rows of every part (rows) by the head of every part (columns).

    Anchors are drawn at random; `head` is "logistic" or "mlp". NaN if the method needs equal widths; the
    diagonal is not stitched.

    Raises
    ------
    SpaceError
        Parts with different classes, or anchors that a method cannot use.
    """
    labels = [part.space.labels.astype(str) for part in parts]
    classes = np.unique(labels[0])
    for part, known in zip(parts, map(np.unique, labels), strict=True):
        if not np.array_equal(known, classes):
            raise SpaceError(
                f"{parts[0].name!r} and {part.name!r} have different classes ({quote(classes[:3])} … and"
                f" {quote(known[:3])} …): a head can only predict labels that it was trained on"
            )
    targets = [np.searchsorted(classes, names) for names in labels]
    train = [np.setdiff1d(np.arange(len(part.space)), part.test) for part in parts]
    n_known = len(parts[0].anchors)
    drawn = np.random.default_rng(random_state).choice(n_known, min(n_anchors, n_known), replace=False)
    sides = [
        FittedSpace(part.space.vectors[rows], part.anchors[drawn], mean_row(part.space.vectors[rows]))
        for part, rows in zip(parts, train, strict=True)
    ]
    accuracy, heads = {}, {}
    for method in methods:
        kind = METHODS[method].heads
        represent = [representation(kind, side, settings) for side in sides]
        if kind not in heads:
            heads[kind] = fit_heads(
                (function(side.train) for function, side in zip(represent, sides, strict=True)),
                [target[rows] for target, rows in zip(targets, train, strict=True)],
                len(classes),
                head,
                random_state,
            )
        accuracy[method] = np.full((len(parts), len(parts)), np.nan)
        for i, part in enumerate(parts):
            rows, truth = part.space.vectors[part.test], targets[i][part.test]
            for j, fitted in enumerate(heads[kind]):
                read = represent[i]
                if kind == "absolute" and i != j:
                    read = fit_translation(method, sides[i], sides[j], settings, random_state)
                if read is not None:
                    answers = fitted.probabilities(read(rows)).argmax(axis=1)
                    accuracy[method][i, j] = np.mean(answers == truth)
    return accuracy


def trained_parts(
    datasets: Sequence[DatasetSpec], encoders: Sequence[Encoder], store: Store, report: Progress = silent
) -> list[Part]:
    """Encode every dataset with every encoder; the datasets have the same ids in the same order.

    For the second dataset, encoders have the next random state, so that all networks have different initial
    weights. Test rows are the fifth on which no small network is trained; anchors come from the other rows.
    """
    parts: list[Part] = []
    for number, spec in enumerate(datasets):
        for encoder in encoders:
            own = replace(encoder, random_state=encoder.random_state + number)
            report(len(parts), len(datasets) * len(encoders), own.title)
            (space,) = encode(spec, own, store)
            test = held_out_rows(len(space))
            rows = np.setdiff1d(np.arange(len(space)), test)
            title, _, domain = space.name.partition(" · ")
            name = title.partition(", state")[0]
            parts.append(Part(domain, name, space, test, space.vectors[rows]))
    return parts


_HEADS = ("relative", "whitened", "procrustes")
_MEASURES = {name: METHODS[name].title for name in _HEADS}
_NUMBERS = (20, 100, 438)


class HeadAcross(Study):
    """Sentences of 16 Wikipedia articles are encoded by TF-IDF + SVD and by MiniLM. A head that is trained on
    one encoder classifies rows of the other; the anchors are everyday sentences. Scores are means of both
    directions. A test row is held out from both encoders.
    """

    cost = 15.0
    options = (
        Option("head", "Head", ("logistic", "mlp"), "logistic"),
        states("the sentences and the test rows", choices=(3, 5)),
    )
    by, measures = "pairs", _MEASURES
    shared, varied = "head", {"n_pairs": _NUMBERS}

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        state = settings["random_state"]
        sides = [sentence_side(encoder, store, report) for encoder in (TfidfSvd(), _minilm())]
        alive = np.flatnonzero(np.all([np.linalg.norm(rows, axis=1) > 0 for _, rows in sides], axis=0))
        chosen = np.random.default_rng(state).permutation(alive)[: settings["n_pairs"]]
        test = Split.draw(sides[0][0].ids, labels=sides[0][0].labels, random_state=state).test
        parts = [
            Part("sentences", space.name, space, test, everyday[chosen].astype(np.float32))
            for space, everyday in sides
        ]
        accuracy = cross_domain_matrices(parts, _HEADS, len(chosen), state, head=settings["head"])
        other = ~np.eye(2, dtype=bool)
        values = {name: accuracy[name][other].mean() for name in _HEADS}
        values["ceiling"] = np.diag(accuracy["procrustes"]).mean()
        values["same space"] = np.diag(accuracy["relative"]).mean()
        values["chance"] = np.mean([part.chance for part in parts])
        numbers = {name: float(value) for name, value in values.items()}
        return RunResult(numbers | {"pairs": len(chosen), "test rows": len(test)})

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        levels = {"head of its own": "ceiling", "relative head at home": "same space", "chance": "chance"}
        titles, rows = (
            ("pairs of everyday sentences", "accuracy"),
            count_of(table, "held-out rows, 16 classes"),
        )
        lines = lines_over(table, "pairs", _MEASURES)
        return {"accuracy": chart(table, lines, titles, rows, levels, log_x=True)}

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        most = table.pairs.max()
        accuracy = {name: mean_at(table, "pairs", most, name) for name in _HEADS}
        best = max(accuracy, key=lambda name: accuracy[name].value)
        if not accuracy[best].has_interval:
            return ""
        return (
            f"Through {most} everyday sentences, heads classify {accuracy[best]} of the other encoder's rows"
            f" by {_MEASURES[best]}; chance level {short(average(table, 'chance'))}, a head of its own"
            f" {short(average(table, 'ceiling'))}."
        )


def _minilm(*layers: tuple[int, ...]) -> Encoder:
    from relcore.encoders.transformers import MiniLM

    return MiniLM(*layers)


def sentence_side(encoder: Encoder, store: Store, report: Progress) -> tuple[LatentSpace, np.ndarray]:
    (space,) = encode(dataset_of("sentences"), encoder, store, report)
    everyday = list(load_parallel(("en",))["en"])
    if not isinstance(encoder, TrainedEncoder):
        return space, encode(DatasetSpec("parallel", "en"), encoder, store, report)[0].vectors
    dataset = load_dataset(dataset_of("sentences"), store)
    (rows,) = encoder.restore(encoder.train(dataset, silent), dataset)(everyday).values()
    return space, rows
