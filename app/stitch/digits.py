"""An example: the user draws a digit, one network encodes it, and the classifier of another network names
it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from app import compute, jobs
from app.components.drawing_pad import drawing_pad
from app.encode.ready import encoders
from app.places import CONNECT, go
from app.plain_text import plain_html
from app.stitch.try_it import StitchSetup, caption_of, stitching_of
from relcore.base.errors import SpaceError
from relcore.base.numbers import and_list, percent
from relcore.catalog.catalog import held_out_ids
from relcore.catalog.naming import example_spaces
from relcore.encoders.dataset import Dataset
from relcore.encoders.drawings import look_of, made_like
from relcore.encoders.pictures import png_thumbnail
from relcore.stitch.classifiers import Stitching
from relcore.stitch.shared_rows import share_rows
from relcore.stitch.stitching import StitchSpec
from relcore.stitch.try_it import Answers, answers_of, rows_of

if TYPE_CHECKING:
    from PIL.Image import Image

_NAMES = "CNN", "residual network"
_DRAW = "Draw"
_EXAMPLE = "5"  # label of the scan that is answered before something is drawn
_STITCHED = "the other's, by similarities"
OPENS = "relscope.stitch-opens"  # True if Stitch opens on the digits


def draw(chart: Callable[[Mapping[str, float], str], str], size: int) -> None:
    """Draw the example, with a drawing pad of `size` pixels. `chart` returns the HTML of a chart of shares,
    in which one name is marked."""
    with st.container(key="story-digits"):
        pad, answers, says = st.columns([1.1, 1.3, 1.2], gap="medium")
    with says:
        st.html(
            '<p class="relscope-says">Two networks learned to read digits, each by itself. Take the encoder'
            " of one and the classifier of the other. By coordinates they do not fit together; by"
            " similarities to the same anchors they do. <b>Nothing is trained again.</b></p>"
        )
    with answers:
        chosen = st.pills(
            "Draw a digit, or take a scan",
            [_DRAW, *"0123456789"],
            default=_DRAW,
            required=True,
            wrap=True,
            key="story.digit",
        )
    with pad:  # draw the pad first, because fitting the heads takes time
        picture = None
        if chosen == _DRAW:
            picture = drawing_pad("story.pad", "Draw a digit here with mouse, pen or finger", size)
    setup = _setup()
    item = None
    with says:
        _draw_shares(chart)
    ready, _ = encoders(setup.specs)
    dataset = ready[setup.specs[0]].dataset
    with pad:
        if chosen != _DRAW:
            item = _scan(dataset, stitching_of(setup), chosen)
        elif picture is not None:
            with suppress(SpaceError):  # an empty drawing is an even grey, which is no digit
                item = made_like(picture, look_of(dataset), "drawing")
        seen = caption_of(look_of(dataset))
        if item is None:  # an example holds the place of the answers
            item = _scan(dataset, stitching_of(setup), _EXAMPLE)
            seen = f"Until you draw: a scan of a {_EXAMPLE}"
        wide = 96 if chosen == _DRAW else size
        st.image(BytesIO(png_thumbnail(item, wide)), width=wide, alt=seen)
        st.caption(seen)
    rows = rows_of([ready[spec] for spec in setup.specs], [item])
    with answers:
        stitching = stitching_of(setup)
        answers = (answers_of(stitching, one, rows, reject_unsure=False) for one in ("relative", "absolute"))
        st.html(table(*answers))


def _draw_shares(chart: Callable[[Mapping[str, float], str], str]) -> None:
    """Draw how often each kind of classifier is right, and a button that opens Stitch."""
    right, n, chance = _right()
    st.html(chart(right, _STITCHED))
    st.caption(f"Right answers to {n:,} digits that neither network has seen. By chance: {percent(chance)}.")
    if st.button("Every pair of four networks", icon=":material/conversion_path:", key="story.stitch"):
        st.session_state[OPENS] = True
        go(CONNECT, "Stitch")


def _scan(dataset: Dataset, stitching: Stitching, label: str) -> Image:
    """The first scan with this label on which no network and no classifier was trained."""
    tested = stitching.shared.ids[stitching.split.test]
    return dataset.item(int(np.flatnonzero(np.isin(dataset.ids, tested) & (dataset.labels == label))[0]))


def _setup() -> StitchSetup:
    specs, _ = example_spaces("digits", jobs.queue().store.finished)
    specs = tuple(specs[1:3])
    spaces = [compute.load_space(spec) for spec in specs]
    test_ids = held_out_ids(specs, spaces, share_rows(spaces).ids)
    return StitchSetup(specs, StitchSpec(("absolute", "relative"), test_ids=test_ids))


@compute.cached(1)
def _right() -> tuple[dict[str, float], int, float]:
    """The mean share of held-out digits that each kind of classifier gets right, the number of these digits,
    and the chance level."""
    run = stitching_of(_setup()).run()
    right = {method: answers == run.truth for method, answers in run.answers.items()}
    own = ~np.eye(len(right["relative"]), dtype=bool)
    shares = {
        "its own classifier": right["relative"][~own].mean(),
        _STITCHED: right["relative"][own].mean(),
        "the other's, by coordinates": right["absolute"][own].mean(),
    }
    return shares, len(run.truth), float((run.truth == run.majority).mean())


def table(answers: Answers, control: Answers) -> str:
    """A table as HTML. For each encoder, it shows the answer of its own classifier and, by similarities, the
    answer of the other network's classifier. As a control, it shows the latter's answer by coordinates."""
    rows = ""
    alone = [answers.answer(i, i) for i in range(2)]
    if len(set(alone)) > 1:
        says = and_list(f"the {name} says {answer}" for name, answer in zip(_NAMES, alone, strict=True))
        rows += f"<p>With its own classifier, {plain_html(says)}.</p>"
    for i, other in ((0, 1), (1, 0)):
        for kind, by, j in (("", answers, i), ("stitched", answers, other), ("control", control, other)):
            ((_, sure),) = by.top(i, j, 1)
            answer = plain_html(by.answer(i, j))
            how = "by similarities"
            if kind == "control":
                how = "by coordinates"
            reads = "its own classifier"
            if kind:
                reads = f"<b>the classifier of the {_NAMES[j]}, {how}</b>"
            rows += (
                f'<div class="{kind}"><span>Encoder of the {_NAMES[i]}, {reads}</span><b>{answer}</b>'
                f"<small>{percent(sure)}</small></div>"
            )
    return f'<section class="relscope-digits">{rows}</section>'
