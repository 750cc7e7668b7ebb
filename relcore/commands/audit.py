"""audit: which anchor pairs look wrong, and the scores without them, as on the Anchors page."""

from __future__ import annotations

import argparse
from pathlib import Path

from relcore.base.names import METRICS
from relcore.base.numbers import counted, short
from relcore.commands import options as generated
from relcore.commands.bootstrap import read_seeds
from relcore.commands.naming import add_anchors, add_pair, add_random_state, anchors_of, space_spec
from relcore.commands.options import option, values_of
from relcore.commands.output import Lines, add_results, add_scheduler, need_suffix, show, write_recipe
from relcore.commands.running import computed
from relcore.compare.audit import AnchorAudit, AuditOutcome, PairAudit
from relcore.spaces.space import match
from relcore.tasks.recipe import load_again

_MOST_LISTED = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description += (
        " A rotation is fitted on the 60 % of the pairs that agree best; a pair that it does not bring"
        " together is suspect. Pairs agree as mismatched pairs do where they are wrong."
    )
    add_pair(parser)
    add_anchors(parser, "the rows that both spaces have")
    option(
        parser,
        "pairs",
        Path,
        metavar="FILE",
        help="Audit these pairs instead: one per line, source id and target id separated by a tab or “=”.",
    )
    generated.add(parser, PairAudit)
    add_random_state(parser)
    add_results(parser, "Write the pairs that are not suspect (.tsv): source and target.")
    add_scheduler(parser)
    parser.epilog = (
        "example:\n  relscope audit word2vec-novels fasttext-novels --anchors anchors.txt -o kept.tsv"
    )


def run(options: argparse.Namespace) -> None:
    need_suffix(options.output, [".tsv"])
    specs = [space_spec(name) for name in (options.source, options.target)]
    spaces = [load_again(spec) for spec in specs]
    if options.pairs:
        anchors, partners = zip(*read_seeds(options.pairs, "--pairs"), strict=True)
    else:
        anchors, partners = anchors_of(options, match(*spaces).source), ()
    task = PairAudit(**values_of(options, PairAudit) | {"anchors": anchors, "partners": partners})
    outcome = computed(task, specs, spaces, options)
    table, lines = outcome.table(), lines_of(outcome)
    if options.output:
        kept = table[~table.suspect][["anchor", "partner"]].set_axis(["source", "target"], axis=1)
        kept.assign(found="anchor").to_csv(options.output, sep="\t", index=False, lineterminator="\n")
        lines.append(str(options.output))
    if options.recipe:
        digests = tuple(space.digest for space in spaces)
        recipe = AnchorAudit(source=specs[0], target=specs[1], digests=digests, audit=task)
        write_recipe(options, recipe.draw(outcome))
    show(
        options,
        table,
        lines,
        decided=outcome.decided,
        n_wrong=outcome.n_wrong,
        suspects=[outcome.anchors[position] for position in outcome.suspects],
        scores={
            name: {metric: score.to_record() for metric, score in scores.items()}
            for name, scores in outcome.scores.items()
        },
        differences={
            metric: [change.value, change.low, change.high] for metric, change in outcome.differences.items()
        },
    )


def lines_of(outcome: AuditOutcome) -> Lines:
    """The headline, the suspects, and the change of the scores without them."""
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
