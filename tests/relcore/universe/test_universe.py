"""N spaces in one: exact on rotations, as good as a map for each pair, robust, and a file that is checked."""

import json
from itertools import permutations

import numpy as np
import pytest

from relcore import LatentSpace, Procrustes, Universe, match
from relcore.base.errors import NoCommonId, SpaceError
from relcore.base.numbers import percent
from relcore.compare.reports import agreement
from relcore.figures.style import LIGHT
from relcore.runs import entries
from relcore.scores.score import Score, share_interval
from relcore.universe.universe import (
    CHARTS,
    UniverseChart,
    charts_of,
    map_of_spaces,
    moving_rows,
    retrieval,
)

RNG = np.random.default_rng(5)
N, WIDE = 600, 12
TRUE = RNG.normal(size=(N, WIDE)) * np.linspace(2, 0.5, WIDE)
IDS = [f"row {i}" for i in range(N)]


def turned(width: int = WIDE, noise: float = 0.0, state: int = 0) -> np.ndarray:
    rng = np.random.default_rng(state)
    rotation, _ = np.linalg.qr(rng.normal(size=(WIDE, WIDE)))
    return (TRUE + noise * rng.normal(size=TRUE.shape)) @ rotation[:, :width]


def space(X: np.ndarray, name: str, ids=None) -> LatentSpace:
    return LatentSpace(X, IDS[: len(X)] if ids is None else ids, name=name)


def family(n: int = 4, noise: float = 0.3, wide: int = WIDE) -> list[LatentSpace]:
    return [space(turned(wide if i else WIDE, noise, i), f"model {i}") for i in range(n)]


def mean_accuracy(universe: Universe, kept=slice(None)) -> float:
    return float(np.nanmean(universe.accuracy[kept, kept]))


def test_rotations_of_one_space_lie_on_each_other():
    spaces = [space(3.0 * turned(state=i) + i, f"model {i}") for i in range(5)]
    universe = Universe.fit(spaces, unit=False)
    places = [universe.map(one.vectors, one.name) for one in spaces]
    assert max(np.abs(places[0] - other).max() for other in places) < 1e-3
    assert mean_accuracy(universe) == 1


def test_the_maps_are_those_of_the_plain_formula():
    """Of Ten Berge 1977: each space in turn is rotated to the sum of the others' places, row by row."""
    spaces = family(4, noise=0.8)
    spaces[3] = spaces[3].take(np.arange(N)[: N // 2])
    universe = Universe.fit(spaces, unit=False, rounds=30)
    centred, present = [], []
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
    expected = X / np.linalg.norm(X, axis=1, keepdims=True) if unit else X
    np.testing.assert_allclose(there, expected, atol=1e-5)
    maps = [member.matrix.astype(np.float64) for member in universe.members]
    around = maps[0] @ maps[1].T @ maps[1] @ maps[2].T @ maps[2] @ maps[0].T
    np.testing.assert_allclose(around, np.eye(WIDE), atol=1e-6)
    if not unit:  # else a translated row is brought to length 1 before the next step
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
    weak = [first.take(np.arange(N)[: N // 2 + 15]), second.take(np.arange(N)[N // 2 - 15 :])]

    def found(universe: Universe) -> float:
        pair = (universe.map(one.vectors, one.name) for one in (first, second))
        return retrieval(*pair).top1

    assert found(Universe.fit(weak)) < 0.5 < 0.7 < found(Universe.fit([*weak, *hubs]))


def test_spaces_that_nothing_links_are_refused():
    halves = np.arange(N // 2), np.arange(N // 2, N)
    spaces = [one.take(halves[i // 2]) for i, one in enumerate(family())]
    with pytest.raises(NoCommonId, match="got none to 'model 2', 'model 3'"):
        Universe.fit(spaces)


def test_wrong_pairs_in_one_space_cost_the_others_little():
    spaces = family(5, noise=0.6)
    clean = mean_accuracy(Universe.fit(spaces), slice(1, None))
    rows = np.random.default_rng(3).permutation(N)[: 3 * N // 4]
    wrong = spaces[0].vectors.copy()
    wrong[rows] = wrong[np.roll(rows, 1)]
    assert mean_accuracy(Universe.fit([space(wrong, "wrong"), *spaces[1:]]), slice(1, None)) > clean - 0.02


def test_a_space_is_added_by_one_map_and_the_others_stay():
    *known, last = family(5, noise=0.6)
    universe, refitted = Universe.fit(known), Universe.fit([*known, last])
    larger = universe.add(last)
    assert larger.members[:4] == universe.members
    assert larger.members[4].added
    tested = last.rows(larger.test_ids)
    places = [larger.map(one.vectors[tested], one.name) for one in (*known, last)]
    added = np.mean([retrieval(places[4], places[i]).top1 for i in range(4)])
    assert added == pytest.approx(np.mean(refitted.accuracy[4, :4]), abs=0.03)
    assert larger.members[4].score.top1 == pytest.approx(refitted.members[4].score.top1, abs=0.03)
    with pytest.raises(SpaceError, match="at most 12 dimensions, as the universe has, got 13"):
        universe.add(space(np.c_[TRUE, TRUE[:, :1]], "wide"))


def test_a_file_holds_what_was_fitted(tmp_path):
    universe = Universe.fit(family(3))
    universe.save(tmp_path / "three.universe")
    kept = Universe.load(tmp_path / "three.universe")
    X = family(3)[0].vectors
    np.testing.assert_array_equal(kept.map(X, "model 0"), universe.map(X, "model 0"))
    assert kept.table().equals(universe.table())
    assert kept.headline() == universe.headline()
    assert kept.circumstances() == universe.circumstances()
    assert [member.digest for member in kept.members] == [one.digest for one in family(3)]


def test_a_file_that_is_no_whole_universe_is_refused(tmp_path):
    path = tmp_path / "three.universe"
    universe = Universe.fit(family(3))
    universe.save(path)
    whole = path.read_bytes()
    entry = entries.read(path)
    for content in (b"", whole[:-1], whole.replace(b"model 1", b"model 0"), b"{}" * 40):
        path.write_bytes(content)
        with pytest.raises(SpaceError, match="expected a universe, got"):
            Universe.load(path)
    facts = entry.metadata["universe"]
    for broken in (
        facts | {"consensus": {"array": "none"}},
        facts | {"members": facts["members"][:1]},
        facts | {"members": [facts["members"][0], *facts["members"]]},
        facts | {"ids": facts["ids"][:3]},
        facts | {"ids": [[one] for one in facts["ids"]]},
        facts | {"ids": [*facts["ids"][:-1], facts["ids"][0]]},
        facts | {"ids": [*range(len(facts["ids"]))]},
        facts | {"scores": [[None, facts["scores"][0][1] | {"top1": None}, None], *facts["scores"][1:]]},
        *(
            facts
            | {
                "members": [
                    facts["members"][0] | {"score": facts["members"][0]["score"] | wrong},
                    *facts["members"][1:],
                ]
            }
            for wrong in ({"top1": None}, {"n": 0}, {"top1": 1.5}, {"n": -1})
        ),
        {},
    ):
        path.unlink()
        entries.write(path, entry.arrays, json.dumps({"universe": broken, "version": 2}))
        with pytest.raises(SpaceError):
            Universe.load(path)
    path.unlink()
    entries.write(path, entry.arrays, json.dumps({"universe": facts, "version": 4}))
    with pytest.raises(SpaceError, match="expected layout 3, got 4"):
        Universe.load(path)
    path.unlink()
    del facts["same_class"]  # as in layout 2
    entries.write(path, entry.arrays, json.dumps({"universe": facts, "version": 2}))
    assert Universe.load(path).names == universe.names
    with pytest.raises(SpaceError, match=r"ends in '\.universe'"):
        universe.save(tmp_path / "three.npz")


def test_wrong_input_is_refused():
    universe = Universe.fit(family(2))
    with pytest.raises(SpaceError, match="expected one of 'model 0', 'model 1', got 'x'"):
        universe.map(TRUE, "x")
    with pytest.raises(SpaceError, match="expected rows of width 12, got 3"):
        universe.map(TRUE[:, :3], "model 0")
    with pytest.raises(SpaceError, match="expected 2 to 100, got 1"):
        Universe.fit(family(1))
    with pytest.raises(SpaceError, match="expected 20 rows or more that two spaces share, got 10"):
        Universe.fit([space(TRUE[:10], "a"), space(TRUE[:10], "b")])
    with pytest.raises(SpaceError, match="expected rows that differ"):
        Universe.fit([space(np.ones((N, 3)), "same"), *family(2)])


def test_the_map_puts_alike_spaces_side_by_side():
    near = [space(turned(noise=0.4, state=i), f"near {i}") for i in range(2)]
    far = [space(turned(noise=2.5, state=i), f"far {i}") for i in range(2, 4)]
    universe = Universe.fit([near[0], far[0], near[1], far[1]])
    diagram = map_of_spaces(universe)
    place = dict(zip(diagram.names, diagram.points, strict=True))
    assert np.linalg.norm(place["near 0"] - place["near 1"]) < np.linalg.norm(
        place["near 0"] - place["far 2"]
    )
    assert list(charts_of(universe)) == [name for name in CHARTS if name != "rows"]
    for name in ("map", "accuracy"):
        drawn = UniverseChart(spaces=(), chart=name).draw(universe)
        assert drawn.bytes("png").startswith(b"\x89PNG")
        assert "near 0" in str(drawn.interactive(LIGHT).to_dict())


def test_a_few_rows_do_not_say_how_alike_models_are():
    """100 % of 24 rows were called "almost the same"; their interval begins at 86 %."""
    few, many = Universe.fit([space(TRUE[:120], name) for name in "ab"]), Universe.fit(family(2, noise=0.01))
    assert f"But {len(few.test_ids)} rows are too few to say how alike the 2 models are." in few.headline()
    low, high = share_interval(1.0, len(few.test_ids))
    assert f"(95 % interval of the mean: {percent(low)} to {percent(high)})" in few.circumstances()
    assert "the same row in 100 % of cases" in many.headline()
    assert "too few" not in many.headline()


def test_there_is_no_map_without_scores_or_without_distances():
    few = Universe.fit([space(TRUE[:60], name) for name in "abc"])
    told = f"20 held-out ones are needed, here are {len(few.test_ids)}. They are a fifth of the shared rows"
    assert told in few.headline()
    assert few.report().tables[0].shown[1][-2:] == ("–", "–")
    equal = Universe.fit([space(TRUE, name) for name in "abc"])
    for universe in (few, equal):
        assert list(charts_of(universe)) == ["accuracy"]


def test_rotated_checkpoints_do_not_move_on_the_map():
    rng, ids = np.random.default_rng(0), [f"row {i}" for i in range(200)]
    true, spaces = rng.normal(size=(200, 16)), []
    for i in range(4):
        turn, _ = np.linalg.qr(rng.normal(size=(16, 16)))
        spaces.append(LatentSpace(true @ turn, ids, name=f"step {i}"))
    universe = Universe.fit(spaces)
    drawn = moving_rows(universe, {space.name: space for space in spaces})
    assert drawn.titles == ("Mean of all", "step 0", "step 1", "step 2", "step 3")
    assert np.abs(drawn.places - drawn.places[0]).max() < 1e-3
    assert np.ptp(drawn.places[0]) > 1
    recipe = UniverseChart(spaces=(), chart="rows")
    assert len(recipe.draw(universe, {}).table()) == len(universe.ids) + len(universe.test_ids)
    assert recipe.draw(universe, {"step 0": spaces[0]}).bytes("png").startswith(b"\x89PNG")


def test_a_universe_and_a_comparison_name_their_questions():
    """Of one pair a universe said 22 %, by rows, and Explore 98 %, by classes."""
    labels = np.array([f"class {i % 4}" for i in range(N)])
    centres = 4 * np.random.default_rng(1).normal(size=(4, WIDE))[np.arange(N) % 4]
    spaces = [
        LatentSpace(
            centres + np.random.default_rng(state).normal(size=(N, WIDE)), IDS, name=name, labels=labels
        )
        for state, name in enumerate("ab")
    ]
    universe = Universe.fit(spaces)
    assert universe.same_class == pytest.approx((1, 0.25), abs=0.05)
    assert (
        "has the same class in 100 % of cases (by chance 25 %), and is the same row in" in universe.headline()
    )
    assert Universe.fit(family(2)).same_class is None
    noise = [
        LatentSpace(rng.normal(size=(N, 4)), IDS, labels=labels) for rng in map(np.random.default_rng, (1, 2))
    ]
    unrelated = Universe.fit(noise)
    assert "models find the same row no more often than by chance" in unrelated.headline()
    assert unrelated.same_class[0] == pytest.approx(0.25, abs=3 * np.sqrt(0.19 / len(unrelated.test_ids)))
    scores = {
        "relative": {
            "class agreement": Score(0.98, metric="class agreement", k=10, n=100),
            "mrr": Score(0.4, metric="mrr", n=100, top1=0.22),
        }
    }
    first, votes, *_ = agreement(scores, match(*spaces), "abc")
    assert first == (
        "For 22 % of the rows, the nearest row in the other space is the same row, by similarities to 3 anchors."
    )
    assert votes == "The 10 nearest rows in the other space vote for the row's own class in 98 % of cases."
