"""Rescale injection on the page: does an answer change when every vector is rescaled to another length?"""

from __future__ import annotations

import streamlit as st

from app import compute, exports, messages, results
from app.encode import datasets
from app.page_settings import kept
from app.plain_text import plain_name
from app.stitch.panel import candidates
from app.widgets import space_labels
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.base.numbers import counted, general, short
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.encoder import Encoder, TrainedEncoder
from relcore.encoders.open_networks import can_open
from relcore.encoders.small_vision import SmallVision
from relcore.encoders.transformers import MiniLM
from relcore.encoders.wikipedia import TASK as WIKIPEDIA
from relcore.invert.rescale import (
    NETWORKS,
    InputRescaleResult,
    InputRescaleSpec,
    LayerRescale,
    LayerRescaleSpec,
    RescaleInput,
    RescaleLayers,
)

_PLACES = {"input": "At the input", "layers": "Inside a network"}
_HELP = {
    "input": (
        "A relative space holds no lengths, so inverted rows have an arbitrary length. Small networks are"
        " trained on rows as they are, and tested on held-out rows that were **all rescaled to length α**."
        " Where the curve is flat, the length does not matter (Maiorca et al. 2024, Fig. 4)."
    ),
    "layers": (
        "The output of one layer at a time is rescaled to length α, and the layers after it run unchanged. A"
        " ReLU head that was trained without rescaling gives the answer (Maiorca et al. 2024, Fig. 2)."
    ),
}
_STATES = (
    "Number of repetitions, each with its own rows, split and first weights. The band is the mean ± one"
    " deviation."
)
EXAMPLES = {
    "Digits through the small ViT": (DatasetSpec("digits"), SmallVision("vit")),
    "Wikipedia sentences through MiniLM": (WIKIPEDIA, MiniLM()),
}


def draw(workspace: Workspace) -> None:
    """The whole tab."""
    place = kept(
        st.segmented_control,
        "Where",
        list(_PLACES),
        default="input",
        format_func=_PLACES.get,
        key="rescale.place",
        required=True,
    )
    st.caption(_HELP[place])
    try:
        _input(workspace) if place == "input" else _layers(workspace)
    except SpaceError as error:
        messages.error(error)


def _input(workspace: Workspace) -> None:
    specs = candidates(workspace)
    if not specs:
        st.info(
            "Networks need labels to learn, and no space of this session has any. Encode labelled data on the"
            " Spaces page, or start a task on the Stitch page; the digits take about 40 s.",
            icon=":material/label:",
        )
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        chosen = kept(
            st.selectbox, "Space", specs, format_func=space_labels(specs).get, key="rescale.space", width=320
        )
        networks = kept(
            st.pills,
            "Networks",
            list(NETWORKS),
            selection_mode="multi",
            default=list(InputRescaleSpec().networks),
            format_func=NETWORKS.get,
            key="rescale.networks",
            help=(
                "Two hidden layers of 128 with this activation and no normalisation. “Normalised first”"
                " begins with a LayerNorm (SiLU, 256), so it ignores lengths."
            ),
        )
        states = kept(
            st.segmented_control,
            "Random states",
            [1, 3, 5],
            default=3,
            key="rescale.states",
            required=True,
            help=_STATES,
        )
        span = _span(
            "rescale.span", 32, "Lengths from the rows' mean length divided by this to the mean times this."
        )
    if not networks:
        st.info("Choose at least one network.", icon=":material/hub:")
        return
    space = compute.load_space(chosen)
    ordered = tuple(name for name in NETWORKS if name in networks)
    held_out = results.held_out_ids([chosen])
    spec = InputRescaleSpec(ordered, float(span), random_states=tuple(range(states)), test_ids=held_out)
    label = f"Train {len(ordered) * states} small networks and rescale"
    result = results.computed(spec, [chosen], label=label)
    if result is None:
        return
    figure = RescaleInput(spaces=(chosen,), digests=(space.digest,), spec=spec).draw(result)
    exports.chart(figure.interactive(exports.theme()), "rescale.curves")
    exports.export_bar(figure, "rescale-input")
    st.dataframe(result.table().round(3), hide_index=True, key="rescale.table")
    st.caption(_told(result, len(space), bool(held_out)))


def _told(result: InputRescaleResult, n: int, held_out: bool) -> str:
    used = result.n_train + result.n_test
    some = f" of the {n:,}, drawn at random," if used < n else ""
    tested = "rows that the encoder was not trained on either" if held_out else "other rows"
    low, high = result.lengths
    return (
        f"Trained on **{result.n_train:,}** rows{some} and tested on **{result.n_test:,}** {tested},"
        f" {result.n_classes} classes. Lengths of the rows: mean {general(result.mean_length)}, 95 % from"
        f" {general(low)} to {general(high)}."
    )


def _layers(workspace: Workspace) -> None:
    networks = networks_of(workspace)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        name = kept(st.selectbox, "Network", list(networks), key="rescale.network", width=360)
        dataset, encoder = networks[name]
        small = isinstance(encoder, TrainedEncoder)
        n_test = kept(
            st.number_input,
            "Test items",
            10,
            2000,
            360 if small else 96,
            key=f"rescale.tests-{small}",
            width=130,
            help="With balanced classes. Each item runs through the network once per layer and length.",
        )
        n_alphas = kept(
            st.number_input, "Lengths", 3, 41, 13 if small else 9, 2, key=f"rescale.alphas-{small}", width=130
        )
        span = _span(
            "rescale.layer-span",
            16,
            "Lengths from the layers' common mean divided by this to the mean times this.",
        )
    spec = LayerRescaleSpec(1000 if small else 400, int(n_test), float(span), int(n_alphas))
    data = datasets.preview(dataset)
    task = LayerRescale(dataset, encoder, spec, data.digest)
    result = results.computed(task, label=f"Rescale every layer, {counted(spec.n_test, 'item')}")
    if result is None:
        st.caption(
            f"{counted(data.n, 'item')} in '{plain_name(data.name)}',"
            f" {counted(len(data.classes), 'class', 'classes')}; {spec.n_train:,} at most train the head."
        )
        return
    figure = RescaleLayers(dataset=dataset, encoder=encoder, spec=spec, dataset_digest=data.digest).draw(
        result
    )
    exports.chart(figure.interactive(exports.theme()), "rescale.layers")
    exports.export_bar(figure, "rescale-layers")
    st.dataframe(result.table().round(3), hide_index=True, key="rescale.layer-table")
    st.caption(
        f"The head was trained on **{result.n_train:,}** items and tested on **{result.n_test:,}** held-out"
        f" ones of {data.n:,} in '{plain_name(data.name)}', with balanced classes. Not rescaled:"
        f" {short(result.own)}; chance level (always the most frequent class): {short(result.chance)}."
    )


def _span(key: str, usual: int, explanation: str) -> int:
    return kept(
        st.select_slider,
        "Range of α",
        [4, 8, 16, 32, 64, 128],
        usual,
        format_func=lambda span: f"÷ and × {span}",
        key=key,
        help=explanation,
        width=200,
    )


def networks_of(workspace: Workspace) -> dict[str, tuple[DatasetSpec, Encoder]]:
    """Networks whose layers can be opened: the examples, then those of the labelled encodings in the
    session.
    """
    found = dict(EXAMPLES)
    for spec in candidates(workspace):
        encoder = spec.encoder
        if encoder is not None and can_open(encoder) and (spec.dataset, encoder) not in found.values():
            found[spec.name] = spec.dataset, encoder
    return found
