"""Which paired rows an adapter is fitted on, and which are held out and scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.numbers import counted, short
from relcore.migrate.adapters import WhitenedRelativeAdapter
from relcore.represent.anchors import select_anchors
from relcore.represent.similarity import rows_among, unit_rows
from relcore.spaces.space import Match
from relcore.spaces.split import TEST_FRACTION, row_keys, smallest_keys

# Whether pairs pair: held-out new rows must find their partners far better than chance, and better than at a
# shift.

FEWEST = 25
SHIFTS = range(-5, 6)
_MOST_ROWS = 240
_CLEAR = 3.1  # standard errors; .001 of unrelated pairs are above
_MANY, _CLEARER = 50, 4.5  # from this number of rows on, true pairs on Cranfield are above 9
_REPEATED, _REPEATED_LESS = 0.05, 0.2
_UNIT = 1e-2


@dataclass(frozen=True)
class Pairing:
    """How well pairs pair.

    Attributes
    ----------
    score : float
        Mean reciprocal rank of held-out rows' partners among the held-out rows.
    chance, error : float
        Its mean and standard error where rows are unrelated.
    behind : float
        Mean share of the rows that are less similar than the partner; .5 by chance.
    n : int
        Rows that were tried.
    shift : int
        How many rows further down the partners are found best; 0 where they are found where they should be.
    shifted : float
        The score at that shift.
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
        """Whether partners are found better than by chance, by both of two measures.

        A few unrelated rows that come first raise the mean reciprocal rank, and hardly the share of rows
        behind: of 108 shuffled sets of 25 to 100 pairs on Cranfield, four passed by the former alone.
        """
        clear = _CLEAR if self.n < _MANY else _CLEARER
        return self.score > self.chance + clear * self.error and self.behind > 0.5 + clear / np.sqrt(
            12 * self.n
        )

    def need(self) -> None:
        """
        Raises
        ------
        SpaceError
            The pairs do not pair, with the shift where one is found.
        """
        if self.shift:
            place = f"{counted(abs(self.shift), 'row')} further {'down' if self.shift > 0 else 'up'}"
            raise SpaceError(
                "pairs: expected each new row to belong to the old row of the same id, got partners that are"
                f" found {place} (mean reciprocal rank {short(self.shifted)}, {short(self.score)} at the"
                f" given rows): the rows are shifted by {self.shift:+d}; look for a header or a missing row"
                " in one of the files"
            )
        if not self.is_clear:
            raise SpaceError(
                "pairs: expected new rows that belong to the old rows of the same ids, got partners that"
                f" {self.n:,} held-out rows find no better than by chance (mean reciprocal rank"
                f" {short(self.score)}, chance {short(self.chance)}); the rows are in another order, or the"
                " two models have nothing in common"
            )


def check_pairs(
    new: np.ndarray, old: np.ndarray, random_state: int = 0, names: Sequence[str] = ()
) -> Pairing:
    """Whitened relative coordinates of one half of the pairs, tried on the other half, and vice versa; at
    eleven shifts.

    Parameters
    ----------
    new, old : arrays (m, d_new), (m, d_old)
        The pairs in the order of their files: a shift by s pairs new row i with old row i + s.
    names : of the old and the new space, for the error

    Raises
    ------
    SpaceError
        Fewer than 25 pairs.
    """
    m, reach = len(new), max(SHIFTS)
    if m < FEWEST:
        where = f" in {' and '.join(map(repr, names))}" if names else ""
        raise SpaceError(
            f"pairs: expected {FEWEST} rows or more that both models have embedded, got {m}{where}; embed"
            " some more"
        )
    shifts = SHIFTS if m >= FEWEST + 2 * reach else (0,)
    ends = np.concatenate([np.arange(reach), np.arange(m - reach, m)])  # an end has no row so much further on
    rows = smallest_keys(m, _MOST_ROWS, "pairing", random_state, ends if len(shifts) > 1 else None)
    n = len(rows)
    odd = np.arange(n) % 2 == 1
    sizes = np.where(odd, odd.sum(), (~odd).sum())  # the number of rows among which each row is searched
    terms = {int(size): 1 / np.arange(1, size + 1) for size in np.unique(sizes)}
    chance = sum(float(terms[size].mean()) for size in sizes.tolist()) / n
    error = np.sqrt(sum(float(terms[size].var()) for size in sizes.tolist())) / n
    ranks, tried = {}, {}
    for shift in shifts:
        ranks[shift] = found = _reciprocal_ranks(unit_rows(new[rows]), unit_rows(old[rows + shift]), odd)
        behind = float(((sizes - 1 / found) / (sizes - 1)).mean())
        tried[shift] = Pairing(float(found.mean()), float(chance), float(error), behind, n)
    best = max(tried, key=lambda shift: tried[shift].score)
    gain = ranks[best] - ranks[0]
    if tried[best].is_clear and gain.mean() > _CLEAR * gain.std() / np.sqrt(len(gain)):
        return replace(tried[0], shift=best, shifted=tried[best].score)
    return tried[0]


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
    """A caution where the share of rows that equal an earlier one to the last bit is much larger in one model
    than in the other, from the pairs' rows.
    """
    shares = {
        name: 1 - len(np.unique(np.ascontiguousarray(rows, dtype=np.float32), axis=0)) / len(rows)
        for name, rows in (("new", new), ("old", old))
    }
    return [
        f"{short(shares[name], 2)} of the {name} rows repeat another {name} row, and"
        f" {short(shares[other], 2)} of the {other} ones do: the {name} model's texts may have been cut,"
        " or prepared in another way."
        for name, other in (("new", "old"), ("old", "new"))
        if shares[name] > _REPEATED and shares[other] < _REPEATED_LESS * shares[name]
    ]


def length_cautions(corpus: np.ndarray, queries: np.ndarray, name: str) -> list[str]:
    """A caution where rows or queries alone have length 1."""
    is_unit = [bool(np.abs(np.linalg.norm(X[:1000], axis=1) - 1).max() < _UNIT) for X in (corpus, queries)]
    if is_unit[0] == is_unit[1]:
        return []
    some, others = ("rows", "queries") if is_unit[0] else ("queries", "rows")
    return [
        f"The {name} model's {some} have length 1 and its {others} have not: they may have been prepared"
        " differently."
    ]


MOST_FITTED = 20_000


@dataclass(frozen=True, eq=False)
class PairSplit:
    """Row numbers of the pairs.

    Attributes
    ----------
    fitted : array (m,)
        Never a query, and where held-out rows are the queries not searched either: an adapter brings a new
        vector that it was fitted on closer to its old one than others, so such rows would be found too well.
    held_out : array (h,)
        Ascending. Without rows that repeat a fitted one to the last bit.
    n_repeated : int
        Such rows.
    """

    fitted: np.ndarray
    held_out: np.ndarray
    n_repeated: int


def parts_of(paired: Match, n_pairs: int, strategy: str, judged: bool, random_state: int = 0) -> PairSplit:
    """Pairs to fit on, chosen by the strategy in the old space, and pairs that are held out, drawn by their
    ids before that.

    Parameters
    ----------
    paired : Match
        Its source is the old space.
    n_pairs : int
        0 takes all that are not held out.
    judged : bool
        Whether there are judged queries: then no pair needs to be held out.

    Raises
    ------
    SpaceError
        Too few pairs for both parts.
    """
    n, least = len(paired), 0 if judged else FEWEST
    if n_pairs and n_pairs < FEWEST:
        raise SpaceError(
            f"n_pairs: expected {FEWEST} or more, got {n_pairs}; fewer pairs do not tell how two models"
            " relate"
        )
    if n < FEWEST + least or n_pairs > n - least:
        wanted = f"{n_pairs or FEWEST:,} to fit on" + (f" and {least} held out" if least else "")
        raise SpaceError(
            f"pairs: expected {wanted}, got {n:,} rows that both models have embedded; choose fewer, or embed"
            " more"
        )
    order = np.argsort(row_keys(paired.ids, "pairs", random_state), kind="stable")
    n_held = max(least, int(n * TEST_FRACTION))
    if strategy == "random" or not n_pairs:
        n_fitted = min(n_pairs or (n if judged else n - n_held), MOST_FITTED)
        fitted, held = order[:n_fitted], order[n_fitted:]
    else:
        n_held = min(n - n_pairs, n_held)
        held, candidates = order[n - n_held :], np.sort(order[: n - n_held])
        chosen = select_anchors(paired.source.take(candidates), n_pairs, strategy, random_state=random_state)
        fitted = paired.source.rows(chosen)
    repeated = np.zeros(len(held), dtype=bool)
    for side in (paired.source, paired.target):
        repeated |= rows_among(side.vectors[held], side.vectors[fitted])
    return PairSplit(fitted, np.sort(held[~repeated]), int(repeated.sum()))
