"""invert: the numbers of the Invert page, and the recovered rows as a space."""

from __future__ import annotations

import argparse

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
from relcore.commands.options import alias, values_of
from relcore.commands.output import Lines, add_results, need_suffix, show, write_recipe, write_space
from relcore.commands.shards import add_shards, anchors_by_shard, by_shard, need_loadable, runner
from relcore.invert.recovery import Inversion, InversionSpec, invert_pair, side_names
from relcore.spaces.space import LatentSpace, Match

_HEAD = "Mean cosine of recovered and true rows"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description += (
        " The numbers are those of the Invert page: for each method, the mean cosine of recovered and true"
        " held-out rows."
    )
    add_pair(parser)
    generated.add(parser, InversionSpec)
    alias(parser, "--ridge", "inverse_ridge", float)
    add_anchors(parser, "the rows that both spaces have")
    add_random_state(parser)
    add_results(
        parser,
        ("Write the recovered rows (.npz, .safetensors or .parquet; of shards a new folder)."),
    )
    add_shards(parser)
    parser.epilog = (
        "example:\n  relscope invert word2vec-novels fasttext-novels --delta 0.7 --omega 8 -o recovered.npz"
    )


def run(options: argparse.Namespace) -> None:
    spec = InversionSpec(**values_of(options, InversionSpec))
    if by_shard(options, options.source, options.target):
        _by_shard(options, spec)
        return
    need_suffix(options.output)
    specs, pair = pair_of(options)
    anchors = anchors_of(options, pair.source)
    inversion = invert_pair(pair, anchors, spec)
    if options.output:
        write_space(recovered_space(pair, inversion), options.output)
    if options.recipe:
        from relcore.invert.figures import RecoveryErrors

        recipe = RecoveryErrors.of(comparison_recipe(specs, pair, anchors), inversion=inversion.spec)
        write_recipe(options, recipe.draw(inversion))
    source, target = side_names(pair, spec.route)
    route = f"{source}, recovered from its relative space" if source == target else f"{source} → {target}"
    lines = [f"{_HEAD}: {route}", "", _table(inversion), "", *_facts(inversion)]
    show(
        options,
        inversion.summary(),
        lines + ([str(options.output)] if options.output else []),
        source=source,
        target=target,
        rank=inversion.rank,
        condition=inversion.condition,
        kept=inversion.kept,
    )


def _by_shard(options: argparse.Namespace, spec: InversionSpec) -> None:
    import pandas as pd

    from relcore.sharded.project import invert_shards
    from relcore.sharded.space import ShardedSpace

    need_loadable(options)
    source, target = ShardedSpace.open(options.source), ShardedSpace.open(options.target)
    settings = {"goal": str(options.output or ""), "random_state": options.random_state}
    with runner(options, len(source.shards)) as run:
        result = invert_shards(source, target, anchors_by_shard(options, source.n), run, spec, **settings)
    score, null, method = result.score, result.score.null, result.spec.title
    row = {"method": method, "cosine": float(score), "chance": null.mean, "low": null.low, "high": null.high}
    table = pd.DataFrame([row | {"n": score.n, "anchors": len(result.anchors)}])
    cells = [["method", "cosine", "chance level, 95 %"], [method, short(score), band(null.low, null.high)]]
    scored = f"{result.spec.settings()}; scored on all {counted(score.n, 'held-out row')}; "
    lines = [f"{_HEAD}: {source.name} → {target.name}", "", cells, ""]
    lines += [f"{scored}chance level: these rows permuted", *([result.goal] if result.goal else [])]
    facts = {"source": source.name, "target": target.name, "passes": run.told(), "worker_mb": run.peaks}
    show(options, table, [*lines, "", *run.told()], **facts)


def _table(inversion: Inversion) -> list[list[str]]:
    """Mean cosine of each method, and the 95 % band of its chance level."""
    rows = [["method", "cosine", "chance level, 95 %"]]
    for method, score in inversion.scores.items():
        chance = band(score.null.low, score.null.high) if score.null else ""
        rows.append([method, short(float(score)), chance])
    return rows


def _facts(inversion: Inversion) -> Lines:
    """Facts of the inverse, as at the head of the page."""
    pruned = inversion.spec.method == "pruned"
    kept = f"{short(inversion.kept, 1)} of" if pruned else "all"
    left = inversion.n - inversion.n_anchors
    scored = counted(inversion.n_scored, "held-out row")
    scored += f" of {left:,}" if inversion.n_scored < left else ""
    condition = short(inversion.condition, 1) if inversion.condition < float("inf") else "∞"
    return [
        f"{inversion.spec.settings()}; anchors kept {kept} {inversion.n_anchors:,}; condition number"
        f" {condition}; directions reached {inversion.rank:,} of {inversion.shape[1]:,}",
        f"scored on {scored}, as directions from the mean; chance level: these rows permuted",
    ]


def recovered_space(pair: Match, inversion: Inversion) -> LatentSpace:
    """The translated rows, as a space in the coordinates of the target."""
    labels = None if pair.source.labels is None else pair.source.labels[inversion.rows]
    name = f"{side_names(pair, inversion.spec.route)[0]}, recovered"
    return LatentSpace(inversion.found, pair.ids[inversion.rows], name=name, labels=labels)
