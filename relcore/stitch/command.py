"""The command `stitch`, which tests every encoder with the head of every other encoder."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from relcore.base import records
from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.base.names import HEADS, METHODS, STITCH_METRICS, STITCHED
from relcore.base.records import read_json
from relcore.base.report import Report
from relcore.base.settings import setting
from relcore.catalog.catalog import SpaceSpec, held_out_ids
from relcore.catalog.naming import SPACE_HELP
from relcore.commands.anchors import number_or_ids
from relcore.commands.by_shard import samples
from relcore.commands.command import command, values_of
from relcore.commands.inputs import Inputs
from relcore.commands.options import SHARDS_HELP, Anchors, ByLinks, ByRow, Results, Sample
from relcore.commands.progress import Bar
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import TEST_FRACTION
from relcore.stitch.own_heads import translations
from relcore.stitch.shared_rows import SharedRows, share_rows
from relcore.stitch.stitching import StitchResult, StitchSpec, stitch_matrix


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
    head: tuple[str, ...] = setting(
        (),
        metavar="NAME|FILE.onnx",
        nargs="append",
        help=f"The classifier that is trained on each space, one of {', '.join(HEADS)}, by default the first;"
        " or one of your own, an ONNX graph from rows to a score for each class, in a file named after its"
        " space, such as mlp.onnx. May be given for each space.",
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
    kind, files = _heads(options.head)
    spec = _stitch_spec(options, specs, spaces, share_rows(spaces, options.order), kind, bool(files))
    metrics = ["accuracy", "f1"]
    if spec.order:
        metrics.append("mae")
    need_one_of("--metric", options.metric, metrics)
    digests = [space.digest for space in spaces]
    if files:
        result = _with_files(inputs, spec, files)
    else:
        result = inputs.result(spec)
    return inputs.noted(result.report(options.metric, specs, digests))


def _heads(names: Sequence[str]) -> tuple[str, list[str]]:
    """The kind of the classifiers that are trained, and the ONNX files of others."""
    kinds = [one for one in names if one in HEADS]
    files = [one for one in names if one.lower().endswith(".onnx")]
    unknown = [one for one in names if one not in kinds and one not in files]
    if unknown or len(kinds) > 1:
        raise SpaceError(
            f"--head: expected at most one of {quote(HEADS)}, and files that end in .onnx, got {quote(names)}"
        )
    kind = kinds[0] if kinds else next(iter(HEADS))
    return kind, files


def _with_files(inputs: Inputs, spec: StitchSpec, files: Sequence[str]) -> StitchResult:
    """The stitching with the classifiers in these files. It is not stored, because the store knows no files
    of users."""
    names = []
    for described, space in zip(inputs.specs, inputs.spaces, strict=True):
        names.append({space.name, described.name, Path(described.name).stem})
    heads: list[str | None] = [None] * len(names)
    for file in files:
        places = [place for place, known in enumerate(names) if Path(file).stem in known]
        if len(places) != 1 or heads[places[0]] is not None:
            likely = [Path(described.name).stem for described in inputs.specs]
            raise SpaceError(
                "--head: expected one file for a space, with its name, among"
                f" {quote([f'{one}.onnx' for one in likely])}, got {Path(file).name!r:.200}; rename the file"
            )
        heads[places[0]] = file
    with Bar(inputs.options) as bar:
        return stitch_matrix(inputs.spaces, spec, bar.show, heads)


def _stitch_spec(
    options: argparse.Namespace,
    specs: Sequence[SpaceSpec],
    spaces: Sequence[LatentSpace],
    shared: SharedRows,
    head: str,
    own_heads: bool,
) -> StitchSpec:
    if options.spec:
        record = read_json(options.spec, "the settings of a stitching")
        return records.from_json(StitchSpec, record, str(options.spec))
    has_fraction = options.test_fraction is not None
    test_ids: tuple[str, ...] = ()
    if not has_fraction:
        test_ids = held_out_ids(specs, spaces, shared.ids)
    values = values_of(options, StitchSpec)
    values["head"] = head
    chosen = options.methods
    if own_heads and tuple(chosen) == STITCHED:  # by default those that such a head can read
        chosen = [name for name in STITCHED if name in translations()]
    values["methods"] = tuple(name for name in METHODS if name in chosen)  # in the order of the app
    if has_fraction:
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
