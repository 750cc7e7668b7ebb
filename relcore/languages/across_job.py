"""A head across languages as a job: sentences through both encoders, then the head asked."""

from __future__ import annotations

from collections.abc import Sequence

from relcore.languages.across import head_across
from relcore.progress import Context
from relcore.sources.catalog import SpaceSpec, load
from relcore.stitching.one_item import encode_items
from relcore.stitching.spec import StitchSpec


def across_job(context: Context, *, specs: Sequence[SpaceSpec], pairs: Sequence[tuple[str, str]], spec: StitchSpec) -> None:
    """Encode the pairs of sentences, each column by its space's encoder, and `head_across`; the result is "across"."""
    anchors = []
    for number, (one, sentences) in enumerate(zip(specs, zip(*pairs, strict=True), strict=True)):
        context.report(number, 3, f"{len(sentences):,} sentences through the encoder of {one.name}")
        anchors.append(encode_items(one, sentences, context.store))
    context.report(2, 3, "heads")
    spaces = [load(one, context.store) for one in specs]
    context.put({}, {"across": head_across(*spaces, *anchors, spec).to_json()})
