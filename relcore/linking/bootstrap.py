"""Find parallel anchors, that is, rows of two spaces that describe the same items, from a few known pairs or
without any.

Arrays of pairs have the shape (2, m): row numbers of the source, then row numbers of the target. Seeds are
known pairs; links are pairs that an algorithm found. CSLS is the similarity that
`relcore.linking.clusters.Matching` defines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from relcore.base.arguments import need_ids, need_kind, need_number, need_sequence, need_whole
from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.base.names import BOOTSTRAPS
from relcore.base.numbers import beside, percent_beside, short
from relcore.base.rows import mean_row, unit_rows
from relcore.files.links import Pairs
from relcore.linking.clusters import (
    ENOUGH,
    FEWEST_CLUSTERED_ROWS,
    PAIRED,
    SAME,
    ClusterFit,
    Stage,
    link_clusters,
    map_from_pairs,
    match_csls,
    rotation_between,
)
from relcore.linking.held_out import (
    CERTAIN,
    HeldOut,
    chance_of_agreement,
    fit_held_out,
    rank_links,
    without_partners,
)
from relcore.linking.links_found import PROMISED, BootstrapResult, Round
from relcore.linking.optimisation import LEARNING_RATE, MOST_STEPS, STEPS, optimise_anchors
from relcore.linking.self_learning import MOST_ROWS, first_rotation, self_learn, whole
from relcore.runs.progress_line import long_call, show_step
from relcore.spaces.matching import as_space
from relcore.spaces.space import LatentSpace, MatrixLike
from relcore.spaces.split import row_keys

_FEWEST_UNPAIRED_ROWS = 8  # besides seeds: two for each of four held-out parts
_FEWEST_UNSEEDED = 0.05  # minimum share of linked rows; for spaces without partners it was at most .04


@long_call
def bootstrap_anchors(
    source: MatrixLike,
    target: MatrixLike,
    *,
    seeds: Sequence[tuple[str, str]] = (),
    n_anchors: int = 300,
    anchors: Sequence[str] | None = None,
    method: Literal["self-learning", "paper"] = "self-learning",
    k: int = 10,
    precision: float = PROMISED,
    random_state: int = 0,
    truth: Mapping[str, str] | None = None,
    after: Callable[[Sequence[Round]], object] = len,
    steps: int = STEPS,
    learning_rate: float = LEARNING_RATE,
) -> BootstrapResult:
    """Find the partners of source anchors in the target. Only the seeds are paired by their ids. Rows without
    ids have the ids "0", "1", ….

    Parameters
    ----------
    seeds : pairs of (source id, target id)
        Known pairs. Without seeds, self-learning begins with clusters (`link_clusters`), which also works if
        some rows have no partner. If that fails, it begins with the similarities within each space
        (`first_rotation`), which works only if both spaces have the same rows.
    n_anchors : int
        Number of anchors, seeds included. The others are drawn at random among the kept links.
    anchors : source ids, optional
        Find the partners of these rows, even if a match is not mutual. The seeds are added as the first
        anchors.
    method : "self-learning" or "paper"
        "paper" is Algorithm 1 of Cannistraci et al. 2023 without centring, see `optimise_anchors`.
    steps, learning_rate : int, float
        Settings of "paper".
    k : int
        Number of neighbours in CSLS.
    precision : float
        Keep as many of the best links as have at least this estimated share of right links, 0 … 1.
    truth : source id → target id, optional
        The true pairs, used only for `Round.found`.
    after
        A function that is called after each round, with the list of all rounds so far.

    If both spaces have counts, self-learning first uses the 4,000 most frequent rows, then all rows.

    Raises
    ------
    SpaceError
        Seeds that are unknown, contradictory or too few; more anchors than rows; an unknown method; a space
        whose rows are all equal.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import LatentSpace, bootstrap_anchors
    >>> X = np.random.default_rng(0).normal(size=(400, 10))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(10, 10)))
    >>> first = LatentSpace(X, [f"en{row}" for row in range(400)])
    >>> second = LatentSpace(X @ rotation, [f"fr{row}" for row in range(400)])
    >>> seeds = [(f"en{row}", f"fr{row}") for row in range(15)]
    >>> result = bootstrap_anchors(first, second, seeds=seeds, n_anchors=100)
    >>> result.verdict, np.mean([one[2:] == other[2:] for one, other in result.anchors]).item()
    ('linked', 1.0)
    """
    need_one_of("method", method, BOOTSTRAPS)
    _need_numbers(n_anchors, k, precision, random_state, steps, learning_rate)
    if anchors is not None:
        anchors = need_ids("anchors", anchors)
    if truth is not None:
        need_kind("truth", truth, Mapping)
    source = _as_space_of_different_rows(source, "source")
    target = _as_space_of_different_rows(target, "target")
    task = _Bootstrap(source, target, _checked_seeds(seeds, source, target), truth, k, random_state)
    wanted = task.wanted(anchors, n_anchors, method)
    if method == "paper":
        return task.result(*task.paper(wanted, _with_step(after), steps, learning_rate), precision)
    fit = task.self_learning(wanted, _with_step(after))
    if anchors is None:
        return task.result(*fit, precision, n_anchors=n_anchors)
    return task.result(*fit, precision, partners_of=wanted)


def _with_step(after: Callable[[Sequence[Round]], object]) -> Callable[[Sequence[Round]], object]:
    """The caller's function `after`, which also shows the round in the line of the call."""

    def after_round(rounds: Sequence[Round]) -> None:
        show_step(0, 0, f"round {len(rounds)}")
        after(rounds)

    return after_round


def _need_numbers(
    n_anchors: int, k: int, precision: float, random_state: int, steps: int, learning_rate: float
) -> None:
    need_whole("n_anchors", n_anchors)
    need_whole("k", k)
    need_whole("steps", steps, high=MOST_STEPS)
    need_whole("random_state", random_state, 0)
    need_number("learning_rate", learning_rate, above=0)
    need_number("precision", precision, low=0, high=1)


def _as_space_of_different_rows(vectors: MatrixLike, name: str) -> LatentSpace:
    space = as_space(vectors, name)
    if np.array_equal(space.vectors, np.broadcast_to(space.vectors[:1], space.vectors.shape)):
        raise SpaceError(
            f"{space.name}: expected rows that differ, got {len(space):,} equal ones, which have"
            " no direction from their mean; check that the file holds the right vectors"
        )
    return space


class _Bootstrap:
    """Holds the data of one call of `bootstrap_anchors`, and computes its parts. X and Y are the centred rows
    of both spaces, scaled to length 1."""

    def __init__(
        self,
        source: LatentSpace,
        target: LatentSpace,
        seeds: np.ndarray,
        truth: Mapping[str, str] | None,
        k: int,
        random_state: int,
    ) -> None:
        self.source = source
        self.target = target
        self.seeds = seeds
        self.random_state = random_state
        self.settings = {"k": k, "random_state": random_state}
        self.linked: ClusterFit | None = None
        self.refused: tuple[str, str, HeldOut] | None = None
        self.X = unit_rows(source.vectors, mean_row(source.vectors))
        self.Y = unit_rows(target.vectors, mean_row(target.vectors))
        self.truth = None
        if truth:
            self.truth = target.index.get_indexer([truth.get(identifier) for identifier in source.ids])

    def ids(self, pairs: np.ndarray) -> Pairs:
        return tuple(zip(self.source.ids[pairs[0]].tolist(), self.target.ids[pairs[1]].tolist(), strict=True))

    def share_found(self, wanted: np.ndarray, partner: np.ndarray) -> float:
        hidden = ~np.isin(wanted, self.seeds[0])
        if self.truth is None or not hidden.any():
            return float("nan")
        return float((self.truth[wanted] == partner)[hidden].mean())

    def wanted(self, anchors: Sequence[str] | None, n_anchors: int, method: str) -> np.ndarray:
        """The indices of the source rows whose partners are to be found, seeds first. If no `anchors` are
        given and the method is self-learning, only the seeds, because the other anchors are later chosen
        among the matched rows.
        """
        seeds = self.seeds[0]
        if anchors is not None:
            rows = self.source.rows(anchors)
            return np.r_[seeds, rows[~np.isin(rows, seeds)]]
        least = max(len(seeds), 1)
        most = min(len(self.source), len(self.target))
        if not least <= n_anchors <= most:
            raise SpaceError(
                f"n_anchors: expected {least} (the seeds) … {most:,} (the rows), got {n_anchors:,}"
            )
        if method == "self-learning":
            return seeds
        rest = np.setdiff1d(np.arange(len(self.source)), seeds)
        rng = np.random.default_rng(self.random_state)
        return np.r_[seeds, rng.choice(rest, n_anchors - len(seeds), replace=False)]

    def self_learning(
        self, wanted: np.ndarray, after: Callable[[Sequence[Round]], object]
    ) -> tuple[np.ndarray, tuple[Round, ...], None]:
        """The pairs (2, p) that self-learning finds, and its rounds. There are no pairs if the spaces were
        refused. The third value is None, because only the other method optimises vectors."""
        stages = self.stages(wanted)
        history: list[Round] = []
        no_pairs = np.empty((2, 0), dtype=np.int64)
        rotation = self.clusters(stages[-1], history, after)
        if rotation is None and history and not self.refused:
            # If held-out rows are at the chance level, this verdict needs no fit on all rows.
            verdict = self.judge(no_pairs)
            held_out = verdict[2]
            if not held_out.above:
                self.refused = verdict
        if self.refused:
            return no_pairs, tuple(history), None
        keep = 1.0
        if rotation is None:
            rotation, keep = first_rotation(self.X, self.Y, self.seeds, stages[0], self.settings["k"])
        rounds = self_learn(self.X, self.Y, rotation, self.seeds, stages, **self.settings, keep=keep)
        for _, stage, matching in rounds:
            partner = np.full(len(self.source), -2)
            partner[stage[0]] = stage[1][matching.partner]
            share = self.share_found(wanted, partner[wanted])
            pairs = whole(stage, matching.pairs)
            history.append(Round(min(map(len, stage)), len(pairs[0]), matching.mean, share))
            after(history)
        return pairs, tuple(history), None

    def clusters(
        self, stage: Stage, history: list[Round], after: Callable[[Sequence[Round]], object]
    ) -> np.ndarray | None:
        """The rotation that `link_clusters` finds. None if there are seeds, if there are too few rows, or if
        the fits on two halves do not agree. If they do not agree and the spaces are too large for another
        method, the negative verdict is put into `refused`.
        """
        rows, others = stage
        if len(self.seeds[0]) or min(map(len, stage)) < FEWEST_CLUSTERED_ROWS:
            return None
        for linked in link_clusters(self.X[rows], self.Y[others], self.random_state):
            history.append(Round(min(len(rows), len(others)), 0, linked.agreement, float("nan")))
            after(history)
        known = all(space.counts is not None for space in (self.source, self.target))
        if linked.agrees:
            self.linked = linked
            return linked.mapping
        if max(map(len, stage)) > MOST_ROWS and not known:
            self.refused = self.judge_linked(linked)
        return None

    def paper(
        self,
        wanted: np.ndarray,
        after: Callable[[Sequence[Round]], object],
        steps: int,
        learning_rate: float,
    ) -> tuple[np.ndarray, tuple[Round, ...], np.ndarray]:
        X = unit_rows(self.source.vectors)
        Y = unit_rows(self.target.vectors)
        history: list[Round] = []
        optimisation = optimise_anchors(
            X,
            Y,
            wanted,
            self.seeds[1],
            steps=steps,
            learning_rate=learning_rate,
            random_state=self.random_state,
        )
        for step in optimisation:
            if self.truth is None:
                found = float("nan")
            else:
                found = self.share_found(wanted, step.nearest)
            history.append(Round(len(X), len(wanted), step.error, found))
            after(history)
        return np.stack([wanted, step.nearest]), tuple(history), step.anchors

    def result(
        self,
        chosen: np.ndarray,
        history: tuple[Round, ...],
        vectors: np.ndarray | None,
        precision: float,
        partners_of: np.ndarray | None = None,
        n_anchors: int | None = None,
    ) -> BootstrapResult:
        """The result of a fit that chose these pairs (2, p). If `partners_of` is given, the anchors are these
        source rows with their partners. Otherwise, if `n_anchors` is given, this number of pairs is drawn
        among the kept links. Otherwise, the anchors are the chosen pairs.
        """
        if self.refused:
            verdict, reason, held_out = self.refused
            return BootstrapResult(
                (), 0, (), history, held_out.mean, held_out.null, verdict, reason, promised=precision
            )
        X = self.X
        Y = self.Y
        seeds = self.seeds
        n_seeds = self.seeds.shape[1]
        rows, others = np.hstack([chosen, seeds])
        rotation = rotation_between(X[rows], Y[others])
        matching = match_csls(unit_rows(X @ rotation), Y, self.settings["k"])
        if partners_of is not None:
            others = matching.partner[partners_of]
            others[:n_seeds] = seeds[1]
            chosen = np.stack([partners_of, others])
        links, right = rank_links(X, Y, matching, seeds, **self.settings)
        if self.linked and np.count_nonzero(right >= CERTAIN) < _FEWEST_UNSEEDED * min(len(X), len(Y)):
            right = np.zeros_like(right)
        verdict, reason, held_out = self.judge(links[:, right >= CERTAIN])
        if verdict == "not found" and n_seeds >= PAIRED:
            rotation = map_from_pairs(X, Y, seeds, self.random_state)
        if verdict == "linked":
            certain = np.r_[np.ones(n_seeds), right]
        else:
            certain = np.r_[np.ones(n_seeds), np.zeros_like(right)]
        pairs = np.hstack([seeds, links])
        n_kept = int(np.count_nonzero(certain >= precision))
        verdict, reason = self._limit_verdict(verdict, reason, n_kept, precision)
        if n_anchors is not None:
            drawn = np.random.default_rng(self.random_state).permutation(np.arange(n_seeds, n_kept))
            chosen = np.hstack([seeds, pairs[:, drawn[: max(n_anchors - n_seeds, 0)]]])
        return BootstrapResult(
            self.ids(chosen),
            n_seeds,
            self.ids(pairs),
            history,
            held_out.mean,
            held_out.null,
            verdict,
            reason,
            vectors,
            precision=certain,
            promised=precision,
            rotation=rotation,
        )

    def _limit_verdict(self, verdict: str, reason: str, n_kept: int, precision: float) -> tuple[str, str]:
        """The verdict and its reason, limited if no links but the seeds reach the precision."""
        no_links = f"But no set of links is {100 * precision:g} % right"
        if self.linked and not n_kept:
            return verdict, f"{reason} {no_links}: most rows may have no partner."
        if verdict == "linked" and n_kept == self.seeds.shape[1]:
            return "cannot tell", f"{reason} {no_links}."
        return verdict, reason

    def judge(self, links: np.ndarray) -> tuple[str, str, HeldOut]:
        """The verdict, its reason and its evidence. The spaces are linked if fits without some of the rows
        find the `links` of these rows again (`fit_held_out`).

        "not found" does not prove that the spaces have nothing in common. A proof would need a control: two
        spaces that are as hard to link, but whose true pairs are known.
        """
        if self.linked:
            return self.judge_linked(self.linked)
        rows, targets = self.stages(self.seeds[0])[0]
        if len(rows) > MOST_ROWS:
            keys = row_keys(self.source.ids[rows], "judged", self.random_state)
            keys[np.isin(rows, self.seeds[0])] = -1  # sort seeds first, so that the cut keeps all seeds
            rows = np.sort(rows[np.argsort(keys)[:MOST_ROWS]])
        seeds = np.stack([np.searchsorted(rows, self.seeds[0]), np.searchsorted(targets, self.seeds[1])])
        X = self.X[rows]
        Y = self.Y[targets]
        n_seeds = len(seeds[0])
        if (n_free := len(X) - n_seeds) < _FEWEST_UNPAIRED_ROWS:
            none = HeldOut(float("nan"), float("nan"), (), 0, float("nan"))
            reason = (
                f"Too few rows to tell: {_FEWEST_UNPAIRED_ROWS} are needed beside the known pairs, but there"
                f" are {n_free}."
            )
            return "cannot tell", reason, none
        links = links[:, np.isin(links[0], rows) & np.isin(links[1], targets)]
        links = np.stack([np.searchsorted(rows, links[0]), np.searchsorted(targets, links[1])])
        held_out = fit_held_out(X, Y, seeds, self.source.ids[rows], links, **self.settings)
        scores = held_out.in_words
        if held_out.linked:
            return "linked", f"{scores[0].upper()}{scores[1:]}.", held_out
        if not n_seeds:
            return "not found", self._not_found(scores), held_out
        p = chance_of_agreement(X[seeds[0]], Y[seeds[1]], self.random_state)
        tested = f"(permutation test, p = {short(p, 3)})"
        advice = f"do not clearly agree either {tested}: check that the pairs are right"
        if p < 0.05:
            advice = f"agree {tested}, so there is common structure, and more known pairs may help"
        reason = f"With {n_seeds} known pairs, {scores}. The similarities among the known pairs {advice}."
        return "not found", reason, held_out

    def judge_linked(self, linked: ClusterFit) -> tuple[str, str, HeldOut]:
        """The verdict, its reason and its evidence. The spaces are linked if fits on disjoint halves of the
        rows agree. The evidence is the mean CSLS of rows that neither half contains.
        """
        k = self.settings["k"]
        rng = np.random.default_rng((self.random_state, 1))
        every = match_csls(unit_rows(linked.held_out @ linked.half), self.Y, k).similarity
        error = float(every.std(ddof=1)) / np.sqrt(len(every))
        drawn = without_partners(self.X, linked.held_out, rng)
        null = tuple(
            float(match_csls(unit_rows(rows @ linked.half), self.Y, k).similarity.mean()) for rows in drawn
        )
        found = HeldOut(float(every.mean()), error, null, len(every), float("nan"))
        agreement, chance = beside(linked.agreement, linked.chance)
        same, needed = percent_beside(linked.same, SAME)
        scores = (
            f"two independent fits of {found.n:,} held-out rows have a mean cosine of"
            f" {agreement} (needed: above {chance}, the chance level) and put"
            f" {same} of them in the same place (needed: {needed})"
        )
        if linked.agrees:
            return "linked", f"T{scores[1:]}.", found
        return "not found", self._not_found(scores), found

    def _not_found(self, scores: str) -> str:
        more = ""
        if min(len(self.X), len(self.Y)) < ENOUGH:
            more = f", or {ENOUGH:,} rows of each space"
        return f"Without known pairs, {scores}. Give 15–30 pairs{more}."

    def stages(self, wanted: np.ndarray) -> list[Stage]:
        """The stages of self-learning. The last stage uses all rows except those that equal the mean. If
        spaces are large and have counts, such as word frequencies, an earlier stage uses only the most
        frequent rows, the seeds and the `wanted` rows.
        """
        alive = (
            np.flatnonzero(np.einsum("ij,ij->i", self.X, self.X) > 0),
            np.flatnonzero(np.einsum("ij,ij->i", self.Y, self.Y) > 0),
        )
        spaces = self.source, self.target
        if any(space.counts is None for space in spaces) or max(map(len, alive)) <= MOST_ROWS:
            return [alive]
        also = np.r_[self.seeds[0], wanted][: MOST_ROWS // 4], self.seeds[1][: MOST_ROWS // 4]
        first = []
        for space, rows, more in zip(spaces, alive, also, strict=True):
            assert space.counts is not None, "both spaces have counts"
            frequent = rows[np.argsort(-space.counts[rows], kind="stable")[: MOST_ROWS - len(more)]]
            first.append(np.union1d(frequent, more))
        return [(first[0], first[1]), alive]


def _checked_seeds(seeds: Sequence[tuple[str, str]], source: LatentSpace, target: LatentSpace) -> np.ndarray:
    need_sequence("seeds", seeds, "pairs of (source id, target id)")
    for one in seeds:
        if not isinstance(one, Sequence | np.ndarray) or isinstance(one, str) or len(one) != 2:
            raise SpaceError(f"seeds: expected pairs of (source id, target id), got {one!r:.40}")
    seeds = list(dict.fromkeys((own, other) for own, other in seeds))
    if 0 < len(seeds) < 3:
        raise SpaceError(
            f"seeds: expected none, or three pairs or more, got {len(seeds)}; give more, or start without"
            " seeds"
        )
    rows = []
    for side, space in enumerate((source, target)):
        ids = [pair[side] for pair in seeds]
        twice = next((identifier for identifier in ids if ids.count(identifier) > 1), None)
        if twice is not None:
            partners = quote([pair[1 - side] for pair in seeds if pair[side] == twice])
            raise SpaceError(
                f"seeds: expected one partner an id, got {quote([twice])} with {partners}; keep one of these"
                " pairs"
            )
        try:
            rows.append(space.rows(ids))
        except SpaceError as error:
            raise SpaceError(
                f"seeds: {error}; the first of a pair is an id of the source, the second of the target"
            ) from error
        if zero := [ids[place] for place in np.flatnonzero(space.norms[rows[-1]] == 0)]:
            raise SpaceError(f"seeds: {quote(zero[:3])} are zero vectors in {space.name!r}: choose others")
    return np.stack(rows).astype(np.int64)


def share_found(result: BootstrapResult, truth: Mapping[str, str]) -> float:
    pairs = result.anchors[result.n_seeds :]
    if pairs:
        return float(np.mean([truth.get(own) == other for own, other in pairs]))
    return float("nan")
