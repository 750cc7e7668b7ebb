"""`relscope explain` prints sentences and a table; `relscope drift --why` adds which rows changed."""

import json

import numpy as np
import pytest

from relcore.catalog.task import recipe_of


@pytest.fixture
def grouped_files(tmp_path, monkeypatch, own_store):
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(400, 8)).astype(np.float32)
    labels = np.array(["red", "green", "blue", "grey"])[rng.integers(4, size=400)]
    ids = np.array([f"r{row}" for row in range(400)])
    moved = rows[:, ::-1].copy()
    moved[labels == "blue"] += 7
    np.savez(tmp_path / "a.npz", vectors=rows, ids=ids, labels=labels)
    np.savez(tmp_path / "b.npz", vectors=moved, ids=ids, labels=labels)
    return "a.npz", "b.npz"


def test_reasons_are_printed_with_their_numbers(run, grouped_files, tmp_path):
    out = run("explain", *grouped_files, "--recipe", "recipe.json", "--quiet")
    assert out.startswith("b puts rows of class blue closer together than a does: of the 10 nearest ")
    assert "of such a row" in out.splitlines()[0]
    assert "have this feature, too." in out
    assert "Too few rows: a feature of 10 %" in out
    record = json.loads(run("explain", *grouped_files, "--json", "--quiet"))
    reason = record["reasons"][0]
    assert reason["b"] > 0.9 > 0.5 > reason["a"]
    recipe = recipe_of(json.loads((tmp_path / "recipe.json").read_text()))
    assert recipe.draw().table()["feature"][0] == "rows of class blue"


def test_own_features_and_other_spaces(run, grouped_files):
    out = run("explain", *grouped_files, "--other", "a.npz", "--feature", "matches:^r1", "--quiet")
    assert "matches:^r1" in out


def test_wrong_feature_is_one_line(refuse, grouped_files):
    assert "expected contains:TEXT" in refuse("explain", *grouped_files, "--feature", "river", "--quiet")


def test_drift_says_which_rows_changed(run, grouped_files):
    out = run("drift", *grouped_files, "--why", "--quiet", code=1)
    assert "of a row's neighbours differ" in out or "No kind of rows changed more than others" in out
