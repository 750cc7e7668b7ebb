"""The command `stitch`, which tests every encoder with the head of every other encoder."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from relcore.base import records
from relcore.base.errors import need_one_of
from relcore.base.names import METHODS, STITCH_METRICS
from relcore.base.records import read_json
from relcore.base.report import Report
from relcore.base.settings import setting
from relcore.catalog.catalog import SpaceSpec, held_out_ids
from relcore.catalog.naming import SPACE_HELP
from relcore.commands.anchors import number_or_ids
from relcore.commands.by_shard import samples
from relcore.commands.command import command, values_of
from relcore.commands.options import SHARDS_HELP, Anchors, ByLinks, ByRow, Results, Sample
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import TEST_FRACTION
from relcore.stitch.shared_rows import SharedRows, share_rows
from relcore.stitch.stitching import StitchSpec


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
    metric: str = setting("accuracy", choices=STITCH_METRICS, help="The score in the matrices.")


@command(
    (Anchors, StitchOptions, StitchSpec, ByRow, ByLinks, Results, Sample),
    "The numbers are those of Connect, Stitch. Rows that the networks of stored encodings were trained"
    " on are not used as test rows. Anchors are chosen among the training rows of the first space: by"
    f" default twice the dimension of the widest space, at most half of the rows.{SHARDS_HELP}",
    ("mlp.npz cnn.npz --methods relative,irp-pruned --anchors 128 --states 5",),
)
def run_stitch(options: argparse.Namespace) -> Report:
    inputs = samples(options, options.spaces)
    specs = inputs.specs
    spaces = inputs.spaces
    spec = _stitch_spec(options, specs, spaces, share_rows(spaces, options.order))
    metrics = ["accuracy", "f1"]
    if spec.order:
        metrics.append("mae")
    need_one_of("--metric", options.metric, metrics)
    digests = [space.digest for space in spaces]
    return inputs.noted(inputs.result(spec).report(options.metric, specs, digests))


def _stitch_spec(
    options: argparse.Namespace, specs: Sequence[SpaceSpec], spaces: Sequence[LatentSpace], shared: SharedRows
) -> StitchSpec:
    if options.spec:
        record = read_json(options.spec, "the settings of a stitching")
        return records.from_json(StitchSpec, record, str(options.spec))
    given = options.test_fraction is not None
    test_ids: tuple[str, ...] = ()
    if not given:
        test_ids = held_out_ids(specs, spaces, shared.ids)
    values = values_of(options, StitchSpec)
    values["methods"] = tuple(
        name for name in METHODS if name in options.methods
    )  # in the order in which the app lists them
    if given:
        values["test_fraction"] = options.test_fraction
    else:
        values["test_fraction"] = TEST_FRACTION
    spec = StitchSpec(**values, random_states=tuple(range(options.states)), test_ids=test_ids)
    n = len(shared.targets)
    if test_ids:
        n_train = n - len(test_ids)
    else:
        n_train = int((1 - spec.test_fraction) * n)
    anchors = number_or_ids(options.anchors, min(2 * max(space.dimension for space in spaces), n_train // 2))
    if isinstance(anchors, int):
        return replace(spec, n_anchors=anchors)
    return replace(spec, anchors=anchors)
