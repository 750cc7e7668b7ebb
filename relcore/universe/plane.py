"""Places of models in a plane: the larger the share of two models, the nearer they are."""

from __future__ import annotations

import numpy as np

from relcore.scores.score import distances

STRAINED = 0.06  # with a larger error, equal shares are at visibly unequal distances
_ALIKE = 0.1  # models with a share of 100 % are one group if their shares with any other differ by less
_RADIUS = 0.05  # of a group, as a share of the largest distance: no dot covers another
_ROUNDS = 100
_EXACT = 0.01  # a strain below which no other offset is tried
_MOST_TRIED = 30  # for more models, one offset is tried
_OFFSETS = np.concatenate([np.linspace(0, 0.95, 20), -np.geomspace(0.1, 3, 6)])


def places_in_plane(shares: np.ndarray) -> tuple[np.ndarray, float]:
    """Places (n, 2) of n models, and their error.

    Distances of the places are about 1 − share, less an offset that all pairs have in common (interval
    scaling). Without an offset, models that all share little would be the corners of a simplex, which no
    plane has room for. Shares are rounded to whole percents first: pairs that read alike are equally far.
    Models with shares of 100 % stand in a small circle.

    Parameters
    ----------
    shares : array (n, n)
        Symmetric, 0 … 1. A pair without a share (NaN) gets the largest distance.

    Returns
    -------
    places : array (n, 2)
        Centred, and turned so that the first axis is the widest.
    error : float
        Root mean square difference of drawn and wanted distances, as a share of the mean wanted distance.

    Notes
    -----
    The stress is minimised by majorisation (SMACOF, de Leeuw 1977; Borg and Groenen 2005, chapter 8).

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.universe.plane import places_in_plane
    >>> (a, b, c), error = places_in_plane(np.array([[1, 0.4, 0.4], [0.4, 1, 0.2], [0.4, 0.2, 1]]))
    >>> bool(np.isclose(np.linalg.norm(a - b), np.linalg.norm(a - c), atol=0.01)), round(error, 2)
    (True, 0.0)
    """
    apart = distances(np.round(shares, 2))
    groups = groups_of(shares)
    if len(groups) == 1:
        return _circle(len(apart), 1.0), 0.0
    heads = [group[0] for group in groups]
    centres, error = _fitted(apart[np.ix_(heads, heads)])
    radius = _RADIUS * _distances(centres).max()
    places = np.zeros((len(apart), 2))
    for group, centre in zip(groups, centres, strict=True):
        places[group] = centre + _circle(len(group), radius)
    return places, error


def groups_of(shares: np.ndarray) -> list[list[int]]:
    """Models that share 100 % with each other, and about as much with any other one: lists of their
    numbers. Most groups are one model."""
    apart = distances(np.round(shares, 2))
    groups: list[list[int]] = []
    for one in range(len(apart)):
        for group in groups:
            differences = np.abs(apart[one] - apart[group])
            if not apart[one, group].any() and differences.max() < _ALIKE:
                group.append(one)
                break
        else:
            groups.append([one])
    return groups


def _circle(n: int, radius: float) -> np.ndarray:
    """Places (n, 2) of n models around the origin; one model stands there."""
    if n == 1:
        return np.zeros((1, 2))
    angles = np.pi / 2 + 2 * np.pi * np.arange(n) / n
    return radius * np.column_stack([np.cos(angles), np.sin(angles)])


def _fitted(apart: np.ndarray) -> tuple[np.ndarray, float]:
    """Places (n, 2) at these distances (n, n), less the offset that fits best, and their error."""
    pairs = np.triu_indices(len(apart), 1)
    distinct = apart[pairs]
    offsets = _OFFSETS * np.where(_OFFSETS < 0, distinct.max(), distinct.min())
    if len(apart) > _MOST_TRIED:
        offsets = offsets[:1]
    best = np.zeros((len(apart), 2))
    least = np.inf
    error = np.inf
    for offset in offsets:
        wanted = apart - offset
        np.fill_diagonal(wanted, 0)
        places = _majorised(wanted)
        missed = np.sqrt(np.mean((_distances(places)[pairs] - wanted[pairs]) ** 2))
        # Compared with how much the distances differ, as a large offset makes all of them nearly equal.
        strain = missed / (distinct.std() or distinct.mean())
        if strain < least - 1e-3:
            best = places
            least = strain
            error = float(missed / wanted[pairs].mean())
        if strain < _EXACT:
            break
    return _turned(best), error


def _majorised(wanted: np.ndarray) -> np.ndarray:
    """Places (n, 2) whose distances are about `wanted` (n, n)."""
    n = len(wanted)
    start = _classical(wanted)
    # Majorisation does not leave a line, so a start on a line is moved off it.
    places = start + 0.02 * wanted.max() * np.random.default_rng(0).normal(size=start.shape)
    for _ in range(_ROUNDS):
        pull = -wanted / np.maximum(_distances(places), 1e-12)
        np.fill_diagonal(pull, 0)
        np.fill_diagonal(pull, -pull.sum(axis=1))
        places = pull @ places / n
    return places


def _classical(wanted: np.ndarray) -> np.ndarray:
    """Places (n, 2) by classical multidimensional scaling (Torgerson 1952)."""
    squares = wanted**2
    around = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean()
    values, vectors = np.linalg.eigh(-around / 2)
    last_two = [-1, -2]  # `eigh` sorts from the smallest eigenvalue to the largest
    return vectors[:, last_two] * np.sqrt(np.maximum(values[last_two], 0))


def _distances(places: np.ndarray) -> np.ndarray:
    """The distances (n, n) of places (n, 2)."""
    across = places[:, 0] - places[:, :1]
    along = places[:, 1] - places[:, 1:]
    return np.hypot(across, along)


def _turned(places: np.ndarray) -> np.ndarray:
    """The places, centred, with the widest axis first. Of mirror images, which are equally good, one is
    chosen."""
    centred = places - places.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2]
    turned = centred @ axes.T
    largest = turned[np.abs(turned).argmax(axis=0), [0, 1]]
    return turned * np.where(largest < 0, -1, 1)
