"""Sizes are checked before memory is taken: what a header promises, what a file unpacks to, what is no file
at all.

Nothing here measures memory: a reader that believed one of these files would need gigabytes, and end the test
run.
"""

import json
import struct

import pytest

from relcore.base.errors import SpaceError
from relcore.files.reading import load_space


def header(shape, kind="<f4", fortran=False, length=None):
    text = repr({"descr": kind, "fortran_order": fortran, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text) if length is None else length) + text


def with_hole(path, head, size):
    """A file of a few bytes on the disk that reads as `size` zeros after its head."""
    with path.open("wb") as stream:
        stream.write(head)
        stream.truncate(len(head) + size)


def tensors(path, described, size=0):
    text = json.dumps(described).encode()
    with_hole(path, struct.pack("<Q", len(text)) + text, size)


def refused(path, message, **options):
    with pytest.raises(SpaceError, match=message) as error:
        load_space(path, **options)
    assert path.name in str(error.value)
    assert len(str(error.value)) < 500


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
