"""bootstrap: what the Bootstrap page finds, and the pairs as a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from relcore.bootstrapping.result import Outcome
    from relcore.bootstrapping.spec import BootstrapSpec
    from relcore.spaces import LatentSpace

FEWEST_SHARED = 20  # with fewer there is nothing to hide
PAPER_ROWS = 2000  # each step of the published method compares all with all
HEAD = ("source", "target", "found")
_MOST_LISTED = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from relcore.commands.naming import add_pair
    from relcore.commands.output import add_format, add_recipe
    from relcore.commands.running import add_scheduler

    parser.description += (
        " Where the two share ids, the pairing is hidden, found again, and held against the truth; --real is for two that "
        "share none."
    )
    add_pair(parser)
    parser.add_argument(
        "--seeds",
        default="15",
        metavar="N|FILE|none",
        help="known pairs: so many at random, or a file of pairs, one a line, separated by a tab or “=”; default %(default)s",
    )
    parser.add_argument("--anchors", type=int, default=300, metavar="N", help="how many, seeds among them; default %(default)s")
    parser.add_argument("--method", default="self-learning", help="self-learning, or paper; default %(default)s")
    parser.add_argument(
        "--rows", type=int, metavar="N", help=f"the most frequent, or first, of each; default all, of “paper” {PAPER_ROWS}"
    )
    parser.add_argument("--real", action="store_true", help="take no id for the truth but those of the seeds")
    parser.add_argument(
        "-k", type=int, default=10, metavar="N", help="neighbours of CSLS and of the scores; default %(default)s"
    )
    parser.add_argument("--steps", type=int, metavar="N", help="of “paper”; default the paper's")
    parser.add_argument(
        "--learning-rate",
        type=float,
        metavar="RATE",
        help="of “paper”, above 0 … 1; default .02, the paper's for retrieval; it takes .05 for stitching",
    )
    parser.add_argument("--random-state", type=int, default=0, metavar="N", help="draws seeds and anchors; default %(default)s")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write the pairs found, as .tsv: source, target, and how it was found"
    )
    add_recipe(parser)
    add_scheduler(parser)
    add_format(parser)
    parser.epilog = "example:\n  relscope bootstrap word2vec-novels fasttext-novels --seeds 15 -o pairs.tsv"


def run(options: argparse.Namespace) -> None:
    import pandas as pd

    from relcore.bootstrapping.figures import BootstrapRounds, BootstrapScores
    from relcore.commands.naming import space_spec
    from relcore.commands.output import show, write_recipe
    from relcore.commands.running import computed
    from relcore.recipe import load_again
    from relcore.spaces import SpaceError

    if options.output and options.output.suffix.lower() != ".tsv":
        raise SpaceError(f"{options.output}: expected a name that ends in .tsv, got {options.output.suffix or 'no suffix'!r}")
    specs = [space_spec(one) for one in (options.source, options.target)]
    spaces = [load_again(one) for one in specs]
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
    scores = {form: {name: score.to_record() for name, score in found.items()} for form, found in outcome.scores.items()}
    lines = lines_of(outcome) + ([str(options.output)] if options.output else [])
    show(options, pairs, lines, **facts, pairs=len(result.pairs), wrong=outcome.wrong(), scores=scores)


def spec_of(options: argparse.Namespace, source: LatentSpace, target: LatentSpace) -> BootstrapSpec:
    """The options as the page would take them."""
    from relcore.anchors.literal import LEARNING_RATE, STEPS
    from relcore.bootstrapping.spec import BootstrapSpec
    from relcore.spaces import SpaceError

    n_shared = int((target.index.get_indexer(source.index) >= 0).sum())
    hide = n_shared >= FEWEST_SHARED and not options.real
    n_seeds, pairs = 0, ()
    if options.seeds.isdecimal():
        n_seeds = int(options.seeds)
    elif options.seeds != "none":
        pairs = read_pairs(Path(options.seeds).expanduser())
    if n_seeds and not hide:
        why = "--real" if options.real else f"spaces that share {n_shared} ids"
        raise SpaceError(f"--seeds: expected a file of pairs, or none, with {why}, got {n_seeds} at random")
    rows = options.rows
    if rows is None and options.method == "paper":
        rows = PAPER_ROWS if min(len(source), len(target)) > PAPER_ROWS else None
    if options.method == "paper" and not (n_seeds or pairs):
        raise SpaceError("--seeds: expected some with the published method, got none; give 15, or choose self-learning")
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


def read_pairs(path: Path) -> tuple[tuple[str, str], ...]:
    """Pairs of ids from a text file, one a line, separated by a tab or else by “=”; of what this command wrote the seeds and
    anchors.

    Raises
    ------
    SpaceError
        No such file, a line that does not have two sides, no pair at all.
    """
    from relcore.spaces import SpaceError

    if not path.is_file():
        raise SpaceError(f"--seeds: expected a number, a file of pairs or none, got {str(path)!r}, where there is no file")
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    own = bool(lines) and tuple(lines[0].split("\t")) == HEAD
    pairs = []
    for number, line in enumerate(lines[own:], start=1 + own):
        cells = [cell.strip() for cell in (line.split("\t") if "\t" in line else line.split("=", 1))]
        if not line.strip() or (own and cells[2:] == ["pair"]):
            continue
        if len(cells) < 2 or not cells[0] or not cells[1]:
            raise SpaceError(f"{path.name}, line {number}: expected two ids and a tab or “=” between them, got {line!r:.60}")
        pairs.append((cells[0], cells[1]))
    if not pairs:
        raise SpaceError(f"{path.name}: expected one pair or more, got none")
    return tuple(pairs)


def found_pairs(outcome: Outcome) -> list[tuple[str, str, str]]:
    """Seeds, anchors, and the other rows that found each other."""
    result = outcome.result
    anchors = set(result.anchors)
    named = [(*pair, "seed" if number < result.n_seeds else "anchor") for number, pair in enumerate(result.anchors)]
    return named + [(*pair, "pair") for pair in result.pairs if pair not in anchors]


def lines_of(outcome: Outcome) -> list[str | list[list[str]]]:
    """The head of the page, its table, and the wrong ones."""
    from relcore.names import METRICS
    from relcore.numbers import band, short

    lines: list[str | list[list[str]]] = [outcome.headline, outcome.result.reason]
    if outcome.scores:
        rows = [["relative to", "metric", "score", "95 % of chance"]]
        for form, by_metric in outcome.scores.items():
            for metric, score in by_metric.items():
                rows.append([form, METRICS[metric].title, short(score), band(score.null.low, score.null.high)])
        one = next(iter(outcome.scores.values()))["jaccard"]
        asked = f"{one.n:,} held-out rows" + (f", {one.n_queries:,} of them as queries" if one.interval else "")
        lines += ["", rows, "", f"{asked}; k = {one.k}; chance level: rows of one space permuted"]
    wrong = outcome.wrong()
    if wrong:
        more = f" and {len(wrong) - _MOST_LISTED:,} more" if len(wrong) > _MOST_LISTED else ""
        lines.append(f"Wrong: {', '.join(f'{one} = {other}' for one, other in wrong[:_MOST_LISTED])}{more}")
    return lines
