"""compare: the numbers of the Compare page, whatever the format."""

import json

import numpy as np
import pandas as pd
import pytest

from app import compute
from app.workspace import Workspace
from relcore import comparison
from relcore.anchors.selection import select_anchors
from relcore.comparison import REPRESENTATIONS, ProjectionSpec, class_labels, held_out, represent, score_pair, score_table
from relcore.numbers import short
from relcore.sources.catalog import SpaceSpec, load
from relcore.spaces import match


@pytest.fixture
def pair(files):
    return match(*(load(SpaceSpec("file", name)) for name in files))


def expected(pair, anchors, projection=None, **settings):
    projection = projection or ProjectionSpec()
    settings = {"k": 10, "convention": "paper", "n_queries": compute.LIVE_QUERIES, "labels": class_labels(pair)} | settings
    return score_table(
        {
            form: score_pair(*represent(pair, form, anchors, projection), held_out(pair, anchors, form), **settings)
            for form in REPRESENTATIONS
        }
    )


def test_defaults_are_the_pages():
    page = Workspace()
    assert (page.k, page.convention, page.projection) == (10, "paper", ProjectionSpec())


def test_numbers_are_those_that_the_page_computes(run, files, pair):
    found = json.loads(run("compare", *files, "--anchors", 20, "--json"))
    anchors = tuple(select_anchors(pair.source, 20, "random", random_state=0))
    assert tuple(found["anchors"]) == anchors
    page = score_table(
        {form: compute.live_scores(pair, form, anchors, ProjectionSpec(), 10, "paper") for form in REPRESENTATIONS}
    )
    assert found["n"] == len(pair) == 150
    for column in ("score", "null_low", "null_high", "chance"):
        assert [row[column] for row in found["rows"]] == page[column].tolist()


def test_the_table_shows_the_digits_of_the_page(run, files, pair):
    out = run("compare", *files, "--anchors", 20)
    table = expected(pair, select_anchors(pair.source, 20))
    lines = [line.split() for line in out.splitlines() if line.startswith("  ")][1:]
    assert len(lines) == len(table) == 20
    for line, row in zip(lines, table.itertuples(), strict=True):
        assert line[0] == row.form
        assert short(row.score) in line
        assert short(row.chance) in line
    rows = "n = 130 held-out rows, no anchor among them (absolute: all 150 rows)"
    assert f"{rows}; Jaccard, MRR and class agreement: k = 10, paper convention; chance" in out


def test_settings_reach_the_functions(run, files, pair):
    options = [
        "--similarity",
        "angular",
        "--no-center",
        "--ridge",
        1,
        "-k",
        4,
        "--convention",
        "mutual",
        "--strategy",
        "k-means",
    ]
    found = run("compare", *files, "--anchors", 9, "--random-state", 2, *options, "--csv")
    anchors = select_anchors(pair.source, 9, "k-means", random_state=2)
    table = expected(pair, anchors, ProjectionSpec("angular", center=False, ridge=1), k=4, convention="mutual")
    assert found == table.to_csv(index=False, lineterminator="\n")


def test_exact_asks_every_row_and_else_a_sample(run, files, monkeypatch):
    monkeypatch.setattr(comparison, "LIVE_QUERIES", 30)
    for exact, queries in (((), 30), (("--exact",), 145)):
        table = json.loads(run("compare", *files, "--anchors", 5, "--json", *exact))["rows"]
        assert {row["queries"] for row in table if row["k"] and row["form"] != "absolute"} == {queries}
    assert "30 of them as queries (± is the 95 % sampling interval)" in run("compare", *files, "--anchors", 5)


def test_the_recipe_draws_the_same_numbers(run, files, tmp_path):
    found = run("compare", *files, "--anchors", "w3,w30,w77", "--recipe", "recipe.json", "--json")
    run("figure", "recipe.json", "-o", "again.csv")
    again = pd.read_csv(tmp_path / "again.csv")
    by_name = {(row["form"], row["metric"]): row["score"] for row in json.loads(found)["rows"]}
    assert len(again) == len(by_name)
    for row in again.to_dict("records"):
        form = next(value for value in row.values() if value in REPRESENTATIONS)
        metric = next(value for value in row.values() if (form, value) in by_name)
        assert row["score"] == pytest.approx(by_name[form, metric], abs=1e-12)


def test_without_anchors_only_the_absolute_spaces(run, files):
    rows = json.loads(run("compare", *files, "--anchors", 0, "--json"))["rows"]
    assert {row["form"] for row in rows} == {"absolute"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--anchors", "w1,nobody"], "expected ids of 'first', got 1 unknown: 'nobody'"),
        (["--anchors", "gone.txt"], "got 'gone.txt', a file that does not exist"),
        (["--anchors", "151"], "n_anchors: expected at most 150"),
        (["--anchors", ","], "--anchors: expected at least one id"),
        (["--strategy", "best"], "strategy: expected one of random"),
        (["--similarity", "dot"], "similarity: expected one of cosine"),
        (["--convention", "ours"], "--convention: expected one of paper, mutual, got 'ours'"),
        (["-k", "0"], "-k: expected 1 neighbour or more, got 0"),
        (["--anchors", "0", "--recipe", "r.json"], "--recipe: expected anchors"),
    ],
)
def test_wrong_options_are_one_line(refuse, files, arguments, message):
    assert message in refuse("compare", *files, *arguments)


def test_what_decides_a_score_is_noted_below_it(run, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    np.save(tmp_path / "plain.npy", X)
    X[17] *= 1e4
    np.save(tmp_path / "long.npy", X)
    names = [str(tmp_path / name) for name in ("long.npy", "plain.npy")]
    told = run("compare", *names, "--anchors", 20)
    assert "Note: linear CKA (absolute), linear CKA (procrustes): One long row, '17', decides this score; CKA of" in told
    notes = json.loads(run("compare", *names, "--anchors", 20, "--json"))["notes"]
    assert any(note.startswith("One long row, '17', moves the mean of 'long'") for note in notes)
    assert json.loads(run("compare", names[1], names[1], "--anchors", 20, "--json"))["notes"] == []
