"""Sizes are checked before memory is taken: what a header promises, what a file unpacks to, what is no file
at all.

Nothing here measures memory: a reader that believed one of these files would need gigabytes, and end the test
run.
"""

import gzip
import io
import json
import os
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.files import rows
from relcore.files.readers import READERS
from relcore.files.reading import load_space
from relcore.files.rows import GrowingMatrix

MEGABYTE = 1 << 20


def header(shape, kind="<f4", fortran=False, length=None):
    text = repr({"descr": kind, "fortran_order": fortran, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text) if length is None else length) + text


def with_hole(path, head, size):
    """A file of a few bytes on the disk that reads as `size` zeros after its head."""
    with path.open("wb") as stream:
        stream.write(head)
        stream.truncate(len(head) + size)


def zipped(path, **members):
    """Each member is its first bytes and how many zeros follow."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (head, zeros) in members.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                stream.write(head)
                for _ in range(zeros // MEGABYTE):
                    stream.write(bytes(MEGABYTE))


def tensors(path, described, size=0):
    text = json.dumps(described).encode()
    with_hole(path, struct.pack("<Q", len(text)) + text, size)


def refused(path, message, **options):
    with pytest.raises(SpaceError, match=message) as error:
        load_space(path, **options)
    assert path.name in str(error.value)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize("shape", [(10**12, 0), (0, 10**12), (0, 0)])
@pytest.mark.parametrize("fortran", [False, True])
def test_a_matrix_without_values_is_none(tmp_path, shape, fortran):
    (tmp_path / "a.npy").write_bytes(header(shape, fortran=fortran))
    zipped(tmp_path / "a.npz", vectors=(header(shape, fortran=fortran), 0))
    for name in ("a.npy", "a.npz"):
        refused(tmp_path / name, "expected at least one (row|column)")


def test_a_tensor_without_values_is_none(tmp_path):
    tensors(
        tmp_path / "a.safetensors",
        {"vectors": {"dtype": "F32", "shape": [10**12, 0], "data_offsets": [0, 0]}},
    )
    refused(tmp_path / "a.safetensors", "expected at least one column")


def test_the_length_of_a_header_is_checked_before_it_is_read(tmp_path):
    with_hole(tmp_path / "a.npy", header((2, 2), length=2**31), 2**31)
    zipped(tmp_path / "a.npz", vectors=(header((2, 2), length=2**31), 64 * MEGABYTE))
    for name in ("a.npy", "a.npz"):
        refused(tmp_path / name, "expected a header of at most 10,000 bytes, got one of 2.15 GB")


@pytest.mark.parametrize("kind", ["|S0", "|V0", "<U0", [("a", "|S0")]])
def test_values_have_a_size(tmp_path, kind):
    (tmp_path / "a.npy").write_bytes(header((4, 4), kind) + bytes(64))
    refused(tmp_path / "a.npy", "values of one byte or more")


def test_the_bytes_that_count_are_those_that_are_used(tmp_path):
    n = 3 * 10**9
    with_hole(tmp_path / "a.npy", header((n // 1000, 1000), "|i1"), n)
    tensors(
        tmp_path / "a.safetensors",
        {"vectors": {"dtype": "I8", "shape": [n // 1000, 1000], "data_offsets": [0, n]}},
        n,
    )
    for name in ("a.npy", "a.safetensors"):
        refused(
            tmp_path / name,
            r"3,000,000 × 1,000 values take 12 GB, more than max_bytes = 8.59 GB",
            max_bytes=8 << 30,
        )


def test_ids_count_too(tmp_path):
    with_hole(tmp_path / "a.npy", header((10**8, 1), "|i1"), 10**8)
    refused(tmp_path / "a.npy", "take 400 MB and their ids 12.8 GB, more than max_bytes", max_bytes=8 << 30)


@pytest.mark.parametrize("kind", ["<f4", "<f8", "|i1", ">f2"])
@pytest.mark.parametrize("fortran", [False, True])
@pytest.mark.parametrize("limit", [None, 700])
def test_a_matrix_is_read_in_blocks_without_a_second_copy(tmp_path, monkeypatch, kind, fortran, limit):
    monkeypatch.setattr("relcore.files.arrays._BLOCK", 1 << 16)
    numbers = np.random.default_rng(0).integers(-100, 100, size=(3000, 300))
    np.save(tmp_path / "a.npy", np.array(numbers, dtype=kind, order="F" if fortran else "C"))
    tracemalloc.start()
    try:
        space = load_space(tmp_path / "a.npy", limit=limit)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(space.vectors, numbers[:limit])
    assert peak < 1.5 * space.vectors.nbytes + 2 * MEGABYTE  # ids and their index are the rest


def test_one_column_longer_than_a_block_is_read_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("relcore.files.arrays._BLOCK", 64)
    numbers = np.arange(3000.0).reshape(1000, 3)
    np.save(tmp_path / "a.npy", np.asfortranarray(numbers))
    np.testing.assert_array_equal(load_space(tmp_path / "a.npy", limit=37).vectors, numbers[:37])


def test_a_growing_matrix_owns_its_rows(tmp_path):
    grown = GrowingMatrix(tmp_path / "a.csv", max_bytes=MEGABYTE)
    blocks = [np.random.default_rng(number).normal(size=(number + 1, 3)) for number in range(20)]
    for block in blocks:
        grown.append(block)
    matrix = grown.matrix()
    assert matrix.base is None  # or LatentSpace would have to copy it
    assert not matrix.flags.writeable
    np.testing.assert_array_equal(matrix, np.concatenate(blocks).astype(np.float32))


def test_other_members_of_an_archive_are_left_alone(tmp_path):
    zipped(tmp_path / "a.npz", vectors=(header((2, 2)) + bytes(16), 0), other=(header((10**9, 3)), 0))
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as archive:
        archive.writestr("readme.txt", "two rows")
    assert load_space(tmp_path / "a.npz").vectors.shape == (2, 2)


def test_texts_of_rows_have_a_largest_size(tmp_path):
    zipped(
        tmp_path / "a.npz",
        vectors=(header((2, 2)) + bytes(16), 0),
        ids=(header((2,), "<U2000000"), 16 * MEGABYTE),
    )
    refused(tmp_path / "a.npz", "expected ids of at most 65,536 characters")
    size = 3 * 10**9
    described = {"dtype": "U8", "shape": [size], "data_offsets": [16, 16 + size]}
    matrix = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}
    tensors(tmp_path / "a.safetensors", {"vectors": matrix, "ids": described}, 16 + size)
    refused(tmp_path / "a.safetensors", "expected ids of at most 65,536 characters")


def test_a_gzip_that_unpacks_to_the_same_again_and_again_is_a_bomb(tmp_path):
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as stream:
        for _ in range(40):
            stream.write((b" " * 1023 + b"\n") * 1024)
    (tmp_path / "a.vec.gz").write_bytes(b"".join([packed.getvalue()] * 100))  # members of one file: 4 GB
    refused(tmp_path / "a.vec.gz", "expected vectors, got .* that unpack to more than|blank lines")
    with gzip.open(tmp_path / "b.vec.gz", "wb") as stream:
        stream.write(b"2 2\n" + b"\n" * 10**6)
    refused(tmp_path / "b.vec.gz", "line 100002: expected a word and its numbers, got 100,000 blank lines")


@pytest.mark.parametrize("suffix", READERS)
def test_pipes_devices_and_folders_are_refused_at_once(tmp_path, suffix):
    os.mkfifo(tmp_path / f"pipe{suffix}")
    (tmp_path / f"device{suffix}").symlink_to("/dev/zero")
    (tmp_path / f"folder{suffix}").mkdir()
    (tmp_path / f"loop{suffix}").symlink_to(tmp_path / f"loop{suffix}")
    for name, got in (
        ("pipe", "a named pipe"),
        ("device", "a device"),
        ("folder", "the folder"),
        ("loop", "Too many levels"),
    ):
        refused(tmp_path / f"{name}{suffix}", f"expected a file, got .*{got}")


def test_the_usual_limit_is_a_share_of_what_is_free(monkeypatch):
    assert 0 < rows.usable_bytes() <= rows.MOST
    monkeypatch.setattr(rows, "_of_machine", lambda: [10 << 30])
    monkeypatch.setattr(rows, "_of_container", list)
    assert rows.usable_bytes() == int(0.6 * (10 << 30))
    monkeypatch.setattr(rows, "_of_container", lambda: [-5])
    assert rows.usable_bytes() == 0
    monkeypatch.setattr(rows, "_of_container", list)
    monkeypatch.setattr(rows, "_of_machine", list)
    assert rows.usable_bytes() == pytest.approx(rows.MOST, abs=1)


def test_a_container_counts_what_it_holds_but_for_files(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "_GROUP", tmp_path)
    assert rows._of_container() == []
    (tmp_path / "memory.stat").write_text("anon 1000\nfile 5000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert rows._of_container() == []
    (tmp_path / "memory.max").write_text("4000\n")
    assert rows._of_container() == [3000]


def parquet_of(path, groups=100, **columns):
    import pyarrow as pa
    import pyarrow.parquet as parquet

    table = pa.table(columns)
    with parquet.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for _ in range(groups):
            writer.write_table(table)


def test_a_parquet_file_is_believed_only_as_far_as_its_rows_fit(tmp_path, monkeypatch):
    path, zeros = tmp_path / "a.parquet", np.zeros(10**4, np.int8)
    parquet_of(path, x=zeros, y=zeros)
    monkeypatch.setattr("relcore.files.tables.GrowingMatrix", None)  # nothing is read
    refused(
        path,
        "1,000,000 × 2 values take 8 MB and their ids 128 MB, more than max_bytes = 100 MB",
        max_bytes=10**8,
    )
    parquet_of(path, groups=3, vector=[np.zeros(10**6, np.float32)] * 2)
    refused(path, "6 × 1,000,000 values take 24 MB", max_bytes=10**7)
    parquet_of(path, groups=2, id=["x" * 10**6, "y" * 10**6], x=np.zeros(2))
    refused(path, "ids and labels of 4 MB take 12 MB, more than max_bytes = 10 MB", max_bytes=10**7)
