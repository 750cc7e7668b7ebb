"""Terms, chance and standard errors, by hand and by repeated draws."""

import numpy as np
import pytest
from scipy import sparse

from relcore.explain.columns import families_of_spaces
from relcore.explain.families import FeatureFamily, Features, partition, sets, tenths
from relcore.explain.reasons import Proposable, evidence_of, proposed, smallest_effect
from relcore.explain.responses import of_neighbours, of_numbers
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace


def features_of(codes, together="rows of one kind"):
    return Features([partition("kind", codes, "rows of kind {}", together, least=1)], len(codes))


def test_effect_is_difference_of_shares_by_hand():
    codes = np.array(["a", "a", "b", "b", "a", "b"])
    features = features_of(codes)
    queries = np.array([0, 2])
    first = np.array([[1, 4], [3, 0]])  # of row 0: a, a; of row 2: b, a
    second = np.array([[1, 2], [0, 1]])  # of row 0: a, b; of row 2: a, a
    response = of_neighbours(queries, (first, second), features, np.array([0, 1]))
    left = response.whole()
    whole = [feature.whole for feature in features.listed].index(True)
    np.testing.assert_allclose(response.rows_of(whole, left), [1 - 0.5, 0.5 - 0], atol=1e-6)
    np.testing.assert_allclose(response.rows_of(0, left), [0.5, 0], atol=1e-6)


def test_explained_terms_leave_both_lists(rng):
    codes = rng.choice(["a", "b"], 300)
    features = features_of(codes)
    lists = [rng.integers(300, size=(300, 5)) for _ in range(2)]
    response = of_neighbours(np.arange(300), tuple(lists), features, np.zeros(300, dtype=int))
    whole = len(features) - 1
    left = response.without(response.whole(), whole)
    assert not (response.having_feature(whole) & left).any()
    np.testing.assert_allclose(response.rows_of(0, left), 0, atol=1e-6)


def test_terms_that_are_left_by_chance_are_no_effect(rng):
    """One space has its neighbours in the row's own class, the other at random. Once the class is taken out, the other
    space has more terms left, of which any feature has its share by chance."""
    n = 4000
    codes = rng.integers(20, size=n)
    other = rng.choice(["x", "y", "z"], n)
    families = [
        partition("class", codes.astype(str), "class {}", "rows of one class"),
        partition("other", other, "rows of {}", "rows of one other"),
    ]
    features = Features(families, n)
    by_class = [np.flatnonzero(codes == code) for code in range(20)]
    near = np.stack([rng.choice(by_class[code], 10, replace=False) for code in codes])
    random = rng.integers(n, size=(n, 10))
    response = of_neighbours(np.arange(n), (near, random), features, np.arange(n) % 100)
    none = np.zeros(len(features), dtype=bool)
    found = proposed([response], Proposable(features.whole_of, none, none))
    assert [features.listed[number].title for number in found] == ["rows of one class"]


def test_p_values_of_random_features_are_uniform(rng):
    """200 features that have nothing to do with the lists: their plain p-values are below .05 in about 5 %."""
    n = 600
    lists = tuple(rng.integers(n, size=(n, 10)) for _ in range(2))
    columns = [(f"f{one}", "", rng.random(n) < 0.1) for one in range(200)]
    features = Features([sets("random", columns)], n)
    response = of_neighbours(np.arange(n), lists, features, np.arange(n) % 20)
    alone = [evidence_of([response], [number], 1)[0].p for number in range(len(features))]
    assert 0 < np.mean(np.array(alone) < 0.05) <= 0.09  # 3 standard errors above .05


def test_effect_of_numbers_is_the_difference_from_the_mean(rng):
    codes = np.array(["a"] * 100 + ["b"] * 300)
    numbers = np.where(codes == "a", 0.9, 0.1) + 0.01 * rng.normal(size=400)
    features = features_of(codes, "")
    response = of_numbers(np.arange(400), numbers, features, np.arange(400) % 40)
    none = np.zeros(len(features), dtype=bool)
    (first, *_) = proposed([response], Proposable(features.whole_of, none, none))
    (found,) = evidence_of([response], [first], len(features))
    rows = codes == features.listed[first].short
    assert found.effect == pytest.approx(numbers[rows].mean() - numbers.mean())
    assert found.significant


def proposed_titles(numbers, columns):
    """The features (title → rows (n,) bool) that are proposed for these numbers, and those that are significant."""
    features = Features([sets("kind", [(title, "", rows) for title, rows in columns.items()])], len(numbers))
    response = of_numbers(np.arange(len(numbers)), numbers, features, np.arange(len(numbers)) % 40)
    none = np.zeros(len(features), dtype=bool)
    found = proposed([response], Proposable(features.whole_of, none, none))
    significant = [one.number for one in evidence_of([response], found, len(features)) if one.significant]
    return [[features.listed[number].title for number in some] for some in (found, significant)]


@pytest.mark.parametrize(("common", "expected"), [(450, ["large", "small"]), (600, ["large"])])
def test_a_difference_of_which_half_is_left_is_a_reason(rng, common, expected):
    """The rows of "small" have .035 more than all. Without those that "large" has, too, .019 or .014 are left: both are
    below .02, but only .019 is more than half of .035."""
    rows = np.arange(10_000)
    large = rows < 2000
    small = (rows >= 2000 - common) & (rows < 3000 - common)
    numbers = np.where(large & ~small, 0.4, 0.0) + 0.035 * small
    rest = ~large & ~small
    numbers[rest] -= numbers.sum() / rest.sum()
    numbers += 0.01 * rng.normal(size=len(rows))
    assert proposed_titles(numbers, {"large": large, "small": small}) == [expected, expected]


def test_of_nested_features_the_one_with_the_larger_difference_is_first(rng):
    """Texts with a word are gathered. The total of the class that has the word is a little larger, because its other
    texts have a little more, too."""
    rows = np.arange(5000)
    word = rows < 250
    class_ = rows < 300
    numbers = 0.4 * word + 0.1 * class_ + 0.1 * rng.normal(size=len(rows))
    found, _ = proposed_titles(numbers, {"class": class_, "word": word})
    assert found[0] == "word"


def test_smallest_effect_falls_with_rows(rng):
    sizes = []
    for n in (800, 8000):
        lists = tuple(rng.integers(n, size=(n, 10)) for _ in range(2))
        columns = [(f"f{one}", "", rng.random(n) < 0.1) for one in range(20)]
        features = Features([sets("random", columns)], n)
        response = of_neighbours(np.arange(n), lists, features, np.arange(n) % 20)
        sizes.append(smallest_effect(response, 0.1, 20))
    assert 0.02 <= sizes[1] < sizes[0] < 0.5
    assert np.isnan(smallest_effect(response, 0.5, 20))


def test_a_feature_of_a_few_rows_has_no_smallest_effect(rng):
    """With 16 of 800 rows, not even a feature whose rows are all neighbours would be found in most draws."""
    lists = tuple(rng.integers(800, size=(800, 10)) for _ in range(2))
    codes = rng.permutation(800)
    columns = [(f"f{one}", "", codes % 25 == one) for one in range(20)]
    members = sparse.csr_matrix(np.stack([rows for _, _, rows in columns], axis=1).astype(np.float32))
    names = tuple(title for title, _, _ in columns)
    features = Features([FeatureFamily("random", members, names, names)], 800)
    response = of_neighbours(np.arange(800), lists, features, np.arange(800) % 20)
    assert np.isnan(smallest_effect(response, 0.02, 20))
    assert 0.02 < smallest_effect(response, 0.04, 20) <= 1


def test_tenths_have_equal_sizes_and_leave_out_unknown_rows(rng):
    values = np.append(rng.normal(size=1000), [np.nan] * 50)
    family = tenths("size", values, "size")
    assert len(family) == 10
    np.testing.assert_array_equal(np.asarray(family.members.sum(axis=0)).ravel(), 100)
    assert family.members[1000:].nnz == 0
    assert family.titles[0] == "rows in the lowest tenth by size"


def test_constant_numbers_make_no_family():
    assert len(tenths("size", np.ones(500), "size")) == 0


def test_tenths_of_length_belong_to_no_space_more_than_to_the_other(rng):
    """Otherwise rows that noise made short in one space would seem to be gathered there."""
    spaces = [LatentSpace(rng.normal(size=(300, 4)), name=name) for name in ("a", "b")]
    hubs = rng.random(300)
    families = [next(iter(families_of_spaces(match(*pair), hubs, "rows"))) for pair in (spaces, spaces[::-1])]
    assert [family.name for family in families] == ["norm", "norm"]
    assert (families[0].members != families[1].members).nnz == 0
    one_length = LatentSpace(spaces[0].vectors / spaces[0].norms[:, None], name="c")
    names = [family.name for family in families_of_spaces(match(one_length, one_length), hubs, "rows")]
    assert "norm" not in names
