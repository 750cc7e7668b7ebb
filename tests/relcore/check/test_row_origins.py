"""Which model made each row: parts, p-values, bounds and refusals."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, kstest

from relcore import LatentSpace, check
from relcore.base.errors import SpaceError
from relcore.base.rows import unit_rows
from relcore.check.chart import evidence_of, map_of
from relcore.check.collection import CheckRows
from relcore.check.mixed_search import export_mixed
from relcore.check.origins import (
    HELD_OUT_SLOPE,
    SAME_ROWS,
    UNKNOWN,
    _cut,
    _Fit,
    _sides,
    _Student,
    conformal_p,
    false_share,
    row_origins,
)
from relcore.check.repair import repair, rows_to_embed
from relcore.cli import main
from relcore.figures.export import chart_exportable
from relcore.figures.style import LIGHT, PAPER
from relcore.files.saving import save_space
from relcore.passport.two_parts import ShortAxes
from tests.relcore.passport.planted import model

D = 64
N = 1500


FIRST = model(0, D)
SECOND = model(1, D)


def mixed(share):
    """N rows of two topics, of which the last ones are of another model, and which these are."""
    few = round(share * N)
    own = N - few
    X = np.r_[FIRST(own // 2, 0), FIRST(own - own // 2, 1), SECOND(few, 0)]
    return X, np.arange(N) >= own


def trusted(n=200):
    return np.r_[FIRST(n // 2, 0, state=9), FIRST(n // 2, 1, state=9)]


@cache
def checked(share):
    """The check of `mixed` rows by 400 trusted rows."""
    return check(mixed(share)[0], trusted=trusted(400))


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_trusted_rows_say_which_model_made_each_row(share):
    _, truth = mixed(share)
    found = checked(share)
    told = found.told
    assert found.verdict == "two models"
    assert np.mean(told.model[truth] == 1) > 0.95
    assert np.mean(truth[told.model == 1]) > 0.95
    assert told.confirmed
    assert (told.held_out, told.wrong, told.shifted) == (200, 0, False)
    assert 0 < told.bound < 0.2
    assert kstest(told.p[~truth], "uniform").statistic < 0.12  # 1.36 / √200 = .10 by the held-out rows alone
    table = found.rows(np.arange(N))
    assert {*table.model} <= {"another model", "trusted rows' model", "unknown"}
    assert table.p.between(0, 1).all()
    report = found.report()
    assert report.facts["found"] == np.count_nonzero(told.model == 1)
    assert report.facts["confirmed"]
    assert "95 % confidence" in report.sentence


def test_few_trusted_rows_confirm_no_rate_and_the_number_needed_is_said():
    X, truth = mixed(0.05)
    told = check(X, trusted=trusted(100)).told
    assert not told.confirmed
    assert np.mean(truth[told.model == 1]) > 0.9
    assert told.needed == 2 * int(np.ceil(N / (0.05 * told.found)))
    assert f"{told.needed:,} trusted rows are needed" in told.sentence
    assert told.bound == pytest.approx(false_share(told.wrong, 50, told.found, N))


def test_equal_parts_without_trusted_rows_are_nobodys():
    X, truth = mixed(0.5)
    found = check(X)
    agreement = np.mean((found.told.model == 1) == truth)
    assert max(agreement, 1 - agreement) > 0.99
    assert found.told.either
    assert "whose is unknown" in found.sentence
    assert not len(found.told.p)
    assert {*found.rows(np.arange(N)).model} == {"larger part", "smaller part"}
    small = check(mixed(0.1)[0])
    assert not small.told.either
    assert "Without trusted rows there are no p-values" in small.sentence


@pytest.mark.parametrize("share", [0.46, 0.5])
def test_equal_parts_are_nobodys_with_trusted_rows_of_other_texts_too(share):
    X, truth = mixed(share)
    found = check(X, trusted=FIRST(200, 7, state=9))
    told = found.told
    agreement = np.mean((told.model == 1) == truth)
    assert max(agreement, 1 - agreement) > 0.99
    assert (told.shifted, told.either) == (True, True)
    assert told.sentence.startswith("Two parts, of ")
    assert "whose is unknown" in found.headline + found.sentence
    assert "either may be of the other model" in found.headline
    assert {*found.rows(np.arange(N)).model} == {"larger part", "smaller part"}
    with pytest.raises(SpaceError, match="a check that knows the model of each row"):
        export_mixed(LatentSpace(X), found, Path("unused"))
    like = check(X, trusted=trusted()).told
    assert (like.shifted, like.either) == (False, False)
    assert np.mean((like.model == 1) == truth) > 0.95


def test_a_notebook_shows_the_model_of_each_row():
    shown = checked(0.1)._repr_html_()
    least = 1 / 201  # the smallest p-value by 200 held-out rows
    for cell in ("another model", f"{least:.3f}".removeprefix("0")):
        assert f">{cell}</td>" in shown
    assert "held-out trusted rows" in shown


@pytest.mark.parametrize("with_trusted", [False, True])
def test_rows_of_one_model_are_refused(with_trusted):
    if with_trusted:
        found = checked(0)
    else:
        found = check(mixed(0)[0])
    assert found.told is None
    assert "The model of single rows is unknown" in found.origins.refused
    assert found.verdict == "nothing found"
    assert "model" not in found.rows(np.arange(N))


def test_a_topic_that_trusted_rows_lack_is_not_another_model():
    X = np.r_[FIRST(N // 2, 0), FIRST(N // 2, 5)]
    found = check(X, trusted=FIRST(200, 0, state=9))
    assert found.verdict == "nothing found"
    assert found.told is None


def test_trusted_rows_of_other_texts_give_no_p_values():
    X, truth = mixed(0.3)
    told = check(X, trusted=FIRST(200, 7, state=9)).told
    assert told.shifted
    assert np.mean(truth[told.model == 1]) > 0.95
    assert (len(told.p), told.bound) == (0, None)
    assert "other texts" in told.sentence


def test_rows_of_the_other_model_are_held_out_too():
    X, truth = mixed(0.1)
    told = check(X, trusted=trusted(), other=SECOND(40, 0, state=9)).told
    assert (told.held_out, told.held_out_other) == (100, 20)
    assert np.mean(told.model[truth] == 1) > 0.95
    assert "of 20 held-out rows of the other model" in told.sentence
    with pytest.raises(SpaceError, match="other: expected 15 rows or more with 64 numbers, got 4 with 64"):
        check(X, trusted=trusted(), other=SECOND(4))
    with pytest.raises(SpaceError, match="other: expected trusted rows of the right model"):
        check(X, other=SECOND(40))
    with pytest.raises(SpaceError, match="fdr: expected a number above 0 and at most 1, got 0"):
        check(X, fdr=0)


def test_rows_beyond_the_sample_have_a_model_too(monkeypatch):
    monkeypatch.setattr("relcore.check.origins.FITTED", 900)
    X, truth = mixed(0.2)
    told = row_origins(X, np.empty(0, np.float32), trusted())
    assert np.mean((told.model == 1) == truth) > 0.98
    assert not told.shifted


def test_p_values_and_bound_have_their_closed_forms():
    assert conformal_p(np.array([5, 2, -1]), np.array([0, 2, 3, 1])).tolist() == pytest.approx([0.2, 0.6, 1])
    rate = 1 - 0.05 ** (1 / 100)  # none of 100
    assert false_share(0, 100, 500, 1000) == pytest.approx(rate / (1 - rate))
    high = beta.ppf(0.95, 4, 97)
    assert false_share(3, 100, 500, 1000) == pytest.approx(high / (1 - high))
    assert false_share(10, 10, 5, 100) == 1


def test_half_of_the_dimensions_finds_a_second_model_again_and_no_outliers_of_one_model():
    X, truth = mixed(0.1)
    units = unit_rows(X)
    found = _sides(units, truth)
    assert found.same > 0.9
    assert found.slope < HELD_OUT_SLOPE
    assert np.mean((found.ratios(units) > 0).all(axis=1) == truth) > 0.99
    impure = truth | (np.arange(N) < 300)  # with rows of the trusted model's
    mixture = _sides(units, impure)
    assert mixture is None or mixture.same < SAME_ROWS
    one = unit_rows(mixed(0)[0])
    unlike = np.argsort(-ShortAxes.of(one).energy(one))[:150]
    outliers = _sides(one, np.isin(np.arange(N), unlike))
    assert outliers is None or outliers.slope > 2 * HELD_OUT_SLOPE


@pytest.mark.parametrize(
    ("slope", "with_trusted", "accepted"),
    [(0.24, False, True), (0.3, False, False), (0.33, True, True), (0.36, True, False)],
)
def test_parts_that_lie_far_apart_are_refused_where_they_share_axes(slope, with_trusted, accepted):
    X, truth = mixed(0.1)
    units = unit_rows(X)
    fit = _Fit(
        _Student.of(units[~truth]), _Student.of(units[truth]), cut=0.0, slope=slope, gap=30.0, cosine=0.0
    )
    assert (fit.sides(units, with_trusted) is not None) == accepted


@pytest.mark.parametrize(
    ("cosine", "gap", "like_topics"), [(0.5, 10.0, True), (0.5, 12.0, False), (0.0, 5.0, False)]
)
def test_parts_that_point_the_same_way_must_lie_far_apart(cosine, gap, like_topics):
    X, truth = mixed(0.1)
    models = [_Student.of(unit_rows(X[part])) for part in (~truth, truth)]
    fit = _Fit(*models, cut=0.0, slope=0.0, gap=gap, cosine=cosine)
    assert fit.like_topics == like_topics


def test_a_cut_needs_two_groups():
    rng = np.random.default_rng(0)
    low = rng.normal(10, 1, 300)
    assert 12 < _cut(np.r_[low, rng.normal(30, 1, 100)]) < 28
    assert _cut(low) == 0


def test_command_writes_the_model_of_each_row(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, truth = mixed(0.1)
    ids = [f"row {row}" for row in range(N)]
    save_space(LatentSpace(X, ids), tmp_path / "index.npz")
    for name, rows in (("right", trusted(400)), ("other", SECOND(40, 0, state=9))):
        save_space(LatentSpace(rows, [f"{name} {row}" for row in range(len(rows))]), tmp_path / f"{name}.npz")
    call = ["check", "index.npz", "--trusted", "right.npz", "--other", "other.npz", "--fdr", ".1"]
    assert main([*call, "-o", "rows.csv", "--json", "--junit", "gate.xml"]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert (facts["fdr"], facts["confirmed"], facts["by_trusted"]) == (0.1, True, True)
    table = pd.read_csv(tmp_path / "rows.csv").set_index("id")
    assert np.mean((table.model[ids] == "another model") == truth) > 0.98
    assert (table.model == "another model").sum() == facts["found"]
    assert table.p.max() <= 1
    assert "held-out trusted rows" in (tmp_path / "gate.xml").read_text(encoding="utf-8")


@pytest.mark.parametrize(("share", "one_model"), [(0.1, False), (0, True)])
def test_figure_shows_parts_beside_range_of_one_model(share, one_model):
    X, truth = mixed(share)
    found = checked(share)
    chart = evidence_of(LatentSpace(X, list(map(str, range(N)))), found)
    assert (chart.gauge.high >= chart.gauge.limit) == one_model
    assert (chart.histogram is None) == one_model
    if not one_model:
        (rest, part) = chart.points.lines
        assert part.hollow
        assert not rest.hollow
        assert abs(len(part) - np.count_nonzero(truth)) < 20
        low = chart.histogram.lines[0].y[1]
        assert low > 2 * chart.histogram.baselines[0][1]  # p-values of another model are small
    drawn = chart_exportable(chart)
    assert chart.gauge.in_words in drawn.interactive(LIGHT).layout.meta["alt"]
    assert drawn.publication(PAPER).axes[1].get_xlim()[1] > 1
    assert (drawn.table().label == "bar").sum() == 1


def test_the_map_names_the_groups_as_the_table_does_and_unknown_rows_are_counted():
    X, _ = mixed(0.1)
    found = check(X)
    told = found.told
    model = told.model.copy()
    model[:3] = UNKNOWN
    found = replace(found, origins=told._replace(model=model))
    names = [line.name for line in map_of(LatentSpace(X), found).lines]
    assert names == ["larger part", "smaller part", "unknown"]
    assert set(names) == set(found.rows(np.arange(N)).model)
    assert "3 may be of either model" in found.headline
    assert rows_to_embed(found).sum() == found.count + 3


def test_a_check_says_what_it_does():
    said = []
    CheckRows().run([LatentSpace(mixed(0.1)[0])], report=lambda *step: said.append(step))
    assert [step[0] for step in said] == [0, 1]
    assert "finding the model of each row" in said[1][2]


@pytest.mark.parametrize("wrong", ["ids", "model", "same"])
def test_a_repair_by_wrong_rows_is_warned_of(wrong):
    X, _ = mixed(0.2)
    space = LatentSpace(X)
    found = check(space)
    rows = np.flatnonzero(found.suspected_rows)
    right = FIRST(len(rows), 0)
    vectors = {"ids": right[::-1], "model": SECOND(len(rows), 0, state=5), "same": X[rows]}[wrong]
    repaired = repair(space, found, LatentSpace(vectors, space.ids[rows], name="again"))
    expected = {
        "ids": "no better than chance",
        "model": "looks like vectors of another model",
        "same": "has the vectors that the collection has",
    }
    assert expected[wrong] in repaired.warning
