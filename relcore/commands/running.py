"""Functions that all commands share: declare options, load the spaces and anchors that users name, run jobs,
and print reports."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, is_dataclass, replace
from functools import partial
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from relcore.base.access import expand_home
from relcore.base.errors import SpaceError, quote
from relcore.base.names import FIGURES, STRATEGIES, Named
from relcore.base.report import Report, Table, delimited_text, json_lines
from relcore.base.settings import UNSET, Setting, setting, settings_of
from relcore.base.text import read_lines, visible
from relcore.base.writing import write
from relcore.catalog.catalog import (
    UNSCORED,
    SpaceSpec,
    is_address,
    listed,
    load,
    numbered_spec,
    put_pairing,
    renamed_spec,
    with_unscored,
)
from relcore.catalog.naming import SPACE_HELP, space_spec
from relcore.catalog.task import Result, Task, inputs_of, task_job
from relcore.files.reading import is_one_space
from relcore.represent.similarity import USUAL_ANCHORS, select_anchors, usual_anchors
from relcore.runs.entries import StoreError
from relcore.runs.store import Store
from relcore.spaces.space import GuessedIds, LatentSpace, Match, scored_rows
from relcore.stores.index import parse_place

if TYPE_CHECKING:
    from relcore.runs.jobs import Job, JobQueue
    from relcore.sharded.operations import Runner
    from relcore.sharded.space import ShardedSpace

SHARDS_HELP = (
    " Folders of shards: a folder, or an address such as s3://…, with two or more .npy, .parquet, .arrow or"
    " .feather files of one width is one space of any size. It is read shard by shard on the workers of the"
    " cluster. A stopped command resumes at the next shard."
)
_MOST_DIGITS = 18  # 18 digits fit into 64 bits
PRINTED = {"json": "JSON", "jsonl": "a line of JSON for each row", "csv": "CSV"}
# Suffix of -o → format, for commands that write only their report.
REPORT_FILES = {".csv": "csv", ".json": "json", ".jsonl": "jsonl", ".md": "markdown", ".txt": "table"}


@dataclass
class Pair:
    source: str = setting(metavar="SOURCE", help=SPACE_HELP)
    target: str = setting(metavar="TARGET", help="the other space, named likewise; rows are paired by id")


@dataclass
class ByRow:
    pair_by_row: bool = setting(
        False,
        help="Pair rows by order, not by id: row i of both is the same item. Both need equally many rows.",
    )


@dataclass
class ByLinks:
    links: Path = setting(
        None,
        metavar="FILE",
        help="Pair rows by this file of links: the output of link -o, or a table with two columns of ids. Of"
        " the links by link -o, only those of the kinds “seed” and “confirmed” are scored.",
    )


@dataclass
class Anchors:
    anchors: str = setting(
        None,
        metavar="N|FILE|IDS",
        help="Number of anchors to choose, ids separated by commas, a file of ids (one per line), or the"
        f" output of audit -o (suspects are not scored). Default: {USUAL_ANCHORS}, or a fifth of the rows",
    )
    strategy: str = setting("random", choices=STRATEGIES, help="How to choose the anchors.")


@dataclass
class DrawnAnchors(Anchors):
    random_state: int = setting(0, low=0, help="Random state of the choice of anchors.")


@dataclass
class Scheduler:
    scheduler: str = setting(
        None,
        metavar="tcp://HOST:PORT",
        help="Run on this Dask cluster, whose workers share the store's folder (default: $RELSCOPE_SCHEDULER,"
        " or processes of this machine).",
    )


@dataclass
class Shards(Scheduler):
    shards: bool = setting(
        False,
        help="Read folders by shard even if they fit into memory, such as those of datasets.save_to_disk.",
    )


@dataclass
class Sample(Shards):
    sample: int = setting(
        20_000,
        low=1,
        help="Number of rows to draw from a folder of shards, by a hash of their ids.",
    )


@dataclass
class FullPaths:
    full_paths: bool = setting(
        False, help="Write full paths of data files into the recipe. By default, only the files' names."
    )


@dataclass
class Printed:
    format: str = setting(
        "table", choices=("table", "json", "jsonl", "csv", "markdown"), help="What is printed."
    )


@dataclass
class Results(FullPaths, Printed):
    recipe: Path = setting(
        None,
        metavar="FILE",
        written=True,
        help="Also write the recipe (.json), from which relscope figure draws the same numbers.",
    )


@dataclass
class Command:
    """A command of the command line: its options, the texts of its ``--help``, and the function that runs it.

    Attributes
    ----------
    run : function of the parsed options that returns a report
    kinds : dataclasses whose fields are the options; if a name repeats, its first field counts
    about : sentences that explain the command
    examples : calls, without the name of the command
    output : help of ``-o``; "" if the command writes only its report, or nothing
    suffixes : the allowed suffixes of each file that is written, by the option that names the file
    more : function that adds options that no field can declare
    """

    run: Callable[[argparse.Namespace], Report | None]
    kinds: tuple[type, ...]
    about: str = ""
    examples: tuple[str, ...] = ()
    output: str = ""
    suffixes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    more: Callable[[argparse.ArgumentParser], None] | None = None

    def add_to(self, parser: argparse.ArgumentParser, name: str) -> None:
        parser.description = f"{parser.description} {self.about}".strip()
        output = self.output
        suffixes = {**self.suffixes}
        if not output and {Printed, Results} & {*self.kinds}:
            output = f"Also write the report ({', '.join(REPORT_FILES)})."
            suffixes["output"] = REPORT_FILES
        if output:
            parser.add_argument("-o", "--output", type=_path_or_address, metavar="FILE", help=output)
        add(parser, *self.kinds)
        if self.more:
            self.more(parser)
        parser.set_defaults(run=self.run, suffixes=suffixes)
        parser.epilog = "\n".join(["example:", *(f"  relscope {name} {call}" for call in self.examples)])


def command(*declared: Any, **more: Any) -> Callable[..., Command]:
    """A decorator that turns a function into a `Command`; its arguments are the fields of `Command` after
    `run`."""
    return lambda run: Command(run, *declared, **more)


def add(parser: argparse.ArgumentParser, *kinds: type) -> None:
    """Add a command-line option for each field of these dataclasses that has a help text. If a field is
    itself a dataclass, options are added for its fields. A field without a default becomes a positional
    argument.
    """
    for kind in kinds:
        for name, one in settings_of(kind).items():
            if is_dataclass(one.kind):
                add(parser, one.kind)
            if not one.help or flag(one.option) in parser._option_string_actions:
                continue
            usual = one.start()
            shown = {"help": help_text(one), "metavar": one.metavar or None}
            plain = {"type": Path if one.kind is Path else str}
            if one.nargs == "append":
                shown |= plain | {"action": "append", "required": usual is UNSET, "default": []}
            elif usual is UNSET:
                shown |= plain | {"nargs": one.nargs or None, "choices": tuple(one.choices) or None}
            elif one.kind is bool:
                action = "store_true"
                if usual:
                    action = argparse.BooleanOptionalAction
                shown = {"help": shown["help"], "default": usual, "action": action}
            else:
                name_of_value = one.metavar or {int: "N", float: "X"}.get(one.number, "NAME")
                shown |= {"default": usual, "metavar": name_of_value, "type": partial(_read, one)}
            positional = usual is UNSET and one.nargs != "append"
            parser.add_argument(name if positional else flag(one.option), **shown).setting = one
            if name == "format":
                for short, kind in PRINTED.items():
                    shown = {"const": short, "help": f"print {kind}, with all digits"}
                    parser.add_argument(f"--{short}", dest=name, action="store_const", **shown)


def _path_or_address(text: str) -> Path | str:
    return text if is_address(text) else Path(text)


def flag(name: str) -> str:
    if len(name) == 1:
        return f"-{name}"
    return f"--{name.replace('_', '-')}"


def help_text(one: Setting) -> str:
    """The help text of a setting, with its choices and its default."""
    if callable(one.usual):
        usual = "depends on the data"
    elif one.several:
        usual = one.default
    else:
        usual = one.start()
    if isinstance(usual, tuple):
        usual = ",".join(map(str, usual))
    parts = [one.help.rstrip(".") or one.label]
    listed = []
    for name, choice in one.choices.items():
        told = isinstance(choice, Named) and choice.help and len(", ".join(map(str, one.choices))) < 80
        listed.append(f"{name} ({choice.help})" if told else str(name))
    if listed:
        parts.append(f"one of {', '.join(listed)}")
    if not (usual is UNSET or usual is None or usual is False or usual == ""):
        parts.append(f"default: {usual}")
    return "; ".join(parts).replace("%", "%%")


def _read(one: Setting, text: str) -> Any:
    """Convert a text from the command line into the value of a setting. If it is invalid, raise an error, to
    which argparse adds the option's name."""
    try:
        if one.kind is Path:
            value = Path(text)
        else:
            value = one.read(text)
        one.check(value)
    except SpaceError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix(f"{one.name}: ")) from None
    return value


def values_of(options: argparse.Namespace, kind: type) -> dict[str, Any]:
    """The values of the options that `add` made for a dataclass, by the name of the field."""
    values = {}
    for name, one in settings_of(kind).items():
        if is_dataclass(one.kind) and (inner := values_of(options, one.kind)):
            values[name] = one.kind(**inner)
        elif one.help and hasattr(options, one.option):
            values[name] = getattr(options, one.option)
    return values


def is_number(option: str, text: str) -> bool:
    """Whether the text of an option is a number of rows: a whole number without a sign. Other texts name a
    file or ids.

    Raises
    ------
    SpaceError
        The number has more digits than any number of rows can have.
    """
    number = text.isascii() and text.isdecimal()
    if number and len(text) > _MOST_DIGITS:
        raise SpaceError(
            f"{option}: expected a number of at most {_MOST_DIGITS} digits, got {len(text):,} digits; choose"
            " fewer"
        )
    return number


def is_by_shard(options: argparse.Namespace, *places: str) -> bool:
    """Whether the folders at these paths or addresses are read shard by shard, without loading a whole space
    into memory.

    A saved dataset, or the shards of one table, can be loaded into memory as one space. Such a folder is read
    by shard only with --shards.
    """
    if options.shards or any(map(os.path.isfile, places)):  # `Path.is_file` raises an error for a long name
        return options.shards
    from relcore.sharded.space import is_sharded

    for place in places:
        index = parse_place(place)
        if index is not None and index.where != place:
            return False
        if not is_address(place) and os.path.isdir(place) and is_one_space(Path(place)):
            return False
    return all(map(is_sharded, places))


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
    """Load the spaces that a user names, by `loaded_spaces`. If the command `audit` wrote the file of
    --anchors, rows that it found wrongly paired are not scored.

    Raises the errors of `read_links` and `loaded_spaces`.
    """
    links = getattr(options, "links", None)
    specs = list(map(space_spec, names))
    if links:
        if options.pair_by_row or len(specs) == 1:
            raise SpaceError("--links: expected two spaces without --pair-by-row; leave one option out")
        from relcore.linking.link import SCORED, read_links

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
    specs = list(map(numbered_spec, specs) if by_row else specs)
    spaces = list(map(partial(load, again=True), specs))
    if by_row and len(sizes := dict.fromkeys(map(len, spaces))) > 1:
        got = " and ".join(f"{n:,}" for n in sizes)
        raise SpaceError(
            f"--pair-by-row: expected equally many rows, got {got}; save all spaces from the same rows, or"
            " give equal rows the same ids"
        )
    return Inputs(options, specs, spaces)


def anchors_of(options: argparse.Namespace, space: LatentSpace) -> tuple[str, ...]:
    """The ids of the anchors. If --anchors lists ids, these are returned. Otherwise it is a number, by
    default `usual_anchors`, and that many anchors are chosen in this space by --strategy. Pairs of rows that
    were only guessed cannot be scored, so if there are enough of them, all anchors are chosen among them.
    """
    anchors = number_or_ids(options.anchors, usual_anchors(len(space)))
    if not isinstance(anchors, int) or not anchors:
        return anchors or ()
    if isinstance(space.ids, GuessedIds) and anchors <= len(
        guesses := np.flatnonzero(~scored_rows(space.ids))
    ):
        space = space.take(guesses)
    return tuple(select_anchors(space, anchors, options.strategy, random_state=options.random_state))


def number_or_ids(text: str | None, usual: int = USUAL_ANCHORS) -> int | tuple[str, ...]:
    """Read the value of --anchors: either a number of anchors, such as ``"300"``, or distinct ids. The ids
    are separated by commas, or `text` names a file with one id per line."""
    if text is None:
        return usual
    if is_number("--anchors", text):
        return int(text)
    if re.fullmatch(r"[+-]\d+(\.\d*)?", text.strip()):
        raise SpaceError(
            f"--anchors: expected a number from 0, ids, or a file of ids, got {text!r:.40}; write ids that"
            " look like numbers into a file"
        )
    if (path := _path_of(text)).is_file():
        if (ids := _ids_in(path)) is None:
            from relcore.linking.link import known_pairs

            known = known_pairs(path, "--anchors")
            if apart := [pair for pair in known if pair[0] != pair[1]]:
                raise SpaceError(
                    f"--anchors: expected pairs of equal ids, got {quote(apart[0])}; pairs of different ids"
                    " are for audit --pair-list and link --pairs"
                )
            ids = [source for source, _ in known]
    elif path.suffix.lower() in (".txt", ".csv"):
        got = f"{text!r:.200}, a file that does not exist; check the spelling"
        raise SpaceError(f"--anchors: expected a number, ids, or a file of ids, got {got}")
    else:
        ids = text.split(",")
    distinct = tuple(dict.fromkeys(filter(None, map(str.strip, ids))))
    if not distinct:
        raise SpaceError(
            f"--anchors: expected at least one id, got none in {text!r:.200}; name ids of the space"
        )
    return distinct


def _path_of(anchors: str) -> Path:
    try:
        return expand_home(anchors)
    except SpaceError:
        if "," not in anchors:
            raise
        return Path()  # not a path but a list of many ids, which is longer than a path can be


def _ids_in(path: Path) -> list[str] | None:
    """The lines of a file that lists ids; None if the file lists pairs of ids instead (see
    `relcore.linking.link.is_links`)."""
    from relcore.linking.link import is_links

    if is_links(path):
        return None
    return read_lines(path, "one id per line")


def suspects_of(options: argparse.Namespace) -> list[str]:
    """The ids of rows that the command `audit` found wrongly paired, read from the file of --anchors; [] if
    `audit` did not write this file."""
    text = getattr(options, "anchors", None)
    if not isinstance(text, str) or not (path := _path_of(text)).is_file():
        return []
    from relcore.linking.link import read_links

    if _ids_in(path) is None:
        pairs, kinds = read_links(path)
    else:
        pairs = ()
        kinds = ()
    marked = zip(pairs, kinds, strict=True)
    return [source for (source, target), kind in marked if kind == "suspect" and source == target]


def pair_settings(specs: Sequence[SpaceSpec], pair: Match, anchors: tuple[str, ...]) -> dict[str, Any]:
    """The settings that are the same in the recipes of all figures about these two spaces (see
    `ComparisonRecipe`)."""
    from relcore.maps.pane_maps import ViewSpec
    from relcore.maps.reduction import ReductionSpec

    digests = {"source_digest": pair.source.digest, "target_digest": pair.target.digest}
    looks = {"view": ViewSpec((), everything=True), "reduction": ReductionSpec(fit="first")}
    return {"source": specs[0], "target": specs[1], "anchors": anchors, **looks, **digests}


_WIDTH = 20  # characters of a bar
_ERASE = "\r\x1b[2K"  # erases the line in the terminal
_EVERY = 30.0  # seconds between lines, if stderr is no terminal


def finish(options: argparse.Namespace, report: Report) -> int:
    """Write the recipe, print the report, and return the exit code, which is 1 after an alarm."""
    figures = [*report.figures.values()]
    if getattr(options, "recipe", None) and figures:
        write(options.recipe, figures[0]().bytes("json", full_paths=options.full_paths))
    written = getattr(options, "output", None)
    if written and getattr(options, "suffixes", {}).get("output") is REPORT_FILES:
        write(written, _text(report, REPORT_FILES[written.suffix.lower()]).encode())
    with suppress(BrokenPipeError):  # a reader such as `head` stopped reading; keep the exit code
        print(_text(report, options.format, str(written or "")).removesuffix("\n"))
    return int(bool(report.facts.get("alarm")))


def _text(report: Report, kind: str, written: str = "") -> str:
    """The report as text in a format of --format. As JSON and as plain text, it includes `written`, which
    names the file that the command wrote."""
    rows = next((table.rows for table in report.tables if table.rows is not None), None)
    if kind == "json":
        record = report.record(**({"output": written} if written else {}))
        return json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    if kind in ("csv", "jsonl") and rows is not None:
        if kind == "jsonl":
            return json_lines(rows)
        return delimited_text(rows)
    if kind == "markdown":
        return report.markdown()
    return "\n".join(filter(None, [report.text(), written])) + "\n"


@dataclass
class Bar(AbstractContextManager):
    """A progress bar on stderr, which is erased at the end. If stderr is no terminal, as in a job's log, a
    line is printed every half minute. With --quiet, nothing is printed.
    """

    options: argparse.Namespace
    drawn: bool = False
    _next: float = field(default_factory=lambda: time.monotonic() + _EVERY)

    def show(self, done: float, total: float, text: str = "", *_) -> None:
        """Show which share of the work is done, and a text."""
        if self.options.quiet:
            return
        share = min(1.0, done / total) if total else 0.0
        if not sys.stderr.isatty():
            if (now := time.monotonic()) >= self._next:
                self._next = now + _EVERY
                print(f"relscope: {share:4.0%}  {visible(text)}", file=sys.stderr, flush=True)
            return
        line = f"[{'=' * round(_WIDTH * share):<{_WIDTH}}] {share:4.0%}  {visible(text)}"
        self.drawn, line = True, line[: shutil.get_terminal_size().columns - 1]
        print(f"{_ERASE}{line}", end="", file=sys.stderr, flush=True)

    def event(self, event: Mapping[str, Any]) -> None:
        """Show the progress in an event that a job sent."""
        self.show(event["done"], event["total"], event["message"])

    def __exit__(self, *_) -> None:
        if self.drawn:
            print(_ERASE, end="", file=sys.stderr, flush=True)


AT_ONCE_SECONDS = 2.0  # a shorter job runs in this process, because another process takes seconds to start


@contextmanager
def queue(options: argparse.Namespace, n_jobs: int | None = None) -> Iterator[JobQueue]:
    """Open a job queue on the cluster of --scheduler or, without that option, on this machine with at most
    one process per job. Without a cluster, a single job runs in this process, and so do all jobs if Dask (the
    extra ``cluster``) is not installed.
    """
    from relcore.runs.jobs import JobQueue, QueueInPlace

    cluster = JobQueue(options.scheduler)
    # Compute here, because another process would take seconds to start and to import the libraries.
    if (n_jobs == 1 or find_spec("distributed") is None) and not cluster.address:
        with Bar(options) as bar:
            yield QueueInPlace(bar.event)
        return
    cluster.n_workers = min(cluster.n_workers, n_jobs or cluster.n_workers)
    try:
        with Bar(options) as bar:
            bar.show(0, 1, "starting")
            cluster.start()
        yield cluster
    except KeyboardInterrupt:
        # In a terminal, the other processes also received the signal and may be partly closed. Their errors
        # do not matter.
        with Bar(options) as bar, suppress(Exception):
            bar.show(0, 1, "stopping")
            cluster.close()
        raise
    finally:
        cluster.close()


def follow(queue: JobQueue, jobs: Sequence[Job], options: argparse.Namespace, pause: float = 0.1) -> None:
    """Wait for jobs and show a progress bar. Ctrl-C stops the jobs.

    Raises
    ------
    JobQueueError
        A job failed.
    """
    with Bar(options) as bar:
        try:
            while not all(job.status().ended for job in jobs):
                bar.show(*_standing(jobs))
                time.sleep(pause)
        except KeyboardInterrupt:
            for job in jobs if queue.address else ():  # Dask processes of this machine end with the queue
                job.cancel()
            raise
    for job in jobs:
        job.result()


def _standing(jobs: Sequence[Job]) -> tuple[float, float, str]:
    """Summarise the jobs for a progress bar: the number of finished jobs, where a running job counts as a
    fraction; the number of all jobs; and a text with the message and the time left of the first running
    job."""
    known = [(job, job.status()) for job in jobs]
    shares = (status.done / status.total if status.total else 0.0 for _, status in known if not status.ended)
    ended = sum(status.ended for _, status in known)
    job, status = next(((job, status) for job, status in known if status.state == "running"), known[0])
    left = ""
    if status.time_left:
        left = f" · {status.time_left}"
    number = ""
    if len(jobs) > 1 and ended < len(jobs):
        number = f"{ended + 1} of {len(jobs)} · "
    return ended + sum(shares), len(jobs), f"{number}{status.message or job.title}{left}"


def written(
    sentence: str = "", notes: Sequence[str] = (), facts: Mapping[str, Any] | None = None, **row: Any
) -> Report:
    """The report on a file that a command wrote: a sentence, and a table whose single row is `row`."""
    return Report(sentence, [Table("written", pd.DataFrame([row]))], facts or {}, notes)


@contextmanager
def shards(options: argparse.Namespace, *places: str) -> Iterator[tuple[Runner, *tuple[ShardedSpace, ...]]]:
    """A context with a progress bar. It yields an object that runs computations over all shards, then the
    spaces in these folders.

    Raises
    ------
    SpaceError
        An option that is not supported for shards is given: pairing by row order, or writing a recipe,
        because figures cannot load shards.
    """
    if getattr(options, "recipe", None):
        raise SpaceError(
            "--recipe: expected spaces that a figure can load, got folders of shards; leave --recipe out"
        )
    if getattr(options, "pair_by_row", False) or getattr(options, "links", None):
        option = "--links"
        if options.pair_by_row:
            option = "--pair-by-row"
        raise SpaceError(
            f"{option}: expected spaces in single files, got folders of shards, which are paired by id; write"
            " the same ids into both folders, or none: then row numbers are the ids"
        )
    from relcore.sharded.operations import Runner
    from relcore.sharded.space import ShardedSpace

    spaces = [ShardedSpace.open(place) for place in places]
    most = max(len(space.shards) for space in spaces)
    with queue(options, n_jobs=most) as cluster, Bar(options) as bar:
        yield Runner(cluster.store, cluster, bar.show), *spaces


def report_over_shards(
    options: argparse.Namespace,
    places: Sequence[str],
    job: Callable[..., Any],
    report: Callable[..., Report],
    anchored: bool = True,
) -> Report:
    """Run a computation on folders of shards, and return its report. ``job(runner, anchors, *spaces)``
    computes the result. ``report(result, facts, *spaces)`` writes the report; the facts tell the time and
    memory that were used.
    """
    with shards(options, *places) as (run, *spaces):
        result = job(run, anchors_by_shard(options, spaces[0]) if anchored else 0, *spaces)
    return report(result, {"passes": run.describe(), "worker_mb": run.peaks}, *spaces)


def anchors_by_shard(options: argparse.Namespace, space: ShardedSpace) -> int | tuple[str, ...]:
    """The anchors for a space that is read shard by shard: either the number of anchors to draw, or their
    ids.

    Raises
    ------
    SpaceError
        The strategy is not "random". Other strategies need all rows at once.
    """
    if options.strategy != "random":
        raise SpaceError(
            f"--strategy: expected 'random' for folders of shards, got {options.strategy!r}; choose"
            " anchors in a sample of the rows, and name their ids with --anchors"
        )
    if suspects_of(options):
        raise SpaceError(
            "--anchors: expected no suspects of an audit, because all rows of folders of shards are scored;"
            " remove the suspects' rows from both folders"
        )
    return number_or_ids(options.anchors, usual_anchors(space.n))


def samples(options: argparse.Namespace, places: Sequence[str], also: Sequence[Sequence[str]] = ()) -> Inputs:
    """Load the spaces at these paths or addresses. If they are folders of shards, samples of their rows are
    drawn, to which the rows with the ids in `also` are added (one list per space).

    Raises
    ------
    SpaceError
        Only some of the places are folders of shards. A sample would share hardly any rows with the other
        spaces.
    """
    sharded = [is_by_shard(options, place) for place in places]
    if not any(sharded):
        return spaces_of(options, places)
    if not all(sharded):
        raise SpaceError(
            "expected folders of shards only, or none, got both; write all spaces in shards, or none"
        )
    from relcore.sharded.operations import sample_shards

    with shards(options, *places) as (run, *spaces):
        drawn = [
            sample_shards(space, options.sample, run, ids)
            for space, ids in zip_longest(spaces, also, fillvalue=())
        ]
    pairs = zip(drawn, spaces, strict=True)
    sizes = ", ".join(f"{len(sample):,} of {space.n:,} rows of {space.name}" for sample, space in pairs)
    specs = [SpaceSpec("file", place) for place in places]
    return Inputs(options, specs, drawn, [f"On a sample: {sizes}.", "", *run.describe()])
