"""The links: list them, confirm them, and use them on all pages."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app import compute, session
from app.glossary.card import caption
from app.jobs import queue
from app.link.setup import LISTED, BootstrapSetup, described_rows
from app.places import EXPLORE, go
from app.plain_text import plain_name
from app.session import fit_to_pair
from app.tables import chosen_rows
from app.widgets import space_name
from app.workspace import BOOTSTRAPPED, Workspace
from relcore.base.numbers import counted
from relcore.catalog.catalog import SpaceSpec, renamed_spec
from relcore.catalog.renamed import put_pairing
from relcore.files.links import Pairs
from relcore.linking.link import Outcome
from relcore.linking.links_found import BootstrapResult
from relcore.spaces.matching import shared_ids

# Number of links of each kind that are shown if the true pairs are known: surest, middle, least sure and
# wrong.
_SAMPLED = 4
_FEWEST_ANCHORS = 10  # if fewer anchors are unconfirmed, confirmed pairs also become anchors
_USED = "relscope.bootstrap-used"


def in_use(workspace: Workspace) -> BootstrapSetup | None:
    """The settings with which this session linked the present target. Returns None if the target is not
    linked."""
    target, setup = st.session_state.get(_USED, (None, None))
    if target is not None and workspace.target == target:
        return setup
    return None


def known_source_ids(outcome: Outcome) -> tuple[str, ...]:
    """The source ids of the pairs that were given at the start, which need no confirmation."""
    return tuple(own for own, _ in outcome.result.anchors[: outcome.result.n_seeds])


def use_label(outcome: Outcome) -> str:
    """The label of the button that uses the links or, without links, the known pairs."""
    result = outcome.result
    n_links = len(result.kept) - result.n_seeds
    if n_links > 0:
        return f"Use the {counted(n_links, 'link')}"
    if not result.n_seeds:
        return "No links to use"
    return f"Use the {counted(result.n_seeds, 'known pair')}"


def use_button(
    setup: BootstrapSetup,
    outcome: Outcome,
    used: bool,
    confirmed: frozenset[str],
    chosen: frozenset[str],
) -> None:
    """Draw the button that uses the links or, if they are in use, confirms those in `chosen`. If scores are
    possible, the button then opens them."""
    result = outcome.result
    known = confirmed | chosen
    given = set(known_source_ids(outcome))
    missing = compute.LEAST_HELD_OUT - len(known)
    label = use_label(outcome)
    if used:
        label = "Show the scores"
        if chosen or missing > 0:
            label = f"Confirm {counted(len(chosen), 'link')}"
    kind = "secondary"
    if outcome.linked and not outcome.known:
        kind = "primary"
    if used:
        help_text = "All pages then also score these pairs."
    else:
        help_text = (
            f"Adds a copy of {plain_name(setup.target.name)} whose {len(result.kept):,} linked rows have"
            " the ids of their partners, makes it the target, and replaces the session's anchors by those"
            " found. Undo restores the former ones."
        )
    clicked = st.button(
        label,
        key="bootstrap.use",
        icon=":material/star:",
        disabled=not result.kept or (used and not chosen and missing > 0),
        type=kind,
        width="stretch",
        help=help_text,
    )
    if result.kept and (missing <= 0 or not outcome.known):
        linked = {own for own, _ in result.kept}
        anchors = [own for own in anchors_beside(result, known) if own in linked]
        noun = "confirmed"
        if known <= given:
            noun = "known"
        scored = counted(len(known.difference(anchors)), f"{noun} pair")
        text = numbers_in_words(len(result.kept) - result.n_seeds, len(anchors), scored, used)
        if missing > 0:
            text = numbers_in_words_without_scores(used, missing)
        st.caption(text)
    if clicked:
        if chosen or not used:
            session.guarded(use, setup, outcome, tuple(sorted(known)))
        now = session.workspace()
        if in_use(now) and compute.can_be_scored(compute.matched_models(now.source, now.target), now.anchors):
            go(EXPLORE, "Scores")
        st.rerun()


def numbers_in_words(n_links: int, n_anchors: int, scored: str, used: bool) -> str:
    """A sentence that tells apart the links, those that are anchors, and the pairs that are `scored`."""
    if not n_links:
        return f"Scores use {scored}."
    pair = "will pair"
    anchors = "become"
    if used:
        pair = "pair"
        anchors = "are"
    return (
        f"{counted(n_links, 'link')} {pair} the rows on all pages, {n_anchors:,} pairs {anchors} the anchors,"
        f" and scores use only {scored}."
    )


def numbers_in_words_without_scores(used: bool, missing: int) -> str:
    """What the links are good for while the confirmed pairs are too few for scores, and what scores need."""
    now = "You can use the links now: maps and searches then pair the rows by them."
    if used:
        now = "The links are in use: maps and searches pair the rows by them."
    return f"{now} Scores need {compute.LEAST_HELD_OUT} confirmed pairs: select {missing} more below."


def links_to_check(
    setup: BootstrapSetup, outcome: Outcome, used: bool, confirmed: frozenset[str]
) -> tuple[str, ...]:
    """Draw the links for checking by eye, and return the source ids that the user marks as right. Links that
    are `used` say what they are used as. If the true pairs are known, draw a sample of the links and the
    missed pairs, and return ()."""
    result = outcome.result
    links = result.kept[result.n_seeds :]
    if outcome.known:
        _draw_known(setup, outcome, links)
        return ()
    if not links:
        return ()
    # Not the random state of the anchors, so that the listed links are independent of them.
    order = np.random.default_rng((0, 7)).permutation(len(links))[:LISTED]
    pairs = [links[number] for number in order]
    st.subheader("Links to check", anchor=False)
    text = "All links"
    if len(pairs) < len(links):
        text = f"{len(pairs):,} of {counted(len(links), 'link')}"
    caption(
        f"{text}, in random order; click “likely right” to see the least sure first. Select the right ones,"
        " then press Confirm. All pages score only confirmed links."
    )
    table, look = _table(setup, pairs)
    if table.shape[1] == 2:
        st.caption("To see what the rows are, load their texts or labels beside the files in Data.")
    look["column_config"] |= _add_estimate(table, pairs, result)
    if used:
        marks = dict.fromkeys(session.workspace().anchors, "★ anchor") | dict.fromkeys(confirmed, "confirmed")
        table["used as"] = [marks.get(own, "") for own, _ in pairs]
    rows = chosen_rows(table, "bootstrap.list", several=True, height=_height(pairs), **look)
    return tuple(pairs[row][0] for row in rows)


def _draw_known(setup: BootstrapSetup, outcome: Outcome, links: Pairs) -> None:
    """If the true pairs are known, draw a sample of the links, and the hidden pairs without a link."""
    if not links:
        pairs = outcome.wrong()
        st.subheader("Wrong guesses", anchor=False)
        caption(f"{len(pairs):,} of {outcome.n_hidden:,} hidden pairs. None is kept as a link.")
        if pairs:
            table, look = _table(setup, pairs)
            st.dataframe(table, key="bootstrap.list", hide_index=True, height=_height(pairs), **look)
        return
    n = len(links)
    places = np.arange(n)
    wrong = [row for row, (own, other) in enumerate(links) if own != other]
    if n > 3 * _SAMPLED:
        middle = (n - _SAMPLED) // 2
        some = places[:_SAMPLED], places[middle : middle + _SAMPLED], places[-_SAMPLED:], wrong[-_SAMPLED:]
        places = np.unique(np.concatenate(some).astype(int))
    listed, missed = st.columns([1.6, 1], gap="large")
    with listed:
        st.subheader("Some of the links", anchor=False)
        text = "All links."
        if n > 3 * _SAMPLED:
            text = "The surest, middle and least sure links, four of each."
        if n > 3 * _SAMPLED and wrong:
            text = "The surest, middle and least sure links, four of each, and some wrong ones."
        text += " Rank 1 is the surest."
        caption(text)
        sample = [links[place] for place in places]
        table, look = _table(setup, sample)
        table.insert(0, "rank", places + 1)
        if n > 3 * _SAMPLED:  # the ranks jump between the parts, so a column names the part
            parts = {range(_SAMPLED): "surest", range(n - _SAMPLED, n): "least sure"}
            parts |= {range(middle, middle + _SAMPLED): "middle"}
            named = {place: part for some, part in parts.items() for place in some}
            table.insert(0, "part", [named.get(place, "wrong") for place in places])
        look["column_config"] |= _add_estimate(table, sample, outcome.result)
        table["truth"] = ["right" if own == other else "wrong" for own, other in sample]
        st.dataframe(table, key="bootstrap.sample", hide_index=True, height="content", **look)
    ids = shared_ids([setup.source, setup.target])
    alone = ids[~ids.isin([own for own, _ in outcome.result.kept])]
    with missed:
        st.subheader("Hidden pairs without a link", anchor=False)
        few = ""
        if setup.spec.rows:
            few = ", or a row was not searched"
        caption(
            f"{len(alone):,} of {len(ids) - outcome.result.n_seeds:,}: either the two rows are not each"
            f" other's nearest, or the link is too unsure{few}."
        )
        if len(alone):
            table, look = described_rows(setup.source_spec, alone[:LISTED])
            table = table.rename(columns={"id": "row"})
            st.dataframe(table, key="bootstrap.alone", hide_index=True, height=_height(alone), **look)


def _height(pairs: Sequence) -> int | str:
    return 360 if len(pairs) > 9 else "content"


def _table(setup: BootstrapSetup, pairs: Pairs) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A table of pairs with the texts, pictures or labels of both rows, and its arguments for
    `st.dataframe`."""
    (source_ids, target_ids) = zip(*pairs, strict=True)
    source, source_look = _named_side(setup.source_spec, source_ids, "source")
    target, target_look = _named_side(setup.target_spec, target_ids, "linked to")
    columns = source_look["column_config"] | target_look["column_config"]
    return pd.concat([source, target], axis=1), source_look | target_look | {"column_config": columns}


def _named_side(spec: SpaceSpec, ids: Sequence[str], name: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The columns of one side of the pairs, whose names tell the side, and the arguments for
    `st.dataframe`."""
    side, look = described_rows(spec, ids)
    names = {column: f"{column}, {name}" for column in side}
    names["id"] = name
    columns = {names[column]: kind for column, kind in look["column_config"].items()}
    return side.rename(columns=names), look | {"column_config": columns}


def _add_estimate(table: pd.DataFrame, pairs: Pairs, result: BootstrapResult) -> dict[str, Any]:
    """Add a column to the table: the estimated probability that each link is right. Returns the arguments for
    `st.dataframe`."""
    shares = dict(zip(result.pairs, result.nearby.tolist(), strict=True))
    table["likely right"] = [min(100 * shares[pair], 99.99) for pair in pairs]
    column = st.column_config.NumberColumn(
        format="%.2f %%", help="Estimated share of right links among those about as sure as this link"
    )
    return {"likely right": column}


def use(setup: BootstrapSetup, outcome: Outcome, confirmed: tuple[str, ...] = ()) -> None:
    """Use the links, as one step: the linked rows of the target get the ids of their partners in the source,
    and the anchors found become the session's anchors. Only pairs with confirmed ids are scored."""
    result = outcome.result
    workspace = session.workspace()
    key = put_pairing(queue().store, result.kept, confirmed)
    renamed = renamed_spec(setup.target_spec, key, f"{space_name(setup.target_spec)} · linked")
    former = (renamed, workspace.target if in_use(workspace) else None)
    spaces = (*(spec for spec in workspace.spaces if spec not in former), renamed)
    pair = compute.matched_models(setup.source_spec, renamed)
    anchors = tuple(own for own in anchors_beside(result, confirmed) if own in pair.source.index)
    changed = replace(workspace, spaces=spaces, source=setup.source_spec, target=renamed).with_anchors(
        anchors, BOOTSTRAPPED
    )
    st.session_state[_USED] = renamed, replace(setup, details=None)
    session.set_workspace(f"use {len(result.kept):,} links", fit_to_pair(changed, pair))
    session.announce(
        f"All pages now use {counted(len(pair), 'linked row')} and {counted(len(anchors), 'anchor')};"
        f" {len(confirmed):,} links are confirmed and can be scored."
    )


def anchors_beside(result: BootstrapResult, confirmed: Collection[str]) -> tuple[str, ...]:
    """The source ids of the anchors. Confirmed pairs are left out, so that they can be scored. If that leaves
    too few anchors, two thirds of the confirmed pairs are anchors, too."""
    ids = [own for own, _ in result.anchors]
    free = [own for own in ids if own not in set(confirmed)]
    if len(free) >= min(len(ids), _FEWEST_ANCHORS):
        return tuple(free)
    return tuple(own for place, own in enumerate(ids) if own in free or place % 3)
