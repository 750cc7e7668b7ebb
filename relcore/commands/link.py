"""link: the results of Connect › Link, and the links as a file."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

from relcore.base.access import expand_home
from relcore.base.errors import SpaceError
from relcore.base.names import FIGURES
from relcore.base.report import Report
from relcore.base.settings import setting, settings_of
from relcore.commands.running import (
    SHARDS_HELP,
    CommandOptions,
    Pair,
    Results,
    Sample,
    is_number,
    result_of,
    samples,
    values_of,
)
from relcore.files.saving import need_suffix
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
from relcore.spaces.matching import shared_ids
from relcore.spaces.space import LatentSpace

_USUAL_SEEDS = 15


@dataclass
class LinkOptions:
    pairs: str = setting(
        None,
        metavar="FILE|N|none",
        help="Known pairs: a file of links, or with one pair per line, separated by a tab or “=”; with --hide"
        f" also a number to draw. Default: none, with --hide {_USUAL_SEEDS}.",
    )
    hide: bool = setting(
        False, help="An experiment: hide which rows have the same id, and compare what is found with it."
    )


OPTIONS = CommandOptions(
    (Pair, LinkOptions, BootstrapSpec, Results, Sample),
    f"Ids are read only for the known pairs. Without any, it takes about {ENOUGH:,} rows of each space."
    " Links are guesses with an estimated precision; compare, stitch, invert and migrate read their file"
    f" by --links. “paper” takes {PAPER_ROWS:,} rows by default.{SHARDS_HELP}",
    ("old.npy new.npy --pairs known.tsv -o links.parquet",),
    output=f"Write the links ({', '.join(LINK_FILES)}): source, target, kind, and the estimated precision of"
    " all links down to it.",
    more=lambda parser: parser.set_defaults(anchors=None),  # depends on the rows
)


def run(options: argparse.Namespace) -> Report:
    need_suffix(options.output, LINK_FILES)
    n_seeds, pairs = None, ()
    if options.pairs is not None and is_number("--pairs", options.pairs):
        n_seeds = int(options.pairs)
    elif options.pairs == "none":
        n_seeds = 0
    elif options.pairs is not None:
        n_seeds, pairs = 0, known_pairs(expand_home(options.pairs), "--pairs")
    sides = tuple(zip(*pairs, strict=True))  # every sample of shards contains these ids
    specs, spaces, sampled = samples(options, (options.source, options.target), sides)
    spec = spec_of(options, n_seeds, pairs, *spaces)
    outcome = result_of(spec, specs, spaces, options)
    if options.output:
        write_links(options.output, links_table(outcome.result))
    recipe = {"source": specs[0], "target": specs[1], "digests": tuple(space.digest for space in spaces)}
    figure = "bootstrap-scores" if outcome.scores else "bootstrap"
    kind = FIGURES[figure].load()
    report = outcome.report(**{figure: lambda: kind(**recipe, bootstrap=spec).draw(outcome)})
    return replace(report, facts={**report.facts, "sample": sampled}, notes=sampled)


def spec_of(
    options: argparse.Namespace, n_seeds: int | None, pairs: Pairs, source: LatentSpace, target: LatentSpace
) -> BootstrapSpec:
    n_shared, hide = len(shared_ids((source, target))), options.hide
    few = f"{source.name!r} and {target.name!r}, which share {n_shared} ids, fewer than {FEWEST_SHARED}"
    if hide and n_shared < FEWEST_SHARED:
        raise SpaceError(f"--hide: expected spaces whose rows share ids, got {few}; leave it out")
    if n_seeds is None:
        n_seeds = _USUAL_SEEDS if hide else 0
    if n_seeds and not hide:
        raise SpaceError(
            f"--pairs: expected a file of known pairs or none, got {n_seeds}, a number of pairs to draw; name"
            " a file, or add --hide where rows share ids"
        )
    n = n_shared if hide else min(len(source), len(target), options.rows or len(source))
    given = values_of(options, BootstrapSpec) | {"n_seeds": n_seeds, "pairs": pairs, "hide": hide}
    if options.anchors is None:
        usual = settings_of(BootstrapSpec)["n_anchors"].start()
        given["n_anchors"] = usual if n >= usual else max(n // 2, len(pairs), n_seeds, 1)
    if options.method == "paper":
        if not (n_seeds or pairs):
            raise SpaceError(
                "--pairs: expected known pairs for the published method, got none; name a file, or use"
                " --hide, or --method self-learning"
            )
        if options.rows is None and min(len(source), len(target)) > PAPER_ROWS:
            given["rows"] = PAPER_ROWS
    return BootstrapSpec(**given)
