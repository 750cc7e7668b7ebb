"""Families of features. A feature is what some rows have in common, such as the ending -ing of words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

TENTHS = 10
FEWEST = 30  # minimum number of rows of a feature
_SHARE = 0.005  # minimum share of the rows of a feature
_EVERY = 0.95  # maximum share; a feature of nearly all rows distinguishes none


@dataclass(frozen=True, eq=False)
class FeatureFamily:
    """Features of one kind, such as the endings of words.

    Attributes
    ----------
    name : str
        A short name, such as ``"ending of 3 letters"``.
    members : sparse matrix (n, p)
        1 for each row that has a feature.
    titles : p texts
        What the rows of a feature are called, such as ``"words that end in -ing"``.
    shorts : p texts
        The features in a list, such as ``"-ing"``.
    together : str
        What rows with a common feature are called, such as ``"words with the same ending of 3 letters or
        more"``. "" means that the family is not a feature as a whole.
    values : array (n,), optional
        The numbers from which the features were made, for families of tenths.
    of_spaces : bool
        Whether the features were made from the spaces, such as clusters. Features of the items say more, so
        they are sought first.

    Examples
    --------
    >>> from scipy import sparse
    >>> from relcore import FeatureFamily
    >>> rows = sparse.csr_matrix([[1], [0], [1]])
    >>> len(FeatureFamily("size", rows, ("large rows",), ("large",)))
    1
    """

    name: str
    members: sparse.csr_matrix
    titles: tuple[str, ...]
    shorts: tuple[str, ...]
    together: str = ""
    values: np.ndarray | None = None
    of_spaces: bool = False

    def __len__(self) -> int:
        return len(self.titles)


@dataclass(frozen=True)
class Feature:
    """A feature, or a family as a whole.

    Attributes
    ----------
    family, title, short : str
        See `FeatureFamily`.
    whole : bool
        Whether this is a family as a whole: two rows share it if they have any feature of the family in
        common.
    of_spaces : bool
        See `FeatureFamily`.
    """

    family: str
    title: str
    short: str
    whole: bool
    of_spaces: bool


class Features:
    """All features of n rows, from several families.

    Attributes
    ----------
    families : tuple of FeatureFamily
    members : sparse matrix (n, p)
        The features of all families, side by side.
    listed : list of Feature
        The p features, then the families that are features as a whole.
    """

    def __init__(self, families: Iterable[FeatureFamily], n: int) -> None:
        self.families = tuple(family for family in families if len(family))
        matrices = [family.members for family in self.families]
        if matrices:
            self.members = sparse.hstack(matrices, format="csr", dtype=np.float32)
        else:
            self.members = sparse.csr_matrix((n, 0), dtype=np.float32)
        self.listed = [
            Feature(family.name, title, short, whole=False, of_spaces=family.of_spaces)
            for family in self.families
            for title, short in zip(family.titles, family.shorts, strict=True)
        ]
        self.listed += [
            Feature(one.name, one.together, "", whole=True, of_spaces=one.of_spaces) for one in self._wholes
        ]

    @cached_property
    def whole_of(self) -> np.ndarray:
        """For each feature (f,), the number of the family as a whole that it belongs to; −1 for none."""
        p = self.members.shape[1]
        belongs = np.full(len(self.listed), -1)
        places = {feature.family: p + place for place, feature in enumerate(self.listed[p:])}
        for number, feature in enumerate(self.listed[:p]):
            belongs[number] = places.get(feature.family, -1)
        return belongs

    @cached_property
    def of_spaces(self) -> np.ndarray:
        """Which features (number of features,) bool were made from the spaces."""
        return np.array([feature.of_spaces for feature in self.listed], dtype=bool)

    @property
    def _wholes(self) -> list[FeatureFamily]:
        return [family for family in self.families if family.together and len(family) > 1]

    @cached_property
    def wholes_of_features(self) -> sparse.csr_matrix:
        """Which feature (p,) belongs to which family as a whole, (p, f)."""
        places = {family.name: place for place, family in enumerate(self._wholes)}
        rows = []
        columns = []
        for number, feature in enumerate(self.listed[: self.members.shape[1]]):
            if feature.family in places:
                rows.append(number)
                columns.append(places[feature.family])
        shape = (self.members.shape[1], len(places))
        return sparse.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)

    def __len__(self) -> int:
        return len(self.listed)

    def at(self, rows: np.ndarray) -> Features:
        """The features of some rows."""
        return Features([replace(one, members=one.members[rows]) for one in self.families], len(rows))

    def _with_wholes(self, of_features: sparse.csr_matrix) -> sparse.csc_matrix:
        wholes = (of_features @ self.wholes_of_features).sign()
        return sparse.hstack([of_features, wholes], format="csc", dtype=np.float32)

    def of_rows(self, rows: np.ndarray) -> sparse.csc_matrix:
        """Which of these rows (m,) have which feature, (m, number of features) of 0 and 1."""
        return self._with_wholes(self.members[rows])

    def shared(self, rows: np.ndarray, others: np.ndarray) -> sparse.csc_matrix:
        """Which features each row (m,) has in common with the row (m,) beside it, (m, number of features)."""
        return self._with_wholes(self.members[rows].multiply(self.members[others]).tocsr())


def partition(
    name: str,
    values: Sequence[str] | np.ndarray,
    title: str,
    together: str,
    short: str = "{}",
    least: int | None = None,
) -> FeatureFamily:
    """The family of the distinct values of a column. Rows with "" and rare values have no feature.

    Parameters
    ----------
    values : n texts
    title, short : str
        Templates in which ``{}`` is the value.
    least : int, optional
        Minimum number of rows of a value. By default `FEWEST`, or half a percent of the rows.
    """
    column = np.asarray(values, dtype=object).astype(str)
    n = len(column)
    distinct, codes, sizes = np.unique(column, return_inverse=True, return_counts=True)
    kept = (sizes >= fewest_rows(n, least)) & (sizes <= _EVERY * n) & (distinct != "")
    places = np.full(len(distinct), -1)
    places[kept] = np.arange(np.count_nonzero(kept))
    names = distinct[kept].tolist()
    return FeatureFamily(
        name,
        members_of(places[codes], len(names)),
        tuple(title.format(one) for one in names),
        tuple(short.format(one) for one in names),
        together,
    )


def fewest_rows(n: int, least: int | None = None) -> int:
    if least is not None:
        return least
    return max(FEWEST, int(np.ceil(_SHARE * n)))


def members_of(codes: np.ndarray, n_features: int) -> sparse.csr_matrix:
    """The sparse matrix (n, n_features) of rows with at most one feature each, given by its number; −1 for
    none."""
    rows = np.flatnonzero(codes >= 0)
    ones = np.ones(len(rows), np.float32)
    return sparse.csr_matrix((ones, (rows, codes[rows])), shape=(len(codes), n_features))


def tenths(name: str, values: np.ndarray, noun: str, of_rows: str = "rows") -> FeatureFamily:
    """The family of the tenths of a column of numbers (n,), from the lowest to the highest. Rows with NaN
    have no feature. Equal numbers lie in one tenth.

    Parameters
    ----------
    noun : str
        What is high or low, such as ``"frequency"``.
    """
    known = np.isfinite(values)
    codes = np.full(len(values), -1)
    if known.sum() >= TENTHS * 2 and np.ptp(values[known]) > 0:
        edges = np.unique(np.quantile(values[known], np.arange(1, TENTHS) / TENTHS))
        codes[known] = np.searchsorted(edges, values[known], side="right")
    present, codes = np.unique(codes, return_inverse=True)
    offset = int(present[0] == -1)
    sizes = np.bincount(codes, minlength=len(present))[offset:]
    names = [tenth_name(int(one), TENTHS) for one in present[offset:]]
    kept = np.flatnonzero((sizes >= fewest_rows(len(values))) & (sizes <= _EVERY * len(values)))
    members = members_of(codes - offset, len(names))[:, kept]
    return FeatureFamily(
        name,
        members,
        tuple(f"{of_rows} in the {names[one]} tenth by {noun}" for one in kept),
        tuple(f"{names[one]} tenth" for one in kept),
        f"{of_rows} of similar {noun}",
        values,
    )


def tenth_name(number: int, of: int) -> str:
    if number == 0:
        return "lowest"
    if number == of - 1:
        return "highest"
    endings = {1: "2nd", 2: "3rd"}
    return endings.get(number, f"{number + 1}th")


def sets(
    name: str, columns: Sequence[tuple[str, str, np.ndarray]], together: str = "", n: int | None = None
) -> FeatureFamily:
    """The family of features that are given one by one, and of which a row may have several.

    Parameters
    ----------
    columns : (title, short, which rows have it (n,) bool) of each feature
    """
    kept = []
    for title, short, rows in columns:
        count = int(np.count_nonzero(rows))
        if fewest_rows(len(rows)) <= count <= _EVERY * len(rows):
            kept.append((title, short, rows))
    if not kept:
        return FeatureFamily(name, sparse.csr_matrix((n or 0, 0)), (), ())
    members = sparse.csr_matrix(np.stack([rows for _, _, rows in kept], axis=1).astype(np.float32))
    titles = tuple(title for title, _, _ in kept)
    shorts = tuple(short for _, short, _ in kept)
    return FeatureFamily(name, members, titles, shorts, together)
