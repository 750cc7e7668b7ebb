"""migrate: keep the old embedding model, bridge, query both models, or re-embed; measured on pairs, and on
judged queries if given.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from relcore.base.errors import SpaceError
from relcore.base.names import ADAPTERS
from relcore.base.numbers import band, short, signed
from relcore.commands import options as generated
from relcore.commands.naming import SPACE_HELP
from relcore.commands.options import alias, option, values_of
from relcore.commands.output import Lines, add_results, show, write_recipe
from relcore.commands.running import computed
from relcore.commands.shards import add_sample, samples
from relcore.migrate.evaluate import read_qrels
from relcore.migrate.migration import TITLES, Migration, MigrationResult


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description += (
        " Rows that both models have embedded are the pairs; they belong together by id. Without judgements,"
        " pairs that are held out from the adapter are the queries."
    )
    parser.add_argument("old", metavar="OLD", help=f"the old vectors of the corpus: {SPACE_HELP}")
    parser.add_argument(
        "new", metavar="NEW", help="the new model's vectors of some or all of these rows, by the same ids"
    )
    option(parser, "queries_old", metavar="SPACE", help="Queries by the old model.")
    option(parser, "queries_new", metavar="SPACE", help="The same queries by the new model.")
    option(
        parser,
        "qrels",
        Path,
        metavar="FILE",
        help="TREC judgements: per line a query, an iteration, a row and a grade.",
    )
    option(
        parser,
        "labels",
        bool,
        False,
        help="Rows of the same label are relevant to a held-out row; OLD or NEW has labels.",
    )
    generated.add(parser, Migration, "relevance")
    option(parser, "curve", bool, True, help="Measure smaller numbers of pairs, too.")
    option(
        parser,
        "export",
        Path,
        metavar="FOLDER",
        help="Write the adapter for use without Relscope: safetensors, NumPy, ONNX.",
    )
    alias(parser, "--take-away", "export", Path)
    add_results(parser)
    add_sample(parser)
    parser.epilog = (
        "example:\n"
        "  relscope migrate old.npy new.npy --export adapter\n"
        "  relscope migrate old.npz new.npz --queries-old q_old.npz --queries-new q_new.npz --qrels qrels.txt"
    )


def run(options: argparse.Namespace) -> None:
    names, task = names_of(options), task_of(options)
    specs, spaces, sampled = samples(options, names)
    result = computed(task, specs, spaces, options)
    if options.recipe:
        from relcore.migrate.migration import MigrationChart

        digests = tuple(space.digest for space in spaces)
        chart = MigrationChart(spaces=tuple(specs), digests=digests, migration=task)
        write_recipe(options, chart.draw(result))
    lines, (old, new) = lines_of(result), spaces[:2]
    if options.export:
        from relcore.migrate.adapter_file import export_result
        from relcore.papers.runs import commit_of

        pairs = new.vectors[new.rows(old.ids[result.pairs])], old.vectors[result.pairs]
        written = export_result(result, pairs, (new.name, old.name), options.export, commit_of())
        lines += map(str, written)
    verdict = result.verdict
    show(
        options,
        result.table(),
        [*lines, *sampled],
        verdict={"option": verdict.option, "clear": verdict.is_clear, "sentence": verdict.sentence},
        adapter=result.adapter,
        weight=result.weight,
        truth=result.truth,
        pairs=result.n_pairs,
        candidates=[asdict(candidate) for candidate in result.candidates],
        curve=[asdict(point) for point in result.curve],
        cautions=list(result.cautions),
        sample=sampled,
    )


def names_of(options: argparse.Namespace) -> list[str]:
    """The spaces in the order that `Migration` expects.

    Raises
    ------
    SpaceError
        Judgements without queries, queries by one model only, queries without judgements.
    """
    given = [options.queries_old, options.queries_new, options.qrels]
    if any(given) and not all(given):
        raise SpaceError(
            "migrate: expected --queries-old, --queries-new and --qrels together, got some of them; add the"
            " others"
        )
    if options.qrels and options.labels:
        raise SpaceError("migrate: expected --qrels or --labels, got both; leave one out")
    return [options.old, options.new, *([options.queries_old, options.queries_new] if options.qrels else [])]


def task_of(options: argparse.Namespace) -> Migration:
    given = values_of(options, Migration) | ({} if options.curve else {"sizes": ()})
    judgements = read_qrels(options.qrels) if options.qrels else ()
    relevance = "labels" if options.labels else "neighbours"
    return Migration(**given, judgements=judgements, relevance=relevance)


def lines_of(result: MigrationResult) -> Lines:
    """The sentence, the options, the cross-validation, the curve and the cautions."""
    rows = [["option", result.metric, "95 %", f"recall@{result.k}"]]
    rows[0] += ["change to keep, 95 %", "change to re-embed, 95 %"]
    for choice in result.options:
        cells = [
            TITLES[choice.option],
            short(choice.value),
            band(choice.low, choice.high),
            short(choice.recall),
        ]
        for gain in (choice.to_keep, choice.to_reembed):
            cells.append(f"{signed(gain.value)} ({band(gain.low, gain.high)})" if gain else "–")
        rows.append(cells)
    lines: Lines = [result.verdict.sentence, "", rows]
    if result.candidates:
        rows = [["adapter", "score", "MRR of partners", "nDCG of neighbours"]]
        for candidate in result.candidates:
            scores = candidate.score, candidate.partner, candidate.neighbours
            rows.append([ADAPTERS[candidate.adapter].title, *map(short, scores)])
        chosen = ADAPTERS[result.adapter].title
        lines += ["", f"Chosen by cross-validation on {result.n_pairs:,} pairs: {chosen}", rows]
    if result.curve:
        rows = [["pairs", "adapter", "option", result.metric, "95 %"]]
        for point in result.curve:
            cells = [f"{point.n_pairs:,}", ADAPTERS[point.adapter].title, TITLES[point.option]]
            rows.append([*cells, short(point.value), band(point.low, point.high)])
        lines += ["", rows]
    return lines + (["", *result.cautions] if result.cautions else [])
