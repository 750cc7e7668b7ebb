"""Load the spaces that a user names, and compute results on them, by jobs if that takes long."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from relcore.base.errors import SpaceError
from relcore.base.names import FIGURES
from relcore.base.report import Report
from relcore.catalog.catalog import (
    UNSCORED,
    SpaceSpec,
    listed,
    load,
    numbered_spec,
    renamed_spec,
    with_unscored,
)
from relcore.catalog.naming import space_spec
from relcore.catalog.renamed import put_pairing
from relcore.catalog.task import Result, Task, inputs_of, task_job
from relcore.commands.anchors import suspects_of
from relcore.commands.progress import AT_ONCE_SECONDS, Bar, follow, queue
from relcore.runs.entries import StoreError
from relcore.runs.store import Store
from relcore.spaces.matching import Match
from relcore.spaces.space import LatentSpace


@dataclass
class Inputs:
    """The spaces that a command reads, with the specs to load them again. `notes` say which of them are
    samples of larger spaces."""

    options: argparse.Namespace
    specs: list[SpaceSpec]
    spaces: list[LatentSpace]
    notes: list[str] = field(default_factory=list)

    def result(self, task: Task[Result]) -> Result:
        return self.results([task])[0]

    def results(self, tasks: Sequence[Task[Result]]) -> list[Result]:
        """The results of tasks on these spaces. Results in the store are read. Missing ones are computed: in
        this process if that is quick, otherwise by jobs that run in parallel."""
        options = self.options
        spaces = self.spaces
        store = Store()
        known = {task.key(spaces): task for task in tasks}
        results = {key: task.read(entry) for key, task in known.items() if (entry := store.get(key))}
        missing = {key: task for key, task in known.items() if key not in results}
        seconds = sum(task.seconds(spaces) for task in missing.values())
        at_once = not options.scheduler and seconds < AT_ONCE_SECONDS
        if missing and not at_once:
            try:
                store.require_writable()
            except StoreError:  # the store is not writable, so no job could save its result
                at_once = True
        if at_once:
            with Bar(options) as bar:
                for key, task in missing.items():
                    results[key] = task.compute(store, spaces, warnings.warn, bar.show)
        elif missing:
            with queue(options, n_jobs=len(missing)) as cluster:
                inputs = inputs_of(store, self.specs, spaces)
                jobs = {
                    key: cluster.submit(key, task_job, title=task.title, task=task, inputs=inputs)
                    for key, task in missing.items()
                }
                follow(cluster, list(jobs.values()), options)
                results |= {key: missing[key].read(job.result()) for key, job in jobs.items()}
        return [results[key] for key in known]

    def chart(self, name: str, result: Any, **settings: Any) -> dict[str, Callable[[], Any]]:
        """A dict with one entry: the name of a figure in a report, and a function that draws it from `result`
        with these settings."""
        digests = tuple(space.digest for space in self.spaces)
        return {name: lambda: FIGURES[name].load()(**settings, digests=digests).draw(result)}

    def noted(self, report: Report) -> Report:
        """Return the report with notes that say which numbers come from a sample of the rows."""
        facts = {**report.facts, "sample": self.notes}
        notes = [*report.notes, *self.notes]
        return replace(report, facts=facts, notes=notes)


def spaces_of(options: argparse.Namespace, names: Sequence[str]) -> Inputs:
    """Load the spaces that a user names, by `spaces_of_specs`."""
    return spaces_of_specs(options, list(map(space_spec, names)))


def spaces_of_specs(options: argparse.Namespace, specs: Sequence[SpaceSpec]) -> Inputs:
    """Load spaces, by `loaded_spaces`, and pair their rows by --links. If the command `audit` wrote the file
    of --anchors, rows that it found wrongly paired are not scored.

    Raises the errors of `read_links` and `loaded_spaces`.
    """
    links = getattr(options, "links", None)
    specs = list(specs)
    if links:
        if options.pair_by_row or len(specs) == 1:
            raise SpaceError("--links: expected two spaces without --pair-by-row; leave one option out")
        from relcore.files.links import SCORED, read_links

        pairs, kinds = read_links(links, "--links")
        sure = [own for (own, _), kind in zip(pairs, kinds, strict=True) if kind in SCORED]
        # The rows of the target take the ids of their partners. Scores use only the pairs that the user gave.
        specs[1] = renamed_spec(specs[1], put_pairing(Store(), pairs, sure), f"{specs[1].name} · linked")
    if removed := suspects_of(options):
        specs[0] = with_unscored(specs[0], (*listed(specs[0], UNSCORED), *removed))
    return loaded_spaces(options, specs)


def loaded_spaces(options: argparse.Namespace, specs: Sequence[SpaceSpec]) -> Inputs:
    """Load spaces. With --pair-by-row, the ids of rows are replaced by row numbers.

    Raises a SpaceError if the spaces have different numbers of rows with --pair-by-row, and the errors of
    `load`.
    """
    by_row = getattr(options, "pair_by_row", False)
    specs = list(specs)
    if by_row:
        specs = [numbered_spec(spec) for spec in specs]
    spaces = [load(spec, again=True) for spec in specs]
    if by_row and len(sizes := dict.fromkeys(map(len, spaces))) > 1:
        got = " and ".join(f"{n:,}" for n in sizes)
        raise SpaceError(
            f"--pair-by-row: expected equally many rows, got {got}; save all spaces from the same rows, or"
            " give equal rows the same ids"
        )
    return Inputs(options, specs, spaces)


def pair_settings(specs: Sequence[SpaceSpec], pair: Match, anchors: tuple[str, ...]) -> dict[str, Any]:
    """The settings that are the same in the recipes of all figures about these two spaces (see
    `ComparisonRecipe`)."""
    from relcore.maps.pane_maps import ViewSpec
    from relcore.maps.principal_axes import ReductionSpec

    return {
        "source": specs[0],
        "target": specs[1],
        "anchors": anchors,
        "view": ViewSpec((), everything=True),
        "reduction": ReductionSpec(fit="first"),
        "source_digest": pair.source.digest,
        "target_digest": pair.target.digest,
    }
