"""The catalogue of the spaces on this machine and on the network. `SpaceSpec`, a *spec* for short, is the
reference by which a space is named and loaded."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from relcore.base import access, records
from relcore.base.environment import torch_name
from relcore.base.errors import OF_KIND, SpaceError, extra, is_among, need_one_of, quote
from relcore.base.names import ENCODERS
from relcore.base.rows import MappedRows, Origin
from relcore.encoders import sentences
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import (
    Dataset,
    DatasetOptions,
    DatasetSpec,
    EncodeBatch,
    Encoder,
    Trained,
    TrainedEncoder,
    dataset_place,
    encoder_from_json,
)
from relcore.encoders.sentences import BUNDLED, load_words
from relcore.files.formats import Description, in_blocks, suffix_of
from relcore.files.reading import (
    FILE_OPTIONS,
    MAP_FROM,
    descriptions_of,
    files_in,
    load_space,
    parts_of,
    shape_of,
    vector_places,
)
from relcore.runs.entries import Entry, StoreError, Summary, digest_of
from relcore.runs.store import Context, Progress, Store, in_use, silent
from relcore.spaces.space import (
    AuditedIds,
    GuessedIds,
    LatentSpace,
    RowNumbers,
    digest_of_columns,
    mark_unscored,
)
from relcore.stores.index import StorePlace, load_rows

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
) -> list[LatentSpace]:
    """One space for each output of the encoder. It is read from the store, or computed and stored.

    Trained weights and each block of rows are stored as soon as they are computed. If the process is killed,
    the same call resumes and gives the same bytes. `report` is called as ``report(done, total, message)``.

    Raises
    ------
    SpaceError
        The encoder cannot encode this dataset, or the files of its model are unsuitable.
    StoreError
        The disk is full or fails, or this account may not write to it. Results so far are kept.
    """
    with in_use():
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
    context: Context, *, dataset: DatasetSpec | Dataset, encoder: Encoder, block_rows: int | None = None
) -> None:
    """Run `encode` as a job of the JobQueue, with the key `encoding_job_key`."""
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
    """Encode the dataset unless the store has all outputs. Return the key of each output in the store."""
    metadata = {}
    if isinstance(dataset, DatasetSpec):
        metadata = {"dataset_spec": dataset.to_json()}
    if isinstance(dataset, DatasetSpec):
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
) -> dict[str, np.ndarray]:
    """The rows of each output. The encoder, which is slow to load, is prepared only if the store lacks a
    block of rows."""
    wholes: dict[str, np.ndarray] = {}
    missing = {}
    n_done = 0
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
    if trained is None:
        encode_batch = encoder.prepare(dataset, report)
    else:
        encode_batch = encoder.restore(trained, dataset)
    if not missing.items() <= _block_keys(dataset, encoder, block_rows).items():
        raise SpaceError(
            f"{encoder.title}: expected files that stay the same while they are read, got changed ones;"
            " encode again"
        )
    # While one block is encoded, the next one is read. On a GPU, the previous one is also written meanwhile.
    # On a CPU writing takes little time, and a killed run should lose only one block.
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
    """Yield each place with the result of `read` for it. The thread reads the next place while the caller
    uses this one."""
    waiting = ((place, thread.submit(read, place)) for place in places)
    for (place, future), _ in pairwise(chain(waiting, [None])):
        yield place, future.result()


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
            items = self.dataset.items(*block)
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
    """The store's key of a result of an encoder on a dataset. It changes if the encoder or the dataset
    changes."""
    name = ENCODERS.name_of(type(encoder))
    of = []
    if name and ENCODERS[name].plugin:
        of = [ENCODERS[name].plugin]
    return digest_of(what, dataset_digest, encoder, encoder.version, encoder.content(), *parts, *of)


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
    ids, labels = (list_from_json_array(entry.arrays.get(name)) for name in ("ids", "labels"))
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
    if array is None:
        value = None
    else:
        value = json.loads(array.tobytes())
    if array is not None and not isinstance(value, list):
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
    entry = (store.mapped(key) if large else None) or store.get(key)
    if entry is None:
        raise _missing_entry(
            store, f"the encoding {key[:8]}…", "none (removed: damaged, or to make room); encode it again"
        )
    try:
        return space_of(entry)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, SpaceError):
            raise
        raise _missing_entry(
            store, f"an encoding under the key {key[:8]}…", "another result; encode it again"
        ) from error


def _missing_entry(store: Store, expected: str, got: str) -> SpaceError:
    return SpaceError(f"expected {expected} in {store.root}, got {got}")


def held_out_ids(
    specs: Sequence[SpaceSpec], spaces: Sequence[LatentSpace], ids: Sequence[str] | None = None
) -> tuple[str, ...]:
    """The ids of the rows whose labels no encoder of these spaces saw in training. With `ids`, only these ids
    are considered, in their order.

    () if no encoder saw labels, or if every row was seen by some encoder.
    """
    unseen: dict[str, None] | None = None
    for spec, space in zip(specs, spaces, strict=True):
        encoder = spec.rows_of.encoder
        seen = ()
        if encoder:
            seen = encoder.seen_rows(space)
        if len(seen):
            others = dict.fromkeys(np.delete(space.ids, seen).tolist())
            if unseen is None:
                unseen = others
            else:
                unseen = {item: None for item in unseen if item in others}
    if not unseen:
        return ()
    if ids is None:
        return tuple(unseen)
    return tuple(item for item in ids if item in unseen)


# Renamed spaces. Their ids are row numbers, or the ids of the partners of their rows in another space. Thus
# spaces without shared ids can be paired.


def put_pairing(store: Store, pairs: Sequence[tuple[str, str]], confirmed: Sequence[str] = ()) -> str:
    """Store guessed pairs (new id, previous id) of rows that get new ids, and return the key of the pairs.

    Only pairs whose new ids are in `confirmed` are scored.
    """
    pairs = [tuple(pair) for pair in pairs]
    key = digest_of("pairing", pairs, *([sorted(confirmed)] if len(confirmed) else []))
    if not store.has(key):
        arrays = {"pairs": json_array(pairs), "confirmed": json_array(sorted(confirmed))}
        store.put(key, arrays, {"n_pairs": len(pairs)})
    return key


def _with_new_ids(space: LatentSpace, store: Store, key: str, name: str) -> LatentSpace:
    """Give new ids to those rows of the space that the stored pairs name, and return these rows in the order
    of the pairs. Vectors, labels and counts are unchanged.

    Raises
    ------
    SpaceError
        There are no pairs, or the store lacks them. The space lacks an id, or the new ids are not distinct.
    """
    entry = store.get(key)
    if entry is None or "pairs" not in entry.arrays:
        raise _missing_entry(
            store,
            f"the links {key[:8]}…",
            "none: recipes and scripts do not contain links. Run this where the links were found, or link"
            " again here (Link reads a links file as known pairs), use the new links, and export again",
        )
    pairs = list_from_json_array(entry.arrays["pairs"])
    if not pairs:
        raise SpaceError(f"{name}: expected one pair of ids or more, got none; link the spaces first")
    kept = space.take(space.rows([old for _, old in pairs]), name)
    confirmed = list_from_json_array(entry.arrays.get("confirmed"))
    ids = GuessedIds.of([new for new, _ in pairs], confirmed or ())
    ids.unlinked = len(space) - len(kept)
    return kept.with_columns(ids=ids)


def _with_row_numbers(space: LatentSpace, name: str) -> LatentSpace:
    """The space with its row numbers as ids. The previous ids become the payload."""
    numbers = RowNumbers(len(space))
    before = space.ids.tolist()
    payload = before
    if before == list(numbers):
        payload = None
    return space.with_columns(ids=numbers, name=name, payload=payload)


# Samples of folders of shards. `relcore.sharded.space` draws a sample and stores it, and a spec names it by
# its key.


def is_address(place: str) -> bool:
    """Whether the place of a folder is an address, which fsspec opens, and not a path on this machine."""
    return "://" in place


def folder_stamp(place: str) -> str:
    """A text that changes when a file of the folder is written, added or removed. "" for an address, because
    checking that would need the network.

    Raises
    ------
    SpaceError
        The folder cannot be read.
    """
    if is_address(place):
        return ""
    try:
        states = [(path, path.stat()) for path in files_in(access.readable_path(place))]
    except OSError as error:
        raise SpaceError(
            f"{place!r:.200}: expected a folder of shards, got {error.strerror}; check the spelling"
        ) from error
    return digest_of("folder", [(path.name, about.st_mtime_ns, about.st_size) for path, about in states])


def _sample(store: Store, place: str, key: str) -> LatentSpace:
    """The sample of rows that the store has under this key. It must have been drawn from the folder at this
    place.

    Raises
    ------
    SpaceError
        The store lacks the sample, the sample is of another folder, or the folder has changed since.
    """
    again = f"draw it again in Data, or by relscope app {place}"
    sample = store.summary(key)
    if sample is None:
        raise _missing_entry(store, f"a sample of {place!r:.200}", f"none (removed to make room); {again}")
    drawn_from = sample.metadata.get("sample of")
    # Check the entry, because a session file can name any key.
    if drawn_from is None or (access.is_shared() and drawn_from != place):
        raise _missing_entry(
            store, f"a sample of {place!r:.200} under the key {key[:8]}…", f"another result; {again}"
        )
    if folder_stamp(drawn_from) != sample.metadata["stamp"]:
        raise SpaceError(
            f"{drawn_from!r:.200}: expected the shards that its sample was drawn from, got others; {again}"
        )
    return load_encoding(store, key)


_MOST_FILES = 500
_DESCRIPTIONS = {
    "word2vec-novels": "Word2Vec skip-gram, 30 million words of novels, news and speeches",
    "fasttext-novels": "FastText skip-gram, trained separately on the same corpus",
}


@dataclass(frozen=True)
class CatalogEntry:
    """A space in the catalogue. `n` and `dimension` are None if they are unknown until the file is read."""

    name: str
    kind: str
    spec: SpaceSpec
    where: Literal["here", "needs the network"]
    size_bytes: int
    n: int | None
    dimension: int | None
    description: str


def encoding_specs(
    store: Store, dataset: DatasetSpec, encoder: Encoder, keys: Mapping[str, str]
) -> list[SpaceSpec]:
    """The specs of the outputs of an encoder, without those that the store no longer has. `keys` holds the
    key of each output."""
    return [
        encoding_spec(dataset, encoder, output, key, summary.metadata["name"])
        for output, key in keys.items()
        if (summary := store.summary(key)) is not None
    ]


def load(spec: SpaceSpec, store: Store | None = None, again: bool = False) -> LatentSpace:
    """The space that the spec names. Encodings are read from `store`, by default the environment's store.
    With `again` (for recipes), an encoding that the store lacks is computed again, even if its rows were
    renamed. Raises the errors of `need_access`, `load_words`, `load_space` and `load_encoding`."""
    if removed := listed(spec, UNSCORED):
        space = load(with_unscored(spec, ()), store, again)
        return space.with_columns(ids=mark_unscored(space.ids, removed))
    if kept := listed(spec, KEPT):
        return chosen_rows(load(with_kept(spec, ()), store, again), kept)
    if again and spec.source == "encoding":
        encode_again(spec, store or Store())
    options = dict(spec.options)
    if spec.source == "file":
        path = access.readable_path(spec.name)
        if "ignore" in options:
            options["ignore"] = listed(spec, "ignore")
        if "metadata" in options:
            options["metadata"] = access.readable_path(options["metadata"])
        return load_space(path, limit=spec.limit, store=store, **options)
    need_access(spec, store)
    if spec.source == "index":
        return load_rows(place_of(spec), spec.limit)
    if spec.source in ("bundled", "gensim-data"):
        if spec.source == "bundled":
            known = BUNDLED
        else:
            known = sentences.MODELS
        need_one_of(spec.source, spec.name, known)
        return load_words(spec.name, limit=spec.limit)
    store = store or Store()
    key = options["key"]
    if spec.source == "encoding":
        return load_encoding(store, key)
    if spec.source == "sample":
        return _sample(store, spec.name, key)
    base = load(base_of(spec), store, again)
    if key == BY_ROW:
        return _with_row_numbers(base, spec.name)
    return _with_new_ids(base, store, key, spec.name)


def files_of(spec: SpaceSpec) -> tuple[str, ...]:
    """The paths in the spec of a file or a sample: that of the vectors and, if given, that of their
    metadata."""
    on_disk = spec.source == "file" or (spec.source == "sample" and not is_address(spec.name))
    if on_disk:
        return tuple(filter(None, (spec.name, spec.option("metadata"))))
    return ()


UNSCORED = "unscored"  # option of every spec: the ids of rows that an audit excluded from scores


def with_unscored(spec: SpaceSpec, ids: Iterable[str]) -> SpaceSpec:
    """The spec of the same space in which the rows with these ids, and no others, are not scored."""
    return _with_list(spec, UNSCORED, sorted(set(ids)))


KEPT = "kept"  # option of every spec: the ids of the space's rows, if the user selected only some
MOST_KEPT = 20_000


def with_kept(spec: SpaceSpec, ids: Sequence[str]) -> SpaceSpec:
    """The spec of only the rows with these ids. If there are no ids, all rows. Raises a SpaceError for more
    than `MOST_KEPT` ids."""
    if len(ids) > MOST_KEPT:
        raise SpaceError(
            f"kept: expected at most {MOST_KEPT:,} rows, got {len(ids):,}; download them, and open the file"
        )
    return _with_list(spec, KEPT, list(ids))


def _with_list(spec: SpaceSpec, option: str, ids: list[str]) -> SpaceSpec:
    options = {name: value for name, value in spec.options if name != option}
    given = {}
    if ids:
        given = {option: json.dumps(ids, ensure_ascii=False)}
    return replace(spec, options=tuple((options | given).items()))


def chosen_rows(space: LatentSpace, ids: Sequence[str]) -> LatentSpace:
    """The space with only the rows of these ids. Its name says how many they are."""
    return space.take(space.rows(ids), f"{space.name}, {len(ids):,} rows")


def listed(spec: SpaceSpec, option: str) -> tuple[str, ...]:
    """The ids in the option `KEPT` or `UNSCORED` of a spec, or the columns in its option "ignore"."""
    expected = f"{option}: expected a list of {'columns' if option == 'ignore' else 'ids'}"
    names = []
    if text := spec.option(option):
        names = json_of(text, expected)
    if not isinstance(names, list) or {*map(type, names)} - {str}:
        raise SpaceError(f"{expected} as JSON, got {text!r:.80}")
    return tuple(names)


def need_access(spec: SpaceSpec, store: Store | None = None) -> None:
    """Raise a SpaceError unless the current session may open the space. Call this before any cache is used.

    The session must be allowed to read a file (see `access.readable_path`). In a shared app, an encoding in
    the store must have been made by this session, or from a dataset and an encoder that this session may
    read. A key in a session file is not enough.
    """
    if spec.source == "sample" and is_address(spec.name):
        access.need_own_machine(spec.name)
    elif spec.source in ("file", "sample"):
        for path in files_of(spec):
            access.readable_path(path)
    elif spec.source == "index":
        place_of(spec).need_access()
    elif spec.source == "renamed":
        need_access(base_of(spec), store)
    elif spec.source == "encoding" and not access.put_by_session(spec.option("key")):
        summary = (store or Store()).summary(spec.option("key"))
        if summary is not None and not _may_make(summary):
            raise SpaceError(
                f"{spec.name!r:.80} is not open to this session: this app is shared, and the encoding was"
                " made of data that this session may not read; encode your own copy"
            )


def _may_make(summary: Summary) -> bool:
    """Whether the current session may read everything from which a store entry was made."""
    try:
        spec = stored_encoding_spec(summary)
        if spec is None:
            return False
        dataset_place(spec.dataset)
        spec.encoder.content()
    except (SpaceError, KeyError):  # KeyError: the entry is no encoding
        return False
    return True


def available(data_folder: str | Path | None = None) -> list[CatalogEntry]:
    """The catalogue: bundled spaces, files in the data folder (by default RELSCOPE_DATA), and models of
    gensim-data. It is made without the network.

    Only names and headers of files are read, two folders deep, for at most 500 files. Texts and tables
    without vectors are left out.
    """
    if data_folder:
        folder = access.readable_path(data_folder)
    else:
        folder = access.data_folder()
    entries = [
        _entry(name, SpaceSpec("bundled", name), path, shape_of(path), _DESCRIPTIONS[name], "words")
        for name, path in BUNDLED.items()
        if path.is_file()
    ]
    entries += _files(folder) if folder else ()
    for name, facts in sentences.MODELS.items():
        where = "needs the network"
        if sentences.downloaded_file(name):
            where = "here"
        entries.append(CatalogEntry(name, "words", SpaceSpec("gensim-data", name), where, *facts))
    return entries


def _entry(
    name: str, spec: SpaceSpec, path: Path, shape: tuple[Any, Any], description: str, kind: str = "file"
) -> CatalogEntry:
    size = sum(part.stat().st_size for part in (parts_of(path) if path.is_dir() else [path]))
    return CatalogEntry(name, kind, spec, "here", size, *shape, description)


def _files(folder: Path) -> Iterator[CatalogEntry]:
    paths = list(islice(vector_places(folder), _MOST_FILES))
    descriptions = descriptions_of(paths)
    for path in paths:
        name = str(path.relative_to(folder))
        spec = SpaceSpec("file", str(path))
        description = descriptions.get(path, Description())
        kind = f"{suffix_of(path)} file"
        if path.is_dir():
            shape = shape_of(path)
            kind = "folder of a dataset"
        else:  # an array, or a file with several matrices and no default
            shape = description.shape or ((None, None) if len(description.matrices) > 1 else None)
        if shape is not None:
            yield _entry(name, spec, path, shape, kind)


_OPTIONS = {
    "bundled": (),
    "file": FILE_OPTIONS,
    "index": ("kind", "table"),
    "gensim-data": (),
    "encoding": ("dataset", "encoder", "key", "output"),
    "renamed": ("base", "key"),
    "sample": ("key", "rows", "of"),
}


BY_ROW = "rows"  # the key of a renamed space without a pairing, whose ids are row numbers


@dataclass(frozen=True)
class SpaceSpec:
    """A reference to a space. It can be hashed, be part of a cache key, and be converted to JSON and back.

    Attributes
    ----------
    source : "bundled", "file", "index", "gensim-data", "encoding", "renamed" or "sample"
    name : str
        The name of the space, or the path of a file or an index. An address is refused, because opening a
        session or a recipe must not connect to other machines.
    limit : int, optional
        The number of rows, counted from the first; by default all.
    options : tuple of (key, value)
        Keys and values are strings. For a file: further arguments of `load_space`, with `ignore` as a JSON
        list. For an index: its kind in `relcore.base.names.INDEXES`, and its table or collection. For an
        encoding: the dataset and the encoder as JSON, the output, and the key in the store (see
        `encoding_spec`). For a renamed space: the spec of its base as JSON, and the key of the pairing in the
        store or "rows" (see `renamed_spec` and `numbered_spec`). For a sample of a folder of shards, whose
        name is the folder's path or address: the key in the store, the number of rows in the sample, and the
        number of rows in the folder. For any space: the options that `with_unscored` and `with_kept` add.

    Examples
    --------
    >>> from relcore import SpaceSpec
    >>> SpaceSpec("bundled", "word2vec-novels", limit=100).load()
    LatentSpace('word2vec-novels', n=100, d=100, digest=991d09cd)
    """

    source: str
    name: str
    limit: int | None = None
    options: DatasetOptions = DatasetOptions()

    def __post_init__(self) -> None:
        try:
            options = DatasetOptions(self.options)
        except (TypeError, ValueError):
            raise SpaceError(f"options: expected names with values, got {self.options!r:.80}") from None
        object.__setattr__(self, "options", options)
        if not is_among(self.source, _OPTIONS):
            raise SpaceError(f"source: expected one of {quote(_OPTIONS)}, got {self.source!r:.80}")
        if not isinstance(self.name, str) or not self.name:
            raise SpaceError(
                f"name: expected the name of a space or the path of a file, got {self.name!r:.80}"
            )
        if self.limit is not None and (type(self.limit) is not int or self.limit < 1):
            raise SpaceError(
                f"limit: expected a whole number of rows, at least 1, or none, got {self.limit!r:.80}"
            )
        known = _OPTIONS[self.source]
        given = dict(self.options)
        whole = known if self.source != "file" else ()
        if (
            not given.keys() <= {*known, UNSCORED, KEPT}
            or set(map(type, given.values())) - {str}
            or not given.keys() >= set(whole)
        ):
            expected = "none"
            if known:
                expected = f"{'all' if whole else 'some'} of {quote(known)}, each with a string"
            raise SpaceError(f"options: expected {expected} for {self.source!r}, got {quote(given)}")
        need_one_of("ids", given.get("ids", ""), ("", "rows"))
        if self.source == "index" and place_of(self).address:
            raise SpaceError(
                f"{self.name!r:.80}: expected a file path, got an address; a space must be a local file, so"
                " copy the rows first: relscope adapt none SOURCE FILE.parquet"
            )

    def option(self, name: str) -> str:
        """The value of an option; "" if it is not set."""
        return dict(self.options).get(name, "")

    def load(self) -> LatentSpace:
        """The space that the spec names. Raises the errors of the function `load`."""
        return load(self)

    @property
    def dataset(self) -> DatasetSpec | None:
        """The dataset from which an encoding was made; None for a space that is no encoding."""
        if self.source == "encoding":
            return DatasetSpec.from_json(json_of(self.option("dataset")))
        return None

    @property
    def encoder(self) -> Encoder | None:
        """The encoder that made an encoding; None for a space that is no encoding."""
        if self.source == "encoding":
            return encoder_from_json(json_of(self.option("encoder")))
        return None

    @property
    def rows_of(self) -> SpaceSpec:
        """The spec of a space with the same rows in the same order. For a space that was renamed to row
        numbers, its base; otherwise the spec itself."""
        if self.source == "renamed" and self.option("key") == BY_ROW:
            return base_of(self)
        return self

    def to_json(self) -> dict[str, Any]:
        return records.to_json(self)

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> SpaceSpec:
        """The spec that a dict describes. Raises a SpaceError for unknown keys."""
        return records.from_json(cls, described, "space")


def encoding_spec(dataset: DatasetSpec, encoder: Encoder, output: str, key: str, name: str) -> SpaceSpec:
    """The spec of an encoding. It holds everything that is needed to compute the encoding again if the store
    lacks it."""
    made_of = (
        ("dataset", json.dumps(dataset.to_json(), sort_keys=True)),
        ("encoder", json.dumps(encoder.only(output).to_record(), sort_keys=True)),
    )
    return SpaceSpec("encoding", name, options=(*made_of, ("key", key), ("output", output)))


def stored_encoding_spec(summary: Summary) -> SpaceSpec | None:
    """The spec of an encoding in the store; None if a script made the encoding from its own dataset."""
    facts = summary.metadata
    if "dataset_spec" not in facts:
        return None
    dataset = DatasetSpec.from_json(facts["dataset_spec"])
    encoder = encoder_from_json(facts["encoder"])
    return encoding_spec(dataset, encoder, facts["output"], summary.key, facts["name"])


def renamed_spec(base: SpaceSpec, key: str, name: str) -> SpaceSpec:
    """The spec of a space whose rows have new ids, which `put_pairing` stored under `key`."""
    return SpaceSpec(
        "renamed", name, options=(("base", json.dumps(base.to_json(), sort_keys=True)), ("key", key))
    )


def numbered_spec(spec: SpaceSpec) -> SpaceSpec:
    """The spec of the same rows with row numbers as ids, so that two such spaces are paired by row order."""
    if spec.source == "file":
        return replace(spec, options=tuple((dict(with_unscored(spec, ()).options) | {"ids": "rows"}).items()))
    if spec.source == "sample":
        raise SpaceError(
            f"{spec.name!r:.80}: expected all rows to pair by row order, got a sample; write ids in the"
            " shards"
        )
    if spec.rows_of != spec:
        return spec
    return renamed_spec(spec, BY_ROW, f"{spec.name} · by row")


def space_name(spec: SpaceSpec) -> str:
    """A short name of the space: for a file, the last part of its path without the suffix; for an index, its
    collection."""
    if spec.source == "encoding":
        return spec.name
    if spec.source == "index":
        return spec.option("table") or Path(spec.name).stem
    name = spec.name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    suffix = None
    if spec.source == "file":
        suffix = suffix_of(Path(name))
    return name[: -len(suffix)] if suffix else name


def is_linked(spec: SpaceSpec, source: SpaceSpec, target: SpaceSpec) -> bool:
    """Whether a space is the source or the target after a link gave it new ids."""
    renamed = spec.source == "renamed" and spec.option("key") != BY_ROW
    return renamed and base_of(spec) in (source, target)


def base_of(spec: SpaceSpec) -> SpaceSpec:
    return SpaceSpec.from_json(json_of(spec.option("base"), "renamed space: expected its base"))


def json_of(text: str, expected: str = "encoding: expected a dataset and an encoder") -> Any:
    try:
        return records.parse(text, "")
    except SpaceError as error:
        raise SpaceError(f"{expected} as JSON, got {text!r:.80}") from error


def place_of(spec: SpaceSpec) -> StorePlace:
    return StorePlace(spec.option("kind"), spec.name, spec.option("table"))


def encode_again(spec: SpaceSpec, store: Store) -> None:
    """Compute the encoding that a spec names, if the store lacks it.

    Raises a SpaceError if the dataset or the encoder's files have changed.
    """
    if store.has(spec.option("key")):
        return
    dataset = load_dataset(spec.dataset, store)
    if encoding_key(dataset.digest, spec.encoder, spec.option("output")) != spec.option("key"):
        raise SpaceError(
            f"{spec.name!r}: its dataset or the files of its encoder have changed since it was encoded;"
            " encode the current data in Data, and choose that encoding"
        )
    encode(dataset, spec.encoder, store)
