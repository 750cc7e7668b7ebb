"""What the Stitch page computes: every pair, at once or by a job, and the fitted heads that answer what is typed."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from app import compute, results
from relcore.sources.catalog import SpaceSpec
from relcore.spaces import LatentSpace, distinct_names
from relcore.stitching.classification import SharedRows, Stitching, share_rows
from relcore.stitching.result import StitchResult
from relcore.stitching.spec import StitchSpec
from relcore.store import digest_of

UNASKED_SECONDS = 20.0  # what takes longer waits for a click


@dataclass(frozen=True)
class StitchSetup:
    """Which encoders are stitched, in this order, and how."""

    specs: tuple[SpaceSpec, ...]
    spec: StitchSpec


def spaces_of(setup: StitchSetup) -> list[LatentSpace]:
    return [compute.load_space(spec) for spec in setup.specs]


def digests_of(setup: StitchSetup) -> tuple[str, ...]:
    return compute.digests(setup.specs)


def shared(specs: tuple[SpaceSpec, ...], order: tuple[str, ...] = ()) -> SharedRows:
    """The labelled rows that all encoders have. Errors as in `share_rows`."""
    spaces = [compute.load_space(spec) for spec in specs]
    stamps = [compute.stamp(spec) for spec in specs]
    return _shared(digest_of([space.digest for space in spaces], stamps, distinct_names(spaces), order), spaces, order)


@st.cache_resource(max_entries=4, show_spinner=False)
def _shared(key: str, _spaces: list[LatentSpace], _order: tuple[str, ...]) -> SharedRows:
    return share_rows(_spaces, _order)


def stitched(setup: StitchSetup) -> StitchResult | None:
    """Every pair by every method, from the store, at once or by a job; None while a job computes it."""
    n_pairs = len(setup.specs) * (len(setup.specs) - 1)
    look = {"label": f"Stitch {n_pairs} pairs", "icon": ":material/conversion_path:"}
    return results.computed(setup.spec, setup.specs, slower=1.5, unasked_seconds=UNASKED_SECONDS, **look)


def fitted(setup: StitchSetup, random_state: int) -> Stitching:
    """Heads and maps of one random state, fitted once; they answer rows of any items by `Stitching.probabilities`."""
    rows = shared(setup.specs, setup.spec.order)
    return _fitted(setup.spec.key(spaces_of(setup)), random_state, rows, setup.spec)


@st.cache_resource(max_entries=6, show_spinner="Fitting every head …")
def _fitted(key: str, random_state: int, _rows: SharedRows, _spec: StitchSpec) -> Stitching:
    return Stitching(_rows, _spec, random_state)
