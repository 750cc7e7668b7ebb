"""Cross-domain matrix: rows of one domain and encoder, classified by heads of another domain and encoder.

Fig. 7 of Maiorca et al. 2024: there the domains are the texts and the pictures of the same articles, and the
anchors articles. The domains share only the labels, and a few anchors that every encoder has encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_one_of, need_strings, quote
from relcore.base.names import HEADS, METHODS
from relcore.catalog.catalog import key_of
from relcore.catalog.encoding import encode
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import Encoder, Trained, TrainedEncoder
from relcore.encoders.small_vision import held_out_rows
from relcore.represent.anchors import shared_anchors
from relcore.represent.similarity import mean_row
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace, shared_ids
from relcore.spaces.split import Split
from relcore.stitch.heads import fit_head
from relcore.stitch.methods import MethodSettings, Rows, Side, carrier, representation
from relcore.tasks.task import Task


@dataclass(frozen=True, eq=False)
class Part:
    """One domain through one encoder.

    Attributes
    ----------
    domain, encoder : str
        Distinct together.
    space : LatentSpace
        With a label for every row.
    test : row numbers
        Test rows of the heads, which are trained on all others.
    anchors : array (m, d)
        Rows to draw anchors from; row i is the same thing in every part.
    """

    domain: str
    encoder: str
    space: LatentSpace
    test: np.ndarray
    anchors: np.ndarray

    @property
    def name(self) -> str:
        return f"{self.encoder} · {self.domain}"


@dataclass(frozen=True)
class CrossDomainSpec:
    """The methods, the heads, and how often the anchors are drawn.

    Attributes
    ----------
    methods : tuple of str
        Some of `methods.METHODS`.
    n_anchors : int
        Number of anchors to draw from those that the parts share, at most.
    head : str
        Of `heads.HEADS`.
    random_states : tuple of int
        Each draws anchors, prunings, and a network's first weights.
    settings : MethodSettings
    """

    methods: tuple[str, ...] = ("irp-pruned", "procrustes", "absolute")
    n_anchors: int = 256
    head: str = "logistic"
    random_states: tuple[int, ...] = (0,)
    settings: MethodSettings = MethodSettings()

    def __post_init__(self) -> None:
        for name in ("methods", "random_states"):
            values = getattr(self, name)
            if not isinstance(values, tuple) or not values or len(set(values)) < len(values):
                raise SpaceError(f"{name}: expected at least one, none twice, got {values!r}")
        for method in self.methods:
            need_one_of("methods", method, METHODS)
        need_one_of("head", self.head, HEADS)
        if self.n_anchors < 2:
            raise SpaceError(f"n_anchors: expected a whole number from 2, got {self.n_anchors!r}")


@dataclass(frozen=True)
class CrossDomainResult:
    """Accuracy of every head on the rows of every part.

    Attributes
    ----------
    domains, encoders : s strings each
        Part i is encoder i on domain i.
    accuracy : method → random states × s × s
        Rows are parts whose test rows are classified, columns the heads; None where the method needs equal
        widths. The diagonal is not stitched.
    chance : s shares
        Of a part's test rows, those of the class that is most frequent in the part.
    n_test : s counts
    n_anchors : int
    """

    spec: CrossDomainSpec
    domains: tuple[str, ...]
    encoders: tuple[str, ...]
    accuracy: Mapping[str, tuple[tuple[tuple[float | None, ...], ...], ...]]
    chance: tuple[float, ...]
    n_test: tuple[int, ...]
    n_anchors: int

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(
            f"{encoder} · {domain}" for encoder, domain in zip(self.encoders, self.domains, strict=True)
        )

    def matrix(self, method: str) -> np.ndarray:
        """Mean over the random states, (s, s), NaN where there is none."""
        return np.array(self.accuracy[method], dtype=float).mean(axis=0)

    def deviation(self, method: str) -> np.ndarray:
        """Over the random states, (s, s); 0 for a single one."""
        found = np.array(self.accuracy[method], dtype=float)
        return found.std(axis=0, ddof=1) if len(found) > 1 else np.zeros(found.shape[1:])

    def margins(self, method: str) -> tuple[np.ndarray, np.ndarray]:
        """Means without the diagonal, (s,) each: of the rows (encoding from) and of the columns (decoding
        into).
        """
        stitched = np.where(np.eye(len(self.domains), dtype=bool), np.nan, self.matrix(method))
        return _means(stitched, axis=1), _means(stitched, axis=0)

    def summary(self) -> pd.DataFrame:
        """A row per method: mean accuracy not stitched, between encoders of one domain, between domains;
        pairs, chance.
        """
        own = np.eye(len(self.domains), dtype=bool)
        same = np.equal.outer(np.array(self.domains), np.array(self.domains))
        rows = []
        for method in self.spec.methods:
            found = self.matrix(method)
            within, across = found[same & ~own], found[~same]
            able = int((~np.isnan(across)).sum())
            means = [
                float(np.nanmean(part)) if (~np.isnan(part)).any() else np.nan
                for part in (found[own], within, across)
            ]
            rows.append((METHODS[method].title, *means, able, across.size, float(np.mean(self.chance))))
        columns = ["method", "not stitched", "same domain", "other domain", "pairs across", "of", "chance"]
        return pd.DataFrame(rows, columns=columns)

    def table(self) -> pd.DataFrame:
        """A row per method and cell: method, encoder, domain, head's two, accuracy, deviation, chance,
        test rows.
        """
        rows = []
        for method in self.spec.methods:
            means, deviations = self.matrix(method), self.deviation(method)
            for i, j in np.ndindex(means.shape):
                names = (
                    METHODS[method].title,
                    self.encoders[i],
                    self.domains[i],
                    self.encoders[j],
                    self.domains[j],
                )
                rows.append((*names, means[i, j], deviations[i, j], self.chance[i], self.n_test[i]))
        columns = [
            "method",
            "encoder",
            "domain",
            "head of",
            "trained on",
            "accuracy",
            "deviation",
            "chance",
            "test rows",
        ]
        return pd.DataFrame(rows, columns=columns)


def cross_domain_matrix(
    parts: Sequence[Part], spec: CrossDomainSpec | None = None, report: Report = silent
) -> CrossDomainResult:
    """Classify the test rows of every part with every head, by each method.

    Raises
    ------
    SpaceError
        Fewer than two parts, labels that are absent or of other classes, anchors that are not parallel, a
        part without training rows of a class; what a method cannot do with these anchors.
    """
    spec = spec or CrossDomainSpec()
    classes = _classes(parts)
    targets = [np.searchsorted(classes, part.space.labels.astype(str)) for part in parts]
    train = [np.setdiff1d(np.arange(len(part.space)), part.test) for part in parts]
    n_anchors = min(spec.n_anchors, len(parts[0].anchors))
    accuracy: dict[str, list] = {method: [] for method in spec.methods}
    steps = [(state, method) for state in spec.random_states for method in spec.methods]
    absolute_heads: list = []
    for done, (state, method) in enumerate(steps):
        report(done, len(steps), f"{METHODS[method].title}, random state {state}")
        drawn = np.random.default_rng(state).choice(len(parts[0].anchors), n_anchors, replace=False)
        sides = [
            Side(part.space.vectors[rows], part.anchors[drawn], mean_row(part.space.vectors[rows]))
            for part, rows in zip(parts, train, strict=True)
        ]
        kind = METHODS[method].heads
        represent = [representation(kind, side, spec.settings) for side in sides]
        if kind != "absolute" or not absolute_heads or spec.head != "logistic":
            heads = [
                fit_head(function(side.train), target[rows], len(classes), spec.head, state)
                for function, side, target, rows in zip(represent, sides, targets, train, strict=True)
            ]
            absolute_heads = heads if kind == "absolute" else absolute_heads
        else:
            heads = absolute_heads  # logistic regression has no randomness, and the rows are the same
        accuracy[method].append(_ask(parts, sides, targets, represent, heads, method, spec, state))
    report(len(steps), len(steps), "")
    chances = (
        np.mean(target[part.test] == np.bincount(target).argmax())
        for part, target in zip(parts, targets, strict=True)
    )
    return CrossDomainResult(
        spec,
        tuple(part.domain for part in parts),
        tuple(part.encoder for part in parts),
        {method: tuple(found) for method, found in accuracy.items()},
        tuple(map(float, chances)),
        tuple(len(part.test) for part in parts),
        n_anchors,
    )


def _ask(
    parts: Sequence[Part],
    sides: Sequence[Side],
    targets: Sequence[np.ndarray],
    represent: Sequence[Rows],
    heads: Sequence,
    method: str,
    spec: CrossDomainSpec,
    state: int,
) -> tuple[tuple[float | None, ...], ...]:
    """Accuracy of each head (columns) on the test rows of each part (rows)."""
    square = []
    for i, part in enumerate(parts):
        rows, truth, line = part.space.vectors[part.test], targets[i][part.test], []
        for j, head in enumerate(heads):
            found: np.ndarray | None = represent[i](rows)
            if METHODS[method].heads == "absolute" and i != j:
                carry = carrier(method, sides[i], sides[j], spec.settings, state)
                found = carry(rows) if carry else None
            right = (
                None if found is None else float(np.mean(head.probabilities(found).argmax(axis=1) == truth))
            )
            line.append(right)
        square.append(tuple(line))
    return tuple(square)


def _classes(parts: Sequence[Part]) -> np.ndarray:
    """The classes that all parts have, by name, after all other checks."""
    if len(parts) < 2:
        raise SpaceError(f"expected at least two encoders or domains, got {len(parts)}")
    names = [part.name for part in parts]
    if len(set(names)) < len(names):
        raise SpaceError(
            "expected each encoder once per domain, got"
            f" {quote(sorted({n for n in names if names.count(n) > 1}))} twice"
        )
    if len({len(part.anchors) for part in parts}) > 1:
        counts = ", ".join(str(len(part.anchors)) for part in parts)
        raise SpaceError(f"anchors: expected the same things encoded by every encoder, got {counts} of them")
    first: np.ndarray | None = None
    for part in parts:
        if part.space.labels is None or "" in set(part.space.labels):
            raise SpaceError(
                f"{part.name!r}: expected a label for every row, got rows without; choose a labelled dataset"
            )
        known = np.unique(part.space.labels.astype(str))
        first = known if first is None else first
        if not np.array_equal(known, first):
            raise SpaceError(
                f"{parts[0].name!r} and {part.name!r} have different classes ({quote(first[:3])} … and"
                f" {quote(known[:3])} …): a head can only predict labels that it was trained on; choose"
                " domains with the same labels"
            )
    return first


def _means(values: np.ndarray, axis: int) -> np.ndarray:
    """Means that ignore NaN; NaN if there is nothing else."""
    there = ~np.isnan(values)
    counts = there.sum(axis=axis)
    return np.where(counts, np.where(there, values, 0).sum(axis=axis) / np.maximum(counts, 1), np.nan)


# Parts of a cross-domain matrix: spaces of the session over the same ids, or encoders trained on each of
# several datasets.


@dataclass(frozen=True)
class DomainsSpec:
    """Several datasets with the same labels, each through each of several encoders, which are trained on it.

    Attributes
    ----------
    datasets : tuple of DatasetSpec
    encoders : tuple of Encoder
        On the second dataset with the next random state, and so on: no two begin with the same weights.
    anchor_dataset : int or None
        All encoders see the same anchors: items of this one of the datasets, whatever each was trained on.
        None: each sees the same ids in its own dataset, which must then be parallel, row for row the same
        thing.
    """

    datasets: tuple[DatasetSpec, ...]
    encoders: tuple[Encoder, ...]
    anchor_dataset: int | None = None

    def __post_init__(self) -> None:
        if len(self.datasets) * len(self.encoders) < 2:
            raise SpaceError(
                "domains: expected two encoders or datasets or more, got "
                f"{len(self.encoders)} encoders of {len(self.datasets)} datasets"
            )
        if self.anchor_dataset is not None and not 0 <= self.anchor_dataset < len(self.datasets):
            raise SpaceError(
                f"anchor_dataset: expected 0 to {len(self.datasets) - 1}, or none, got"
                f" {self.anchor_dataset!r}"
            )


def session_parts(
    spaces: Sequence[LatentSpace],
    domains: Sequence[str],
    encoders: Sequence[str],
    anchors: Sequence[str],
    random_state: int = 0,
    test_ids: Sequence[str] = (),
) -> list[Part]:
    """Parts of spaces over the same ids: labelled rows that all have; about a fifth of them, never anchors,
    are test rows.

    `test_ids`, if given, are the test rows instead, without anchors: rows whose labels no encoder has seen.

    Raises
    ------
    SpaceError
        No shared rows, no labels, anchors that a space lacks, no rows beside the anchors.
    """
    need_strings("domains", tuple(domains))
    ids = shared_ids(spaces)
    labels = next((space.labels[space.rows(ids)] for space in spaces if space.labels is not None), None)
    if labels is None or not len(ids):
        what = "labels" if len(ids) else "rows that all of them share"
        raise SpaceError(
            f"expected {what} in {quote([space.name for space in spaces])}, got none; choose other spaces"
        )
    ids = ids[labels != ""]
    taken = [space.take(space.rows(ids)) for space in spaces]
    labels = labels[labels != ""]
    chosen = shared_anchors(anchors, *taken)
    if len(ids) - len(chosen) < 5:
        raise SpaceError(
            f"expected five rows or more that are not anchors, got {len(ids) - len(chosen)}; choose fewer"
            " anchors"
        )
    told = sorted(set(test_ids) & set(ids) - set(chosen))
    test = Split.draw(
        ids, anchors=taken[0].rows(chosen), test_ids=told, labels=labels, random_state=random_state
    ).test
    parts = []
    for space, domain, encoder in zip(taken, domains, encoders, strict=True):
        labelled = (
            space
            if space.labels is not None
            else LatentSpace(space.vectors, space.ids, name=space.name, labels=labels)
        )
        parts.append(Part(domain, encoder, labelled, test, space.vectors[space.rows(chosen)]))
    return parts


def trained_parts(domains: DomainsSpec, store: Store, report: Report = silent) -> list[Part]:
    """Encode every dataset with every encoder, from the store where that is done, and the anchors with each.

    Anchors of one domain for all are centred apart: shifted so that their mean is that of the encoder's own
    training rows. Test rows are the fifth of each dataset that no small network is trained on, without those
    that another dataset has and trains on; anchors are drawn from the other rows.
    """
    datasets = [load_dataset(spec, store) for spec in domains.datasets]
    _need_parallel(datasets, domains)
    parts, total = [], len(datasets) * len(domains.encoders)
    trained_on = np.concatenate([np.delete(one.ids.astype(str), held_out_rows(len(one))) for one in datasets])
    for number, (spec, dataset) in enumerate(zip(domains.datasets, datasets, strict=True)):
        held_out = held_out_rows(len(dataset))
        rows = np.setdiff1d(np.arange(len(dataset)), held_out)
        test = held_out[~np.isin(dataset.ids[held_out].astype(str), trained_on)]
        for encoder in (_another(encoder, number) for encoder in domains.encoders):
            report(len(parts), total, f"{encoder.title} on {dataset.name}")
            (space,) = encode(spec, encoder, store)
            if domains.anchor_dataset is None:
                anchors = space.vectors[rows]
            else:
                anchors = _anchor_rows(encoder, dataset, datasets[domains.anchor_dataset], store)
                # The common part of a domain's pictures is uninformative.
                anchors += mean_row(space.vectors[rows]) - mean_row(anchors)
            parts.append(Part(dataset.name, encoder.title.partition(", state")[0], space, test, anchors))
    return parts


def _another(encoder: Encoder, number: int) -> Encoder:
    state = getattr(encoder, "random_state", None)
    return encoder if state is None else replace(encoder, random_state=state + number)


def _need_parallel(datasets: Sequence[Dataset], domains: DomainsSpec) -> None:
    if domains.anchor_dataset is None:
        for other in datasets[1:]:
            if not np.array_equal(other.ids, datasets[0].ids):
                raise SpaceError(
                    f"{datasets[0].name!r} and {other.name!r} are not parallel: expected the same ids, row"
                    " for row, for anchors in each domain's own look; take the anchors from one domain"
                    " for all"
                )


def _anchor_rows(encoder: Encoder, own: Dataset, other: Dataset, store: Store) -> np.ndarray:
    """What the encoder of its own dataset makes of another one's training rows."""
    rows = np.setdiff1d(np.arange(len(other)), held_out_rows(len(other)))
    items = other.items(0, len(other))
    function = restored(encoder, own, store)
    (found,) = function([items[row] for row in rows]).values()
    return found


def restored(encoder: Encoder, dataset: Dataset, store: Store, report: Report = silent) -> Callable:
    """The function that encodes items by an encoder trained on the dataset; its weights from the store, or
    trained again.
    """
    if not isinstance(encoder, TrainedEncoder):
        return encoder.prepare(dataset, report)
    return encoder.restore(trained_weights(encoder, dataset, store, report), dataset)


def trained_weights(
    encoder: TrainedEncoder, dataset: Dataset, store: Store, report: Report = silent
) -> Trained:
    """The weights under the key by which `encode` keeps them; trained, and kept, where they are gone."""
    key = key_of("trained", dataset.digest, encoder)
    entry = store.get(key)
    if entry is not None:
        return Trained(entry.arrays, entry.metadata)
    trained = encoder.train(dataset, report)
    store.put(key, trained.arrays, trained.metadata)
    return trained


@dataclass(frozen=True)
class TrainedDomains(Task[CrossDomainResult]):
    """`cross_domain_matrix` of `trained_parts`; the digests are of the datasets, for the key."""

    kind: ClassVar[str] = "cross-domain"
    result: ClassVar[str] = "relcore.invert.cross_domain:CrossDomainResult"

    domains: DomainsSpec
    spec: CrossDomainSpec = CrossDomainSpec()
    digests: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return f"Across {len(self.domains.datasets)} domains"

    def content(self, spaces: Sequence[LatentSpace] = ()) -> list[str]:
        return [encoder.content() for encoder in self.domains.encoders]

    def seconds(self, spaces: Sequence[LatentSpace] = ()) -> float:
        total = 0.0
        for data in map(load_dataset, self.domains.datasets):
            pixels = int(np.prod(data.item(0).size))
            total += sum(encoder.seconds(len(data), pixels) or 5.0 for encoder in self.domains.encoders)
        return total

    def run(
        self, spaces: Sequence[LatentSpace] = (), store: Store | None = None, report: Report = silent
    ) -> CrossDomainResult:
        return cross_domain_matrix(trained_parts(self.domains, store or Store(), report), self.spec, report)


@dataclass(frozen=True)
class SessionDomains(Task[CrossDomainResult]):
    """`cross_domain_matrix` of `session_parts`; a domain and an encoder is named for each space."""

    kind: ClassVar[str] = "cross-domain"
    result: ClassVar[str] = TrainedDomains.result

    domain_names: tuple[str, ...]
    encoder_names: tuple[str, ...]
    anchors: tuple[str, ...]
    spec: CrossDomainSpec = CrossDomainSpec()
    test_ids: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return f"Across {len(set(self.domain_names))} domains"

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        return 1.0 + 0.03 * len(spaces) ** 2 * len(self.spec.methods) * len(self.spec.random_states)

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Report = silent
    ) -> CrossDomainResult:
        parts = session_parts(
            spaces, self.domain_names, self.encoder_names, self.anchors, test_ids=self.test_ids
        )
        return cross_domain_matrix(parts, self.spec, report)
