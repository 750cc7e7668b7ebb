"""stitch: the table and the matrices of the Stitch page."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from relcore.base.names import DELTA, HEADS, METHODS, STITCH_METRICS, STITCHED
from relcore.base.numbers import counted
from relcore.commands.naming import finite, whole

if TYPE_CHECKING:
    from relcore.catalog.catalog import SpaceSpec
    from relcore.spaces.space import LatentSpace
    from relcore.stitch.stitching import SharedRows, StitchResult, StitchSpec


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from relcore.commands.naming import SPACE_HELP, add_anchors, add_sample
    from relcore.commands.output import add_format, add_recipe

    parser.description += (
        " The numbers are those of the Stitch page. Rows that the networks of stored encodings were trained"
        " on are not used as test rows."
    )
    parser.add_argument(
        "spaces", metavar="SPACE", nargs="+", help=f"two or more spaces with labels, each {SPACE_HELP}"
    )
    parser.add_argument(
        "--methods", default=",".join(STITCHED), help=f"methods, separated by commas: {', '.join(METHODS)}"
    )
    parser.add_argument("--head", default="logistic", help=", ".join(HEADS))
    add_anchors(
        parser,
        "the training rows of the first space",
        "twice the dimension of the widest space, at most half of the training rows",
    )
    parser.add_argument(
        "--states",
        type=whole,
        default=1,
        metavar="N",
        help="number of random states, each with its own split and anchors",
    )
    parser.add_argument(
        "--test-fraction",
        type=finite,
        metavar="SHARE",
        help=(
            "share of test rows, above 0; default: the rows that the encoders' networks held out, or else 0.2"
        ),
    )
    parser.add_argument(
        "--order",
        metavar="LABELS",
        help="labels from low to high, separated by commas; errors are then counted in steps, too",
    )
    parser.add_argument(
        "--no-center", dest="center", action="store_false", help="do not subtract the mean row first"
    )
    parser.add_argument("--ridge", type=finite, default=0.3, metavar="λ", help="ridge of the whitening")
    parser.add_argument(
        "--delta", type=finite, default=DELTA, metavar="δ", help="pruning distance of the inverse"
    )
    parser.add_argument(
        "--omega", type=whole, default=8, metavar="ω", help="number of prunings of the inverse"
    )
    parser.add_argument(
        "--inverse-ridge", type=finite, default=1.0, metavar="λ", help="ridge of the ridge inverse"
    )
    parser.add_argument(
        "--spec",
        type=Path,
        metavar="FILE",
        help="read all settings from a .json file, instead of the options",
    )
    parser.add_argument("--metric", default="accuracy", help=", ".join(STITCH_METRICS))
    add_recipe(parser)
    add_sample(parser)
    add_format(parser)
    parser.epilog = (
        "example:\n  relscope stitch mlp.npz cnn.npz --methods relative,irp-pruned --anchors 128 --states 5"
    )


def run(options: argparse.Namespace) -> None:
    from relcore.base.errors import need_one_of
    from relcore.commands.naming import need_loadable, samples
    from relcore.commands.output import show, write_recipe
    from relcore.commands.running import computed
    from relcore.stitch.figures import StitchMatrix, cell_table, summary_table
    from relcore.stitch.stitching import share_rows

    specs, spaces, sampled = samples(options, options.spaces)
    need_loadable(options, sampled)
    shared = share_rows(spaces, tuple(options.order.split(",")) if options.order else ())
    spec = spec_of(options, specs, spaces, shared)
    need_one_of("--metric", options.metric, ("accuracy", "f1", *(("mae",) if spec.order else ())))
    result = computed(spec, specs, spaces, options)
    if options.recipe:
        digests = tuple(space.digest for space in spaces)
        recipe = StitchMatrix(spaces=tuple(specs), digests=digests, stitching=spec, metric=options.metric)
        write_recipe(options, recipe.draw(result))
    summary = summary_table(result, options.metric).to_dict("records")
    show(
        options,
        cell_table(result),
        [*lines_of(result, options.metric), *sampled],
        encoders=result.encoders,
        summary=summary,
        sample=sampled,
    )


def spec_of(
    options: argparse.Namespace, specs: Sequence[SpaceSpec], spaces: Sequence[LatentSpace], shared: SharedRows
) -> StitchSpec:
    """The options as settings, with the page's defaults: test rows that the networks held out, anchors by
    the widest space.
    """
    from relcore.base import records as record
    from relcore.base.errors import SpaceError
    from relcore.catalog.catalog import held_out_ids
    from relcore.commands.naming import number_or_ids, read_json
    from relcore.spaces.split import TEST_FRACTION
    from relcore.stitch.methods import MethodSettings
    from relcore.stitch.stitching import StitchSpec

    if options.spec:
        return record.from_json(
            StitchSpec, read_json(options.spec, "the settings of a stitching"), str(options.spec)
        )
    if options.states < 1:
        raise SpaceError(f"--states: expected 1 or more, got {options.states}")
    given = options.test_fraction is not None
    if given and not 0 < options.test_fraction < 1:
        raise SpaceError(
            f"--test-fraction: expected a share above 0 and below 1, got {options.test_fraction:g}; try 0.2"
        )
    test_ids = () if given else held_out_ids(specs, spaces, shared.ids)
    methods = methods_of(options)
    settings = MethodSettings(
        options.center, options.ridge, options.omega, options.delta, options.inverse_ridge
    )
    spec = StitchSpec(
        methods,
        options.head,
        tuple(range(options.states)),
        strategy=options.strategy,
        test_fraction=options.test_fraction if given else TEST_FRACTION,
        test_ids=test_ids,
        order=tuple(options.order.split(",")) if options.order else (),
        settings=settings,
    )
    n_train = (
        len(shared.targets) - len(test_ids)
        if test_ids
        else int((1 - spec.test_fraction) * len(shared.targets))
    )
    usual = min(2 * max(space.dimension for space in spaces), n_train // 2)
    anchors = usual if options.anchors is None else number_or_ids(options.anchors)
    return replace(spec, n_anchors=anchors) if isinstance(anchors, int) else replace(spec, anchors=anchors)


def methods_of(options: argparse.Namespace) -> tuple[str, ...]:
    """The methods of --methods, in the order of the page; unknown ones last."""
    wanted = [one.strip() for one in options.methods.split(",") if one.strip()]
    return tuple(one for one in METHODS if one in wanted) + tuple(one for one in wanted if one not in METHODS)


def lines_of(result: StitchResult, metric: str) -> list[str | list[list[str]]]:
    """The summary, and a matrix for each method: a row for each encoder, a column for each head."""
    from relcore.base.numbers import short
    from relcore.stitch.figures import printed_summary, short_names

    summary = printed_summary(result)
    names, common = short_names(result.encoders)
    lines = [[list(summary.columns), *summary.astype(str).to_numpy().tolist()]]
    for method in result.spec.methods:
        cells = [[name, *row] for name, row in zip(names, cells_of(result, method, metric), strict=True)]
        lines += ["", f"{METHODS[method].title}, {metric}", [["encoder \\ head", *names], *cells]]
    n_states = len(result.runs)
    states = (
        f"mean ± deviation over {n_states} random states"
        if n_states > 1
        else f"random state {result.runs[0].random_state}"
    )
    anchors = len(result.spec.anchors) or result.spec.n_anchors
    permuted = ", ".join(
        f"{METHODS[one].title} {short(result.permuted(one, metric))}" for one in result.spec.methods
    )
    told = (
        f"{result.tested}, no anchors; {counted(anchors, 'anchor')}; {states}; the diagonal is not stitched"
    )
    notes = [f"the same answers, if labels were permuted: {permuted}", *filter(None, [result.untested])]
    return [*lines, "", told + (f"; all of them: {common}" if common else ""), *notes]


def cells_of(result: StitchResult, method: str, metric: str) -> list[list[str]]:
    """The cells as the page's heat map shows them; – where there is no score."""
    from relcore.base.numbers import short

    mean, deviation = result.matrix(method, metric)
    several = len(result.runs) > 1
    return [
        [
            "–" if value != value else short(value) + (f" ± {short(spread)}" if several else "")
            for value, spread in zip(row, spreads, strict=True)
        ]
        for row, spreads in zip(mean, deviation, strict=True)
    ]
