"""Caches around relcore. The keys are values or content digests, because Streamlit hashes only a sample of a
large array."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import wraps
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import streamlit as st

from app.workspace import ScoreSettings, Workspace
from relcore.base import access
from relcore.base.errors import SpaceError
from relcore.base.memory import MadeOnce
from relcore.catalog import catalog
from relcore.catalog.catalog import KEPT, UNSCORED, SpaceSpec, chosen_rows, listed, with_kept, with_unscored
from relcore.catalog.row_tables import TableColumns, by_rows, is_pairing_unknown, pairs_by_rows
from relcore.compare import columns, filters, scene
from relcore.compare.agreement import neighbour_agreement
from relcore.encoders.dataset import dataset_place
from relcore.engine.nearest import largest_k
from relcore.figures.colorings import Facet, passing
from relcore.files.parts import files_in
from relcore.maps import pane_maps
from relcore.maps.pane_maps import COLUMN, View, sample_view
from relcore.maps.principal_axes import ReductionSpec
from relcore.represent import diagnostics, representations, strategies
from relcore.represent.representations import ProjectionSpec
from relcore.runs.entries import digest_of
from relcore.scores import comparison
from relcore.scores.comparison import AlignedPair, anchor_differences, score_representations
from relcore.scores.score import Interval, Score
from relcore.scores.score_report import LIVE_QUERIES
from relcore.spaces.ids import GuessedIds, mark_unscored, scored_rows
from relcore.spaces.matching import Match, match, n_equal_rows
from relcore.spaces.space import LatentSpace

Result = TypeVar("Result")
Stamps = tuple[tuple[int, int], ...]
DIFFERENCE_ROWS = 20_000  # maximum number of rows on which a change of the scores is measured
LEAST_HELD_OUT = 5
_MOST_KEPT = 20_000_000  # number of similarities of a space that are cached (80 MB)
_TOGETHER = ("relative", "whitened")  # one pass over the rows computes both representations


def cached(
    most: int, spinner: str = "", key: Callable[..., tuple] | None = None
) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """A decorator that caches the last `most` results of a function for all sessions, by the content of its
    arguments.

    If `key` is given, ``key(*arguments)`` is used as the key instead of the arguments. It runs at each call,
    so its errors are never cached. While one session computes a result, other sessions wait for it.
    """

    def decorate(function: Callable[..., Result]) -> Callable[..., Result]:
        results: OrderedDict[tuple, tuple[Lock, list[Result]]] = OrderedDict()
        changing = Lock()
        _caches.append((changing, results))

        @wraps(function)
        def kept(*arguments: Any) -> Result:
            name = tuple(map(_content, key(*arguments) if key else arguments))
            with changing:
                lock, values = results.setdefault(name, (Lock(), []))
                results.move_to_end(name)
                if len(results) > most:
                    results.popitem(last=False)
            if not values:
                waiting = st.spinner(spinner) if spinner else nullcontext()
                with waiting, lock:  # also a run that only waits for another one says what it waits for
                    if not values:
                        values.append(function(*arguments))
            return values[0]

        kept.clear = results.clear
        return kept

    return decorate


_caches: list[tuple[Lock, OrderedDict[tuple, tuple[Lock, list]]]] = []


def forget(digests: Collection[str]) -> None:
    """Remove all cached results that belong to spaces with these digests. The spaces themselves stay
    cached."""
    for changing, results in _caches:
        with changing:
            for name, (_, values) in list(results.items()):
                if not _digests_in(name, values).isdisjoint(digests):
                    del results[name]


def _digests_in(name: tuple, values: Sequence[Any]) -> set[str]:
    """The digests of the spaces that a cached result belongs to, and other texts in its `name`. If the result
    is a pair, it belongs to both spaces of this pair, too."""
    contents = [*name, *(_content(value) for value in values if isinstance(value, Match))]
    texts = [content for content in contents if isinstance(content, str)]
    return {part for text in texts for part in text.split("/")}  # `pair_key` joins digests by "/"


def _content(argument: Any) -> Hashable:
    if isinstance(argument, Match):
        return pair_key(argument)
    if isinstance(argument, np.ndarray):
        return _digest(argument)
    return getattr(argument, "digest", argument)


_digest = MadeOnce(digest_of)  # each read-only array is hashed once


def is_paired_by_order(*pair: SpaceSpec) -> bool:
    """Whether the rows of two spaces are paired only by their order, without a user's confirmation."""
    return is_pairing_unknown(pair, [load_space(spec) for spec in pair])


def likely_by_rows(source: SpaceSpec, target: SpaceSpec) -> tuple[SpaceSpec, SpaceSpec] | None:
    """Both spaces with row numbers as ids. Returns None if pairing by row number is not likely to be
    right."""
    if "sample" in (source.source, target.source):  # samples are not in a common order
        return None
    try:
        likely = pairs_by_rows(load_space(source), load_space(target))
    except SpaceError:
        return None
    if likely:
        return by_rows(source, target)
    return None


def pair_key(pair: Match) -> str:
    return "/".join(space.digest for space in pair.spaces)


def file_stamps(paths: Sequence) -> Stamps:
    """The modification times and sizes of these files, or of the files in these folders.

    Raises a SpaceError for a path that this session may not read. Sessions share the caches, so call this
    before a cached function.
    """
    files = []
    for path in paths:
        path = access.readable_path(path)
        if path.is_dir():
            files += files_in(path)
        else:
            files.append(path)
    return tuple(
        (about.st_mtime_ns, about.st_size) for path in files if path.is_file() and (about := path.stat())
    )


def stamp(spec: SpaceSpec) -> Stamps:
    return file_stamps(catalog.files_of(spec))


def _readable(spec: SpaceSpec) -> tuple[SpaceSpec, Stamps]:
    if not catalog.files_of(spec):  # `stamp` checks the access to files
        catalog.need_access(spec)
    return spec, stamp(spec)


@cached(24, "Reading the space …", key=_readable)
def load_space(spec: SpaceSpec) -> LatentSpace:
    """The space that a spec describes, from the cache unless its file has changed."""
    if removed := listed(spec, UNSCORED):
        space = load_space(with_unscored(spec, ()))
        return space.with_columns(ids=mark_unscored(space.ids, removed))
    if kept := listed(spec, KEPT):
        return chosen_rows(load_space(with_kept(spec, ())), kept)
    return catalog.load(spec)


def readable_spaces(specs: Sequence[SpaceSpec]) -> dict[SpaceSpec, LatentSpace]:
    """The spaces of these specs, without those that cannot be read."""
    spaces = {}
    for spec in specs:
        with suppress(SpaceError):
            spaces[spec] = load_space(spec)
    return spaces


def digests(specs: Sequence[SpaceSpec]) -> tuple[str, ...]:
    return tuple(load_space(spec).digest for spec in specs)


def digest_or_blank(spec: SpaceSpec) -> str:
    """The content digest of a space, or "" if the space cannot be read."""
    try:
        return load_space(spec).digest
    except SpaceError:
        return ""


equal_rows = cached(32)(lambda space: n_equal_rows(space.vectors))


# A space on disk only raises errors once its file has changed, so the key contains the file's time stamp.
@cached(8, key=lambda *specs: (*map(load_space, specs), *map(_readable, specs)))
def matched_models(*specs: SpaceSpec) -> Match:
    return match(*map(load_space, specs))


@cached(64, key=lambda *specs: (*map(load_space, specs), *map(_readable, specs)))
def shared_rows(*specs: SpaceSpec) -> int | str:
    """The number of rows that these spaces share, or the reason why they cannot be compared."""
    try:
        return len(match(*map(load_space, specs)))
    except SpaceError as error:
        return str(error)


def represent(
    pair: Match, representation: str, anchors: tuple[str, ...], spec: ProjectionSpec
) -> tuple[np.ndarray, ...]:
    """The rows of each space in this representation: similarities to anchors, whitened
    similarities, or the spaces rotated onto each other. Large results are not cached."""
    large = len(pair) * len(anchors) > _MOST_KEPT
    if large:
        return representations.represent(pair, representation, anchors, spec)
    return _represent(pair, representation, anchors, spec)


# Cache few representations: the similarities of 20,000 rows to 300 anchors take 48 MB for two spaces.
_represent = cached(6)(representations.represent)
drawn_units = cached(16)(pane_maps.DrawnUnits.of)


def needed_anchors(pane: str, anchors: tuple[str, ...]) -> tuple[str, ...]:
    if pane in (pane_maps.OWN, "absolute"):
        return ()
    return anchors


def _pca_key(
    pair: Match, drawn: View, pane: str, anchors: tuple[str, ...], *specs: ProjectionSpec | ReductionSpec
) -> tuple:
    projection, reduction = specs
    return pair, drawn, pane, needed_anchors(pane, anchors), projection, replace(reduction, method="pca")


@cached(48, key=_pca_key)
def pca_coordinates(pair: Match, drawn: View, *settings: Any) -> tuple[list[np.ndarray], str]:
    """PCA coordinates of the drawn rows of each space, and a note. `settings` are the pane, the anchors, the
    projection and the reduction."""
    pair, drawn, *settings = _pca_key(pair, drawn, *settings)
    coordinates, note = pane_maps.pca_pair(pair, drawn.rows, *settings, drawn_units)
    for space in coordinates:
        space.flags.writeable = False
    return coordinates, note


@cached(64, "Choosing anchors …")
def select_anchors(pair: Match, n_anchors: int, strategy: str, random_state: int) -> tuple[str, ...]:
    return tuple(strategies.select_anchors(pair.source, n_anchors, strategy, random_state=random_state))


diagnose = cached(32)(diagnostics.diagnose_anchors)


@cached(16, "Comparing neighbourhoods …")
def agreement(pair: Match, drawn: View) -> pd.DataFrame:
    """A table of the drawn rows, or of a sample, with the share of neighbours that each keeps in the other
    space. It is sorted by this share, smallest first."""
    return neighbour_agreement(pair, sample_view(drawn, columns.agreement_rows(len(pair))).rows)


# Live scores. The aligned vectors are cached, so the effect of other anchors is measured without aligning
# again.


@cached(96)
def kept_scores(pair: Match, settings: ScoreSettings, metrics: tuple[str, ...]) -> tuple[Lock, dict]:
    return Lock(), {}


@cached(8)
def _passes(pair: Match, settings: ScoreSettings) -> dict[str, AlignedPair]:
    """A cached dictionary from the name of a representation to its aligned vectors. `live_scores` fills
    it."""
    return {}


def is_scored_quickly(pair: Match) -> bool:
    return len(pair) <= DIFFERENCE_ROWS


@cached(64)
def n_held_out(pair: Match, *anchors: tuple[str, ...]) -> int:
    """The number of scored rows: all except anchors, rows removed as wrong pairs, and unconfirmed links."""
    return len(set(pair.ids[scored_rows(pair.ids)]).difference(*anchors))


def can_be_scored(pair: Match, *anchors: tuple[str, ...]) -> bool:
    return n_held_out(pair, *anchors) >= LEAST_HELD_OUT


def too_few_held_out(pair: Match, *anchors: tuple[str, ...]) -> str:
    n = len(pair)
    n_scored = n_held_out(pair, *anchors)
    if isinstance(pair.ids, GuessedIds):
        return (
            f"Link found these {n:,} pairs. Only confirmed pairs are scored. Confirm at least"
            f" {LEAST_HELD_OUT} of them (now {n_scored}) in Connect, Link."
        )
    remedy = "Removing anchors does not help: choose"
    if n > LEAST_HELD_OUT:
        remedy = f"Remove {LEAST_HELD_OUT - n_scored} or more anchors, or choose"
    return (
        f"{n_scored} of {n:,} rows are held out, and scores need {LEAST_HELD_OUT} or more rows that are no"
        f" anchors. {remedy} spaces that share more rows."
    )


def scored_neighbours(pair: Match, anchors: tuple[str, ...], k: int, convention: str) -> int:
    """The number of neighbours to score: k, but at most the number of held-out rows."""
    return max(1, min(k, largest_k(n_held_out(pair, anchors), convention)))


def live_scores(
    pair: Match, representation: str, settings: ScoreSettings, *, alone: bool = False
) -> dict[str, Score]:
    """All scores of one representation. The queries are a random sample of the held-out rows.

    The scores relative to anchors and whitened are computed in one pass. If the page shows only this
    representation, set `alone` to compute only this one.
    """
    k = scored_neighbours(pair, settings.anchors, settings.k, settings.convention)
    anchors = needed_anchors(representation, settings.anchors)
    settings = replace(settings, anchors=anchors, k=k)
    # other representations do not use the projection
    if representation not in _TOGETHER:
        settings = replace(settings, projection=ProjectionSpec())
    metrics = tuple(comparison.metrics_of_a_pair())
    lock, scores = kept_scores(pair, settings, metrics)
    with lock:
        if representation not in scores:
            if representation in _TOGETHER and not alone:
                together = _TOGETHER
            else:
                together = (representation,)
            keep = None
            if n_held_out(pair, anchors) <= DIFFERENCE_ROWS:
                keep = _passes(pair, settings).__setitem__
            scores |= score_representations(
                pair,
                [name for name in together if name not in scores],
                anchors,
                settings.projection,
                labels=comparison.class_labels(pair),
                k=k,
                convention=settings.convention,
                n_queries=LIVE_QUERIES,
                metrics=metrics,
                keep=keep,
            )
        return scores[representation]


@cached(256, "Measuring …")
def more_score(
    pair: Match,
    representation: str,
    anchors: tuple[str, ...],
    spec: ProjectionSpec,
    k: int,
    metric: str,
) -> Score:
    """The score of one further measure on the held-out rows."""
    rows = representations.represent(pair, representation, anchors, spec)
    split = comparison.held_out(pair, anchors, representation)
    scores = comparison.score_pair(*rows, split, k=k, metrics=(metric,))
    if metric not in scores:
        raise SpaceError("expected spaces with the widths and labels that this score needs, got others")
    return scores[metric]


@cached(32)
def score_differences(
    pair: Match, representation: str, before: tuple[str, ...], settings: ScoreSettings
) -> dict[str, Interval]:
    """The change of each score from the anchors `before` to those of the settings. Both sets are scored on
    the same held-out rows, at most `DIFFERENCE_ROWS`."""
    now = settings.anchors
    both = tuple(dict.fromkeys((*now, *before)))
    sample = comparison.sample_pair(pair, both, DIFFERENCE_ROWS)
    k = scored_neighbours(sample, both, settings.k, settings.convention)
    kept = {}
    if sample is pair:
        for anchors in (before, now):
            passed = _passes(pair, replace(settings, anchors=anchors, k=k)).get(representation)
            if passed:
                kept[anchors] = passed
    return anchor_differences(
        sample,
        representation,
        before,
        now,
        settings.projection,
        labels=comparison.class_labels(sample),
        k=k,
        convention=settings.convention,
        n_queries=LIVE_QUERIES,
        kept=kept,
    )


def _drawn_anchors(workspace: Workspace) -> tuple[str, ...]:
    if workspace.view.show_anchors and not workspace.view.everything:
        return workspace.anchors
    return ()


def _tables(color_by: str, workspace: Workspace) -> tuple:
    """What a colouring by a column depends on: the tables of the two spaces, and the tags. () for another
    colouring."""
    if not color_by.startswith(COLUMN):
        return ()
    ends = (workspace.source, workspace.target)
    return (*((end, table_stamp(end)) for end in ends), workspace.tags)


def _view_key(pair: Match, workspace: Workspace) -> tuple:
    spec = workspace.view
    return pair, spec, _drawn_anchors(workspace), workspace.reduction, _tables(spec.color_by, workspace)


@cached(32, key=_view_key)
def view(pair: Match, workspace: Workspace) -> View:
    spec = workspace.view
    drawn = scene.drawn_view(pair.source, spec, _drawn_anchors(workspace), workspace.reduction)
    return columns.with_color_column(pair, drawn, spec, cells(pair, workspace))


def view_with_rows(pair: Match, workspace: Workspace, drawn: View, others: np.ndarray) -> View:
    """The drawn rows and `others`, with their colours."""
    return scene.view_with_rows(pair, drawn, workspace.view, others, cells(pair, workspace))


@cached(
    32,
    key=lambda pair, drawn, now: (pair, drawn, now.view, now.look.second, _tables(now.look.second, now)),
)
def second_view(pair: Match, drawn: View, workspace: Workspace) -> View | None:
    return scene.second_view(pair, drawn, workspace.view, workspace.look, cells(pair, workspace))


def cells(pair: Match, workspace: Workspace) -> columns.Cells:
    """A function that returns the cells of a column: of a tag, for the rows of the pair, or of the tables of
    the two spaces, which it reads when it is called."""

    def of_tables(name: str) -> pd.Series:
        return _cells(workspace.source, workspace.target)(name)

    if not workspace.tags:
        return of_tables
    return columns.with_tags(of_tables, workspace.tags, pair.source.index)


@cached(4, key=lambda *ends: (*ends, *map(table_stamp, ends)))
def _cells(source: SpaceSpec, target: SpaceSpec) -> columns.Cells:
    return columns.cells_of(source, target, load_space, _table_of)


prominence = cached(32, key=lambda pair, drawn: (pair, drawn, drawn.categories))(
    lambda pair, drawn: scene.prominent_rows(pair.source, drawn)
)


def table_stamp(spec: SpaceSpec) -> Stamps:
    """The modification times and sizes of the files of a space, by which a cache notices that they have
    changed. For an encoding of a table, those of the table. Raises a SpaceError if the session may not read
    them."""
    if spec.dataset is None or spec.dataset.source != "file":
        return stamp(spec)
    return file_stamps([dataset_place(spec.dataset)])


def colors_of(workspace: Workspace, pair: Match) -> list[str]:
    labels = []
    if pair.source.labels is not None:
        labels = ["labels"]
    tables = (f"{COLUMN}{name}" for name in table_columns(workspace))
    return ["pivots", *labels, *columns.columns_of(pair), *tables]


def table_columns(workspace: Workspace) -> list[str]:
    """The columns of the tags, and those in the tables of both spaces."""
    return [*columns.tag_columns(workspace.tags), *_columns_of_tables(workspace)]


def _columns_of_tables(workspace: Workspace) -> list[str]:
    """The columns in the tables of both spaces, each name once. Tables that cannot be read now are left
    out."""
    names: list[str] = []
    ends = [workspace.source, workspace.target]
    # Read the table of metadata once if both spaces name the same one, because opening it takes seconds.
    if ends[0].option("metadata") and ends[0].options == ends[1].options:
        ends = ends[:1]
    for end in ends:
        try:
            names += _table_of(end).names
        except SpaceError:
            continue
    return list(dict.fromkeys(names))


def rows_table(pair: Match, workspace: Workspace, rows: np.ndarray, items: Any = None) -> pd.DataFrame:
    """A table of rows (m,) with their texts and everything that is known about them."""
    texts = None
    if items is not None and items.has_texts:
        texts = items.texts
    tables = _columns_of_tables(workspace)
    return columns.rows_table(pair, rows, tables, cells(pair, workspace), texts, workspace.tags)


def _facets_key(pair: Match, workspace: Workspace) -> tuple:
    return pair, tuple(table_columns(workspace)), _tables(COLUMN, workspace)


@cached(6, "Reading the columns …", key=_facets_key)
def all_facets(pair: Match, workspace: Workspace) -> tuple[Facet, ...]:
    """The columns by which the rows of the pair can be filtered."""
    names = filters.filter_columns(pair, table_columns(workspace))
    return filters.facets_of(pair, names, cells(pair, workspace))


def workspace_facets(pair: Match, workspace: Workspace) -> tuple[Facet, ...]:
    """The columns of `all_facets`. If the filter keeps chosen ids, one more column tells which rows these
    are."""
    return (*all_facets(pair, workspace), *filters.selected_facet(pair, workspace.look.filter))


def passing_rows(pair: Match, workspace: Workspace) -> np.ndarray:
    """Whether each row passes the filter, (n,) bool; all rows without a filter."""
    conditions = workspace.look.filter
    if not conditions:
        return np.ones(len(pair), dtype=bool)
    return passing(workspace_facets(pair, workspace), conditions, len(pair))


@cached(8, key=lambda pair, now: (*_facets_key(pair, now), now.look.filter, now.anchors))
def filtered_pair(pair: Match, workspace: Workspace) -> Match:
    """The pair restricted to the filtered rows and the anchors. Anchors that the filter hides are kept but
    never scored."""
    met = passing_rows(pair, workspace)
    anchors = np.zeros(len(pair), dtype=bool)
    anchors[pair.source.rows(workspace.anchors)] = True
    rows = np.flatnonzero(met | anchors)
    outside = pair.ids[anchors & ~met].tolist()
    source = pair.source.take(rows)
    target = pair.target.take(rows)
    return replace(
        pair,
        source=source.with_columns(ids=mark_unscored(source.ids, outside)),
        target=target.with_columns(ids=mark_unscored(target.ids, outside)),
    )


_table_of = cached(8, key=lambda spec: (spec, table_stamp(spec)))(TableColumns)
