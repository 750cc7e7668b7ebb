"""check: marks, rows unlike trusted ones, two models without a reference, their repair, and the command."""

import json
import re

import numpy as np
import pytest

from relcore import LatentSpace, Passport, check, load_space
from relcore.base.errors import SpaceError
from relcore.base.rows import unit_rows
from relcore.check.collection import Checked, smallest_found
from relcore.check.marks import marks_of, name_of
from relcore.check.repair import map_to_space
from relcore.cli import main
from relcore.encoders.words import load_words
from relcore.engine.engine import Engine
from relcore.files.saving import save_space
from relcore.passport import two_parts
from relcore.passport.recipes import MIXED
from relcore.passport.two_parts import ShortAxes, Slope, parts_of
from tests.relcore.passport.planted import model

D = 128
N = 2400


FIRST = model(0, D)
SECOND = model(1, D)


def space(X, name=""):
    return LatentSpace(X, [f"row {row}" for row in range(len(X))], name=name)


@pytest.fixture(scope="module")
def mixed():
    """Two topics of one model, and 240 rows of another."""
    return np.r_[FIRST(1200, 0), FIRST(N - 1440, 1), SECOND(240, 0)]


@pytest.fixture(scope="module")
def found_in_mixed(mixed):
    return check(mixed)


@pytest.fixture(scope="module")
def found_in_one_model():
    return check(FIRST(1200))


def share_last(score):
    """The share of the 240 highest scores that the last 240 rows have."""
    return np.mean(np.argsort(-score)[:240] >= N - 240)


def test_two_models_are_found_and_their_rows_ranked_first(found_in_mixed):
    found = found_in_mixed
    assert (found.verdict, found.n, found.axes, found.fitted) == ("two models", N, D // 2, N)
    assert abs(found.count - 240) <= 24
    assert share_last(found.log_ratio) > 0.95
    assert np.array_equal(found.rows(np.arange(N)).id, np.argsort(-found.log_ratio, kind="stable"))
    report = found.report()
    assert report.facts["alarm"]
    assert report.sentence.startswith("Not seen: ")
    assert "about 2" in report.sentence


def words_by_frequency(model, n):
    """The vectors of the n most frequent bundled words, the most frequent first."""
    return np.asarray(load_words(f"{model}-novels").vectors[:n])


def ends_of_longest_axis(X, n):
    """The lowest and the highest n rows along the longest axis."""
    centred = X - X.mean(axis=0)
    order = np.argsort(centred @ np.linalg.svd(centred, full_matrices=False)[2][0])
    return X[np.r_[order[:n], order[-n:]]]


def test_words_of_one_model_that_lie_apart_are_no_alarm():
    X = ends_of_longest_axis(words_by_frequency("word2vec", 6000), 800)
    assert parts_of(X).slope.high < MIXED  # so the slope alone would be an alarm
    found = check(X)
    assert found.verdict == "nothing found"
    assert "cannot be judged" in found.sentence
    assert [one.partition(" ")[0] for one in found.limits] == ["Marks"]  # all numbers were float16
    turned = check(X @ np.linalg.qr(np.random.default_rng(0).normal(size=(100, 100)))[0])
    assert turned.unfit == found.unfit
    assert turned.limits == []  # without marks, no line about marks
    assert not found.report().facts["alarm"]


def test_words_whose_parts_share_axes_over_all_dimensions_are_judged():
    X = ends_of_longest_axis(words_by_frequency("fasttext", 6000), 800)
    found = check(X)
    assert found.verdict == "nothing found"
    assert "agree with slope" in found.sentence


@pytest.mark.parametrize(("other", "is_one_model"), [(FIRST, True), (SECOND, False)])
def test_parts_that_half_of_the_dimensions_tells_apart_are_compared_by_all(monkeypatch, other, is_one_model):
    X = np.r_[FIRST(600, 1), other(600, 2)]
    second = unit_rows(X)[600:]

    def by_chance(side, compared, starts):
        return Slope(0.1, 0.2, D // 2), np.isin(side[:, 0], second)

    monkeypatch.setattr(two_parts, "_least_shared_parts", by_chance)
    found = parts_of(X)
    assert not found.graded
    assert (found.slope.high > 0.9) == is_one_model
    assert (found.slope.high == 0.2) != is_one_model


def test_equal_halves_of_two_models_of_words_are_counted_as_halves():
    rows = np.random.default_rng(0).permutation(20_000)[:2500]
    sides = [unit_rows(words_by_frequency(name, 20_000)[rows]) for name in ("word2vec", "fasttext")]
    found = check(np.r_[sides[0][:1250], sides[1][1250:]])
    assert found.verdict == "two models"
    assert abs(found.count - 1250) <= 12
    assert "so equal that either may be" in found.headline


def test_smallest_number_of_rows_that_this_collection_could_show_is_said(found_in_one_model):
    X = FIRST(1200)
    found = found_in_one_model
    assert found.smallest in (20, 40, 80, 160)
    assert f"copies of {found.smallest} of the 1,200 rows were turned at random" in " ".join(found.limits)
    turn = np.linalg.qr(np.random.default_rng(5).normal(size=(D, D)))[0].astype(np.float32)
    few = 2 * found.smallest
    assert check(np.r_[X[:few] @ turn, X[few:]]).verdict == "two models"
    rows = np.random.default_rng(1).permutation(20_000)[:800]
    assert smallest_found(words_by_frequency("word2vec", 20_000)[rows]) == 0


def test_no_sentence_of_200_drawn_results_contradicts_its_number():
    rng = np.random.default_rng(52)
    verdicts = set()
    for high in rng.uniform(0.24, 0.31, 200):
        n = int(rng.integers(4, 400))
        ratio = rng.normal(size=n).astype(np.float32)
        checked = Checked(n, 8, {}, high - 0.05, high, 4, n, ratio, ratio[:0])
        sentence = checked.sentence
        printed = float(re.search(r"at most (\.\d+)", sentence)[1])
        part = re.search(r"about (\d+) of (\d+) rows \((\S+) ?%\)", sentence)
        if printed < 0.25:
            expected = "holds vectors of two models", "below the limit of .25 for two models"
        elif printed < 0.3:
            expected = "may hold vectors of two models", "between the limits: .25 for two models, .30"
        else:
            expected = "shows no sign of a second model", "not below the limits: .25 for two models, .30"
        assert all(phrase in sentence for phrase in expected), sentence
        assert (part is None) == (printed >= 0.3)
        case = checked.cases[0]
        assert case.failed == (printed < 0.3)
        assert expected[1] in case.told
        if part:
            assert float(part[3]) == pytest.approx(100 * int(part[1]) / int(part[2]), abs=0.5)
        verdicts.add(expected)
    assert len(verdicts) == 3


@pytest.mark.parametrize(
    ("high", "verdict", "rule"),
    [
        (0.249, "two models", "below the limit of .25"),
        (0.25, "suspicious", "between the limits: .25 for two models, .30"),
        (0.3, "nothing found", "not below the limits: .25 for two models, .30"),
    ],
)
def test_sentence_says_limit_that_decides(high, verdict, rule):
    rows = np.zeros(4, np.float32)
    found = Checked(4, 8, {}, high - 0.05, high, 4, 4, rows, rows[:0])
    assert found.verdict == verdict
    assert rule in found.sentence


@pytest.mark.parametrize("state", [8, 11])
def test_classes_with_equal_noise_along_all_axes_are_no_alarm(state):
    rng = np.random.default_rng(state)
    X = (2 * rng.normal(size=(6, 32)))[rng.integers(6, size=600)] + rng.normal(size=(600, 32))
    X = X.astype(np.float32)
    assert parts_of(X, state).slope.high < MIXED
    found = check(X, random_state=state)
    assert found.verdict == "nothing found"
    assert "Parts were not compared" in found.sentence


@pytest.mark.parametrize("turned", [False, True])
def test_groups_that_vary_alike_in_all_directions_are_not_split(turned):
    rng = np.random.default_rng(0)
    n, d = 2000, 64
    groups = 25 if turned else 50
    X = rng.normal(size=(groups, d))[rng.integers(groups, size=n)] + 0.3 * rng.normal(size=(n, d))
    if turned:
        X[::2] = X[::2] @ np.linalg.qr(rng.normal(size=(d, d)))[0]
    X = X.astype(np.float32)
    assert parts_of(X).slope.high < MIXED
    found = check(X)
    assert found.verdict == "nothing found"
    assert found.told is None
    assert not len(found.ranks)
    assert "vary alike in all directions" in found.sentence


def test_equal_states_give_equal_slopes_whatever_sign_solver_gives_to_axes(monkeypatch, mixed):
    found = check(mixed, random_state=3)
    again = check(mixed, random_state=3)
    eigh = Engine.eigh
    assert found.slope == again.slope
    signs = np.random.default_rng(0)

    def flipped(engine, A):
        values, axes = eigh(engine, A)
        return values, axes * signs.choice((-1, 1), len(axes))

    monkeypatch.setattr(Engine, "eigh", flipped)
    other = check(mixed, random_state=3)
    assert np.isclose(found.slope_high, other.slope_high, atol=1e-5)
    assert np.allclose(found.log_ratio, other.log_ratio, atol=1e-2)


def test_rows_of_large_collection_are_all_ranked_from_sample(monkeypatch, mixed):
    for module in ("passport.two_parts", "check.collection"):
        monkeypatch.setattr(f"relcore.{module}.FITTED", 1800)
    found = check(mixed)
    assert (found.fitted, len(found.log_ratio)) == (1800, N)
    assert any("sample of 1,800 rows" in note for note in found.report().notes)


def test_trusted_rows_rank_rows_of_another_model_first(mixed):
    found = check(mixed, trusted=FIRST(200, 7, state=9))  # of a topic that the collection lacks
    assert share_last(found.unlike) > 0.9
    assert "also rank high" in "".join(found.limits)
    with pytest.raises(SpaceError, match="trusted: expected 100 rows or more with 128 numbers, got 20"):
        check(mixed, trusted=FIRST(20))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("float16", lambda X: X.astype(np.float16).astype(np.float32)),
        ("bfloat16", lambda X: (X.view(np.uint32) & 0xFFFF0000).view(np.float32)),
        ("grid", lambda X: np.round(X / (s := np.abs(X).max(axis=1, keepdims=True) / 127)) * s),
        ("padded", lambda X: X * (np.arange(D) < 100)),
        ("constant", lambda X: X * 0 + 1),
    ],
)
def test_marks_find_their_rows_and_no_other(name, change):
    X = FIRST(600)
    X[200:260] = change(np.ascontiguousarray(X[200:260]))
    found = {mark: rows for mark, rows in marks_of(X).items() if mark != "repeated"}
    assert set(found) == {name}
    assert np.array_equal(found[name], np.arange(200, 260))
    assert check(X).verdict == "marks"


def test_a_condition_fails_exactly_if_the_check_alarms(found_in_one_model, found_in_mixed):
    X = FIRST(600)
    X[:40] = X[:40].astype(np.float16)
    expected = [(found_in_one_model, []), (found_in_mixed, ["one model"]), (check(X), ["stored alike"])]
    for found, conditions in expected:
        report = found.report()
        failed = [case.name for case in report.cases if case.failed and not case.skipped]
        assert failed == conditions
        assert report.facts["alarm"] == bool(failed)
        assert [case.name for case in report.cases if case.skipped][-1] == "anchors"


def test_float16_that_is_normalised_again_leaves_no_mark():
    X = unit_rows(FIRST(600).astype(np.float16).astype(np.float32))
    assert {*marks_of(X)} == {"unit length"}
    assert check(X).verdict == "nothing found"  # all have it


def test_spaces_that_parts_do_not_fit_are_refused_with_reason():
    rng = np.random.default_rng(0)
    sparse = np.where(rng.random((N, D)) < 0.9, 0, rng.normal(size=(N, D)))
    ordered = rng.normal(size=(N, D)) * np.geomspace(1, 0.01, D)
    assert "sparse" in check(sparse).unfit
    assert "500 distinct rows of this width are needed, and there are 400" in check(FIRST(400)).unfit
    found = check(ordered)
    assert "LSA" in found.unfit
    assert found.slope is None
    assert found.headline == "These rows cannot show whether one model made them all."
    with pytest.raises(SpaceError, match="expected two rows or more"):
        check(FIRST(1))


def test_passport_compares_anchors_ranks_rows_and_names_family(mixed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    domains = [FIRST(1000, topic, state=3) for topic in (4, 5, 6)]
    passports = []
    for name, rows in (("first", domains), ("second", [SECOND(1000, topic, state=3) for topic in (4, 5, 6)])):
        Passport.of(space(mixed[:32], name)).with_fingerprint(rows).save(f"{name}.safetensors")
        passports.append(Passport.load(f"{name}.safetensors"))
    assert np.array_equal(passports[0].fingerprint.axes, ShortAxes.of(*domains, most=48).axes)
    assert len(load_space("first.safetensors")) == 32  # still a space
    found = check(space(mixed), trusted=passports[0], known=passports)
    assert (found.change.kind, found.named, found.verdict) == ("same", "first", "two models")
    assert share_last(found.unlike) > 0.9
    save_space(space(mixed), tmp_path / "index.npz")
    known = ["--trusted", "first.safetensors", "--known", "first.safetensors,second.safetensors"]
    assert main(["check", "index.npz", *known, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["verdict"], told["known"]) == ("two models", "first")
    assert "Anchors of the passport: Same: the same vectors." in " ".join(told["notes"])
    assert name_of(model(2, D)(800), passports) == ""
    with pytest.raises(SpaceError, match="expected vectors of 3 domains or more"):
        passports[0].with_fingerprint(domains[:2])
    with pytest.raises(SpaceError, match="with a fingerprint"):
        name_of(mixed, [Passport.of(space(mixed[:32]))])


def test_other_vectors_of_passports_anchors_are_alarm():
    X = FIRST(1200)
    passport = Passport.of(space(X[:32]))
    same, cut = (check(space(rows), passport) for rows in (X, X[:, : D // 2]))
    assert (same.verdict, same.report().facts["alarm"]) == ("nothing found", False)
    assert (cut.verdict, cut.change.kind, cut.report().facts["alarm"]) == ("changed", "cut", True)


def test_pairs_map_one_model_into_other_and_too_few_are_refused():
    X = FIRST(700)
    Y = X @ np.linalg.qr(np.random.default_rng(3).normal(size=(D, D)))[0].astype(np.float32)
    pairs = np.stack([np.arange(60), 400 + np.arange(60)])
    moved = map_to_space(Y[:300], np.r_[X[300:], X[:60]], pairs)
    near = unit_rows(moved) @ unit_rows(X[:300]).T
    assert np.mean(near.argmax(axis=1) == np.arange(300)) > 0.95
    with pytest.raises(SpaceError, match="expected 10 pairs or more, got 5"):
        map_to_space(Y[:300], X[300:], pairs[:, :5])
    with pytest.raises(SpaceError, match="expected 1,000 rows of each model, got 300"):
        map_to_space(Y[:300], X[300:])


def test_the_command_ranks_repairs_and_plans(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    one = FIRST(1200)
    rotation = np.linalg.qr(np.random.default_rng(3).normal(size=(D, D)))[0]
    save_space(space(np.r_[one[:300] @ rotation, one[300:]].astype(np.float32)), tmp_path / "index.npz")
    save_space(space(one[:90]), tmp_path / "again.npz")
    call = ["check", "index.npz", "--again", "again.npz", "--repair", "whole.npz", "--plan", "plan.json"]
    assert main([*call, "-o", "rows.csv", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["verdict"], told["n"]) == ("two models", 1200)
    assert told["slope_high"] < MIXED
    assert "Of 30 held-out pairs" in " ".join(told["notes"])
    assert abs(len(json.loads((tmp_path / "plan.json").read_text())["ids"]) - 300) < 30
    assert (tmp_path / "rows.csv").read_text().startswith("id,log_ratio,model\n")
    whole = load_space("whole.npz").vectors
    assert np.vecdot(unit_rows(whole[:300]), unit_rows(one[:300])).mean() > 0.9
    assert main(["check", "whole.npz"]) == 0
    assert parts_of(whole).slope.high > MIXED


def test_plain_means_of_float16_words_are_not_stored_differently():
    """Before, the texts of one known word were. Rows of which a part is rounded still are."""
    rng = np.random.default_rng(0)
    words = rng.normal(size=(300, 32)).astype(np.float16).astype(np.float32)
    sizes = rng.integers(1, 9, 600)
    means = np.array([words[rng.choice(300, size, replace=False)].mean(axis=0) for size in sizes])
    assert "float16" not in marks_of(means)
    whole = rng.normal(size=(600, 32)).astype(np.float32)
    whole[:80] = whole[:80].astype(np.float16)
    assert marks_of(whole)["float16"].tolist() == list(range(80))
