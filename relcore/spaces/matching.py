"""Pair the rows of two or more spaces by id, and tell which pairs may be scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import NoCommonId, SpaceError, quote
from relcore.spaces.ids import AuditedIds, GuessedIds, MarkedIds, mark_unscored, scored_rows
from relcore.spaces.space import LatentSpace, MatrixLike, as_space, ids_of


def as_pair(source: Any, target: Any) -> tuple[LatentSpace, LatentSpace]:
    """The source and the target as spaces. If one of them has no ids, rows are paired by order, so it gets
    the ids of the other one.

    Raises
    ------
    SpaceError
        One of them has no ids, and their numbers of rows differ. The errors of `matrix` are raised, too.
    """
    sides = [as_space(source, "source"), as_space(target, "target")]
    named = [ids_of(source) is not None, ids_of(target) is not None]
    for side, other in ((0, 1), (1, 0)):
        if not named[side] and len(sides[side]) != len(sides[other]):
            raise SpaceError(
                f"{sides[side].name}: an array is paired by row, expected {len(sides[other]):,} rows, got"
                f" {len(sides[side]):,}; make both a LatentSpace with ids to pair them by id"
            )
        if not named[side] and named[other]:
            sides[side] = sides[side].with_columns(ids=sides[other]._row_numbers or sides[other].ids)
    return sides[0], sides[1]


@dataclass(frozen=True)
class Match:
    """Two spaces with the same ids in the same order, and further spaces with these ids. It also holds how
    many rows were left out: rows of only one space (these include rows without a link), and zero rows."""

    source: LatentSpace
    target: LatentSpace
    n_source_only: int
    n_target_only: int
    n_zero: int
    others: tuple[LatentSpace, ...] = ()

    @property
    def spaces(self) -> tuple[LatentSpace, ...]:
        """The source, the target and the further spaces."""
        return self.source, self.target, *self.others

    @property
    def ids(self) -> np.ndarray:
        return self.source.ids

    def pair(self, number: int = 1) -> Match:
        """The pair of the source and another space, by default the target, with the ids that all spaces
        share."""
        return replace(self, target=self.spaces[number], others=())

    def __len__(self) -> int:
        return len(self.source)


def match(source: MatrixLike, target: MatrixLike, *others: MatrixLike) -> Match:
    """Pair the rows of two spaces by id, in the source's order. Rows that are zero in one of the spaces are
    left out and counted. With `others`, only rows that all of these also have remain.

    Arrays and tables without ids are paired by row order (see `as_pair`).

    Raises
    ------
    NoCommonId
        The spaces share no id. This is a SpaceError.
    SpaceError
        No row is left after zero vectors are removed, or the errors of `as_pair` are raised.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import LatentSpace, match
    >>> first = LatentSpace(np.eye(3), ["king", "queen", "river"])
    >>> second = LatentSpace(2 * np.eye(3), ["river", "sea", "king"])
    >>> pair = match(first, second)
    >>> pair.ids.tolist(), pair.n_target_only
    (['king', 'river'], 1)
    >>> pair.target.vectors.tolist()
    [[0.0, 0.0, 2.0], [2.0, 0.0, 0.0]]
    """
    matched = _match_pair(source, target)
    for other in others:
        matched = _join_match(matched, _match_pair(source, other))
    return matched


def _join_match(matched: Match, pair: Match) -> Match:
    """The match reduced to the rows that are also in `pair`, which has the same source. The target of `pair`
    becomes a further space."""
    in_pair = pair.source.index.get_indexer(matched.source.index)
    rows = np.flatnonzero(in_pair >= 0)
    if not len(rows):
        names = ", ".join(repr(space.name) for space in (*matched.spaces, pair.target))
        raise NoCommonId(
            f"{names}: expected ids that all of them share, got none; leave {pair.target.name!r} out"
        )
    taken = [_take_rows(space, rows) for space in matched.spaces] + [_take_rows(pair.target, in_pair[rows])]
    source, target, *others = with_common_marks(taken) if matched.source._row_numbers is None else taken
    return replace(matched, source=source, target=target, others=tuple(others))


def _take_rows(space: LatentSpace, rows: np.ndarray) -> LatentSpace:
    whole = len(rows) == len(space) and np.array_equal(rows, np.arange(len(space)))
    return space if whole else space.take(rows)


def _match_pair(source: MatrixLike, target: MatrixLike) -> Match:
    source, target = as_pair(source, target)
    numbers = source._row_numbers, target._row_numbers
    if numbers[0] == numbers[1] if None not in numbers else np.array_equal(source.ids, target.ids):
        in_source = in_target = np.arange(len(source))
    else:
        rows = target.index.get_indexer(source.index)
        in_source = np.flatnonzero(rows >= 0)
        in_target = rows[in_source]
    if not len(in_source):
        raise NoCommonId(
            f"{source.name!r} and {target.name!r} share no ids (for instance {quote(source.ids[:2])} and"
            f" {quote(target.ids[:2])}); encode the same items with both, give both files the same id"
            " column, or find the pairs by relcore.link"
        )
    alive = (source.norms[in_source] > 0) & (target.norms[in_target] > 0)
    if not alive.any():
        raise SpaceError(
            f"{source.name!r} and {target.name!r} share {len(alive)} ids, but every shared row is a zero"
            " vector; expected vectors with a direction in both"
        )
    taken = [_take_rows(source, in_source[alive]), _take_rows(target, in_target[alive])]
    n_zero = int(np.count_nonzero(~alive))
    taken = with_common_marks(taken) if None in numbers else taken  # row numbers are no guesses
    alone = (
        len(space) - len(in_source) + (0 if of is not None else getattr(space.ids, "unlinked", 0))
        for space, of in zip((source, target), numbers, strict=True)
    )
    return Match(*taken, *alone, n_zero)


def with_common_marks(spaces: Sequence[LatentSpace]) -> list[LatentSpace]:
    """Spaces with the same ids, all with the same marks. If the ids of one space are guessed or audited, all
    spaces get its marks."""
    named = [space.ids for space in spaces if space._row_numbers is None]
    guessed = [ids.marks for ids in named if isinstance(ids, GuessedIds)]
    audited = [ids.marks for ids in named if isinstance(ids, AuditedIds)]
    if not guessed and not audited:
        return list(spaces)
    ids = np.asarray(spaces[0].ids)
    ids = GuessedIds.of(ids, frozenset.intersection(*guessed)) if guessed else ids
    ids = mark_unscored(ids, frozenset().union(*audited))
    return [space.with_columns(ids=ids) for space in spaces]


def distinct_names(spaces: Sequence[LatentSpace]) -> list[str]:
    """A distinct name for each space. Equal names are numbered: ``"words (1)"``, ``"words (2)"``."""
    names, distinct = list(map(attrgetter("name"), spaces)), []
    for name in names:
        if names.count(name) > 1:
            numbered = (f"{name} ({number})" for number in count(1))
            name = next(free for free in numbered if free not in {*names, *distinct})
        distinct.append(name)
    return distinct


def shared_ids(spaces: Sequence[LatentSpace]) -> pd.Index:
    """The ids that all spaces have, in the order of the first space; empty if there are none."""
    ids = spaces[0].index
    for space in spaces[1:]:
        ids = ids[ids.isin(space.index)]
    return ids


NONE_KNOWN = (
    "expected known pairs to score, got links that are guesses; confirm some in Connect, Link, or write"
    " “confirmed” as their kind in the file of --links"
)


def known_ids(spaces: Sequence[LatentSpace]) -> pd.Index:
    """The `shared_ids` of those rows that may be scored in all spaces (see `scored_rows`)."""
    ids = shared_ids(spaces)
    for space in spaces:
        if isinstance(space.ids, MarkedIds):
            ids = ids[ids.isin(space.ids[scored_rows(space.ids)])]
    return ids


def known_rows(spaces: Sequence[LatentSpace]) -> Sequence[LatentSpace]:
    """The spaces reduced to the rows of `known_ids`. If all rows may be scored, the spaces themselves.

    Raises
    ------
    SpaceError
        None of the shared rows may be scored.
    """
    if not any(isinstance(space.ids, MarkedIds) for space in spaces) or not len(shared_ids(spaces)):
        return spaces
    ids = known_ids(spaces)
    if not len(ids):
        raise SpaceError(f"pairs: {NONE_KNOWN}")
    return [space.take(space.rows(ids)) for space in spaces]


def agreed_labels(spaces: Sequence[LatentSpace]) -> np.ndarray | None:
    """The labels (n,) of spaces with the same rows, from the spaces that have labels. None if no space has
    labels.

    Raises
    ------
    SpaceError
        Two spaces have different labels for the same row.
    """
    labelled = [space for space in spaces if space.labels is not None]
    for space in labelled[1:]:
        differ = np.flatnonzero(space.labels != labelled[0].labels)
        if len(differ):
            names = f"{labelled[0].name!r} and {space.name!r}"
            raise SpaceError(
                f"{names} have different labels for {len(differ)} shared rows, first"
                f" {quote(space.ids[differ[:1]])}: a head knows only the labels that it was trained on;"
                " choose the same label column for both"
            )
    return labelled[0].labels if labelled else None


def short_names(names: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Return the names without the last words that all of them share, such as the dataset's name, and these
    words."""
    words = [name.split(" ") for name in names]
    n = 0
    while n + 1 < min(map(len, words)) and len({tuple(name[-n - 1 :]) for name in words}) == 1:
        n += 1
    kept = tuple(" ".join(name[: len(name) - n]).rstrip(" ,·") for name in words)
    if not n or len(set(kept)) < len(kept):
        return tuple(names), ""
    return kept, " ".join(words[0][-n:]).lstrip(" ,·")
