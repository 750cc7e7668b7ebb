"""`Choose`, the task that says which of several models finds best, and `choose`, the function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from relcore.base.arguments import need_sequence
from relcore.base.errors import NoCommonId, SpaceError, quote
from relcore.base.rows import unit_rows
from relcore.base.settings import setting
from relcore.catalog.task import Task
from relcore.choose.looks import LOOKS, looks_at, planned_looks
from relcore.choose.result import ModelChoice
from relcore.runs.progress_line import long_call, show_step
from relcore.runs.store import Store
from relcore.runs.work import Progress, silent
from relcore.scores.relevance import JudgedQuery, discounted_precision, ndcg, relevance_of, same_label, search
from relcore.spaces.matching import agreed_labels, as_spaces, distinct_names, shared_ids, short_names
from relcore.spaces.space import LatentSpace, MatrixLike
from relcore.spaces.split import row_keys

FEWEST_MODELS = 2
MOST_MODELS = 5
# Number of queries that are searched: of judgements, of rows with labels, and of those that a person judges
# one by one, some of which have no relevant row.
MOST_JUDGED = 2000
MOST_LABELLED = 300
MOST_ASKED = 300
_MOST_DEPTH = 5
UNJUDGED = (
    "choose: expected judgements, without which nobody can tell which model finds better rows, got none. Add"
    " --qrels FILE (TREC's format: query, iteration, row, grade), or judge blind in the app, at Migrate,"
    " Choose: relscope app"
)


class ModelSearches(NamedTuple):
    """What each model finds.

    Attributes
    ----------
    rows : texts
        The ids of the rows that are searched, which all models have.
    queries : texts
        The ids of the queries, in the random order in which they are judged.
    lists : array (n_models, n_queries, depth)
        The numbers of the rows that a model finds for a query, best first; −1 is no row.
    labels : (n_rows,) or None
    own : (n_queries,) or None
        The row number of each query, if the queries are rows.
    """

    rows: np.ndarray
    queries: np.ndarray
    lists: np.ndarray
    labels: np.ndarray | None
    own: np.ndarray | None

    def pool(self, query: int) -> list[str]:
        """The ids of the rows that any model finds for a query, given by its number, in random order."""
        found = np.unique(self.lists[:, query])
        ids = self.rows[found[found >= 0]]
        order = np.argsort(row_keys(ids, f"pool {self.queries[query]}"), kind="stable")
        return [str(one) for one in ids[order]]


@dataclass(frozen=True)
class Choose(Task[ModelChoice], kind="choose", version=2, title="Which model"):
    """The task that says which of two to five models finds the best rows, from judged queries.

    The spaces are those of the rows, one for each model, with the same ids. If `has_queries`, as many spaces
    of the queries follow, in the same order; otherwise, rows are the queries. Without judgements, rows of a
    query's label are relevant.

    Attributes
    ----------
    n_rows : int
        Number of rows of the whole corpus, if the spaces hold a sample of it; 0 if they hold all rows.
    blind : bool
        Whether a person judges one query after another, so that `judgements` may grow.

    Examples
    --------
    >>> from relcore import Choose
    >>> Choose(epsilon=0.02).epsilon
    0.02
    """

    epsilon: float = setting(
        0.05,
        low=0.005,
        high=0.5,
        step=0.01,
        label="Difference that does not matter",
        help="A model is chosen if it is best, or at most this much of nDCG behind. Half of it takes about"
        " four times as many queries.",
    )
    n_rows: int = setting(
        0,
        low=0,
        option="rows",
        metavar="N",
        help="Number of rows of the whole corpus, if the vectors are of a sample. Default: no sample.",
    )
    has_queries: bool = False
    judgements: tuple[JudgedQuery, ...] = ()
    blind: bool = False
    random_state: int = setting(
        0, low=0, option="order_state", help="Random state of the order of the queries."
    )

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        return 0.2 + 2e-11 * sum(len(space) * space.dimension for space in spaces) * MOST_LABELLED

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> ModelChoice:
        """Compare the models.

        Raises
        ------
        SpaceError
            Fewer than two models, or more than five; spaces without common rows or queries; neither
            judgements nor labels.
        """
        report(0, 2, "searching")
        found = self.searches(spaces)
        report(1, 2, "comparing")
        return self.answer(spaces, found)

    def searches(self, spaces: Sequence[LatentSpace]) -> ModelSearches:
        """What each model finds. Raises a SpaceError as `run` does, but for missing judgements."""
        corpora, queries = self._sides(spaces)
        rows = _shared(corpora)
        depth = self.depth(len(rows))
        vectors = [unit_rows(_vectors(space, rows)) for space in corpora]
        labels = _labels(corpora, rows)
        if labels is not None and not (labels != "").any():
            labels = None
        if queries:
            asked = self._drawn(_shared(queries))
            own = None
            sides = [unit_rows(_vectors(space, asked)) for space in queries]
        else:
            # Without judgements, a row is relevant to others of its label.
            labelled = labels is not None and not self.judgements and not self.blind
            asked = rows
            if labelled:
                asked = rows[labels != ""]
            asked = self._drawn(asked)
            own = pd.Index(rows).get_indexer(asked)
            sides = [one[own] for one in vectors]
        lists = [search(side, one, depth, own) for side, one in zip(sides, vectors, strict=True)]
        # A query without direction, such as a text without a known word, finds nothing.
        found = [
            np.where(side.any(axis=1, keepdims=True), one, -1) for side, one in zip(sides, lists, strict=True)
        ]
        return ModelSearches(np.asarray(rows), np.asarray(asked), np.stack(found), labels, own)

    def depth(self, n: int) -> int:
        """The number of rows that each model finds, if the spaces have n rows: 5, or fewer in a sample.

        In a sample, fewer wrong rows compete with the right ones. With this depth, the differences of models
        were those of nDCG@10 in the whole corpus to .01 (see benchmarks/choose_rates.md).
        """
        share = n / max(n, self.n_rows)
        return max(1, min(_MOST_DEPTH, round(10 * share)))

    def answer(self, spaces: Sequence[LatentSpace], found: ModelSearches) -> ModelChoice:
        """The answer after the searches, in milliseconds: a page asks for it after each judgement."""
        corpora, _ = self._sides(spaces)
        relevance, judged = self._relevance(found)
        depth = found.lists.shape[2]
        measure = ndcg
        if self.blind:  # a person judges only what was found, so the best possible order is unknown
            measure = discounted_precision
        scores = np.stack([measure(lists, relevance, depth) for lists in found.lists], axis=1)
        counts = np.flatnonzero(judged & (np.diff(relevance.indptr) > 0))
        scores = scores[counts]
        n_planned = len(scores)
        if self.blind and not judged.all():  # more judgements may come
            n_planned = LOOKS[-1]
        names, _ = short_names(distinct_names(corpora))
        return ModelChoice(
            names=tuple(names),
            n_rows=len(found.rows),
            n_corpus=max(len(found.rows), self.n_rows),
            depth=depth,
            epsilon=self.epsilon,
            relevance=self._judge(),
            n_queries=len(found.queries),
            n_judged=len(scores),
            n_useless=int(judged.sum()) - len(scores),
            widths=tuple(space.dimension for space in corpora),
            # Only a person's time is saved by stopping. The intervals hold at all looks together.
            looks=looks_at(scores, self.epsilon, planned_looks(n_planned), stops=self.blind),
            queries=tuple(map(str, found.queries[counts])),
            scores=scores.astype(np.float32),
        )

    def _sides(self, spaces: Sequence[LatentSpace]) -> tuple[Sequence[LatentSpace], Sequence[LatentSpace]]:
        """The spaces of the rows, and those of the queries, if there are any."""
        n = len(spaces)
        if self.has_queries:
            if n % 2:
                raise SpaceError(
                    f"choose: expected queries by each model, got {n} spaces; add the missing one"
                )
            n //= 2
        need_models(n)
        return spaces[:n], spaces[n:]

    def _drawn(self, ids: np.ndarray) -> np.ndarray:
        """The ids of the queries to search for, in random order."""
        order = np.argsort(row_keys(ids, "choose", self.random_state), kind="stable")
        ids = ids[order]
        if self.blind:
            return ids[:MOST_ASKED]
        if not self.judgements:
            return ids[:MOST_LABELLED]
        judged = {one.query for one in self.judgements}
        found = ids[[str(one) in judged for one in ids]]
        if not len(found):
            raise SpaceError(
                f"judgements: expected queries such as {quote(ids[:1])}, got others, such as"
                f" {quote(sorted(judged)[:1])}; give the queries the ids of the judgements"
            )
        return found[:MOST_JUDGED]

    def _judge(self) -> str:
        """Who says which rows are relevant, as `ModelChoice.relevance` names it."""
        if self.blind:
            return "blind"
        if self.judgements:
            return "judgements"
        return "labels"

    def _relevance(self, found: ModelSearches) -> tuple[csr_array, np.ndarray]:
        """The relevance matrix, and which queries (n_queries,) are judged."""
        n = len(found.queries)
        if self.blind and not any(one.grade > 0 for one in self.judgements):
            return csr_array((n, len(found.rows))), np.isin(
                found.queries, [one.query for one in self.judgements]
            )
        if self.judgements:
            relevance, _ = relevance_of(self.judgements, found.queries.tolist(), found.rows.tolist())
            places = pd.Index(found.queries).get_indexer([one.query for one in self.judgements])
            judged = np.zeros(n, dtype=bool)
            judged[places[places >= 0]] = True
            return relevance, judged
        if found.labels is None or found.own is None:
            raise SpaceError(UNJUDGED)
        return same_label(found.labels, found.own), found.labels[found.own] != ""


def need_models(n: int) -> None:
    """Raise a SpaceError unless two to five models are compared."""
    if not FEWEST_MODELS <= n <= MOST_MODELS:
        raise SpaceError(
            f"choose: expected {FEWEST_MODELS} to {MOST_MODELS} different models, got {n}; more models"
            " need more judged queries to tell them apart, so leave out those that are too slow or too large"
        )


def _shared(spaces: Sequence[LatentSpace]) -> np.ndarray:
    """The ids that all spaces have. Raises NoCommonId if there are none."""
    ids = shared_ids(spaces)
    if not len(ids):
        names = quote(space.name for space in spaces)
        raise NoCommonId(
            f"choose: expected ids that {names} share, got none; embed the same rows with each model"
        )
    return np.asarray(ids)


def _vectors(space: LatentSpace, ids: np.ndarray) -> np.ndarray:
    """The vectors (n, d) of these ids. Those of all rows in their order are not copied."""
    places = space.index.get_indexer(ids)
    if np.array_equal(places, np.arange(len(space))):
        return space.vectors
    return space.vectors[places]


def _labels(spaces: Sequence[LatentSpace], ids: np.ndarray) -> np.ndarray | None:
    """The labels (n,) of these ids, on which the spaces agree; None if none has labels."""
    sides = []
    for space in spaces:
        if space.labels is not None:
            labels = space.labels[space.index.get_indexer(ids)]
            sides.append(
                LatentSpace(np.zeros((len(ids), 1), np.float32), ids, name=space.name, labels=labels)
            )
    if not sides:
        return None
    return agreed_labels(sides)


@long_call
def choose(
    models: Sequence[MatrixLike],
    *,
    queries: Sequence[MatrixLike] | None = None,
    spec: Choose = Choose(),
) -> ModelChoice:
    """Say which of several embedding models finds the best rows, and whether that is decided.

    Parameters
    ----------
    models : two to five spaces or arrays (n, d_i)
        Vectors of the same rows, or of a sample of them, by each model.
    queries : as many spaces or arrays (q, d_i), optional
        The same queries by each model. Without them, each row is a query.
    spec : Choose
        `spec.judgements` tell which rows are relevant. Without them, rows of a query's label are.

    Raises
    ------
    SpaceError
        See `Choose.run`.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import LatentSpace, choose
    >>> rng = np.random.default_rng(0)
    >>> labels = list("abcd") * 50
    >>> classes = np.eye(4)[np.arange(200) % 4]
    >>> good = LatentSpace(classes + 0.1 * rng.normal(size=(200, 4)), labels=labels, name="good")
    >>> poor = LatentSpace(rng.normal(size=(200, 4)), labels=labels, name="poor")
    >>> choose([good, poor])
    <ModelChoice: good is best, after 200 queries>
    """
    need_sequence("models", models, "spaces")
    spaces = as_spaces(models, [f"model {place}" for place in range(1, len(models) + 1)])
    if queries is not None:
        need_sequence("queries", queries, "spaces")
        if len(queries) != len(models):
            raise SpaceError(
                f"queries: expected {len(models)} spaces, one for each model, got {len(queries)}"
            )
        spaces += as_spaces(queries, [f"queries of model {place}" for place in range(1, len(models) + 1)])
        spec = replace(spec, has_queries=True)
    return spec.run(spaces, report=show_step)
