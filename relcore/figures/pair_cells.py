"""Cells of a heat map of pairs: what stands where and in which colours, the same on screen and on paper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from relcore.figures.palette import Theme
from relcore.numbers import band, in_cell, short

PAIR_COLUMNS = ("first", "second", "score", "chance", "null_low", "null_high", "n", "reason")
MOST_WITH_CHANCE, MOST_WITH_NUMBERS = 8, 16  # spaces; with more of them a cell has no room
_INKS = ("#0b0c12", "#ffffff")
_RAMPS = {
    False: ("#f1f1f8", "#c9c6e8", "#8f86d0", "#4338a8", "#241a6b"),
    True: ("#1f2233", "#37346b", "#5b52ad", "#857ce0", "#c4bfff"),
}


@dataclass(frozen=True)
class PairCells:
    """A symmetric matrix of named spaces, its rows in the order in which the table has them.

    Attributes
    ----------
    names : s distinct names
    scores : array (s, s)
        NaN where there is none.
    rows : s × s of the table's rows
    """

    names: tuple[str, ...]
    scores: np.ndarray
    rows: tuple[tuple[pd.Series, ...], ...]

    @classmethod
    def of(cls, table: pd.DataFrame) -> PairCells:
        """From a table with `PAIR_COLUMNS`, one row a pair, each space with itself among them.

        Raises
        ------
        ValueError
            A column or a pair is absent, or a pair comes twice.
        """
        absent = [column for column in PAIR_COLUMNS if column not in table.columns]
        if absent:
            raise ValueError(f"pairs: expected the columns {', '.join(PAIR_COLUMNS)}, got no {', '.join(absent)}")
        names = tuple(dict.fromkeys([*table["first"], *table["second"]]))
        found = {frozenset((row["first"], row["second"])): row for _, row in table.iterrows()}
        expected = len(names) * (len(names) + 1) // 2
        if not names or len(found) != expected or len(table) != expected:
            raise ValueError(f"pairs: expected one row for each of {expected} pairs, got {len(table)} for {len(found)}")
        rows = tuple(tuple(found[frozenset((first, second))] for second in names) for first in names)
        scores = np.array([[row["score"] for row in line] for line in rows], dtype=float)
        return cls(names, scores, rows)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def missing(self) -> list[tuple[int, int]]:
        """Cells without a score, (row, column)."""
        return [(int(i), int(j)) for i, j in np.argwhere(np.isnan(self.scores))]

    @property
    def scale(self) -> tuple[float, float]:
        """Scores of the palest and the deepest colour: 0 and 1, whatever the data, so that figures compare."""
        return 0.0, 1.0

    def number(self, i: int, j: int) -> str:
        """``".87"``, "" where there is none or no room."""
        score = self.scores[i, j]
        return "" if len(self) > MOST_WITH_NUMBERS else in_cell(score)

    def chance(self, i: int, j: int) -> str:
        """``"chance .031"``, beneath the number; "" for a space with itself, and where there is no room."""
        chance = self.rows[i][j]["chance"]
        return "" if i == j or pd.isna(chance) or len(self) > MOST_WITH_CHANCE else f"chance {in_cell(chance)}"

    def explain(self, i: int, j: int) -> list[str]:
        """All lines about a cell: the two names, the score, its chance level, the rows; or why there is no score."""
        row = self.rows[i][j]
        lines = [self.names[i] if i == j else f"{self.names[i]} and {self.names[j]}"]
        if pd.isna(row["score"]):
            return [*lines, row["reason"]]
        sampled = f" ({band(row['low'], row['high'])}, sampled)" if not pd.isna(row.get("low", np.nan)) else ""
        lines.append(f"{short(row['score'])}{sampled}")
        if not pd.isna(row["chance"]):
            lines.append(f"chance {short(row['chance'])} ({band(row['null_low'], row['null_high'])})")
        asked = row.get("queries", row["n"])
        return [*lines, f"{row['n']:,} rows" if asked == row["n"] else f"{asked:,} of {row['n']:,} rows as queries"]

    def alt(self, title: str) -> str:
        """The figure in words."""
        pairs = [(i, j) for i in range(len(self)) for j in range(i + 1, len(self))]
        told = "; ".join(f"{self.names[i]} and {self.names[j]}: {self.number(i, j) or 'none'}" for i, j in pairs[:30])
        return f"Heat map of {title}, {len(self)} by {len(self)} spaces. {told}{'; and more' if len(pairs) > 30 else ''}."


def pair_ramp(theme: Theme) -> tuple[str, ...]:
    """Five colours, palest first: one hue in different lightness, readable for colour-blind eyes and in greyscale."""
    return _RAMPS[theme.dark]


def cell_color(score: float, scale: tuple[float, float], theme: Theme) -> tuple[float, float, float]:
    """The colour of a score as three shares 0 … 1, linear between those of the ramp; beyond the scale its end."""
    ramp = np.array([_shares(color) for color in pair_ramp(theme)])
    share = np.clip((score - scale[0]) / (scale[1] - scale[0]), 0, 1)
    return tuple(float(np.interp(share, np.linspace(0, 1, len(ramp)), ramp[:, channel])) for channel in range(3))


def text_on(color: tuple[float, float, float]) -> str:
    """Black or white, whichever has more contrast on a colour of three shares 0 … 1 (contrast of WCAG 2)."""
    return max(_INKS, key=lambda ink: _contrast(_shares(ink), color))


def _contrast(first: tuple[float, ...], second: tuple[float, ...]) -> float:
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def _luminance(color: tuple[float, ...]) -> float:
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in color[:3]]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def _shares(color: str) -> tuple[float, ...]:
    return tuple(int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
