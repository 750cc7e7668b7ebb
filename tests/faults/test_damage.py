"""One byte of a stored file is changed, and nothing of it may be read as data."""

import logging
import random
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from relcore.catalog.catalog import encode
from relcore.encoders.encoder import DatasetSpec, Encoder
from relcore.runs.entries import digest_of
from relcore.runs.store import Store

KEY = digest_of("entry")
SEED, FLIPS = 12, 100


@dataclass(frozen=True)
class Pixels(Encoder):
    kind: ClassVar = "images"
    title: ClassVar = "Pixels"

    def prepare(self, dataset, report):
        return lambda images: {
            "": np.stack([np.asarray(image, dtype=np.float32).ravel() for image in images])
        }


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def file_of(store, key=KEY):
    return store.root / "entries" / key[:2] / f"{key}.safetensors"


def put(store):
    rows = np.random.default_rng(0).normal(size=(40, 3))
    arrays = {
        "rows": rows.astype(np.float32),
        "ids": np.arange(7, dtype=np.uint8),
        "half": rows.astype(np.float16),
        "mask": rows > 0,
        "empty": np.empty((0, 3)),
        "scalar": np.array(5),
    }
    metadata = {"name": "Größe", "values": [1, 2.5, None]}
    store.put(KEY, arrays, metadata)
    return arrays, metadata


def same(entry, arrays, metadata):
    assert entry.metadata == metadata
    assert entry.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        assert (entry.arrays[name].dtype, entry.arrays[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(entry.arrays[name], array)


def test_a_flipped_bit_anywhere_is_no_data(store, caplog):
    """The bytes of the header, every one with some bit, and as many of the arrays at random places."""
    arrays, metadata = put(store)
    path, whole = file_of(store), file_of(store).read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    draw = random.Random(SEED)
    places = [*range(header), *(draw.randrange(header, len(whole)) for _ in range(FLIPS))]
    with caplog.at_level(logging.CRITICAL, logger="relscope"):
        for place in places:
            broken = bytearray(whole)
            broken[place] ^= 1 << draw.randrange(8)
            path.write_bytes(broken)
            summary, entry = store.summary(KEY), store.get(KEY)
            assert entry is None, place
            assert not path.exists()
            assert summary is None or (summary.metadata, summary.shapes["rows"]) == (metadata, (40, 3))
    path.write_bytes(whole)
    same(store.get(KEY), arrays, metadata)


def test_a_damaged_encoding_is_computed_again(store, caplog):
    dataset, encoder = DatasetSpec("digits", limit=40), Pixels()
    (first,) = encode(dataset, encoder, store)
    (key,) = [one.key for one in store.summaries() if "encoder" in one.metadata]
    path = file_of(store, key)
    whole = path.read_bytes()
    path.write_bytes(whole[:-100] + b"damage" + whole[-94:])
    with caplog.at_level(logging.CRITICAL, logger="relscope"):
        (second,) = encode(dataset, encoder, store)
    assert second.digest == first.digest
    assert path.read_bytes() == whole
