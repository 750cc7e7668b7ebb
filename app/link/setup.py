"""The choosers of Link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import compute, messages, session
from app.items import items_of, with_items
from app.page_settings import remembered, segments
from app.places import EXPLORE, go
from app.plain_text import plain, plain_name
from app.results import place_of
from app.tables import chosen_rows
from app.widgets import setting_widget
from app.workspace import BUNDLED, MOST_ANCHORS, Workspace
from relcore.base.errors import SpaceError
from relcore.base.numbers import counted
from relcore.base.settings import settings_of
from relcore.catalog.catalog import SpaceSpec, numbered_spec
from relcore.catalog.row_tables import is_numbered, is_pairing_unknown
from relcore.files.links import Pairs, known_pairs, read_pairs
from relcore.linking.clusters import ENOUGH
from relcore.linking.link import BootstrapSpec, rows_it_takes
from relcore.linking.links_found import PROMISED
from relcore.linking.optimisation import LEARNING_RATE
from relcore.linking.pictures import FEWEST_SHARED, PAPER_ROWS
from relcore.spaces.matching import shared_ids
from relcore.spaces.space import LatentSpace

_HAVE = {"few": "A few pairs", "none": "No pair", "shared": "Test: hide the shared ids"}
_TOLD = {
    "none": "Only the shapes of the two spaces are compared.",
    "few": "Rows that you know to be the same thing: three pairs or more, better 15 to 30.",
}
_FROM = {"typed": "Typed", "file": "File", "anchors": "Anchors"}
LISTED = 2000  # maximum number of links that are listed for checking
_FEWEST_ROWS = 10
# The words of the example, 5,000 of which have no partner.
_NUMBERED_WORDS = numbered_spec(replace(BUNDLED[1], limit=15_000))


@dataclass(frozen=True, eq=False)
class BootstrapSetup:
    source_spec: SpaceSpec
    target_spec: SpaceSpec
    source: LatentSpace
    target: LatentSpace
    spec: BootstrapSpec
    details: DeltaGenerator | None = None  # container of the rarely used widgets


def choose(workspace: Workspace) -> BootstrapSetup | None:
    """Draw the choosers. If the settings are invalid, the page shows why, and None is returned."""
    specs = (workspace.source, workspace.target)
    source = compute.load_space(workspace.source)
    target = compute.load_space(workspace.target)
    if workspace.source == workspace.target:
        return messages.info(
            "Source and target are the same space. Choose two different spaces above.",
            ":material/info:",
        )
    for space in (source, target):
        if len(space) < _FEWEST_ROWS:
            return messages.info(
                f"Linking needs {_FEWEST_ROWS} rows or more in each space; {space.name} has {len(space)}.",
                ":material/info:",
            )
    is_linked = any(spec.rows_of.source == "renamed" for spec in specs)
    if is_linked:
        show_linked_notice()
    # Ids that nobody confirmed do not count as shared, because they may pair the wrong rows.
    n_shared = 0
    if not is_linked and not is_pairing_unknown(specs, (source, target)):
        n_shared = len(shared_ids([source, target]))
    n = min(len(source), len(target))

    above = st.container(horizontal=True, gap="small", vertical_alignment="center")
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="bootstrap-choosers"):
        start = _chosen_start(n, n_shared)
        beside = st.container(horizontal=True, width="content", vertical_alignment="bottom")
        details = st.popover("Method details", icon=":material/tune:", key="bootstrap.details")
    with above:
        _say_if_paired(workspace, n_shared, start == "shared")
    if start == "shared":
        _offer_unpaired(workspace, source)
    else:
        needs = ""
        if start == "none":
            needs = rows_it_takes(source, target)
        st.caption(f"{_TOLD[start]} {needs}")
    with details:
        settings = _method_settings(n)
    n_seeds = 0
    pairs: Pairs | None = ()
    with beside:
        if start == "shared":
            most = max(settings["n_anchors"] - 1, 0)
            n_seeds = _number("n_seeds", f"seeds-{most}", 0, most, min(15, most))
        elif start == "few":
            origin = _chosen_origin(workspace, n_shared)
    if start == "few":
        pairs = _pairs_of(origin, workspace, (source, target))
        if not pairs:
            return None
    if settings["method"] == "paper" and not (pairs or n_seeds):
        return messages.info(
            "The published method needs known pairs. Give some, or use self-learning.", ":material/info:"
        )
    settings["n_anchors"] = max(settings["n_anchors"], len(pairs))
    spec = BootstrapSpec(pairs=pairs, n_seeds=n_seeds, hide=start == "shared", k=workspace.k, **settings)
    return BootstrapSetup(*specs, source, target, spec, details)


def _chosen_start(n: int, n_shared: int) -> str:
    """Draw the chooser of what is known of the pairs, and return the key in `_HAVE`. `n` is the number of
    rows of the smaller space."""
    titles = {have: title for have, title in _HAVE.items() if have != "shared" or n_shared >= FEWEST_SHARED}
    if "shared" in titles:
        usual = "shared"
    elif n < ENOUGH:
        usual = "few"
    else:
        usual = "none"
    return segments("Start from", titles, f"bootstrap.have-{'-'.join(titles)}-{usual}", usual)


def _chosen_origin(workspace: Workspace, n_shared: int) -> str:
    """Draw the chooser of how known pairs are given, and return the key in `_FROM`."""
    titles = dict(_FROM)
    if not n_shared or len(workspace.anchors) <= 2:
        del titles["anchors"]
    return segments("Pairs", titles, f"bootstrap.from-{'-'.join(titles)}")


def _method_settings(n: int) -> dict[str, Any]:
    """Draw the settings of the method for spaces with `n` rows or more, and return their values by the fields
    of `BootstrapSpec`."""
    method = setting_widget(settings_of(BootstrapSpec)["method"], "bootstrap.method")
    usual = None
    if method == "paper" and n > PAPER_ROWS:
        usual = PAPER_ROWS
    rows = _number("rows", f"rows-{n}-{method}", _FEWEST_ROWS, n, usual, placeholder="all")
    most = min(rows or n, MOST_ANCHORS)
    n_anchors = _number("n_anchors", f"anchors-{most}", 1, most, min(300, max(1, most // 2)))
    settings = {"method": method, "rows": rows, "n_anchors": n_anchors}
    if method == "paper":
        settings["learning_rate"] = _number(
            "learning_rate", "learning-rate", 0.001, 1.0, LEARNING_RATE, format="%.3f"
        )
    settings["precision"] = _number("precision", "precision", 0.0, 1.0, PROMISED)
    settings["random_state"] = _number("random_state", "random-state", 0, 10_000, 0)
    return settings


def _number(name: str, key: str, low: float, high: float, usual: float | None, **look: Any) -> Any:
    field = settings_of(BootstrapSpec)[name]
    return setting_widget(field, f"bootstrap.{key}", usual, low, high, width=140, **look)


def _pairs_of(origin: str, workspace: Workspace, spaces: Sequence[LatentSpace]) -> Pairs | None:
    if origin == "anchors":
        return tuple((anchor, anchor) for anchor in workspace.anchors)
    return _typed_pairs(origin, workspace, spaces)


def _say_if_paired(workspace: Workspace, n_shared: int, test: bool) -> None:
    """If the spaces share ids, say that they need no links or, if the shared ids are hidden as a test, what
    the test does. Draw buttons that open Explore and the example."""
    if n_shared >= FEWEST_SHARED:
        if test:
            text = (
                f"**A test: the pairs of {n_shared:,} shared rows are hidden, then searched.** So each link"
                " can be checked."
            )
        else:
            text = f"**{n_shared:,} rows are in both spaces. They are paired already and need no link.**"
        st.markdown(text, width="content")
        if st.button(
            "Compare these rows in Explore", icon=f":material/{EXPLORE.icon}:", key="bootstrap.explore"
        ):
            go(EXPLORE)
    if workspace.models[:2] != (BUNDLED[0], _NUMBERED_WORDS):
        st.button(
            "Open an example: words of one model, only row numbers of the other",
            help="The other model's words are shown beside its row numbers so that you can check the links."
            " Link reads only the vectors and the known pairs.",
            on_click=_open_example,
            icon=":material/match_word:",
            type="tertiary",
            key="bootstrap.example",
        )


def _open_example() -> None:
    """Open the bundled words with row numbers as ids of one model, and type 20 known pairs."""
    words = compute.load_space(BUNDLED[0]).ids[100:2100:100]
    rows = compute.load_space(_NUMBERED_WORDS.rows_of).index
    pairs = [f"{word} = {rows.get_loc(word)}" for word in words if word in rows]
    session.compare("link words with row numbers", BUNDLED[0], _NUMBERED_WORDS)
    st.session_state.update(
        {
            "bootstrap.have-few-none-none": "few",
            "bootstrap.from-typed-file": "typed",
            "bootstrap.typed": "\n".join(pairs),
        }
    )


def _offer_unpaired(workspace: Workspace, source: LatentSpace) -> None:
    """Draw a button that links the source with another space: the last loaded one that shares no ids
    with it."""
    for spec in reversed(workspace.spaces):
        if spec in (workspace.source, workspace.target) or {spec.source, workspace.source.source} != {"file"}:
            continue
        spaces = source, compute.load_space(spec)
        if is_pairing_unknown((workspace.source, spec), spaces) or not len(shared_ids(spaces)):
            if st.button(
                f"Link {plain_name(source.name)} with {plain_name(spaces[1].name)} instead",
                key="bootstrap.instead",
                icon=":material/hub:",
            ):
                session.edit("choose a space to link", target=spec)
                st.rerun()
            return


def _typed_pairs(origin: str, workspace: Workspace, spaces: Sequence[LatentSpace]) -> Pairs | None:
    source, target = spaces
    try:
        if origin == "typed":
            box, *tables = st.columns([1, 1.2, 1.2])
            picked = []
            for column, spec, space in zip(tables, (workspace.source, workspace.target), spaces, strict=True):
                with column:
                    picked += _picked_row(spec, space)
            numbered = [is_numbered(space) for space in spaces]
            ends = [
                f"{'row' if is_number else 'id'} of {plain_name(space.name)}"
                for space, is_number in zip(spaces, numbered, strict=True)
            ]
            with box:
                numbering = ""
                if any(numbered):
                    numbering = ". Rows count from 0"
                text = remembered(
                    st.text_area,
                    f"One pair per line: {ends[0]} = {ends[1]}{numbering}",
                    placeholder="\n".join(f"{one} = …" for one in source.ids[:3]),
                    key="bootstrap.typed",
                    height=260,
                )
                line = " = ".join(picked)
                add = {"on_click": _type, "args": (line,), "disabled": len(picked) < 2}
                if len(picked) == 2:
                    label = f"Add {plain(line)}"
                else:
                    label = "Select a row in each table to add a pair"
                st.button(label, key="bootstrap.add", icon=":material/add:", **add)
            pairs = tuple(dict.fromkeys(read_pairs(text)))
            known = sum(own in source.index and other in target.index for own, other in pairs)
            told = f"{counted(len(pairs), 'pair')}, {known:,} of them with ids of these spaces."
            if known < len(pairs):
                return messages.warning(f"{told} Mend or remove the other pairs.")
            shown = "Three pairs or more are needed to start."
            if len(pairs) > 2:
                shown = told
            st.caption(shown)
            return pairs if len(pairs) > 2 else None
        file = st.file_uploader(
            "A table of pairs: columns source and target, or ids (without any: row numbers from 0) in the"
            " first two columns",
            type=["csv", "tsv", "parquet", "txt"],
            key="bootstrap.file",
            help="Can be a file of links. Its seeds, anchors and confirmed links are used.",
        )
        if file is None:
            return None
        pairs = known_pairs(session.keep_upload(file))
        st.caption(f"{counted(len(pairs), 'pair')} in {plain_name(file.name)}.")
        return pairs
    except SpaceError as error:
        return messages.warning(error)


def _picked_row(spec: SpaceSpec, space: LatentSpace) -> list[str]:
    """A list with the id of the row that the user selected in a table of a space's rows. It is empty if no
    row is selected."""
    ids = space.ids[:LISTED]
    table, look = described_rows(spec, ids)
    noun = "name"
    if is_numbered(space):
        noun = "row"
    table.insert(0, noun, table.pop("id"))
    told = f"Rows of {plain_name(space.name)}"
    if len(space) > LISTED:
        told = f"The first {LISTED:,} rows of {plain_name(space.name)}"
    if is_numbered(space) and "text" in table:
        told += ". Its text is for checking only: Link does not read it."
    st.caption(told)
    return [ids[row] for row in chosen_rows(table, f"bootstrap.rows-{place_of([spec])}", height=260, **look)]


def _type(line: str) -> None:
    typed = st.session_state.get("bootstrap.typed") or ""
    st.session_state["bootstrap.typed"] = "\n".join(filter(None, [typed.rstrip(), line]))


def show_linked_notice() -> None:
    st.info(
        "These rows are linked. All pages use the links, and score only those that you confirmed. To link"
        " again, choose the original space above, or undo.",
        icon=":material/hub:",
    )


def described_rows(spec: SpaceSpec, ids: Sequence[str]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A table of rows with their texts, pictures or labels before the column "id", and its arguments for
    `st.dataframe`."""
    side, look = with_items(
        items_of(replace(Workspace(), source=spec, target=spec)), pd.DataFrame({"id": ids})
    )
    space = compute.load_space(spec)
    if space.labels is None:
        labels = ()
    else:
        labels = space.labels[space.rows(ids)]
    # A column of labels that is mostly blank is left out.
    if "text" not in side and 2 * sum(map(bool, labels)) > len(ids):
        side["label"] = labels
    return side, look
