"""`match`, the rows that several spaces share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.arguments import need_sequence, need_whole
from relcore.base.errors import NoCommonId, SpaceError, quote
from relcore.base.kinds import takes_kinds
from relcore.base.mapped_rows import BLOCK_ROWS
from relcore.spaces.ids import (
    AuditedIds,
    GuessedIds,
    MarkedIds,
    RowNumbers,
    checked_strings,
    mark_unscored,
    need_distinct_ids,
    scored_rows,
)
from relcore.spaces.shown import rows_html, shape_text
from relcore.spaces.space import LatentSpace, MatrixLike, ids_of, ids_of_rows, matrix
from relcore.spaces.table_ids import index_of, is_default, need_no_other_numbers


def n_equal_rows(vectors: np.ndarray) -> int:
    """The number of float32 rows (n, d) that have the same bytes as another row. Rows are compared by 64-bit
    hashes."""
    return int(row_hashes(vectors).duplicated(keep=False).sum())


def row_hashes(vectors: np.ndarray) -> pd.Series:
    """The 64-bit hashes (n,) of the bytes of the float32 rows (n, d)."""
    return pd.Series(
        [
            hash(bytes(row))
            for start in range(0, len(vectors), BLOCK_ROWS)
            for row in np.ascontiguousarray(vectors[start : start + BLOCK_ROWS])
        ]
    )


def _need_no_guess(X: Any, Y: Any) -> None:
    """Raise a SpaceError if one of X and Y has only row numbers, and the other is a table whose index has
    other numbers (see `table_ids`)."""
    for one, other in ((X, Y), (Y, X)):
        index = index_of(one)
        numbered = index is not None and is_default(index)
        numbered |= isinstance(one, LatentSpace) and one._row_numbers is not None
        if numbered and index_of(other) is not None:
            need_no_other_numbers(len(one), index_of(other), "pairs")


def partner_rows(X: Any, Y: Any) -> np.ndarray | None:
    """For each row of X, the number (n,) of the row of Y with the same id. None if rows are paired by their
    order: the ids are equal, one side has none, or the numbers of rows differ, which the caller must refuse.

    Raises
    ------
    SpaceError
        The ids differ; they have another order, and repeat; one side is numbered only by the default index.
    """
    index_of_X = index_of(X)
    index_of_Y = index_of(Y)
    if index_of_X is not None and index_of_Y is not None and index_of_X.equals(index_of_Y):
        return None
    _need_no_guess(X, Y)
    ids_of_X = ids_of(X)
    ids_of_Y = ids_of(Y)
    if ids_of_X is None or ids_of_Y is None or len(ids_of_X) != len(ids_of_Y):
        return None
    if isinstance(ids_of_X, RowNumbers) and isinstance(ids_of_Y, RowNumbers):
        return None
    wanted = np.asarray(ids_of_X[:])
    searched = np.asarray(ids_of_Y[:])
    if np.array_equal(wanted, searched):
        return None
    index = pd.Index(searched, dtype=object)
    if index.is_unique:
        rows = index.get_indexer(pd.Index(wanted, dtype=object))
        if len(np.unique(rows[rows >= 0])) == len(wanted):
            return rows
    raise SpaceError(
        f"expected the same ids on both sides, each once, got {quote(wanted[:3])} and {quote(searched[:3])};"
        " pair the spaces with match()"
    )


def paired_matrices(
    X: Any,
    Y: Any,
    names: tuple[str, str],
    by_block: bool = False,
    dtype: type | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The paired rows of X and Y as matrices (n, d_x) and (n, d_y), converted by `matrix`, in the order of X.
    Rows are paired by id, or by their order if one side has no ids (see `partner_rows`).

    Raises
    ------
    SpaceError
        The numbers of rows differ; the ids cannot be paired.
    """
    first = matrix(X, names[0], dtype, by_block)
    second = matrix(Y, names[1], dtype, by_block)
    rows = partner_rows(X, Y)
    if len(first) != len(second):
        raise SpaceError(
            f"expected row-aligned spaces, got {len(first)} and {len(second)} rows; pair them with match()"
        )
    if rows is not None:
        second = second[rows]
    return first, second


def need_columns_in_one_order(X: Any, Y: Any) -> None:
    """Raise a SpaceError if two tables have the same columns in another order. Scores that need common axes
    compare column by column; tables whose columns have other names are compared by position."""
    first = getattr(X, "columns", None)
    second = getattr(Y, "columns", None)
    if first is None or second is None:
        return
    first = list(first)
    second = list(second)
    if first != second and sorted(map(str, first)) == sorted(map(str, second)):
        raise SpaceError(
            f"target: expected the columns of the source in their order, {quote(first[:3])} …, got the same"
            f" in another order, {quote(second[:3])} …; take them as target[source.columns]"
        )


def checked_names(ids: Any, n: int) -> np.ndarray | None:
    """The argument `ids` of a score: the names (n,) of the rows, or None. Raises a SpaceError unless they are
    n distinct texts."""
    if ids is None:
        return None
    need_sequence("ids", ids, "ids", n)
    names = checked_strings(ids, n, "ids", "ids")
    need_distinct_ids(pd.Index(names, dtype=object), "ids")
    return names


def as_space(X: Any, name: str = "space") -> LatentSpace:
    """Convert anything that `matrix` accepts to a space. Rows without ids get the ids "0", "1", …. A space is
    returned unchanged."""
    if isinstance(X, LatentSpace):
        return X
    rows = matrix(X, name, None, by_block=True)
    return LatentSpace(rows, ids_of_rows(X, len(rows), name), name=name)


def need_spaces(name: str, spaces: Any) -> None:
    """Raise a SpaceError that names the argument, unless it is a list of spaces: not one matrix."""
    need_sequence(name, spaces, "spaces")
    if hasattr(spaces, "shape"):
        raise SpaceError(f"{name}: expected a list of spaces, got one of shape {tuple(spaces.shape)}")


def as_spaces(inputs: Sequence[Any], names: Sequence[str]) -> list[LatentSpace]:
    """Convert several inputs, whose rows are paired by id, by `as_space`. Raises a SpaceError if one has only
    row numbers, and another is a table whose index has other numbers."""
    spaces = [as_space(one, name) for one, name in zip(inputs, names, strict=True)]
    for place, one in enumerate(inputs):
        for other in inputs[:place]:
            _need_no_guess(one, other)
    return spaces


# Pair the rows of two or more spaces by id, and find which pairs scores may use.


def as_pair(source: Any, target: Any) -> tuple[LatentSpace, LatentSpace]:
    """The source and the target as spaces. If a space has no ids, rows are paired by order, so it gets the
    ids of its partner.

    Raises
    ------
    SpaceError
        One of them has no ids, and their numbers of rows differ.
    """
    sides = as_spaces((source, target), ("source", "target"))
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
    """Two spaces whose rows were matched by id: they have the same ids in the same order. There may be
    `others`, which have these ids as well. Rows that only one of the two spaces has (or that have no link)
    are left out and counted, and so are zero rows."""

    source: LatentSpace
    target: LatentSpace
    n_source_only: int
    n_target_only: int
    n_zero: int
    others: tuple[LatentSpace, ...] = ()

    @property
    def spaces(self) -> tuple[LatentSpace, ...]:
        return self.source, self.target, *self.others

    @property
    def ids(self) -> np.ndarray:
        return self.source.ids

    @takes_kinds
    def pair(self, number: int = 1) -> Match:
        """The match of the source with one of the other spaces, by default the target. Its rows are those
        that all spaces share."""
        need_whole("number", number, 1, len(self.spaces) - 1)
        return replace(self, target=self.spaces[number], others=())

    def __len__(self) -> int:
        return len(self.source)

    def _repr_html_(self) -> str:
        names = distinct_names(self.spaces)
        shapes = (
            shape_text(name, len(space), space.dimension)
            for name, space in zip(names, self.spaces, strict=True)
        )
        left_out = {
            f"only in {names[0]}": self.n_source_only,
            f"only in {names[1]}": self.n_target_only,
            "zero": self.n_zero,
        }
        counts = ", ".join(f"{n:,} {where}" for where, n in left_out.items() if n)
        sentence = f"{'; '.join(shapes)}."
        if counts:
            sentence += f" Rows left out: {counts}."
        ids = self.source._row_numbers or self.ids
        return rows_html(sentence, ids, {"label": self.source.labels})


def match(source: MatrixLike, target: MatrixLike, *others: MatrixLike) -> Match:
    """Pair the rows of two spaces by id, in the source's order. Rows that are zero in one of the spaces are
    left out and counted. With `others`, only rows that are also in all of these spaces remain.

    The ids of a DataFrame are its index, of any type (see `table_ids`). Arrays, and tables with the default
    index, have no ids and are paired by row order (see `as_pair`).

    Raises
    ------
    NoCommonId
        The spaces share no id. This is a SpaceError.
    SpaceError
        No row is left after zero vectors are removed.

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
    """The matched spaces, reduced to the rows that `pair` has too, and the target of `pair` as a further
    space. Both have the same source."""
    in_pair = pair.source.index.get_indexer(matched.source.index)
    rows = np.flatnonzero(in_pair >= 0)
    if not len(rows):
        names = ", ".join(repr(space.name) for space in (*matched.spaces, pair.target))
        raise NoCommonId(
            f"{names}: expected ids that all of them share, got none; leave {pair.target.name!r} out"
        )
    taken = [_take_rows(space, rows) for space in matched.spaces] + [_take_rows(pair.target, in_pair[rows])]
    if matched.source._row_numbers is None:
        source, target, *others = with_common_marks(taken)
    else:
        source, target, *others = taken
    return replace(matched, source=source, target=target, others=tuple(others))


def _take_rows(space: LatentSpace, rows: np.ndarray) -> LatentSpace:
    whole = len(rows) == len(space) and np.array_equal(rows, np.arange(len(space)))
    return space if whole else space.take(rows)


def _match_pair(source: MatrixLike, target: MatrixLike) -> Match:
    source, target = as_pair(source, target)
    numbers = source._row_numbers, target._row_numbers
    are_numbered = None not in numbers
    if are_numbered:
        same_ids = numbers[0] == numbers[1]
    else:
        same_ids = np.array_equal(source.ids, target.ids)
    if same_ids:
        in_source = in_target = np.arange(len(source))
    else:
        rows = target.index.get_indexer(source.index)
        in_source = np.flatnonzero(rows >= 0)
        in_target = rows[in_source]
    if not len(in_source):
        raise NoCommonId(
            f"{source.name!r} and {target.name!r} share no ids (for instance {quote(source.ids[:2])} and"
            f" {quote(target.ids[:2])}); encode the same items with both, give both files the same id"
            " column, or find the pairs by Link (relcore.link)"
        )
    alive = (source.norms[in_source] > 0) & (target.norms[in_target] > 0)
    if not alive.any():
        raise SpaceError(
            f"{source.name!r} and {target.name!r} share {len(alive)} ids, but every shared row is a zero"
            " vector; expected vectors with a direction in both"
        )
    taken = [_take_rows(source, in_source[alive]), _take_rows(target, in_target[alive])]
    n_zero = int(np.count_nonzero(~alive))
    # Pairs that are given as row numbers do not count as guessed.
    if not are_numbered:
        taken = with_common_marks(taken)
    alone = [len(space) - len(in_source) + _n_unlinked(space) for space in (source, target)]
    return Match(taken[0], taken[1], alone[0], alone[1], n_zero)


def _n_unlinked(space: LatentSpace) -> int:
    """The number of rows that were left out of a space because no link names them."""
    if space._row_numbers is not None:
        return 0
    return getattr(space.ids, "unlinked", 0)


def with_common_marks(spaces: Sequence[LatentSpace]) -> list[LatentSpace]:
    """Spaces with the same ids, all with the same marks. If the ids of one space are guessed or audited, all
    spaces get its marks."""
    named = [space.ids for space in spaces if space._row_numbers is None]
    guessed = [ids.marks for ids in named if isinstance(ids, GuessedIds)]
    audited = [ids.marks for ids in named if isinstance(ids, AuditedIds)]
    if not guessed and not audited:
        return list(spaces)
    ids = np.asarray(spaces[0].ids)
    if guessed:
        ids = GuessedIds.of(ids, frozenset.intersection(*guessed))
    ids = mark_unscored(ids, frozenset().union(*audited))
    return [space.with_columns(ids=ids) for space in spaces]


def distinct_names(spaces: Sequence[LatentSpace]) -> list[str]:
    """A distinct name for each space. Equal names are numbered: ``"words (1)"``, ``"words (2)"``."""
    names = [space.name for space in spaces]
    distinct: list[str] = []
    for name in names:
        if names.count(name) == 1:
            distinct.append(name)
            continue
        number = 1
        while f"{name} ({number})" in (*names, *distinct):
            number += 1
        distinct.append(f"{name} ({number})")
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
    """The spaces, reduced to the shared rows that may be scored in all of them. If all rows may be scored,
    the spaces are returned unchanged.

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
    """The common labels (n,) of spaces with the same rows. A space may lack labels; None if all do.

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
    """Return two things: the names without the last words that all of them share, such as the dataset's name;
    and those words. Names of one word, such as a file's, stay whole; beside others, the words are ""."""
    words = [name.split(" ") for name in names]
    several = [name for name in words if len(name) > 1]
    if len(several) < 2:
        return tuple(names), ""
    n = 0
    while n + 1 < min(map(len, several)) and len({tuple(name[-n - 1 :]) for name in several}) == 1:
        n += 1
    kept = tuple(" ".join(name[: max(1, len(name) - n)]).rstrip(" ,·") for name in words)
    if not n or len(set(kept)) < len(kept):
        return tuple(names), ""
    if len(several) < len(words):
        return kept, ""
    return kept, " ".join(words[0][-n:]).lstrip(" ,·")
