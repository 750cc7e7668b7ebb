"""Scores of several representations of a pair from one pass over its rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.names import METRICS
from relcore.base.torch_state import OUT_OF_MEMORY, is_out_of_memory
from relcore.represent.anchors import shared_anchors
from relcore.represent.similarity import ROWS_PER_BLOCK, row_blocks, unit_rows
from relcore.scores.comparison import (
    REPRESENTATIONS,
    ProjectionSpec,
    held_out,
    metrics_of_a_pair,
    represent,
    score_differences,
)
from relcore.scores.device import NumpyDevice, device_of, in_threads
from relcore.scores.metric import AlignedPair
from relcore.scores.neighbours import (
    CONVENTIONS,
    SEEDING_ROWS,
    Neighbours,
    need_k,
    order_seed,
    queries_decide,
    without_itself,
)
from relcore.scores.plan import BlockPlan, ColumnSums, Question, RowRoles, Take
from relcore.scores.score import Difference, Score
from relcore.scores.search import apart, common_direction
from relcore.scores.sums import (
    BlockSums,
    FormSums,
    TopRows,
    decisive_rows,
    joined,
    labelled_lists,
    neighbours_of,
)
from relcore.spaces.space import Match
from relcore.spaces.split import Split

BLOCK_ROWS = 8192
SPARE = (
    8  # rows that may be left out of a pass that was kept: more anchors in one step take a pass of their own
)
_GPU_THREADS = 4  # some copy rows and sort neighbours while another computes; each has a block on the device
_COPIES = 6  # of a row, in its frames and representations
_KNOWN = 8  # results about samples of rows that are kept with a pass
_QUERIES = 2048  # that one pass looks for; more take several passes
Done = Callable[[int, int], None]
Rows = Callable[[], tuple[np.ndarray, np.ndarray]]


class PassedPair(AlignedPair):
    """A pair whose rows have been passed: its lists and sums are there. The rows themselves, `source` and
    `target`, are formed for a metric that reads them."""

    def __init__(
        self,
        seen: BlockSums,
        form: str,
        split: Split,
        take: Take,
        rows: Rows | None = None,
        sums: FormSums | None = None,
        labels: np.ndarray | None = None,
        known: dict[tuple[str, bytes], Any] | None = None,
    ) -> None:
        question = seen.plan.question
        facts = {
            "split": split,
            "k": question.k,
            "convention": question.convention,
            "labels": labels,
            "sums": sums,
        }
        facts |= {"n_queries": len(seen.plan.rows.queries[question.kind(form)])}
        for name, value in (
            facts | {"_seen": seen, "_form": form, "_take": take, "_rows": rows, "_known": known}
        ).items():
            object.__setattr__(self, name, value)

    @cached_property
    def source(self) -> np.ndarray:
        return self._rows()[0][self.split.test]

    @cached_property
    def target(self) -> np.ndarray:
        return self._rows()[1][self.split.test]

    @property
    def same_width(self) -> bool:
        return self._seen.plan.same_width(self._form)

    @cached_property
    def neighbours(self) -> Neighbours:
        return neighbours_of(self._seen, self._form, self._take)

    @cached_property
    def cosines(self) -> np.ndarray:
        return self._seen.cosines(self._form)[self.split.test]

    def some_rows(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        plan, numbers = self._seen.plan, self.split.test[places]
        forms = enumerate(plan.forms[self._form])
        made = (
            form.mapped(plan.block(side, self._take(side, numbers)).centred(form.frame))
            for side, form in forms
        )
        return tuple(rows.astype(np.float32) for rows in made)

    def of_some_rows(
        self, name: str, places: np.ndarray, make: Callable[[np.ndarray, np.ndarray], Any]
    ) -> Any:
        if self._known is None:
            return super().of_some_rows(name, places, make)
        key = name, self.split.test[places].tobytes()  # the rows of all pairs that were narrowed from one
        if key not in self._known:
            if len(self._known) >= _KNOWN:
                self._known.clear()
            self._known[key] = super().of_some_rows(name, places, make)
        return self._known[key]

    def nearest_labelled(self, labelled: np.ndarray, queries: np.ndarray, k: int) -> tuple[np.ndarray, ...]:
        return labelled_lists(self._seen, self._form, self.split.test[labelled], k)

    def kept(self) -> PassedPair:
        """The same without what only its own scores need: a megabyte, beside the rows of the spaces."""
        return PassedPair(
            self._seen.of_form(self._form), self._form, self.split, self._take, labels=self.labels, known={}
        )

    def narrowed(self, question: Question, split: Split, queries: np.ndarray) -> PassedPair | None:
        """The answer to `question` on the rows of `split`, some of these rows, with these queries (row
        numbers).

        None where it takes a pass: the question is another, or too many rows or a row that was no query are
        missing.
        """
        plan, kind = self._seen.plan, question.kind(self._form)
        gone = np.setdiff1d(split.anchors, plan.rows.anchors)
        fits = replace(plan.question, spare=0) == question and len(gone) <= plan.question.spare
        inside = len(split.test) + len(gone) == len(self.split.test)
        if not (fits and inside and np.isin(queries, plan.rows.queries[kind]).all()):
            return None
        chosen = np.flatnonzero(~np.isin(self.split.test, gone))
        labels = None if self.labels is None else self.labels[chosen]
        seen = self._seen.narrowed(kind, gone, queries)
        return PassedPair(seen, self._form, split, self._take, labels=labels, known=self._known)


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
    device: str = "auto",
    keep: Callable[[str, PassedPair], None] | None = None,
) -> dict[str, dict[str, Score]]:
    """`comparison.score_pair` of each representation on its held-out rows, from one pass over the rows for
    all.

    The scores are those of `score_pair(*represent(match, form, …), held_out(match, …), …)` but for rounding,
    and the memory is that of a few blocks. `done(parts, n_parts)` tells how far it is. The passes run on a
    GPU where there is one (`device_of`). `keep(form, pair)` gets what a difference to other anchors needs of
    each representation, see `anchor_differences`.

    Raises
    ------
    SpaceError
        As `represent`, `held_out` and `score_pair` do.
    """
    for form in forms:
        need_one_of("representation", form, REPRESENTATIONS)
    used = any(form != "absolute" for form in forms)
    anchors = match.source.rows(shared_anchors(anchor_ids, match.source, match.target) if used else ())
    question = Question(
        tuple(forms), projection, k, convention, cosines=keep is not None, spare=SPARE if keep else 0
    )
    by_kind = {question.kind(form): form for form in forms}
    splits = {kind: scored_rows(match, anchor_ids, form, k, convention) for kind, form in by_kind.items()}
    queries = {kind: split.queries(n_queries) for kind, split in splits.items()}
    rows = RowRoles(len(match), anchors, queries, None if labels is None else labels != "")
    passes = Passes(match.source.vectors, match.target.vectors, device, done)
    seen = passes.seen(question, rows)
    scores = {}
    for form in forms:
        split = splits[question.kind(form)]
        found = PassedPair(
            seen,
            form,
            split,
            passes.take,
            partial(represent, match, form, anchor_ids, projection),
            passes.form_sums(seen, form),
            None if labels is None else labels[split.test],
        )
        each = {name: METRICS[name].load()().score(found) for name in metrics or metrics_of_a_pair()}
        scores[form] = {name: score for name, score in each.items() if score is not None}
        if keep is not None:
            keep(form, found.kept())
    return scores


def scored_rows(match: Match, anchor_ids: Sequence[str], form: str, k: int, convention: str) -> Split:
    """`comparison.held_out`, once it is known that k neighbours can be looked up among these rows.

    Raises
    ------
    SpaceError
        As `held_out` does; an unknown convention, a k that is not possible.
    """
    need_one_of("convention", convention, CONVENTIONS)
    split = held_out(match, anchor_ids, form)
    need_k(k, len(split.test), len(split.test) - (convention == "mutual"))
    return split


class Passes:
    """Passes over two spaces with the same rows in memory, or in memory maps: (n, d_source) and (n,
    d_target).
    """

    def __init__(
        self, source: np.ndarray, target: np.ndarray, device: str = "cpu", done: Done | None = None
    ) -> None:
        self.spaces, self.device, self._done = (source, target), device, done or (lambda parts, n_parts: None)

    def take(self, side: int, rows: np.ndarray) -> np.ndarray:
        """Some rows of one space, float32."""
        return np.asarray(self.spaces[side][rows], dtype=np.float32)

    @cached_property
    def sums(self) -> tuple[ColumnSums, ColumnSums]:
        """The first pass."""
        return tuple(self._column_sums(X) for X in self.spaces)

    def seen(self, question: Question, rows: RowRoles) -> BlockSums:
        """The second pass: over all rows, again for each further 2,048 queries."""
        most = max(map(len, rows.queries.values()))
        batches = []
        for start in range(0, max(most, 1), _QUERIES):
            some = {kind: one[start : start + _QUERIES] for kind, one in rows.queries.items()}
            asked = replace(question, sums=not start and question.sums)
            batches.append(self.one_pass(self.plan(asked, replace(rows, queries=some))))
        return joined(batches) if len(batches) > 1 else batches[0]

    def form_sums(self, seen: BlockSums, form: str) -> FormSums:
        """With a third pass where a few long rows may decide linear CKA, without them."""
        rows = decisive_rows(seen, form)
        if not len(rows):
            return FormSums(form, seen, rows)
        question = replace(seen.plan.question, forms=(form,))
        without = self.one_pass(self.plan(question, seen.plan.rows.without(rows)))
        return FormSums(form, seen, rows, FormSums(form, without, rows[:0]))

    def plan(self, question: Question, rows: RowRoles) -> BlockPlan:
        """What a pass over the rows must know."""
        return BlockPlan.of(question, rows, self.sums, self.take)

    def one_pass(self, plan: BlockPlan) -> BlockSums:
        """A pass over all rows; where the memory of a GPU runs out, again on the CPU, which a warning
        says.
        """
        try:
            return self._pass_on(plan, self.device)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            warnings.warn(OUT_OF_MEMORY, stacklevel=2)
        self.device = "cpu"  # outside of the except clause, whose traceback keeps the tensors alive
        return self._pass_on(plan, self.device)

    def _pass_on(self, plan: BlockPlan, device: str) -> BlockSums:
        (source, target), where = self.spaces, device_of(device)
        n_threads = None if isinstance(where, NumpyDevice) else _GPU_THREADS
        widths = source.shape[1] + target.shape[1] + 2 * len(plan.rows.anchors)
        block_rows = where.rows_at_once(BLOCK_ROWS, 4 * _COPIES * widths, _GPU_THREADS)

        def add(seen: BlockSums, block: slice) -> None:
            seen.add(source[block], target[block], np.arange(block.start, block.stop))

        blocks = _blocks(len(source), block_rows)
        first, *others = in_threads(blocks, lambda: BlockSums(plan, device), add, self._done, n_threads)
        for other in others:
            first.merge(other)
        return first

    def _column_sums(self, X: np.ndarray) -> ColumnSums:
        first, *others = in_threads(
            _blocks(len(X)),
            lambda: ColumnSums(X.shape[1]),
            lambda sums, block: sums.add(X[block]),
            lambda *_: None,
        )
        for other in others:
            first.merge(other)
        return first


def _blocks(n: int, block_rows: int = BLOCK_ROWS) -> list[slice]:
    """Blocks of equal size, an even number of them where they are few, so that two threads have the same
    to do.
    """
    return list(row_blocks(n, -(-n // (2 * -(-n // (2 * block_rows))))))


# How a change of anchors moves the scores of one representation, from a pass over the rows with either set.


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
    device: str = "auto",
    kept: Mapping[tuple[str, ...], PassedPair] | None = None,
) -> dict[str, Difference]:
    """The change of each score of a representation from the anchors `before` to those `now`, with 95 %
    intervals.

    The differences are those of `comparison.score_differences` of the representations but for rounding, on
    the rows that are an anchor in neither set. No matrix of all rows and all anchors is formed, but for so
    few rows that errors need them. `kept` has what `score_forms` kept of some sets of anchors of this pair
    and form: they need no pass over the rows.

    Raises
    ------
    SpaceError
        As `comparison.represent` and `scored_rows` do.
    """
    split = scored_rows(match, tuple(dict.fromkeys((*now, *before))), form, k, convention)
    queries = split.queries(n_queries)
    if not queries_decide(len(split.test), len(queries)):
        made = (represent(match, form, anchors, projection) for anchors in (before, now))
        return score_differences(*made, split, k=k, convention=convention, n_queries=n_queries, labels=labels)
    question = Question((form,), projection, k, convention, sums=False, cosines=True)
    passes = Passes(match.source.vectors, match.target.vectors, device)
    labelled = None if labels is None else labels != ""

    def passed(anchors: Sequence[str]) -> PassedPair:
        used = () if form == "absolute" else shared_anchors(anchors, match.source, match.target)
        if (known := (kept or {}).get(tuple(anchors))) and (
            narrowed := known.narrowed(question, split, queries)
        ):
            return narrowed
        rows = match.source.rows(used)
        others = np.setdiff1d(split.anchors, rows)
        numbers = RowRoles(len(match), rows, {question.kind(form): queries}, labelled, others)
        seen = passes.seen(question, numbers)
        return PassedPair(
            seen, form, split, passes.take, labels=None if labels is None else labels[split.test]
        )

    first = passed(before)
    pairs = first, first if form == "absolute" else passed(now)
    found = {name: METRICS[name].load()().difference(*pairs) for name in metrics_of_a_pair()}
    return {name: difference for name, difference in found.items() if difference is not None}


# The nearest rows within one space, block by block: no copy of the space is made, whatever its size.

_SAMPLED_ROWS = 64
_PRODUCTS = 2**21  # of queries with the rows of a block: 8 MB


def own_neighbours(
    X: np.ndarray, mean: np.ndarray | None, queries: np.ndarray, k: int, device: str = "auto"
) -> np.ndarray:
    """The k rows of X (n, d) nearest to each of the rows `queries` (m,) by cosine, the row itself left out:
    (m, k).

    By the cosine of X − mean, if a mean (d,) is given. Exact, as `scores.neighbours.neighbours_within`, which
    takes two copies of X. Rows that are equally near are ordered at random, differently in different spaces.

    Raises
    ------
    SpaceError
        k above n − 1.
    """
    n, queries = len(X), np.asarray(queries)
    if not 1 <= k < n:
        raise SpaceError(f"k: expected 1 … {n - 1} neighbours among {n} rows, got {k}")
    if len(queries) > ROWS_PER_BLOCK:  # the products of more queries with a block would not stay in cache
        parts = [queries[part] for part in row_blocks(len(queries))]
        return np.concatenate([own_neighbours(X, mean, part, k, device) for part in parts])
    try:
        return _within(X, mean, queries, k, device)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        warnings.warn(OUT_OF_MEMORY, stacklevel=2)
    return _within(
        X, mean, queries, k, "cpu"
    )  # outside of the except clause, whose traceback keeps the tensors alive


def _within(X: np.ndarray, mean: np.ndarray | None, queries: np.ndarray, k: int, device: str) -> np.ndarray:
    n, where = len(X), device_of(device)
    common = common_direction(unit_rows(X[:: max(1, n // _SAMPLED_ROWS)], mean))
    wanted = where.put(apart(unit_rows(X[queries], mean), common, queries=True))
    block_rows = min(ROWS_PER_BLOCK, max(512, _PRODUCTS // len(queries)))
    seed = order_seed(unit_rows(X[:SEEDING_ROWS], mean))

    def add(top: TopRows, block: slice) -> None:
        rows = apart(unit_rows(X[block], mean), common)
        with where.exact():
            top.add(where, wanted @ where.put(rows).T, np.arange(block.start, block.stop))

    first, *others = in_threads(
        list(row_blocks(n, block_rows)), lambda: TopRows(len(queries), k + 1, seed), add, lambda *_: None
    )
    for other in others:
        first.merge(other)
    return without_itself(queries, first.rows)
