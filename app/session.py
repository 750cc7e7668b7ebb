"""The browser session in Streamlit's session state, and the functions that change it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app import compute, messages, sharing
from app.sharing import Member
from app.workspace import (
    BUNDLED,
    MOST_ANCHORS,
    History,
    Workspace,
    settled_poles,
    settled_tags,
    strategy_of,
)
from relcore.base.access import AccessContext, set_asker
from relcore.base.errors import RelscopeError, SpaceError
from relcore.base.numbers import counted
from relcore.catalog.catalog import UNSCORED, SpaceSpec, listed, with_unscored
from relcore.compare.filters import filter_columns
from relcore.figures.colorings import SELECTED_ROWS, Condition, column_title
from relcore.maps.pane_maps import ViewSpec, default_view
from relcore.represent.strategies import USUAL_ANCHORS, usual_anchors
from relcore.spaces.matching import Match

_HISTORY = "relscope.history"
_SELECTION = "relscope.selection"
_MEMBER = "relscope.member"
_NOTICE = "relscope.notice"
_NEWS = "relscope.news"
_AWAITED = "relscope.encodings-awaited"
# The rights of the session whose function runs now, outside the run of a page.
_carried: ContextVar[AccessContext | None] = ContextVar("carried rights", default=None)
# Keys of the session state: the encodings to submit; whether to compare their spaces.
ENCODE = "relscope.encode"
COMPARE_ENCODED = "relscope.compare-when-encoded"


def reduce(before: Workspace, changed: Workspace) -> Workspace:
    """The changed workspace with all its settings made consistent. Every change passes through here.

    - There is at least one space, and no space is listed twice. A newly chosen source or target is added to
      the spaces. If the source or target is removed, another space replaces it.
    - The other models are among the spaces, and none of them is the source or the target.
    - Anchors, example rows, named sets, tags and their ids keep their order and are listed once. Only anchors
      can be pinned.
    - Choosing another colouring or other spaces shows all classes again. Choosing other spaces also removes
      the filter and the poles of the axis, and ends the example in Migrate. Poles lose deleted tags.

    In the next run, `fit_to_models` adjusts the settings that depend on the rows of the spaces. Raises a
    SpaceError for more than `MOST_ANCHORS` anchors, and for too many tags.
    """
    anchors = _distinct(changed.anchors)
    if len(anchors) > MOST_ANCHORS:
        raise SpaceError(
            f"anchors: expected at most {MOST_ANCHORS:,} in the app, got {len(anchors):,}; choose fewer, or"
            " use a script"
        )
    ends = (changed.source, changed.target)
    old = (before.source, before.target)
    chosen = [end for end, earlier in zip(ends, old, strict=True) if end != earlier]
    spaces = _distinct((*changed.spaces, *chosen)) or BUNDLED
    present = set(anchors)
    look = changed.look
    source = _among(spaces, *ends)
    if ends != old and look.filter == before.look.filter:
        look = replace(look, filter=())
    if ends != old or before.view.color_by != changed.view.color_by:
        look = replace(look, hidden=())
    if ends != old or before.look.second != look.second:
        look = replace(look, second_hidden=())
    poles = changed.poles
    if set(ends) != set(old) and poles == before.poles:
        poles = ()
    target = _among(spaces, changed.target, source)
    tags = settled_tags(changed.tags)
    others = _distinct(changed.others)
    settled = replace(
        changed,
        spaces=spaces,
        source=source,
        target=target,
        others=tuple(spec for spec in others if spec in spaces and spec not in (source, target)),
        anchors=anchors,
        pinned=tuple(identifier for identifier in _distinct(changed.pinned) if identifier in present),
        named_sets=tuple((name, _distinct(ids)) for name, ids in dict(changed.named_sets).items()),
        tags=tags,
        poles=settled_poles(poles, tags),
        view=replace(changed.view, pivots=_distinct(changed.view.pivots)),
        look=look,
        example=changed.example and (ends == old or not before.example),
    )
    if settled == changed:
        return changed
    return settled


def _distinct(values: tuple) -> tuple:
    return tuple(dict.fromkeys(values))


def _among(spaces: tuple[SpaceSpec, ...], end: SpaceSpec, other: SpaceSpec) -> SpaceSpec:
    if end in spaces:
        return end
    return next((space for space in spaces if space != other), spaces[0])


def history(first: Callable[[], Workspace] = Workspace) -> History:
    if _HISTORY not in st.session_state:
        begun = first()
        st.session_state[_HISTORY] = History(reduce(begun, begun))
    return st.session_state[_HISTORY]


def begun() -> bool:
    return _HISTORY in st.session_state


def resume(saved: History) -> None:
    st.session_state[_HISTORY] = saved


def workspace() -> Workspace:
    return history().present


def set_workspace(step: str, changed: Workspace) -> None:
    """Make this the workspace, as one step that can be undone."""
    history().edit(step, reduce(workspace(), changed))


def replace_workspace(changed: Workspace) -> None:
    """Make this the workspace, without adding a step to the history. Undone steps can still be redone."""
    history().present = reduce(workspace(), changed)


def edit(step: str, **changes: Any) -> None:
    set_workspace(step, replace(workspace(), **changes))


def edit_spec(step: str, field: str, **changes: Any) -> None:
    edit(step, **{field: replace(getattr(workspace(), field), **changes)})


def show_names(named: bool) -> None:
    """Show or hide the names of the classes on the maps."""
    step = "hide names"
    if named:
        step = "show names"
    edit_spec(step, "look", named=named)


def compare(step: str, source: SpaceSpec, target: SpaceSpec, spaces: Iterable[SpaceSpec] = ()) -> None:
    """Compare these two spaces, and add `spaces` to the session, as one step.

    If the session shows the bundled example and both new spaces are the user's own, they replace it. If
    neither space was compared before, the settings of the maps are reset to their defaults.
    """
    present = workspace()
    ends = {source, target}
    known = _distinct((*present.spaces, *spaces, source, target))
    if present.models == BUNDLED and ends.isdisjoint(BUNDLED):
        known = tuple(spec for spec in known if spec not in BUNDLED)
        announce("Undo brings the example back.")
    elif ends == set(BUNDLED) and ends.isdisjoint(present.models):
        announce("Your spaces stay under Data. Undo compares them again.")
    if ends.isdisjoint(present.models):
        reduction = Workspace().reduction
    else:
        reduction = present.reduction
    edit(step, spaces=known, source=source, target=target, reduction=reduction)


def slide_spec(step: str, field: str, **changes: Any) -> None:
    """Change settings like `edit_spec`, but merge successive changes with the same name into one step, such
    as those of a moving slider."""
    present = workspace()
    changed = replace(present, **{field: replace(getattr(present, field), **changes)})
    if history().undo_step == step:
        replace_workspace(changed)
    else:
        set_workspace(step, changed)


def turn(to: tuple[float, ...]) -> None:
    """Set the rotation of the three-dimensional maps."""
    slide_spec("turn the maps", "look", turn=to)


def filter_rows(conditions: tuple[Condition, ...]) -> None:
    """Keep only rows that meet these conditions. Moving the same range of numbers again adds no
    further step."""
    changed = set(conditions) ^ set(workspace().look.filter)
    columns = {one.column for one in changed}
    if len(columns) == 1 and not any(one.classes for one in changed):
        slide_spec(f"filter by {column_title(columns.pop())}", "look", filter=conditions)
    else:
        step = "clear the filter"
        if conditions:
            step = "filter rows"
        edit_spec(step, "look", filter=conditions)


def guarded(change: Callable[..., None], *arguments: Any) -> None:
    """Run a change as a callback. If it raises an error, the page shows the error as a message and nothing
    changes."""
    try:
        change(*arguments)
    except RelscopeError as error:
        notify(str(error))


def migrate_example(chosen: bool) -> None:
    """Let Migrate show its example instead of the present pair until the pair changes. This is a step that
    can be undone."""
    step = "leave the example of Migrate"
    if chosen:
        step = "open the example of Migrate"
    edit(step, example=chosen)


def migrates_example() -> bool:
    """Whether Migrate shows its example: the user opened it, or the bundled spaces are still compared."""
    return workspace().example or workspace().models[:2] == BUNDLED


def set_anchors(step: str, ids: tuple[str, ...], anchors_from: str = "") -> None:
    guarded(set_workspace, step, workspace().with_anchors(ids, anchors_from))


def add_anchors(ids: tuple[str, ...]) -> None:
    anchors = workspace().anchors
    present = set(anchors)
    if new := tuple(identifier for identifier in dict.fromkeys(ids) if identifier not in present):
        set_anchors(f"add {_count(new)}", anchors + new)


def move_anchor(before: str, to: str) -> None:
    """Replace the anchor `before` by the row `to`. If that row is an anchor already, do nothing."""
    present = workspace()
    if before in present.anchors and to not in present.anchors:
        moved = tuple(to if one == before else one for one in present.anchors)
        set_anchors(f"move “{before}” to “{to}”", moved)


def remove_anchors(ids: tuple[str, ...]) -> None:
    free = set(ids) - set(workspace().pinned)
    anchors = workspace().anchors
    if gone := tuple(identifier for identifier in anchors if identifier in free):
        left = tuple(identifier for identifier in anchors if identifier not in free)
        set_anchors(f"remove {_count(gone)}", left)


def remove_suspects(ids: tuple[str, ...]) -> None:
    """Remove these anchors, except pinned ones, and exclude their rows from all scores, as one step."""
    present = workspace()
    gone = set(ids) & set(present.anchors) - set(present.pinned)
    if gone:
        left = tuple(identifier for identifier in present.anchors if identifier not in gone)
        marked = with_unscored(present.source, (*listed(present.source, UNSCORED), *gone))
        changed = with_spaces(present, {present.source: marked}).with_anchors(left)
        guarded(set_workspace, f"remove {counted(len(gone), 'suspect')}", changed)


def score_again() -> None:
    present = workspace()
    whole = {end: with_unscored(end, ()) for end in (present.source, present.target)}
    guarded(set_workspace, "score removed suspects again", with_spaces(present, whole))


def with_spaces(present: Workspace, instead: Mapping[SpaceSpec, SpaceSpec]) -> Workspace:
    """The workspace with some spaces replaced."""

    def replaced(specs: tuple[SpaceSpec, ...]) -> tuple[SpaceSpec, ...]:
        return tuple(instead.get(spec, spec) for spec in specs)

    source, target, *others = replaced(present.models)
    spaces = replaced(present.spaces)
    return replace(present, spaces=spaces, source=source, target=target, others=tuple(others))


def pin_anchors(ids: tuple[str, ...]) -> None:
    edit(f"pin {_count(ids)}", pinned=workspace().pinned + ids)


def unpin_anchors(ids: tuple[str, ...]) -> None:
    free = set(ids)
    pinned = tuple(identifier for identifier in workspace().pinned if identifier not in free)
    edit(f"unpin {_count(ids)}", pinned=pinned)


def _count(ids: tuple[str, ...]) -> str:
    if len(ids) == 1:
        return f"“{ids[0]}”"
    return f"{len(ids)} anchors"


def selection() -> tuple[str, ...]:
    return st.session_state.get(_SELECTION, ())


def select(ids: tuple[str, ...]) -> None:
    st.session_state[_SELECTION] = ids


def keep_upload(uploaded: Any, others: Iterable[Path] = ()) -> Path:
    """Keep an uploaded file. It gets another name than other files of this session and the `others`."""
    loaded = [Path(spec.name) for spec in workspace().spaces if spec.source == "file"]
    return sharing.keep_upload(uploaded, member().uploads_folder(), [*loaded, *others])


def member() -> Member:
    if _MEMBER not in st.session_state:
        st.session_state[_MEMBER] = Member()
    return st.session_state[_MEMBER]


def with_rights(function: Callable[[], Any]) -> Callable[[], Any]:
    """The function with the rights that this session has now. The browser asks for a download when no page
    runs; without these rights, the function could read no upload."""
    rights = member().asker

    def call() -> Any:
        token = _carried.set(rights)
        try:
            return function()
        finally:
            _carried.reset(token)

    return call


def _asker() -> AccessContext:
    if get_script_run_ctx(suppress_warning=True):
        return member().asker
    return _carried.get() or AccessContext()


set_asker(_asker)


def notify(text: str) -> None:
    st.session_state[_NOTICE] = text


def announce(text: str) -> None:
    st.session_state[_NEWS] = " ".join(filter(None, (st.session_state.get(_NEWS), text)))


def show_notices() -> None:
    if notice := st.session_state.pop(_NOTICE, None):
        messages.error(notice)
    if news := st.session_state.pop(_NEWS, None):
        messages.toast(news)


def encodes() -> bool:
    """Whether the session has encodings that are not yet submitted, finished or compared."""
    return any(map(st.session_state.get, (_AWAITED, ENCODE, COMPARE_ENCODED)))


def awaited_jobs() -> tuple[str, ...]:
    return st.session_state.get(_AWAITED, ())


def await_jobs(keys: tuple[str, ...]) -> None:
    st.session_state[_AWAITED] = keys


# The chosen spaces are fitted in the next run: Streamlit stops a long callback at the next click, and the
# choice would be lost.


def fit_to_models() -> None:
    """Adjust the workspace to the rows of its models, as part of the present step. Further models that share
    no rows with the others are removed. If the pair cannot be compared, nothing changes."""
    with suppress(SpaceError):  # the page shows this error, and another choice of the user corrects it
        present = workspace()
        joined = _with_joined(present)
        fitted = fit_to_pair(joined, compute.matched_models(*joined.models))
        if fitted == present:
            return
        replace_workspace(fitted)
        if left := len(present.others) - len(fitted.others):
            messages.toast(f"Left out: {counted(left, 'model')} without rows that all models share.")
        past, _ = history().steps
        other = past and set(past[-1][1].models).isdisjoint(present.models)
        lost = len(set(present.anchors) - set(fitted.anchors))
        # If both spaces are new, losing all anchors of the former spaces needs no message.
        if lost and not present.by_strategy and not (other and lost == len(set(present.anchors))):
            messages.toast(
                f"Left out: {counted(lost, 'anchor')} that {'is' if lost == 1 else 'are'} not in both spaces."
            )


def _with_joined(present: Workspace) -> Workspace:
    """The workspace with only those other models that fit. Models are added one by one; each must share rows
    with all models added before it, beginning with the pair."""
    joined = replace(present, others=())
    for spec in present.others:
        if isinstance(compute.shared_rows(*joined.models, spec), int):
            joined = replace(joined, others=(*joined.others, spec))
    return joined


def fit_to_pair(workspace: Workspace, pair: Match) -> Workspace:
    """The workspace with only the example rows and anchors that both spaces have.

    Anchors picked by hand are kept if both spaces have them. If an anchor chosen by a strategy is missing,
    all anchors are chosen again; `usual_anchors` gives their number. Raises a SpaceError if the pair has no
    rows to choose from.
    """
    index = pair.source.index
    labelled = pair.source.labels is not None
    colors = compute.colors_of(workspace, pair)
    second = ""
    if workspace.look.second in colors:
        second = workspace.look.second
    columns = [SELECTED_ROWS, *filter_columns(pair, compute.table_columns(workspace))]
    kept = tuple(one for one in workspace.look.filter if one.column in columns)
    view = _fitting_view(workspace.view, pair, colors)
    look = replace(workspace.look, second=second, filter=kept)
    fitted = replace(workspace, view=view, look=look)
    if not workspace.anchors and not workspace.anchors_from:  # the user removed all anchors
        return fitted
    kept = tuple(identifier for identifier in workspace.anchors if identifier in index)
    usable = labelled or not workspace.anchors_from.startswith("class-balanced")
    if kept and usable and (len(kept) == len(workspace.anchors) or not workspace.by_strategy):
        return fitted.with_anchors(kept, workspace.anchors_from)
    strategy, n_anchors, random_state = anchors_origin(workspace)
    if strategy == "class-balanced" and not labelled:
        strategy = "random"
    # A link may give a number of anchors without their ids. If a further model changes the shared rows, keep
    # the number that the user chose.
    if n_anchors == USUAL_ANCHORS or (workspace.anchors and not workspace.others):
        n_anchors = usual_anchors(len(pair))
    n_anchors = min(n_anchors, max(1, len(pair) // 2), MOST_ANCHORS)
    pinned = tuple(identifier for identifier in workspace.pinned if identifier in index)
    chosen = compute.select_anchors(pair, n_anchors, strategy, random_state)
    return fitted.with_anchors(fill_up(pinned, chosen, n_anchors), f"{strategy} {n_anchors} {random_state}")


def _fitting_view(view: ViewSpec, pair: Match, colors: list[str]) -> ViewSpec:
    pivots = tuple(pivot for pivot in view.pivots if pivot in pair.source.index)
    if pivots or (not view.pivots and view.color_by in colors):
        color_by = "pivots"
        if view.color_by in colors:
            color_by = view.color_by
        return replace(view, pivots=pivots, color_by=color_by)
    usual = default_view(pair.source)
    # If all rows are shown only because of colours by labels, show the examples again.
    everything = usual.everything or (view.everything and view.color_by != "labels")
    return replace(view, pivots=usual.pivots, color_by=usual.color_by, everything=everything)


def fill_up(pinned: tuple[str, ...], chosen: tuple[str, ...], n_anchors: int) -> tuple[str, ...]:
    """The pinned anchors, followed by as many of the chosen ones as are needed to reach `n_anchors`."""
    return tuple(dict.fromkeys((*pinned, *chosen)))[: max(n_anchors, len(pinned))]


def anchors_origin(workspace: Workspace) -> tuple[str, int, int]:
    """The strategy, number and random state of the anchors. Anchors chosen by hand get "random", their number
    and 0."""
    return strategy_of(workspace.anchors_from) or ("random", max(1, len(workspace.anchors)), 0)
