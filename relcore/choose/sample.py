"""Embed a sample of a corpus, and its queries, with several models. What is embedded stays in the store,
where the run over all rows finds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from relcore.base.errors import SpaceError, quote
from relcore.catalog.catalog import SpaceSpec, encoding_spec
from relcore.catalog.encodings import key_of, put_encoding, seconds_per_row, trained_weights
from relcore.choose.result import ModelCost
from relcore.encoders.api import ApiText
from relcore.encoders.dataset import SAMPLE, Dataset, DatasetOptions, DatasetSpec
from relcore.encoders.datasets import load_dataset, with_options
from relcore.encoders.encoder import Encoder, TrainedEncoder
from relcore.encoders.sending import size_of
from relcore.runs.store import Store
from relcore.runs.work import silent
from relcore.spaces.space import LatentSpace


@dataclass(frozen=True)
class Corpus:
    """A corpus, and the sample of it that the models embed.

    Attributes
    ----------
    whole, sample : DatasetSpec
    n_rows : int
        Number of rows of the whole corpus.
    n_bytes : int
        Size of all its texts in UTF-8; 0 for pictures.
    """

    whole: DatasetSpec
    sample: DatasetSpec
    n_rows: int
    n_bytes: int


def corpus_of(spec: DatasetSpec, share: float, store: Store | None = None) -> Corpus:
    """The corpus with a sample of this share of its rows."""
    dataset = load_dataset(spec, store)
    n_bytes = 0
    if dataset.kind == "texts":
        _, n_bytes = size_of(dataset)
    sample = spec
    if share < 1:
        sample = with_options(spec, **{SAMPLE: share})
    return Corpus(spec, sample, len(dataset), n_bytes)


def whole_of(sample: DatasetSpec) -> DatasetSpec:
    """The dataset of which a sample was drawn; a dataset without a sample is its own."""
    options = DatasetOptions((name, value) for name, value in sample.options if name != SAMPLE)
    return replace(sample, options=options)


def query_encoder(encoder: Encoder) -> Encoder:
    """The encoder of queries: with the prefix of queries, if the encoder has one."""
    if isinstance(encoder, ApiText):
        return replace(encoder, encode_as="query")
    return encoder


def fitted_queries(
    encoder: TrainedEncoder, sample: Dataset, queries: DatasetSpec, store: Store
) -> list[SpaceSpec]:
    """The queries by an encoder that was fitted to a sample. Fitted to the queries themselves, it would give
    another space."""
    asked = load_dataset(queries, store)
    specs = []
    key = key_of("queries", asked.digest, encoder, sample.digest)
    name = f"{encoder.title} · {asked.name}"
    for output in encoder.outputs:
        own = f"{key}{output}"
        specs.append(encoding_spec(queries, encoder, output, own, f"{name} {output}".strip()))
    if all(store.has(spec.option("key")) for spec in specs):
        return specs
    encode_batch = encoder.restore(trained_weights(encoder, sample, store, silent), asked)
    rows = encode_batch(asked.items(0, len(asked)))
    for spec in specs:
        space = LatentSpace(rows[spec.option("output")], asked.ids, name=spec.name, labels=asked.labels)
        made_by = {"encoder": encoder.to_record(), "output": spec.option("output")}
        put_encoding(store, spec.option("key"), space, made_by)
    return specs


def cost_of(encoder: Encoder, sample: Dataset, corpus: Corpus, store: Store) -> ModelCost:
    """What a model costs for the whole corpus, by the pace at which it embedded the sample."""
    pace = seconds_per_row(store, sample, encoder)
    if pace is None:
        seconds = encoder.seconds(corpus.n_rows)
    else:
        seconds = pace * corpus.n_rows
    return ModelCost(seconds, encoder.dollars(corpus.n_rows, corpus.n_bytes))


def need_distinct(specs: Sequence[SpaceSpec]) -> None:
    """Raise a SpaceError if a model is given twice."""
    repeated = [spec.name for place, spec in enumerate(specs) if spec in specs[:place]]
    if repeated:
        raise SpaceError(f"choose: expected different models, got {quote(repeated)} twice; remove one")
