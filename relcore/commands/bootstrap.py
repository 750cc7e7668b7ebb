"""bootstrap: what the Bootstrap page finds, and the pairs as a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from relcore.base.names import BOOTSTRAPS
from relcore.commands.naming import finite, is_number, whole

if TYPE_CHECKING:
    from relcore.bootstrap.spec import BootstrapSpec, Outcome
    from relcore.spaces.space import LatentSpace

FEWEST_SHARED = 20  # with fewer there is nothing to hide
PAPER_ROWS = 2000  # each step of the published method compares all with all
HEAD = ("source", "target", "found")
_MOST_LISTED = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from relcore.commands.naming import add_pair, add_random_state, add_sample
    from relcore.commands.output import add_format, add_recipe

    parser.description += (
        " If the spaces share ids, the pairing is hidden, and what is found is compared with it. Use --real"
        " for spaces without common ids."
    )
    add_pair(parser)
    parser.add_argument(
        "--seeds",
        default="15",
        metavar="N|FILE|none",
        help=(
            "known pairs: a number to draw at random, or a file with one pair per line, separated by a tab"
            " or “=”"
        ),
    )
    parser.add_argument(
        "--anchors", type=whole, default=300, metavar="N", help="number of anchors, seeds included"
    )
    parser.add_argument("--method", default="self-learning", help=", ".join(BOOTSTRAPS))
    parser.add_argument(
        "--rows",
        type=whole,
        metavar="N",
        help=(
            f"use the N most frequent (or first) rows of each space; default: all, or {PAPER_ROWS:,} for"
            " “paper”"
        ),
    )
    parser.add_argument(
        "--real", action="store_true", help="treat ids as unrelated, except those of the seeds"
    )
    parser.add_argument(
        "-k", type=whole, default=10, metavar="N", help="number of neighbours, for CSLS and for the scores"
    )
    parser.add_argument(
        "--steps", type=whole, metavar="N", help="paper: number of steps; default: that of the publication"
    )
    parser.add_argument(
        "--learning-rate",
        type=finite,
        metavar="RATE",
        help=(
            "paper: learning rate, above 0 … 1; default: .02, as published for retrieval (.05 for stitching)"
        ),
    )
    add_random_state(parser, "the choice of seeds and anchors")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="write the pairs (.tsv): source, target, and how each was found",
    )
    add_recipe(parser)
    add_sample(parser)
    add_format(parser)
    parser.epilog = "example:\n  relscope bootstrap word2vec-novels fasttext-novels --seeds 15 -o pairs.tsv"


def run(options: argparse.Namespace) -> None:
    import pandas as pd

    from relcore.bootstrap.figures import BootstrapRounds, BootstrapScores
    from relcore.commands.naming import need_loadable, samples
    from relcore.commands.output import need_suffix, show, write_recipe
    from relcore.commands.running import computed

    need_suffix(options.output, [".tsv"])
    specs, spaces, told = samples(options, (options.source, options.target), seed_ids(options))
    need_loadable(options, told)
    spec = spec_of(options, *spaces)
    outcome = computed(spec, specs, spaces, options)
    pairs = pd.DataFrame(found_pairs(outcome), columns=list(HEAD))
    if options.output:
        pairs.to_csv(options.output, sep="\t", index=False, lineterminator="\n")
    if options.recipe:
        recipe = BootstrapScores if outcome.scores else BootstrapRounds
        digests = tuple(space.digest for space in spaces)
        made = recipe(source=specs[0], target=specs[1], digests=digests, bootstrap=spec)
        write_recipe(options, made.draw(outcome))
    result = outcome.result
    facts = {
        "verdict": result.verdict,
        "success": result.success,
        "reason": result.reason,
        "share": outcome.share,
        "anchors": len(result.anchors),
    }
    scores = {
        form: {name: score.to_record() for name, score in found.items()}
        for form, found in outcome.scores.items()
    }
    lines = [*lines_of(outcome), *([str(options.output)] if options.output else []), *told]
    show(
        options,
        pairs,
        lines,
        **facts,
        pairs=len(result.pairs),
        wrong=outcome.wrong(),
        scores=scores,
        sample=told,
    )


def seed_ids(options: argparse.Namespace) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The ids of the seeds in a file, of either space: they are in every sample."""
    from relcore.base.access import expanded

    if is_number("--seeds", options.seeds) or options.seeds == "none":
        return (), ()
    return tuple(zip(*read_seeds(expanded(options.seeds)), strict=True))


def spec_of(options: argparse.Namespace, source: LatentSpace, target: LatentSpace) -> BootstrapSpec:
    """The options as settings, with the page's defaults."""
    from relcore.base.access import expanded
    from relcore.base.errors import SpaceError
    from relcore.bootstrap.spec import BootstrapSpec
    from relcore.represent.literal import LEARNING_RATE, STEPS

    n_shared = int((target.index.get_indexer(source.index) >= 0).sum())
    hide = n_shared >= FEWEST_SHARED and not options.real
    n_seeds, pairs = 0, ()
    if is_number("--seeds", options.seeds):
        n_seeds = int(options.seeds)
    elif options.seeds != "none":
        pairs = read_seeds(expanded(options.seeds))
    if n_seeds and not hide:
        few = f"{source.name!r} and {target.name!r}, which share {n_shared} ids, fewer than {FEWEST_SHARED}"
        why = "--real" if options.real else few
        raise SpaceError(f"--seeds: expected a file of pairs or none with {why}, got {n_seeds} random pairs")
    rows = options.rows
    if rows is None and options.method == "paper":
        rows = PAPER_ROWS if min(len(source), len(target)) > PAPER_ROWS else None
    if options.method == "paper" and not (n_seeds or pairs):
        raise SpaceError(
            "--seeds: expected seeds for the published method, got none; use --seeds 15, or --method"
            " self-learning"
        )
    rate = LEARNING_RATE if options.learning_rate is None else options.learning_rate
    asked = {"n_anchors": options.anchors, "k": options.k, "random_state": options.random_state}
    return BootstrapSpec(
        options.method,
        n_seeds=n_seeds,
        pairs=pairs,
        rows=rows,
        hide=hide,
        **asked,
        steps=options.steps or STEPS,
        learning_rate=rate,
    )


def read_seeds(path: Path, option: str = "--seeds") -> tuple[tuple[str, str], ...]:
    """Pairs of ids from the text file of an option, see `read_pairs`; of a file that this command wrote, the
    seeds and anchors.

    Raises
    ------
    SpaceError
        No such file, a line that does not have two sides, no pair at all.
    """
    from relcore.base.errors import SpaceError
    from relcore.base.text import read_lines
    from relcore.bootstrap.spec import read_pairs

    if not path.exists() or path.is_dir():
        got = f"{str(path)!r:.200}, a file that does not exist"
        expected = "a number, a file of pairs or none" if option == "--seeds" else "a file of pairs"
        raise SpaceError(f"{option}: expected {expected}, got {got}; check the spelling")
    lines = read_lines(path, "one pair per line")
    if lines and tuple(lines[0].split("\t")) == HEAD:
        lines = [line if line.endswith(("\tseed", "\tanchor")) else "" for line in lines]
    try:
        pairs = read_pairs("\n".join(lines))
    except SpaceError as error:
        raise SpaceError(f"{path.name}, {error}") from error
    if not pairs:
        raise SpaceError(f"{path.name}: expected at least one pair, got none; write one pair per line")
    return pairs


def found_pairs(outcome: Outcome) -> list[tuple[str, str, str]]:
    """The seeds, the anchors, and the other pairs of mutual nearest neighbours."""
    result = outcome.result
    anchors = set(result.anchors)
    named = [
        (*pair, "seed" if number < result.n_seeds else "anchor") for number, pair in enumerate(result.anchors)
    ]
    return named + [(*pair, "pair") for pair in result.pairs if pair not in anchors]


def lines_of(outcome: Outcome) -> list[str | list[list[str]]]:
    """The head of the page, its table, and the wrong pairs."""
    from relcore.base.names import METRICS
    from relcore.base.numbers import band, counted, short

    lines: list[str | list[list[str]]] = [outcome.headline, outcome.result.reason]
    if outcome.scores:
        rows = [["relative to", "metric", "score", "chance level, 95 %"]]
        for form, by_metric in outcome.scores.items():
            for metric, score in by_metric.items():
                rows.append(
                    [form, METRICS[metric].title, short(score), band(score.null.low, score.null.high)]
                )
        one = next(iter(outcome.scores.values()))["jaccard"]
        asked = counted(one.n, "held-out row") + (
            f", {one.n_queries:,} of them as queries" if one.interval else ""
        )
        lines += ["", rows, "", f"{asked}; k = {one.k}; chance level: rows of one space permuted"]
    wrong = outcome.wrong()
    if wrong:
        more = f" and {len(wrong) - _MOST_LISTED:,} more" if len(wrong) > _MOST_LISTED else ""
        lines.append(f"Wrong: {', '.join(f'{one} = {other}' for one, other in wrong[:_MOST_LISTED])}{more}")
    return lines
