"""invert: the numbers of the Invert page, and the recovered rows as a space."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from relcore.base.names import DELTA, INVERSES
from relcore.base.numbers import counted, short
from relcore.commands.naming import finite, random_state, whole

if TYPE_CHECKING:
    from relcore.invert.recovery import Inversion, InversionSpec
    from relcore.spaces.space import Match


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from relcore.commands.naming import add_anchors, add_pair, add_random_state, add_shards
    from relcore.commands.output import add_format, add_recipe

    parser.description += (
        " The numbers are those of the Invert page: for each method, the mean cosine of recovered and true"
        " held-out rows."
    )
    add_pair(parser)
    parser.add_argument(
        "--route",
        default="forward",
        help="forward: source to target; backward: target to source; within: the source to itself",
    )
    parser.add_argument("--method", default="pruned", help=", ".join(INVERSES))
    parser.add_argument(
        "--delta",
        type=finite,
        default=DELTA,
        metavar="δ",
        help="pruned: anchors closer than δ, by 1 − |cos|, are removed; 0 … 1",
    )
    parser.add_argument(
        "--omega", type=whole, default=8, metavar="ω", help="pruned: number of prunings to average; 1 … 64"
    )
    parser.add_argument(
        "--ridge", type=finite, default=1.0, metavar="λ", help="ridge and whitened: the ridge, above 0"
    )
    parser.add_argument(
        "--auto", action="store_true", help="choose δ and ω, or λ, by held-out anchors instead"
    )
    add_anchors(parser, "the rows that both spaces have")
    add_random_state(parser)
    parser.add_argument(
        "--pruning-state",
        type=random_state,
        default=0,
        metavar="N",
        help="random state of the first anchor of each pruning",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help=(
            "write the recovered rows (.npz, .safetensors or .parquet; of shards a new folder, with every"
            " row)"
        ),
    )
    add_shards(parser)
    add_recipe(parser)
    add_format(parser)
    parser.epilog = (
        "example:\n  relscope invert word2vec-novels fasttext-novels --delta 0.7 --omega 8 -o recovered.npz"
    )


def run(options: argparse.Namespace) -> None:
    from relcore.commands.naming import anchors_of, by_shard, comparison_recipe, pair_of
    from relcore.commands.output import need_space_file, show, write_recipe, write_space
    from relcore.invert.figures import RecoveryErrors
    from relcore.invert.recovery import InversionSpec, invert_pair, side_names

    settings = (
        options.route,
        options.method,
        options.omega,
        options.delta,
        options.ridge,
        options.pruning_state,
    )
    spec = InversionSpec(*settings, tuned=options.auto)
    if by_shard(options, options.source, options.target):
        _by_shard(options, spec)
        return
    goal = Path(options.output) if options.output else None
    need_space_file(goal)
    specs, pair = pair_of(options)
    anchors = anchors_of(options, pair.source)
    found = invert_pair(pair, anchors, spec)
    spec = found.spec
    if goal:
        write_space(recovered_space(pair, found), goal)
    if options.recipe:
        write_recipe(
            options, RecoveryErrors.of(comparison_recipe(specs, pair, anchors), inversion=spec).draw(found)
        )
    source, target = side_names(pair, spec.route)
    route = f"{source}, recovered from its relative space" if source == target else f"{source} → {target}"
    facts = {
        "source": source,
        "target": target,
        "rank": found.rank,
        "condition": found.condition,
        "kept": found.kept,
    }
    lines = [f"Mean cosine of recovered and true rows: {route}", "", methods(found), "", *told(found)]
    show(options, found.summary(), lines + ([str(goal)] if goal else []), **facts)


def _by_shard(options: argparse.Namespace, spec: InversionSpec) -> None:
    import pandas as pd

    from relcore.commands import naming as by_shard
    from relcore.commands.naming import anchors_by_shard
    from relcore.commands.output import show
    from relcore.sharded.invert import invert_shards

    by_shard.need_loadable(options, ["by shard"])
    source, target = by_shard.opened(options.source), by_shard.opened(options.target)
    settings = {"goal": options.output or "", "random_state": options.random_state}
    with by_shard.runner(options, len(source.shards)) as run:
        found = invert_shards(source, target, anchors_by_shard(options, source.n), run, spec, **settings)
    score, null = found.score, found.score.null
    row = {
        "method": found.spec.title,
        "cosine": float(score),
        "chance": null.mean,
        "low": null.low,
        "high": null.high,
    }
    table = pd.DataFrame([row | {"n": score.n, "anchors": len(found.anchors)}])
    cells = [
        ["method", "cosine", "chance level, 95 %"],
        [row["method"], short(score), f"{short(null.low)} … {short(null.high)}"],
    ]
    told = (
        f"{found.spec.settings()}; scored on all {counted(score.n, 'held-out row')}; chance level: these rows"
        " permuted"
    )
    head = f"Mean cosine of recovered and true rows: {source.name} → {target.name}"
    lines = [head, "", cells, "", told, *([found.goal] if found.goal else []), *by_shard.told(run)]
    show(
        options, table, lines, source=source.name, target=target.name, passes=run.told(), worker_mb=run.peaks
    )


def methods(found: Inversion) -> list[list[str]]:
    """Mean cosine of each method, and the 95 % band of its chance level."""
    from relcore.base.numbers import short

    rows = [["method", "cosine", "chance level, 95 %"]]
    for method, score in found.scores.items():
        band = f"{short(score.null.low)} … {short(score.null.high)}" if score.null else ""
        rows.append([method, short(float(score)), band])
    return rows


def told(found: Inversion) -> list[str]:
    """Facts of the inverse, as at the head of the page."""
    pruned = found.spec.method == "pruned"
    kept = f"{short(found.kept, 1)} of {found.n_anchors:,}" if pruned else f"all {found.n_anchors:,}"
    left = found.n - found.n_anchors
    scored = counted(found.n_scored, "held-out row") + (f" of {left:,}" if found.n_scored < left else "")
    condition = short(found.condition, 1) if found.condition < float("inf") else "∞"
    return [
        (
            f"{found.spec.settings()}; anchors kept {kept}; condition number {condition}; "
            f"directions reached {found.rank:,} of {found.shape[1]:,}"
        ),
        f"scored on {scored}, as directions from the mean; chance level: these rows permuted",
    ]


def recovered_space(pair: Match, found: Inversion):
    """The translated rows, as a space in the coordinates of the target."""
    from relcore.invert.recovery import side_names
    from relcore.spaces.space import LatentSpace

    labels = None if pair.source.labels is None else pair.source.labels[found.rows]
    name = f"{side_names(pair, found.spec.route)[0]}, recovered"
    return LatentSpace(found.found, pair.ids[found.rows], name=name, labels=labels)
