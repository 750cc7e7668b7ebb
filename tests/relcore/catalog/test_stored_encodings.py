"""Large spaces go to the store and come back block by block, the same as small ones."""

import numpy as np
import pytest

from relcore.base.rows import MappedRows
from relcore.catalog import catalog
from relcore.catalog.catalog import load_encoding, put_encoding, put_space
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace

X = np.random.default_rng(0).standard_normal((9000, 3), dtype=np.float32)
KEY = "a" * 32


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


@pytest.fixture
def all_are_large(monkeypatch):
    monkeypatch.setattr(catalog, "MAP_FROM", 1)


def labelled(vectors):
    n = len(vectors)
    return LatentSpace(
        vectors, [f"w{row}" for row in range(n)], name="made", labels=["é", ""] * (n // 2), counts=range(n)
    )


def same(found, made):
    assert (found.digest, found.name) == (made.digest, made.name)
    assert found.labels.tolist() == made.labels.tolist()
    np.testing.assert_array_equal(found.vectors, made.vectors)
    assert found.counts.tolist() == made.counts.tolist()


@pytest.mark.parametrize(
    "vectors", [X, MappedRows([X[:4500].astype(np.float16), X[4500:].astype(np.float16)])]
)
def test_a_large_space_comes_back_as_a_map(store, all_are_large, vectors):
    made = labelled(vectors)
    found = load_encoding(store, put_space(store, made))
    same(found, made)
    assert not found.vectors.flags.owndata
    assert "index" in found.__dict__
    assert store.get(store.entries()[0]).arrays["vectors"].shape == X.shape  # the checksums agree


def test_its_digest_is_known_and_that_of_other_columns_is_not(store, all_are_large, monkeypatch):
    made = labelled(X)
    put_encoding(store, KEY, made, {})
    found = load_encoding(store, KEY)
    other = found.with_columns(labels=None)
    assert other.digest == made.with_columns(labels=None).digest != made.digest
    monkeypatch.setattr(
        "relcore.spaces.space.digest_of_content", lambda *of: pytest.fail("a look at the values")
    )
    assert load_encoding(store, KEY).digest == made.digest


def test_a_small_space_is_read_into_memory_with_its_checksum(store):
    made = labelled(X)
    put_encoding(store, KEY, made, {})
    path = next(store.root.rglob(f"{KEY}.safetensors"))
    same(load_encoding(store, KEY), made)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert store.get(KEY) is None
