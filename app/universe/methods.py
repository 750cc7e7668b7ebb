"""The Translate tab: every space translated into every other, by each method."""

from __future__ import annotations

import streamlit as st

from app import compute, exports, messages, results
from app.glossary.card import caption
from app.invert.panel import numbers
from app.page_settings import kept, segments
from app.widgets import space_labels
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.base.numbers import counted, general, short
from relcore.catalog.catalog import SpaceSpec, held_out_ids
from relcore.invert.inversion import (
    METHODS,
    METRICS,
    Translation,
    TranslationResult,
    TranslationSpec,
    TranslationTable,
)
from relcore.represent.methods import MethodSettings

_STARTS_ITSELF = 20.0  # seconds
MOST_SPACES = 6  # by default: thirty pairs can still be read
_ABOUT = (
    "Rows of each space are translated into every other space through the session's anchors, and compared"
    " with the true rows there. Anchors are never scored (Maiorca et al. 2024, Tables 1 and 2)."
)
_METRIC_HELP = (
    "Cosine: of recovered and true rows after centring at the target's mean. Not centred: as in the paper;"
    " the common mean counts, so the chance level is high. Jaccard: overlap of their neighbours among the"
    " target's rows. MRR: reciprocal rank of the true row as a neighbour of the recovered one. Accuracy: of"
    " the target's head on recovered rows."
)


def draw(workspace: Workspace) -> None:
    st.caption(_ABOUT)
    if not workspace.anchors:
        messages.no_anchors()
        return
    readable = [spec for spec in workspace.spaces if compute.digest_or_blank(spec)]
    usual = [spec for spec in readable if _has(spec, workspace.anchors)][:MOST_SPACES]
    specs = kept(
        st.multiselect,
        "Spaces",
        readable,
        default=usual,
        format_func=space_labels(readable).get,
        key=f"translate.spaces-{results.place_of(readable, workspace.anchors)}",
        placeholder="Choose two or more",
        help="Spaces over the same ids. By default, those that contain all anchors.",
    )
    with st.expander("Method details", icon=":material/tune:", key="translate.details"):
        chosen = kept(
            st.pills,
            "Methods",
            list(METHODS),
            selection_mode="multi",
            default=list(TranslationSpec().methods),
            format_func=METHODS.get,
            key="translate.methods",
            help=(
                "Absolute: vectors unchanged. The inverse methods use each space separately; the others need"
                " both spaces."
            ),
        )
        numbers(("delta", "omega", "ridge"))
    if len(specs) < 2 or not chosen:
        st.info("Choose at least two spaces and one method.", icon=":material/translate:")
        return
    try:
        _table(workspace, specs, tuple(name for name in METHODS if name in chosen))
    except SpaceError as error:
        messages.error(error)
        st.caption("Choose other spaces here, or other anchors above.")


def _table(workspace: Workspace, specs: list[SpaceSpec], methods: tuple[str, ...]) -> None:
    chosen, ridge = workspace.inversion, workspace.projection.ridge
    settings = MethodSettings(ridge=ridge, omega=chosen.omega, delta=chosen.delta, inverse_ridge=chosen.ridge)
    test_ids = held_out_ids(specs, [compute.load_space(spec) for spec in specs])
    spec = TranslationSpec(methods, workspace.k, compute.LIVE_QUERIES, test_ids=test_ids, settings=settings)
    n_pairs = len(specs) * (len(specs) - 1)
    label = f"Translate {counted(n_pairs, 'pair')} by {counted(len(methods), 'method')}"
    result = results.computed(
        Translation(workspace.anchors, spec), specs, label=label, unasked_seconds=_STARTS_ITSELF
    )
    if result is None:
        return
    titles, key = {name: METRICS[name] for name in result.metrics}, f"translate.metric-{len(result.metrics)}"
    metric = segments("Score", titles, key, help=_METRIC_HELP)
    recipe = {"spaces": tuple(specs), "digests": compute.digests(specs), "anchors": workspace.anchors}
    figure = TranslationTable(**recipe, metric=metric, spec=spec).draw(result)
    exports.figure(figure, f"translate.map-{metric}")
    caption(circumstances(result, metric))
    st.markdown("### Mean over the pairs")
    st.dataframe(result.summary().round(3), hide_index=True, key="translate.summary")
    st.markdown("### Every pair")
    st.dataframe(result.wide(metric).round(3), hide_index=True, key="translate.pairs")


def circumstances(result: TranslationResult, metric: str) -> str:
    settings, spec = result.spec.settings, result.spec
    ridges = f"λ = {general(settings.inverse_ridge)} (ridge), {general(settings.ridge)} (whitened)"
    text = (
        f"**{result.n:,}** shared rows that are not anchors, **{result.n_anchors:,}** anchors;"
        f" δ = {general(settings.delta)}, ω = {settings.omega}, {ridges}."
    )
    if metric in ("jaccard", "mrr") and spec.n_queries and spec.n_queries < result.n:
        text += f" {spec.n_queries:,} random rows are the queries, with k = {spec.k}."
    if metric == "accuracy":
        text += (
            f" Heads are tested on **{result.n_test:,}** rows; on their own spaces, not stitched, their mean"
            f" accuracy is {short(sum(result.own) / len(result.own))}."
        )
    elif not result.n_test:
        text += " No accuracy: it needs a label for every shared row, and training rows of every class."
    chance = "the most frequent class" if metric == "accuracy" else "rows permuted"
    return f"{text} Chance level: {chance}. Dotted cells: a space into itself."


def _has(spec: SpaceSpec, anchors: tuple[str, ...]) -> bool:
    return bool(compute.load_space(spec).index.isin(anchors).sum() == len(anchors))
