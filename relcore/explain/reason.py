"""A reason why two spaces differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ExampleRow:
    """A row with a feature, and its neighbours in each space, nearest first.

    Attributes
    ----------
    sharing : for each space, k booleans
        Which of the neighbours share the feature.
    """

    id: str
    neighbours: tuple[tuple[str, ...], ...]
    sharing: tuple[tuple[bool, ...], ...]


@dataclass(frozen=True, eq=False)
class ReasonPart:
    """A feature that stands out in its family.

    Attributes
    ----------
    n : int
        Number of compared rows with the feature.
    shares : a number for each space
        See `Reason`.
    examples : tuple of ExampleRow
    rows : array
        The numbers of all rows with the feature, in the matched spaces.
    """

    title: str
    short: str
    n: int
    shares: tuple[float, ...]
    examples: tuple[ExampleRow, ...]
    rows: np.ndarray


@dataclass(frozen=True, eq=False)
class Reason:
    """A feature whose rows are neighbours of each other in one space more than in the other.

    Attributes
    ----------
    title, short : str
        What its rows are called, such as ``"words that end in -ing"``, and the feature in a list, ``"-ing"``.
    family : str
        The family of the feature, such as ``"ending of 3 letters"``.
    whole : bool
        Whether the feature is a family as a whole. Then two rows share it if they have any feature of the
        family in common.
    n : int
        Number of compared rows with the feature, all of which did not suggest it.
    shares : a number for each space, 0 … 1
        The mean share of a row's k nearest neighbours that share the feature.
    difference, low, high : float
        The share in the first space less that in the second, and its 95 % interval.
    beyond : float
        The difference that neither earlier reasons nor noise explain.
    p : float
        The p-value of `beyond`, corrected for all features that were tried.
    predicted : a number for each space, or ()
        For tenths of a number: the correlation of a row's number with the mean of its neighbours' numbers.
    parts : tuple of ReasonPart
        Features of the family that differ more or less than it, the clearest first.
    examples : tuple of ExampleRow
    rows : array
        The numbers of all rows with the feature, in the matched spaces (`Explain.matched`).

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import explain, load_space
    >>> first = load_space("word2vec-novels").take(np.arange(3000))
    >>> found = explain(first, load_space("fasttext-novels"))
    >>> found.reasons[0].title
    'words with the same ending of 2 letters or more'
    """

    title: str
    short: str
    family: str
    whole: bool
    n: int
    shares: tuple[float, ...]
    difference: float
    low: float
    high: float
    beyond: float
    p: float
    predicted: tuple[float, ...]
    parts: tuple[ReasonPart, ...]
    examples: tuple[ExampleRow, ...]
    rows: np.ndarray

    @property
    def more(self) -> int:
        """The place of the space that gathers the rows: 0 or 1."""
        return int(self.difference < 0)
