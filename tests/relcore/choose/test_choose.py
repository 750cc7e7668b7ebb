"""Which of several models is chosen, from labels, judgements and a sample, and what is refused."""

import json
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

import relcore
from relcore.base.errors import SpaceError
from relcore.catalog.encodings import encode, encoding_key
from relcore.choose.chart import choice_chart
from relcore.choose.result import ModelCost, sentence
from relcore.choose.task import Choose, choose
from relcore.encoders.api import ApiText
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset, with_options
from relcore.runs.store import Store
from relcore.scores.relevance import JudgedQuery
from relcore.spaces.space import LatentSpace

pytestmark = pytest.mark.usefixtures("own_store")
N = 400
CLASSES = np.arange(N) % 20
IDS = [f"row {row}" for row in range(N)]


def model(noise, seed=0, name="model", ids=IDS, labels=True, classes=CLASSES):
    """Rows about one place for each class, and noise."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).normal(size=(20, 24))
    rows = centres[classes] + noise * rng.normal(size=(len(classes), 24))
    return LatentSpace(rows, ids, name=name, labels=classes.astype(str) if labels else None)


def judgements(queries, classes, rows=IDS):
    return tuple(
        JudgedQuery(query, row, 1.0)
        for query, of in zip(queries, classes, strict=True)
        for row, other in zip(rows, CLASSES, strict=True)
        if of == other
    )


def test_the_better_model_is_best_by_labels():
    found = choose([model(3.0, 1, "poor"), model(0.5, 2, "good")])
    assert (found.best, found.relevance, found.depth) == ("good", "labels", 5)
    assert found.report().sentence.startswith("good is best, after ")


def test_three_equal_models_are_undecided_or_at_most_epsilon_behind():
    found = choose([model(1.5, seed, f"m{seed}") for seed in range(3)])
    assert not found.answer.is_ahead
    told = found.report().sentence
    assert told.startswith("Undecided after") or "less than .050 does not count" in told


def test_a_model_that_may_be_behind_says_by_how_much():
    found = choose([model(0.5, 1, "good"), model(3.0, 2, "poor")])
    close = tuple(lead and replace(lead, value=0.031, low=-0.03, high=0.092) for lead in found.answer.leads)
    told = sentence(replace(found, looks=(replace(found.answer, leads=close),)))
    assert told.startswith("good is best, or so little behind poor that it does not count, after ")
    assert told.endswith(".092). If it is behind, then by at most .030; less than .050 does not count.")


def test_unrelated_models_do_not_win():
    """A negative control: labels that no model knows."""
    rng = np.random.default_rng(0)
    labels = rng.permutation(CLASSES).astype(str)
    spaces = [model(0.5, seed, f"m{seed}", labels=False) for seed in range(2)]
    spaces = [LatentSpace(space.vectors, IDS, name=space.name, labels=labels) for space in spaces]
    assert not choose(spaces).answer.is_ahead


def test_judged_queries_decide_and_others_do_not_count():
    queries = [f"query {place}" for place in range(60)]
    classes = np.arange(60) % 20
    sides = [model(noise, 7, f"q{noise}", queries, classes=classes) for noise in (0.2, 3.0)]
    spec = Choose(judgements=judgements(queries[:30], classes[:30]))
    found = choose([model(0.5, 1, "good"), model(3.0, 2, "poor")], queries=sides, spec=spec)
    assert (found.best, found.n_queries, found.n_judged) == ("good", 30, 30)
    assert set(found.queries) == set(queries[:30])


def test_a_person_decides_while_judging_and_gets_no_answer_before_ten_queries():
    spaces = [model(0.5, 1, "good", labels=False), model(3.0, 2, "poor", labels=False)]
    task = Choose(blind=True)
    searches = task.searches(spaces)
    pools = [searches.pool(place) for place in range(30)]
    assert all(len(set(pool)) == len(pool) <= 10 for pool in pools)
    class_of = dict(zip(IDS, CLASSES, strict=True))
    said = []
    answers = []
    for query, pool in zip(searches.queries.tolist(), pools, strict=False):
        said += [JudgedQuery(query, row, float(class_of[row] == class_of[query])) for row in pool]
        answers.append(Choose(blind=True, judgements=tuple(said)).answer(spaces, searches))
    assert all(answer.answer is None for answer in answers[:9])
    assert answers[4].report().sentence.startswith("No answer yet: 5 judged queries")
    assert answers[-1].best == "good"


def test_an_undecided_answer_names_its_look_the_next_one_and_the_measure():
    spaces = [model(1.5, seed, f"m{seed}", labels=False) for seed in range(2)]
    searches = Choose(blind=True).searches(spaces)
    class_of = dict(zip(IDS, CLASSES, strict=True))
    said = [
        JudgedQuery(query, row, float(class_of[row] == class_of[query]))
        for place, query in enumerate(searches.queries[:14].tolist())
        for row in searches.pool(place)
    ]
    found = Choose(blind=True, judgements=tuple(said)).answer(spaces, searches)
    assert 10 < found.n_judged < 15
    told = found.report().sentence
    assert told.startswith(
        f"Undecided at the last look, after 10 of {found.n_judged} queries; the next look is after 15"
    )
    assert "leads: precision@5 by rank +" in told
    assert "stands for nDCG@5" in found.report().tables[0].caption


def test_queries_without_a_relevant_row_are_left_out_and_counted():
    spaces = [model(0.5, 1, "good", labels=False), model(3.0, 2, "poor", labels=False)]
    searches = Choose(blind=True).searches(spaces)
    none = tuple(JudgedQuery(query, searches.pool(0)[0], 0.0) for query in searches.queries[:12].tolist())
    found = Choose(blind=True, judgements=none).answer(spaces, searches)
    assert (found.n_judged, found.n_useless, found.answer) == (0, 12, None)


@pytest.mark.parametrize(("share", "depth", "warned"), [(1.0, 5, False), (0.3, 3, False), (0.1, 1, True)])
def test_depth_follows_the_share_of_the_rows_and_small_samples_warn(share, depth, warned):
    found = choose([model(0.5, 1, "a"), model(3.0, 2, "b")], spec=Choose(n_rows=round(N / share)))
    assert found.depth == depth
    assert any("wrong sign" in note for note in found.report().notes) == warned


def test_a_query_that_is_zero_finds_nothing():
    good = model(0.5, 1, "good")
    blank = LatentSpace(
        np.where(CLASSES[:, None] < 19, 0.0, good.vectors), IDS, labels=good.labels, name="blank"
    )
    found = choose([good, blank])
    assert found.best == "good"


def test_rows_are_paired_by_id_in_any_order():
    good = model(0.5, 1, "good")
    order = np.random.default_rng(0).permutation(N)[:350]
    turned = good.take(order, "turned")
    found = choose([good, turned])
    np.testing.assert_allclose(found.scores[:, 0], found.scores[:, 1])
    assert found.n_rows == 350


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([model(1.0)], "expected 2 to 5 different models, got 1"),
        ([model(1.0, seed) for seed in range(6)], "expected 2 to 5 different models, got 6"),
        ([model(1.0), model(1.0, ids=[f"other {row}" for row in range(N)])], "share, got none"),
        (
            [model(1.0, labels=False), model(1.0, labels=False)],
            r"Add --qrels FILE .* or judge blind in the app",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(given, told):
    with pytest.raises(SpaceError, match=told):
        choose(given)


def test_judgements_of_other_queries_are_refused():
    spec = Choose(judgements=(JudgedQuery("unknown", "row 1", 1.0),))
    with pytest.raises(
        SpaceError, match=r"expected queries such as 'row [0-9]+', got others, such as 'unknown'"
    ):
        choose([model(1.0), model(2.0)], spec=spec)
    with pytest.raises(SpaceError, match="expected 2 spaces, one for each model, got 1"):
        choose([model(1.0), model(2.0)], queries=[model(1.0)])


def test_queries_that_the_models_do_not_share_are_refused():
    asked = [model(1.0, ids=[f"{name} {row}" for row in range(N)]) for name in ("first", "second")]
    with pytest.raises(SpaceError, match="share, got none"):
        choose([model(1.0), model(2.0)], queries=asked)


@pytest.mark.parametrize("empty", ["documents", "queries"])
def test_a_table_without_rows_is_refused(tables, monkeypatch, capsys, empty):
    from relcore.cli import main

    monkeypatch.chdir(tables)
    pd.read_parquet(f"{empty}.parquet").iloc[:0].to_parquet(f"{empty}.parquet")
    call = "choose documents.parquet queries.parquet --encoder tfidf,words --qrels qrels.txt"
    assert main(call.split()) == 2
    assert f"{empty} · text: expected at least one item, got none; " in " ".join(
        capsys.readouterr().err.split()
    )


def test_the_table_and_the_chart_have_the_numbers_of_the_last_look():
    found = choose([model(2.0, 1, "a"), model(1.5, 2, "b"), model(1.8, 3, "c")])
    report = found.report([ModelCost(10.0, 0.5), ModelCost(5000.0, None), ModelCost(None, None)])
    assert report.tables[0].rows["model"].tolist() == ["b", "c", "a"]
    assert report.tables[0].rows["score"].tolist() == sorted(found.answer.scores, reverse=True)
    assert report.tables[0].rows["bytes"].tolist() == [4 * 24 * N] * 3
    assert [row[5:] for row in report.tables[0].shown[1:]] == [["83 min", "–"], ["–", "–"], ["10 s", "$.50"]]
    line = choice_chart(found).lines[0]
    lead = next(lead for lead in found.answer.leads if lead)
    assert (line.y[-1], line.low[-1], line.high[-1]) == pytest.approx(
        (lead.value, lead.low, lead.high), abs=1e-6
    )


TEXTS = [f"{word} {number} of the {word}s" for number in range(20) for word in ("king", "river", "car")]


@pytest.fixture
def tables(tmp_path):
    ids = [f"d{row}" for row in range(len(TEXTS))]
    pd.DataFrame({"id": ids, "text": TEXTS}).to_parquet(tmp_path / "documents.parquet")
    asked = [f"a {word} or the {word} {n}" for n in range(8) for word in ("king", "river", "car")]
    pd.DataFrame({"id": [f"q{row}" for row in range(24)], "text": asked}).to_parquet(
        tmp_path / "queries.parquet"
    )
    lines = [f"q{q} 0 d{d} 1" for q in range(24) for d in range(len(TEXTS)) if q % 3 == d % 3]
    (tmp_path / "qrels.txt").write_text("\n".join(lines))
    return tmp_path


def test_the_command_embeds_a_sample_and_compares_fitted_encoders(tables, run, one_queue):
    record = json.loads(
        run(
            f"choose {tables}/documents.parquet {tables}/queries.parquet --encoder tfidf,words"
            f" --qrels {tables}/qrels.txt --sample .5 --json --recipe {tables}/recipe.json"
        )
    )
    assert (record["n_rows"], record["n_corpus"], record["n_judged"], record["depth"]) == (30, 60, 24, 5)
    assert [one["model"] for one in record["models"]] == ["TF-IDF + SVD 7", "Pooled word vectors"]
    assert all(one["seconds"] is not None for one in record["models"])
    assert json.loads((tables / "recipe.json").read_text())["figure"] == "model-choice"


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            "documents.parquet queries.parquet --encoder tfidf --qrels qrels.txt",
            "2 to 5 different models, got 1",
        ),
        ("documents.parquet queries.parquet --encoder tfidf,words", "Add --qrels FILE"),
        ("documents.parquet --encoder tfidf,words", "Add --qrels FILE"),
        ("documents.parquet a b --encoder tfidf,words", "got more; remove --encoder"),
        ("word2vec-novels", "2 to 5 different models, got 1"),
        ("word2vec-novels word2vec-novels", "got 'word2vec-novels' twice"),
        (
            "word2vec-novels fasttext-novels --queries fasttext-novels",
            "expected 2, one for each model, got 1",
        ),
    ],
)
def test_the_command_refuses(tables, monkeypatch, capsys, call, told):
    from relcore.cli import main

    monkeypatch.chdir(tables)
    assert main(["choose", *call.split()]) != 0
    assert told in " ".join(capsys.readouterr().err.split())


class Counting(ApiText):
    """An encoder whose vectors depend on the item only; it counts what it encodes."""

    encoded: ClassVar = []

    def prepare(self, dataset, report):
        def rows(texts):
            self.encoded.extend(texts)
            return {"": np.array([[len(text), text.count("r") + 1.0] for text in texts], np.float32)}

        return rows


def test_the_whole_run_encodes_only_what_the_sample_lacks(tables):
    store = Store()
    spec = with_options(DatasetSpec("file", f"{tables}/documents.parquet"), id_column="id")
    sample = load_dataset(with_options(spec, sample=0.3))
    larger = load_dataset(with_options(spec, sample=0.5))
    whole = load_dataset(spec)
    assert set(sample.ids) < set(larger.ids) < set(whole.ids)
    encoder = Counting()
    (part,) = encode(sample, encoder, store)
    assert len(Counting.encoded) == len(part) == 18
    (full,) = encode(whole, encoder, store)
    assert sorted(Counting.encoded) == sorted(TEXTS)
    np.testing.assert_array_equal(full.vectors[:, 0], [len(text) for text in TEXTS])
    np.testing.assert_array_equal(full.vectors[full.rows(part.ids)], part.vectors)
    fresh = Store(tables / "fresh")
    (again,) = encode(whole, encoder, fresh)
    assert again.digest == full.digest
    assert store.has(encoding_key(whole.digest, encoder))


def test_fitted_encoders_do_not_reuse_a_sample(tables):
    from relcore.encoders.sentences import TfidfSvd

    spec = with_options(DatasetSpec("file", f"{tables}/documents.parquet"), id_column="id")
    encode(with_options(spec, sample=0.5), TfidfSvd(4), Store())
    (full,) = encode(spec, TfidfSvd(4), Store())
    (fresh,) = encode(spec, TfidfSvd(4), Store(tables / "fresh"))
    assert full.digest == fresh.digest


def test_a_provider_s_price_is_known_beforehand():
    assert ApiText(price=2.0).dollars(1000, 396_000) == pytest.approx(0.2)
    assert ApiText().dollars(1000, 396_000) is None


@pytest.mark.parametrize("share", [0, -1.0, 2.0, "a"])
def test_a_share_that_is_none_is_refused(tables, share):
    spec = DatasetSpec("file", f"{tables}/documents.parquet", options=(("sample", share),))
    with pytest.raises(SpaceError, match="sample: expected a share of the rows"):
        load_dataset(spec)


def test_choose_is_public():
    assert relcore.choose([model(3.0, 1), model(0.5, 2)]).best
