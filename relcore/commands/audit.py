"""audit: which anchor pairs look wrong, and the scores without them, as Explore shows them under Anchors."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from relcore.base.names import METRICS
from relcore.base.numbers import counted, short
from relcore.base.settings import setting
from relcore.commands.arguments import (
    DrawnAnchors,
    Pair,
    Results,
    Scheduler,
    add,
    anchors_of,
    spaces_of,
    values_of,
)
from relcore.commands.output import Lines, need_suffix, show, write_recipe
from relcore.commands.running import computed
from relcore.compare.audit import AuditOutcome, PairAudit
from relcore.linking.link import LINK_FILES, known_pairs, write_links
from relcore.spaces.space import match

_MOST_LISTED = 20


@dataclass
class AuditOptions:
    pair_list: Path = setting(
        None,
        metavar="FILE",
        help="Audit these pairs instead: one per line, source id and target id separated by a tab or “=”.",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description += (
        " A rotation is fitted on the 60 % of the pairs that agree best. A pair is suspect if it agrees no"
        " better under it than mismatched pairs do."
    )
    output = (
        f"Write the pairs ({', '.join(LINK_FILES)}) for --anchors of other commands, which then do not score"
        " the suspects."
    )
    add(parser, Pair, DrawnAnchors, AuditOptions, PairAudit, Results, Scheduler, output=output)
    parser.epilog = (
        "example:\n  relscope audit word2vec-novels fasttext-novels --anchors anchors.txt -o kept.tsv"
    )


def run(options: argparse.Namespace) -> None:
    need_suffix(options.output, LINK_FILES)
    specs, spaces = spaces_of(options, (options.source, options.target))
    if options.pair_list:
        anchors, partners = zip(*known_pairs(options.pair_list, "--pair-list"), strict=True)
    else:
        anchors, partners = anchors_of(options, match(*spaces).source), ()
    task = PairAudit(**values_of(options, PairAudit) | {"anchors": anchors, "partners": partners})
    outcome = computed(task, specs, spaces, options)
    table, lines = outcome.table(), lines_of(outcome)
    if options.output:
        links = table.rename(columns={"anchor": "source", "partner": "target"})
        links = links.assign(kind=table.suspect.map({True: "suspect", False: "anchor"}))
        write_links(options.output, links[["source", "target", "kind"]])
    digests = tuple(space.digest for space in spaces)
    recipe = {"source": specs[0], "target": specs[1], "digests": digests, "audit": task}
    write_recipe(options, "anchor-audit", outcome, **recipe)
    facts = {"decided": outcome.decided, "n_wrong": outcome.n_wrong}
    facts["suspects"] = [outcome.anchors[position] for position in outcome.suspects]
    facts["scores"] = {
        name: {metric: score.to_record() for metric, score in scores.items()}
        for name, scores in outcome.scores.items()
    }
    differences = outcome.differences.items()
    facts["differences"] = {metric: [one.value, one.low, one.high] for metric, one in differences}
    show(options, table, lines, **facts)


def lines_of(outcome: AuditOutcome) -> Lines:
    lines: Lines = [outcome.headline]
    suspects = outcome.table().query("suspect").head(_MOST_LISTED)
    if len(suspects):
        rows = [["anchor", "partner", "agreement"]]
        rows += [[row.anchor, row.partner, short(row.agreement)] for row in suspects.itertuples()]
        more = len(outcome.suspects) - len(suspects)
        lines += ["", rows] + ([f"  and {more:,} more; --csv lists all"] if more else [])
    if outcome.scores:
        before, *after = outcome.scores.values()
        rows = [["metric", "all anchors", *(["without suspects", "change, 95 %"] if after else [])]]
        for metric, score in before.items():
            cells = [METRICS[metric].title, short(score)]
            if after:
                change = outcome.differences.get(metric)
                cells += [short(after[0][metric]), change.describe() if change else "–"]
            rows.append(cells)
        n = counted(next(iter(before.values())).n, "held-out row")
        lines += ["", rows, "", f"relative scores on {n}, no anchor among them"]
    return lines
