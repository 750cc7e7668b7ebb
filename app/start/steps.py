"""The steps of the story."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import streamlit as st

from app import compute, exports, panes, session
from app.components.small_maps import SmallMap, small_maps
from app.glossary.terms import linked_html
from app.places import EXPLORE, RESEARCH, go
from app.start.stars import CHOICE, DRAG, RULERS, stars
from app.start.words import (
    MODELS,
    N_ANCHORS,
    NEAREST,
    USUAL,
    Words,
    anchors,
    columns,
    draw_maps,
    score,
    share_number,
    words,
)
from app.tables import bars
from app.workspace import BUNDLED
from relcore.base.numbers import percent
from relcore.compare.scene import (
    PLANE,
    PLANE_ANCHORS,
    crowded_anchors,
    moved_plane,
    plane_similarities,
    with_unrelated_target,
    with_wrong_pairs,
)
from relcore.maps.pane_maps import OWN, default_view
from relcore.panes.payload import PaneEvent
from relcore.represent.representations import ProjectionSpec
from relcore.scores.score import Score
from relcore.spaces.matching import Match

STOPS = (2, 3, 4, 5, 8, 10, 15, 20, 30, 40, 50, 70, 100, 150, 200, 300)  # numbers of anchors on the slider
# numbers of anchors in the step on failures
FEW = 5
SOME = 50
_SAME = "of the words lie nearest to the same word in the other model"
_CHOICES = 3000  # number of frequent words that the chooser offers


@dataclass(frozen=True)
class StoryStep:
    title: str
    draw: Callable[[], None]
    question: str
    answer: str


def _halves() -> tuple:
    if st.session_state.get(PRESENTS):
        wide = 2.8
        place = "center"
    else:
        wide = 2.1
        place = "top"
    return st.columns([wide, 1], gap="medium", vertical_alignment=place)


def _write(*paragraphs: str) -> None:
    st.html("".join(f'<p class="relscope-says">{linked_html(text)}</p>' for text in paragraphs))


def two_trainings() -> None:
    of = words()
    maps, says = _halves()
    with maps:
        draw_maps(of, OWN, "story.maps")
    with says:
        _write(
            "Word2Vec and FastText read the same novels, each by itself.",
            f"Each learned a latent space: a vector of 100 numbers for each of {len(of.pair):,} words.",
            f"The maps show {len(of.names)} words, each model in its own axes. <b>The two pictures are nearly"
            " the same.</b>",
            "Point at a word: it is ringed in both maps.",
        )
        text = "Two networks learn the digits before your eyes, in seconds."
        if st.button("See two trainings", icon=":material/timeline:", key="story.training", help=text):
            go(RESEARCH, "Training")
        if st.button(
            "What FastText knows and Word2Vec does not",
            icon=":material/difference:",
            key="story.why",
            help="Opens Explore: which words are neighbours in one model more than in the other, and why.",
            on_click=_compare_words,
        ):
            go(EXPLORE, "Why they differ")


def _compare_words() -> None:
    if session.workspace().models[:2] != BUNDLED:
        session.compare("compare the bundled words", *BUNDLED)


def same_shape() -> None:
    of = words()
    maps, says = _halves()
    with says:
        titles = {OWN: "Own axes", "absolute": "The same axes"}
        representation = st.segmented_control(
            "Axes", list(titles), key="story.axes", format_func=titles.get, required=True, default="absolute"
        )
        _write(
            "In the same axes the models have nothing in common: the first number of a word means one thing"
            " in Word2Vec and another in FastText.",
            "No training fixes the axes: a space that is turned serves its model just as well.",
        )
        if representation == "absolute":
            st.html(share_number(score(of.pair, "absolute"), f"{_SAME}, by their coordinates."))
    with maps:
        draw_maps(of, representation, "story.maps")


def ruler() -> None:
    titles = {"drag": "Drag an anchor", "words": "One word", "plane": "Turn a plane yourself"}
    shown = st.segmented_control(
        "Shown",
        list(titles),
        key=CHOICE,
        format_func=titles.get,
        required=True,
        default=DRAG,
        label_visibility="collapsed",
    )
    {DRAG: _draw_dragging, "words": _word_by_anchors, "plane": _plane}[shown]()


def _draw_dragging() -> None:
    pair = words().pair
    by = stars().now
    view = replace(default_view(pair.source), n_nearest=NEAREST)
    shown = replace(USUAL, anchors=by, view=view, panes=("relative",))
    drawn, says = _halves()
    with drawn:
        drawing = panes.draw(panes.inputs(pair, shown, with_selection=False))
        titled = [
            replace(pane, title=f"{model}, by similarities")
            for pane, model in zip(drawing.scene.panes, MODELS, strict=True)
        ]
        named = replace(drawing, scene=replace(drawing.scene, panes=tuple(titled)))
        panes.show(named, "story.drag", 470, _hear, worded=True)
    with says:
        _write(
            "An <b>anchor</b> ★ is a word that both models know. Each map places a word by its similarities"
            " to these eight anchors.",
            "<b>Drag a star to another word and let go: both maps follow.</b> By keyboard: press S, then the"
            " arrow keys.",
        )
        found = score(pair, "relative", by)
        before = ""
        if by != RULERS:
            before = f" At first: {percent(score(pair, 'relative', RULERS).top1)}."
        many = f"with {N_ANCHORS}, as on Start, {percent(score(pair, 'relative', anchors(pair)).top1)}"
        number = share_number(found, f"{_SAME}, by their similarities to the eight anchors; {many}.{before}")
        st.html(number.replace("<b>", '<b class="relscope-live">', 1))


def _hear(event: PaneEvent, drawing: panes.Drawing) -> None:
    if event.kind == "anchor":
        before, to = drawing.inputs.models.ids[drawing.view.rows[event.rows]]
        stars().drag(before, to)


def _word_by_anchors() -> None:
    pair = words().pair
    says, left, right = st.columns([1, 1, 1], gap="medium")
    with says:
        word = st.selectbox(
            "A word", pair.ids[:_CHOICES], index=int(pair.source.rows(["bread"])[0]), key="story.word"
        )
        _write(
            "An <b>anchor</b> is a word that both models know. It is a ruler: how similar another word is"
            " to it can be measured within each model, without any axes.",
            "The coordinates of a word disagree between the models. <b>Its similarities to eight anchors"
            " agree.</b> They take the place of its coordinates: the word is described <i>relative</i> to the"
            " anchors.",
        )
    row = pair.source.rows([word])[0]
    units = [space.vectors[row] / space.norms[row] for space in (pair.source, pair.target)]
    coordinates = np.array(units)[:, : len(RULERS)]
    similar = _similarities(pair, row)
    with left:
        names = [f"coordinate {place}" for place in range(1, len(RULERS) + 1)]
        st.html(
            bars(
                "Its first eight coordinates",
                _rows(names, coordinates),
                float(np.abs(coordinates).max()),
                MODELS,
            )
        )
    with right:
        names = [f"★ {name}" for name in RULERS]
        st.html(
            bars(
                "Its similarities to eight anchors",
                _rows(names, similar),
                float(np.abs(similar).max()),
                MODELS,
            )
        )


def _rows(names: list[str], values: np.ndarray) -> dict[str, tuple[float, ...]]:
    """A dictionary from each of m names to its column of `values` (2, m), which are its values in the two
    models."""
    return dict(zip(names, map(tuple, values.T.tolist()), strict=True))


def _similarities(pair: Match, row: int) -> np.ndarray:
    """The similarities (2, 8) of a word to the eight words `RULERS`, in both models."""
    return np.stack([space[row] for space in compute.represent(pair, "relative", RULERS, ProjectionSpec())])


def _plane() -> None:
    says, maps, numbers = st.columns([1, 1.7, 1], gap="medium")
    with says:
        degrees = st.slider("Turn by", 0, 360, 130, 5, format="%d°", key="story.turn")
        scale = st.slider("Scale by", 0.5, 1.3, 0.8, 0.1, key="story.scale")
        mirrored = st.toggle("Mirror", value=True, key="story.mirror")
        _write(
            "A model of two dimensions, and the same model turned, mirrored and scaled. All coordinates"
            " change. <b>The similarities (cosines) to the anchors ★ stay.</b>",
        )
    pair = moved_plane(degrees, mirrored, scale)
    theme = exports.theme()
    classes = list(dict.fromkeys(PLANE.labels))
    colors = [theme.category_colors(len(classes))[classes.index(label)] for label in PLANE.labels]
    with maps:
        alt = "Map of nine words in two dimensions"
        drawn = [
            SmallMap(title, space.vectors, np.zeros(2), 4.5, f"{alt}, {title}")
            for title, space in (("A model", pair.source), ("Turned, mirrored, scaled", pair.target))
        ]
        anchors = PLANE.rows(PLANE_ANCHORS)
        small_maps(
            drawn,
            "story.plane",
            names=PLANE.ids,
            colors=colors,
            labelled=range(len(colors)),
            starred=anchors,
        )
    with numbers:
        point = int(PLANE.rows(["cat"])[0])
        places = np.stack([space.vectors[point] for space in (pair.source, pair.target)])
        similar = np.stack([space[point] for space in plane_similarities(pair)])
        models = "a model", "turned"
        st.html(bars("Coordinates of <b>cat</b>", _rows(["first", "second"], places), 4.0, models))
        names = [f"★ {name}" for name in PLANE_ANCHORS]
        st.html(bars("Its similarities to three anchors", _rows(names, similar), 1.0, models))


def how_many() -> None:
    of = words()
    maps, says = _halves()
    with says:
        n = st.select_slider("Number of anchors", STOPS, value=len(RULERS), key="story.anchors")
        by = tuple(dict.fromkeys((*RULERS, *anchors(of.pair))))[:n]
        found = score(of.pair, "relative", by)
        st.html(share_number(found, f"{_SAME}, by their similarities to {n} anchors."))
        st.html(columns(_tried_shares("story.numbers", f"{n}", found, map(str, STOPS)), f"{n}"))
        _write(
            "Each anchor adds one number to the description of a word. <b>Move the slider.</b>",
            "★: an anchor. The first eight are those of step 3; most of the others are not drawn.",
        )
    with maps:
        rows = np.union1d(of.drawn.rows, of.pair.source.rows(RULERS))
        drawn = compute.view_with_rows(of.pair, USUAL, of.drawn, rows)
        draw_maps(Words(of.pair, drawn), "relative", "story.more-maps", by=by)


def _tried_shares(key: str, name: str, found: Score, names: Iterable[str]) -> dict[str, float | None]:
    """A dictionary with the share of rows that match for each setting of this step. It has None for settings
    that the user has not tried."""
    tried = st.session_state.setdefault(key, {})
    tried[name] = found.top1
    return {name: tried.get(name) for name in names}


class Case(NamedTuple):
    """An example of a comparison that may fail: the pair of spaces, the anchors `by` which they are compared,
    and the name of the second model."""

    pair: Match
    by: tuple[str, ...]
    second: str = ""


_crowded = compute.cached(4)(crowded_anchors)
_wrong = compute.cached(4)(with_wrong_pairs)
_unrelated = compute.cached(4)(with_unrelated_target)
CASES: Mapping[str, tuple[Callable[[Match], Case], str]] = {
    f"{SOME} anchors": (
        lambda pair: Case(pair, anchors(pair, SOME)),
        f"{SOME} words drawn at random: the comparison works.",
    ),
    f"{FEW} anchors": (
        lambda pair: Case(pair, anchors(pair, FEW)),
        f"{FEW} similarities are too few to tell 20,000 words apart.",
    ),
    "One cluster": (
        lambda pair: Case(pair, _crowded(pair.source, "senate", SOME)),
        f"{SOME} anchors, but all from around <b>senate</b>. They say much about politics, and little about"
        " the rest.",
    ),
    "Wrong pairs": (
        lambda pair: Case(_wrong(pair, anchors(pair, SOME)), anchors(pair, SOME)),
        f"The same {SOME} anchors, but each is paired with another anchor in FastText. The rulers are mixed"
        " up.",
    ),
    "Unrelated data": (
        lambda pair: Case(_unrelated(pair), anchors(pair, SOME), "Random numbers"),
        "Random numbers take the place of FastText. There is nothing to find, and the score says so.",
    ),
}


def when_it_fails() -> None:
    of = words()
    maps, says = _halves()
    with says:
        name = st.pills(
            "Compare by", list(CASES), key="story.case", default=next(iter(CASES)), required=True, wrap=True
        )
        case, meaning = CASES[name]
        pair, by, second = case(of.pair)
        found = score(pair, "relative", by)
        st.html(share_number(found, f"{_SAME}."))
        st.html(columns(_tried_shares("story.cases", name, found, CASES), name))
        _write(meaning)
    with maps:
        draw_maps(of, "relative", "story.maps", pair, by, second)


def stitching() -> None:
    from app.stitch import digits  # imported here, because the first screen does not need it

    height = 260
    if st.session_state.get(PRESENTS):
        height = 420
    digits.draw(columns, height)


def learning() -> None:
    # imported here, because the first screen does not need them
    from app.training import panel, two_here

    drawn, says = _halves()
    with says:
        _write(
            "Two networks begin with different random weights and learn digits, each by itself. Each dot is a"
            " digit on which neither is trained.",
        )
        if two_here.choosers():
            two_here.train()
        if not two_here.folder():
            _write("<b>Guess first:</b> will their coordinates come to match? Their similarities to anchors?")
            return
        two_here.say_conclusion()
        _write("<b>Press ▶</b>, or move the slider. The curves say how well the networks match.")
    height = 300
    if st.session_state.get(PRESENTS):
        height = 380
    with drawn:
        panel.draw_film(two_here.folder(), "story.film", height)


PRESENTS = "story.presents"
