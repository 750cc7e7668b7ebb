"""cascade.py and apply.both, without relcore, find what the migration measured."""

from dataclasses import replace

import numpy as np
import pytest

from relcore.base.rows import unit_rows
from relcore.migrate.migration import Migration
from relcore.migrate.result import export_result
from relcore.migrate.trial import added_scores
from relcore.scores.relevance import ndcg, relevance_of
from tests.relcore.migrate.planted import migration_spaces
from tests.relcore.migrate.test_adapter_file import alone

SCRIPT = """
sys.path.insert(0, folder + "/adapter")
import faiss, lancedb
from apply import adapter, both, corpus, unit
from cascade import Cache, ListIndex, ranked

old, new, ids = given["old"], given["new"], given["ids"].tolist()
queries = given["old_queries"], given["new_queries"]
asked, rows, mapped, embedded = both(*queries, old), corpus(old), None, []
if adapter()[0]["corpus"] != ["unit"]:
    rows, mapped = np.column_stack([unit(old), rows]), ListIndex(ids, rows)

def embed(some):
    embedded.extend(some)
    return new[[ids.index(one) for one in some]]

index = faiss.IndexFlatIP(old.shape[1])
index.add(unit(old))
table = [{"id": one, "vector": row} for one, row in zip(ids, old)]
table = lancedb.connect(folder + "/db").create_table("rows", table)
cosines = lambda vector, n: table.search(vector).distance_type("cosine").limit(n).to_list()
searches = {
    "faiss": lambda vector, n: [ids[row] for row in index.search(vector[None], n)[1][0] if row >= 0],
    "lancedb": lambda vector, n: [row["id"] for row in cosines(vector, n)],
    "list": ListIndex(ids, old),
}
found = {"scores": asked @ rows.T}
cache = Cache(folder + "/cache.npy", embed)
for name, search in searches.items():
    found[name] = [ranked(*pair, search, cache, mapped=mapped) for pair in zip(*queries)]
    found.setdefault("n_embedded", len(embedded))
cache.save()
again = Cache(folder + "/cache.npy", embed)
assert found["list"] == [ranked(*pair, search, again, mapped=mapped) for pair in zip(*queries)]
assert len(embedded) == found["n_embedded"]
np.savez(f"{folder}/found.npz", **found)
"""


@pytest.mark.parametrize("adapter", ["inverse", pytest.param("whitened", marks=pytest.mark.slow)])
def test_outside_of_relscope_it_finds_what_was_measured(adapter, tmp_path):
    spaces, judgements = migration_spaces(n=300, n_queries=20, old_topics=6)
    task = Migration(judgements=judgements, adapter=adapter, n_candidates=20, sizes=())
    result = replace(task.run(spaces), weight=1.5)
    export_result(result, *spaces[:2], tmp_path / "adapter")
    old, new, *queries = (one.vectors for one in spaces)
    arrays = {"old": old, "new": new, "old_queries": queries[0], "new_queries": queries[1]}
    np.savez(tmp_path / "given.npz", ids=spaces[0].ids.astype(str), **arrays)
    found = alone(SCRIPT, tmp_path)
    fitted = result.fitted(new[spaces[1].rows(spaces[0].ids[result.pairs])], old[result.pairs])
    rows = unit_rows(old)
    corpora = rows, fitted.corpus(rows) if fitted.rewrites_corpus else rows
    asked, corpus = added_scores(unit_rows(queries[0]), fitted.transform(queries[1]), corpora, result.weight)
    np.testing.assert_allclose(found["scores"], asked @ corpus.T, atol=1e-3)
    relevance, _ = relevance_of(judgements, spaces[2].ids, spaces[0].ids)
    for name in ("faiss", "lancedb", "list"):
        places = spaces[0].index.get_indexer(found[name].ravel().astype(object)).reshape(found[name].shape)
        assert ndcg(places, relevance) == pytest.approx(result.scores["cascade"], abs=1e-6), name
    assert found["n_embedded"] == result.price.need.rows
