"""The bar above every place: Data, the pair and its anchors if the place uses them, undo, redo, and the
session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app import compute, exports, messages, saving, session, undo
from app.compare.headline import comparing
from app.named_files import with_file_paths
from app.page_settings import menu, open_tab
from app.places import CONNECT, DATA, EXPLORE, START, Place, go
from app.plain_text import plain, plain_name
from app.session_archive import SessionArchive, has_own_data, paths_in, unpack
from app.widgets import (
    choose_anchors,
    projection_choosers,
    score_choosers,
    space_choosers,
    space_labels,
    strategy_choosers,
)
from app.workspace import MOST_MODELS, Workspace, from_session_file, session_json, with_selection
from relcore.base.environment import device_in_words, resolve
from relcore.base.errors import NoCommonId, SpaceError
from relcore.base.numbers import and_list, counted
from relcore.base.records import last_part, without_paths
from relcore.catalog.catalog import UNSCORED, SpaceSpec, listed
from relcore.engine.device import cached_size
from relcore.files import selections
from relcore.spaces.ids import GuessedIds
from relcore.spaces.matching import Match

_DRAWN = "relscope.drawn-page"
_MENU = "toolbar.session"
_SAVED = "relscope.saved-session"
_JSON = "relscope-session.json"
_ZIP = "relscope-session.zip"
_LEADS = "relscope.opened-session-leads"  # whether the next run leads to what an opened session compares
_TO_DRAG = 8  # number of anchors of which each moves the maps visibly
_STEPS_SHOWN = 5  # maximum number of undo steps listed in the menu of the session
_ON_THE_PAIR = ("Invert", "Link")  # tabs for the pair of the toolbar; other tabs of Connect choose spaces

# The outline of two maps, until these are computed.
OUTLINE = (
    '<div class="relscope-outline" role="status"><p>Reading the files and drawing the maps …</p>'
    "<i></i><i></i></div>"
)
_said: ContextVar[DeltaGenerator | None] = ContextVar("what waiting shows", default=None)

_opens: ContextVar[bool] = ContextVar("whether this run opens its page", default=False)


class _Awaited(NamedTuple):
    """The toolbar that this run still has to draw."""

    place: Place
    bar: DeltaGenerator
    is_shown: bool  # whether the browser already shows this place


_awaited: ContextVar[_Awaited | None] = ContextVar("awaited toolbar", default=None)


def lead_to_opened(place: Place | None) -> None:
    """Open Explore if the user has just opened a session file."""
    if st.session_state.pop(_LEADS, False) and place is not EXPLORE:
        go(EXPLORE)


def waiting(place: Place | None) -> None:
    """If the user comes to Explore from another page, show which models are compared, above an outline of the
    maps. Reading the files and computing the maps take a while. `end_waiting` removes both."""
    said = st.empty()
    _said.set(said)
    opens = place is EXPLORE and st.session_state.get(_DRAWN) not in (None, place.name)
    if opens and (told := comparing(session.workspace())):
        said.html(f"{told}{OUTLINE}")


def end_waiting() -> None:
    if (said := _said.get()) is not None:
        said.empty()
        _said.set(None)


def opens_page() -> bool:
    """Whether the browser does not show this run's page yet."""
    return _opens.get()


@contextmanager
def around(place: Place | None) -> Iterator[None]:
    """Draw the toolbar of this run. The page is drawn within this block. If the page fails, the toolbar is
    still drawn.

    The browser draws what arrives first, and the choosers of the toolbar take as long as the panes. So
    Explore sends its panes first if the browser shows nothing yet or already shows Explore. If `place` is
    None, the page has no toolbar.
    """
    if place is None:
        yield
        return
    drawn = st.session_state.get(_DRAWN)
    bar = st.container(key="toolbar")
    _awaited.set(_Awaited(place, bar, drawn == place.name))
    _opens.set(drawn != place.name)
    if place is not EXPLORE or drawn not in (place.name, None):
        _draw()
    st.session_state[_DRAWN] = place.name
    # Not `finally`: Streamlit ends a page that it stops or reruns by a BaseException, and this run then draws
    # nothing more.
    try:
        yield
    except Exception:
        _draw()
        raise
    _draw()


@contextmanager
def panes_first(above: Callable[[], None], *, scored_quickly: bool) -> Iterator[None]:
    """Compute the panes in this block first, then `above` and the toolbar, although these stand over the
    panes on the page. If the browser shows nothing yet and the scores are slow (not `scored_quickly`), the
    toolbar and `above` are drawn first."""
    awaited = _awaited.get()
    if awaited is None or not (awaited.is_shown or scored_quickly):
        _draw()
        above()
        yield
        return
    try:
        yield
    except Exception:
        _draw()
        above()
        raise
    _draw()
    above()


def _draw() -> None:
    """Draw the toolbar if this run has not drawn it yet. Start has no button for data here, because the page
    has a larger one."""
    if (awaited := _awaited.get()) is None:
        return
    _awaited.set(None)
    place, bar, _ = awaited
    run = get_script_run_ctx()
    # If a page drew these widgets, they would belong to that page and lose their values on other pages.
    with run.run_with_active_hash(run.pages_manager.main_script_hash), bar:
        row = st.container(horizontal=True, vertical_alignment="center", gap="small", key="toolbar-row")
        workspace = session.workspace()
        with row:
            if place is not START and st.button(
                "Data",
                key="toolbar.data",
                help="Your own vectors, texts or pictures, and those that are bundled",
                icon=":material/database:",
                disabled=place is DATA,
            ):
                go(DATA)
            tab = ""
            if place is CONNECT:
                tab = open_tab(CONNECT.key)
            if place in (EXPLORE, DATA) or tab in _ON_THE_PAIR:
                space_choosers(workspace)
                if place is EXPLORE:
                    _models(workspace)
                models = ()
                if place is EXPLORE:
                    models = workspace.models
                pair = _pair_with_caption(workspace, bar, models)
                if pair and (place is EXPLORE or tab == "Invert" or not _is_unpaired(workspace, pair)):
                    _anchors(workspace, pair)
        with st.container(horizontal=True, vertical_alignment="center", key="history"):
            undo.buttons(place)
            _session_file(workspace)
    st.query_params.from_dict(saving.address(settings=place is not START))


def _models(workspace: Workspace) -> None:
    """For each further model, draw a button that removes it. Then draw a chooser that adds a model."""
    labels = space_labels(workspace.spaces)
    for number, spec in enumerate(workspace.others):
        look = {"icon": ":material/close:", "type": "tertiary"}
        left = tuple(other for other in workspace.others if other != spec)
        st.button(
            f"Remove {plain_name(labels[spec])}",
            key=f"models.remove-{number}",
            **look,
            on_click=session.edit,
            args=(f"remove {labels[spec]}",),
            kwargs={"others": left},
        )
    if len(workspace.models) == MOST_MODELS:
        return
    with menu(
        "Add model",
        f"models.add-{len(workspace.models)}",
        icon=":material/add:",
        type="tertiary",
        help=f"Shows a model beside the pair, up to {MOST_MODELS} models in all",
    ) as is_open:
        if not is_open:
            return
        others = [spec for spec in workspace.spaces if spec not in workspace.models]
        shared = {spec: compute.shared_rows(*workspace.models, spec) for spec in others}
        fits = {spec: n for spec, n in shared.items() if isinstance(n, int) and n >= compute.LEAST_HELD_OUT}
        for number, (spec, n) in enumerate(fits.items()):
            st.button(
                plain_name(labels[spec]),
                key=f"models.choose-{number}",
                on_click=session.edit,
                args=(f"add {labels[spec]}",),
                kwargs={"others": (*workspace.others, spec)},
                width="stretch",
            )
            st.caption(f"{counted(n, 'row')} in all models")
        if not fits:
            st.caption("No other model in this session has these rows. A third model needs the same ids.")
        st.caption(f"To compare more than {MOST_MODELS} models, open Connect › Universe.")
        if st.button("Load or encode a model", key="models.data", icon=":material/database:"):
            go(DATA)
        if left := [spec for spec in others if spec not in fits]:
            with st.expander(f"{len(left)} cannot be added"):
                for spec in left:
                    why = str(shared[spec]).partition(";")[0]
                    if why.isdigit():
                        why = f"only {why} in all models"
                    st.caption(f"**{plain_name(labels[spec])}**: {plain(why)}")
                if st.button("Pair rows without ids", key="models.link", icon=":material/hub:"):
                    go(CONNECT, "Link")


def _pair_with_caption(
    workspace: Workspace, notes: DeltaGenerator, models: Sequence[SpaceSpec] = ()
) -> Match | None:
    """Match the rows of the pair or, if given, of all `models`. Draw a caption that tells how many rows
    match, and further remarks in `notes`."""
    try:
        if models:
            pair = compute.matched_models(*models)
        else:
            pair = compute.matched_models(workspace.source, workspace.target)
    except NoCommonId:
        st.caption(":material/link_off: No row is paired yet: the two spaces have no id in common.")
        return None
    except SpaceError:  # the page shows the error, and the choosers can be used
        st.caption(":material/link_off: These two spaces cannot be compared. Choose another space.")
        return None
    source = pair.source.dimension
    target = pair.target.dimension
    unknown = _is_unpaired(workspace, pair)
    if unknown:
        paired = ", not paired yet"
    elif pair.others:
        paired = f" in all {len(pair.spaces)}"
    else:
        paired = " in both"
    facts = [f"{counted(len(pair), 'row')}{paired}"]
    if not pair.others:
        if source == target:
            dimensions = f"{source} d"
        else:
            dimensions = f"{source} d and {target} d"
        facts.append(dimensions)
    if pair.n_source_only or pair.n_target_only:
        alone = f"{pair.n_source_only:,} of the source, {pair.n_target_only:,} of the target"
        facts.append(f"rows without a partner, left out: {alone}")
    st.caption(" · ".join(facts), width="content")
    with notes:
        _notes(workspace, pair)
    return pair


def _is_unpaired(workspace: Workspace, pair: Match) -> bool:
    return not pair.others and compute.is_paired_by_order(workspace.source, workspace.target)


def _notes(workspace: Workspace, pair: Match) -> None:
    if isinstance(pair.ids, GuessedIds):
        n = f"{len(pair.ids.marks):,}"
        st.caption(f":material/hub: Pairs found by Link. Only the {n} confirmed ones are scored.")
    ends = workspace.source, workspace.target
    if removed := {one for end in ends for one in listed(end, UNSCORED)}.intersection(pair.ids):
        rows = counted(len(removed), "removed suspect is", "removed suspects are")
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f":material/visibility_off: {rows} not scored on any page.", width="content")
            st.button(
                "Score these rows again",
                on_click=session.score_again,
                key="toolbar.score-again",
                type="tertiary",
                icon=":material/undo:",
            )
    if pair.n_zero:
        one = "zero vector is left out, because it has"
        more = "zero vectors are left out, because they have"
        messages.warning(f"{counted(pair.n_zero, one, more)} no direction.")


def _anchors(workspace: Workspace, pair: Match) -> None:
    label = counted(len(workspace.anchors), "anchor")
    with menu(label, "toolbar.anchors", icon=":material/star:") as is_open:
        if not is_open:
            return
        strategy_choosers(pair, "anchors")
        strategy, n_anchors, random_state = session.anchors_origin(workspace)
        st.button(
            "Draw again",
            icon=":material/casino:",
            help="Uses the same strategy with another random state",
            disabled=strategy == "most-frequent",
            on_click=session.guarded,
            args=(choose_anchors, pair, strategy, min(n_anchors, len(pair)), random_state + 1),
            width="stretch",
        )
        st.button(
            f"{_TO_DRAG} anchors to drag",
            icon=":material/drag_pan:",
            help=f"Chooses {_TO_DRAG} anchors by k-means. With so few, each star that you drag on a map moves"
            " both maps.",
            disabled=len(pair) < _TO_DRAG,
            on_click=session.guarded,
            args=(_few_to_drag, pair),
            width="stretch",
            key="toolbar.to-drag",
        )
        if not workspace.by_strategy:
            st.caption(f"{len(workspace.pinned)} pinned.")
        with st.expander("Method details", icon=":material/tune:"):
            projection_choosers(workspace)
            score_choosers(workspace)


def _few_to_drag(pair: Match) -> None:
    """Choose few anchors and show the maps relative to them, as one step."""
    workspace = session.workspace()
    ids = compute.select_anchors(pair, _TO_DRAG, "k-means", 0)
    few = workspace.with_anchors(ids, f"k-means {_TO_DRAG} 0")
    session.set_workspace(f"{_TO_DRAG} anchors to drag", replace(few, panes=("relative",)))


def _session_file(workspace: Workspace) -> None:
    with menu("Session", _MENU, icon=":material/save:", type="tertiary") as is_open:
        if not is_open:
            return
        digests = {spec: compute.digest_or_blank(spec) for spec in workspace.spaces}
        chosen = session.selection()
        saved = st.session_state.setdefault(_SAVED, _Saved())
        saved.menu = workspace, chosen
        exports.download(
            "Save session",
            partial(_saved_json, saved, digests),
            _JSON,
            "application/json",
            "toolbar.save",
            width="stretch",
        )
        if has_own_data(workspace):
            _save_with_data(saved, digests)
        _say_what_was_saved(saved)
        uploaded = st.file_uploader("Open a session file", type=["json", "zip"], key="session.file")
        if uploaded is not None:
            st.button(
                "Open the session",
                type="primary",
                on_click=_open_session,
                args=(uploaded,),
                width="stretch",
            )
        st.caption(
            "A session file holds your choices: spaces, anchors, tags, colours, filter, removed rows and"
            " selection. A .json names your files and does not contain them: load them first, then open it. A"
            " .zip contains them. For the bundled spaces, the address bar is a link to this view."
        )
        st.button(
            "Start a new session",
            help="Can be undone, as any other step.",
            icon=":material/add:",
            on_click=saving.start_new,
            width="stretch",
        )
        if steps := [plain_name(step) for step, _ in session.history().steps[0]]:
            latest = "; ".join(steps[: -_STEPS_SHOWN - 1 : -1])
            st.caption(f":material/undo: {counted(len(steps), 'step')} to undo. The latest: {latest}.")
        if resolve() != "cpu":
            n, n_bytes = cached_size()
            now = f"{counted(n, 'array')} of rows, {n_bytes / 1e9:.2f} GB"
            st.caption(f":material/memory: {device_in_words()}, all sessions: {now}.")


@dataclass
class _Saved:
    """The workspace and the selection for which the menu was drawn, those that were saved last, and a note on
    that file. The thread of a download writes the last two."""

    menu: tuple[Workspace, tuple[str, ...]] = (Workspace(), ())
    content: tuple[Workspace, tuple[str, ...]] | None = None
    note: str = ""

    def tell(self, name: str, n_bytes: int, content: tuple[Workspace, tuple[str, ...]], files: str) -> None:
        self.content = content
        self.note = f"Saved {name}, {_size(n_bytes)}: {_in_words(*content, files)}."


def _saved_json(saved: _Saved, digests: dict[SpaceSpec, str]) -> str:
    workspace, chosen = saved.menu
    text = session_file(workspace, digests, chosen)
    files = ""
    if has_own_data(workspace):
        files = " (not their files)"
    saved.tell(_JSON, len(text.encode()), (workspace, chosen), files)
    return text


def _saved_archive(saved: _Saved, archive: SessionArchive) -> bytes:
    content = archive.to_bytes()
    saved.tell(_ZIP, len(content), saved.menu, " (with their files)")
    return content


@st.fragment(run_every=1)
def _say_what_was_saved(saved: _Saved) -> None:
    """Say which file the last click saved, until something changes. No run of the page follows the click, so
    this asks again and again while the menu is open."""
    if saved.content == saved.menu:
        messages.success(saved.note)


def _in_words(workspace: Workspace, chosen: tuple[str, ...], files: str) -> str:
    """What a saved session holds."""
    parts = [f"{counted(len(workspace.spaces), 'space')}{files}", counted(len(workspace.anchors), "anchor")]
    others = ((workspace.tags, "tag"), (workspace.look.filter, "filter"), (chosen, "selected row"))
    parts += [counted(len(values), thing) for values, thing in others if values]
    return and_list(parts)


def _size(n_bytes: int) -> str:
    if n_bytes < 1e6:
        return f"{max(1, round(n_bytes / 1e3))} KB"
    return f"{n_bytes / 1e6:,.1f} MB"


def _save_with_data(saved: _Saved, digests: dict[SpaceSpec, str]) -> None:
    try:
        archive = SessionArchive.of(saved.menu[0], digests, saved.menu[1])
    except SpaceError as error:
        st.caption(f":material/folder_zip: No *Save with data*: {plain(str(error))}")
        return
    exports.download(
        "Save with data",
        partial(_saved_archive, saved, archive),
        _ZIP,
        "application/zip",
        "toolbar.save-with-data",
        icon=":material/folder_zip:",
        width="stretch",
        help="One file to send: the session and the vectors of its spaces.",
    )


def session_file(workspace: Workspace, digests: dict, selection: tuple[str, ...] = ()) -> str:
    """The content of the session file that users download. It names files without their folders."""
    return with_selection(without_paths(session_json(workspace, digests)), selection)


def _read_session(uploaded: Any) -> tuple[bytes, Callable[[Any], Any]]:
    """The content of a session file, and the function that finds the files of its spaces. An archive is
    unpacked into the session's uploads."""
    if not uploaded.name.lower().endswith(".zip"):
        return uploaded.getvalue(), with_file_paths
    path = session.keep_upload(uploaded)
    folder = path.with_suffix("")
    return unpack(path, folder), paths_in(folder)


def _open_session(uploaded: Any) -> None:
    try:
        content, rejoined = _read_session(uploaded)
        workspace, digests = from_session_file(content, rejoined)
        chosen = selections.from_session_file(content)
        for spec, digest in digests.items():
            now = compute.load_space(spec).digest
            if digest and now != digest:
                raise SpaceError(
                    f"session file: {last_part(spec.name)!r} has changed since it was saved (expected content"
                    f" {digest[:8]}…, got {now[:8]}…); restore the original, or choose the spaces again"
                )
    except SpaceError as error:
        session.notify(str(error))
    else:
        session.set_workspace("open session", workspace)
        session.select(chosen or ())
        spaces = counted(len(workspace.spaces), "space")
        session.announce(f"Session opened: {spaces}, {counted(len(workspace.anchors), 'anchor')}.")
        st.session_state[_MENU] = False
        st.session_state[_LEADS] = True
        if chosen is None:
            session.announce("The selection was too large for the session file, so no row is selected.")
