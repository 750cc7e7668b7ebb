"""check: whether one model made a collection; can repair other rows, and plan the same for a store."""

from __future__ import annotations

import argparse
import json
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
from relcore.commands.running import CommandOptions, Results, values_of
from relcore.files.saving import SPACE_KINDS, need_suffix, write_space
from relcore.passport.charts import CheckChart
from relcore.passport.check import Checked, CheckRows, check
from relcore.passport.passport import SUFFIX, Passport
from relcore.passport.repair import repair
from relcore.spaces.space import LatentSpace


@dataclass
class CheckOptions:
    space: str = setting(metavar="SPACE", help=SPACE_HELP)
    trusted: str = setting(
        None,
        metavar="ROWS",
        help="Rows of the model that should have made all, 100 or more, of any texts; or its passport.",
    )
    known: tuple[Path, ...] = setting(
        (),
        metavar="PASSPORT,PASSPORT",
        help="Passports with fingerprints: which of these models made the larger part.",
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
        help="Of --repair: some rows of the smaller part, 10 or more, embedded again with the model of the"
        " larger part, under their ids. Without them the parts are linked without pairs.",
    )
    plan: Path = setting(
        None,
        metavar="FILE",
        written=True,
        help="Also write what to do with a store (.json): ids to embed again, and commands.",
    )


OPTIONS = CommandOptions(
    (CheckOptions, CheckRows, Results),
    "Exact marks tell how numbers were stored; --trusted ranks rows by the axes that the right model hardly"
    " uses; and without any reference parts of the collection are compared by these axes. Each level says"
    " what it cannot see. The exit code is 1 if two models were found, if rows were stored"
    " differently, or if a trusted passport's anchors have other vectors; 2 after an error.",
    (
        "lancedb:store#notes --trusted minilm.safetensors -o rows.csv",
        "vectors.npz --again embedded.npz --repair repaired.npz",
    ),
    output="Write all rows (.csv), ranked, with the evidence for each.",
)


def run(options: argparse.Namespace) -> Report:
    need_suffix(options.output, [".csv"])
    need_suffix(options.repair)
    need_suffix(options.plan, [".json"])
    spec, task = space_spec(options.space), CheckRows(**values_of(options, CheckRows))
    space = load(spec, again=True)
    trusted, trusted_spec = _trusted_rows(options.trusted)
    known = [Passport.load(file) for file in options.known]
    found = check(space, trusted, known, random_state=task.random_state)
    if options.output:
        write(options.output, delimited_text(found.rows(space.ids)).encode())
    spaces = (space, *([load(trusted_spec)] if trusted_spec else []))
    recipe = {"space": spec, "trusted": trusted_spec, "digests": tuple(one.digest for one in spaces)}
    report = found.report(space.ids, check=lambda: CheckChart(**recipe, check=task).draw((space, found)))
    notes = [*report.notes]
    if options.repair:
        again = load(space_spec(options.again), again=True) if options.again else None
        whole, told = repair(space, found, again, task.random_state)
        write_space(whole, options.repair)
        notes.append(told)
    if options.plan:
        write(options.plan, (json.dumps(_plan(options.space, space, found), indent=2) + "\n").encode())
    return replace(report, notes=notes)


def _trusted_rows(name: str | None) -> tuple[LatentSpace | Passport | None, SpaceSpec | None]:
    """Trusted rows, or a passport, with the spec of the space."""
    if name is None:
        return None, None
    spec = space_spec(name)
    if Path(name).suffix.lower() == SUFFIX:
        try:
            return Passport.load(name), spec
        except SpaceError:  # vectors as safetensors, or a damaged passport, which the next line refuses
            pass
    return load(spec, again=True), spec


def _plan(place: str, space: LatentSpace, found: Checked) -> dict[str, Any]:
    """The plan for a store: the ids to embed again, the likeliest first, or how to map the rows."""
    steps = [
        "Embed some of the ids again with the model of the other rows; 300 are enough to map the rest:"
        f" relscope check {place} --again ROWS --repair FILE.npz",
        "Or embed all of the ids again.",
        f"Write these rows to the store under their ids, and check again: relscope check {place}",
    ]
    rows = np.argsort(-found.ranks, kind="stable")[: found.suspected_rows.sum() * bool(len(found.ranks))]
    told = {"store": place, "verdict": found.verdict, "rows": found.n, "estimated": found.count}
    told |= {"not seen": found.limits, "steps": steps * bool(len(rows)), "ids": [*map(str, space.ids[rows])]}
    return told
