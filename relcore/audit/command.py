"""The command `audit`, which finds anchor pairs that are wrong."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from relcore.audit.anchor_audit import PairAudit
from relcore.base.report import Report
from relcore.base.settings import setting
from relcore.commands.anchors import anchors_of
from relcore.commands.command import command, values_of
from relcore.commands.inputs import spaces_of
from relcore.commands.options import ByRow, DrawnAnchors, Pair, Results, Scheduler
from relcore.files.links import LINK_FILES, known_pairs, write_links
from relcore.spaces.matching import match


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
