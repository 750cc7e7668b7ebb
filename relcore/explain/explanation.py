"""`Explain`, the task that explains why spaces differ, and `explain`, the function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.names import FEATURES
from relcore.base.settings import setting
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import Task
from relcore.explain.columns import OWN_HELP, column_family, label_family, own_families
from relcore.explain.families import FeatureFamily, Features
from relcore.explain.items import RowItems, items_of
from relcore.explain.moved import MovedRows, moved_rows
from relcore.explain.result import Explanation
from relcore.explain.search import ReasonSearch
from relcore.explain.words import are_words, frequency_family
from relcore.runs.progress_line import long_call, show_step
from relcore.runs.store import Store
from relcore.runs.work import Progress, silent
from relcore.spaces.matching import Match, agreed_labels, as_spaces, distinct_names, known_rows, match
from relcore.spaces.space import LatentSpace, MatrixLike
from relcore.spaces.split import row_keys

FEWEST_ROWS = 100
MOST_ROWS = 100_000  # number of rows among which neighbours are searched; of more, a sample is drawn


@dataclass(frozen=True)
class ExplainSettings:
    k: int = setting(10, label="Neighbours k", low=1, high=200, help="Number of neighbours of each row.")
    own: tuple[str, ...] = setting(
        (),
        option="feature",
        nargs="append",
        metavar="FEATURE",
        help=f"A feature of your own, found in the texts or words: {OWN_HELP}. Give the option again for"
        " another one.",
    )
    random_state: int = setting(
        0, low=0, help="Random state of the halves of the rows that suggest and test reasons."
    )


@dataclass(frozen=True)
class Explain(ExplainSettings, Task["Explanation"], kind="explain", version=9, title="Why spaces differ"):
    """The task that explains why two spaces of the same rows differ. Shares of further spaces are listed
    beside theirs.

    Attributes
    ----------
    items : tuple of SpaceSpec
        Spaces whose tables hold texts, pictures and columns of the rows.

    Examples
    --------
    >>> from relcore import Explain
    >>> Explain(k=5).k
    5
    """

    items: tuple[SpaceSpec, ...] = ()

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        n = min(len(spaces[0]), MOST_ROWS)
        width = sum(space.dimension for space in spaces)
        return 0.5 + min(n * n * width, 2e11) / 3e10 + 3e-5 * n * len(spaces)

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> Explanation:
        """Explain the first two spaces.

        Raises
        ------
        SpaceError
            The spaces share fewer than 100 rows; a feature of the user's own cannot be read.
        """
        return self.explained(spaces, items_of(self.items), report)

    def explained(
        self, spaces: Sequence[LatentSpace], items: RowItems, report: Progress = silent
    ) -> Explanation:
        n, pair = self.matched(spaces)
        if n < FEWEST_ROWS:
            names = " and ".join(map(repr, distinct_names(pair.spaces)))
            raise SpaceError(
                f"explain: expected {FEWEST_ROWS} rows or more that {names} have in common, got {n};"
                " compare more"
            )
        labels = agreed_labels(pair.spaces[:2])
        of_rows, families = _families(pair.ids.tolist(), items, self.own, labels, pair.source.counts)
        k = min(self.k, len(pair) // 10)
        return ReasonSearch(pair, tuple(families), of_rows, k, self.random_state, n).result(report)

    @staticmethod
    def matched(spaces: Sequence[LatentSpace]) -> tuple[int, Match]:
        """The number of rows that the spaces have in common, and the spaces with the rows among which
        neighbours are searched: all common rows, or a sample if there are more than 100,000."""
        pair = match(*known_rows(spaces))
        n = len(pair)
        if n <= MOST_ROWS:
            return n, pair
        rows = np.sort(np.argsort(row_keys(pair.ids, "explain rows"), kind="stable")[:MOST_ROWS])
        taken = [space.take(rows) for space in pair.spaces]
        return n, match(*taken)


def _families(
    ids: list[str],
    items: RowItems,
    own: Sequence[str] = (),
    labels: np.ndarray | None = None,
    counts: np.ndarray | None = None,
) -> tuple[str, list[FeatureFamily]]:
    """What the rows are called, and the families of their features."""
    texts = items.texts(ids)
    pictures = items.pictures(ids)
    of_rows = "rows"
    if texts is not None:
        of_rows = "texts"
    elif pictures is not None:
        of_rows = "pictures"
    elif are_words(ids):
        of_rows = "words"
    families = list(own_families(own, texts or ids))
    if labels is not None:
        families.append(label_family(labels, of_rows))
    families += [column_family(name, cells, of_rows) for name, cells in items.columns(ids)]
    if counts is not None:
        families.append(frequency_family(counts, of_rows))
    words = None
    if of_rows == "words":
        words = ids
    sources = {"words": words, "texts": texts, "pictures": pictures, "any": texts or words}
    for entry in FEATURES.values():
        makes, kind = entry.load(), entry.of
        if sources[kind] is not None:
            families += list(makes(sources[kind]))
    return of_rows, families


def rows_that_change(
    change: np.ndarray, ids: Sequence[str], items: RowItems, labels: np.ndarray | None = None
) -> tuple[tuple[MovedRows, ...], int]:
    """The kinds of rows that change more, or less, than all, and the number of features that were tried.

    Parameters
    ----------
    change : array (n,)
        The change of each row, 0 … 1, such as the share of a query's list that changed.
    """
    _, families = _families(list(ids), items, labels=labels)
    n = len(ids)
    features = Features(families, n)
    suggesting = row_keys(np.asarray(ids, dtype=object), "explain halves") < 0.5
    kinds = moved_rows(np.arange(n), change, features, suggesting, np.arange(n))
    return kinds, len(features)


@long_call
def explain(
    source: MatrixLike,
    target: MatrixLike,
    *others: MatrixLike,
    texts: Sequence[str] | None = None,
    columns: pd.DataFrame | Mapping[str, Any] | None = None,
    spec: Explain = Explain(),
) -> Explanation:
    """Explain why two spaces of the same rows differ: which kinds of rows are neighbours in one of them more
    than in the other.

    Features of the rows are made from their ids, if these are words, from texts, pictures, labels, counts and
    columns. A feature that one half of the rows suggests is tested on the other half.

    Parameters
    ----------
    source, target : matrix (n, d) in any form of `relcore.spaces.space.matrix`
        The two spaces, whose rows are paired by id.
    others : matrices, optional
        Further spaces, whose shares are listed beside theirs.
    texts : n texts, optional
        The text of each row of `source`. By default its payload, if that holds texts.
    columns : table of n rows, optional
        Columns of classes or numbers of the rows of `source`.

    Raises
    ------
    SpaceError
        The spaces share fewer than 100 rows, or a column has another number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import explain
    >>> rng = np.random.default_rng(0)
    >>> kinds = np.repeat(["a", "b"], 300)
    >>> first = rng.normal(size=(600, 8))
    >>> second = first + 3 * np.eye(8)[0] * (kinds == "b")[:, None]
    >>> explain(first, second, columns={"kind": kinds}).reasons[0].title
    'rows of the same kind'
    """
    names = ["source", "target"] + ["other"] * len(others)
    spaces = as_spaces((source, target, *others), names)
    items = items_of(spec.items)
    items.add(spaces[0], texts, columns)
    return spec.explained(spaces, items, show_step)
