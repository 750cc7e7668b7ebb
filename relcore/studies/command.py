"""The command `study`, which computes a grid of runs. Each run is saved as soon as it is done."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from relcore.base.earlier import refuse_study
from relcore.base.errors import SpaceError, did_you_mean, quote
from relcore.base.names import PLUGIN_STUDIES, STUDIES
from relcore.base.records import read_json
from relcore.base.report import Report, Table, delimited_text, json_lines
from relcore.base.settings import Setting, setting
from relcore.base.writing import write
from relcore.commands.command import command
from relcore.commands.options import Results, Scheduler
from relcore.commands.progress import Bar, queue
from relcore.runs.store import Store
from relcore.studies.report import study_report
from relcore.studies.runs import StudyRuns
from relcore.studies.study import Study, StudySpec, study_of

# The command study computes a grid of runs. Each run is saved as soon as it is done.


@dataclass
class StudyOptions:
    name: str = setting(
        metavar="NAME", nargs="?", help="the study; without a name, all studies are listed with their options"
    )
    grid: str = setting(
        (),
        metavar="OPTION=VALUE",
        nargs="append",
        help="set an option of the study; separate several values by commas; can be given several times",
    )
    spec: Path = setting(None, metavar="FILE", help="Read the study and its options from a .json file.")
    table: bool = setting(False, help="Show finished runs only; do not start any.")
    chart: str = setting("", help="The chart for --recipe; default: the study's first.")


@command(
    (StudyOptions, Results, Scheduler),
    examples=("similarity-performance --grid data=digits --grid n_runs=60 -o runs.csv",),
    suffixes={"output": [".csv", ".jsonl"]},
    output="Write the table of runs (.csv or .jsonl).",
)
def run_study(options: argparse.Namespace) -> Report:
    spec = spec_of(options)
    if spec is None:
        # All studies with their options.
        studies = {kind: study_of(kind) for kind in STUDIES.working()}
        rows = [
            {"study": kind, "question": one.question, "paper": one.paper} for kind, one in studies.items()
        ]
        texts = [
            "\n".join([f"{kind}: {one.question}", f"  {one.paper}", *map(_option_in_words, one.options)])
            for kind, one in studies.items()
        ]
        return Report("\n\n".join(texts), [Table("rows", pd.DataFrame(rows))])
    study = study_of(spec.kind)
    store = Store()
    runs = StudyRuns(study, spec)
    if options.table or not runs.missing(store):
        table = runs.table(store)
    else:
        table = _results(options, runs)
    if options.output:
        rows = table.rename_axis("run").reset_index()
        if options.output.suffix.lower() == ".jsonl":
            text = json_lines(rows)
        else:
            text = delimited_text(rows)
        write(options.output, text.encode())
    return study_report(runs, table, store, options.chart)


def spec_of(options: argparse.Namespace) -> StudySpec | None:
    """The study that the options name, with its settings; None if they name no study."""
    settings = {}
    kind = options.name
    if options.spec:
        spec = StudySpec.from_json(read_json(options.spec, "a study"))
        if kind not in (None, spec.kind):
            raise SpaceError(
                f"{options.spec}: expected the study {kind!r}, got {spec.kind!r}; leave the name out"
            )
        settings = spec.settings
        kind = spec.kind
    if kind is None:
        return None
    refuse_study(kind)
    if kind not in (*STUDIES, *PLUGIN_STUDIES):
        near = did_you_mean(kind, STUDIES)
        raise SpaceError(f"study: expected one of {', '.join(STUDIES)}, got {kind!r}{near}")
    study = study_of(kind)
    return StudySpec.of(study, settings | chosen(study, options.grid))


def chosen(study: Study, grid: list[str]) -> dict[str, Any]:
    """Read texts such as "OPTION=VALUE" from --grid into a dict of values by option. A value that is not
    among the choices of its option stays a string."""
    known = {option.name: option for option in study.options}
    values = {}
    for text in grid:
        name, sign, value = text.partition("=")
        if not sign or name not in known:
            expected = f"OPTION=VALUE with an option of {study.kind}, {quote(known)}"
            raise SpaceError(f"--grid: expected {expected}, got {text!r}")
        choices = {str(choice): choice for choice in known[name].choices}
        parts = [part.strip() for part in value.split(",") if part.strip()]
        several = tuple(choices.get(part, part) for part in parts)
        if known[name].is_tuple:
            values[name] = several
        else:
            values[name] = choices.get(value, value)
    return values


def _results(options: argparse.Namespace, runs: StudyRuns) -> pd.DataFrame:
    with queue(options, len(runs.missing(Store()))) as cluster, Bar(options) as bar:
        try:
            return runs.finish(
                cluster,
                report=lambda done, total, text: bar.show(done, total, f"{done:,} of {total:,} · {text}"),
            )
        except KeyboardInterrupt:
            if cluster.address:  # processes of this machine end with the queue
                runs.stop(cluster)
            raise


def _option_in_words(option: Setting) -> str:
    if option.name == "spaces":
        return (
            "  spaces  with --spec, a study file saved in Research, Studies; default: the bundled word spaces"
        )
    choices = ", ".join(map(str, option.choices)) or "ids"
    if option.is_tuple:
        usual = ", ".join(map(str, option.default))
    else:
        usual = option.default
    several = " (several)" if option.is_tuple else ""
    return f"  --grid {option.name}=…  {choices}{several}; default {usual or 'none'}"
