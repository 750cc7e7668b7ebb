"""The command `choose`, which says which of several embedding models finds best, by a sample of the rows."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from relcore.base.errors import SpaceError
from relcore.base.report import Report
from relcore.base.settings import setting
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.naming import DATASET_HELP, SEND_TO_HELP, space_spec
from relcore.choose.result import LEAST_SHARE, ModelChoice, ModelCost
from relcore.choose.sample import (
    Corpus,
    corpus_of,
    cost_of,
    fitted_queries,
    need_distinct,
    query_encoder,
)
from relcore.choose.task import UNJUDGED, Choose, need_models
from relcore.commands.command import Tool, command, values_of
from relcore.commands.inputs import loaded_spaces
from relcore.commands.options import Results, Scheduler
from relcore.encode.command import (
    ENCODER_HELP,
    add_encoder_settings,
    dataset_spec,
    encoded,
    encoder_settings,
    encoders_of,
)
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import TrainedEncoder
from relcore.runs.store import Store
from relcore.scores.relevance import JudgedQuery, read_qrels


@dataclass
class ChooseOptions:
    places: tuple[str, ...] = setting(
        nargs="+",
        metavar="PLACE",
        help="With --encoder: CORPUS, or CORPUS QUERIES: the dataset to search, and the queries; without"
        " them, each row is a query. Without --encoder: two to five spaces of the same rows. A dataset is"
        f" {DATASET_HELP}.",
    )
    encoder: tuple[str, ...] = setting(
        (),
        metavar="NAMES",
        nargs="append",
        help=f"Two to five models to compare: {ENCODER_HELP}",
    )
    queries: tuple[str, ...] = setting(
        (),
        metavar="SPACE",
        nargs="append",
        help="Without --encoder: the queries by a model. Give it once for each model, in their order.",
    )
    qrels: Path = setting(
        None,
        metavar="FILE",
        help="Judgements in TREC's format: each line has a query, an iteration, a row and a grade. Default:"
        " rows with the label of the query are relevant.",
    )
    sample: float = setting(
        LEAST_SHARE,
        above=0,
        high=1,
        metavar="SHARE",
        help="With --encoder: the share of the rows to embed. Below .3, differences may have the wrong sign.",
    )
    config: str = setting("", help="The configuration of a Hugging Face dataset, if it has several.")
    id_column: str = setting(
        None, help="The column of ids. Default: a column whose name means ids, such as id."
    )
    send_to: tuple[str, ...] = setting((), metavar="HOST", nargs="append", help=SEND_TO_HELP)


@command(
    (ChooseOptions, Choose, DatasetSpec, Results, Scheduler),
    "Embeds a sample of the rows with each model, and compares what they find. The answer counts how often it"
    " looked: a model is best, or at most --epsilon behind, or it is undecided, and about how many more"
    " queries would tell. The embedded rows stay in the store: relscope encode CORPUS --encoder MODEL embeds"
    " only the others. To judge blind, without judgements in a file, open the app, at Migrate, Choose.",
    (
        "documents.parquet queries.parquet --encoder minilm,onnx,tfidf --qrels qrels.txt",
        "a.npz b.npz c.npz --queries qa.npz --queries qb.npz --queries qc.npz --qrels qrels.txt",
    ),
    more=add_encoder_settings,
)
def run_choose(options: argparse.Namespace) -> Report:
    judgements: tuple[JudgedQuery, ...] = ()
    if options.qrels:
        judgements = read_qrels(options.qrels)
    store = Store()
    names = [*filter(None, options.encoder)]
    corpus = None
    if names:
        corpus, specs, queries = _embedded(options, store)
    else:
        specs, queries = _given(options)
    need_models(len(specs))
    need_distinct(specs)
    inputs = loaded_spaces(options, [*specs, *queries])
    settings = values_of(options, Choose)
    settings |= {"judgements": judgements, "has_queries": bool(queries)}
    if corpus:
        settings["n_rows"] = corpus.n_rows
    task = Choose(**settings)
    found = inputs.result(task)
    costs: list[ModelCost] = []
    notes = []
    if corpus:
        sample = load_dataset(corpus.sample, store)
        costs = [cost_of(spec.encoder, sample, corpus, store) for spec in specs if spec.encoder]
        notes = [_what_next(options, found, corpus)]
    figures = {}
    if found.answer is not None:
        figures = inputs.chart("model-choice", found, spaces=tuple(inputs.specs), choose=task)
    return found.report(costs, notes, **figures)


def _given(options: argparse.Namespace) -> tuple[list[SpaceSpec], list[SpaceSpec]]:
    """The spaces of the rows, and those of the queries, that the user names."""
    need_models(len(options.places))
    if options.queries and len(options.queries) != len(options.places):
        raise SpaceError(
            f"--queries: expected {len(options.places)}, one for each model, got {len(options.queries)}"
        )
    return list(map(space_spec, options.places)), list(map(space_spec, options.queries))


def _embedded(options: argparse.Namespace, store: Store) -> tuple[Corpus, list[SpaceSpec], list[SpaceSpec]]:
    """Embed the sample and the queries with each model."""
    if len(options.places) > 2 or options.queries:
        raise SpaceError(
            "choose: with --encoder, expected CORPUS, or CORPUS and QUERIES, got more; remove --encoder to"
            " compare spaces"
        )
    spec = dataset_spec(_with_dataset(options, options.places[0]))
    if len(options.places) == 2 and not options.qrels:
        raise SpaceError(UNJUDGED)
    corpus = corpus_of(spec, options.sample, store)
    sample = load_dataset(corpus.sample, store)
    if len(options.places) == 1 and not options.qrels and sample.labels is None:
        raise SpaceError(UNJUDGED)
    encoders = encoders_of(options, sample)
    need_models(sum(len(encoder.outputs) for encoder in encoders))
    specs = encoded(options, store, corpus.sample, sample, encoders)
    queries: list[SpaceSpec] = []
    if len(options.places) == 2:
        asked = dataset_spec(_with_dataset(options, options.places[1]))
        for encoder in encoders:
            if isinstance(encoder, TrainedEncoder):
                queries += fitted_queries(encoder, sample, asked, store)
            else:
                dataset = load_dataset(asked, store)
                queries += encoded(options, store, asked, dataset, [query_encoder(encoder)])
    return corpus, specs, queries


def _with_dataset(options: argparse.Namespace, place: str) -> argparse.Namespace:
    return argparse.Namespace(**{**vars(options), "dataset": place})


def _what_next(options: argparse.Namespace, found: ModelChoice, corpus: Corpus) -> str:
    """How to embed all rows with the chosen model."""
    if not found.best:
        return (
            "The embedded rows are kept. Add judged queries, and run the command again: it embeds only those."
        )
    return (
        f"To embed the other {corpus.n_rows - found.n_rows:,} rows with {found.best}: relscope encode"
        f" {options.places[0]} --encoder … (the name that you gave for it)."
    )


# An agent compares spaces, but embeds nothing and sends nothing.
_EMBEDS = ("encoder", "send_to", "config", "id_column", "sample", "split", "column", "label_column", "limit")
TOOL = Tool(dict.fromkeys((*_EMBEDS, *encoder_settings())))
