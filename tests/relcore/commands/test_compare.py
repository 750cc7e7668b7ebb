import json
from io import StringIO

import numpy as np
import pandas as pd
import pytest

from app import compute
from relcore.base.errors import SpaceError
from relcore.base.numbers import short
from relcore.catalog.catalog import SpaceSpec, load
from relcore.cli import main
from relcore.files.reading import load_space, write_space
from relcore.invert.inversion import InversionSpec, invert_pair
from relcore.represent.similarity import RelativeProjection, select_anchors
from relcore.represent.translation import REPRESENTATIONS, MethodSettings, ProjectionSpec
from relcore.scores.comparison import LIVE_QUERIES, class_labels, score_forms, score_table
from relcore.spaces.space import LatentSpace, match
from relcore.stitch.stitching import StitchSpec, printed_summary, stitch_matrix


@pytest.fixture
def pair(files):
    return match(*(load(SpaceSpec("file", name)) for name in files))


def test_numbers_are_those_that_the_page_computes(run, files, pair):
    found = json.loads(run("compare", *files, "--anchors 20 --json"))
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
    options = "--similarity angular --no-center --ridge 1 -k 4 --convention mutual --strategy k-means"
    found = run("compare", *files, "--anchors 9 --random-state 2 --csv", options)
    anchors = select_anchors(pair.source, 9, "k-means", random_state=2)
    projection = ProjectionSpec("angular", center=False, ridge=1)
    settings = {"k": 4, "convention": "mutual", "n_queries": LIVE_QUERIES, "labels": class_labels(pair)}
    table = score_table(score_forms(pair, REPRESENTATIONS, anchors, projection, **settings))
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


def test_numbers_and_rows_are_those_of_the_function(run, files, tmp_path):
    pair = match(*(load(SpaceSpec("file", name)) for name in files))
    options = "--method pruned --delta .5 --omega 3 --inverse-ridge .2 --route backward --pruning-state 4"
    out = run("invert", *files, "--anchors 40 -o found.npz --recipe recipe.json", options)
    spec = InversionSpec("backward", "pruned", 3, 0.5, 0.2, 4)
    expected = invert_pair(pair, select_anchors(pair.source, 40), spec)
    lines = [line for line in out.splitlines() if line.startswith("  ")][1:]
    assert len(lines) == len(expected.scores)
    for line, (way, score) in zip(lines, expected.scores.items(), strict=True):
        assert line.strip().startswith(way)
        assert short(float(score)) in line.split()
    assert "Mean cosine of recovered and true rows: second → first" in out
    assert expected.spec.settings() in out
    written = load_space(tmp_path / "found.npz")
    assert np.array_equal(written.vectors, expected.recovered)
    assert written.ids.tolist() == pair.ids.tolist()
    run("figure recipe.json -o again.tex")
    assert f"{float(expected.scores[expected.spec.title]):.3f}"[1:] in (tmp_path / "again.tex").read_text()


def test_options_reach_the_spec(run, files):
    options = (
        "--methods irp-ridge,relative --states 3 --anchors 15 --strategy k-means --order red,green,blue"
        " --test-fraction 0.3 --no-center --omega 2 --inverse-ridge 2 --metric mae"
    )
    out = run("stitch", *files, options)
    settings = MethodSettings(False, 0.3, 2, 0.7, 2)
    chosen = {"test_fraction": 0.3, "order": ("red", "green", "blue"), "settings": settings}
    spec = StitchSpec(("relative", "irp-ridge"), "logistic", (0, 1, 2), 15, "k-means", **chosen)
    expected = stitch_matrix([load(SpaceSpec("file", name)) for name in files], spec)
    for row in printed_summary(expected).itertuples(index=False):
        line = next(line for line in out.splitlines() if line.strip().startswith(row[0]))
        assert all(cell in line for cell in row)
    mean, deviation = expected.matrix("irp-ridge", "mae")
    assert f"{short(mean[0, 1])} ± {short(deviation[0, 1])}" in out
    assert "15 anchors; mean ± deviation over 3 random states" in out


def test_a_recipe_and_a_spec_file_give_the_same_numbers(run, files, tmp_path):
    options = "--anchors w1,w2,w3,w4,w5,w6 --methods absolute,relative,procrustes --csv --recipe recipe.json"
    first = run("stitch", *files, options)
    run("figure recipe.json -o again.csv")
    assert (tmp_path / "again.csv").read_text() == first
    recipe = json.loads((tmp_path / "recipe.json").read_text())
    (tmp_path / "spec.json").write_text(json.dumps(recipe["stitching"]))
    assert run("stitch", *files, "--spec spec.json --csv") == first


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".parquet"])
def test_ids_of_any_length_survive_in_little_space(tmp_path, suffix):
    ids = ["a\0", "a", "\ufeffb", "ü" * 20_000, *map(str, range(1000))]
    space = LatentSpace(np.ones((len(ids), 2)), ids, name="odd", labels=[*ids[:5], *[""] * (len(ids) - 5)])
    write_space(space, tmp_path / f"odd{suffix}")
    assert (tmp_path / f"odd{suffix}").stat().st_size < 150_000
    assert load_space(tmp_path / f"odd{suffix}").digest == space.digest


@pytest.mark.parametrize("odd", ["a\n", "a\r"])
def test_line_ends_in_ids_are_refused_where_lines_are_written(tmp_path, odd):
    with pytest.raises(SpaceError, match="without line breaks"):
        write_space(LatentSpace(np.eye(2), [odd, "b"], name="odd"), tmp_path / "odd.safetensors")


def test_the_file_is_the_relative_space(run, files, tmp_path):
    out = run("project first.npz --anchors 7 --strategy farthest-point --random-state 3 -o relative.npz")
    space = load_space("first.npz")
    anchors = select_anchors(space, 7, "farthest-point", random_state=3)
    expected = RelativeProjection().fit(space.vectors, anchors=space.rows(anchors)).transform(space.vectors)
    written = load_space(tmp_path / "relative.npz")
    assert np.array_equal(written.vectors, expected)
    assert (written.ids.tolist(), written.labels.tolist()) == (space.ids.tolist(), space.labels.tolist())
    assert out == "151 rows × 7 anchors, cosine, centred.\nrelative.npz\n"
