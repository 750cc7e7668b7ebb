"""Scores of several representations of a pair from one pass over its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from relcore.base.errors import need_one_of
from relcore.represent.anchors import shared_anchors
from relcore.scores.cka import decided_note
from relcore.scores.comparison import (
    REPRESENTATIONS,
    ProjectionSpec,
    differences_of,
    held_out,
    represent,
    score_differences,
    score_pair,
    scores_of,
)
from relcore.scores.metric import AlignedPair
from relcore.scores.neighbours import CONVENTIONS, Neighbours, need_k, queries_decide, without_itself
from relcore.scores.passes import (
    NO_ROWS,
    Done,
    Passes,
    Plan,
    Question,
    RowRoles,
    Sums,
    Take,
    places_beside,
    rows_beside,
)
from relcore.scores.score import Difference, Score
from relcore.spaces.space import Match
from relcore.spaces.split import Split

FEW_ROWS = 1024  # matrices of so few rows take less time than the preparation of a pass
# Rows that may be left out of a pass that was kept: more anchors in one step take a pass of their own.
SPARE = 8
Rows = Callable[[], tuple[np.ndarray, np.ndarray]]


class _Directions:
    """The scored rows of one space in a representation, (t, w) of length 1, each formed when it is used."""

    def __init__(self, plan: Plan, form: str, side: int, take: Take) -> None:
        self.plan, self.form, self.side, self.take = plan, form, side, take

    def __len__(self) -> int:
        return len(self.plan.roles)

    def __getitem__(self, places: np.ndarray) -> np.ndarray:
        return self.plan.directions(
            self.form, self.side, self.take(self.side, rows_beside(places, self.plan.roles.left_out))
        )


class PassedPair(AlignedPair):
    """A pair whose rows have been passed: its lists and sums are there. The rows themselves, `source` and
    `target`, are formed for a metric that reads them.

    Parameters
    ----------
    seen : Sums
        Of the pass.
    form : str
    split : Split
    passes : Passes
    rows : function, optional
        Gives both spaces in the representation, for a metric that reads rows.
    """

    def __init__(
        self,
        seen: Sums,
        form: str,
        split: Split,
        passes: Passes,
        rows: Rows | None = None,
        labels: np.ndarray | None = None,
    ) -> None:
        question = seen.plan.question
        self.split, self.k, self.convention, self.labels = split, question.k, question.convention, labels
        self.n_queries = len(seen.plan.roles.queries)
        self.seen, self.form, self.passes, self._rows = seen, form, passes, rows

    @cached_property
    def source(self) -> np.ndarray:
        return self._rows()[0][self.split.test]

    @cached_property
    def target(self) -> np.ndarray:
        return self._rows()[1][self.split.test]

    @property
    def same_width(self) -> bool:
        return self.seen.plan.same_width(self.form)

    @cached_property
    def neighbours(self) -> Neighbours:
        """Row numbers count the rows that are scored, as elsewhere."""
        plan, lists = self.seen.plan, {}
        left_out = plan.roles.left_out
        queries = places_beside(plan.roles.queries, left_out)
        for search in plan.searched(self.form):
            if not search.labelled:
                rows = places_beside(self.seen.nearest(self.form, search), left_out)
                lists[search.name] = without_itself(queries, rows) if search.alone else rows
        sides = [_Directions(plan, self.form, side, self.passes.take) for side in (0, 1)]
        return Neighbours.listed(sides, queries, lists, plan.question.k, self.convention)

    @cached_property
    def cosines(self) -> np.ndarray:
        return self.seen.cosines(self.form)[self.split.test]

    def linear_cka(self) -> Score:
        seen, form, note = self.seen, self.form, ""
        sums, decisive = seen.linear_cka(form), seen.decisive_rows(form)
        if len(decisive):
            roles, question = seen.plan.roles, replace(seen.plan.question, forms=(form,))
            (others,) = self.passes.seen([(question, roles.without(decisive))])
            without = others.linear_cka(form).value
            note = decided_note(sums.value, without, len(decisive), lambda: self.names(decisive[:3]))
        return sums.score(note)

    def names(self, rows: np.ndarray) -> Sequence[str]:
        return self.split.ids[rows]

    def mean_cosine(self) -> Score:
        return self.seen.mean_cosine(self.form)

    def some_rows(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        plan, numbers = self.seen.plan, self.split.test[places]
        blocks = [plan.block(side, self.passes.take(side, numbers)) for side in (0, 1)]
        pairs = zip(plan.forms[self.form], blocks, strict=True)
        return tuple(form.mapped(block.centred(form.frame)).astype(np.float32) for form, block in pairs)

    def nearest_labelled(self, labelled: np.ndarray, queries: np.ndarray, k: int) -> tuple[np.ndarray, ...]:
        rows = self.split.test[labelled]
        asked = np.isin(self.seen.plan.roles.queries, rows)
        return tuple(np.searchsorted(rows, nearest) for nearest in self.voters(asked, k))

    def voters(self, asked: np.ndarray, k: int) -> list[np.ndarray]:
        """The row numbers of the k labelled rows nearest to some of the queries in the other space, (m, k)
        per direction.
        """
        crossing = [search for search in self.seen.plan.searched(self.form) if search.base != search.queries]
        lists = {search.base: search for search in crossing}  # that of labelled rows comes after that of all
        return [self.seen.nearest(self.form, search)[asked, :k] for search in lists.values()]

    def narrowed(self, question: Question, split: Split, queries: np.ndarray) -> PassedPair | None:
        """The answer to `question` on the rows of `split`, some of these rows, with these queries (row
        numbers).

        None where it takes a pass: the question is another, or too many rows or a row that was no query are
        missing.
        """
        plan, roles = self.seen.plan, self.seen.plan.roles
        gone = np.setdiff1d(split.anchors, roles.left_out)
        known = replace(plan.question, forms=question.forms, sums=question.sums, spare=0)
        inside = len(split.test) + len(gone) == len(self.split.test)
        fits = known == question and len(gone) <= plan.question.spare and inside
        if not (fits and np.isin(queries, roles.queries).all()):
            return None
        labels = None if self.labels is None else self.labels[~np.isin(self.split.test, gone)]
        return PassedPair(self.seen.narrowed(gone, queries), self.form, split, self.passes, labels=labels)


def groups_of(forms: Sequence[str]) -> list[tuple[str, ...]]:
    """The absolute representation, which is scored on all rows, and the others."""
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
    device: str = "auto",
    keep: Callable[[str, PassedPair], None] | None = None,
) -> dict[str, dict[str, Score]]:
    """`comparison.score_pair` of each representation on its held-out rows: of many rows from one pass over
    them for all.

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
    if len(match) <= FEW_ROWS and keep is None and device in ("auto", "cpu"):
        scores = {}
        for form in forms:
            split = scored_rows(match, anchor_ids, form, k, convention)
            rows = represent(match, form, anchor_ids, projection)
            facts = {"k": k, "convention": convention, "n_queries": n_queries}
            scores[form] = score_pair(*rows, split, metrics=metrics, labels=labels, **facts)
        return scores
    used = any(form != "absolute" for form in forms)
    anchors = match.source.rows(shared_anchors(anchor_ids, match.source, match.target) if used else ())
    asked = Question((), projection, k, convention, cosines=keep is not None, spare=SPARE if keep else 0)
    passes = Passes(match.source.vectors, match.target.vectors, device, done, labels)
    splits, parts = {}, []
    for group in groups_of(forms):
        split = scored_rows(match, anchor_ids, group[0], k, convention)
        splits |= dict.fromkeys(group, split)
        own = anchors if group[0] != "absolute" else NO_ROWS
        roles = RowRoles(len(match), own, split.queries(n_queries), np.sort(split.anchors), passes.labelled)
        parts.append((replace(asked, forms=group), roles))
    pairs = {}
    for seen in passes.seen(parts):
        for form in seen.plan.forms:
            rows = partial(represent, match, form, anchor_ids, projection)
            of_form = None if labels is None else labels[splits[form].test]
            pairs[form] = PassedPair(seen, form, splits[form], passes, rows, of_form)
    scores = {form: scores_of(pairs[form], metrics) for form in forms}
    for form, pair in pairs.items() if keep is not None else ():
        pair.seen.slim()
        keep(form, pair)
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
        rows = (represent(match, form, anchors, projection) for anchors in (before, now))
        return score_differences(*rows, split, k=k, convention=convention, n_queries=n_queries, labels=labels)
    question = Question((form,), projection, k, convention, sums=False, cosines=True)
    passes = Passes(match.source.vectors, match.target.vectors, device, labels=labels)
    of_split = None if labels is None else labels[split.test]

    def passed(anchors: Sequence[str]) -> PassedPair:
        used = () if form == "absolute" else shared_anchors(anchors, match.source, match.target)
        known = (kept or {}).get(tuple(anchors))
        if known is not None and (narrowed := known.narrowed(question, split, queries)):
            return narrowed
        rows = match.source.rows(used)
        roles = RowRoles(len(match), rows, queries, np.sort(split.anchors), passes.labelled)
        (seen,) = passes.seen([(question, roles)])
        return PassedPair(seen, form, split, passes, labels=of_split)

    first = passed(before)
    pairs = first, first if form == "absolute" else passed(now)
    return differences_of(*pairs)
