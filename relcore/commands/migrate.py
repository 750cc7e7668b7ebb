"""migrate: keep the old embedding model, bridge, query both models, or re-embed; measured on pairs, and on
judged queries if given.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from relcore.base.names import ADAPTERS, STRATEGIES
from relcore.commands.naming import whole

if TYPE_CHECKING:
    import numpy as np

    from relcore.migrate.migration import Migration, MigrationResult
    from relcore.spaces.space import LatentSpace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from relcore.commands.naming import SPACE_HELP, add_random_state, add_sample
    from relcore.commands.output import add_format, add_recipe

    parser.description += (
        " Rows that both models have embedded are the pairs; they belong together by id. Without judgements,"
        " pairs that are held out from the adapter are the queries."
    )
    parser.add_argument("old", metavar="OLD", help=f"the old vectors of the corpus: {SPACE_HELP}")
    parser.add_argument(
        "new", metavar="NEW", help="the new model's vectors of some or all of these rows, by the same ids"
    )
    parser.add_argument("--queries-old", metavar="SPACE", help="queries by the old model")
    parser.add_argument("--queries-new", metavar="SPACE", help="the same queries by the new model")
    parser.add_argument(
        "--qrels",
        type=Path,
        metavar="FILE",
        help="TREC judgements: per line a query, an iteration, a row and a grade",
    )
    parser.add_argument(
        "--labels",
        action="store_true",
        help="rows of the same label are relevant to a held-out row; OLD or NEW has labels",
    )
    parser.add_argument(
        "--adapter", default="auto", help=f"auto, by cross-validation on the pairs, or {', '.join(ADAPTERS)}"
    )
    parser.add_argument(
        "--pairs",
        type=whole,
        default=0,
        metavar="N",
        help="number of pairs to learn from; default: all that are not held out",
    )
    parser.add_argument("--strategy", default="random", help=f"how to choose them: {', '.join(STRATEGIES)}")
    parser.add_argument(
        "-k", type=whole, default=10, metavar="N", help="number of rows that each search finds"
    )
    parser.add_argument(
        "--fusion", default="z", help="how the scores of both models are added: z, reciprocal"
    )
    parser.add_argument(
        "--no-curve", dest="curve", action="store_false", help="do not measure smaller numbers of pairs"
    )
    parser.add_argument(
        "--draws", type=whole, default=3, metavar="N", help="draws of the pairs per point of the curve"
    )
    parser.add_argument(
        "--export",
        type=Path,
        metavar="FOLDER",
        help="write the adapter for use without Relscope: safetensors, NumPy, ONNX",
    )
    parser.add_argument("--take-away", dest="export", type=Path, help=argparse.SUPPRESS)  # of version 0.1.0
    add_random_state(parser, "the pairs, the folds and the held-out rows")
    add_recipe(parser)
    add_sample(parser)
    add_format(parser)
    parser.epilog = (
        "example:\n"
        "  relscope migrate old.npy new.npy --export adapter\n"
        "  relscope migrate old.npz new.npz --queries-old q_old.npz --queries-new q_new.npz --qrels qrels.txt"
    )


def run(options: argparse.Namespace) -> None:
    from relcore.commands.naming import need_loadable, samples
    from relcore.commands.output import show, write_recipe
    from relcore.commands.running import computed
    from relcore.migrate.figures import MigrationChart

    names, task = names_of(options), task_of(options)
    specs, spaces, sampled = samples(options, names)
    need_loadable(options, sampled)
    result = computed(task, specs, spaces, options)
    if options.recipe:
        digests = tuple(space.digest for space in spaces)
        write_recipe(
            options, MigrationChart(spaces=tuple(specs), digests=digests, migration=task).draw(result)
        )
    old, new = spaces[:2]
    written = ()
    if options.export:
        pairs = new.vectors[new.rows(old.ids[result.pairs])], old.vectors[result.pairs]
        written = export(options.export, result, pairs, (new, old))
    facts = {
        "verdict": {
            "option": result.verdict.option,
            "clear": result.verdict.is_clear,
            "sentence": result.verdict.sentence,
        },
        "adapter": result.adapter,
        "weight": result.weight,
        "truth": result.truth,
        "pairs": result.n_pairs,
        "candidates": [asdict(one) for one in result.candidates],
        "curve": [asdict(one) for one in result.curve],
        "cautions": list(result.cautions),
        "sample": sampled,
    }
    show(options, result.table(), [*lines_of(result), *(str(path) for path in written), *sampled], **facts)


def names_of(options: argparse.Namespace) -> list[str]:
    """The spaces in the order that `Migration` expects.

    Raises
    ------
    SpaceError
        Judgements without queries, queries by one model only, queries without judgements.
    """
    from relcore.base.errors import SpaceError

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
    from relcore.migrate.evaluate import SIZES
    from relcore.migrate.migration import Migration
    from relcore.migrate.retrieval import read_qrels

    return Migration(
        options.adapter,
        options.pairs,
        options.strategy,
        sizes=SIZES if options.curve else (),
        draws=options.draws,
        k=options.k,
        fusion=options.fusion,
        judgements=read_qrels(options.qrels) if options.qrels else (),
        relevance="labels" if options.labels else "neighbours",
        random_state=options.random_state,
    )


def export(
    folder: Path,
    result: MigrationResult,
    rows: tuple[np.ndarray, np.ndarray],
    models: tuple[LatentSpace, LatentSpace],
) -> tuple[Path, ...]:
    """Write the adapter of the result, fitted again on rows of the new and the old model, with its card."""
    from relcore.migrate.adapter_file import export_result
    from relcore.papers.runs import commit_of

    return export_result(result, rows, (models[0].name, models[1].name), folder, commit_of())


def lines_of(result: MigrationResult) -> list[str | list[list[str]]]:
    """The sentence, the options, the cross-validation, the curve and the cautions."""
    from relcore.base.numbers import band, short, signed
    from relcore.migrate.migration import TITLES

    rows = [
        [
            "option",
            result.metric,
            "95 %",
            f"recall@{result.k}",
            "change to keep, 95 %",
            "change to re-embed, 95 %",
        ]
    ]
    for one in result.options:
        gains = [
            f"{signed(gain.value)} ({band(gain.low, gain.high)})" if gain else "–"
            for gain in (one.to_keep, one.to_reembed)
        ]
        rows.append(
            [TITLES[one.option], short(one.value), band(one.low, one.high), short(one.recall), *gains]
        )
    lines: list[str | list[list[str]]] = [result.verdict.sentence, "", rows]
    if result.candidates:
        found = [["adapter", "score", "MRR of partners", "nDCG of neighbours"]]
        found += [
            [ADAPTERS[one.adapter].title, short(one.score), short(one.partner), short(one.neighbours)]
            for one in result.candidates
        ]
        lines += [
            "",
            f"Chosen by cross-validation on {result.n_pairs:,} pairs: {ADAPTERS[result.adapter].title}",
            found,
        ]
    if result.curve:
        points = [["pairs", "adapter", "option", result.metric, "95 %"]]
        points += [
            [
                f"{p.n_pairs:,}",
                ADAPTERS[p.adapter].title,
                TITLES[p.option],
                short(p.value),
                band(p.low, p.high),
            ]
            for p in result.curve
        ]
        lines += ["", points]
    return lines + (["", *result.cautions] if result.cautions else [])
