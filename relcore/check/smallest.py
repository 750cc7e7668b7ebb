"""How small a second model may be that a check of a collection would still find."""

from __future__ import annotations

import numpy as np

from relcore.base.rows import Rows
from relcore.passport.recipes import MIXED
from relcore.passport.two_parts import LEAST, parts_of

PLANTED = 5000  # maximum number of rows among which rows of a made-up second model are hidden


def smallest_found(X: Rows, random_state: int = 0) -> int:
    """The smallest number of these rows (n, d) that would be found as a second model if they were turned at
    random: 20, 40, 80 and so on are turned, until they are found. Returns 0 if a quarter is not found. Of
    more than 5,000 rows, a sample is tried, and the number is that of the same share of all rows.
    """
    rng = np.random.default_rng((random_state, 41))
    rows = np.asarray(X[np.sort(rng.permutation(len(X))[:PLANTED])])
    turn = np.linalg.qr(rng.normal(size=(rows.shape[1],) * 2))[0].astype(np.float32)
    order = rng.permutation(len(rows))
    few = LEAST
    while few <= len(rows) // 4:
        planted = rows.astype(np.float32)
        planted[order[:few]] = planted[order[:few]] @ turn
        parts = parts_of(planted, random_state)
        if parts.slope.high < MIXED and parts.uneven and not parts.graded:
            return round(few * len(X) / len(rows))
        few *= 2
    return 0
