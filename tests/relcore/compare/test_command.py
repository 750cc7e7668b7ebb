import json
from io import StringIO

import numpy as np
import pandas as pd
import pytest

from app import compute
from app.workspace import ScoreSettings
from relcore.catalog.catalog import SpaceSpec, load
from relcore.cli import main
from relcore.represent.representations import REPRESENTATIONS, ProjectionSpec
from relcore.represent.strategies import select_anchors
from relcore.scores.comparison import class_labels, score_representations
from relcore.scores.score_report import LIVE_QUERIES, score_table
from relcore.spaces.matching import match

pytestmark = pytest.mark.usefixtures("own_store")


@pytest.fixture
def pair(files):
    return match(*(load(SpaceSpec("file", name)) for name in files))


def test_numbers_are_those_that_the_page_computes(run, files, pair):
    found = json.loads(run("compare", *files, "--anchors 20 --json"))
    anchors = tuple(select_anchors(pair.source, 20, "random", random_state=0))
    assert tuple(found["anchors"]) == anchors
    page = score_table(
        {name: compute.live_scores(pair, name, ScoreSettings(anchors)) for name in REPRESENTATIONS}
    )
    assert found["n"] == len(pair) == 150
    for column in ("score", "null_low", "null_high", "chance"):
        # The last digits differ: the page sums the cosines of single rows, and the command sums products of blocks.
        np.testing.assert_allclose([row[column] for row in found["rows"]], page[column], rtol=1e-6)


def test_settings_reach_the_functions(run, files, pair):
    options = "--similarity angular --no-center --ridge 1 -k 4 --convention mutual --strategy k-means"
    found = run("compare", *files, "--anchors 9 --random-state 2 --csv", options)
    anchors = select_anchors(pair.source, 9, "k-means", random_state=2)
    projection = ProjectionSpec("angular", center=False, ridge=1)
    settings = {"k": 4, "convention": "mutual", "n_queries": LIVE_QUERIES, "labels": class_labels(pair)}
    table = score_table(score_representations(pair, REPRESENTATIONS, anchors, projection, **settings))
    read = pd.read_csv(StringIO(found)).fillna({"convention": ""})
    # float32 products of other blocks of rows
    pd.testing.assert_frame_equal(read, table, check_dtype=False, rtol=0, atol=1e-6)


def test_rows_pair_by_their_order(run, refuse, files):
    first, second = (load(SpaceSpec("file", name)) for name in files)
    places = second.index.get_indexer(first.index[:150])
    np.save("ordered.npy", second.vectors[places])
    np.save("bare.npy", first.vectors[:150])
    np.savez("named.npz", vectors=first.vectors[:150], ids=first.ids[:150].astype(str))
    assert "add --pair-by-row" in refuse("compare named.npz ordered.npy")
    by_row = run("compare named.npz ordered.npy --anchors 20 --pair-by-row --csv")
    assert by_row == run("compare bare.npy ordered.npy --anchors 20 --csv")
    told = refuse("compare first.npz ordered.npy --pair-by-row")
    assert "--pair-by-row: expected equally many rows, got 151 and 150" in told


@pytest.mark.parametrize("options", ["", "--queries all"])
def test_a_recipe_keeps_the_metrics(run, files, options):
    chosen = "--anchors 20 --metrics rsa,mrr,knn-recall --recipe r.json --json"
    rows = json.loads(run("compare", *files, chosen, options))["rows"]
    run("figure r.json -o again.csv")
    again = pd.read_csv("again.csv")
    assert again.score.tolist() == pytest.approx([row["score"] for row in rows], abs=1e-12)
    assert len(again) == len(rows) == 3 * len({row["form"] for row in rows})
    run("figure r.json -o again.svg")


@pytest.mark.filterwarnings("always:a.csv. 'price' left out")
def test_numbers_beside_a_numbered_run_are_no_dimensions(capsys, tmp_path):
    vectors = np.random.default_rng(0).normal(size=(60, 5))
    names = [f"v{place}" for place in range(5)]
    frame = pd.DataFrame(vectors, columns=names).assign(price=range(60), id=[f"r{row}" for row in range(60)])
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.drop(columns="price").to_csv(tmp_path / "b.csv", index=False)
    assert main(["compare", "a.csv", "b.csv", "--anchors", "10", "-k", "3"]) == 0
    out, err = capsys.readouterr()
    assert err == "relscope: a.csv: 'price' left out, numbers beside v0 … v4\n"
    assert out.startswith("a (60 × 5) and b (60 × 5)")
