"""Encodings survive kills, come out the same to the last byte, and are read back block by block."""

import os
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path
from threading import current_thread
from typing import ClassVar

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.base.mapped_rows import MappedRows
from relcore.catalog import encodings
from relcore.catalog.catalog import encode_again, encoding_spec
from relcore.catalog.encodings import (
    encode,
    encode_job,
    encoding_job_key,
    encoding_key,
    load_encoding,
    put_encoding,
    put_space,
)
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import Encoder
from relcore.encoders.vision import SmallVision
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace
from tests.waiting import until

DIGITS = DatasetSpec("digits", limit=500)
N_BLOCKS = 25  # number of blocks of 20 rows


def note(log, line):
    with open(log, "a") as file:
        file.write(f"{line} {os.getpid()}\n")


def notes(log, what):
    lines = []
    if Path(log).exists():
        lines = Path(log).read_text().splitlines()
    return [line.split() for line in lines if line.startswith(what)]


def pixels(images):
    return np.stack([np.asarray(image, dtype=np.float32).ravel() for image in images])


@dataclass(frozen=True)
class Noted(Encoder):
    """An encoder whose vectors are the pixels times a number. It logs each call of `prepare` and each block."""

    log: str
    pause: float = 0.0
    scales: tuple[int, ...] = (1,)

    kind: ClassVar = "images"

    @property
    def title(self):
        return "Pixels"

    @property
    def outputs(self):
        return tuple(f"times {scale}" for scale in self.scales)

    def only(self, output):
        return replace(self, scales=(self.scales[self.outputs.index(output)],))

    def prepare(self, dataset, report):
        note(self.log, "prepared")

        def encode_batch(images):
            time.sleep(self.pause)
            rows = pixels(images)
            note(self.log, f"block {rows[0].sum():.0f}")
            return {output: rows * scale for output, scale in zip(self.outputs, self.scales, strict=True)}

        return encode_batch


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def log(tmp_path):
    return str(tmp_path / "log")


@pytest.fixture
def digest():
    return load_dataset(DIGITS).digest


def file_of(store, key):
    return (store.root / "entries" / key[:2] / f"{key}.safetensors").read_bytes()


def test_space_of_dataset_with_its_ids_and_labels(store, log):
    dataset = load_dataset(DIGITS)
    told = []
    [space] = encode(
        DIGITS, Noted(log, scales=(3,)), store, lambda *report: told.append(report), block_rows=64
    )
    np.testing.assert_array_equal(space.vectors, 3 * pixels(dataset.items(0, 500)))
    np.testing.assert_array_equal(space.ids, dataset.ids)
    np.testing.assert_array_equal(space.labels, dataset.labels)
    assert space.name == "Pixels times 3 · digits"
    assert [done for done, _, _ in told[1:]] == [*range(64, 500, 64), 500]
    assert told[-1][2] == "Pixels: 500 of 500 rows"
    key = encoding_key(dataset.digest, Noted(log, scales=(3,)), "times 3")
    assert store.entries() == [key]  # the blocks are gone
    metadata = store.get(key).metadata
    assert metadata["digest"] == space.digest
    assert (metadata["dataset"], metadata["dataset_digest"]) == ("digits", dataset.digest)
    assert metadata["output"] == "times 3"
    assert metadata["encoder"]["scales"] == [3]


def test_one_pass_for_several_outputs_and_each_is_found_by_itself(store, log, digest):
    both = encode(DIGITS, Noted(log, scales=(1, 2)), store)
    assert [space.name for space in both] == ["Pixels times 1 · digits", "Pixels times 2 · digits"]
    np.testing.assert_array_equal(both[1].vectors, 2 * both[0].vectors)
    assert len(notes(log, "block")) == 2  # blocks of 256 rows
    [alone] = encode(DIGITS, Noted(log, scales=(2,)), store)
    assert alone.digest == both[1].digest
    assert len(notes(log, "block")) == 2
    keys = {encoding_key(digest, Noted(log, scales=scales), "times 2") for scales in ((1, 2), (2,))}
    assert len(keys) == 1


def test_failure_in_middle_keeps_blocks_before_it(store, log, monkeypatch):
    dataset = load_dataset(DIGITS)

    def read(start, stop):
        if stop > 300:
            raise OSError("unplugged")
        return dataset.items(start, stop)

    failing = Dataset(read, dataset.ids, name="digits", kind="images", content=lambda: [b"digits"])
    with pytest.raises(OSError, match="unplugged"):
        encode(failing, Noted(log), store, block_rows=20)
    assert len(notes(log, "block")) == 15
    failing.items = dataset.items
    [space] = encode(failing, Noted(log), store, block_rows=20)
    assert len(notes(log, "block")) == N_BLOCKS
    np.testing.assert_array_equal(space.vectors, pixels(dataset.items(0, 500)))


@pytest.mark.slow
def test_killed_encoding_goes_on_from_its_last_finished_block(one_worker, tmp_path, digest):
    encoder = Noted(str(tmp_path / "log"), pause=0.05)
    key = encoding_job_key(digest, encoder)
    job = one_worker.submit(key, encode_job, title="encoding", dataset=DIGITS, encoder=encoder, block_rows=20)
    until(lambda: len(notes(encoder.log, "block")) >= 8)
    os.kill(int(notes(encoder.log, "block")[0][2]), signal.SIGKILL)
    assert job.wait(60).state == "done"
    assert len({pid for _, pid in notes(encoder.log, "prepared")}) == 2
    counts = {}
    for _, block, _ in notes(encoder.log, "block"):
        counts[block] = counts.get(block, 0) + 1
    assert len(counts) == N_BLOCKS
    # Only the block that was computed but not yet written at the kill may be computed twice.
    assert sorted(counts.values())[:-1] == [1] * (N_BLOCKS - 1)
    undisturbed = Store(tmp_path / "undisturbed")
    encode(DIGITS, encoder, undisturbed, block_rows=20)
    assert file_of(one_worker.store, key) == file_of(undisturbed, key)


def test_spec_is_encoded_again_to_same_bytes_unless_its_dataset_has_changed(tmp_path):
    store = Store(tmp_path)
    encoder = SmallVision("mlp", width=8, epochs=1)
    dataset = DatasetSpec("digits", limit=40)
    (space,) = encode(dataset, encoder, store)
    spec = encoding_spec(
        dataset, encoder, "", encoding_key(load_dataset(dataset).digest, encoder), space.name
    )
    for key in store.entries():
        store.remove(key)
    encode_again(spec, store)
    assert load_encoding(store, spec.option("key")).digest == space.digest
    other = encoding_spec(dataset, encoder, "", "0" * 32, space.name)
    with pytest.raises(SpaceError, match="its dataset or the files of its encoder have changed"):
        encode_again(other, store)


@dataclass(frozen=True)
class Lengths(Encoder):
    """An encoder of each text by its length and its number of letters a. It logs each block and each thread."""

    log: str

    kind: ClassVar = "texts"
    by_length: ClassVar = True
    title: ClassVar = "Lengths"

    def prepare(self, dataset, report):
        class Batch:
            @staticmethod
            def ahead(texts):
                note(self.log, f"ahead {current_thread().name.partition('-')[0]}")
                return [(len(text), text.count("a")) for text in texts]

            def __call__(_, counts):
                lengths = [length for length, _ in counts]
                note(self.log, f"block {len(counts) * max(lengths)} {lengths[0]} {lengths[-1]}")
                return {"": np.array(counts, dtype=np.float32)}

        return Batch()


@pytest.fixture
def texts():
    lengths = np.random.default_rng(0).integers(1, 60, size=100)
    return ["ab" * int(n // 2) + "a" * int(n % 2) for n in lengths]


def texts_that_end(texts, end):
    """A dataset whose reader fails if rows from `end` on are read."""

    def read(start, stop):
        if stop > end:
            raise OSError("unplugged")
        return texts[start:stop]

    ids = [f"t{i}" for i in range(len(texts))]
    return Dataset(read, ids, name="texts", kind="texts", content=lambda: [b"texts"])


def test_texts_are_encoded_in_order_of_their_lengths_within_window(store, log, texts, monkeypatch):
    monkeypatch.setattr(encodings, "_WINDOW", 5)  # five blocks of 10 rows
    [space] = encode(texts_that_end(texts, 100), Lengths(log), store, block_rows=10)
    expected = np.array([(len(text), text.count("a")) for text in texts], dtype=np.float32)
    np.testing.assert_array_equal(space.vectors, expected)
    blocks = np.array([line[1:4] for line in notes(log, "block")], dtype=int)
    assert len(blocks) == 10
    ends = blocks[:, 1:].ravel()
    for window in (ends[:10], ends[10:]):
        assert (np.diff(window) <= 0).all()
    padded = sum(10 * max(map(len, texts[i : i + 10])) for i in range(0, 100, 10))
    lengths = sum(map(len, texts))
    assert (blocks[:, 0].sum() - lengths) < (padded - lengths) / 3
    assert store.entries() == [encoding_key(texts_that_end(texts, 100).digest, Lengths(log))]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_on_gpu_block_is_written_beside_work_on_next(store, log, texts, monkeypatch, device):
    # for each block written: how many blocks had been encoded by then
    put = Store.put
    encoded = []

    def slowly(store, key, *entry):
        n_written = len(encoded)
        if n_written < 9 and device == "cuda":
            until(lambda: len(notes(log, "block")) > n_written + 1)
        encoded.append(len(notes(log, "block")))
        put(store, key, *entry)

    monkeypatch.setattr(encodings, "torch_name", lambda: device)
    monkeypatch.setattr(Store, "put", slowly)
    encode(texts_that_end(texts, 100), Lengths(log), store, block_rows=10)
    ahead = device == "cuda"
    assert encoded[:10] == [min(block + ahead, 10) for block in range(1, 11)]


X = np.random.default_rng(0).standard_normal((9000, 3), dtype=np.float32)
KEY = "a" * 32


@pytest.fixture
def bare_store(tmp_path):
    return Store(tmp_path)


@pytest.fixture
def all_are_large(monkeypatch):
    monkeypatch.setattr(encodings, "MAP_FROM", 1)


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
def test_a_large_space_comes_back_as_a_map(bare_store, all_are_large, vectors):
    made = labelled(vectors)
    found = load_encoding(bare_store, put_space(bare_store, made))
    same(found, made)
    assert not found.vectors.flags.owndata
    assert "index" in found.__dict__
    assert bare_store.get(bare_store.entries()[0]).arrays["vectors"].shape == X.shape  # the checksums agree


def test_its_digest_is_known_and_that_of_other_columns_is_not(bare_store, all_are_large, monkeypatch):
    made = labelled(X)
    put_encoding(bare_store, KEY, made, {})
    found = load_encoding(bare_store, KEY)
    other = found.with_columns(labels=None)
    assert other.digest == made.with_columns(labels=None).digest != made.digest
    monkeypatch.setattr(
        "relcore.spaces.space.digest_of_content", lambda *of: pytest.fail("a look at the values")
    )
    assert load_encoding(bare_store, KEY).digest == made.digest


def test_small_space_is_read_into_memory_with_its_checksum(bare_store):
    made = labelled(X)
    put_encoding(bare_store, KEY, made, {})
    path = next(bare_store.root.rglob(f"{KEY}.safetensors"))
    same(load_encoding(bare_store, KEY), made)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert bare_store.get(KEY) is None
