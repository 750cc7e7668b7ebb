"""Pictures and words: name what is in a picture by sentences, without a head, from pictures with captions alone (ASIF)."""

from __future__ import annotations

import numpy as np
import streamlit as st

from app import compute, exports
from app.encode import raw_data
from app.jobs import RESULTS, asked_again, engine, follow
from app.stitch import parallel_lists
from app.widgets import space_labels
from app.workspace import Workspace
from relcore.languages.captioned import (
    GENERAL,
    TEMPLATES,
    CaptionSpec,
    ZeroShot,
    captions,
    captions_job,
    classes_of,
    encode_captions,
)
from relcore.languages.captioned import zero_shot as classify
from relcore.languages.figures import draw_zero_shot, unseen_rows
from relcore.sources.catalog import SpaceSpec
from relcore.sources.encoder import Encoder
from relcore.sources.lsa import TfidfSvd
from relcore.sources.text import MiniLM
from relcore.spaces import LatentSpace, SpaceError
from relcore.stitching.one_item import why_not
from relcore.store import digest_of

_KEEP = {"persist_state": "session"}


def draw(workspace: Workspace) -> None:
    """The tab."""
    st.html(
        '<p class="relscope-lead">An encoder of pictures and an encoder of sentences, trained apart, share nothing. Some '
        "pictures come with a caption. Which sentence fits a new picture best, when both are told relative to those pairs?</p>"
    )
    found = [spec for spec in workspace.spaces if _usable(spec)]
    if not found:
        st.info(
            "This needs an encoding of labelled pictures in the session, such as the digits: their classes become captions. "
            "Make one on the Spaces page, under Encode.",
            icon=":material/image:",
        )
        return
    try:
        _ask(found)
    except SpaceError as error:
        st.error(str(error), icon=":material/error:")


def _usable(spec: SpaceSpec) -> bool:
    try:
        pictures = not why_not(spec) and raw_data.preview(spec.dataset).kind == "images"
        return pictures and compute.load_space(spec).labels is not None
    except SpaceError:
        return False


def _ask(found: list[SpaceSpec]) -> None:
    chart, choosers = st.columns([1.7, 1], gap="large")
    with choosers:
        images = st.selectbox(
            "Pictures", found, format_func=space_labels(found).get, key=f"words.images-{digest_of(found)[:6]}", **_KEEP
        )
        space = compute.load_space(images)
        classes = classes_of(space)
        spec = _settings(classes, len(space), digest_of(classes)[:6])
        n = len(captions(classes, spec.templates))
        encoder = st.selectbox(
            "Sentences read by",
            [TfidfSvd(max(2, min(100, n // 4)), min_texts=1), MiniLM((6,))],
            format_func=parallel_lists.encoder_name,
            key=f"words.encoder-{n}",
            **_KEEP,
        )
    with chart:
        texts = _texts(classes, spec.templates, encoder)
        if texts is None:
            return
        key = digest_of("zero-shot", space.digest, texts)
        result = _classified(key, space.name, encoder.title, spec, space, texts, unseen_rows(images, space))
        _show(images, encoder, spec, space, result)


def _settings(classes: tuple[str, ...], n: int, place: str) -> CaptionSpec:
    digits = set(classes) <= set("0123456789")
    written = st.text_area(
        "Captions, {} is the class",
        "\n".join(TEMPLATES if digits else GENERAL),
        key=f"words.templates-{place}",
        height=170,
        help="One a line. The first asks, and no picture is captioned by it; the others take turns. Classes are said in words.",
        **_KEEP,
    )
    templates = tuple(dict.fromkeys(line.strip() for line in written.splitlines() if line.strip()))
    most = max(len(classes), int(0.75 * n))
    n_pairs = st.slider("Pictures with captions", 2, most, min(300, most), key=f"words.pairs-{place}-{n}", **_KEEP)
    usual = CaptionSpec()
    with st.popover("Settings", icon=":material/tune:"):
        keep = st.number_input(
            "Similarities kept",
            1,
            5000,
            usual.keep,
            key="words.keep",
            help="Of each item the largest; ASIF keeps 800 of 1.6 million.",
            **_KEEP,
        )
        exponent = st.number_input("Exponent", 0.5, 32.0, usual.exponent, key="words.exponent", help="ASIF: 8.", **_KEEP)
    return CaptionSpec(templates, int(n_pairs), int(keep), float(exponent))


def _texts(classes: tuple[str, ...], templates: tuple[str, ...], encoder: Encoder) -> np.ndarray | None:
    """Rows of the captions; a language model reads them in a job, which begins by itself as it is short."""
    if isinstance(encoder, TfidfSvd):
        return encode_captions(classes, templates, encoder, engine().store)
    key = digest_of("captions", RESULTS, classes, templates, encoder)
    job = engine().job(key)
    if job is None or asked_again(job):
        title = f"{encoder.title}, {len(captions(classes, templates)):,} captions"
        job = engine().submit(key, captions_job, title=title, classes=classes, templates=templates, encoder=encoder)
    if job.status().state == "done":
        return job.result().arrays["rows"]
    follow([job])
    return None


@st.cache_resource(max_entries=24, show_spinner="Asking every picture …")
def _classified(
    key: str,
    name: str,
    text_name: str,
    spec: CaptionSpec,
    _space: LatentSpace,
    _texts: np.ndarray,
    _test_rows: np.ndarray | None,
) -> ZeroShot:
    return classify(_space, _texts, spec, text_name, _test_rows)


def _show(images: SpaceSpec, encoder: Encoder, spec: CaptionSpec, space: LatentSpace, result: ZeroShot) -> None:
    st.html(
        f'<p class="relscope-lead"><b>{result.accuracy[-1]:.2f}</b> of {len(result.truth):,} pictures are named right by '
        f"sentences, with {result.counts[-1]:,} captioned ones known. Chance level {result.chance:.2f}; a head trained on all "
        f"labels {result.head:.2f}.</p>"
    )
    figure = draw_zero_shot(images, encoder, spec, digests=[space.digest], result=result)
    exports.chart(figure.interactive(exports.theme()), "words.chart")
    trained = (
        " The encoder of these pictures was trained on their labels, so its rows stand sorted by class already: it flatters "
        "sentences and head alike. Tested on pictures that it was not trained on."
        if unseen_rows(images, space) is not None
        else ""
    )
    st.caption(
        f"Accuracy on {len(result.truth):,} pictures of {len(result.classes)} classes; each is asked about "
        f"“{spec.templates[0]}”, a sentence that captioned none. The captions are made of the labels, so they are as good as "
        f"captions can be.{trained}"
    )
    exports.export_bar(figure, "zero-shot")
