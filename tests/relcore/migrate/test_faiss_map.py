"""A faiss index with the adapter in front, searched by a program that knows nothing of us."""

import faiss
import numpy as np
import pytest

from relcore.migrate import adapters as adapter_file
from relcore.migrate.adapters import card_of, index_with_map
from tests.relcore.migrate.adapters import Made, pairs
from tests.relcore.migrate.test_adapter_file import alone

SEARCH = """
import faiss
index = faiss.read_index(f"{folder}/mapped.faiss")
scores, rows = index.search(np.ascontiguousarray(given["new"]), 5)
np.savez(f"{folder}/found.npz", scores=scores, rows=rows)
"""


@pytest.mark.parametrize(("kind", "built"), [("affine", "Flat"), ("projected", "IVF4,Flat")])
def test_existing_search_code_finds_what_adapter_finds(tmp_path, kind, built):
    new, old = pairs(300)
    adapter = Made(kind).fit(new, old)
    corpus = adapter.corpus(old)
    index = faiss.index_factory(corpus.shape[1], built, faiss.METRIC_INNER_PRODUCT)
    index.train(corpus)
    index.add(corpus)
    if "IVF" in built:
        index.nprobe = 4  # all lists, so that the search is exact
    adapter_file.export(adapter, card_of(adapter, new, old, method="made"), tmp_path)
    loaded = adapter_file.load(tmp_path)
    faiss.write_index(
        index_with_map(index, loaded, projected=kind == "projected"), str(tmp_path / "mapped.faiss")
    )
    np.savez(tmp_path / "given.npz", new=new)
    found = alone(SEARCH, tmp_path)
    scores = adapter.transform(new) @ corpus.T
    best = np.argsort(-scores, axis=1, kind="stable")[:, :5]
    assert np.array_equal(found["rows"], best)
    np.testing.assert_allclose(found["scores"], np.take_along_axis(scores, best, 1), atol=1e-5)
