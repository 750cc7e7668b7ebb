"""Pictures and words: classify pictures by sentences, without a head, from pictures with captions alone
(ASIF).
"""

from __future__ import annotations

import numpy as np
import streamlit as st

from app import compute, exports, messages, results
from app.page_settings import kept
from app.plain_text import plain_name
from app.stitch import languages
from app.stitch.panel import labelled_items
from app.widgets import space_labels
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.base.numbers import counted, short
from relcore.catalog.catalog import SpaceSpec
from relcore.encoders.encoder import Encoder
from relcore.encoders.sentences import TfidfSvd
from relcore.encoders.transformers import MiniLM
from relcore.runs.digest import digest_of
from relcore.spaces.space import LatentSpace
from relcore.stitch.captioned import (
    GENERAL,
    TEMPLATES,
    CaptionSpec,
    EncodeCaptions,
    ZeroShot,
    captions,
    classes_of,
)
from relcore.stitch.captioned import zero_shot as classify
from relcore.stitch.languages import PicturesAndWords, unseen_rows


def draw(workspace: Workspace) -> None:
    """The tab."""
    st.html(
        '<p class="relscope-lead">An encoder of pictures and an encoder of sentences were trained'
        " independently. Some pictures have a caption. Both encoders become comparable relative to these"
        " pairs: which sentence fits a new picture best?</p>"
    )
    found = labelled_items(workspace, "images")
    if not found:
        st.info(
            "This needs an encoding of labelled pictures in the session, such as the digits. Captions are"
            " made of the classes. Make one on the Spaces page, under Encode.",
            icon=":material/image:",
        )
        return
    try:
        _ask(found)
    except SpaceError as error:
        messages.error(error)


def _ask(found: list[SpaceSpec]) -> None:
    chart, choosers = st.columns([1.7, 1], gap="large")
    with choosers:
        images = kept(
            st.selectbox,
            "Pictures",
            found,
            format_func=space_labels(found).get,
            key=f"words.images-{digest_of(found)[:6]}",
        )
        space = compute.load_space(images)
        classes = classes_of(space)
        spec = _settings(classes, len(space), digest_of(classes)[:6])
        n = len(captions(classes, spec.templates))
        encoder = kept(
            st.selectbox,
            "Encoder of the sentences",
            [TfidfSvd(max(2, min(100, n // 4)), min_texts=1), MiniLM((6,))],
            format_func=languages.encoder_name,
            key=f"words.encoder-{n}",
        )
    with chart:
        task = EncodeCaptions(classes, spec.templates, encoder)
        texts = results.computed(
            task, label="Encode the captions", unasked_seconds=60
        )  # short: it starts by itself
        if texts is None:
            return
        result = _classified(
            space.digest, task.key(), encoder.title, spec, space, texts.rows, unseen_rows(images, space)
        )
        _show(images, encoder, spec, space, result)


def _settings(classes: tuple[str, ...], n: int, place: str) -> CaptionSpec:
    digits = set(classes) <= set("0123456789")
    written = kept(
        st.text_area,
        "Captions, with {} for the class",
        "\n".join(TEMPLATES if digits else GENERAL),
        key=f"words.templates-{place}",
        height=170,
        help=(
            "One per line. The first is the query of each class; the others are used as captions in turn."
            " Digits are written as words."
        ),
    )
    templates = tuple(dict.fromkeys(line.strip() for line in written.splitlines() if line.strip()))
    most = max(len(classes), int(0.75 * n))
    n_pairs = kept(
        st.slider, "Pictures with captions", 2, most, min(300, most), key=f"words.pairs-{place}-{n}"
    )
    usual = CaptionSpec()
    with st.popover("Settings", icon=":material/tune:"):
        keep = kept(
            st.number_input,
            "Similarities to keep",
            1,
            5000,
            usual.keep,
            key="words.keep",
            help="The largest ones of each item are kept. ASIF keeps 800 of 1.6 million.",
        )
        exponent = kept(
            st.number_input, "Exponent", 0.5, 32.0, usual.exponent, key="words.exponent", help="ASIF uses 8."
        )
    return CaptionSpec(templates, int(n_pairs), int(keep), float(exponent))


@st.cache_resource(max_entries=24, show_spinner="Classifying every picture …")
def _classified(
    space_digest: str,
    texts_key: str,
    text_name: str,
    spec: CaptionSpec,
    _space: LatentSpace,
    _texts: np.ndarray,
    _test_rows: np.ndarray | None,
) -> ZeroShot:
    return classify(_space, _texts, spec, text_name, _test_rows)


def _show(
    images: SpaceSpec, encoder: Encoder, spec: CaptionSpec, space: LatentSpace, result: ZeroShot
) -> None:
    st.html(
        f'<p class="relscope-lead">The sentences classify <b>{short(result.accuracy[-1], 2)}</b> of'
        f" {len(result.truth):,} "
        f"pictures correctly, from {counted(result.counts[-1], 'picture')} with captions. Chance level "
        f"{short(result.chance, 2)}; a "
        f"head trained on all labels {short(result.head, 2)}.</p>"
    )
    recipe = PicturesAndWords(spaces=(images,), digests=(space.digest,), encoder=encoder, captions=spec)
    figure = recipe.draw(result)
    exports.chart(figure.interactive(exports.theme()), "words.chart")
    trained = (
        " The encoder was trained on the labels of other pictures, so its rows are already sorted by class."
        " This helps the sentences and the head alike."
        if unseen_rows(images, space) is not None
        else ""
    )
    st.caption(
        f"Accuracy on {counted(len(result.truth), 'held-out picture')} of"
        f" {counted(len(result.classes), 'class', 'classes')}. The query of each class is"
        f" “{plain_name(spec.templates[0])}”, which is no caption. The captions are made of the labels, so no"
        f" caption is wrong.{trained}"
    )
    exports.export_bar(figure, "zero-shot")
