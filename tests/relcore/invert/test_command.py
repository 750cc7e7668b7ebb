import numpy as np
import pytest

from relcore import load_space
from relcore.base.numbers import short
from relcore.catalog.catalog import SpaceSpec, load
from relcore.invert.inversion import InversionSpec, invert_pair
from relcore.represent.strategies import select_anchors
from relcore.spaces.matching import match

pytestmark = pytest.mark.usefixtures("own_store")


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
