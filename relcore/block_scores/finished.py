"""The scores' sums and neighbour lists from what a pass has gathered."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from relcore.block_scores.block_sums import BlockSums
from relcore.block_scores.forms import Form
from relcore.block_scores.plan import BlockPlan, Take
from relcore.block_scores.question import ScoredRows
from relcore.metrics.calibration import Score
from relcore.metrics.cautions import most_decisive, standing_apart
from relcore.metrics.cka_sums import CkaSums, CosineSums, SpaceSums, decided_note
from relcore.metrics.neighbours import Neighbours, without_itself
from relcore.metrics.rv_null import RowSums


@dataclass(frozen=True, eq=False)
class FormSums:
    """Scores of one representation from sums; `without` are those of a second pass that left the `decisive` rows out.

    It is what `AlignedPair.sums` holds for the metrics.
    """

    form: str
    seen: BlockSums
    decisive: np.ndarray
    without: FormSums | None = None

    def linear_cka(self, ids: np.ndarray) -> Score:
        """As `metrics.cka.linear_cka`; `ids` of the rows that are scored name the decisive ones."""
        found, note = cka_sums(self.seen, self.form), ""
        if self.without:
            scored = self.seen.plan.rows.scored(self.seen.plan.question.kind(self.form))
            other = cka_sums(self.without.seen, self.form)
            note = decided_note(found.value, other.value, scored.places(self.decisive), ids)
        return found.score(note)

    def mean_cosine(self) -> Score:
        """As `metrics.cka.mean_cosine`."""
        seen, name = self.seen, self.form
        n = seen.plan.rows.n_scored(seen.plan.question.kind(name))
        means = [seen.total(name, f"{name}/unit sum/{side}") / n for side in (0, 1)]
        products = [seen.total(name, f"{name}/unit gram/{side}") - n * np.outer(mean, mean) for side, mean in enumerate(means)]
        paired, between = seen.paired(name), seen.plan.between(name)
        if between is None:
            return CosineSums(n, paired / n, means[0] @ means[1], float(np.vdot(*products))).score()
        of_products = np.vdot(products[0] @ between, between @ products[1])
        return CosineSums(n, paired / n, means[0] @ between @ means[1], of_products).score()


def cka_sums(seen: BlockSums, name: str) -> CkaSums:
    """The sums of linear CKA of one representation, about the mean of its rows."""
    plan = seen.plan
    n = plan.rows.n_scored(plan.question.kind(name))
    forms = plan.forms[name]
    offsets = [seen.total(name, f"{form.frame}/sum/{side}") / n for side, form in enumerate(forms)]
    cross = seen.total(name, f"{forms[0].frame}/cross") - n * np.outer(*offsets)
    cross = forms[0].mapped_products(cross, forms[1])
    return CkaSums(n, float(np.vdot(cross, cross)), *(_space_sums(seen, name, side) for side in (0, 1)))


def decisive_rows(seen: BlockSums, name: str) -> np.ndarray:
    """As `metrics.cautions.decisive_rows`, by their row numbers."""
    found, n = [], seen.plan.rows.n_scored(seen.plan.question.kind(name))
    for side in (0, 1):
        top = seen.tops[f"{name}/{side}/longest"]
        longest = slice(0, most_decisive(n) + 1)
        fourth = seen.total(name, f"{name}/{side}/powers")[1]
        found.append(standing_apart(top.rows[0, longest], top.values[0, longest].astype(np.float64), float(fourth)))
    rows = np.unique(np.concatenate(found))
    return rows if n - len(rows) >= 4 else rows[:0]


def _space_sums(seen: BlockSums, name: str, side: int) -> SpaceSums:
    """Sums about the mean, from those about a centre that is close to it: with e = mean − centre and ‖x − e‖² = l + c,
    c = ‖e‖² − 2 e·x, every sum but Σ l c² is exact; that one takes l and c as unrelated, and is of second order in e."""
    plan, form = seen.plan, seen.plan.forms[name][side]
    kind = plan.question.kind(name)
    n = plan.rows.n_scored(kind)
    total, gram = (seen.total(name, f"{form.frame}/{what}/{side}") for what in ("sum", "gram"))
    weighted, twice = (form.mapped(seen.total(name, f"{name}/{side}/{what}")) for what in ("weighted", "weighted twice"))
    first, second, third = seen.total(name, f"{name}/{side}/powers")
    e, gram = form.mapped(total / n), form.mapped_products(gram)
    ee = e @ e
    change = -n * ee  # Σ c
    squared = 4 * e @ gram @ e - 3 * n * ee**2  # Σ c²
    powers = (
        first + change,
        second + 2 * (ee * first - 2 * e @ weighted) + squared,
        third + 3 * (ee * second - 2 * e @ twice) + 3 * first / n * squared,
    )
    weighted = weighted - e * first + (n * ee * e - 2 * gram @ e) - e * change
    gram = gram - n * np.outer(e, e)
    square = float(np.vdot(gram, gram))
    spread = float(np.sqrt(max(powers[0], 0) / n))
    origin = _origin(plan, form, side)
    if square == 0 or n < 2:
        return SpaceSums(square, None, spread, float(np.linalg.norm(origin + e)))
    centred = plan.block(side, plan.gathered[f"sample {kind}"][side]).centred(form.frame)
    rows = form.mapped(centred.astype(np.float64)) - e
    sums = RowSums.from_sums(n, powers, rows, np.vecdot(rows, rows), gram, weighted)
    return SpaceSums(square, sums, spread, float(np.linalg.norm(origin + e)))


def _origin(plan: BlockPlan, form: Form, side: int) -> np.ndarray:
    """Where the centre of the coordinates is in the representation."""
    if form.of_centred:
        return np.zeros(1) if form.shift is None else form.shift.astype(np.float64)
    return form.mapped(plan.frames[side][form.frame].centre.astype(np.float64))


@dataclass(frozen=True, eq=False)
class PassedNeighbours(Neighbours):
    """Neighbour lists from a pass: rows that a note wants are taken again, a few hundred."""

    form: str = ""
    plan: BlockPlan | None = None
    take: Take | None = None
    lists: tuple[np.ndarray, ...] = ()
    scored: ScoredRows | None = None

    @property
    def n(self) -> int:
        return len(self.scored)

    @cached_property
    def retrievals(self) -> tuple[np.ndarray, ...]:
        return tuple(found[:, : self.k] for found in self.lists)

    def vectors(self, side: str, rows: np.ndarray) -> np.ndarray:
        number = ("source", "target").index(side)
        return self.plan.directions(self.form, number, self.take(number, self.scored.at(rows)))


def neighbours_of(seen: BlockSums, name: str, take: Take) -> PassedNeighbours:
    """The neighbour lists of one representation; row numbers count the rows that are scored, as elsewhere."""
    plan = seen.plan
    question, kind = plan.question, plan.question.kind(name)
    scored = plan.rows.scored(kind)
    queries = scored.places(plan.rows.queries[kind])

    def lists(side: int, title: str) -> np.ndarray | None:
        top = seen.tops.get(f"{name}/{side}/{title}")
        return None if top is None else scored.places(top.rows[:, : top.rows.shape[1] - question.spare])

    forward, backward = lists(1, "forward"), lists(0, "backward")
    if question.convention == "paper":
        own, other = lists(1, "own"), forward[:, : question.k]
    else:
        own, other = (without_itself(queries, lists(side, title)) for side, title in ((0, "own"), (1, "other")))
    crossing = tuple(found for found in (forward, backward) if found is not None)
    return PassedNeighbours(None, None, queries, own, other, question.convention, "cpu", name, plan, take, crossing, scored)


def labelled_lists(seen: BlockSums, name: str, labelled: np.ndarray, k: int) -> tuple[np.ndarray, ...]:
    """The k labelled rows nearest to each labelled query in the other space, (m, k) of the count of labelled rows `labelled`
    (row numbers), one array per direction."""
    plan = seen.plan
    queries = np.isin(plan.rows.queries[plan.question.kind(name)], labelled)
    found = []
    for side, title in ((1, "forward"), (0, "backward"))[: 1 + (plan.question.convention == "mutual")]:
        top = seen.tops.get(f"{name}/{side}/{title} labelled") or seen.tops[f"{name}/{side}/{title}"]
        found.append(np.searchsorted(labelled, top.rows[queries, :k]))
    return tuple(found)
