"""How much may change before the drift gate alarms: tolerances beyond the noise level, from a TOML or JSON file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from relcore import record
from relcore.access import expanded, regular_file
from relcore.plain_json import need_plain, read_file
from relcore.spaces import SpaceError
from relcore.text_lines import read_lines

_WHAT = "thresholds of the drift gate"
_MOST_BYTES = 1 << 16


class _Shares:
    """Dataclasses whose fields are all shares."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise SpaceError(f"{field.name}: expected a share from 0 to 1, got {value!r:.80}")


@dataclass(frozen=True)
class EverythingNew(_Shares):
    """Tolerances if rows and queries are both embedded by the new version: shares 0 … 1.

    Attributes
    ----------
    churn : float
        Share of the k nearest neighbours that changed.
    rho : float
        What remains of the new rows after shift, scale and rotation.
    class_churn, class_rho : float
        The same for each class.
    """

    churn: float = 0.05
    rho: float = 0.01
    class_churn: float = 0.1
    class_rho: float = 0.05


@dataclass(frozen=True)
class NewQueries(_Shares):
    """Tolerances if queries of the new version search vectors of the old version: shares 0 … 1.

    Attributes
    ----------
    lost : float
        share of new vectors that rank another old vector above that of the same row.
    churn : float
        Share of the k nearest old rows that are others than those that the old vector finds.
    class_lost, class_churn : float
        The same for each class.
    """

    lost: float = 0.01
    churn: float = 0.05
    class_lost: float = 0.05
    class_churn: float = 0.1


@dataclass(frozen=True)
class Thresholds:
    """The tolerances of both situations."""

    everything_new: EverythingNew = EverythingNew()
    new_queries: NewQueries = NewQueries()


def read_thresholds(path: str | Path) -> Thresholds:
    """The thresholds in a .toml or .json file; what it leaves out takes the default.

    Raises
    ------
    SpaceError
        No such file, another suffix, no TOML or JSON, unknown names, no numbers from 0 to 1.
    """
    path = expanded(path)
    suffix = path.suffix.lower()
    if suffix == ".json":
        return record.from_json(Thresholds, read_file(path, _WHAT), str(path))
    if suffix != ".toml":
        raise SpaceError(f"{path}: expected {_WHAT} as a .toml or .json file, got {suffix or 'no suffix'}; rename the file")
    if not path.exists():
        raise SpaceError(f"{path}: expected {_WHAT} as a .toml file, got no such file; check the path")
    if (size := regular_file(path).stat().st_size) > _MOST_BYTES:
        raise SpaceError(f"{path}: expected {_WHAT}, at most {_MOST_BYTES >> 10} KB, got {size >> 10:,} KB; is it this file?")
    return record.from_json(Thresholds, _toml("\n".join(read_lines(path, _WHAT)), str(path)), str(path))


def as_toml(thresholds: Thresholds) -> str:
    """The text of a file that `read_thresholds` reads as these thresholds."""
    tables = ((name, record.to_json(getattr(thresholds, name))) for name in ("everything_new", "new_queries"))
    return "\n".join(f"[{name}]\n" + "".join(f"{one} = {share!r}\n" for one, share in table.items()) for name, table in tables)


def default_file() -> str:
    """The text of the bundled file, with the defaults and what they mean: a start for one's own."""
    return (files("relcore.drift") / "thresholds.toml").read_text(encoding="utf-8")


def _toml(text: str, where: str) -> dict[str, Any]:
    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SpaceError(f"{where}: expected {_WHAT} as TOML, got invalid TOML ({error!s:.200})") from None
    need_plain(found, where)
    return found
