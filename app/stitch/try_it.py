"""Try it: type a sentence or draw a picture, and see the answer of every encoder with every classifier."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from app import compute, exports, live, messages
from app.components.drawing_pad import camera, drawing_pad, read_picture
from app.components.page import scripts
from app.encode.ready import encoders
from app.page_settings import remembered, segments
from app.plain_text import plain, plain_html, plain_name
from app.server import first_imports
from app.widgets import space_name
from relcore.base.access import is_shared
from relcore.base.errors import SpaceError
from relcore.base.names import METHODS
from relcore.base.numbers import and_list, counted
from relcore.catalog.catalog import SpaceSpec
from relcore.encoders.dataset import Dataset
from relcore.encoders.drawings import Look, look_of, made_like, strokes_of
from relcore.encoders.pictures import decode_image, png_thumbnail
from relcore.figures.matrices import Matrices, name_of
from relcore.figures.style import Theme, text_on
from relcore.spaces.matching import short_names
from relcore.spaces.space import LatentSpace
from relcore.stitch.classifiers import Stitching
from relcore.stitch.shared_rows import SharedRows, share_rows
from relcore.stitch.stitching import StitchSpec
from relcore.stitch.try_it import Answers, ItemEncoder, TryIt, answers_of, matrices_of, rows_of

if TYPE_CHECKING:
    from PIL.Image import Image


# In pixels: the longer side of a picture that is shown, and the side of the drawing pad.
_SHOWN = 160
_PAD = 300
_LISTED = 30  # maximum number of classes listed as possible answers

# Seconds; if fitting all methods takes less, fit them in advance, so that the method can be changed quickly.
_FITTED_AT_ONCE = 5.0
_LONGEST_TEXT = 2000  # maximum number of characters of a text
_LONGEST_ITEM = 1 << 20  # maximum number of bytes of a message that the browser sends for one item
# CSS classes on the page
_TEXT = "st-key-stitch-try-text"
_ANSWERS = "relscope-all-answers"
_follow = st.components.v2.component("relscope_answers", js=scripts("channel", "answers"))


@dataclass(frozen=True)
class StitchSetup:
    specs: tuple[SpaceSpec, ...]
    spec: StitchSpec

    @property
    def recipe(self) -> dict[str, Any]:
        return {"spaces": self.specs, "digests": compute.digests(self.specs), "stitching": self.spec}


def load_spaces(specs: Sequence[SpaceSpec]) -> list[LatentSpace]:
    return [compute.load_space(spec) for spec in specs]


@compute.cached(4)
def shared_rows(order: tuple[str, ...], *spaces: LatentSpace) -> SharedRows:
    return share_rows(spaces, order)


def stitching_of(setup: StitchSetup) -> Stitching:
    return _stitching_of(setup, *load_spaces(setup.specs))


@compute.cached(6, "Fitting the classifiers …")
def _stitching_of(setup: StitchSetup, *spaces: LatentSpace) -> Stitching:
    return Stitching(shared_rows(setup.spec.order, *spaces), setup.spec, setup.spec.random_states[0])


@dataclass(frozen=True, eq=False)
class Item:
    """A text or picture. If it is a test row, `truth` is its true label."""

    item: str | Image
    truth: str = ""


def _text(dataset: Dataset, stitching: Stitching) -> Item | None:
    key = "stitch.try-text"
    if key not in st.session_state:
        _put_text(dataset, stitching, 0)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        remembered(
            st.text_input,
            "A sentence",
            key=key,
            live="200ms",  # the WebSocket sends answers while the user types
            placeholder="Type a sentence; every pair answers as you type",
            max_chars=_LONGEST_TEXT,
        )
        st.button(
            "Another test sentence",
            key="stitch.try-another",
            icon=":material/shuffle:",
            help="A sentence that no classifier was trained on",
            on_click=_put_text,
            args=(dataset, stitching),
        )
    answers = stitching.shared.classes
    more = ""
    if len(answers) > _LISTED:
        more = f" and {len(answers) - _LISTED:,} more"
    st.caption(f"The answer is one of: {plain(', '.join(answers[:_LISTED]))}{more}.")
    text = " ".join(st.session_state[key].split())
    if text:
        return Item(text, st.session_state.get("relscope.try-truth", {}).get(text, ""))
    return None


def _put_text(dataset: Dataset, stitching: Stitching, number: int | None = None) -> None:
    if number is None:
        number = int(np.random.default_rng().integers(len(stitching.split.test)))
    item = _test_item(dataset, stitching, number)
    text = " ".join(item.item.split())[:_LONGEST_TEXT]
    st.session_state["stitch.try-text"] = text
    st.session_state["relscope.try-truth"] = {text: item.truth}


def _picture(dataset: Dataset, stitching: Stitching) -> Item | None:
    look = _look(dataset.digest, dataset)
    sources = {"test": "Test row", "upload": "Upload"}
    if look.on_dark:
        sources = {"draw": "Draw"} | sources
    if not is_shared():  # not in a shared app, whose users may be on other machines
        sources |= {"camera": "Camera"}
    source = segments("Picture", sources, "stitch.try-way")
    if source == "test":
        n = len(stitching.split.test)
        number = remembered(
            st.number_input, f"Number, 1 … {n:,}", 1, n, 1, key="stitch.try-number", width=180
        )
        item = _test_item(dataset, stitching, int(number) - 1)
        return _show_item(item, f"Label: {item.truth}")
    if source in ("draw", "camera"):
        if source == "draw":
            picture = drawing_pad("stitch.try-pad", "Draw here with mouse, pen or finger", _PAD)
        else:
            held = "something"
            if look.on_dark:
                held = "a digit, written thickly on paper,"
            picture = camera("stitch.try-camera", "What the camera sees")
            st.caption(f"Hold {held} before the camera. Every pair answers while it moves; nothing is kept.")
        # An empty drawing, or a camera that is starting, gives a uniform picture, which cannot be encoded.
        with suppress(SpaceError):
            if picture is not None:
                seen = picture
                if source == "camera" and look.on_dark:
                    seen = strokes_of(picture)
                return _show_item(Item(made_like(seen, look, source)), caption_of(look))
        return None
    kinds = ["png", "jpg", "jpeg", "webp", "bmp", "gif"]
    file = st.file_uploader("A picture", type=kinds, key="stitch.try-upload")
    if file is None:
        size = "its own size"
        if look.size:
            size = f"{look.size[0]} × {look.size[1]} pixels"
        grey = ""
        if look.mode == "L":
            grey = ", grey"
        on_dark = ""
        if look.on_dark:
            on_dark = ", light on dark"
        more = grey + on_dark
        st.caption(f"The upload is converted to the form the encoders were trained on: {size}{more}.")
        return None
    picture = decode_image(file.getvalue(), file.name)
    name = file.name
    return _show_item(Item(made_like(picture, look, name)), caption_of(look))


def caption_of(look: Look) -> str:
    """The caption of a picture that was converted to the form of a dataset's pictures."""
    fills = ""
    if look.on_dark:
        fills = ", placed and thickened like the scans"
    size = ""
    if look.size:
        size = f": {look.size[0]} × {look.size[1]} pixels{fills}"
    return f"As the encoders see it{size}"


def _show_item(item: Item, caption: str) -> Item:
    st.image(BytesIO(png_thumbnail(item.item, _SHOWN)), width=_SHOWN, alt=caption)
    st.caption(caption)
    return item


def _test_item(dataset: Dataset, stitching: Stitching, number: int) -> Item:
    rows = stitching.shared
    row = int(stitching.split.test[number])
    place = int(np.flatnonzero(dataset.ids == rows.ids[row])[0])
    return Item(dataset.item(place), rows.classes[rows.targets[row]])


@st.cache_data(max_entries=16, show_spinner=False)
def _look(digest: str, _dataset: Dataset):
    return look_of(_dataset)


# An HTML table takes a tenth of the time of a Plotly figure, so answers keep up with typing.

STYLE = Path(__file__).parents[2] / "assets" / "answers.css"


def answers_html(data: Matrices, theme: Theme) -> str:
    (panel,) = data.panels
    heads = "".join(f'<th scope="col">{plain_html(name_of(name))}</th>' for name in panel.columns)
    lines = []
    for i, name in enumerate(panel.rows):
        cells = "".join(_cell(data, i, j, theme) for j in range(len(panel.columns)))
        lines.append(f'<tr><th scope="row">{plain_html(name_of(name))}</th>{cells}</tr>')
    told = f"{plain_html(data.row_title)} ↓", f"{plain_html(data.column_title)} →", "number: probability"
    corner = f"<td><small>{'<br>'.join(told)}</small></td>"
    return (
        f'<table class="relscope-answers"><caption class="relscope-unseen">{plain_html(data.alt)}</caption>'
        f"<thead><tr>{corner}{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    )


def _cell(data: Matrices, i: int, j: int, theme: Theme) -> str:
    (panel,) = data.panels
    lines = "<br>".join(map(plain_html, panel.explain(i, j).split("\n")))
    hint = f'<span role="tooltip">{lines}</span>'
    if np.isnan(panel.values[i, j]):
        return f'<td class="none" tabindex="0">–{hint}</td>'
    color = data.color(panel.values[i, j], theme)
    paint = f"background: rgb({', '.join(f'{255 * share:.0f}' for share in color)}); color: {text_on(color)}"
    first, _, small = panel.text(i, j).partition("\n")
    own = ""
    if (i, j) in panel.marked:
        own = ' class="own"'
    return (
        f'<td{own} style="{paint}"'
        f' tabindex="0"><b>{plain_html(first)}</b><small>{plain_html(small)}</small>{hint}</td>'
    )


def draw(setup: StitchSetup | None, best: str = "") -> None:
    """Draw the answers of all pairs to a new item. `best` is the method that is selected at first."""
    st.html(STYLE)
    if setup is None:
        st.caption(
            "Choose two or more encoders above. Every pair of an encoder and a classifier then answers here."
        )
        return
    ready, others = encoders(setup.specs)
    kind = next((encoder.kind for encoder in ready.values()), "")
    others |= {
        spec: f"reads {encoder.kind}, not {kind}" for spec, encoder in ready.items() if encoder.kind != kind
    }
    for spec, reason in others.items():
        st.caption(
            f"{plain_name(space_name(spec))} is used as a classifier only: its encoder {plain(reason)}."
        )
    if ready:
        _answers(setup, {spec: encoder for spec, encoder in ready.items() if spec not in others}, best)
        return
    messages.info(
        "None of these encoders can encode new items. Encode a dataset in Data: its encoder can"
        " then be used.",
        icon=":material/keyboard:",
    )


@st.fragment
def _answers(setup: StitchSetup, encoders: dict[SpaceSpec, ItemEncoder], best: str) -> None:
    """Draw the answers. As a fragment, only this part is redrawn after a keystroke."""
    # Exempt the encoders' modules from garbage collection, which each keystroke starts.
    first_imports.spare_collector()
    try:
        first = next(iter(encoders.values()))
        methods = {name: METHODS[name] for name in setup.spec.methods}
        usual = next((name for name in (best, "whitened", "relative", "irp-pruned") if name in methods), None)
        if first.kind == "texts":
            asked = st.container()
            place = st.container()
            below = st.container()
        else:
            asked, beside = st.columns([1, 2.4], gap="large")
            place = beside.container()
            below = beside.container()
        if best in methods:
            label = f"Method (best on test rows: {METHODS[best].title})"
        else:
            label = "Method"
        with below:
            method = segments(label, methods, f"stitch.try-method-{'-'.join(methods)}-{usual}", usual)
        one = replace(setup, spec=replace(setup.spec, methods=(method,)))
        together = setup.spec.seconds(load_spaces(setup.specs)) < _FITTED_AT_ONCE
        stitching = stitching_of(setup if together else one)
        with asked:
            choose = _picture
            if first.kind == "texts":
                choose = _text
            item = choose(first.dataset, stitching)
        if item is None and first.kind == "texts":
            return place.caption("Every pair of encoder and classifier answers here, without a click.")
        if item is None:  # an example holds the place of the answers
            with asked:
                example = _test_item(first.dataset, stitching, 0)
                item = _show_item(example, f"The example: {example.truth}")
            place.caption("Answers to the example, a test row. A picture of yours takes its place.")
        elif first.kind == "images":
            place.caption("Answers to this picture.")
        known = tuple(st.session_state.get("relscope.try-truth", {}).items())
        own = tuple(encoders.get(spec) for spec in setup.specs)
        offer = ItemOffer(one, stitching, method, own, exports.theme(), known)
        with place, st.spinner("Every pair of encoder and classifier answers …"):
            answers, html = offer.answered(item)
        with place:
            _show(one, answers, item, html, live.channel_of("stitch.try", offer))
    except SpaceError as error:
        messages.error(error)


@dataclass(frozen=True, eq=False)
class ItemOffer(live.Offer):
    """The answers to the present item, and to each item that the user types or draws. `truths` are the labels
    of test sentences."""

    setup: StitchSetup
    stitching: Stitching
    method: str
    encoders: tuple[ItemEncoder | None, ...]
    theme: Theme
    truths: tuple[tuple[str, str], ...]

    @property
    def content(self) -> tuple[Any, ...]:
        return self.setup, self.stitching.spec, self.theme, self.truths

    @property
    def header(self) -> dict[str, str]:
        return {"text": _TEXT, "answers": _ANSWERS}

    def answers(self) -> ItemOffer:
        return self

    def read(self, message: bytes) -> tuple[str, int] | None:
        """The typed text, or the picture as a data URI. Returns None if the message is too long or is not
        text."""
        if len(message) > _LONGEST_ITEM:
            return None
        try:
            return (message.decode(), 0)
        except UnicodeDecodeError:
            return None

    def answer(self, request: tuple[str, int], overtaken: Callable[[], bool]) -> bytes:
        """The answers as HTML in UTF-8, or empty bytes if the item cannot be encoded."""
        dataset = next(encoder.dataset for encoder in self.encoders if encoder)
        with suppress(SpaceError):
            if dataset.kind == "texts":
                text = " ".join(request[0].split())[:_LONGEST_TEXT]
                return self.answered(Item(text, dict(self.truths).get(text, "")))[1].encode()
            if picture := read_picture(request[0]):
                look = _look(dataset.digest, dataset)
                return self.answered(Item(made_like(picture.convert("L"), look, "drawing")))[1].encode()
        return b""

    def answered(self, item: Item) -> tuple[Answers, str]:
        """The answers by the chosen method, and the answers by all methods as HTML."""
        started = time.perf_counter()
        rows = rows_of(self.encoders, [item.item])
        # Only answers to texts may be rejected: the threshold was found on test rows, and drawings differ too
        # much from them.
        reject = isinstance(item.item, str)
        every = {
            name: answers_of(self.stitching, name, rows, reject_unsure=reject)
            for name in self.stitching.spec.methods
        }
        seconds = time.perf_counter() - started
        answers = every.pop(self.method)
        parts = [
            f'<p class="relscope-lead">{lead(answers, item.truth)}</p>',
            answers_html(matrices_of(answers), self.theme),
        ]
        if answers.silent:
            parts.append(
                f"<p>{plain_html(', '.join(answers.silent))}: knows none of these words. Its row is zero, so"
                " its answer means nothing.</p>"
            )
        took = f"Encoded and answered in {seconds:.1f} s."
        if seconds < 1:
            took = f"Encoded and answered in {1000 * seconds:.0f} ms."
        if (control := every.pop("absolute", None)) and (told := _answer_in_words(control)):
            parts.append(f"<p><small>Without similarities, by plain coordinates: {told}.</small></p>")
        parts.append(f"<p><small>{other_methods(every)} {took}</small></p>")
        return answers, f'<div class="{_ANSWERS}">{"".join(parts)}</div>'


def _answer_in_words(answers: Answers) -> str:
    """The most frequent answers of stitched pairs, as HTML. Returns "" if no pair answers."""
    leaders, count, n = answers.verdict()
    if 1 == count < n:
        return f"a different answer in each of {n} pairs"
    told = f"<b>{plain_html(' or '.join(leaders[:3]))}</b>"
    if len(leaders) > 1:
        return f"{told}, each in {count} of {counted(n, 'pair')}"
    if n:
        return f"{told}, in {count} of {counted(n, 'pair')}"
    return ""


def other_methods(every: Mapping[str, Answers]) -> str:
    """The most frequent answers of stitched pairs by each method, as HTML. Returns "" if there are no
    methods."""
    told = [
        f"{plain_html(METHODS[name].title)}: {told}"
        for name, answers in every.items()
        if (told := _answer_in_words(answers))
    ]
    if told:
        return f"By other methods: {'; '.join(told)}."
    return ""


def _show(setup: StitchSetup, answers: Answers, item: Item, html: str, channel: dict | None) -> None:
    figure = TryIt.of(item.item, **setup.recipe).draw(answers)
    with st.container(key="stitch-try-map"):
        st.html(html)
    if channel:
        _follow(key="stitch.try-live", data=channel)
    on_rejection = ""
    if isinstance(item.item, str):
        on_rejection = (
            " “None of these”: this pair is less sure than in 95 % of its right answers to test rows. On"
            " sentences of 16 articles this rejected 8 % of right answers, and 43 % of answers to off-topic"
            " sentences."
        )
    st.caption(
        "Each row is an encoder, each column a classifier. A dashed frame: not stitched. Each cell shows the"
        " answer, its probability (stronger colour is higher), and the answer of the encoder's own classifier"
        f" if it differs.{on_rejection}"
        " Hover over a cell for the three most probable answers."
    )
    exports.export_bar(figure, "try-it")


def lead(answers: Answers, truth: str = "") -> str:
    leaders, count, n = answers.verdict()
    known = ""
    if truth:
        known = f" The true label is <b>{plain_html(truth)}</b>."
    if not n:
        return f"This method cannot combine any two of these encoders. Choose another method.{known}"
    numbers = np.ndindex(len(answers.own), len(answers.heads))
    changed = sum(answers.agrees(i, j) is False for i, j in numbers)
    own: dict[str, list[str]] = {}
    for name, (i, j) in zip(short_names(answers.encoders)[0], enumerate(answers.own), strict=True):
        own.setdefault(answers.answer(i, j), []).append(plain_html(name_of(name)))
    own.pop("", None)
    alone = []
    for answer, names in own.items():
        who = and_list(names)
        if len(names) == len(answers.own) > 2:
            who = f"all {len(names)}"
        verb = "says" if len(names) == 1 else "say"
        alone.append(f"{who} {verb} <b>{plain_html(answer)}</b>")
    pairs = "pair" if changed == 1 else "pairs"
    rest = (
        f"Stitching changes the answer of {changed or 'no'} {pairs}. Not stitched, {'; '.join(alone)}.{known}"
    )
    if len(leaders) > 1:
        shown = " and ".join(f"<b>{plain_html(name)}</b>" for name in leaders[:3])
        more = ""
        if len(leaders) > 3:
            more = f" and {len(leaders) - 3} more answers"
        return f"A tie: of {n} stitched pairs, <b>{count}</b> each say {shown}{more}. {rest}"
    (most,) = leaders
    return f"<b>{count}</b> of {n} stitched pairs say <b>{plain_html(most)}</b>. {rest}"
