import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from app.drift.gate import conditions
from app.workspace import BUNDLED, History, Workspace
from relcore.catalog.catalog import SpaceSpec, load, renamed_spec
from relcore.catalog.renamed import put_pairing
from relcore.cli import main
from relcore.drift.measures import ROWS, Measure
from relcore.drift.verdict import QUANTITIES, SITUATIONS, TABLES, Check, DriftVerdict
from relcore.files.saving import save_space as write_space
from relcore.passport.passport import Passport, PassportCard
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace
from tests.app.conftest import Session, save_space
from tests.relcore.passport.test_check import FIRST, SECOND

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

    def gate(self, situation):
        """The badges of a line of the gate."""
        lines = [block.value for block in self.at.markdown if "-badge[" in block.value]
        return lines[list(TABLES).index(situation)]

    @property
    def html(self):
        return "\n".join(block.value for block in self.at.html)


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
    for situation, alarm in found["alarms"].items():
        assert (":red-badge[" in shown.gate(situation) + shown.gate(ROWS)) == alarm
    table = shown.at.dataframe[0].value
    by_check = {
        (row["quantity"], row["group"] or "all rows", row["value"], row["noise"], "✓✗"[row["alarm"]])
        for row in found["checks"]
    }
    names = {named.title: quantity for quantity, named in QUANTITIES.items()}
    columns = (table["quantity"].map(names), table["class"], table["value"], table["noise"], table[""])
    assert set(zip(*columns, strict=True)) == by_check


def test_kinds_of_rows_that_changed_are_named(tmp_path):
    rng = np.random.default_rng(2)
    labels = np.array(["red", "green", "blue", "grey"])[np.arange(800) % 4]
    old = rng.normal(size=(800, 6))
    new = old.copy()
    red = np.flatnonzero(labels == "red")
    new[red] = old[rng.permutation(red)]
    specs = [
        save_space(tmp_path / f"{name}.npz", rows, labels=labels)
        for name, rows in (("old", old), ("new", new))
    ]
    shown = Panel(Workspace(tuple(specs), *specs))
    told = [block.value for block in shown.at.markdown]
    assert any("neighbours differ; more for" in one and "of class red" in one for one in told)


def test_a_planned_change_of_model_alarms_for_broken_rows_alone(versions):
    for new, told in (("noisy", "No broken rows"), ("zero", "has broken rows that were fine")):
        shown = of(versions, "v1", new).change("button_group", "drift.change", "model")
        assert told in shown.html
        for situation in SITUATIONS:
            assert "-badge[" in shown.gate(situation)
            assert not re.search(":(red|green)-badge", shown.gate(situation))
        assert (":red-badge[" in shown.gate(ROWS)) == (new == "zero")
        assert ("drift.broken" in {one.key for one in shown.at.get("download_button")}) == (new == "zero")
        assert not any("--gate" in one.value for one in shown.at.caption)


def test_a_value_above_its_limit_that_is_not_surely_above_it_says_so():
    measure = Measure("everything_new", "churn", "", n=12, value=0.06, noise=0.001, error=0.03)
    [badge] = conditions(DriftVerdict((Check(measure, -0.02, 0.05, False),), {}), "everything_new", True)
    assert badge == ":green-badge[:material/check: changed neighbours .060, allowed .051 (not surely more)]"


def test_it_follows_the_sessions_pair(versions):
    shown = of(versions, "v1", "noisy", "turned")
    history = shown.at.session_state["relscope.history"]
    for source, target in (("v1", "noisy"), ("turned", "noisy")):
        pair = {"source": versions[source], "target": versions[target]}
        history.present = replace(history.present, **pair)
        shown.run()
        assert [one.value for one in shown.at.selectbox[:2]] == [*pair.values()]


IDS = tuple(f"r{row}" for row in range(40))


@pytest.fixture
def vectors():
    return np.random.default_rng(0).normal(size=(40, 24)).astype(np.float32)


def shown_with(tmp_path, vectors, new, anchors=IDS):
    specs = save_space(tmp_path / "old.npz", vectors), save_space(tmp_path / "new.npz", new)
    panel = Panel(Workspace(specs, *specs, anchors=anchors))
    return panel.change("segmented_control", "drift.mode", "A passport")


def test_the_sessions_anchors_are_a_passport_and_can_be_downloaded(tmp_path, vectors):
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(24, 24)))[0]
    panel = shown_with(tmp_path, vectors, vectors @ turn, IDS[:32])
    assert "Rotated: the same shape in other coordinates" in panel.html
    shown = re.sub(r"</?a[^>]*>", "", panel.html)
    row = re.search(r"cosines between anchors \(correlation[^)]*\)</td><td[^>]*>(.*?)</td>", shown)
    assert row[1] == "1.000"
    assert "passport.download" in [one.key for one in panel.at.get("download_button")]


def test_an_opened_file_is_checked(tmp_path, vectors):
    card = PassportCard("a model", prompt="query: ")
    Passport(IDS, vectors, card).save(tmp_path / "kept.safetensors")
    panel = shown_with(tmp_path, vectors * 3, vectors.astype(np.float16))
    path = str(tmp_path / "kept.safetensors")
    panel.change("text_input", "drift.passport-path", path)
    assert "Rounded: the same vectors, rounded" in panel.html
    assert any("prompt: query:" in one.value for one in panel.at.caption)
    panel.change("text_input", "drift.passport-path", str(tmp_path / "none.safetensors"))
    assert any("where there is none" in one.value for one in panel.at.error)


def check_page(workspace):
    def script(workspace):
        import streamlit as st

        from app import session
        from app.spaces import check

        if "opened" not in st.session_state:
            st.session_state["opened"] = True
            session.edit("open", spaces=workspace.spaces, source=workspace.source, target=workspace.target)
        check.draw(session.workspace())

    return AppTest.from_function(script, args=(workspace,), default_timeout=60).run()


def test_a_check_that_cannot_run_is_disabled_and_says_what_it_needs(tmp_path):
    few = save_space(tmp_path / "few.npz", FIRST(400))
    at = check_page(Workspace((few,), few, few))
    assert at.toggle(key="check.more").disabled
    assert "No space here has more than 500 rows" in at.caption[0].value


def test_a_check_needs_no_file_of_the_users_own():
    at = check_page(Workspace(BUNDLED, *BUNDLED))
    assert not at.toggle(key="check.more").disabled
    assert not at.caption


def _table_of(vectors, ids):
    table = pd.DataFrame(vectors, columns=[f"d{place}" for place in range(vectors.shape[1])])
    table.insert(0, "id", ids)
    return table.to_csv(index=False).encode()


def test_two_models_in_a_file_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr("app.results.AT_ONCE_SECONDS", 100)  # no cluster
    mixed = save_space(tmp_path / "mixed.npz", np.r_[FIRST(700), SECOND(100)])
    few = save_space(tmp_path / "few.npz", FIRST(400))
    at = check_page(Workspace((mixed, few), mixed, few))
    assert not at.exception
    assert not at.caption  # nothing runs unasked
    assert not at.toggle(key="check.more").disabled
    at.toggle(key="check.more").set_value(True).run()
    assert not at.exception
    assert at.selectbox[0].options == ["mixed"]  # the other file has too few rows
    assert any("holds vectors of two models" in one.body for one in at.get("html"))
    assert any("Parts do not reveal another prompt" in one.value for one in at.caption)
    assert {"check.csv", "check.again"} <= {one.key for one in at.get("download_button")}
    counts = at.dataframe[0].value.set_index("model").rows
    assert counts.sum() == 800
    assert abs(counts["smaller part"] - 100) < 20
    assert at.get("plotly_chart")
    assert at.button(key="check.repair").disabled
    (uploader,) = at.file_uploader
    assert "a column id and" in uploader.label
    ids = load(mixed).ids[700:]
    uploader.set_value(
        ("other.csv", _table_of(FIRST(40), [f"other {row}" for row in range(40)]), "text/csv")
    ).run()
    assert "expected 10 or more ids of the smaller part" in at.error[0].value
    at.file_uploader(key="check.again-file").set_value(
        ("again.csv", _table_of(FIRST(100), ids), "text/csv")
    ).run()
    assert not at.exception
    assert not at.error
    assert any(one.value.startswith("Mapped ") and "held-out pairs" in one.value for one in at.markdown)
    assert "check.repaired" in {one.key for one in at.get("download_button")}


def test_a_file_of_two_models_is_repaired_by_rows_embedded_again(tmp_path, monkeypatch):
    monkeypatch.setattr("app.results.AT_ONCE_SECONDS", 100)  # no cluster
    rows = FIRST(1000)
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(rows.shape[1],) * 2))[0]
    mixed = save_space(tmp_path / "mixed.npz", np.r_[rows[:700], rows[700:] @ turn].astype(np.float32))
    ids = load(mixed).ids[700:]
    again = tmp_path / "again.npz"
    write_space(LatentSpace(rows[700:], ids), again)
    at = check_page(Workspace((mixed, SpaceSpec("file", str(again))), mixed, mixed))
    at.toggle(key="check.more").set_value(True).run()
    (chooser,) = (one for one in at.selectbox if one.key.startswith("check.repair-by"))
    assert chooser.options == ["again"]  # too few rows to link the two parts without pairs
    assert "check.repaired" not in {one.key for one in at.get("download_button")}
    at.button(key="check.repair").click().run()
    assert not at.exception
    assert any(one.value.startswith("Mapped ") and "held-out pairs" in one.value for one in at.markdown)
    assert "check.repaired" in {one.key for one in at.get("download_button")}
    assert not at.warning
    at.button(key="check.again-repaired").click().run()
    assert not at.exception
    assert at.selectbox[0].value.name.endswith("mixed-repaired.npz")
    assert any("shows no sign of a second model" in one.body for one in at.get("html"))
    assert not any("expected after a repair" in one.value for one in at.caption)


def test_other_digits_of_mapped_rows_are_expected_after_a_repair(tmp_path, monkeypatch):
    monkeypatch.setattr("app.results.AT_ONCE_SECONDS", 100)  # no cluster
    rows = FIRST(700)
    rows[:500] = rows[:500].astype(np.float16)
    repaired = save_space(tmp_path / "repaired.npz", rows)
    monkeypatch.setattr("app.spaces.check.repaired_space", lambda: repaired)
    at = check_page(Workspace((repaired,), repaired, repaired))
    at.toggle(key="check.more").set_value(True).run()
    assert not at.exception
    assert any("expected after a repair" in one.value for one in at.caption)


def test_rows_by_a_wrong_model_are_chosen_last_and_a_repair_by_them_is_warned_of(tmp_path, monkeypatch):
    monkeypatch.setattr("app.results.AT_ONCE_SECONDS", 100)  # no cluster
    mixed = save_space(tmp_path / "mixed.npz", np.r_[FIRST(700), SECOND(100)])
    ids = load(mixed).ids[700:]
    files = {"wrong": SECOND(100, state=5), "right": FIRST(100)}
    for name, vectors in files.items():
        write_space(LatentSpace(vectors, ids), tmp_path / f"{name}.npz")
    specs = [SpaceSpec("file", str(tmp_path / f"{name}.npz")) for name in files]
    at = check_page(Workspace((mixed, *specs), mixed, mixed))
    at.toggle(key="check.more").set_value(True).run()
    (chooser,) = (one for one in at.selectbox if one.key.startswith("check.repair-by"))
    assert chooser.options == ["right", "wrong"]
    assert not at.warning
    chooser.set_value(specs[0]).run()
    assert "wrong looks like vectors of another model" in at.warning[0].value
    at.button(key="check.repair").click().run()
    assert len(at.warning) == 2


@pytest.mark.parametrize(
    ("n_confirmed", "missing"), [(0, "10 more confirmed pairs"), (9, "1 more confirmed pair.")]
)
def test_guessed_links_of_which_too_few_are_confirmed_lead_to_link(tmp_path, n_confirmed, missing):
    rows = np.random.default_rng(0).normal(size=(40, 6))
    old, new = (save_space(tmp_path / f"{name}.npz", rows, name) for name in ("old", "new"))
    pairs = [(f"old{row}", f"new{row}") for row in range(40)]
    key = put_pairing(Store(tmp_path / "store"), pairs, [own for own, _ in pairs[:n_confirmed]])
    linked = renamed_spec(new, key, "new · linked")
    session = Session(None, Workspace((old, new, linked), old, linked), ("migrate", "Drift"))
    assert any(missing in one.value for one in session.markdown)
    assert not session.errors
    session.click("drift.confirm").open("connect")
    assert session.session_state["connect.tab"] == "Link"
    assert session.workspace.models[:2] == (old, linked)


def test_versions_without_shared_ids_are_linked_or_show_the_example(tmp_path):
    rows = np.random.default_rng(0).normal(size=(40, 6))
    specs = tuple(save_space(tmp_path / f"{name}.npz", rows, name) for name in ("old", "new"))

    def page():
        return Session(None, Workspace(specs, *specs), ("migrate", "Drift"))

    session = page()
    assert not session.warning
    assert not any("again-" in str(key) for key in session.keys)
    session.click("drift.link").open("connect")
    assert session.find("button_group", "bootstrap.have-")
    session = page().click("drift.example")
    assert session.workspace.models == BUNDLED
    assert "drift.link" not in session.keys
    assert session.can_undo
