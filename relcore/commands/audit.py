"""audit: which anchor pairs look wrong, and the scores without them, as on the Anchors page."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from relcore.base.names import AUDITS, METRICS
from relcore.commands.naming import finite, whole

if TYPE_CHECKING:
    from relcore.compare.audit import AuditOutcome

_MOST_LISTED = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from relcore.commands.naming import add_anchors, add_pair, add_projection, add_random_state
    from relcore.commands.output import add_format, add_recipe
    from relcore.commands.running import add_scheduler

    parser.description += (
        " A rotation is fitted on the 60 % of the pairs that agree best; a pair that it does not bring"
        " together is suspect. Pairs agree as mismatched pairs do where they are wrong."
    )
    add_pair(parser)
    add_anchors(parser, "the rows that both spaces have")
    parser.add_argument(
        "--pairs",
        type=Path,
        metavar="FILE",
        help=(
            "audit these pairs instead: one per line, source id and target id separated by a tab or “=”, as"
            " bootstrap -o writes them"
        ),
    )
    parser.add_argument(
        "--method",
        default="procrustes",
        help="; ".join(f"{name}: {one.title}, {one.help}" for name, one in AUDITS.items()),
    )
    parser.add_argument(
        "--false-share",
        type=finite,
        default=0.05,
        metavar="SHARE",
        help="share of the suspects that may be right, on average, above 0, below 1",
    )
    add_projection(parser)
    parser.add_argument("-k", type=whole, default=10, metavar="N", help="number of neighbours of the scores")
    add_random_state(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="write the pairs that are not suspect (.tsv): source and target",
    )
    add_recipe(parser)
    add_scheduler(parser)
    add_format(parser)
    parser.epilog = (
        "example:\n  relscope audit word2vec-novels fasttext-novels --anchors anchors.txt -o kept.tsv"
    )


def run(options: argparse.Namespace) -> None:
    from relcore.commands.bootstrap import read_seeds
    from relcore.commands.naming import anchors_of, projection_of, space_spec
    from relcore.commands.output import need_suffix, show, write_recipe
    from relcore.commands.running import computed
    from relcore.compare.audit import AnchorAudit, PairAudit
    from relcore.spaces.space import match
    from relcore.tasks.recipe import load_again

    need_suffix(options.output, [".tsv"])
    specs = [space_spec(one) for one in (options.source, options.target)]
    spaces = [load_again(one) for one in specs]
    if options.pairs:
        anchors, partners = (tuple(side) for side in zip(*read_seeds(options.pairs, "--pairs"), strict=True))
    else:
        anchors, partners = anchors_of(options, match(*spaces).source), ()
    settings = {"method": options.method, "false_share": options.false_share, "k": options.k}
    task = PairAudit(anchors, partners, projection=projection_of(options), **settings)
    outcome = computed(task, specs, spaces, options)
    table = outcome.table()
    if options.output:
        kept = table[~table.suspect][["anchor", "partner"]].set_axis(["source", "target"], axis=1)
        kept.assign(found="anchor").to_csv(options.output, sep="\t", index=False, lineterminator="\n")
    if options.recipe:
        digests = tuple(space.digest for space in spaces)
        made = AnchorAudit(source=specs[0], target=specs[1], digests=digests, audit=task)
        write_recipe(options, made.draw(outcome))
    facts = {
        "decided": outcome.decided,
        "n_wrong": outcome.n_wrong,
        "suspects": [outcome.anchors[position] for position in outcome.suspects],
        "scores": {
            name: {metric: one.to_record() for metric, one in found.items()}
            for name, found in outcome.scores.items()
        },
        "differences": {
            metric: [one.value, one.low, one.high] for metric, one in outcome.differences.items()
        },
    }
    show(options, table, lines_of(outcome) + ([str(options.output)] if options.output else []), **facts)


def lines_of(outcome: AuditOutcome) -> list[str | list[list[str]]]:
    """The headline, the suspects, and the change of the scores without them."""
    from relcore.base.numbers import counted, short

    lines: list[str | list[list[str]]] = [outcome.headline]
    suspects = outcome.table().query("suspect").head(_MOST_LISTED)
    if len(suspects):
        rows = [["anchor", "partner", "agreement"]]
        rows += [[one.anchor, one.partner, short(one.agreement)] for one in suspects.itertuples()]
        more = len(outcome.suspects) - len(suspects)
        lines += ["", rows] + ([f"  and {more:,} more; --csv lists all"] if more else [])
    if outcome.scores:
        before, *after = outcome.scores.values()
        rows = [["metric", "all anchors", *(["without suspects", "change, 95 %"] if after else [])]]
        for metric, score in before.items():
            told = [METRICS[metric].title, short(score)]
            if after:
                change = outcome.differences.get(metric)
                told += [short(after[0][metric]), change.describe() if change else "–"]
            rows.append(told)
        one = next(iter(before.values()))
        lines += ["", rows, "", f"relative scores on {counted(one.n, 'held-out row')}, no anchor among them"]
    return lines
