"""Search the reasons why two matched spaces differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from relcore.base.rows import centred, mean_row, unit_rows
from relcore.engine.nearest import nearest_within
from relcore.explain.coarser import COARSE_ROWS, Coarsening, Coarser, CoarserSearch, coarser_space
from relcore.explain.columns import CONTAINS, MATCHES, families_of_spaces
from relcore.explain.families import Feature, FeatureFamily, Features
from relcore.explain.moved import moved_rows
from relcore.explain.reason import ExampleRow, Reason, ReasonPart
from relcore.explain.reasons import (
    SMALLEST,
    FeatureEvidence,
    Proposable,
    effects,
    evidence_of,
    proposed,
    smallest_effect,
    standard_error,
)
from relcore.explain.responses import Response, column_of, common_shares, of_neighbours, shares
from relcore.explain.result import Explanation
from relcore.runs.work import Progress, silent
from relcore.scores.score import Z95
from relcore.spaces.matching import Match, distinct_names
from relcore.spaces.split import row_keys

MOST_REASONS = 5
STATED_SHARES = (0.01, 0.1)  # shares of the rows for which the smallest effect is stated
STEPS = 3
_MULTIPLICATIONS = 6e10  # of a search, which two cores do in some seconds
_FEWEST_QUERIES = 4000
_MOST_COARSE = 4000  # number of queries if one space is coarser, which takes five more searches
_REGION = 40  # number of queries per region
_PARTS = 3
_EXAMPLES = 3
_DEVIATION = 3.5  # z-score from which a feature stands out in its family
_ALIKE = 0.5  # of two features with this share of their rows in common, one is listed


@dataclass(frozen=True, eq=False)
class ReasonSearch:
    """The search for reasons in a match whose rows are few enough to compare.

    Attributes
    ----------
    pair : Match
        The two spaces to explain, then others.
    families : sequence of FeatureFamily
        Features of the rows of the match. Those of the spaces themselves are added.
    n : int
        Number of rows of which those of the match are a sample.
    """

    pair: Match
    families: Sequence[FeatureFamily]
    of_rows: str
    k: int
    random_state: int
    n: int

    @cached_property
    def queries(self) -> np.ndarray:
        """The numbers of the compared rows (m,), drawn by a hash of their ids."""
        n = len(self.pair)
        width = sum(space.dimension for space in self.pair.spaces)
        m = int(min(n, max(_FEWEST_QUERIES, _MULTIPLICATIONS / (n * width))))
        keys = row_keys(self.pair.ids, "explain", self.random_state)
        return np.sort(np.argsort(keys, kind="stable")[:m])

    @cached_property
    def units(self) -> tuple[np.ndarray, ...]:
        spaces = self.pair.spaces
        return tuple(unit_rows(centred(space.vectors, mean_row(space.vectors))) for space in spaces)

    @cached_property
    def lists(self) -> tuple[np.ndarray, ...]:
        """The neighbours (m, k) of the queries in each space."""
        return tuple(nearest_within(units, self.queries, self.k) for units in self.units)

    @property
    def both(self) -> tuple[np.ndarray, np.ndarray]:
        """The neighbours (m, k) of the queries in the two spaces that are explained."""
        return self.lists[0], self.lists[1]

    @cached_property
    def features(self) -> Features:
        n = len(self.pair)
        hubs = np.zeros(n)
        for near in self.lists[:2]:
            hubs += np.bincount(near.ravel(), minlength=n)
        spaces = families_of_spaces(self.pair, hubs, self.of_rows)
        return Features([*self.families, *spaces], n)

    @cached_property
    def suggesting(self) -> np.ndarray:
        """The queries (m,) of the half that suggests reasons; the others test them."""
        return row_keys(self.pair.ids[self.queries], "explain halves", self.random_state) < 0.5

    @cached_property
    def regions(self) -> np.ndarray:
        """The region of each query (m,): the nearest of some queries that are drawn, in both spaces."""
        rng = np.random.default_rng(self.random_state)
        m = len(self.queries)
        centres = self.queries[rng.permutation(m)[: max(2, m // _REGION)]]
        closeness = sum(units[self.queries] @ units[centres].T for units in self.units[:2])
        return np.asarray(closeness).argmax(axis=1)

    def result(self, report: Progress = silent) -> Explanation:
        report(0, STEPS, "searching the neighbours")
        response = of_neighbours(self.queries, self.both, self.features, self.regions)
        report(1, STEPS, "testing whether one space is coarser")
        plain_suggesting = response.of_part(self.suggesting)
        plain = response.of_part(~self.suggesting)
        coarser, responses = self._beyond_noise(plain_suggesting)
        report(2, STEPS, "searching the reasons")
        suggesting = [plain_suggesting]
        testing = [plain]
        if responses:
            suggesting = [one.of_part(self.suggesting) for one in responses]
            testing = [one.of_part(~self.suggesting) for one in responses]
        found = evidence_of(testing, proposed(suggesting, self._candidates(coarser)), len(self.features))
        significant = [one for one in found if one.significant]
        reasons = [self._reason(plain, plain_suggesting, one) for one in significant]
        kept = [reason for reason in reasons if reason is not None][:MOST_REASONS]
        numbers = [one.number for one, reason in zip(significant, reasons, strict=True) if reason in kept]
        first, second = self.both
        tried = testing[0]
        churn = 1 - common_shares(first, second)
        return Explanation(
            names=tuple(distinct_names(self.pair.spaces)),
            n=self.n,
            n_rows=len(self.pair),
            k=self.k,
            n_queries=len(self.queries),
            families=tuple(family.name for family in self.features.families),
            n_features=len(self.features),
            overlap=1 - float(churn.mean()),
            coarser=coarser,
            reasons=tuple(kept),
            own=self._own(plain, plain_suggesting, testing),
            moved=moved_rows(self.queries, churn, self.features, self.suggesting, self.regions),
            explained=_explained(plain, numbers),
            smallest=tuple(smallest_effect(tried, share, len(self.features)) for share in STATED_SHARES),
        )

    def _candidates(self, coarser: Coarser | None) -> Proposable:
        """Features that were made from the spaces are sought last, and not at all if one space is coarser,
        because that changes them, too."""
        of_spaces = self.features.of_spaces
        never = of_spaces & (coarser is not None)
        return Proposable(self.features.whole_of, of_spaces, never)

    def _beyond_noise(self, suggesting: Response) -> tuple[Coarser | None, list[Response]]:
        """How one space is coarser than the other, and the responses that features must explain then. For
        each kind of coarsening there is one response: the differences that remain after the other space is
        made as coarse. (None, []) if neither space is coarser."""
        if not proposed([suggesting], self._candidates(None)):
            return None, []
        n = len(self.pair)
        some = np.sort(np.random.default_rng(self.random_state).permutation(n)[:COARSE_ROWS])
        spaces = self.pair.spaces[:2]
        vectors = (spaces[0].vectors[some], spaces[1].vectors[some])
        found = coarser_space(CoarserSearch(vectors, self.features.at(some), self.k, self.random_state))
        if found is None:
            return None, []
        coarser, fits = found
        responses = []
        for one in fits:
            coarsening = Coarsening(spaces[1 - coarser.side].vectors, one.kind, self.random_state)
            near = nearest_within(coarsening.rows(one.level), self.queries, self.k)
            lists = (near, self.lists[1])
            if coarser.side == 0:
                lists = (self.lists[0], near)
            responses.append(of_neighbours(self.queries, lists, self.features, self.regions))
        return coarser, responses

    def _reason(self, response: Response, suggesting: Response, found: FeatureEvidence) -> Reason | None:
        """The reason for a tested feature. None if the plain difference has another sign than what was
        tested, or is too small, which may be where one space is coarser."""
        inside = response.members_of(found.number)
        rows = response.rows_of(found.number, response.whole())
        difference = float(rows.sum() / inside.sum())
        if difference * found.effect <= 0 or abs(difference) < SMALLEST:
            return None
        return self._described(response, suggesting, found)

    def _described(self, response: Response, suggesting: Response, found: FeatureEvidence) -> Reason:
        feature = self.features.listed[found.number]
        inside = response.members_of(found.number)
        rows = response.rows_of(found.number, response.whole())
        difference = float(rows.sum() / inside.sum())
        terms = response.having_feature(found.number)
        reach = Z95 * standard_error(response, rows, inside, terms)
        return Reason(
            title=feature.title,
            short=feature.short,
            family=feature.family,
            whole=feature.whole,
            n=int(inside.sum()),
            shares=self._shares(found.number, inside),
            difference=difference,
            low=difference - reach,
            high=difference + reach,
            beyond=found.effect,
            p=found.p,
            predicted=self._predicted(found.number),
            parts=self._parts(response, suggesting, found.number),
            examples=self._examples(response, found.number, np.sign(difference)),
            rows=self._rows_with(found.number),
        )

    def _own(self, response: Response, suggesting: Response, testing: list[Response]) -> tuple[Reason, ...]:
        """The user's own features, each tested alone, whether they are reasons or not. Their p-values are
        corrected for their number only, because the rows did not suggest them."""
        numbers = [
            number
            for number, feature in enumerate(self.features.listed)
            if feature.family.startswith((CONTAINS, MATCHES)) and response.members_of(number).sum() > 1
        ]
        evidence = [evidence_of(testing, [number], len(numbers))[0] for number in numbers]
        return tuple(self._described(response, suggesting, one) for one in evidence)

    @cached_property
    def _features_of_rows(self) -> sparse.csc_matrix:
        return self.features.of_rows(np.arange(len(self.pair)))

    def _rows_with(self, number: int) -> np.ndarray:
        """The numbers of all rows with a feature, in the matched spaces."""
        return np.flatnonzero(column_of(self._features_of_rows, number))

    @property
    def _testing(self) -> np.ndarray:
        return self.queries[~self.suggesting]

    def _shares(self, number: int, inside: np.ndarray) -> tuple[float, ...]:
        """The share of the neighbours of the tested queries (m / 2,) bool that share a feature, in each
        space."""
        queries = self._testing[inside]
        found = []
        for near in self.lists:
            of_queries = shares(queries, near[~self.suggesting][inside], self.features, number)
            found.append(float(of_queries.mean()))
        return tuple(found)

    def _examples(self, response: Response, number: int, sign: float) -> tuple[ExampleRow, ...]:
        """The tested rows that have a feature and differ most, in the direction of this sign."""
        members = np.flatnonzero(response.members_of(number))
        differences = sign * response.rows_of(number, response.whole())[members]
        clearest = members[np.argsort(-differences, kind="stable")][:_EXAMPLES]
        return tuple(self._example(row, number) for row in self._testing[clearest].tolist())

    def _example(self, row: int, number: int) -> ExampleRow:
        place = int(np.searchsorted(self.queries, row))
        ids = self.pair.ids
        neighbours = []
        sharing = []
        for near in self.lists:
            neighbours.append(tuple(map(str, ids[near[place]])))
            shared = self.features.shared(np.full(near.shape[1], row), near[place])
            sharing.append(tuple(column_of(shared, number).tolist()))
        return ExampleRow(str(ids[row]), tuple(neighbours), tuple(sharing))

    def _predicted(self, number: int) -> tuple[float, ...]:
        """In each space, the correlation of the numbers of the tested queries with the mean of their
        neighbours; () for features that are no family of numbers."""
        feature = self.features.listed[number]
        values = next(one.values for one in self.features.families if one.name == feature.family)
        if values is None or not feature.whole:
            return ()
        own = values[self._testing]
        found = []
        for near in self.lists:
            means = values[near[~self.suggesting]].mean(axis=1)
            known = np.isfinite(own) & np.isfinite(means)
            found.append(float(np.corrcoef(own[known], means[known])[0, 1]))
        return tuple(found)

    def _parts(self, response: Response, suggesting: Response, number: int) -> tuple[ReasonPart, ...]:
        """The features of a family, and of families of its kind, that differ more than the family does. The
        half of the queries that suggests reasons chooses them, and the other half measures them. () for a
        feature that is no family."""
        if not self.features.listed[number].whole:
            return ()
        means, errors, n = effects(suggesting, suggesting.whole())
        sign = np.sign(means[number])
        beyond = sign * (means - means[number]) / np.maximum(errors, 1e-9)
        kind = _kind_of(self.features.listed[number])
        candidates = [
            candidate
            for candidate, feature in enumerate(self.features.listed)
            if _kind_of(feature) == kind and not feature.whole and beyond[candidate] > _DEVIATION
        ]
        # Large differences from the family come first; √n ranks those of few queries lower, which are noisy.
        gains = beyond * errors * np.sqrt(n)
        candidates.sort(key=lambda candidate: -gains[candidate])
        parts: list[ReasonPart] = []
        for candidate in candidates:
            rows = self._rows_with(candidate)
            if any(_common(rows, part.rows) > _ALIKE for part in parts):
                continue
            inside = response.members_of(candidate)
            n_inside = int(inside.sum())
            if n_inside < 2:
                continue
            feature = self.features.listed[candidate]
            examples = self._examples(response, candidate, sign)
            shares_of = self._shares(candidate, inside)
            parts.append(ReasonPart(feature.title, feature.short, n_inside, shares_of, examples, rows))
            if len(parts) == _PARTS:
                break
        return tuple(parts)


def _kind_of(feature: Feature) -> str:
    """The kind of a feature's family: "ending" for the families "ending of 2 letters" and "ending of 3
    letters"."""
    return feature.family.partition(" of ")[0]


def _common(first: np.ndarray, second: np.ndarray) -> float:
    """The number of common rows, as a share of the smaller set."""
    both = len(np.intersect1d(first, second, assume_unique=True))
    return both / min(len(first), len(second))


def _explained(response: Response, numbers: Sequence[int]) -> tuple[float, float]:
    """Of the pairs of neighbours that only the first space has (only the second), the share with one of these
    features."""
    having = np.zeros(len(response.weights), dtype=bool)
    for number in numbers:
        having |= response.having_feature(number)
    found = []
    for side in (response.weights > 0, response.weights < 0):
        found.append(float(having[side].mean()) if side.any() else 0.0)
    return found[0], found[1]
