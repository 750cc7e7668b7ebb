"""The command `check`, which tells whether a collection of vectors was made by one model or by two."""

from __future__ import annotations

import argparse
import json
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.report import Report, delimited_text
from relcore.base.settings import setting
from relcore.base.writing import write
from relcore.catalog.catalog import SpaceSpec, load
from relcore.catalog.naming import SPACE_HELP, space_spec
from relcore.check.chart import CheckChart
from relcore.check.collection import Checked, CheckRows, check
from relcore.check.mixed_search import advice_sentence, export_mixed
from relcore.check.repair import repair
from relcore.commands.command import command, values_of
from relcore.commands.options import JUnit, Results
from relcore.files.saving import SPACE_KINDS, save_space
from relcore.passport.passport import SUFFIX, Passport
from relcore.spaces.space import LatentSpace


@dataclass
class CheckOptions:
    space: str = setting(metavar="SPACE", help=SPACE_HELP)
    trusted: str = setting(
        None,
        metavar="ROWS",
        help="At least 100 rows, of any texts, by the model that should have made all vectors; or this"
        " model's passport.",
    )
    other: str = setting(
        None,
        metavar="ROWS",
        help="With --trusted: at least 15 rows by the other model, of any texts.",
    )
    known: tuple[Path, ...] = setting(
        (),
        metavar="PASSPORT,PASSPORT",
        help="Passports with fingerprints, to tell which of their models made the larger part.",
    )
    repair: Path = setting(
        None,
        metavar="FILE",
        written=True,
        help="Also write the collection with the smaller part mapped into the space of the larger one"
        f" ({', '.join(SPACE_KINDS)}).",
    )
    again: str = setting(
        None,
        metavar="ROWS",
        help="For --repair: 10 or more rows of the smaller part, embedded again with the model of the larger"
        " part, under their ids. Default: the two parts are linked without pairs.",
    )
    plan: Path = setting(
        None,
        metavar="FILE",
        written=True,
        help="Also write a plan for a store (.json): ids to embed again, and commands.",
    )
    mixed: Path = setting(
        None,
        metavar="FOLDER",
        written=True,
        help="Also write a script, mixed.py, that searches the collection by queries of both models.",
    )


@command(
    (CheckOptions, CheckRows, Results, JUnit),
    "Exact marks tell how numbers were stored. With --trusted, rows are ranked by the axes that the right"
    " model hardly uses. Without --trusted, parts of the collection are compared by such axes. If there are"
    " two models, the table names the model of each row, or says that it is unknown; with --trusted, there"
    " is a p-value. Each check says what it cannot detect. The exit code is 1 if two models were found, if"
    " rows were stored differently, or if the anchors of a trusted passport have other vectors. It is 2 after"
    " an error.",
    (
        "lancedb:store#notes --trusted minilm.safetensors -o rows.csv",
        "vectors.npz --trusted rows.npz --fdr .01 -o rows.csv",
        "vectors.npz --again embedded.npz --repair repaired.npz",
    ),
    suffixes={"output": [".csv"], "repair": SPACE_KINDS, "plan": [".json"]},
    output="Write all rows (.csv), ranked, with the evidence for each.",
)
def run_check(options: argparse.Namespace) -> Report:
    spec = space_spec(options.space)
    task = CheckRows(**values_of(options, CheckRows))
    space = load(spec, again=True)
    trusted, trusted_spec = _trusted_rows(options.trusted)
    known = [Passport.load(file) for file in options.known]
    others, other_spec = _trusted_rows(options.other)
    if isinstance(others, Passport):
        others = others.space
    found = check(space, trusted, known, other=others, fdr=task.fdr, random_state=task.random_state)
    if options.output:
        write(options.output, delimited_text(found.rows(space.ids)).encode())
    digests = [space.digest]
    digests += [load(one).digest for one in (trusted_spec, other_spec) if one]
    chart = CheckChart(space=spec, trusted=trusted_spec, other=other_spec, check=task, digests=tuple(digests))
    report = found.report(space.ids, check=lambda: chart.draw((space, found)))
    notes = [*report.notes]
    if options.repair:
        if options.again:
            again = load(space_spec(options.again), again=True)
        else:
            again = None
        repaired = repair(space, found, again, task.random_state)
        save_space(repaired.space, options.repair)
        notes += filter(None, [repaired.sentence, repaired.warning])
    if options.plan:
        write(options.plan, (json.dumps(_plan(options.space, space, found), indent=2) + "\n").encode())
    if options.mixed:
        paths = export_mixed(space, found, options.mixed, task.random_state)
        notes.append(f"Wrote {' and '.join(path.name for path in paths)} to {options.mixed}.")
        notes.append(advice_sentence(found))
    return replace(report, notes=notes)


def _trusted_rows(name: str | None) -> tuple[LatentSpace | Passport | None, SpaceSpec | None]:
    """Load rows that are known to be of the right model, or a passport of it. Return them with their spec, or
    (None, None) without a name."""
    if name is None:
        return None, None
    spec = space_spec(name)
    with suppress(SpaceError):  # a space of vectors or a damaged passport, which the last line refuses
        if Path(name).suffix.lower() == SUFFIX:
            return Passport.load(name), spec
    return load(spec, again=True), spec


def _plan(place: str, space: LatentSpace, found: Checked) -> dict[str, Any]:
    """A plan, written as JSON, to repair a vector database: the ids of the rows that another model probably
    made, likeliest first, and the steps to embed or map these rows again."""
    steps = [
        "Embed some of the ids again with the model of the other rows; 300 are enough to map the rest:"
        f" relscope check {place} --again ROWS --repair FILE.npz",
        "Or embed all of the ids again.",
        f"Write these rows to the store under their ids, and check again: relscope check {place}",
    ]
    n_suspected = 0
    if len(found.ranks):
        n_suspected = found.suspected_rows.sum()
    rows = np.argsort(-found.ranks, kind="stable")[:n_suspected]
    if not len(rows):
        steps = []
    return {
        "store": place,
        "verdict": found.verdict,
        "rows": found.n,
        "estimated": found.count,
        "not seen": found.limits,
        "steps": steps,
        "ids": [*map(str, space.ids[rows])],
    }
