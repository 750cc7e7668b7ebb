"""bootstrap: what the page finds, from its seeds, and the pairs as a file."""

import json

import numpy as np
import pytest

from relcore.bootstrap.spec import BootstrapSpec
from relcore.catalog.catalog import SpaceSpec, load
from relcore.commands.bootstrap import read_seeds


@pytest.fixture
def pair_of_files(tmp_path):
    """A cloud with structure, and the same one rotated, in another order and with ids of its own ("v3" is
    "w3").
    """
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(400, 20)) @ rng.normal(size=(20, 20))
    rotation, _ = np.linalg.qr(rng.normal(size=(20, 20)))
    order, ids = rng.permutation(400), np.array([f"w{row}" for row in range(400)])
    np.savez(tmp_path / "one.npz", vectors=vectors, ids=ids)
    np.savez(tmp_path / "two.npz", vectors=(vectors @ rotation)[order], ids=ids[order])
    np.savez(
        tmp_path / "other.npz", vectors=(vectors @ rotation)[order], ids=np.char.replace(ids, "w", "v")[order]
    )
    return "one.npz", "two.npz"


def test_what_is_found_is_what_the_function_finds(run, one_engine, pair_of_files, tmp_path):
    arguments = ["bootstrap", *pair_of_files, "--seeds", 10, "--anchors", 60, "--random-state", 2]
    found = json.loads(run(*arguments, "--json", "--recipe", "recipe.json", "-o", "pairs.tsv"))
    spaces = [load(SpaceSpec("file", one)) for one in pair_of_files]
    expected = BootstrapSpec("self-learning", 60, 10, random_state=2).run(spaces)
    assert found["verdict"] == "fits"
    assert (found["success"], found["reason"], found["share"]) == (
        True,
        expected.result.reason,
        expected.share,
    )
    for form, by_metric in expected.scores.items():
        assert {name: score["value"] for name, score in found["scores"][form].items()} == pytest.approx(
            {name: float(score) for name, score in by_metric.items()}, abs=1e-6
        )
    lines = (tmp_path / "pairs.tsv").read_text().splitlines()
    assert lines[0] == "source\ttarget\tfound\tprecision"
    assert [line.split("\t")[2] for line in lines[1:61]] == ["seed"] * 10 + ["anchor"] * 50
    assert len(lines) - 1 == len(found["rows"]) >= found["pairs"]
    told = run(*arguments)
    assert f"{100 * expected.share:.1f} % of the 50 hidden anchors found." in told
    assert json.loads((tmp_path / "recipe.json").read_text())["figure"] == "bootstrap-scores"


def test_for_real_from_the_pairs_of_a_file(run, one_engine, pair_of_files, tmp_path):
    (tmp_path / "seeds.txt").write_text("\n".join(f"w{row} = v{row}" for row in range(12)), encoding="utf-8")
    out = run("bootstrap", "one.npz", "other.npz", "--seeds", "seeds.txt", "--anchors", 50, "-o", "pairs.tsv")
    assert out.startswith("50 anchors. 388 of 388 links kept, an estimated")
    found = [line.split("\t") for line in (tmp_path / "pairs.tsv").read_text().splitlines()[1:]]
    right = [first[1:] == second[1:] for first, second, *_ in found]
    assert np.mean(right) > 0.95
    with (tmp_path / "pairs.tsv").open("a", encoding="utf-8") as file:
        file.write("\nhalf a line\n")  # of a file that was cut off
    assert len(read_seeds(tmp_path / "pairs.tsv")) == 50, "seeds and anchors, to begin another one with"
