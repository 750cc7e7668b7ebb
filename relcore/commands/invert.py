"""invert: the numbers of Connect › Invert, and the recovered rows as a space."""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial

from relcore.base.names import FIGURES
from relcore.base.report import Report
from relcore.commands.running import (
    SHARDS_HELP,
    ByLinks,
    ByRow,
    CommandOptions,
    DrawnAnchors,
    Pair,
    Results,
    Sample,
    anchors_of,
    pair_settings,
    samples,
    values_of,
)
from relcore.files.saving import need_suffix, write_space
from relcore.invert.inversion import InversionSpec, invert_pair, side_names
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace

OPTIONS = CommandOptions(
    (Pair, ByRow, ByLinks, InversionSpec, DrawnAnchors, Results, Sample),
    "The numbers are those of Connect, Invert: for each method, the mean cosine of recovered and true"
    f" held-out rows.{SHARDS_HELP}",
    ("word2vec-novels fasttext-novels --delta 0.7 --omega 8 -o recovered.npz",),
    output="Write the recovered rows (.npz, .safetensors or .parquet).",
)


def run(options: argparse.Namespace) -> Report:
    spec = InversionSpec(**values_of(options, InversionSpec))
    need_suffix(options.output)
    specs, spaces, sampled = samples(options, (options.source, options.target))
    pair = match(*spaces)
    anchors = anchors_of(options, pair.source)
    inversion = invert_pair(pair, anchors, spec)
    source, target = side_names(pair, spec.route)
    if options.output:  # in the target's coordinates
        labels = None if pair.source.labels is None else pair.source.labels[inversion.rows]
        ids, name = pair.ids[inversion.rows], f"{source}, recovered"
        write_space(LatentSpace(inversion.recovered, ids, name=name, labels=labels), options.output)
    shared = pair_settings(specs, pair, anchors) | {"inversion": inversion.spec}
    figure = partial(FIGURES["inversion-errors"].load(), **shared)
    report = inversion.report((source, target), **{"inversion-errors": lambda: figure().draw(inversion)})
    return replace(report, facts={**report.facts, "sample": sampled}, notes=[*report.notes, *sampled])
