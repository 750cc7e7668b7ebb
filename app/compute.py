"""The only caches around relcore, keyed on small frozen specs and content digests.

Streamlit hashes large arrays from a sample, so that one changed row would return the old result: our caches
know their arguments by value or by digest. Results are read-only and shared between sessions; what a key does
not name cannot leak through them.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import wraps
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import streamlit as st

from app.workspace import Workspace
from relcore.base import access
from relcore.base.errors import SpaceError
from relcore.catalog import catalog
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.tables_beside import more_columns
from relcore.compare import columns, scene
from relcore.compare.columns import agreement_rows, colored, columns_of
from relcore.compare.neighbours import neighbour_agreement
from relcore.encoders.dataset import dataset_place
from relcore.files.series import files_in
from relcore.maps import pane_maps
from relcore.maps.reduction import ReductionSpec
from relcore.maps.views import COLUMN, View, ViewSpec, sample_view
from relcore.represent import anchors
from relcore.runs.digest import digest_of
from relcore.scores import comparison
from relcore.scores.comparison import LIVE_QUERIES, ProjectionSpec
from relcore.scores.score import Difference, Score
from relcore.scores.scoring import PassedPair, anchor_differences, score_forms
from relcore.spaces.space import LatentSpace, Match, match, n_equal_rows

Result = TypeVar("Result")
Stamps = tuple[tuple[int, int], ...]
DIFFERENCE_ROWS = 20_000  # rows on which a change of the scores is measured, as it is shown with each step
LEAST_HELD_OUT = 5
_MOST_KEPT = 20_000_000  # similarities in a matrix that is kept: 80 MB for each of two spaces
_TOGETHER = ("relative", "whitened")  # they are shown together, and the second costs little in the same pass
_SECONDS = "relscope.seconds"


@dataclass
class _Kept:
    """A result, and the lock for which others wait that ask for it meanwhile."""

    lock: Lock = field(default_factory=Lock)
    values: list = field(default_factory=list)  # of one


def cached(
    most: int, spinner: str = "", *, timed: bool = False
) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Keep the last `most` results of a function for all sessions, by the content of its arguments.

    Spaces, views, items and arrays count by their digests, a pair by those of its spaces; all else is
    hashable. `timed` results are what `seconds_of_last_computation` tells of.
    """

    def decorate(function: Callable[..., Result]) -> Callable[..., Result]:
        results: OrderedDict[tuple, _Kept] = OrderedDict()
        changing = Lock()

        @wraps(function)
        def kept(*arguments: Any, **named: Any) -> Result:
            key = tuple(map(_content, (*arguments, *named, *named.values())))
            with changing:
                result = results.setdefault(key, _Kept())
                results.move_to_end(key)
                if len(results) > most:
                    results.popitem(last=False)
            with result.lock:
                if not result.values:
                    with st.spinner(spinner) if spinner else nullcontext(), _timing(timed):
                        result.values.append(function(*arguments, **named))
            return result.values[0]

        kept.clear = results.clear
        return kept

    return decorate


def _content(argument: Any) -> Any:
    if isinstance(argument, Match):
        return argument.source.digest, argument.target.digest
    if isinstance(argument, np.ndarray):
        return digest_of(argument)
    return getattr(argument, "digest", argument)


@contextmanager
def _timing(timed: bool = True) -> Iterator[None]:
    started = time.perf_counter()
    yield
    if timed:
        st.session_state[_SECONDS] = time.perf_counter() - started


def seconds_of_last_computation() -> float:
    """Seconds that this session's last real computation took; what came out of a cache does not count."""
    return st.session_state.get(_SECONDS, 0.0)


def pair_key(pair: Match) -> str:
    """The key of a matched pair in a cache."""
    return f"{pair.source.digest}/{pair.target.digest}"


def load_space(spec: SpaceSpec) -> LatentSpace:
    """The space of a spec, read once; a file is read again when it has changed."""
    catalog.need_access(spec)  # before the cache, which all sessions share
    return _load_space(spec, stamp(spec))


@cached(24, "Reading the space …", timed=True)
def _load_space(spec: SpaceSpec, stamps: Stamps) -> LatentSpace:
    return catalog.load(spec)


def digests(specs: Sequence[SpaceSpec]) -> tuple[str, ...]:
    """The digests of these spaces."""
    return tuple(load_space(spec).digest for spec in specs)


def digest_or_blank(spec: SpaceSpec) -> str:
    """The content digest of a space, "" where it can no longer be read."""
    try:
        return load_space(spec).digest
    except SpaceError:
        return ""


def stamp(spec: SpaceSpec) -> Stamps:
    """When the files of a space were last changed, and their sizes; () for one that comes from no file."""
    paths = [access.allowed(path) for path in catalog.files_of(spec)]
    files = [file for path in paths for file in (files_in(path) if path.is_dir() else [path])]
    return tuple(
        (about.st_mtime_ns, about.st_size) for path in files if path.is_file() and (about := path.stat())
    )


equal_rows = cached(32)(lambda space: n_equal_rows(space.vectors))


def matched(source: SpaceSpec, target: SpaceSpec) -> Match:
    """Two spaces paired by id."""
    return _match(load_space(source), load_space(target), source, target, stamp(source), stamp(target))


@cached(8)
def _match(source: LatentSpace, target: LatentSpace, *of_these_files: SpaceSpec | Stamps) -> Match:
    # A space on disk refuses a file that was written again, be it with the same numbers.
    return match(source, target)


def represent(
    pair: Match, pane: str, anchors: tuple[str, ...], spec: ProjectionSpec
) -> tuple[np.ndarray, np.ndarray]:
    """Both spaces absolute, relative, whitened, or rotated into each other."""
    if pane == "absolute":
        return pair.source.vectors, pair.target.vectors
    large = len(pair) * len(anchors) > _MOST_KEPT
    return (comparison.represent if large else _represent)(pair, pane, anchors, spec)


# Relative matrices are the largest thing kept: 20,000 rows × 300 anchors × 2 spaces are 48 MB.
_represent = cached(6, timed=True)(comparison.represent)


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
    by_pca = replace(reduction, method="pca")
    return _pca_coordinates(pair, drawn, pane, needed_anchors(pane, anchors), spec, by_pca)


@cached(48, timed=True)
def _pca_coordinates(
    pair: Match, drawn: View, *settings: str | tuple[str, ...] | ProjectionSpec | ReductionSpec
) -> tuple[list[np.ndarray], str]:
    return pane_maps.pca_pair(pair, drawn.rows, *settings, _directions)


_directions = cached(16)(pane_maps.Directions.of)


def needed_anchors(pane: str, anchors: tuple[str, ...]) -> tuple[str, ...]:
    """The anchors that a representation depends on."""
    return () if pane == "absolute" else anchors


@cached(64, "Choosing anchors …", timed=True)
def select_anchors(pair: Match, n_anchors: int, strategy: str, random_state: int) -> tuple[str, ...]:
    """Anchors by strategy, chosen in the source space among the rows that both spaces have."""
    return tuple(anchors.select_anchors(pair.source, n_anchors, strategy, random_state=random_state))


@cached(32, timed=True)
def diagnose(space: LatentSpace, anchor_ids: tuple[str, ...]) -> anchors.AnchorDiagnostics:
    """Rank, condition, coverage and near-duplicates of an anchor set in one space."""
    return anchors.diagnose_anchors(space, anchor_ids)


@cached(16, "Comparing neighbourhoods …", timed=True)
def agreement(pair: Match, drawn: View) -> pd.DataFrame:
    """The drawn rows, a sample where they are many, by how much of their neighbourhood the other space
    keeps, least first.
    """
    return neighbour_agreement(pair, sample_view(drawn, agreement_rows(len(pair))).rows)


# Live scores. The last passes over the held-out rows are kept, too: with one, the difference to the anchors
# of the next step takes no pass of its own.


@dataclass(frozen=True)
class KeptScores:
    """Representation → scores, filled by whoever asks first; another session that asks meanwhile waits for
    the lock.
    """

    found: dict[str, dict[str, Score]] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)


@cached(96)
def kept_scores(pair: Match, anchors: tuple[str, ...], *settings: Any) -> KeptScores:
    """The scores of one anchor set."""
    return KeptScores()


@cached(8)
def _passes(pair: Match, anchors: tuple[str, ...], *settings: Any) -> dict[str, PassedPair]:
    """The passes over the rows that are not among these anchors, by representation."""
    return {}


def is_scored_quickly(pair: Match) -> bool:
    """Whether live scores take less than half a second, for which the sidebar can wait."""
    return len(pair) <= DIFFERENCE_ROWS


def can_be_scored(pair: Match, *anchors: tuple[str, ...]) -> bool:
    """Whether enough rows are held out from these anchor sets for scores to say anything."""
    return len(pair) - len(set().union(*anchors)) >= LEAST_HELD_OUT


def too_few_held_out(pair: Match, *anchors: tuple[str, ...]) -> str:
    """Why scores cannot be computed with these anchor sets, and what would help."""
    n, n_held_out = len(pair), len(pair) - len(set().union(*anchors))
    remedy = "Removing anchors does not help: choose"
    if n > LEAST_HELD_OUT:
        remedy = f"Remove {LEAST_HELD_OUT - n_held_out} or more anchors, or choose"
    return (
        f"{n_held_out} of {n:,} rows are held out, and scores need {LEAST_HELD_OUT} or more rows that are no"
        f" anchors. {remedy} spaces that share more rows."
    )


def scored_neighbours(pair: Match, anchors: tuple[str, ...], k: int, convention: str) -> int:
    """k, or as many neighbours as the rows have that are no anchors: one k for all representations."""
    return max(1, min(k, len(pair) - len(anchors) - (convention == "mutual")))


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
    k, anchors = scored_neighbours(pair, anchors, k, convention), needed_anchors(pane, anchors)
    spec = spec if pane in _TOGETHER else ProjectionSpec()  # all that the others depend on
    metrics = tuple(comparison.metrics_of_a_pair())
    kept = kept_scores(pair, anchors, spec, k, convention, metrics)
    with kept.lock:
        if pane not in kept.found:
            together = _TOGETHER if pane in _TOGETHER and not alone else (pane,)
            more = {}
            if len(pair) - len(anchors) <= DIFFERENCE_ROWS:
                more["keep"] = _passes(pair, anchors, spec, k, convention).__setitem__
            with _timing():
                scores = score_forms(
                    pair,
                    [one for one in together if one not in kept.found],
                    anchors,
                    spec,
                    labels=comparison.class_labels(pair),
                    k=k,
                    convention=convention,
                    n_queries=LIVE_QUERIES,
                    metrics=metrics,
                    **more,
                )
            kept.found.update(scores)
        return kept.found[pane]


@cached(32, timed=True)
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
    both = tuple(dict.fromkeys((*now, *before)))
    sample = comparison.sample_pair(pair, both, DIFFERENCE_ROWS)
    k, kept = scored_neighbours(sample, both, k, convention), {}
    if sample is pair:
        passes = {anchors: _passes(pair, anchors, spec, k, convention).get(pane) for anchors in (before, now)}
        kept = {anchors: passed for anchors, passed in passes.items() if passed}
    settings = {"k": k, "convention": convention, "n_queries": LIVE_QUERIES, "kept": kept}
    labels = comparison.class_labels(sample)
    return anchor_differences(sample, pane, before, now, spec, labels=labels, **settings)


# How a map looks, beside where its points lie.

_Tables = tuple[tuple[SpaceSpec, Stamps], ...]


def view(pair: Match, workspace: Workspace) -> View:
    """Rows to draw and their colours."""
    spec = workspace.view
    # Among all rows the anchors are drawn anyway.
    anchors = workspace.anchors if spec.show_anchors and not spec.everything else ()
    return _view(pair, spec, anchors, workspace.reduction, _tables(spec.color_by, workspace))


@cached(32)
def _view(
    pair: Match, spec: ViewSpec, anchors: tuple[str, ...], reduction: ReductionSpec, tables: _Tables
) -> View:
    return colored(pair, scene.drawn_view(pair.source, spec, anchors, reduction), spec, _cells(tables))


def second_view(pair: Match, drawn: View, workspace: Workspace) -> View | None:
    """The drawn rows in the colours of the second colouring; None where there is none."""
    second = workspace.look.second
    look = scene.MapLook(second=second)
    return _second_view(pair, drawn, workspace.view, look, _tables(second, workspace)) if second else None


@cached(32)
def _second_view(
    pair: Match, drawn: View, spec: ViewSpec, look: scene.MapLook, tables: _Tables
) -> View | None:
    return scene.second_view(pair, drawn, spec, look, _cells(tables))


def prominence(pair: Match, drawn: View) -> np.ndarray:
    """Positions among the drawn rows, those first whose names matter most."""
    return _prominence(pair, drawn, drawn.categories)


@cached(32)
def _prominence(pair: Match, drawn: View, categories: np.ndarray) -> np.ndarray:
    return scene.prominent_rows(pair.source, drawn)


def _tables(color_by: str, workspace: Workspace) -> _Tables:
    """The spaces whose tables may have the column of a colour, with what tells whether the tables have
    changed.
    """
    ends = (workspace.source, workspace.target) if color_by.startswith(COLUMN) else ()
    return tuple((end, table_stamp(end)) for end in ends)


def _cells(tables: _Tables) -> columns.Cells | None:
    return columns.cells_of(*(end for end, _ in tables), load_space) if tables else None


def table_stamp(spec: SpaceSpec) -> Stamps:
    """`stamp`, of an encoding that of the table that it was made of. Errors where the session may not read
    it.
    """
    if spec.dataset is None or spec.dataset.source != "file":
        return stamp(spec)
    path = dataset_place(spec.dataset)
    return ((about.st_mtime_ns, about.st_size),) if path.is_file() and (about := path.stat()) else ()


def colors_of(workspace: Workspace, pair: Match) -> list[str]:
    """What the rows of this pair can be coloured by."""
    labels = ["labels"] if pair.source.labels is not None else []
    return ["pivots", *labels, *columns_of(pair), *(f"{COLUMN}{name}" for name in table_columns(workspace))]


def table_columns(workspace: Workspace) -> list[str]:
    """The columns of the tables that came with the two spaces, each name once; none of a table that cannot
    be read now.
    """
    names: list[str] = []
    for end in (workspace.source, workspace.target):
        try:
            names += _more_columns(end, table_stamp(end))
        except SpaceError:
            continue
    return list(dict.fromkeys(names))


@cached(32)
def _more_columns(spec: SpaceSpec, stamps: Stamps) -> tuple[str, ...]:
    return more_columns(spec)
