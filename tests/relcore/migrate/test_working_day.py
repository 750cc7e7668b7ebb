"""A working day from the shell: 20,000 rows in LanceDB, the runbook of docs/site/how-to/migrate.md line by line, and
documents that are added twice, with a kill between. No id is there twice, and the advice agrees with its table.
"""

import json
import os
import re
import runpy
import shutil
import signal
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from relcore.base.names import ADAPTERS
from relcore.base.rows import unit_rows
from relcore.migrate import adapter_files
from relcore.stores.index import StoredRows, Target, open_index, parse_place, write_index
from tests.faults import victims
from tests.relcore.migrate.planted import migration_spaces
from tests.relcore.stores.stores import in_blocks
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_store", "one_queue")]

N = 20_000
N_NEW = 5_000  # more than a block
N_KNOWN = 200  # of the added documents are in the store already
RUNBOOK = Path(__file__).parents[3] / "docs" / "site" / "how-to" / "migrate.md"


def commands_of_runbook():
    """The commands of the numbered steps, in their order and without remarks."""
    steps = RUNBOOK.read_text(encoding="utf-8").partition("\n## ")[0].replace("\\\n", " ")
    found = re.findall(r"(?:^ +|`)relscope (.+?)(?:`|$)", steps, re.MULTILINE)
    return [" ".join(text.partition("#  ")[0].partition("  #")[0].split()) for text in found]


@pytest.fixture(scope="module")
def day(tmp_path_factory):
    """The files that the runbook names."""
    folder = tmp_path_factory.mktemp("day")
    spaces, judgements = migration_spaces(n=N + N_NEW - N_KNOWN, n_queries=100, old_topics=10)
    old, new, old_queries, new_queries = spaces
    fresh = slice(N - N_KNOWN, None)
    whole = {
        "new": (new.vectors[:N], new.ids[:N]),
        "q-old": (old_queries.vectors, old_queries.ids),
        "q-new": (new_queries.vectors, new_queries.ids),
        "new-queries": (new_queries.vectors, new_queries.ids),
    }
    for name, (vectors, ids) in whole.items():
        np.save(folder / f"{name}.npy", vectors.astype(np.float32))
        (folder / f"{name}.ids.txt").write_text("\n".join(ids) + "\n")
    table = StoredRows(old.ids[fresh].tolist(), old.vectors[fresh].astype(np.float32))
    write_index(parse_place(str(folder / "new-documents.parquet")), in_blocks(table), Target(N_NEW, 24))
    rows = StoredRows(old.ids[:N].tolist(), old.vectors[:N].astype(np.float32))
    write_index(parse_place(f"lancedb:{folder / 'store'}#old"), in_blocks(rows, 4096), Target(N, 24))
    known = set(old.ids[:N])
    lines = (f"{one.query} 0 {one.row} 1\n" for one in judgements if one.row in known)
    (folder / "qrels.txt").write_text("".join(lines))
    return folder, old


def adding(folder, text, begun, moment):
    """In a process of its own: rows are added, and the process waits at this moment for its end."""
    from relcore.cli import main
    from relcore.migrate import adapt as module

    write = module.write_index

    def some_blocks(blocks):
        yield next(blocks)
        Path(begun).touch()
        signal.pause()

    def stopped(place, blocks, target):
        if moment == "in the middle":
            write(place, some_blocks(blocks), target)
        if moment == "after the commit":
            write(place, blocks, target)
        Path(begun).touch()
        signal.pause()

    module.write_index = stopped
    os.chdir(folder)
    os.environ["RELSCOPE_STORE"] = str(Path(folder) / "cache")
    tempfile.tempdir = None
    main([*text.split(), "--quiet"])


def rows_of(folder, table):
    with open_index(parse_place(f"lancedb:{folder / 'store'}#{table}")) as index:
        blocks = list(index.blocks())
    ids = [item for block in blocks for item in block.ids]
    return pd.DataFrame(np.concatenate([block.vectors for block in blocks]), index=ids)


def check_advice(facts):
    """No option that costs no more than the recommended one is better, and a simpler one that costs no more is
    clearly worse."""
    table = pd.DataFrame(facts["rows"]).set_index("option")
    chosen = facts["verdict"]["option"].replace("twice", "query both models")
    own = table.loc[chosen]
    for name, other in table.drop(chosen).iterrows():
        costs = ["rows_of_year", "models_per_query", "searches_per_query"]
        if (other[costs] <= own[costs]).all():
            assert other.score < own.score
            assert (other[costs] == own[costs]).all() or other.score + 0.01 < own.score, name


def test_a_working_day(day, run, refuse, monkeypatch, tmp_path):
    source, old = day
    folder = tmp_path / "day"
    shutil.copytree(source, folder)
    monkeypatch.chdir(folder)
    migrate, card, queries, corpus, add = commands_of_runbook()

    # The store is the old space; whitened rewrites the corpus, so that no step is left out.
    migrate = migrate.replace("migrate old.npy", "migrate lancedb:store#old")
    check_advice(json.loads(run(f"{migrate} --json".replace("--export bridge", ""))))
    check_advice(json.loads(run(f"{migrate} --adapter whitened --json")))
    assert ", whitened (" in run(card)
    adapter = adapter_files.load(folder / "bridge")
    run(queries)
    mapped = np.load("mapped.npy")
    new_queries = np.load("new-queries.npy")
    np.testing.assert_allclose(mapped, adapter.transform(new_queries), atol=1e-5)
    applied = runpy.run_path("bridge/apply.py")
    np.testing.assert_allclose(unit_rows(applied["queries"](new_queries)), unit_rows(mapped), atol=1e-4)
    run(corpus)
    assert rows_of(folder, "old_mapped").index.tolist() == old.ids[:N].tolist()

    # Documents are added twice; each run is killed once, and is then repeated.
    for moment in ("before", "in the middle", "after the commit"):
        begun = tmp_path / f"begun {moment}"
        process = victims.started(adding, str(folder), add, str(begun), moment)
        until(lambda process=process, begun=begun: begun.exists() or process.exitcode is not None)
        assert victims.killed(process, 0)
        run(add)
        run(add)
        found = rows_of(folder, "old_mapped")
        assert found.index.is_unique
        assert sorted(found.index) == sorted(old.ids)
        expected = adapter.corpus(old.vectors.astype(np.float32))
        np.testing.assert_allclose(found.loc[old.ids], expected, atol=1e-4)
    some = np.load("new.npy")[:500], old.vectors[:500].astype(np.float32)
    other = ADAPTERS["whitened"].load()().fit(*some)
    adapter_files.export(other, adapter_files.card_of(other, *some, method="whitened"), folder / "other")
    assert "expected rows of the adapter" in refuse(add.replace("bridge", "other"))
    assert rows_of(folder, "old").index.tolist() == old.ids[:N].tolist()
