"""The translation table on the page: how much of every space comes through into every other, by each method."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import compute, exports, results
from app.widgets import space_labels
from app.workspace import Workspace
from relcore.inverting.translation import estimated_seconds, translation_job
from relcore.inverting.translation_figures import draw_translation
from relcore.inverting.translation_result import METHODS, METRICS, TranslationResult, TranslationSpec
from relcore.sources.catalog import SpaceSpec
from relcore.spaces import LatentSpace, SpaceError
from relcore.stitching.methods import MethodSettings

MOST_SPACES = 6  # by default; thirty pairs are read, more are searched
_KEEP = {"persist_state": "session"}
_ABOUT = (
    "Rows of one space, carried into another through the session's anchors, beside the true rows there: how alike are they? "
    "All anchors are left out of the scores (Maiorca et al. 2024, Tables 1 and 2)."
)
_METRIC_HELP = (
    "Cosine: between recovered and true rows, seen from the target's mean. Not centred: as the paper prints it; what all rows "
    "share counts, so the chance level is high. Jaccard: neighbours that both have among the target's rows. MRR: is the row's "
    "own true row the nearest? Accuracy: what the target's head says of the recovered rows."
)


def draw(workspace: Workspace) -> None:
    """The whole tab."""
    st.caption(_ABOUT)
    if not workspace.anchors:
        st.info("No anchors yet: choose some in the sidebar, or pick them on the Anchors page.", icon=":material/star:")
        return
    readable = [spec for spec in workspace.spaces if compute.digest_or_blank(spec)]
    usual = [spec for spec in readable if _has(spec, workspace.anchors)][:MOST_SPACES]
    specs = st.multiselect(
        "Spaces",
        readable,
        default=usual,
        format_func=space_labels(readable).get,
        key=f"translate.spaces-{results.place_of(readable, workspace.anchors)}",
        placeholder="Choose two or more",
        help="Languages, encoders or layers over the same ids. Those that have all anchors are chosen first.",
        **_KEEP,
    )
    methods = st.pills(
        "Ways",
        list(METHODS),
        selection_mode="multi",
        default=list(TranslationSpec().methods),
        format_func=METHODS.get,
        key="translate.methods",
        help="Absolute: copied as they are. The inverse methods know each space alone; the others need both at once. "
        "δ, ω and λ are those above.",
        **_KEEP,
    )
    if len(specs) < 2 or not methods:
        st.info("Choose at least two spaces and one method.", icon=":material/translate:")
        return
    try:
        _table(workspace, specs, tuple(name for name in METHODS if name in methods))
    except SpaceError as error:
        st.error(str(error), icon=":material/error:")
        st.caption("Choose other spaces here, or other anchors in the sidebar.")


def _table(workspace: Workspace, specs: list[SpaceSpec], methods: tuple[str, ...]) -> None:
    spaces = [compute.load_space(spec) for spec in specs]
    spec = TranslationSpec(
        methods, workspace.k, compute.LIVE_QUERIES, test_ids=results.held_out_ids(specs), settings=settings_of(workspace)
    )
    content = tuple((space.digest, space.name) for space in spaces)
    n_pairs = len(spaces) * (len(spaces) - 1)
    entry = results.result_of(
        "translate",
        (content, workspace.anchors, spec),
        translation_job,
        lambda: {"inputs": results.inputs(specs, spaces), "anchors": workspace.anchors, "spec": spec},
        title=f"Translate {n_pairs} pairs",
        label=f"Translate {n_pairs} pairs by {len(methods)} methods",
        seconds=estimated_seconds(spaces, len(workspace.anchors), spec),
    )
    if entry is None:
        return
    result = TranslationResult.from_json(entry.metadata["translation"])
    metric = st.segmented_control(
        "Score",
        result.metrics,
        default="cosine",
        format_func=METRICS.get,
        key=f"translate.metric-{len(result.metrics)}",
        required=True,
        help=_METRIC_HELP,
        **_KEEP,
    )
    figure = draw_translation(specs, workspace.anchors, spec, metric, [space.digest for space in spaces], result)
    exports.chart(figure.interactive(exports.theme()), f"translate.map-{metric}")
    exports.export_bar(figure, "translate")
    st.caption(told(result, spaces, metric))
    st.markdown("#### In the mean over the pairs")
    st.dataframe(result.summary().round(3), hide_index=True, key="translate.summary")
    st.markdown("#### Every pair")
    st.dataframe(_wide(result, metric), hide_index=True, key="translate.pairs")


def settings_of(workspace: Workspace) -> MethodSettings:
    """δ, ω and λ of the page's choosers, and the λ of the whitening that the session's projection has."""
    chosen = workspace.inversion
    return MethodSettings(ridge=workspace.projection.ridge, omega=chosen.omega, delta=chosen.delta, inverse_ridge=chosen.ridge)


def told(result: TranslationResult, spaces: list[LatentSpace], metric: str) -> str:
    """What was scored on how many rows, beside what."""
    rows = f"**{result.n:,}** shared rows that are no anchors, **{result.n_anchors:,}** anchors"
    settings = result.spec.settings
    how = f"δ = {settings.delta:g}, ω = {settings.omega}, λ = {settings.inverse_ridge:g} (ridge), {settings.ridge:g} (whitened)"
    parts = [f"{rows}; {how}."]
    if metric in ("jaccard", "mrr") and result.spec.n_queries and result.spec.n_queries < result.n:
        parts.append(f"{result.spec.n_queries:,} rows, drawn at random, were asked for their k = {result.spec.k} nearest.")
    if metric == "accuracy":
        own = sum(result.own) / len(result.own)
        parts.append(
            f"Heads were asked about **{result.n_test:,}** rows; each on its own space, not stitched: {own:.3f} in the mean."
        )
    elif not result.n_test:
        parts.append("No accuracy: it takes a label on every shared row, and rows of every class to train on.")
    parts.append(
        "Chance: what is left when the rows are permuted." if metric != "accuracy" else "Chance: the most frequent class."
    )
    return " ".join([*parts, "Dotted: a space into itself."])


def _wide(result: TranslationResult, metric: str) -> pd.DataFrame:
    return result.wide(metric).round(3)


def _has(spec: SpaceSpec, anchors: tuple[str, ...]) -> bool:
    return bool(compute.load_space(spec).index.isin(anchors).sum() == len(anchors))
