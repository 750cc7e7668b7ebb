"""relscope adapt, and vector indexes where other commands take spaces."""

import numpy as np
import pytest

from relcore.cli import main
from relcore.migrate import adapters as adapter_file
from relcore.migrate.adapters import CardScore, card_of
from relcore.stores.index import open_index, parse_place
from tests.relcore.migrate.planted import Made, pairs


@pytest.fixture
def bridge(tmp_path):
    new, old = pairs()
    adapter = Made(projected=True).fit(new, old)
    scores = [CardScore("nDCG@10", 0.4123, 0.39, 0.43, 225)]
    card = card_of(adapter, new, old, method="made", new_model="MiniLM", scores=scores, commit="a8e5362")
    adapter_file.export(adapter, card, tmp_path / "bridge")
    np.save(tmp_path / "new.npy", new)
    np.save(tmp_path / "old.npy", old)
    return adapter


def test_an_adapter_alone_shows_its_card(bridge, tmp_path, capsys):
    assert main(["adapt", str(tmp_path / "bridge")]) == 0
    sentence, _, _, score = capsys.readouterr().out.splitlines()
    assert sentence.startswith(
        "made (projected True): MiniLM, 12 numbers per row → old model, 9; searched at width 7; fitted on 40"
        " pairs (new "
    )
    assert sentence.endswith("a8e5362.")
    assert score.split() == ["nDCG@10", ".412", ".390", "…", ".430", "225"]


def test_queries_and_corpus_are_mapped_and_again_refused(bridge, tmp_path, capsys):
    goal = f"{tmp_path}/mapped.parquet"
    assert main(["adapt", f"{tmp_path}/bridge", f"{tmp_path}/new.npy", goal]) == 0
    assert capsys.readouterr().out == f"parquet:{goal}: 40 rows × 7, queries mapped by made.\n"
    lance = f"lancedb:{tmp_path}/base#projected"
    assert main(["adapt", f"{tmp_path}/bridge", f"{tmp_path}/old.npy", lance, "--corpus"]) == 0
    capsys.readouterr()
    assert main(["adapt", f"{tmp_path}/bridge", f"{tmp_path}/old.npy", lance, "--corpus"]) == 2
    assert "expected a new place, got one that exists already" in capsys.readouterr().err
    assert main(["adapt", f"{tmp_path}/bridge", f"{tmp_path}/old.npy", lance, "--corpus", "--add"]) == 0
    with open_index(parse_place(lance)) as index:
        assert (index.n, index.width) == (80, 7)
    assert main(["adapt", "none", lance, f"{tmp_path}/copy.npy"]) == 2  # the same rows twice
    assert "ids must be distinct, 40 occur more than once" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none"], "expected a source and a target, got one of them"),
        (["{}/nowhere", "{}/new.npy", "{}/x.npy"], "expected a file"),
        (["{}/bridge", "lancedb:{}/q", "{}/x.npy"], "the name of a collection or table"),
    ],
)
def test_what_cannot_be_done_is_one_line(bridge, tmp_path, arguments, said, capsys):
    assert main(["adapt", *(one.format(tmp_path) for one in arguments)]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
