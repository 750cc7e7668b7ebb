"""Find the rows of two spaces that describe the same items."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from relcore.base.arguments import need_sequence
from relcore.base.errors import SpaceError
from relcore.base.kinds import takes_kinds
from relcore.base.names import BOOTSTRAPS
from relcore.base.numbers import counted, short
from relcore.base.report import Report, Reported, Table
from relcore.base.rows import mean_row
from relcore.base.settings import setting
from relcore.catalog.task import Task
from relcore.files.links import Pairs
from relcore.linking.bootstrap import bootstrap_anchors, share_found
from relcore.linking.clusters import CLUSTERED_ROWS, ENOUGH, FEWEST_CLUSTERED_ROWS, LINK_ROUNDS
from relcore.linking.links_found import PROMISED, BootstrapResult, Round, links_table
from relcore.linking.optimisation import LEARNING_RATE, MOST_STEPS, STEPS
from relcore.linking.self_learning import MOST_ROUNDS, MOST_ROUNDS_UNSEEDED
from relcore.represent.projection import RelativeProjection
from relcore.represent.translation import Affine, Procrustes
from relcore.runs.store import Store
from relcore.runs.work import Progress, silent
from relcore.scores.comparison import score_pair
from relcore.scores.score import Score
from relcore.scores.score_report import score_cells, score_table
from relcore.spaces.ids import GuessedIds
from relcore.spaces.matching import Match, as_space, known_ids, match
from relcore.spaces.space import LatentSpace, MatrixLike
from relcore.spaces.split import Split


@dataclass(frozen=True, eq=False, repr=False)
class Linked(Reported):
    """The result of `link`: the two spaces, the links between their rows, and the map that follows from the
    links.

    Attributes
    ----------
    result : BootstrapResult
    verdict, reason : str
        The verdict on whether the spaces can be linked, and its reason.
    """

    source: LatentSpace
    target: LatentSpace
    result: BootstrapResult

    @property
    def verdict(self) -> str:
        return self.result.verdict

    @property
    def reason(self) -> str:
        return self.result.reason

    @cached_property
    def links(self) -> pd.DataFrame:
        """The known pairs and the links in a table with the columns source, target, kind and precision, see
        `links_table`. It is empty if nothing was found."""
        return links_table(self.result)

    @cached_property
    def pair(self) -> Match:
        """The linked rows of both spaces, paired under the ids of the source. All pairs except the known ones
        are marked as guesses, because scores may use only known pairs. Raises a SpaceError if there is no
        link.
        """
        kept = self._kept()
        known = [own for own, _ in kept[: self.result.n_seeds]]
        renamed = self.target.take(self.target.rows([other for _, other in kept]))
        ids = GuessedIds.of([own for own, _ in kept], known)
        ids.unlinked = len(self.target) - len(kept)
        return match(self.source, renamed.with_columns(ids=ids))

    @cached_property
    def map(self) -> Procrustes | Affine:
        """The map of source rows (n, d_source) to the target (n, d_target), fitted on the kept links.

        If only seeds are kept, the map is `BootstrapResult.rotation`, which is a linear map if the spaces are
        not linked. Raises a SpaceError if there are neither links nor seeds.
        """
        alone = len(self.result.kept) == self.result.n_seeds
        if alone and (self.result.n_seeds or self.verdict == "linked") and self.result.rotation is not None:
            X = self.source.vectors - mean_row(self.source.vectors)
            Y = self.target.vectors - mean_row(self.target.vectors)
            moved = X @ self.result.rotation
            moved *= np.linalg.norm(Y, axis=1).mean() / np.linalg.norm(moved, axis=1).mean()
            kind: type[Affine | Procrustes] = Affine
            if self.verdict == "linked":
                kind = Procrustes
            return kind().fit(self.source.vectors, moved + mean_row(self.target.vectors))
        own, other = zip(*self._kept(), strict=True)
        rows = self.source.rows(own), self.target.rows(other)
        return Procrustes().fit(self.source.vectors[rows[0]], self.target.vectors[rows[1]])

    def report(self) -> Report:
        """The report of `result`."""
        return self.result.report()

    def _kept(self) -> Pairs:
        if not self.result.kept:
            raise SpaceError(f"link: expected one link or more, got none. {self.reason}")
        return self.result.kept


@takes_kinds
def link(
    source: MatrixLike,
    target: MatrixLike,
    pairs: Sequence[tuple[str, str]] = (),
    *,
    precision: float = PROMISED,
    k: int = 10,
    random_state: int = 0,
    method: Literal["self-learning", "paper"] = "self-learning",
    n_anchors: int | None = None,
    after: Callable[[Sequence[Round]], object] = len,
) -> Linked:
    """Find the rows of two spaces that describe the same items, from a few known pairs or without any.

    Not every row needs a partner, and only the ids in `pairs` are used to pair rows. The links are guesses,
    each with an estimated precision. The verdict says whether the spaces can be linked at all.

    Parameters
    ----------
    source, target : LatentSpace or array, (n, d_source) and (m, d_target)
        The ids of an array are its row numbers, as text.
    pairs : pairs of (source id, target id)
        Known pairs: no pair, or at least three.
    precision, k, random_state, method, n_anchors, after
        As in `bootstrap_anchors`; by default the known pairs are the only anchors.

    Raises
    ------
    SpaceError
        Pairs that are unknown, contradictory or too few.

    Sources: self-learning (Artetxe, Labaka and Agirre 2018); parallel anchors from a few pairs (Cannistraci
    et al. 2023); without pairs also mini-vec2vec (Dar, arXiv 2510.02348).

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import LatentSpace, link
    >>> X = np.random.default_rng(0).normal(size=(400, 10))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(10, 10)))
    >>> first = LatentSpace(X, [f"en{row}" for row in range(400)])
    >>> second = LatentSpace(X @ rotation, [f"fr{row}" for row in range(400)])
    >>> linked = link(first, second, [(f"en{row}", f"fr{row}") for row in range(15)])
    >>> linked.verdict, len(linked.links), np.allclose(linked.map.transform(X), X @ rotation, atol=1e-4)
    ('linked', 400, True)
    >>> linked.links.head(2).to_numpy().tolist()
    [['en0', 'fr0', 'seed', 1.0], ['en1', 'fr1', 'seed', 1.0]]
    """
    need_sequence("pairs", pairs, "pairs of (source id, target id)")
    first = as_space(source, "source")
    second = as_space(target, "target")
    if n_anchors is None:
        n_anchors = max(len(pairs), 1)
    result = bootstrap_anchors(
        first,
        second,
        seeds=pairs,
        n_anchors=n_anchors,
        method=method,
        k=k,
        precision=precision,
        random_state=random_state,
        after=after,
    )
    return Linked(first, second, result)


# The task that links two spaces whose true pairs are unknown or hidden, and its figures.

SCORES = ("jaccard", "mrr", "cosine")
_QUERIES = 2000
_SETS = {
    "ground truth": "all true anchors",
    "seeds": "the known pairs only",
    "found": "the anchors found",
    "found, continuous": "the optimised vectors, before their nearest rows replace them",
}


@dataclass(frozen=True, eq=False, repr=False)
class Outcome(Reported):
    """The result of linking and, if the true pairs are known, its quality.

    Attributes
    ----------
    share : float
        Share of the anchors (without seeds) that got their true partner, 0 … 1. NaN if the true pairs are
        unknown.
    scores : set of anchors → metric → Score
        The result of `relative_scores`; empty if the true pairs are unknown.
    n_shared : int
        Number of true pairs; 0 if they are unknown.
    """

    result: BootstrapResult
    share: float
    scores: Mapping[str, Mapping[str, Score]]
    n_shared: int

    @property
    def known(self) -> bool:
        return self.n_shared > 0

    @property
    def linked(self) -> bool:
        return self.verdict == "linked"

    @property
    def verdict(self) -> str:
        return self.result.verdict

    @property
    def n_hidden(self) -> int:
        return len(self.result.anchors) - self.result.n_seeds

    @property
    def headline(self) -> str:
        result = self.result
        if not self.known:
            return result.headline
        verdict = self.verdict.capitalize()
        if not result.n_links:
            guesses = ""
            if self.n_hidden:
                share = f"{100 * self.share:.1f} %"
                guesses = f" Of the guesses for {self.n_hidden:,} hidden pairs, {share} are right."
            return f"{verdict}: no link is sure enough to be kept.{guesses}"
        right = sum(own == other for own, other in result.kept) - result.n_seeds
        found = f"{right:,} of"
        if right == result.n_links:
            found = "All"
        return (
            f"{verdict}. {found} {result.links_in_words} are right. Estimated without the hidden ids:"
            f" {result.estimate}."
        )

    def report(self, **figures: Any) -> Report:
        result = self.result
        facts = {
            "verdict": self.verdict,
            "success": self.linked,
            "reason": result.reason,
            "share": self.share,
            "anchors": len(result.anchors),
            "pairs": len(result.kept),
            "precision": result.promised,
            "wrong": self.wrong(),
            "scores": {
                form: {name: score.to_record() for name, score in scores.items()}
                for form, scores in self.scores.items()
            },
        }
        tables = [Table("rows", links_table(result))]
        if self.scores:
            jaccard = next(iter(self.scores.values()))["jaccard"]
            tested = f"{counted(jaccard.n, 'held-out row')} (neither anchors nor matched with one)"
            if jaccard.interval:
                tested += f", {jaccard.n_queries:,} of them as queries"
            caption = f"{tested}; k = {jaccard.k}; chance level: rows of one space permuted."
            head, *cells = score_cells(self.score_table())
            rows = [["relative to", *head[1:]], *cells]
            tables.append(Table(shown=rows, title="Scores of the anchors", caption=caption))
        return Report(f"{self.headline} {result.reason}", tables, facts, figures=figures)

    def score_table(self) -> pd.DataFrame:
        return score_table({_SETS[form]: scores for form, scores in self.scores.items()})

    def wrong(self) -> Pairs:
        """The anchors with a wrong partner, without seeds; () if the true pairs are unknown."""
        pairs: Pairs = ()
        if self.known:
            pairs = self.result.anchors[self.result.n_seeds :]
        return tuple(pair for pair in pairs if pair[0] != pair[1])


def relative_scores(
    source: LatentSpace,
    target: LatentSpace,
    result: BootstrapResult,
    *,
    k: int = 10,
    center: bool = True,
) -> dict[str, dict[str, Score]]:
    """Compare relative representations of both spaces: a score for each set of anchors and each metric. The
    sets of anchors are: the anchors with their true partners ("ground truth"), the seeds, the anchors with
    their matched partners ("found"), and the anchors with `BootstrapResult.vectors` ("found, continuous").
    The metrics are Jaccard, MRR ("paper" convention) and cosine.

    Scores use the rows of `held_out_split`. If there are fewer than k + 2 of these, the result is empty.
    ``center=False`` reproduces the paper.
    """
    split = held_out_split(source, target, result)
    if split is None or len(split.test) < k + 2:
        return {}
    shared = source.index[source.index.isin(known_ids((source, target)))]
    source_rows = source.vectors[source.index.get_indexer(shared)]
    target_rows = target.vectors[target.index.get_indexer(shared)]
    projection = RelativeProjection(center=center)

    def scores_of(
        pairs: Sequence[tuple[str, str]], target_anchors: np.ndarray | None = None
    ) -> dict[str, Score]:
        ids, partners = zip(*pairs, strict=True)
        if target_anchors is None:
            target_anchors = target.rows(partners)
        first = projection.fit(source.vectors, anchors=source.rows(ids)).transform(source_rows)
        second = projection.fit(target.vectors, anchors=target_anchors).transform(target_rows)
        return score_pair(first, second, split, k=k, n_queries=_QUERIES, metrics=SCORES)

    sets = {
        "ground truth": [(one, one) for one, _ in result.anchors if one in target.index],
        "seeds": result.anchors[: result.n_seeds],
        "found": result.anchors,
    }
    scores = {name: scores_of(pairs) for name, pairs in sets.items() if pairs}
    if result.anchors and result.vectors is not None:
        scores["found, continuous"] = scores_of(result.anchors, result.vectors)
    return scores


def held_out_split(source: LatentSpace, target: LatentSpace, result: BootstrapResult) -> Split | None:
    """The rows that can be scored: those in both spaces, except anchors and rows that are matched with an
    anchor. None if no row is left."""
    ids = known_ids((source, target))
    used = np.flatnonzero(ids.isin([identifier for pair in result.anchors for identifier in pair]))
    if len(used) < len(ids):
        return Split.held_out(ids, used)
    return None


_ROUND = 1.2e-8  # seconds per pair of rows in a round of self-learning
_LARGE_ROUNDS = 3  # number of rounds of the second stage
_STARTS = 2.1e-3  # seconds per row, for all starts from clusters


@dataclass(frozen=True)
class BootstrapSpec(Task[Outcome], kind="bootstrap", version=4, title="Link"):
    """The task that links two spaces. `pairs` are the seeds, by id. To test linking on spaces with the same
    ids, the pairing by id can be hidden; then, without `pairs`, `n_seeds` shared ids are drawn as seeds.

    Examples
    --------
    >>> from relcore import BootstrapSpec
    >>> BootstrapSpec(n_anchors=100).n_anchors
    100
    """

    method: str = setting(
        "self-learning",
        choices=BOOTSTRAPS,
        help=(
            "Self-learning: alternate Procrustes on the pairs and matching by CSLS (Artetxe et al.). Paper:"
            " Sinkhorn and Adam (Cannistraci et al. 2023, Algorithm 1). The seeds stay fixed."
        ),
    )
    n_anchors: int = setting(
        300, label="Anchors", option="anchors", low=1, step=10, help="Number of anchors, seeds included."
    )
    n_seeds: int = setting(
        15,
        label="Known pairs",
        option="seeds",
        low=0,
        help="Number of seeds: shared ids that are not hidden. Seeds count as anchors, too.",
    )
    pairs: Pairs = ()
    rows: int | None = setting(
        None,
        low=10,
        step=500,
        help="Use this many rows of each space: the most frequent or, without counts, the first.",
    )
    hide: bool = setting(True, help="Hide which rows have the same id, and score the links by these ids.")
    k: int = setting(10, label="Neighbours k", low=1, help="Number of neighbours in CSLS and in the scores.")
    precision: float = setting(
        PROMISED,
        label="Precision",
        low=0,
        high=1,
        step=0.01,
        help="Keep as many links as possible with at least this estimated share of right links.",
    )
    random_state: int = setting(0, low=0, help="Random state of the seeds and the anchors.")
    steps: int = setting(STEPS, low=1, high=MOST_STEPS, help="Paper: number of steps.")
    learning_rate: float = setting(
        LEARNING_RATE,
        above=0,
        high=1,
        step=0.01,
        metavar="RATE",
        help="Paper: learning rate of Adam; the paper takes .02 for retrieval and .05 for stitching.",
    )

    def to_record(self) -> dict[str, Any]:
        """The fields as a dict. A default precision is left out, because version 0.1.0 did not have this
        field."""
        record = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in record.items() if (name, value) != ("precision", PROMISED)}

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        (source, target) = spaces
        n = min(len(source), self.rows or len(source))
        m = min(len(target), self.rows or len(target))
        first = min(n, m, 4000)
        if self.method == "paper":
            return 3 + self.steps * n * m * (1.2e-9 + 1.2e-11 * self.n_anchors) + first**2 * _ROUND * 6
        n_rounds = 3
        if max(n, m) > first:
            n_rounds = 3 + _LARGE_ROUNDS
        whole = n * m * _ROUND * n_rounds
        if self.n_seeds or self.pairs:
            return 2 + first**2 * _ROUND * 11 + whole
        clusters = 0.0
        if min(n, m) >= FEWEST_CLUSTERED_ROWS:
            clusters = 4 + min(n, m, 2 * CLUSTERED_ROWS) * _STARTS
        return 2 + clusters + first**2 * _ROUND * 26 + whole

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> Outcome:
        source, target = spaces
        source = most_frequent(source, self.rows, [first for first, _ in self.pairs])
        target = most_frequent(target, self.rows, [second for _, second in self.pairs])
        settings = {
            name: getattr(self, name) for name in ("n_anchors", "method", "k", "precision", "random_state")
        }
        if self.method == "paper":
            settings |= {"steps": self.steps, "learning_rate": self.learning_rate}
        paper = self.method == "paper"
        seeded = self.n_seeds or self.pairs
        if paper:
            most = self.steps
        elif seeded:
            most = MOST_ROUNDS
        else:
            most = LINK_ROUNDS + MOST_ROUNDS_UNSEEDED

        def after(history: Sequence[Round]) -> None:
            last = history[-1]
            n = len(history)
            text = f"round {n}: {last.pairs:,} of at most {last.rows:,} rows matched"
            if paper:
                text = f"step {n}: mean squared error {short(last.objective)}"
            if not last.pairs:
                text = f"round {n}: from clusters of {last.rows:,} rows"
                if not np.isnan(last.objective):
                    text += f"; fits on two halves agree with cosine {short(last.objective)}"
            if not np.isnan(last.found):
                text += f", {100 * last.found:.1f} % of the hidden pairs found"
            report(min(n, most), most, text)

        settings["after"] = after
        if self.hide:
            shuffled, seeds, wanted, truth = self._hidden(source, target)
            result = bootstrap_anchors(source, shuffled, seeds=seeds, anchors=wanted, truth=truth, **settings)
            scores = relative_scores(source, target, result, k=self.k, center=self.method != "paper")
            return Outcome(result, share_found(result, truth), scores, len(truth))
        result = bootstrap_anchors(source, target, seeds=self.pairs, **settings)
        return Outcome(result, float("nan"), {}, 0)

    def _hidden(
        self, source: LatentSpace, target: LatentSpace
    ) -> tuple[LatentSpace, Pairs, list[str], dict[str, str]]:
        """The data of a test in which true pairs are hidden: the target with its rows shuffled, the seeds,
        the ids of source rows whose partners are to be found, and the true pairs (source id → target id).
        """
        shared = known_ids((source, target)).to_numpy()
        if len(shared) < max(self.n_anchors, 3):
            raise SpaceError(
                f"hidden pairing: expected {self.n_anchors:,} rows or more that are in both spaces, got"
                f" {len(shared):,}; ask for fewer anchors, or link without the test"
            )
        n_drawn = 0 if self.pairs else self.n_seeds
        if n_drawn > self.n_anchors:
            raise SpaceError(
                f"n_seeds: expected at most n_anchors = {self.n_anchors}, got {n_drawn}; ask for more anchors"
            )
        rng = np.random.default_rng(self.random_state)
        shuffled = target.take(rng.permutation(len(target)))
        known = {source_id for source_id, _ in self.pairs}
        drawn = [identifier for identifier in rng.permutation(shared) if identifier not in known]
        seeds = self.pairs or tuple(zip(drawn[:n_drawn], drawn[:n_drawn], strict=True))
        wanted = drawn[n_drawn : n_drawn + max(self.n_anchors - len(seeds), 0)]
        return shuffled, seeds, wanted, dict(zip(shared, shared, strict=True))


def most_frequent(space: LatentSpace, rows: int | None, also: Sequence[str] = ()) -> LatentSpace:
    """Limit a space to its `rows` most frequent rows (its first rows if it has no counts), and add the rows
    with the ids in `also`. If `rows` is None, the whole space is returned.
    """
    if rows is None or rows >= len(space):
        return space
    if space.counts is None:
        order = np.arange(len(space))
    else:
        order = np.argsort(-space.counts, kind="stable")
    others = np.flatnonzero(space.index.isin(also))
    return space.take(np.union1d(order[:rows], others))


def rows_it_takes(*spaces: LatentSpace) -> str:
    """A text that tells how many rows linking without pairs needs, and how many these spaces have."""
    rows = " and ".join(f"{len(space):,}" for space in spaces)
    text = (
        f"Linking without pairs needs about {ENOUGH:,} rows of each space and models of the same kind; these"
        f" spaces have {rows} rows."
    )
    if min(map(len, spaces)) < ENOUGH:
        text += " Even a few known pairs are a safer start."
    return text
