"""Encode new items with the encoder of a space, exactly as its dataset was encoded: a typed or drawn item becomes a row.

The weights of a trained encoder come from the store. If the store has removed them, `train_again_job` trains the encoder again,
to the same weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relcore.progress import Context, silent
from relcore.sources.catalog import SpaceSpec
from relcore.sources.dataset import Dataset, Kind
from relcore.sources.datasets import load_dataset
from relcore.sources.encoder import EncodeBatch, Encoder, Trained, TrainedEncoder
from relcore.sources.encodings import key_of
from relcore.spaces import SpaceError
from relcore.store import Store

_BLOCK = 256


class Untrained(SpaceError):
    """The store has lost the weights of the encoder; `train_again_job` trains it again."""


@dataclass(frozen=True, eq=False)
class ItemEncoder:
    """An encoder that is loaded and ready.

    Attributes
    ----------
    spec : SpaceSpec
        Of the space whose rows it gives.
    dataset : Dataset
        What the space was made of.
    """

    spec: SpaceSpec
    dataset: Dataset
    encode_batch: EncodeBatch

    @property
    def kind(self) -> Kind:
        return self.dataset.kind

    def rows(self, items: Sequence[Any]) -> np.ndarray:
        """Texts or pictures (m) → (m, d) float32, of an item of the dataset the space's own row, to rounding.

        A text of which a TF-IDF knows no word becomes a zero row.

        Raises
        ------
        SpaceError
            No items, an empty text, pictures of sizes that the encoder does not take, what is no finite row.
        """
        (rows,) = rows_of([self], items)
        return rows


def rows_of(encoders: Sequence[ItemEncoder | None], items: Sequence[Any]) -> list[np.ndarray | None]:
    """`ItemEncoder.rows` of each, None for None; those that share a pass (see `joined_encoder`) go through it together."""
    outputs: dict[int, dict[str, np.ndarray]] = {}
    found: list[np.ndarray | None] = []
    for encoder in encoders:
        if encoder is None:
            found.append(None)
            continue
        one_pass = id(encoder.encode_batch)
        if one_pass not in outputs:
            _need_items(encoder, items)
            outputs[one_pass] = _encoded(encoder.encode_batch, items)
        rows = outputs[one_pass][encoder.spec.option("output")].astype(np.float32)
        if not np.isfinite(rows).all():
            name = encoder.spec.name
            raise SpaceError(f"{name}: expected finite numbers for each item, got NaN or infinite; try another one")
        found.append(rows)
    return found


def _need_items(encoder: ItemEncoder, items: Sequence[Any]) -> None:
    if not len(items):
        raise SpaceError(f"{encoder.spec.name}: expected one item or more to encode, got none")
    if encoder.kind == "texts" and not all(isinstance(text, str) and text.strip() for text in items):
        raise SpaceError(f"{encoder.spec.name}: expected texts, got an empty one; type a sentence")


def _encoded(encode_batch: EncodeBatch, items: Sequence[Any]) -> dict[str, np.ndarray]:
    blocks = [encode_batch(list(items[start : start + _BLOCK])) for start in range(0, len(items), _BLOCK)]
    return {output: np.concatenate([block[output] for block in blocks]) for output in blocks[0]}


def joined_encoder(spec: SpaceSpec, others: Sequence[SpaceSpec]) -> Encoder:
    """The encoder of a space; joined with those of the others of its dataset where one pass gives the rows of both."""
    joined = spec.encoder
    for other in others:
        if other.dataset == spec.dataset:
            joined = joined.with_outputs_of(other.encoder) or joined
    return joined


def why_not(spec: SpaceSpec) -> str:
    """Why a space can give no rows of new items, in a few words; "" where it can."""
    if spec.source != "encoding":
        return "came as vectors, without an encoder"
    if spec.dataset.source == "planetoid":
        return "reads nodes of a graph, not single items"
    return ""


def item_encoder(spec: SpaceSpec, store: Store, joined: Encoder | None = None) -> ItemEncoder:
    """Load the encoder behind an encoding, which takes seconds for a large model; `joined` gives the outputs of others too.

    Raises
    ------
    SpaceError
        Not an encoding of texts or pictures, its dataset is gone; `Untrained` where its weights are.
    """
    if reason := why_not(spec):
        raise SpaceError(f"{spec.name!r}: expected an encoding of texts or pictures, got a space that {reason}")
    dataset, encoder = load_dataset(spec.dataset, store), joined or spec.encoder
    made = store.summary(spec.option("key"))
    if made and made.metadata["dataset_digest"] != dataset.digest:
        raise SpaceError(
            f"{spec.name!r}: its dataset has changed since it was encoded; encode what is there now on the Spaces page, and "
            "choose that"
        )
    if isinstance(encoder, TrainedEncoder):
        entry = store.get(trained_key(spec, store, dataset))
        if entry is None:
            raise Untrained(
                f"{spec.name!r}: expected the trained weights of its encoder in the store, got none (removed to make room); "
                "train it again"
            )
        return ItemEncoder(spec, dataset, encoder.restore(Trained(entry.arrays, entry.metadata), dataset))
    return ItemEncoder(spec, dataset, encoder.prepare(dataset, silent))


def encode_items(spec: SpaceSpec, items: Sequence[Any], store: Store | None = None) -> np.ndarray:
    """Rows (m, d) float32 of any texts or pictures, as the encoder of the space gives them; see `ItemEncoder.rows`."""
    return item_encoder(spec, store or Store()).rows(items)


def trained_key(spec: SpaceSpec, store: Store, dataset: Dataset | None = None) -> str:
    """The store's key of what the encoder learnt on the dataset, as `relcore.encoding` keeps it."""
    made = store.summary(spec.option("key"))
    digest = made.metadata["dataset_digest"] if made else (dataset or load_dataset(spec.dataset, store)).digest
    return key_of("trained", digest, spec.encoder)


def train_again_job(context: Context, *, spec: SpaceSpec) -> None:
    """Train an encoder again whose weights the store has lost; submit it under `trained_key`."""
    encoder: Encoder = spec.encoder
    dataset = load_dataset(spec.dataset, context.store)
    if key_of("trained", dataset.digest, encoder) != context.key:
        raise SpaceError(f"{spec.name!r}: its dataset has changed since it was encoded; encode what is there now")
    trained = encoder.train(dataset, context.report)
    context.put(trained.arrays, trained.metadata)
