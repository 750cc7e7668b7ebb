"""Bootstrapping as an experiment: hide the pairing of two spaces, find it again, and hold it against the truth; as a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np

from relcore.anchors.bootstrap import METHODS, BootstrapResult, Pairs, Round, State, bootstrap_anchors, share_found
from relcore.anchors.literal import LEARNING_RATE, STEPS
from relcore.bootstrapping.anchor_scores import relative_scores
from relcore.metrics.calibration import Score
from relcore.progress import Context
from relcore.sources.encodings import load_encoding
from relcore.sources.renamed import load_pairing, put_pairing
from relcore.spaces import LatentSpace, SpaceError, need_one_of
from relcore.store import Entry, Store, digest_of

_EVERY = 10  # steps of the published method between two states in the store


@dataclass(frozen=True)
class BootstrapSpec:
    """What is asked for.

    Attributes
    ----------
    method : "self-learning" or "paper"
    n_anchors, n_seeds : int
        Anchors wanted, seeds among them; `n_seeds` are drawn at random from the shared ids, where no `pairs` are given.
    pairs : tuple of (source id, target id)
        Seeds given by hand.
    rows : int, optional
        The most frequent rows of each space, or the first where there are no counts; default all.
    hide : bool
        Two spaces of the same ids: shuffle the target, ask for the partners of random rows, score against the truth.
    steps : int
        Of the published method.
    learning_rate : float
        Of the published method, above 0 … 1; the paper takes .02 for retrieval and .05 for stitching.
    """

    method: str = "self-learning"
    n_anchors: int = 300
    n_seeds: int = 15
    pairs: Pairs = ()
    rows: int | None = None
    hide: bool = True
    k: int = 10
    random_state: int = 0
    steps: int = STEPS
    learning_rate: float = LEARNING_RATE

    def __post_init__(self) -> None:
        need_one_of("method", self.method, METHODS)
        object.__setattr__(self, "pairs", tuple(tuple(map(str, pair)) for pair in self.pairs))
        for name, least in (("n_anchors", 1), ("n_seeds", 0), ("k", 1), ("steps", 1)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise SpaceError(f"{name}: expected a whole number, at least {least}, got {value!r}")
        if not isinstance(self.learning_rate, int | float) or not 0 < self.learning_rate <= 1:
            raise SpaceError(f"learning_rate: expected a number above 0, at most 1, got {self.learning_rate!r}")
        if self.rows is not None and (type(self.rows) is not int or self.rows < 10):
            raise SpaceError(f"rows: expected none, or a whole number, at least 10, got {self.rows!r}")


@dataclass(frozen=True, eq=False)
class Outcome:
    """What was found, and where the truth is known how right it is.

    Attributes
    ----------
    share : float
        Share of the anchors beyond the seeds with their true partner, 0 … 1; NaN without a truth.
    scores : form → metric → Score
        Of the spaces relative to all true anchors, to the seeds alone, to the found ones, on held-out rows
        (`relative_scores`); empty without a truth.
    n_shared : int
        Rows whose partner is known.
    """

    result: BootstrapResult
    share: float
    scores: Mapping[str, Mapping[str, Score]]
    n_shared: int

    @property
    def known(self) -> bool:
        return self.n_shared > 0

    def wrong(self) -> Pairs:
        """Anchors beyond the seeds, source id and what it was matched to, where that is not its own."""
        return tuple(pair for pair in self.result.anchors[self.result.n_seeds :] if pair[0] != pair[1]) if self.known else ()


def most_frequent(space: LatentSpace, rows: int | None) -> LatentSpace:
    """The space of its `rows` most frequent rows, or of the first ones where it has no counts; all for None."""
    if rows is None or rows >= len(space):
        return space
    order = np.arange(len(space)) if space.counts is None else np.argsort(-space.counts, kind="stable")
    return space.take(np.sort(order[:rows]))


def run_bootstrap(source: LatentSpace, target: LatentSpace, spec: BootstrapSpec, **going) -> Outcome:
    """Bootstrap as the spec says; `going` are `state` and `after` of `bootstrap_anchors`.

    Raises
    ------
    SpaceError
        Hiding a pairing that is not there, more seeds or anchors than rows, and the reasons of `bootstrap_anchors`.
    """
    source, target = most_frequent(source, spec.rows), most_frequent(target, spec.rows)
    settings = {"n_anchors": spec.n_anchors, "method": spec.method, "k": spec.k, "random_state": spec.random_state, **going}
    literal = spec.method == "paper"
    settings |= {"steps": spec.steps, "learning_rate": spec.learning_rate} if literal else {}
    if not spec.hide:
        result = bootstrap_anchors(source, target, seeds=spec.pairs, **settings)
        return Outcome(result, float("nan"), {}, 0)
    shared = np.array([i for i in source.ids if i in target.index], dtype=object)
    rng = np.random.default_rng(spec.random_state)
    shuffled = target.take(rng.permutation(len(target)))
    if len(shared) < max(spec.n_anchors, 3):
        raise SpaceError(
            f"hidden pairing: expected {spec.n_anchors:,} rows or more that both spaces have, got {len(shared):,}; ask for "
            "fewer anchors, or bootstrap for real, without a truth"
        )
    given = {pair[0] for pair in spec.pairs}
    drawn = [i for i in rng.permutation(shared) if i not in given]
    n_drawn = 0 if spec.pairs else spec.n_seeds
    if n_drawn > spec.n_anchors:
        raise SpaceError(f"n_seeds: expected at most {spec.n_anchors}, the anchors, got {n_drawn}; ask for more anchors")
    seeds = spec.pairs or tuple((i, i) for i in drawn[:n_drawn])
    asked = drawn[n_drawn : n_drawn + max(spec.n_anchors - len(seeds), 0)]
    truth = {i: i for i in shared}
    result = bootstrap_anchors(source, shuffled, seeds=seeds, anchors=asked, truth=truth, **settings)
    scores = relative_scores(source, target, result, k=spec.k, center=not literal)
    return Outcome(result, share_found(result, truth), scores, len(shared))


def bootstrap_job(context: Context, *, inputs: tuple[str, str], spec: BootstrapSpec) -> None:
    """`run_bootstrap` as a job of the Engine, on two spaces of `all_pairs.put_space`; goes on after the last finished round."""
    source, target = (load_encoding(context.store, key) for key in inputs)
    checkpoint = digest_of("bootstrap-state", context.key)
    going = {"state": _state(context, checkpoint), "after": partial(_after_round, context, checkpoint, spec)}
    context.report(0, 1, "reading")
    outcome = run_bootstrap(source, target, spec, **going)
    put_outcome(context, outcome)
    context.store.remove(checkpoint)


def _state(context: Context, key: str) -> State | None:
    entry = context.store.get(key)
    if entry is None:
        return None
    history = tuple(Round(**one) for one in entry.metadata["history"])
    for one in history:
        context.report(len(history), len(history) + 1, "going on", _measured(one))
    return State(entry.arrays, entry.metadata["numbers"], history)


def _after_round(context: Context, key: str, spec: BootstrapSpec, state: State) -> None:
    done, last = len(state.history), state.history[-1]
    literal = spec.method == "paper"
    expected = spec.steps if literal else max(done + 1, 8 if spec.n_seeds or spec.pairs else 20)
    found = f", {last.found:.1%} of the hidden found" if last.found == last.found else ""
    what = f"mean squared error {last.objective:.4f}" if literal else f"{last.pairs:,} of {last.rows:,} rows paired"
    context.report(done, expected, what + found, _measured(last))
    if not literal or done % _EVERY == 0:
        context.store.put(key, state.arrays, {"numbers": state.numbers, "history": [asdict(one) for one in state.history]})


def _measured(one: Round) -> dict[str, float]:
    return {"objective": one.objective, "share paired": one.pairs / one.rows, "share found": one.found}


def put_outcome(context: Context, outcome: Outcome) -> None:
    """Keep an outcome as the result of a job; `read_outcome` reads it."""
    result = outcome.result
    scores = {form: {name: score.to_record() for name, score in found.items()} for form, found in outcome.scores.items()}
    facts = {name: getattr(result, name) for name in ("anchors", "n_seeds", "held_out", "null", "verdict", "reason")}
    context.put(
        {} if result.vectors is None else {"vectors": result.vectors},
        facts
        | {
            "pairing": put_pairing(context.store, result.pairs),
            "history": [asdict(one) for one in result.history],
            "share": outcome.share,
            "scores": scores,
            "n_shared": outcome.n_shared,
        },
    )


def read_outcome(entry: Entry, store: Store) -> Outcome:
    """The outcome that `put_outcome` kept.

    Raises
    ------
    SpaceError
        Its pairing is gone.
    """
    kept = dict(entry.metadata)
    scores = {form: {name: Score.from_record(one) for name, one in by.items()} for form, by in kept.pop("scores").items()}
    share, n_shared, pairing = kept.pop("share"), kept.pop("n_shared"), kept.pop("pairing")
    kept["anchors"] = tuple(tuple(pair) for pair in kept["anchors"])
    kept["history"] = tuple(Round(**one) for one in kept["history"])
    kept["null"] = tuple(kept["null"])
    result = BootstrapResult(**kept, pairs=tuple(load_pairing(store, pairing)), vectors=entry.arrays.get("vectors"))
    return Outcome(result, share, scores, n_shared)


def estimated_seconds(n_source: int, n_target: int, spec: BootstrapSpec) -> float:
    """Roughly how long it takes on two idle cores, within a factor of three; from runs on 3,000 to 20,000 rows."""
    n, m = (min(count, spec.rows or count) for count in (n_source, n_target))
    begin = min(n, m, 4000)
    if spec.method == "paper":
        return spec.steps * n * m * (1.2e-9 + 1.2e-11 * spec.n_anchors) + 3
    rounds_first = 5 if spec.n_seeds or spec.pairs else 20
    return 2 + begin**2 * 1.2e-8 * (rounds_first + 16) + n * m * 1.2e-8 * (4 if max(n, m) > begin else 1)
