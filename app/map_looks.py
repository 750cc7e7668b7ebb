"""Caches around how a map looks beside where its points lie, by the rules of `compute`: keys are digests."""

from __future__ import annotations

import numpy as np
import streamlit as st

from app import compute
from app.items import Items
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.tables_beside import more_columns
from relcore.charts.scene import Clusters
from relcore.compare.columns import Cells, cells_of, colored, columns_of, named_clusters, needs_clusters
from relcore.compare.scene import MapLook, drawn_view, prominent_rows, second_view
from relcore.encoders.dataset import dataset_place
from relcore.maps.reduction import ReductionSpec
from relcore.maps.views import COLUMN, View, ViewSpec
from relcore.runs.digest import digest_of
from relcore.spaces.space import LatentSpace, Match

_Tables = tuple[tuple[SpaceSpec, tuple], ...]


def view(pair: Match, workspace: Workspace) -> View:
    """Rows to draw and their colours."""
    spec = workspace.view
    anchors = (
        workspace.anchors if spec.show_anchors and not spec.everything else ()
    )  # among all rows the anchors are drawn anyway
    tables = _tables(spec.color_by, workspace)
    return _view(
        compute.pair_key(pair), spec, compute.anchors_key(anchors), workspace.reduction, tables, pair, anchors
    )


@st.cache_resource(max_entries=32, show_spinner=False)
def _view(
    key: str,
    spec: ViewSpec,
    anchors: str,
    reduction: ReductionSpec,
    tables: _Tables,
    _pair: Match,
    _anchors: tuple[str, ...],
) -> View:
    return colored(_pair, drawn_view(_pair.source, spec, _anchors, reduction), spec, _cells(tables))


def second(pair: Match, drawn: View, workspace: Workspace) -> View | None:
    """The drawn rows in the colours of the second colouring; None where there is none."""
    look, tables = MapLook(second=workspace.look.second), _tables(workspace.look.second, workspace)
    return _second(compute.pair_key(pair), drawn.digest, workspace.view, look, tables, pair, drawn)


@st.cache_resource(max_entries=32, show_spinner=False)
def _second(
    key: str, rows: str, spec: ViewSpec, look: MapLook, tables: _Tables, _pair: Match, _drawn: View
) -> View | None:
    return second_view(_pair, _drawn, spec, look, _cells(tables))


def clusters(
    pair: Match,
    drawn: View,
    other: View | None,
    coordinates: np.ndarray,
    workspace: Workspace,
    items: Items | None,
) -> Clusters | None:
    """Named groups of the rows that the colours leave without a name; None where there are none, or names
    are off.
    """
    if not workspace.look.named or not needs_clusters(drawn, other):
        return None
    texts = items if items is not None and items.has_texts else None
    key = (compute.pair_key(pair), drawn.digest, digest_of(coordinates), texts.key if texts else "")
    return _clusters(key, pair.source, drawn.rows, coordinates, texts)


@st.cache_resource(max_entries=16, show_spinner=False)
def _clusters(
    key: tuple[str, ...],
    _space: LatentSpace,
    _rows: np.ndarray,
    _coordinates: np.ndarray,
    _items: Items | None,
) -> Clusters | None:
    return named_clusters(_space, _rows, _coordinates, _items.texts if _items else None)


def _tables(color_by: str, workspace: Workspace) -> _Tables:
    """The spaces whose tables may have the column of a colour, with what tells whether the tables have
    changed.
    """
    ends = (workspace.source, workspace.target) if color_by.startswith(COLUMN) else ()
    return tuple((end, table_stamp(end)) for end in ends)


def _cells(tables: _Tables) -> Cells | None:
    return cells_of(*(end for end, _ in tables), compute.load_space) if tables else None


def table_stamp(spec: SpaceSpec) -> tuple[tuple[int, int], ...]:
    """`compute.stamp`, of an encoding that of the table that it was made of. Errors where the session may
    not read it.
    """
    if spec.dataset is None or spec.dataset.source != "file":
        return compute.stamp(spec)
    path = dataset_place(spec.dataset)
    return ((about.st_mtime_ns, about.st_size),) if path.is_file() and (about := path.stat()) else ()


def prominence(pair: Match, drawn: View) -> np.ndarray:
    """Positions among the drawn rows, those first whose names matter most."""
    return _prominence(compute.pair_key(pair), drawn.digest, digest_of(drawn.categories), pair.source, drawn)


@st.cache_resource(max_entries=32, show_spinner=False)
def _prominence(key: str, rows: str, categories: str, _space: LatentSpace, _view: View) -> np.ndarray:
    return prominent_rows(_space, _view)


def colors_of(workspace: Workspace, pair: Match) -> list[str]:
    """What the rows of this pair can be coloured by."""
    labels = ["labels"] if pair.source.labels is not None else []
    return ["pivots", *labels, *columns_of(pair), *(f"{COLUMN}{name}" for name in table_columns(workspace))]


def table_columns(workspace: Workspace) -> list[str]:
    """The columns of the tables that came with the two spaces, each name once; none of a table that cannot
    be read now.
    """
    found: list[str] = []
    for end in (workspace.source, workspace.target):
        try:
            found += _more_columns(end, table_stamp(end))
        except SpaceError:
            continue
    return list(dict.fromkeys(found))


@st.cache_data(max_entries=32, show_spinner=False)
def _more_columns(spec: SpaceSpec, stamp: tuple) -> tuple[str, ...]:
    return more_columns(spec)
