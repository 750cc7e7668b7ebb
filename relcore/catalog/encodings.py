"""Encodings in the store: encode a dataset once, and find it again."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from typing import Any, TypeVar

import numpy as np

from relcore.base.environment import torch_name
from relcore.base.errors import OF_KIND, SpaceError, extra, quote
from relcore.base.mapped_rows import MappedRows, Origin
from relcore.base.names import ENCODERS
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import EncodeBatch, Encoder, Trained, TrainedEncoder
from relcore.encoders.sending import sending_to
from relcore.files.formats import in_blocks
from relcore.files.on_disk import MAP_FROM
from relcore.runs.entries import Entry, StoreError, digest_of
from relcore.runs.store import Store, in_use
from relcore.runs.work import Context, Progress, silent
from relcore.spaces.ids import AuditedIds, GuessedIds
from relcore.spaces.space import LatentSpace, digest_of_columns

# Encodings: spaces that an encoder computes from a dataset, in blocks, and that the store keeps.

T = TypeVar("T")
BLOCK_ROWS = 256  # a killed run loses at most one block, which takes seconds on a CPU
_TEXTS_ON_A_GPU = 4096  # texts per block; a GPU encodes a block in a second, and writing it takes a tenth
_MARKED = {"confirmed": GuessedIds, "unscored": AuditedIds}


def encoding_job_key(dataset_digest: str, encoder: Encoder) -> str:
    """The key of the job that runs `encode`. If the encoder has one output, it is the store's key of that
    space."""
    if len(encoder.outputs) == 1:
        return encoding_key(dataset_digest, encoder, encoder.outputs[0])
    return key_of("encodings", dataset_digest, encoder)


def stored_encodings(
    store: Store, dataset_digest: str, encoder: Encoder, own: bool = False
) -> dict[str, str] | None:
    """The key of each output, if all are in the store; otherwise None. With `own`, bundled results do not
    count."""
    keys = {output: encoding_key(dataset_digest, encoder, output) for output in encoder.outputs}
    if all(store.has(key, own) for key in keys.values()):
        return keys
    if len(keys) > 1:  # otherwise the job's list of spaces would count as complete, although some are missing
        store.remove(encoding_job_key(dataset_digest, encoder))
    return None


def encode(
    dataset: DatasetSpec | Dataset,
    encoder: Encoder,
    store: Store,
    report: Progress | None = None,
    block_rows: int | None = None,
    send_to: str | Sequence[str] = (),
) -> list[LatentSpace]:
    """One space for each output of the encoder. It is read from the store, or computed and stored.

    Trained weights and each block of rows are stored as soon as they are computed. If the process is killed,
    the same call resumes and gives the same bytes. `report` is called as ``report(done, total, message)``.
    `send_to` is the host of a provider to which texts may be sent, such as "api.openai.com"; no other encoder
    sends any.

    Raises
    ------
    SpaceError
        The encoder cannot encode this dataset, or the files of its model are unsuitable. The encoder sends
        texts to a host that is not in `send_to`.
    StoreError
        The disk is full or fails, or this account may not write to it. Results so far are kept.
    """
    with in_use(), sending_to(send_to):
        for _ in range(2):  # twice: if an entry is damaged, reading removes it, and it is computed again
            keys = _encoded(dataset, encoder, store, report or silent, block_rows)
            entries = [store.get(key) for key in keys.values()]
            if all(entries):
                return [space_of(entry) for entry in entries]
    raise StoreError(f"{store.root}: the encoding was damaged each time it was read back; check the disk")


def trained_weights(
    encoder: TrainedEncoder, dataset: Dataset, store: Store, report: Progress = silent
) -> Trained:
    """The weights of an encoder that is trained on this dataset. They are read from the store, or trained now
    and stored."""
    key = key_of("trained", dataset.digest, encoder)
    if (entry := store.get(key)) is not None:
        return Trained(entry.arrays, entry.metadata)
    trained = encoder.train(dataset, report)
    store.put(key, trained.arrays, trained.metadata)
    return trained


def encode_job(
    context: Context,
    *,
    dataset: DatasetSpec | Dataset,
    encoder: Encoder,
    block_rows: int | None = None,
    send_to: Sequence[str] = (),
) -> None:
    """Run `encode` as a job of the JobQueue, with the key `encoding_job_key`."""
    context.report(0, 1, "reading the dataset")
    with sending_to(send_to):
        keys = _encoded(dataset, encoder, context.store, context.report, block_rows)
    if len(keys) > 1:
        context.put({}, {"encodings": keys})
    elif context.key not in keys.values():
        raise SpaceError(
            f"{encoder.title}: the dataset has changed since it was chosen; choose it again, and encode it"
        )


def _encoded(
    dataset: DatasetSpec | Dataset, encoder: Encoder, store: Store, report: Progress, block_rows: int | None
) -> dict[str, str]:
    """Encode the dataset unless the store has all outputs. Return the key of each output in the store."""
    metadata = {}
    if isinstance(dataset, DatasetSpec):
        metadata = {"dataset_spec": dataset.to_json()}
        dataset = load_dataset(dataset, store)
    keys = stored_encodings(store, dataset.digest, encoder)
    if keys is not None:
        return keys
    if encoder.kind != dataset.kind:
        raise SpaceError(
            f"{encoder.title}: expected a dataset of kind {encoder.kind!r}, got {dataset.kind!r} in"
            f" {dataset.name!r}; choose an encoder for {dataset.kind}"
        )
    with extra(OF_KIND[dataset.kind]):
        report(0, 1, encoder.title)
        store.require_writable()
        trained = None
        if isinstance(encoder, TrainedEncoder):
            trained = trained_weights(encoder, dataset, store, report)
            metadata["training"] = trained.metadata
        quick = dataset.kind == "texts" and torch_name() != "cpu"  # many pictures may fill the memory
        block_rows = block_rows or encoder.block_rows
        if not block_rows:
            block_rows = _TEXTS_ON_A_GPU if quick else BLOCK_ROWS
        known = _known_rows(dataset, encoder, store)
        rest = known.rest(dataset)
        pace = _Pace()
        wholes = known.joined(_blocks(rest, encoder, trained, store, report, block_rows, pace), encoder)
    metadata |= {"dataset": dataset.name, "dataset_digest": dataset.digest}
    keys = {}
    for output, vectors in wholes.items():
        name = f"{encoder.title} {output}".strip() + f" · {dataset.name}"
        space = LatentSpace(vectors, dataset.ids, name=name, labels=dataset.labels)
        made_by = {"encoder": encoder.only(output).to_record(), "output": output}
        keys[output] = encoding_key(dataset.digest, encoder, output)
        put_encoding(store, keys[output], space, metadata | made_by)
        if dataset.rows is not None:
            facts = {"sample": keys[output], "seconds": pace.seconds, "rows": pace.rows}
            store.put(_sample_key(dataset, encoder, output), {"rows": dataset.rows}, facts)
    for key in _block_keys(rest, encoder, block_rows).values():
        store.remove(key)
    return keys


@dataclass
class _Pace:
    """The seconds in which an encoder encoded this number of rows, without loading it."""

    seconds: float = 0.0
    rows: int = 0


@dataclass
class _KnownRows:
    """The rows of a dataset of `n` items that are known because a sample of them was encoded before. `places`
    (m,) are their numbers, `vectors` has their rows (m, d) for each output."""

    n: int
    places: np.ndarray
    vectors: dict[str, np.ndarray]

    def rest(self, dataset: Dataset) -> Dataset:
        """The dataset of the items that are not known."""
        if not len(self.places):
            return dataset
        return dataset.take(np.delete(np.arange(self.n), self.places))

    def joined(self, others: dict[str, np.ndarray], encoder: Encoder) -> dict[str, np.ndarray]:
        """The rows of all items, by those of the others."""
        if not len(self.places):
            return others
        wholes = {}
        for output, rows in others.items():
            known = self.vectors[output]
            if known.shape[1] != rows.shape[1]:
                raise SpaceError(
                    f"{encoder.title}: expected {known.shape[1]:,} dimensions, as in the sample encoded"
                    f" before, got {rows.shape[1]:,}; the model has changed meanwhile; empty the store"
                )
            whole = np.empty((self.n, rows.shape[1]), np.float32)
            whole[self.places] = known
            whole[np.delete(np.arange(self.n), self.places)] = rows
            wholes[output] = whole
        return wholes


def _sample_key(dataset: Dataset, encoder: Encoder, output: str) -> str:
    """The store's key of what tells which rows of a dataset an encoder encoded last, as a sample."""
    whole = dataset.whole or dataset
    return key_of("sample", whole.digest, encoder.only(output), output)


def seconds_per_row(store: Store, sample: Dataset, encoder: Encoder) -> float | None:
    """The seconds per row of the last run that encoded a sample of this dataset; None if there was none."""
    found = store.summary(_sample_key(sample, encoder, encoder.outputs[0]))
    if found is None or not found.metadata["rows"]:
        return None
    return float(found.metadata["seconds"] / found.metadata["rows"])


def _known_rows(dataset: Dataset, encoder: Encoder, store: Store) -> _KnownRows:
    """The rows that a sample of the same dataset has. There are none if the encoder's vectors depend on the
    other items, if the layers' samples differ, or if the sample has all rows."""
    n = len(dataset)
    unknown = _KnownRows(n, np.empty(0, np.int64), {})
    if not encoder.by_item:
        return unknown
    samples = [store.get(_sample_key(dataset, encoder, output)) for output in encoder.outputs]
    rows = [sample.arrays["rows"] for sample in samples if sample]
    if len(rows) < len(samples) or any(not np.array_equal(one, rows[0]) for one in rows):
        return unknown
    entries = [store.get(sample.metadata["sample"]) for sample in samples if sample]
    own = np.arange(n) if dataset.rows is None else dataset.rows
    _, places, of_sample = np.intersect1d(own, rows[0], assume_unique=True, return_indices=True)
    if len(places) == n or not all(entries):
        return unknown
    spaces = [space_of(entry).vectors for entry in entries if entry]
    vectors = {name: one[of_sample] for name, one in zip(encoder.outputs, spaces, strict=True)}
    return _KnownRows(n, places, vectors)


def _block_keys(dataset: Dataset, encoder: Encoder, block_rows: int) -> dict[tuple[int, int], str]:
    n = len(dataset)
    blocks = [(start, min(start + block_rows, n)) for start in range(0, n, block_rows)]
    what = "block"
    if encoder.by_length:
        what = "block by length"
    return {block: key_of(what, dataset.digest, encoder, *block) for block in blocks}


def _blocks(
    dataset: Dataset,
    encoder: Encoder,
    trained: Trained | None,
    store: Store,
    report: Progress,
    block_rows: int,
    pace: _Pace,
) -> dict[str, np.ndarray]:
    """The rows of each output. The encoder, which is slow to load, is prepared only if the store lacks a
    block of rows. `pace` counts the rows that are encoded now."""
    collected = _CollectedRows(encoder, len(dataset), report)
    missing = {}
    items = _Items(dataset, encoder, block_rows)
    for block, key in _block_keys(dataset, encoder, block_rows).items():
        entry = store.get(key)
        if entry is None:
            missing[block] = key
        else:
            rows = {output: entry.arrays[str(i)] for i, output in enumerate(encoder.outputs)}
            collected.add(items.places(*block), rows)
    if not missing:
        return collected.wholes
    if trained is None:
        encode_batch = encoder.prepare(dataset, collected.report_encoder)
    else:
        encode_batch = encoder.restore(trained, dataset)
    if not missing.items() <= _block_keys(dataset, encoder, block_rows).items():
        raise SpaceError(
            f"{encoder.title}: expected files that stay the same while they are read, got changed ones;"
            " encode again"
        )
    _encode_missing(dataset, encoder, encode_batch, items, missing, store, pace, collected)
    return collected.wholes


class _CollectedRows:
    """The rows (n, d) float32 of each output of an encoder, which are added block by block. Each block is
    reported."""

    def __init__(self, encoder: Encoder, n: int, report: Progress) -> None:
        self.encoder = encoder
        self.n = n
        self.report = report
        self.n_done = 0
        self.wholes: dict[str, np.ndarray] = {}

    def add(self, places: np.ndarray, rows: Mapping[str, np.ndarray]) -> None:
        """Add the rows of each output at these places. Raises a SpaceError for another width than before."""
        title = self.encoder.title
        for output in self.encoder.outputs:
            width = rows[output].shape[1]
            whole = self.wholes.setdefault(output, np.empty((self.n, width), np.float32))
            if whole.shape[1] != width:
                raise SpaceError(
                    f"{title}: expected {whole.shape[1]:,} dimensions, as for the rows before, got"
                    f" {width:,} for rows {places[0] + 1:,} to {places[-1] + 1:,}; the model has changed"
                    " meanwhile; empty the store, or give another address"
                )
            whole[places] = rows[output]
        self.n_done += len(places)
        self.report(self.n_done, self.n, f"{title}: {self.n_done:,} of {self.n:,} rows")

    def report_encoder(self, done: int, total: int, message: str) -> None:
        """Report a message of the encoder, with the count of rows if there are rows already."""
        if self.n_done:
            self.report(self.n_done, self.n, message)
        else:
            self.report(done, total, message)


def _encode_missing(
    dataset: Dataset,
    encoder: Encoder,
    encode_batch: Callable[[Any], dict[str, np.ndarray]],
    items: _Items,
    missing: Mapping[tuple[int, int], str],
    store: Store,
    pace: _Pace,
    collected: _CollectedRows,
) -> None:
    """Encode the blocks that the store lacks. Each is put into the store under its key, and collected."""
    # While one block is encoded, the next one is read. On a GPU, the previous one is also written meanwhile.
    # On a CPU writing takes little time, and a killed run should lose only one block.
    beside = torch_name() != "cpu"
    with ThreadPoolExecutor(1) as reading, ThreadPoolExecutor(1) as writing:
        written = writing.submit(lambda: None)
        read = partial(items.read, encode_batch)
        for block, (places, inputs) in _ahead(missing, read, reading):
            begun = time.perf_counter()
            rows = encode_batch(inputs)
            pace.seconds += time.perf_counter() - begun
            pace.rows += len(places)
            _check(encoder, rows, dataset.ids[places])
            written.result()
            arrays = {str(i): rows[output] for i, output in enumerate(encoder.outputs)}
            written = writing.submit(copy_context().run, store.put, missing[block], arrays)
            if not beside:
                written.result()
            collected.add(places, rows)
        written.result()


def _ahead(
    places: Iterable[T], read: Callable[[T], Any], thread: ThreadPoolExecutor
) -> Iterator[tuple[T, Any]]:
    """Yield each place with the result of `read` for it. The thread reads the next place while the caller
    uses this one."""
    waiting = ((place, thread.submit(read, place)) for place in places)
    for (place, future), _ in pairwise(chain(waiting, [None])):
        yield place, future.result()


class _Block(list):
    """The items of consecutive rows. `first` is the number of the first row."""

    first: int


_WINDOW = 128  # number of blocks whose texts are sorted together by length


class _Items:
    """Reads the items of each block. Usually a block has consecutive rows. For an encoder that pads texts,
    the texts of several blocks are first sorted by length, longest first, so that texts of a block have
    similar lengths and the time left is not underestimated."""

    def __init__(self, dataset: Dataset, encoder: Encoder, block_rows: int) -> None:
        self.dataset = dataset
        self.sorted = encoder.by_length
        self.size = _WINDOW * block_rows
        self.first = -1
        self.texts = []
        self.order = np.empty(0, np.int64)

    def places(self, start: int, stop: int) -> np.ndarray:
        if not self.sorted:
            return np.arange(start, stop)
        first = start // self.size * self.size
        if self.first != first:
            self.texts = self.dataset.items(first, min(first + self.size, len(self.dataset)))
            self.order = np.argsort([-len(text) for text in self.texts], kind="stable")
            self.first = first
        return first + self.order[start - first : stop - first]

    def read(self, encode_batch: EncodeBatch, block: tuple[int, int]) -> tuple[np.ndarray, Any]:
        """Return the row numbers of a block and the input of the encoder. The input is the items, or the
        result of the encoder's function `ahead` for them.
        """
        places = self.places(*block)
        if self.sorted:
            items = [self.texts[row] for row in places - self.first]
        else:
            items = _Block(self.dataset.items(*block))
            items.first = block[0]
        if hasattr(encode_batch, "ahead"):
            items = encode_batch.ahead(items)
        return places, items


def _check(encoder: Encoder, rows: dict[str, np.ndarray], ids: np.ndarray) -> None:
    if set(rows) != set(encoder.outputs):
        raise SpaceError(f"{encoder.title}: expected outputs {quote(encoder.outputs)}, got {quote(rows)}")
    for output, matrix in rows.items():
        if matrix.ndim != 2 or len(matrix) != len(ids):
            raise SpaceError(f"{encoder.title} {output}: expected {len(ids)} rows, got shape {matrix.shape}")
        bad = ids[~np.isfinite(matrix).all(axis=1)]
        if len(bad):
            raise SpaceError(
                f"{encoder.title}: NaN or infinite values for {len(bad)} items, first"
                f" {quote(bad[:3])}; choose another encoder or layer, or leave these items out"
            )


def key_of(what: str, dataset_digest: str, encoder: Encoder, *parts: str | int) -> str:
    """The store's key of a result of an encoder on a dataset. It changes if the encoder or the dataset
    changes."""
    name = ENCODERS.name_of(type(encoder))
    of = []
    if name and ENCODERS[name].plugin:
        of = [ENCODERS[name].plugin]
    return digest_of(what, dataset_digest, encoder.for_key(), encoder.version, encoder.content(), *parts, *of)


def encoding_key(dataset_digest: str, encoder: Encoder, output: str = "") -> str:
    """The store's key of one space. A layer's key is the same, whether it is encoded alone or with other
    layers."""
    return key_of("encoding", dataset_digest, encoder.only(output), output)


def put_encoding(store: Store, key: str, space: LatentSpace, metadata: dict) -> None:
    """Store a space with its vectors, ids, labels, counts, name and digest. `metadata` tell how it was
    made."""
    arrays = {"ids": json_array(list(space.ids))}
    for name, kind in _MARKED.items():
        if isinstance(space.ids, kind):
            arrays[name] = json_array(sorted(space.ids.marks))
    if space.labels is not None:
        arrays["labels"] = json_array(list(space.labels))
    if space.counts is not None:
        arrays["counts"] = space.counts
    shape = space.vectors.shape
    facts = {"name": space.name, "digest": space.digest, **metadata}
    if 4 * math.prod(shape) < MAP_FROM:
        store.put(key, {"vectors": np.asarray(space.vectors), **arrays}, facts)
    else:
        blocks = (space.vectors[rows] for rows in in_blocks(len(space), 4 * space.dimension))
        store.put(key, arrays, facts, (blocks, shape))


def space_of(entry: Entry) -> LatentSpace:
    """The space in an entry that `put_encoding` stored."""
    ids = list_from_json_array(entry.arrays.get("ids"))
    labels = list_from_json_array(entry.arrays.get("labels"))
    vectors = entry.arrays["vectors"]
    counts = entry.arrays.get("counts")
    if isinstance(vectors, np.memmap):
        origin = _KnownDigest(entry.metadata.get("digest"), digest_of_columns((ids, labels, counts)))
        vectors = MappedRows([vectors.view(np.ndarray)], origin)
    for name, kind in _MARKED.items():
        if name in entry.arrays:
            ids = kind.of(ids, list_from_json_array(entry.arrays[name]))
    return LatentSpace(vectors, ids, name=entry.metadata["name"], labels=labels, counts=counts)


@dataclass
class _KnownDigest(Origin):
    """The origin of rows that come from a store entry. It has the digest of the space, which then need not be
    computed again."""

    digest: str | None
    columns: str

    def known_digest(self, columns: str) -> str | None:
        if columns == self.columns:
            return self.digest
        return None


def json_array(value: Any) -> np.ndarray:
    """The JSON of a value as an array of bytes. It serves for ids and labels, which may exceed the 100 MB
    allowed for the metadata of an entry."""
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)


def list_from_json_array(array: np.ndarray | None) -> list[Any] | None:
    """The list that a JSON text, stored as an array of bytes, holds; None without an array."""
    if array is None:
        return None
    value = json.loads(array.tobytes())
    if not isinstance(value, list):
        raise TypeError(f"expected a list, got {type(value).__name__}")
    return value


def put_space(store: Store, space: LatentSpace) -> str:
    """Put a space into the store, where workers find it, and return its key."""
    key = digest_of("space", 2, space.digest, space.name)  # 2: entries of version 2 also hold the counts
    if not store.has(key):
        put_encoding(store, key, space, {})
    return key


def load_encoding(store: Store, key: str) -> LatentSpace:
    """The space that the store keeps under the key of an encoding.

    Raises
    ------
    SpaceError
        The space is not in the store, or was removed from it.
    """
    summary = store.summary(key)
    large = summary is not None and 4 * math.prod(summary.shapes.get("vectors", ())) >= MAP_FROM
    entry = None
    if large:
        entry = store.mapped(key)
    entry = entry or store.get(key)
    if entry is None:
        raise missing_entry(
            store, f"the encoding {key[:8]}…", "none (removed: damaged, or to make room); encode it again"
        )
    try:
        return space_of(entry)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, SpaceError):
            raise
        raise missing_entry(
            store, f"an encoding under the key {key[:8]}…", "another result; encode it again"
        ) from error


def missing_entry(store: Store, expected: str, got: str) -> SpaceError:
    return SpaceError(f"expected {expected} in {store.root}, got {got}")
