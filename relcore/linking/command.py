"""The command `link`, which finds rows of two spaces that are the same thing."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from relcore.base.access import expand_home
from relcore.base.errors import SpaceError
from relcore.base.report import Report
from relcore.base.settings import setting, settings_of
from relcore.commands.anchors import is_number
from relcore.commands.by_shard import samples
from relcore.commands.command import command, values_of
from relcore.commands.options import SHARDS_HELP, Pair, Results, Sample
from relcore.files.links import LINK_FILES, Pairs, known_pairs, write_links
from relcore.linking.clusters import ENOUGH
from relcore.linking.link import BootstrapSpec
from relcore.linking.links_found import links_table
from relcore.linking.pictures import FEWEST_SHARED, PAPER_ROWS
from relcore.spaces.matching import shared_ids
from relcore.spaces.space import LatentSpace


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
    pairs: tuple[tuple[str, str], ...] = ()
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
    settings = values_of(options, BootstrapSpec) | {"n_seeds": n_seeds, "pairs": pairs, "hide": hide}
    if options.anchors is None:
        usual = settings_of(BootstrapSpec)["n_anchors"].start()
        if n >= usual:
            settings["n_anchors"] = usual
        else:
            settings["n_anchors"] = max(n // 2, len(pairs), n_seeds, 1)
    if options.method == "paper":
        if not (n_seeds or pairs):
            raise SpaceError(
                "--pairs: expected known pairs for the published method, got none; name a file, or use"
                " --hide, or --method self-learning"
            )
        if options.rows is None and min(len(source), len(target)) > PAPER_ROWS:
            settings["rows"] = PAPER_ROWS
    return BootstrapSpec(**settings)
