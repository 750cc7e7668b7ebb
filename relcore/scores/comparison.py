"""Scores of two spaces with the same rows, in their absolute, relative and whitened representations, by each
`Metric`, with chance levels. To add a metric, write a class with a `score`, and a line in
`relcore.base.names.METRICS`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.base.names import METRICS, named_in_errors
from relcore.base.numbers import and_list, band, counted, short, short_chance
from relcore.base.report import Report, Table
from relcore.base.rows import centred, mean_row, unit_rows
from relcore.engine.engine import Engine, nearest_within, need_k, without_itself
from relcore.represent.similarity import coinciding_anchors, mean_of, shared_anchors
from relcore.represent.translation import REPRESENTATIONS, ProjectionSpec, represent
from relcore.scores.cka import OwnMoments, cka_influence, cka_of_arrays, cka_value, decisive_rows
from relcore.scores.neighbours import (
    CONVENTIONS,
    Neighbours,
    number_of_draws,
    overlap_difference,
    queries_decide,
)
from relcore.scores.passes import (
    EXTRA_NEIGHBOURS,
    NO_ROWS,
    AlignedPair,
    Done,
    LabelledNeighbours,
    RowPair,
    RowRoles,
    ScoreRequest,
)
from relcore.scores.score import (
    ChanceLevel,
    Interval,
    Score,
    difference,
    mean_difference,
    sampling_interval,
)
from relcore.spaces.space import AuditedIds, LatentSpace, Match, scored_rows
from relcore.spaces.split import Split, derangement

# The changes that `unchanged_by` may name: rotation or reflection, scale, offset, and any invertible linear
# map.
CHANGES = ("rotation", "scale", "shift", "affine")


class Metric(ABC):
    """The base class of metrics. A metric scores the similarity of two spaces, with a chance level. It has no
    state.

    A subclass needs only `score`. `difference` computes the change of a score. The other methods save work
    when many spaces are compared; their `settings` are a `compare.scoring.AllPairs`.

    `reads` says what `score` needs of a pair: only the lists of neighbours ("lists"), only sums over the rows
    ("sums"), or the rows themselves ("rows"). Only "rows" needs all rows in memory.

    `unchanged_by` lists the `CHANGES` of one space, such as a rotation, that leave the score unchanged; a
    test applies them. `paired` is False if the metric ignores which rows are partners. Such a metric has no
    chance level.
    """

    reads: ClassVar[Literal["lists", "sums", "rows"]] = "rows"
    unchanged_by: ClassVar[tuple[str, ...]] = ()
    paired: ClassVar[bool] = True

    @abstractmethod
    def score(self, pair: AlignedPair) -> Score | None:
        """The score of the held-out rows. None if the metric needs equal widths or labels, and the pair lacks
        them."""

    def difference(self, before: AlignedPair, now: AlignedPair) -> Interval | None:
        """The change of the score on the same rows, with its 95 % interval. None if this metric cannot
        compute it."""
        return None

    def held_out(self, space: LatentSpace, settings: Any) -> Split:
        """The split whose test rows `between` compares. By default, these are all rows."""
        return Split.held_out(space.ids)

    def own(self, space: LatentSpace, settings: Any) -> Any:
        """The part of the computation that needs only one space. It is done once for all pairs with this
        space."""
        return None

    def between(
        self, first: LatentSpace, second: LatentSpace, own: Callable[[LatentSpace], Any], settings: Any
    ) -> Score:
        """The score of two absolute spaces with the same rows. ``own(space)`` returns the cached result of
        `own`.

        Raises
        ------
        SpaceError
            The two spaces cannot be compared.
        """
        options = {"k": settings.k, "convention": "mutual", "n_queries": settings.n_queries}
        split = self.held_out(first, settings)
        score = self.score(AlignedPair.of_arrays(first.vectors, second.vectors, split, **options))
        if score is None:
            raise SpaceError(f"expected spaces of one width, got {first.dimension} and {second.dimension}")
        return score

    def forms(
        self, spaces: Sequence[LatentSpace], rows: np.ndarray, settings: Any
    ) -> tuple[list[np.ndarray], bool] | None:
        """For `best_by_chance`: one matrix per space, computed from these sampled rows, and whether both of
        its axes are permuted. None if the metric has no chance level for the best pair."""
        return None


def _with_chance(pair: AlignedPair, score: Score) -> Score:
    """Remove the chance level of a score if rows are repeated, because it would be too low."""
    if pair.neighbours.repeated:
        score.null = None
    return score


class Jaccard(Metric):
    """The mean overlap of the neighbourhoods. Spaces of different widths get a score only by the convention
    "mutual"."""

    reads = "lists"
    unchanged_by = ("scale",)

    def score(self, pair: AlignedPair) -> Score | None:
        usable = pair.same_width or pair.convention == "mutual"
        if usable:
            return _with_chance(pair, pair.neighbours.jaccard())
        return None

    def difference(self, before: AlignedPair, now: AlignedPair) -> Interval | None:
        usable = before.same_width or before.convention == "mutual"
        if usable:
            return overlap_difference(before.neighbours, now.neighbours)
        return None


class MeanReciprocalRank(Metric):
    """The mean of 1 / rank, where rank is that of a row's partner among its neighbours."""

    reads = "lists"
    unchanged_by = ("scale",)

    def score(self, pair: AlignedPair) -> Score | None:
        if pair.same_width:
            return _with_chance(pair, pair.neighbours.mrr())
        return None

    def difference(self, before: AlignedPair, now: AlignedPair) -> Interval | None:
        ranks = (pair.neighbours.reciprocal_rank for pair in (before, now))
        if before.same_width:
            return mean_difference(*ranks)
        return None


class MutualKNN(Jaccard):
    """The mean Jaccard overlap of the k nearest neighbours of a row, searched within each space, 0 … 1."""

    unchanged_by = ("rotation", "scale")

    def own(self, space: LatentSpace, settings: Any) -> np.ndarray:
        return nearest_within(unit_rows(space.vectors), self._queries(space, settings), settings.k)

    def between(
        self, first: LatentSpace, second: LatentSpace, own: Callable[[LatentSpace], Any], settings: Any
    ) -> Score:
        lists = (own(first), own(second))
        queries = self._queries(first, settings)
        return Neighbours(first.vectors, second.vectors, queries, *lists, "mutual", "cpu").jaccard()

    def _queries(self, space: LatentSpace, settings: Any) -> np.ndarray:
        return self.held_out(space, settings).queries(settings.n_queries)

    def forms(
        self, spaces: Sequence[LatentSpace], rows: np.ndarray, settings: Any
    ) -> tuple[list[np.ndarray], bool]:
        every = np.arange(len(rows))
        k = min(settings.k, len(rows) - 1)
        lists = [nearest_within(unit_rows(space.vectors[rows]), every, k) for space in spaces]
        return [(rows[:, :, None] == every).any(axis=1) for rows in lists], True


# Class agreement: whether the neighbours of a row in the other space have the class of the row.


class ClassAgreement(Metric):
    """The share of the held-out rows whose label wins the vote of the k nearest rows in the other space, 0 …
    1.

    The query is the vector of a row in the source. Its k nearest rows are searched among the held-out rows of
    the target, without the row itself. A tie does not count as won. For "mutual", the score is the mean of
    both directions. Rows without a label are left out. There is no score (None) if most rows have at most k /
    2 other rows of their class, too few for a majority.

    Chance level: the vote after a permutation of the rows of one space. In two absolute spaces, clusters of
    classes may coincide by chance, so use the relative score.
    """

    reads = "lists"
    unchanged_by = ("scale",)

    def score(self, pair: AlignedPair) -> Score | None:
        votes = pair.labelled_neighbours()
        if votes is None:
            return None
        hits = _hits(votes)
        null = None
        if len(votes.queries) > 1:
            rng = np.random.default_rng(0)
            draws = np.empty(number_of_draws(len(votes.queries)))
            for draw in range(len(draws)):  # gives each query the neighbours of another query
                draws[draw] = _hits(votes, derangement(len(votes.queries), rng)).mean()
            # Correct the mean, because a permutation keeps one row in its place on average, and these draws
            # none.
            draws += (hits.mean() - draws.mean()) / votes.n
            null = ChanceLevel.from_draws(draws)
        score = Score(
            hits.mean(),
            metric="class agreement",
            convention=pair.convention,
            k=votes.lists[0].shape[1] - 1,
            n=votes.n,
            n_queries=len(votes.queries),
            interval=sampling_interval(hits, votes.n),
            null=null,
            note=pair.neighbours.note,
        )
        return _with_chance(pair, score)

    def difference(self, before: AlignedPair, now: AlignedPair) -> Interval | None:
        votes = before.labelled_neighbours(), now.labelled_neighbours()
        if None in votes:
            return None
        return mean_difference(*map(_hits, votes))


def _hits(votes: LabelledNeighbours, order: np.ndarray | slice = slice(None)) -> np.ndarray:
    """For each query, 1 if its class wins the vote of its neighbours, otherwise 0; averaged over both
    directions, (m,).

    With `order`, each query gets the neighbours of another query, without itself if it is one of them.
    """
    hits = [
        has_majority_class(votes.own, without_itself(votes.queries, rows[order], classes[order]))
        for rows, classes in zip(votes.lists, votes.classes, strict=True)
    ]
    return np.mean(hits, axis=0)


def has_majority_class(own: np.ndarray, voted: np.ndarray) -> np.ndarray:
    """Whether the class `own` (m,) of each row is the most frequent class among its neighbours `voted` (m,
    k): (m,) bool."""
    voted = np.sort(voted, axis=1)
    run = np.zeros(len(own), dtype=np.int64)
    most = np.zeros((2, len(own)), dtype=np.int64)
    for place in range(voted.shape[1]):
        if place:
            same = voted[:, place] == voted[:, place - 1]
        else:
            same = np.zeros(len(own), dtype=bool)
        run = np.where(same, run + 1, 1)
        mine = voted[:, place] == own
        most[0], most[1] = np.maximum(most[0], run * ~mine), np.maximum(most[1], run * mine)
    return most[1] > most[0]


# Number of rows for the difference of two scores, and for the interval of the difference.
_DIFFERENCE_ROWS = 4000
_INFLUENCE_ROWS = 1000


class LinearCKA(Metric):
    """The function `linear_cka` as a metric."""

    reads = "sums"
    unchanged_by = ("rotation", "scale", "shift")
    debiased = False

    def score(self, pair: AlignedPair) -> Score:
        return pair.linear_cka()

    def difference(self, before: AlignedPair, now: AlignedPair) -> Interval:
        """The change of CKA, on samples of the held-out rows. The interval comes from `cka_influence`."""
        split = before.split
        sampled = Split.held_out(split.ids[split.test], random_state=split.random_state)
        rows = sampled.queries(_DIFFERENCE_ROWS)
        few = sampled.queries(_INFLUENCE_ROWS)
        scores = [pair.of_some_rows(cka_value, rows) for pair in (before, now)]
        pulls = [pair.of_some_rows(cka_influence, few) for pair in (before, now)]
        error = np.std(pulls[1] - pulls[0], ddof=1) / np.sqrt(len(split.test))
        return difference(scores[1] - scores[0], error)

    def own(self, space: LatentSpace, settings: Any) -> OwnMoments:
        return OwnMoments.of(space.vectors)

    def between(
        self, first: LatentSpace, second: LatentSpace, own: Callable[[LatentSpace], Any], settings: Any
    ) -> Score:
        moments = own(first), own(second)
        return cka_of_arrays(first.vectors, second.vectors, self.debiased, moments, lambda: first.ids)

    def forms(
        self, spaces: Sequence[LatentSpace], rows: np.ndarray, settings: Any
    ) -> tuple[list[np.ndarray], bool]:
        sampled = [space.vectors[rows] for space in spaces]
        moved = [centred(X, mean_row(X)) for X in sampled]
        return [X @ X.T for X in moved], True


class DebiasedCKA(LinearCKA):
    """The function `linear_cka` as a metric, without the bias that few rows cause."""

    debiased = True

    def score(self, pair: AlignedPair) -> Score:
        return cka_of_arrays(
            pair.source, pair.target, debiased=True, names_of_rows=lambda: pair.split.ids[pair.split.test]
        )


class MeanCosine(Metric):
    """The function `mean_cosine` as a metric."""

    reads = "sums"
    unchanged_by = ("scale",)

    def score(self, pair: AlignedPair) -> Score | None:
        if pair.same_width:
            return pair.mean_cosine()
        return None

    def difference(self, before: AlignedPair, now: AlignedPair) -> Interval | None:
        if before.same_width:
            return mean_difference(before.cosines, now.cosines)
        return None


# Number of queries for scores that must appear immediately. Their interval is ± .02.
LIVE_QUERIES = 300


def sample_pair(match: Match, anchor_ids: Sequence[str], n_most: int, random_state: int = 0) -> Match:
    """The matched spaces, reduced to these anchors and at most `n_most` other rows. If there are no more
    rows, they are unchanged.

    The rows are drawn as in `Split.queries`, so the queries are the same as without the reduction.
    """
    anchors = match.source.rows(anchor_ids)
    if len(match) - len(anchors) <= n_most:
        return match
    others = Split.held_out(match.ids, anchors, random_state).queries(n_most)
    rows = np.union1d(anchors, others)
    return replace(match, source=match.source.take(rows), target=match.target.take(rows))


def held_out(
    match: Match,
    anchor_ids: Sequence[str] = (),
    representation: str = "relative",
    k: int = 0,
    convention: str = "paper",
) -> Split:
    """The split into anchors and the rows that scores of this representation use: all rows except the
    anchors.

    All rows are used for "absolute", and if there are no `anchor_ids` (as in the first paper).

    Raises
    ------
    SpaceError
        Anchors that the source lacks; no rows besides the anchors; if k is given, too few rows for k
        neighbours.
    """
    need_one_of("convention", convention, CONVENTIONS)
    anchors = match.source.rows(() if representation == "absolute" else anchor_ids)
    split = Split.held_out(match.source.ids, anchors)
    if k:
        need_k(k, len(split.test), len(split.test) - (convention == "mutual"))
    return split


def metrics_of_a_pair(more: bool = False) -> dict[str, str]:
    """The titles, by name, of the metrics that score a pair of spaces. `more` includes metrics that are
    computed only if they are chosen by name."""
    kinds = {"pair", "more"} if more else {"pair"}
    return {name: entry.title for name, entry in METRICS.items() if kinds & set(entry.of)}


def class_labels(match: Match) -> np.ndarray | None:
    """The class of each row, "" for rows without a class. None unless most rows have a class.

    They are the labels of the source; if it has none, those of the target.
    """
    if match.source.labels is None:
        labels = match.target.labels
    else:
        labels = match.source.labels
    if labels is not None and 2 * np.count_nonzero(labels != "") > len(labels):
        return labels
    return None


def score_pair(
    source: np.ndarray, target: np.ndarray, split: Split, *, metrics: Sequence[str] = (), **settings: Any
) -> dict[str, Score]:
    """The scores of two row-aligned spaces (n, d) on the test rows of the split, by these metrics (default:
    all). `settings` are further arguments of `AlignedPair.of`.

    The queries are `n_queries` of the test rows (default: all). They are searched among all test rows. A
    metric is left out if it needs equal widths or the `labels` of the n rows, and they are missing.

    Raises
    ------
    SpaceError
        The number of rows differs from that of the split.
    """
    return scores_of(AlignedPair.of_arrays(source, target, split, **settings), metrics)


def scores_of(pair: AlignedPair, metrics: Sequence[str] = ()) -> dict[str, Score]:
    """The scores of a pair by these metrics (default: all). A metric is left out if it needs equal widths or
    labels, and the pair lacks them. If a plugin fails, a SpaceError names it."""
    scores = {}
    for name in metrics or metrics_of_a_pair():
        entry = METRICS[name]
        if "labels" in entry.needs and not pair.rows.labelled:
            continue
        with named_in_errors(entry.plugin):
            scores[name] = entry.load()().score(pair)
    return {name: score for name, score in scores.items() if score is not None}


def score_differences(
    before: tuple[np.ndarray, np.ndarray], now: tuple[np.ndarray, np.ndarray], split: Split, **settings: Any
) -> dict[str, Interval]:
    """The change of each score of `score_pair`, with its 95 % interval, on the same held-out rows and
    queries. `settings` are those of `score_pair`.

    The split must list the anchors of `before` and those of `now`, because a row that is an anchor in one of
    them is not scored in either.
    """
    return differences_of(*(AlignedPair.of_arrays(*rows, split, **settings) for rows in (before, now)))


def differences_of(before: AlignedPair, now: AlignedPair) -> dict[str, Interval]:
    changes = {name: METRICS[name].load()().difference(before, now) for name in metrics_of_a_pair()}
    return {name: change for name, change in changes.items() if change is not None}


def score_table(scores: Mapping[str, Mapping[str, Score]]) -> pd.DataFrame:
    """A long table of scores, one row per representation (`form`) and metric, with the settings and the
    chance level.

    Columns: metric, form, score, null_low and null_high (95 % band of the chance level), low and high
    (sampling interval; NaN if all rows are queries), chance (mean of the chance level), convention, k, n,
    queries.
    """
    rows = []
    for form, by_metric in scores.items():
        for metric, score in by_metric.items():
            title = METRICS[metric].title + (f", k = {score.k}" if score.k else "")
            rows.append({"metric": title, "form": form, "convention": score.convention, **score.to_row()})
    columns = ["metric", "form", "score", "null_low", "null_high", "low", "high", "chance", "convention"]
    return pd.DataFrame(rows).filter([*columns, "k", "n", "queries"])


def score_notes(
    scores: Mapping[str, Mapping[str, Score]], match: Match | None = None, anchor_ids: Sequence[str] = ()
) -> list[str]:
    """The notes of the scores. Each note appears once and names the scores that have it. With `match`,
    warnings follow of long rows and of coinciding anchors, because these can dominate relative scores."""
    places: dict[str, list[str]] = {}
    for form, by_metric in scores.items():
        for metric, score in by_metric.items():
            if score.note:
                places.setdefault(score.note, []).append(f"{METRICS[metric].title} ({form})")
    audited = match is not None and isinstance(match.ids, AuditedIds)
    notes = []
    if audited and (removed := np.count_nonzero(~scored_rows(match.ids))):
        notes.append(f"{counted(removed, 'row is', 'rows are')} not scored: suspects of an audit.")
    for note, where in places.items():
        notes.append(f"{', '.join(where)}: {note}")
    for space in (match.source, match.target) if match and len(anchor_ids) else ():
        notes.append(long_rows(space) or coinciding_anchors(space, anchor_ids))
    return list(filter(None, notes))


_MOVED = 0.25  # minimum shift of the mean by long rows, in spreads of the other rows


def long_rows(space: LatentSpace) -> str:
    """A warning if a few long rows (at most 10 and at most 2 %) shift the mean of a space and thus change all
    scores that are centred by it; otherwise "".

    The warning appears for none of 26 spaces of texts, words and pictures, and for 1 of 420 synthetic spaces.
    In 65 spaces, 1 to 8 rows were made 10 to 500 times as long. There the warning appeared whenever the score
    of the pruned inverse changed by .05, and whenever the inverse failed.
    """
    mean = mean_of(space)
    far = Engine().lengths(space.vectors, mean).astype(np.float64)
    n = len(space)
    if n < 3 or not far.any():
        return ""
    far /= far.max()
    rows = decisive_rows((far * far,))
    if not len(rows):
        rows = far.argmax(keepdims=True)
    directions = unit_rows(space.vectors[rows], mean).astype(np.float64)
    # The offsets of all rows from the mean add up to 0, so this is how far the mean of the others moved.
    moved = float(np.linalg.norm(far[rows] @ directions)) / (n - len(rows))
    others = np.delete(far, rows)
    spread = np.sqrt(max(np.mean(others**2) - moved**2, 0))
    if moved <= _MOVED * spread:
        return ""
    more = ""
    if len(rows) > 3:
        more = ", …"
    named = quote(space.ids[rows[:3]]) + more
    move = f"{len(rows)} long rows, {named}, move"
    decide = "they decide"
    them = "them"
    if len(rows) == 1:
        move = f"One long row, {named}, moves"
        decide = "it decides"
        them = "it"
    return (
        f"{move} the mean of {quote([space.name])} by {short(moved / max(spread, 1e-9), 1)} times the spread"
        f" of the other rows, so {decide} centred scores. Leave {them} out."
    )


def _drawn_queries(scores: Mapping[str, Score]) -> str:
    """A phrase such as ``, 300 of them as queries (± …)``; "" if all rows are queries. If the number of
    queries differs between representations, the phrase gives each number."""
    if not any(score.interval for score in scores.values()):
        return ""
    forms: dict[str, list[str]] = {}
    for form, score in scores.items():
        some = "all"
        if score.interval:
            some = f"{score.n_queries:,} of"
        forms.setdefault(f"{some} {counted(score.n, 'row')}", []).append(form)
    first = next(iter(scores.values()))
    text = f"{first.n_queries:,} of them as queries"
    # "of them" means the rows named first, so other forms with other numbers of queries are listed
    # separately.
    if any((score.n_queries, bool(score.interval)) != (first.n_queries, True) for score in scores.values()):
        text = "queries: " + ", ".join(f"{rows} ({', '.join(named)})" for rows, named in forms.items())
    return f", {text} (± is the 95 % sampling interval)"


def circumstances(scores: Mapping[str, Mapping[str, Score]]) -> list[str]:
    """The settings of scores in words: first the rows, then the neighbours and queries, then the samples. For
    example:

    ``n = 19,700 held-out rows, no anchor among them (absolute: all 20,000 rows)``, ``Jaccard and MRR: k = 10,
    paper convention (Moschella et al. 2023), 300 of them as queries (± …)``, ``RSA: 1,000 of the rows, drawn
    by their ids``.
    """
    absolute = ""
    others = ""
    listed = {}
    sampled = {}
    for form, by_metric in scores.items():
        n = max(score.drawn_from or score.n for score in by_metric.values())
        if form == "absolute":
            absolute = counted(n, "row")
        else:
            others = others or counted(n, "held-out row")
        for name, score in by_metric.items():
            if score.k:
                titles, queries = listed.setdefault((score.k, score.convention), ({}, {}))
                titles[METRICS[name].title] = None
                queries[form] = score
            if score.drawn_from:
                sampled.setdefault(score.n, {})[METRICS[name].title] = None
    of_absolute = ""
    if absolute:
        of_absolute = f" (absolute: all {absolute})"
    rows = f"n = {others}, no anchor among them{of_absolute}"
    parts = [rows if others else f"n = {absolute}"]
    for (k, convention), (titles, queries) in listed.items():
        source = ""
        if convention == "paper":
            source = " (Moschella et al. 2023)"
        told = f"{convention} convention{source}"
        parts.append(f"{and_list(titles)}: k = {k}, {told}{_drawn_queries(queries)}")
    for n, titles in sampled.items():
        parts.append(f"{and_list(titles)}: {n:,} of the rows, drawn by their ids")
    return parts


Scores = Mapping[str, Mapping[str, Score]]


def scores_report(
    scores: Scores,
    sentence: str = "",
    facts: Mapping[str, Any] | None = None,
    *,
    pair: Match | None = None,
    anchors: Sequence[str] = (),
    also: Sequence[str] = (),
    figures: Mapping[str, Any] | None = None,
    head: str = "representation",
) -> Report:
    """A report with a table of scores. Beside each score are half of its sampling interval, its chance level,
    and the 95 % band of the chance level. The notes of the scores follow, then the notes in `also`. `head` is
    the title of the column that names what is scored."""
    rows = score_table(scores)
    caption = "; ".join([*circumstances(scores), "chance level: rows of one space permuted"])
    table = Table("rows", rows, score_cells(rows, head), caption=f"{caption}.")
    notes = [*also, *score_notes(scores, pair, anchors)]
    return Report(sentence, (table,), facts or {}, notes, figures or {})


def score_cells(table: pd.DataFrame, head: str = "representation") -> list[list[str]]:
    """The cells of a `score_table` as texts for people. The first row has the titles of the columns."""
    numbers = ["n"] * (table["n"].nunique() > 1)
    rows = [[head, *numbers, "metric", "score", "±", "chance level", "chance, 95 %"]]
    for row in table.itertuples():
        cells = [row.form, *([f"{row.n:,}"] if numbers else []), row.metric.split(",")[0], short(row.score)]
        # The cell is empty if all rows are queries.
        cells.append("" if pd.isna(row.low) else short((row.high - row.low) / 2))
        chance = [short_chance(row.chance), band(row.null_low, row.null_high)]
        if pd.isna(row.chance):
            cells += ["", ""]
        else:
            cells += chance
        rows.append(cells)
    return rows


def groups_of(forms: Sequence[str]) -> list[tuple[str, ...]]:
    """The representations in two groups: "absolute", which is scored on all rows, and all others."""
    absolute = tuple(form for form in forms if form == "absolute")
    return [group for group in (absolute, tuple(form for form in forms if form != "absolute")) if group]


def score_forms(
    match: Match,
    forms: Sequence[str],
    anchor_ids: Sequence[str],
    projection: ProjectionSpec,
    *,
    k: int = 10,
    convention: str = "paper",
    n_queries: int | None = None,
    metrics: Sequence[str] = (),
    labels: np.ndarray | None = None,
    done: Done = lambda parts, n_parts: None,
    device: str | None = None,
    keep: Callable[[str, AlignedPair], None] | None = None,
) -> dict[str, dict[str, Score]]:
    """The scores of each representation on its held-out rows. If there are many rows, all representations
    share one pass over them.

    Up to rounding, the scores equal those of `score_pair`; they need only the memory of a few blocks.
    ``done(parts, n_parts)`` is called to report progress. ``keep(form, pair)`` is called with each
    representation and its pair of spaces, which `anchor_differences` can use.
    """
    for form in forms:
        need_one_of("representation", form, REPRESENTATIONS)
    used = any(form != "absolute" for form in forms)
    anchors = match.source.rows(shared_anchors(anchor_ids, match.source, match.target) if used else ())
    request = ScoreRequest(
        (),
        projection,
        k,
        convention,
        cosines=keep is not None,
        extra_neighbours=EXTRA_NEIGHBOURS if keep else 0,
    )
    rows = RowPair(match.source.vectors, match.target.vectors, match.ids, labels, device, done)
    splits = {}
    parts = []
    for group in groups_of(forms):
        split = held_out(match, anchor_ids, group[0], k, convention)
        splits |= dict.fromkeys(group, split)
        own = NO_ROWS
        if group[0] != "absolute":
            own = anchors
        roles = RowRoles(len(match), own, split.queries(n_queries), split.untested, rows.labelled)
        parts.append((replace(request, forms=group), roles))
    pairs = {}
    for sums in rows.sums_of(parts):
        for form in sums.plan.forms:
            made = partial(represent, match, form, anchor_ids, projection)
            pairs[form] = AlignedPair.passed(rows, form, sums, splits[form], made)
    scores = {form: scores_of(pairs[form], metrics) for form in forms}
    for form, pair in pairs.items() if keep is not None else ():
        pair.searched.slim()
        keep(form, pair)
    return scores


# The effect of other anchors on the scores of one representation, with one pass for each set of anchors.


def anchor_differences(
    match: Match,
    form: str,
    before: Sequence[str],
    now: Sequence[str],
    projection: ProjectionSpec,
    *,
    k: int = 10,
    convention: str = "paper",
    n_queries: int | None = None,
    labels: np.ndarray | None = None,
    device: str | None = None,
    kept: Mapping[tuple[str, ...], AlignedPair] | None = None,
) -> dict[str, Interval]:
    """The change of each score of a representation, with its 95 % interval, if the anchors `now` replace the
    anchors `before`.

    Scored rows are those that are no anchor in either set. Up to rounding, the changes equal those of
    `score_differences`. `kept` maps anchors to the pairs that `score_forms` made with them; these need no
    further pass over the rows.
    """
    split = held_out(match, tuple(dict.fromkeys((*now, *before))), form, k, convention)
    queries = split.queries(n_queries)
    if not queries_decide(len(split.test), len(queries)):
        rows = (represent(match, form, anchors, projection) for anchors in (before, now))
        return score_differences(*rows, split, k=k, convention=convention, n_queries=n_queries, labels=labels)
    request = ScoreRequest((form,), projection, k, convention, sums=False, cosines=True)
    pair = RowPair(match.source.vectors, match.target.vectors, match.ids, labels, device)

    def passed(anchors: Sequence[str]) -> AlignedPair:
        if form == "absolute":
            used = ()
        else:
            used = shared_anchors(anchors, match.source, match.target)
        known = (kept or {}).get(tuple(anchors))
        if known is not None and (narrowed := known.narrowed(request, split, queries)):
            return narrowed
        chosen = match.source.rows(used)
        roles = RowRoles(len(match), chosen, queries, split.untested, pair.labelled)
        (seen,) = pair.sums_of([(request, roles)])
        return AlignedPair.passed(pair, form, seen, split)

    first = passed(before)
    pairs = first, first if form == "absolute" else passed(now)
    return differences_of(*pairs)
