"""Encode a dataset into the store, block by block; finished blocks are never computed again. Also the keys
under which the store keeps spaces, and how to read them.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from relcore.base.environment import torch_name
from relcore.base.errors import SpaceError, quote
from relcore.base.libraries import OF_KIND, extra
from relcore.base.names import ENCODERS
from relcore.base.rows import MappedRows, Origin
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import EncodeBatch, Encoder, Trained, TrainedEncoder
from relcore.files.on_disk import MAP_FROM
from relcore.runs.digest import StoreError, digest_of
from relcore.runs.entries import Entry
from relcore.runs.progress import Context, Progress, silent
from relcore.runs.store import Store, in_use
from relcore.spaces import space as spaces
from relcore.spaces.ids import AuditedIds, GuessedIds, digest_of_columns
from relcore.spaces.space import LatentSpace

T = TypeVar("T")

BLOCK_ROWS = 256  # a killed run loses one block, which takes seconds on a CPU
_TEXTS_ON_A_GPU = 4096  # a GPU needs a second for them; writing each takes a tenth
_MARKED = {"confirmed": GuessedIds, "unscored": AuditedIds}


def encoding_job_key(dataset_digest: str, encoder: Encoder) -> str:
    """The key of `encode_job`: the key of its space or, for several outputs, of the list of spaces."""
    if len(encoder.outputs) == 1:
        return encoding_key(dataset_digest, encoder, encoder.outputs[0])
    return key_of("encodings", dataset_digest, encoder)


def stored_encodings(
    store: Store, dataset_digest: str, encoder: Encoder, own: bool = False
) -> dict[str, str] | None:
    """The key of each output when all are in the store, else None; for `own` see `Store.has`."""
    keys = {output: encoding_key(dataset_digest, encoder, output) for output in encoder.outputs}
    if all(store.has(key, own) for key in keys.values()):
        return keys
    if len(keys) > 1:  # a list of spaces of which some are missing would count as complete
        store.remove(encoding_job_key(dataset_digest, encoder))
    return None


def encode(
    dataset: DatasetSpec | Dataset,
    encoder: Encoder,
    store: Store,
    report: Progress | None = None,
    block_rows: int | None = None,
) -> list[LatentSpace]:
    """One space for each output of the encoder: from the store, or computed and stored.

    Each block of rows and trained weights are stored at once; after a kill the same call resumes and gives
    the same bytes. `report` is called as ``report(done, total, message)``.

    Raises
    ------
    SpaceError
        The dataset, the encoder or a model's files do not fit each other.
    StoreError
        No room, no permission, or a disk that fails; results so far are kept.
    """
    with in_use():
        for _ in range(2):  # the second time, an entry was damaged: reading removed it, and it is made again
            keys = _encoded(dataset, encoder, store, report or silent, block_rows)
            entries = [store.get(key) for key in keys.values()]
            if all(entries):
                return [space_of(entry) for entry in entries]
    raise StoreError(f"{store.root}: the encoding was damaged each time it was read back; check the disk")


def trained_weights(
    encoder: TrainedEncoder, dataset: Dataset, store: Store, report: Progress = silent
) -> Trained:
    """The trained weights of an encoder on this dataset: from the store, or trained now and stored."""
    key = key_of("trained", dataset.digest, encoder)
    if (entry := store.get(key)) is not None:
        return Trained(entry.arrays, entry.metadata)
    trained = encoder.train(dataset, report)
    store.put(key, trained.arrays, trained.metadata)
    return trained


def encode_job(
    context: Context, *, dataset: DatasetSpec | Dataset, encoder: Encoder, block_rows: int | None = None
) -> None:
    """`encode` as a job of the JobQueue, under `encoding_job_key`."""
    context.report(0, 1, "reading the dataset")
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
    """The key of each output, all of them in the store."""
    metadata = {"dataset_spec": dataset.to_json()} if isinstance(dataset, DatasetSpec) else {}
    dataset = load_dataset(dataset, store) if isinstance(dataset, DatasetSpec) else dataset
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
        block_rows = block_rows or (_TEXTS_ON_A_GPU if quick else BLOCK_ROWS)
        wholes = _blocks(dataset, encoder, trained, store, report, block_rows)
    metadata |= {"dataset": dataset.name, "dataset_digest": dataset.digest}
    keys = {}
    for output, vectors in wholes.items():
        name = f"{encoder.title} {output}".strip() + f" · {dataset.name}"
        space = LatentSpace(vectors, dataset.ids, name=name, labels=dataset.labels)
        made_by = {"encoder": encoder.only(output).to_record(), "output": output}
        keys[output] = encoding_key(dataset.digest, encoder, output)
        put_encoding(store, keys[output], space, metadata | made_by)
    for key in _block_keys(dataset, encoder, block_rows).values():
        store.remove(key)
    return keys


def _block_keys(dataset: Dataset, encoder: Encoder, block_rows: int) -> dict[tuple[int, int], str]:
    """The store's key of each block of rows; a graph is one block."""
    n = len(dataset)
    size = n if dataset.kind == "graph" else block_rows
    blocks = [(start, min(start + size, n)) for start in range(0, n, size)]
    what = "block by length" if encoder.by_length else "block"
    return {block: key_of(what, dataset.digest, encoder, *block) for block in blocks}


def _blocks(
    dataset: Dataset,
    encoder: Encoder,
    trained: Trained | None,
    store: Store,
    report: Progress,
    block_rows: int,
) -> dict[str, np.ndarray]:
    """The rows of each output; the encoder, slow to load, is prepared if a block is missing."""
    wholes: dict[str, np.ndarray] = {}
    missing, n_done = {}, 0
    items = _Items(dataset, encoder, block_rows)

    def add(places: np.ndarray, rows: Mapping[str, np.ndarray]) -> None:
        nonlocal n_done
        for output in encoder.outputs:
            shape = (len(dataset), rows[output].shape[1])
            wholes.setdefault(output, np.empty(shape, np.float32))[places] = rows[output]
        n_done += len(places)
        report(n_done, len(dataset), f"{encoder.title}: {n_done:,} of {len(dataset):,} rows")

    for block, key in _block_keys(dataset, encoder, block_rows).items():
        entry = store.get(key)
        if entry is None:
            missing[block] = key
        else:
            add(
                items.places(*block),
                {output: entry.arrays[str(i)] for i, output in enumerate(encoder.outputs)},
            )
    if not missing:
        return wholes
    encode_batch = encoder.prepare(dataset, report) if trained is None else encoder.restore(trained, dataset)
    if not missing.items() <= _block_keys(dataset, encoder, block_rows).items():
        raise SpaceError(
            f"{encoder.title}: expected files that stay as they are while they are read, got others;"
            " encode again"
        )
    # Read the next block while one is encoded; on a GPU, also write the last one meanwhile. On a CPU writing
    # takes little time, and a killed run loses only one block.
    beside = torch_name() != "cpu"
    with ThreadPoolExecutor(1) as reading, ThreadPoolExecutor(1) as writing:
        written = writing.submit(lambda: None)
        read = partial(items.read, encode_batch)
        for block, (places, given) in _ahead(missing, read, reading):
            rows = encode_batch(given)
            _check(encoder, rows, dataset.ids[places])
            written.result()
            arrays = {str(i): rows[output] for i, output in enumerate(encoder.outputs)}
            written = writing.submit(copy_context().run, store.put, missing[block], arrays)
            if not beside:
                written.result()
            add(places, rows)
        written.result()
    return wholes


def _ahead(
    places: Iterable[T], read: Callable[[T], Any], thread: ThreadPoolExecutor
) -> Iterator[tuple[T, Any]]:
    """Each place with the result of `read` for it; the thread reads the next one while this one is used."""
    waiting: deque[tuple[T, Future[Any]]] = deque()
    for place in places:
        waiting.append((place, thread.submit(read, place)))
        if len(waiting) > 1:
            before, future = waiting.popleft()
            yield before, future.result()
    for place, future in waiting:
        yield place, future.result()


_WINDOW = 128  # blocks whose texts are sorted by length


class _Items:
    """The items of blocks. Blocks are consecutive; for an encoder that pads texts they are cut from a window
    sorted by length, the longest first, so that the time left is not underestimated.
    """

    def __init__(self, dataset: Dataset, encoder: Encoder, block_rows: int) -> None:
        self.dataset, self.sorted, self.size = dataset, encoder.by_length, _WINDOW * block_rows
        self.first, self.texts, self.order = -1, [], np.empty(0, np.int64)

    def places(self, start: int, stop: int) -> np.ndarray:
        """The row numbers (m,) of a block."""
        if not self.sorted:
            return np.arange(start, stop)
        first = start // self.size * self.size
        if self.first != first:
            self.texts = self.dataset.items(first, min(first + self.size, len(self.dataset)))
            self.order = np.argsort([-len(text) for text in self.texts], kind="stable")
            self.first = first
        return first + self.order[start - first : stop - first]

    def read(self, encode_batch: EncodeBatch, block: tuple[int, int]) -> tuple[np.ndarray, Any]:
        """The row numbers of a block, and the encoder's input: the items, or what it prepared from them
        ahead.
        """
        places = self.places(*block)
        items = (
            [self.texts[row] for row in places - self.first] if self.sorted else self.dataset.items(*block)
        )
        return places, encode_batch.ahead(items) if hasattr(encode_batch, "ahead") else items


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
    """The store's key of a result of an encoder on a dataset; it changes if either changes."""
    name = ENCODERS.name_of(type(encoder))
    of = [ENCODERS[name].plugin] if name and ENCODERS[name].plugin else []
    return digest_of(what, dataset_digest, encoder, encoder.version, encoder.content(), *parts, *of)


def encoding_key(dataset_digest: str, encoder: Encoder, output: str = "") -> str:
    """The store's key of one space; a layer has the same key whether encoded alone or with others."""
    return key_of("encoding", dataset_digest, encoder.only(output), output)


def put_encoding(store: Store, key: str, space: LatentSpace, metadata: dict) -> None:
    """Store a space: vectors, ids, labels, counts, name, digest, and `metadata` on how it was made."""
    arrays = {"ids": packed(list(space.ids))}
    for name, kind in _MARKED.items():
        if isinstance(space.ids, kind):
            arrays[name] = packed(sorted(space.ids.marks))
    if space.labels is not None:
        arrays["labels"] = packed(list(space.labels))
    if space.counts is not None:
        arrays["counts"] = space.counts
    shape, facts = space.vectors.shape, {"name": space.name, "digest": space.digest, **metadata}
    if 4 * math.prod(shape) < MAP_FROM:
        store.put(key, {"vectors": np.asarray(space.vectors), **arrays}, facts)
    else:
        blocks = (
            space.vectors[start : start + spaces.BLOCK_ROWS]
            for start in range(0, len(space), spaces.BLOCK_ROWS)
        )
        store.put(key, arrays, facts, (blocks, shape))


def space_of(entry: Entry) -> LatentSpace:
    """The space that `put_encoding` stored."""
    ids, labels = (unpacked(entry.arrays.get(name)) for name in ("ids", "labels"))
    vectors, counts = entry.arrays["vectors"], entry.arrays.get("counts")
    if isinstance(vectors, np.memmap):
        origin = _KnownDigest(entry.metadata.get("digest"), digest_of_columns((ids, labels, counts)))
        vectors = MappedRows([vectors.view(np.ndarray)], origin)
    for name, kind in _MARKED.items():
        if name in entry.arrays:
            ids = kind.of(ids, unpacked(entry.arrays[name]))
    return LatentSpace(vectors, ids, name=entry.metadata["name"], labels=labels, counts=counts)


@dataclass
class _KnownDigest(Origin):
    """Rows of a store entry that knows the digest of the whole space with these columns."""

    digest: str | None
    columns: str

    def known_digest(self, columns: str) -> str | None:
        return self.digest if columns == self.columns else None


def packed(value: Any) -> np.ndarray:
    """JSON as an array: metadata are limited to 100 MB, which the ids of a large dataset would exceed."""
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)


def unpacked(array: np.ndarray | None) -> list[Any] | None:
    value = None if array is None else json.loads(array.tobytes())
    if array is not None and not isinstance(value, list):
        raise TypeError(f"expected a list, got {type(value).__name__}")
    return value
