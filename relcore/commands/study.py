"""study: a grid of runs. Each is saved as soon as it is done, and the same command resumes a study that
was stopped.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pandas as pd

from relcore.base.errors import SpaceError, quote
from relcore.base.names import STUDIES
from relcore.base.numbers import band, counted, short
from relcore.commands.naming import did_you_mean, read_json
from relcore.commands.options import option
from relcore.commands.output import Bar, Lines, add_results, add_scheduler, need_suffix, show, write_recipe
from relcore.commands.running import engine, interrupted
from relcore.runs.store import Store
from relcore.studies.runs import StudyRuns
from relcore.studies.study import Option, Study, StudySpec, study_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        help="the study; without a name, all studies are listed with their options",
    )
    parser.add_argument(
        "--grid",
        action="append",
        default=[],
        metavar="OPTION=VALUE",
        help="set an option of the study; separate several values by commas; can be given several times",
    )
    option(parser, "spec", Path, metavar="FILE", help="Read the study and its options from a .json file.")
    option(parser, "table", bool, False, help="Show finished runs only; do not start any.")
    option(parser, "chart", str, "", help="The chart for --recipe; default: the study's first.")
    add_results(parser, "Write the table of runs (.csv).")
    add_scheduler(parser)
    parser.epilog = (
        "example:\n  relscope study similarity-performance --grid data=digits --grid n_runs=60 -o runs.csv"
    )


def run(options: argparse.Namespace) -> None:
    need_suffix(options.output, [".csv"])
    spec = spec_of(options)
    if spec is None:
        list_studies(options)
        return
    study = study_of(spec.kind)
    runs = StudyRuns(study, spec)
    table = finished(options, runs)
    if options.output:
        table.to_csv(options.output, index_label="run", lineterminator="\n")
    if options.recipe:
        from relcore.studies.runs import StudyChart

        write_recipe(options, StudyChart(spec.to_json(), options.chart).draw(table))
    findings = study.findings(spec.settings, table) if len(table) else table
    conclusion = study.conclusion(spec.settings, table) if len(table) else ""
    number = f"{counted(len(runs), 'run')} {'is' if len(runs) == 1 else 'are'}"
    lines: Lines = [f"{study.title}: {len(table):,} of {number} done."]
    came = came_with(runs)
    if came:
        lines.append(f"{came['runs']:,} of these runs came with Relscope. {came['made']}")
    lines += [*([conclusion] if conclusion else []), "", findings_lines(findings)]
    lines += ["", str(options.output)] if options.output else []
    facts = {"study": spec.to_json(), "came_with_relscope": came, "conclusion": conclusion}
    show(options, table, lines, **facts, findings=findings.to_dict("records"))


def came_with(runs: StudyRuns) -> dict[str, Any] | None:
    """How many runs came with Relscope, and when and with which commit they were computed; None where
    there are none.
    """
    store = Store()
    origins = [origin for key in runs.keys if (origin := store.made(key))]
    if not origins:
        return None
    first = origins[0]
    return {"runs": len(origins), "date": first.date, "commit": first.commit, "made": first.in_words}


def spec_of(options: argparse.Namespace) -> StudySpec | None:
    """The study that the options name; None without a name.

    Raises
    ------
    SpaceError
        An unknown study, option or choice; a name and a file that do not agree.
    """
    if options.spec:
        spec = StudySpec.from_json(read_json(options.spec, "a study"))
        if options.name not in (None, spec.kind):
            raise SpaceError(
                f"{options.spec}: expected the study {options.name!r}, got {spec.kind!r}; leave the name out"
            )
        study = study_of(spec.kind)
        return StudySpec.of(study, spec.settings | chosen(study, options.grid))
    if options.name is None:
        return None
    if options.name not in STUDIES:
        near = did_you_mean(options.name, STUDIES)
        raise SpaceError(f"study: expected one of {', '.join(STUDIES)}, got {options.name!r}{near}")
    study = study_of(options.name)
    return StudySpec.of(study, chosen(study, options.grid))


def chosen(study: Study, grid: list[str]) -> dict[str, Any]:
    """What --grid says, as values of the study's options."""
    known = {option.name: option for option in study.options}
    values = {}
    for text in grid:
        name, sign, value = text.partition("=")
        if not sign or name not in known:
            expected = f"OPTION=VALUE with an option of {study.kind}, {quote(known)}"
            raise SpaceError(f"--grid: expected {expected}, got {text!r}")
        values[name] = _value(known[name], value)
    return values


def _value(option: Option, text: str) -> Any:
    """The choice with this text; other texts are left to the option, which says what it expects."""
    by_text = {str(choice): choice for choice in option.choices}
    if option.many:
        return tuple(by_text.get(part.strip(), part.strip()) for part in text.split(",") if part.strip())
    return by_text.get(text, text)


def finished(options: argparse.Namespace, runs: StudyRuns) -> pd.DataFrame:
    """The table of all runs, after the missing ones were computed; with --table, of finished runs only."""
    store = Store()
    missing = runs.missing(store)
    if options.table or not missing:
        return runs.table(store)
    with engine(options, len(missing)) as cluster, Bar(options) as bar:
        try:
            return runs.finish(
                cluster,
                report=lambda done, total, text: bar.show(done, total, f"{done:,} of {total:,} · {text}"),
            )
        except KeyboardInterrupt:
            interrupted(cluster, lambda: runs.stop(cluster))
            raise


def list_studies(options: argparse.Namespace) -> None:
    """Every study with its question, its paper and its options."""
    studies = [study_of(kind) for kind in STUDIES]
    rows = [{"study": study.kind, "question": study.question, "paper": study.paper} for study in studies]
    lines: Lines = []
    for study in studies:
        lines += [f"{study.kind}: {study.question}", f"  {study.paper}", *map(_described, study.options), ""]
    show(options, pd.DataFrame(rows), lines[:-1])


def _described(option: Option) -> str:
    if option.name == "spaces":
        where = "with --spec, a study file saved on the Studies page; default: the bundled word spaces"
        return f"  spaces  {where}"
    choices = ", ".join(map(str, option.choices)) or "ids"
    usual = ", ".join(map(str, option.default)) if option.many else option.default
    several = " (several)" if option.many else ""
    return f"  --grid {option.name}=…  {choices}{several}; default {usual or 'none'}"


def findings_lines(findings: pd.DataFrame) -> list[list[str]] | str:
    """The findings as the page lists them: value, 95 % interval, n."""
    if not len(findings):
        return "No findings yet."
    rows = [["finding", "value", "95 %", "n"]]
    for row in findings.itertuples():
        interval = "" if row.low != row.low else band(row.low, row.high)
        rows.append([row.what, short(row.value), interval, f"{row.n:,}"])
    return rows
