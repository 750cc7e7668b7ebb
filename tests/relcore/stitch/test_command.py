import json

import pytest

from relcore.base.numbers import short
from relcore.catalog.catalog import SpaceSpec, load
from relcore.represent.representations import MethodSettings
from relcore.stitch.stitching import StitchSpec, printed_summary, stitch_matrix

pytestmark = pytest.mark.usefixtures("own_store")


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
