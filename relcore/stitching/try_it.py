"""One item, every encoder × head: the answer of each pair to a sentence or picture that none was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from relcore.names import METHODS
from relcore.numbers import short
from relcore.spaces import SpaceError, distinct_names, quote
from relcore.stitching.classification import Stitching

TOP = 3


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers of all pairs to one item.

    Attributes
    ----------
    method : str
    encoders, heads : names
        An encoder that cannot take the item is absent among the encoders; its head is there.
    own : numbers (E,)
        Which of the heads is each encoder's own.
    classes : C names
    probabilities : array (E, H, C) float32
        NaN where two cannot be put together.
    silent : names
        Encoders that know no part of the item, such as a sentence of unknown words: their row is zero.
    """

    method: str
    encoders: tuple[str, ...]
    heads: tuple[str, ...]
    own: tuple[int, ...]
    classes: tuple[str, ...]
    probabilities: np.ndarray
    silent: tuple[str, ...] = ()

    def top(self, i: int, j: int, n: int = TOP) -> list[tuple[str, float]]:
        """The n likeliest classes with their probabilities, likeliest first; none where the two cannot be put together."""
        found = self.probabilities[i, j]
        if np.isnan(found[0]):
            return []
        return [(self.classes[number], float(found[number])) for number in np.argsort(-found, kind="stable")[:n]]

    def agrees(self, i: int, j: int) -> bool | None:
        """Whether a pair answers as the head on its own encoder does: what stitching is to leave as it was. None: no answer."""
        stitched = self.top(i, j, 1)
        own = next((self.top(e, j, 1) for e, head in enumerate(self.own) if head == j), [])
        return stitched[0][0] == own[0][0] if stitched and own else None

    def _stitched(self) -> list[str]:
        pairs = [(i, j) for i, own in enumerate(self.own) for j in range(len(self.heads)) if j != own]
        return [found[0][0] for i, j in pairs if (found := self.top(i, j, 1))]

    def leaders(self) -> tuple[str, ...]:
        """The answers that the most stitched pairs give: several in a tie, none where no pair answers."""
        answers = self._stitched()
        return tuple(one for one in dict.fromkeys(answers) if answers.count(one) == max(map(answers.count, answers)))

    def verdict(self) -> tuple[str, int, int]:
        """The first of the `leaders`, how many stitched pairs give it, and of how many; ("", 0, 0) where there are none."""
        answers = self._stitched()
        if not answers:
            return "", 0, 0
        most = self.leaders()[0]
        return most, answers.count(most), len(answers)

    def table(self) -> pd.DataFrame:
        """One row per pair and class: encoder, head, stitched, class, probability; likeliest first within a pair."""
        rows = [
            (encoder, head, self.own[i] != j, name, probability)
            for i, encoder in enumerate(self.encoders)
            for j, head in enumerate(self.heads)
            for name, probability in self.top(i, j, len(self.classes))
        ]
        return pd.DataFrame(rows, columns=["encoder", "head", "stitched", "class", "probability"])

    def wide(self) -> pd.DataFrame:
        """As one prints it: a row an encoder, one column per head, in each cell the answer with its probability."""
        cells = [[_cell(self.top(i, j, 1)) for j in range(len(self.heads))] for i in range(len(self.encoders))]
        return pd.DataFrame(cells, columns=list(self.heads)).assign(encoder=self.encoders)[["encoder", *self.heads]]


def answers_of(stitching: Stitching, method: str, rows: Sequence[np.ndarray | None]) -> Answers:
    """What all pairs say of one item, given its row (1, d) in each encoder, None where an encoder cannot take it.

    Raises
    ------
    SpaceError
        No encoder that takes it, a method that was not fitted, a head that needs company.
    """
    spaces, names = stitching.shared.spaces, distinct_names(stitching.shared.spaces)
    if method not in stitching.spec.methods:
        titles = [METHODS[one].title for one in stitching.spec.methods]
        raise SpaceError(f"method: expected one that was fitted, {quote(titles)}, got {method!r}; choose it for the stitching")
    usable = [number for number, row in enumerate(rows) if row is not None]
    if not usable:
        raise SpaceError(f"expected an encoder that takes new items, got none among {quote(names)}; encode a dataset")
    given = [np.zeros((1, space.dimension)) if row is None else row for space, row in zip(spaces, rows, strict=True)]
    found = stitching.probabilities(method, given)[usable, :, 0]
    silent = tuple(names[number] for number in usable if not np.any(rows[number]))
    return Answers(
        method,
        tuple(names[number] for number in usable),
        tuple(names),
        tuple(usable),
        stitching.shared.classes,
        found,
        silent,
    )


def _cell(top: list[tuple[str, float]]) -> str:
    return f"{top[0][0]} ({short(top[0][1], 2)})" if top else ""
