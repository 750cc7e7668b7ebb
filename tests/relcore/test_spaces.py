"""LatentSpace keeps what it was given, and match pairs what belongs together."""

import numpy as np
import pytest

from relcore.base.errors import SpaceError, quote
from relcore.spaces.space import LatentSpace, distinct_names, match

EYE = np.eye(3, dtype=np.float32)


def space(**changes):
    return LatentSpace(**({"vectors": EYE, "ids": ["a", "b", "c"]} | changes))


def test_the_callers_array_stays_the_callers():
    given = np.eye(3, dtype=np.float32)
    kept = LatentSpace(given, ["a", "b", "c"])
    given[0, 0] = 7
    assert kept.vectors[0, 0] == 1
    assert given.flags.writeable


def test_a_read_only_float32_array_is_not_copied():
    given = np.eye(3, dtype=np.float32)
    given.flags.writeable = False
    assert np.shares_memory(LatentSpace(given, ["a", "b", "c"]).vectors, given)


@pytest.mark.parametrize("column", ["vectors", "ids", "labels", "counts", "norms", "zero_rows"])
def test_nothing_in_a_space_can_be_written_to(column):
    made = space(vectors=np.diag([1, 1, 0]), labels=["x", "y", "z"], counts=[3, 2, 1])
    with pytest.raises(ValueError, match="read-only"):
        getattr(made, column)[0] = getattr(made, column)[0]


@pytest.mark.parametrize(
    "given", [np.eye(3), np.eye(3, dtype=np.int8), np.eye(3, dtype=np.float16), np.asfortranarray(EYE)]
)
def test_vectors_are_contiguous_float32_whatever_comes(given):
    vectors = space(vectors=given).vectors
    assert vectors.dtype == np.float32
    assert vectors.flags.c_contiguous
    np.testing.assert_array_equal(vectors, EYE)


def test_ids_labels_and_payload_come_back_as_given():
    made = space(ids=[1, 2, 3], labels=["x", "", "y"], payload=[{"text": "one"}, None, 3], counts=[5, 0, 2])
    assert made.ids.tolist() == ["1", "2", "3"]
    assert made.labels.tolist() == ["x", "", "y"]
    assert made.payload == ({"text": "one"}, None, 3)
    assert made.counts.tolist() == [5, 0, 2]


def test_counts_up_to_the_largest_and_whole_floats():
    assert space(counts=[2**63 - 1, 0, 1]).counts.tolist() == [2**63 - 1, 0, 1]
    assert space(counts=np.array([2**63 - 1, 0, 1], np.uint64)).counts.tolist() == [2**63 - 1, 0, 1]
    assert space(counts=[1.0, 0.0, 3.0]).counts.tolist() == [1, 0, 3]


def test_norms_and_zero_rows_by_hand():
    made = LatentSpace([[3, 4], [0, 0], [0, -2]], ["a", "b", "c"])
    assert made.norms.tolist() == [5, 0, 2]
    assert made.zero_rows.tolist() == [1]


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"name": "another"}, True),
        ({"counts": [1, 2, 4]}, False),
        ({"counts": None}, False),
        ({"vectors": EYE + np.diag([0, 0, 1e-6]).astype(np.float32)}, False),
        ({"vectors": EYE.reshape(9, 1)[:3]}, False),
        ({"ids": ["a", "b", "d"]}, False),
        ({"ids": ["b", "a", "c"]}, False),
        ({"labels": ["x", "y", "w"]}, False),
        ({"labels": None}, False),
    ],
    ids=["name", "one count", "no counts", "one value", "shape", "one id", "order", "one label", "no labels"],
)
def test_the_digest_is_of_the_content(changes, same):
    whole = {"labels": ["x", "y", "z"], "counts": [1, 2, 3]}
    assert (space(**whole | changes).digest == space(**whole).digest) is same


def test_the_digest_tells_ids_from_labels_and_from_each_other():
    pairs = [
        (("a", "b"), ("c", "d")),
        (("a", "bc"), ("", "d")),
        (("a\x1fb", "c"), ("c", "d")),
        (("a", "b\x1fc"), ("c", "d")),
    ]
    digests = {LatentSpace(np.eye(2), ids, labels=labels).digest for ids, labels in pairs}
    assert len(digests) == len(pairs)


def test_rows_follow_the_order_asked():
    assert space().rows(["c", "a", "c"]).tolist() == [2, 0, 2]
    assert space().rows([]).tolist() == []


def test_unknown_ids_are_named_three_at_most():
    with pytest.raises(SpaceError, match=r"expected ids of 'space', got 4 unknown: 'w', 'x', 'y'$"):
        space().rows(["a", "w", "x", "y", "z"])


def test_take_keeps_every_column_aligned():
    made = space(labels=["x", "y", "z"], payload=["p", "q", "r"], counts=[3, 2, 1], name="whole")
    part = made.take([2, 0], name="part")
    assert (part.ids.tolist(), part.labels.tolist(), part.payload, part.counts.tolist()) == (
        ["c", "a"],
        ["z", "x"],
        ("r", "p"),
        [1, 3],
    )
    np.testing.assert_array_equal(part.vectors, EYE[[2, 0]])
    assert part.name == "part"
    assert made.take([0]).name == "whole"


def test_the_repr_tells_name_shape_and_digest():
    assert repr(space(name="eye")) == f"LatentSpace('eye', n=3, d=3, digest={space().digest[:8]})"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vectors": np.ones(3)}, r"expected a matrix \(n, d\) with rows and columns, got shape \(3,\)"),
        ({"vectors": np.empty((0, 3)), "ids": []}, r"got shape \(0, 3\)"),
        ({"vectors": np.empty((3, 0))}, r"got shape \(3, 0\)"),
        (
            {"vectors": [[1, 2], [np.nan, 1], [np.inf, 0]]},
            "2 of 3 rows hold NaN or infinite values, first 'b', 'c'; drop",
        ),
        (
            {"vectors": [[np.inf, 1], [np.inf, 1], [0, 0]]},
            "2 of 3 rows hold NaN or infinite values, first 'a', 'b'",
        ),
        ({"ids": ["a", "b"]}, "expected 3 ids, one per row, got 2"),
        ({"ids": ["a", "b", "a"]}, "ids must be distinct, 1 occur more than once, first 'a'"),
        ({"ids": [1, "1", 2]}, "ids must be distinct, 1 occur more than once, first '1'"),
        ({"labels": ["x"]}, "expected 3 labels, one per row, got 1"),
        ({"payload": ["x"]}, "expected 3 payload, one per row, got 1"),
        ({"counts": [1, 2]}, "expected 3 counts, one per row, got 2"),
        ({"counts": [1, -2, 3]}, "expected one whole number from 0 .* per row as counts"),
        ({"counts": [1, 2.5, 3]}, "expected one whole number from 0 .* per row as counts"),
        ({"counts": [1, float("nan"), 3]}, "expected one whole number from 0 .* per row as counts"),
        (
            {"counts": np.array([1, 2**63, 3], np.uint64)},
            "expected one whole number from 0 .* per row as counts",
        ),
        ({"counts": [1, 2**70, 3]}, "expected one whole number from 0 .* per row as counts"),
        ({"counts": [1e19, 2, 3]}, "expected one whole number from 0 .* per row as counts"),
        ({"ids": ["a", "", "c"]}, "row 2: expected an id, got an empty one"),
        ({"ids": ["a", b"b", "c"]}, "row 2: expected ids as strings, got b'b'"),
        ({"ids": np.array([0.0, 1.0, 2.0])}, "row 1: expected ids as strings, got .*0.0"),
        ({"labels": ["a", None, "c"]}, "row 2: expected labels as strings, got None"),
        ({"labels": ["a", float("nan"), "c"]}, "row 2: expected labels as strings, got nan"),
    ],
)
def test_wrong_spaces_are_refused(changes, message):
    with pytest.raises(SpaceError, match=message):
        space(**changes)


def test_match_pairs_in_the_sources_order_and_counts_what_it_leaves():
    source = LatentSpace([[1], [2], [3], [0], [5]], ["a", "b", "c", "d", "only source"], name="s")
    target = LatentSpace(
        [[10, 0], [0, 0], [30, 0], [40, 0], [1, 1], [2, 2]], ["c", "b", "a", "d", "u", "v"], name="t"
    )
    pair = match(source, target)
    assert pair.ids.tolist() == ["a", "c"]
    assert pair.target.ids.tolist() == ["a", "c"]
    assert pair.source.vectors.ravel().tolist() == [1, 3]
    assert pair.target.vectors[:, 0].tolist() == [30, 10]
    assert (len(pair), pair.n_source_only, pair.n_target_only, pair.n_zero) == (2, 1, 2, 2)


def test_matching_a_space_with_itself_copies_nothing():
    made = space()
    pair = match(made, made)
    assert pair.source is made
    assert pair.target is made


def test_a_permuted_target_is_put_in_order():
    made = space(labels=["x", "y", "z"])
    pair = match(made, made.take([1, 2, 0]))
    assert pair.target.digest == made.digest


def test_match_refuses_spaces_that_share_nothing():
    other = LatentSpace(np.eye(2), ["x", "y"], name="other")
    with pytest.raises(
        SpaceError, match=r"'space' and 'other' share no ids \(for instance 'a', 'b' and 'x', 'y'\)"
    ):
        match(space(), other)
    with pytest.raises(SpaceError, match="share 1 ids, but every shared row is a zero vector"):
        match(space(), LatentSpace(np.zeros((1, 2)), ["a"]))


def test_quoted_items_are_cut_to_forty_characters():
    assert quote(["a", "b" * 41, "c" * 40]) == f"'a', '{'b' * 39}…', '{'c' * 40}'"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "a"], ["a (1)", "a (2)"]),
        (["a", "b", "a", "b", "a"], ["a (1)", "b (1)", "a (2)", "b (2)", "a (3)"]),
        (["a", "a (1)", "a"], ["a (2)", "a (1)", "a (3)"]),
        (["a (1)", "a (1)", "a", "a"], ["a (1) (1)", "a (1) (2)", "a (2)", "a (3)"]),
        ([], []),
    ],
)
def test_names_are_numbered_only_where_they_must_be(names, expected):
    assert distinct_names([space(name=name) for name in names]) == expected
