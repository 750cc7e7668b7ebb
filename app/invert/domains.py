"""The tab Across datasets: heads of one domain on encoders of another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import streamlit as st

from app import compute, exports, messages, results
from app.encode import datasets
from app.invert.translate import settings_of
from app.page_settings import kept
from app.plain_text import plain_name
from app.stitch.panel import candidates
from app.widgets import space_labels, space_name
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.base.names import METHODS
from relcore.base.numbers import short
from relcore.catalog.catalog import SpaceSpec
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import available_datasets
from relcore.encoders.digits import LOOKS
from relcore.encoders.small_vision import NAMES, SmallVision
from relcore.invert.cross_domain import (
    CrossDomainResult,
    CrossDomainSpec,
    DomainsSpec,
    SessionDomains,
    TrainedDomains,
)
from relcore.invert.translation import CrossDomain, SessionCrossDomain, TrainedCrossDomain

_ABOUT = (
    "A head trained on one domain and encoder classifies rows of another domain and encoder. The domains"
    " share the labels and the anchors. The bars are means without the diagonal: of **encoding from** each"
    " row, and of **decoding into** each column (Maiorca et al. 2024, Fig. 7, for texts and pictures of the"
    " same articles)."
)
_METHODS = (
    "irp-pruned",
    "irp-ridge",
    "irp-whitened",
    "relative",
    "whitened",
    "procrustes",
    "least-squares",
    "absolute",
)
_SOURCES = {"digits": "Digits in several looks", "session": "Spaces of this session"}
_ANCHORS = {
    "own": "the same digits, in each domain's own look",
    "first": "pictures of the first domain, for all domains",
}
_ANCHOR_HELP = (
    "Own look, as in the paper: digit 17 as scanned and digit 17 inverted are the same anchor. First domain:"
    " every encoder encodes the same pictures, which are unlike the training pictures of most encoders, so"
    " each space's anchors are centred separately."
)
MNIST = "MNIST, 8 × 8"
_MNIST_ROWS = 1797


def draw(workspace: Workspace) -> None:
    """The whole tab."""
    st.caption(_ABOUT)
    source = kept(
        st.segmented_control,
        "Domains",
        list(_SOURCES),
        default="digits",
        format_func=_SOURCES.get,
        key="domains.source",
        required=True,
    )
    try:
        found = _digits(workspace) if source == "digits" else _session(workspace)
    except SpaceError as error:
        messages.error(error)
        return
    if found:
        _show(*found)


def _digits(workspace: Workspace) -> tuple[CrossDomainResult, Callable[..., CrossDomain], str] | None:
    mnist = mnist_spec()
    looks = LOOKS | ({MNIST: "digits of other writers"} if mnist else {})
    left, right = st.columns([1.25, 1], gap="medium")
    with left:
        chosen = kept(
            st.multiselect,
            "Looks",
            list(looks),
            default=["plain", "inverted", "thick"],
            key="domains.looks",
            help=" ".join(f"**{look}**: {explanation}." for look, explanation in looks.items()),
        )
    with right:
        names = kept(
            st.pills,
            "Networks, trained on each",
            list(NAMES),
            selection_mode="multi",
            default=list(NAMES),
            format_func=NAMES.get,
            key="domains.networks",
        )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        parallel = MNIST not in chosen
        anchors = kept(
            st.selectbox,
            "Anchors",
            list(_ANCHORS) if parallel else ["first"],
            format_func=_ANCHORS.get,
            key=f"domains.anchors-{parallel}",
            help=_ANCHOR_HELP,
            width=360,
        )
        spec = _spec(workspace, most=1438)
    if len(chosen) * len(names) < 2 or not spec:
        st.info("Choose at least two looks or networks, and one method.", icon=":material/grid_view:")
        return None
    architectures = tuple(name for name in NAMES if name in names)
    domains = DomainsSpec(
        tuple(mnist if look == MNIST else digits_spec(look) for look in chosen),
        tuple(SmallVision(name, image_size=None if parallel else 8) for name in architectures),
        None if anchors == "own" else 0,
    )
    datas = [datasets.preview(dataset) for dataset in domains.datasets]
    n_networks = len(datas) * len(architectures)
    digests = tuple(data.digest for data in datas)
    task = TrainedDomains(domains, spec, digests)
    result = results.computed(task, label=f"Train {n_networks} networks, evaluate {n_networks**2} pairs")
    if result is None:
        named = ", ".join(f"“{plain_name(data.name)}”" for data in datas)
        st.caption(
            f"{len(datas)} domains of 1,797 pictures each: {named}. Every network is trained on its own"
            " domain only, from its own first weights. Networks in the store are reused."
        )
        return None
    how = (
        f"Anchors: {_ANCHORS[anchors]}, {result.n_anchors:,} of the training rows. Test rows: no network was"
        " trained on them."
    )
    recipe = {
        "datasets": domains.datasets,
        "encoders": domains.encoders,
        "anchor_dataset": domains.anchor_dataset,
    }
    recipe["dataset_digests"] = digests
    return result, partial(TrainedCrossDomain, **recipe), how


def _session(workspace: Workspace) -> tuple[CrossDomainResult, Callable[..., CrossDomain], str] | None:
    found = candidates(workspace)
    if len(found) < 2 or len(workspace.anchors) < 2:
        st.info(
            "This tab needs at least two labelled spaces over the same ids, from one dataset or from parallel"
            " ones (two columns of a table, two languages, two looks), and at least two anchors. Encode the"
            " spaces on the Spaces page.",
            icon=":material/grid_view:",
        )
        return None
    specs = kept(
        st.multiselect,
        "Spaces",
        found,
        default=found[:8],
        format_func=space_labels(found).get,
        key=f"domains.spaces-{results.place_of(found)}",
    )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        spec = _spec(workspace, most=len(workspace.anchors))
    if len(specs) < 2 or not spec:
        st.info("Choose at least two spaces and one method.", icon=":material/grid_view:")
        return None
    spaces = [compute.load_space(one) for one in specs]
    domains, encoders = _named(specs)
    held_out = results.held_out_ids(specs)
    named = {"domain_names": tuple(domains), "encoder_names": tuple(encoders), "anchors": workspace.anchors}
    task = SessionDomains(**named, spec=spec, test_ids=held_out)
    result = results.computed(task, specs, label=f"Evaluate {len(specs) ** 2} pairs")
    if result is None:
        return None
    recipe = {
        "spaces": tuple(specs),
        "digests": tuple(space.digest for space in spaces),
        **named,
        "test_ids": held_out,
    }
    tested = "no network was trained on them" if held_out else "a fifth of the rows that are not anchors"
    return (
        result,
        partial(SessionCrossDomain, **recipe),
        f"Anchors: {result.n_anchors:,} of this session's, by id. Test rows: {tested}.",
    )


def _named(specs: list[SpaceSpec]) -> tuple[list[str], list[str]]:
    """Domain and encoder of each space, by its name "encoder · domain"; encoders of one name are numbered."""
    domains, encoders = [], []
    for one, label in space_labels(specs).items():
        encoder, _, domain = space_name(one).rpartition(" · ")
        domains.append(domain)
        encoders.append((encoder or domain) + label.removeprefix(space_name(one)))
    return domains, encoders


def _spec(workspace: Workspace, most: int) -> CrossDomainSpec | None:
    usual = CrossDomainSpec()
    number = kept(
        st.number_input,
        "Number of anchors",
        2,
        most,
        min(usual.n_anchors, most),
        16,
        key=f"domains.anchors-of-{most}",
        width=120,
    )
    states = kept(
        st.segmented_control,
        "Random states",
        [1, 3, 5],
        default=1,
        key="domains.states",
        required=True,
        help=_STATES,
    )
    methods = kept(
        st.pills,
        "Methods",
        _METHODS,
        selection_mode="multi",
        default=list(usual.methods),
        format_func=lambda name: METHODS[name].title,
        key="domains.methods",
        help="δ, ω and the ridge λ are set above; the whitening λ is set in the sidebar.",
    )
    if not methods:
        return None
    ordered = tuple(method for method in _METHODS if method in methods)
    settings = settings_of(workspace)
    return replace(
        usual, methods=ordered, n_anchors=int(number), random_states=tuple(range(states)), settings=settings
    )


_STATES = "Number of draws of anchors and prunings; scores are their means."


def _show(result: CrossDomainResult, recipe: Callable[..., CrossDomain], how: str) -> None:
    method = kept(
        st.segmented_control,
        "Shown",
        result.spec.methods,
        default=result.spec.methods[0],
        format_func=lambda name: METHODS[name].title,
        key=f"domains.shown-{results.place_of((), result.spec.methods)}",
        required=True,
    )
    figure = recipe(spec=result.spec, method=method).draw(result)
    exports.chart(figure.interactive(exports.theme()), f"domains.map-{method}")
    exports.export_bar(figure, "domains")
    chance = sum(result.chance) / len(result.chance)
    st.caption(
        f"Accuracy on **{result.n_test[0]:,}** test rows per domain. {how} Dotted cells, and lines across the"
        " bars: not stitched, an encoder with its own head. Chance level (the most frequent class):"
        f" {short(chance)}."
    )
    st.dataframe(result.summary().round(3), hide_index=True, key="domains.summary")


def digits_spec(look: str) -> DatasetSpec:
    """The digits in a look; "plain" is the dataset of the other pages."""
    return DatasetSpec("digits", options=() if look == "plain" else (("look", look),))


def mnist_spec() -> DatasetSpec | None:
    """As many of MNIST's test pictures as there are digits; None if the data folder has no MNIST."""
    for entry in available_datasets():
        if entry.where == "here" and entry.kind == "images" and entry.name.startswith("mnist"):
            return replace(entry.spec, limit=_MNIST_ROWS)
    return None
