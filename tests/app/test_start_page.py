import re
from dataclasses import replace

import pytest

from app import panes, session
from app.start import steps, story
from app.workspace import BUNDLED
from relcore import load_words, match, select_anchors
from relcore.base.numbers import percent
from relcore.catalog.catalog import held_out_ids, load
from relcore.catalog.naming import example_spaces
from relcore.compare.scene import with_unrelated_target, with_wrong_pairs
from relcore.represent.representations import ProjectionSpec, represent
from relcore.runs.store import Store
from relcore.scores.comparison import held_out, score_pair
from relcore.scores.score_report import LIVE_QUERIES
from relcore.stitch.classifiers import Stitching
from relcore.stitch.shared_rows import share_rows
from relcore.stitch.stitching import StitchSpec
from relcore.training.two_networks import TwoNetworks
from tests.app.conftest import Session


@pytest.fixture(scope="module")
def words():
    return match(load_words("word2vec-novels"), load_words("fasttext-novels"))


def top1(pair, form, anchors=()):
    split = held_out(pair, anchors, form)
    rows = represent(pair, form, anchors, ProjectionSpec())
    return score_pair(*rows, split, k=10, n_queries=LIVE_QUERIES, metrics=("mrr",))["mrr"]


def opened(state=None, **query):
    return Session(query, place=(), state=state)


def shown(score):
    return f"<b>{percent(score.top1)}</b>"


def test_the_first_screen_shows_what_the_core_finds(words):
    at = opened()
    text = at.html
    anchors = select_anchors(words.source, 300, "random", random_state=0)
    absolute = top1(words, "absolute")
    relative = top1(words, "relative", anchors)
    assert absolute.top1 < 0.01 < 0.8 < relative.top1
    for score in (absolute, relative):
        assert f'<div class="relscope-told">{shown(score)}' in text
    places = [key for key in at.keys if (key or "").startswith("start.")]
    assert {*places} == {
        f"start.{one}" for one in ["data", "story", "present", "explore", "stitch", "migrate"]
    }
    assert "Explore</h2>" in at.click("start.explore").html


def test_every_step_has_an_address_and_keys():
    at = opened().click("start.story")
    for number, step in enumerate(story.STEPS[:-1], 1):
        assert at.query_params["step"] == str(number)
        assert f"{number} · {step.title}" in at.html
        assert f"Exercise: {step.question}" in [one.proto.popover.label for one in at.get("popover")]
        keys = {key: at.button(key=key).proto.shortcut for key in ("story.back", "story.next")}
        assert keys == {"story.back": "left" if number > 1 else "", "story.next": "right"}
        at.click("story.next")
    assert at.button(key="story.next").label == "To the start"
    assert not at.button(key="story.next").proto.shortcut  # a key would leave the story
    assert at.click("story.back").query_params["step"] == str(len(story.STEPS) - 1)
    assert at.click("story.step-2").query_params["step"] == "2"


def test_a_selection_plays_no_part_in_the_story(words, monkeypatch):
    drawn = []
    monkeypatch.setattr(panes, "linked_scatter", lambda *_, selected, **__: drawn.append(len(selected)))
    opened({session._SELECTION: tuple(words.ids[:300])}, step="3")
    assert drawn
    assert not any(drawn)


def test_each_failure_has_the_cores_score_or_chance_level(words):
    at = opened(step="5")
    usual = tuple(select_anchors(words.source, steps.SOME, "random", random_state=0))
    pairs = {
        "50 anchors": (words, usual),
        "Wrong pairs": (with_wrong_pairs(words, usual), usual),
        "Unrelated data": (with_unrelated_target(words), usual),
    }
    assert set(pairs) < set(steps.CASES)
    found = {}
    for name, (pair, anchors) in pairs.items():
        found[name] = top1(pair, "relative", anchors)
        assert f"{shown(found[name])} <span>of" in at.change("button_group", "story.case", name).html, name
    assert found["50 anchors"] > 0.3
    for name in ("Wrong pairs", "Unrelated data"):
        assert found[name].null.low <= found[name] <= found[name].null.high


def test_two_networks_are_trained_in_the_story(monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(TwoNetworks.__init__, "__defaults__", ("digits", 0, 2))
    at = opened(step="7")
    assert "Guess first" in at.html
    assert not at.players
    at.click("training.train")
    assert not at.errors
    assert "Means of 5 pairs of random states" in at.text
    assert len(at.players) == 1
    assert "Guess first" not in at.html


def test_stitched_networks_answer_as_the_core_does():
    at = opened(step="6")
    assert "Until you draw: a scan of a 5" in at.captions
    assert at.html.count('class="stitched"') == 2  # an example holds the place of the answers
    at.change("button_group", "story.digit", "4")
    shown = re.findall(r"</span><b>(.*?)</b><small>(.*?)</small>", at.html)
    specs = example_spaces("digits", Store().finished)[0][1:3]
    shared = share_rows([load(spec) for spec in specs])
    tested = held_out_ids(specs, shared.spaces, shared.ids)
    stitching = Stitching(shared, StitchSpec(("relative", "absolute"), test_ids=tested), 0)
    row = next(row for row in stitching.split.test if shared.classes[shared.targets[row]] == "4")
    rows = [space.vectors[[row]] for space in shared.spaces]
    stitched, control = (stitching.probabilities(by, rows)[:, :, 0] for by in stitching.spec.methods)
    expected = [of[i, j] for i in (0, 1) for of, j in ((stitched, i), (stitched, 1 - i), (control, 1 - i))]
    assert shown == [(shared.classes[one.argmax()], percent(one.max())) for one in expected]


def test_the_card_of_a_new_model_opens_the_example(make_session):
    session = make_session(place=("start",)).click("start.migrate-own")
    assert not session.workspace.example
    shown = session.open("start").click("start.migrate").workspace
    assert shown.example
    assert session.click("history.undo").workspace == replace(shown, example=False)


def test_the_story_opens_why_the_words_differ(make_session, ran_in_place):
    session = make_session(place=()).open("start")
    session.at.query_params["step"] = "1"
    session.run().click("story.why")
    assert session.workspace.models == BUNDLED
    assert ran_in_place == []  # the result comes with Relscope
    assert "explain.open-0" in session.keys
