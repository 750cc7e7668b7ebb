"""audit: which anchor pairs look wrong, and the scores without them, as Explore shows them under Anchors."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from relcore.base.report import Report
from relcore.base.settings import setting
from relcore.commands.running import (
    ByRow,
    CommandOptions,
    DrawnAnchors,
    Pair,
    Results,
    Scheduler,
    anchors_of,
    result_of,
    spaces_of,
    values_of,
)
from relcore.compare.scoring import AnchorAudit, PairAudit
from relcore.files.saving import need_suffix
from relcore.linking.link import LINK_FILES, known_pairs, write_links
from relcore.spaces.matching import match


@dataclass
class AuditOptions:
    pair_list: Path = setting(
        None,
        metavar="FILE",
        help="Audit these pairs instead: one per line, source id and target id separated by a tab or “=”.",
    )


OPTIONS = CommandOptions(
    (Pair, ByRow, DrawnAnchors, AuditOptions, PairAudit, Results, Scheduler),
    "A rotation is fitted on the 60 % of the pairs that agree best. A pair is suspect if it agrees no"
    " better under it than mismatched pairs do.",
    ("word2vec-novels fasttext-novels --anchors anchors.txt -o kept.tsv",),
    output=f"Write the pairs ({', '.join(LINK_FILES)}) for --anchors of other commands, which then do not"
    " score the suspects.",
)


def run(options: argparse.Namespace) -> Report:
    need_suffix(options.output, LINK_FILES)
    specs, spaces = spaces_of(options, (options.source, options.target))
    if options.pair_list:
        anchors, partners = zip(*known_pairs(options.pair_list, "--pair-list"), strict=True)
    else:
        anchors, partners = anchors_of(options, match(*spaces).source), ()
    task = PairAudit(**values_of(options, PairAudit) | {"anchors": anchors, "partners": partners})
    outcome = result_of(task, specs, spaces, options)
    if options.output:
        links = outcome.table().rename(columns={"anchor": "source", "partner": "target"})
        links = links.assign(kind=links.suspect.map({True: "suspect", False: "anchor"}))
        write_links(options.output, links[["source", "target", "kind"]])
    digests = tuple(space.digest for space in spaces)
    recipe = {"source": specs[0], "target": specs[1], "digests": digests, "audit": task}
    return outcome.report(**{"anchor-audit": lambda: AnchorAudit(**recipe).draw(outcome)})
