"""bootstrap: what the page finds, from its seeds, and the pairs as a file."""

import json

import numpy as np
import pytest

from relcore.base.errors import SpaceError
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
    assert lines[0] == "source\ttarget\tfound"
    assert [line.split("\t")[2] for line in lines[1:61]] == ["seed"] * 10 + ["anchor"] * 50
    assert len(lines) - 1 == len(found["rows"]) >= found["pairs"]
    told = run(*arguments)
    assert f"{100 * expected.share:.1f} % of the 50 hidden anchors found." in told
    assert json.loads((tmp_path / "recipe.json").read_text())["figure"] == "bootstrap-scores"


def test_for_real_from_the_pairs_of_a_file(run, one_engine, pair_of_files, tmp_path):
    (tmp_path / "seeds.txt").write_text("\n".join(f"w{row} = v{row}" for row in range(12)), encoding="utf-8")
    out = run("bootstrap", "one.npz", "other.npz", "--seeds", "seeds.txt", "--anchors", 50, "-o", "pairs.tsv")
    assert out.startswith("50 anchors found, 4")
    found = [line.split("\t") for line in (tmp_path / "pairs.tsv").read_text().splitlines()[1:]]
    right = [first[1:] == second[1:] for first, second, _ in found]
    assert np.mean(right) > 0.95
    assert len(read_seeds(tmp_path / "pairs.tsv")) == 50, "seeds and anchors, to begin another one with"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seeds", "gone.tsv"], "--seeds: expected a number, a file of pairs or none, got 'gone.tsv'"),
        (
            ["--seeds", "15", "--real"],
            "--seeds: expected a file of pairs or none with --real, got 15 random pairs",
        ),
        (["--seeds", "none", "--method", "paper"], "--seeds: expected seeds for the published method"),
        (["--method", "guess"], "method: expected one of self-learning, paper, got 'guess'"),
        (
            ["--method", "paper", "--learning-rate", "2"],
            "learning-rate: expected a number above 0, at most 1, got 2.0",
        ),
        (["--rows", "3"], "rows: expected a whole number from 10, got 3"),
        (["-o", "pairs.csv"], "expected a name that ends in one of '.tsv', got '.csv'"),
    ],
)
def test_wrong_options_are_one_line(refuse, pair_of_files, arguments, message):
    assert message in refuse("bootstrap", *pair_of_files, *arguments)


def test_seeds_that_contradict_each_other_are_told(refuse, one_engine, pair_of_files, tmp_path):
    (tmp_path / "seeds.tsv").write_text("w1\tw1\nw1\tw2\nw3\tw3\nw4\tw4\n")
    assert "expected one partner an id, got 'w1' with 'w1', 'w2'" in refuse(
        "bootstrap", *pair_of_files, "--seeds", "seeds.tsv"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\n", "seeds.txt, line 1: expected “id of the source = id of the target”, got 'a'"),
        ("\n", "expected at least one pair, got none"),
    ],
)
def test_a_file_of_pairs_that_is_none(tmp_path, text, message):
    (tmp_path / "seeds.txt").write_text(text)
    with pytest.raises(SpaceError, match=message):
        read_seeds(tmp_path / "seeds.txt")
