"""A disk that is read-only, full, deleted, gone for a while, or slow to report it: the error is a StoreError
with a remedy, and nothing is lost.

If the tests may mount a disk (a tmpfs, as root), full and read-only disks are real. Otherwise, a limit on the
size of files and permissions replace them.
"""

import os
import re
import subprocess
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.catalog.encodings import encode
from relcore.cli import main
from relcore.files.saving import SPACE_KINDS
from relcore.migrate.adapter_files import card_of, export
from relcore.runs import store as folder
from relcore.runs.entries import StoreError, digest_of
from relcore.runs.store import Store
from relcore.stores.index import StoredRows, StorePlace, Target, write_index
from tests.faults.victims import DIGITS, N_BLOCKS, ROWS, Pixels, computed_twice, lines
from tests.relcore.migrate.planted import NEW, Made, pairs

KEYS = [digest_of("entry", number) for number in range(2)]


@pytest.fixture
def disk(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place], capture_output=True, check=False
    )
    if mount.returncode:
        pytest.skip("may not mount a disk")
    yield place
    subprocess.run(["umount", "-l", place], check=False)


def remount(disk, option):
    subprocess.run(["mount", "-o", f"remount,{option}", disk], check=True)


def megabyte(number):
    return {"x": np.full(250_000, number, np.float32)}


def test_a_read_only_disk_is_read(disk, monkeypatch):
    monkeypatch.setattr(folder, "HEADROOM", 0)
    Store(disk).put(KEYS[0], megabyte(0))
    remount(disk, "ro")
    store = Store(disk)
    np.testing.assert_array_equal(store.get(KEYS[0]).arrays["x"], megabyte(0)["x"])
    assert store.entries() == [KEYS[0]]
    for change in (
        lambda: store.put(KEYS[1], {}),
        lambda: store.remove(KEYS[0]),
        store.require_writable,
        lambda: encode(DIGITS, Pixels(os.devnull), store),
    ):
        with pytest.raises(StoreError, match=r"[Rr]ead-only|Permission denied"):
            change()


def test_a_command_shows_a_result_that_cannot_be_saved(disk, inputs, monkeypatch, capsys):
    monkeypatch.chdir(inputs)
    monkeypatch.setattr(folder, "HEADROOM", 0)
    Store(disk)
    remount(disk, "ro")
    code = main(["link", "rows.npz", "noisy.npz", "--hide", "--anchors=40", f"--store={disk}"])
    told = capsys.readouterr()
    assert code == 0, told.err
    assert told.out
    assert "shown but not saved" in told.err


def test_a_deleted_store_is_made_again(tmp_path):
    store = Store(tmp_path / "store")
    store.put(KEYS[0], megabyte(0))
    subprocess.run(["rm", "-r", store.root], check=True)
    assert (store.get(KEYS[0]), store.has(KEYS[0]), store.entries(), store.size()) == (None, False, [], 0)
    store.remove(KEYS[0])
    store.put(KEYS[1], megabyte(1))
    assert Store(store.root).entries() == [KEYS[1]]


def test_a_disk_gone_for_a_while_costs_one_block(tmp_path, monkeypatch):
    """During an encoding, the store's folder is moved away and replaced by something else."""
    disk = tmp_path / "disk"
    away = tmp_path / "away"
    encoder = Pixels(str(tmp_path / "log"))
    disk.mkdir()
    store = Store(disk / "store")
    put = Store.put

    def put_ten(store, *entry):
        if len(lines(encoder.log)) > 10:
            disk.rename(away)
            disk.touch()
        put(store, *entry)

    monkeypatch.setattr(Store, "put", put_ten)
    with pytest.raises(StoreError, match=r"could not be written, Not a directory; .* RELSCOPE_STORE"):
        encode(DIGITS, encoder, store, block_rows=ROWS)
    monkeypatch.undo()
    with pytest.raises(StoreError, match="cannot be read, Not a directory"):
        store.get(KEYS[0])
    disk.unlink()
    away.rename(disk)
    encode(DIGITS, encoder, store, block_rows=ROWS)
    assert len(lines(encoder.log)) == N_BLOCKS + 1
    assert computed_twice(encoder.log) == 1


@pytest.mark.parametrize("root", ["file/below", "/proc/store", "~no-such-user/store"])
def test_places_where_no_store_can_be(tmp_path, monkeypatch, capsys, root):
    (tmp_path / "file").touch()
    if root[0] not in "/~":
        root = str(tmp_path / root)
    monkeypatch.setenv("RELSCOPE_STORE", root)
    with pytest.raises(StoreError, match="expected"):
        Store()
    assert main(["encode", "digits", "--encoder", "mlp", "-o", str(tmp_path / "out.npy")]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert told.startswith("relscope: ")
    assert not Path(tmp_path / "out.npy").exists()


@pytest.fixture
def full(disk):
    with suppress(OSError), (disk / "filler").open("wb") as file:
        while True:
            file.write(bytes(4096))
            file.flush()
    return disk


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    rng = np.random.default_rng(0)
    adapter = Made().fit(*pairs())
    export(adapter, card_of(adapter, *pairs(), method="made"), folder / "bridge")
    rows = rng.normal(size=(400, NEW)).astype(np.float32)
    for name in ("rows", "noisy"):
        np.savez(folder / f"{name}.npz", vectors=rows + 0.1 * rng.normal(size=rows.shape), ids=range(400))
    np.save(folder / "rows.npy", rows)
    return folder


@pytest.mark.parametrize(
    ("command", "name"),
    [
        *((f"project rows.npz --anchors 20 -o DISK/a{kind}", f"a{kind}") for kind in SPACE_KINDS),
        ("project rows.npz --anchors 20 -o a.npz --save-anchors DISK/a.txt", "a.txt"),
        ("link rows.npz noisy.npz --hide --anchors 30 --recipe DISK/a.json", "a.json"),
        ("audit rows.npz noisy.npz --anchors 60 -o DISK/a.tsv", "a.tsv"),
        ("study similarity-performance --table -o DISK/a.csv", "a.csv"),
        ("migrate rows.npz noisy.npz --no-curve --export DISK/taken", "taken"),
        ("adapt bridge rows.npy DISK/a.npy", "a.npy"),
        ("adapt bridge rows.npy lancedb:DISK/a#t", "a"),
    ],
)
def test_a_full_disk_leaves_nothing_of_an_output(full, inputs, monkeypatch, capsys, command, name):
    monkeypatch.chdir(inputs)
    monkeypatch.setenv("RELSCOPE_STORE", str(inputs / "store"))
    capsys.readouterr()
    code = main([*command.replace("DISK", str(full)).split(), "--quiet"])
    told = capsys.readouterr().err
    assert (code, told.count("\n")) == (2, 1), told
    assert str(full / name) in told
    assert re.search("No space left on device.*(; free some space|the room on its disk)", told)
    assert [path.name for path in full.iterdir()] == ["filler"]


@pytest.mark.parametrize("kind", ["npy", "parquet", "faiss", "lancedb"])
def test_a_disk_that_fills_leaves_nothing_of_a_store(disk, kind):
    (disk / "filler").write_bytes(bytes(3 * 10**6))
    rows = StoredRows([f"r{row}" for row in range(8000)], np.ones((8000, 40), np.float32))
    place = StorePlace(kind, str(disk / ("a" if kind == "lancedb" else f"a.{kind}")), "t")
    with pytest.raises(SpaceError, match=r"a[^:]*: expected.*(No space left on device|disk is full)"):
        write_index(place, [rows], Target(8000, 40))
    assert [path.name for path in disk.iterdir()] == ["filler"]
