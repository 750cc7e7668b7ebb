import json

import numpy as np
import pandas as pd
import pytest

from relcore.catalog.catalog import SpaceSpec, load
from relcore.files.links import known_pairs, write_links
from relcore.linking.link import BootstrapSpec

pytestmark = pytest.mark.usefixtures("own_store")


@pytest.fixture
def pair_of_files(tmp_path):
    """A cloud, and the same rotated in another order, also with ids of its own ("v3" is "w3")."""
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(400, 20)) @ rng.normal(size=(20, 20))
    rotation, _ = np.linalg.qr(rng.normal(size=(20, 20)))
    order = rng.permutation(400)
    ids = np.array([f"w{row}" for row in range(400)])
    np.savez(tmp_path / "one.npz", vectors=vectors, ids=ids)
    for name, letter in (("two", "w"), ("other", "v")):
        named = np.char.replace(ids, "w", letter)[order]
        np.savez(tmp_path / f"{name}.npz", vectors=(vectors @ rotation)[order], ids=named)
    return "one.npz", "two.npz"


def test_what_is_found_is_what_the_function_finds(run, one_queue, pair_of_files, tmp_path):
    command = "link one.npz two.npz --hide --pairs 10 --anchors 60 --random-state 2"
    found = json.loads(run(command, "--json --recipe recipe.json -o pairs.tsv"))
    spaces = [load(SpaceSpec("file", one)) for one in pair_of_files]
    expected = BootstrapSpec("self-learning", 60, 10, random_state=2).run(spaces)
    told = found["verdict"], found["success"], found["reason"], found["share"]
    assert told == ("linked", True, expected.result.reason, expected.share)
    for form, by_metric in expected.scores.items():
        values = {name: score["value"] for name, score in found["scores"][form].items()}
        assert values == pytest.approx({name: float(one) for name, one in by_metric.items()}, abs=1e-6)
    lines = (tmp_path / "pairs.tsv").read_text().splitlines()
    assert lines[0] == "source\ttarget\tkind\tprecision"
    assert [line.split("\t")[2] for line in lines[1:61]] == ["seed"] * 10 + ["anchor"] * 50
    assert len(lines) - 1 == len(found["rows"]) >= found["pairs"]
    links = expected.result.kept[10:]
    right = sum(own == other for own, other in links)
    assert f"{'All' if right == len(links) else f'{right:,} of'} {len(links):,} links" in run(command)
    assert json.loads((tmp_path / "recipe.json").read_text())["figure"] == "bootstrap-scores"


def test_spaces_without_shared_ids_are_linked_and_compared(run, refuse, one_queue, pair_of_files, tmp_path):
    (tmp_path / "seeds.txt").write_text("\n".join(f"w{row} = v{row}" for row in range(12)), encoding="utf-8")
    compare = "compare one.npz other.npz --anchors 50 --json --links"
    assert "or add --links links.parquet" in refuse("compare one.npz other.npz")
    out = run("link one.npz other.npz --pairs seeds.txt --anchors 50 -o links.parquet")
    assert out.startswith("Linked. Of 388 links beside the 12 known pairs, an estimated")
    assert len(known_pairs(tmp_path / "links.parquet")) == 50, "seeds and anchors, to begin another run with"
    links = pd.read_parquet(tmp_path / "links.parquet")
    assert links.columns.tolist() == ["source", "target", "kind", "precision"]
    assert (links.source.str[1:] == links.target.str[1:]).mean() > 0.95
    n = {row["n"] for row in json.loads(run(compare, "links.parquet"))["rows"]}
    assert n == {12}, "the known pairs, none an anchor"
    links.loc[links["kind"] == "seed", "kind"] = "link"
    write_links(tmp_path / "guesses.csv", links)
    assert "expected known pairs to score, got links that are guesses" in refuse(compare, "guesses.csv")
    links.loc[200:259, "kind"] = "confirmed"
    write_links(tmp_path / "checked.csv", links)
    scored = {row["form"]: row["n"] for row in json.loads(run(compare, "checked.csv"))["rows"]}
    assert scored["absolute"] == 60 == scored["relative"]
    links[["source", "target"]].to_csv(tmp_path / "mine.csv", index=False)  # pairs that the user knows
    assert json.loads(run(compare, "mine.csv"))["rows"][0]["n"] == len(links)
