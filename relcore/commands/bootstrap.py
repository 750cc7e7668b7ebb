"""bootstrap: what the Bootstrap page finds, and the pairs as a file."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from relcore.base.access import expanded
from relcore.base.errors import SpaceError
from relcore.base.numbers import counted
from relcore.base.settings import setting
from relcore.base.text import read_lines
from relcore.base.writing import write
from relcore.bootstrap.spec import FEWEST_SHARED, PAPER_ROWS, BootstrapSpec, Outcome, read_pairs
from relcore.commands.arguments import (
    KNOWN,
    PAIRS_HEAD,
    SHARDS_HELP,
    Pair,
    Results,
    Sample,
    add,
    is_number,
    pairs_in,
    values_of,
)
from relcore.commands.output import Lines, need_suffix, score_rows, show, write_recipe
from relcore.commands.running import computed, samples
from relcore.scores.comparison import score_table
from relcore.spaces.space import LatentSpace, shared_ids

HEAD = [*PAIRS_HEAD, "precision"]


@dataclass
class BootstrapOptions:
    seeds: str = setting(
        "15",
        metavar="N|FILE|none",
        help="Known pairs: a number to draw, or a file with one pair per line, separated by a tab or “=”.",
    )
    real: bool = setting(False, help="Treat ids as unrelated, except those of the seeds.")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description += (
        " If the spaces share ids, the pairing is hidden, and what is found is compared with it. Use --real"
        f" for spaces without common ids. “paper” takes {PAPER_ROWS:,} rows by default.{SHARDS_HELP}"
    )
    output = (
        "Write the pairs (.tsv): source, target, how each was found, and the estimated precision of all links"
        " down to it."
    )
    add(parser, Pair, BootstrapOptions, BootstrapSpec, Results, Sample, skip=["hide"], output=output)
    parser.epilog = "example:\n  relscope bootstrap word2vec-novels fasttext-novels --seeds 15 -o pairs.tsv"


def run(options: argparse.Namespace) -> None:
    need_suffix(options.output, [".tsv"])
    n_seeds, pairs = 0, ()
    if is_number("--seeds", options.seeds):
        n_seeds = int(options.seeds)
    elif options.seeds != "none":
        pairs = read_seeds(expanded(options.seeds))
    sides = tuple(zip(*pairs, strict=True))  # ids that every sample of shards has
    specs, spaces, sampled = samples(options, (options.source, options.target), sides)
    spec = spec_of(options, n_seeds, pairs, *spaces)
    outcome = computed(spec, specs, spaces, options)
    table, lines = pd.DataFrame(_pairs(outcome), columns=HEAD), lines_of(outcome)
    if options.output:
        write(options.output, table.to_csv(sep="\t", index=False, lineterminator="\n").encode())
        lines.append(str(options.output))
    recipe = {"source": specs[0], "target": specs[1], "digests": tuple(space.digest for space in spaces)}
    figure = "bootstrap-scores" if outcome.scores else "bootstrap"
    write_recipe(options, figure, outcome, **recipe, bootstrap=spec)
    result = outcome.result
    facts = {"verdict": result.verdict, "success": result.verdict == "fits", "reason": result.reason}
    facts |= {"share": outcome.share, "anchors": len(result.anchors), "pairs": len(result.kept)}
    facts |= {"precision": result.promised, "wrong": outcome.wrong(), "sample": sampled}
    facts["scores"] = {
        form: {name: score.to_record() for name, score in scores.items()}
        for form, scores in outcome.scores.items()
    }
    show(options, table, [*lines, *sampled], **facts)


def spec_of(
    options: argparse.Namespace,
    n_seeds: int,
    pairs: tuple[tuple[str, str], ...],
    source: LatentSpace,
    target: LatentSpace,
) -> BootstrapSpec:
    n_shared = len(shared_ids((source, target)))
    hide = n_shared >= FEWEST_SHARED and not options.real
    if n_seeds and not hide:
        few = f"{source.name!r} and {target.name!r}, which share {n_shared} ids, fewer than {FEWEST_SHARED}"
        why = "--real" if options.real else few
        raise SpaceError(f"--seeds: expected a file of pairs or none with {why}, got {n_seeds} random pairs")
    given = values_of(options, BootstrapSpec) | {"n_seeds": n_seeds, "pairs": pairs, "hide": hide}
    if options.method == "paper":
        if not (n_seeds or pairs):
            raise SpaceError(
                "--seeds: expected seeds for the published method, got none; use --seeds 15, or --method"
                " self-learning"
            )
        if options.rows is None and min(len(source), len(target)) > PAPER_ROWS:
            given["rows"] = PAPER_ROWS
    return BootstrapSpec(**given)


def read_seeds(path: Path, option: str = "--seeds") -> tuple[tuple[str, str], ...]:
    """Pairs of ids from a text file; of one that this command wrote, the seeds and anchors.

    Raises a SpaceError for no file, a line without two sides, no pair at all.
    """
    if not path.exists() or path.is_dir():
        got = f"{str(path)!r:.200}, a file that does not exist"
        expected = "a number, a file of pairs or none" if option == "--seeds" else "a file of pairs"
        raise SpaceError(f"{option}: expected {expected}, got {got}; check the spelling")
    lines = read_lines(path, "one pair per line")
    if pairs_in(lines) is not None:
        lines = [line if {*line.split("\t")[2:3]} & {*KNOWN} else "" for line in lines]
    try:
        pairs = read_pairs("\n".join(lines))
    except SpaceError as error:
        raise SpaceError(f"{path.name}, {error}") from error
    if not pairs:
        raise SpaceError(f"{path.name}: expected at least one pair, got none; write one pair per line")
    return pairs


def _pairs(outcome: Outcome) -> list[tuple[str, str, str, float]]:
    """The seeds, the anchors and the other links that are kept, with the estimated precision down to each."""
    result = outcome.result
    kinds = dict.fromkeys((*result.anchors, *result.kept), "link") | dict.fromkeys(result.anchors, "anchor")
    kinds |= dict.fromkeys(result.anchors[: result.n_seeds], "seed")
    precision = dict(zip(result.pairs, result.precision.round(4).tolist(), strict=True))
    return [(*pair, kind, precision.get(pair, 0.0)) for pair, kind in kinds.items()]


def lines_of(outcome: Outcome) -> Lines:
    lines: Lines = [outcome.headline, outcome.result.reason]
    if outcome.scores:
        jaccard = next(iter(outcome.scores.values()))["jaccard"]
        tested = counted(jaccard.n, "held-out row")
        tested += f", {jaccard.n_queries:,} of them as queries" if jaccard.interval else ""
        tested += f"; k = {jaccard.k}; chance level: rows of one space permuted"
        lines += ["", score_rows(score_table(outcome.scores)), "", tested]
    return lines
