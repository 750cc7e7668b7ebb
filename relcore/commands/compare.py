"""compare: the table of the Compare page."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from relcore.base.names import METRICS, SEARCHES
from relcore.base.numbers import counted
from relcore.commands.naming import finite, is_number, whole

if TYPE_CHECKING:
    import pandas as pd

    from relcore.catalog.catalog import SpaceSpec
    from relcore.scores.comparison import ProjectionSpec
    from relcore.scores.score import Score
    from relcore.spaces.space import Match


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from relcore.commands.naming import add_anchors, add_pair, add_projection, add_random_state, add_shards
    from relcore.commands.output import add_format, add_recipe

    titles = [metric.title for metric in METRICS.values() if "pair" in metric.of]
    parser.description += f" The scores are those of the Compare page: {', '.join(titles)}."
    add_pair(parser)
    add_anchors(parser, "the rows that both spaces have", least="; 0: absolute only")
    add_projection(parser)
    parser.add_argument("-k", type=whole, default=10, metavar="N", help="number of neighbours")
    parser.add_argument(
        "--convention",
        default="paper",
        help="paper: both neighbourhoods are rows of the target; mutual: each is of its own space",
    )
    parser.add_argument(
        "--queries",
        default="",
        metavar="N|all",
        help=(
            "number of random held-out rows whose neighbours are searched, or all of them (default: 300, as"
            " on the page); all run in blocks, and a stopped command resumes"
        ),
    )
    parser.add_argument("--exact", action="store_true", help="the same as --queries all")
    parser.add_argument(
        "--neighbours",
        default="exact",
        metavar="SEARCH",
        help=(
            f"how the neighbours of all queries are searched: {', '.join(SEARCHES)}; ivf and hnsw are"
            " approximate and tell their measured recall"
        ),
    )
    parser.add_argument(
        "--recall",
        type=finite,
        default=0.95,
        metavar="SHARE",
        help="recall that the setting of ivf or hnsw is chosen for",
    )
    add_random_state(parser)
    add_shards(parser)
    add_recipe(parser)
    add_format(parser)
    parser.epilog = "example:\n  relscope compare word2vec-novels fasttext-novels --anchors 300 --queries all"


def run(options: argparse.Namespace) -> None:
    from relcore.base.errors import SpaceError, need_one_of
    from relcore.commands.naming import anchors_of, by_shard, comparison_recipe, pair_of, projection_of
    from relcore.commands.output import show, write_recipe
    from relcore.commands.running import bar
    from relcore.compare.figures import Scores
    from relcore.scores.comparison import REPRESENTATIONS, cautions, class_labels, score_notes, score_table
    from relcore.scores.neighbours import CONVENTIONS, need_k
    from relcore.scores.scoring import score_forms
    from relcore.spaces.space import distinct_names

    projection = projection_of(options)
    need_one_of("--convention", options.convention, CONVENTIONS)
    if options.k < 1:
        raise SpaceError(f"-k: expected 1 neighbour or more, got {options.k}")
    n_queries = _n_queries(options)
    if by_shard(options, options.source, options.target):
        _by_shard(options)
        return
    specs, pair = pair_of(options)
    anchors = anchors_of(options, pair.source)
    if options.recipe and not anchors:
        raise SpaceError(
            "--recipe: expected anchors, because the figure shows relative scores, got 0; choose some, or"
            " leave --recipe out"
        )
    settings = {"k": options.k, "convention": options.convention, "n_queries": n_queries}
    for n in (len(pair), len(pair) - len(anchors)):
        if n:  # too many anchors have an error of their own
            need_k(
                options.k,
                n,
                n - (options.convention == "mutual"),
                f" of {pair.source.name!r} and {pair.target.name!r}",
            )
    labels = class_labels(pair)
    forms = REPRESENTATIONS if anchors else ("absolute",)
    if n_queries is None:
        scores = _scores_of_every_row(options, forms, specs, pair, anchors, projection)
    else:
        with bar(options) as line:
            done = partial(line.show, text="blocks of rows")
            scores = score_forms(pair, forms, anchors, projection, labels=labels, done=done, **settings)
    if options.recipe:
        settings |= {
            "class_agreement": labels is not None,
            "neighbours": options.neighbours,
            "target_recall": options.recall,
        }
        write_recipe(
            options, Scores.of(comparison_recipe(specs, pair, anchors, projection), **settings).draw(scores)
        )
    table, names = score_table(scores), distinct_names((pair.source, pair.target))
    head = f"{names[0]} and {names[1]}, {counted(len(anchors), 'anchor')}"
    if pair.n_source_only or pair.n_target_only:
        alone = f"{pair.n_source_only:,} and {pair.n_target_only:,} in one only"
        head += f"; {counted(len(pair), 'row')} in both, left out: {alone}"
    facts = {"source": names[0], "target": names[1], "n": len(pair), "anchors": anchors}
    told = score_notes(scores) + cautions(pair, anchors)
    notes = [line for note in told for line in ("", f"Note: {note}")]
    show(options, table, [head, "", printed(table), "", circumstances(scores), *notes], **facts, notes=told)


def _n_queries(options: argparse.Namespace) -> int | None:
    """Of --queries and --exact: the number of queries, None for all."""
    from relcore.base.errors import SpaceError, need_one_of
    from relcore.scores.comparison import LIVE_QUERIES

    need_one_of("--neighbours", options.neighbours, SEARCHES)
    text = "all" if options.exact else options.queries
    if text == "all":
        return None
    if options.neighbours != "exact":
        raise SpaceError(
            f"--neighbours {options.neighbours}: expected --queries all; a sample is searched exactly"
        )
    if text and (not is_number("--queries", text) or not int(text)):
        raise SpaceError(f"--queries: expected a number above 0, or all, got {text!r}")
    return int(text) if text else LIVE_QUERIES


def _scores_of_every_row(
    options: argparse.Namespace,
    forms: Sequence[str],
    specs: Sequence[SpaceSpec],
    pair: Match,
    anchors: Sequence[str],
    projection: ProjectionSpec,
) -> dict[str, dict[str, Score]]:
    from relcore.commands.running import all_computed
    from relcore.compare.exact import ExactScores

    settings = {"search": options.neighbours, "target_recall": options.recall}
    tasks = [
        ExactScores.on(form, anchors, projection, options.k, options.convention, **settings) for form in forms
    ]
    found = all_computed(tasks, specs, (pair.source, pair.target), options)
    return {form: one.scores for form, one in zip(forms, found, strict=True)}


def _by_shard(options: argparse.Namespace) -> None:
    from relcore.base.errors import SpaceError
    from relcore.commands import naming as by_shard
    from relcore.commands.naming import anchors_by_shard, projection_of
    from relcore.commands.output import show
    from relcore.scores.comparison import score_notes, score_table
    from relcore.sharded.compare import compare_shards
    from relcore.spaces.space import distinct_names

    by_shard.need_loadable(options, ["by shard"])
    source, target = by_shard.opened(options.source), by_shard.opened(options.target)
    settings = {"k": options.k, "convention": options.convention, "random_state": options.random_state}
    if options.neighbours != "exact":
        raise SpaceError(
            f"--neighbours: expected 'exact' for folders of shards, got {options.neighbours!r}; leave it out"
        )
    settings["n_queries"] = _n_queries(options) or source.n
    with by_shard.runner(options, len(source.shards)) as run:
        found = compare_shards(
            source, target, anchors_by_shard(options, source.n), run, projection_of(options), **settings
        )
    table, names = score_table(found.scores), distinct_names((source, target))
    n_anchors, notes = len(found.anchors), score_notes(found.scores)
    head = (
        f"{names[0]} and {names[1]}, {counted(n_anchors, 'anchor')}, {counted(len(source.shards), 'shard')}"
        " each"
    )
    lines = [line for note in notes for line in ("", f"Note: {note}")]
    facts = {
        "source": names[0],
        "target": names[1],
        "n": found.n,
        "anchors": source.ids_of(found.anchors),
        "notes": notes,
    }
    facts |= {"passes": run.told(), "worker_mb": run.peaks}
    show(
        options,
        table,
        [head, "", printed(table), "", circumstances(found.scores), *lines, *by_shard.told(run)],
        **facts,
    )


def printed(table: pd.DataFrame) -> list[list[str]]:
    """The scores as the page shows them, with half the sampling interval, the chance level and its 95 % band,
    and the recall of approximate neighbours."""
    from relcore.base.numbers import short

    approximate = "recall" in table
    rows = [
        ["representation", "metric", "score", "±", "chance level", "its 95 %"]
        + approximate * ["recall, its 95 %, queries"]
    ]
    for row in table.itertuples():
        reach = (
            "" if row.low != row.low else short((row.high - row.low) / 2)
        )  # NaN where all rows are queries
        none = row.chance != row.chance
        band = "" if none else f"{short(row.null_low)} … {short(row.null_high)}"
        cells = [
            row.form,
            row.metric.split(",")[0],
            short(row.score),
            reach,
            "" if none else short(row.chance),
            band,
        ]
        if approximate:
            here = row.recall == row.recall
            interval = f"{short(row.recall_low)} … {short(row.recall_high)}" if here else ""
            cells.append(f"{short(row.recall)}, {interval}, {row.recall_queries:.0f}" if here else "")
        rows.append(cells)
    return rows


def circumstances(scores: Mapping[str, Mapping[str, Score]]) -> str:
    """n, k, and what the chance level is."""
    from relcore.scores.comparison import neighbour_facts, rows_scored

    every = [score for by_metric in scores.values() for score in by_metric.values()]
    lists = next((score for score in every if score.k), None)
    told = [rows_scored(scores)]
    if lists is not None:  # a score of 0 counts, too
        sampled = (
            f", {lists.n_queries:,} of them as queries (± is the 95 % sampling interval)"
            if lists.interval
            else ""
        )
        told.append(f"{neighbour_facts(scores)}{sampled}")
    return "; ".join([*told, "chance level: rows of one space permuted"])
