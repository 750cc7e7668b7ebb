"""The command `migrate`, which recommends what to do about a new embedding model: keep the old one, map
queries to it, query both models, let the new model re-rank, or re-embed all rows."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

from relcore.base.errors import SpaceError
from relcore.base.report import Report
from relcore.base.settings import setting
from relcore.catalog.naming import SPACE_HELP
from relcore.commands.by_shard import samples
from relcore.commands.command import command, values_of
from relcore.commands.inputs import Inputs
from relcore.commands.options import SHARDS_HELP, ByLinks, ByRow, JUnit, Results, Sample
from relcore.explain.items import items_of
from relcore.migrate.blind_test import BlindAnswers, with_answers
from relcore.migrate.changed_queries import KEEP, changed_queries_in_words
from relcore.migrate.cheaper_index import CheaperIndex
from relcore.migrate.migration import Migration
from relcore.migrate.price import UNKNOWN, Rate
from relcore.migrate.result import MigrationResult, export_result
from relcore.migrate.threshold_command import (
    ThresholdOptions,
    accepted_pairs,
    check_threshold_options,
    with_thresholds,
)
from relcore.migrate.thresholds import ThresholdChange
from relcore.scores.relevance import read_qrels
from relcore.spaces.matching import match


@dataclass
class MigrateOptions:
    old: str = setting(metavar="OLD", help=f"the old vectors of the corpus: {SPACE_HELP}")
    new: str = setting(
        metavar="NEW", help="vectors of some or all of these rows by the new model, with the same ids"
    )
    queries_old: str = setting(
        None,
        metavar="SPACE",
        help="Judged queries, or a log of queries for the price, as vectors of the old model.",
    )
    queries_new: str = setting(None, metavar="SPACE", help="The same queries as vectors of the new model.")
    qrels: Path = setting(
        None,
        metavar="FILE",
        help="Judgements in TREC's format: each line has a query, an iteration, a row and a grade.",
    )
    answers: Path = setting(
        None,
        metavar="FILE",
        help="The file of answers from “Judge here, blind” on the page Migrate. They decide the verdict.",
    )
    curve: bool = setting(False, help="Also measure smaller numbers of pairs.")
    compress: bool = setting(
        False, help="Also score each option with cheaper indexes: int8, binary, fewer dimensions."
    )
    row_seconds: float = setting(
        0.0, low=0, metavar="SECONDS", help="Seconds to embed one row, for the table of costs."
    )
    price: float = setting(0.0, low=0, help="Price of a million tokens, for the table of costs.")
    currency: str = setting(UNKNOWN.currency, metavar="NAME", help="Currency of --price and --least-saving.")
    row_tokens: float = setting(0.0, low=0, metavar="N", help="Tokens per row, needed with --price.")
    year_queries: int = setting(
        UNKNOWN.queries, low=1, metavar="N", help="Number of queries in a year, for the costs of a year."
    )
    least_saving: float = setting(
        UNKNOWN.least_money,
        low=0,
        metavar="SUM",
        help="With --price: a simpler option comes first if a year of another one saves less than this sum.",
    )
    least_rows: int = setting(
        UNKNOWN.least_rows,
        low=0,
        metavar="N",
        help="Without --price: the same, as a number of rows that need not be embedded.",
    )
    why: bool = setting(
        False,
        help="Also say for which kinds of queries the results change most, by words, labels and columns.",
    )
    export: Path = setting(
        None,
        metavar="FOLDER",
        written=True,
        help="Write the adapter for use without Relscope: safetensors, NumPy, ONNX.",
    )


@command(
    (MigrateOptions, ThresholdOptions, ByRow, ByLinks, Migration, ThresholdChange, Results, JUnit, Sample),
    "The pairs are the rows that both models have embedded. They are matched by id, or by order with"
    " --pair-by-row. Without judgements, the queries are pairs that are held out from the adapter. If OLD"
    " or NEW has labels, rows with the label of the query are relevant. Without judgements and labels,"
    " only --answers gives a verdict. Also prints the cut-off of the new scores that keeps the number of"
    " hits, the precision or the recall of --threshold. With --gate, the exit code is 1 after an alarm."
    f"{SHARDS_HELP}",
    (
        "old.npy new.npy --export adapter",
        "old.npz new.npz --queries-old q_old.npz --queries-new q_new.npz --qrels qrels.txt",
        "old.npz new.npz --queries-old q_old.npz --queries-new q_new.npz --qrels qrels.txt --threshold .7"
        " --keep precision --gate precision=.8 --junit threshold.xml",
    ),
    # Keep this default of versions before 0.2.0, because old scripts rely on it.
    more=lambda parser: parser.add_argument(
        "--no-curve", dest="curve", action="store_false", help=argparse.SUPPRESS
    ),
)
def run_migrate(options: argparse.Namespace) -> Report:
    _check_options(options)
    answers = None
    if options.answers:
        answers = BlindAnswers.read(options.answers)
    task = _migration(options)
    inputs = samples(options, _places(options))
    if not inputs.notes:
        match(*inputs.spaces[:2])  # report rows that cannot be paired before a job starts
    result = inputs.result(task)
    if answers:
        result = with_answers(result, inputs.spaces[0].ids, answers, task.random_state)
    chart = inputs.chart("migration-options", result, spaces=tuple(inputs.specs), migration=task)
    report = result.report(_rate(options), **chart)
    report = with_thresholds(report, inputs, task, result)
    if options.compress:
        report = _with_cheaper_indexes(report, inputs, task, result)
    if options.why:
        report = _with_kinds_of_queries(report, inputs, result)
    if options.export:
        report = _with_export(report, inputs, result)
    return inputs.noted(report)


def _check_options(options: argparse.Namespace) -> None:
    """Raise a SpaceError for options that need others, or exclude them."""
    queries = (options.queries_old, options.queries_new)
    if any([*queries, options.qrels, options.accepted]) and not all(queries):
        raise SpaceError(
            "migrate: expected both --queries-old and --queries-new, which --qrels and --accepted need, too,"
            " got only some of these options; add the missing ones"
        )
    check_threshold_options(options)
    if bool(options.price) != bool(options.row_tokens):
        raise SpaceError("migrate: expected --price and --row-tokens together, got one; add the other")
    if (options.qrels or options.accepted) and options.pair_by_row:
        raise SpaceError(
            "--pair-by-row: expected no judgements, because row numbers replace the ids in it, got both;"
            " give OLD and NEW the ids of the judgements"
        )


def _places(options: argparse.Namespace) -> list[str]:
    """Where the old and the new vectors are, and those of the queries, if there are any."""
    places = [options.old, options.new]
    if options.queries_old:
        places += [options.queries_old, options.queries_new]
    return places


def _migration(options: argparse.Namespace) -> Migration:
    settings = values_of(options, Migration)
    if options.qrels:
        settings["judgements"] = read_qrels(options.qrels)
    elif options.accepted:
        settings["judgements"] = accepted_pairs(options.accepted)
    if not options.curve:
        settings["sizes"] = ()
    return Migration(**settings)


def _rate(options: argparse.Namespace) -> Rate:
    return Rate(
        options.row_seconds,
        options.price,
        options.row_tokens,
        options.currency,
        options.year_queries,
        options.least_saving,
        options.least_rows,
    )


def _with_kinds_of_queries(report: Report, inputs: Inputs, result: MigrationResult) -> Report:
    """The report with a note for each option that finds other results than the old model."""
    specs = inputs.specs[2:] or inputs.specs
    items = items_of(specs)
    options = [option for option in result.found if option != KEEP]
    notes = [changed_queries_in_words(result, option, items) for option in options]
    return replace(report, notes=[*report.notes, *notes])


def _with_cheaper_indexes(report: Report, inputs: Inputs, task: Migration, result: MigrationResult) -> Report:
    cheaper = CheaperIndex(migration=task, adapter=result.adapter, weight=result.weight)
    indexes = inputs.result(cheaper).report()
    tables = [*report.tables, *indexes.tables]
    notes = [*report.notes, indexes.sentence, *indexes.notes]
    return replace(report, tables=tables, notes=notes)


def _with_export(report: Report, inputs: Inputs, result: MigrationResult) -> Report:
    """Write the adapter to --export, and return the report with the names of the files."""
    from relcore.studies.paper_runs import commit_of

    written = export_result(result, *inputs.spaces[:2], inputs.options.export, commit_of())
    return replace(report, notes=[*report.notes, *map(str, written)])
