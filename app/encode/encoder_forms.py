"""One form an encoder: from its name to widgets to frozen specs. An encoder more is a function and a line in `FORMS`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from app.encode.raw_data import Preview
from relcore.sources.dataset import Kind
from relcore.sources.encoder import Encoder
from relcore.sources.graphs import GraphEncoder
from relcore.sources.lsa import TfidfSvd
from relcore.sources.pooled_words import PooledWords
from relcore.sources.small_networks import NAMES
from relcore.sources.small_vision import LARGEST, SmallVision
from relcore.sources.text import MiniLM, PretrainedText
from relcore.sources.vision import PretrainedVision
from relcore.sources.words import BUNDLED
from relcore.spaces import SpaceError

_KEEP = {"persist_state": "session"}
_POOLINGS = {"mean": "Mean", "cls": "Class token", "pooled": "The model's own"}
_WEIGHTINGS = {"plain": "Plain mean", "idf": "IDF", "sif": "SIF"}
_GRAPHS = {"gcn2": "GCN2Conv", "gin": "GIN"}


def _small_networks(preview: Preview) -> list[Encoder]:
    if len(preview.classes) < 2:
        st.warning(
            "Small networks learn from labels of two or more classes, and there are none here: choose a label column above, "
            "or a pretrained model.",
            icon=":material/label_off:",
        )
        return []
    architectures = st.multiselect(
        "Architectures", list(NAMES), default=list(NAMES), format_func=NAMES.get, key="encode.architectures", **_KEEP
    )
    width, epochs, state, size = st.columns(4)
    settings = {
        "width": width.number_input("Width", 2, 4096, 64, key="encode.width", help="Dimension of the space.", **_KEEP),
        "epochs": epochs.number_input("Epochs", 1, 1000, 12, key="encode.epochs", help="Passes over the rows.", **_KEEP),
        "random_state": state.number_input(
            "Random state", 0, 2**31, 0, key="encode.state", help="Draws the first weights and the order of the rows.", **_KEEP
        ),
    }
    largest = max(max(size) for size in preview.sizes)
    needed = len(preview.sizes) > 1 or largest > LARGEST
    image_size = size.number_input(
        "Pixels a side",
        4,
        LARGEST,
        32 if needed else None,
        placeholder="own",
        key=f"encode.image-size-{needed}",
        help=f"Every picture is made so large. Needed where they differ, or are larger than {LARGEST} pixels.",
        **_KEEP,
    )
    return [SmallVision(name, image_size=image_size, **settings) for name in architectures]


def _pretrained_vision(preview: Preview) -> list[Encoder]:
    model, layers, pooling = _pretrained("vision", "google/vit-base-patch16-224, or a folder")
    return [PretrainedVision(model, layers, pooling)] if model else []


def _pretrained_text(preview: Preview) -> list[Encoder]:
    model, layers, pooling = _pretrained("text", "bert-base-uncased, or a folder")
    return [PretrainedText(model, layers, pooling)] if model else []


def _pretrained(kind: str, example: str) -> tuple[str, tuple[int, ...], str]:
    name, layers, pooling = st.columns([2, 1, 2])
    model = name.text_input("Model", placeholder=example, key=f"encode.{kind}-model", **_KEEP).strip()
    given = layers.text_input(
        "Layers",
        "-1",
        key=f"encode.{kind}-layers",
        help="0 the embedding, 1 the first, -1 the last; several: 4, 8, 12.",
        **_KEEP,
    )
    way = pooling.segmented_control(
        "Pooling",
        list(_POOLINGS),
        default="mean",
        format_func=_POOLINGS.get,
        key=f"encode.{kind}-pooling",
        required=True,
        **_KEEP,
    )
    if model and not Path(model).expanduser().is_dir():
        st.caption(
            ":material/cloud_download: Not a folder here: looked for among the downloaded models, then on the network, and "
            "without one that is said within seconds."
        )
    return model, _numbers(given), way


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.replace(",", " ").split())
    except ValueError as error:
        raise SpaceError(f"layers: expected whole numbers such as 4, 8, 12, got {text!r}") from error


def _minilm(preview: Preview) -> list[Encoder]:
    layers = st.multiselect(
        "Layers",
        range(7),
        default=[2, 4, 6],
        format_func=_layer,
        key="encode.minilm-layers",
        help="All from one pass.",
        **_KEEP,
    )
    return [MiniLM(tuple(sorted(layers)))] if layers else []


def _layer(layer: int) -> str:
    return {0: "0, the embedding", 6: "6, the last"}.get(layer, str(layer))


def _tfidf_svd(preview: Preview) -> list[Encoder]:
    most = min(384, max(preview.n // 4, 1))
    return [TfidfSvd(st.number_input("Dimensions", 1, 4096, most, key=f"encode.tfidf-{most}", **_KEEP))]


def _pooled_words(preview: Preview) -> list[Encoder]:
    words, weighting = st.columns(2)
    chosen = words.selectbox(
        "Word vectors",
        list(BUNDLED),
        key="encode.words",
        accept_new_options=True,
        help="Or the path of a file of yours.",
        **_KEEP,
    )
    ways = weighting.pills(
        "Weighting",
        list(_WEIGHTINGS),
        selection_mode="multi",
        default=["sif"],
        format_func=_WEIGHTINGS.get,
        key="encode.weighting",
        help="IDF: rare words count more. SIF: and the common direction is taken out.",
        **_KEEP,
    )
    return [PooledWords(chosen, way) for way in ways]


def _graph(preview: Preview) -> list[Encoder]:
    architectures = st.pills(
        "Convolutions",
        list(_GRAPHS),
        selection_mode="multi",
        default=list(_GRAPHS),
        format_func=_GRAPHS.get,
        key="encode.convolutions",
        **_KEEP,
    )
    layers, width, epochs, state = st.columns(4)
    settings = {
        "layers": layers.number_input("Layers", 1, 64, 2, key="encode.graph-layers", help="Deep GINs do not learn.", **_KEEP),
        "width": width.number_input("Width", 2, 4096, 300, key="encode.graph-width", help="Dimension of the space.", **_KEEP),
        "epochs": epochs.number_input("Epochs", 1, 1000, 60, key="encode.graph-epochs", **_KEEP),
        "random_state": state.number_input("Random state", 0, 2**31, 0, key="encode.graph-state", **_KEEP),
    }
    return [GraphEncoder(name, **settings) for name in architectures]


Form = Callable[[Preview], list[Encoder]]
FORMS: dict[Kind, dict[str, Form]] = {  # the first of each kind is there at the start
    "images": {"Small networks, trained here": _small_networks, "Pretrained model": _pretrained_vision},
    "texts": {
        "MiniLM": _minilm,
        "TF-IDF + SVD": _tfidf_svd,
        "Pooled word vectors": _pooled_words,
        "Pretrained model": _pretrained_text,
    },
    "graph": {"Graph networks, trained here": _graph},
}


def choose_encoders(preview: Preview) -> list[Encoder]:
    """The encoders that the forms describe, each once; a form that cannot be read says so and gives none."""
    forms = FORMS[preview.kind]
    shown = list(forms)
    if len(forms) > 1:
        shown = st.pills(
            "Encoders",
            list(forms),
            selection_mode="multi",
            default=shown[:1],
            key=f"encode.forms-{preview.kind}",
            label_visibility="collapsed",
            **_KEEP,
        )
    encoders: list[Encoder] = []
    for name in shown:
        with st.container(border=True):
            st.markdown(f"**{name}**")
            try:
                encoders += forms[name](preview)
            except SpaceError as error:
                st.error(str(error), icon=":material/error:")
    return list(dict.fromkeys(encoders))
