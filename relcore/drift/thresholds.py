"""Thresholds of drift: how much change is allowed, read from TOML."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from relcore.base import records
from relcore.base.access import expand_home, regular_file
from relcore.base.errors import SpaceError
from relcore.base.kinds import need_kinds
from relcore.base.text import read_lines

# Thresholds: the largest changes above the noise level that raise no alarm.

_WHAT = "thresholds of the drift gate"
_MOST_BYTES = 1 << 16


class _Shares:
    def __post_init__(self) -> None:
        for name, share in vars(self).items():
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
                raise SpaceError(f"{name}: expected a share from 0 to 1, got {share!r:.80}")


@dataclass(frozen=True)
class EverythingNew(_Shares):
    """The thresholds, 0 … 1, if the new version embeds both rows and queries. Each limits a share, over all
    rows and (`class_…`) within each class. `churn` limits the share of neighbours that change. `rho` limits
    the share of the new rows' variance that no shift, scaling and rotation of the old rows explains.
    """

    churn: float = 0.05
    rho: float = 0.01
    class_churn: float = 0.1
    class_rho: float = 0.05


@dataclass(frozen=True)
class NewQueries(_Shares):
    """The thresholds, 0 … 1, if new queries search old vectors. Each limits a share, over all rows and
    (`class_…`) within each class. `lost` limits the share of queries for which the old vector of another row
    is nearer than that of the query itself. `churn` limits the share of neighbours that change.
    """

    lost: float = 0.01
    churn: float = 0.05
    class_lost: float = 0.05
    class_churn: float = 0.1


@dataclass(frozen=True)
class BrokenRows(_Shares):
    """The thresholds, 0 … 1, for the share of rows that the new version breaks, in both situations. A row is
    broken if it is missing, zero, a repetition of another row, or out of place (`moved`); rows that were
    already broken in the old version do not count. `constant` limits the share of dimensions that became
    constant.
    """

    missing: float = 0.0
    zero: float = 0.0
    repeated: float = 0.0
    moved: float = 0.0
    constant: float = 0.01
    class_missing: float = 0.05
    class_zero: float = 0.05
    class_repeated: float = 0.05
    class_moved: float = 0.05


@dataclass(frozen=True)
class Thresholds:
    """All thresholds of a drift check: those of both situations, and those for broken rows.

    Examples
    --------
    >>> from relcore import Thresholds
    >>> Thresholds() == Thresholds()
    True
    """

    everything_new: EverythingNew = EverythingNew()
    new_queries: NewQueries = NewQueries()
    rows: BrokenRows = BrokenRows()

    def __post_init__(self) -> None:
        need_kinds(self)


def read_thresholds(path: str | Path) -> Thresholds:
    """Read thresholds from a .toml file. Those that the file lacks get their default values."""
    path = expand_home(path)
    if (suffix := path.suffix.lower()) != ".toml":
        raise SpaceError(f"{path}: expected {_WHAT} as a .toml file, got {suffix or 'no suffix'}")
    if (size := regular_file(path).stat().st_size) > _MOST_BYTES:
        raise SpaceError(f"{path}: expected {_WHAT}, at most {_MOST_BYTES >> 10} KB, got {size >> 10:,}")
    try:
        tables = tomllib.loads("\n".join(read_lines(path, _WHAT)))
    except (ValueError, RecursionError) as error:
        raise SpaceError(f"{path}: expected {_WHAT} as TOML, got invalid TOML ({error!s:.200})") from None
    return records.from_json(Thresholds, tables, str(path))


def as_toml(thresholds: Thresholds) -> str:
    return "\n".join(
        f"[{name}]\n" + "".join(f"{quantity} = {share!r}\n" for quantity, share in table.items())
        for name, table in records.to_json(thresholds).items()
    )


def default_file() -> str:
    return (files("relcore.drift") / "thresholds.toml").read_text(encoding="utf-8")
