"""LatentSpace keeps what it was given, and match pairs what belongs together."""

import numpy as np
import pytest

from relcore.base.errors import NoCommonId, SpaceError
from relcore.spaces.matching import distinct_names, match
from relcore.spaces.space import LatentSpace

EYE = np.eye(3, dtype=np.float32)


def space(**changes):
    return LatentSpace(**({"vectors": EYE, "ids": ["a", "b", "c"]} | changes))


def test_the_callers_array_stays_the_callers():
    given = np.eye(3, dtype=np.float32)
    kept = LatentSpace(given, ["a", "b", "c"])
    given[0, 0] = 7
    assert kept.vectors[0, 0] == 1
    assert given.flags.writeable


@pytest.mark.parametrize("column", ["vectors", "ids", "norms"])
def test_nothing_in_a_space_can_be_written_to(column):
    made = space(vectors=np.diag([1, 1, 0]), labels=["x", "y", "z"], counts=[3, 2, 1])
    with pytest.raises(ValueError, match="read-only"):
        getattr(made, column)[0] = getattr(made, column)[0]


@pytest.mark.parametrize("given", [np.eye(3), np.eye(3, dtype=np.float16), np.asfortranarray(EYE)])
def test_vectors_are_contiguous_float32_whatever_comes(given):
    vectors = space(vectors=given).vectors
    assert vectors.dtype == np.float32
    assert vectors.flags.c_contiguous
    np.testing.assert_array_equal(vectors, EYE)


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"name": "another"}, True),
        ({"counts": [1, 2, 4]}, False),
        ({"vectors": EYE + np.diag([0, 0, 1e-6]).astype(np.float32)}, False),
        ({"ids": ["a", "b", "d"]}, False),
        ({"ids": ["b", "a", "c"]}, False),
        ({"labels": ["x", "y", "w"]}, False),
    ],
    ids=["name", "one count", "one value", "one id", "order", "one label"],
)
def test_the_digest_is_of_the_content(changes, same):
    whole = {"labels": ["x", "y", "z"], "counts": [1, 2, 3]}
    assert (space(**whole | changes).digest == space(**whole).digest) is same


def test_digest_tells_ids_from_labels_and_from_each_other():
    pairs = [
        (("a", "b"), ("c", "d")),
        (("a", "bc"), ("", "d")),
        (("a\x1fb", "c"), ("c", "d")),
        (("a", "b\x1fc"), ("c", "d")),
    ]
    digests = {LatentSpace(np.eye(2), ids, labels=labels).digest for ids, labels in pairs}
    assert len(digests) == len(pairs)


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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"vectors": [[1, 2], [np.nan, 1], [np.inf, 0]]},
            "2 of 3 rows hold NaN or infinite values, first 'b', 'c'; leave these rows out",
        ),
        ({"ids": ["a", "b"]}, "expected 3 ids, one per row, got 2"),
        ({"ids": ["a", "b", "a"]}, "ids must be distinct, 1 occur more than once, first 'a'"),
        ({"counts": [1, 2.5, 3]}, "row 2: expected whole numbers as counts, 0 to 2⁶³ − 1, got 2.5"),
        ({"ids": ["a", b"b", "c"]}, "row 2: expected ids as strings, got b'b'"),
    ],
)
def test_wrong_spaces_are_refused(changes, message):
    with pytest.raises(SpaceError, match=message):
        space(**changes)


def test_match_pairs_in_sources_order_and_counts_what_it_leaves():
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


def test_match_of_three_keeps_rows_of_all_and_leaves_spaces_that_lack_none_as_they_are():
    first, second = (LatentSpace(rows, ["a", "b", "c", "d"]) for rows in (np.eye(4), 2 * np.eye(4)))
    third = LatentSpace([[4, 1], [0, 0], [2, 2], [1, 1]], ["d", "c", "b", "x"], name="third")
    met = match(first, second, third)
    assert met.ids.tolist() == ["b", "d"]
    assert met.others[0].vectors.tolist() == [[2, 2], [4, 1]]
    assert met.pair().target.vectors.tolist() == (2 * np.eye(4)[[1, 3]]).tolist()
    assert met.pair(2).target is met.others[0]
    assert match(first, second, 3 * np.eye(4)).source is first
    with pytest.raises(NoCommonId, match="leave 'third' out"):
        match(first, second.take([0, 2]), third)


def test_match_refuses_spaces_that_share_nothing():
    other = LatentSpace(np.eye(2), ["x", "y"], name="other")
    with pytest.raises(
        SpaceError, match=r"'space' and 'other' share no ids \(for instance 'a', 'b' and 'x', 'y'\)"
    ):
        match(space(), other)
    with pytest.raises(SpaceError, match="share 1 ids, but every shared row is a zero vector"):
        match(space(), LatentSpace(np.zeros((1, 2)), ["a"]))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "b", "a", "b", "a"], ["a (1)", "b (1)", "a (2)", "b (2)", "a (3)"]),
        (["a (1)", "a (1)", "a", "a"], ["a (1) (1)", "a (1) (2)", "a (2)", "a (3)"]),
    ],
)
def test_names_are_numbered_only_where_they_must_be(names, expected):
    assert distinct_names([space(name=name) for name in names]) == expected
