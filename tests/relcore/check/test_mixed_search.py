"""Search a collection of two models: mixed.py outside of Relscope, its scale, and the advice."""

import json

import numpy as np
import pytest

from relcore import LatentSpace, check
from relcore.base.errors import SpaceError
from relcore.base.rows import unit_rows
from relcore.check import mixed
from relcore.check.mixed_search import advice, export_mixed, mixed_scores
from relcore.check.origins import OTHER
from relcore.cli import main
from relcore.files.saving import save_space
from tests.relcore.check.test_row_origins import FIRST, SECOND, N, trusted
from tests.relcore.check.test_row_origins import mixed as mixed_rows
from tests.relcore.migrate.test_adapter_file import alone

SCRIPT = """
sys.path.insert(0, folder + "/out")
import faiss, lancedb
from mixed import ScoredList, ranked, unit

X, ids = given["X"], given["ids"].tolist()
index = faiss.IndexFlatIP(X.shape[1])
index.add(unit(X))
table = [{"id": one, "vector": row} for one, row in zip(ids, X)]
table = lancedb.connect(folder + "/db").create_table("rows", table)
cosines = lambda vector, n: table.search(vector).distance_type("cosine").limit(n).to_list()
searches = {
    "faiss": lambda vector, n: [
        (ids[row], score)
        for score, row in zip(*(one[0] for one in index.search(vector[None], n)))
        if row >= 0
    ],
    "lancedb": lambda vector, n: [(row["id"], 1 - row["_distance"]) for row in cosines(vector, n)],
    "list": ScoredList(ids, X),
}
found = {}
for name, search in searches.items():
    hits = [ranked(*pair, search, n=len(ids)) for pair in zip(given["own"], given["other"])]
    found[name] = np.array([[one for one, _ in some] for some in hits])
    found[name + " scores"] = np.array([[score for _, score in some] for some in hits])
np.savez(f"{folder}/found.npz", **found)
"""


def test_outside_of_relscope_it_finds_what_the_library_finds(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, _ = mixed_rows(0.5)
    ids = [f"row {row}" for row in range(N)]
    save_space(LatentSpace(X, ids), tmp_path / "index.npz")
    right = LatentSpace(trusted(), [f"right {row}" for row in range(200)])
    save_space(right, tmp_path / "right.npz")
    own = FIRST(20, 0, state=5)
    other = SECOND(20, 0, state=5)
    assert main(["check", "index.npz", "--trusted", "right.npz", "--mixed", "out", "--json"]) == 1
    notes = " ".join(json.loads(capsys.readouterr().out)["notes"])
    assert "search by queries of both models only if" in notes
    np.savez(tmp_path / "given.npz", X=X, ids=ids, own=own, other=other)
    found = alone(SCRIPT, tmp_path)
    told = check(LatentSpace(X, ids), trusted=right).told
    scores = mixed_scores(own, other, X, told.model == OTHER)
    best = -np.sort(-scores, axis=1)[:, :10]
    samples = np.load(tmp_path / "out" / "mixed.npz", allow_pickle=False)
    spread = min(np.std(samples[name]) for name in ("own", "other"))  # of cosines: no excess is much smaller
    for name in ("faiss", "lancedb", "list"):
        rows = [[ids.index(one) for one in some] for some in found[name]]
        for values in (found[f"{name} scores"], np.take_along_axis(scores, np.array(rows), axis=1)):
            np.testing.assert_allclose(values, best, atol=4e-6 / spread)  # 1e-6 of a cosine


def test_each_model_finds_its_own_rows():
    """The nearest row of a query is its own copy, in whichever model that row is."""
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(64, 64)))[0].astype(np.float32)
    X = FIRST(400)
    is_other = np.arange(400) < 200
    rows = np.where(is_other[:, None], X @ turn, X)
    asked = np.r_[X[:20], X[200:220]]
    scores = mixed_scores(asked, asked @ turn, rows, is_other)
    assert (scores.argmax(axis=1) == np.r_[np.arange(20), np.arange(200, 220)]).all()
    plain = unit_rows(asked) @ unit_rows(rows).T
    assert np.mean(plain[:20].argmax(axis=1) == np.arange(20)) < 0.5


def test_scale_is_the_mean_excess_over_the_quantile():
    sample = np.arange(11, dtype=np.float32)  # the 90 % quantile is 9; above it is 10
    assert mixed.tail(np.array([9, 10, 8]), sample).tolist() == pytest.approx([0, 1, -1])
    assert np.isfinite(mixed.tail(np.ones(2), np.ones(5))).all()


def test_advice_follows_share_and_pairs():
    assert [advice(share, as_good=True) for share in (0.1, 0.3, 0.5)] == ["one model"] * 2 + ["both models"]
    assert advice(0.5) == "one model"
    assert advice(0.02, 300) == "repair"


def test_parts_that_are_nobodys_are_not_exported(tmp_path):
    for X in (mixed_rows(0.5)[0], FIRST(N)):
        space = LatentSpace(X, [str(row) for row in range(N)])
        with pytest.raises(SpaceError, match="a check that knows the model of each row"):
            export_mixed(space, check(space), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_query_of_another_width_is_refused(tmp_path):
    np.savez(tmp_path / "mixed.npz", ids=np.array(["a"]), own=np.eye(4)[:2], other=np.eye(4)[2:])
    index = mixed.ScoredList(["a", "b"], np.eye(4)[:2])
    assert [one for one, _ in mixed.ranked(np.eye(4)[1], np.eye(4)[0], index, folder=tmp_path)]
    with pytest.raises(ValueError, match="query: expected 4 numbers"):
        mixed.ranked(np.ones(3), np.ones(4), index, folder=tmp_path)
    with pytest.raises(ValueError, match="a direction"):
        mixed.ScoredList(["a"], np.zeros((1, 4)))
