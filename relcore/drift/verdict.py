"""Does the drift matter? Every measure against its threshold, for the two situations in which a new
version is deployed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pandas as pd

from relcore.base import records
from relcore.base.access import expanded, regular_file
from relcore.base.errors import SpaceError
from relcore.base.names import Named
from relcore.base.text import read_lines
from relcore.drift.measures import EVERYTHING_NEW, NEW_QUERIES, Measure

# How much may change before the drift gate alarms: tolerances beyond the noise level, from a TOML or JSON
# file.

_WHAT = "thresholds of the drift gate"
_MOST_BYTES = 1 << 16


class _Shares:
    """Dataclasses whose fields are all shares."""

    def __post_init__(self) -> None:
        for name, share in vars(self).items():
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
                raise SpaceError(f"{name}: expected a share from 0 to 1, got {share!r:.80}")


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
        return records.from_json(Thresholds, records.read_file(path, _WHAT), str(path))
    if suffix != ".toml":
        got = f"{suffix or 'no suffix'}; rename the file"
        raise SpaceError(f"{path}: expected {_WHAT} as a .toml or .json file, got {got}")
    if not path.exists():
        raise SpaceError(f"{path}: expected {_WHAT} as a .toml file, got no such file; check the path")
    if (size := regular_file(path).stat().st_size) > _MOST_BYTES:
        got = f"{size >> 10:,} KB; is it this file?"
        raise SpaceError(f"{path}: expected {_WHAT}, at most {_MOST_BYTES >> 10} KB, got {got}")
    try:
        tables = tomllib.loads("\n".join(read_lines(path, _WHAT)))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SpaceError(f"{path}: expected {_WHAT} as TOML, got invalid TOML ({error!s:.200})") from None
    records.need_plain(tables, str(path))
    return records.from_json(Thresholds, tables, str(path))


def as_toml(thresholds: Thresholds) -> str:
    """The text of a file that `read_thresholds` reads as these thresholds."""
    return "\n".join(
        f"[{name}]\n" + "".join(f"{quantity} = {share!r}\n" for quantity, share in table.items())
        for name, table in records.to_json(thresholds).items()
    )


def default_file() -> str:
    """The text of the bundled file, with the defaults and what they mean: a start for one's own."""
    return (files("relcore.drift") / "thresholds.toml").read_text(encoding="utf-8")


SITUATIONS = {
    EVERYTHING_NEW: Named("Everything is new", help="rows and queries are embedded by the new version"),
    NEW_QUERIES: Named(
        "New queries, old vectors", help="queries of the new version search the vectors of the old version"
    ),
}
QUANTITIES = {
    "churn": Named("churn", help="share of the nearest neighbours that changed"),
    "rho": Named("ρ", help="what remains after shift, scale and rotation"),
    "lost": Named(
        "lost queries", help="share of new vectors that rank another old vector above that of the same row"
    ),
}
_FALSE_ALARMS = (
    0.005  # of each quantity: a situation has two, and each again for the classes, which share theirs
)


@dataclass(frozen=True)
class Check:
    """One measure against its threshold.

    Attributes
    ----------
    measure : Measure
    sure : float
        Lower bound of value − noise, one-sided; with Bonferroni's correction where there are several classes.
    threshold : float
    alarm : bool
        Whether the bound is above the threshold.
    """

    measure: Measure
    sure: float
    threshold: float
    alarm: bool

    @property
    def name(self) -> str:
        """``"churn"``, ``"churn of class 'seven'"``."""
        of = f" of class {self.measure.group!r}" if self.measure.group else ""
        return f"{QUANTITIES[self.measure.quantity].title}{of}"


@dataclass(frozen=True)
class DriftVerdict:
    """All checks of a drift; `impossible` names the situation that cannot work at all, with the reason."""

    checks: tuple[Check, ...]
    impossible: dict[str, str]

    def alarms(self, situation: str) -> list[Check]:
        """Those above their threshold, the largest excess first."""
        alarms = [check for check in self.checks if check.alarm and check.measure.situation == situation]
        return sorted(alarms, key=lambda check: (bool(check.measure.group), check.threshold - check.sure))

    def alarmed(self, situations: Sequence[str] = tuple(SITUATIONS)) -> bool:
        """Whether any of these situations has an alarm."""
        return any(one in self.impossible or self.alarms(one) for one in situations)

    def table(self) -> pd.DataFrame:
        """One row per check: situation, quantity, group, value, noise, sure, threshold, alarm, rows."""
        columns = ("situation", "quantity", "group", "value", "noise", "sure", "threshold", "alarm", "n")
        rows = [[(vars(check.measure) | vars(check))[name] for name in columns] for check in self.checks]
        return pd.DataFrame(rows, columns=[*columns[:-1], "rows"])


def judge(measures: Sequence[Measure], thresholds: Thresholds, widths: tuple[int, int]) -> DriftVerdict:
    """Compare all measures with the thresholds."""
    from scipy.special import stdtrit

    n_groups = max(1, len({measure.group for measure in measures} - {""}))
    checks = []
    for one in measures:
        rate = _FALSE_ALARMS / (n_groups if one.group else 1)
        sure = one.value - one.noise - float(stdtrit(max(1, one.n - 1), 1 - rate)) * one.error
        name = f"class_{one.quantity}" if one.group else one.quantity
        threshold = float(getattr(getattr(thresholds, one.situation), name))
        checks.append(Check(one, sure, threshold, sure > threshold))
    impossible = {}
    if widths[0] != widths[1]:
        impossible[NEW_QUERIES] = (
            f"new queries have {widths[1]:,} dimensions and old vectors {widths[0]:,}, so they cannot be"
            " compared; embed the rows again, or map the queries"
        )
    return DriftVerdict(tuple(checks), impossible)
