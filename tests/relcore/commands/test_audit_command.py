"""audit: suspects of a list of pairs, as a table, JSON and CSV; the pairs that are kept as a file."""

import json

import pandas as pd

WRONG = {"w4": "w7", "w7": "w12", "w12": "w4"}


def pairs_file(folder):
    path = folder / "pairs.tsv"
    path.write_text(
        "".join(f"w{row}\t{WRONG.get(f'w{row}', f'w{row}')}\n" for row in range(40)), encoding="utf-8"
    )
    return path


def test_wrong_pairs_are_listed_and_the_others_written(run, files, tmp_path):
    text = run("audit", *files, "--pair-list", pairs_file(tmp_path), "-o", "kept.tsv")
    assert text.startswith("3 of 40 pairs are suspect.")
    assert "w4      w7" in text
    assert "without suspects" in text
    kept = pd.read_csv(tmp_path / "kept.tsv", sep="\t")
    assert len(kept) == 37
    assert (kept.source == kept.target).all()
    again = run("audit", *files, "--pair-list", "kept.tsv")
    assert again.startswith("None of 37 pairs is suspect.")


def test_json_and_csv_have_every_pair(run, files, tmp_path):
    found = json.loads(run("audit", *files, "--pair-list", pairs_file(tmp_path), "--json"))
    assert set(found["suspects"]) == set(WRONG)
    assert len(found["rows"]) == 40
    assert found["differences"]["mrr"][1] <= found["differences"]["mrr"][0] <= found["differences"]["mrr"][2]
    assert run("audit", *files, "--anchors", 30, "--csv").count("\n") == 31
