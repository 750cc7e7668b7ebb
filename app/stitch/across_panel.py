"""A head across languages: trained on one encoder's rows, asked about another's, through sentences from outside of both."""

from __future__ import annotations

import streamlit as st

from app import compute, exports, session
from app.encode import raw_data
from app.jobs import RESULTS, asked_again, engine, follow
from app.widgets import space_labels
from app.workspace import Workspace
from relcore.languages.across import AcrossResult
from relcore.languages.across_job import across_job
from relcore.languages.figures import draw_across
from relcore.names import METHODS
from relcore.sources.catalog import SpaceSpec
from relcore.sources.parallel import LANGUAGES, N_SENTENCES, load_parallel
from relcore.spaces import SpaceError
from relcore.stitching.one_item import why_not
from relcore.stitching.spec import StitchSpec
from relcore.store import digest_of

_KEEP = {"persist_state": "session"}


def draw(workspace: Workspace) -> None:
    """Choosers, one job, its result."""
    st.html(
        '<p class="relscope-lead">A head learns from labelled texts of one encoder and is asked about texts of another, maybe '
        "in another language. All that the two have in common are everyday sentences, which say nothing of the task.</p>"
    )
    found = [spec for spec in workspace.spaces if _usable(spec)]
    if len(found) < 2:
        st.info(
            "This needs two encodings of labelled texts in the session, with the same labels: one data set in each language, "
            "or one data set through two encoders. Make them on the Spaces page, under Encode.",
            icon=":material/translate:",
        )
        return
    sides = [_side(found, number, label) for number, label in enumerate(("Head of", "asked about rows of"))]
    (head, first), (rows, second) = sides
    if head == rows:
        st.info("Choose two different encodings.", icon=":material/translate:")
        return
    n = st.slider("Pairs of sentences", 20, N_SENTENCES, N_SENTENCES, key="across.pairs", width=320, **_KEEP)
    columns = load_parallel((first, second))
    pairs = tuple(zip(columns[first][: int(n)], columns[second][: int(n)], strict=True))
    spec = StitchSpec()
    result = _result((head, rows), pairs, spec)
    if result:
        _show((head, rows), pairs, spec, result)


def _usable(spec: SpaceSpec) -> bool:
    try:
        texts = not why_not(spec) and raw_data.preview(spec.dataset).kind == "texts"
        return texts and compute.load_space(spec).labels is not None
    except SpaceError:
        return False


def _side(found: list[SpaceSpec], number: int, label: str) -> tuple[SpaceSpec, str]:
    labels, place = space_labels(found), digest_of(found)[:6]
    with st.container(horizontal=True):
        spec = st.selectbox(label, found, index=number, format_func=labels.get, key=f"across.space-{number}-{place}", **_KEEP)
        language = st.selectbox(
            "which reads",
            list(LANGUAGES),
            format_func=LANGUAGES.get,
            key=f"across.language-{number}-{place}",
            width=160,
            **_KEEP,
        )
    return spec, language


def _result(specs: tuple[SpaceSpec, SpaceSpec], pairs: tuple, spec: StitchSpec) -> AcrossResult | None:
    """From the store, or None and a button or a bar."""
    key = digest_of("across", RESULTS, [compute.load_space(one).digest for one in specs], pairs, spec)
    job = engine().job(key)
    if job and asked_again(job):
        job = _submit(key, specs, pairs, spec)
    if job is None:
        seconds = 10 + sum(len(compute.load_space(one)) for one in specs) / 500  # 20 s for two of 6,000 Wikipedia sentences
        st.button(
            f"Ask the head · about {seconds:.0f} s",
            key="across.start",
            type="primary",
            icon=":material/conversion_path:",
            on_click=session.guarded,
            args=(_submit, key, specs, pairs, spec),
        )
        return None
    if job.status().state == "done":
        return AcrossResult.from_json(job.result().metadata["across"])
    follow([job])
    return None


def _submit(key: str, specs: tuple[SpaceSpec, SpaceSpec], pairs: tuple, spec: StitchSpec):
    return engine().submit(key, across_job, title="A head across languages", specs=specs, pairs=pairs, spec=spec)


def _show(specs: tuple[SpaceSpec, SpaceSpec], pairs: tuple, spec: StitchSpec, result: AcrossResult) -> None:
    best = max(result.accuracy, key=result.accuracy.get)
    st.html(
        f'<p class="relscope-lead">The head answers <b>{result.accuracy[best]:.2f}</b> of {result.n:,} rows right, by '
        f"{METHODS[best].title}; chance level {result.chance:.2f}. At home it answers {result.home[best]:.2f}, and a head that "
        f"is trained on those rows' own labels {result.ceiling:.2f}.</p>"
    )
    digests = [compute.load_space(one).digest for one in specs]
    figure = draw_across(specs, spec, pairs, digests=digests, result=result)
    exports.chart(figure.interactive(exports.theme()), "across.map")
    st.caption(
        f"Accuracy. The head was trained on {result.n_train:,} rows of {result.names[0]} and tested on {result.n:,} held-out "
        f"rows of {result.names[1]}; rows that both have are trained on in both or held out of both. {result.n_anchors:,} "
        "pairs of everyday sentences are the anchors. Dotted: not stitched. Chance level: always the head's most frequent "
        "class."
    )
    exports.export_bar(figure, "across")
