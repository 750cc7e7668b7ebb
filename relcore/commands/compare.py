"""compare: the table of the Compare page."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from relcore.commands.numbers import whole
from relcore.names import METRICS
from relcore.numbers import counted

if TYPE_CHECKING:
    import pandas as pd

    from relcore.metrics.calibration import Score


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from relcore.commands.naming import add_anchors, add_pair, add_projection, add_random_state
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
        "--exact", action="store_true", help="take every held-out row as a query, instead of 300 random ones as on the page"
    )
    add_random_state(parser)
    add_recipe(parser)
    add_format(parser)
    parser.epilog = "example:\n  relscope compare word2vec-novels fasttext-novels --anchors 300 --exact"


def run(options: argparse.Namespace) -> None:
    from relcore.commands.naming import anchors_of, comparison_recipe, pair_of, projection_of
    from relcore.commands.output import show, write_recipe
    from relcore.commands.running import bar
    from relcore.comparing.figures import Scores
    from relcore.comparison import (
        LIVE_QUERIES,
        REPRESENTATIONS,
        cautions,
        class_labels,
        held_out,
        represent,
        score_notes,
        score_pair,
        score_table,
    )
    from relcore.metrics.neighbours import CONVENTIONS
    from relcore.spaces import SpaceError, distinct_names, need_one_of

    projection = projection_of(options)
    need_one_of("--convention", options.convention, CONVENTIONS)
    if options.k < 1:
        raise SpaceError(f"-k: expected 1 neighbour or more, got {options.k}")
    specs, pair = pair_of(options)
    anchors = anchors_of(options, pair.source)
    if options.recipe and not anchors:
        raise SpaceError(
            "--recipe: expected anchors, because the figure shows relative scores, got 0; choose some, or leave --recipe out"
        )
    settings = {"k": options.k, "convention": options.convention, "n_queries": None if options.exact else LIVE_QUERIES}
    labels = class_labels(pair)
    forms, scores = REPRESENTATIONS if anchors else ("absolute",), {}
    with bar(options) as line:
        for number, form in enumerate(forms):
            line.show(number, len(forms), form)
            split = held_out(pair, anchors, form)
            scores[form] = score_pair(*represent(pair, form, anchors, projection), split, labels=labels, **settings)
    if options.recipe:
        settings["class_agreement"] = labels is not None
        write_recipe(options, Scores.of(comparison_recipe(specs, pair, anchors, projection), **settings).draw(scores))
    table, names = score_table(scores), distinct_names((pair.source, pair.target))
    head = f"{names[0]} and {names[1]}, {counted(len(anchors), 'anchor')}"
    facts = {"source": names[0], "target": names[1], "n": len(pair), "anchors": anchors}
    told = score_notes(scores) + cautions(pair, anchors)
    notes = [line for note in told for line in ("", f"Note: {note}")]
    show(options, table, [head, "", printed(table), "", circumstances(scores), *notes], **facts, notes=told)


def printed(table: pd.DataFrame) -> list[list[str]]:
    """The scores as the page shows them, with half the sampling interval, the chance level and its 95 % band."""
    from relcore.stitching.figures import short

    rows = [["representation", "metric", "score", "±", "chance level", "its 95 %"]]
    for row in table.itertuples():
        reach = "" if row.low != row.low else short((row.high - row.low) / 2)  # NaN where all rows are queries
        none = row.chance != row.chance
        band = "" if none else f"{short(row.null_low)} … {short(row.null_high)}"
        rows.append([row.form, row.metric.split(",")[0], short(row.score), reach, "" if none else short(row.chance), band])
    return rows


def circumstances(scores: Mapping[str, Mapping[str, Score]]) -> str:
    """n, k, and what the chance level is."""
    from relcore.comparison import neighbour_facts, rows_scored

    every = [score for by_metric in scores.values() for score in by_metric.values()]
    lists = next((score for score in every if score.k), None)
    told = [rows_scored(scores)]
    if lists is not None:  # a score of 0 counts, too
        sampled = f", {lists.n_queries:,} of them as queries (± is the 95 % sampling interval)" if lists.interval else ""
        told.append(f"{neighbour_facts(scores)}{sampled}")
    return "; ".join([*told, "chance level: rows of one space permuted"])
