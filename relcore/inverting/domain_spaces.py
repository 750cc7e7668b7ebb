"""Parts of a cross-domain matrix: spaces of the session over the same ids, or encoders trained on each of several datasets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from relcore.anchors.selection import shared_anchors
from relcore.encoding import encode
from relcore.evaluation import Split
from relcore.inverting.cross_domain import CrossDomainResult, CrossDomainSpec, Part, cross_domain_matrix
from relcore.similarity import mean_row
from relcore.sources.dataset import Dataset, DatasetSpec
from relcore.sources.datasets import load_dataset
from relcore.sources.encoder import Encoder, Trained, TrainedEncoder
from relcore.sources.encodings import key_of
from relcore.sources.small_vision import held_out_rows
from relcore.spaces import LatentSpace, SpaceError, need_strings, quote, shared_ids
from relcore.store import Store
from relcore.task import Report, Task, silent


@dataclass(frozen=True)
class DomainsSpec:
    """Several datasets with the same labels, each through each of several encoders, which are trained on it.

    Attributes
    ----------
    datasets : tuple of DatasetSpec
    encoders : tuple of Encoder
        On the second dataset with the next random state, and so on: no two begin with the same weights.
    anchor_dataset : int or None
        All encoders see the same anchors: items of this one of the datasets, whatever each was trained on. None: each sees the
        same ids in its own dataset, which must then be parallel, row for row the same thing.
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
            raise SpaceError(f"anchor_dataset: expected 0 to {len(self.datasets) - 1}, or none, got {self.anchor_dataset!r}")


def session_parts(
    spaces: Sequence[LatentSpace],
    domains: Sequence[str],
    encoders: Sequence[str],
    anchors: Sequence[str],
    random_state: int = 0,
    test_ids: Sequence[str] = (),
) -> list[Part]:
    """Parts of spaces over the same ids: labelled rows that all have; about a fifth of them, never anchors, are test rows.

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
        raise SpaceError(f"expected {what} in {quote([space.name for space in spaces])}, got none; choose other spaces")
    ids = ids[labels != ""]
    taken = [space.take(space.rows(ids)) for space in spaces]
    labels = labels[labels != ""]
    chosen = shared_anchors(anchors, *taken)
    if len(ids) - len(chosen) < 5:
        raise SpaceError(f"expected five rows or more that are not anchors, got {len(ids) - len(chosen)}; choose fewer anchors")
    told = sorted(set(test_ids) & set(ids) - set(chosen))
    test = Split.draw(ids, anchors=taken[0].rows(chosen), test_ids=told, labels=labels, random_state=random_state).test
    parts = []
    for space, domain, encoder in zip(taken, domains, encoders, strict=True):
        labelled = space if space.labels is not None else LatentSpace(space.vectors, space.ids, name=space.name, labels=labels)
        parts.append(Part(domain, encoder, labelled, test, space.vectors[space.rows(chosen)]))
    return parts


def trained_parts(domains: DomainsSpec, store: Store, report: Report = silent) -> list[Part]:
    """Encode every dataset with every encoder, from the store where that is done, and the anchors with each.

    Anchors of one domain for all are centred apart: shifted so that their mean is that of the encoder's own training rows.
    Test rows are the fifth of each dataset that no small network is trained on, without those that another dataset has and
    trains on; anchors are drawn from the other rows.
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
                    f"{datasets[0].name!r} and {other.name!r} are not parallel: expected the same ids, row for row, for "
                    "anchors in each domain's own look; take the anchors from one domain for all"
                )


def _anchor_rows(encoder: Encoder, own: Dataset, other: Dataset, store: Store) -> np.ndarray:
    """What the encoder of its own dataset makes of another one's training rows."""
    rows = np.setdiff1d(np.arange(len(other)), held_out_rows(len(other)))
    items = other.items(0, len(other))
    function = restored(encoder, own, store)
    (found,) = function([items[row] for row in rows]).values()
    return found


def restored(encoder: Encoder, dataset: Dataset, store: Store, report: Report = silent) -> Callable:
    """The function that encodes items by an encoder trained on the dataset; its weights from the store, or trained again."""
    if not isinstance(encoder, TrainedEncoder):
        return encoder.prepare(dataset, report)
    return encoder.restore(trained_weights(encoder, dataset, store, report), dataset)


def trained_weights(encoder: TrainedEncoder, dataset: Dataset, store: Store, report: Report = silent) -> Trained:
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
    result: ClassVar[str] = "relcore.inverting.cross_domain:CrossDomainResult"

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

    def run(self, spaces: Sequence[LatentSpace] = (), store: Store | None = None, report: Report = silent) -> CrossDomainResult:
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

    def run(self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Report = silent) -> CrossDomainResult:
        parts = session_parts(spaces, self.domain_names, self.encoder_names, self.anchors, test_ids=self.test_ids)
        return cross_domain_matrix(parts, self.spec, report)
