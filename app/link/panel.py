"""Link: choose the data, press a button, read the verdict, check links, and use them on all pages."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import compute, exports, messages, results, session
from app.glossary.card import caption
from app.glossary.terms import with_links
from app.items import with_items
from app.jobs import queue
from app.page_settings import remembered, segments
from app.places import EXPLORE, go
from app.plain_text import plain, plain_name
from app.results import place_of
from app.session import fit_to_pair
from app.tables import chosen_rows, report_table
from app.widgets import setting_widget, space_name
from app.workspace import BOOTSTRAPPED, BUNDLED, MOST_ANCHORS, Workspace
from relcore.base.errors import SpaceError
from relcore.base.numbers import counted
from relcore.base.report import delimited_text
from relcore.base.settings import settings_of
from relcore.catalog.catalog import SpaceSpec, numbered_spec, put_pairing, renamed_spec
from relcore.catalog.row_tables import is_numbered, is_pairing_unknown
from relcore.files.links import Pairs, known_pairs, read_pairs
from relcore.linking.bootstrap import LEARNING_RATE, PROMISED, BootstrapResult
from relcore.linking.clusters import ENOUGH
from relcore.linking.link import (
    FEWEST_SHARED,
    PAPER_ROWS,
    BootstrapRounds,
    BootstrapScores,
    BootstrapSpec,
    Outcome,
    links_table,
    rows_it_takes,
)
from relcore.spaces.space import LatentSpace, shared_ids

_HAVE = {"few": "A few pairs", "none": "No pair", "shared": "Test: hide the shared ids"}
_TOLD = {
    "none": "Only the shapes of the two spaces are compared.",
    "few": "Rows that you know to be the same thing: three pairs or more, better 15 to 30.",
}
_FROM = {"typed": "Typed", "file": "File", "anchors": "Anchors"}
_LISTED = 2000  # maximum number of links that are listed for checking

# Number of links of each kind that are shown if the true pairs are known: surest, middle, least sure and
# wrong.
_SAMPLED = 4
_FEWEST_ROWS = 10
_FEWEST_ANCHORS = 10  # if fewer anchors are unconfirmed, confirmed pairs also become anchors

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
    source, target = (compute.load_space(spec) for spec in (workspace.source, workspace.target))
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
    guessed = any(spec.rows_of.source == "renamed" for spec in (workspace.source, workspace.target))
    if guessed:
        show_linked_notice()
    unknown = guessed or is_pairing_unknown((workspace.source, workspace.target), (source, target))
    # Ids that nobody confirmed do not count as shared, because they may pair the wrong rows.
    if unknown:
        n_shared = 0
    else:
        n_shared = len(shared_ids([source, target]))
    fields = settings_of(BootstrapSpec)
    n = min(len(source), len(target))
    haves = [have for have in _HAVE if have != "shared" or n_shared >= FEWEST_SHARED]

    def number(name: str, key: str, low: float, high: float, usual: float | None, **look: Any) -> Any:
        return setting_widget(fields[name], f"bootstrap.{key}", usual, low, high, width=140, **look)

    above = st.container(horizontal=True, gap="small", vertical_alignment="center")
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="bootstrap-choosers"):
        titles = {have: _HAVE[have] for have in haves}
        if "shared" in haves:
            usual = "shared"
        elif n < ENOUGH:
            usual = "few"
        else:
            usual = "none"
        have = segments("Start from", titles, f"bootstrap.have-{'-'.join(haves)}-{usual}", usual)
        chosen = st.container(horizontal=True, width="content", vertical_alignment="bottom")
        details = st.popover("Method details", icon=":material/tune:", key="bootstrap.details")
    with above:
        _say_if_paired(workspace, n_shared, have == "shared")
    if have == "shared":
        _offer_unpaired(workspace, source)
    else:
        needs = ""
        if have == "none":
            needs = rows_it_takes(source, target)
        st.caption(f"{_TOLD[have]} {needs}")
    with details:
        method = setting_widget(fields["method"], "bootstrap.method")
        usual = None
        if method == "paper" and n > PAPER_ROWS:
            usual = PAPER_ROWS
        rows = number("rows", f"rows-{n}-{method}", _FEWEST_ROWS, n, usual, placeholder="all")
        most = min(rows or n, MOST_ANCHORS)
        n_anchors = number("n_anchors", f"anchors-{most}", 1, most, min(300, max(1, most // 2)))
        settings = {"n_anchors": n_anchors, "n_seeds": 0}
        if method == "paper":
            settings["learning_rate"] = number(
                "learning_rate", "learning-rate", 0.001, 1.0, LEARNING_RATE, format="%.3f"
            )
        settings["precision"] = number("precision", "precision", 0.0, 1.0, PROMISED)
        settings["random_state"] = number("random_state", "random-state", 0, 10_000, 0)
    pairs: Pairs | None = ()
    if have == "shared":
        with chosen:
            most = max(n_anchors - 1, 0)
            settings["n_seeds"] = number("n_seeds", f"seeds-{most}", 0, most, min(15, most))
    elif have == "few":
        with chosen:
            ways = [way for way in _FROM if way != "anchors" or (n_shared and len(workspace.anchors) > 2)]
            titles = {way: _FROM[way] for way in ways}
            start = segments("Pairs", titles, f"bootstrap.from-{'-'.join(ways)}")
        if start == "anchors":
            pairs = tuple((anchor, anchor) for anchor in workspace.anchors)
        else:
            pairs = _typed_pairs(start, workspace, (source, target))
        if not pairs:
            return None
    if method == "paper" and not (pairs or settings["n_seeds"]):
        return messages.info(
            "The published method needs known pairs. Give some, or use self-learning.", ":material/info:"
        )
    settings["n_anchors"] = max(n_anchors, len(pairs))
    spec = BootstrapSpec(method, pairs=pairs, rows=rows, hide=have == "shared", k=workspace.k, **settings)
    return BootstrapSetup(workspace.source, workspace.target, source, target, spec, details)


def _say_if_paired(workspace: Workspace, n_shared: int, test: bool) -> None:
    """If the spaces share ids, say that they need no links or, if the shared ids are hidden as a test, what
    the test does. Draw buttons that open Explore and the example."""
    if n_shared >= FEWEST_SHARED:
        if test:
            told = (
                f"**A test: the pairs of {n_shared:,} shared rows are hidden, then searched.** So each link"
                " can be checked."
            )
        else:
            told = f"**{n_shared:,} rows are in both spaces. They are paired already and need no link.**"
        st.markdown(told, width="content")
        if st.button(
            "Compare these rows in Explore", icon=f":material/{EXPLORE.icon}:", key="bootstrap.explore"
        ):
            go(EXPLORE)
    if workspace.models[:2] != (BUNDLED[0], _NUMBERED_WORDS):
        st.button(
            "Open an example: words of one model, only row numbers of the other",
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


def _typed_pairs(start: str, workspace: Workspace, spaces: Sequence[LatentSpace]) -> Pairs | None:
    source, target = spaces
    try:
        if start == "typed":
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
    ids = space.ids[:_LISTED]
    table, look = _side(spec, ids)
    noun = "name"
    if is_numbered(space):
        noun = "row"
    table.insert(0, noun, table.pop("id"))
    st.caption(
        f"{f'The first {_LISTED:,} r' if len(space) > _LISTED else 'R'}ows of {plain_name(space.name)}"
    )
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


_USED = "relscope.bootstrap-used"


def in_use(workspace: Workspace) -> BootstrapSetup | None:
    """The settings with which this session linked the present target. Returns None if the target is not
    linked."""
    target, setup = st.session_state.get(_USED, (None, None))
    if target is not None and workspace.target == target:
        return setup
    return None


def draw(setup: BootstrapSetup, used: bool = False) -> None:
    """Draw the page. `used` is True if the session already uses the linked spaces and their anchors."""
    specs = (setup.source_spec, setup.target_spec)
    outcome = results.result_of(setup.spec, specs, label="Link", details=setup.details)
    if outcome is None:
        return
    result = outcome.result
    if outcome.linked:
        show = st.success
        icon = "check_circle"
    else:
        show = st.warning
        icon = "help"
    n_links = len(result.kept) - result.n_seeds
    verdict, button = st.columns([3, 1], vertical_alignment="center")
    with verdict:
        show(with_links(f"**{plain(outcome.headline)}** {_next_step(outcome)}"), icon=f":material/{icon}:")
    digests = setup.source.digest, setup.target.digest
    recipe = {"source": specs[0], "target": specs[1], "digests": digests, "bootstrap": setup.spec}
    confirmed = frozenset(_known_source_ids(outcome))
    if used:
        confirmed |= compute.load_space(session.workspace().target).ids.marks
    chosen = frozenset(_list(setup, outcome, confirmed if used else frozenset())) - confirmed
    if len(result.pairs) > result.n_seeds:
        unsure = len(result.pairs) - len(result.kept)
        guesses = [f"{unsure:,} unsure guesses"] * (unsure > 0)
        label = f"{' and '.join([counted(n_links, 'link')] * (n_links > 0) + guesses)} as .csv"
        table = delimited_text(links_table(result, every=True))
        exports.download(label, table, "links.csv", "text/csv", "bootstrap.links")
    with st.expander("How this was tested"):
        caption(plain(result.reason))
        exports.figure(BootstrapRounds(**recipe).draw(outcome), "bootstrap.rounds", "bootstrap-rounds")
        if setup.spec.method != "paper":
            first = result.history[0].rows
            last = result.history[-1].rows
            few = ""
            if first < last:
                few = f" The first rounds use the {first:,} most frequent rows."
            st.caption(f"Each round fits a rotation to the pairs so far, and matches the rows again.{few}")
    if outcome.scores:
        with st.expander("How good the links are as anchors"):
            caption("The closer “the anchors found” are to “all true anchors”, the better.")
            report_table(outcome.report().tables[-1])
            exports.export_bar(BootstrapScores(**recipe).draw(outcome), "bootstrap-scores")
    if n_links or not outcome.known:
        with button:
            _use_button(setup, outcome, used, confirmed, chosen)


def _next_step(outcome: Outcome) -> str:
    """The sentence after the verdict. If no links were found, it says what to do next; if the result is
    unclear, why."""
    n = outcome.result.n_seeds
    if outcome.verdict != "not found":
        if outcome.linked:
            return ""
        return plain(outcome.result.reason)
    if not n:
        return "Next step: start from 15 to 30 known pairs."
    return (
        f"Next step: {'try' if outcome.known else 'give'} {2 * n:,} known pairs instead of {n:,}. Models that"
        " are too different cannot be linked, even from many pairs."
    )


def _known_source_ids(outcome: Outcome) -> tuple[str, ...]:
    """The source ids of the pairs that were given at the start, which need no confirmation."""
    return tuple(own for own, _ in outcome.result.anchors[: outcome.result.n_seeds])


def _use_button(
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
    given = set(_known_source_ids(outcome))
    missing = compute.LEAST_HELD_OUT - len(known)
    noun = "known pairs"
    if len(result.kept) > result.n_seeds:
        noun = "links"
    label = f"Use the {noun} everywhere"
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
        told = f"{counted(len(anchors), 'link')} become the anchors of all pages. Scores use {scored}."
        if missing > 0:
            told = f"Scores need {compute.LEAST_HELD_OUT} confirmed pairs: select {missing} more below."
        if missing > 0 and used:
            told = f"The links are in use. {told}"
        st.caption(told)
    if clicked:
        if chosen or not used:
            session.guarded(use, setup, outcome, tuple(sorted(known)))
        now = session.workspace()
        if in_use(now) and compute.can_be_scored(compute.matched_pair(now.source, now.target), now.anchors):
            go(EXPLORE, "Scores")
        st.rerun()


def _list(setup: BootstrapSetup, outcome: Outcome, confirmed: frozenset[str]) -> tuple[str, ...]:
    """Draw the links for checking by eye, and return the source ids that the user marks as right. If the true
    pairs are known, draw a sample of the links and the missed pairs, and return ()."""
    result = outcome.result
    links = result.kept[result.n_seeds :]
    if outcome.known:
        _draw_known(setup, outcome, links)
        return ()
    if not links:
        return ()
    # Not the random state of the anchors, so that the listed links are independent of them.
    order = np.random.default_rng((0, 7)).permutation(len(links))[:_LISTED]
    pairs = [links[number] for number in order]
    st.subheader("Links to check", anchor=False)
    told = "All links"
    if len(pairs) < len(links):
        told = f"{len(pairs):,} of {counted(len(links), 'link')}"
    caption(
        f"{told}, in random order; click “likely right” to see the least sure first. Select the right ones,"
        " then press Confirm. All pages score only confirmed links."
    )
    table, look = _table(setup, pairs)
    if table.shape[1] == 2:
        st.caption("To see what the rows are, load their texts or labels beside the files in Data.")
    look["column_config"] |= _add_estimate(table, pairs, result)
    marks = {own: "★ anchor" for own, _ in result.anchors} | dict.fromkeys(confirmed, "confirmed")
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
    places = np.arange(n := len(links))
    wrong = [row for row, (own, other) in enumerate(links) if own != other]
    if n > 3 * _SAMPLED:
        middle = (n - _SAMPLED) // 2
        some = places[:_SAMPLED], places[middle : middle + _SAMPLED], places[-_SAMPLED:], wrong[-_SAMPLED:]
        places = np.unique(np.concatenate(some).astype(int))
    listed, missed = st.columns([1.6, 1], gap="large")
    with listed:
        st.subheader("Some of the links", anchor=False)
        told = "All links."
        if n > 3 * _SAMPLED:
            told = "The surest, middle and least sure links, four of each."
        if n > 3 * _SAMPLED and wrong:
            told = "The surest, middle and least sure links, four of each, and some wrong ones."
        told += " Rank 1 is the surest."
        caption(told)
        table, look = _table(setup, sample := [links[place] for place in places])
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
            table, look = _side(setup.source_spec, alone[:_LISTED])
            table = table.rename(columns={"id": "row"})
            st.dataframe(table, key="bootstrap.alone", hide_index=True, height=_height(alone), **look)


def _height(pairs: Sequence) -> int | str:
    return 360 if len(pairs) > 9 else "content"


def _table(setup: BootstrapSetup, pairs: Pairs) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A table of pairs with the texts, pictures or labels of both rows, and its arguments for
    `st.dataframe`."""
    sides = []
    look = {"column_config": {}}
    for spec, ids, name in zip(
        (setup.source_spec, setup.target_spec),
        zip(*pairs, strict=True),
        ("source", "linked to"),
        strict=True,
    ):
        side, own = _side(spec, ids)
        names = {column: name if column == "id" else f"{column}, {name}" for column in side}
        config = {names[column]: kind for column, kind in own["column_config"].items()}
        look |= own | {"column_config": look["column_config"] | config}
        sides.append(side.rename(columns=names))
    return pd.concat(sides, axis=1), look


def _side(spec: SpaceSpec, ids: Sequence[str]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A table of rows with their texts, pictures or labels before the column "id", and its arguments for
    `st.dataframe`."""
    side, look = with_items(replace(Workspace(), source=spec, target=spec), pd.DataFrame({"id": ids}))
    space = compute.load_space(spec)
    if space.labels is None:
        labels = ()
    else:
        labels = space.labels[space.rows(ids)]
    # A column of labels that is mostly blank is left out.
    if "text" not in side and 2 * sum(map(bool, labels)) > len(ids):
        side["label"] = labels
    return side, look


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
    pair = compute.matched_pair(setup.source_spec, renamed)
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


def page(workspace: Workspace) -> None:
    caption(
        "Link finds which rows of two spaces are the same thing, where they share no ids: from a few known"
        " pairs, or from none. Links are guesses, each with an estimate of how likely it is right."
    )
    if (used := in_use(workspace)) is not None:
        show_linked_notice()
        draw(used, used=True)
    elif (setup := choose(workspace)) is not None:
        draw(setup)
