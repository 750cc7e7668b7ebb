"""Encoding: a dataset through an encoder into the store, block by block; finished blocks are never
computed again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from relcore.base.errors import SpaceError, quote
from relcore.base.libraries import OF_KIND, extra
from relcore.catalog.catalog import (
    SpaceSpec,
    encoding_key,
    key_of,
    put_encoding,
    space_of,
    stored_encoding_spec,
)
from relcore.encoders.bundled import TASK
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import EncodeBatch, Encoder, Trained, TrainedEncoder, encoder_to_json
from relcore.encoders.sentences import PooledWords
from relcore.encoders.transformers import MiniLM
from relcore.encoders.vision import SmallVision
from relcore.runs.digest import StoreError
from relcore.runs.entries import Finished, FinishedGroup
from relcore.runs.progress import Context, Report, silent
from relcore.runs.store import Store, in_use
from relcore.spaces.space import LatentSpace

BLOCK_ROWS = 256


def encoding_job_key(dataset_digest: str, encoder: Encoder) -> str:
    """The key to submit `encode_job` under: that of its space, or of the list of spaces where there are
    several outputs.
    """
    if len(encoder.outputs) == 1:
        return encoding_key(dataset_digest, encoder, encoder.outputs[0])
    return key_of("encodings", dataset_digest, encoder)


def stored_encodings(
    store: Store, dataset_digest: str, encoder: Encoder, own: bool = False
) -> dict[str, str] | None:
    """The key of each output when all are in the store; else None: `encode_job` can be submitted. `own`:
    see `Store.has`.
    """
    keys = {output: encoding_key(dataset_digest, encoder, output) for output in encoder.outputs}
    if all(store.has(key, own) for key in keys.values()):
        return keys
    if len(keys) > 1:  # a list of spaces of which some are gone would count as done
        store.remove(encoding_job_key(dataset_digest, encoder))
    return None


def encode_again(spec: SpaceSpec, store: Store, report: Report | None = None) -> None:
    """Make sure that the encoding which a spec names is in the store, from the dataset and the encoder that
    it holds.

    Raises
    ------
    SpaceError
        The dataset or the encoder's files are gone or have changed; or as in `encode`.
    """
    if store.has(spec.option("key")):
        return
    dataset = load_dataset(spec.dataset, store)
    if encoding_key(dataset.digest, spec.encoder, spec.option("output")) != spec.option("key"):
        raise SpaceError(
            f"{spec.name!r}: its dataset or the files of its encoder have changed since it was encoded;"
            " encode the current data on the Spaces page, and choose that encoding"
        )
    encode(dataset, spec.encoder, store, report)


def encode(
    dataset: DatasetSpec | Dataset,
    encoder: Encoder,
    store: Store,
    report: Report | None = None,
    block_rows: int = BLOCK_ROWS,
) -> list[LatentSpace]:
    """One space for each output of the encoder, from the store where they are there, else computed and kept.

    Every `block_rows` rows are kept as soon as they are computed, and so are trained weights: after a kill or
    a full disk the same call resumes and gives the same bytes. `report` is called as ``report(done, total,
    message)``.

    Raises
    ------
    SpaceError
        The dataset, the encoder or a model's files do not fit each other.
    StoreError
        No room, no permission, or a disk that fails; what was computed stays.
    """
    with in_use():
        for _ in range(2):  # the second time, an entry was damaged: reading removed it, and it is made again
            keys = _encoded(dataset, encoder, store, report or silent, block_rows)
            entries = [store.get(key) for key in keys.values()]
            if all(entries):
                return [space_of(entry) for entry in entries]
    raise StoreError(f"{store.root}: the encoding was damaged each time it was read back; check the disk")


def trained_weights(
    encoder: TrainedEncoder, dataset: Dataset, store: Store, report: Report = silent
) -> Trained:
    """The weights of an encoder trained on the dataset, from the store, or trained now and kept."""
    key = key_of("trained", dataset.digest, encoder)
    if (entry := store.get(key)) is not None:
        return Trained(entry.arrays, entry.metadata)
    trained = encoder.train(dataset, report)
    store.put(key, trained.arrays, trained.metadata)
    return trained


def encode_job(
    context: Context, *, dataset: DatasetSpec | Dataset, encoder: Encoder, block_rows: int = BLOCK_ROWS
) -> None:
    """`encode` as a job of the Engine, under `encoding_job_key`."""
    context.report(0, 1, "reading the dataset")
    keys = _encoded(dataset, encoder, context.store, context.report, block_rows)
    if len(keys) > 1:
        context.put({}, {"encodings": keys})
    elif context.key not in keys.values():
        raise SpaceError(
            f"{encoder.title}: the dataset has changed since it was chosen; choose it again, and encode it"
        )


def _encoded(
    dataset: DatasetSpec | Dataset, encoder: Encoder, store: Store, report: Report, block_rows: int
) -> dict[str, str]:
    """The key of each output, all of them in the store."""
    spec = dataset if isinstance(dataset, DatasetSpec) else None
    dataset = dataset if spec is None else load_dataset(spec, store)
    keys = stored_encodings(store, dataset.digest, encoder)
    if keys is not None:
        return keys
    if encoder.kind != dataset.kind:
        raise SpaceError(
            f"{encoder.title}: expected a dataset of kind {encoder.kind!r}, got {dataset.kind!r} in"
            f" {dataset.name!r}; choose an encoder for {dataset.kind}"
        )
    with extra(OF_KIND[dataset.kind]):
        return _Run(dataset, spec, encoder, store, report, block_rows).finish()


class _Run:
    """One running encoding."""

    def __init__(
        self,
        dataset: Dataset,
        spec: DatasetSpec | None,
        encoder: Encoder,
        store: Store,
        report: Report,
        block_rows: int,
    ) -> None:
        self.dataset, self.spec, self.encoder, self.store, self.report = dataset, spec, encoder, store, report
        self.block_rows = len(dataset) if dataset.kind == "graph" else block_rows
        self._encode_batch: EncodeBatch | None = None
        self._trained: Trained | None = None

    def finish(self) -> dict[str, str]:
        """Compute what is missing, put the whole and remove the blocks; the key of each output."""
        self.report(0, 1, self.encoder.title)
        self.store.require_writable()
        if isinstance(self.encoder, TrainedEncoder):
            self._trained = trained_weights(self.encoder, self.dataset, self.store, self.report)
        n = len(self.dataset)
        wholes: dict[str, np.ndarray] = {}
        for start, stop in self._blocks():
            for output, rows in self._block(start, stop).items():
                whole = wholes.setdefault(output, np.empty((n, rows.shape[1]), dtype=np.float32))
                whole[start:stop] = rows
            self.report(stop, n, f"{self.encoder.title}: {stop:,} of {n:,} rows")
        keys = {output: self._put(output, wholes[output]) for output in self.encoder.outputs}
        for start, stop in self._blocks():
            self.store.remove(self._block_key(start, stop))
        return keys

    def _blocks(self) -> Iterator[tuple[int, int]]:
        for start in range(0, len(self.dataset), self.block_rows):
            yield start, min(start + self.block_rows, len(self.dataset))

    def _block_key(self, start: int, stop: int) -> str:
        return key_of("block", self.dataset.digest, self.encoder, start, stop)

    def _block(self, start: int, stop: int) -> dict[str, np.ndarray]:
        key = self._block_key(start, stop)
        entry = self.store.get(key)
        if entry is None:
            rows = self._checked(self._encoder_function()(self.dataset.items(start, stop)), start, stop)
            self.store.put(key, {str(i): rows[output] for i, output in enumerate(self.encoder.outputs)})
            return rows
        return {output: entry.arrays[str(i)] for i, output in enumerate(self.encoder.outputs)}

    def _encoder_function(self) -> EncodeBatch:
        """Prepared with the first missing block: a model takes seconds to load."""
        if self._encode_batch is None:
            if self._trained is not None:
                self._encode_batch = self.encoder.restore(self._trained, self.dataset)
            else:
                self._encode_batch = self.encoder.prepare(self.dataset, self.report)
        return self._encode_batch

    def _checked(self, rows: dict[str, np.ndarray], start: int, stop: int) -> dict[str, np.ndarray]:
        if set(rows) != set(self.encoder.outputs):
            raise SpaceError(
                f"{self.encoder.title}: expected outputs {quote(self.encoder.outputs)}, got {quote(rows)}"
            )
        for output, matrix in rows.items():
            if matrix.ndim != 2 or len(matrix) != stop - start:
                raise SpaceError(
                    f"{self.encoder.title} {output}: expected {stop - start} rows, got shape {matrix.shape}"
                )
            if not np.isfinite(matrix).all():
                bad = self.dataset.ids[start + np.flatnonzero(~np.isfinite(matrix).all(axis=1))]
                raise SpaceError(
                    f"{self.encoder.title}: NaN or infinite values for {len(bad)} items, first"
                    f" {quote(bad[:3])}; choose another encoder or layer, or leave these items out"
                )
        return rows

    def _put(self, output: str, vectors: np.ndarray) -> str:
        dataset, encoder = self.dataset, self.encoder
        space = LatentSpace(
            vectors, dataset.ids, name=_name(encoder, output, dataset.name), labels=dataset.labels
        )
        metadata = {
            "dataset": dataset.name,
            "dataset_digest": dataset.digest,
            "encoder": encoder_to_json(encoder.only(output)),
            "output": output,
        }
        if self.spec is not None:
            metadata["dataset_spec"] = self.spec.to_json()
        if self._trained is not None:
            metadata["training"] = self._trained.metadata
        key = encoding_key(dataset.digest, encoder, output)
        put_encoding(self.store, key, space, metadata)
        return key


def _name(encoder: Encoder, output: str, dataset_name: str) -> str:
    return f"{encoder.title} {output}".strip() + f" · {dataset_name}"


# Examples: labelled tasks whose encodings come with Relscope: there is something to stitch before anything is
# trained.


@dataclass(frozen=True)
class Example:
    """A dataset and its encoders.

    Attributes
    ----------
    title : str
        In a few words.
    explanation : str
        The data, the labels and the encoders, in a sentence or two.
    n : int
        Rows.
    """

    title: str
    explanation: str
    n: int
    dataset: DatasetSpec
    encoders: tuple[Encoder, ...]


EXAMPLES = {
    "digits": Example(
        "Digits, four networks",
        "1,797 scans of handwritten digits. Four architectures learned to classify them, each from its own"
        " random start.",
        1797,
        DatasetSpec("digits"),
        tuple(SmallVision(name) for name in ("mlp", "cnn", "residual", "vit")),
    ),
    "sentences": Example(
        "Wikipedia sentences, three encoders",
        "960 sentences of 16 articles. The label is the article. Encoders: weighted means of Word2Vec and of"
        " FastText vectors, and MiniLM.",
        960,
        DatasetSpec("wikipedia", limit=960, options=TASK.options),
        (PooledWords("word2vec-novels"), PooledWords("fasttext-novels"), MiniLM()),
    ),
}


def example_spaces(name: str, finished: Finished | None) -> tuple[list[SpaceSpec], FinishedGroup | None]:
    """The specs of an example's encodings in the order of its encoders, and when they were computed; none
    if missing.
    """
    group = finished.groups.get(name) if finished else None
    if group is None:
        return [], None
    found = [
        spec
        for key in group.files
        if (summary := finished.summary(key)) and (spec := stored_encoding_spec(summary))
    ]
    return found, finished.made(group.files[0])
