"""The commands on spaces: audit, drift, invert, link, stitch, universe, project, adapt, export and figure."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from relcore.base import records
from relcore.base.access import expand_home
from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.base.names import INDEXES, METHODS, REDUCTIONS, STITCH_METRICS
from relcore.base.numbers import counted
from relcore.base.records import read_json
from relcore.base.report import Report
from relcore.base.settings import setting, settings_of
from relcore.base.text import as_lines
from relcore.base.writing import replacing, write
from relcore.catalog.catalog import SpaceSpec, held_out_ids, load
from relcore.catalog.naming import SPACE_HELP, space_spec, space_specs
from relcore.catalog.row_tables import TableColumns, row_texts
from relcore.commands.running import (
    SHARDS_HELP,
    Anchors,
    Bar,
    ByLinks,
    ByRow,
    DrawnAnchors,
    FullPaths,
    Pair,
    Printed,
    Results,
    Sample,
    Scheduler,
    Shards,
    anchors_of,
    command,
    is_by_shard,
    is_number,
    loaded_spaces,
    number_or_ids,
    pair_settings,
    report_over_shards,
    samples,
    spaces_of,
    values_of,
    written,
)
from relcore.compare.columns import cells_of, rows_table
from relcore.compare.scene import NEIGHBOURS, atlas_table, figure_of, how_to_open
from relcore.compare.scoring import PairAudit
from relcore.drift.check import DriftCheck, Thresholds, default_file, read_thresholds
from relcore.drift.check import report as drift_report
from relcore.figures.style import DARK, LIGHT, Style
from relcore.files.reading import SPACE_KINDS, need_suffix, write_parquet, write_space
from relcore.invert.inversion import InversionSpec, RecoveryErrors, invert_pair, side_names
from relcore.linking.bootstrap import Pairs
from relcore.linking.clusters import ENOUGH
from relcore.linking.link import (
    FEWEST_SHARED,
    LINK_FILES,
    PAPER_ROWS,
    BootstrapSpec,
    known_pairs,
    links_table,
    write_links,
)
from relcore.maps.pane_maps import pane_matrices, reduce_pair
from relcore.maps.reduction import ReductionSpec
from relcore.represent.similarity import shared_anchors
from relcore.represent.translation import ProjectionSpec
from relcore.runs.store import Store
from relcore.sharded.operations import Written, adapt_shards, project_shards
from relcore.sharded.space import ShardedSpace
from relcore.spaces.space import LatentSpace, match, shared_ids
from relcore.spaces.split import TEST_FRACTION
from relcore.stitch.stitching import SharedRows, StitchSpec, share_rows
from relcore.stores.index import StorePlace, parse_place
from relcore.universe.universe import SUFFIX, Universe, UniverseSpec


@dataclass
class AuditOptions:
    pair_list: Path = setting(
        None,
        metavar="FILE",
        help="Audit these pairs, not anchors: one per line, two ids separated by a tab or “=”.",
    )


@command(
    (Pair, ByRow, DrawnAnchors, AuditOptions, PairAudit, Results, Scheduler),
    "A rotation is fitted on the 60 % of the pairs that agree best. A pair is suspect if it agrees no"
    " better under it than mismatched pairs do.",
    ("word2vec-novels fasttext-novels --anchors anchors.txt -o kept.tsv",),
    suffixes={"output": LINK_FILES},
    output=f"Write the pairs ({', '.join(LINK_FILES)}) for --anchors of other commands, which then do not"
    " score the suspects.",
)
def run_audit(options: argparse.Namespace) -> Report:
    inputs = spaces_of(options, (options.source, options.target))
    if options.pair_list:
        anchors, partners = zip(*known_pairs(options.pair_list, "--pair-list"), strict=True)
    else:
        anchors = anchors_of(options, match(*inputs.spaces).source)
        partners = ()
    task = PairAudit(**values_of(options, PairAudit) | {"anchors": anchors, "partners": partners})
    outcome = inputs.result(task)
    if options.output:
        links = outcome.table().rename(columns={"anchor": "source", "partner": "target"})
        links = links.assign(kind=links.suspect.map({True: "suspect", False: "anchor"}))
        write_links(options.output, links[["source", "target", "kind"]])
    source, target = inputs.specs
    return outcome.report(**inputs.chart("anchor-audit", outcome, source=source, target=target, audit=task))


GATES = {
    "either": ("everything_new", "new_queries"),
    "everything-new": ("everything_new",),
    "new-queries": ("new_queries",),
    "planned": (),
}


@dataclass
class DriftOptions:
    old: str = setting(metavar="OLD", help=SPACE_HELP)
    new: str = setting(
        metavar="NEW",
        help="the new version of the same rows; rows are paired by id",
    )
    gate: str = setting(
        "either",
        choices=tuple(GATES),
        help="The situation whose alarms decide the exit code; planned: the new version is meant to be"
        " another model, and only broken rows are an alarm.",
    )
    thresholds: str = setting(
        None,
        metavar="FILE",
        help="A .toml file of how much may change; --print-thresholds shows the default.",
    )


class _PrintThresholds(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_) -> None:
        print(default_file(), end="")
        parser.exit()


@command(
    (DriftOptions, ByRow, DriftCheck, Results, Scheduler),
    "Two situations are judged. Everything is new: rows and queries are embedded by the new version, so"
    " shift, scale and rotation do not matter. New queries, old vectors: these do matter. Both raise an"
    " alarm if a row that was valid is missing, zero, repeated or out of place, or if more dimensions are"
    " constant. Rows that only the new version has are left out. The exit code is 1 after an alarm, 0"
    " without one, 2 after an error.",
    (
        "v1.npz v2.npz --gate everything-new --format markdown > drift.md",
        "--print-thresholds > thresholds.toml",
    ),
    more=lambda parser: parser.add_argument(
        "--print-thresholds",
        action=_PrintThresholds,
        nargs=0,
        help="print the default thresholds as a TOML file, and exit",
    ),
)
def run_drift(options: argparse.Namespace) -> Report:
    if options.thresholds:
        thresholds = read_thresholds(options.thresholds)
    else:
        thresholds = Thresholds()
    task = DriftCheck(**values_of(options, DriftCheck))
    gate = GATES[options.gate]
    inputs = spaces_of(options, (options.old, options.new))
    drift = inputs.result(task)
    (old, new) = inputs.specs
    charts = inputs.chart("drift", drift, old=old, new=new, drift=task, thresholds=thresholds)
    return drift_report(drift, drift.judged(thresholds), gate, charts)


@command(
    (Pair, ByRow, ByLinks, InversionSpec, DrawnAnchors, Results, Sample),
    "The numbers are those of Connect, Invert: for each method, the mean cosine of recovered and true"
    f" held-out rows.{SHARDS_HELP}",
    ("word2vec-novels fasttext-novels --delta 0.7 --omega 8 -o recovered.npz",),
    suffixes={"output": SPACE_KINDS},
    output="Write the recovered rows (.npz, .safetensors or .parquet).",
)
def run_invert(options: argparse.Namespace) -> Report:
    spec = InversionSpec(**values_of(options, InversionSpec))
    inputs = samples(options, (options.source, options.target))
    pair = match(*inputs.spaces)
    anchors = anchors_of(options, pair.source)
    inversion = invert_pair(pair, anchors, spec)
    source, target = side_names(pair, spec.route)
    if options.output:  # the recovered rows are in the target's coordinates
        if pair.source.labels is None:
            labels = None
        else:
            labels = pair.source.labels[inversion.rows]
        ids = pair.ids[inversion.rows]
        name = f"{source}, recovered"
        write_space(LatentSpace(inversion.recovered, ids, name=name, labels=labels), options.output)
    recipe = RecoveryErrors(**pair_settings(inputs.specs, pair, anchors), inversion=inversion.spec)
    charts = {"inversion-errors": partial(recipe.draw, inversion)}
    return inputs.noted(inversion.report((source, target), **charts))


@dataclass
class LinkOptions:
    pairs: str = setting(
        None,
        metavar="FILE|N|none",
        help="Known pairs: a file of links, or a file with one pair per line, separated by a tab or “=”. With"
        " --hide, it can be a number of pairs to draw, as with --seeds. Default: none.",
    )
    hide: bool = setting(
        False, help="An experiment: hide which rows have the same id, and score the links by these ids."
    )


@command(
    (Pair, LinkOptions, BootstrapSpec, Results, Sample),
    f"Ids are read only for the known pairs. Without known pairs, about {ENOUGH:,} rows of each space are"
    " needed. Links are guesses with an estimated precision; compare, stitch, invert and migrate read their"
    f" file by --links. --method paper takes {PAPER_ROWS:,} rows by default.{SHARDS_HELP}",
    ("old.npy new.npy --pairs known.tsv -o links.parquet",),
    suffixes={"output": LINK_FILES},
    output=f"Write the links ({', '.join(LINK_FILES)}): source, target, kind, and the estimated precision of"
    " all links that are at least as sure.",
    more=lambda parser: parser.set_defaults(anchors=None),  # the default depends on the number of rows
)
def run_link(options: argparse.Namespace) -> Report:
    n_seeds = options.seeds if options.hide else 0
    pairs = ()
    if options.pairs is not None and is_number("--pairs", options.pairs):
        n_seeds = int(options.pairs)
    elif options.pairs == "none":
        n_seeds = 0
    elif options.pairs is not None:
        n_seeds = 0
        pairs = known_pairs(expand_home(options.pairs), "--pairs")
    sides = tuple(zip(*pairs, strict=True))  # ids of the known pairs, which samples of shards must contain
    inputs = samples(options, (options.source, options.target), sides)
    spec = _links_spec(options, n_seeds, pairs, *inputs.spaces)
    outcome = inputs.result(spec)
    (source, target) = inputs.specs
    if options.output:
        write_links(options.output, links_table(outcome.result))
    figure = "bootstrap"
    if outcome.scores:
        figure = "bootstrap-scores"
    chart = inputs.chart(figure, outcome, source=source, target=target, bootstrap=spec)
    return inputs.noted(outcome.report(**chart))


def _links_spec(
    options: argparse.Namespace, n_seeds: int, pairs: Pairs, source: LatentSpace, target: LatentSpace
) -> BootstrapSpec:
    n_shared = len(shared_ids((source, target)))
    hide = options.hide
    few = f"{source.name!r} and {target.name!r}, which share {n_shared} ids, fewer than {FEWEST_SHARED}"
    if hide and n_shared < FEWEST_SHARED:
        raise SpaceError(f"--hide: expected spaces with ids in common, got {few}; leave --hide out")
    if n_seeds and not hide:
        raise SpaceError(
            f"--pairs: expected a file of known pairs or none, got {n_seeds}, a number of pairs to draw; name"
            " a file, or add --hide if the spaces share ids"
        )
    if hide:
        n = n_shared
    else:
        n = min(len(source), len(target), options.rows or len(source))
    given = values_of(options, BootstrapSpec) | {"n_seeds": n_seeds, "pairs": pairs, "hide": hide}
    if options.anchors is None:
        usual = settings_of(BootstrapSpec)["n_anchors"].start()
        if n >= usual:
            given["n_anchors"] = usual
        else:
            given["n_anchors"] = max(n // 2, len(pairs), n_seeds, 1)
    if options.method == "paper":
        if not (n_seeds or pairs):
            raise SpaceError(
                "--pairs: expected known pairs for the published method, got none; name a file, or use"
                " --hide, or --method self-learning"
            )
        if options.rows is None and min(len(source), len(target)) > PAPER_ROWS:
            given["rows"] = PAPER_ROWS
    return BootstrapSpec(**given)


@dataclass
class StitchOptions:
    spaces: tuple[str, ...] = setting(
        metavar="SPACE", nargs="+", help=f"two or more spaces with labels, each {SPACE_HELP}"
    )
    test_fraction: float | None = setting(
        None,
        above=0,
        below=1,
        metavar="SHARE",
        help="Share of test rows; default: the rows that the encoders' networks held out, or else 0.2.",
    )
    states: int = setting(1, low=1, help="Number of random states, each with its own split and anchors.")
    spec: Path = setting(
        None, metavar="FILE", help="Read all settings from a .json file, instead of the options."
    )
    metric: str = setting("accuracy", choices=STITCH_METRICS, help="The score in the matrices.")


@command(
    (Anchors, StitchOptions, StitchSpec, ByRow, ByLinks, Results, Sample),
    "The numbers are those of Connect, Stitch. Rows that the networks of stored encodings were trained"
    " on are not used as test rows. Anchors are chosen among the training rows of the first space: by"
    f" default twice the dimension of the widest space, at most half of the rows.{SHARDS_HELP}",
    ("mlp.npz cnn.npz --methods relative,irp-pruned --anchors 128 --states 5",),
)
def run_stitch(options: argparse.Namespace) -> Report:
    inputs = samples(options, options.spaces)
    specs = inputs.specs
    spaces = inputs.spaces
    spec = _stitch_spec(options, specs, spaces, share_rows(spaces, options.order))
    need_one_of("--metric", options.metric, ("accuracy", "f1", *(("mae",) if spec.order else ())))
    digests = [space.digest for space in spaces]
    return inputs.noted(inputs.result(spec).report(options.metric, specs, digests))


def _stitch_spec(
    options: argparse.Namespace, specs: Sequence[SpaceSpec], spaces: Sequence[LatentSpace], shared: SharedRows
) -> StitchSpec:
    if options.spec:
        record = read_json(options.spec, "the settings of a stitching")
        return records.from_json(StitchSpec, record, str(options.spec))
    given = options.test_fraction is not None
    if given:
        test_ids = ()
    else:
        test_ids = held_out_ids(specs, spaces, shared.ids)
    values = values_of(options, StitchSpec)
    values["methods"] = tuple(
        name for name in METHODS if name in options.methods
    )  # in the order in which the app lists them
    if given:
        values["test_fraction"] = options.test_fraction
    else:
        values["test_fraction"] = TEST_FRACTION
    spec = StitchSpec(**values, random_states=tuple(range(options.states)), test_ids=test_ids)
    n = len(shared.targets)
    if test_ids:
        n_train = n - len(test_ids)
    else:
        n_train = int((1 - spec.test_fraction) * n)
    anchors = number_or_ids(options.anchors, min(2 * max(space.dimension for space in spaces), n_train // 2))
    if isinstance(anchors, int):
        return replace(spec, n_anchors=anchors)
    return replace(spec, anchors=anchors)


VERBS = ("add", "map")


@dataclass
class UniverseOptions:
    spaces: tuple[str, ...] = setting(
        metavar="SPACE",
        nargs="+",
        help=f"two or more; each is {SPACE_HELP}. Or a verb: add FILE SPACE, map FILE SPACE",
    )
    name: str = setting(
        None, metavar="NAME", help="For map: the name of SPACE in the universe, if it differs."
    )
    to: str = setting(
        None, metavar="NAME", help="For map: the space to translate into. Default: the common space."
    )


@command(
    (UniverseOptions, UniverseSpec, ByRow, Results, Scheduler),
    "Without a verb: fits one orthogonal map for each space, scores held-out rows of every pair, and"
    " writes maps and scores as a file. “add FILE SPACE” adds a space to such a file by one map, without"
    " the other spaces; “map FILE SPACE” maps the rows of a space. Rows are paired by id. A folder of"
    " several spaces, such as checkpoints, stands for all these spaces.",
    (
        "a.npy b.npy c.npy -o words.universe",
        "add words.universe d.npy",
        "map words.universe d.npy --to a -o d-as-a.npy",
    ),
    output=f"The file to write: for a universe {SUFFIX}, for “map” .npy, .npz, .safetensors or .parquet;"
    " “add” replaces FILE by default.",
)
def run_universe(options: argparse.Namespace) -> Report:
    verb, *rest = options.spaces
    if verb in VERBS:
        if len(rest) != 2:
            raise SpaceError(
                f"{verb}: expected a universe's file and a space, got {quote(rest) or 'neither'}"
            )
        given = options, Path(rest[0]), load(space_spec(rest[1]), again=True)
        return (_add_to_universe if verb == "add" else _map_to_universe)(*given)
    need_suffix(options.output, [SUFFIX])
    specs = [spec for text in options.spaces for spec in space_specs(text)]
    inputs = loaded_spaces(options, specs)
    task = UniverseSpec(**values_of(options, UniverseSpec))
    universe = inputs.result(task)
    if options.output:
        universe.save(options.output)
    chart = inputs.chart("universe", universe, spaces=tuple(inputs.specs), universe=task)
    return universe.report(**chart)


def _add_to_universe(options: argparse.Namespace, path: Path, space: LatentSpace) -> Report:
    options.output = options.output or path
    need_suffix(options.output, [SUFFIX])
    universe = Universe.load(path).add(space)
    universe.save(options.output)
    return universe.report()


def _map_to_universe(options: argparse.Namespace, path: Path, space: LatentSpace) -> Report:
    need_suffix(options.output, [".npy", ".npz", ".safetensors", ".parquet"])
    if options.output is None:
        raise SpaceError("map: expected a file for the mapped rows, got none; name it with -o")
    universe = Universe.load(path)
    source = options.name or space.name
    rows = None
    if options.to:
        rows = universe.translate(space.vectors, source, options.to)
    if rows is None:
        rows = universe.map(space.vectors, source)
    if options.output.suffix.lower() == ".npy":
        with replacing(options.output) as stream:
            np.save(stream, rows)
    else:
        write_space(LatentSpace(rows, space.ids, name=space.name, labels=space.labels), options.output)
    line = f"{len(rows):,} rows × {rows.shape[1]:,}, {options.to or 'common space'}"
    return written(line, n=len(rows), dimension=rows.shape[1], space=options.to)


# The commands that write vectors: project writes rows relative to anchors, and adapt writes rows that an
# adapter maps.


@dataclass
class ProjectOptions:
    space: str = setting(metavar="SPACE", help=SPACE_HELP)
    whiten: bool = setting(False, help="Decorrelate the similarities by (K + λI)^(-1/2); cosine only.")
    save_anchors: Path = setting(
        None, metavar="FILE", written=True, help="Also write the ids of the anchors, one per line."
    )


@command(
    (ProjectOptions, DrawnAnchors, ProjectionSpec, Printed, Shards),
    "The result is again a space, with one column per anchor; it keeps ids and labels. To compare two"
    " spaces, use the same anchors for both: --save-anchors with the first, --anchors FILE with the"
    f" second.{SHARDS_HELP}",
    (
        "word2vec-novels --anchors 300 --save-anchors anchors.txt -o first.npz",
        "fasttext-novels --anchors anchors.txt -o second.npz",
    ),
    output="The file to write (.npz, .safetensors or .parquet; of shards a new folder, or its address).",
)
def run_project(options: argparse.Namespace) -> Report:
    spec = ProjectionSpec(**values_of(options, ProjectionSpec))
    sharded = is_by_shard(options, options.space)
    if options.whiten and options.similarity != "cosine":
        raise SpaceError(
            f"--whiten: expected the similarity 'cosine', got {options.similarity!r}; remove one of the two"
            " options"
        )
    if options.output is None:
        raise SpaceError("project: expected a file for the relative rows, got none; name it with -o")

    def report(
        n: int, width: int, anchors: Sequence[str], where: str = "", notes: Sequence[str] = ()
    ) -> Report:
        if options.save_anchors:
            write(options.save_anchors, as_lines(anchors, str(options.save_anchors), "ids", bare=True))
        if options.whiten:
            how = "whitened cosine"
        else:
            how = options.similarity
        line = f"{counted(n, 'row')} × {counted(width, 'anchor')}{where}, {how}"
        line += ", centred" if options.center else ""
        return written(f"{line}.", notes, n=n, anchors=width, similarity=how, center=options.center)

    def of_shards(result: Written, passes: Mapping[str, Any], source: ShardedSpace) -> Report:
        anchors = ()
        if options.save_anchors:
            anchors = source.ids_of(result.anchors)
        where = f" in {counted(len(source.shards), 'shard')}"
        return report(result.n, result.width, anchors, where, passes["passes"])

    if sharded:
        settings = {"whiten": options.whiten, "random_state": options.random_state}
        return report_over_shards(
            options,
            [options.space],
            lambda run, anchors, source: project_shards(
                source, anchors, str(options.output), run, spec, **settings
            ),
            of_shards,
        )
    need_suffix(options.output)
    space = load(space_spec(options.space), again=True)
    anchors = shared_anchors(anchors_of(options, space), space)
    projection = spec.projection(options.whiten).fit(space.vectors, anchors=space.rows(anchors))
    relative = projection.transform(space.vectors)
    name = f"{space.name}, relative"
    of_space = {"name": name, "labels": space.labels, "counts": space.counts}
    write_space(LatentSpace(relative, space.ids, **of_space), options.output)
    return report(*relative.shape, anchors)


COPY = "none"


@dataclass
class AdaptOptions:
    adapter: str = setting(
        metavar="ADAPTER", help=f"an adapter's folder or file; {COPY!r} copies rows as they are"
    )
    source: str = setting(
        metavar="SOURCE",
        nargs="?",
        help=f"where the rows are: {'; '.join(index.help for index in INDEXES.values())}, or any space;"
        " without SOURCE, the adapter's card is shown",
    )
    target: str = setting(
        metavar="TARGET", nargs="?", help="where the mapped rows go, named likewise; it must be new"
    )
    corpus: bool = setting(
        False,
        help="The rows are old vectors, for adapters that project them. Default: they are new queries.",
    )
    add: bool = setting(False, help="Add the rows to a collection or table that exists already.")


@command(
    (AdaptOptions, Printed, Shards),
    "Rows are streamed, so that millions take little memory. Ids are kept, and so is the payload if both"
    f" places can hold one. Nothing is ever deleted or overwritten.{SHARDS_HELP}",
    ("bridge", "bridge new-queries.npy mapped.npy", "bridge old.parquet lancedb:store#projected --corpus"),
)
def run_adapt(options: argparse.Namespace) -> Report:
    from relcore.migrate.adapters import adapt, load

    if options.adapter == COPY:
        adapter = None
    else:
        adapter = load(Path(options.adapter))
    if options.source is None and adapter is not None:
        return adapter.card.report()
    if options.target is None:
        raise SpaceError(
            "expected a source and a target, got one of them; name both, or an adapter alone to see its card"
        )
    side = "queries"
    if options.corpus:
        side = "corpus"

    def report(result: Any, passes: Mapping[str, Any], *sources: ShardedSpace) -> Report:
        mapped = "copied"
        if adapter:
            mapped = f"{side} mapped by {adapter.card.adapter}"
        shards = "".join(f" in {len(source.shards):,} shards" for source in sources)
        line = f"{where}: {result.n:,} rows × {result.width:,}{shards}, {mapped}."
        row = {"written": where, "n": result.n, "dimension": result.width, "side": side}
        return written(line, passes.get("passes", ()), **row)

    if is_by_shard(options, options.source):
        if adapter is None or options.add:
            raise SpaceError(
                "expected an adapter, and a new folder, for a folder of shards; copy the folder itself to"
                " copy its rows"
            )
        where = options.target
        return report_over_shards(
            options,
            [options.source],
            lambda run, _, source: adapt_shards(adapter, source, where, run, side=side),
            report,
            anchored=False,
        )
    goal = _place(options.target)
    where = goal.text
    with Bar(options) as bar, _readable(options.source) as place:
        return report(adapt(adapter, place, goal, side=side, add=options.add, report=bar.show), {})


@contextmanager
def _readable(text: str) -> Iterator[StorePlace]:
    """A context that yields a place from which the rows of this space can be read in blocks. If the space has
    no such place, it is first written as a temporary table."""
    if place := parse_place(text):
        yield place
        return
    space = load(space_spec(text))
    with Store().scratch() as folder:
        write_space(space, path := folder / f"{space.digest}.parquet")
        yield StorePlace("parquet", str(path))


def _place(text: str) -> StorePlace:
    place = parse_place(text)
    if place is None:
        expected = quote(index.help for index in INDEXES.values())
        raise SpaceError(f"{text!r:.200}: expected one of {expected}; save the vectors as .npy or .parquet")
    return place


# The command figure draws a figure again from its recipe. The command export writes a map as a table for
# Embedding Atlas.


@dataclass
class FigureOptions:
    recipe: Path = setting(
        help="a recipe (.json), or any pdf, png, svg or html file that Relscope exported: these contain it"
    )
    data: Path = setting(
        (),
        metavar="FOLDER",
        nargs="append",
        help="where the recipe's files are, up to two folders below; can be given several times. They are"
        " also looked for beside the recipe, in this folder, and under RELSCOPE_DATA",
    )
    file: str = setting(
        (),
        metavar="NAME=PATH",
        nargs="append",
        help="read PATH in place of the recipe's file NAME; can be given several times",
    )
    dark: bool = setting(False, help="Use the dark theme.")


@command(
    (FigureOptions, Style, Printed, FullPaths),
    "Loads the spaces, computes everything and writes one file. The numbers are those of the app. If a"
    " space has changed since the export, the command stops with an error.",
    ("relscope-panes-a-b.pdf -o again.svg --width 3.25",),
    output="The file to write; its suffix selects the format: .pdf, .svg, .png (for print), .html"
    " (interactive), .csv (the plotted numbers), .tex (a small table), .json (the recipe with all settings)."
    " Default: a PDF in this folder.",
)
def run_figure(options: argparse.Namespace) -> Report:
    from relcore.figures.export import KINDS

    need_suffix(options.output, [f".{kind}" for kind in KINDS])
    look = Style(**values_of(options, Style), theme=DARK if options.dark else LIGHT)
    given = {}
    for text in options.file:
        name, sign, path = text.rpartition("=")
        if not sign or not expand_home(path).is_file():
            raise SpaceError(f"--file: expected NAME=PATH with the path of a file, got {text!r}")
        given[name] = expand_home(path)
    figure = figure_of(options.recipe, options.data, given)
    output = options.output = options.output or Path(figure.filename("pdf"))
    if output.resolve() == options.recipe.resolve():
        raise SpaceError(f"{output}: expected another file than the recipe, got the same; choose one with -o")
    figure.save(output, look, full_paths=options.full_paths)
    return written(file=str(output), figure=type(figure).__name__)


@dataclass
class ExportOptions:
    spaces: tuple[str, ...] = setting(
        metavar="SPACE",
        nargs="+",
        help=f"one or two; each is {SPACE_HELP}. The rows of two are paired by id",
    )
    atlas: Path = setting(
        Path("atlas.parquet"), metavar="FILE", written=True, help="The file to write for Embedding Atlas."
    )
    method: str = setting("pca", choices=REDUCTIONS, help="How the map is made.")
    k: int = setting(NEIGHBOURS, low=1, high=100, help="Number of nearest rows to write for each row.")


@command(
    (ExportOptions, ByRow, Printed),
    "The table has x, y, the nearest rows and all columns; for two spaces, x, y and nearest rows of both.",
    ("word2vec-novels fasttext-novels --atlas words.parquet",),
    suffixes={"atlas": [".parquet"]},
)
def run_export(options: argparse.Namespace) -> Report:
    if len(options.spaces) > 2:
        raise SpaceError(f"export: expected one or two spaces, got {quote(options.spaces)}")
    inputs = spaces_of(options, options.spaces)
    specs = inputs.specs
    spaces = inputs.spaces
    pair = match(spaces[0], spaces[-1])
    loaded = cache(partial(load, again=True))
    rows = np.arange(len(pair))
    n_spaces = len(spaces)
    spec = ReductionSpec(method=options.method, max_points=max(3, len(pair)))
    maps, note = reduce_pair(pane_matrices(pair, rows, (), ProjectionSpec(), "absolute")[:n_spaces], spec)
    tables = dict.fromkeys(name for spec in specs for name in TableColumns(spec).names)
    columns = rows_table(
        pair, rows, list(tables), cells_of(specs[0], specs[-1], loaded), row_texts(specs, loaded)
    )
    table = atlas_table((pair.source, pair.target)[:n_spaces], rows, maps, columns, options.k)
    with replacing(options.atlas) as stream:
        write_parquet(stream, table.schema, [table])
    name = str(options.atlas)
    notes = (f"{note}.", f"Open it: {how_to_open(str(options.atlas))}")
    return written("", notes, file=name, rows=table.num_rows, columns=table.num_columns)
