"""Decoders of users: functions from a space's rows to pictures or vectors, and how well they read the rows of
other encoders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, brief, quote
from relcore.base.names import METHODS
from relcore.base.numbers import short
from relcore.stitch.own_heads import (
    errors_of_users,
    is_module,
    module_outputs,
    need_one_each,
    need_translations,
)

_ROWS_AT_ONCE = 256  # number of rows that are decoded in one call
Translate = Callable[[str, int, int, np.ndarray], np.ndarray | None]


@dataclass(frozen=True, eq=False)
class OwnDecoder:
    """A user's decoder of the rows of the space with this name."""

    name: str
    decoder: Any

    def items(self, X: np.ndarray) -> np.ndarray:
        """What the decoder makes of rows (m, d), as float64 (m, p), with each picture as one row.

        Raises
        ------
        SpaceError
            The decoder fails on these rows, or does not give a finite item for each.
        """
        with errors_of_users("decoder", self.name, X):
            if is_module(self.decoder):
                items = np.asarray(module_outputs(self.decoder, X).float().cpu())
            else:
                items = np.asarray(self.decoder(X), dtype=np.float64)
        if items.ndim < 2 or len(items) != len(X) or not items.size:
            raise SpaceError(
                f"decoders: expected an item for each of {len(X)} rows from the decoder of {self.name!r:.80},"
                f" got {items.shape}"
            )
        if not np.isfinite(items).all():
            raise SpaceError(
                f"decoders: expected finite numbers from the decoder of {self.name!r:.80}, got NaN"
            )
        return items.reshape(len(X), -1).astype(np.float64)


@dataclass(frozen=True)
class DecoderScores:
    """How well users' decoders read the rows of every encoder. Items are the test rows' true items, or where
    users gave none, what each decoder makes of its own encoder's rows.

    Attributes
    ----------
    decoders : tuple of str
        The encoders whose decoders the user gave.
    has_items : bool
        Whether the user gave the true items.
    error : method → array (random states, E, E)
        The mean squared error per number of an item, for each encoder (first axis) with each decoder (second
        axis). NaN if the pair has no decoder or no translation.
    explained : method → array (random states, E, E)
        The share of the items' variation that the decoded items explain: 1 is perfect, and always giving the
        mean item has 0.
    permuted : method → array (random states, E, E)
        `explained` after a permutation of the items, in the exact mean over all permutations. At most 0.
    """

    decoders: tuple[str, ...]
    has_items: bool
    error: Mapping[str, np.ndarray]
    explained: Mapping[str, np.ndarray]
    permuted: Mapping[str, np.ndarray]

    @classmethod
    def of_states(
        cls,
        decoders: Sequence[OwnDecoder | None],
        has_items: bool,
        states: Sequence[Mapping[str, np.ndarray]],
    ) -> DecoderScores:
        """The scores from those of each random state: method → what `decoder_scores` returns."""
        names = tuple(one.name for one in decoders if one is not None)
        stacked = {method: np.stack([state[method] for state in states], axis=1) for method in states[0]}
        error = {}
        explained = {}
        permuted = {}
        for method, scores in stacked.items():
            error[method], explained[method], permuted[method] = scores
        return cls(names, has_items, error, explained, permuted)

    def table(self, encoders: Sequence[str]) -> pd.DataFrame:
        """A table with one row per method, encoder and decoder: error and shares, averaged over the random
        states, the standard deviation of `explained` over them (0 for a single one), and as `not_stitched`
        what the decoder explains with its own encoder."""
        rows = []
        for method, by_state in self.explained.items():
            error = self.error[method].mean(axis=0)
            explained = by_state.mean(axis=0)
            deviation = np.zeros_like(explained)
            if len(by_state) > 1:
                deviation = by_state.std(axis=0, ddof=1)
            permuted = self.permuted[method].mean(axis=0)
            for i, j in np.ndindex(error.shape):
                if encoders[j] in self.decoders:
                    scores = error[i, j], explained[i, j], deviation[i, j], explained[j, j], permuted[i, j]
                    rows.append((METHODS[method].title, encoders[i], encoders[j], *scores, len(by_state)))
        columns = "method encoder decoder error explained deviation not_stitched permuted random_states"
        return pd.DataFrame(rows, columns=columns.split())

    def note(self) -> str:
        """What the scores are made of, and their chance level."""
        truth = "what the decoder makes of its own encoder's rows"
        if self.has_items:
            truth = "the true items"
        permuted = np.concatenate([scores.ravel() for scores in self.permuted.values()])
        return (
            f"Decoders that you gave: {quote(self.decoders)}, compared with {truth}. Explained: the share of"
            " the items' variation. Always giving the mean item explains 0; the same decoded items in another"
            f" order explain {short(float(np.nanmean(permuted)))}."
        )


def shown_decoders(table: pd.DataFrame) -> list[list[str]]:
    """The table of decoders with one line per method: the mean explained share and error of stitched pairs,
    and the share of decoders on their own encoders."""
    lines = [["method", "explained, stitched", "explained, not stitched", "squared error, stitched", "pairs"]]
    for method, part in table.groupby("method", sort=False):
        stitched = part[part.encoder != part.decoder]
        able = stitched.dropna(subset="error")
        numbers = able.explained.mean(), part.not_stitched.mean(), able.error.mean()
        lines.append([str(method), *map(short, numbers), f"{len(able)} of {len(stitched)}"])
    return [*lines, ["chance", short(0.0), short(0.0), "", ""]]


def own_decoders(
    decoders: Sequence[Any] | None, names: Sequence[str], methods: Sequence[str]
) -> list[OwnDecoder | None]:
    """The decoders that users gave for spaces with these names.

    Raises
    ------
    SpaceError
        Not one for each space; not callable; methods that do not translate rows.
    """
    if decoders is None:
        return [None] * len(names)
    need_one_each("decoders", decoders, names)
    if any(decoder is not None for decoder in decoders):
        need_translations("decoders", methods)
    found: list[OwnDecoder | None] = []
    for decoder, name in zip(decoders, names, strict=True):
        if decoder is not None and not callable(decoder):
            raise SpaceError(
                f"decoders: expected a PyTorch module or a function from rows to items for {name!r:.80}, got"
                f" {type(decoder).__name__}"
            )
        if decoder is None:
            found.append(None)
        else:
            found.append(OwnDecoder(name, decoder))
    return found


def true_items(items: Any, n: int) -> np.ndarray | None:
    """The items (n, p) of the first space's n rows, one per row; None if the user gave none."""
    if items is None:
        return None
    try:
        found = np.asarray(items, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        raise SpaceError(
            f"items: expected numbers, an item for each row of the first space, got {brief(items)}"
        ) from None
    if found.ndim < 2 or len(found) != n or not found.size:
        raise SpaceError(
            f"items: expected an item for each of the {n:,} rows of the first space, got {found.shape}"
        )
    if not np.isfinite(found).all():
        raise SpaceError("items: expected finite numbers, got NaN or infinite values")
    return found.reshape(n, -1)


class _Sums:
    """Sums over decoded items and true ones, from which the scores follow."""

    def __init__(self) -> None:
        self.n = 0
        self.squared_error = 0.0
        self.squares = np.zeros(2)
        self.totals: list[Any] = [0.0, 0.0]

    def add(self, decoded: np.ndarray, items: np.ndarray) -> None:
        self.n += len(items)
        self.squared_error += float(((decoded - items) ** 2).sum())
        for side, values in enumerate((decoded, items)):
            self.squares[side] += float((values**2).sum())
            self.totals[side] = self.totals[side] + values.sum(axis=0)

    def scores(self) -> tuple[float, float, float]:
        """The mean squared error, the explained share, and that after permutations; NaN for the shares if all
        items are equal."""
        means = [total / self.n for total in self.totals]
        spreads = [self.squares[side] / self.n - float((means[side] ** 2).sum()) for side in (0, 1)]
        error = self.squared_error / self.n
        # Over all permutations, a decoded item meets each item equally often.
        shuffled = spreads[0] + spreads[1] + float(((means[0] - means[1]) ** 2).sum())
        if spreads[1] <= 1e-12 * self.squares[1] / self.n:
            return error / len(means[1]), float("nan"), float("nan")
        return error / len(means[1]), 1 - error / spreads[1], 1 - shuffled / spreads[1]


def decoder_scores(
    decoders: Sequence[OwnDecoder | None],
    method: str,
    rows: Sequence[np.ndarray],
    translate: Translate,
    items: np.ndarray | None,
) -> np.ndarray:
    """Error, explained share and permuted share (3, E, E) of each encoder (second axis) with each decoder.

    `rows` are E arrays (m, d) of the same things, and `items` (m, p) these things. ``translate(method, i, j,
    X)`` gives rows of encoder i as rows of encoder j, None if it cannot.
    """
    n = len(decoders)
    scores = np.full((3, n, n), np.nan)
    for j, decoder in enumerate(decoders):
        if decoder is None:
            continue
        sums = [_Sums() for _ in range(n)]
        for start in range(0, len(rows[0]), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            own = decoder.items(rows[j][part])
            truth = own
            if items is not None:
                truth = items[part]
            _need_width(decoder, own, truth)
            for i in range(n):
                translated = translate(method, i, j, rows[i][part])
                if i == j:
                    sums[i].add(own, truth)
                elif translated is not None:
                    decoded = decoder.items(translated)
                    _need_width(decoder, decoded, truth)
                    sums[i].add(decoded, truth)
        for i in range(n):
            if sums[i].n:
                scores[:, i, j] = sums[i].scores()
    return scores


def _need_width(decoder: OwnDecoder, decoded: np.ndarray, truth: np.ndarray) -> None:
    if decoded.shape != truth.shape:
        raise SpaceError(
            f"decoders: expected items of {truth.shape[1]:,} numbers from the decoder of"
            f" {decoder.name!r:.80}, got {decoded.shape[1]:,}"
        )
