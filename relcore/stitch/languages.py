"""A head trained on one space classifies the rows of another, through parallel anchors that belong to
neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_distinct, need_whole, quote
from relcore.base.names import METHODS, STITCHED
from relcore.base.numbers import band, short
from relcore.catalog.catalog import SpaceSpec
from relcore.charts.lines import Line, Lines
from relcore.encoders.encoder import Encoder
from relcore.figures.export import Exportable, lines_exportable
from relcore.figures.matrices import Matrices, MatrixPanel, matrices_exportable
from relcore.represent.similarity import mean_row, rows_among, unit_rows
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.scores.neighbours import Neighbours, find_neighbours
from relcore.scores.score import Null, Score
from relcore.spaces.space import LatentSpace, Match, match
from relcore.spaces.split import Split
from relcore.stitch.captioned import CaptionSpec, EncodeCaptions, ZeroShot, classes_of, zero_shot
from relcore.stitch.heads import fit_head
from relcore.stitch.methods import MethodSettings, Side, carrier, representation
from relcore.stitch.stitching import StitchSpec
from relcore.stitch.try_it import encode_items
from relcore.tasks.recipe import Recipe, load_all
from relcore.tasks.task import Task


@dataclass(frozen=True)
class HeadAcross(Task["AcrossResult"]):
    """`head_across` of two spaces; the anchors are pairs of items, each encoded by the encoder of its space.

    Attributes
    ----------
    specs : (SpaceSpec, SpaceSpec)
        The space of the head, and the space of the rows.
    pairs : tuple of (item, item)
        Such as a sentence and its translation.
    stitching : StitchSpec
    """

    kind: ClassVar[str] = "across"
    result: ClassVar[str] = "relcore.stitch.languages:AcrossResult"

    specs: tuple[SpaceSpec, SpaceSpec]
    pairs: tuple[tuple[str, str], ...]
    stitching: StitchSpec = StitchSpec()

    @property
    def title(self) -> str:
        return "A head across languages"

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        return 10 + sum(map(len, spaces)) / 500  # measured: 20 s for two spaces of 6,000 Wikipedia sentences

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Report = silent
    ) -> AcrossResult:
        anchors = []
        for number, (one, sentences) in enumerate(
            zip(self.specs, zip(*self.pairs, strict=True), strict=True)
        ):
            report(number, 3, f"{len(sentences):,} sentences through the encoder of {one.name}")
            anchors.append(encode_items(one, sentences, store))
        report(2, 3, "heads")
        return head_across(*spaces, *anchors, self.stitching)


@dataclass(frozen=True)
class AcrossResult:
    """Accuracies, 0 … 1.

    Attributes
    ----------
    names : (of the head's space, of the rows' space)
    accuracy : method → accuracy
        Of the head on the held-out rows of the other space. A method that needs equal widths is left out
        where they differ.
    home : method → accuracy
        Of the same head on held-out rows of its own space, not stitched.
    ceiling : float
        Of a head trained on the rows and labels of the other space.
    chance : float
        Of always answering the most frequent class of the head's space.
    n, n_train, n_anchors : int
        Held-out rows of the other space, training rows of the head, pairs of anchors.
    """

    names: tuple[str, str]
    accuracy: dict[str, float]
    home: dict[str, float]
    ceiling: float
    chance: float
    n: int
    n_train: int
    n_anchors: int

    def table(self) -> pd.DataFrame:
        """One row per method: method, stitched, head at home, own head, chance, n (held-out rows),
        anchors.
        """
        rows = [(METHODS[name].title, score, self.home[name]) for name, score in self.accuracy.items()]
        table = pd.DataFrame(rows, columns=["method", "stitched", "head at home"])
        return table.assign(
            **{"own head": self.ceiling, "chance": self.chance, "n": self.n, "anchors": self.n_anchors}
        )


def head_across(
    head_space: LatentSpace,
    row_space: LatentSpace,
    head_anchors: np.ndarray,
    row_anchors: np.ndarray,
    spec: StitchSpec | None = None,
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
        No labels, no shared class, one class only, anchors that are not paired or of another width.
    """
    spec = spec or StitchSpec()
    state = spec.random_states[0]
    for space, anchors in ((head_space, head_anchors), (row_space, row_anchors)):
        if anchors.ndim != 2 or anchors.shape[1] != space.dimension or len(anchors) != len(head_anchors):
            raise SpaceError(
                f"anchors: expected as many for both spaces, of {space.name!r} {space.dimension} wide, got"
                f" {anchors.shape}"
            )
    classes = _classes(head_space, row_space)
    parts = _parts((head_space, row_space), (head_anchors, row_anchors), classes, spec)
    sides = [
        Side(
            space.vectors[part.train],
            np.asarray(anchors, dtype=np.float32),
            mean_row(space.vectors[part.train]),
        )
        for space, part, anchors in zip(
            (head_space, row_space), parts, (head_anchors, row_anchors), strict=True
        )
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
        (head_space.name, row_space.name),
        accuracy,
        at_home,
        share(own, rows, away.targets[away.test]),
        float(np.mean(away.targets[away.test] == majority)),
        len(away.test),
        len(home.train),
        len(head_anchors),
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
    counts = []
    for space in (head_space, row_space):
        if space.labels is None:
            raise SpaceError(
                f"{space.name!r}: expected labels, got none; choose a dataset with a label column"
            )
        counts.append(dict(zip(*np.unique(space.labels.astype(str), return_counts=True), strict=True)))
    shared = sorted(name for name in counts[0] if name and min(counts[0][name], counts[1].get(name, 0)) > 1)
    if len(shared) < 2:
        raise SpaceError(
            "expected two classes or more that both spaces have, with two rows each, got"
            f" {quote(shared) or 'none'}: {head_space.name!r} has {quote(sorted(counts[0])[:4])},"
            f" {row_space.name!r} {quote(sorted(counts[1])[:4])}; choose label columns that mean the same"
        )
    return tuple(shared)


# Cross-lingual retrieval: find the translation of each row of one space in another, through parallel anchors
# alone.

METRICS = {"first": "found first", "mrr": "MRR", "jaccard": "Jaccard"}
_PERMUTATIONS = 50


@dataclass(frozen=True)
class RetrievalSpec:
    """Methods and sizes of a retrieval.

    Attributes
    ----------
    methods : tuple of str
        Some of `names.METHODS`.
    n_anchors : int
        Number of known pairs, drawn at random. All other rows are queries.
    k : int
        Number of neighbours.
    settings : MethodSettings
    random_state : int
        Draws the anchors and the prunings.
    """

    methods: tuple[str, ...] = STITCHED
    n_anchors: int = 300
    k: int = 10
    settings: MethodSettings = MethodSettings()
    random_state: int = 0

    def __post_init__(self) -> None:
        need_distinct("methods", self.methods, METHODS)
        need_whole(self, n_anchors=2, k=1, random_state=0)


@dataclass(frozen=True, eq=False)
class RetrievalResult:
    """Scores and neighbours of the queries.

    Attributes
    ----------
    names : (first, second)
    ids : array (m,)
        Ids of the queries in the first space.
    scores : method → metric → Score
        A method that needs equal widths is left out where they differ.
    found : method → array (m, k)
        For each query the numbers of the nearest candidates of the second space, nearest first.
    """

    spec: RetrievalSpec
    names: tuple[str, str]
    ids: np.ndarray
    scores: dict[str, dict[str, Score]]
    found: dict[str, np.ndarray]

    def table(self) -> pd.DataFrame:
        """One row per method and metric: method, metric, score, chance, null_low, null_high, k, pairs,
        anchors.
        """
        rows = [
            (
                METHODS[method].title,
                METRICS[metric],
                float(score),
                score.null.mean,
                score.null.low,
                score.null.high,
            )
            for method, by_metric in self.scores.items()
            for metric, score in by_metric.items()
        ]
        table = pd.DataFrame(rows, columns=["method", "metric", "score", "chance", "null_low", "null_high"])
        return table.assign(k=self.spec.k, pairs=len(self.ids), anchors=self.spec.n_anchors)

    def wide(self) -> pd.DataFrame:
        """The table to print: one row per method and one for chance, one column per metric."""
        rows = [
            {"method": METHODS[method].title, **{METRICS[m]: by_metric[m] for m in METRICS}}
            for method, by_metric in self.scores.items()
        ]
        chance = {
            METRICS[m]: np.mean([scores[m].null.mean for scores in self.scores.values()]) for m in METRICS
        }
        return pd.DataFrame([*rows, {"method": "chance", **chance}])


def pair_up(first: LatentSpace, second: LatentSpace, pairs: Sequence[tuple[str, str]] = ()) -> Match:
    """Match two spaces by equal ids, or by a list of (id in the first, id in the second).

    Rows that are zero in either are left out and counted. Of several partners of an id the first is kept.

    Raises
    ------
    SpaceError
        No row is left, or the ids of the list are in neither space.
    """
    if not pairs:
        return match(first, second)
    known = [(one, other) for one, other in pairs if one in first.index and other in second.index]
    taken: tuple[set[str], set[str]] = (set(), set())
    chosen = []
    for one, other in known:
        if one not in taken[0] and other not in taken[1]:
            taken[0].add(one)
            taken[1].add(other)
            chosen.append((one, other))
    if not chosen:
        raise SpaceError(
            f"list of pairs: expected ids of {first.name!r} in the first column and of {second.name!r} in the"
            f" second, got none of {len(pairs):,}, first {quote(pairs[0])}; swap the columns, or choose the"
            " spaces that the list was written for"
        )
    one, other = ([pair[side] for pair in chosen] for side in (0, 1))
    source = first.take(first.rows(one))
    renamed = LatentSpace(second.vectors[second.rows(other)], one, name=second.name)
    return match(source, renamed)


def retrieve(pair: Match, spec: RetrievalSpec) -> RetrievalResult:
    """Find the partner of every row that is no anchor, among the same rows of the other space, by each
    method.

    Centring and whitening use all rows of their own space; only the anchors are known as pairs. Translated
    rows are compared by cosine around the mean of the second space, absolute rows without centring.
    Neighbours and Jaccard follow the "paper" convention of `scores.neighbours`.

    Raises
    ------
    SpaceError
        Too few pairs for the number of anchors and neighbours.
    """
    n = len(pair)
    if n < spec.n_anchors + spec.k + 1:
        raise SpaceError(
            f"expected more than n_anchors + k = {spec.n_anchors + spec.k} pairs, so that some are queries,"
            f" got {n}; lower the number of anchors, or take a longer list"
        )
    anchors = np.sort(np.random.default_rng(spec.random_state).permutation(n)[: spec.n_anchors])
    rest = Split.held_out(pair.ids, anchors, spec.random_state).test
    sides = [_side(space.vectors, anchors) for space in (pair.source, pair.target)]
    scores, found = {}, {}
    for method in spec.methods:
        rows = _comparable(method, sides, rest, spec)
        if rows is None:
            continue
        neighbours = find_neighbours(*rows, spec.k, device="cpu")
        scores[method] = _scores(neighbours, spec.random_state)
        found[method] = neighbours.other
    return RetrievalResult(spec, (pair.source.name, pair.target.name), pair.ids[rest], scores, found)


def _side(vectors: np.ndarray, anchors: np.ndarray) -> Side:
    return Side(vectors, vectors[anchors], mean_row(vectors))


def _comparable(
    method: str, sides: list[Side], rest: np.ndarray, spec: RetrievalSpec
) -> list[np.ndarray] | None:
    """Queries and candidates in shared coordinates; None where the method has none."""
    rows = [side.train[rest] for side in sides]
    heads = METHODS[method].heads
    if heads != "absolute":
        return [representation(heads, side, spec.settings)(X) for side, X in zip(sides, rows, strict=True)]
    carry = carrier(method, *sides, spec.settings, spec.random_state)
    if carry is None:
        return None
    if method == "absolute":
        return rows
    return [unit_rows(carry(rows[0]), sides[1].mean), unit_rows(rows[1], sides[1].mean)]


def _scores(neighbours: Neighbours, random_state: int) -> dict[str, Score]:
    n = neighbours.n
    first = (neighbours.other[:, 0] == neighbours.queries).mean()
    # Exact: of a random permutation the number of fixed points has mean 1 and variance 1.
    null = Null.from_moments(1 / n, 1 / n**2)
    return {
        "first": Score(float(first), metric="first", n=n, k=1, null=null),
        "mrr": neighbours.mrr(_PERMUTATIONS, random_state),
        "jaccard": neighbours.jaccard(_PERMUTATIONS, random_state),
    }


# Figures of parallel anchors: cross-lingual retrieval, a head across languages, pictures and words.

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class CrossLingual(Recipe):
    """Scores of retrieval by method, from the first space to the second; `pairs` of ids where the ids of
    the two differ.
    """

    figure: ClassVar[str] = "cross-lingual"

    spaces: tuple[SpaceSpec, SpaceSpec]
    digests: tuple[str, ...] = ()
    retrieval: RetrievalSpec
    pairs: Pairs = ()

    def draw(self, result: RetrievalResult | None = None) -> Exportable:
        result = result or retrieve(
            pair_up(*load_all(self.spaces, self.digests, self.figure), self.pairs), self.retrieval
        )
        k, n = result.spec.k, len(result.ids)
        lines = [[by_metric[metric] for metric in METRICS] for by_metric in result.scores.values()]
        panel = _panel(
            result.scores,
            ("found first", f"MRR, k = {k}", f"Jaccard, k = {k}"),
            np.array(lines, dtype=float),
            [[f"{short(score, 2)}\nchance {short(score.null.mean, 2)}" for score in line] for line in lines],
            [[_told(score) for score in line] for line in lines],
        )
        best = max(result.scores, key=lambda method: result.scores[method]["mrr"])
        alt = (
            f"Heat map of retrieval from {result.names[0]} to {result.names[1]}, {n} queries through"
            f" {result.spec.n_anchors} "
        )
        alt += f"known pairs; best by MRR {METHODS[best].title}, {short(result.scores[best]['mrr'], 2)}."
        data = Matrices((panel,), (0, 1), "score", alt)
        return matrices_exportable(data, self.to_json(), "relscope-cross-lingual", result.wide, result.table)


@dataclass(frozen=True, kw_only=True)
class AcrossLanguages(Recipe):
    """Accuracy of a head of the first space on rows of the second by method, through pairs of sentences."""

    figure: ClassVar[str] = "across-languages"

    spaces: tuple[SpaceSpec, SpaceSpec]
    digests: tuple[str, ...] = ()
    stitching: StitchSpec
    pairs: Pairs = ()

    def __post_init__(self) -> None:
        if len(self.pairs) < 2:
            raise SpaceError(f"recipe of across-languages: expected two pairs or more, got {len(self.pairs)}")

    def draw(self, result: AcrossResult | None = None) -> Exportable:
        if result is None:
            task = HeadAcross(self.spaces, self.pairs, self.stitching)
            result = task.run(load_all(self.spaces, self.digests, self.figure))
        values = np.array([[result.accuracy[method], result.home[method]] for method in result.accuracy])
        foot = f"chance {short(result.chance, 2)}", "not stitched"
        beside = f"chance {short(result.chance)}, head of its own {short(result.ceiling)}"
        told = (
            f"on {result.n:,} rows of {result.names[1]}\n{beside}",
            f"on held-out rows of {result.names[0]}, not stitched",
        )
        panel = _panel(
            result.accuracy,
            ("stitched", "head at home"),
            values,
            [
                [f"{short(value, 2)}\n{below}" for value, below in zip(line, foot, strict=True)]
                for line in values
            ],
            [[f"{short(value)} {rest}" for value, rest in zip(line, told, strict=True)] for line in values],
            marked=tuple((row, 1) for row in range(len(values))),
        )
        alt = (
            f"Heat map of accuracy: the head of {result.names[0]} on rows of {result.names[1]} by"
            f" {len(values)} methods, "
        )
        alt += f"chance {short(result.chance, 2)}, a head of its own {short(result.ceiling, 2)}."
        data = Matrices((panel,), (0, 1), "accuracy", alt)
        return matrices_exportable(
            data, self.to_json(), "relscope-across-languages", result.table, result.table
        )


@dataclass(frozen=True, kw_only=True)
class PicturesAndWords(Recipe):
    """Accuracy by the number of pictures with captions, beside chance and a head trained on labels;
    `spaces` is one space.
    """

    figure: ClassVar[str] = "zero-shot"

    spaces: tuple[SpaceSpec]
    digests: tuple[str, ...] = ()
    encoder: Encoder
    captions: CaptionSpec

    def draw(self, result: ZeroShot | None = None) -> Exportable:
        if result is None:
            (space,) = load_all(self.spaces, self.digests, self.figure)
            texts = EncodeCaptions(classes_of(space), self.captions.templates, self.encoder).run((), Store())
            result = zero_shot(
                space, texts.rows, self.captions, self.encoder.title, unseen_rows(self.spaces[0], space)
            )
        line = Line(f"{len(result.classes)} classes by captions", result.counts, result.accuracy)
        baselines = (("chance", result.chance), ("head trained on labels", result.head))
        first, *_, last = (
            f"{short(score, 2)} with {n}" for n, score in zip(result.counts, result.accuracy, strict=True)
        )
        alt = (
            f"Accuracy by the number of pictures with captions: {first}, {last}; chance"
            f" {short(result.chance, 2)}, head "
        )
        alt += f"trained on labels {short(result.head, 2)}."
        axes = {"log_x": True, "y_range": (0, 1.02)}
        chart = Lines((line,), "pictures with captions", "accuracy", baselines=baselines, alt=alt, **axes)
        return lines_exportable(chart, self.to_json(), "relscope-zero-shot", result.wide)


def unseen_rows(spec: SpaceSpec, space: LatentSpace) -> np.ndarray | None:
    """The rows whose labels the encoder of the pictures did not see in training; None if it saw none."""
    seen = spec.encoder.seen_rows(space) if spec.encoder else ()
    return np.delete(np.arange(len(space)), seen) if len(seen) else None


def _panel(
    methods: Sequence[str],
    columns: tuple[str, ...],
    values: np.ndarray,
    texts: list[list[str]],
    hover: list[list[str]],
    marked: tuple[tuple[int, int], ...] = (),
) -> MatrixPanel:
    """One row per method."""
    rows = tuple(METHODS[method].title for method in methods)
    return MatrixPanel(
        "", rows, columns, values, tuple(map(tuple, texts)), tuple(map(tuple, hover)), marked=marked
    )


def _told(score: Score) -> str:
    null = score.null
    neighbours = f", k = {score.k}" if score.metric != "first" else ""
    return (
        f"{short(score)}\nchance {short(null.mean)} ({band(max(0, null.low), null.high)})\nn ="
        f" {score.n:,}{neighbours}"
    )
