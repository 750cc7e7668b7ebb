"""The steps of the story: what each draws, its exercise and its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import streamlit as st

from app import compute, exports
from app.components.small_maps import SmallMap, small_maps
from app.glossary.terms import linked_html
from app.start.pictures import bars, columns, number
from app.start.words import anchors, draw_maps, score, words
from relcore.compare import lesson
from relcore.maps.pane_maps import OWN
from relcore.scores.comparison import ProjectionSpec
from relcore.scores.score import Score
from relcore.spaces.space import Match

RULERS = ("food", "water", "money", "child", "house", "war", "music", "winter")  # eight anchors
STOPS = (2, 3, 4, 5, 7, 10, 15, 20, 30, 40, 50, 70, 100, 150, 200, 300)  # numbers of anchors
FEW, SOME = 5, 50  # anchors
_SAME = "of the words are their own nearest neighbour in the other model"
_CHOICES = 3000  # of the most frequent words


@dataclass(frozen=True)
class StoryStep:
    title: str
    draw: Callable[[], None]
    question: str
    answer: str


def _halves() -> tuple:
    return st.columns([2.1, 1], gap="medium")


def _say(*paragraphs: str) -> None:
    st.html("".join(f'<p class="relscope-says">{linked_html(text)}</p>' for text in paragraphs))


def two_trainings() -> None:
    of = words()
    maps, says = _halves()
    with maps:
        draw_maps(of, OWN, "story.maps")
    with says:
        _say(
            "Word2Vec and FastText read the same novels, each by itself, from its own random start.",
            f"Each has learned a latent space: a vector of 100 numbers for each of {len(of.pair):,} words.",
            f"The maps show {len(of.names)} of these words, near <b>wine</b>, <b>anger</b>, <b>silver</b>,"
            " <b>senate</b> and <b>face</b>. Each model is drawn in its own axes. <b>The two pictures are"
            " nearly the same.</b>",
            "Point at a word: it is ringed in both maps.",
        )


def same_shape() -> None:
    of = words()
    maps, says = _halves()
    with says:
        titles = {OWN: "Each in its own axes", "absolute": "Both in the same axes"}
        look = {"format_func": titles.get, "required": True, "default": "absolute"}
        form = st.segmented_control("Axes", list(titles), key="story.axes", **look)
        _say(
            "In its own axes each model shows the same shape. In the same axes they have nothing in common:"
            " the first number of a word means one thing in Word2Vec and another in FastText.",
            "No training fixes the axes. A space that is turned or mirrored serves its model just as well.",
        )
        if form == "absolute":
            st.html(number(score(of.pair, "absolute"), f"{_SAME}, by their coordinates."))
    with maps:
        draw_maps(of, form, "story.maps")


def ruler() -> None:
    titles = {"words": "Real words, 100 dimensions", "plane": "Turn a plane yourself"}
    look = {"format_func": titles.get, "required": True, "default": "words", "label_visibility": "collapsed"}
    shown = st.segmented_control("Shown", list(titles), key="story.ruler", **look)
    (_word_by_anchors if shown == "words" else _plane)()


def _word_by_anchors() -> None:
    pair = words().pair
    says, left, right = st.columns([1, 1, 1], gap="medium")
    with says:
        word = st.selectbox(
            "A word", pair.ids[:_CHOICES], index=int(pair.source.rows(["bread"])[0]), key="story.word"
        )
        _say(
            "An <b>anchor</b> is a word that both models know. Measure how similar a word is to it, and you"
            " need no axes: a similarity is a length on a ruler that each model has within itself.",
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
            bars("Its first eight coordinates", _rows(names, coordinates), float(np.abs(coordinates).max()))
        )
    with right:
        names = [f"★ {name}" for name in RULERS]
        st.html(
            bars("Its similarities to eight anchors", _rows(names, similar), float(np.abs(similar).max()))
        )


def _rows(names: list[str], values: np.ndarray) -> dict[str, tuple[float, ...]]:
    """Of values (2, m) the two of each name."""
    return dict(zip(names, map(tuple, values.T.tolist()), strict=True))


def _similarities(pair: Match, row: int) -> np.ndarray:
    """Of a word to `RULERS` in both models, (2, 8)."""
    return np.stack([space[row] for space in compute.represent(pair, "relative", RULERS, ProjectionSpec())])


def _plane() -> None:
    says, maps, numbers = st.columns([1, 1.7, 1], gap="medium")
    with says:
        degrees = st.slider("Turn by", 0, 360, 130, 5, format="%d°", key="story.turn")
        scale = st.slider("Scale by", 0.5, 1.3, 0.8, 0.1, key="story.scale")
        mirrored = st.toggle("Mirror", value=True, key="story.mirror")
        _say(
            "A model of two dimensions, and the same model turned, mirrored and scaled. All coordinates"
            " change. <b>The similarities (cosines) to the anchors ★ stay.</b>",
        )
    pair = lesson.moved_plane(degrees, mirrored, scale)
    theme = exports.theme()
    classes = list(dict.fromkeys(lesson.PLANE.labels))
    colors = [theme.category_colors(len(classes))[classes.index(label)] for label in lesson.PLANE.labels]
    with maps:
        alt = "Map of nine words in two dimensions"
        drawn = [
            SmallMap(title, space.vectors, np.zeros(2), 4.5, f"{alt}, {title}")
            for title, space in (("A model", pair.source), ("Turned, mirrored, scaled", pair.target))
        ]
        anchors = lesson.PLANE.rows(lesson.PLANE_ANCHORS)
        small_maps(
            drawn,
            "story.plane",
            names=lesson.PLANE.ids,
            colors=colors,
            labelled=range(len(colors)),
            starred=anchors,
        )
    with numbers:
        point = int(lesson.PLANE.rows(["cat"])[0])
        places = np.stack([space.vectors[point] for space in (pair.source, pair.target)])
        similar = np.stack([space[point] for space in lesson.plane_similarities(pair)])
        models = "a model", "turned"
        st.html(bars("Coordinates of <b>cat</b>", _rows(["first", "second"], places), 4.0, models))
        names = [f"★ {name}" for name in lesson.PLANE_ANCHORS]
        st.html(bars("Its similarities to three anchors", _rows(names, similar), 1.0, models))


def how_many() -> None:
    of = words()
    maps, says = _halves()
    with says:
        n = st.select_slider("Number of anchors", STOPS, value=10, key="story.anchors")
        found = score(of.pair, "relative", anchors(of.pair, n))
        st.html(number(found, f"{_SAME}, by their similarities to {n} anchors."))
        st.html(columns(_tried("story.numbers", f"{n}", found, map(str, STOPS)), f"{n}"))
        _say(
            "Each anchor adds one number to the description of a word. Move the slider: with enough of them,"
            " nearly every word is described like no other, in both models alike."
        )
    with maps:
        draw_maps(of, "relative", "story.maps", by=anchors(of.pair, n))


def _tried(key: str, name: str, found: Score, names: Iterable[str]) -> dict[str, float | None]:
    """The shares of the settings of this step that were tried, None for the others."""
    tried = st.session_state.setdefault(key, {})
    tried[name] = found.top1
    return {name: tried.get(name) for name in names}


class Case(NamedTuple):
    """A comparison by some anchors that may fail: of this pair, by these anchors."""

    pair: Match
    by: tuple[str, ...]
    second: str = ""


_crowded = compute.cached(4)(lesson.crowded_anchors)
_wrong = compute.cached(4)(lesson.with_wrong_pairs)
_unrelated = compute.cached(4)(lesson.with_unrelated_target)

CASES: Mapping[str, tuple[Callable[[Match], Case], str]] = {
    f"{SOME} anchors": (
        lambda pair: Case(pair, anchors(pair, SOME)),
        f"{SOME} words drawn at random: the comparison works.",
    ),
    f"{FEW} anchors": (
        lambda pair: Case(pair, anchors(pair, FEW)),
        f"{FEW} similarities are too little to tell 20,000 words apart.",
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
        look = {"default": next(iter(CASES)), "required": True, "wrap": True}
        name = st.pills("Compare by", list(CASES), key="story.case", **look)
        case, meaning = CASES[name]
        pair, by, second = case(of.pair)
        found = score(pair, "relative", by)
        st.html(number(found, f"{_SAME}."))
        st.html(columns(_tried("story.cases", name, found, CASES), name))
        _say(meaning)
    with maps:
        draw_maps(of, "relative", "story.maps", pair, by, second)


def stitching() -> None:
    from app.start import digits  # the first screen does without what it imports

    digits.draw()


STEPS = (
    StoryStep(
        "Two trainings, one shape",
        two_trainings,
        "The maps were turned and mirrored so that they face each other. Is that cheating?",
        "No. A map of principal axes has no up, down, left or right of its own: each axis may point either"
        " way. Turning and mirroring changes no distance between words, so it changes no shape. Nothing was"
        " stretched, and no word was moved by itself.",
    ),
    StoryStep(
        "Same shape, different axes",
        same_shape,
        "FastText shrinks to a spot in Word2Vec's axes. Where did its shape go?",
        "Nowhere: it lies in other directions of the 100. The axes along which Word2Vec's words differ most"
        " are, in FastText, directions in which these words hardly differ. Linear CKA, a score that ignores"
        " rotations, still finds the two spaces alike; see *Scores* in Explore.",
    ),
    StoryStep(
        "An anchor is a ruler",
        ruler,
        "Which changes of a space leave the cosines to the anchors as they are, and which do not?",
        "Turning, mirroring and scaling leave them. Stretching a single axis or moving the origin does not."
        " That is why Relscope subtracts the mean of each space first, which undoes a moved origin.",
    ),
    StoryStep(
        "How many anchors?",
        how_many,
        "Why are two anchors not enough, although each map has two dimensions?",
        "Two anchors give two numbers for each word: 20,000 words lie on a plane, so close together that the"
        " small difference between the models is larger than the distance to the next word. Each further"
        " anchor moves words apart.",
    ),
    StoryStep(
        "When it fails",
        when_it_fails,
        "Which of these failures would more anchors mend, and which would they hide?",
        "Five anchors, and one cluster: more anchors, and from everywhere, mend both. Wrong pairs need right"
        " pairs: the audit under *Anchors* in Explore finds them. Unrelated data stay at the chance level"
        " with any number of anchors. A score far above its chance level is what no such data reach.",
    ),
    StoryStep(
        "A use: stitching",
        stitching,
        "Why can a classifier read the rows of an encoder that it has never seen?",
        "Because it was trained on similarities to anchors, not on coordinates. The other encoder describes"
        " a digit by its similarities to the same anchors, so the classifier reads nearly the same numbers.",
    ),
)
