"""A faiss index with an adapter in front: programs that search it give it the new model's queries and change nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np

from relcore.migration.adapter import Adapter
from relcore.migration.steps import Affine, Residual, Step
from relcore.spaces import SpaceError


def index_with_map(index: Any, adapter: Adapter, *, projected: bool = False) -> Any:
    """A `faiss.IndexPreTransform` that maps queries of the new model and searches `index` with them.

    The index keeps its vectors, of any kind and compression; it is not copied. Search by inner product, or by Euclidean
    distance where its rows have length 1. Add rows to the index inside, ``mapped.index``: the map is for queries, and
    ``mapped.add`` would apply it to the corpus.

    Parameters
    ----------
    index : faiss.Index
        Of the old vectors; for an adapter that projects the corpus, of projected ones (`Adapter.corpus`).
    projected : bool
        Whether the vectors in the index went through `Adapter.corpus`. Adapters that need it are refused without it.

    Raises
    ------
    SpaceError
        A residual step, which faiss cannot hold; an index of other rows, or of another width.

    Examples
    --------
    >>> import faiss, numpy as np
    >>> from relcore.migration.faiss_map import index_with_map
    >>> from relcore.migration.procrustes import InPlaceProcrustesAdapter
    >>> old = np.eye(4, 3, dtype=np.float32)[:3]
    >>> new = old[:, ::-1]
    >>> index = faiss.IndexFlatIP(3)
    >>> index.add(old)
    >>> mapped = index_with_map(index, InPlaceProcrustesAdapter().fit(new, old))
    >>> mapped.search(np.ascontiguousarray(new), 1)[1].ravel().tolist()
    [0, 1, 2]
    """
    import faiss

    if any(isinstance(step, Residual) for step in adapter.query_steps_):
        raise SpaceError(
            "index: expected steps that are linear, which is all that faiss can hold, got a residual network; map the queries "
            "with apply.py or adapter.onnx, and search the index with the result"
        )
    if len(adapter.corpus_steps_) > 1 and not projected:
        raise SpaceError(
            "index: expected vectors projected by this adapter, which searches no vectors as they are; write the index "
            "again with relscope adapt ADAPTER OLD NEW.faiss --corpus, and pass projected=True"
        )
    maps, width = [], adapter.n_features_in_
    for step in adapter.query_steps_:
        made = _transform(step, width)
        maps.append(made)
        width = made.d_out
    if index.d != width:
        raise SpaceError(f"index: expected vectors of width {width}, to which the adapter maps queries, got {index.d}")
    mapped = faiss.IndexPreTransform(index)
    for made in reversed(maps):
        mapped.prepend_transform(made)
    return mapped


def _transform(step: Step, width: int) -> Any:
    import faiss

    if not isinstance(step, Affine):
        return faiss.NormalizationTransform(width, 2.0)
    made = faiss.LinearTransform(*step.matrix.shape, True)
    faiss.copy_array_to_vector(np.ascontiguousarray(step.matrix.T, dtype=np.float32).ravel(), made.A)
    faiss.copy_array_to_vector(np.ascontiguousarray(step.offset, dtype=np.float32), made.b)
    made.is_trained = True
    return made
