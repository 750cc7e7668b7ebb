"""study: a grid of runs. Each is saved as soon as it is done, and the same command resumes a study that
was stopped.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from relcore.studies.runs import StudyRuns
    from relcore.studies.study import Option, Study, StudySpec


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from relcore.commands.output import add_format, add_recipe
    from relcore.commands.running import add_scheduler

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
    parser.add_argument(
        "--spec", type=Path, metavar="FILE", help="read the study and its options from a .json file"
    )
    parser.add_argument("--table", action="store_true", help="show finished runs only; do not start any")
    parser.add_argument(
        "--chart", default="", metavar="NAME", help="the chart for --recipe; default: the study's first"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the table of runs (.csv)")
    add_recipe(parser)
    add_scheduler(parser)
    add_format(parser)
    parser.epilog = (
        "example:\n  relscope study similarity-performance --grid data=digits --grid n_runs=60 -o runs.csv"
    )


def run(options: argparse.Namespace) -> None:
    from relcore.base.numbers import counted
    from relcore.commands.output import need_suffix, show, write_recipe
    from relcore.studies.figures import StudyChart
    from relcore.studies.runs import StudyRuns
    from relcore.studies.study import study_of

    need_suffix(options.output, [".csv"])
    spec = spec_of(options)
    if spec is None:
        return list_studies(options)
    study = study_of(spec.kind)
    runs = StudyRuns(study, spec)
    table = finished(options, runs)
    if options.output:
        table.to_csv(options.output, index_label="run", lineterminator="\n")
    if options.recipe:
        write_recipe(options, StudyChart(spec.to_json(), options.chart).draw(table))
    found = study.findings(spec.settings, table)
    done = (
        f"{study.title}: {len(table):,} of {counted(len(runs), 'run')} {'is' if len(runs) == 1 else 'are'}"
        " done."
    )
    came = came_with(runs)
    conclusion = study.conclusion(spec.settings, table) if len(table) else ""
    told = [f"{came['runs']:,} of these runs came with Relscope. {came['made']}"] if came else []
    lines = [done, *told, *([conclusion] if conclusion else []), "", findings_lines(found)]
    lines += ["", str(options.output)] if options.output else []
    facts = {"study": spec.to_json(), "came_with_relscope": came, "conclusion": conclusion}
    show(options, table, lines, **facts, findings=found.to_dict("records"))
    return None


def came_with(runs: StudyRuns) -> dict[str, Any] | None:
    """How many runs came with Relscope, and when and with which commit they were computed; None where
    there are none.
    """
    from relcore.runs.store import Store

    store = Store()
    made = [found for key in runs.keys if (found := store.made(key))]
    if not made:
        return None
    return {"runs": len(made), "date": made[0].date, "commit": made[0].commit, "made": made[0].in_words}


def spec_of(options: argparse.Namespace) -> StudySpec | None:
    """The study that the options name; None without a name.

    Raises
    ------
    SpaceError
        An unknown study, option or choice; a name and a file that do not agree.
    """
    from relcore.base.errors import SpaceError
    from relcore.base.names import STUDIES
    from relcore.commands.naming import did_you_mean, read_json
    from relcore.studies.study import StudySpec, study_of

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
    from relcore.base.errors import SpaceError, quote

    known = {option.name: option for option in study.options}
    found = {}
    for one in grid:
        name, sign, text = one.partition("=")
        if not sign or name not in known:
            expected = f"OPTION=VALUE with an option of {study.kind}, {quote(known)}"
            raise SpaceError(f"--grid: expected {expected}, got {one!r}")
        found[name] = _value(known[name], text)
    return found


def _value(option: Option, text: str) -> Any:
    """The choice with this text; other texts are left to the option, which says what it expects."""
    by_text = {str(choice): choice for choice in option.choices}
    if option.many:
        return tuple(by_text.get(part.strip(), part.strip()) for part in text.split(",") if part.strip())
    return by_text.get(text, text)


def finished(options: argparse.Namespace, runs) -> pd.DataFrame:
    """The table of all runs, after the missing ones were computed; with --table, of finished runs only."""
    from relcore.commands.running import bar, engine, interrupted
    from relcore.runs.store import Store

    store = Store()
    missing = runs.missing(store)
    if options.table or not missing:
        return runs.table(store)
    with engine(options, len(missing)) as made, bar(options) as line:
        try:
            return runs.finish(
                made,
                report=lambda done, total, text: line.show(done, total, f"{done:,} of {total:,} · {text}"),
            )
        except KeyboardInterrupt:
            interrupted(made, lambda: runs.stop(made))
            raise


def list_studies(options: argparse.Namespace) -> None:
    """Every study with its question, its paper and its options."""
    import pandas as pd

    from relcore.base.names import STUDIES
    from relcore.commands.output import show
    from relcore.studies.study import study_of

    studies = [study_of(kind) for kind in STUDIES]
    table = pd.DataFrame([{"study": s.kind, "question": s.question, "paper": s.paper} for s in studies])
    lines: list[Any] = []
    for study in studies:
        lines += [f"{study.kind}: {study.question}", f"  {study.paper}"]
        for option in study.options:
            if option.name == "spaces":
                lines.append(
                    "  spaces  with --spec, a study file saved on the Studies page; default: the bundled word"
                    " spaces"
                )
                continue
            choices = ", ".join(map(str, option.choices)) or "ids"
            usual = ", ".join(map(str, option.default)) if option.many else option.default
            lines.append(
                f"  --grid {option.name}=…  {choices}{' (several)' if option.many else ''}; default"
                f" {usual or 'none'}"
            )
        lines.append("")
    show(options, table, lines[:-1])


def findings_lines(found: pd.DataFrame) -> list[list[str]] | str:
    """The findings as the page lists them: value, 95 % interval, n."""
    from relcore.base.numbers import short

    if not len(found):
        return "No findings yet."
    rows = [["finding", "value", "95 %", "n"]]
    for row in found.itertuples():
        interval = "" if row.low != row.low else f"{short(row.low)} … {short(row.high)}"
        rows.append([row.what, short(row.value) if row.value == row.value else "–", interval, f"{row.n:,}"])
    return rows
