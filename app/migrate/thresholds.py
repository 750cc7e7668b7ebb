"""The part Similarity thresholds of Migrate: the new cut-off, and what passes if the cut-off is moved."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from app import compute, exports, messages, results, session
from app.migrate.setup import MigrateSetup
from app.migrate.verdict import advised
from app.page_settings import remembered, segments
from app.plain_text import plain, plain_html
from app.widgets import space_labels
from relcore.base.errors import SpaceError
from relcore.base.numbers import short
from relcore.base.report import delimited_text
from relcore.catalog.catalog import SpaceSpec
from relcore.figures.export import chart_exportable
from relcore.migrate.blind_test import AFTER
from relcore.migrate.charts import ThresholdScores, scores_chart
from relcore.migrate.moved_threshold import TITLES, MovedThreshold, amount
from relcore.migrate.result import MigrationResult
from relcore.migrate.similarities import SCORES
from relcore.migrate.thresholds import KEEP, ThresholdChange, check_collection
from relcore.migrate.verdict import NEIGHBOURS
from relcore.runs.entries import digest_of

_LISTED = 100
_HERE = "These rows"
# the possible values of each kind of score; the core accepts any inner product
_RANGES = {"cosine": (-1.0, 1.0), "l2": (0.0, np.inf), "inner": (-np.inf, np.inf)}
_RANGES_IN_WORDS = {"cosine": "a cosine, from −1 to 1", "l2": "a distance, 0 or more", "inner": "a number"}
_HEIGHT = 220  # pixels of a chart


def thresholds(setup: MigrateSetup, result: MigrationResult) -> None:
    """Choosers of the threshold, the new cut-off, and what passes it."""
    is_judged = result.relevance != NEIGHBOURS
    try:
        with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
            task = _choose_change(setup, result)
            chosen_on = None
            if not is_judged:
                chosen_on = _choose_space(setup)
        if chosen_on is not None:
            check_collection(compute.load_space(chosen_on), setup.old)
        found = results.result_of(
            task,
            setup.specs,
            label="Find the new cut-off",
            unasked_seconds=results.UNASKED_SECONDS,
            spaces=setup.spaces,
        )
    except SpaceError as error:
        messages.error(error)
        return
    if found is None:
        return
    _answer(found)
    if not is_judged:
        st.caption("With judgements (Queries, above), precision and recall can be kept and measured.")
    _line(setup, task, found)
    _kinds(found)
    _export(setup, found, task.system)


def _answer(found: MovedThreshold) -> None:
    """Draw the cut-off to set. Whether any cut-off is usable at all is a warning if not, and else folded."""
    if to_set := found.to_set():
        messages.lead(f"<strong>Set {plain_html(to_set)}.</strong> {plain_html(found.describe())}")
    else:
        messages.lead(f"<strong>{plain_html(found.describe())}</strong>")
    verdict = found.verdict()
    if found.usable == "none":
        messages.warning(verdict)
    elif found.usable == "one":
        summary = "<summary>Can any cut-off separate relevant rows from others? Yes.</summary>"
        st.html(f'<details class="relscope-details">{summary}{plain_html(verdict)}</details>')
    elif verdict:
        st.caption(plain(verdict))


def _choose_change(setup: MigrateSetup, result: MigrationResult) -> ThresholdChange:
    systems = {name: title for name, title in AFTER.items() if name in result.found}
    usual = advised(result)
    if usual not in systems:
        usual = "bridge"
    system = segments("Scores", systems, f"threshold.system-{usual}", usual)
    keep = "hits"
    if result.relevance != NEIGHBOURS:
        keep = segments("Keep", KEEP, "threshold.keep", "precision")
    score = segments("Kind of score", SCORES, "threshold.score", "cosine")
    return ThresholdChange(
        migration=setup.task,
        adapter=result.adapter,
        system=system,
        threshold=_threshold(score),
        keep=keep,
        score=score,
    )


def _threshold(score: str) -> float | None:
    """The threshold of the old model that the user gives."""
    value = remembered(
        st.number_input,
        "Threshold of the old model",
        None,
        None,
        None,
        0.01,
        key=f"threshold.value-{score}",
        format="%.4g",
        placeholder="Ten rows per query",
        width=240,
        help="Rows that reach it count as hits. Default: ten rows per query are hits.",
    )
    low, high = _RANGES[score]
    if value is not None and not low <= value <= high:
        raise SpaceError(
            f"{value:g} is no threshold: expected {_RANGES_IN_WORDS[score]}. Type another one, or clear the"
            " field for ten rows per query."
        )
    return value


def _choose_space(setup: MigrateSetup) -> SpaceSpec | None:
    """The space on which the threshold was chosen; None for the rows that are searched."""
    others = [spec for spec in session.workspace().spaces if spec not in setup.specs]
    labels = space_labels(others)
    return st.selectbox(
        "Chosen on",
        [None, *others],
        format_func=lambda spec: labels.get(spec, _HERE),
        key=f"threshold.found-on-{setup.digest}",
        width=240,
        help="The rows on which the threshold was chosen. Without judgements, a threshold of another"
        " collection cannot be moved to these rows.",
    )


@st.fragment
def _line(setup: MigrateSetup, task: ThresholdChange, found: MovedThreshold) -> None:
    """A slider that moves the cut-off, both histograms, and what passes."""
    cuts = found.sign * found.counts.cuts
    edges = found.new_histogram.edges
    low = float(max(cuts.min(), edges[0]))
    high = float(min(cuts.max(), edges[-1]))
    start = found.new_threshold
    if np.isnan(start) and found.separability:
        start = found.sign * found.separability.cut
    start = float(np.clip(start, low, high))
    key = f"threshold.line-{digest_of((task, setup.digests))[:8]}"
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        cut = st.slider(
            "Try another cut-off of the new model",
            low,
            high,
            start,
            10.0 ** np.floor(np.log10((high - low) / 400)),
            format="%.4f",
            key=key,
            help="Drag the handle, or press the arrow keys: the line in both histograms follows. It starts at"
            " the cut-off to set.",
        )
        st.button(
            f"Back to {found.number(start)}",
            icon=":material/undo:",
            key="threshold.back",
            type="tertiary",
            disabled=cut == start,
            on_click=st.session_state.update,
            args=({key: start},),
            help="The cut-off to set.",
        )
    rates = found.at(cut)
    with st.container(horizontal=True, gap="large"):
        for name, one in rates.items():
            st.metric(
                TITLES[name],
                amount(name, one.value),
                f"{amount(name, one.low)} to {amount(name, one.high)}",
                delta_color="off",
                delta_arrow="off",
                width="content",
                help=f"Measured, and the 95 % interval for {found.n_new:,} other queries.",
            )
    for side in ("old", "new"):
        chart = scores_chart(found, side, cut)
        recipe = ThresholdScores(spaces=setup.specs, digests=setup.digests, task=task, side=side)
        drawn = chart_exportable(chart, recipe.to_json(), f"relscope-threshold-{side}", found.curve)
        figure = drawn.interactive(exports.theme())
        # Both charts fit below the slider, and equal cosines are above each other, so neither can be moved.
        figure.update_layout(height=_HEIGHT, dragmode=False)
        figure.update_xaxes(fixedrange=True)
        figure.update_yaxes(fixedrange=True)
        if found.score == "cosine":
            figure.update_xaxes(range=_common_range(found))
        exports.chart(figure, f"threshold.{side}")
    exports.export_bar(drawn, "threshold")
    _passing(setup, found, cut)


def _common_range(found: MovedThreshold) -> tuple[float, float]:
    edges = np.concatenate([found.old_histogram.edges, found.new_histogram.edges])
    return float(edges.min()), float(edges.max())


def _passing(setup: MigrateSetup, found: MovedThreshold, cut: float) -> None:
    """List the pairs that pass, nearest to the line first."""
    pairs = found.pairs
    n_passing = int(np.count_nonzero(found.sign * pairs.new >= found.sign * cut))
    rows = np.arange(max(0, n_passing - _LISTED), n_passing)[::-1]
    queries = [found.queries[query] for query in pairs.query[rows]]
    ids = setup.old.ids[pairs.row[rows]]
    query_texts = setup.texts(queries, queries=True)
    row_texts = setup.texts(ids)
    table = pd.DataFrame(
        {
            "query": [text or query for text, query in zip(query_texts, queries, strict=True)],
            "row": [text or own for text, own in zip(row_texts, ids, strict=True)],
            "new": [short(value, 4) for value in pairs.new[rows]],
            "old": [short(value, 4) for value in pairs.old[rows]],
        }
    )
    if found.is_judged:
        table.insert(2, "relevant", np.where(pairs.relevant[rows], "✓", "·"))
    place = found.counts.nearest(found.sign * cut)
    told = f"About {found.counts.passed[:, place].sum():,.0f} pairs pass."
    if n_passing == len(pairs.new):
        told += f" Listed are the last {len(rows):,} of the {n_passing:,} best, nearest to the line first."
    else:
        told += f" Listed are the {len(rows):,} nearest to the line."
    st.caption(told)
    st.dataframe(table, hide_index=True, key="threshold.passing", height=280)


def _kinds(found: MovedThreshold) -> None:
    if found.usable != "by kind":
        return
    table = found.kinds()
    table["cut-off"] = [found.number(cut) for cut in table["cut-off"]]
    st.markdown("### By kind of query")
    st.dataframe(table, hide_index=True, key="threshold.kinds")


def _export(setup: MigrateSetup, found: MovedThreshold, system: str) -> None:
    """The card for the runbook, the gate for CI, and the table of cut-offs."""
    st.markdown("### Export")
    card = found.card(AFTER[system])
    st.code(card, language="markdown", wrap_lines=True)
    with st.container(horizontal=True):
        exports.download("Download the card", card, "threshold.md", "text/markdown", "threshold.card")
        exports.download(
            "Download the cut-offs (CSV)",
            delimited_text(found.curve()),
            "cut-offs.csv",
            "text/csv",
            "threshold.curve",
        )
    if found.is_judged and found.new:
        st.caption("A gate for CI: exit code 1 if precision falls below the limit.")
        limit = short(np.floor(100 * found.new["precision"].low) / 100, 2)
        judged = ""
        if found.relevance == "judgements":
            judged = " --queries-old q_old.npz --queries-new q_new.npz --qrels qrels.txt"
        st.code(
            f"relscope migrate old.npz new.npz{judged} --system {system} --score {found.score}"
            f" --threshold={found.threshold:g} --new-threshold={found.new_threshold:g}"
            f" --gate precision={limit} --junit threshold.xml",
            language="bash",
            wrap_lines=True,
        )
