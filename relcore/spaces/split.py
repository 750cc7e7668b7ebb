"""`Split`: which rows are anchors, which are used for training and which are scored. The three parts are
disjoint by construction."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from relcore.base.arguments import need_ids, need_sequence, need_whole, row_numbers
from relcore.base.errors import SpaceError, brief, quote
from relcore.base.kinds import takes_kinds
from relcore.base.memory import MadeOnce
from relcore.spaces.ids import AuditedIds, GuessedIds, Texts, scored_rows
from relcore.spaces.matching import NONE_KNOWN

# Scores on the anchors would be too high, because every method is fitted on them. So every function that
# computes a score takes a `Split` and uses only its test rows.

TEST_FRACTION = 0.2
_DRAWN_AT_ONCE = 1 << 20
_QUERY_KEYS: MadeOnce[dict[int, np.ndarray]] = MadeOnce(lambda ids: {})


def row_keys(ids: Texts, stream: str, random_state: int = 0) -> np.ndarray:
    """A pseudo-random number in [0, 1) for each id, (n,) float64. The numbers are uniformly distributed, and
    an id has the same number at any position.

    A number depends only on the id, the random state and the name `stream` of its use, so adding or removing
    a row does not change the numbers of other rows. The numbers of two streams are independent.
    """
    # The key of SipHash has 16 characters.
    key = hashlib.blake2b(f"{stream}/{random_state}".encode(), digest_size=8).hexdigest()
    hashed = pd.util.hash_array(np.asarray(ids, dtype=object), hash_key=key, categorize=False)
    return hashed / 2.0**64


def smallest_keys(
    n: int, m: int, stream: str, random_state: int = 0, without: np.ndarray | None = None
) -> np.ndarray:
    """Draw m of the numbers 0 … n − 1, without those in `without`, or all if fewer are left. Drawn are the
    numbers whose `row_keys` are smallest if the numbers are taken as ids. They are returned in ascending
    order. Works block by block, so that the memory does not depend on n."""
    keys = np.empty(0)
    smallest = np.empty(0, dtype=np.int64)
    for start in range(0, n if m > 0 else 0, _DRAWN_AT_ONCE):
        numbers = np.arange(start, min(start + _DRAWN_AT_ONCE, n))
        if without is not None:
            numbers = numbers[~np.isin(numbers, without)]
        keys = np.concatenate([keys, row_keys(numbers.astype(str), stream, random_state)])
        order = np.argsort(keys, kind="stable")[:m]
        keys = keys[order]
        smallest = np.concatenate([smallest, numbers])[order]
    return np.sort(smallest)


def _testable(ids: Texts, anchors: np.ndarray) -> np.ndarray:
    """A mask (n,) of the rows that may be test rows: neither anchors nor excluded from scores."""
    testable = scored_rows(ids)
    testable[anchors] = False
    if len(anchors) < len(ids) and not testable.any() and isinstance(ids, GuessedIds):
        raise SpaceError(f"split: {NONE_KNOWN}")
    return testable


@dataclass(frozen=True, eq=False)
class Split:
    """A split of n rows into anchors, training rows and test rows, by row numbers. No row is in two parts. A
    row may be in none.

    Attributes
    ----------
    ids : array (n,)
    anchors : array (k,)
        The row numbers of the anchors, in the anchors' order. Every map between two spaces is fitted on them.
    train : array (m,)
        The row numbers, ascending, of further rows whose vectors and labels a method may learn from.
    test : array (t,)
        The row numbers, ascending, of the rows that are scored.
    random_state : int

    Examples
    --------
    >>> from relcore import Split
    >>> split = Split.held_out([f"row {row}" for row in range(100)], anchors=range(30))
    >>> len(split.anchors), len(split.test)
    (30, 70)
    """

    ids: np.ndarray
    anchors: np.ndarray
    train: np.ndarray
    test: np.ndarray
    random_state: int = 0

    def __post_init__(self) -> None:
        need_sequence("ids", self.ids, "ids")
        n = len(self.ids)
        owner = np.zeros(n, dtype=np.int64)
        for name in ("anchors", "train", "test"):
            rows = row_numbers(name, getattr(self, name), n)
            object.__setattr__(self, name, rows)
            owner[rows] += 1
        if owner.max(initial=0) > 1:
            twice = self.ids[owner > 1]
            raise SpaceError(
                f"split: expected each row in one part, got {len(twice)} in two, first {quote(twice[:3])}"
            )

    @property
    def n(self) -> int:
        return len(self.ids)

    @property
    def known(self) -> np.ndarray:
        """The row numbers of anchors and training rows together, ascending. A head may be trained on these,
        as in the papers."""
        return np.sort(np.concatenate([self.anchors, self.train]))

    @property
    def untested(self) -> np.ndarray:
        return np.delete(np.arange(self.n), self.test)

    @takes_kinds
    def queries(self, n_queries: int | None = None) -> np.ndarray:
        """The row numbers of the queries, ascending. By default they are all test rows. With `n_queries`,
        they are a random sample of that many test rows.

        If the split gets one more test row, at most one query is replaced.

        Raises
        ------
        SpaceError
            `n_queries` is less than 1.
        """
        if n_queries is not None:
            need_whole("n_queries", n_queries)
        if n_queries is None or n_queries >= len(self.test):
            return self.test
        return np.sort(self.test[np.argpartition(self._query_keys(), n_queries - 1)[:n_queries]])

    def _query_keys(self) -> np.ndarray:
        """The `row_keys` of the test rows, (t,), by which queries are drawn. If most rows are test rows, the
        keys of all rows are cached with the ids, because every run of a page needs them."""
        if 2 * len(self.test) < self.n:
            return row_keys(self.ids[self.test], "queries", self.random_state)
        kept = _QUERY_KEYS(self.ids)
        if self.random_state not in kept:
            kept.clear()  # keep one random state, because a study with many would fill the memory
            kept[self.random_state] = row_keys(self.ids, "queries", self.random_state)
        return kept[self.random_state][self.test]

    @classmethod
    @takes_kinds
    def held_out(
        cls, ids: Sequence[str] | np.ndarray, anchors: Sequence[int] | np.ndarray = (), random_state: int = 0
    ) -> Split:
        """The split in which every row except the anchors is a test row. Use it to score methods that were
        fitted only on the anchors.

        Raises
        ------
        SpaceError
            All rows are anchors, or a row occurs twice among the anchors.
        """
        need_sequence("ids", ids, "ids")
        anchors = row_numbers("anchors", anchors, len(ids))
        need_ids("ids", ids)
        test = np.flatnonzero(_testable(ids, anchors))
        others = ""
        if isinstance(ids, AuditedIds):
            others = " or suspects"
        if not len(test):
            raise SpaceError(
                f"split: all {len(ids):,} rows are anchors{others}, none is held out to be scored; choose"
                " fewer anchors"
            )
        ids = np.asarray(ids, dtype=object)
        return cls(ids, anchors, np.empty(0, dtype=np.int64), test, random_state)

    @classmethod
    @takes_kinds
    def draw(
        cls,
        ids: Sequence[str] | np.ndarray,
        *,
        anchors: Sequence[int] | np.ndarray = (),
        test_fraction: float = TEST_FRACTION,
        test_ids: Sequence[str] = (),
        labels: Sequence[str] | np.ndarray | None = None,
        random_state: int = 0,
    ) -> Split:
        """Draw a split. Test rows are chosen by the `row_keys` of their ids, so an id is a test row in every
        space or in none. Anchors are never test rows.

        Parameters
        ----------
        test_fraction : float
            The share of rows that become test rows, above 0 and below 1. Each row is drawn independently, so
            this is the mean share.
        test_ids : ids, optional
            The ids of test rows, which replace the random ones. Unknown ids are ignored.
        labels : n labels, optional
            The class of each row. If a class has no anchor, one of its rows always stays in the training
            part.

        Raises
        ------
        SpaceError
            The share is not between 0 and 1, or no test row is left.
        """
        need_sequence("ids", ids, "ids")
        need_sequence("test_ids", test_ids, "ids")
        anchors = row_numbers("anchors", anchors, len(ids))
        need_ids("ids", ids)
        testable = _testable(ids, anchors)
        ids = np.asarray(ids, dtype=object)
        if not (isinstance(test_fraction, int | float | np.floating) and 0 < test_fraction < 1):
            raise SpaceError(f"test_fraction: expected a share between 0 and 1, got {brief(test_fraction)}")
        if labels is not None:
            need_sequence("labels", labels, "labels", len(ids))
        keys = row_keys(ids, "test", random_state)
        if len(test_ids):
            drawn = pd.Index(ids).isin(list(test_ids))
        else:
            drawn = keys < test_fraction
        drawn &= testable
        rest = np.flatnonzero(testable)
        if not (len(test_ids) or drawn.any()) and len(rest) > 1:
            # Draw at least one row: the first in the order of the keys.
            drawn[rest[np.argmin(keys[rest])]] = True
        if labels is not None and not len(test_ids):
            labels = np.asarray(labels)
            for label in set(labels[drawn]) - set(labels[~drawn]):
                members = np.flatnonzero(labels == label)
                drawn[members[np.argmax(keys[members])]] = False
        test = np.flatnonzero(drawn)
        if not len(test):
            reason = "too few rows"
            if len(test_ids):
                reason = f"none of the {len(test_ids):,} test ids belongs to a row that is not an anchor"
            raise SpaceError(
                f"split: expected a row to test on, got {len(ids):,} rows and {len(anchors):,} anchors:"
                f" {reason}"
            )
        return cls(ids, anchors, np.setdiff1d(np.flatnonzero(~drawn), anchors), test, random_state)


def derangement(n: int, rng: np.random.Generator) -> np.ndarray:
    """A random permutation of n ≥ 2 elements without a fixed point."""
    order = rng.permutation(n)
    moved = np.empty(n, dtype=np.int64)
    moved[order] = np.roll(order, 1)
    return moved
