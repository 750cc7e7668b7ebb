"""The check of drift, its thresholds from files, and what its reports say."""

import numpy as np
import pytest
from scipy.stats import ortho_group

from relcore import LatentSpace
from relcore.base.errors import SpaceError
from relcore.drift.check import (
    BrokenRows,
    DriftCheck,
    EverythingNew,
    NewQueries,
    Thresholds,
    as_toml,
    cautions,
    read_thresholds,
)
from relcore.drift.measures import EVERYTHING_NEW, JITTER, NEW_QUERIES, ROWS, with_jitter

N = 400
D = 12
LABELS = np.array([f"class {number % 8}" for number in range(N)])
MOVED = LABELS == "class 3"


def version(vectors, name, labels=None, rows=None):
    if rows is None:
        rows = range(len(vectors))
    return LatentSpace(vectors, [f"row {number}" for number in rows], name=name, labels=labels)


@pytest.fixture(scope="module")
def vectors():
    rng = np.random.default_rng(0)
    return (2 * rng.normal(size=(8, D))[np.arange(N) % 8] + rng.normal(size=(N, D)) + 1).astype(np.float32)


def compared(old, new, labels=None, rows=None, **settings):
    drift = DriftCheck(**settings).run((version(old, "v1", labels), version(new, "v2", rows=rows)))
    return drift, drift.judged(Thresholds())


def test_a_class_that_moved_is_named(vectors):
    moved = vectors + 2 * MOVED[:, None] * np.random.default_rng(2).normal(size=D)
    drift, verdict = compared(vectors, moved, LABELS)
    for situation in (EVERYTHING_NEW, NEW_QUERIES):
        by_class = {
            one.group: one.value for one in drift.measures if one.group and one.situation == situation
        }
        assert max(by_class, key=by_class.get) == "class 3"
        assert any(check.measure.group == "class 3" for check in verdict.alarms(situation))


def test_repeated_rows_and_rows_that_noise_alone_tells_apart_are_no_drift(vectors):
    """Equal rows are in no order, so a search may name any of them. A model that ran in batches gives equal
    texts almost equal vectors.
    """
    thrice = np.repeat(vectors[:100], 3, axis=0)
    drift, verdict = compared(thrice, thrice.astype(np.float16).astype(np.float32), k=1)
    assert drift.of(EVERYTHING_NEW, "churn").value < 0.01
    assert not verdict.alarmed()
    noisy = with_jitter(thrice, JITTER, np.random.default_rng(5))
    for pair in ((noisy, thrice), (thrice, noisy)):
        drift, verdict = compared(*pair)
        assert drift.of(ROWS, "repeated").value == 0
        assert not verdict.alarmed()


# The new version, and the measure that must alarm in both situations.
BROKEN = {
    "all rows constant": ("repeated", lambda X, rng: np.tile(X[:1], (N, 1))),
    "dimensions truncated": ("constant", lambda X, rng: X * (np.arange(D) < D // 2)),
    "one class zero": ("zero", lambda X, rng: X * ~MOVED[:, None]),
    "one class missing": ("missing", lambda X, rng: X[~MOVED]),
    "rows shuffled": ("churn", lambda X, rng: rng.permutation(X)),
    "rows times 1,000": ("rho", lambda X, rng: np.where(rng.random((N, 1)) < 0.1, 1000 * X, X)),
    "rows noise": (
        "churn",
        lambda X, rng: np.where(rng.random((N, 1)) < 0.1, 3 * rng.normal(size=X.shape), X),
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_rows_are_an_alarm(vectors, name):
    quantity, change = BROKEN[name]
    rows = None
    if name == "one class missing":
        rows = np.flatnonzero(~MOVED)
    drift, verdict = compared(vectors, change(vectors, np.random.default_rng(4)), LABELS, rows)
    assert quantity in {check.measure.quantity for check in verdict.alarms(EVERYTHING_NEW)}
    assert drift.headline(verdict)[:5] == "Drift" or drift.unrelated
    if quantity in vars(BrokenRows()):
        assert verdict.alarms(NEW_QUERIES)[0].measure.quantity == quantity
        told = "breaks rows that were whole"
        if quantity == "constant":
            told = "has more constant dim"
        assert drift.headline(verdict).startswith(f"Drift: 'v2' {told}")
    if name.startswith("one class"):
        assert drift.of(ROWS, quantity, "class 3").value == 1


ONE_ROW = {
    "zero": lambda X: 0,
    "repeated": lambda X: X[6],
    "moved": lambda X: -X[7],
    "longer": lambda X: 1000 * X[7],
}


@pytest.mark.parametrize("turn", [False, True], ids=["same axes", "rotated"])
@pytest.mark.parametrize("kind", [*ONE_ROW, "missing"])
def test_one_row_that_was_whole_and_is_broken_is_alarm_with_its_id(vectors, kind, turn):
    """Before, three zero, one repeated and three missing of 2,000 rows were no alarm."""
    new = with_jitter(vectors, JITTER, np.random.default_rng(6))
    if turn:
        new = (new @ ortho_group.rvs(D, random_state=1)).astype(np.float32)
    rows = np.arange(N)
    if kind == "missing":
        rows = np.delete(rows, 7)
        new = new[rows]
    else:
        new[7] = ONE_ROW[kind](new)
    drift, verdict = compared(vectors, new, rows=rows, n_queries=20)
    assert verdict.alarmed([]), "also if another model is planned"
    assert "breaks rows that were whole in 'v1': 1 " in drift.headline(verdict)
    assert "'row 7'" in drift.headline(verdict, planned=True)
    assert {"longer": "moved"}.get(kind, kind) in {one.quantity for one in drift.broken if one.n}


def test_rows_that_were_broken_before_are_named_and_no_alarm(vectors):
    old = vectors.copy()
    old[:, :8] = 1
    old[[3, 5]] = 0
    old[9] = old[8]
    new = with_jitter(old, JITTER, np.random.default_rng(7))
    drift, verdict = compared(old, np.where(old == 1, old, new))
    assert not verdict.alarmed()
    assert "Broken in the old version already: 2 zero rows ('row 3', 'row 5')." in cautions(drift, verdict)


def test_another_model_that_is_planned_alarms_for_broken_rows_alone(vectors):
    other = np.tanh(vectors @ np.random.default_rng(8).normal(size=(D, 2 * D)))
    drift, verdict = compared(vectors, other)
    assert verdict.alarmed()
    assert not verdict.alarmed([])
    assert drift.headline(verdict, planned=True).startswith("No broken rows")
    assert any("choose that this is planned" in told for told in cautions(drift, verdict))
    other[4] = 0
    assert compared(vectors, other)[1].alarmed([])


@pytest.mark.parametrize(
    ("first", "rows", "told"),
    [
        (np.eye(20), range(20, 40), "share no ids"),
        (np.ones((20, 20)), None, "the same vector in every row of the old version"),
    ],
)
def test_bad_input_is_refused_with_the_remedy(first, rows, told):
    with pytest.raises(SpaceError, match=told):
        compared(first, np.eye(20), rows=rows)


def test_each_combination_of_alarms_has_its_headline():
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(2, 300, 8))
    turn = ortho_group.rvs(8, random_state=1)
    for new, told in (
        (X, "No drift beyond the thresholds"),
        (X @ turn, "'v2' can replace 'v1' once all rows are embedded again"),
        (X + noise, "Drift: 'v2' cannot replace 'v1'. 8"),
        (9 * noise, "'v2' and 'v1' have no more neighbours in common"),
    ):
        drift, verdict = compared(X, new)
        assert drift.headline(verdict).startswith(told)
    drift, verdict = compared(X, X + 0.02 * noise)
    assert not verdict.alarmed()
    strict = drift.judged(Thresholds(everything_new=EverythingNew(churn=0.0)))
    assert drift.headline(strict).endswith("although the new queries rank the old vectors as before.")


def test_thresholds_are_written_as_they_are_read(tmp_path):
    made = Thresholds(EverythingNew(rho=1e-7), NewQueries(lost=1, churn=0.3))
    (tmp_path / "t.toml").write_text(as_toml(made), encoding="utf-8")
    assert read_thresholds(tmp_path / "t.toml") == made


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[everything_new]\nchrun = 0.3", "expected settings among 'churn', 'rho'.*got 'chrun'"),
        ("[everything_new]\nchurn = 1.5", "churn: expected a share from 0 to 1, got 1.5"),
        ("a = " + "[" * 20_000, "invalid TOML"),
        ("# " + "x" * 70_000, "at most 64 KB"),
    ],
)
def test_files_that_are_refused(tmp_path, text, told):
    (tmp_path / "t.toml").write_text(text, encoding="utf-8")
    with pytest.raises(SpaceError, match=told):
        read_thresholds(tmp_path / "t.toml")
