"""The one function through which every change of the workspace goes: what follows from a change is settled here.

It looks at the settings alone. What depends on the rows of the chosen spaces, such as whether they have an anchor, is settled
by `app.fitting` in the run that follows.
"""

from __future__ import annotations

from dataclasses import replace

from app.workspace import BUNDLED, MOST_ANCHORS, Workspace
from relcore.comparing.map_look import MapLook
from relcore.sources.catalog import SpaceSpec
from relcore.spaces import SpaceError


def reduce(before: Workspace, changed: Workspace) -> Workspace:
    """The changed workspace with the rest of its settings made consistent.

    - The spaces are distinct, and at least one. A source or target that was chosen joins them. One that was removed from
      them is replaced by another space, if possible not the one at the other end.
    - Anchors, pivots, named sets and their ids are distinct, in the order they were given in.
    - Only anchors are pinned: a pin goes when its anchor goes.
    - Hidden classes are those of the present colours: other colours or other spaces show all rows.
    - Nothing else changes: a reduction keeps its settings while another method is chosen.

    Raises
    ------
    SpaceError
        More than `MOST_ANCHORS` anchors.
    """
    anchors = _distinct(changed.anchors)
    if len(anchors) > MOST_ANCHORS:
        raise SpaceError(
            f"anchors: expected at most {MOST_ANCHORS:,} in the app, got {len(anchors):,}; choose fewer, or use a script"
        )
    chosen = [end for end, old in ((changed.source, before.source), (changed.target, before.target)) if end != old]
    spaces = _distinct((*changed.spaces, *chosen)) or BUNDLED
    source = _among(spaces, changed.source, changed.target)
    settled = replace(
        changed,
        spaces=spaces,
        source=source,
        target=_among(spaces, changed.target, source),
        anchors=anchors,
        pinned=_only(_distinct(changed.pinned), anchors),
        named_sets=tuple((name, _distinct(ids)) for name, ids in dict(changed.named_sets).items()),
        view=replace(changed.view, pivots=_distinct(changed.view.pivots)),
        look=_fitting_look(before, changed),
    )
    return changed if settled == changed else settled


def _fitting_look(before: Workspace, changed: Workspace) -> MapLook:
    look, same = changed.look, (before.source, before.target) == (changed.source, changed.target)
    if not (same and before.view.color_by == changed.view.color_by):
        look = replace(look, hidden=())
    if not (same and before.look.second == look.second):
        look = replace(look, second_hidden=())
    return look


def _distinct(values: tuple) -> tuple:
    return tuple(dict.fromkeys(values))


def _only(ids: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    present = set(known)
    return tuple(one for one in ids if one in present)


def _among(spaces: tuple[SpaceSpec, ...], end: SpaceSpec, other: SpaceSpec) -> SpaceSpec:
    """This end of the pair, or the first space that is not the other end; the other end itself where it is alone."""
    if end in spaces:
        return end
    return next((space for space in spaces if space != other), spaces[0])
