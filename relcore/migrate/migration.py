"""Decide what to do about a new embedding model: measure the options that `relcore.migrate.evaluate` defines,
and recommend one."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from relcore.base.arguments import need_kind, need_sequence
from relcore.base.errors import SpaceError
from relcore.base.kinds import takes_kinds
from relcore.base.names import ADAPTERS, STRATEGIES
from relcore.base.numbers import counted
from relcore.base.rows import unit_rows
from relcore.base.settings import setting
from relcore.catalog.catalog import SpaceSpec, stored_encoding_spec
from relcore.catalog.naming import EXAMPLES, example_spaces
from relcore.catalog.task import Task
from relcore.encoders.onnx_texts import OnnxText
from relcore.encoders.transformers import MiniLM
from relcore.migrate.adapters import Adapter
from relcore.migrate.cross_fitting import (
    MOST_CURVE_ROWS,
    PARTS,
    SIZES,
    CrossFitted,
    CurvePoint,
    Pairs,
    QueryScores,
    Resampling,
    cross_fitted,
    curve_of,
    jackknife_deviations,
)
from relcore.migrate.pairing import (
    FEWEST_PAIRS,
    MOST_FITTED,
    check_pairs,
    length_cautions,
    parts_of,
    preprocessing_cautions,
)
from relcore.migrate.price import DEPTHS, Price, price_of
from relcore.migrate.result import UNDECIDED, MigrationResult
from relcore.migrate.trial import (
    MOST_QUERIES,
    N_CANDIDATES,
    Candidates,
    RetrievalTask,
    held_out_trial,
    judged_trial,
    sample_rows,
)
from relcore.migrate.verdict import NEIGHBOURS, OptionScore
from relcore.runs.entries import BundledResults
from relcore.runs.progress_line import long_call, show_step
from relcore.runs.store import Store
from relcore.runs.work import Progress, silent
from relcore.scores.relevance import JudgedQuery, K, search
from relcore.scores.score import Interval, lowest_groups
from relcore.spaces.matching import as_spaces, match
from relcore.spaces.space import LatentSpace, MatrixLike
from relcore.spaces.split import TEST_FRACTION, row_keys

LEFT_OUT = "left out"  # words of a caution that is not highlighted
ENOUGH_PAIRS = 300
_SECONDS_PER_FITTED = 4e-10  # for one pair, times the squares of both dimensions
_SECONDS_PER_SEARCHED = 1e-10  # for one query and one row, times the dimension
_SEARCHES = 60  # searches that no setting changes
AUTO = "auto"
CHOSEN = ChainMap(ADAPTERS, {AUTO: "Automatic, by cross-validation"})
RELEVANCE = {"labels": "Rows of its label", NEIGHBOURS: "Its neighbours by the new model"}


@dataclass(frozen=True, eq=False)
class MigrationData:
    """The data that a migration is measured on: the pairs to fit on, their `rows` (m,) in the old space, and
    the retrieval task.

    `relevance` is that of `MigrationResult`. `queries` are the ids of the queries, and `places` (n,) the row
    numbers, in the old space, of the corpus of the task. The old space has `n_corpus` rows. `log` has three
    arrays of unit rows: the old queries, the new queries, and the old corpus. It is None if held-out pairs
    are the queries.
    """

    pairs: Pairs
    rows: np.ndarray
    relevance: str
    trial: RetrievalTask
    queries: tuple[str, ...]
    places: np.ndarray
    cautions: tuple[str, ...]
    n_corpus: int
    log: tuple[np.ndarray, ...] | None
    embed_next: tuple[str, ...] = ()


def ids_to_embed(old: LatentSpace, new: LatentSpace, n: int, random_state: int = 0) -> tuple[str, ...]:
    """The ids of n rows of the old space, drawn at random, that have no vector of the new model yet; of all
    such rows if there are fewer."""
    missing = old.ids[new.index.get_indexer(old.index) < 0]
    order = np.argsort(row_keys(missing, "pairs", random_state), kind="stable")
    return tuple(map(str, missing[order[: max(0, n)]]))


def _need_pairs(old: LatentSpace, new: LatentSpace, m: int, least: int, random_state: int) -> None:
    """Raise a SpaceError, with the ids to embed next, if there are fewer than `least` of m pairs."""
    if m >= least:
        return
    ids = ids_to_embed(old, new, least - m, random_state)
    remedy = f"embed these by the new model next: {', '.join(ids)}"
    if m + len(ids) < least:
        remedy = f"add rows: the old space has {counted(len(old), 'row')}"
    raise SpaceError(
        f"pairs: expected {least} rows or more that both models have embedded, got {m} in {old.name!r} and"
        f" {new.name!r}; {remedy}"
    )


def _log_of(spaces: Sequence[LatentSpace], random_state: int) -> tuple[np.ndarray, ...]:
    """The `log` of `MigrationData`, with at most 2,000 queries. `spaces` are the old and the new rows, then
    the queries by the old and by the new model."""
    paired = match(*spaces[2:])
    rows = sample_rows(paired.ids, np.arange(len(paired)), random_state, MOST_QUERIES)
    old = unit_rows(paired.source.vectors[rows])
    new = unit_rows(paired.target.vectors[rows])
    return old, new, unit_rows(spaces[0].vectors)


def _price(log: tuple[np.ndarray, ...], adapter: Adapter, candidates: Candidates, pairs: np.ndarray) -> Price:
    old, new, corpus = log
    depth = min(len(corpus), max(*DEPTHS, candidates.n))
    mapped = corpus
    if adapter.rewrites_corpus:
        mapped = adapter.corpus(corpus)
    lists = search(old, corpus, depth), search(adapter.transform(new), mapped, depth)
    candidates = candidates._replace(n=min(candidates.n, len(corpus)))
    return price_of(*lists, len(corpus), candidates, pairs)


@dataclass(frozen=True)
class Migration(Task[MigrationResult], kind="migration", version=10, title="Migration to a new model"):
    """The task that decides what to do about a new embedding model, by measurements on judged queries or
    labels. Without these, it measures how many of the new model's results are found with the old vectors.

    The first space has the old vectors of the corpus, and the second the new vectors of some of its rows,
    with the same ids. If there are judgements, two more spaces have the queries by the old and by the new
    model; otherwise, held-out pairs are the queries. `compared` names further adapters for the learning
    curves; `sizes` are their numbers of pairs.

    Examples
    --------
    >>> from relcore import Migration
    >>> Migration(adapter="ridge", n_pairs=300).n_pairs
    300
    """

    adapter: str = setting(
        AUTO,
        choices=CHOSEN,
        help="Adapter that maps new queries into the old space; auto: the best one in cross-validation over"
        " queries, which rewrites the corpus only if that is clearly better.",
    )
    n_pairs: int = setting(
        0,
        label="Pairs to learn from",
        option="pairs",
        low=0,
        step=50,
        help="Number of pairs to learn from; 0 takes all that are not held out.",
    )
    strategy: str = setting(
        "random",
        label="Choose pairs by",
        choices=STRATEGIES,
        help="How pairs are chosen, in the old space.",
    )
    compared: tuple[str, ...] = setting(("whitened", "in-place", "ridge"), choices=ADAPTERS)
    sizes: tuple[int, ...] = setting(SIZES, low=2)
    draws: int = setting(
        3,
        option="states",
        low=1,
        help="Number of random states, each with its own draw of pairs, per point of the curve.",
    )
    candidates: str = setting(
        "both",
        choices={"both": "Both queries, by turns", "old": "The old query", "bridged": "The bridged query"},
        help="A cascade ranks the rows that these queries find in the old index.",
    )
    n_candidates: int = setting(
        N_CANDIDATES, low=1, label="Candidates of a cascade", help="Rows per query that the new model ranks."
    )
    k: int = setting(K, label="Results per query, k", low=1, help="Depth of the lists that are scored.")
    judgements: tuple[JudgedQuery, ...] = ()
    relevance: str = setting(
        "labels",
        label="Relevant are",
        choices=RELEVANCE,
        help=(
            "What a held-out row should find. Without labels, neighbours by the new model are used, which"
            " cannot tell which model is better."
        ),
    )
    random_state: int = setting(0, low=0, help="Random state of the pairs, the folds and the held-out rows.")

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        """The expected time: for the fits of the adapters, and for the searches."""
        widths = [space.dimension for space in spaces[:2]]
        n_shared = len(spaces[1])
        if self.judgements:
            n_pairs = min(self.n_pairs or n_shared, MOST_FITTED)
            n_rows = len(spaces[0])
            n_queries = min(len(spaces[-1]), MOST_QUERIES)
        else:
            n_pairs = min(self.n_pairs or round(n_shared * (1 - TEST_FRACTION)), MOST_FITTED)
            n_rows = n_shared - n_pairs
            n_queries = min(n_rows, MOST_QUERIES)
        sizes = [size for size in self.sizes if size < n_pairs]
        n_curves = 1 + len(set(self.compared))
        fitted = n_pairs * (len(ADAPTERS) + PARTS + n_curves) + self.draws * n_curves * sum(sizes)
        searched = n_queries * min(n_rows, MOST_CURVE_ROWS)
        searches = _SEARCHES + (n_curves + 1) * self.draws * len(sizes)
        fitting = _SECONDS_PER_FITTED * fitted * sum(d**2 for d in widths)
        searching = _SECONDS_PER_SEARCHED * searches * searched * max(widths)
        return 1.0 + fitting + searching

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> MigrationResult:
        """Measure all options. Raises a SpaceError for pairs that do not belong together, for too few pairs,
        and for judgements without known queries.
        """
        report(0, 10, "checking the pairs")
        return self.answer(self.ground(spaces), report)

    def answer(self, ground: MigrationData, report: Progress = silent) -> MigrationResult:
        pairs = ground.pairs
        trial = ground.trial
        state = self.random_state
        report(1, 10, "choosing an adapter and a weight")
        adapters: Iterable[str] = (self.adapter,)
        if self.adapter == AUTO:
            adapters = ADAPTERS
        fits = {name: pairs.fit(name) for name in adapters}
        choice = cross_fitted(trial, fits, self.k, state)
        name = choice.adapter
        report(4, 10, "drawing pairs again")
        by_pairs = jackknife_deviations(trial, pairs, name, choice.weight, self.k, state)
        samples = self._scores_of_queries(trial, choice)
        options = self._option_scores(trial, choice.found, samples, by_pairs)
        ends = [option for option in options if option.option in by_pairs]
        curve = self._learning_curves(ground, choice, ends, report)
        price = None
        if ground.log:
            price = _price(ground.log, fits[name], trial.candidates, ground.rows)
        query, row = trial.relevance.nonzero()
        result = MigrationResult(
            UNDECIDED,
            tuple(options),
            adapter=name,
            weight=choice.weight,
            candidates=choice.candidates,
            curve=curve,
            cautions=ground.cautions,
            relevance=ground.relevance,
            k=self.k,
            n_pairs=len(pairs.ids),
            n_rows=len(trial.rows),
            queries=ground.queries,
            scores={option: sample.queries.astype(np.float32) for option, sample in samples.items()},
            found={
                option: np.where(rows >= 0, ground.places[rows], -1) for option, rows in choice.found.items()
            },
            relevant_query=np.asarray(query, dtype=np.int64),
            relevant_row=ground.places[row],
            pairs=ground.rows,
            candidate_lists=self.candidates,
            n_candidates=self.n_candidates,
            price=price,
            n_corpus=ground.n_corpus,
            widths=(pairs.old.shape[1], pairs.new.shape[1], fits[name].corpus(pairs.old[:1]).shape[1]),
            embed_next=ground.embed_next,
            chosen=choice.chosen,
        )
        return result.decided()

    def _learning_curves(
        self, ground: MigrationData, choice: CrossFitted, ends: Sequence[OptionScore], report: Progress
    ) -> tuple[CurvePoint, ...]:
        """The learning curves of the chosen and the compared adapters. The curves of the chosen one end in
        the scores `ends`, with all pairs; if there are no curves, there are no ends either."""
        pairs = ground.pairs
        name = choice.adapter
        curve = curve_of(
            ground.trial,
            pairs,
            (name, *self.compared),
            choice.weight,
            sizes=self.sizes,
            draws=self.draws,
            k=self.k,
            random_state=self.random_state,
            report=lambda done, total, text: report(5 + 5 * done / total, 10, text),
        )
        if not curve:
            return curve
        m = len(pairs.ids)
        return curve + tuple(CurvePoint(m, name, end.option, end.value, end.low, end.high, 1) for end in ends)

    def _scores_of_queries(self, trial: RetrievalTask, choice: CrossFitted) -> dict[str, QueryScores]:
        """The score of each query for each option that can be scored."""
        # Without judgements, what re-embedding finds is relevant by definition, so its score tells nothing. A
        # cascade over all rows finds the same rows.
        unscored = set()
        if not trial.is_judged:
            unscored.add("re-embed")
        if not trial.is_judged and self.n_candidates >= len(trial.rows):
            unscored.add("cascade")
        return {
            option: QueryScores(trial.score(lists, self.k), chosen=choice.chosen.get(option, 0.0))
            for option, lists in choice.found.items()
            if option not in unscored
        }

    def _option_scores(
        self,
        trial: RetrievalTask,
        found: Mapping[str, np.ndarray],
        samples: Mapping[str, QueryScores],
        by_pairs: Mapping[str, np.ndarray],
    ) -> list[OptionScore]:
        """The mean score of each option, its differences from keeping and from re-embedding, and its interval
        over draws of the pairs, whose deviations are `by_pairs`."""
        resampling = Resampling(len(trial.old_queries))
        options = []
        for option, sample in samples.items():
            gains: list[Interval | None] = []
            for other in ("keep", "re-embed"):
                if other in samples and other != option:
                    gains.append(resampling.difference(sample, samples[other]))
                else:
                    gains.append(None)
            mean = resampling.mean(sample)
            chance = trial.chance(found[option], self.k, self.random_state)
            half = 1.96 * float(np.sqrt(np.mean(np.square(by_pairs.get(option, 0.0)))))
            options.append(OptionScore(option, mean.value, mean.low, mean.high, chance, *gains, half))
        return options

    def ground(self, spaces: Sequence[LatentSpace], checked: bool = False) -> MigrationData:
        """Split the spaces into pairs to fit an adapter on, and a retrieval task to score it with. Raises the
        same errors as `run`. If `checked`, the test whether the pairs belong together is skipped.
        """
        old, new = spaces[:2]
        paired = match(old, new)
        state = self.random_state
        new_rows = paired.target.vectors
        old_rows = paired.source.vectors
        least = 2 * FEWEST_PAIRS  # to fit on, and to hold out
        if self.judgements:
            least = FEWEST_PAIRS
        _need_pairs(old, new, len(paired), least, state)
        if not checked:
            check_pairs(new_rows, old_rows, state, (old.name, new.name)).need()
        parts = parts_of(paired, self.n_pairs, self.strategy, bool(self.judgements), state)
        cautions = preprocessing_cautions(new_rows, old_rows)
        if len(spaces) == 4:
            cautions += length_cautions(old.vectors, spaces[2].vectors, "old")
            cautions += length_cautions(new.vectors, spaces[3].vectors, "new")
        if paired.n_zero:
            cautions.append(f"{counted(paired.n_zero, 'pair')} with a zero vector {LEFT_OUT}.")
        pairs = Pairs(unit_rows(new_rows), unit_rows(old_rows), paired.ids).take(parts.fitted)
        rows = old.index.get_indexer(pairs.ids)
        log = None
        if len(spaces) == 4:
            log = _log_of(spaces, state)
        if self.judgements:
            relevance = "judgements"
            trial, queries, unknown = judged_trial(spaces, self.judgements, state)
            cautions = [*unknown, *cautions]
            places = trial.rows
        else:
            if parts.n_repeated:
                left = counted(parts.n_repeated, "row")
                cautions.append(f"{left} {LEFT_OUT} as queries: the adapter was fitted on equal rows.")
            trial = held_out_trial(paired, parts, self.relevance, self.k, state)
            held = paired.ids[trial.rows]
            relevance = "labels" if trial.is_judged else NEIGHBOURS
            queries = tuple(held[trial.own])
            places = old.index.get_indexer(held)
        return MigrationData(
            pairs=pairs,
            rows=rows,
            relevance=relevance,
            trial=replace(trial, candidates=Candidates(self.candidates, self.n_candidates)),
            queries=queries,
            places=places,
            cautions=tuple(cautions),
            n_corpus=len(old),
            log=log,
            embed_next=ids_to_embed(old, new, ENOUGH_PAIRS - len(paired), state),
        )


# The example migration that comes with Relscope.

GROUP = "migration-example"
DATASET = EXAMPLES["sentences"].dataset
OLD = OnnxText()
NEW = MiniLM()
TASK = Migration(n_pairs=300)


@long_call
def migrate(
    old: MatrixLike,
    new: MatrixLike,
    *,
    queries: tuple[MatrixLike, MatrixLike] | None = None,
    spec: Migration = Migration(),
) -> MigrationResult:
    """Decide whether to keep an old embedding model, to bridge to a new one, to query both, or to re-embed.

    Parameters
    ----------
    old, new : (n, d_old), (m, d_new)
        Vectors of the corpus by the old model; vectors by the new model of some of its rows, with the same
        ids.
    queries : (q, d_old), (q, d_new), optional
        The queries of `spec.judgements` by both models.

    Raises
    ------
    SpaceError
        The errors of `Migration.run`.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import LatentSpace, Migration, migrate
    >>> rng = np.random.default_rng(0)
    >>> kinds = rng.integers(8, size=600)
    >>> old = rng.normal(size=(8, 16))[kinds] + rng.normal(size=(600, 16))
    >>> new = old @ np.linalg.qr(rng.normal(size=(16, 16)))[0]
    >>> ids, labels = [f"row {row}" for row in range(600)], kinds.astype(str)
    >>> spaces = [LatentSpace(rows, ids, labels=labels) for rows in (old, new)]
    >>> migrate(*spaces, spec=Migration(adapter="in-place", sizes=())).option("bridge").value > 0.5
    True
    """
    need_kind("spec", spec, Migration)
    spaces = as_spaces((old, new), ("old", "new"))
    if queries is not None:
        need_sequence("queries", queries, "two spaces")
        if len(queries) != 2:
            raise SpaceError(f"queries: expected those of both models, two spaces, got {len(queries):,}")
        spaces += as_spaces(queries, ("space", "space"))
    return spec.run(spaces, report=show_step)


@takes_kinds
def starting_models(finished: BundledResults | None) -> tuple[SpaceSpec, SpaceSpec] | None:
    """The specs of the old and the new space of the bundled migration; None if the bundled results lack them.

    Examples
    --------
    >>> from relcore import bundled_results, starting_models
    >>> [spec.source for spec in starting_models(bundled_results())]
    ['encoding', 'encoding']
    """

    group = None
    if finished:
        group = finished.groups.get(GROUP)
    news = [spec for spec in example_spaces("sentences", finished)[0] if spec.encoder == NEW]
    summary = None
    if group and group.files:
        summary = finished.summary(group.files[0])
    if summary is None or not news:
        return None
    return stored_encoding_spec(summary), news[0]


# Queries that get worse: the classes or clusters of queries that an option serves worse than the old model.

FEWEST_OF_GROUP = 5  # minimum number of queries in a class or cluster


def losses_by_group(change: np.ndarray, groups: np.ndarray) -> pd.DataFrame:
    """A table of the mean change of the score in each group of at least five queries, greatest loss first. It
    is empty if there are fewer than two such groups.

    `change` (q,) is the change of each query's score. `groups` (q,) has the group of each query, "" for none.
    Columns: group, queries, change (mean), low and high (95 % band of random groups of the same size), p
    (corrected for the number of groups).
    """
    groups = np.asarray(groups, dtype=object)
    names, sizes = np.unique(groups[groups != ""], return_counts=True)
    kept = names[sizes >= FEWEST_OF_GROUP]
    columns = ["group", "queries", "change", "low", "high", "p"]
    if len(kept) < 2:
        return pd.DataFrame(columns=columns)
    places = {name: number for number, name in enumerate(kept)}
    numbers = np.array([places.get(group, -1) for group in groups])
    lowest = lowest_groups(change, numbers)
    mean = float(np.mean(change))
    table = pd.DataFrame(
        {
            "group": kept,
            "queries": np.bincount(numbers[numbers >= 0], minlength=len(kept)),
            "change": lowest.mean,
            "low": mean - lowest.half_width,
            "high": mean + lowest.half_width,
            "p": lowest.p,
        }
    )
    return table.sort_values("change", kind="stable", ignore_index=True)
