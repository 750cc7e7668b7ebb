"""Combine every encoder with every classifier: choosers, the result, heat maps, a summary, and one pair in
detail."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import compute, exports, jobs, messages, results, session
from app.encode import forms
from app.encode import jobs as encoding_jobs
from app.glossary.card import caption
from app.page_settings import remembered, segments
from app.plain_text import bold_numbers, plain, plain_name
from app.stitch import try_it
from app.stitch.digits import OPENS
from app.stitch.try_it import StitchSetup, load_spaces, shared_rows
from app.tables import short_numbers
from app.widgets import setting_widget, space_labels, space_name
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.base.names import HEADS, METHODS, STRATEGIES
from relcore.base.numbers import counted, short
from relcore.base.settings import settings_of
from relcore.catalog.catalog import SpaceSpec, held_out_ids
from relcore.catalog.naming import EXAMPLES, Example, example_spaces
from relcore.represent.representations import MethodSettings
from relcore.runs.entries import digest_of
from relcore.spaces.matching import short_names
from relcore.spaces.space import LatentSpace
from relcore.stitch.charts import SHOWN, StitchConfusion, StitchMatrix, gaps, panel_order, stitch_matrices
from relcore.stitch.classifiers import split_rows
from relcore.stitch.shared_rows import SharedRows
from relcore.stitch.stitching import (
    STITCH_METRICS,
    StitchResult,
    StitchSpec,
    best_method,
    headline,
    summary_table,
)
from relcore.stitch.try_it import why_not

Cell = tuple[str, int, int]  # method, number of the encoder, number of the head

MOST_ENCODERS = 6  # most encoders chosen by default, so that the table is readable
_OWN = "own"
_SESSION = "this session's"
_PAIR = "stitch.pair"
_TRY = "stitch.try"
_CELL = ("stitch.cell-method", "stitch.cell-encoder", "stitch.cell-head")


def choose(workspace: Workspace) -> tuple[StitchSetup | None, DeltaGenerator]:
    """Draw all choosers for the session's spaces or an example. Returns the setup (None while it is
    incomplete) and the container of the rarely used choosers."""
    own = _candidates(workspace)
    titles = EXAMPLES
    if len(own) > 1:
        titles = {_OWN: "Spaces of this session"} | EXAMPLES
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="stitch-choosers"):
        key = "stitch.example"
        if len(own) > 1:
            key = "stitch.example-own"
        if st.session_state.pop(OPENS, False):
            st.session_state.update({key: "digits", _TRY: True})
        name = segments("Encoders of", titles, key, help="Load or encode your own labelled data in Data.")
        details = st.popover("Method details", icon=":material/tune:", key="stitch.details")
    example = EXAMPLES.get(name)
    notes = st.container()
    specs = own
    if example:
        specs = example_spaces(name, jobs.queue().store.finished)[0]
    with details:
        if example:
            _use(name, example, specs)
        try:
            if specs:
                setup = _setup(workspace, specs)
            else:
                setup = None
        except SpaceError as error:
            messages.error(error)
            return None, details
    if example:
        of = example.explanation
    else:
        of = _shown(own, setup)
    notes.caption(
        f"Does the classifier of one model work on the encoder of another? Nothing is trained again. {of}"
    )
    left_out = []
    if setup:
        stitched = own if example else setup.specs
        left_out = [spec for spec in workspace.models[:2] if spec not in stitched]
    if left_out and not (example and left_out[0].source == "bundled"):
        names = plain(" and ".join(map(space_name, left_out)))
        st.caption(
            f"{names} cannot be stitched here: most rows need a label, and the same one in all spaces."
        )
    if specs and setup is None:
        st.info("Choose at least two encoders and one method.", icon=":material/conversion_path:")
    return setup, details


def _shown(own: list[SpaceSpec], setup: StitchSetup | None) -> str:
    shown = setup.specs if setup else ()
    apart = ", ".join(space_name(spec) for spec in own if spec not in shown)
    text = ""
    if shown:
        text = f"**Shown:** {plain(', '.join(map(space_name, shown)))}."
    if apart:
        text += f" **Not shown:** {plain(apart)}. Choose encoders with rows in common in Method details."
    return text


def _candidates(workspace: Workspace) -> list[SpaceSpec]:
    """The session's spaces with labels. The bundled words are left out, because too few words have a
    label."""
    specs = [spec for spec in workspace.spaces if spec.source != "bundled" and compute.digest_or_blank(spec)]
    return [spec for spec in specs if compute.load_space(spec).labels is not None]


def _use(name: str, example: Example, specs: list[SpaceSpec]) -> None:
    seconds = jobs.total_seconds([encoder.seconds(example.n) for encoder in example.encoders])
    if specs:
        st.button(
            "Add to the session",
            key=f"stitch.add-{name}",
            icon=":material/add:",
            help="All pages can then use these spaces.",
            on_click=session.guarded,
            args=(encoding_jobs.join, specs),
        )
    st.button(
        f"{'Train' if name == 'digits' else 'Encode'} them here · {jobs.cost_in_words(seconds)}",
        key=f"stitch.make-{name}",
        icon=":material/play_arrow:",
        help="Computes the spaces on this machine, in the background, and adds them to the session.",
        on_click=session.guarded,
        args=(_encode, example),
    )


def _encode(example: Example) -> None:
    data = forms.preview(example.dataset)
    encoding_jobs.submit(example.dataset, data.digest, data.name, example.encoders, here=True)


def largest_family(specs: list[SpaceSpec], pair: Sequence[SpaceSpec] = ()) -> list[SpaceSpec]:
    """The largest group of spaces that share rows and labels. Groups that contain the chosen pair come first.
    Among equally large groups, the one with more rows is returned."""
    spaces = dict(zip(specs, load_spaces(specs), strict=True))
    families = [
        [other for other in specs if other == spec or _alike(spaces[spec], spaces[other])] for spec in specs
    ]
    chosen = set(pair)
    return max(families, key=lambda found: (chosen <= set(found), len(found), len(spaces[found[0]])))


@compute.cached(256)
def _alike(first: LatentSpace, second: LatentSpace) -> bool:
    """Whether two spaces share at least half of the smaller one's rows, and all shared rows have the same
    labels."""
    rows = second.index.get_indexer(first.index)
    both = rows >= 0
    same = (first.labels[both] == second.labels[rows[both]]).all()
    return bool(both.sum() >= min(len(first), len(second)) / 2 and same)


def _setup(workspace: Workspace, candidates: list[SpaceSpec]) -> StitchSetup | None:
    names, _ = short_names(list(space_labels(candidates).values()))
    family = largest_family(candidates, workspace.models[:2])
    pair = set(workspace.models[:2])
    usual = sorted(family, key=lambda spec: spec not in pair)
    specs = tuple(
        remembered(
            st.multiselect,
            "Encoders",
            candidates,
            default=usual[:MOST_ENCODERS],
            format_func=dict(zip(candidates, names, strict=True)).get,
            key=f"stitch.encoders-{digest_of(candidates)[:8]}",
            placeholder="Choose two or more",
            help="A classifier is trained on each of these labelled spaces, and tested on the rows of all.",
        )
    )
    chosen = remembered(
        st.pills,
        "Methods",
        list(METHODS),
        selection_mode="multi",
        default=list(StitchSpec().methods),
        format_func=lambda name: METHODS[name].title,
        key="stitch.methods",
        wrap=True,
        help=(
            "Absolute: unchanged rows. Relative: classifiers read similarities to the anchors. Inverse: from"
            " similarities back into the other space."
            " These methods prepare each space alone; Procrustes, least squares and affine need both at once."
        ),
    )
    if len(specs) < 2 or not chosen:
        return None
    methods = tuple(name for name in METHODS if name in chosen)
    return _settings(workspace, specs, methods, shared_rows((), *load_spaces(specs)))


def _settings(
    workspace: Workspace, specs: tuple[SpaceSpec, ...], methods: tuple[str, ...], rows: SharedRows
) -> StitchSetup:
    """Draw the settings of a stitching: classifier, anchors, random states and, under *More*, those that are
    seldom changed."""
    test_ids = held_out_ids(specs, load_spaces(specs), rows.ids)
    place = digest_of(specs)[:8]
    n_train = int(0.8 * len(rows.targets))
    if test_ids:
        n_train = len(rows.targets) - len(test_ids)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        head = setting_widget(settings_of(StitchSpec)["head"], "stitch.head-kind")
        anchors = _anchors(workspace, rows, n_train, place)
        states = remembered(
            st.segmented_control,
            "Random states",
            [1, 3, 5],
            default=1,
            key="stitch.states",
            required=True,
            help="Number of repetitions. Each has its own test rows, anchors and first weights.",
        )
    with st.expander("More", icon=":material/tune:"):
        declared = settings_of(MethodSettings).items()
        settings = MethodSettings(
            **{name: setting_widget(field, f"stitch.{name.replace('_', '-')}") for name, field in declared}
        )
        order = _order(rows.classes, place)
    if anchors == {"anchors": ()}:
        raise SpaceError("anchors: this session has none; choose some in Explore, or another strategy here")
    given = {"test_ids": test_ids, "order": order, "settings": settings, **anchors}
    spec = StitchSpec(methods, head, tuple(range(states)), **given)
    st.caption(f"{HEADS[head].help} {_split_in_words(specs, rows, spec)}")
    return StitchSetup(specs, spec)


def _anchors(workspace: Workspace, rows: SharedRows, n_train: int, place: str) -> dict[str, Any]:
    """Draw the choosers of anchors. Returns the arguments of `StitchSpec`: the anchors of the session, or the
    strategy and the number of anchors to select."""
    has_counts = rows.spaces[0].counts is not None
    strategies = [name for name in STRATEGIES if name != "most-frequent" or has_counts]
    strategy = remembered(
        st.selectbox,
        "Anchors",
        [*strategies, _SESSION],
        format_func=str.capitalize,
        key="stitch.strategy",
        width=190,
    )
    if strategy == _SESSION:
        return {"anchors": workspace.anchors}
    usual = min(2 * max(space.dimension for space in rows.spaces), n_train // 2)
    key = f"stitch.anchors-{place}"
    number = remembered(st.number_input, "How many", 1, n_train, usual, 16, key=key, width=130)
    return {"strategy": strategy, "n_anchors": int(number)}


def _in_natural_order(label: str) -> list[tuple[int, int, str]]:
    """A sort key that puts "2" before "10"."""
    key = []
    for part in filter(None, re.split(r"(\d+)", label)):
        if part.isdecimal():
            key.append((0, int(part), ""))
        else:
            key.append((1, 0, part))
    return key


def _order(classes: tuple[str, ...], place: str) -> tuple[str, ...]:
    if not remembered(
        st.toggle,
        "Labels have an order",
        key=f"stitch.ordered-{place}",
        help="For example stars in reviews. Errors are then also counted in steps of this order (MAE).",
    ):
        return ()

    usual = sorted(classes, key=_in_natural_order)
    key = f"stitch.order-{place}"
    chosen = remembered(st.multiselect, "From low to high", classes, default=usual, key=key)
    missing = len(classes) - len(chosen)
    if missing:
        st.caption(f"MAE needs all labels in order: {missing} of {len(classes)} are missing.")
    return () if missing else tuple(chosen)


def _split_in_words(specs: tuple[SpaceSpec, ...], rows: SharedRows, spec: StitchSpec) -> str:
    split = split_rows(rows, spec, 0)
    optimistic = ""
    if spec.test_ids:
        tested = f"tested on **{len(split.test):,}** that no encoder was trained on"
    else:
        again = ""
        if len(spec.random_states) > 1:
            again = ", drawn again for each random state"
        tested = f"tested on **{len(split.test):,}** held-out rows{again}"
        encoders = [(spec.rows_of.encoder, compute.load_space(spec)) for spec in specs]
        if any(encoder and len(encoder.seen_rows(space)) for encoder, space in encoders):
            optimistic = (
                " Some encoders saw labels of the test rows in training, so the scores of all methods are"
                " optimistic."
            )
    classes = counted(len(rows.classes), "class", "classes")
    return (
        f"Classifiers are trained on **{len(split.known):,}** rows of {classes} and {tested}; no anchor is"
        f" tested.{optimistic}"
    )


def draw(setup: StitchSetup | None, details: DeltaGenerator) -> str:
    """Draw the scores of all pairs. Returns the best method, or "" if there is no result."""
    if setup is None:
        st.caption("Choose two or more encoders to score every encoder with every classifier.")
        return ""
    result = results.result_of(
        setup.spec,
        setup.specs,
        label=f"Stitch {len(setup.specs) * (len(setup.specs) - 1)} pairs",
        unasked_seconds=results.UNASKED_SECONDS,
        slower=1.5,
        details=details,
    )
    if result is None:
        return ""
    sentence, choosers = st.columns([2.6, 1], gap="medium")
    with choosers, st.container(horizontal=True, gap="small", horizontal_alignment="right"):
        names = {"accuracy": "Accuracy", "f1": "F1", "mae": "MAE"}
        ordered = len(result.metrics) > 2
        hidden = {"label_visibility": "collapsed"}
        measures = {name: names[name] for name in result.metrics}
        metric = segments("Measure", measures, f"stitch.metric-{ordered}", **hidden)
        show = segments("Show", {name: name.capitalize() for name in SHOWN}, "stitch.show", **hidden)
    with sentence:
        messages.lead(bold_numbers(headline(result, metric)))
    cell = _chosen(result)
    with st.container(key="wide"):
        _heat_maps(result, metric, show, cell)
        recipe = StitchMatrix(**setup.recipe, metric=metric, show=show)
        exports.export_bar(recipe.draw(result), "stitch-matrix")
    if cell:
        with st.expander(
            "One pair in detail", icon=":material/grid_on:", key=_PAIR, on_change="rerun"
        ) as pair:
            if pair.open:
                _one_pair(setup, result, cell)
    _summary(result, metric)
    return best_method(result)


def _told(methods: Sequence[str]) -> str:
    told = {
        "absolute": "Absolute: rows as they are.",
        "relative": "Relative: classifiers read similarities to anchors.",
        "whitened": "Whitened: these similarities, decorrelated.",
        "irp-": "Inverse: similarities are turned back into a row of the other model.",
        "irp-pruned": "Pruned: from several sets of anchors that lie apart.",
        "procrustes": "Procrustes: a rotation fitted on rows of both models.",
    }
    return " ".join(line for start, line in told.items() if any(name.startswith(start) for name in methods))


def _heat_maps(result: StitchResult, metric: str, show: str, cell: Cell | None) -> None:
    from relcore.figures.screen_matrices import matrices_figure

    methods = panel_order(result, metric)
    picked = None
    if cell and st.session_state.get(_PAIR):  # a frame marks the pair that is shown in detail below
        picked = (methods.index(cell[0]), *cell[1:])
    missing = any(np.isnan(result.matrix(method)[0]).any() for method in result.spec.methods)
    none = ""
    if missing:
        none = " Empty cell: the classifier cannot read rows of this dimension."
    first = ""
    if len(methods) > 1:
        first = "The best method comes first, then the plain copy. "
    caption(f"{first}Dashed frame: a classifier with its own encoder, not stitched.{none}")
    figure = matrices_figure(
        stitch_matrices(result, metric, show), exports.theme(), width=1080, picked=picked
    )
    # The key contains the selected cell, because Streamlit ignores a second click on a selected cell.
    key = f"stitch.map-{'-'.join(map(str, picked or ()))}"
    exports.chart(figure, key, picked=lambda points: _open(cell_of(points, methods)))
    _, common = short_names(result.encoders)
    if common:
        common = f" Full names of encoders end in “{plain_name(common)}”."
    else:
        common = ""
    lost = ""
    if show == "gap":
        lost = " Gap: accuracy of the classifier on its own encoder minus stitched accuracy."
    n = len(result.runs)
    states = "one random split"
    if n > 1:
        states = f"mean of {n} random splits"
    caption(
        f"Each cell is the {STITCH_METRICS[metric].title} of a pair: its row is the encoder, its column the"
        f" classifier.{lost}{common} {result.tested}, {states}. {plain(result.untested)} Click a cell for its"
        f" details. {_told(result.spec.methods)}"
    )


def cell_of(points: Sequence[Mapping[str, Any]], methods: Sequence[str]) -> Cell | None:
    if not points:
        return None
    panel, row, column = points[0]["customdata"]
    return methods[int(panel)], int(row), int(column)


def _open(cell: Cell | None) -> None:
    if cell:
        st.session_state[_PAIR] = True
    _pick(cell)


def _pick(cell: Cell | None) -> None:
    st.session_state.update(zip(_CELL, cell or (), strict=False))


def _chosen(result: StitchResult) -> Cell | None:
    """The selected cell. If none is selected, the cell of the pair that loses most accuracy by the best
    method."""
    method, encoder, head = map(st.session_state.get, _CELL)
    every = range(len(result.encoders))
    if method in result.spec.methods and encoder in every and head in every:
        return method, encoder, head
    best = best_method(result)
    for method in sorted(result.spec.methods, key=lambda name: name != best):
        lost = gaps(result, method)
        np.fill_diagonal(lost, np.nan)
        if not np.isnan(lost).all():
            encoder, head = np.unravel_index(np.nanargmax(lost), lost.shape)
            return method, int(encoder), int(head)
    return None


def _one_pair(setup: StitchSetup, result: StitchResult, cell: Cell) -> None:
    _pick(cell)
    method, encoder, head = cell
    every = list(range(len(result.encoders)))
    name = short_names(result.encoders)[0].__getitem__
    titles = {name: METHODS[name].title for name in result.spec.methods}
    with st.container(horizontal=True, gap="medium"):
        for label, options, shown, key in zip(
            ("Method", "Encoder", "Classifier of"),
            (titles, every, every),
            (titles.get, name, name),
            _CELL,
            strict=True,
        ):
            st.selectbox(label, list(options), format_func=shown, key=key, width=260, persist_state="session")
    mean = result.matrix(method)[0]
    same = encoder == head
    if np.isnan(mean[encoder, head]):
        messages.info(
            f"{name(encoder)} has another dimension than the classifier of {name(head)}, so {titles[method]}"
            " has no answer. Choose another method.",
            icon=":material/width:",
        )
        return
    own = f"<b>{short(mean[head, head])}</b>"
    stitched = f"Accuracy <b>{short(mean[encoder, head])}</b> stitched, {own} on the classifier's own encoder"
    opening = stitched
    if same:
        opening = f"Not stitched: accuracy {own}"
    messages.lead(f"{opening}, chance level {short(result.chance())}; {result.n_test:,} test rows.")
    figure = StitchConfusion(**setup.recipe, method=method, encoder=encoder, head=head).draw(result)
    exports.figure(figure, "stitch.confusion", "stitch-confusion")


def _summary(result: StitchResult, metric: str) -> None:
    st.markdown("### All methods in one table")
    table = summary_table(result, metric)
    knows = {"one": "one space", "both": "both spaces"}
    table.insert(1, "knows", [knows[METHODS[method].knows] for method in result.spec.methods])
    table["pairs"] = [f"{row.pairs} of {row.of}" for row in table.itertuples()]
    if len(result.runs) > 1:
        unused = ["of"]
    else:
        unused = ["of", "stitched_deviation", "own_deviation"]
    column = st.column_config
    shares = {
        "stitched_deviation": ("±", "Deviation over the random states"),
        "own": ("not stitched", "Classifiers on their own encoders"),
        "own_deviation": ("± ", "Deviation over the random states"),
        "chance": ("blind guess", "Chance level: always the most frequent class"),
        "permuted": ("permuted labels", "Chance level: the same answers, the labels permuted"),
    }
    look = {name: column.NumberColumn(title, help=text) for name, (title, text) in shares.items()}
    look |= {
        "method": column.TextColumn(width="medium"),
        "knows": column.TextColumn(
            "fitted on", help="Whether a method prepares each space alone or needs both at once."
        ),
        "test_rows": column.NumberColumn("test rows"),
        "random_states": column.NumberColumn("random states"),
    }
    shown = short_numbers(table.drop(columns=unused))
    st.dataframe(shown, key="stitch.summary", hide_index=True, column_config=look)


def page(workspace: Workspace) -> None:
    setup, details = choose(workspace)
    tries = None
    if setup is not None and not all(map(why_not, setup.specs)):
        # Draw it before the scores, so that it does not move them when they come.
        tries = st.expander(_try_it(setup), icon=":material/draw:", key=_TRY, on_change="rerun")
    best = draw(setup, details)
    if tries is not None and tries.open:
        with tries:
            try_it.draw(setup, best)


def _try_it(setup: StitchSetup) -> str:
    kinds = {encoder.kind for spec in setup.specs if (encoder := spec.rows_of.encoder)}
    new = {"texts": "type a sentence", "images": "draw or upload a picture"}
    if len(kinds) == 1 and kinds <= set(new):
        return f"Try it: {new[kinds.pop()]}"
    return "Try it on a new item"
