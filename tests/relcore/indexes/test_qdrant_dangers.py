"""What can go wrong with Qdrant: hostile folders, locks, addresses that do not answer, a shared app."""

import pickle
import socket
import sqlite3

import numpy as np
import pytest
from qdrant_client import QdrantClient

from relcore.base.errors import SpaceError
from relcore.files.places import Place, parse_place
from relcore.stores import qdrant
from relcore.stores.index import Target, open_index, write_index
from relcore.stores.qdrant import strange_names
from relcore.stores.rows import load_rows
from tests.relcore.indexes.qdrant_server import serving
from tests.relcore.indexes.stores import WIDTH, N, in_blocks, made, whole, written


@pytest.fixture(autouse=True)
def _directly(monkeypatch):
    """No proxy stands between the tests and their servers."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


class Touch:
    """Unpickling it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def with_point(folder, pickled):
    with sqlite3.connect(folder / "qdrant" / "collection" / "news" / "storage.sqlite") as storage:
        storage.execute("INSERT INTO points VALUES ('x', ?)", (pickled,))


def test_a_pickle_in_a_folder_is_refused_before_it_runs(tmp_path):
    place = written("qdrant", tmp_path, made())
    for protocol in (0, 2, 4):
        with_point(tmp_path, pickle.dumps(Touch(tmp_path / "touched"), protocol))
        with pytest.raises(SpaceError, match=r"refused, a pickle in it asks for '\w+ open'"):
            open_index(place)
        with sqlite3.connect(tmp_path / "qdrant" / "collection" / "news" / "storage.sqlite") as storage:
            storage.execute("DELETE FROM points WHERE id = 'x'")
    assert not (tmp_path / "touched").exists()
    assert open_index(place).n == N  # the control: without it the folder opens


@pytest.mark.parametrize(
    ("pickled", "strange"),
    [
        (b"\x80\x04\x8c\x02os\x94\x8c\x06system\x94\x93.", ["os system"]),
        (b"\x80\x04\x8c\x02os\x94\x8c\x06system\x94h\x00h\x01\x93.", ["os system"]),  # from the memo
        (b"cos\nsystem\n.", ["os system"]),
        (b"(ios\nsystem\n.", ["INST"]),
        (b"\x82\x01.", ["EXT1"]),
    ],
)
def test_no_instruction_hides_a_name(pickled, strange):
    assert list(strange_names(pickled)) == strange


def test_names_that_are_made_on_the_way_are_strange():
    point = b"\x8c\x20qdrant_client.http.models.models\x94\x8c\x0bPointStruct\x94"
    assert list(strange_names(b"\x80\x04" + point + b"\x93.")) == []
    assert list(strange_names(b"\x80\x04" + point + b"0\x8c\x02os\x93.")) == [
        "None os"
    ]  # one is dropped in between
    assert list(strange_names(b"\x80\x04\x8c\x02os\x94\x8c\x06system\x94" + point + b"00\x93.")) == [
        "None None"
    ]


@pytest.mark.parametrize(
    ("meta", "said"),
    [
        ('{"collections": {"../out": {}}}', "names of collections without folders"),
        ('{"collections": []}', "expected Qdrant's collections by name"),
        ("{", "got invalid JSON"),
    ],
)
def test_a_hostile_folder_is_refused(meta, said, tmp_path):
    place = written("qdrant", tmp_path, made())
    (tmp_path / "qdrant" / "meta.json").write_text(meta)
    with pytest.raises(SpaceError, match=said):
        open_index(place)


def test_a_damaged_store_of_points_is_refused(tmp_path):
    place = written("qdrant", tmp_path, made())
    (tmp_path / "qdrant" / "collection" / "news" / "storage.sqlite").write_bytes(
        b"SQLite format 3\0" + bytes(200)
    )
    with pytest.raises(SpaceError, match="got a file that cannot be read"):
        open_index(place)


def test_a_locked_folder_is_named(tmp_path):
    place = written("qdrant", tmp_path, made())
    other = QdrantClient(path=place.where)
    with pytest.raises(
        SpaceError, match=r"a folder that no other program has open, got a locked one; close that program"
    ):
        open_index(place)
    other.close()
    with open_index(place) as index:
        assert index.n == N


def test_an_address_where_nobody_listens_is_named():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(SpaceError, match=rf"an answer from the Qdrant server at {address}"):
            open_index(Place("qdrant", address, "news"))


def test_a_server_that_never_answers_is_given_up(monkeypatch):
    monkeypatch.setattr(qdrant, "TIMEOUT_SECONDS", 1)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(SpaceError, match=r"within 1 seconds, got: .*time"):
            open_index(Place("qdrant", address, "news"))


def test_a_server_is_written_and_read_through_its_address(monkeypatch):
    monkeypatch.setenv(qdrant.KEY, "secret")
    rows = made(payload=True)
    with serving() as (address, keys):
        place = parse_place(f"qdrant:{address}#news")
        write_index(place, in_blocks(rows), Target(N, WIDTH))
        with open_index(place) as index:
            found = whole(index)
            near = index.search(rows.vectors[:2], 1)
        with pytest.raises(SpaceError, match="expected a new place"):
            write_index(place, in_blocks(rows), Target(N, WIDTH))
    order = sorted(range(N), key=rows.ids.__getitem__)
    assert found.ids == sorted(rows.ids)
    np.testing.assert_allclose(found.vectors, rows.vectors[order], atol=1e-6)
    assert found.payload == tuple(rows.payload[row] for row in order)
    assert near.ids[:, 0].tolist() == rows.ids[:2]
    assert set(keys) == {"secret"}


def test_a_shared_app_opens_no_database_and_no_address(tmp_path, monkeypatch):
    monkeypatch.setenv("RELSCOPE_DATA", str(tmp_path))
    places = [written(kind, tmp_path, made()) for kind in ("qdrant", "lancedb")]
    monkeypatch.setenv("RELSCOPE_SHARE", "1")
    for place in [*places, Place("qdrant", "http://127.0.0.1:9", "news")]:
        for attempt in (open_index, load_rows, lambda one: write_index(one, [made()], Target(N, WIDTH))):
            with pytest.raises(
                SpaceError, match="this app is shared, so it opens no databases and no addresses"
            ):
                attempt(place)
    inside, outside = written("npy", tmp_path, made()), Place("npy", "/etc/rows.npy")
    assert load_rows(inside, 5).dimension == WIDTH
    with pytest.raises(SpaceError, match="is not open to this session"):
        open_index(outside)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("qdrant:/a/b#c", Place("qdrant", "/a/b", "c")),
        ("qdrant:http://host:6333#c", Place("qdrant", "http://host:6333", "c")),
        ("lancedb:base#t/vector", Place("lancedb", "base", "t/vector")),
        ("faiss:old.bin", Place("faiss", "old.bin")),
        ("old.faiss", Place("faiss", "old.faiss")),
        ("old.parquet#new", Place("parquet", "old.parquet", "new")),
        ("a.npy", Place("npy", "a.npy")),
        ("words.csv", None),
        ("other:thing", None),
    ],
)
def test_places_are_read_as_people_write_them(text, place):
    assert parse_place(text) == place


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("qdrant:/a/b", "expected the name of a collection or table, got none; add #NAME"),
        ("lancedb:s3://bucket#t", "expected a path"),
        ("qdrant:ftp://host#t", "begins with http:// or https://"),
        ("faiss:https://host/a.faiss", "expected a path"),
        ("npy:", "expected a path or an address, got ''"),
    ],
)
def test_other_places_are_refused(text, said):
    with pytest.raises(SpaceError, match=said):
        parse_place(text)
