"""The story has six steps: five on real words, and one on stitching. Each step has an address, and the arrow
keys move between steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import compute, exports, panes, session
from app.components.small_maps import SmallMap, small_maps
from app.glossary.terms import linked_html, term_html, with_links
from app.places import DATA, EXPLORE, MIGRATE, go
from app.plain_text import plain_html, plain_name
from app.saving import DEFAULT_ANCHORS, STEP
from app.start.stars import CHOICE, DRAG, RULERS, stars
from app.tables import bars
from app.widgets import space_name
from app.workspace import BUNDLED, Workspace
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
from relcore.maps.pane_maps import OWN, View, default_view, orient_pairs
from relcore.panes.payload import PaneEvent
from relcore.represent.translation import ProjectionSpec
from relcore.scores.score import Score
from relcore.spaces.space import Match

MODELS = "Word2Vec", "FastText"
N_ANCHORS = int(DEFAULT_ANCHORS.split(" ")[1])
_NEAREST = 60  # words drawn around each example word
_USUAL = Workspace()
_AXES = {  # the axes of both maps, in words for their titles
    OWN: ("own axes", "own axes"),
    "absolute": ("own axes", "same axes"),
    "relative": ("by similarities", "by similarities"),
}


@dataclass(frozen=True, eq=False)
class Words:
    """The bundled words of both models, and the words that are drawn."""

    pair: Match
    drawn: View

    @property
    def names(self) -> np.ndarray:
        return self.pair.ids[self.drawn.rows]


def words() -> Words:
    pair = compute.matched_pair(*BUNDLED)
    view = replace(default_view(pair.source), n_nearest=_NEAREST)
    return Words(pair, compute.view(pair, replace(_USUAL, view=view)))


def anchors(pair: Match, n: int = N_ANCHORS) -> tuple[str, ...]:
    """The anchors with which Explore opens. With another `n`, n anchors are chosen by the same strategy and
    random state."""
    strategy, _, random_state = session.anchors_origin(Workspace(anchors_from=DEFAULT_ANCHORS))
    return compute.select_anchors(pair, n, strategy, random_state)


def score(pair: Match, form: str, by: tuple[str, ...] = ()) -> Score:
    """The mean reciprocal rank of matching rows, as Explore shows it. Its attribute `top1` is the share of
    rows that match."""
    settings = _USUAL.projection, _USUAL.k, _USUAL.convention
    return compute.live_scores(pair, form, by, *settings, alone=True)["mrr"]


def chance(found: Score) -> str:
    """The chance level in words: the probability that the right one of all rows is nearest."""
    return percent(1 / found.n)


def draw_maps(
    of: Words, form: str, key: str, pair: Match | None = None, by: tuple[str, ...] = (), second: str = ""
) -> None:
    """Draw maps of both models in one representation, turned for display as in Explore. Stars are anchors.

    `second` is the name of the second model if it is not FastText.
    """
    theme = exports.theme()
    names = of.names
    palette = np.array([*theme.category_colors(len(of.drawn.category_names)), theme.neutral])
    small_maps(
        _maps(pair or of.pair, of.drawn, form, by, (MODELS[0], second or MODELS[1])),
        key,
        names=names,
        colors=palette[of.drawn.categories].tolist(),
        labelled=np.flatnonzero(np.isin(names, of.drawn.category_names)),
        starred=np.flatnonzero(np.isin(names, by)),
    )


@compute.cached(64)
def _maps(
    pair: Match, drawn: View, form: str, by: tuple[str, ...], models: tuple[str, str]
) -> list[SmallMap]:
    settings = _USUAL.projection, _USUAL.reduction
    reference = compute.pca_coordinates(pair, drawn, OWN, (), *settings)[0][0]
    picture = compute.pca_coordinates(pair, drawn, form, by, *settings)
    turned = orient_pairs({form: picture}, reference, pair, _USUAL.reduction)[form][0]
    ends = [(xy.min(axis=0), xy.max(axis=0)) for xy in turned]
    if form != OWN:  # shared coordinates need one scale for both maps
        low = np.min([low for low, _ in ends], axis=0)
        high = np.max([high for _, high in ends], axis=0)
        ends = [(low, high)] * 2
    titles = [f"{name}, {axes}" for name, axes in zip(models, _AXES[form], strict=True)]
    alt = f": {len(drawn.rows)} words, in the colour of the nearest of {len(drawn.category_names)} words"
    return [
        SmallMap(title, xy, (low + high) / 2, 0.56 * float((high - low).max()), f"Map: {title}{alt}")
        for title, xy, (low, high) in zip(titles, turned, ends, strict=True)
    ]


_IDEAS = {
    OWN: "Same shape,",
    "absolute": "but different coordinates.",
    "relative": "Similarities to anchors ★ agree.",
}
_STITCHING = 6  # number of the step about stitching


def front(begin: Callable[..., None]) -> None:
    """Draw the front page. The callback `begin` opens a step of the story."""
    of = words()
    by = anchors(of.pair)
    st.html(
        '<div class="relscope-hero"><p>Relscope compares the latent spaces of embedding models.</p><p>Train'
        f" two models on the same data: their {term_html('space', 'spaces')} have the <b>same shape</b>, but"
        f" <b>different coordinates</b>. <b>Similarities to {term_html('anchor', 'anchors')}</b> make them"
        " comparable.</p></div>"
    )
    with st.container(horizontal=True, gap="small", key="start-buttons"):
        if st.button("Open your data", key="start.data", icon=":material/folder_open:", type="primary"):
            go(DATA)
        for label, key, icon, presents in (
            ("The story in six steps", "start.story", ":material/auto_stories:", False),
            ("Present it to a class", "start.present", ":material/co_present:", True),
        ):
            look = {}
            if presents:
                look = {"type": "tertiary", "help": "The same story in large type"}
            st.button(label, key=key, icon=icon, on_click=begin, args=(1, presents), **look)
    found = []
    with st.container(key="start-ideas"):
        for number, (column, (form, idea)) in enumerate(zip(st.columns(3), _IDEAS.items(), strict=True), 1):
            with column, st.container(border=True):
                st.html(f'<h3 class="relscope-idea"><i>{number}</i>{idea}</h3>')
                draw_maps(of, form, f"start.{form}", by=by if form == "relative" else ())
                found.append(st.empty())
    _show_share(
        found[0],
        "Two models learned the same words from the same novels, separately. Drawn in their own axes, they"
        " give nearly the same picture.",
    )
    _examples(begin)
    # Streamlit sends the maps before it computes these scores, which take half a second the first time.
    shared = score(of.pair, "absolute")
    relative = score(of.pair, "relative", by)
    _show_share(
        found[1],
        f"of {len(of.pair):,} words lie nearest to the same word in the other model, by their"
        f" {of.pair.source.dimension} coordinates.",
        percent(shared.top1),
    )
    _show_share(
        found[2],
        f"of them lie nearest to the same word, by similarities to {N_ANCHORS} anchor words ★"
        f" ({np.isin(of.names, by).sum()} drawn). By chance: {chance(relative)}.",
        percent(relative.top1),
    )


def _show_share(place: DeltaGenerator, text: str, number: str = "") -> None:
    figure = f"<b>{number}</b>" if number else ""
    place.html(f'<div class="relscope-told">{figure}<p>{text}</p></div>')


def _examples(begin: Callable[..., None]) -> None:
    with st.container(key="start-examples"):
        st.caption("Or begin with an example")
        words, digits, models = st.columns(3)
        with words, st.container(border=True):
            if _example(
                "explore",
                "match_word",
                "Compare two models of words",
                on_click=session.compare,
                args=("compare the bundled words", *BUNDLED),
            ):
                go(EXPLORE)
            st.caption("Word2Vec and FastText, 20,000 words. Choose anchors, and the scores follow.")
        with digits, st.container(border=True):
            _example(
                "stitch", "draw", "Draw a digit, another model answers", on_click=begin, args=(_STITCHING,)
            )
            st.caption("The encoder of one network, the classifier of another, no training in between.")
        with models, st.container(border=True):
            workspace = session.workspace()
            if _example("migrate", "move_up", "Change an embedding model"):
                session.migrate_example(True)
                go(MIGRATE, "New model")
            st.caption("Keep the old vectors, translate queries, or embed all again? See what each costs.")
            own = workspace.models[:2]
            if own != BUNDLED and st.button(
                f"Use {' and '.join(plain_name(space_name(spec)) for spec in own)} instead",
                key="start.migrate-own",
                type="tertiary",
            ):
                session.migrate_example(False)
                go(MIGRATE, "New model")


def _example(key: str, icon: str, title: str, **does: Any) -> bool:
    return st.button(f"**{title}**", key=f"start.{key}", icon=f":material/{icon}:", type="tertiary", **does)


def share_number(found: Score, meaning: str) -> str:
    """The share of rows that match, as a large number in HTML. Its chance level and the number of rows stand
    below."""
    measured = f"By chance {chance(found)}. Measured on {found.n_queries:,} random words."
    return (
        f'<p class="relscope-number"><b>{percent(found.top1)}</b> <span>{linked_html(meaning)}</span></p>'
        f'<p class="relscope-chance">{linked_html(measured)}</p>'
    )


def columns(shares: Mapping[str, float | None], now: str) -> str:
    """A column chart as HTML. For each name, a column shows the share of rows that match; it is empty if the
    share is None. The column of the name `now` is highlighted."""
    drawn = "".join(
        f'<div class="{"now" if name == now else ""}"><b>{"" if share is None else percent(share)}</b>'
        f'<i style="height:{100 * (share or 0):.1f}%"></i><span>{plain_html(name)}</span></div>'
        for name, share in shares.items()
    )
    many = " many" if len(shares) > 8 else ""
    if [*shares.values()].count(None) == len(shares) - 1:
        drawn += "<em>Try one: its bar appears</em>"
    return f'<div class="relscope-columns{many}" aria-hidden="true">{drawn}</div>'


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
    if st.session_state.get(_PRESENTS):
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


def same_shape() -> None:
    of = words()
    maps, says = _halves()
    with says:
        titles = {OWN: "Own axes", "absolute": "The same axes"}
        form = st.segmented_control(
            "Axes", list(titles), key="story.axes", format_func=titles.get, required=True, default="absolute"
        )
        _write(
            "In the same axes the models have nothing in common: the first number of a word means one thing"
            " in Word2Vec and another in FastText.",
            "No training fixes the axes: a space that is turned serves its model just as well.",
        )
        if form == "absolute":
            st.html(share_number(score(of.pair, "absolute"), f"{_SAME}, by their coordinates."))
    with maps:
        draw_maps(of, form, "story.maps")


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
    view = replace(default_view(pair.source), n_nearest=_NEAREST)
    shown = replace(_USUAL, anchors=by, view=view, panes=("relative",))
    drawn, says = _halves()
    with drawn:
        drawing = panes.draw(pair, shown, selection=False)
        scene, rows = drawing.found
        titled = [
            replace(pane, title=f"{model}, by similarities")
            for pane, model in zip(scene.panes, MODELS, strict=True)
        ]
        named = replace(drawing, found=(replace(scene, panes=tuple(titled)), rows))
        panes.show(pair, named, "story.drag", 470, _hear, worded=True, selection=False)
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


def _hear(event: PaneEvent, pair: Match, drawn: View) -> None:
    if event.kind == "anchor":
        before, to = pair.ids[drawn.rows[event.rows]]
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
        drawn = panes.with_rows(of.pair, _USUAL, of.drawn, rows)
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
    if st.session_state.get(_PRESENTS):
        height = 420
    digits.draw(columns, height)


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
        "Into other directions of the 100 than the two drawn. The axes along which Word2Vec's words differ"
        " most are, in FastText, directions in which these words hardly differ. Linear CKA, a score that"
        " ignores rotations, still finds the two spaces alike; see *Scores* in Explore.",
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
        "More anchors, from everywhere, mend the first two. Wrong pairs must be corrected; the audit under"
        " *Anchors* in Explore finds them. Unrelated data stay at the chance level with any number of"
        " anchors, so a score far above it rules them out.",
    ),
    StoryStep(
        "A use: stitching",
        stitching,
        "Why can a classifier read the rows of an encoder that it has never seen?",
        "Because it was trained on similarities to anchors, not on coordinates. The other encoder describes"
        " a digit by its similarities to the same anchors, so the classifier reads nearly the same numbers.",
    ),
)


STYLE = Path(__file__).parents[2] / "assets" / "start.css"
# Hide bars and reduce spacing, so that each step fits a screen of 1366 × 768. On a larger screen, text and
# maps grow.
LARGE = """<style>
html { font-size: clamp(16px, min(2.4vh, 1.5vw), 42px); }
.st-key-toolbar, .st-key-autosave, [data-testid="stHeader"] { display: none; }
.st-key-story :is(.ls-toolbar, .ls-caption) { display: none; }
.st-key-story :is(.ls-root, .ls-hint, .ls-title, .ls-tip) { font-size: 0.9rem; }
[data-testid="stMainBlockContainer"] { padding: 0.6rem 1rem 0; }
.st-key-story { min-height: calc(100vh - 3rem); --relscope-large: 1.25; } /* names and dots of the maps */
/* The exercise at the lower edge, and the step in the middle of what is left. */
.st-key-story > :is(:has(> [data-testid="stPopover"]), :has([data-testid="stColumn"])) { margin-top: auto; }
.st-key-story > :has(.st-key-story-digits) { margin-top: 0; } /* the pad stays under the pen */
.st-key-story .stVerticalBlock { gap: 0.5rem; }
.st-key-story-bar { flex-wrap: nowrap; gap: 0.2rem; }
.st-key-story-bar :is(button, p) { padding: 0.15rem 0.35rem; min-height: 0; font-size: 0.75rem; }
.st-key-story-bar, .relscope-step { white-space: nowrap; }
.stButtonGroup button { padding-inline: 0.4rem; font-size: 0.75rem; }
.relscope-step { font-size: 1.4rem; margin: 0 0 0 0.6rem; }
.relscope-number { display: block; }
.relscope-says { line-height: 1.4; margin-bottom: 0.4rem; }
.relscope-number > b { font-size: 2.6rem; }
.relscope-columns { height: 5rem; margin-bottom: 1.5rem; }
.relscope-columns.many > :is(:nth-child(odd), .now + div, :has(+ .now)):not(.now, :last-child) span,
.relscope-columns.many > .now + div span { visibility: hidden; }
</style>"""
_PRESENTS = "story.presents"


def page() -> None:
    st.html(STYLE)
    number = step()
    # Each step has its own container, because otherwise the old step would stay until the new one is drawn.
    if not number:
        with st.container(key="front"):
            front(go_to)
        st.empty()
        return
    st.empty()
    if st.session_state.get(_PRESENTS):
        st.html(LARGE)
    one = STEPS[number - 1]
    with st.container(key="story"):
        title = f'<h3 class="relscope-step">{number} · {one.title}</h3>'
        _navigation(number, title)
        if not st.session_state.get(_PRESENTS):
            st.html(title)
        places = [st.container() if one is other else st.empty() for other in STEPS]
        # The browser opens a popover upwards if there is no room below it.
        with st.popover(f"Exercise: {one.question}", icon=":material/quiz:", width="stretch"):
            st.markdown(with_links(one.answer))
        with places[number - 1]:
            one.draw()


def step() -> int:
    """The step of the story in the address. Returns 0 if the address has none."""
    text = st.query_params.get(STEP, "")
    if text in map(str, range(1, len(STEPS) + 1)):
        return int(text)
    return 0


def go_to(number: int, presents: bool | None = None) -> None:
    if presents is not None:
        st.session_state[_PRESENTS] = presents
    if number:
        st.query_params[STEP] = str(number)
    else:
        st.query_params.pop(STEP, None)


def _navigation(number: int, title: str) -> None:
    last = len(STEPS)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="story-bar"):
        # No key leaves the story: in front of a class, one easily presses a key too often.
        st.button("Back", key="story.back", shortcut="Left" if number > 1 else None, **_to(number - 1))
        label = "To the start"
        if number < last:
            label = "Next"
        st.button(
            label,
            key="story.next",
            type="primary",
            shortcut="Right" if number < last else None,
            **_to((number + 1) % (last + 1)),
        )
        presents = bool(st.session_state.get(_PRESENTS))
        for other in range(1, last + 1):  # no radio group, which would catch the arrow keys
            look = "tertiary"
            if other == number:
                look = "secondary"
            st.button(
                f"{other}",
                key=f"story.step-{other}",
                type=look,
                help=None if presents else STEPS[other - 1].title,
                **_to(other),
            )
        if presents:
            st.html(title, width="content")
        st.space("stretch")
        # Not a toggle: while a toggle has the focus, the arrow keys do not move between steps.
        label = "Present the story"
        help_text = "Large type, for a screen in front of a class"
        if presents:
            label = "End the presentation"
            help_text = None
        st.button(
            label,
            key="story.present",
            icon=":material/co_present:",
            type="tertiary",
            help=help_text,
            shortcut="Escape" if presents else None,
            **_to(number, not presents),
        )
        st.button("Reset", key="story.reset", icon=":material/restart_alt:", type="tertiary", on_click=reset)


def _to(number: int, presents: bool | None = None) -> dict[str, Any]:
    return {"on_click": go_to, "args": (number, presents)}


def reset() -> None:
    """Start the story again at its first step. Presenter mode stays as it is."""
    for key in [key for key in st.session_state if key.startswith("story.") and key != _PRESENTS]:
        del st.session_state[key]
    go_to(1)
