"""The part of the command `migrate` that replaces a similarity threshold."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

from relcore.base.errors import SpaceError
from relcore.base.junit import GateCase
from relcore.base.report import Report, Table
from relcore.base.settings import setting
from relcore.base.writing import write
from relcore.commands.command import values_of
from relcore.commands.inputs import Inputs, spaces_of
from relcore.files.links import read_links
from relcore.migrate.blind_test import AFTER
from relcore.migrate.cut_offs import FEWEST_QUERIES
from relcore.migrate.migration import Migration
from relcore.migrate.moved_threshold import MovedThreshold, read_limits
from relcore.migrate.result import MigrationResult
from relcore.migrate.thresholds import SYSTEMS, ThresholdChange, check_collection
from relcore.migrate.verdict import NEIGHBOURS
from relcore.scores.relevance import JudgedQuery

BOTH = "both"
FAVOURS_OLD = (
    "Accepted pairs had to pass the old threshold, so measurements favour the old model: rows that only the"
    " new model finds count as wrong."
)


@dataclass
class ThresholdOptions:
    system: str = setting(BOTH, choices=(BOTH, *SYSTEMS), help="The option whose scores get a new cut-off.")
    accepted: Path = setting(
        None,
        metavar="FILE",
        help="Pairs of a query and a row that passed the old threshold and were accepted (.csv, .tsv, .jsonl,"
        " .parquet), instead of --qrels.",
    )
    threshold_rows: str = setting(
        None,
        metavar="SPACE",
        help="The old vectors of the rows on which --threshold was chosen, if they are not those of OLD.",
    )
    gate: tuple[str, ...] = setting(
        (),
        nargs="append",
        metavar="QUANTITY=LIMIT",
        help="Exit with 1 if the precision or recall of the new cut-off is below this limit, such as"
        " precision=.8. Give the option again for both.",
    )
    card: Path = setting(
        None, metavar="FILE", written=True, help="Write a card for the runbook about the new cut-off (.md)."
    )


def accepted_pairs(path: Path) -> tuple[JudgedQuery, ...]:
    """The pairs of a query and a row in a file, as judgements with grade 1."""
    pairs, _ = read_links(path, "--accepted")
    return tuple(JudgedQuery(query, row, 1.0) for query, row in dict.fromkeys(pairs))


def check_threshold_options(options: argparse.Namespace) -> None:
    """Raise a SpaceError for options that need others, or exclude them."""
    read_limits(options.gate)
    if options.accepted and options.qrels:
        raise SpaceError("--accepted: expected no --qrels, got both; leave one out")
    if options.junit and not options.gate:
        raise SpaceError("--junit: expected --gate, whose conditions it writes, got none; add --gate")
    if options.threshold_rows and options.threshold is None:
        raise SpaceError("--threshold-rows: expected --threshold, which was chosen there; add it")


def with_thresholds(report: Report, inputs: Inputs, task: Migration, result: MigrationResult) -> Report:
    """The report with the new cut-off of each option whose results have scores of the new model. If the user
    set no option of thresholds and there are too few queries, the report as it is."""
    options = inputs.options
    systems = [system for system in AFTER if system in result.found and options.system in (BOTH, system)]
    asked = options.threshold is not None or options.gate or options.card or options.keep != "hits"
    if not asked and len(result.queries) < 2 * FEWEST_QUERIES:
        return report
    if not systems:
        raise SpaceError(
            f"--system {options.system}: expected an option that was measured, got one whose rows lack new"
            " vectors; embed all rows by the new model, or leave --system out"
        )
    if options.threshold_rows and result.relevance == NEIGHBOURS:
        (found_on,) = spaces_of(options, [options.threshold_rows]).spaces
        check_collection(found_on, inputs.spaces[0])
    settings = values_of(options, ThresholdChange) | {"migration": task, "adapter": result.adapter}
    changes = [ThresholdChange(**{**settings, "system": system}) for system in systems]
    outcomes = dict(zip(systems, inputs.results(changes), strict=True))
    limits = read_limits(options.gate)
    if limits and result.relevance == NEIGHBOURS:
        raise SpaceError("--gate: expected judgements, got none; pass --qrels, --accepted or labels")
    tables: list[Table] = []
    notes: list[str] = []
    cases: list[GateCase] = []
    for system, outcome in outcomes.items():
        notes += _notes(system, outcome)
        cases += outcome.cases(limits, system)
        if asked:
            rates = outcome.report().tables
            tables += [replace(table, title=f"{AFTER[system]}: the new cut-off", name="") for table in rates]
    if options.accepted:
        notes.append(FAVOURS_OLD)
    if options.card:
        cards = [outcome.card(AFTER[system]) for system, outcome in outcomes.items()]
        write(options.card, "\n".join(cards).encode())
        notes.append(str(options.card))
    thresholds = {system: outcome.facts() for system, outcome in outcomes.items()}
    facts = {**report.facts, "thresholds": thresholds}
    if limits:
        facts["alarm"] = any(case.failed for case in cases)
        notes += [f"{_sign(case)}: {case.group}, {case.told}." for case in cases]
    return replace(
        report, facts=facts, tables=[*report.tables, *tables], notes=[*report.notes, *notes], cases=cases
    )


def _notes(system: str, outcome: MovedThreshold) -> list[str]:
    told = [f"{AFTER[system]}: {outcome.describe()}"]
    if verdict := outcome.verdict():
        told.append(f"{AFTER[system]}: {verdict}")
    return told


def _sign(case: GateCase) -> str:
    if case.failed:
        return "Gate failed"
    return "Gate passed"
