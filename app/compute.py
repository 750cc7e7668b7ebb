"""The only caches around relcore. Keyed on small frozen specs and content digests; arrays travel as
`_unhashed` arguments.

Streamlit hashes large arrays from a sample, so that one changed row would return the old result: no array is
ever a key. All results are read-only and shared between sessions; what a key does not name cannot leak
through them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, wraps
from threading import Lock

import numpy as np
import pandas as pd
import streamlit as st

from relcore.base import access
from relcore.base.errors import SpaceError
from relcore.catalog import catalog
from relcore.catalog.catalog import SpaceSpec
from relcore.compare.columns import agreement_rows
from relcore.compare.neighbours import neighbour_agreement
from relcore.files.series import files_in
from relcore.maps import pane_maps
from relcore.maps.reduction import ReductionSpec
from relcore.maps.views import View, rows_digest, sample_view
from relcore.represent import anchors
from relcore.runs.digest import digest_of
from relcore.scores import comparison
from relcore.scores.comparison import LIVE_QUERIES, ProjectionSpec
from relcore.scores.score import Difference, Score
from relcore.scores.scoring import PassedPair, anchor_differences, score_forms
from relcore.spaces.space import LatentSpace, Match, match, n_equal_rows

# What is kept of live scores, by the rules of `compute`: the scores, and the last passes over the held-out
# rows.
#
# With a kept pass the difference to the anchors of the next step takes no pass of its own.

DIFFERENCE_ROWS = 20_000  # rows on which a change of the scores is measured, as it is shown with each step


def is_scored_quickly(pair: Match) -> bool:
    """Whether live scores take less than half a second, for which the sidebar can wait."""
    return len(pair) <= DIFFERENCE_ROWS


@dataclass(frozen=True)
class KeptScores:
    """Representation → scores, filled by whoever asks first; another session that asks meanwhile waits for
    the lock.
    """

    found: dict[str, dict[str, Score]] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)


@st.cache_resource(max_entries=96, show_spinner=False)
def kept_scores(
    key: str, anchors_key: str, spec: ProjectionSpec, k: int, convention: str, metrics: tuple[str, ...]
) -> KeptScores:
    """The scores of one anchor set."""
    return KeptScores()


def keeper(key: str, anchors_key: str, *settings: Hashable) -> Callable[[str, PassedPair], None]:
    """What `score_forms` is to call with the pass of each representation."""
    return _passes(key, anchors_key, settings).__setitem__


def kept_pass(form: str, key: str, anchors_key: str, *settings: Hashable) -> PassedPair | None:
    """The pass over the rows that are not among these anchors; None where none was made, or where it is
    too long ago.
    """
    return _passes(key, anchors_key, settings).get(form)


@st.cache_resource(max_entries=8, show_spinner=False)
def _passes(key: str, anchors_key: str, settings: tuple[Hashable, ...]) -> dict[str, PassedPair]:
    return {}


LEAST_HELD_OUT = 5
_MOST_KEPT = 20_000_000  # similarities in a matrix that is kept: 80 MB for each of two spaces
_TOGETHER = ("relative", "whitened")  # they are shown together, and the second costs little in the same pass
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
    files = [file for path in paths for file in (files_in(path) if path.is_dir() else [path])]
    return tuple(
        (about.st_mtime_ns, about.st_size) for path in files if path.is_file() and (about := path.stat())
    )


@st.cache_resource(max_entries=24, show_spinner="Reading the space …")
@_timed
def _load_space(spec: SpaceSpec, stamp: tuple[tuple[int, int], ...]) -> LatentSpace:
    return catalog.load(spec)


@st.cache_data(max_entries=32, show_spinner=False)
def _equal_rows(digest: str, _space: LatentSpace) -> int:
    return n_equal_rows(_space.vectors)


def equal_rows(space: LatentSpace) -> int:
    """The number of rows whose vector is equal to another row's."""
    return _equal_rows(space.digest, space)


def matched(source: SpaceSpec, target: SpaceSpec) -> Match:
    """Two spaces paired by id."""
    spaces = load_space(source), load_space(target)
    key = tuple(
        (space.digest, space.name, stamp(spec)) for space, spec in zip(spaces, (source, target), strict=True)
    )
    return _match(key, spaces)


@st.cache_resource(max_entries=8, show_spinner=False)
def _match(key: tuple[Hashable, ...], _spaces: tuple[LatentSpace, LatentSpace]) -> Match:
    """Of these files: a space on disk refuses a file that was written again, be it with the same numbers."""
    return match(*_spaces)


def pair_key(pair: Match) -> str:
    """The key of a matched pair in a cache."""
    return f"{pair.source.digest}/{pair.target.digest}"


# Streamlit hashes a tuple string by string, in each call: a tenth of a second for 300 anchors and ten calls
# in a run.
@lru_cache(maxsize=256)
def anchors_key(anchors: tuple[str, ...]) -> str:
    return digest_of(anchors)


def represent(
    pair: Match, pane: str, anchors: tuple[str, ...], spec: ProjectionSpec
) -> tuple[np.ndarray, np.ndarray]:
    """Both spaces absolute, relative, whitened, or rotated into each other."""
    if pane == "absolute":
        return pair.source.vectors, pair.target.vectors
    if len(pair) * len(anchors) > _MOST_KEPT:
        return comparison.represent(pair, pane, anchors, spec)
    return _represent(pair_key(pair), pane, anchors_key(anchors), spec, pair, anchors)


# Relative matrices are the largest thing kept: 20,000 rows × 300 anchors × 2 spaces are 48 MB.
@st.cache_resource(max_entries=6, show_spinner=False)
@_timed
def _represent(
    key: str, pane: str, anchors_key: str, spec: ProjectionSpec, _pair: Match, _anchors: tuple[str, ...]
) -> tuple[np.ndarray, ...]:
    return comparison.represent(_pair, pane, _anchors, spec)


def pca_coordinates(
    pair: Match,
    drawn: View,
    pane: str,
    anchors: tuple[str, ...],
    spec: ProjectionSpec,
    reduction: ReductionSpec,
) -> tuple[list[np.ndarray], str]:
    """PCA coordinates of the drawn rows of both spaces, and a note on how they came about; fast enough to
    do at once.
    """
    needed = needed_anchors(pane, anchors)
    reduction = replace(reduction, method="pca")
    return _pca_coordinates(
        pair_key(pair), drawn.digest, pane, anchors_key(needed), spec, reduction, pair, drawn, needed
    )


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
    return pane_maps.pca_pair(_pair, _view.rows, pane, _anchors, spec, reduction, _kept_directions)


def _kept_directions(
    space: LatentSpace, rows: np.ndarray, center: bool, random_state: int
) -> pane_maps.Directions:
    return _directions(space.digest, rows_digest(rows), center, random_state, space, rows)


@st.cache_resource(max_entries=16, show_spinner=False)
def _directions(
    digest: str, drawn: str, center: bool, random_state: int, _space: LatentSpace, _rows: np.ndarray
) -> pane_maps.Directions:
    return pane_maps.Directions.of(_space, _rows, center, random_state)


def needed_anchors(pane: str, anchors: tuple[str, ...]) -> tuple[str, ...]:
    """The anchors that a representation depends on."""
    return () if pane == "absolute" else anchors


def live_scores(
    pair: Match,
    pane: str,
    anchors: tuple[str, ...],
    spec: ProjectionSpec,
    k: int,
    convention: str,
    *,
    alone: bool = False,
) -> dict[str, Score]:
    """All scores of one representation at once: neighbours of a random sample of the held-out rows, the rest
    from all.

    Relative and whitened come from one pass, unless the page shows this one `alone`.
    """
    needed, k = needed_anchors(pane, anchors), scored_neighbours(pair, anchors, k, convention)
    settings = scored_projection(pane, spec), k, convention, tuple(comparison.metrics_of_a_pair())
    kept = kept_scores(pair_key(pair), anchors_key(needed), *settings)
    with kept.lock:
        if pane not in kept.found:
            panes = _TOGETHER if pane in _TOGETHER and not alone else (pane,)
            kept.found.update(
                _score(pair, [one for one in panes if one not in kept.found], needed, *settings)
            )
        return kept.found[pane]


def can_be_scored(pair: Match, *anchors: tuple[str, ...]) -> bool:
    """Whether enough rows are held out from these anchor sets for scores to say anything."""
    return len(pair) - len(set().union(*anchors)) >= LEAST_HELD_OUT


def too_few_held_out(pair: Match, *anchors: tuple[str, ...]) -> str:
    """Why scores cannot be computed with these anchor sets, and what would help."""
    n, n_anchors = len(pair), len(set().union(*anchors))
    told = (
        f"{n - n_anchors} of {n:,} rows are held out, and scores need {LEAST_HELD_OUT} or more rows that are"
        " no anchors. "
    )
    if n <= LEAST_HELD_OUT:
        return f"{told}Removing anchors does not help: choose spaces that share more rows."
    return (
        f"{told}Remove {LEAST_HELD_OUT - n + n_anchors} or more anchors, or choose spaces that share more"
        " rows."
    )


def scored_neighbours(pair: Match, anchors: tuple[str, ...], k: int, convention: str) -> int:
    """k, or as many neighbours as the rows have that are no anchors: one k for all representations."""
    return max(1, min(k, len(pair) - len(anchors) - (convention == "mutual")))


def scored_projection(pane: str, spec: ProjectionSpec) -> ProjectionSpec:
    """The settings that the scores of a representation depend on."""
    return spec if pane in ("relative", "whitened") else ProjectionSpec()


@_timed
def _score(
    pair: Match,
    panes: Sequence[str],
    anchors: tuple[str, ...],
    spec: ProjectionSpec,
    k: int,
    convention: str,
    metrics: tuple[str, ...],
) -> dict[str, dict[str, Score]]:
    settings = {"k": k, "convention": convention, "n_queries": LIVE_QUERIES, "metrics": metrics}
    if len(pair) - len(anchors) <= DIFFERENCE_ROWS:
        settings["keep"] = keeper(pair_key(pair), anchors_key(anchors), spec, k, convention)
    return score_forms(pair, panes, anchors, spec, labels=comparison.class_labels(pair), **settings)


def score_differences(
    pair: Match,
    pane: str,
    before: tuple[str, ...],
    now: tuple[str, ...],
    spec: ProjectionSpec,
    k: int,
    convention: str,
) -> dict[str, Difference]:
    """How far a change of anchors moved each score, on the same held-out rows and queries, of at most
    `DIFFERENCE_ROWS`.
    """
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
    pair = comparison.sample_pair(_pair, both, DIFFERENCE_ROWS)
    k, kept = scored_neighbours(pair, both, k, convention), {}
    if pair is _pair:
        found = (kept_pass(pane, key, each, spec, k, convention) for each in anchors_keys)
        kept = {anchors: one for anchors, one in zip((_before, _now), found, strict=True) if one}
    settings = {"k": k, "convention": convention, "n_queries": LIVE_QUERIES, "kept": kept}
    return anchor_differences(
        pair, pane, _before, _now, spec, labels=comparison.class_labels(pair), **settings
    )


def agreement(pair: Match, drawn: View) -> pd.DataFrame:
    """The drawn rows, a sample where they are many, by how much of their neighbourhood the other space
    keeps, least first.
    """
    drawn = sample_view(drawn, agreement_rows(len(pair)))
    return _agreement(pair_key(pair), drawn.digest, pair, drawn)


@st.cache_data(max_entries=16, show_spinner="Comparing neighbourhoods …")
@_timed
def _agreement(key: str, rows: str, _pair: Match, _view: View) -> pd.DataFrame:
    return neighbour_agreement(_pair, _view.rows)


def diagnose(space: LatentSpace, anchors: tuple[str, ...]) -> anchors.AnchorDiagnostics:
    """Rank, condition, coverage and near-duplicates of an anchor set in one space."""
    return _diagnose(space.digest, anchors_key(anchors), space, anchors)


@st.cache_resource(max_entries=32, show_spinner=False)
@_timed
def _diagnose(
    digest: str, anchors_key: str, _space: LatentSpace, _anchors: tuple[str, ...]
) -> anchors.AnchorDiagnostics:
    return anchors.diagnose_anchors(_space, _anchors)


def select_anchors(pair: Match, n_anchors: int, strategy: str, random_state: int) -> tuple[str, ...]:
    """Anchors by strategy, chosen in the source space among the rows that both spaces have."""
    return _select_anchors(pair_key(pair), n_anchors, strategy, random_state, pair.source)


@st.cache_data(max_entries=64, show_spinner="Choosing anchors …")
@_timed
def _select_anchors(
    key: str, n_anchors: int, strategy: str, random_state: int, _space: LatentSpace
) -> tuple[str, ...]:
    return tuple(anchors.select_anchors(_space, n_anchors, strategy, random_state=random_state))
