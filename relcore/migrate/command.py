"""The command `migrate`, which recommends what to do about a new embedding model: keep the old one, map
queries to it, query both models, let the new model re-rank, or re-embed all rows."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from relcore.base.errors import SpaceError
from relcore.base.report import Report
from relcore.base.settings import setting
from relcore.catalog.naming import SPACE_HELP
from relcore.commands.by_shard import samples
from relcore.commands.command import command, values_of
from relcore.commands.options import SHARDS_HELP, ByLinks, ByRow, Results, Sample
from relcore.migrate.blind_test import AFTER, BlindAnswers, with_answers
from relcore.migrate.cheaper_index import CheaperIndex
from relcore.migrate.migration import Migration
from relcore.migrate.price import UNKNOWN, Rate
from relcore.migrate.relevance import read_qrels
from relcore.migrate.thresholds import FEWEST_QUERIES, ThresholdChange
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
    threshold: float = setting(
        None,
        low=-1,
        high=1,
        help="A cosine threshold of the old model. Default: the cosine that ten rows per query reach.",
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
    export: Path = setting(
        None,
        metavar="FOLDER",
        written=True,
        help="Write the adapter for use without Relscope: safetensors, NumPy, ONNX.",
    )


@command(
    (MigrateOptions, ByRow, ByLinks, Migration, Results, Sample),
    "The pairs are the rows that both models have embedded. They are matched by id, or by order with"
    " --pair-by-row. Without judgements, the queries are pairs that are held out from the adapter. If OLD"
    " or NEW has labels, rows with the label of the query are relevant. Without judgements and labels,"
    " only --answers gives a verdict. Also prints the threshold at which as many rows pass by the new"
    f" scores as pass --threshold by the old scores.{SHARDS_HELP}",
    (
        "old.npy new.npy --export adapter",
        "old.npz new.npz --queries-old q_old.npz --queries-new q_new.npz --qrels qrels.txt",
    ),
    # Keep this default of versions before 0.2.0, because old scripts rely on it.
    more=lambda parser: parser.add_argument(
        "--no-curve", dest="curve", action="store_false", help=argparse.SUPPRESS
    ),
)
def run_migrate(options: argparse.Namespace) -> Report:
    names = [options.old, options.new]
    given = values_of(options, Migration)
    queries = [options.queries_old, options.queries_new]
    if any([*queries, options.qrels]) and not all(queries):
        raise SpaceError(
            "migrate: expected both --queries-old and --queries-new, which --qrels needs, too, got only some"
            " of these options; add the missing ones"
        )
    if bool(options.price) != bool(options.row_tokens):
        raise SpaceError("migrate: expected --price and --row-tokens together, got one; add the other")
    names += filter(None, queries)
    if options.qrels:
        if options.pair_by_row:
            raise SpaceError(
                "--pair-by-row: expected no --qrels, because row numbers replace the ids in it, got both;"
                " give OLD and NEW the ids of the judgements"
            )
        given["judgements"] = read_qrels(options.qrels)
    answers = None
    if options.answers:
        answers = BlindAnswers.read(options.answers)
    if not options.curve:
        given["sizes"] = ()
    task = Migration(**given)
    inputs = samples(options, names)
    spaces = inputs.spaces
    if not inputs.notes:
        match(*spaces[:2])  # report rows that cannot be paired before a job starts
    result = inputs.result(task)
    rate = Rate(
        options.row_seconds,
        options.price,
        options.row_tokens,
        options.currency,
        options.year_queries,
        options.least_saving,
        options.least_rows,
    )
    if answers:
        result = with_answers(result, spaces[0].ids, answers, task.random_state)
    systems = [one for one in AFTER if one in result.found and len(result.queries) >= 2 * FEWEST_QUERIES]
    settings = {"migration": task, "adapter": result.adapter, "threshold": options.threshold}
    changes = [ThresholdChange(**settings, system=system) for system in systems]
    thresholds = dict(zip(systems, inputs.results(changes), strict=True))
    chart = inputs.chart("migration-options", result, spaces=tuple(inputs.specs), migration=task)
    report = result.report(rate, **chart)
    notes = [f"{AFTER[system]}: {one.describe()}" for system, one in thresholds.items()]
    facts: dict[str, Any] = {
        "thresholds": {
            system: {name: value for name, value in vars(one).items() if isinstance(value, int | float)}
            for system, one in thresholds.items()
        },
    }
    tables = [*report.tables]
    if options.compress:
        cheaper = CheaperIndex(migration=task, adapter=result.adapter, weight=result.weight)
        indexes = inputs.result(cheaper).report()
        tables += indexes.tables
        notes += [indexes.sentence, *indexes.notes]
    if options.export:
        from relcore.migrate.result import export_result
        from relcore.studies.paper_runs import commit_of

        notes += map(str, export_result(result, *spaces[:2], options.export, commit_of()))
    notes = [*report.notes, *notes]
    return inputs.noted(replace(report, tables=tables, facts={**report.facts, **facts}, notes=notes))
