"""faiss indexes: read like faiss reconstructs them, without faiss; what keeps no whole vectors is refused."""

import faiss
import numpy as np
import pytest

from relcore.files.reading import load_space, shape_of

VECTORS = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
IDS = np.arange(60) * 7 + 3
FLAT = {
    "L2": lambda: faiss.IndexFlatL2(8),
    "inner product": lambda: faiss.IndexFlatIP(8),
    "L1": lambda: faiss.IndexFlat(8, faiss.METRIC_L1),
    "Lp": lambda: faiss.IndexFlat(8, faiss.METRIC_Lp),
    "HNSW": lambda: faiss.IndexHNSWFlat(8, 4),
    "HNSW, inner product": lambda: faiss.IndexHNSWFlat(8, 4, faiss.METRIC_INNER_PRODUCT),
}


def written(path, index, ids=None):
    index.add(VECTORS) if ids is None else index.add_with_ids(VECTORS, ids)
    faiss.write_index(index, str(path))
    return path


@pytest.mark.parametrize("kind", FLAT)
@pytest.mark.parametrize("limit", [None, 7])
def test_vectors_equal_what_faiss_reconstructs(tmp_path, kind, limit):
    path = written(tmp_path / "x.faiss", FLAT[kind]())
    truth = faiss.read_index(str(path)).reconstruct_n(0, 60)
    assert shape_of(path) == (60, 8)
    space = load_space(path, limit=limit)
    np.testing.assert_array_equal(space.vectors, truth[:limit])
    assert list(space.ids) == [str(row) for row in range(60)][:limit]
