"""compare: the numbers of the Compare page, whatever the format."""

import json
from io import StringIO

import numpy as np
import pandas as pd
import pytest

from app import compute
from app.workspace import Workspace
from relcore.base.numbers import short
from relcore.catalog.catalog import SpaceSpec, load
from relcore.represent.anchors import select_anchors
from relcore.scores.comparison import (
    REPRESENTATIONS,
    ProjectionSpec,
    class_labels,
    held_out,
    represent,
    score_pair,
    score_table,
)
from relcore.spaces.space import match

ROUNDING = 1e-6  # float32 products of other blocks of rows


@pytest.fixture
def pair(files):
    return match(*(load(SpaceSpec("file", name)) for name in files))


def expected(pair, anchors, projection=None, **settings):
    projection = projection or ProjectionSpec()
    settings = {
        "k": 10,
        "convention": "paper",
        "n_queries": compute.LIVE_QUERIES,
        "labels": class_labels(pair),
    } | settings
    return score_table(
        {
            form: score_pair(
                *represent(pair, form, anchors, projection), held_out(pair, anchors, form), **settings
            )
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
        {
            form: compute.live_scores(pair, form, anchors, ProjectionSpec(), 10, "paper")
            for form in REPRESENTATIONS
        }
    )
    assert found["n"] == len(pair) == 150
    for column in ("score", "null_low", "null_high", "chance"):
        # The page sums the cosines of rows, which it keeps, where the command sums products of blocks.
        np.testing.assert_allclose([row[column] for row in found["rows"]], page[column], rtol=1e-6)


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
    table = expected(
        pair, anchors, ProjectionSpec("angular", center=False, ridge=1), k=4, convention="mutual"
    )
    read = pd.read_csv(StringIO(found)).fillna({"convention": ""})
    pd.testing.assert_frame_equal(read, table, check_dtype=False, rtol=0, atol=ROUNDING)


def test_exact_asks_every_row_and_else_a_sample(run, files, monkeypatch):
    monkeypatch.setattr("relcore.commands.compare.LIVE_QUERIES", 30)
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
        (["-k", "0"], "-k: expected a whole number from 1, got 0"),
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
    assert (
        "Note: linear CKA (absolute), linear CKA (procrustes): One long row, '17', decides this score; CKA of"
        in told
    )
    notes = json.loads(run("compare", *names, "--anchors", 20, "--json"))["notes"]
    assert any(note.startswith("One long row, '17', moves the mean of 'long'") for note in notes)
    assert json.loads(run("compare", names[1], names[1], "--anchors", 20, "--json"))["notes"] == []


@pytest.mark.parametrize("search", ["ivf", "hnsw"])
def test_approximate_neighbours_tell_their_recall_beside_the_score(run, files, search):
    settings = ("compare", *files, "--anchors", 5, "--queries", "all", "--neighbours", search)
    rows = json.loads(run(*settings, "--json"))["rows"]
    listed = [row for row in rows if row["k"]]
    assert listed
    for row in listed:
        assert 0.85 <= row["recall_low"] <= row["recall"] <= row["recall_high"] <= 1
        assert row["recall_queries"] == row["n"]  # of so few rows all are searched exactly, too
    out = run(*settings)
    assert "Jaccard (absolute), MRR (absolute), class agreement (absolute): approximate neighbours" in out
    assert "missed neighbours can change it by at most" in out
    lines = [line for line in out.splitlines() if line.strip().startswith("relative") and "MRR" in line]
    recall = next(row["recall"] for row in listed if row["form"] == "relative")
    assert short(recall) in lines[0]
    table = run(*settings, "--csv").splitlines()
    assert table[0].endswith("search,recall,recall_low,recall_high,recall_queries")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--neighbours", "ivf"), "--neighbours ivf: expected --queries all"),
        (
            ("--queries", "all", "--neighbours", "lsh"),
            "--neighbours: expected one of exact, ivf, hnsw, got 'lsh'",
        ),
        (("--queries", "some"), "--queries: expected a number above 0, or all, got 'some'"),
        (("--queries", "0"), "--queries: expected a number above 0, or all, got '0'"),
        (
            ("--queries", "all", "--neighbours", "ivf", "--recall", "2"),
            "--recall: expected a number above 0, at most 1, got 2.0",
        ),
    ],
)
def test_wrong_queries_and_searches_are_refused(refuse, files, options, message):
    assert message in refuse("compare", *files, "--anchors", 5, *options)


def test_the_recipe_of_approximate_neighbours_searches_approximately(run, files, tmp_path):
    run(
        "compare",
        *files,
        "--anchors",
        5,
        "--queries",
        "all",
        "--neighbours",
        "ivf",
        "--recipe",
        "recipe.json",
    )
    run("figure", "recipe.json", "-o", "again.csv")
    assert "recall" in pd.read_csv(tmp_path / "again.csv").columns


def test_rows_in_one_file_only_are_told_and_how_to_leave_out_others(run, refuse, tmp_path):
    rng = np.random.default_rng(0)
    longer, shorter, broken = (str(tmp_path / name) for name in ("longer.npy", "shorter.npy", "broken.npy"))
    np.save(longer, rng.normal(size=(60, 6)))
    np.save(shorter, rng.normal(size=(50, 6)))
    np.save(broken, np.full((50, 6), np.nan))
    head = run("compare", longer, shorter, "--anchors", 20).splitlines()[0]
    assert head == "longer and shorter, 20 anchors; 50 rows in both, left out: 10 and 0 in one only"
    assert "left out" not in run("compare", shorter, shorter, "--anchors", 20)
    assert "FILE#invalid=drop" in refuse("compare", broken, shorter, "--anchors", 20)
