"""The command `invert`, which translates one space into another through anchors."""

from __future__ import annotations

import argparse
from functools import partial

from relcore.base.report import Report
from relcore.commands.anchors import anchors_of
from relcore.commands.by_shard import samples
from relcore.commands.command import command, values_of
from relcore.commands.inputs import pair_settings
from relcore.commands.options import SHARDS_HELP, ByLinks, ByRow, DrawnAnchors, Pair, Results, Sample
from relcore.files.saving import SPACE_KINDS, save_space
from relcore.invert.inversion import InversionSpec, invert_pair, side_names
from relcore.invert.recovery import RecoveryErrors
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace


@command(
    (Pair, ByRow, ByLinks, InversionSpec, DrawnAnchors, Results, Sample),
    "The numbers are those of Connect, Invert: for each method, the mean cosine of recovered and true"
    f" held-out rows.{SHARDS_HELP}",
    ("word2vec-novels fasttext-novels --delta 0.7 --omega 8 -o recovered.npz",),
    suffixes={"output": SPACE_KINDS},
    output="Write the recovered rows (.npz, .safetensors or .parquet).",
)
def run_invert(options: argparse.Namespace) -> Report:
    spec = InversionSpec(**values_of(options, InversionSpec))
    inputs = samples(options, (options.source, options.target))
    pair = match(*inputs.spaces)
    anchors = anchors_of(options, pair.source)
    inversion = invert_pair(pair, anchors, spec)
    source, target = side_names(pair, spec.route)
    if options.output:  # the recovered rows are in the target's coordinates
        if pair.source.labels is None:
            labels = None
        else:
            labels = pair.source.labels[inversion.rows]
        ids = pair.ids[inversion.rows]
        name = f"{source}, recovered"
        save_space(LatentSpace(inversion.recovered, ids, name=name, labels=labels), options.output)
    recipe = RecoveryErrors(**pair_settings(inputs.specs, pair, anchors), inversion=inversion.spec)
    charts = {"inversion-errors": partial(recipe.draw, inversion)}
    return inputs.noted(inversion.report((source, target), **charts))
