"""Whether rows with the same id are the same item, and how pairs are split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.numbers import counted, short
from relcore.base.rows import unit_rows
from relcore.migrate.adapters import WhitenedRelativeAdapter
from relcore.represent.similarity import rows_among
from relcore.represent.strategies import select_anchors
from relcore.spaces.ids import scored_rows
from relcore.spaces.matching import Match
from relcore.spaces.split import TEST_FRACTION, row_keys, smallest_keys

# A test that pairs belong together. New rows that are held out of a fit must find their partners better than
# by chance, and better than if the rows of one file are shifted.

FEWEST_PAIRS = 25
SHIFTS = range(-5, 6)
_MOST_ROWS = 240
_CLEAR = 3.1  # minimum standard errors above chance; unrelated pairs exceed them once in 1,000 times
# from 50 rows on, a stricter limit than _CLEAR; true pairs on Cranfield exceed 9
_MANY = 50
_CLEARER = 4.5
_REPEATED = 0.05
_REPEATED_LESS = 0.2
_UNIT = 1e-2


@dataclass(frozen=True)
class Pairing:
    """The result of `check_pairs`, a test whether row i of one space belongs to row i of another one. `score`
    is the mean reciprocal rank of the partners of n held-out rows. `chance` and `error` are the mean and the
    standard error of this score for random ranks.

    `behind` is the mean share of rows that rank behind the partner (.5 by chance). If one file seems to be
    shifted by some rows, `shift` is the number of rows, and `shifted` is the score after the shift is undone.
    """

    score: float
    chance: float
    error: float
    behind: float
    n: int
    shift: int = 0
    shifted: float = 0.0

    @property
    def is_clear(self) -> bool:
        # Also test the share behind, because a few unrelated rows that rank first can raise the mean.
        clear = _CLEAR if self.n < _MANY else _CLEARER
        return self.score > self.chance + clear * self.error and self.behind > 0.5 + clear / np.sqrt(
            12 * self.n
        )

    def need(self) -> None:
        """Raise a SpaceError if the pairs do not belong together. If a shift explains this, the error names
        it."""
        score = f"mean reciprocal rank {short(self.score)}"
        if self.shift:
            place = f"{counted(abs(self.shift), 'row')} further {'down' if self.shift > 0 else 'up'}"
            raise SpaceError(
                f"pairs: expected each new row to belong to the old row of the same id ({score}), got"
                f" partners that are found {place} ({short(self.shifted)}): the rows are shifted by"
                f" {self.shift:+d}; look for a header or a missing row in one of the files"
            )
        if not self.is_clear:
            raise SpaceError(
                "pairs: expected new rows that belong to the old rows of the same ids, got"
                f" {self.n:,} held-out rows that find their partners no better than by chance ({score},"
                f" chance {short(self.chance)}); the rows are in another order, or the models have nothing in"
                " common"
            )


def check_pairs(
    new: np.ndarray, old: np.ndarray, random_state: int = 0, names: Sequence[str] = ()
) -> Pairing:
    """Test whether row i of `new` (m, d_new) and row i of `old` (m, d_old) describe the same item. An adapter
    is fitted on one half of the pairs; the mapped new rows of the other half then search their partners among
    the old rows. The halves are exchanged.

    The test is repeated with row i + s of `old` in place of row i, for shifts s from −5 to 5. Raises a
    SpaceError, with the `names` of the two spaces, for fewer than 25 pairs.
    """
    _require_pairs(len(new), names)
    shifts = _shifts(len(new))
    rows = _tested_rows(len(new), shifts, random_state)
    odd = np.arange(len(rows)) % 2 == 1
    sizes = np.where(odd, odd.sum(), (~odd).sum())  # the number of rows among which a partner is ranked
    (chance, error) = _random_score(sizes)
    ranks = {}
    pairings = {}
    for shift in shifts:
        reciprocal = _reciprocal_ranks(unit_rows(new[rows]), unit_rows(old[rows + shift]), odd)
        behind = float(((sizes - 1 / reciprocal) / (sizes - 1)).mean())
        ranks[shift] = reciprocal
        pairings[shift] = Pairing(float(reciprocal.mean()), chance, error, behind, len(rows))
    best = max(pairings, key=lambda shift: pairings[shift].score)
    if pairings[best].is_clear and _is_clear_gain(ranks[best] - ranks[0]):
        return replace(pairings[0], shift=best, shifted=pairings[best].score)
    return pairings[0]


def _require_pairs(m: int, names: Sequence[str]) -> None:
    """Raise a SpaceError for fewer than 25 pairs."""
    if m >= FEWEST_PAIRS:
        return
    where = ""
    if names:
        where = f" in {' and '.join(map(repr, names))}"
    raise SpaceError(
        f"pairs: expected {FEWEST_PAIRS} rows or more that both models have embedded, got {m}{where};"
        " embed some more"
    )


def _shifts(m: int) -> Sequence[int]:
    """The shifts that are tested on m pairs: none but 0 if too few rows have a partner at every shift."""
    if m >= FEWEST_PAIRS + 2 * max(SHIFTS):
        return SHIFTS
    return (0,)


def _tested_rows(m: int, shifts: Sequence[int], random_state: int) -> np.ndarray:
    """The numbers of up to 240 of m rows, drawn by a hash, that have a partner at each of the shifts."""
    without_partner = None
    reach = max(shifts)
    if reach:
        without_partner = np.concatenate([np.arange(reach), np.arange(m - reach, m)])
    return smallest_keys(m, _MOST_ROWS, "pairing", random_state, without_partner)


def _random_score(sizes: np.ndarray) -> tuple[float, float]:
    """The mean and the standard error of the mean reciprocal rank, if each rank is drawn at random among as
    many rows as `sizes` (n,) says."""
    reciprocals = [1 / np.arange(1, size + 1) for size in sizes]
    mean = float(np.mean([one.mean() for one in reciprocals]))
    error = float(np.sqrt(sum(one.var() for one in reciprocals)) / len(sizes))
    return mean, error


def _is_clear_gain(gain: np.ndarray) -> bool:
    """Whether the mean of these differences (n,) of reciprocal ranks is above 0 beyond chance."""
    return bool(gain.mean() > _CLEAR * gain.std() / np.sqrt(len(gain)))


def _reciprocal_ranks(new: np.ndarray, old: np.ndarray, odd: np.ndarray) -> np.ndarray:
    reciprocal = np.empty(len(new))
    for held in (odd, ~odd):
        adapter = WhitenedRelativeAdapter().fit(new[~held], old[~held])
        scores = adapter.transform(new[held]) @ adapter.corpus(old[held]).T
        own = np.diag(scores)[:, None]
        tied = (np.isclose(scores, own, atol=1e-6).sum(axis=1) - 1) / 2
        reciprocal[held] = 1 / (1 + (scores > own).sum(axis=1) + tied)
    return reciprocal


def preprocessing_cautions(new: np.ndarray, old: np.ndarray) -> list[str]:
    """Warnings to show if exact duplicates are much more frequent among the rows of one model than of the
    other. This suggests that one model saw only the beginnings of the texts.
    """
    shares = [1 - len(np.unique(np.asarray(rows, np.float32), axis=0)) / len(rows) for rows in (new, old)]
    sides = (("new", "old", *shares), ("old", "new", *shares[::-1]))
    return [
        f"{short(share, 2)} of the {name} rows repeat another {name} row, and {short(less, 2)} of the {other}"
        f" ones do: the {name} model's texts may have been cut, or prepared in another way."
        for name, other, share, less in sides
        if share > _REPEATED and less < _REPEATED_LESS * share
    ]


def length_cautions(corpus: np.ndarray, queries: np.ndarray, name: str) -> list[str]:
    is_unit = [bool(np.abs(np.linalg.norm(X[:1000], axis=1) - 1).max() < _UNIT) for X in (corpus, queries)]
    if is_unit[0] == is_unit[1]:
        return []
    if is_unit[0]:
        some = "rows"
        others = "queries"
    else:
        some = "queries"
        others = "rows"
    return [
        f"The {name} model's {some} have length 1 and its {others} have not: they may have been prepared"
        " differently."
    ]


MOST_FITTED = 20_000


class PairSplit(NamedTuple):
    """A split of pairs, as ascending row numbers: the pairs to fit an adapter on, and held-out pairs to test
    it on. Pairs with the same vector as a fitted pair are not held out; `n_repeated` is their number.

    Fitted rows are neither used as queries nor searched, because an adapter maps them better than other rows.
    """

    fitted: np.ndarray
    held_out: np.ndarray
    n_repeated: int


def parts_of(paired: Match, n_pairs: int, strategy: str, judged: bool, random_state: int = 0) -> PairSplit:
    """Split the pairs into those to fit on, which are selected by the strategy in the old space, and held-out
    ones, which are drawn by a hash of their ids. Pairs that were only guessed are never held out.

    The source of `paired` is the old space. If `n_pairs` is 0, all pairs that are not held out are used to
    fit. If `judged`, there are other queries, so no pair needs to be held out. Raises a SpaceError for too
    few pairs.
    """
    n = len(paired)
    least = 0 if judged else FEWEST_PAIRS
    if 0 < n_pairs < FEWEST_PAIRS or max(n_pairs, FEWEST_PAIRS) > n - least:
        wanted = f"{FEWEST_PAIRS} or more to fit on"
        if least:
            wanted = f"{wanted} and {least} held out"
        raise SpaceError(
            f"pairs: expected {wanted}, got {n_pairs or 'all'} of {n:,} rows that both models have embedded;"
            " choose another number, or embed more"
        )
    order = np.argsort(row_keys(paired.ids, "pairs", random_state), kind="stable")
    known = scored_rows(paired.ids)
    order = np.r_[order[~known[order]], order[known[order]]]
    n_held = max(least, int(n * TEST_FRACTION))
    if strategy == "random" or not n_pairs:
        n_free = n if judged else n - n_held
        n_fitted = min(n_pairs or n_free, MOST_FITTED)
        fitted = order[:n_fitted]
        held = order[n_fitted:]
    else:
        n_held = min(n - n_pairs, n_held)
        held = order[n - n_held :]
        candidates = np.sort(order[: n - n_held])
        chosen = select_anchors(paired.source.take(candidates), n_pairs, strategy, random_state=random_state)
        fitted = paired.source.rows(chosen)
    held = held[known[held]]
    if len(held) < least:
        raise SpaceError(
            f"pairs: expected {least} or more to hold out, got {len(held)}: of links that are guesses,"
            " only those that you confirmed are scored; confirm more in Connect, Link"
        )
    repeated = np.zeros(len(held), dtype=bool)
    for side in (paired.source, paired.target):
        repeated |= rows_among(side.vectors[held], side.vectors[fitted])
    return PairSplit(fitted, np.sort(held[~repeated]), int(repeated.sum()))
