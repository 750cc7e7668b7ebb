from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app.workspace import History, Workspace
from relcore.cli import main
from relcore.drift.check import QUANTITIES
from tests.app.conftest import save_space

N = 120


def panel():
    from app import messages, session
    from app.drift.panel import draw
    from relcore.base.errors import SpaceError

    try:
        draw(session.workspace())
    except SpaceError as error:
        messages.error(error)


class Panel:
    def __init__(self, workspace):
        self.at = AppTest.from_function(panel, default_timeout=120)
        self.at.session_state["relscope.history"] = History(workspace)
        self.run()

    def run(self):
        self.at.run()
        assert not self.at.exception, [error.value for error in self.at.exception]
        return self

    def change(self, kind, key, value):
        found = [one for one in getattr(self.at, kind) if one.key.startswith(key)]
        assert len(found) == 1, [one.key for one in getattr(self.at, kind)]
        found[0].set_value(value)
        return self.run()

    @property
    def html(self):
        return "\n".join(block.value for block in self.at.html)

    @property
    def alarms(self):
        return [one.value for one in self.at.warning]


@pytest.fixture
def versions(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.array(["red", "green", "blue"])[np.arange(N) % 3]
    vectors = rng.normal(size=(N, 6)) + 3 * rng.normal(size=(3, 6))[np.arange(N) % 3]
    turn, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    made = {
        "v1": vectors,
        "turned": vectors @ turn,
        "noisy": vectors + rng.normal(size=vectors.shape),
        "narrow": vectors[:, :4],
        "zero": vectors * (np.arange(N) < 12)[:, None],
    }
    return {name: save_space(tmp_path / f"{name}.npz", rows, labels=labels) for name, rows in made.items()}


def of(versions, *names):
    specs = tuple(versions[name] for name in names)
    return Panel(Workspace(specs, specs[0], specs[1]))


@pytest.mark.parametrize("new", ["noisy", "narrow", "zero"])
def test_the_page_and_the_command_give_the_same_digits(versions, new, capsys):
    shown = of(versions, "v1", new)
    main(["drift", versions["v1"].name, versions[new].name, "--format", "json"])
    found = json.loads(capsys.readouterr().out)
    assert found["headline"].replace("'", "&#x27;") in shown.html
    assert len(shown.alarms) == sum(found["alarms"].values())
    table = shown.at.dataframe[0].value
    by_check = {
        (row["quantity"], row["group"] or "all rows", row["value"], row["noise"], row["alarm"])
        for row in found["checks"]
    }
    names = {named.title: quantity for quantity, named in QUANTITIES.items()}
    columns = (table["quantity"].map(names), table["class"], table["value"], table["noise"], table["alarm"])
    assert set(zip(*columns, strict=True)) == by_check


def test_a_planned_change_of_model_alarms_for_broken_rows_alone(versions):
    for new, told in (("noisy", "No broken rows"), ("zero", "breaks rows that were whole")):
        shown = of(versions, "v1", new).change("button_group", "drift.change", "model")
        assert told in shown.html
        assert shown.alarms == []


def test_it_begins_with_the_sessions_pair_and_follows_another_one(versions):
    shown = of(versions, "v1", "noisy", "turned")
    history = shown.at.session_state["relscope.history"]
    for source, target in (("v1", "noisy"), ("turned", "noisy")):
        pair = {"source": versions[source], "target": versions[target]}
        history.present = replace(history.present, **pair)
        shown.run()
        assert [one.value for one in shown.at.selectbox[:2]] == [*pair.values()]
