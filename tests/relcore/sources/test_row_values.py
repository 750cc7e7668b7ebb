"""Ids, labels and counts of every format: as they were written, or an error with their row."""

import datetime
from decimal import Decimal

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.files.reading import load_space
from relcore.files.rows import checked_counts, checked_ids, checked_labels

NAN = float("nan")


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        (["a", "A", "é", "e\u0301", "a\nb", "a\tb", "NA", "nan", "\x85"], None),
        ([b"w0", "é".encode()], ["w0", "é"]),
        ([7, 2**53 + 1, -1], ["7", "9007199254740993", "-1"]),
        ([0.0, 3.0, -0.0 + 5], ["0", "3", "5"]),
        ([Decimal("2.00"), np.int64(4), np.str_("x")], ["2", "4", "x"]),
        ([datetime.date(2020, 1, 2)], ["2020-01-02"]),
        (np.array([2**63], np.uint64), ["9223372036854775808"]),
    ],
)
def test_ids_as_they_were_meant(given, ids):
    assert checked_ids(given, "t") == (ids or given)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (None, "expected an id, got an empty one; fill it"),
        (NAN, "expected an id, got an empty one"),
        ("", "expected an id, got an empty one"),
        (" \t", "expected an id, got an empty one"),
        (0.5, "expected an id as text or a whole number, got 0.5; save the column as text"),
        (1e300, "whole number, got 1e\\+300"),
        (True, "whole number, got True"),
        (Decimal("1.5"), "got Decimal"),
        (b"caf\xe9", "got b'caf"),
        ([1], r"got \[1\]"),
        ({"a": 1}, "got {'a': 1}"),
        ("\ud800x", "expected Unicode text"),
    ],
)
def test_ids_that_are_none_name_their_row(bad, message):
    with pytest.raises(SpaceError, match=f"t.csv, row 2: .*{message}"):
        checked_ids(["a", bad], "t.csv")


def test_missing_labels_are_no_class_and_numbers_keep_one_look():
    assert checked_labels([None, NAN, 3, 3.0, 0.5, True, b"x", "nan"], "t") == [
        "",
        "",
        "3",
        "3",
        "0.5",
        "True",
        "x",
        "nan",
    ]
    with pytest.raises(SpaceError, match=r"t, row 1: expected a label as text, got \[1, 2\]"):
        checked_labels([[1, 2]], "t")


@pytest.mark.parametrize(
    "given",
    [[0, 7, 2**63 - 1], np.array([0, 7], np.uint64), [2.0, np.float32(3)], ["5", " 6.0 "], [Decimal("8.00")]],
)
def test_counts_that_are_whole(given):
    counts = checked_counts(given, "t")
    assert counts.dtype == np.int64
    assert counts.tolist() == [int(float(one)) if not isinstance(one, int) else one for one in given]


@pytest.mark.parametrize(
    "bad", [-1, 2.5, NAN, float("inf"), 2**63, 1e19, "many", "1e3", "-1", "", None, True, Decimal("0.5"), [1]]
)
def test_counts_that_are_none_name_their_row(bad):
    with pytest.raises(
        SpaceError, match=r"t\.csv, row 2: expected whole numbers as counts, 0 to 2⁶³ − 1, got .*; mend"
    ):
        checked_counts([1, bad], "t.csv")


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (np.array([b"caf\xe9", b"b"]), "row 1: expected an id as text"),
        (np.array(["a", ""]), "row 2: expected an id, got an empty one"),
        (np.array([0.5, 1]), "row 1: expected an id as text or a whole number, got 0.5"),
        (np.array([1j, 2]), "expected ids as short strings or integers, got complex128"),
        (np.array([True, False]), "row 1: expected an id as text or a whole number, got True"),
    ],
)
def test_ids_of_npz(tmp_path, ids, message):
    np.savez(tmp_path / "x.npz", vectors=np.eye(2), ids=ids)
    with pytest.raises(SpaceError, match=message):
        load_space(tmp_path / "x.npz")


@pytest.fixture
def beside(tmp_path):

    def load(ids=None, labels=None, **options):
        np.save(tmp_path / "x.npy", np.eye(3))
        for what, content in (("ids", ids), ("labels", labels)):
            if content is not None:
                (tmp_path / f"x.{what}.txt").write_bytes(content)
        return load_space(tmp_path / "x.npy", **options)

    return load


@pytest.mark.parametrize(
    "content",
    [
        b"a b\n\xc3\xa9\nc",
        b"a b\n\xc3\xa9\nc\n",
        b"\xef\xbb\xbfa b\n\xc3\xa9\nc\n",
        b"a b\r\n\xc3\xa9\r\nc\r\n",
        b"a b\r\xc3\xa9\rc\r",
        b"a b\n\xc3\xa9\nc\n\n\r\n",
    ],
)
def test_lines_beside_in_any_systems_form(beside, content):
    space = beside(content, content)
    assert space.ids.tolist() == space.labels.tolist() == ["a b", "é", "c"]
    assert beside(content, content, limit=2).ids.tolist() == ["a b", "é"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "a\nb\nc\n".encode("utf-16"),
            r"x\.ids\.txt, byte 0: expected UTF-8 text",
        ),
        ("a\nb\nc\n".encode("utf-16-le"), r"x\.ids\.txt: expected UTF-8 text, got a zero byte"),
        (b"a\nn\xe9\nc\n", r"x\.ids\.txt, byte 3: expected UTF-8 text"),
        (b"a\nb\n", r"x\.ids\.txt: expected 3 ids, one per row of x\.npy, got 2"),
        (b"", r"x\.ids\.txt: expected 3 ids, one per row of x\.npy, got 1"),
        (b"a\nb\nc\nd\n", r"x\.ids\.txt: expected 3 ids, one per row of x\.npy, got 4"),
        (b"a\n\nc\n", r"x\.ids\.txt, row 2: expected an id, got an empty one"),
    ],
)
def test_lines_beside_that_are_none(beside, content, message):
    with pytest.raises(SpaceError, match=message):
        beside(content)


def test_empty_lines_are_labels_only_where_a_row_has_them(beside):
    assert beside(b"a\nb\nc", b"\nx\n\n").labels.tolist() == ["", "x", ""]
    with pytest.raises(SpaceError, match=r"x\.labels\.txt: expected 3 labels, .* got 2"):
        beside(b"a\nb\nc", b"x\ny")


def test_sentences_beside_a_matrix_are_its_ids_and_may_repeat(tmp_path):
    np.save(tmp_path / "minilm.npy", np.eye(5, dtype=np.float32))
    (tmp_path / "minilm.sentences.txt").write_text("yes\nrow 3\nyes\n\nyes (2)\n")
    assert list(load_space(tmp_path / "minilm.npy").ids) == [
        "yes",
        "row 3",
        "yes (3)",
        "row 3 (2)",
        "yes (2)",
    ]
    (tmp_path / "minilm.ids.txt").write_text("a\nb\nc\nd\ne\n")
    assert list(load_space(tmp_path / "minilm.npy").ids) == list("abcde")
    (tmp_path / "minilm.ids.txt").unlink()
    (tmp_path / "minilm.sentences.txt").write_text("yes\nno\n")
    with pytest.raises(
        SpaceError, match=r"minilm\.sentences\.txt: expected 5 sentences, one per row of minilm\.npy, got 2"
    ):
        load_space(tmp_path / "minilm.npy")
