"""What a paper's row asserts, as comparisons between labelled numbers, kept in relcore/data/papers beside the row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from relcore.papers.ours import Number
from relcore.spaces import SpaceError, quote

CHANCE = "chance of "
_FIELDS = {"says", "run", "more", "than", "times", "plus", "over"}


@dataclass(frozen=True)
class Claim:
    """One comparison: `more` is larger than `times` × `than` + `plus`.

    Attributes
    ----------
    says : str
        The same in a sentence.
    run : str
        Whose numbers these are.
    more, than : str or float
        ``"label | metric"`` of a number, ``"chance of label | metric"`` of its baseline, or a constant. A label may have the
        wildcard ``*`` where it holds a value that a run finds; it must fit one number.
    times, plus : float
        The margin. Where a paper says "about as well", it is the least favourable one in the paper's own table.
    """

    says: str
    run: str
    more: str | float
    than: str | float
    times: float = 1.0
    plus: float = 0.0

    def sides(self) -> tuple[str | float, str | float]:
        return self.more, self.than


def claims_of(records: Sequence[Mapping[str, Any]]) -> tuple[Claim, ...]:
    """Claims from their records; a record with ``over`` is one for each of its values, put where ``{}`` stands.

    Raises
    ------
    SpaceError
        A field that is not known, or missing.
    """
    made = []
    for record in records:
        if unknown := set(record) - _FIELDS:
            raise SpaceError(f"claims: expected some of {quote(sorted(_FIELDS))}, got {quote(sorted(unknown))}")
        one = {name: value for name, value in record.items() if name != "over"}
        for value in record.get("over", [""]):
            try:
                made.append(Claim(**{name: _filled(part, value) for name, part in one.items()}))
            except TypeError as error:
                raise SpaceError(f"claims: a field is missing in {dict(record)!r}") from error
    return tuple(made)


def number_of(side: str, numbers: Sequence[Number]) -> Number:
    """The number that one side of a claim names.

    Raises
    ------
    SpaceError
        None fits, or more than one.
    """
    label, _, metric = side.removeprefix(CHANCE).partition(" | ")
    found = [number for number in numbers if number.metric == metric and _fits(number.label, label)]
    if len(found) != 1:
        known = quote(dict.fromkeys(f"{number.label} | {number.metric}" for number in numbers))
        raise SpaceError(f"claims: expected {side!r} to name one number, got {len(found)} that fit; there are {known}")
    return found[0]


def _fits(label: str, pattern: str) -> bool:
    return label == pattern or fnmatchcase(label, pattern.replace("[", "[[]"))


def _filled(part: Any, value: str) -> Any:
    return part.replace("{}", value) if isinstance(part, str) else part
