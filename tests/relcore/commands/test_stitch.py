"""stitch: the table and matrices of the Stitch page."""

import json
from argparse import Namespace

import pandas as pd
import pytest

from relcore.base.numbers import short
from relcore.catalog.catalog import SpaceSpec, encoding_spec, held_out_ids, load
from relcore.commands import running, stitch
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.small_vision import SmallVision, held_out_rows
from relcore.runs.local_cluster import LocalCluster
from relcore.spaces.space import LatentSpace
from relcore.stitch.figures import cell_table, printed_summary
from relcore.stitch.methods import MethodSettings
from relcore.stitch.stitching import StitchSpec, share_rows, stitch_matrix


@pytest.fixture
def spaces(files):
    return [load(SpaceSpec("file", name)) for name in files]


def test_defaults_are_the_pages(run, files, spaces):
    found = json.loads(run("stitch", *files, "--json"))
    expected = cell_table(stitch_matrix(spaces, StitchSpec(n_anchors=24)))
    assert pd.DataFrame(found["rows"]).round(12).equals(expected.round(12))


def test_options_reach_the_spec_and_the_printed_numbers_are_those_of_the_page(run, files, spaces):
    options = [
        "--methods",
        "irp-ridge,relative",
        "--states",
        3,
        "--anchors",
        15,
        "--strategy",
        "k-means",
        "--order",
        "red,green,blue",
    ]
    options += ["--test-fraction", 0.3, "--no-center", "--omega", 2, "--inverse-ridge", 2, "--metric", "mae"]
    out = run("stitch", *files, *options)
    settings = MethodSettings(False, 0.3, 2, 0.7, 2)
    spec = StitchSpec(
        ("relative", "irp-ridge"),
        "logistic",
        (0, 1, 2),
        15,
        "k-means",
        (),
        0.3,
        (),
        ("red", "green", "blue"),
        settings,
    )
    expected = stitch_matrix(spaces, spec)
    for row in printed_summary(expected).itertuples(index=False):
        line = next(line for line in out.splitlines() if line.strip().startswith(row[0]))
        assert all(cell in line for cell in row)
    mean, deviation = expected.matrix("irp-ridge", "mae")
    assert f"{short(mean[0, 1])} ± {short(deviation[0, 1])}" in out
    assert "15 anchors; mean ± deviation over 3 random states" in out


def test_the_recipe_draws_the_same_numbers_and_a_spec_file_gives_them(run, files, spaces, tmp_path):
    options = ["--anchors", "w1,w2,w3,w4,w5,w6", "--methods", "absolute,relative,procrustes"]
    first = run("stitch", *files, *options, "--csv", "--recipe", "recipe.json")
    run("figure", "recipe.json", "-o", "again.csv")
    assert (tmp_path / "again.csv").read_text() == first
    recipe = json.loads((tmp_path / "recipe.json").read_text())
    (tmp_path / "spec.json").write_text(json.dumps(recipe["stitching"]))
    assert run("stitch", *files, "--spec", "spec.json", "--csv") == first


def test_by_the_engine_it_is_the_same(run, files, one_engine, monkeypatch):
    at_once = run("stitch", *files, "--methods", "relative,affine", "--csv", "--store", "one")
    monkeypatch.setattr(running, "AT_ONCE_SECONDS", 0)
    assert run("stitch", *files, "--methods", "relative,affine", "--csv", "--store", "other") == at_once


@pytest.mark.slow
def test_on_a_cluster_it_is_the_same(run, files):
    options = ("stitch", *files, "--methods", "relative,affine", "--csv", "--store")
    cluster = LocalCluster(n_workers=1, threads=1)
    try:
        assert run(*options, "there", "--scheduler", cluster.address) == run(*options, "here")
    finally:
        cluster.close()


def test_rows_that_networks_held_out_are_tested_on(rng):
    ids = [f"d{row}" for row in range(50)]
    made = [LatentSpace(rng.normal(size=(50, 4)), ids, name=name, labels=["a", "b"] * 25) for name in "xy"]
    dataset = DatasetSpec("digits")
    specs = [
        encoding_spec(dataset, SmallVision(name), "", f"{number}" * 16, name)
        for number, name in enumerate(("mlp", "cnn"))
    ]
    shared = share_rows(made)
    options = Namespace(
        spec=None,
        states=1,
        test_fraction=None,
        methods=("absolute",),
        center=True,
        ridge=1.0,
        omega=1,
        delta=0.7,
        inverse_ridge=1.0,
        head="logistic",
        strategy="random",
        order=(),
        anchors=None,
    )
    found = stitch.spec_of(options, specs, made, shared)
    assert (
        found.test_ids
        == held_out_ids(specs, made, shared.ids)
        == tuple(f"d{row}" for row in held_out_rows(50))
    )
    assert (
        stitch.spec_of(options, [SpaceSpec("file", "x"), SpaceSpec("file", "y")], made, shared).test_ids == ()
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["first.npz"], "expected two encoders or more to stitch, got 1"),
        (["first.npz", "second.npz", "--methods", "magic"], "methods: expected one of absolute"),
        (["first.npz", "second.npz", "--head", "svm"], "head: expected one of logistic"),
        (["first.npz", "second.npz", "--metric", "mae"], "--metric: expected one of accuracy, f1, got 'mae'"),
        (["first.npz", "second.npz", "--order", "red,blue"], "order: expected each of the labels once"),
        (["first.npz", "second.npz", "--states", "0"], "--states: expected a whole number from 1, got 0"),
        (
            ["first.npz", "second.npz", "--test-fraction", "0"],
            "--test-fraction: expected a number above 0, below 1, got 0.0;",
        ),
        (
            ["first.npz", "second.npz", "--test-fraction", "1"],
            "--test-fraction: expected a number above 0, below 1, got 1.0;",
        ),
        (["first.npz", "second.npz", "--anchors", "500"], "n_anchors: expected at most"),
        (["first.npz", "word2vec-novels"], "expected rows that all encoders share"),
        (
            ["first.npz", "second.npz", "--spec", "gone.json"],
            "expected the settings of a stitching as a .json file",
        ),
    ],
)
def test_wrong_options_are_one_line(refuse, files, arguments, message):
    assert message in refuse("stitch", *arguments)
