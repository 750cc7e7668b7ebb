"""What can go wrong with Qdrant: hostile folders, locks, addresses that do not answer, a shared app."""

import gzip
import pickle
import socket
import sqlite3
from contextlib import suppress
from functools import partial

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.migrate.adapters import adapt
from relcore.stores import qdrant
from relcore.stores.index import (
    StoredRows,
    StorePlace,
    Target,
    load_rows,
    open_index,
    parse_place,
    write_index,
)
from tests.relcore.stores.qdrant_server import serving
from tests.relcore.stores.stores import WIDTH, N, in_blocks, made, whole, written


@pytest.fixture(autouse=True)
def _directly(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


class Touch:
    """Unpickling it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def storage_of(folder):
    return sqlite3.connect(folder / "qdrant" / "collection" / "news" / "storage.sqlite")


@pytest.mark.parametrize("protocol", [0, 4])
def test_a_pickle_in_a_folder_is_refused_and_never_runs(protocol, tmp_path):
    place = written("qdrant", tmp_path, made())
    assert open_index(place).n == N  # the control: without it the folder opens
    with storage_of(tmp_path) as storage:
        pickled = pickle.dumps(Touch(tmp_path / "touched"), protocol)
        storage.execute("INSERT INTO points VALUES ('x', ?)", (pickled,))
    with pytest.raises(SpaceError, match=r"asks for \w+\.open, which this format never needs"):
        open_index(place)
    assert not (tmp_path / "touched").exists()


def test_an_index_that_disagrees_with_its_table_runs_nothing(tmp_path):
    """One query is answered from the index, another from the table: here the index holds the harmless points
    and the table the other ones, so what a check sees must be what is used.
    """
    place = written("qdrant", tmp_path, made())
    pickled = pickle.dumps(Touch(tmp_path / "touched"))
    with storage_of(tmp_path) as storage:
        storage.execute("CREATE INDEX of_points ON points (point)")
        entry = storage.execute("SELECT * FROM sqlite_master WHERE name = 'of_points'").fetchone()
        storage.execute("PRAGMA writable_schema = ON")
        storage.execute("DELETE FROM sqlite_master WHERE name = 'of_points'")
    with storage_of(tmp_path) as storage:  # the index is unknown here, so it keeps what it held
        storage.execute("UPDATE points SET point = ?", (pickled,))
        storage.execute("PRAGMA writable_schema = ON")
        storage.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", entry)
    with storage_of(tmp_path) as storage:
        (seen,) = storage.execute("SELECT point FROM points").fetchone()
        assert seen != pickled  # the control: such a query is answered from the index
    with pytest.raises(SpaceError, match=r"asks for \w+\.open, which this format never needs"):
        open_index(place)
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize(
    ("meta", "said"),
    [('{"collections": {"../out": {}}}', "names of collections without folders"), ("{", "got invalid JSON")],
)
def test_a_hostile_folder_is_refused(meta, said, tmp_path):
    place = written("qdrant", tmp_path, made())
    (tmp_path / "qdrant" / "meta.json").write_text(meta)
    with pytest.raises(SpaceError, match=said):
        open_index(place)


def test_the_client_opens_no_folder_that_is_there(tmp_path):
    place = written("qdrant", tmp_path, made())
    with pytest.raises(SpaceError, match="Rows are added only to a Qdrant server"):
        write_index(place, [made()], Target(N, WIDTH, add=True))
    other = StorePlace("qdrant", str(tmp_path / "other"), "news")
    write_index(other, [made()], Target(N, WIDTH))
    assert open_index(other).n == N
    assert {path.name for path in tmp_path.iterdir()} == {"qdrant", "other"}


def test_a_server_that_never_answers_is_given_up(monkeypatch):
    monkeypatch.setattr(qdrant, "TIMEOUT_SECONDS", 1)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(SpaceError, match=r"within 1 seconds, got: .*time"):
            open_index(StorePlace("qdrant", address, "news"))


def dripping(handler, result, head):
    """Head and body come byte by byte, until the client hangs up."""
    started = b"HTTP/1.1 200 OK\r\n" + (b"X: " if head else b"Content-Length: 9999999\r\n\r\n")
    with suppress(OSError):
        handler.wfile.write(started)
        while not handler.server.stopped.wait(0.02):
            handler.wfile.write(b"1")


def flooding(handler, result, packed):
    head = b"Content-Encoding: gzip\r\n" if packed else b"Transfer-Encoding: chunked\r\n"
    some = gzip.compress(bytes(1 << 24)) if packed else b"100000\r\n" + b" " * (1 << 20) + b"\r\n"
    with suppress(OSError):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n")
        for _ in range(300):
            handler.wfile.write(some)
            handler.server.sent += 1


def page(points=slice(None), **changes):
    return lambda handler, result: {"points": result["points"][points], "next_page_offset": None} | changes


def vector(values):
    def lie(handler, result):
        result["points"][3]["vector"] = values
        return result

    return lie


LIES = {
    "fewer points": (page(slice(20)), "expected 25 rows, as announced, got 20"),
    "more points": (page(next_page_offset=10**6), "got .*, or some again"),
    "points twice": (
        page(slice(7), next_page_offset=3),
        "points in the order of their ids, got 7, or some again",
    ),
    "no points, ever": (page(slice(0), next_page_offset=3), "got 0, or some again"),
    "a ragged vector": (vector([[1.0], [1.0, 2.0]]), "expected a vector of 6 numbers"),
    "a text": (vector(["x"] * 6), "expected a vector of 6 numbers"),
    "a huge number": (vector([10**400, *range(5)]), "too large"),
    "no JSON": (lambda handler, result: "x", "Qdrant server"),
    "a dripping head": (partial(dripping, head=True), "Qdrant server"),
    "a dripping body": (partial(dripping, head=False), "Qdrant server"),
    "an endless answer": (partial(flooding, packed=False), "an answer of more than 1.05 MB"),
    "a bomb": (partial(flooding, packed=True), "packed by gzip, which was not asked for"),
}


@pytest.mark.parametrize("name", LIES)
def test_a_server_is_not_believed(name, tmp_path, monkeypatch):
    monkeypatch.setattr(qdrant, "_MOST_SECONDS", 1)
    monkeypatch.setattr(qdrant, "_MOST_ANSWER", 1 << 20)
    lie, said = LIES[name]
    n, scrolled = 25, []

    def answer(handler, result):
        if not handler.path.partition("?")[0].endswith("scroll"):
            return result
        scrolled.append(handler.headers["Accept-Encoding"])
        return lie(handler, result)

    with serving(answer) as (address, _):
        place = StorePlace("qdrant", address, "news")
        write_index(place, [made(n)], Target(n, WIDTH))
        goal = StorePlace("npy", str(tmp_path / "copied.npy"))
        for attempt in (partial(load_rows, place), partial(adapt, None, place, goal)):
            with pytest.raises(SpaceError, match=said):
                attempt()
    assert not goal.path.exists()
    assert set(scrolled) == {"identity"}
    assert len(scrolled) <= 10


def test_pages_are_as_short_as_vectors_and_payload_require(monkeypatch):
    rows, pages = made(), []
    rows = StoredRows(rows.ids, rows.vectors, ({"text": "x" * 1000},) * N)

    def answer(handler, result):
        if isinstance(result, dict) and "points" in result:
            pages.append(len(result["points"]))
        return result

    with serving(answer) as (address, _):
        place = StorePlace("qdrant", address, "news")
        write_index(place, [rows], Target(N, WIDTH))
        for most, expected in (
            (1 << 25, [N]),
            (40 * 64 * WIDTH, [40, *[5] * 10, 3]),  # 40 by the vectors, but then the answer is too long
        ):
            monkeypatch.setattr(qdrant, "_MOST_ANSWER", most)
            pages.clear()
            assert sorted(load_rows(place).ids) == sorted(rows.ids)
            assert pages == expected


def test_a_server_that_keeps_fewer_points_than_it_was_sent_is_noticed():
    def answer(handler, result):
        return {"count": N - 1} if handler.path.endswith("count") else result

    with (
        serving(answer) as (address, _),
        pytest.raises(SpaceError, match="expected 53 points after writing, got 52"),
    ):
        write_index(StorePlace("qdrant", address, "news"), [made()], Target(N, WIDTH))


def test_a_server_is_written_and_read_through_its_address(monkeypatch):
    monkeypatch.setenv(qdrant.KEY, "secret")
    rows = made(payload=True)
    with serving() as (address, keys):
        place = parse_place(f"qdrant:{address}#news")
        write_index(place, in_blocks(rows), Target(N, WIDTH))
        with open_index(place) as index:
            found = whole(index)
        with pytest.raises(SpaceError, match="expected a new place"):
            write_index(place, in_blocks(rows), Target(N, WIDTH))
    order = sorted(range(N), key=rows.ids.__getitem__)
    assert found.ids == sorted(rows.ids)
    np.testing.assert_allclose(found.vectors, rows.vectors[order], atol=1e-6)
    assert found.payload == tuple(rows.payload[row] for row in order)
    assert set(keys) == {"secret"}


def test_a_shared_app_opens_no_database_and_no_address(tmp_path, monkeypatch):
    monkeypatch.setenv("RELSCOPE_DATA", str(tmp_path))
    places = [written(kind, tmp_path, made()) for kind in ("qdrant", "lancedb")]
    monkeypatch.setenv("RELSCOPE_SHARE", "1")
    for place in [*places, StorePlace("qdrant", "http://127.0.0.1:9", "news")]:
        for attempt in (open_index, load_rows, lambda one: write_index(one, [made()], Target(N, WIDTH))):
            with pytest.raises(
                SpaceError, match="this app is shared, so it opens no databases and no addresses"
            ):
                attempt(place)
    inside, outside = written("npy", tmp_path, made()), StorePlace("npy", "/etc/rows.npy")
    assert load_rows(inside, 5).dimension == WIDTH
    with pytest.raises(SpaceError, match="is not open to this session"):
        open_index(outside)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("qdrant:http://host:6333#c", StorePlace("qdrant", "http://host:6333", "c")),
        ("lancedb:base#t/vector", StorePlace("lancedb", "base", "t/vector")),
        ("old.faiss", StorePlace("faiss", "old.faiss")),
        ("words.csv", None),
    ],
)
def test_places_are_read_as_people_write_them(text, place):
    assert parse_place(text) == place


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("qdrant:/a/b", "expected the name of a collection or table, got none; add #NAME"),
        ("lancedb:s3://bucket#t", "expected a path"),
    ],
)
def test_other_places_are_refused(text, said):
    with pytest.raises(SpaceError, match=said):
        parse_place(text)
