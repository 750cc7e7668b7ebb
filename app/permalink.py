"""Permalink: the small settings of a workspace in the address bar."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from contextlib import suppress

from app.workspace import MOST_NEIGHBOURS, OPENING_INVERSION, PANES, Workspace
from relcore.comparing.map_look import MapLook
from relcore.inverting.recovery import InversionSpec
from relcore.metrics.neighbours import CONVENTIONS
from relcore.names import REDUCTIONS, SIMILARITIES, STRATEGIES
from relcore.plain_json import parse
from relcore.spaces import SpaceError
from relcore.views import MOST_PIVOTS, need_color

_MOST_LETTERS = 200  # of a column's name


def to_query(workspace: Workspace) -> dict[str, str]:
    """The small settings that differ from the defaults, for the address bar. Long anchor lists need a session file."""
    usual = _query(Workspace())
    return {name: value for name, value in _query(workspace).items() if value != usual[name]}


def _query(workspace: Workspace) -> dict[str, str]:
    return {
        "similarity": workspace.projection.similarity,
        "center": str(int(workspace.projection.center)),
        "pivots": json.dumps(workspace.view.pivots, ensure_ascii=False),
        "nearest": str(workspace.view.n_nearest),
        "all": str(int(workspace.view.everything)),
        "method": workspace.reduction.method,
        "fit": workspace.reduction.fit,
        "panes": ",".join(workspace.panes),
        "k": str(workspace.k),
        "convention": workspace.convention,
        "anchors": workspace.anchors_from.replace(" ", ",") if workspace.by_strategy else "",
        "color": ""
        if workspace.view.color_by in ("pivots", "labels")
        else workspace.view.color_by,  # links of old have neither
        "second": f"{workspace.look.second_panes},{workspace.look.second}" if workspace.look.second else "",
        "inverse": ",".join(map(str, _inversion_values(workspace.inversion))),
    }


def from_query(query: Mapping[str, str], workspace: Workspace) -> Workspace:
    """The workspace with the settings of a permalink; invalid settings are ignored, because links get mangled."""
    view, projection, reduction = workspace.view, workspace.projection, workspace.reduction
    view = dataclasses.replace(view, pivots=_pivots(query.get("pivots", ""), view.pivots))
    view = dataclasses.replace(view, color_by=_color(query.get("color", ""), view.color_by))
    view = dataclasses.replace(view, n_nearest=_number(query.get("nearest", ""), 2000, view.n_nearest))
    if query.get("all") in ("0", "1"):
        view = dataclasses.replace(view, everything=query["all"] == "1")
    if query.get("similarity") in SIMILARITIES:
        projection = dataclasses.replace(projection, similarity=query["similarity"])
    if query.get("center") in ("0", "1"):
        projection = dataclasses.replace(projection, center=query["center"] == "1")
    method = query.get("method") if query.get("method") in REDUCTIONS else reduction.method
    fit = query.get("fit") if query.get("fit") in ("apart", "first") else reduction.fit
    reduction = dataclasses.replace(reduction, method=method, fit=fit)
    panes = tuple(query.get("panes", "").split(","))
    if not (len(panes) == 2 and panes[0] in PANES and panes[1] in PANES[1:]):
        panes = workspace.panes
    return dataclasses.replace(
        workspace,
        view=view,
        projection=projection,
        reduction=reduction,
        panes=panes,
        k=_number(query.get("k", ""), MOST_NEIGHBOURS, workspace.k),
        convention=query["convention"] if query.get("convention") in CONVENTIONS else workspace.convention,
        anchors_from=_origin(query.get("anchors", ""), workspace.anchors_from),
        inversion=_inversion(query.get("inverse", ""), workspace.inversion),
        look=_look(query.get("second", ""), workspace.look),
    )


def _inversion_values(spec: InversionSpec) -> tuple:
    if spec == OPENING_INVERSION:
        return ("auto",)
    *values, tuned = dataclasses.astuple(spec)
    return (*values, "auto") if tuned else tuple(values)


def _inversion(text: str, otherwise: InversionSpec) -> InversionSpec:
    if text == "auto":
        return OPENING_INVERSION
    given = text.split(",")
    tuned = given[-1] == "auto"
    fields = [field for field in dataclasses.fields(InversionSpec) if field.name != "tuned"]
    try:
        values = [type(field.default)(value) for field, value in zip(fields, given[:-1] if tuned else given, strict=True)]
        return InversionSpec(*values, tuned=tuned)
    except ValueError:  # a SpaceError is one
        return otherwise


def _number(text: str, most: int, otherwise: int) -> int:
    """A number from 1 to `most`, or else `otherwise`."""
    readable = text.isascii() and text.isdecimal() and len(text) <= 9
    return int(text) if readable and 1 <= int(text) <= most else otherwise


def _pivots(text: str, otherwise: tuple[str, ...]) -> tuple[str, ...]:
    try:
        pivots = tuple(parse(text, "pivots"))
    except (SpaceError, TypeError):
        return otherwise
    return pivots[:MOST_PIVOTS] if all(isinstance(pivot, str) and pivot for pivot in pivots) else otherwise


def _origin(text: str, otherwise: str) -> str:
    strategy, _, numbers = text.partition(",")
    n_anchors, _, random_state = numbers.partition(",")
    known = strategy in STRATEGIES and _number(n_anchors, 10**9, 0) and _number(random_state + "1", 10**9, 0)
    return f"{strategy} {n_anchors} {random_state}" if known else otherwise


def _color(text: str, otherwise: str) -> str:
    with suppress(SpaceError):
        need_color("color", text)
        return text if len(text) <= _MOST_LETTERS else otherwise
    return otherwise


def _look(text: str, otherwise: MapLook) -> MapLook:
    panes, _, second = text.partition(",")
    with suppress(SpaceError):
        return dataclasses.replace(otherwise, second=second, second_panes=panes) if second[:_MOST_LETTERS] else otherwise
    return otherwise
