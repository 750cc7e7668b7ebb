"""What is done to the rows of a shard before they are written: kept in the store, and made again in workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from relcore.comparison import ProjectionSpec
from relcore.inverting.recovery import InversionSpec
from relcore.migration.adapter_file import LoadedAdapter
from relcore.migration.steps import Step, apply_by_block
from relcore.sharded.made_once import made_once
from relcore.spaces import SpaceError
from relcore.store import Entry, Store, digest_of

RowMap = Callable[[np.ndarray], np.ndarray]  # (m, d) → (m, e) float32
_made: dict[str, RowMap] = {}


def put_projection(store: Store, anchors: np.ndarray, mean: np.ndarray, spec: ProjectionSpec, whiten: bool = False) -> str:
    """The key of the projection on anchors (k, d) of a space with this mean (d,).

    Raises
    ------
    SpaceError
        The similarity "quantised", whose clusters depend on other rows than the anchors.
    """
    if spec.similarity == "quantised":
        raise SpaceError("similarity: expected one that needs the anchors alone, got 'quantised'; it is not offered by shard")
    return _put(store, "project", {"anchors": anchors, "mean": mean}, {"spec": asdict(spec), "whiten": whiten})


def put_inversion(store: Store, anchors: tuple[np.ndarray, ...], means: tuple[np.ndarray, ...], spec: InversionSpec) -> str:
    """The key of the inverse from paired anchors of two spaces and the means of all their rows."""
    arrays = {f"anchors_{side}": one for side, one in enumerate(anchors)}
    return _put(store, "invert", arrays | {f"mean_{side}": one for side, one in enumerate(means)}, {"spec": spec.to_record()})


def put_adapter(store: Store, adapter: LoadedAdapter, side: str) -> str:
    """The key of an adapter's steps of one side, "queries" or "corpus"."""
    steps = adapter.query_steps_ if side == "queries" else adapter.corpus_steps_
    width = adapter.n_features_in_ if side == "queries" else adapter.n_features_old_
    arrays = {f"{place}.{name}": one for place, step in enumerate(steps) for name, one in vars(step).items()}
    return _put(store, "adapt", arrays, {"steps": [type(step).__name__ for step in steps], "width": width})


def row_map(store: Store, key: str) -> RowMap:
    """The function that was put under a key; made once for the shards that a process maps one after the other."""
    return made_once(_made, store, key, lambda entry: _KINDS[entry.metadata["map"]](entry), "the map of the rows")


def _put(store: Store, kind: str, arrays: dict[str, np.ndarray], settings: dict[str, Any]) -> str:
    key = digest_of("row map", kind, arrays, settings)
    if not store.has(key):
        store.put(key, arrays, {"map": kind, **settings})
    return key


def _project(entry: Entry) -> RowMap:
    anchors, mean = entry.arrays["anchors"], entry.arrays["mean"]
    projection = ProjectionSpec(**entry.metadata["spec"]).projection(entry.metadata["whiten"])
    return projection.fit_from(mean, anchors, anchors).transform


def _invert(entry: Entry) -> RowMap:
    arrays, spec = entry.arrays, InversionSpec(**entry.metadata["spec"])
    means = {"source_mean": arrays["mean_0"], "target_mean": arrays["mean_1"]}
    return spec.inverse().fit(arrays["anchors_0"], arrays["anchors_1"], **means).transform


def _adapt(entry: Entry) -> RowMap:
    from relcore.migration import steps as kinds

    made: list[Step] = []
    for place, name in enumerate(entry.metadata["steps"]):
        own = {one.split(".", 1)[1]: array for one, array in entry.arrays.items() if one.startswith(f"{place}.")}
        made.append(getattr(kinds, name)(**own))
    return lambda X: apply_by_block(tuple(made), X)


_KINDS: dict[str, Callable[[Entry], RowMap]] = {"project": _project, "invert": _invert, "adapt": _adapt}
