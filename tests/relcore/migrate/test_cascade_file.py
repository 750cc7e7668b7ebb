"""cascade.py alone, on faiss, LanceDB and a list: nDCG and recall are those of the migration; apply.both adds
the scores of both models.
"""

from dataclasses import replace

import numpy as np
import pytest

from relcore.base.rows import unit_rows
from relcore.migrate.evaluate import added_scores, relevance_of
from relcore.migrate.migration import Migration, export_result
from tests.relcore.migrate.planted import migration_spaces
from tests.relcore.migrate.test_adapter_file import alone

SCRIPT = """
import sys
sys.path.insert(0, folder + "/taken")
from cascade import Cache, ListIndex, ranked

old, new, ids = given["old"], given["new"], [str(one) for one in given["ids"]]
where, asked = {one: row for row, one in enumerate(ids)}, []

def embed(some):
    asked.extend(some)
    return new[[where[one] for one in some]]

import faiss, lancedb
unit = old / np.linalg.norm(old, axis=1, keepdims=True)
index = faiss.IndexFlatIP(old.shape[1])
index.add(unit)
table = lancedb.connect(folder + "/db").create_table(
    "rows", [{"id": one, "vector": row} for one, row in zip(ids, unit)]
)
fresh = lancedb.connect(folder + "/db").create_table(
    "new", [{"id": one, "vector": row} for one, row in zip(ids, new)]
)

def stored(some):
    names = ", ".join(f"'{one}'" for one in some)
    rows = fresh.search().where(f"id IN ({names})").limit(len(some)).to_list()
    vectors = {row["id"]: row["vector"] for row in rows}
    return np.array([vectors[one] for one in some])

cosines = lambda vector, n: table.search(vector).distance_type("cosine").limit(n).to_list()
searches = {
    "faiss": lambda vector, n: [ids[row] for row in index.search(vector[None], n)[1][0] if row >= 0],
    "lancedb": lambda vector, n: [row["id"] for row in cosines(vector, n)],
    "list": ListIndex(ids, old),
}
found = {}
for name, search in searches.items():
    cache = Cache(folder + f"/{name}.npy", embed)
    pairs = list(zip(given["old_queries"], given["new_queries"]))
    vectors = stored if name == "lancedb" else cache
    found[name] = np.array([ranked(a, b, search, vectors) for a, b in pairs])
    if name == "faiss":
        cache.save()
        again, before = Cache(folder + "/faiss.npy", embed), len(asked)
        assert [ranked(a, b, search, again) for a, b in pairs] == found[name].tolist()
        found["embedded"] = np.array([before, len(asked) - before])
np.savez(f"{folder}/found.npz", **found)
"""


BOTH = """
sys.path.insert(0, folder + "/taken")
from apply import both, corpus, unit

asked = both(given["old_queries"], given["new_queries"], given["old"])
rows = corpus(given["old"])
if asked.shape[1] > rows.shape[1]:
    rows = np.column_stack([unit(given["old"]), rows])
np.savez(f"{folder}/found.npz", scores=asked @ rows.T)
"""


@pytest.mark.parametrize("adapter", ["inverse", "whitened"])
def test_both_models_are_queried_as_measured(adapter, tmp_path):
    spaces, judgements = migration_spaces(n=300, n_queries=40, old_topics=6)
    old, new, old_queries, new_queries = spaces
    result = replace(Migration(judgements=judgements, adapter=adapter, sizes=()).run(spaces), weight=1.5)
    export_result(result, old, new, tmp_path / "taken")
    arrays = {"old": old.vectors, "old_queries": old_queries.vectors, "new_queries": new_queries.vectors}
    np.savez(tmp_path / "given.npz", **arrays)
    found = alone(BOTH, tmp_path)["scores"]
    fitted = result.fitted(new.vectors[new.rows(old.ids[result.pairs])], old.vectors[result.pairs])
    rows = unit_rows(old.vectors)
    assert fitted.rewrites_corpus == (adapter == "whitened")
    corpora = rows, fitted.corpus(rows) if fitted.rewrites_corpus else rows
    asked = unit_rows(old_queries.vectors), fitted.transform(new_queries.vectors)
    queries, corpus = added_scores(*asked, corpora, result.weight)
    np.testing.assert_allclose(found, queries @ corpus.T, atol=1e-3)


def test_outside_of_relscope_it_finds_what_was_measured(tmp_path):
    spaces, judgements = migration_spaces(n=300, n_queries=40, old_topics=6)
    old, new, old_queries, new_queries = spaces
    settings = {"adapter": "inverse", "candidates": "both", "n_candidates": 20, "sizes": ()}
    result = Migration(judgements=judgements, **settings).run(spaces)
    export_result(result, old, new, tmp_path / "taken")
    arrays = {"old": old.vectors, "new": new.vectors, "ids": old.ids.astype(str)}
    arrays |= {"old_queries": old_queries.vectors, "new_queries": new_queries.vectors}
    np.savez(tmp_path / "given.npz", **arrays)
    found = alone(SCRIPT, tmp_path)
    relevance, _ = relevance_of(judgements, old_queries.ids, old.ids)
    truth = relevance.toarray() > 0
    discount = 1 / np.log2(np.arange(2, 12))
    best = np.array([discount[: min(10, n)].sum() for n in truth.sum(axis=1)])

    def scores(lists):
        hits = np.take_along_axis(truth, lists, axis=1)
        return (hits @ discount / best).mean(), (hits.sum(axis=1) / truth.sum(axis=1)).mean()

    ours = scores(result.found["cascade"])
    assert ours[0] == pytest.approx(result.option("cascade").value, abs=1e-6)
    for name in ("faiss", "lancedb", "list"):
        places = old.index.get_indexer(found[name].ravel().astype(object)).reshape(found[name].shape)
        assert scores(places) == pytest.approx(ours, abs=1e-6), name
    # What was embedded is what the price says, and nothing of it again with the stored cache.
    assert found["embedded"].tolist() == [result.price.need.rows, 0]
