"""stitch: the table and the matrices of Connect › Stitch."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from relcore.base import records
from relcore.base.errors import need_one_of
from relcore.base.names import METHODS, STITCH_METRICS
from relcore.base.portable import read_json
from relcore.base.report import Report
from relcore.base.settings import setting
from relcore.catalog.catalog import SpaceSpec, held_out_ids
from relcore.catalog.naming import SPACE_HELP
from relcore.commands.running import (
    SHARDS_HELP,
    Anchors,
    ByLinks,
    ByRow,
    CommandOptions,
    Results,
    Sample,
    number_or_ids,
    result_of,
    samples,
    values_of,
)
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import TEST_FRACTION
from relcore.stitch.stitching import (
    SharedRows,
    StitchSpec,
    share_rows,
)


@dataclass
class StitchOptions:
    spaces: tuple[str, ...] = setting(
        metavar="SPACE", nargs="+", help=f"two or more spaces with labels, each {SPACE_HELP}"
    )
    test_fraction: float | None = setting(
        None,
        above=0,
        below=1,
        metavar="SHARE",
        help="Share of test rows; default: the rows that the encoders' networks held out, or else 0.2.",
    )
    states: int = setting(1, low=1, help="Number of random states, each with its own split and anchors.")
    spec: Path = setting(
        None, metavar="FILE", help="Read all settings from a .json file, instead of the options."
    )
    metric: str = setting("accuracy", choices=STITCH_METRICS, help="Of the matrices.")


OPTIONS = CommandOptions(
    (Anchors, StitchOptions, StitchSpec, ByRow, ByLinks, Results, Sample),
    "The numbers are those of Connect, Stitch. Rows that the networks of stored encodings were trained"
    " on are not used as test rows. Anchors are chosen among the training rows of the first space: by"
    f" default twice the dimension of the widest space, at most half of the rows.{SHARDS_HELP}",
    ("mlp.npz cnn.npz --methods relative,irp-pruned --anchors 128 --states 5",),
)


def run(options: argparse.Namespace) -> Report:
    specs, spaces, sampled = samples(options, options.spaces)
    spec = spec_of(options, specs, spaces, share_rows(spaces, options.order))
    need_one_of("--metric", options.metric, ("accuracy", "f1", *(("mae",) if spec.order else ())))
    result = result_of(spec, specs, spaces, options)
    report = result.report(options.metric, specs, [space.digest for space in spaces])
    return replace(report, facts={**report.facts, "sample": sampled}, notes=[*report.notes, *sampled])


def spec_of(
    options: argparse.Namespace, specs: Sequence[SpaceSpec], spaces: Sequence[LatentSpace], shared: SharedRows
) -> StitchSpec:
    """The settings that the options give, with the page's defaults."""
    if options.spec:
        record = read_json(options.spec, "the settings of a stitching")
        return records.from_json(StitchSpec, record, str(options.spec))
    given = options.test_fraction is not None
    test_ids = () if given else held_out_ids(specs, spaces, shared.ids)
    values = values_of(options, StitchSpec)
    values["methods"] = tuple(name for name in METHODS if name in options.methods)  # in the page's order
    values["test_fraction"] = options.test_fraction if given else TEST_FRACTION
    spec = StitchSpec(**values, random_states=tuple(range(options.states)), test_ids=test_ids)
    n = len(shared.targets)
    n_train = n - len(test_ids) if test_ids else int((1 - spec.test_fraction) * n)
    anchors = number_or_ids(options.anchors, min(2 * max(space.dimension for space in spaces), n_train // 2))
    return replace(spec, n_anchors=anchors) if isinstance(anchors, int) else replace(spec, anchors=anchors)
