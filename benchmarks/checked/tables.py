"""Tables of the draws of `single_rows`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.checked.collections import KINDS
from benchmarks.checked.single_rows import (
    AS_GOOD,
    MODES,
    NEW_KINDS,
    NOTHING_FAMILIES,
    NOTHING_MODES,
    TUNED,
    WHOSE_KINDS,
)
from relcore.base.numbers import short
from relcore.check.mixed_search import advice


def sections(path: Path) -> dict[str, list[str]]:
    """Title → lines of each section of a table's file, its title included; empty without the file. Empty lines
    are left out, except the one below the title."""
    found: dict[str, list[str]] = {}
    if not path.exists():
        return found
    lines: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            lines = found.setdefault(line.removeprefix("## "), [line, ""])
        elif line:
            lines.append(line)
    return found


def interval(found: pd.Series) -> str:
    """Count of draws with a 95 % interval (Jeffreys)."""
    from scipy.stats import beta

    k = int(found.sum())
    n = len(found)
    low = 0.0
    if k:
        low = beta.ppf(0.025, k + 0.5, n - k + 0.5)
    high = 1.0
    if k < n:
        high = beta.ppf(0.975, k + 0.5, n - k + 0.5)
    return f"{k} of {n} ({short(low)} to {short(high)})"


def _means(part: pd.DataFrame, *columns: str) -> list[str]:
    return [short(float(part[column].astype(float).mean())) for column in columns]


# Columns of a cell that are added up if draws are pooled. `false` and `power` are sums over the draws that named rows,
# `shifted` and `unknown` over those that were answered.
_ADDED = (
    "draws",
    "answered",
    "either",
    "swapped",
    "named",
    "false",
    "power",
    "true",
    "bounds",
    "shifted",
    "unknown",
)
_CELL = ["mode", "other", "share"]


def whose_table(some: pd.DataFrame, written: Iterable[str] = ()) -> Iterator[list[str]]:
    """A row for each kind of other model and for all of them, then one for each other model. The lines
    `written` of an earlier table are pooled with the draws."""
    cells = pd.concat([_cells(some), _written_cells(written)])
    cells = _pooled(cells, _CELL)
    kinds = {other: kind for kind, others in WHOSE_KINDS.items() for other in others}
    by_kind = cells.assign(other=cells.other.map(kinds))
    yield from map(_cell_row, _pooled(by_kind, _CELL).to_dict("records"))
    yield from map(_cell_row, _pooled(by_kind.assign(other="all"), _CELL).to_dict("records"))
    order = [*kinds]
    cells = cells.sort_values("other", key=lambda others: others.map(order.index), kind="stable")
    cells = cells.sort_values("mode", key=lambda modes: modes.map(MODES.index), kind="stable")
    yield from map(_cell_row, cells.to_dict("records"))


def _pooled(cells: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    groups = cells.groupby(by)
    return groups[[*_ADDED]].sum().join(groups.highest.max()).reset_index()


def _cells(some: pd.DataFrame) -> pd.DataFrame:
    """A row of sums for each cell of draws."""
    rows = []
    for key, one in some.groupby(_CELL):
        told = one[one.answered.astype(bool)]
        named = told[~told.either.astype(bool)]
        bound = named[named.bound.notna()]
        rows.append(
            {
                **dict(zip(_CELL, key, strict=True)),
                "draws": len(one),
                "answered": len(told),
                "either": len(told) - len(named),
                "swapped": named.swapped.sum(),
                "named": len(named),
                "false": named["false"].sum(),
                "highest": named["false"].max(),
                "power": named.power.sum(),
                "true": (bound["false"] <= bound.bound).sum(),
                "bounds": len(bound),
                "shifted": told.shifted.sum(),
                "unknown": told.unknown.sum(),
            }
        )
    return pd.DataFrame(rows)


def _written_cells(lines: Iterable[str]) -> pd.DataFrame:
    """The sums of each cell of a table's lines. If two lines have the same cell, the last one counts: a kind and
    one of the other models have the same name, and the kinds come first."""
    rows = {}
    models = {other for others in WHOSE_KINDS.values() for other in others}
    for line in lines:
        texts = [text.strip() for text in line.strip("|").split("|")]
        if texts[0] not in MODES or texts[1] not in models:
            continue
        mode, other, share, answered, either, swapped, false, highest, power, true, shifted, unknown = texts
        answered, draws = _counts(answered)
        true, bounds = _counts(true)
        named = answered - int(either)
        rows[mode, other, share] = {
            "mode": mode,
            "other": other,
            "share": float(share),
            "draws": draws,
            "answered": answered,
            "either": int(either),
            "swapped": int(swapped),
            "named": named,
            "false": _sum(false, named),
            "highest": pd.to_numeric(highest, errors="coerce"),
            "power": _sum(power, named),
            "true": true,
            "bounds": bounds,
            "shifted": _sum(shifted, answered),
            "unknown": _sum(unknown, answered),
        }
    return pd.DataFrame([*rows.values()])


def _counts(text: str) -> tuple[int, int]:
    """The numbers of ``3 of 4``."""
    first, _, second = text.partition(" of ")
    return int(first), int(second)


def _sum(mean: str, count: int) -> float:
    """The sum of `count` numbers with this mean."""
    if not count:
        return 0.0
    return float(mean) * count


def _cell_row(cell: dict[str, float]) -> list[str]:
    def mean(name: str, of: str) -> str:
        if not cell[of]:
            return short(np.nan)
        return short(cell[name] / cell[of])

    return [
        str(cell["mode"]),
        str(cell["other"]),
        f"{cell['share']:g}",
        f"{int(cell['answered'])} of {int(cell['draws'])}",
        f"{int(cell['either'])}",
        f"{int(cell['swapped'])}",
        mean("false", "named"),
        short(cell["highest"]),
        mean("power", "named"),
        f"{int(cell['true'])} of {int(cell['bounds'])}",
        mean("shifted", "answered"),
        mean("unknown", "answered"),
    ]


def nothing_table(some: pd.DataFrame) -> Iterator[list[str]]:
    """A row for each kind, for all kinds, and for each encoder over all kinds."""
    some = some.dropna(subset=["kind"])
    some = some[some.unfit.eq("")]
    alarms = some.verdict.isin(["two models", "suspicious"])
    sure = some.verdict.eq("two models")
    parts = {kind: some.kind.eq(kind) for kind in (*KINDS, *NEW_KINDS)}
    parts["all"] = some.kind.notna()
    parts |= {f"all, {family}": some.family.eq(family) for family in NOTHING_FAMILIES}
    for name, part in parts.items():
        if part.any():
            cells = [interval(alarms[part & some["mode"].eq(mode)]) for mode in dict.fromkeys(NOTHING_MODES)]
            yield [name, *cells, interval(alarms[part]), f"{int(sure[part].sum())}"]


def search_table(some: pd.DataFrame) -> Iterator[list[str]]:
    """Means over the draws of a cell. `advised` is the gain of what is advised over one query."""
    some = some.copy()
    for column in ("both", "both_wrong", "repaired", "repaired_wrong"):
        some[column] -= some.plain
    for (name, other, share), one in some.groupby(["name", "other", "share"], sort=False):
        ratio = float((one.alone / one.pure).mean())
        two_queries = advice(share, as_good=ratio >= AS_GOOD) == "both models"
        chose = "no"
        if name in TUNED:
            chose = "yes"
        gains = [f"{one[column].mean():+.3f}".replace("+nan", "–") for column in _GAINS]
        cells = [name, chose, other, f"{share:g}", short(ratio, 2), *_means(one, "pure", "plain"), *gains]
        advised = "one query"
        if two_queries:
            advised = "two queries"
        yield [*cells, advised]


_GAINS = ("both", "both_wrong", "repaired", "repaired_wrong")


def size_table(some: pd.DataFrame) -> Iterator[list[str]]:
    for other, one in some.groupby("other"):
        yield [
            str(other),
            *(short(float(one[name].max()), 2) for name in ("seconds", "busy", "before", "peak")),
        ]


# Part → title, columns and the function of its rows.
WHOSE_SECTIONS = {
    "whose": (
        "Which model made each row",
        (
            "trusted rows",
            "other model",
            "share",
            "answered",
            "whose is unknown",
            "swapped",
            "false discoveries, mean",
            "highest",
            "power",
            "bound true",
            "other texts",
            "rows unknown",
        ),
        whose_table,
    ),
    "nothing": (
        "One model: alarms, by trusted rows",
        ("kind", *dict.fromkeys(NOTHING_MODES), "all", "of these *two models*"),
        nothing_table,
    ),
    "search": (
        "nDCG@10 of a mixed collection; gains over one query",
        (
            "collection",
            "chose the rule",
            "other model",
            "share",
            "its nDCG@10 ÷ MiniLM's",
            "not mixed",
            "one query",
            "two queries",
            "two, 2 % of labels wrong",
            "repaired by 300 pairs",
            "repaired, 2 % wrong",
            "advised without pairs",
        ),
        search_table,
    ),
    "size": (
        "20,000 rows, 200 trusted",
        ("other model", "seconds, most of two", "of CPU", "GB before", "GB at most"),
        size_table,
    ),
}
