"""stitch by shard: heads are fitted on a bounded number of training rows, and tested on the test rows of
every shard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isqrt
from typing import Any, ClassVar

import numpy as np

from relcore.base import records
from relcore.base.errors import SpaceError, quote
from relcore.represent.similarity import row_blocks
from relcore.runs.digest import digest_of
from relcore.runs.entries import Entry
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.sharded.passes import Arrays, Runner, Shards, ShardWork, made_once
from relcore.sharded.shard import Shard, ShardBlock, aligned, finite
from relcore.sharded.space import ShardedPair, ShardedSpace, global_rows, need_same_ids, put_rows
from relcore.sharded.survey import Smallest, need_distinct_ids
from relcore.spaces.space import LatentSpace, distinct_names
from relcore.spaces.split import Split, row_keys
from relcore.stitch.stitching import SharedRows, Stitching, StitchSpec, chosen_anchors, class_scores

TRAINED_ROWS = 20_000
_ROWS = 16384
_MOST_COUNTS = 2**27  # of all confusion matrices: 1 GB
_fitted: dict[str, Stitching] = {}


@dataclass(frozen=True, eq=False)
class ShardedStitching:
    """What heads answered, as counts.

    Attributes
    ----------
    spec : StitchSpec
        With one random state.
    encoders, classes : tuple of str
    confusion : {method: array (E, E, C, C) int64}
        Rows of the first encoder read by the head of the second: how often a class (third axis) was answered
        by another; all 0 where the two cannot be put together.
    majority : int
        The most frequent class of all rows: always answering it is the chance level.
    n_trained, n_train : int
        Training rows that heads were fitted on, and how many there are.
    """

    spec: StitchSpec
    encoders: tuple[str, ...]
    classes: tuple[str, ...]
    confusion: dict[str, np.ndarray]
    majority: int
    n_trained: int
    n_train: int

    @property
    def n_test(self) -> int:
        """Test rows with a label."""
        return int(next(iter(self.confusion.values()))[0, 0].sum())

    def matrix(self, method: str, metric: str = "accuracy") -> np.ndarray:
        """Accuracy or weighted "f1", 0 … 1, (E, E); NaN where two encoders cannot be put together."""
        return np.array([[_score(counts, metric) for counts in row] for row in self.confusion[method]])

    def chance(self, metric: str = "accuracy") -> float:
        """The score of always answering the class that is most frequent."""
        truth = next(iter(self.confusion.values()))[0, 0].sum(axis=1)
        answers = np.zeros((len(truth), len(truth)), dtype=np.int64)
        answers[:, self.majority] = truth
        return _score(answers, metric)


@dataclass(frozen=True)
class Labelled(ShardWork):
    """Counts of the classes, and candidates to train on: labelled rows that are not tested, with the smallest
    keys.

    Arrays: keys and rows (n_candidates,). Facts: classes, label → rows; n_train.
    """

    kind: ClassVar[str] = "labels"

    test_fraction: float
    random_state: int
    n_candidates: int

    def of_shard(
        self, shards: Shards, store: Store, report: Report = silent
    ) -> tuple[Arrays, dict[str, Any]]:
        counts: Counter[str] = Counter()
        found, n_train = Smallest(self.n_candidates), 0
        for blocks in aligned(shards, labels=True):
            need_same_ids(shards, blocks)
            for shard, block in zip(shards, blocks, strict=True):
                finite(shard, block)
            labels, ids = _labels(shards, blocks), shards[0].ids_of(blocks[0])
            counts.update(labels[labels != ""].tolist())
            _need_few_classes(len(counts))
            train = (labels != "") & ~_tested(ids, self.test_fraction, self.random_state)
            rows = global_rows(shards[0], blocks[0], np.flatnonzero(train))
            found.add(row_keys(ids[train], "train", self.random_state), rows)
            n_train += len(rows)
            report(blocks[0].first + len(labels), shards[0].n, shards[0].name)
        return {"keys": found.keys, "rows": found.rows}, {"classes": dict(counts), "n_train": n_train}

    def merged(self, first: Entry, second: Entry, store: Store) -> tuple[Arrays, dict[str, Any]]:
        found, facts = Smallest(self.n_candidates), [one.metadata["facts"] for one in (first, second)]
        for one in (first, second):
            found.add(one.arrays["keys"], one.arrays["rows"])
        classes = Counter(facts[0]["classes"]) + Counter(facts[1]["classes"])
        _need_few_classes(len(classes))
        told = {"classes": dict(classes), "n_train": facts[0]["n_train"] + facts[1]["n_train"]}
        return {"keys": found.keys, "rows": found.rows}, told


@dataclass(frozen=True)
class Confusion(ShardWork):
    """How often each class was answered by each, by method: (E, E, C, C) of the test rows of a shard."""

    kind: ClassVar[str] = "stitch"

    heads: str

    def of_shard(
        self, shards: Shards, store: Store, report: Report = silent
    ) -> tuple[Arrays, dict[str, Any]]:
        stitching = _stitching(store, self.heads)
        spec, classes, n = stitching.spec, stitching.shared.classes, len(shards)
        number = {label: place for place, label in enumerate(classes)}
        counts = {method: np.zeros((n, n, len(classes) ** 2), dtype=np.int64) for method in spec.methods}
        for blocks in aligned(shards, labels=True):
            labels, ids = _labels(shards, blocks), shards[0].ids_of(blocks[0])
            tested = np.flatnonzero((labels != "") & _tested(ids, spec.test_fraction, stitching.random_state))
            truth = np.array([number[label] for label in labels[tested]], dtype=np.int64)
            for part in row_blocks(len(tested), _ROWS):
                for method, found in counts.items():
                    given = stitching.probabilities(method, [block.vectors[tested[part]] for block in blocks])
                    _count(found, given, truth[part])
            report(blocks[0].first + len(labels), shards[0].n, shards[0].name)
        shape = (n, n, len(classes), len(classes))
        return {method: found.reshape(shape) for method, found in counts.items()}, {}

    def merged(self, first: Entry, second: Entry, store: Store) -> tuple[Arrays, dict[str, Any]]:
        return {name: one + second.arrays[name] for name, one in first.arrays.items()}, {}


def stitch_shards(
    spaces: Sequence[ShardedSpace], spec: StitchSpec, runner: Runner, most_trained: int = TRAINED_ROWS
) -> ShardedStitching:
    """Every encoder with every head, of sharded spaces with labels, for the first random state of the spec.

    Test rows are those that `stitch_matrix` draws. Up to `most_trained` training rows the numbers are the
    same; of more rows the heads see a sample, drawn by a hash of the ids.

    Raises
    ------
    SpaceError
        Shards that do not pair, an id of several rows, no labels, fewer than two classes, more classes than
        confusion matrices of 1 GB count, settings that need all rows at once.
    """
    if len(spaces) < 2:
        raise SpaceError(f"expected two encoders or more to stitch, got {len(spaces)}")
    if spec.head != "logistic" or spec.anchors or spec.test_ids or spec.order or spec.strategy != "random":
        raise SpaceError(
            "stitch: expected logistic heads, random anchors and test rows by shard, got other settings;"
            " leave them out"
        )
    for one, other in pairwise(spaces):
        ShardedPair(one, other)
    state, parts = spec.random_states[0], list(zip(*(space.shards for space in spaces), strict=True))
    found = runner.run(Labelled(spec.test_fraction, state, most_trained), parts, "labels")
    classes = tuple(sorted(found.facts["classes"]))
    if len(classes) < 2:
        raise SpaceError(f"expected labels of two classes or more, got {len(classes)} in these shards")
    _need_few_classes(len(classes), len(spaces), len(spec.methods))
    need_distinct_ids(spaces[0], found.arrays["keys"], found.arrays["rows"])
    if (n_labelled := sum(found.facts["classes"].values())) == found.facts["n_train"]:
        raise SpaceError(
            f"expected rows to test on, got none of {n_labelled:,} labelled rows; test on a larger share of"
            " them"
        )
    rows = np.sort(found.arrays["rows"])
    trained = runner.run(put_rows(runner.store, rows, texts=True), parts, "gather rows")
    labels = trained.facts["labels"]
    if missing := sorted(set(classes) - set(labels)):
        raise SpaceError(
            f"expected training rows of every class, got none of {quote(missing[:3])}; train on more rows"
        )
    names = tuple(distinct_names(spaces))
    key = _put_heads(
        runner.store, replace(spec, random_states=(state,)), classes, names, trained.arrays, trained.facts
    )
    _stitching(runner.store, key)  # which refuses what cannot be fitted
    confusion = runner.run(Confusion(key), parts, "stitch").arrays
    majority = max(range(len(classes)), key=lambda place: (found.facts["classes"][classes[place]], -place))
    counts = {method: confusion[method] for method in spec.methods}
    return ShardedStitching(spec, names, classes, counts, majority, len(rows), found.facts["n_train"])


def _put_heads(
    store: Store,
    spec: StitchSpec,
    classes: tuple[str, ...],
    names: tuple[str, ...],
    arrays: Arrays,
    facts: dict[str, Any],
) -> str:
    """The key of the rows that heads are fitted on: every process fits them once, and alike."""
    told = {"spec": records.to_json(spec), "classes": list(classes), "names": list(names), **facts}
    key = digest_of("heads by shard", arrays, told)
    if not store.has(key):
        store.put(key, arrays, told)
    return key


def _stitching(store: Store, key: str) -> Stitching:
    return made_once(_fitted, store, key, _fit, "the training rows")


def _fit(entry: Entry) -> Stitching:
    told, arrays = entry.metadata, entry.arrays
    spec = records.from_json(StitchSpec, told["spec"], "the settings of a stitching")
    spaces = tuple(
        LatentSpace(arrays[f"vectors_{side}"], told["ids"], name=name)
        for side, name in enumerate(told["names"])
    )
    number = {label: place for place, label in enumerate(told["classes"])}
    targets = np.array([number[label] for label in told["labels"]], dtype=np.int64)
    shared, every = SharedRows(spaces, tuple(told["classes"]), targets), np.arange(len(targets))
    anchors = chosen_anchors(shared, spec, every, spec.random_states[0])
    split = Split(shared.ids, anchors, np.setdiff1d(every, anchors), every[:0], spec.random_states[0])
    return Stitching(shared, spec, spec.random_states[0], split=split)


def _labels(shards: Sequence[Shard], blocks: Sequence[ShardBlock]) -> np.ndarray:
    """The labels that all labelled spaces agree on, (m,) of strings; "" for a row without one."""
    found = [np.array(block.labels, dtype=object) for block in blocks if block.labels is not None]
    if not found:
        raise SpaceError(
            f"{shards[0].name}: expected labels to train heads on, got none; write a column label, or"
            " <stem>.labels.txt"
        )
    for other in found[1:]:
        differ = np.flatnonzero(found[0] != other)
        if len(differ):
            ids = shards[0].ids_of(blocks[0])[differ[:1]]
            raise SpaceError(
                f"{shards[0].name}: expected the same labels in all spaces, got others for {len(differ):,}"
                f" rows, first {quote(ids)}; write the same label column for all"
            )
    return found[0]


def _need_few_classes(n: int, n_spaces: int = 2, n_methods: int = 1) -> None:
    most = isqrt(_MOST_COUNTS // (n_methods * n_spaces**2))
    if n > most:
        raise SpaceError(
            f"labels: expected at most {most:,} classes to count answers by shard, got {n:,} or more; choose"
            " other labels, or fewer methods"
        )


def _tested(ids: np.ndarray, test_fraction: float, random_state: int) -> np.ndarray:
    """The rows that `Split.draw` tests on, (m,) bool."""
    return row_keys(ids, "test", random_state) < test_fraction


def _count(counts: np.ndarray, given: np.ndarray, truth: np.ndarray) -> None:
    """Add the answers of probabilities (E, E, m, C) to counts (E, E, C²)."""
    n_classes = given.shape[-1]
    for i, j in np.ndindex(counts.shape[:2]):
        if not np.isnan(given[i, j, :, 0]).any():
            counts[i, j] += np.bincount(
                truth * n_classes + given[i, j].argmax(axis=-1), minlength=n_classes**2
            )


def _score(counts: np.ndarray, metric: str) -> float:
    if not counts.sum():
        return float("nan")
    if metric == "accuracy":
        return float(np.trace(counts) / counts.sum())
    *_, f1, support = class_scores(counts)
    return float(np.average(f1, weights=support))
