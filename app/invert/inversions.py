"""The inversions that Invert shows, cached."""

from __future__ import annotations

from app import compute
from relcore.invert.anchor_curve import AnchorCurve, curve_by_anchors
from relcore.invert.inversion import Inversion, InversionSpec, PairedRows
from relcore.spaces.matching import Match

# Few results are cached, because the original and recovered rows are large: 48 MB for 20,000 rows of 300
# dimensions.
paired_rows = compute.cached(3)(PairedRows)


@compute.cached(6)
def inversion_of(pair: Match, anchors: tuple[str, ...], spec: InversionSpec) -> Inversion:
    return paired_rows(pair, anchors, spec.route).invert(spec)


@compute.cached(24)
def curve_of(pair: Match, anchors: tuple[str, ...], spec: InversionSpec) -> AnchorCurve:
    return curve_by_anchors(paired_rows(pair, anchors, spec.route), spec)
