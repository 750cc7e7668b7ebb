import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.usefixtures("own_store")

WRONG = {"w4": "w7", "w7": "w12", "w12": "w4"}


def pairs_file(folder):
    lines = [f"w{row}\t{WRONG.get(f'w{row}', f'w{row}')}\n" for row in range(40)]
    (folder / "pairs.tsv").write_text("".join(lines), encoding="utf-8")


def test_wrong_pairs_are_listed_and_the_others_written(run, files, tmp_path):
    pairs_file(tmp_path)
    text = run("audit", *files, "--pair-list pairs.tsv -o kept.tsv")
    assert text.startswith("3 of 40 pairs are suspect.")
    assert "w4      w7" in text
    assert "without suspects" in text
    pairs = pd.read_csv(tmp_path / "kept.tsv", sep="\t")
    kept = pairs[pairs.kind == "anchor"]
    assert len(kept) == 37
    assert (kept.source == kept.target).all()
    assert set(pairs[pairs.kind == "suspect"].source) == set(WRONG)
    again = run("audit", *files, "--pair-list kept.tsv")
    assert again.startswith("At most 1 of 37 pairs may be wrong")


def test_suspects_of_one_id_are_scored_nowhere(run, refuse, files, tmp_path):
    arrays = dict(np.load(files[1]))
    rows = [list(arrays["ids"]).index(one) for one in WRONG]
    arrays["vectors"][rows] = arrays["vectors"][np.roll(rows, 1)]
    np.savez("wrong.npz", **arrays)
    given = "first.npz wrong.npz --anchors"
    (tmp_path / "anchors.txt").write_text("\n".join(f"w{row}" for row in range(40)))
    run("audit", given, "anchors.txt -o kept.tsv")
    out = run("compare", given, "kept.tsv --recipe kept.json")
    assert "n = 110 held-out rows" in out
    assert "all 147 rows" in out
    assert "3 rows are not scored: suspects of an audit." in out
    assert run("figure kept.json -o again.csv")
    table = pd.read_csv("again.csv")
    assert set(table[table.form == "relative"].n) == {110}
    run("audit", given, "anchors.txt -o kept.parquet")
    assert out == run("compare", given, "kept.parquet")
    assert "over 110 held-out rows" in run("invert", given, "kept.tsv")
    pairs_file(tmp_path)
    run("audit", *files, "--pair-list pairs.tsv -o apart.tsv")
    lines = (tmp_path / "apart.tsv").read_text().replace("suspect", "anchor")
    (tmp_path / "apart.tsv").write_text(lines)
    assert "--anchors: expected pairs of equal ids" in refuse("compare", *files, "--anchors apart.tsv")
