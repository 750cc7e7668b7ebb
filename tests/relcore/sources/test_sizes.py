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
import zipfile

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.base.names import FORMATS
from relcore.files import rows
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


def test_a_tensor_without_values_is_none(tmp_path):
    tensors(
        tmp_path / "a.safetensors",
        {"vectors": {"dtype": "F32", "shape": [10**12, 0], "data_offsets": [0, 0]}},
    )
    refused(tmp_path / "a.safetensors", "expected at least one column")


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


@pytest.mark.parametrize("suffix", FORMATS)
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
