"""Columns of a table: which hold the dimensions, ids, labels, counts, texts and pictures, which are left out,
and why.

Columns named `id` or `ids`, `label` or `labels`, `count` or `counts` are taken as such; `word` or `token` are
ids if there is no `id`. A first column without a name is an index. Else the only column of text holds the
ids. Whatever this leaves open is *unclear*: a space is read once it is chosen, mended or left out, and never
by a guess.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from relcore.base.errors import SpaceError, quote

Role = Literal["dimension", "ids", "labels", "counts", "text", "pictures", "left out", "unclear"]
Held = Literal["numbers", "text", "mixed", "nothing", "vectors", "flags", "other"]
_USUAL = {"ids": ("id", "ids"), "labels": ("label", "labels"), "counts": ("count", "counts")}
WORDS = ("word", "words", "token", "tokens")
INDEX = ("", "Unnamed: 0", "__index_level_0__")
_NO_DIMENSION = re.compile(
    r"(.*[_\-."
    r" ])?(ids?|idx|index|key|row|labels?|counts?|class|classes|target|category|cluster|words?|tokens?)"
)
TEXT_OR = "text: ids, labels or neither?"
VECTORS, EMPTY = "a vector per row", "empty"
REMEDY = (
    "mend or rename it, take the column as ids, labels or counts (id_column, label_column, count_column), or"
    " leave it out (ignore)"
)
OPTIONS: dict[Role, str] = {
    "ids": "id_column",
    "labels": "label_column",
    "counts": "count_column",
    "text": "text_column",
    "pictures": "picture_column",
}
TEXT_NAMES = (
    "text",
    "sentence",
    "content",
    "caption",
    "title",
    "document",
    "abstract",
    "description",
    "question",
    "review",
)


@dataclass(frozen=True)
class ColumnValues:
    """What the first rows of a column hold.

    Attributes
    ----------
    name : str
    holds : str
        "flags" are true and false, "other" is what can be no number, "mixed" numbers among text or the
        reverse.
    note : str
        What was expected and came in a mixed column; the type of another.
    where : str
        The line or row of what came.
    whole : bool
        All numbers are whole.
    """

    name: str
    holds: Held
    note: str = ""
    where: str = ""
    whole: bool = False


@dataclass(frozen=True)
class Choices:
    """What a user says about the columns; whatever is not chosen is found by name or kind."""

    id_column: str | None = None
    label_column: str | None = None
    count_column: str | None = None
    text_column: str | None = None
    picture_column: str | None = None
    ignore: tuple[str, ...] = ()


NO_CHOICES = Choices()


@dataclass(frozen=True)
class Column:
    """One column, what it is for, and why.

    Attributes
    ----------
    reason : str
        Of an unclear one what was expected and what came.
    where : str
        The line or row of what came; "" where it is the whole column.
    sure : bool
        False where only the first rows tell it; the whole column is checked as it is read.
    """

    name: str
    role: Role
    reason: str
    where: str = ""
    sure: bool = True

    @property
    def fault(self) -> str:
        """The error of a column that is unclear, after the name of its file."""
        return f"{self.where}{', ' * bool(self.where)}column {self.name!r:.80}: {self.reason}; {REMEDY}"


@dataclass(frozen=True)
class Columns:
    """The columns of a table, in its order.

    Attributes
    ----------
    columns : tuple of Column
    n : int or None
        Number of rows, where it is known without reading them all.
    width : int or None
        Dimensions in a column of vectors.
    """

    columns: tuple[Column, ...]
    n: int | None = None
    width: int | None = None

    def places(self, role: Role) -> tuple[int, ...]:
        return tuple(place for place, column in enumerate(self.columns) if column.role == role)

    def place(self, role: Role) -> int | None:
        return next(iter(self.places(role)), None)

    @property
    def unsure(self) -> tuple[int, ...]:
        return tuple(place for place, column in enumerate(self.columns) if not column.sure)

    @property
    def dimension(self) -> int | None:
        """The number of dimensions; None where a column of vectors has to be read to know it."""
        places = self.places("dimension")
        return self.width if any(self.columns[place].reason == VECTORS for place in places) else len(places)

    def check(self, name: str) -> None:
        """Raise a SpaceError for the first column that is unclear, or if there are no dimensions."""
        unclear = [column for column in self.columns if column.role == "unclear"]
        texts = [column for column in unclear if column.reason == TEXT_OR]
        if unclear and len(texts) < len(unclear):
            raise SpaceError(
                f"{name}, {next(column.fault for column in unclear if column.reason != TEXT_OR)}"
            )
        names = quote([column.name for column in self.columns[:8]])
        if not self.places("dimension"):
            raise SpaceError(
                f"{name}: expected columns of numbers, got {names} without one; is the delimiter right?"
            )
        if texts:
            raise SpaceError(
                f"{name}: expected one column of ids, got {quote([column.name for column in texts[:8]])};"
                " choose it with id_column, and labels with label_column; other text is then left out"
            )


def assign(name: str, found: Sequence[ColumnValues], choices: Choices = NO_CHOICES) -> Columns:
    """The role of each column of the file `name`.

    Raises
    ------
    SpaceError
        Names that repeat, choices that are no columns, two columns for one role.
    """
    names = [column.name for column in found]
    _check_names(name, found)
    roles = chosen_roles(name, names, choices)
    index = next(
        (i for i, one in enumerate(names) if (one in INDEX and (i == 0 or one)) and i not in roles), None
    )
    if index is not None and found[index].holds == "nothing":
        index = None
    if not any(role == "ids" for role, _ in roles.values()):
        words = [
            i
            for i, one in enumerate(found)
            if one.name.lower() in WORDS and one.holds in ("text", "mixed") and i not in roles
        ]
        roles |= {words[0]: ("ids", f"named {names[words[0]]!r}")} if len(words) == 1 else {}
    decided = {place: Column(names[place], role, reason) for place, (role, reason) in roles.items()}
    vectors = [names[i] for i, column in enumerate(found) if column.holds == "vectors" and i not in roles]
    for place, column in enumerate(found):
        if place not in decided and place != index:
            decided[place] = _by_kind(column, vectors)
    has_ids = any(column.role == "ids" for column in decided.values())
    texts = [place for place, column in decided.items() if column.reason == TEXT_OR]
    if index is not None:
        decided[index] = _index(found[index], has_ids, bool(texts))
        has_ids = has_ids or decided[index].role == "ids"
        texts += [index] * (decided[index].reason == TEXT_OR)
    if has_ids:
        for place in texts:
            decided[place] = Column(
                names[place],
                "left out",
                "text, and not named as ids or labels",
                sure=found[place].holds == "mixed",
            )
    elif len(texts) == 1:
        decided[texts[0]] = Column(names[texts[0]], "ids", "the only column of text", sure=False)
    if choices.text_column is None:
        left_out = [
            place
            for place in texts
            if decided[place].role == "left out" and names[place].lower() in TEXT_NAMES
        ]
        decided |= {place: Column(names[place], "text", f"named {names[place]!r}") for place in left_out[:1]}
    return Columns(tuple(decided[place] for place in range(len(found))))


def _check_names(name: str, found: Sequence[ColumnValues]) -> None:
    names = [column.name for column in found]
    twice = [one for one, times in Counter(names).items() if times > 1 and one]
    if twice:
        places = ", ".join(str(place + 1) for place, one in enumerate(names) if one == twice[0])
        raise SpaceError(
            f"{name}: expected distinct column names, got {quote(twice[:3])} more than once (columns"
            f" {places:.80}); rename those that repeat"
        )
    nameless = [
        place for place, column in enumerate(found) if place and not column.name and column.holds != "nothing"
    ]
    if nameless:
        raise SpaceError(
            f"{name}: expected a name for each column, got none for column {nameless[0] + 1}; name it in the"
            " first line"
        )


def chosen_roles(name: str, names: Sequence[str], choices: Choices) -> dict[int, tuple[Role, str]]:
    """Roles by choice and by name, as place → role and reason."""
    roles: dict[int, tuple[Role, str]] = {}
    for option, column in [
        *((option, getattr(choices, option)) for option in OPTIONS.values()),
        *(("ignore", c) for c in choices.ignore),
    ]:
        if column is not None and column not in names:
            raise SpaceError(
                f"{name}: {option} expects one of {quote(names[:8])}, got {quote([column])}; check its name"
            )
    for role, option in OPTIONS.items():
        if (column := getattr(choices, option)) is not None:
            if names.index(column) in roles:
                raise SpaceError(
                    f"{name}: {option}: expected a column that has no other role, got {quote([column])};"
                    " choose another"
                )
            roles[names.index(column)] = (role, "chosen")
    for column in choices.ignore:
        if names.index(column) in roles:
            raise SpaceError(
                f"{name}: ignore: expected columns without a role, got {quote([column])}; choose one of"
                " the two"
            )
        roles[names.index(column)] = ("left out", "chosen")
    for role, usual in _USUAL.items():
        if getattr(choices, OPTIONS[role]) is None:
            named = [place for place, one in enumerate(names) if one.lower() in usual and place not in roles]
            if len(named) > 1:
                raise SpaceError(
                    f"{name}: expected one column of {role}, got {quote([names[place] for place in named])};"
                    f" choose one with {OPTIONS[role]}"
                )
            roles |= {place: (role, f"named {names[place]!r}") for place in named}
    return roles


def _by_kind(column: ColumnValues, vectors: Sequence[str]) -> Column:
    """The role of a column that nobody chose and whose name tells nothing yet."""
    name, held = column.name, column.holds
    if held == "vectors" and len(vectors) == 1:
        return Column(name, "dimension", VECTORS)
    if held == "vectors":
        return Column(name, "unclear", f"expected one column of vectors, got {quote(vectors)}")
    if held in ("numbers", "flags", "mixed", "nothing") and vectors:
        return Column(name, "left out", f"no vectors; those are in {vectors[0]!r}")
    if held == "numbers" and _NO_DIMENSION.fullmatch(name.lower()):
        return Column(
            name, "unclear", "expected a dimension, got numbers that may be none, judged by the name"
        )
    if held == "numbers":
        return Column(name, "dimension", "numbers")
    if held == "text" or (held == "mixed" and name.lower() in WORDS):
        return Column(name, "unclear", TEXT_OR)
    if held == "mixed":
        return Column(name, "unclear", column.note, column.where)
    if held == "flags":
        return Column(name, "unclear", "expected numbers or text, got true and false")
    if held == "nothing" and name:
        return Column(name, "unclear", "expected numbers or text, got empty cells in the first rows")
    return Column(name, "left out", column.note or EMPTY, sure=held != "nothing")


def _index(column: ColumnValues, has_ids: bool, texts: bool) -> Column:
    name = column.name
    if has_ids:
        return Column(name, "left out", "an index; the ids are elsewhere")
    if column.holds in ("text", "mixed"):
        return Column(name, "ids", "the first column, without a name")
    if column.holds != "numbers" or not column.whole:
        return Column(name, "unclear", "expected a name, got none above numbers that are no row numbers")
    return Column(name, "unclear", TEXT_OR) if texts else Column(name, "ids", "an index")


# What the columns of a table are read as, in few lines: for the page and the command line.

_ORDER: tuple[Role, ...] = ("unclear", "ids", "labels", "counts", "text", "pictures", "dimension", "left out")
_FEW = 4  # more columns of one kind beside each other are one line


def overview(found: Columns) -> list[tuple[str, str, str]]:
    """Column, what it is read as, and why, one line each; what needs a decision comes first.

    Examples
    --------
    >>> from relcore.files.columns import Column, Columns
    >>> dimensions = [Column(f"d{place}", "dimension", "numbers") for place in range(300)]
    >>> overview(Columns((Column("id", "ids", "named 'id'"), *dimensions)))
    [('id', 'ids', "named 'id'"), ('d0 … d299', '300 dimensions', 'numbers')]
    """
    lines = []
    for (role, reason), group in groupby(found.columns, key=lambda column: (column.role, column.reason)):
        columns = list(group)
        parts = (
            [columns]
            if len(columns) > _FEW and role in ("dimension", "left out")
            else [[column] for column in columns]
        )
        for part in parts:
            where = f"{part[0].where}: " if part[0].where else ""
            lines.append((role, _title(part), _read_as(role, len(part), found), where + reason))
    return [line[1:] for line in sorted(lines, key=lambda line: _ORDER.index(line[0]))]


def what_loads(n: int | None, dimension: int | None, limit: int | None = None) -> str:
    """``"12 rows × 4 dimensions"``, as far as it is known."""
    n = n if n is None or limit is None else min(n, limit)
    rows = [] if n is None else [f"{n:,} row{'s' * (n != 1)}"]
    return " × ".join(
        rows + ([] if dimension is None else [f"{dimension:,} dimension{'s' * (dimension != 1)}"])
    )


def shown_name(name: str) -> str:
    """The name of a column, also where it has none."""
    return name or "(no name)"


def _title(columns: Sequence[Column]) -> str:
    first, last = shown_name(columns[0].name), shown_name(columns[-1].name)
    return first if len(columns) == 1 else f"{first} … {last}"


def _read_as(role: Role, n: int, found: Columns) -> str:
    if role == "unclear":
        return "⚠ unclear"
    if role == "dimension" and len(found.places("dimension")) == 1 and found.dimension != 1:
        return "dimensions" if found.dimension is None else f"{found.dimension:,} dimensions"
    return role if n == 1 else f"{n:,} dimensions" if role == "dimension" else f"{n:,} {role}"
