"""Which paired rows an adapter is fitted on, and which are held out and scored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.anchors.selection import select_anchors
from relcore.evaluation import TEST_FRACTION, row_keys
from relcore.migration.pairing import FEWEST
from relcore.similarity import rows_among
from relcore.spaces import Match, SpaceError

MOST_FITTED = 20_000


@dataclass(frozen=True, eq=False)
class Parts:
    """Row numbers of the pairs.

    Attributes
    ----------
    fitted : array (m,)
        Never a query, and where held-out rows are the queries not searched either: an adapter brings a new vector that it was
        fitted on closer to its old one than others, so such rows would be found too well.
    held_out : array (h,)
        Ascending. Without rows that repeat a fitted one to the last bit.
    n_repeated : int
        Such rows.
    """

    fitted: np.ndarray
    held_out: np.ndarray
    n_repeated: int


def n_random(n: int, n_pairs: int, judged: bool = False) -> int:
    """How many of n pairs are fitted on where they are drawn at random; arguments and errors as `parts_of`."""
    least = 0 if judged else FEWEST
    if n_pairs and n_pairs < FEWEST:
        raise SpaceError(f"n_pairs: expected {FEWEST} or more, got {n_pairs}; fewer pairs do not tell how two models relate")
    if n < FEWEST + least or n_pairs > n - least:
        wanted = f"{n_pairs or FEWEST:,} to fit on" + (f" and {least} held out" if least else "")
        raise SpaceError(
            f"pairs: expected {wanted}, got {n:,} rows that both models have embedded; choose fewer, or embed more"
        )
    kept = n if judged else n - max(FEWEST, int(n * TEST_FRACTION))
    return min(n_pairs or kept, MOST_FITTED)


def parts_of(paired: Match, n_pairs: int, strategy: str, judged: bool, random_state: int = 0) -> Parts:
    """Pairs to fit on, chosen by the strategy in the old space, and pairs that are held out, drawn by their ids before that.

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
    at_random = n_random(n, n_pairs, judged)
    keys = row_keys(paired.ids, "pairs", random_state)
    order = np.argsort(keys, kind="stable")
    if strategy == "random" or not n_pairs:
        fitted = order[:at_random]
        held = order[len(fitted) :]
    else:
        n_held = min(n - n_pairs, max(least, int(n * TEST_FRACTION)))
        held, candidates = order[n - n_held :], np.sort(order[: n - n_held])
        chosen = select_anchors(paired.source.take(candidates), n_pairs, strategy, random_state=random_state)
        fitted = paired.source.rows(chosen)
    repeated = np.zeros(len(held), dtype=bool)
    for side in (paired.source, paired.target):
        repeated |= rows_among(side.vectors[held], side.vectors[fitted])
    return Parts(fitted, np.sort(held[~repeated]), int(repeated.sum()))
