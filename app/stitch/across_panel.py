"""A head across languages: train it on rows of one encoder, and score it on rows of another, through pairs of sentences."""

from __future__ import annotations

import streamlit as st

from app import compute, exports, results
from app.page_settings import kept
from app.plain_text import plain_name
from app.stitch.stitch_setup import labelled_items
from app.widgets import space_labels
from app.workspace import Workspace
from relcore.languages.across import AcrossResult, HeadAcross
from relcore.languages.figures import AcrossLanguages
from relcore.names import METHODS
from relcore.numbers import counted, short
from relcore.sources.catalog import SpaceSpec
from relcore.sources.parallel import LANGUAGES, N_SENTENCES, load_parallel
from relcore.store import digest_of


def draw(workspace: Workspace) -> None:
    """Choosers, one job, its result."""
    st.html(
        '<p class="relscope-lead">A head is trained on labelled texts of one encoder and classifies texts of another encoder, '
        "perhaps in another language. The two share only pairs of everyday sentences, which do not concern the task.</p>"
    )
    found = labelled_items(workspace, "texts")
    if len(found) < 2:
        st.info(
            "This needs two encodings of labelled texts in the session, with the same labels: one dataset per language, or "
            "one dataset through two encoders. Make them on the Spaces page, under Encode.",
            icon=":material/translate:",
        )
        return
    sides = [_side(found, number, label) for number, label in enumerate(("Train the head on", "Classify rows of"))]
    (head, first), (rows, second) = sides
    if head == rows:
        st.info("Choose two different encodings.", icon=":material/translate:")
        return
    n = kept(st.slider, "Pairs of sentences", 20, N_SENTENCES, N_SENTENCES, key="across.pairs", width=320)
    columns = load_parallel((first, second))
    pairs = tuple(zip(columns[first][: int(n)], columns[second][: int(n)], strict=True))
    task = HeadAcross((head, rows), pairs)
    result = results.computed(task, task.specs, label="Classify the rows", icon=":material/conversion_path:")
    if result:
        _show(task, result)


def _side(found: list[SpaceSpec], number: int, label: str) -> tuple[SpaceSpec, str]:
    labels, place = space_labels(found), digest_of(found)[:6]
    with st.container(horizontal=True):
        spec = kept(st.selectbox, label, found, index=number, format_func=labels.get, key=f"across.space-{number}-{place}")
        language = kept(
            st.selectbox,
            "Language",
            list(LANGUAGES),
            format_func=LANGUAGES.get,
            key=f"across.language-{number}-{place}",
            width=160,
        )
    return spec, language


def _show(task: HeadAcross, result: AcrossResult) -> None:
    best = max(result.accuracy, key=result.accuracy.get)
    st.html(
        f'<p class="relscope-lead">The accuracy of the head is <b>{short(result.accuracy[best], 2)}</b> on {result.n:,} rows, '
        f"by {METHODS[best].title}; chance level {short(result.chance, 2)}. It is {short(result.home[best], 2)} on the head's "
        f"own space, and {short(result.ceiling, 2)} for a head trained on the labels of these rows.</p>"
    )
    digests = compute.digests(task.specs)
    recipe = AcrossLanguages(spaces=task.specs, digests=digests, stitching=task.stitching, pairs=task.pairs)
    figure = recipe.draw(result)
    exports.chart(figure.interactive(exports.theme()), "across.map")
    head, rows = map(plain_name, result.names)
    st.caption(
        f"Accuracy. The head was trained on {counted(result.n_train, 'row')} of {head} and tested on {result.n:,} held-out "
        f"rows of {rows}; a row that both have is held out of both or of neither. {counted(result.n_anchors, 'pair')} of "
        "everyday sentences are the anchors. Dotted: not stitched. Chance level: always the most frequent class of the head."
    )
    exports.export_bar(figure, "across")
