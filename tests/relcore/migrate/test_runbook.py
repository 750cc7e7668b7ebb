"""The runbook of a migration and its shadow queries, on embedded stores."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import faiss
import numpy as np
import pytest

from relcore.cli import main
from relcore.files.saving import write_space
from relcore.migrate.estimators import ProcrustesAdapter, WhitenedRelativeAdapter
from relcore.migrate.runbook import shadow
from relcore.spaces.space import LatentSpace
from relcore.stores.index import StorePlace, Target, write_index
from tests.relcore.migrate.planted import migration_spaces
from tests.relcore.stores.stores import StoredRows, in_blocks

K = 10


def stored(kind, folder, rows, ids):
    where = folder / (f"{kind}.faiss" if kind == "faiss" else kind)
    place = StorePlace(kind, str(where), "" if kind == "faiss" else "rows")
    write_index(place, in_blocks(StoredRows([*ids], rows), 200), Target(*rows.shape))
    return place


@pytest.mark.parametrize("kind", ["faiss", "lancedb"])
def test_an_exact_store_has_a_recall_of_1_and_the_overlaps_of_numpy(kind, tmp_path):
    (old, new, old_queries, new_queries), _ = migration_spaces(n=400, n_queries=60)
    adapter = WhitenedRelativeAdapter().fit(new.vectors[:300], old.vectors[:300])
    mapped = adapter.corpus(old.vectors)
    place = stored(kind, tmp_path, mapped, old.ids)
    found = shadow(adapter, place, (old, new, old_queries, new_queries), old_queries.ids, k=K)
    assert (found.recall.value, found.n, found.n_queries, found.chance) == (1, 400, 60, K / 400)
    unit = lambda X: X / np.linalg.norm(X, axis=1, keepdims=True)  # noqa: E731
    top = lambda Q, X: np.argsort(-(Q @ X.T), axis=1)[:, :K]  # noqa: E731
    ours = top(adapter.transform(new_queries.vectors), mapped)
    for other, overlap in ((old, found.overlap_old), (new, found.overlap_new)):
        asked = old_queries if other is old else new_queries
        theirs = top(unit(asked.vectors), unit(other.vectors))
        shares = [len({*a} & {*b}) / K for a, b in zip(ours, theirs, strict=True)]
        assert overlap.value == pytest.approx(np.mean(shares), abs=1e-6)
        assert overlap.low > found.chance


def test_a_coarse_index_has_the_recall_that_faiss_itself_has(tmp_path):
    (old, new, old_queries, new_queries), _ = migration_spaces(n=400, n_queries=60)
    adapter = WhitenedRelativeAdapter().fit(new.vectors[:300], old.vectors[:300])
    mapped, asked = adapter.corpus(old.vectors), adapter.transform(new_queries.vectors)
    index = faiss.index_factory(mapped.shape[1], "IVF16,Flat", faiss.METRIC_INNER_PRODUCT)
    index.train(mapped)
    index.add(mapped)
    faiss.write_index(index, str(tmp_path / "rows.faiss"))
    (tmp_path / "rows.ids.txt").write_text("\n".join(old.ids) + "\n")
    place = StorePlace("faiss", str(tmp_path / "rows.faiss"))
    found = shadow(adapter, place, (old, new, old_queries, new_queries), old_queries.ids, k=K)
    exact = np.argsort(-(asked @ mapped.T), axis=1)[:, :K]
    shares = [len({*a} & {*b}) / K for a, b in zip(exact, index.search(asked, K)[1], strict=True)]
    assert found.recall.value == pytest.approx(np.mean(shares))
    assert found.recall.value < 0.95  # the control: the index is coarse


def test_unrelated_models_overlap_by_chance(tmp_path):
    """Neither model sees what the other does, so k/n is common: a standard error of √(k/n/k/q) = .0032."""
    rng = np.random.default_rng(0)
    ids = [f"d{row}" for row in range(1000)]
    old, new = (LatentSpace(rng.normal(size=(1000, 16)).astype(np.float32), ids) for _ in "ab")
    adapter = ProcrustesAdapter().fit(new.vectors[:400], old.vectors[:400])
    unit = old.vectors / np.linalg.norm(old.vectors, axis=1, keepdims=True)
    place = stored("faiss", tmp_path, unit, ids)
    found = shadow(adapter, place, (old, new), ids[400:], k=K)
    assert found.overlap_new.value == pytest.approx(found.chance, abs=4 * 0.0032)
    assert found.overlap_old.value < 4 * found.chance


@pytest.mark.parametrize(
    ("form", "adapter"),
    [("lancedb", "ridge"), ("lancedb", "whitened"), ("npz", "whitened"), ("npy", "whitened")],
)
def test_every_command_of_a_runbook_runs(form, adapter, tmp_path, monkeypatch, capsys):
    """From a store or a file, with an adapter that searches the old rows as they are, and with others."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    (old, new, old_queries, _), _ = migration_spaces(n=600)
    place = "lancedb:lancedb#rows" if form == "lancedb" else f"old.{form}"
    ids = old.ids.astype(str)
    if form == "lancedb":
        stored(form, tmp_path, old.vectors.astype(np.float32), ids)
    elif form == "npz":
        np.savez(place, vectors=old.vectors, ids=ids)
    else:
        np.save(place, old.vectors)
    np.save("new.npy", new.vectors)
    np.savez("new.npz", vectors=new.vectors, ids=ids)
    other = "new.npy" if form == "npy" else "new.npz"
    call = [
        "migrate",
        place,
        other,
        "--no-curve",
        "--pairs",
        "300",
        "--adapter",
        adapter,
        "--plan",
        "runbook.md",
    ]
    assert main([*call, "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    titles = ["Prepare", "Dual write", "Shadow queries", "Switch", "Rollback"]
    assert [step["title"] for step in plan] == titles
    page = Path("runbook.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \d\. (.+)$", page, re.MULTILINE) == titles
    assert "--pairs 300" in plan[2]["commands"][0]
    # What the reader of the runbook has: new documents by the old model, and queries by the new one.
    # The documents are not copies of rows: of two equal rows at the end of a list either is a right answer.
    more = LatentSpace(old_queries.vectors[:9].astype(np.float32), [f"more {row}" for row in range(9)])
    write_space(more, Path("new-documents.parquet"))
    np.save("new-queries.npy", new.vectors[:9])
    for command in (command for step in plan for command in step["commands"]):
        assert command in page
        if command.startswith("relscope "):
            assert main(shlex.split(command, comments=True)[1:]) == 0, (command, capsys.readouterr().err)
        else:
            run = command.replace("python -c", f"{shlex.quote(sys.executable)} -c")
            subprocess.run(run, shell=True, check=True)
    assert np.load("mapped-queries.npy").shape[0] == 9
    assert "Shadow queries: 200 on 60" in capsys.readouterr().out
    page = Path("runbook.md").read_text(encoding="utf-8")
    assert re.search(r"\| recall of the store's index after mapping, k = 10 \| 1\.000 \|", page)
    assert ("latency of old queries, p50 and p95" in page) == (form == "lancedb")
    np.save("other.npy", np.random.default_rng(0).normal(size=(9, 3)))
    assert main([*call, "--shadow", "other.npy"]) == 2
    assert "expected the old rows as the adapter maps them" in capsys.readouterr().err


def test_a_runbook_does_not_export_twice(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    (old, new, *_), _ = migration_spaces(n=600)
    np.save("old.npy", old.vectors)
    np.save("new.npy", new.vectors)
    call = [
        "migrate",
        "old.npy",
        "new.npy",
        "--no-curve",
        "--export",
        "my bridge",
        "--plan",
        "runbook.md",
        "--json",
    ]
    assert main(call) == 0
    commands = json.loads(capsys.readouterr().out)["plan"][0]["commands"]
    assert not [command for command in commands if "--export" in command]
