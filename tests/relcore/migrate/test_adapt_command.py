import numpy as np
import pytest

from relcore.migrate import adapter_files
from relcore.migrate.adapt import adapter_digest
from relcore.migrate.adapter_files import CardScore, card_of
from relcore.stores.index import open_index, parse_place
from tests.relcore.migrate.planted import Made, pairs

pytestmark = pytest.mark.usefixtures("own_store")


@pytest.fixture
def bridge(tmp_path):
    new, old = pairs()
    adapter = Made(projected=True).fit(new, old)
    scores = [CardScore("nDCG@10", 0.4123, 0.39, 0.43, 225)]
    card = card_of(adapter, new, old, method="made", new_model="MiniLM", scores=scores, commit="a8e5362")
    adapter_files.export(adapter, card, tmp_path / "bridge")
    np.save(tmp_path / "new.npy", new)
    np.save(tmp_path / "old.npy", old)
    return adapter


def test_an_adapter_alone_shows_its_card(bridge, run):
    sentence, _, _, score = run("adapt bridge").splitlines()
    assert "MiniLM, 12 numbers per row → old model, 9; searched at width 7; fitted on 40 pairs" in sentence
    assert sentence.endswith("a8e5362.")
    assert sentence.startswith(f"The adapter {adapter_digest(bridge)[:8]}, made (projected True): ")
    assert score.split() == ["nDCG@10", ".412", ".390", "…", ".430", "225"]


def test_queries_and_corpus_are_mapped_and_again_refused(bridge, run, refuse):
    goal = "parquet:mapped.parquet: 40 rows × 7, queries mapped by made.\n"
    assert run("adapt bridge new.npy mapped.parquet") == goal
    corpus = "adapt bridge old.npy lancedb:base#projected --corpus"
    run(corpus)
    assert "expected a new place, got one that exists already" in refuse(corpus)
    assert run(corpus, "--add").endswith("added or put in the place of rows with the same ids.\n")
    with open_index(parse_place("lancedb:base#projected")) as index:
        assert (index.n, index.width) == (40, 7)
    run("adapt none lancedb:base#projected copy.npy")
    assert "got rows that no known adapter mapped" in refuse(
        "adapt none copy.npy lancedb:base#projected --add"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("none", "expected a source and a target, got one of them"),
        ("nowhere new.npy x.npy", "expected a file"),
        ("bridge lancedb:q x.npy", "the name of a collection or table"),
    ],
)
def test_what_cannot_be_done_is_one_line(bridge, arguments, said, refuse):
    assert said in refuse("adapt", arguments)
