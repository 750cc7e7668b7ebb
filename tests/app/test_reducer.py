"""Random clicks: after any sequence of choices, the workspace is consistent, and each click changes only what
it may change."""

import dataclasses
import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from app import compute, session, widgets
from app.compare import tags
from app.session import reduce
from app.workspace import (
    MOST_ANCHORS,
    UNDO_STEPS,
    History,
    Workspace,
    from_query,
    from_session_file,
    to_query,
)
from relcore.base.errors import SpaceError
from relcore.base.names import REDUCTIONS, SIMILARITIES, STRATEGIES
from relcore.catalog.catalog import SpaceSpec
from relcore.compare.scene import MapLook
from relcore.figures.colorings import Condition
from relcore.maps.pane_maps import NUMBERS
from tests.app.conftest import save_space
from tests.session_files import to_session_file

CLICKS = 450


def flat(workspace):
    found = {}
    for field in dataclasses.fields(workspace):
        value = getattr(workspace, field.name)
        nested = dataclasses.is_dataclass(value) and not isinstance(value, SpaceSpec)
        parts = ()
        if nested:
            parts = dataclasses.fields(value)
        found |= {f"{field.name}.{part.name}": getattr(value, part.name) for part in parts} or {
            field.name: value
        }
    return found


def changed(before, after):
    old = flat(before)
    new = flat(after)
    return {name for name in old if old[name] != new[name]}


def broken(workspace):
    lists = [
        workspace.spaces,
        workspace.anchors,
        workspace.pinned,
        workspace.view.pivots,
        *dict(workspace.named_sets).values(),
        *dict(workspace.tags).values(),
    ]
    link = to_query(workspace)
    rules = {
        "lists are distinct": all(len(set(one)) == len(one) for one in lists),
        "a name for each tag, and rows": all(dict(workspace.tags).values())
        and len(dict(workspace.tags)) == len(workspace.tags),
        "a name for each set": len(dict(workspace.named_sets)) == len(workspace.named_sets),
        "the pair is among the spaces": {workspace.source, workspace.target} <= set(workspace.spaces),
        "only anchors are pinned": set(workspace.pinned) <= set(workspace.anchors),
        "not too many anchors": len(workspace.anchors) <= MOST_ANCHORS,
        "settled": reduce(workspace, workspace) is workspace,
        "a session file holds all of it": from_session_file(to_session_file(workspace, {}))[0] == workspace,
        "a link holds its part": to_query(from_query(link, Workspace())) == link,
    }
    return [rule for rule, holds in rules.items() if not holds]


def misfits(workspace):
    """The settings of the workspace that do not fit the rows of the chosen pair; [] if the two cannot be
    compared."""
    try:
        pair = compute.matched_models(workspace.source, workspace.target)
    except SpaceError:
        return []
    named = [*workspace.anchors, *workspace.view.pivots]
    found = [one for one in named if one not in pair.source.index]
    if workspace.view.color_by == "labels" and pair.source.labels is None:
        found.append("labels")
    if workspace.view.pivots or workspace.view.everything:
        compute.view(pair, workspace)
    return found


@pytest.fixture
def spaces(tmp_path, make_workspace):
    """Four spaces: two with the same rows, one with half of these rows and labels, and one with other
    rows."""
    rng = np.random.default_rng(3)
    labels = np.array(["one", "two", "three"])[np.arange(60) % 3]
    third = save_space(tmp_path / "labelled.npz", rng.normal(size=(60, 4)), labels=labels)
    apart = save_space(tmp_path / "apart.npz", rng.normal(size=(40, 6)), prefix="q")
    return (*make_workspace().spaces, third, apart)


@pytest.fixture
def clicks(spaces, monkeypatch):
    """``(history, clicks)``. The history replaces that of the session. `clicks` maps a name to a function that
    clicks, and to the settings that this click may change."""
    view = replace(Workspace().view, n_nearest=30)
    history = History(Workspace(spaces, *spaces[:2], anchors_from="random 20 0", view=view))
    monkeypatch.setattr(session, "history", lambda first=None: history)
    monkeypatch.setattr(session, "notify", lambda text: None)
    monkeypatch.setattr("app.session.messages", SimpleNamespace(toast=lambda text: None))
    rng = np.random.default_rng(13)
    rows = [f"r{row}" for row in range(120)]

    def now():
        return history.present

    def one(values):
        values = list(values)
        return values[rng.integers(len(values))]

    def some(values, most=4):
        if len(values):
            return tuple(one(values) for _ in range(rng.integers(0, most + 1)))
        return ()

    def pair_of():
        return compute.matched_models(now().source, now().target)

    def choose_anchors():
        widgets.choose_anchors(pair_of(), one(STRATEGIES), int(rng.integers(1, 50)), int(rng.integers(3)))

    def add_anchors():
        session.add_anchors(some([one for one in rows if one in compute.load_space(now().source).index]))

    def remove_space():
        gone = one(now().spaces)
        session.edit("remove", spaces=tuple(spec for spec in now().spaces if spec != gone))

    def save_set():
        session.edit("save", named_sets=(*now().named_sets, (one("abc"), some(now().anchors))))

    def use_set():
        session.set_anchors("use", one((*dict(now().named_sets).values(), ())))

    def tag():
        tagging = one((tags.add_to_tag, tags.remove_from_tag, tags.rename_tag, tags.delete_tag))
        names = ("verbs", "nouns", "labels")
        if tagging is tags.add_to_tag:
            tagging(one(names), some(rows))
        elif now().tags:
            name = one(dict(now().tags))
            rest = {tags.remove_from_tag: (some(rows, 20),), tags.rename_tag: (one(names),)}
            tagging(name, *rest.get(tagging, ()))

    def colour_by_tag():
        session.edit_spec("colour", "view", color_by=f"column:{one([*dict(now().tags), 'gone'])}")

    def reopen():
        session.set_workspace("open", from_session_file(to_session_file(now(), {}))[0])

    def foreign_pivots():
        content = json.loads(to_session_file(now(), {}))
        content["session"]["view"]["pivots"] = ["nowhere", one(rows)]
        content["session"]["anchors"] = [*now().anchors, "lost"]
        session.set_workspace("open", from_session_file(json.dumps(content))[0])

    def field(name, values):
        return lambda: session.edit(name, **{name: one(values)}), {name}

    def spec(field, name, values, changes=()):
        return lambda: session.edit_spec(name, field, **{name: one(values)}), {f"{field}.{name}", *changes}

    def choose_space():
        widgets.choose_space(one(("source", "target")), one(now().spaces))

    def choose_pivots():
        session.edit_spec("pivots", "view", pivots=some(pair_of().ids, 5))

    anchors = {"anchors", "anchors_from", "pinned"}
    view = {"view.pivots", "view.color_by", "view.everything"}
    pair = {"source", "target"} | anchors | view
    everything = set(flat(now()))
    return history, {
        "choose a space": (choose_space, pair),
        "swap": (lambda: session.compare("swap", *now().models[1::-1]), pair),
        "add a space": (lambda: session.edit("load", spaces=(*now().spaces, one(spaces))), {"spaces"}),
        "remove a space": (remove_space, {"spaces"} | pair),
        "choose anchors": (choose_anchors, anchors),
        "add anchors": (add_anchors, anchors),
        "remove anchors": (lambda: session.remove_anchors(some(now().anchors, 9)), anchors),
        "remove all": (lambda: session.remove_anchors(now().anchors), anchors),
        "pin": (lambda: session.pin_anchors(some(rows)), {"pinned"}),
        "unpin": (lambda: session.unpin_anchors(some(now().pinned)), {"pinned"}),
        "save a set": (save_set, {"named_sets"}),
        "use a set": (use_set, anchors),
        "tag": (tag, {"tags"} | view),
        "colour by a tag": (colour_by_tag, view),
        "pivots": (choose_pivots, view),
        "nearest": spec("view", "n_nearest", (1, 5, 30, 130)),
        "show": spec("view", "everything", (True, False), view),
        "colour": spec("view", "color_by", ("pivots", "labels", *NUMBERS), view),
        "show anchors": spec("view", "show_anchors", (True, False)),
        "method": spec("reduction", "method", REDUCTIONS),
        "fit": spec("reduction", "fit", ("first", "apart")),
        "align": spec("reduction", "align", (True, False)),
        "dimensions": spec("reduction", "n_components", (2, 3)),
        "UMAP neighbours": spec("reduction", "n_neighbors", (2, 15, 200)),
        "perplexity": spec("reduction", "perplexity", (2.0, 30.0)),
        "similarity": spec("projection", "similarity", SIMILARITIES),
        "centre": spec("projection", "center", (True, False)),
        "inverse": spec("inversion", "method", ("pruned", "ridge", "whitened")),
        "panes": field("panes", [("absolute", other) for other in ("relative", "whitened")]),
        "k": field("k", (1, 10, 200)),
        "convention": field("convention", ("paper", "mutual")),
        "undo": (history.undo, everything),
        "redo": (history.redo, everything),
        "open its session file": (reopen, set()),
        "open another session file": (foreign_pivots, anchors | view),
    }


def test_random_clicks_keep_the_workspace_consistent(clicks):
    history, by_name = clicks
    session.fit_to_models()
    rng = np.random.default_rng(7)
    made = []
    for name in rng.choice(list(by_name), CLICKS):
        click, may_change = by_name[name]
        before = history.present
        with np.errstate(all="ignore"):
            session.guarded(click)
            session.fit_to_models()
        made.append(name)
        trail = made[-12:]
        assert not broken(history.present), (trail, broken(history.present))
        assert not misfits(history.present), (trail, misfits(history.present))
        assert changed(before, history.present) <= may_change, trail
    assert set(made) == set(by_name)
    steps = 0
    end = history.present
    while history.undo_step is not None:
        history.undo()
        steps += 1
        assert not broken(history.present)
    assert steps == UNDO_STEPS
    for _ in range(steps):
        history.redo()
    assert history.present == end


def test_what_a_change_leads_to(spaces):
    first, second, third, apart = spaces
    before = Workspace(spaces[:3], first, second, anchors=("r1", "r2"), pinned=("r1",))
    assert reduce(before, replace(before, target=apart)).spaces == (first, second, third, apart)
    gone = reduce(before, replace(before, spaces=(second, third)))
    assert (gone.source, gone.target) == (third, second)
    alone = reduce(before, replace(before, spaces=(third,)))
    assert (alone.source, alone.target) == (third, third)
    assert reduce(before, replace(before, spaces=())).spaces == Workspace().spaces
    filtered = replace(before, look=MapLook(filter=(Condition("labels", ("one",)),)))
    assert reduce(filtered, replace(filtered, target=third)).look.filter == ()
    # A change that brings a filter of its own keeps it.
    assert reduce(before, replace(filtered, target=third)).look.filter == filtered.look.filter
    assert from_query(to_query(filtered), before).look.filter == filtered.look.filter
    three = replace(before, others=(third,))
    assert reduce(before, three) is three
    assert reduce(three, replace(three, target=third)).others == ()
    assert reduce(three, replace(three, spaces=(first, second))).others == ()
    by_hand = reduce(before, before.with_anchors(("r2", "r3", "r2")))
    assert by_hand == replace(before, anchors=("r2", "r3"), pinned=(), anchors_from="")
    by_strategy = reduce(before, before.with_anchors(("r9", "r1", "r9"), "random 3 0"))
    assert by_strategy == replace(before, anchors=("r9", "r1"), anchors_from="random 3 0")
    with pytest.raises(SpaceError, match="expected at most 2,000"):
        reduce(before, replace(before, anchors=tuple(map(str, range(MOST_ANCHORS + 1)))))


def test_no_other_module_changes_a_history():
    """`app.session` alone does, through the reducer: another file would go around it."""
    root = Path(__file__).parents[2]
    writes = re.compile(r"history\(\)\.(edit|amend|present\s*=)")
    files = [path for folder in ("app", "pages") for path in (root / folder).rglob("*.py")]
    assert {path.name for path in files if writes.search(path.read_text(encoding="utf-8"))} == {"session.py"}
