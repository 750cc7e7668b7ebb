"""Two commands: compare prints the table of scores that Explore shows, and migrate compares the options for a
new embedding model: keep the old model, bridge, or re-embed."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.names import FIGURES, METRICS
from relcore.base.report import Report
from relcore.base.settings import setting
from relcore.catalog.naming import SPACE_HELP
from relcore.commands.running import (
    SHARDS_HELP,
    Bar,
    ByLinks,
    ByRow,
    DrawnAnchors,
    Pair,
    Results,
    Sample,
    Shards,
    all_computed,
    anchors_of,
    command,
    is_by_shard,
    pair_settings,
    report_over_shards,
    result_of,
    samples,
    spaces_of,
    values_of,
)
from relcore.compare.reports import ExactScores, comparison_report
from relcore.engine.device import preload_torch
from relcore.engine.engine import need_k
from relcore.migrate.evaluate import read_qrels
from relcore.migrate.measurements import (
    AFTER,
    FEWEST_QUERIES,
    BlindAnswers,
    CheaperIndex,
    MigrationChart,
    ThresholdChange,
    with_answers,
)
from relcore.migrate.migration import Migration
from relcore.migrate.price import Rate
from relcore.represent.translation import REPRESENTATIONS
from relcore.scores.comparison import LIVE_QUERIES, class_labels, metrics_of_a_pair, score_forms
from relcore.spaces.space import match

if TYPE_CHECKING:
    from relcore.figures.export import Exportable


@dataclass
class Queries:
    queries: str = setting(
        str(LIVE_QUERIES),
        metavar="N|all",
        help="Number of random held-out rows whose neighbours are searched. With all, a job that can resume.",
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
    n_queries = None
    if options.queries != "all":
        if not re.fullmatch(r"0*[1-9][0-9]{0,17}", options.queries):
            raise SpaceError(f"--queries: expected a number above 0, or all, got {options.queries!r:.80}")
        n_queries = int(options.queries)
    metrics = _metrics(options)
    if is_by_shard(options, options.source, options.target):
        return _compare_shards(options, n_queries)
    preload_torch()
    settings = values_of(options, ExactScores)
    specs, spaces = spaces_of(options, (options.source, options.target))
    pair = match(*spaces)
    anchors = anchors_of(options, pair.source)
    if options.recipe and not anchors:
        raise SpaceError(
            "--recipe: expected anchors, because the figure shows relative scores, got 0; choose some, or"
            " leave --recipe out"
        )
    for n in (len(pair), len(pair) - len(anchors)):
        if n:  # too many anchors raise another error later
            which = f" of {pair.source.name!r} and {pair.target.name!r}"
            need_k(options.k, n, n - (options.convention == "mutual"), which)
    forms = REPRESENTATIONS if anchors else ("absolute",)
    if n_queries is None:
        tasks = [ExactScores.on(form, anchors, **settings) for form in forms]
        tasks = [replace(task, metrics=metrics) for task in tasks] if metrics else tasks
        results = all_computed(tasks, specs, (pair.source, pair.target), options)
        scores = {form: result.scores for form, result in zip(forms, results, strict=True)}
    else:
        given = {"projection": settings["projection"], "k": options.k, "convention": options.convention}
        given["metrics"] = metrics
        with Bar(options) as bar:
            given["done"] = partial(bar.show, text="blocks of rows")
            scores = score_forms(
                pair, forms, anchors, labels=class_labels(pair), n_queries=n_queries, **given
            )
    settings |= {"n_queries": n_queries, "class_agreement": class_labels(pair) is not None}
    settings["metrics"] = metrics

    def drawn() -> Exportable:  # imports the maps, so it is called only for --recipe
        recipe = FIGURES["scores"].load()(**settings, **pair_settings(specs, pair, anchors))
        return recipe.draw(scores)

    scored = {form: by_metric for form, by_metric in scores.items() if by_metric}
    if not scored:
        raise SpaceError(
            "--metrics: expected scores that exist for these two spaces, got none; they differ in width or"
            " lack labels: choose other scores"
        )
    return comparison_report(scored, pair, anchors, {"scores": drawn})


def _metrics(options: argparse.Namespace) -> tuple[str, ...]:
    """The metrics that --metrics names; () if it names none."""
    every = metrics_of_a_pair(more=True)
    asked, spelt = options.metrics, {name.replace("-", " "): name for name in every}
    if asked == ("all",):
        asked = [name for name in METRICS.working() if name in every]
    names = tuple(spelt.get(name.replace("-", " ").lower(), name) for name in asked)
    for name in names:
        need_one_of("--metrics", name, ["all", *every])
    return names


def _compare_shards(options: argparse.Namespace, n_queries: int | None) -> Report:
    from relcore.sharded.operations import ShardedScores, compare_shards

    if options.metrics:
        raise SpaceError(
            "--metrics: expected no choice for folders of shards, which always get the usual scores; leave it"
            " out"
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


# The command migrate compares the options for a new embedding model: keep the old model, bridge, query both
# models, cascade, or re-embed.


@dataclass
class MigrateOptions:
    old: str = setting(metavar="OLD", help=f"the old vectors of the corpus: {SPACE_HELP}")
    new: str = setting(
        metavar="NEW", help="vectors of some or all of these rows by the new model, with the same ids"
    )
    queries_old: str = setting(
        None,
        metavar="SPACE",
        help="Judged queries, or a log of queries for the price, as vectors of the old model.",
    )
    queries_new: str = setting(None, metavar="SPACE", help="The same queries as vectors of the new model.")
    qrels: Path = setting(
        None,
        metavar="FILE",
        help="Judgements in TREC's format: each line has a query, an iteration, a row and a grade.",
    )
    answers: Path = setting(
        None,
        metavar="FILE",
        help="The file of answers from “Judge here, blind” on the page Migrate. They decide the verdict.",
    )
    threshold: float = setting(
        None,
        low=-1,
        high=1,
        help="A cosine threshold of the old model. Default: the cosine that ten rows per query reach.",
    )
    curve: bool = setting(False, help="Also measure smaller numbers of pairs.")
    compress: bool = setting(
        False, help="Also score each option with cheaper indexes: int8, binary, fewer dimensions."
    )
    row_seconds: float = setting(
        0.0, low=0, metavar="SECONDS", help="Seconds to embed one row, for the table of costs."
    )
    price: float = setting(0.0, low=0, help="Price of a million tokens, for the table of costs.")
    row_tokens: float = setting(0.0, low=0, metavar="N", help="Tokens per row, needed with --price.")
    export: Path = setting(
        None,
        metavar="FOLDER",
        written=True,
        help="Write the adapter for use without Relscope: safetensors, NumPy, ONNX.",
    )


@command(
    (MigrateOptions, ByRow, ByLinks, Migration, Results, Sample),
    "The pairs are the rows that both models have embedded. They are matched by id, or by order with"
    " --pair-by-row. Without judgements, the queries are pairs that are held out from the adapter. If OLD"
    " or NEW has labels, rows with the label of the query are relevant. Without judgements and labels,"
    " only --answers gives a verdict. Also prints the threshold on the new scores that as many rows pass"
    f" as pass --threshold on the old scores.{SHARDS_HELP}",
    (
        "old.npy new.npy --export adapter",
        "old.npz new.npz --queries-old q_old.npz --queries-new q_new.npz --qrels qrels.txt",
    ),
    # Old scripts rely on this default of versions before 0.2.0.
    more=lambda parser: parser.add_argument(
        "--no-curve", dest="curve", action="store_false", help=argparse.SUPPRESS
    ),
)
def run_migrate(options: argparse.Namespace) -> Report:
    names, given = [options.old, options.new], values_of(options, Migration)
    queries = [options.queries_old, options.queries_new]
    if any([*queries, options.qrels]) and not all(queries):
        raise SpaceError(
            "migrate: expected --queries-old and --queries-new together, with --qrels where they are judged,"
            " got some of them; add the others"
        )
    if bool(options.price) != bool(options.row_tokens):
        raise SpaceError("migrate: expected --price and --row-tokens together, got one; add the other")
    names += filter(None, queries)
    if options.qrels:
        if options.pair_by_row:
            raise SpaceError(
                "--pair-by-row: expected no --qrels, whose ids row numbers would replace, got both; give OLD"
                " and NEW the ids of the judgements"
            )
        given["judgements"] = read_qrels(options.qrels)
    answers = BlindAnswers.read(options.answers) if options.answers else None
    if not options.curve:
        given["sizes"] = ()
    task = Migration(**given)
    specs, spaces, sampled = samples(options, names)
    if not sampled:
        match(*spaces[:2])  # an error comes before a job starts
    result = result_of(task, specs, spaces, options)
    if answers:
        result = with_answers(result, spaces[0].ids, answers, task.random_state)
    systems = [one for one in AFTER if one in result.found and len(result.queries) >= 2 * FEWEST_QUERIES]
    settings = {"migration": task, "adapter": result.adapter, "threshold": options.threshold}
    changes = [ThresholdChange(**settings, system=system) for system in systems]
    thresholds = dict(zip(systems, all_computed(changes, specs, spaces, options), strict=True))
    recipe = {"spaces": tuple(specs), "digests": tuple(space.digest for space in spaces), "migration": task}
    chart = MigrationChart(**recipe)
    rate = Rate(options.row_seconds, options.price, options.row_tokens)
    report = result.report(rate, **{"migration-options": lambda: chart.draw(result)})
    notes = [f"{AFTER[system]}: {one.describe()}" for system, one in thresholds.items()]
    facts: dict[str, Any] = {
        "thresholds": {
            system: {name: value for name, value in vars(one).items() if isinstance(value, int | float)}
            for system, one in thresholds.items()
        },
        "sample": sampled,
    }
    tables = [*report.tables]
    if options.compress:
        cheaper = CheaperIndex(migration=task, adapter=result.adapter, weight=result.weight)
        indexes = result_of(cheaper, specs, spaces, options).report()
        tables += indexes.tables
        notes += [indexes.sentence, *indexes.notes]
    if options.export:
        from relcore.migrate.migration import export_result
        from relcore.studies.papers import commit_of

        notes += map(str, export_result(result, *spaces[:2], options.export, commit_of()))
    notes = [*report.notes, *notes, *sampled]
    return replace(report, tables=tables, facts={**report.facts, **facts}, notes=notes)
