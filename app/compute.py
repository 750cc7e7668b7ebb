"""The only caches around relcore. Keyed on small frozen specs and content digests; arrays travel as `_unhashed` arguments.

Streamlit hashes large arrays from a sample, so that one changed row would return the old result: no array is ever a key.
All results are read-only and shared between sessions; what a key does not name cannot leak through them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, wraps

import numpy as np
import pandas as pd
import streamlit as st

from relcore import access, comparison
from relcore.anchors import diagnostics, selection
from relcore.comparing import scene as recipe
from relcore.comparing.row_columns import AGREEMENT_ROWS
from relcore.comparison import LIVE_QUERIES, ProjectionSpec
from relcore.evaluation import Split
from relcore.metrics.calibration import Score
from relcore.metrics.paired import Difference
from relcore.reduction import ReductionSpec
from relcore.sources import catalog
from relcore.sources.catalog import SpaceSpec
from relcore.sources.series import parts_of
from relcore.spaces import LatentSpace, Match, SpaceError, match
from relcore.store import digest_of
from relcore.views import View, sample_view

LEAST_HELD_OUT = 5
TOO_MANY_ANCHORS = "Nearly every row is an anchor, so too few held-out rows remain to compute scores. Remove some anchors."
_SECONDS = "relscope.seconds"


def _timed(function: Callable) -> Callable:
    """Remember how long the last real computation took, for the status line."""

    @wraps(function)
    def timed(*args, **settings):
        started = time.perf_counter()
        result = function(*args, **settings)
        st.session_state[_SECONDS] = time.perf_counter() - started
        return result

    return timed


def seconds_of_last_computation() -> float:
    """Seconds that this session's last real computation took; what came out of a cache does not count."""
    return st.session_state.get(_SECONDS, 0.0)


def load_space(spec: SpaceSpec) -> LatentSpace:
    """The space of a spec, read once; a file is read again when it has changed."""
    catalog.need_access(spec)  # before the cache, which all sessions share
    return _load_space(spec, stamp(spec))


def digests(specs: Sequence[SpaceSpec]) -> tuple[str, ...]:
    """The digests of these spaces."""
    return tuple(load_space(spec).digest for spec in specs)


def digest_or_blank(spec: SpaceSpec) -> str:
    """The content digest of a space, "" where it can no longer be read."""
    try:
        return load_space(spec).digest
    except SpaceError:
        return ""


def stamp(spec: SpaceSpec) -> tuple[tuple[int, int], ...]:
    """When the files of a space were last changed, and their sizes; () for one that comes from no file."""
    paths = [access.allowed(path) for path in catalog.files_of(spec)]
    files = [file for path in paths for file in (parts_of(path) if path.is_dir() else [path])]
    return tuple((about.st_mtime_ns, about.st_size) for path in files if path.is_file() and (about := path.stat()))


@st.cache_resource(max_entries=24, show_spinner="Reading the space …")
@_timed
def _load_space(spec: SpaceSpec, stamp: tuple[tuple[int, int], ...]) -> LatentSpace:
    return catalog.load(spec)


@st.cache_data(max_entries=32, show_spinner=False)
def _equal_rows(digest: str, _space: LatentSpace) -> int:
    _, counts = np.unique(_space.vectors.view(f"V{_space.vectors.itemsize * _space.dimension}"), return_counts=True)
    return int(counts[counts > 1].sum())


def equal_rows(space: LatentSpace) -> int:
    """The number of rows whose vector is equal to another row's."""
    return _equal_rows(space.digest, space)


def matched(source: SpaceSpec, target: SpaceSpec) -> Match:
    """Two spaces paired by id."""
    spaces = load_space(source), load_space(target)
    return _match(spaces[0].digest, spaces[1].digest, spaces[0].name, spaces[1].name, spaces)


@st.cache_resource(max_entries=8, show_spinner=False)
def _match(source_digest: str, target_digest: str, source: str, target: str, _spaces: tuple[LatentSpace, LatentSpace]) -> Match:
    return match(*_spaces)


def pair_key(pair: Match) -> str:
    """The key of a matched pair in a cache."""
    return f"{pair.source.digest}/{pair.target.digest}"


# Streamlit hashes a tuple string by string, in each call: a tenth of a second for 300 anchors and ten calls in a run.
@lru_cache(maxsize=256)
def anchors_key(anchors: tuple[str, ...]) -> str:
    return digest_of(anchors)


def represent(pair: Match, pane: str, anchors: tuple[str, ...], spec: ProjectionSpec) -> tuple[np.ndarray, np.ndarray]:
    """Both spaces absolute, relative, whitened, or rotated into each other."""
    if pane == "absolute":
        return pair.source.vectors, pair.target.vectors
    return _represent(pair_key(pair), pane, anchors_key(anchors), spec, pair, anchors)


# Relative matrices are the largest thing kept: 20,000 rows × 300 anchors × 2 spaces are 48 MB.
@st.cache_resource(max_entries=6, show_spinner=False)
@_timed
def _represent(
    key: str, pane: str, anchors_key: str, spec: ProjectionSpec, _pair: Match, _anchors: tuple[str, ...]
) -> tuple[np.ndarray, ...]:
    return comparison.represent(_pair, pane, _anchors, spec)


def pane_matrices(
    pair: Match, drawn: View, pane: str, anchors: tuple[str, ...], spec: ProjectionSpec
) -> tuple[np.ndarray, np.ndarray]:
    """The drawn rows of both spaces in one representation."""
    matrices = represent(pair, pane, anchors, spec)
    return matrices if len(drawn.rows) == len(pair) else tuple(matrix[drawn.rows] for matrix in matrices)


def pca_coordinates(
    pair: Match, drawn: View, pane: str, anchors: tuple[str, ...], spec: ProjectionSpec, reduction: ReductionSpec
) -> tuple[list[np.ndarray], str]:
    """PCA coordinates of the drawn rows of both spaces, and a note on how they came about; fast enough to do at once."""
    needed = needed_anchors(pane, anchors)
    reduction = replace(reduction, method="pca")
    return _pca_coordinates(pair_key(pair), drawn.digest, pane, anchors_key(needed), spec, reduction, pair, drawn, needed)


@st.cache_resource(max_entries=48, show_spinner=False)
@_timed
def _pca_coordinates(
    key: str,
    rows: str,
    pane: str,
    anchors_key: str,
    spec: ProjectionSpec,
    reduction: ReductionSpec,
    _pair: Match,
    _view: View,
    _anchors: tuple[str, ...],
) -> tuple[list[np.ndarray], str]:
    return recipe.reduce_pair(pane_matrices(_pair, _view, pane, _anchors, spec), reduction)


def split_of(pair: Match, pane: str, anchors: tuple[str, ...]) -> Split:
    """The rows that scores of a representation use: those that are not anchors, or every row where anchors are not used."""
    needed = needed_anchors(pane, anchors)
    return _split(pair_key(pair), anchors_key(needed), pair, needed)


def needed_anchors(pane: str, anchors: tuple[str, ...]) -> tuple[str, ...]:
    """The anchors that a representation depends on."""
    return () if pane == "absolute" else anchors


@st.cache_resource(max_entries=16, show_spinner=False)
def _split(key: str, anchors_key: str, _pair: Match, _anchors: tuple[str, ...]) -> Split:
    return comparison.held_out(_pair, _anchors)


def live_scores(
    pair: Match, pane: str, anchors: tuple[str, ...], spec: ProjectionSpec, k: int, convention: str
) -> dict[str, Score]:
    """All scores of one representation at once: neighbours of a random sample of the held-out rows, the rest from all."""
    needed, k = needed_anchors(pane, anchors), scored_neighbours(pair, anchors, k, convention)
    settings = scored_projection(pane, spec), k, convention, tuple(comparison.metrics_of_a_pair())
    return _scores(pair_key(pair), pane, anchors_key(needed), *settings, pair, needed)


def can_be_scored(pair: Match, *anchors: tuple[str, ...]) -> bool:
    """Whether enough rows are held out from these anchor sets for scores to say anything."""
    return len(pair) - len(set().union(*anchors)) >= LEAST_HELD_OUT


def scored_neighbours(pair: Match, anchors: tuple[str, ...], k: int, convention: str) -> int:
    """k, or as many neighbours as the rows have that are no anchors: one k for all representations."""
    return max(1, min(k, len(pair) - len(anchors) - (convention == "mutual")))


def scored_projection(pane: str, spec: ProjectionSpec) -> ProjectionSpec:
    """The settings that the scores of a representation depend on."""
    return spec if pane in ("relative", "whitened") else ProjectionSpec()


@st.cache_resource(max_entries=96, show_spinner=False)
@_timed
def _scores(
    key: str,
    pane: str,
    anchors_key: str,
    spec: ProjectionSpec,
    k: int,
    convention: str,
    metrics: tuple[str, ...],
    _pair: Match,
    _anchors: tuple[str, ...],
) -> dict[str, Score]:
    spaces, split = represent(_pair, pane, _anchors, spec), split_of(_pair, pane, _anchors)
    settings = {"k": k, "convention": convention, "n_queries": LIVE_QUERIES, "metrics": metrics}
    return comparison.score_pair(*spaces, split, labels=comparison.class_labels(_pair), **settings)


def score_differences(
    pair: Match,
    pane: str,
    before: tuple[str, ...],
    now: tuple[str, ...],
    spec: ProjectionSpec,
    k: int,
    convention: str,
) -> dict[str, Difference]:
    """How far a change of anchors moved each score, on the same held-out rows and queries."""
    keys = anchors_key(before), anchors_key(now)
    return _score_differences(pair_key(pair), pane, keys, spec, k, convention, pair, before, now)


@st.cache_resource(max_entries=32, show_spinner=False)
@_timed
def _score_differences(
    key: str,
    pane: str,
    anchors_keys: tuple[str, str],
    spec: ProjectionSpec,
    k: int,
    convention: str,
    _pair: Match,
    _before: tuple[str, ...],
    _now: tuple[str, ...],
) -> dict[str, Difference]:
    both = tuple(dict.fromkeys((*_now, *_before)))
    split, k = split_of(_pair, pane, both), scored_neighbours(_pair, both, k, convention)
    pairs = [represent(_pair, pane, anchors, spec) for anchors in (_before, _now)]
    settings = {"k": k, "convention": convention, "n_queries": LIVE_QUERIES}
    return comparison.score_differences(*pairs, split, labels=comparison.class_labels(_pair), **settings)


def agreement(pair: Match, drawn: View) -> pd.DataFrame:
    """The drawn rows, a sample where they are many, by how much of their neighbourhood the other space keeps, least first."""
    drawn = sample_view(drawn, AGREEMENT_ROWS)
    return _agreement(pair_key(pair), drawn.digest, pair, drawn)


@st.cache_data(max_entries=16, show_spinner="Comparing neighbourhoods …")
@_timed
def _agreement(key: str, rows: str, _pair: Match, _view: View) -> pd.DataFrame:
    return comparison.neighbour_agreement(_pair, _view.rows)


def diagnose(space: LatentSpace, anchors: tuple[str, ...]) -> diagnostics.AnchorDiagnostics:
    """Rank, condition, coverage and near-duplicates of an anchor set in one space."""
    return _diagnose(space.digest, anchors_key(anchors), space, anchors)


@st.cache_resource(max_entries=32, show_spinner=False)
@_timed
def _diagnose(digest: str, anchors_key: str, _space: LatentSpace, _anchors: tuple[str, ...]) -> diagnostics.AnchorDiagnostics:
    return diagnostics.diagnose_anchors(_space, _anchors)


def select_anchors(pair: Match, n_anchors: int, strategy: str, random_state: int) -> tuple[str, ...]:
    """Anchors by strategy, chosen in the source space among the rows that both spaces have."""
    return _select_anchors(pair_key(pair), n_anchors, strategy, random_state, pair.source)


@st.cache_data(max_entries=64, show_spinner="Choosing anchors …")
@_timed
def _select_anchors(key: str, n_anchors: int, strategy: str, random_state: int, _space: LatentSpace) -> tuple[str, ...]:
    return tuple(selection.select_anchors(_space, n_anchors, strategy, random_state=random_state))
