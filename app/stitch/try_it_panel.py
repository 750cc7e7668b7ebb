"""Try it: type a sentence or draw a picture, and read the answer of every encoder with every head."""

from __future__ import annotations

import time
from dataclasses import replace

import streamlit as st

from app import exports, messages
from app.page_settings import kept
from app.plain_text import plain, plain_html, plain_name
from app.stitch import try_it_item, warm
from app.stitch.stitch_compute import StitchSetup, digests_of, fitted
from app.stitch.try_it_grid import STYLE, answers_html
from app.widgets import space_name
from relcore.names import METHODS
from relcore.sources.catalog import SpaceSpec
from relcore.spaces import SpaceError
from relcore.stitching.one_item import ItemEncoder, rows_of
from relcore.stitching.try_it import Answers, answers_of
from relcore.stitching.try_it_figure import TryIt, matrices_of


def draw(setup: StitchSetup | None) -> None:
    """The tab."""
    st.html(STYLE)
    if setup is None:
        st.caption("Choose two or more encoders above. Every pair of an encoder and a head then answers here.")
        return
    ready, others = warm.encoders(setup.specs)
    _left_out(others)
    if not ready:
        st.info(
            "None of these encoders can encode new items. Encode a dataset on the Spaces page: its encoder can then be used.",
            icon=":material/keyboard:",
        )
        return
    kind = next(iter(ready.values())).kind
    of_kind = {spec: encoder for spec, encoder in ready.items() if encoder.kind == kind}
    _left_out({spec: f"reads {encoder.kind}, not {kind}" for spec, encoder in ready.items() if spec not in of_kind})
    _ask(setup, of_kind)


def _left_out(others: dict[SpaceSpec, str]) -> None:
    for spec, reason in others.items():
        st.caption(f"{plain_name(space_name(spec))} is used as a head only: its encoder {plain(reason)}.")


@st.fragment
def _ask(setup: StitchSetup, encoders: dict[SpaceSpec, ItemEncoder]) -> None:
    """Chooser and answers; a keystroke redraws only this part."""
    try:
        first = next(iter(encoders.values()))
        method = kept(
            st.segmented_control,
            "From an encoder to another's head",
            list(setup.spec.methods),
            default=_usual(setup.spec.methods),
            format_func=lambda name: METHODS[name].title,
            key=f"stitch.try-method-{'-'.join(setup.spec.methods)}",
            required=True,
        )
        alone = replace(setup, spec=replace(setup.spec, methods=(method,)))  # all methods would take as many times as long
        stitching = fitted(alone, setup.spec.random_states[0])
        if first.kind == "texts":
            asked, answers = try_it_item.choose(first, stitching), st.container()
        else:
            item, answers = st.columns([1, 2.4], gap="large")
            with item:
                asked = try_it_item.choose(first, stitching)
        if asked is None:
            return
        started = time.perf_counter()
        rows = rows_of([encoders.get(spec) for spec in setup.specs], [asked.item])
        found = answers_of(stitching, method, rows)
        seconds = time.perf_counter() - started
        with answers:
            _show(setup, found, asked, method, seconds)
    except SpaceError as error:
        messages.error(error)


def _usual(methods: tuple[str, ...]) -> str:
    return next((name for name in ("whitened", "relative", "irp-pruned") if name in methods), methods[0])


def _show(setup: StitchSetup, found: Answers, asked: try_it_item.Asked, method: str, seconds: float) -> None:
    st.html(f'<p class="relscope-lead">{lead(found, asked.truth)}</p>')
    stitching = replace(setup.spec, methods=(method,))
    recipe = TryIt.of(asked.item, spaces=setup.specs, digests=digests_of(setup), stitching=stitching)
    figure = recipe.draw(found)
    with st.container(key="stitch-try-map"):
        st.html(answers_html(matrices_of(found), exports.theme()))
    if found.silent:
        st.caption(
            f"{plain(', '.join(found.silent))}: knows none of these words. Its row is zero, so its answer means nothing."
        )
    st.caption(
        "Rows are encoders, columns are the encoders that the heads were trained on. A dotted cell is not stitched. Each cell "
        "shows the answer, its probability (darker is higher), and whether it differs from the head's answer on its own "
        f"encoder. Hover over a cell for the three most probable answers. Time to encode and answer: {1000 * seconds:,.0f} ms."
    )
    exports.export_bar(figure, "try-it")


def lead(found: Answers, truth: str = "") -> str:
    """The result in one sentence, as HTML."""
    most, count, n = found.verdict()
    leaders = found.leaders()
    own = [found.top(i, j, 1)[0][0] for i, j in enumerate(found.own) if found.top(i, j, 1)]
    known = f" Its label is <b>{plain_html(truth)}</b>." if truth else ""
    if not n:
        return f"This method cannot combine any two of these encoders. Choose another method.{known}"
    same = sum(found.agrees(i, j) is True for i, o in enumerate(found.own) for j in range(len(found.heads)) if j != o)
    rest = f"{same} of {n} answer as the head does on its own encoder.{known}"
    if len(leaders) > 1:
        shown = " and ".join(f"<b>{plain_html(one)}</b>" for one in leaders[:3])
        more = f" and {len(leaders) - 3} more answers" if len(leaders) > 3 else ""
        return f"A tie: of {n} stitched pairs, <b>{count}</b> each say {shown}{more}. {rest}"
    alone = f"Not stitched: {own.count(most)} of {len(own)}." if own else ""
    return f"<b>{count}</b> of {n} stitched pairs say <b>{plain_html(most)}</b>. {alone} {rest}"
