"""Decide the role of each column of a table: dimension, ids, labels, counts, text, pictures, or left out.

A column named `id`, `label` or `count` (or the plural) has the role that its name says. If there is no `id`,
`word` or `token` are ids. A first column without a name is an index. Otherwise the only column of text holds
the ids. A column that fits none of these rules is *unclear*: the user must choose its role, correct it or
leave it out. In a table of metadata it is left out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, NamedTuple

from relcore.base.errors import SpaceError, quote
from relcore.base.numbers import counted

Role = Literal["dimension", "ids", "labels", "counts", "text", "pictures", "left out", "unclear"]
Held = Literal["numbers", "text", "mixed", "nothing", "vectors", "flags", "other"]
OPTIONS: dict[Role, str] = {
    "ids": "id_column",
    "labels": "label_column",
    "counts": "count_column",
    "text": "text_column",
    "pictures": "picture_column",
}
TEXT_OR = "text: ids, labels or neither?"
VECTORS = "a vector per row"
EMPTY = "empty"
OUTSIDE = "numbers beside "
_USUAL: dict[Role, tuple[str, ...]] = {
    "ids": ("id", "ids"),
    "labels": ("label", "labels"),
    "counts": ("count", "counts"),
}
_WORDS = ("word", "words", "token", "tokens")
INDEX = ("", "Unnamed: 0", "__index_level_0__")
_NO_DIMENSION = re.compile(
    r"(.*[_\-. ])?"
    r"(ids?|idx|index|key|row|labels?|counts?|class|classes|target|category|cluster|words?|tokens?)"
)
_REMEDY = (
    "mend or rename this column, take it as ids, labels or counts (id_column, label_column, count_column), or"
    " leave it out (ignore)"
)
_TEXTS = (
    *("text", "sentence", "content", "caption", "title"),
    *("document", "abstract", "description", "question", "review"),
)


@dataclass(frozen=True)
class ColumnValues:
    """The kind of values in a column.

    "flags" means booleans, "mixed" means numbers among texts or texts among numbers, and "other" means values
    that cannot be numbers. For a mixed column, `note` says what was expected and what was found, and `where`
    says in which row. `whole` says that all numbers, or all texts, are whole numbers.
    """

    name: str
    holds: Held
    note: str = ""
    where: str = ""
    whole: bool = False


@dataclass(frozen=True)
class Choices:
    """The roles that a user chose for columns. The roles of all other columns follow from their names and
    kinds."""

    id_column: str | None = None
    label_column: str | None = None
    count_column: str | None = None
    text_column: str | None = None
    picture_column: str | None = None
    ignore: tuple[str, ...] = ()
    encoding: str = ""


NO_CHOICES = Choices()


@dataclass(frozen=True)
class Column:
    """One column with its role and the reason for it. For an unclear column, `reason` tells the expected and
    the actual value, and `where` their row."""

    name: str
    role: Role
    reason: str
    where: str = ""


@dataclass(frozen=True)
class Columns:
    """The columns of a table and, if they are known, its number `n` of rows and the `width` of its column of
    vectors.

    `note` names unusual properties of the file: its encoding, delimiter or decimal comma.
    """

    columns: tuple[Column, ...]
    n: int | None = None
    width: int | None = None
    note: str = ""

    def places(self, role: Role) -> tuple[int, ...]:
        return tuple(place for place, column in enumerate(self.columns) if column.role == role)

    def place(self, role: Role) -> int | None:
        return next(iter(self.places(role)), None)

    @property
    def dimension(self) -> int | None:
        """The number of dimensions; None if it is not known before the column of vectors is read."""
        places = self.places("dimension")
        if any(self.columns[place].reason == VECTORS for place in places):
            return self.width
        return len(places)

    def notes(self) -> dict[str, list[str]]:
        """The notes on this table under the key "note", so that they can be added to the columns that
        `Format.blocks` returns."""
        outside = [column for column in self.columns if column.reason.startswith(OUTSIDE)]
        notes = []
        if self.note:
            notes.append(self.note)
        if outside:
            names = quote([column.name for column in outside[:8]])
            notes.append(f"{names} left out, {outside[0].reason}")
        return {"note": notes} if notes else {}

    def check(self, name: str) -> None:
        """Raise a SpaceError if a column is unclear or if there are no dimensions."""
        unclear = [self.columns[place] for place in self.places("unclear")]
        for column in unclear:
            if column.reason != TEXT_OR:
                where = ""
                if column.where:
                    where = f"{column.where}, "
                raise SpaceError(f"{name}, {where}column {column.name!r:.80}: {column.reason}; {_REMEDY}")
        if not self.places("dimension"):
            names = quote([column.name for column in self.columns[:8]])
            raise SpaceError(
                f"{name}: expected columns of numbers, got only {names}; is the delimiter right?"
            )
        if unclear:
            raise SpaceError(
                f"{name}: expected one column of ids, got {quote([column.name for column in unclear[:8]])};"
                " choose ids with id_column, and labels with label_column; other text is then left out"
            )


def _text_beside_ids(column: ColumnValues) -> Column:
    """The role of a column of text in a table whose ids are another column."""
    if column.whole:
        return Column(column.name, "unclear", "expected text as in other rows, got whole numbers")
    return Column(column.name, "left out", "text, and not named as ids or labels")


def assign(name: str, values: Sequence[ColumnValues], choices: Choices = NO_CHOICES) -> Columns:
    """The role of each column of the file `name`, a table of vectors.

    Raises a SpaceError if a name repeats, if a chosen column does not exist, or if two columns have one role.
    """
    names = [column.name for column in values]
    _check_names(name, values)
    roles = _chosen_roles(name, names, choices)
    roles |= _named_roles(name, names, choices, roles)
    free = [place for place in range(len(values)) if place not in roles]
    words = [i for i in free if names[i].lower() in _WORDS and values[i].holds in ("text", "mixed")]
    if len(words) == 1 and not any(role == "ids" for role, _ in roles.values()):
        roles[words[0]] = ("ids", f"named {names[words[0]]!r}")
    index = next((i for i in free if names[i] in INDEX and (i == 0 or names[i])), None)
    if index is not None and values[index].holds == "nothing":
        index = None
    vectors = [names[i] for i in free if values[i].holds == "vectors"]
    columns = []
    for i, item in enumerate(values):
        if i in roles:
            columns.append(Column(names[i], *roles[i]))
        else:
            columns.append(_by_kind(item, vectors))
    others = [item for i, item in enumerate(columns) if i != index]
    has_ids = any(column.role == "ids" for column in others)
    if index is not None:
        columns[index] = _index(values[index], has_ids, any(item.reason == TEXT_OR for item in others))
        has_ids = has_ids or columns[index].role == "ids"
    if run := _numbered_run(columns):
        # A year or a price beside v0 … v95 is no dimension: it would dominate every distance.
        reason = f"{OUTSIDE}{names[run[0]]} … {names[run[-1]]}"
        for place in {i for i, column in enumerate(columns) if column.role == "dimension"} - {*run}:
            columns[place] = Column(names[place], "left out", reason)
    texts = [place for place, column in enumerate(columns) if column.reason == TEXT_OR]
    if has_ids:
        for place in texts:
            columns[place] = _text_beside_ids(values[place])
    elif len(texts) == 1:
        columns[texts[0]] = Column(names[texts[0]], "ids", "the only column of text")
    if has_ids and choices.text_column is None:
        for place in [place for place in texts if names[place].lower() in _TEXTS][:1]:
            columns[place] = Column(names[place], "text", f"named {names[place]!r}")
    return Columns(tuple(columns))


def _check_names(name: str, values: Sequence[ColumnValues]) -> None:
    names = [column.name for column in values]
    if twice := [item for item, times in Counter(names).items() if times > 1 and item]:
        places = ", ".join(str(place + 1) for place, item in enumerate(names) if item == twice[0])
        raise SpaceError(
            f"{name}: expected distinct column names, got {quote(twice[:3])} more than once (columns"
            f" {places:.80}); rename those that repeat"
        )
    for place, column in enumerate(values):
        if place and not column.name and column.holds != "nothing":
            raise SpaceError(
                f"{name}: expected a name for each column, got none for column {place + 1}; name it in the"
                " first line"
            )


def _chosen_roles(name: str, names: Sequence[str], choices: Choices) -> dict[int, tuple[Role, str]]:
    """The roles of the columns that the user chose, by their places, each with the reason."""
    roles: dict[int, tuple[Role, str]] = {}
    chosen = [(role, option, getattr(choices, option)) for role, option in OPTIONS.items()]
    ignored: list[tuple[Role, str, str]] = [("left out", "ignore", column) for column in choices.ignore]
    for role, option, column in [*chosen, *ignored]:
        if column is None:
            continue
        if column not in names:
            raise SpaceError(
                f"{name}: {option} expects one of {quote(names[:8])}, got {quote([column])}; check its name"
            )
        if names.index(column) in roles:
            raise SpaceError(
                f"{name}: {option}: expected a column that has no other role, got {quote([column])}; choose"
                " another"
            )
        roles[names.index(column)] = (role, "chosen")
    return roles


def _named_roles(
    name: str, names: Sequence[str], choices: Choices, taken: Collection[int]
) -> dict[int, tuple[Role, str]]:
    """The roles of the other columns whose names say their role. `taken` are the places of chosen columns."""
    roles: dict[int, tuple[Role, str]] = {}
    for role, usual in _USUAL.items():
        if getattr(choices, OPTIONS[role]) is not None:
            continue
        places = [place for place, item in enumerate(names) if item.lower() in usual and place not in taken]
        if len(places) > 1:
            raise SpaceError(
                f"{name}: expected one column of {role}, got {quote([names[place] for place in places])};"
                f" choose one with {OPTIONS[role]}"
            )
        roles |= {place: (role, f"named {names[place]!r}") for place in places}
    return roles


def _by_kind(column: ColumnValues, vectors: Sequence[str]) -> Column:
    name = column.name
    kind = column.holds
    if kind == "vectors" and len(vectors) == 1:
        return Column(name, "dimension", VECTORS)
    if kind in ("numbers", "flags", "mixed", "nothing") and vectors:
        return Column(name, "left out", f"no vectors; those are in {vectors[0]!r}")
    if kind == "numbers" and not _NO_DIMENSION.fullmatch(name.lower()):
        return Column(name, "dimension", "numbers")
    if kind == "other" or (kind == "nothing" and not name):
        return Column(name, "left out", column.note or EMPTY)
    if kind == "mixed" and name.lower() not in _WORDS:
        return Column(name, "unclear", column.note, column.where)
    reasons = {
        "vectors": f"expected one column of vectors, got {quote(vectors)}",
        "numbers": "expected a dimension, got numbers in a column whose name suggests another role",
        "flags": "expected numbers or text, got true and false",
        "nothing": "expected numbers or text, got empty cells",
    }
    return Column(name, "unclear", reasons.get(kind, TEXT_OR))


def _numbered_run(columns: Sequence[Column]) -> list[int]:
    """The indices of the columns whose names form the longest numbered series, such as v0 … v95. [] if there
    is none, or if two are equally long."""
    runs: dict[str, list[int]] = defaultdict(list)
    for place, column in enumerate(columns):
        if column.role == "dimension" and column.name[-1:].isdigit():
            runs[column.name.rstrip("0123456789")].append(place)
    by_size = sorted(runs.values(), key=len, reverse=True)
    clear = by_size and len(by_size[0]) > 1 and len(by_size[0]) > max(map(len, by_size[1:]), default=0)
    return by_size[0] if clear else []


def _index(column: ColumnValues, has_ids: bool, texts: bool) -> Column:
    name = column.name
    if has_ids:
        return Column(name, "left out", "an index; the ids are elsewhere")
    if column.holds in ("text", "mixed"):
        return Column(name, "ids", "the first column, without a name")
    if column.holds != "numbers" or not column.whole:
        return Column(
            name,
            "unclear",
            "expected a name, or row numbers without a name, got other numbers without a name",
        )
    if texts:
        return Column(name, "unclear", TEXT_OR)
    return Column(name, "ids", "an index")


_LABEL_NAMES = (
    *("class", "category", "target", "topic", "genre", "species"),
    *("language", "lang", "cluster", "group", "type"),
)
_LABEL_ENDINGS = ("_label", "_class", "_category")
_PICTURE = re.compile(r".+\.(png|jpe?g|webp|gif|bmp|tiff?)", re.IGNORECASE)
_LONG = 25  # maximum number of characters of a text that is just a name
_MOST_CLASSES = 50


def names_ids(name: str) -> bool:
    plain = name.strip().lower()
    return plain in (*_USUAL["ids"], *_WORDS) or plain.endswith(("_id", "uuid", "uid"))


class _Rule(NamedTuple):
    """A column of one of the `kinds` gets a role if it `fits`, by its place. `reason` says why; "" if the
    reason is its name."""

    role: Role
    kinds: tuple[str, ...]
    reason: str
    fits: Callable[[int], bool]


def assign_metadata(
    name: str,
    kinds: Mapping[str, str],
    first: Mapping[int, Sequence[Any]],
    is_distinct: Callable[[int], bool],
    choices: Choices,
) -> Columns:
    """The role of each column of the file `name`, a table of metadata. It follows from the column's name, its
    kind and its `first` cells.

    `is_distinct(place)` says whether the whole column holds distinct ids.
    """
    names = [item.strip() for item in kinds]
    roles = _chosen_roles(name, names, choices)
    roles |= _named_roles(name, names, choices, roles)
    for rule in _rules(names, first, is_distinct):
        if not any(taken == rule.role for taken, _ in roles.values()):
            free = [i for i, kind in enumerate(kinds.values()) if kind in rule.kinds and i not in roles]
            if (place := next(filter(rule.fits, free), None)) is not None:
                roles[place] = (rule.role, rule.reason or f"named {names[place].lower()!r}")
    held = {"number": "numbers", "text": "texts", "image": "pictures", "other": "neither numbers nor texts"}
    columns = [
        Column(names[place], *roles.get(place, ("left out", held[kind])))
        for place, kind in enumerate(kinds.values())
    ]
    return Columns(tuple(columns))


def _rules(
    names: list[str], first: Mapping[int, Sequence[Any]], is_distinct: Callable[[int], bool]
) -> tuple[_Rule, ...]:
    """The rules of `assign_metadata`, the most certain ones first."""
    plain = [item.lower() for item in names]
    texts = defaultdict(list)
    for place, cells in first.items():
        texts[place] = [item for item in cells if isinstance(item, str) and item.strip()]

    def is_long(cells: list[str]) -> bool:
        spaced = sum(" " in item.strip() for item in cells)
        return bool(cells) and sum(map(len, cells)) >= _LONG * len(cells) and 2 * spaced > len(cells)

    text = ("text",)
    some = ("text", "number")
    return (
        _Rule("pictures", ("image",), "pictures", lambda i: True),
        _Rule(
            "pictures",
            text,
            "names of picture files",
            lambda i: all(map(_PICTURE.fullmatch, texts[i] or [""])),
        ),
        _Rule("text", text, "", lambda i: plain[i] in _TEXTS),
        _Rule("text", text, "long texts", lambda i: is_long(texts[i])),
        _Rule("ids", some, "named as ids", lambda i: names_ids(plain[i]) and is_distinct(i)),
        _Rule(
            "ids",
            text,
            "distinct texts",
            lambda i: len(set(texts[i])) == len(first.get(i, "x")) and is_distinct(i),
        ),
        _Rule("ids", some, "an index", lambda i: i == 0 and names[0] in INDEX and is_distinct(0)),
        _Rule("labels", some, "", lambda i: plain[i] in _LABEL_NAMES or plain[i].endswith(_LABEL_ENDINGS)),
        _Rule(
            "labels",
            text,
            "few distinct texts",
            lambda i: 2 <= len(set(texts[i])) <= min(_MOST_CLASSES, len(texts[i]) // 2),
        ),
        _Rule("counts", ("number",), "", lambda i: plain[i] in ("freq", "frequency", "occurrences")),
    )


_ORDER: tuple[Role, ...] = ("unclear", "ids", "labels", "counts", "text", "pictures", "dimension", "left out")
_FEW = 4  # longer series of columns of one role get one line


def overview(table: Columns) -> list[tuple[str, str, str]]:
    """Describe a table to a user by lines (column, role, reason). Unclear columns come first.

    Examples
    --------
    >>> from relcore.files.columns import Column, Columns
    >>> dimensions = [Column(f"d{place}", "dimension", "numbers") for place in range(300)]
    >>> overview(Columns((Column("id", "ids", "named 'id'"), *dimensions)))
    [('id', 'ids', "named 'id'"), ('d0 … d299', '300 dimensions', 'numbers')]
    """
    lines = []
    for (role, reason), group in groupby(table.columns, key=lambda column: (column.role, column.reason)):
        columns = list(group)
        parts = [[column] for column in columns]
        if len(columns) > _FEW and role in ("dimension", "left out"):
            parts = [columns]
        for part in parts:
            title = " … ".join(dict.fromkeys(shown_name(item.name) for item in (part[0], part[-1])))
            where = ""
            if part[0].where:
                where = f"{part[0].where}: "
            lines.append((role, title, _read_as(role, len(part), table), where + reason))
    return [line[1:] for line in sorted(lines, key=lambda line: _ORDER.index(line[0]))]


def size_in_words(n: int | None, dimension: int | None, limit: int | None = None) -> str:
    """The size of a space in words, ``"12 rows × 4 dimensions"``. Unknown numbers are left out."""
    if n is not None and limit is not None:
        n = min(n, limit)
    sizes = ((n, "row"), (dimension, "dimension"))
    return " × ".join(counted(size, what) for size, what in sizes if size is not None)


def shown_name(name: str) -> str:
    return name or "(no name)"


def _read_as(role: Role, n: int, table: Columns) -> str:
    if role == "unclear":
        return "⚠ unclear"
    if role == "dimension" and len(table.places("dimension")) == 1 and table.dimension != 1:
        if table.dimension is None:
            return "dimensions"
        return f"{table.dimension:,} dimensions"
    if role == "left out":  # the app still colours and filters by a column that is left out
        if n == 1:
            return "further column"
        return f"{n:,} further columns"
    if n == 1:
        return role
    if role == "dimension":
        return f"{n:,} dimensions"
    return f"{n:,} {role}"
