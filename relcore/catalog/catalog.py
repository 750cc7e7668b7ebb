"""The catalogue of spaces on this machine and on the network, and the small frozen specs that name a
space.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from relcore.base import access, records
from relcore.base.environment import torch_name
from relcore.base.errors import OF_KIND, SpaceError, extra, need_one_of, quote
from relcore.base.names import ENCODERS
from relcore.base.rows import MappedRows, Origin
from relcore.encoders import words
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
from relcore.encoders.words import BUNDLED, load_words
from relcore.files.formats import Description, suffix_of
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
from relcore.spaces import space as spaces
from relcore.spaces.ids import AuditedIds, GuessedIds, RowNumbers, digest_of_columns, mark_unscored
from relcore.spaces.space import LatentSpace
from relcore.stores.index import StorePlace, load_rows

# Encodings: spaces that an encoder makes of a dataset, computed in blocks and stored.


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
    """The store's key of each block of rows."""
    n = len(dataset)
    blocks = [(start, min(start + block_rows, n)) for start in range(0, n, block_rows)]
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
    arrays = {"ids": json_array(list(space.ids))}
    for name, kind in _MARKED.items():
        if isinstance(space.ids, kind):
            arrays[name] = json_array(sorted(space.ids.marks))
    if space.labels is not None:
        arrays["labels"] = json_array(list(space.labels))
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
    ids, labels = (list_from_json_array(entry.arrays.get(name)) for name in ("ids", "labels"))
    vectors, counts = entry.arrays["vectors"], entry.arrays.get("counts")
    if isinstance(vectors, np.memmap):
        origin = _KnownDigest(entry.metadata.get("digest"), digest_of_columns((ids, labels, counts)))
        vectors = MappedRows([vectors.view(np.ndarray)], origin)
    for name, kind in _MARKED.items():
        if name in entry.arrays:
            ids = kind.of(ids, list_from_json_array(entry.arrays[name]))
    return LatentSpace(vectors, ids, name=entry.metadata["name"], labels=labels, counts=counts)


@dataclass
class _KnownDigest(Origin):
    """Rows of a store entry that knows the digest of the whole space with these columns."""

    digest: str | None
    columns: str

    def known_digest(self, columns: str) -> str | None:
        return self.digest if columns == self.columns else None


def json_array(value: Any) -> np.ndarray:
    """JSON as an array: metadata are limited to 100 MB, which the ids of a large dataset would exceed."""
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)


def list_from_json_array(array: np.ndarray | None) -> list[Any] | None:
    value = None if array is None else json.loads(array.tobytes())
    if array is not None and not isinstance(value, list):
        raise TypeError(f"expected a list, got {type(value).__name__}")
    return value


# The catalogue.


def put_space(store: Store, space: LatentSpace) -> str:
    """Put a space where workers find it; returns its key."""
    key = digest_of("space", 2, space.digest, space.name)  # 2: also holds the counts
    if not store.has(key):
        put_encoding(store, key, space, {})
    return key


def load_encoding(store: Store, key: str) -> LatentSpace:
    """The space under an encoding's key; the entry's metadata say how it was made and trained.

    Raises
    ------
    SpaceError
        It is not in the store (any more).
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
    """Ids of the rows whose labels no encoder of these spaces saw in training; with `ids`, only those, in
    their order.

    () if no encoder saw labels, or if each row was seen by one.
    """
    unseen: dict[str, None] | None = None
    for spec, space in zip(specs, spaces, strict=True):
        encoder = spec.rows_of.encoder
        seen = encoder.seen_rows(space) if encoder else ()
        if len(seen):
            others = dict.fromkeys(np.delete(space.ids, seen).tolist())
            unseen = others if unseen is None else {item: None for item in unseen if item in others}
    if not unseen:
        return ()
    return tuple(unseen) if ids is None else tuple(item for item in ids if item in unseen)


# Renamed spaces: rows take the ids of their partners in another space, or their numbers, so that spaces
# without shared ids can be paired.


def put_pairing(store: Store, pairs: Sequence[tuple[str, str]], confirmed: Sequence[str] = ()) -> str:
    """Keep guessed pairs (new id, id of the renamed space) in the store; returns their key.

    Only pairs whose new ids are `confirmed` are scored.
    """
    pairs = [tuple(pair) for pair in pairs]
    key = digest_of("pairing", pairs, *([sorted(confirmed)] if len(confirmed) else []))
    if not store.has(key):
        arrays = {"pairs": json_array(pairs), "confirmed": json_array(sorted(confirmed))}
        store.put(key, arrays, {"n_pairs": len(pairs)})
    return key


def _with_new_ids(space: LatentSpace, store: Store, key: str, name: str) -> LatentSpace:
    """The paired rows of the space under their new ids, in the order of the pairs; vectors, labels and counts
    stay.

    Raises
    ------
    SpaceError
        The pairs are not in the store (any more), or there are none; ids that the space lacks; new ids that
        are not distinct.
    """
    entry = store.get(key)
    if entry is None or "pairs" not in entry.arrays:
        raise _missing_entry(
            store,
            f"the links {key[:8]}…",
            "none: recipes and scripts do not contain links. Run this where they were found, or link again"
            " here (Link reads a links file as known pairs), use them, and export again",
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
    """The space with its row numbers as ids; the previous ids become the payload."""
    numbers, before = RowNumbers(len(space)), space.ids.tolist()
    payload = None if before == list(numbers) else before
    return space.with_columns(ids=numbers, name=name, payload=payload)


# Samples of folders of shards in the store: `relcore.sharded.space` draws them, and a spec names them by
# their key.


def is_address(place: str) -> bool:
    """Whether a folder is at an address that fsspec opens, rather than at a path of this machine."""
    return "://" in place


def folder_stamp(place: str) -> str:
    """A stamp that changes when a file of the folder is written, added or removed; "" for an address, which
    is not asked.

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
    """The sample under this key, which was drawn from the folder at this place.

    Raises
    ------
    SpaceError
        It is not in the store (any more), is of another folder, or the folder has changed since.
    """
    again = f"draw it again in Data, or by relscope app {place}"
    sample = store.summary(key)
    if sample is None:
        raise _missing_entry(store, f"a sample of {place!r:.200}", f"none (removed to make room); {again}")
    drawn_from = sample.metadata.get("sample of")
    # a session file names any key that it likes
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
    "fasttext-novels": "FastText skip-gram, the same corpus, trained apart",
}


@dataclass(frozen=True)
class CatalogEntry:
    """One line of the catalogue; `n` and `dimension` are None if only reading the file would tell them."""

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
    """The specs of an encoder's outputs (output → key) that the store still has."""
    return [
        encoding_spec(dataset, encoder, output, key, summary.metadata["name"])
        for output, key in keys.items()
        if (summary := store.summary(key)) is not None
    ]


def load(spec: SpaceSpec, store: Store | None = None, again: bool = False) -> LatentSpace:
    """The space that the spec names; errors as in `need_access`, `load_words`, `load_space` and
    `load_encoding` (from `store`, else the environment's). With `again`, as for a recipe, an encoding that
    the store lacks is computed again, also under other ids.
    """
    if removed := unscored_ids(spec):
        space = load(with_unscored(spec, ()), store, again)
        return space.with_columns(ids=mark_unscored(space.ids, removed))
    if kept := kept_ids(spec):
        return chosen_rows(load(with_kept(spec, ()), store, again), kept)
    if again and spec.source == "encoding":
        encode_again(spec, store or Store())
    options = dict(spec.options)
    if spec.source == "file":
        path = access.readable_path(spec.name)
        if "ignore" in options:
            options["ignore"] = ignored_columns(spec)
        if "metadata" in options:
            options["metadata"] = access.readable_path(options["metadata"])
        return load_space(path, limit=spec.limit, store=store, **options)
    need_access(spec, store)
    if spec.source == "index":
        return load_rows(place_of(spec), spec.limit)
    if spec.source in ("bundled", "gensim-data"):
        known = BUNDLED if spec.source == "bundled" else words.MODELS
        need_one_of(spec.source, spec.name, known)
        return load_words(spec.name, limit=spec.limit)
    store, key = store or Store(), options["key"]
    if spec.source == "encoding":
        return load_encoding(store, key)
    if spec.source == "sample":
        return _sample(store, spec.name, key)
    base = load(base_of(spec), store, again)
    return _with_row_numbers(base, spec.name) if key == BY_ROW else _with_new_ids(base, store, key, spec.name)


def files_of(spec: SpaceSpec) -> tuple[str, ...]:
    """The paths that a spec of a file or a sample names: of the vectors, and of their metadata."""
    on_disk = spec.source == "file" or (spec.source == "sample" and not is_address(spec.name))
    return tuple(filter(None, (spec.name, spec.option("metadata")))) if on_disk else ()


def ignored_columns(spec: SpaceSpec) -> tuple[str, ...]:
    """The columns of a table that a spec leaves out."""
    return _names_in_option(spec, "ignore", "columns")


UNSCORED = "unscored"  # an option of every spec: ids of rows that an audit excluded from scores


def unscored_ids(spec: SpaceSpec) -> tuple[str, ...]:
    return _names_in_option(spec, UNSCORED, "ids")


def with_unscored(spec: SpaceSpec, ids: Iterable[str]) -> SpaceSpec:
    """The spec of the same space whose unscored rows are exactly these."""
    return _with_list(spec, UNSCORED, sorted(set(ids)))


KEPT = "kept"  # an option of every spec: ids of its rows if only some were selected in the app
MOST_KEPT = 20_000


def kept_ids(spec: SpaceSpec) -> tuple[str, ...]:
    return _names_in_option(spec, KEPT, "ids")


def with_kept(spec: SpaceSpec, ids: Sequence[str]) -> SpaceSpec:
    """The spec of only these rows of a space; of all rows if there are no ids. Raises a SpaceError for more
    than `MOST_KEPT`."""
    if len(ids) > MOST_KEPT:
        raise SpaceError(
            f"kept: expected at most {MOST_KEPT:,} rows, got {len(ids):,}; download them, and open the file"
        )
    return _with_list(spec, KEPT, list(ids))


def _with_list(spec: SpaceSpec, option: str, ids: list[str]) -> SpaceSpec:
    options = {name: value for name, value in spec.options if name != option}
    given = {option: json.dumps(ids, ensure_ascii=False)} if ids else {}
    return replace(spec, options=tuple((options | given).items()))


def chosen_rows(space: LatentSpace, ids: Sequence[str]) -> LatentSpace:
    """These rows of a space, named with their number."""
    return space.take(space.rows(ids), f"{space.name}, {len(ids):,} rows")


def _names_in_option(spec: SpaceSpec, option: str, what: str) -> tuple[str, ...]:
    names = json_of(text, f"{option}: expected a list of {what}") if (text := spec.option(option)) else []
    if not isinstance(names, list) or {*map(type, names)} - {str}:
        raise SpaceError(f"{option}: expected a list of {what} as JSON, got {spec.option(option)!r:.80}")
    return tuple(names)


def need_access(spec: SpaceSpec, store: Store | None = None) -> None:
    """Raise a SpaceError unless the present session may open the space; to be called before any cache is
    used.

    A file must be open, see `access.readable_path`. An encoding in the store of a shared app must have been
    made by this session, or from a dataset and with an encoder that this session may read; a key in a
    session file is not enough.
    """
    if spec.source == "sample" and is_address(spec.name):
        access.need_own_machine(spec.name)
    elif spec.source in ("file", "sample"):
        access.readable_path(spec.name)
        if "metadata" in dict(spec.options):
            access.readable_path(spec.option("metadata"))
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
    """Whether the present session may read all sources of a store entry."""
    try:
        spec = stored_encoding_spec(summary)
        if spec is None:
            return False
        dataset_place(spec.dataset)
        spec.encoder.content()
    except (SpaceError, KeyError):  # KeyError: an entry that is no encoding
        return False
    return True


def available(data_folder: str | Path | None = None) -> list[CatalogEntry]:
    """Bundled spaces, files under the data folder (else RELSCOPE_DATA), and gensim-data's models; never asks
    the network.

    Only names and headers of files are read, two folders deep, at most 500; texts and tables without vectors
    are left out.
    """
    folder = access.readable_path(data_folder) if data_folder else access.data_folder()
    entries = [
        _entry(name, SpaceSpec("bundled", name), path, shape_of(path), _DESCRIPTIONS[name], "words")
        for name, path in BUNDLED.items()
        if path.is_file()
    ]
    entries += _files(folder) if folder else ()
    for name, facts in words.MODELS.items():
        where = "here" if words.downloaded_file(name) else "needs the network"
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
        name, spec = str(path.relative_to(folder)), SpaceSpec("file", str(path))
        description, kind = descriptions.get(path, Description()), f"{suffix_of(path)} file"
        if path.is_dir():
            shape, kind = shape_of(path), "folder of a dataset"
        else:  # of several matrices none is the default
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


BY_ROW = "rows"  # for a renamed space without a pairing: its ids are row numbers


@dataclass(frozen=True)
class SpaceSpec:
    """A reference to a space that can be hashed, be part of a cache key, and be converted to JSON and back.

    Attributes
    ----------
    source : "bundled", "file", "index", "gensim-data", "encoding", "renamed" or "sample"
    name : str
        The name, or the path of a file or an index. An address is refused: opening a session or a recipe asks
        no other host.
    limit : int, optional
        Only the first rows.
    options : tuple of (key, value)
        All strings. For files further arguments of `load_space`, ignore as a JSON list. For an index its kind
        in `relcore.base.names.INDEXES`, and the table or collection in it. For encodings: dataset and encoder
        as JSON, output, and the key in the store; see `encoding_spec`. For a renamed space the spec of its
        base as JSON and the key of the pairing in the store, or "rows"; see `renamed_spec` and
        `numbered_spec`. For a sample of a folder of shards, whose path or address is the name: its key in the
        store, and the numbers of rows of the sample and the folder. For any space: the options that
        `with_unscored` and `with_kept` add.

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
        object.__setattr__(self, "options", DatasetOptions(self.options))
        if self.source not in _OPTIONS:
            raise SpaceError(f"source: expected one of {quote(_OPTIONS)}, got {self.source!r:.80}")
        if not isinstance(self.name, str) or not self.name:
            raise SpaceError(
                f"name: expected the name of a space or the path of a file, got {self.name!r:.80}"
            )
        if self.limit is not None and (type(self.limit) is not int or self.limit < 1):
            raise SpaceError(
                f"limit: expected a whole number of rows, at least 1, or none, got {self.limit!r:.80}"
            )
        known, given = _OPTIONS[self.source], dict(self.options)
        whole = known if self.source != "file" else ()
        if (
            not given.keys() <= {*known, UNSCORED, KEPT}
            or set(map(type, given.values())) - {str}
            or not given.keys() >= set(whole)
        ):
            expected = (
                f"{'all' if whole else 'some'} of {quote(known)}, each with a string" if known else "none"
            )
            raise SpaceError(f"options: expected {expected} for {self.source!r}, got {quote(given)}")
        need_one_of("ids", given.get("ids", ""), ("", "rows"))
        if self.source == "index" and place_of(self).address:
            raise SpaceError(
                f"{self.name!r:.80}: expected a path, got an address, which a space must not have; copy the"
                " rows first: relscope adapt none SOURCE FILE.parquet"
            )

    def option(self, name: str) -> str:
        """The value of an option; "" if it is not set."""
        return dict(self.options).get(name, "")

    def load(self) -> LatentSpace:
        """The space, if it still is as the spec says; errors as in the function `load`."""
        return load(self)

    @property
    def dataset(self) -> DatasetSpec | None:
        """The dataset of an encoding; None for a space that comes as vectors."""
        return DatasetSpec.from_json(json_of(self.option("dataset"))) if self.source == "encoding" else None

    @property
    def encoder(self) -> Encoder | None:
        """The encoder of an encoding; None for a space that comes as vectors."""
        return encoder_from_json(json_of(self.option("encoder"))) if self.source == "encoding" else None

    @property
    def rows_of(self) -> SpaceSpec:
        """The space of the same rows in order: the base of one renamed to row numbers, else itself."""
        return base_of(self) if self.source == "renamed" and self.option("key") == BY_ROW else self

    def to_json(self) -> dict[str, Any]:
        return records.to_json(self)

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> SpaceSpec:
        """The spec in a dict; raises an error for unknown keys."""
        return records.from_json(cls, described, "space")


def encoding_spec(dataset: DatasetSpec, encoder: Encoder, output: str, key: str, name: str) -> SpaceSpec:
    """The spec of an encoding, with everything needed to compute it again if the store lacks it."""
    made_of = (
        ("dataset", json.dumps(dataset.to_json(), sort_keys=True)),
        ("encoder", json.dumps(encoder.only(output).to_record(), sort_keys=True)),
    )
    return SpaceSpec("encoding", name, options=(*made_of, ("key", key), ("output", output)))


def stored_encoding_spec(summary: Summary) -> SpaceSpec | None:
    """The spec of an encoding in the store; None if a script made it from a dataset of its own."""
    facts = summary.metadata
    if "dataset_spec" not in facts:
        return None
    dataset, encoder = DatasetSpec.from_json(facts["dataset_spec"]), encoder_from_json(facts["encoder"])
    return encoding_spec(dataset, encoder, facts["output"], summary.key, facts["name"])


def renamed_spec(base: SpaceSpec, key: str, name: str) -> SpaceSpec:
    """The spec of a space whose rows have the new ids of the pairing under `key` (`put_pairing`)."""
    return SpaceSpec(
        "renamed", name, options=(("base", json.dumps(base.to_json(), sort_keys=True)), ("key", key))
    )


def numbered_spec(spec: SpaceSpec) -> SpaceSpec:
    """The spec of the same rows with their row numbers as ids, so that two spaces pair by row order."""
    if spec.source == "file":
        numbered = dict(with_unscored(spec, ()).options) | {"ids": "rows"}
        return replace(spec, options=tuple(numbered.items()))
    if spec.source == "sample":
        raise SpaceError(
            f"{spec.name!r:.80}: expected all rows to pair by row order, got a sample; write ids in the"
            " shards"
        )
    return spec if spec.rows_of != spec else renamed_spec(spec, BY_ROW, f"{spec.name} · by row")


def space_name(spec: SpaceSpec) -> str:
    """The last part of a file's path without the suffix; for an index, its collection."""
    if spec.source == "encoding":
        return spec.name
    if spec.source == "index":
        return spec.option("table") or Path(spec.name).stem
    name = spec.name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    suffix = suffix_of(Path(name)) if spec.source == "file" else None
    return name[: -len(suffix)] if suffix else name


def is_linked(spec: SpaceSpec, source: SpaceSpec, target: SpaceSpec) -> bool:
    """Whether a space is the source or the target with new ids from a link."""
    renamed = spec.source == "renamed" and spec.option("key") != BY_ROW
    return renamed and base_of(spec) in (source, target)


def base_of(spec: SpaceSpec) -> SpaceSpec:
    """The spec of the space that was renamed."""
    return SpaceSpec.from_json(json_of(spec.option("base"), "renamed space: expected its base"))


def json_of(text: str, expected: str = "encoding: expected a dataset and an encoder") -> Any:
    try:
        return records.parse(text, "")
    except SpaceError as error:
        raise SpaceError(f"{expected} as JSON, got {text!r:.80}") from error


def place_of(spec: SpaceSpec) -> StorePlace:
    return StorePlace(spec.option("kind"), spec.name, spec.option("table"))


def encode_again(spec: SpaceSpec, store: Store, report: Progress | None = None) -> None:
    """Make sure that the encoding which a spec names is in the store.

    Raises a SpaceError where the dataset or the encoder's files have changed, or as in `encode`.
    """
    if store.has(spec.option("key")):
        return
    dataset = load_dataset(spec.dataset, store)
    if encoding_key(dataset.digest, spec.encoder, spec.option("output")) != spec.option("key"):
        raise SpaceError(
            f"{spec.name!r}: its dataset or the files of its encoder have changed since it was encoded;"
            " encode the current data in Data, and choose that encoding"
        )
    encode(dataset, spec.encoder, store, report)
