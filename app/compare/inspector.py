"""The inspector: one row with its neighbours in both spaces, the results of a search, or the selected
rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st

from app import compute, session
from app.compare.search import NOTE, Found, found_by, search_box
from app.compare.tags import tag_menu
from app.components.rows import row_links
from app.glossary.card import caption
from app.items import Items, cut, items_of
from app.plain_text import plain, plain_html
from app.selection import anchors_among, selected_rows
from app.tables import bars, short_numbers
from app.workspace import MOST_ANCHORS, Workspace
from relcore.base.numbers import counted, short
from relcore.compare import agreement
from relcore.compare.live_channel import FEW
from relcore.maps.pane_maps import MOST_PIVOTS
from relcore.represent.representations import COMPARED, ProjectionSpec
from relcore.spaces.matching import Match, distinct_names, short_names
from relcore.spaces.split import row_keys

LIMIT_HELP = (
    f"The app takes at most {MOST_ANCHORS:,} anchors, so these are drawn at random, always the same ones."
)
FULL_HELP = f"The app takes at most {MOST_ANCHORS:,} anchors. Remove one first."


def n_offered(n_new: int, n_present: int = 0) -> int:
    return min(n_new, max(0, MOST_ANCHORS - n_present))


def new_anchor_ids(chosen: Sequence[str], present: Collection[str] = ()) -> tuple[str, ...]:
    """The selected ids that are not anchors yet, in their order. If there are too many, returns a random
    sample."""
    present = set(present)
    new = [identifier for identifier in chosen if identifier not in present]
    room = max(0, MOST_ANCHORS - len(present))
    if len(new) <= room:
        return tuple(new)
    drawn = np.argsort(row_keys(new, "offered anchors"), kind="stable")[:room]
    return tuple(new[row] for row in np.sort(drawn))


# pixels per side of the inspected picture, and of a picture in a list
LARGE = 160
SMALL = 28
MOST_SHOWN = 60  # number of texts or pictures shown of a selection
ALIKE = 0.99  # minimum cosine of two vectors that count as equal
MOST_LISTED = 1000  # number of ids listed of a selection
STYLE = Path(__file__).parents[2] / "assets" / "items.css"
# A text for screen readers, which do not see the shading of a row.
IN_BOTH = '<span class="relscope-unseen">, in both</span>'


def row_search(pair: Match) -> None:
    """Draw the search box, and make the rows that it and the lists name select themselves at a click."""
    search_box(pair, "inspector.search")
    row_links(
        "inspector.links",
        compute.pair_key(pair),
        len(pair),
        lambda row: session.select((str(pair.ids[row]),)),
    )


def inspector(pair: Match, short_of_room: bool = False) -> None:
    """Draw the inspector. Where it is `short_of_room`, as below the table of rows, the search stands last and
    the name of a row beside its buttons, so that its neighbours are in sight."""
    st.html(STYLE)
    if short_of_room:
        _selected(pair, "inspector-short")
        row_search(pair)
    else:
        row_search(pair)
        _selected(pair, "inspector-row")


def _selected(pair: Match, key: str) -> None:
    """Draw the selected rows, or an example. `key` is that of the container of a single row's name and
    buttons."""
    items = items_of(session.workspace())
    (chosen, rows) = selected_rows(pair)
    found = found_by(pair)
    if found is not None and len(chosen) == 1:
        st.button(
            f"Back to “{cut(plain(found.query), 30)}”",
            icon=":material/arrow_back:",
            key="inspector.back",
            on_click=session.select,
            args=(found.ids,),
            type="tertiary",
        )
    if len(chosen) > 1:
        _many(pair, chosen, rows, items, found)
        return
    if chosen:
        identifier = chosen[0]
    else:
        identifier = example_row(pair)
    if not chosen:
        st.caption("Nothing is selected: click a point, or draw with the lasso. An example:")
    _one(pair, identifier, items, key)
    if items is not None and items.problem:
        st.caption(f":material/hide_image: {plain(items.problem)}")


def describe_row(pair: Match, identifier: str, row: int, items: Items | None) -> None:
    """Draw the picture, the text, the id, the label and the count of a row, as far as it has them."""
    label = ""
    if pair.source.labels is not None:
        label = pair.source.labels[row]
    count = ""
    if pair.source.counts is not None:
        count = f"count {pair.source.counts[row]:,}"
    text = ""
    picture = ""
    if items:
        text = items.texts([identifier])[0]
        picture = items.picture(identifier, LARGE)
    if picture:
        about = plain_html(", ".join(filter(None, (identifier, label))))
        st.html(f'<img class="relscope-picture" src="{picture}" alt="Picture {about}">')
    if text:
        st.html(f'<p class="relscope-text">{plain_html(text)}</p>')
    if not (picture or text):
        st.html(f'<p class="relscope-word">{plain_html(identifier)}</p>')
    named = identifier if picture or text else ""
    if named.startswith(f"{label}/"):
        label = ""
    facts = (label, named, count)
    if any(facts):
        st.html(f'<p class="relscope-facts">{" · ".join(plain_html(fact) for fact in facts if fact)}</p>')


def _one(pair: Match, identifier: str, items: Items | None, key: str) -> None:
    """Draw a row with its neighbours and similarities, and buttons that make it an anchor or an example."""
    row = int(pair.source.rows([identifier])[0])
    with st.container(key=key):
        describe_row(pair, identifier, row, items)
        with st.container(horizontal=True, key="inspector-actions"):  # above the lists, which may be long
            anchor_button(identifier)
            if identifier in session.selection():
                tag_menu((identifier,), "inspector.tag")
    _neighbours(pair, identifier)
    workspace = session.workspace()
    _similarities(pair, workspace, row, identifier)
    view = workspace.view
    # Colours by labels would hide the example rows, so colour by examples again, with only this row.
    if view.color_by == "labels":
        pivots = ()
    else:
        pivots = view.pivots
    if identifier not in pivots and len(pivots) < MOST_PIVOTS:
        st.button(
            "Show its neighbourhood",
            icon=":material/palette:",
            on_click=session.edit_spec,
            args=(f"example “{identifier}”", "view"),
            kwargs={"pivots": (*pivots, identifier), "color_by": "pivots"},
            width="stretch",
            key="inspector.pivot",
        )


def anchor_button(identifier: str) -> None:
    """Draw the button that makes a row an anchor, or that ends this."""
    workspace = session.workspace()
    is_anchor = identifier in workspace.anchors
    pinned = identifier in workspace.pinned
    full = not (is_anchor or new_anchor_ids((identifier,), workspace.anchors))
    label = "Add as anchor"
    icon = ":material/star:"
    change = session.add_anchors
    if is_anchor:
        label = "Remove anchor"
        icon = ":material/star_border:"
        change = session.remove_anchors
    st.button(
        label,
        icon=icon,
        on_click=change,
        args=((identifier,),),
        width="stretch",
        key="inspector.anchor",
        disabled=pinned or full,
        help=_why_disabled(pinned, full),
    )


def example_row(pair: Match) -> str:
    """The first of the example rows, then of the first ten rows, that has no near duplicate in either space.
    If all have one, the first of all."""
    pivots = [pivot for pivot in session.workspace().view.pivots if pivot in pair.source.index]
    among = [*pivots, *map(str, pair.ids[:10])]
    for identifier in among:
        if neighbours_of(pair, identifier, 1).filter(like="cosine").to_numpy().max(initial=0) < ALIKE:
            return identifier
    return among[0]


def _neighbours(pair: Match, identifier: str) -> None:
    workspace = session.workspace()
    representation = "absolute"
    if workspace.anchors and workspace.panes[0] in COMPARED:
        representation = workspace.panes[0]
    k = min(workspace.k, len(pair) - 1)
    anchors = compute.needed_anchors(representation, workspace.anchors)
    n = counted(len(workspace.anchors), "anchor")
    if representation == "absolute":
        by = "their own vectors, centred"
    else:
        by = f"similarities to {n}"
    caption(f"{k} nearest rows, {representation}: by cosine of {by}. Shaded: in both lists.")
    near = neighbours_of(pair, identifier, k, representation, anchors, workspace.projection)
    for side, space in (("source", pair.source), ("target", pair.target)):
        rows = space.vectors[space.rows([identifier, *near[side]])]
        if n := int((rows[1:] == rows[0]).all(axis=1).sum()):
            if n == k:
                same = f"All {k} have"
            else:
                same = f"{n} of the {k} {'has' if n == 1 else 'have'}"
            st.caption(f"{same} the same vector as this row in {plain(space.name)}.")
    st.html(neighbours_html(pair, near))


def _similarities(pair: Match, workspace: Workspace, row: int, identifier: str) -> None:
    """If there are few anchors, draw the row's similarities to them in both models."""
    anchors = workspace.anchors
    projection = workspace.projection
    if not 1 < len(anchors) <= FEW or projection.similarity != "cosine":
        return
    similar = np.stack([space[row] for space in compute.represent(pair, "relative", anchors, projection)])
    names = [f"★{number} {anchor}" for number, anchor in enumerate(anchors, 1)]
    values = dict(zip(names, map(tuple, similar.T.tolist()), strict=True))
    title = f"“{plain_html(cut(identifier, NOTE))}” by its similarities to the anchors"
    st.html(bars(title, values, 1.0, distinct_names((pair.source, pair.target)), row))


@compute.cached(256)
def neighbours_of(
    pair: Match,
    identifier: str,
    k: int,
    representation: str = "absolute",
    anchors: tuple[str, ...] = (),
    projection: ProjectionSpec | None = None,
) -> pd.DataFrame:
    rows = None
    if representation != "absolute":
        rows = compute.represent(pair, representation, anchors, projection)
    return agreement.neighbours_of(pair, identifier, k, rows)


def neighbours_html(pair: Match, table: pd.DataFrame, titles: tuple[str, str] | None = None) -> str:
    """The neighbours in both spaces as two lists. Ids in both lists are shaded. The lists have these titles,
    by default the names of the spaces."""
    items = items_of(session.workspace())
    ids = list(dict.fromkeys([*table["source"], *table["target"]]))
    shown = {}
    if items is not None:
        shown = names_of(pair, ids, items)
    rows = dict(zip(ids, pair.source.rows(ids).tolist(), strict=True))

    def entry(identifier: str, cosine: float, shared: bool) -> str:
        image, name, title = shown.get(identifier, ("", identifier, identifier))
        kind = ""
        mark = ""
        if shared:
            kind = "shared"
            mark = IN_BOTH
        return (
            f'<li class="{kind}" title="{plain_html(title)}">'
            f'<button type="button" data-row="{rows[identifier]}">{image}<b>{plain_html(name)}</b>'
            f"<span>{short(cosine, 2)}{mark}</span></button></li>"
        )

    def side(name: str, title: str) -> str:
        columns = (table[name], table[f"{name} cosine"], table[f"{name} shared"])
        entries = "".join(entry(*row) for row in zip(*columns, strict=True))
        return f"<div><h3>{plain_html(title)}</h3><ol>{entries}</ol></div>"

    sides = "".join(map(side, ("source", "target"), titles or distinct_names((pair.source, pair.target))))
    kind = ""
    if items is not None and items.has_texts:
        kind = " relscope-texts"
    return f'<div class="relscope-neighbours{kind}" data-pair="{compute.pair_key(pair)}">{sides}</div>'


def names_of(pair: Match, ids: list[str], items: Items) -> dict[str, tuple[str, str, str]]:
    """For each id, its small picture as HTML, its name in a list, and its full title."""
    rows = pair.source.rows(ids)
    if pair.source.labels is not None:
        labels = pair.source.labels[rows]
    else:
        labels = [""] * len(ids)
    if items.has_pictures:
        pictures = items.pictures(ids, SMALL)
    else:
        pictures = [""] * len(ids)
    named = {}
    for identifier, label, text, picture in zip(ids, labels, items.texts(ids), pictures, strict=True):
        image = ""
        if picture:
            image = f'<img src="{picture}" alt="" height="{SMALL}">'
        if not label or identifier.startswith(f"{label}/"):
            about = identifier
        else:
            about = f"{label} · {identifier}"
        title = " · ".join(filter(None, (text, about)))
        name = text or identifier
        if picture and label and not text:
            name = label
        named[identifier] = (image, name, title)
    return named


def items_html(pair: Match, ids: list[str], items: Items) -> str:
    cells = ""
    for image, name, title in names_of(pair, ids, items).values():
        if not items.has_pictures:
            cells += f'<li title="{plain_html(title)}"><span>{plain_html(name)}</span></li>'
        elif image:
            cells += f'<li title="{plain_html(title)}">{image}</li>'
    kind = "list"
    label = "Texts"
    if items.has_pictures:
        kind = "grid"
        label = "Pictures"
    return f'<ul class="relscope-{kind}" aria-label="{label}">{cells}</ul>'


def found_html(pair: Match, found: Found, items: Items | None) -> str:
    """The rows that a search found, sorted by their mean similarity. Each is listed with its similarity in
    both spaces."""
    ranking = found.ranking
    names, _ = short_names(distinct_names((pair.source, pair.target)))
    ids = pair.ids[ranking.rows].tolist()
    order = np.argsort(-ranking.similarities.mean(axis=1), kind="stable").tolist()
    shown = {}
    if items is not None:
        shown = names_of(pair, ids, items)

    def entry(place: int, identifier: str) -> str:
        image, name, title = shown.get(identifier, ("", identifier, identifier))
        cosines = [short(float(number), 2) for number in ranking.similarities[place]]
        near = ranking.found[place]
        numbers = " · ".join(one if near[side] else f"<em>({one})</em>" for side, one in enumerate(cosines))
        return (
            f'<li class="{"shared" if near.all() else ""}" title="{plain_html(title)}">'
            f'<button type="button" data-row="{ranking.rows[place]}">{image}<b>{plain_html(name)}</b>'
            f"<span>{numbers}</span></button></li>"
        )

    entries = "".join(entry(place, ids[place]) for place in order)
    kind = "relscope-neighbours relscope-found"
    if items is not None and items.has_texts:
        kind += " relscope-texts"
    heads = (
        f"<h3>Cosine in {plain_html(names[0])} · in {plain_html(names[1])}, highest mean first; in brackets:"
        " not among its nearest</h3>"
    )
    return f'<div class="{kind}" data-pair="{found.pair}"><div>{heads}<ol>{entries}</ol></div></div>'


def _draw_search_results(pair: Match, found: Found, items: Items | None) -> None:
    names, _ = short_names(distinct_names((pair.source, pair.target)))
    how = found.ranking.how
    st.html(f'<p class="relscope-query">Nearest to “{plain_html(cut(found.query, 60))}”</p>')
    st.html(found_html(pair, found, items))
    n = int(found.ranking.found[:, 0].sum())
    by = "; ".join(f"{plain(name)}: by {plain(one)}" for name, one in zip(names, how, strict=True))
    st.caption(f"The {n} nearest rows of each model, by cosine after centring. {by}.")


def _many(
    pair: Match, chosen: tuple[str, ...], rows: np.ndarray, items: Items | None, found: Found | None
) -> None:
    """Draw a description of many selected rows (m,). Because m may be half a million, no step loops over all
    ids."""
    if found is not None:
        _draw_search_results(pair, found, items)
    else:
        st.html(f'<p class="relscope-word">{len(chosen):,} selected</p>')
    pinned = set(session.workspace().pinned)
    there = anchors_among(pair, rows, session.workspace().anchors)
    n_anchors = len(there)
    n_removable = sum(identifier not in pinned for identifier in there)
    with st.container(horizontal=True, vertical_alignment="center", key="inspector-actions"):
        tag_menu(chosen, "inspector.tag")
        st.button(
            "Clear selection",
            on_click=session.select,
            args=((),),
            key="inspector.clear",
            type="tertiary",
        )
    if n_anchors:
        st.caption(f"{counted(n_anchors, 'of them is an anchor', 'of them are anchors')}.")
    _anchor_buttons(chosen, n_anchors, n_removable)
    if found is None:
        _list_selected(pair, chosen, rows, items)


def _anchor_buttons(chosen: tuple[str, ...], n_anchors: int, n_removable: int) -> None:
    """Draw buttons that add the chosen rows to the anchors, take only these as anchors, or remove them. Of
    the chosen rows, `n_anchors` are anchors already, and `n_removable` of these are not pinned."""
    new = n_offered(len(chosen) - n_anchors, len(set(session.workspace().anchors)))
    help_add = "All scores follow the new anchors."
    if new < len(chosen) - n_anchors:
        help_add = LIMIT_HELP
    only = n_offered(len(chosen))
    label_only = "Use only these as anchors"
    help_only = None
    if only < len(chosen):
        label_only = f"Use only {only:,} of these as anchors"
        help_only = LIMIT_HELP
    st.button(
        f"Add {counted(new, 'anchor')}",
        on_click=lambda: session.add_anchors(new_anchor_ids(chosen, session.workspace().anchors)),
        key="inspector.add",
        help=help_add,
        disabled=not new,
        width="stretch",
    )
    st.button(
        label_only,
        on_click=lambda: session.set_anchors(f"use {only} selected as anchors", new_anchor_ids(chosen)),
        key="inspector.only",
        help=help_only,
        type="tertiary",
        width="stretch",
    )
    if n_removable:
        st.button(
            f"Remove {counted(n_removable, 'anchor')}",
            on_click=session.remove_anchors,
            args=(chosen,),
            key="inspector.remove",
            type="tertiary",
            width="stretch",
        )


def _list_selected(pair: Match, chosen: tuple[str, ...], rows: np.ndarray, items: Items | None) -> None:
    """Draw the texts or pictures of the selected rows (m,) or, if they have none, a table of what is known
    about them."""
    if items is not None and not items.problem:
        # Take rows at equal steps: in a file sorted by class, the first rows all have one class.
        step = -(-len(chosen) // MOST_SHOWN)
        st.html(items_html(pair, list(chosen[::step]), items))
        if step > 1:
            st.caption(f"Shown: {len(chosen[::step])} rows, one in {step}.")
        return
    space = pair.source
    if space.counts is not None:
        rows = rows[np.argsort(-space.counts[rows], kind="stable")]
    rows = rows[:MOST_LISTED]
    columns = {"id": pair.ids[rows]}
    if space.labels is not None and any(space.labels[rows]):
        columns["label"] = space.labels[rows]
    if space.counts is not None:
        columns["count"] = space.counts[rows]
    st.dataframe(short_numbers(pd.DataFrame(columns)), hide_index=True, height=320)


def _why_disabled(pinned: bool, full: bool) -> str | None:
    """The help text of the button that adds or removes an anchor, while it is disabled."""
    if pinned:
        return "Pinned: unpin it under Anchors first"
    if full:
        return FULL_HELP
    return None
