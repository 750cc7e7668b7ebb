"""compare: the table of the Compare page."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import partial

import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.names import METRICS
from relcore.base.numbers import band, counted, short
from relcore.commands import options as generated
from relcore.commands.naming import (
    add_anchors,
    add_pair,
    add_random_state,
    anchors_of,
    comparison_recipe,
    pair_of,
)
from relcore.commands.options import is_number, option, values_of
from relcore.commands.output import Bar, Lines, add_results, show
from relcore.commands.shards import add_shards, by_shard
from relcore.compare.exact import ExactScores
from relcore.scores.comparison import (
    LIVE_QUERIES,
    REPRESENTATIONS,
    cautions,
    class_labels,
    neighbour_facts,
    rows_scored,
    score_notes,
    score_table,
)
from relcore.scores.neighbours import need_k
from relcore.scores.score import Score
from relcore.scores.scoring import score_forms
from relcore.spaces.space import distinct_names

Scores = Mapping[str, Mapping[str, Score]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    titles = [metric.title for metric in METRICS.values() if "pair" in metric.of]
    parser.description += f" The scores are those of the Compare page: {', '.join(titles)}."
    add_pair(parser)
    add_anchors(parser, "the rows that both spaces have (0: absolute only)")
    generated.add(parser, ExactScores)
    option(
        parser,
        "queries",
        str,
        str(LIVE_QUERIES),
        metavar="N|all",
        help="Number of random held-out rows whose neighbours are searched, or all, as a job that resumes.",
    )
    option(parser, "exact", bool, False, help="The same as --queries all.")
    add_random_state(parser)
    add_shards(parser)
    add_results(parser)
    parser.epilog = "example:\n  relscope compare word2vec-novels fasttext-novels --anchors 300 --queries all"


def run(options: argparse.Namespace) -> None:
    n_queries = _n_queries(options)
    if by_shard(options, options.source, options.target):
        _by_shard(options, n_queries)
        return
    settings = values_of(options, ExactScores)
    specs, pair = pair_of(options)
    anchors = anchors_of(options, pair.source)
    if options.recipe and not anchors:
        raise SpaceError(
            "--recipe: expected anchors, because the figure shows relative scores, got 0; choose some, or"
            " leave --recipe out"
        )
    which = f" of {pair.source.name!r} and {pair.target.name!r}"
    for n in (len(pair), len(pair) - len(anchors)):
        if n:  # too many anchors have an error of their own
            need_k(options.k, n, n - (options.convention == "mutual"), which)
    forms, of = REPRESENTATIONS if anchors else ("absolute",), (specs, pair, anchors)
    if n_queries is None:
        scores = _scores_of_every_row(options, forms, *of, settings)
    else:
        given = {"k": options.k, "convention": options.convention, "n_queries": n_queries}
        with Bar(options) as bar:
            given["done"] = partial(bar.show, text="blocks of rows")
            scores = score_forms(
                pair, forms, anchors, settings["projection"], labels=class_labels(pair), **given
            )
    if options.recipe:
        _write_recipe(options, *of, settings, n_queries, scores)
    names = distinct_names((pair.source, pair.target))
    head = f"{names[0]} and {names[1]}, {counted(len(anchors), 'anchor')}"
    if pair.n_source_only or pair.n_target_only:
        alone = f"{pair.n_source_only:,} and {pair.n_target_only:,} in one only"
        head += f"; {counted(len(pair), 'row')} in both, left out: {alone}"
    notes = score_notes(scores) + cautions(pair, anchors)
    facts = {"source": names[0], "target": names[1], "n": len(pair), "anchors": anchors, "notes": notes}
    show(options, score_table(scores), _lines(head, scores, notes), **facts)


def _n_queries(options: argparse.Namespace) -> int | None:
    """Of --queries and --exact: the number of queries, None for all."""
    if options.exact or options.queries == "all":
        return None
    if options.neighbours != "exact":
        raise SpaceError(
            f"--neighbours {options.neighbours}: expected --queries all; a sample is searched exactly"
        )
    if not is_number("--queries", options.queries) or not int(options.queries):
        raise SpaceError(f"--queries: expected a number above 0, or all, got {options.queries!r}")
    return int(options.queries)


def _scores_of_every_row(options, forms, specs, pair, anchors, settings) -> Scores:
    from relcore.commands.running import all_computed

    search = {"search": settings["search"], "target_recall": settings["target_recall"]}
    tasks = [
        ExactScores.on(form, anchors, settings["projection"], options.k, options.convention, **search)
        for form in forms
    ]
    results = all_computed(tasks, specs, (pair.source, pair.target), options)
    return {form: result.scores for form, result in zip(forms, results, strict=True)}


def _write_recipe(options, specs, pair, anchors, settings, n_queries, scores: Scores) -> None:
    from relcore.commands.output import write_recipe
    from relcore.compare.figures import Scores as ScoresRecipe

    recipe = ScoresRecipe.of(
        comparison_recipe(specs, pair, anchors, projection=settings["projection"]),
        k=options.k,
        convention=options.convention,
        n_queries=n_queries,
        class_agreement=class_labels(pair) is not None,
        neighbours=settings["search"],
        target_recall=settings["target_recall"],
    )
    write_recipe(options, recipe.draw(scores))


def _by_shard(options: argparse.Namespace, n_queries: int | None) -> None:
    from relcore.commands.shards import anchors_by_shard, need_loadable, runner
    from relcore.sharded.compare import compare_shards
    from relcore.sharded.space import ShardedSpace

    need_loadable(options)
    if options.neighbours != "exact":
        raise SpaceError(
            f"--neighbours: expected 'exact' for folders of shards, got {options.neighbours!r}; leave it out"
        )
    source, target = ShardedSpace.open(options.source), ShardedSpace.open(options.target)
    settings = {"k": options.k, "convention": options.convention, "random_state": options.random_state}
    settings["n_queries"] = n_queries or source.n
    projection = values_of(options, ExactScores)["projection"]
    with runner(options, len(source.shards)) as run:
        result = compare_shards(
            source, target, anchors_by_shard(options, source.n), run, projection, **settings
        )
    names, shards = distinct_names((source, target)), counted(len(source.shards), "shard")
    head = f"{names[0]} and {names[1]}, {counted(len(result.anchors), 'anchor')}, {shards} each"
    notes = score_notes(result.scores)
    facts = {"source": names[0], "target": names[1], "n": result.n, "anchors": source.ids_of(result.anchors)}
    facts |= {"notes": notes, "passes": run.told(), "worker_mb": run.peaks}
    lines = [*_lines(head, result.scores, notes), "", *run.told()]
    show(options, score_table(result.scores), lines, **facts)


def _lines(head: str, scores: Scores, notes: list[str]) -> Lines:
    """The scores as the page shows them, with half the sampling interval, the chance level and its 95 % band,
    and the recall of approximate neighbours; n, k, and what the chance level is; the notes.
    """
    table = score_table(scores)
    approximate = "recall" in table
    rows = [["representation", "metric", "score", "±", "chance level", "its 95 %"]]
    rows[0] += ["recall, its 95 %, queries"] * approximate
    for row in table.itertuples():
        cells = [row.form, row.metric.split(",")[0], short(row.score)]
        cells.append(_or_empty(row.low, short((row.high - row.low) / 2)))  # NaN where all rows are queries
        cells += [_or_empty(row.chance, short(row.chance)), _or_empty(row.chance, _range(row, "null"))]
        if approximate:
            reached = f"{short(row.recall)}, {_range(row, 'recall')}, {row.recall_queries:.0f}"
            cells.append(_or_empty(row.recall, reached))
        rows.append(cells)
    lists = next((score for by_metric in scores.values() for score in by_metric.values() if score.k), None)
    circumstances = [rows_scored(scores)]
    if lists is not None:  # a score of 0 counts, too
        sampled = f", {lists.n_queries:,} of them as queries (± is the 95 % sampling interval)"
        circumstances.append(f"{neighbour_facts(scores)}{sampled if lists.interval else ''}")
    circumstances.append("chance level: rows of one space permuted")
    noted = [line for note in notes for line in ("", f"Note: {note}")]
    return [head, "", rows, "", "; ".join(circumstances), *noted]


def _or_empty(value: float, text: str) -> str:
    return "" if value != value else text


def _range(row: pd.Series, name: str) -> str:
    return band(getattr(row, f"{name}_low"), getattr(row, f"{name}_high"))
