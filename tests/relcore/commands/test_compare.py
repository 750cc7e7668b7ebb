"""compare: the numbers of the Compare page, whatever the format."""

import json
from io import StringIO

import numpy as np
import pandas as pd
import pytest

from app import compute
from relcore.catalog.catalog import SpaceSpec, load
from relcore.cli import main
from relcore.represent.similarity import select_anchors
from relcore.represent.translation import REPRESENTATIONS, ProjectionSpec, represent
from relcore.scores.comparison import class_labels, held_out, score_pair, score_table
from relcore.spaces.matching import match

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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--anchors", "w1,nobody"], "expected ids of 'first', got 1 unknown: 'nobody'"),
        (["--anchors", "151"], "n_anchors: expected at most 150"),
        (["--strategy", "best"], "strategy: expected one of random"),
        (["-k", "0"], "-k: expected a whole number from 1, got 0"),
    ],
)
def test_wrong_options_are_one_line(refuse, files, arguments, message):
    assert message in refuse("compare", *files, *arguments)


def test_rows_pair_by_their_order(run, refuse, files):
    first, second = (load(SpaceSpec("file", name)) for name in files)
    places = second.index.get_indexer(first.index[:150])
    np.save("ordered.npy", second.vectors[places])
    np.save("bare.npy", first.vectors[:150])
    np.savez("named.npz", vectors=first.vectors[:150], ids=first.ids[:150].astype(str))
    assert "if row i of both is the same item, add --pair-by-row" in refuse(
        "compare", "named.npz", "ordered.npy"
    )
    by_row = run("compare", "named.npz", "ordered.npy", "--anchors", 20, "--pair-by-row", "--csv")
    assert by_row == run("compare", "bare.npy", "ordered.npy", "--anchors", 20, "--csv")
    told = refuse("compare", files[0], "ordered.npy", "--pair-by-row")
    assert "--pair-by-row: expected equally many rows, got 151 and 150" in told


def test_other_metrics_are_chosen_by_name(run, files, capsys):
    usual = json.loads(run("compare", *files, "--anchors", 20, "--json"))["rows"]
    every = json.loads(run("compare", *files, "--anchors", 20, "--metrics", "all", "--json"))["rows"]
    assert {(row["form"], row["metric"]) for row in every} > {(row["form"], row["metric"]) for row in usual}
    for options in ((), ("--queries", "all")):
        few = json.loads(
            run("compare", *files, "--anchors", 0, "--metrics", "RSA,kernel-cka", *options, "--json")
        )
        assert [row["metric"] for row in few["rows"]] == ["RSA", "RBF CKA"]
    assert "1,000 of the rows" not in run("compare", *files, "--metrics", "rsa")
    assert main(["compare", *files, "--metrics", "rsa,nope"]) == 2
    assert "expected one of all, jaccard" in capsys.readouterr().err


@pytest.mark.parametrize("options", [(), ("--queries", "all")])
def test_a_recipe_keeps_the_metrics(run, files, options):
    chosen = "--anchors", 20, "--metrics", "rsa,mrr,knn-recall", *options
    rows = json.loads(run("compare", *files, *chosen, "--recipe", "r.json", "--json"))["rows"]
    run("figure", "r.json", "-o", "again.csv")
    again = pd.read_csv("again.csv")
    assert again.score.tolist() == pytest.approx([row["score"] for row in rows], abs=1e-12)
    assert len(again) == len(rows) == 3 * len({row["form"] for row in rows})
    run("figure", "r.json", "-o", "again.svg")


def test_numbers_beside_a_numbered_run_are_no_dimensions_and_both_sizes_come_first(capsys, tmp_path):
    vectors, names = np.random.default_rng(0).normal(size=(60, 5)), [f"v{place}" for place in range(5)]
    frame = pd.DataFrame(vectors, columns=names).assign(price=range(60), id=[f"r{row}" for row in range(60)])
    for name, table in (("a", frame), ("b", frame.drop(columns="price"))):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    places = [str(tmp_path / f"{name}.csv") for name in "ab"]
    for options in ([], ["--json"]):
        assert main(["compare", *places, "--anchors", "10", "-k", "3", *options]) == 0
        out, err = capsys.readouterr()
        assert err == "relscope: a.csv: 'price' left out, numbers beside v0 … v4\n"
        assert json.loads(out)["d"] == [5, 5] if options else out.startswith("a (60 × 5) and b (60 × 5)")
