"""invert: the numbers of the Invert page, and the recovered rows as a file."""

import json

import numpy as np
import pandas as pd
import pytest

from app.workspace import Workspace
from relcore.base import records
from relcore.base.numbers import short
from relcore.catalog.catalog import SpaceSpec, load
from relcore.files.reading import load_space
from relcore.invert.recovery import InversionSpec, invert_pair
from relcore.represent.anchors import select_anchors
from relcore.spaces.space import match


@pytest.fixture
def pair(files):
    return match(*(load(SpaceSpec("file", name)) for name in files))


def test_the_defaults_are_the_pages(run, files, pair):
    found = json.loads(run("invert", *files, "--json"))
    expected = invert_pair(pair, select_anchors(pair.source, len(pair) // 2), Workspace().inversion)
    assert [row["cosine"] for row in found["rows"]] == expected.summary().cosine.tolist()
    assert (found["rank"], found["kept"], found["condition"]) == (
        expected.rank,
        expected.kept,
        expected.condition,
    )


def test_auto_chooses_the_numbers_and_the_recipe_names_them(run, files, pair, tmp_path):
    out = run("invert", *files, "--anchors", 40, "--method", "whitened", "--auto", "--recipe", "recipe.json")
    expected = invert_pair(
        pair, select_anchors(pair.source, 40), InversionSpec(method="whitened", tuned=True)
    )
    assert short(float(expected.scores[expected.spec.title])) in out
    assert expected.spec.settings() in out
    recipe = json.loads((tmp_path / "recipe.json").read_text())
    assert recipe["inversion"] == records.to_json(expected.spec)
    assert "tuned" not in recipe["inversion"]


@pytest.mark.parametrize("method", ["pruned", "ridge", "whitened"])
def test_numbers_and_rows_are_those_of_the_function(run, files, pair, tmp_path, method):
    options = [
        "--method",
        method,
        "--delta",
        0.5,
        "--omega",
        3,
        "--ridge",
        0.2,
        "--route",
        "backward",
        "--pruning-state",
        4,
    ]
    out = run("invert", *files, "--anchors", 40, *options, "-o", "found.npz", "--recipe", "recipe.json")
    expected = invert_pair(
        pair, select_anchors(pair.source, 40), InversionSpec("backward", method, 3, 0.5, 0.2, 4)
    )
    lines = [line for line in out.splitlines() if line.startswith("  ")][1:]
    assert len(lines) == len(expected.scores)
    for line, (way, score) in zip(lines, expected.scores.items(), strict=True):
        assert line.strip().startswith(way)
        assert short(float(score)) in line.split()
    assert "Mean cosine of recovered and true rows: second → first" in out
    assert expected.spec.settings() in out
    written = load_space(tmp_path / "found.npz")
    assert np.array_equal(written.vectors, expected.found)
    assert written.ids.tolist() == pair.ids.tolist()
    run("figure", "recipe.json", "-o", "again.tex")
    run("figure", "recipe.json", "-o", "again.csv")
    assert len(pd.read_csv(tmp_path / "again.csv"))
    assert f"{float(expected.scores[expected.spec.title]):.3f}"[1:] in (tmp_path / "again.tex").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "exact"], "method: expected one of pruned"),
        (["--route", "up"], "route: expected one of forward"),
        (["--omega", "0"], "omega: expected a whole number from 1 to 64, got 0"),
        (["--delta", "2"], "delta: expected a number from 0 to 1, got 2.0"),
        (["--anchors", "w1"], "anchors: expected two or more"),
        (["-o", "found.csv"], "expected a name that ends in one of '.npz'"),
    ],
)
def test_wrong_options_are_one_line(refuse, files, arguments, message):
    assert message in refuse("invert", *files, *arguments)
