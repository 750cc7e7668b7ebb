"""N spaces in one: exact on rotations, as good as a map for each pair, robust, and a file that is checked."""

import json
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import ortho_group

from relcore import LatentSpace, Procrustes, Universe, match
from relcore.base.errors import NoCommonId, SpaceError
from relcore.base.numbers import percent
from relcore.compare.reports import agreement
from relcore.figures.style import LIGHT
from relcore.runs import entries
from relcore.scores.score import Score, share_interval
from relcore.spaces.ids import GuessedIds
from relcore.universe.charts import (
    CHARTS,
    UniverseChart,
    _pairs_with_lines,
    _passes_another,
    charts_of,
    map_of_spaces,
    moving_rows,
)
from relcore.universe.plane import STRAINED, places_in_plane
from relcore.universe.retrieval import retrieval
from relcore.universe.sentences import extremes

N = 600
WIDE = 12
NOISES = {"a": 0.4, "b": 1.0, "c": 2.5}  # of three models
TRUE = np.random.default_rng(5).normal(size=(N, WIDE)) * np.linspace(2, 0.5, WIDE)


def space(X, name, **columns):
    return LatentSpace(X, [f"row {i}" for i in range(len(X))], name=name, **columns)


def turned(state, noise=0.0):
    rng = np.random.default_rng(state)
    return (TRUE + noise * rng.normal(size=TRUE.shape)) @ ortho_group.rvs(WIDE, random_state=rng)


def family(n=4, noise=0.3):
    return [space(turned(i, noise), f"model {i}") for i in range(n)]


def mean_accuracy(universe, kept=slice(None)):
    return float(np.nanmean(universe.accuracy[kept, kept]))


def test_rotations_of_one_space_lie_on_each_other():
    spaces = [space(3.0 * turned(i) + i, f"model {i}") for i in range(5)]
    universe = Universe.fit(spaces, unit=False)
    first, *others = (universe.map(one.vectors, one.name) for one in spaces)
    assert max(np.abs(first - other).max() for other in others) < 1e-3
    assert mean_accuracy(universe) == 1


def test_the_maps_are_those_of_the_plain_formula():
    """The formula of Ten Berge 1977: each space in turn is rotated to the sum of the places in the others,
    row by row."""
    spaces = family(4, noise=0.8)
    spaces[3] = spaces[3].take(np.arange(N // 2))
    universe = Universe.fit(spaces, unit=False, rounds=30)
    centred = []
    present = []
    for one, member in zip(spaces, universe.members, strict=True):
        own = one.index.get_indexer(universe.ids)
        rows = (one.vectors[own].astype(np.float64) - member.mean) / member.scale
        present.append(own >= 0)
        centred.append(np.where(present[-1][:, None], rows, 0))
    weights = 1 / np.sum(present, axis=0)[:, None]
    turns = [member.matrix.astype(np.float64) for member in universe.members]
    for _ in range(30):
        for i, X in enumerate(centred):
            others = sum(centred[j] @ turns[j] for j in range(4) if j != i) * present[i][:, None]
            left, _, right = np.linalg.svd(X.T @ (weights * others))
            turns[i] = left @ right
    for member, turn in zip(universe.members, turns, strict=True):
        np.testing.assert_allclose(turns[0] @ turn.T, universe.members[0].matrix @ member.matrix.T, atol=0.02)


@pytest.mark.parametrize("unit", [True, False])
def test_composed_cycles_are_exact(unit):
    spaces = family()
    universe = Universe.fit(spaces, unit=unit)
    X = spaces[0].vectors
    there = universe.translate(X, "model 0", "model 0")
    expected = X
    if unit:
        expected = X / np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_allclose(there, expected, atol=1e-5)
    maps = [member.matrix.astype(np.float64) for member in universe.members]
    around = maps[0] @ maps[1].T @ maps[1] @ maps[2].T @ maps[2] @ maps[0].T
    np.testing.assert_allclose(around, np.eye(WIDE), atol=1e-6)
    if not unit:  # else a translated row is scaled to length 1 before the next step
        back = universe.translate(universe.translate(X, "model 0", "model 2"), "model 2", "model 0")
        np.testing.assert_allclose(back, X, atol=1e-5)


def test_it_finds_as_many_rows_as_a_map_for_each_pair():
    spaces = family(5, noise=0.8)
    universe = Universe.fit(spaces, unit=False, rows=60)
    rows, tested = (spaces[0].rows(ids) for ids in (universe.ids, universe.test_ids))
    assert len(rows) == 60
    assert not set(rows) & set(tested)
    pairwise = []
    for i, j in permutations(range(5), 2):
        X, Y = (spaces[k].vectors - spaces[k].vectors[rows].mean(axis=0) for k in (i, j))
        translated = Procrustes(scale=False).fit(X[rows], Y[rows]).transform(X[tested])
        pairwise.append(retrieval(translated, Y[tested] - Y[rows].mean(axis=0)).top1)
    assert mean_accuracy(universe) >= np.mean(pairwise) - 0.01


def test_a_weak_link_is_healed_by_hubs():
    first, second, *hubs = family(6, noise=0.5)
    weak = [first.take(np.arange(N // 2 + 15)), second.take(np.arange(N // 2 - 15, N))]

    def found(universe):
        return retrieval(*(universe.map(one.vectors, one.name) for one in (first, second))).top1

    assert found(Universe.fit(weak)) < 0.5 < 0.7 < found(Universe.fit([*weak, *hubs]))


def test_wrong_pairs_in_one_space_cost_the_others_little():
    first, *others = family(5, noise=0.6)
    clean = mean_accuracy(Universe.fit([first, *others]), slice(1, None))
    rows = np.random.default_rng(3).permutation(N)[: 3 * N // 4]
    wrong = first.vectors.copy()
    wrong[rows] = wrong[np.roll(rows, 1)]
    assert mean_accuracy(Universe.fit([space(wrong, "wrong"), *others]), slice(1, None)) > clean - 0.02


def test_a_space_is_added_by_one_map_and_the_others_stay():
    *known, last = family(5, noise=0.6)
    universe = Universe.fit(known)
    refitted = Universe.fit([*known, last])
    larger = universe.add(last)
    assert larger.members[:4] == universe.members
    assert larger.members[4].added
    tested = last.rows(larger.test_ids)
    *places, own = (larger.map(one.vectors[tested], one.name) for one in (*known, last))
    added = np.mean([retrieval(own, place).top1 for place in places])
    assert added == pytest.approx(np.mean(refitted.accuracy[4, :4]), abs=0.03)
    assert larger.members[4].score.top1 == pytest.approx(refitted.members[4].score.top1, abs=0.03)
    with pytest.raises(SpaceError, match="at most 12 dimensions, as the universe has, got 13"):
        universe.add(space(np.c_[TRUE, TRUE[:, :1]], "wide"))


@pytest.fixture
def saved(tmp_path):
    universe = Universe.fit(family(3))
    universe.save(tmp_path / "three.universe")
    return universe, tmp_path / "three.universe"


def test_a_file_holds_what_was_fitted(saved):
    universe = saved[0]
    kept = Universe.load(saved[1])
    np.testing.assert_array_equal(kept.map(TRUE, "model 0"), universe.map(TRUE, "model 0"))
    assert kept.table().equals(universe.table())
    assert (kept.headline(), kept.circumstances()) == (universe.headline(), universe.circumstances())
    assert [member.digest for member in kept.members] == [one.digest for one in family(3)]


def test_a_file_that_is_no_whole_universe_is_refused(saved):
    universe, path = saved
    whole = path.read_bytes()
    entry = entries.read(path)
    for content in (b"", whole[:-1], whole.replace(b"model 1", b"model 0"), b"{}" * 40):
        path.write_bytes(content)
        with pytest.raises(SpaceError, match="expected a universe, got"):
            Universe.load(path)

    def load(facts, version=2):
        path.unlink()
        entries.write(path, entry.arrays, json.dumps({"universe": facts, "version": version}))
        return Universe.load(path)

    facts = entry.metadata["universe"]
    (first, *members) = facts["members"]
    ids = facts["ids"]
    for broken in (
        {"consensus": {"array": "none"}},
        {"members": [first]},
        {"members": [first, first, *members]},
        {"ids": ids[:3]},
        {"ids": [[one] for one in ids]},
        {"ids": [*ids[:-1], ids[0]]},
        {"ids": [*range(len(ids))]},
        {"scores": [[None, facts["scores"][0][1] | {"top1": None}, None], *facts["scores"][1:]]},
        *(
            {"members": [first | {"score": first["score"] | wrong}, *members]}
            for wrong in ({"top1": None}, {"n": 0}, {"top1": 1.5}, {"n": -1})
        ),
    ):
        with pytest.raises(SpaceError):
            load(facts | broken)
    with pytest.raises(SpaceError):
        load({})
    with pytest.raises(SpaceError, match="expected layout 3, got 4"):
        load(facts, version=4)
    del facts["same_class"]  # as in layout 2
    assert load(facts).names == universe.names
    with pytest.raises(SpaceError, match=r"ends in '\.universe'"):
        universe.save(path.with_suffix(".npz"))


def test_wrong_input_is_refused():
    spaces = family()
    universe = Universe.fit(spaces[:2])
    halves = [one.take(np.arange(N // 2) + N // 2 * (i // 2)) for i, one in enumerate(spaces)]
    for told, call, *arguments in (
        ("expected one of 'model 0', 'model 1', got 'x'", universe.map, TRUE, "x"),
        ("expected rows of width 12, got 3", universe.map, TRUE[:, :3], "model 0"),
        ("expected 2 to 100, got 1", Universe.fit, spaces[:1]),
        ("expected 20 rows or more that two", Universe.fit, [space(TRUE[:10], name) for name in "ab"]),
        ("expected rows that differ", Universe.fit, [space(np.ones((N, 3)), "same"), *spaces[:2]]),
        ("got none to 'model 2', 'model 3'", Universe.fit, halves),
    ):
        with pytest.raises(SpaceError, match=told):
            call(*arguments)
    with pytest.raises(NoCommonId):
        Universe.fit(halves)


def test_the_map_puts_alike_spaces_side_by_side():
    spaces = [space(turned(i, (0.4, 2.5)[i % 2]), name) for i, name in enumerate("abcd")]
    universe = Universe.fit(spaces)
    place = dict(zip("abcd", map_of_spaces(universe).points, strict=True))
    assert np.linalg.norm(place["a"] - place["c"]) < np.linalg.norm(place["a"] - place["d"])
    assert list(charts_of(universe)) == [name for name in CHARTS if name != "rows"]
    for name in ("map", "accuracy"):
        drawn = UniverseChart(spaces=(), chart=name).draw(universe)
        assert drawn.bytes("png").startswith(b"\x89PNG")
        assert "'a'" in str(drawn.interactive(LIGHT).to_dict())
    assert "tabular" in drawn.bytes("tex").decode()  # the accuracy, which is drawn last, has a table


def test_three_models_have_a_map():
    """Before, three models had only a table: a map began with four."""
    universe = Universe.fit([space(turned(i, noise), name) for i, (name, noise) in enumerate(NOISES.items())])
    assert list(charts_of(universe)) == ["map", "accuracy"]
    assert len(map_of_spaces(universe).names) == 3


def gaps(shares):
    """The distances of each pair on the map, as shares of the largest, and whether the map is strained."""
    places, error = places_in_plane(np.array(shares))
    drawn = np.linalg.norm(places[:, None] - places[None], axis=-1)
    return drawn / drawn.max(), error > STRAINED


def test_equal_shares_are_at_equal_distances():
    """Before, three networks with 17 % each stood .83, .93 and .97 apart, and of three models with 100 %
    one was hidden."""
    apart, strained = gaps(
        [[1, 0.22, 0.17, 0.17], [0.22, 1, 0.30, 0.17], [0.17, 0.30, 1, 0.11], [0.17, 0.17, 0.11, 1]]
    )
    ties = [apart[pair] for pair in ((0, 2), (0, 3), (1, 3))]
    assert not strained
    assert np.ptp(ties) < 0.02
    assert apart[1, 2] < apart[0, 1] < min(ties) < apart[2, 3]
    same = np.ones((5, 5))
    same[3] = same[:, 3] = 0.96
    same[4] = same[:, 4] = 0.8
    same[3, 4] = same[4, 3] = 0.48
    apart, strained = gaps(same)
    ties = [apart[pair] for pair in ((0, 1), (0, 2), (1, 2))]
    assert not strained
    assert np.ptp(ties) < 1e-6
    assert 0.05 < min(ties) < 0.5 * min(apart[3, :3])


def test_a_plane_without_room_for_all_distances_says_so():
    """Ten models that share equally little are a simplex: no plane shows their ties as ties."""
    _, strained = gaps(np.full((10, 10), 0.5) + 0.3 * np.eye(10))
    assert strained
    assert np.isfinite(gaps(np.array([[1, np.nan, 0.5], [np.nan, 1, 0.2], [0.5, 0.2, 1]]))[0]).all()


def test_chance_depends_on_the_rows():
    """Before, one chance level was said of pairs with 281 to 1,000 rows."""
    spaces = [
        space(TRUE, "a"),
        space(turned(1, 0.4), "b"),
        space(turned(2, 2.0), "c").take(np.arange(N // 2)),
    ]
    universe = Universe.fit(spaces)
    n = universe.table().n
    told = f"{percent(1 / n.max())} to {percent(1 / n.min())}, as 1 in {n.min()} to {n.max()} rows"
    assert n.min() < n.max()
    assert f"(by chance {told})" in universe.headline()
    told = extremes(universe.table().assign(n=100), universe.best_chance)
    assert told.startswith("Most alike: a and b (")
    assert "Least alike: " in told
    assert not extremes(universe.table(), universe.best_chance)  # of few rows
    assert not extremes(Universe.fit(spaces[:2]).table(), None)


def test_of_models_that_are_the_same_one_has_the_line():
    """Before, no line left three models with 100 %, as each would have passed another one."""
    shares = np.array([[1, 1, 0.8, 0.8], [1, 1, 0.8, 0.8], [0.8, 0.8, 1, 0.3], [0.8, 0.8, 0.3, 1]])
    lines = _pairs_with_lines(places_in_plane(shares)[0], shares)
    assert {tuple({0: "same", 1: "same"}.get(end, end) for end in pair) for pair in lines} == {
        ("same", 2),
        ("same", 3),
        (2, 3),
    }


def test_a_line_that_passes_another_model_is_not_drawn():
    """Before, three models on one line had three lines upon each other, and nobody saw whose share was
    whose."""
    between = np.array([[0.0, 0.0], [1.0, 0.02], [2.0, 0.0]])
    triangle = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]])
    pairs = (0, 1), (0, 2), (1, 2)
    assert [_passes_another(between, *pair) for pair in pairs] == [False, True, False]
    assert not any(_passes_another(triangle, *pair) for pair in pairs)


def test_a_few_rows_do_not_say_how_alike_models_are():
    """Before, 100 % of 24 rows were "almost the same", with an interval from 86 %."""
    few = Universe.fit([space(TRUE[:120], name) for name in "ab"])
    many = Universe.fit(family(2, noise=0.01))
    assert f"But {len(few.test_ids)} rows are too few to say how alike the 2 models are." in few.headline()
    low, high = share_interval(1.0, len(few.test_ids))
    assert f"(95 % interval of the mean: {percent(low)} to {percent(high)})" in few.circumstances()
    assert "the same row in 100 % of cases" in many.headline()
    assert "too few" not in many.headline()


def test_a_guessed_pair_bars_only_the_model_with_the_guess(tmp_path):
    """Before, rows that one model has by a guess were not scored for any pair of models."""
    guesses = GuessedIds.of([f"row {i}" for i in range(N)], ())
    guessed = LatentSpace(turned(7), guesses, name="guessed")
    universe = Universe.fit([*family(3), guessed])
    scored = ~np.isnan(universe.accuracy)
    assert scored.tolist() == [[i != j and 3 not in (i, j) for j in range(4)] for i in range(4)]
    assert universe.report().tables[0].shown[-1][3:] == ("0", "–", "–")
    with pytest.raises(NoCommonId, match="expected confirmed pairs to score, got 600 guessed by Link"):
        Universe.fit([*family(1), guessed])
    universe.save(tmp_path / "guessed.universe")
    assert Universe.load(tmp_path / "guessed.universe").report().sentence == universe.headline()


def test_there_is_no_map_without_scores_or_without_distances():
    few = Universe.fit([space(TRUE[:60], name) for name in "abc"])
    assert f"20 held-out pairs are needed, here are {len(few.test_ids)}. A fifth" in few.headline()
    assert few.report().tables[0].shown[1][-2:] == ("–", "–")
    equal = Universe.fit([space(TRUE, name) for name in "abc"])
    for universe in (few, equal):
        assert list(charts_of(universe)) == ["accuracy"]


def test_rotated_checkpoints_do_not_move_on_the_map():
    spaces = {f"step {i}": space(turned(i), f"step {i}") for i in range(4)}
    universe = Universe.fit(list(spaces.values()))
    drawn = moving_rows(universe, spaces)
    assert drawn.titles == ("Mean of all", *spaces)
    assert np.abs(drawn.places - drawn.places[0]).max() < 1e-3
    assert np.ptp(drawn.places[0]) > 1
    recipe = UniverseChart(spaces=(), chart="rows")
    assert len(recipe.draw(universe, {}).table()) == len(universe.ids) + len(universe.test_ids)
    assert recipe.draw(universe, {"step 0": spaces["step 0"]}).bytes("png").startswith(b"\x89PNG")


def test_a_universe_and_a_comparison_name_their_questions():
    """Before, a universe said 22 % of a pair, by rows, and Explore 98 %, by classes."""
    rng = np.random.default_rng(1)
    number = np.arange(N) % 4
    labels = np.array([f"class {i}" for i in number])
    centres = 4 * rng.normal(size=(4, WIDE))[number]
    spaces = [space(centres + rng.normal(size=(N, WIDE)), name, labels=labels) for name in "ab"]
    universe = Universe.fit(spaces)
    assert universe.same_class == pytest.approx((1, 0.25), abs=0.05)
    told = "has the same class in 100 % (chance 25 %) and is the same row in"
    assert told in universe.headline()
    assert Universe.fit(family(2)).same_class is None
    unrelated = Universe.fit([space(rng.normal(size=(N, 4)), name, labels=labels) for name in "ab"])
    assert "models find the same row no more often than by chance" in unrelated.headline()
    assert unrelated.same_class[0] == pytest.approx(0.25, abs=3 * np.sqrt(0.19 / len(unrelated.test_ids)))
    votes = Score(0.98, metric="class agreement", k=10, n=100)
    scores = {"class agreement": votes, "mrr": Score(0.4, metric="mrr", n=100, top1=0.22)}
    rows, classes, *_ = agreement({"relative": scores}, match(*spaces), "abc")
    assert rows.startswith("For 22 % of the rows, the nearest row in the other space is the same row")
    assert classes.startswith("The 10 nearest rows in the other space vote for the row's own class in 98 %")
