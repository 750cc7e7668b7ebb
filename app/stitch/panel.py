"""Every encoder with every head: the result in one sentence, a heat map a method, the summary, and one
pair looked into.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import compute, exports, jobs, messages, results, session
from app.encode import forms
from app.encode import jobs as encoding_jobs
from app.items import with_items
from app.page_settings import kept
from app.plain_text import plain, plain_name
from app.widgets import setting_widget, space_labels
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.base.names import HEADS, METHODS, STITCH_METRICS, STRATEGIES
from relcore.base.numbers import counted, short
from relcore.base.settings import settings_of
from relcore.catalog.catalog import SpaceSpec, held_out_ids
from relcore.catalog.encoding import EXAMPLES, Example, example_spaces
from relcore.represent.methods import MethodSettings
from relcore.runs.digest import digest_of
from relcore.spaces.space import LatentSpace
from relcore.stitch.figures import (
    SHOWN,
    StitchConfusion,
    StitchMatrix,
    gaps,
    printed_summary,
    short_names,
    stitch_matrices,
    summary_table,
)
from relcore.stitch.stitching import SharedRows, Stitching, StitchResult, StitchSpec, share_rows, split_rows

# The Stitch page in a session without labelled spaces: what it does, on an example that comes with Relscope.


def draw_invitation(row: DeltaGenerator) -> list[SpaceSpec]:
    """In the row, the chooser of an example and what to do with it; below, the question of the page. The
    example's spaces.
    """
    with row:
        name = kept(
            st.segmented_control,
            "Example",
            list(EXAMPLES),
            default="digits",
            format_func=lambda name: EXAMPLES[name].title,
            key="stitch.example",
            required=True,
            help="Labelled spaces of your own replace the examples: encode your data on the Spaces page.",
        )
        example = EXAMPLES[name]
        specs, _ = example_spaces(name, jobs.engine().store.finished)
        durations = [encoder.seconds(example.n) for encoder in example.encoders]
        cost = jobs.cost_in_words(jobs.together(durations))
        with st.popover("Use it", icon=":material/add:"):
            if specs:
                st.button(
                    "Add to the session",
                    key=f"stitch.add-{name}",
                    icon=":material/add:",
                    help="Makes these spaces available on all pages, for example to compare two of them.",
                    on_click=session.guarded,
                    args=(encoding_jobs.join, specs),
                )
            st.button(
                f"{'Train' if name == 'digits' else 'Encode'} them here · {cost}",
                key=f"stitch.make-{name}",
                icon=":material/play_arrow:",
                help="Computes the spaces on this machine, in the background, and adds them to the session.",
                on_click=session.guarded,
                args=(_make, example),
            )
    st.caption(
        "Take the encoder of one model and the classifier of another. Nothing is trained again. Does it"
        f" still work? {example.explanation}"
    )
    return specs


def _make(example: Example) -> None:
    data = forms.preview(example.dataset)
    encoding_jobs.submit(example.dataset, data.digest, data.name, example.encoders, here=True)


# What the Stitch page computes: every pair, at once or by a job, and the fitted heads that answer what is
# typed.

UNASKED_SECONDS = 20.0  # what takes longer waits for a click


@dataclass(frozen=True)
class StitchSetup:
    """Which encoders are stitched, in this order, and how."""

    specs: tuple[SpaceSpec, ...]
    spec: StitchSpec


def spaces_of(setup: StitchSetup) -> list[LatentSpace]:
    return [compute.load_space(spec) for spec in setup.specs]


def digests_of(setup: StitchSetup) -> tuple[str, ...]:
    return compute.digests(setup.specs)


def shared(specs: tuple[SpaceSpec, ...], order: tuple[str, ...] = ()) -> SharedRows:
    """The labelled rows that all encoders have. Errors as in `share_rows`."""
    return _shared(specs, order, *map(compute.load_space, specs))


@compute.cached(4)
def _shared(specs: tuple[SpaceSpec, ...], order: tuple[str, ...], *spaces: LatentSpace) -> SharedRows:
    return share_rows(spaces, order)


def stitched(setup: StitchSetup) -> StitchResult | None:
    """Every pair by every method, from the store, at once or by a job; None while a job computes it."""
    n_pairs = len(setup.specs) * (len(setup.specs) - 1)
    look = {"label": f"Stitch {n_pairs} pairs", "icon": ":material/conversion_path:"}
    return results.computed(setup.spec, setup.specs, slower=1.5, unasked_seconds=UNASKED_SECONDS, **look)


def fitted(setup: StitchSetup) -> Stitching:
    """Heads and maps of the first random state, fitted once; they answer rows of any items by
    `Stitching.probabilities`.
    """
    return _fitted(setup, *spaces_of(setup))


@compute.cached(6, "Fitting every head …")
def _fitted(setup: StitchSetup, *spaces: LatentSpace) -> Stitching:
    return Stitching(shared(setup.specs, setup.spec.order), setup.spec, setup.spec.random_states[0])


# One encoder with one head, looked into: what is confused, how each class fares, which items changed their
# answer.

MOST_EXAMPLES = 200
_METHOD, _ENCODER, _HEAD = "stitch.cell-method", "stitch.cell-encoder", "stitch.cell-head"


def pick(cell: tuple[str, int, int] | None) -> None:
    """Look into this cell from the next run on."""
    if cell:
        for key, value in zip((_METHOD, _ENCODER, _HEAD), cell, strict=True):
            st.session_state[key] = value


def chosen(result: StitchResult) -> tuple[str, int, int] | None:
    """The cell that is looked into: the one picked, else the pair that loses most; None where there is
    nothing to see.
    """
    method, encoder, head = (st.session_state.get(key) for key in (_METHOD, _ENCODER, _HEAD))
    n = len(result.encoders)
    if method in result.spec.methods and encoder in range(n) and head in range(n):
        return method, encoder, head
    return _worst(result)


def _worst(result: StitchResult) -> tuple[str, int, int] | None:
    """The stitched pair that loses most by relative rows, or by the first method that has pairs."""
    for method in ("relative", *result.spec.methods):
        if method in result.spec.methods:
            lost = gaps(result, method)
            np.fill_diagonal(lost, np.nan)
            if not np.isnan(lost).all():
                encoder, head = np.unravel_index(np.nanargmax(lost), lost.shape)
                return method, int(encoder), int(head)
    return None


def draw_cell(setup: StitchSetup, result: StitchResult) -> None:
    """The section beneath the heat maps."""
    cell = chosen(result)
    if cell is None:
        return
    st.markdown("#### One pair")
    pick(cell)
    every, name = list(range(len(result.encoders))), short_names(result.encoders)[0].__getitem__
    keep = {"persist_state": "session"}
    with st.container(horizontal=True, gap="medium"):
        st.selectbox(
            "Method",
            list(result.spec.methods),
            format_func=lambda one: METHODS[one].title,
            key=_METHOD,
            width=260,
            **keep,
        )
        st.selectbox("Encoder", every, format_func=name, key=_ENCODER, width=260, **keep)
        st.selectbox("Head of", every, format_func=name, key=_HEAD, width=260, **keep)
    method, encoder, head = cell
    mean = result.matrix(method)[0]
    if np.isnan(mean[encoder, head]):
        messages.info(
            f"{name(encoder)} has another dimension than the head of {name(head)}, so {METHODS[method].title}"
            " has no answer. Choose another method.",
            icon=":material/width:",
        )
        return
    data = {"spaces": setup.specs, "digests": digests_of(setup), "stitching": setup.spec}
    figure = StitchConfusion(**data, method=method, encoder=encoder, head=head).draw(result)
    st.html(f'<p class="relscope-lead">{_told(result, method, encoder, head)}</p>')
    exports.chart(figure.interactive(exports.theme()), "stitch.confusion")
    exports.export_bar(figure, "stitch-confusion")
    classes, examples = st.columns([1, 1], gap="large")
    with classes:
        _classes(result, method, encoder, head)
    with examples:
        _examples(setup, result, method, encoder, head)


def _told(result: StitchResult, method: str, encoder: int, head: int) -> str:
    mean = result.matrix(method)[0]
    rest = f"chance level {short(result.chance())}; {result.n_test:,} test rows."
    own = f"<b>{short(mean[head, head])}</b>"
    if encoder == head:
        return f"Not stitched: accuracy {own}, {rest}"
    return f"Accuracy <b>{short(mean[encoder, head])}</b> stitched, {own} on the head's own encoder, {rest}"


def _classes(result: StitchResult, method: str, encoder: int, head: int) -> None:
    st.markdown("**Each class**")
    table = result.class_scores(method, encoder, head)
    if encoder != head:
        table.insert(4, "not stitched", result.class_scores(method, head, head)["f1"])
    bar = st.column_config.ProgressColumn("F1", min_value=0, max_value=1, format="%.3f")
    share = st.column_config.NumberColumn(format="%.3f")
    st.dataframe(
        table,
        key="stitch.classes",
        hide_index=True,
        height=min(38 + 35 * len(table), 420),
        column_config={
            "precision": share,
            "recall": share,
            "f1": bar,
            "not stitched": st.column_config.NumberColumn("F1 not stitched", format="%.3f"),
            "rows": st.column_config.NumberColumn(
                format="localized", help="Test rows of the class, all random states together"
            ),
        },
    )


def _examples(setup: StitchSetup, result: StitchResult, method: str, encoder: int, head: int) -> None:
    """Test rows whose answer stitching changed, with their picture or sentence; a click brushes them on
    every page.
    """
    st.markdown("**Changed answers**")
    changed = result.changed(method, encoder, head)
    one = result.runs[0]
    if encoder == head or changed.empty:
        st.caption(
            "This is the head on its own encoder."
            if encoder == head
            else f"None of {len(one.truth):,} test rows."
        )
        return
    lost, won = int((changed.own == changed.truth).sum()), int((changed.stitched == changed.truth).sum())
    workspace = replace(session.workspace(), source=setup.specs[encoder], target=setup.specs[head])
    shown = changed.head(MOST_EXAMPLES).rename(columns={"truth": "label", "own": "not stitched"})
    table, look = with_items(workspace, shown)
    st.dataframe(table, key="stitch.changed", hide_index=True, height=min(38 + 41 * len(table), 420), **look)
    state = f", random state {one.random_state}" if len(result.runs) > 1 else ""
    st.caption(
        f"{len(changed):,} of {len(one.truth):,} test rows{state}: {lost:,} were right on the head's own"
        f" encoder, {won:,} are right when stitched, {len(changed) - lost - won:,} are wrong in both."
    )


def draw(setup: StitchSetup | None) -> None:
    """The tab "Every pair"."""
    if setup is None:
        st.caption("Choose two or more encoders to score every encoder with every head.")
        return
    result = stitched(setup)
    if result is None:
        return
    sentence, choosers = st.columns([1.45, 1], gap="medium")
    with choosers:
        metric, show = _choosers(result)
    sentence.html(f'<p class="relscope-lead">{lead(result, metric)}</p>')
    cell = chosen(result)
    _heat_maps(result, metric, show, cell)
    recipe = StitchMatrix(
        spaces=setup.specs, digests=digests_of(setup), stitching=setup.spec, metric=metric, show=show
    )
    exports.export_bar(recipe.draw(result), "stitch-matrix")
    draw_cell(setup, result)
    _summary(result, metric)


def _choosers(result: StitchResult) -> tuple[str, str]:
    look = {"required": True, "label_visibility": "collapsed"}
    names = {"accuracy": "Accuracy", "f1": "F1", "mae": "MAE", "score": "Score", "gap": "Gap"}
    ordered = len(result.metrics) > 2
    chosen = []
    with st.container(horizontal=True, gap="small", horizontal_alignment="right"):
        for label, choices, key in (
            ("Measure", result.metrics, f"stitch.metric-{ordered}"),
            ("Show", tuple(SHOWN), "stitch.show"),
        ):
            look |= {"default": choices[0], "format_func": names.get, "key": key}
            chosen.append(kept(st.segmented_control, label, list(choices), **look))
    return chosen[0], chosen[1]


def lead(result: StitchResult, metric: str = "accuracy") -> str:
    """The result in one sentence, as HTML."""
    table = summary_table(result, metric)
    able = table[table.pairs > 0]
    if able.empty:
        return (
            "These methods cannot stitch any of these encoders: a head cannot read absolute rows of another"
            " dimension."
        )
    scores = " · ".join(f"{escape(row.method)} <b>{short(row.stitched)}</b>" for row in able.itertuples())
    owns = sorted(set(map(short, table.own)))
    chances = sorted({short(result.chance_level(method, metric)) for method in result.spec.methods})
    own, chance = (" … ".join(dict.fromkeys((ends[0], ends[-1]))) for ends in (owns, chances))
    return (
        f"<b>{int(table.pairs.max())}</b> stitched pairs, {STITCH_METRICS[metric].title}: {scores}. "
        f"Not stitched <b>{own}</b>, chance level <b>{chance}</b>."
    )


def _heat_maps(result: StitchResult, metric: str, show: str, cell: tuple[str, int, int] | None) -> None:
    """The figure; its key holds the cell, since one that is selected already would not hear a second
    click.
    """
    from relcore.figures.screen import matrices_figure

    picked = (result.spec.methods.index(cell[0]), *cell[1:]) if cell else None
    figure = matrices_figure(
        stitch_matrices(result, metric, show), exports.theme(), width=1080, picked=picked
    )
    key = f"stitch.map-{'-'.join(map(str, picked or ()))}"
    exports.chart(figure, key, picked=lambda points: pick(cell_of(points, result)), tools=False)
    _, common = short_names(result.encoders)
    common = f" All encoders: {plain_name(common)}." if common else ""
    lost = " Gap: accuracy of the head on its own encoder minus stitched accuracy." if show == "gap" else ""
    missing = any(np.isnan(result.matrix(method)[0]).any() for method in result.spec.methods)
    none = " Hatched cells have no answer, because the dimensions differ." if missing else ""
    n = len(result.runs)
    states = f"mean of {n} random states" if n > 1 else f"random state {result.runs[0].random_state}"
    st.caption(
        "Rows are encoders, columns are the encoders that the heads were trained on. Dotted cells are not"
        f" stitched.{none}{lost}{common} {result.tested}, {states}. {plain(result.untested)} Click a"
        " cell for its details."
    )


def cell_of(points: Sequence[Mapping[str, Any]], result: StitchResult) -> tuple[str, int, int] | None:
    """Method, encoder and head of the cell that was clicked; None where nothing is picked."""
    if not points:
        return None
    panel, row, column = points[0]["customdata"]
    return result.spec.methods[int(panel)], int(row), int(column)


def _summary(result: StitchResult, metric: str) -> None:
    st.markdown("#### All methods in one table")
    table = summary_table(result, metric)
    csv = table.to_csv(index=False, lineterminator="\n").encode()
    knows = {"one": "one space", "both": "both spaces"}
    table.insert(1, "knows", [knows[METHODS[method].knows] for method in result.spec.methods])
    table["pairs"] = [f"{row.pairs} of {row.of}" for row in table.itertuples()]
    top = 1.0 if metric != "mae" else max(1.0, float(table[["stitched", "chance"]].max(axis=None)))
    unused = ["of"] if len(result.runs) > 1 else ["of", "stitched_deviation", "own_deviation"]
    column = st.column_config
    share = {
        "stitched_deviation": ("±", "Deviation over the random states"),
        "own": ("not stitched", "Heads on their own encoders"),
        "own_deviation": ("± ", "Deviation over the random states"),
        "chance": ("chance", "Chance level: always the most frequent class"),
        "permuted": ("permuted labels", "Chance level: the same answers, the labels permuted"),
    }
    st.dataframe(
        table.drop(columns=unused),
        key="stitch.summary",
        hide_index=True,
        column_config={
            "method": column.TextColumn(width="medium"),
            "knows": column.TextColumn(
                help="Whether a method prepares each space alone or needs the two at once."
            ),
            "stitched": column.ProgressColumn("stitched", min_value=0, max_value=top, format="%.3f"),
            "test_rows": column.NumberColumn("test rows", format="localized"),
            "random_states": column.NumberColumn("random states"),
        }
        | {
            name: column.NumberColumn(title, format="%.3f", help=told)
            for name, (title, told) in share.items()
        },
    )
    latex = printed_summary(result).to_latex(index=False, escape=True).encode()
    files = (("CSV", csv, "csv", "text/csv"), ("LaTeX", latex, "tex", "application/x-tex"))
    with st.container(horizontal=True, gap="small"):
        for label, content, kind, media in files:
            st.download_button(
                label,
                content,
                f"relscope-stitching-summary.{kind}",
                media,
                key=f"stitch.summary-{kind}",
                type="tertiary",
                icon=":material/download:",
                on_click="ignore",
            )


# The choosers of the Stitch page: encoders, heads, methods and anchors.

MOST_ENCODERS = 6  # by default; thirty pairs are read, more are searched
_SESSION = "this session's"


def choose(workspace: Workspace) -> StitchSetup | None:
    """All choosers, of an example where the session has nothing to stitch; None where the choice is
    incomplete.

    One row, so that the result is on the first screen; a button opens the rest.
    """
    found = candidates(workspace)
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="stitch-choosers")
    if len(found) < 2:
        found = draw_invitation(row)
    jobs.follow(encoding_jobs.awaited(), dismiss=encoding_jobs.forget)
    if not found:
        return None
    try:
        with row, st.popover("Encoders, methods, anchors", icon=":material/tune:"):
            setup = _all_of_it(workspace, found)
    except SpaceError as error:
        messages.error(error)
        return None
    if setup is None:
        st.info("Choose at least two encoders and one method.", icon=":material/conversion_path:")
    return setup


def _all_of_it(workspace: Workspace, found: list[SpaceSpec]) -> StitchSetup | None:
    place = digest_of(found)[:8]  # the defaults depend on the candidates
    specs = _encoders(found, place)
    methods = _methods()
    if len(specs) < 2 or not methods:
        return None
    return _rest(workspace, specs, methods, shared(specs), f"{digest_of(specs)[:8]}")


def candidates(workspace: Workspace) -> list[SpaceSpec]:
    """The session's labelled spaces. Too few of the bundled words have a label to train and test on."""
    found = []
    for spec in workspace.spaces:
        try:
            labelled = spec.source != "bundled" and compute.load_space(spec).labels is not None
        except SpaceError:  # gone from the store: the Spaces page reports it
            continue
        if labelled:
            found.append(spec)
    return found


def largest_family(specs: list[SpaceSpec]) -> list[SpaceSpec]:
    """The largest group of spaces that share rows and labels; of equal groups the one with the most rows."""
    families = [[other for other in specs if other == one or _go_together(one, other)] for one in specs]
    return max(families, key=lambda family: (len(family), len(compute.load_space(family[0]))))


def _go_together(one: SpaceSpec, other: SpaceSpec) -> bool:
    return _alike(compute.load_space(one), compute.load_space(other))


@compute.cached(256)
def _alike(one: LatentSpace, other: LatentSpace) -> bool:
    """Whether two spaces share half of the rows of the smaller, with the same labels."""
    rows = other.index.get_indexer(one.index)
    both = rows >= 0
    same = (one.labels[both] == other.labels[rows[both]]).all()
    return bool(both.sum() >= min(len(one), len(other)) / 2 and same)


def _encoders(found: list[SpaceSpec], place: str) -> tuple[SpaceSpec, ...]:
    return tuple(
        kept(
            st.multiselect,
            "Encoders",
            found,
            default=largest_family(found)[:MOST_ENCODERS],
            format_func=dict(zip(found, short_names(list(space_labels(found).values()))[0], strict=True)).get,
            key=f"stitch.encoders-{place}",
            placeholder="Choose two or more",
            help=(
                "Labelled spaces of this session. A head is trained on each, and classifies the rows of every"
                " encoder."
            ),
        )
    )


def _methods() -> tuple[str, ...]:
    chosen = kept(
        st.pills,
        "From an encoder to another's head",
        list(METHODS),
        selection_mode="multi",
        default=list(StitchSpec().methods),
        format_func=lambda name: METHODS[name].title,
        key="stitch.methods",
        wrap=True,
        help=(
            "Absolute: unchanged rows. Relative: heads read similarities to the anchors. Product: several"
            " similarities, side by side or averaged. Inverse: from similarities back into the other space."
            " These methods prepare each space alone; Procrustes, least squares and affine need both at once."
        ),
    )
    return tuple(name for name in METHODS if name in chosen)


def _rest(
    workspace: Workspace, specs: tuple[SpaceSpec, ...], methods: tuple[str, ...], rows: SharedRows, place: str
) -> StitchSetup:
    test_ids = held_out_ids(specs, [compute.load_space(spec) for spec in specs], rows.ids)
    widest = max(space.dimension for space in rows.spaces)
    n_train = len(rows.targets) - len(test_ids) if test_ids else int(0.8 * len(rows.targets))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        head = setting_widget(settings_of(StitchSpec)["head"], "stitch.head-kind")
        strategies = [
            name for name in STRATEGIES if name != "most-frequent" or rows.spaces[0].counts is not None
        ]
        strategy = kept(
            st.selectbox,
            "Anchors",
            [*strategies, _SESSION],
            format_func=str.capitalize,
            key="stitch.strategy",
            width=190,
        )
        if strategy != _SESSION:
            number = kept(
                st.number_input,
                "How many",
                1,
                n_train,
                min(2 * widest, n_train // 2),
                16,
                key=f"stitch.anchors-{place}",
                width=130,
            )
        states = kept(
            st.segmented_control,
            "Random states",
            [1, 3, 5],
            default=1,
            key="stitch.states",
            required=True,
            help="Number of repetitions. Each draws test rows, anchors and first weights again.",
        )
    with st.expander("More", icon=":material/tune:"):
        settings = _settings()
        order = _order(rows.classes, place)
    anchors = (
        {"anchors": workspace.anchors}
        if strategy == _SESSION
        else {"strategy": strategy, "n_anchors": int(number)}
    )
    if strategy == _SESSION and not workspace.anchors:
        raise SpaceError(
            "anchors: this session has none; choose some in the sidebar, or another strategy here"
        )
    spec = StitchSpec(
        methods, head, tuple(range(states)), test_ids=test_ids, order=order, settings=settings, **anchors
    )
    split = split_rows(rows, spec, 0)
    st.caption(f"{HEADS[head].help} {_split(specs, rows, spec, len(split.known), len(split.test))}")
    return StitchSetup(specs, spec)


def _settings() -> MethodSettings:
    declared = settings_of(MethodSettings).items()
    return MethodSettings(
        **{name: setting_widget(one, f"stitch.{name.replace('_', '-')}") for name, one in declared}
    )


def _order(classes: tuple[str, ...], place: str) -> tuple[str, ...]:
    """All labels from low to high, or none."""
    if not kept(
        st.toggle,
        "Labels have an order",
        key=f"stitch.ordered-{place}",
        help="For example the stars of a review. Errors are then also counted in steps (MAE).",
    ):
        return ()
    chosen = kept(
        st.multiselect,
        "From low to high",
        classes,
        default=sorted(classes, key=_natural),
        key=f"stitch.order-{place}",
    )
    if len(chosen) < len(classes):
        st.caption(f"MAE needs all labels: {len(classes) - len(chosen)} of {len(classes)} are missing.")
        return ()
    return tuple(chosen)


def _natural(label: str) -> tuple:
    """Sorts "2" before "10"."""
    return tuple(
        (0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", label) if part
    )


def _split(
    specs: tuple[SpaceSpec, ...], rows: SharedRows, spec: StitchSpec, n_train: int, n_test: int
) -> str:
    """A sentence on training rows and test rows."""
    seen = False
    if spec.test_ids:
        tested = f"tested on **{n_test:,}** that no encoder was trained on either"
    else:
        again = ", drawn again for each random state" if len(spec.random_states) > 1 else ""
        tested = f"tested on **{n_test:,}** held-out rows{again}"
        seen = any(
            (encoder := one.rows_of.encoder) and len(encoder.seen_rows(compute.load_space(one)))
            for one in specs
        )
    optimistic = (
        " Some encoders saw labels of the test rows in training, so the scores of all methods are optimistic."
        if seen
        else ""
    )
    trained = f"Heads are trained on **{n_train:,}** rows of {counted(len(rows.classes), 'class', 'classes')}"
    return f"{trained} and {tested}; no anchor is tested.{optimistic}"
