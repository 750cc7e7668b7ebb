"""A thousand random clicks: whatever is chosen after whatever else, the workspace stays consistent and
nothing leaks.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from app import compute, session, widgets
from app.session import reduce
from app.workspace import (
    MOST_ANCHORS,
    UNDO_STEPS,
    History,
    Workspace,
    from_query,
    from_session_file,
    to_query,
    to_session_file,
)
from relcore.base.errors import SpaceError
from relcore.base.names import REDUCTIONS, SIMILARITIES, STRATEGIES
from relcore.catalog.catalog import SpaceSpec
from relcore.compare.scene import MapLook
from relcore.figures.scene import Condition
from relcore.maps.pane_maps import NUMBERS
from tests.app.conftest import save_space

CLICKS = 450


def flat(workspace: Workspace) -> dict[str, object]:
    found = {}
    for field in dataclasses.fields(workspace):
        value = getattr(workspace, field.name)
        nested = dataclasses.is_dataclass(value) and not isinstance(value, SpaceSpec)
        parts = dataclasses.fields(value) if nested else ()
        found |= {f"{field.name}.{part.name}": getattr(value, part.name) for part in parts} or {
            field.name: value
        }
    return found


def changed(before: Workspace, after: Workspace) -> set[str]:
    old, new = flat(before), flat(after)
    return {name for name in old if old[name] != new[name]}


def broken(workspace: Workspace) -> list[str]:
    lists = [
        workspace.spaces,
        workspace.anchors,
        workspace.pinned,
        workspace.view.pivots,
        *dict(workspace.named_sets).values(),
    ]
    pinned = set(workspace.pinned) <= set(workspace.anchors)
    rules = {
        "lists are distinct": all(len(set(one)) == len(one) for one in lists),
        "a name for each set": len(dict(workspace.named_sets)) == len(workspace.named_sets),
        "source and target are among the spaces": (
            {workspace.source, workspace.target} <= set(workspace.spaces)
        ),
        "only anchors are pinned": pinned,
        "not too many anchors": len(workspace.anchors) <= MOST_ANCHORS,
        "settled": reduce(workspace, workspace) is workspace,
        "a session file holds all of it": from_session_file(to_session_file(workspace, {}))[0] == workspace,
        "a link holds its part": (
            to_query(from_query(to_query(workspace), Workspace())) == to_query(workspace)
        ),
    }
    return [rule for rule, holds in rules.items() if not holds]


def misfits(workspace: Workspace) -> list[str]:
    """What does not fit the rows of the chosen pair; nothing where the two cannot be compared."""
    try:
        pair = compute.matched_pair(workspace.source, workspace.target)
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
    """Two spaces of equal rows, one with labels and half of them, and one that shares no row with the
    others.
    """
    rng = np.random.default_rng(3)
    ids = np.array([f"r{row}" for row in range(60)])
    labels = np.array(["one", "two", "three"])[np.arange(60) % 3]
    path = tmp_path / "labelled.npz"
    np.savez(path, vectors=rng.normal(size=(60, 4)).astype(np.float32), ids=ids, labels=labels)
    apart = save_space(tmp_path / "apart.npz", rng.normal(size=(40, 6)), prefix="q")
    return (*make_workspace().spaces, SpaceSpec("file", str(path)), apart)


@pytest.fixture
def clicks(spaces, monkeypatch):
    """``history, clicks``: a history in place of a session's, and by name a click with the settings that
    it may change.
    """
    history = History(
        Workspace(
            spaces, *spaces[:2], anchors_from="random 20 0", view=replace(Workspace().view, n_nearest=30)
        )
    )
    monkeypatch.setattr(session, "history", lambda first=None: history)
    monkeypatch.setattr(session, "notify", lambda text: None)
    monkeypatch.setattr("app.session.messages", SimpleNamespace(toast=lambda text: None))
    rng = np.random.default_rng(13)

    def some(values, most=4):
        values = list(values)
        return (
            tuple(values[place] for place in rng.integers(len(values), size=rng.integers(0, most + 1)))
            if values
            else ()
        )

    def one(values):
        values = list(values)
        return values[rng.integers(len(values))]

    def rows():
        return [f"r{row}" for row in range(120)]

    def among_rows(spec):
        return [one for one in rows() if one in compute.load_space(spec).index]

    def choose_anchors():
        pair = compute.matched_pair(history.present.source, history.present.target)
        widgets.choose_anchors(pair, one(STRATEGIES), int(rng.integers(1, 50)), int(rng.integers(3)))

    def choose_pivots():
        pair = compute.matched_pair(history.present.source, history.present.target)
        session.edit_spec("pivots", "view", pivots=some(pair.ids, 5))

    def remove_space():
        gone = one(history.present.spaces)
        session.edit("remove", spaces=tuple(spec for spec in history.present.spaces if spec != gone))

    def reopen():
        session.set_workspace("open", from_session_file(to_session_file(history.present, {}))[0])

    def foreign_pivots():
        content = json.loads(to_session_file(history.present, {}))
        content["session"]["view"]["pivots"] = ["nowhere", one(rows())]
        content["session"]["anchors"] = [*history.present.anchors, "lost"]
        session.set_workspace("open", from_session_file(json.dumps(content))[0])

    def spec(field: str, name: str, values) -> tuple[Callable, set[str]]:
        return lambda: session.edit_spec(name, field, **{name: one(values)}), {f"{field}.{name}"}

    anchors = {"anchors", "anchors_from", "pinned"}
    view = {"view.pivots", "view.color_by", "view.everything"}
    pair = {"source", "target"} | anchors | view
    everything = set(flat(history.present))
    return history, {
        "choose a space": (
            lambda: widgets.choose_space(one(("source", "target")), one(history.present.spaces)),
            pair,
        ),
        "swap": (lambda: session.compare("swap", *history.present.models[1::-1]), pair),
        "add a space": (
            lambda: session.edit("load", spaces=(*history.present.spaces, one(spaces))),
            {"spaces"},
        ),
        "remove a space": (remove_space, {"spaces"} | pair),
        "choose anchors": (choose_anchors, anchors),
        "add anchors": (lambda: session.add_anchors(some(among_rows(history.present.source))), anchors),
        "remove anchors": (lambda: session.remove_anchors(some(history.present.anchors, 9)), anchors),
        "remove all": (lambda: session.remove_anchors(history.present.anchors), anchors),
        "pin": (lambda: session.pin_anchors(some(rows())), {"pinned"}),
        "unpin": (lambda: session.unpin_anchors(some(history.present.pinned)), {"pinned"}),
        "save a set": (
            lambda: session.edit(
                "save", named_sets=(*history.present.named_sets, (one("abc"), some(history.present.anchors)))
            ),
            {"named_sets"},
        ),
        "use a set": (
            lambda: session.set_anchors("use", one((*dict(history.present.named_sets).values(), ()))),
            anchors,
        ),
        "pivots": (choose_pivots, {"view.pivots"} | view),
        "nearest": spec("view", "n_nearest", (1, 5, 30, 130)),
        "show": (lambda: session.edit_spec("show", "view", everything=one((True, False))), view),
        "colour": (
            lambda: session.edit_spec("colour", "view", color_by=one(("pivots", "labels", *NUMBERS))),
            view,
        ),
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
        "panes": (
            lambda: session.edit("panes", panes=("absolute", one(("relative", "whitened")))),
            {"panes"},
        ),
        "k": (lambda: session.edit("k", k=one((1, 10, 200))), {"k"}),
        "convention": (
            lambda: session.edit("convention", convention=one(("paper", "mutual"))),
            {"convention"},
        ),
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
    assert (
        reduce(before, replace(filtered, target=third)).look.filter == filtered.look.filter
    )  # it brings its own
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
