"""Features from columns of numbers or classes, from the spaces themselves, and of the user's own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from relcore.base.errors import SpaceError
from relcore.base.rows import mean_row, unit_rows
from relcore.catalog.cells import numbers_in, quantities_in
from relcore.explain.families import FeatureFamily, partition, tenths
from relcore.spaces.matching import Match
from relcore.spaces.space import LatentSpace

_CLUSTERED_ROWS = 200  # number of rows per cluster
_CLUSTERS = (4, 30)
_EQUAL_NORMS = 1e-3  # relative range of lengths that counts as equal
_SAMPLED = 5000  # number of rows that k-means reads
_FEWEST_OF_CLASS = 10
CONTAINS = "contains:"
MATCHES = "matches:"
OWN_HELP = f"{CONTAINS}TEXT, {MATCHES}REGULAR EXPRESSION"
_LONGEST_PATTERN = 200
_SECONDS = 5.0


def column_family(name: str, cells: Sequence[Any], of_rows: str = "rows") -> FeatureFamily:
    """The family of a column (n,): its tenths if it holds numbers, otherwise its classes.

    Examples
    --------
    >>> column_family("colour", ["red", "blue"] * 50).titles
    ('rows whose colour is blue', 'rows whose colour is red')
    """
    quantities = quantities_in(cells)
    if quantities is not None:
        return tenths(name, quantities, name, of_rows)
    numbers = numbers_in(cells)
    if numbers is not None:
        cells = ["" if np.isnan(number) else f"{number:.0f}" for number in numbers]
    texts = ["" if cell is None or cell != cell else str(cell) for cell in cells]
    return partition(
        name, texts, f"{of_rows} whose {_plain(name)} is {{}}", f"{of_rows} of the same {name}", least=None
    )


def _plain(name: str) -> str:
    return name.replace("{", "(").replace("}", ")")


def label_family(labels: np.ndarray, of_rows: str) -> FeatureFamily:
    title = f"{of_rows} of class {{}}"
    return partition("class", labels, title, f"{of_rows} of the same class", least=_FEWEST_OF_CLASS)


def families_of_spaces(pair: Match, hubs: np.ndarray, of_rows: str) -> Iterator[FeatureFamily]:
    """Tenths of the length of vectors, tenths of hubness, and clusters. Each is made from both spaces alike:
    rows that noise makes short in one space would seem to be gathered in it.

    Parameters
    ----------
    hubs : array (n,)
        How often a row is a neighbour of a query, over both spaces.
    """
    families = []
    every = [space.norms.astype(np.float64) for space in (pair.source, pair.target)]
    ranks = [pd.Series(norms).rank() for norms in every if np.ptp(norms) > _EQUAL_NORMS * norms.mean()]
    if ranks:
        families.append(tenths("norm", np.mean(ranks, axis=0), "length of the vector", of_rows))
    families.append(tenths("hubness", hubs.astype(np.float64), "hubness", of_rows))
    families.append(_clusters(pair, of_rows))
    for family in families:
        yield replace(family, of_spaces=True)


def _clusters(pair: Match, of_rows: str) -> FeatureFamily:
    """Clusters by k-means of both spaces side by side, so that neither space's clusters are preferred."""
    from scipy.cluster.vq import kmeans2, vq

    n = len(pair)
    n_clusters = int(np.clip(n // _CLUSTERED_ROWS, *_CLUSTERS))
    rng = np.random.default_rng(0)
    both = np.hstack([_principal(space, rng) for space in (pair.source, pair.target)])
    some = both
    if n > _SAMPLED:
        some = both[np.sort(rng.choice(n, _SAMPLED, replace=False))]
    centres, _ = kmeans2(some, n_clusters, iter=15, minit="++", seed=rng, missing="warn")
    codes, distances = vq(both, centres)
    names = [""] * n_clusters
    for number in range(n_clusters):
        inside = np.flatnonzero(codes == number)
        central = inside[np.argsort(distances[inside], kind="stable")[:3]]
        names[number] = ", ".join(map(str, pair.ids[central]))
    return partition(
        "cluster", np.array(names, dtype=object)[codes], f"{of_rows} near {{}}", f"{of_rows} of one cluster"
    )


_AXES = 20


def _principal(space: LatentSpace, rng: np.random.Generator) -> np.ndarray:
    """The unit rows in their principal axes, scaled to one total variance."""
    units = unit_rows(space.vectors, mean_row(space.vectors))
    some = units[np.sort(rng.permutation(len(units))[:_SAMPLED])]
    some = some - some.mean(axis=0)
    _, axes = np.linalg.eigh(some.T @ some)
    reduced = units @ axes[:, -_AXES:]
    return reduced / np.sqrt(np.square(reduced).sum(axis=1).mean())


def own_families(questions: Sequence[str], texts: Sequence[str]) -> Iterator[FeatureFamily]:
    """One feature for each question of the user: ``contains:TEXT`` or ``matches:REGULAR EXPRESSION``. Texts
    answer it or, without texts, ids. A question that fewer than two rows or all rows affirm gives none.

    Raises
    ------
    SpaceError
        A question of another form; an invalid, too long or too slow regular expression.
    """
    for question in questions:
        rule = rule_of(question)
        rows = np.array([rule(text) for text in texts], dtype=bool)
        if not 2 <= rows.sum() < len(rows):
            continue
        if question.startswith(MATCHES):
            wanted = question.removeprefix(MATCHES)
            title = f"rows that match {wanted}"
        else:
            wanted = question.removeprefix(CONTAINS)
            title = f"rows that contain “{wanted}”"
        members = sparse.csr_matrix(rows[:, None].astype(np.float32))
        yield FeatureFamily(question, members, (title,), (wanted,))


def rule_of(question: str) -> Callable[[str], bool]:
    """The condition on a text that a question means."""
    if question.startswith(CONTAINS) and len(question) > len(CONTAINS):
        wanted = question.removeprefix(CONTAINS).casefold()
        return lambda text: wanted in text.casefold()
    if question.startswith(MATCHES) and len(question) <= _LONGEST_PATTERN:
        return _matching(question.removeprefix(MATCHES))
    raise SpaceError(f"feature: expected {OWN_HELP}, got {question!r:.80}")


def _matching(pattern: str) -> Callable[[str], bool]:
    """The condition that a regular expression matches. It may take a second in all, because some expressions
    never end."""
    import regex

    try:
        compiled = regex.compile(pattern)
    except regex.error as error:
        raise SpaceError(f"feature: expected a regular expression, got {pattern!r} ({error})") from None
    started = time.monotonic()

    def matches(text: str) -> bool:
        left = _SECONDS - (time.monotonic() - started)
        try:
            return compiled.search(text, timeout=max(left, 1e-3)) is not None
        except TimeoutError:
            raise SpaceError(
                f"feature: expected a regular expression that is quick, got {pattern!r}, which took"
                f" {_SECONDS:.0f} seconds; write a simpler one"
            ) from None

    return matches
