"""Heads across domains, and across languages: train on one space, score on rows of another.

Fig. 7 of Maiorca et al. 2024: the domains share only the labels and the anchors, which every encoder has
encoded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, quote
from relcore.base.names import METHODS
from relcore.base.numbers import short
from relcore.catalog.encoding import encode
from relcore.charts.lines import Lines
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.digits import LOOKS
from relcore.encoders.encoder import Encoder, TrainedEncoder
from relcore.encoders.parallel import load_parallel
from relcore.encoders.sentences import TfidfSvd
from relcore.encoders.small_vision import NAMES, SmallVision, held_out_rows
from relcore.figures.matrices import Matrices, MatrixPanel
from relcore.represent.heads import fit_head
from relcore.represent.methods import MethodSettings, Side, carrier, representation
from relcore.represent.similarity import mean_row, rows_among
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split
from relcore.stitch.stitching import StitchSpec
from relcore.studies.material import dataset_of
from relcore.studies.runs import STUDENT, average, circumstances, findings_over, lines_over, means_at
from relcore.studies.statistics import mean
from relcore.studies.study import Opening, Option, RunResult, Settings, Study, finding, findings_table, grid

_METHODS = (
    *("irp-pruned", "irp-ridge", "irp-whitened", "relative", "whitened"),
    *("procrustes", "least-squares", "absolute"),
)
_USUAL = MethodSettings()
_GROUPS = ("not stitched", "same domain", "other domain")


class AcrossDomains(Study):
    """A head trained on one look of the digits and one network classifies rows of another look and network.
    The looks share the labels, and the anchors: digit 17 as scanned and digit 17 inverted are the same
    anchor. The test rows are a fifth of the digits that no network was trained on; every network has weights
    of its own. The bars are means without the diagonal: of encoding from each row, and of decoding into each
    column.
    """

    kind = "across-domains"
    title = "Across domains"
    question = "Can a head read the rows of an encoder that was trained on another domain?"
    paper = "Maiorca et al. 2024, Fig. 7"
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
        Option("n_states", "Random states", (3, 5, 10), 3, help="Each draws the anchors and the prunings."),
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        lists = {name: list(options[name]) for name in ("looks", "networks", "methods")}
        inverse = {"omega": _USUAL.omega, "delta": _USUAL.delta}
        return grid(options, lists | {"n_anchors": options["n_anchors"]} | inverse)

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        datasets = [
            DatasetSpec("digits", options=(("look", look),) if look != "plain" else ())
            for look in settings["looks"]
        ]
        encoders = [SmallVision(name) for name in settings["networks"]]
        parts = trained_parts(datasets, encoders, store, report)
        inverse = MethodSettings(omega=settings["omega"], delta=settings["delta"])
        matrices = cross_domain_matrices(
            parts, settings["methods"], settings["n_anchors"], settings["random_state"], inverse
        )
        values = {
            "parts": [part.name for part in parts],
            "chance": float(np.mean([part.chance for part in parts])),
            "test rows": len(parts[0].test),
        }
        domains = [part.domain for part in parts]
        for method, accuracy in matrices.items():
            values[method] = accuracy.tolist()
            values |= {f"{method}, {group}": value for group, value in by_group(accuracy, domains).items()}
        return RunResult(values)

    def seconds(self, settings: Settings) -> float:
        n = len(settings["looks"]) * len(settings["networks"])
        return 5.0 + 0.03 * n**2 * len(settings["methods"])

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Matrices]:
        if not len(table):
            return {}
        return {METHODS[method].title: _matrix(table, method) for method in options["methods"]}

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        return findings_table(
            [
                finding(f"{METHODS[method].title}, {group}", mean(values), STUDENT)
                for method in options["methods"]
                for group in _GROUPS
                if len(table) and (values := table[f"{method}, {group}"].astype(float)).notna().any()
            ]
        )

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        if len(table) < 2 or len(options["looks"]) < 2:
            return ""
        parts = [
            f"{mean(table[f'{method}, other domain'].astype(float)).told(2)} by {METHODS[method].title}"
            for method in options["methods"]
        ]
        own = short(average(table, f"{options['methods'][0]}, not stitched"), 2)
        return (
            f"Heads read the rows of another domain with an accuracy of {', '.join(parts)}; not stitched"
            f" {own}, chance {short(average(table, 'chance'), 2)}."
        )


def _matrix(table: pd.DataFrame, method: str) -> Matrices:
    accuracy = np.array(table[method].tolist(), dtype=float).mean(axis=0)
    names = tuple(table.parts.iloc[0])
    n = len(names)
    stitched = np.where(np.eye(n, dtype=bool), np.nan, accuracy)
    rows, columns = (
        tuple(
            f"{name} (mean {short(one, 2)})"
            for name, one in zip(names, _known_mean(stitched, axis), strict=True)
        )
        for axis in (1, 0)
    )
    panel = MatrixPanel("", rows, columns, accuracy, marked=tuple((i, i) for i in range(n)))
    alt = (
        f"Heat map of accuracy by {METHODS[method].title}, {n} by {n} encoders of domains, mean of"
        f" {len(table)} random states, {table['test rows'].iloc[0]:,} test rows each, chance"
        f" {short(average(table, 'chance'), 2)}."
    )
    return Matrices((panel,), (0.0, 1.0), "accuracy", alt, "encoded by", "head trained on")


def by_group(accuracy: np.ndarray, domains: Sequence[str]) -> dict[str, float | None]:
    """Mean accuracy of heads on their own part, on other encoders of its domain, and on other domains; None
    where there is nothing to average.
    """
    own = np.eye(len(domains), dtype=bool)
    same = np.equal.outer(np.array(domains), np.array(domains))
    means = (_known_mean(accuracy[which]) for which in (own, same & ~own, ~same))
    return {
        group: None if np.isnan(value) else float(value) for group, value in zip(_GROUPS, means, strict=True)
    }


def _known_mean(values: np.ndarray, axis: int | None = None) -> Any:
    """Means that ignore NaN; NaN if there is nothing else."""
    counts = (~np.isnan(values)).sum(axis=axis)
    return np.where(counts, np.nansum(values, axis=axis) / np.maximum(counts, 1), np.nan)[()]


@dataclass(frozen=True, eq=False)
class Part:
    """One domain through one encoder.

    Attributes
    ----------
    domain, encoder : str
        Distinct together.
    space : LatentSpace
        With a label for every row.
    test : row numbers
        Test rows of the heads, which are trained on all others.
    anchors : array (m, d)
        Rows to draw anchors from; row i is the same thing in every part.
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
        """Share of the test rows in the class that is most frequent in the part."""
        classes, counts = np.unique(self.space.labels, return_counts=True)
        return float(np.mean(self.space.labels[self.test] == classes[counts.argmax()]))


def cross_domain_matrices(
    parts: Sequence[Part],
    methods: Sequence[str],
    n_anchors: int = 256,
    random_state: int = 0,
    settings: MethodSettings = _USUAL,
) -> Mapping[str, np.ndarray]:
    """For each method the accuracy (s, s) on the test rows of every part (rows) by the head of every part
    (columns).

    NaN where the method needs equal widths. The diagonal is not stitched.

    Raises
    ------
    SpaceError
        Parts of other classes; what a method cannot do with these anchors.
    """
    classes = np.unique(parts[0].space.labels.astype(str))
    for part in parts:
        known = np.unique(part.space.labels.astype(str))
        if not np.array_equal(known, classes):
            raise SpaceError(
                f"{parts[0].name!r} and {part.name!r} have different classes ({quote(classes[:3])} … and"
                f" {quote(known[:3])} …): a head can only predict labels that it was trained on"
            )
    targets = [np.searchsorted(classes, part.space.labels.astype(str)) for part in parts]
    train = [np.setdiff1d(np.arange(len(part.space)), part.test) for part in parts]
    n_known = len(parts[0].anchors)
    drawn = np.random.default_rng(random_state).choice(n_known, min(n_anchors, n_known), replace=False)
    sides = [
        Side(part.space.vectors[rows], part.anchors[drawn], mean_row(part.space.vectors[rows]))
        for part, rows in zip(parts, train, strict=True)
    ]
    accuracy, heads = {}, {}
    for method in methods:
        kind = METHODS[method].heads
        represent = [representation(kind, side, settings) for side in sides]
        if kind not in heads:
            heads[kind] = [
                fit_head(function(side.train), target[rows], len(classes))
                for function, side, target, rows in zip(represent, sides, targets, train, strict=True)
            ]
        accuracy[method] = np.full((len(parts), len(parts)), np.nan)
        for i, part in enumerate(parts):
            rows, truth = part.space.vectors[part.test], targets[i][part.test]
            for j, head in enumerate(heads[kind]):
                read = represent[i]
                if kind == "absolute" and i != j:
                    read = carrier(method, sides[i], sides[j], settings, random_state)
                if read is not None:
                    answers = head.probabilities(read(rows)).argmax(axis=1)
                    accuracy[method][i, j] = np.mean(answers == truth)
    return accuracy


def trained_parts(
    datasets: Sequence[DatasetSpec], encoders: Sequence[Encoder], store: Store, report: Report = silent
) -> list[Part]:
    """Encode every dataset with every encoder, from the store where that is done. The datasets have the same
    ids, row for row; on the second one encoders have the next random state, so that no two begin with the
    same weights.

    Test rows are the fifth of each dataset that no small network is trained on; anchors are drawn from the
    other rows.
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


# A head trained on rows of one encoder classifies the rows of another, through pairs of items that belong
# to neither.

_HEADS = ("relative", "whitened", "procrustes")
_MEASURES = {name: METHODS[name].title for name in _HEADS}
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
        spec = StitchSpec(_HEADS, settings["head"], (state,))
        results = [
            head_across(home, away, ours[chosen], theirs[chosen], spec)
            for (home, ours), (away, theirs) in (sides, sides[::-1])
        ]
        values = {name: np.mean([result.accuracy[name] for result in results]) for name in _HEADS}
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
        estimates = dict(zip(_HEADS, means_at(table, "pairs", most, _HEADS), strict=False))
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
