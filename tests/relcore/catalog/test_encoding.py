"""Encodings survive kills, go on where they were, and come out the same to the last byte whoever computed
them.
"""

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
from relcore.catalog import catalog
from relcore.catalog.catalog import (
    encode,
    encode_again,
    encode_job,
    encoding_job_key,
    encoding_key,
    encoding_spec,
    load_encoding,
)
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import Dataset, DatasetSpec, Encoder, Trained, TrainedEncoder
from relcore.encoders.vision import SmallVision
from relcore.runs.store import Store
from tests.waiting import until

DIGITS = DatasetSpec("digits", limit=500)
N_BLOCKS = 25  # of 20 rows


def note(log, line):
    with open(log, "a") as file:
        file.write(f"{line} {os.getpid()}\n")


def notes(log, what):
    return (
        [line.split() for line in Path(log).read_text().splitlines() if line.startswith(what)]
        if Path(log).exists()
        else []
    )


def pixels(images):
    return np.stack([np.asarray(image, dtype=np.float32).ravel() for image in images])


@dataclass(frozen=True)
class Noted(Encoder):
    """Pixels times a number; leaves a line for each time that it is prepared, and for each block that it
    computes.
    """

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


@dataclass(frozen=True)
class NotedTraining(TrainedEncoder):
    """Subtracts the mean that it has learnt."""

    log: str
    pause: float = 0.0

    kind: ClassVar = "images"

    @property
    def title(self):
        return "Centred"

    def train(self, dataset, report):
        note(self.log, "trained")
        report(1, 1, "epoch 1 of 1")
        return Trained({"mean": pixels(dataset.items(0, len(dataset))).mean(axis=0)}, {"loss": [0.5]})

    def restore(self, trained, dataset):
        def encode_batch(images):
            time.sleep(self.pause)
            note(self.log, "block")
            return {"": pixels(images) - trained.arrays["mean"]}

        return encode_batch


@dataclass(frozen=True)
class Broken(Encoder):
    how: str

    kind: ClassVar = "images"

    @property
    def title(self):
        return "Broken"

    def prepare(self, dataset, report):
        def encode_batch(images):
            rows = pixels(images)
            if self.how == "nan":
                rows[3] = np.nan
            if self.how == "rows":
                rows = rows[1:]
            return {"other" if self.how == "outputs" else "": rows}

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


def test_the_space_of_a_dataset_with_its_ids_and_labels(store, log):
    dataset = load_dataset(DIGITS)
    told = []
    [space] = encode(
        DIGITS, Noted(log, scales=(3,)), store, lambda *report: told.append(report), block_rows=64
    )
    np.testing.assert_array_equal(space.vectors, 3 * pixels(dataset.items(0, 500)))
    np.testing.assert_array_equal(space.ids, dataset.ids)
    np.testing.assert_array_equal(space.labels, dataset.labels)
    assert space.name == "Pixels times 3 · digits"
    assert [(done, total) for done, total, _ in told[1:]] == [
        *((64 * i, 500) for i in range(1, 8)),
        (500, 500),
    ]
    assert told[-1][2] == "Pixels: 500 of 500 rows"
    key = encoding_key(dataset.digest, Noted(log, scales=(3,)), "times 3")
    assert store.entries() == [key]  # the blocks are gone
    metadata = store.get(key).metadata
    assert metadata["digest"] == space.digest
    assert (metadata["dataset"], metadata["dataset_digest"], metadata["output"]) == (
        "digits",
        dataset.digest,
        "times 3",
    )
    assert metadata["encoder"]["scales"] == [3]


def test_one_pass_for_several_outputs_and_each_is_found_by_itself(store, log, digest):
    both = encode(DIGITS, Noted(log, scales=(1, 2)), store)
    assert [space.name for space in both] == ["Pixels times 1 · digits", "Pixels times 2 · digits"]
    np.testing.assert_array_equal(both[1].vectors, 2 * both[0].vectors)
    assert len(notes(log, "block")) == 2  # of 256 rows
    [alone] = encode(DIGITS, Noted(log, scales=(2,)), store)
    assert alone.digest == both[1].digest
    assert len(notes(log, "block")) == 2
    assert encoding_key(digest, Noted(log, scales=(1, 2)), "times 2") == encoding_key(
        digest, Noted(log, scales=(2,)), "times 2"
    )


def test_keys_tell_everything_apart_that_decides_the_vectors(log, digest):
    class Newer(Noted):
        version = 2

    class Elsewhere(Noted):
        def content(self):
            return "another file"

    Newer.__name__ = Elsewhere.__name__ = "Noted"
    encoders = [Noted(log), Noted(log, scales=(2,)), Newer(log), Elsewhere(log), NotedTraining(log)]
    keys = {
        encoding_key(content, encoder, encoder.outputs[0])
        for encoder in encoders
        for content in (digest, "0" * 32)
    }
    assert len(keys) == 10


def test_a_failure_in_the_middle_keeps_the_blocks_before_it(store, log, monkeypatch):
    dataset = load_dataset(DIGITS)
    failing = Dataset(
        lambda start, stop: (
            dataset.items(start, stop) if stop <= 300 else (_ for _ in ()).throw(OSError("unplugged"))
        ),
        dataset.ids,
        name="digits",
        kind="images",
        labels=dataset.labels,
        content=lambda: [b"digits"],
    )
    with pytest.raises(OSError, match="unplugged"):
        encode(failing, Noted(log), store, block_rows=20)
    assert len(notes(log, "block")) == 15
    failing._read = dataset.items
    [space] = encode(failing, Noted(log), store, block_rows=20)
    assert len(notes(log, "block")) == N_BLOCKS
    np.testing.assert_array_equal(space.vectors, pixels(dataset.items(0, 500)))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("nan", "NaN or infinite values for 1 items, first 'digits/3'; choose another encoder or layer"),
        ("rows", r"expected 256 rows, got shape \(255, 64\)"),
        ("outputs", "expected outputs '', got 'other'"),
    ],
)
def test_what_an_encoder_may_not_give(store, how, message):
    with pytest.raises(SpaceError, match=message):
        encode(DIGITS, Broken(how), store)


@dataclass(frozen=True)
class Exchanged(Noted):
    """Its files are exchanged while they are read."""

    def content(self):
        return str(len(notes(self.log, "prepared")))


def test_an_encoder_whose_files_are_exchanged_while_it_is_prepared_is_refused(store, log):
    with pytest.raises(SpaceError, match="expected files that stay as they are while they are read"):
        encode(DIGITS, Exchanged(log), store)
    assert notes(log, "block") == []


@pytest.mark.slow
@pytest.mark.parametrize("how", ["killed", "cancelled"])
def test_a_killed_encoding_goes_on_from_its_last_finished_block(one_worker, tmp_path, digest, how):
    encoder = Noted(str(tmp_path / "log"), pause=0.05)
    key = encoding_job_key(digest, encoder)
    request = {"title": "encoding", "dataset": DIGITS, "encoder": encoder, "block_rows": 20}
    job = one_worker.submit(key, encode_job, **request)
    until(lambda: len(notes(encoder.log, "block")) >= 8)
    if how == "killed":
        os.kill(int(notes(encoder.log, "block")[0][2]), signal.SIGKILL)
    else:
        job.cancel()
        assert not one_worker.store.has(key)
        job = one_worker.submit(key, encode_job, **request)
    assert job.wait(60).state == "done"
    assert len({pid for _, pid in notes(encoder.log, "prepared")}) == 2
    counts = {}
    for _, block, _ in notes(encoder.log, "block"):
        counts[block] = counts.get(block, 0) + 1
    assert len(counts) == N_BLOCKS
    # Only the one block that was computed but not yet written when the kill came may be there twice.
    assert sorted(counts.values())[:-1] == [1] * (N_BLOCKS - 1)
    undisturbed = Store(tmp_path / "undisturbed")
    encode(DIGITS, encoder, undisturbed, block_rows=20)
    assert file_of(one_worker.store, key) == file_of(undisturbed, key)


@pytest.mark.slow
def test_trained_weights_survive_a_kill(one_worker, tmp_path, digest):
    encoder = NotedTraining(str(tmp_path / "log"), pause=0.05)
    key = encoding_job_key(digest, encoder)
    job = one_worker.submit(key, encode_job, title="training", dataset=DIGITS, encoder=encoder, block_rows=20)
    until(lambda: len(notes(encoder.log, "block")) >= 3)
    os.kill(int(notes(encoder.log, "trained")[0][1]), signal.SIGKILL)
    assert job.wait(60).state == "done"
    assert len(notes(encoder.log, "trained")) == 1
    assert job.result().metadata["training"] == {"loss": [0.5]}
    assert len({pid for _, pid in notes(encoder.log, "block")}) == 2


def test_a_spec_is_encoded_again_to_the_same_bytes_unless_its_dataset_has_changed(tmp_path):
    store, encoder = Store(tmp_path), SmallVision("mlp", width=8, epochs=1)
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
    """The length of each text and its number of letters a; leaves a line for each block and each thread."""

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
    """A dataset whose reader fails from a row on."""

    def read(start, stop):
        if stop > end:
            raise OSError("unplugged")
        return texts[start:stop]

    ids = [f"t{i}" for i in range(len(texts))]
    return Dataset(read, ids, name="texts", kind="texts", content=lambda: [b"texts"])


def test_texts_are_encoded_in_the_order_of_their_lengths_within_a_window(store, log, texts, monkeypatch):
    monkeypatch.setattr(catalog, "_WINDOW", 5)  # of blocks of 10
    [space] = encode(texts_that_end(texts, 100), Lengths(log), store, block_rows=10)
    expected = np.array([(len(text), text.count("a")) for text in texts], dtype=np.float32)
    np.testing.assert_array_equal(space.vectors, expected)
    blocks = np.array([line[1:4] for line in notes(log, "block")], dtype=int)
    assert len(blocks) == 10
    ends = blocks[:, 1:].ravel()
    for window in (ends[:10], ends[10:]):
        assert (np.diff(window) <= 0).all()
    padded, lengths = (
        sum(10 * max(map(len, texts[i : i + 10])) for i in range(0, 100, 10)),
        sum(map(len, texts)),
    )
    assert (blocks[:, 0].sum() - lengths) < (padded - lengths) / 3
    assert store.entries() == [encoding_key(texts_that_end(texts, 100).digest, Lengths(log))]


def test_blocks_are_prepared_ahead_by_a_thread(store, log, texts):
    encode(texts_that_end(texts, 100), Lengths(log), store, block_rows=10)
    assert {line[1] for line in notes(log, "ahead")} == {"ThreadPoolExecutor"}


def test_sorted_blocks_that_are_done_are_not_computed_again(store, log, texts, monkeypatch):
    monkeypatch.setattr(catalog, "_WINDOW", 5)
    with pytest.raises(OSError, match="unplugged"):
        encode(texts_that_end(texts, 50), Lengths(log), store, block_rows=10)
    assert len(notes(log, "block")) == 5
    [space] = encode(texts_that_end(texts, 100), Lengths(log), store, block_rows=10)
    assert len(notes(log, "block")) == 10
    np.testing.assert_array_equal(space.vectors[:, 0], list(map(len, texts)))


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_on_a_gpu_a_block_is_written_beside_the_work_on_the_next(store, log, texts, monkeypatch, device):
    put, encoded = Store.put, []  # blocks that were encoded when each block was written

    def slowly(store, key, *entry):
        n_written = len(encoded)
        if n_written < 9 and device == "cuda":
            until(lambda: len(notes(log, "block")) > n_written + 1)
        encoded.append(len(notes(log, "block")))
        put(store, key, *entry)

    monkeypatch.setattr(catalog, "torch_name", lambda: device)
    monkeypatch.setattr(Store, "put", slowly)
    encode(texts_that_end(texts, 100), Lengths(log), store, block_rows=10)
    ahead = device == "cuda"
    assert encoded[:10] == [min(block + ahead, 10) for block in range(1, 11)]
