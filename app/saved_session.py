"""A session as it is saved: its history, its selection, and what it may open, as JSON that says each setting once.

The steps of a history share most of their settings, and a list of 2,000 anchors is long: each step holds, for each setting, the
number of its value in a list.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any, get_type_hints

from app.workspace import History, Workspace
from relcore import __version__, record
from relcore.plain_json import MOST_BYTES, parse
from relcore.spaces import SpaceError

_FIELDS = tuple(one.name for one in fields(Workspace))
_TYPES = get_type_hints(Workspace)


@dataclass(frozen=True)
class SavedSession:
    """What F5, a closed browser or a killed server would lose.

    Attributes
    ----------
    history : History
    selection : tuple of str
    address : dict
        The query of the address bar when it was saved, which may be one step behind.
    opened : str
        The files that `relscope app` was given, as JSON.
    digests : tuple
        Of source and target: their content when it was saved, "" where unknown.
    made, found : tuple of str
        Keys of the jobs and encodings that the session may open.
    awaited : tuple of str
        Keys of the encodings that are to join it.
    tabs : dict
        Which tab of a page was open.
    settings : dict
        Those of pages, see `app.page_settings`: JSON texts by the key of their widget.
    """

    history: History
    selection: tuple[str, ...] = ()
    address: dict[str, str] = field(default_factory=dict)
    opened: str = "[]"
    digests: tuple[str, ...] = ("", "")
    made: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    awaited: tuple[str, ...] = ()
    tabs: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Written:
    """The JSON: `values` by setting; a step is its name and, for each setting in order, the number of its value."""

    relscope: str
    values: dict[str, tuple[Any, ...]]
    past: tuple[tuple[str, tuple[int, ...]], ...]
    present: tuple[int, ...]
    future: tuple[tuple[str, tuple[int, ...]], ...]
    rest: dict[str, Any]


_REST = tuple(one.name for one in fields(SavedSession) if one.name != "history")


def to_bytes(saved: SavedSession) -> bytes:
    """The JSON text; without the selection where that would make it too large to be read again."""
    content = _to_bytes(saved)
    if len(content) > MOST_BYTES and saved.selection:
        return _to_bytes(replace(saved, selection=()))
    return content


def _to_bytes(saved: SavedSession) -> bytes:
    values: dict[str, list[str]] = {name: [] for name in _FIELDS}
    numbers: dict[tuple[str, Any], int] = {}

    def numbered(workspace: Workspace) -> list[int]:
        found = []
        for name in _FIELDS:
            value = getattr(workspace, name)
            if (name, value) not in numbers:
                numbers[name, value] = len(values[name])
                values[name].append(_text(name, value))
            found.append(numbers[name, value])
        return found

    past, future = saved.history.steps
    written = {
        "relscope": __version__,
        "past": [(step, numbered(one)) for step, one in past],
        "present": numbered(saved.history.present),
        "future": [(step, numbered(one)) for step, one in future],
        "rest": {name: getattr(saved, name) for name in _REST},
    }
    lists = ",".join(f"{_dumped(name)}:[{','.join(texts)}]" for name, texts in values.items())
    return f'{{"values":{{{lists}}},{_dumped(written)[1:]}'.encode()


@lru_cache(maxsize=1024)
def _text(name: str, value: Any) -> str:
    """The JSON of a setting's value: of 200 steps only the newest is written out again. By name, since 1 equals True."""
    return _dumped(record.to_json(value))


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def from_bytes(content: bytes) -> SavedSession:
    """Back from `to_bytes`.

    Raises
    ------
    SpaceError
        Damaged, or of a version with other settings.
    """
    written = record.from_json(_Written, parse(content, "saved session"), "saved session")
    if written.relscope != __version__:
        raise SpaceError(f"saved session: expected one of version {__version__}, got another version's")
    try:
        values = {name: [record.from_json(_TYPES[name], value, name) for value in written.values[name]] for name in _FIELDS}

        def workspace(numbers: tuple[int, ...]) -> Workspace:
            if min(numbers) < 0:
                raise IndexError(min(numbers))
            return Workspace(**{name: values[name][number] for name, number in zip(_FIELDS, numbers, strict=True)})

        history = History(
            workspace(written.present),
            [(step, workspace(numbers)) for step, numbers in written.past],
            [(step, workspace(numbers)) for step, numbers in written.future],
        )
    except (KeyError, IndexError, ValueError) as error:  # a SpaceError is a ValueError
        raise SpaceError(
            f"saved session: expected steps with all their settings, got something else ({error!r:.200})"
        ) from None
    kinds = get_type_hints(SavedSession)
    unknown = set(written.rest) - set(_REST)
    if unknown:
        raise SpaceError(f"saved session: got unknown settings {sorted(unknown)!r:.200}")
    return SavedSession(history, **{name: record.from_json(kinds[name], one, name) for name, one in written.rest.items()})
