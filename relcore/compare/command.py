"""The command `compare`, which prints the scores that the app's page Explore shows in a table."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from relcore.base.errors import SpaceError
from relcore.base.names import FIGURES
from relcore.base.report import Report
from relcore.base.settings import setting
from relcore.catalog.catalog import SpaceSpec
from relcore.commands.anchors import anchors_of
from relcore.commands.by_shard import folders_as_spaces, is_by_shard, report_over_shards
from relcore.commands.command import command, values_of
from relcore.commands.inputs import pair_settings, spaces_of, spaces_of_specs
from relcore.commands.options import SHARDS_HELP, ByLinks, ByRow, DrawnAnchors, Pair, Results, Shards
from relcore.commands.progress import Bar
from relcore.compare.comparison import named_metrics, need_scores
from relcore.compare.reports import ExactScores, comparison_report
from relcore.engine.device import preload_torch
from relcore.engine.nearest import largest_k, need_k
from relcore.represent.representations import REPRESENTATIONS
from relcore.scores.comparison import class_labels, metrics_of_a_pair, score_representations
from relcore.scores.score_report import LIVE_QUERIES
from relcore.spaces.matching import Match, match


@dataclass
class Queries:
    queries: str = setting(
        str(LIVE_QUERIES),
        metavar="N|all",
        help="Number of random held-out rows whose neighbours are searched. “all” is a job that can resume.",
    )
    metrics: tuple[str, ...] = setting(
        (),
        metavar="NAMES|all",
        help="Scores to print instead of Explore's, separated by commas; docs/measures.md explains each.",
    )


_METRICS = metrics_of_a_pair()


@command(
    (Pair, ByRow, ByLinks, DrawnAnchors, ExactScores, Queries, Shards, Results),
    f"The scores are those of Explore, {', '.join(_METRICS.values())}.{SHARDS_HELP} --metrics also takes"
    f" {', '.join(name for name in metrics_of_a_pair(more=True) if name not in _METRICS)}.",
    ("word2vec-novels fasttext-novels --anchors 300 --queries all",),
)
def run_compare(options: argparse.Namespace) -> Report:
    n_queries = _number_of_queries(options.queries)
    metrics = named_metrics(options.metrics, "--metrics")
    places = options.source, options.target
    folders: list[SpaceSpec] = []
    if is_by_shard(options, *places):
        folders = folders_as_spaces(options, *places)
        if not folders:
            return _compare_shards(options, n_queries)
    preload_torch()
    settings = values_of(options, ExactScores)
    if folders:
        inputs = spaces_of_specs(options, folders)
    else:
        inputs = spaces_of(options, places)
    pair = match(*inputs.spaces)
    anchors = anchors_of(options, pair.source)
    if options.recipe and not anchors:
        raise SpaceError(
            "--recipe: expected anchors, because the figure shows relative scores, got 0; choose some, or"
            " leave --recipe out"
        )
    _need_neighbours(options, pair, len(anchors))
    if anchors:
        representations = REPRESENTATIONS
    else:
        representations = ("absolute",)
    if n_queries is None:
        tasks = [ExactScores.on(name, anchors, **settings) for name in representations]
        if metrics:
            tasks = [replace(task, metrics=metrics) for task in tasks]
        results = replace(inputs, spaces=[pair.source, pair.target]).results(tasks)
        scores = {name: result.scores for name, result in zip(representations, results, strict=True)}
    else:
        arguments = {"projection": settings["projection"], "k": options.k, "convention": options.convention}
        arguments["metrics"] = metrics
        with Bar(options) as bar:
            arguments["done"] = partial(bar.show, text="blocks of rows")
            scores = score_representations(
                pair, representations, anchors, labels=class_labels(pair), n_queries=n_queries, **arguments
            )
    settings |= {"n_queries": n_queries, "class_agreement": class_labels(pair) is not None}
    settings["metrics"] = metrics

    scored = need_scores(scores, "--metrics")

    def drawn() -> Any:  # drawing imports the maps, which are needed only for --recipe
        shared = pair_settings(inputs.specs, pair, anchors)
        return FIGURES["scores"].load()(**settings, **shared).draw(scores)

    return comparison_report(scored, pair, anchors, {"scores": drawn})


def _number_of_queries(text: str) -> int | None:
    """The number that --queries gives, or None for all. Raises a SpaceError for another text."""
    if text == "all":
        return None
    if not re.fullmatch(r"0*[1-9][0-9]{0,17}", text):
        raise SpaceError(f"--queries: expected a number above 0, or all, got {text!r:.80}")
    return int(text)


def _need_neighbours(options: argparse.Namespace, pair: Match, n_anchors: int) -> None:
    """Raise a SpaceError if there are not enough rows for k neighbours, with or without the anchors."""
    for n in (len(pair), len(pair) - n_anchors):
        if n:  # if no row is left, because of too many anchors, this is reported later
            which = f" of {pair.source.name!r} and {pair.target.name!r}"
            need_k(options.k, n, largest_k(n, options.convention), which)


def _compare_shards(options: argparse.Namespace, n_queries: int | None) -> Report:
    from relcore.sharded.comparison import ShardedScores, compare_shards

    if options.metrics:
        raise SpaceError(
            "--metrics: expected no choice for folders that are read by shard, which always get the usual"
            " scores; leave --metrics out"
        )
    projection = values_of(options, ExactScores)["projection"]
    settings = {name: getattr(options, name) for name in ("k", "convention", "random_state")}
    return report_over_shards(
        options,
        (options.source, options.target),
        lambda run, anchors, *spaces: compare_shards(
            *spaces, anchors, run, projection, n_queries=n_queries or spaces[0].n, **settings
        ),
        ShardedScores.report,
    )
