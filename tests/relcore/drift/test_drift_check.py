"""The task of drift, its thresholds from files, and what its reports say."""

from __future__ import annotations

import tomllib

import numpy as np
import pytest
from scipy.stats import ortho_group

from relcore import LatentSpace
from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.drift.check import (
    QUANTITIES,
    BrokenRows,
    DriftCheck,
    EverythingNew,
    NewQueries,
    Thresholds,
    as_toml,
    cautions,
    default_file,
    read_thresholds,
)
from relcore.drift.measures import EVERYTHING_NEW, JITTER, NEW_QUERIES, ROWS, with_jitter

N, D = 400, 12


def version(vectors, name, labels=None, ids=None):
    return LatentSpace(
        vectors, ids or [f"row {number}" for number in range(len(vectors))], name=name, labels=labels
    )


@pytest.fixture(scope="module")
def vectors():
    rng = np.random.default_rng(0)
    return 2 * rng.normal(size=(8, D))[np.arange(N) % 8] + rng.normal(size=(N, D)) + 1


@pytest.fixture(scope="module")
def labels():
    return [f"class {number % 8}" for number in range(N)]


@pytest.fixture(scope="module")
def old(vectors, labels):
    return version(vectors, "v1", labels)


def alarmed(drift):
    verdict = drift.judged(Thresholds())
    return {situation: verdict.alarmed([situation]) for situation in (EVERYTHING_NEW, NEW_QUERIES)}


def test_a_class_that_moved_is_named(old, vectors, labels):
    moved = vectors + 2 * (np.array(labels) == "class 3")[:, None] * np.random.default_rng(2).normal(size=D)
    drift = DriftCheck().run((old, version(moved, "v2")))
    verdict = drift.judged(Thresholds())
    for situation in (EVERYTHING_NEW, NEW_QUERIES):
        by_class = {
            one.group: one.value for one in drift.measures if one.group and one.situation == situation
        }
        assert max(by_class, key=by_class.get) == "class 3"
        assert any(check.measure.group == "class 3" for check in verdict.alarms(situation))


def test_duplicated_rows_are_no_drift(vectors):
    """Equal rows are in no order: a search may name any of them."""
    thrice = np.repeat(vectors[:100], 3, axis=0)
    old, new = version(thrice, "v1"), version(thrice.astype(np.float16).astype(np.float32), "v2")
    drift = DriftCheck(k=1).run((old, new))
    assert drift.of(EVERYTHING_NEW, "churn").value < 0.01
    assert not any(alarmed(drift).values())


def test_rows_of_one_version_only(old, vectors):
    fewer = version(vectors[:300], "v2")
    lacks, more = DriftCheck().run((old, fewer)), DriftCheck().run((fewer, old))
    assert lacks.of(ROWS, "missing").value == 0.25
    assert all(alarmed(lacks).values())
    assert (more.n, more.only_old, more.only_new) == (300, 0, 100)
    assert not any(alarmed(more).values())
    assert not any(alarmed(DriftCheck(shared=True).run((old, fewer))).values())


def rows_of(share, change):

    def broken(X, labels, rng):
        some = rng.random(N) < share
        return np.where(some[:, None], change(X, rng), X)

    return broken


# What is done to the new version, and the measure that has to alarm in both situations.
BROKEN = {
    "some rows zero": ("zero", rows_of(0.05, lambda X, rng: 0 * X)),
    "all rows constant": ("repeated", lambda X, labels, rng: np.tile(X[:1], (N, 1))),
    "rows repeat the next": ("repeated", rows_of(0.1, lambda X, rng: np.roll(X, -1, axis=0))),
    "rows missing": ("missing", lambda X, labels, rng: X[:380]),
    "dimensions truncated": ("constant", lambda X, labels, rng: X * (np.arange(D) < D // 2)),
    "one class zero": ("zero", lambda X, labels, rng: X * (labels != "class 3")[:, None]),
    "one class missing": ("missing", lambda X, labels, rng: X[labels != "class 3"]),
    "rows shuffled": ("churn", lambda X, labels, rng: rng.permutation(X)),
    "some rows times 1,000": ("rho", rows_of(0.1, lambda X, rng: 1000 * X)),
    "some rows noise": ("churn", rows_of(0.1, lambda X, rng: 3 * rng.normal(size=X.shape))),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_rows_are_an_alarm(old, vectors, labels, name):
    quantity, change = BROKEN[name]
    named = np.array(labels)
    broken = change(vectors, named, np.random.default_rng(4))
    ids = np.array([f"row {number}" for number in range(N)])
    kept = named != "class 3" if name == "one class missing" else np.arange(N) < len(broken)
    drift = DriftCheck().run((old, version(broken, "v2", ids=list(ids[kept]))))
    verdict = drift.judged(Thresholds())
    assert verdict.alarmed([EVERYTHING_NEW])
    assert quantity in {check.measure.quantity for check in verdict.alarms(EVERYTHING_NEW)}
    if quantity in vars(BrokenRows()):
        assert verdict.alarmed([NEW_QUERIES])
        told = (
            f"has more {QUANTITIES[quantity].title}"
            if quantity == "constant"
            else "breaks rows that were whole"
        )
        assert drift.headline(verdict).startswith(f"Drift: 'v2' {told}")
        assert verdict.alarms(NEW_QUERIES)[0].measure.quantity == quantity
    else:
        assert drift.headline(verdict)[:5] == "Drift" or drift.unrelated
    if name.startswith("one class"):
        assert drift.of(ROWS, quantity, "class 3").value == 1


def some_rows(change):
    def broken(X, some):
        X = X.copy()
        X[some] = change(X, some)
        return X

    return broken


ONE_ROW = {
    "zero": some_rows(lambda X, some: 0),
    "repeated": some_rows(lambda X, some: X[some - 1]),
    "moved": some_rows(lambda X, some: -X[some]),
    "longer": some_rows(lambda X, some: 1000 * X[some]),
}


@pytest.mark.parametrize("turn", [False, True], ids=["same axes", "rotated"])
@pytest.mark.parametrize("kind", [*ONE_ROW, "missing"])
def test_one_row_that_was_whole_and_is_broken_is_alarm_with_its_id(vectors, kind, turn):
    """Three zero, one repeated and three missing of 2,000 rows were none, and "can replace" was the headline."""
    some, noise = np.array([7]), np.random.default_rng(6)
    new = with_jitter(vectors.astype(np.float32), JITTER, noise)
    new = (new @ ortho_group.rvs(D, random_state=1)).astype(np.float32) if turn else new
    kept = np.arange(N) != (7 if kind == "missing" else -1)
    new = ONE_ROW.get(kind, lambda X, some: X)(new, some)
    ids = np.array([f"row {number}" for number in range(N)])
    drift = DriftCheck(n_queries=20).run(
        (version(vectors, "v1"), version(new[kept], "v2", ids=list(ids[kept])))
    )
    verdict = drift.judged(Thresholds())
    assert verdict.alarmed([]), "also of a planned change of model"
    assert "breaks rows that were whole in 'v1': 1 " in drift.headline(verdict)
    assert "'row 7'" in drift.headline(verdict, planned=True)
    assert {"longer": "moved"}.get(kind, kind) in {one.quantity for one in drift.broken if one.n}


def test_rows_that_were_broken_before_are_named_and_no_alarm(vectors):
    old = np.where(np.isin(np.arange(N), (3, 5))[:, None], 0, vectors)
    old[9] = old[8]
    pair = (
        version(old, "v1"),
        version(with_jitter(old.astype(np.float32), JITTER, np.random.default_rng(7)), "v2"),
    )
    drift = DriftCheck().run(pair)
    verdict = drift.judged(Thresholds())
    assert not verdict.alarmed()
    assert "Broken in the old version already: 2 zero rows ('row 3', 'row 5')." in cautions(drift, verdict)


def test_another_model_that_is_planned_alarms_for_broken_rows_alone(vectors):
    """Two alarms, of other neighbours and other queries, say nothing that was not planned."""
    other = np.tanh(vectors @ np.random.default_rng(8).normal(size=(D, 2 * D)))
    drift = DriftCheck().run((version(vectors, "v1"), version(other, "v2")))
    verdict = drift.judged(Thresholds())
    assert verdict.alarmed()
    assert not verdict.alarmed([])
    assert drift.headline(verdict, planned=True).startswith("No broken rows")
    assert any("say that this is planned" in told for told in cautions(drift, verdict))
    other[4] = 0
    drift = DriftCheck().run((version(vectors, "v1"), version(other, "v2")))
    assert drift.judged(Thresholds()).alarmed([])


def test_rows_that_numeric_noise_alone_tells_apart_are_no_repeats(vectors):
    """The old model ran in batches, so that equal texts have almost equal vectors; or the new one did."""
    twice = np.repeat(vectors[:100], 2, axis=0).astype(np.float32)
    noisy = with_jitter(twice, JITTER, np.random.default_rng(5))
    for pair in ((noisy, twice), (twice, noisy)):
        drift = DriftCheck().run([version(one, name) for one, name in zip(pair, "ab", strict=True)])
        assert drift.of(ROWS, "repeated").value == 0
        assert not any(alarmed(drift).values())


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (np.eye(20), version(np.eye(20), "b", ids=[f"x{number}" for number in range(20)]), "share no ids"),
        (np.ones((20, 20)), version(np.eye(20), "b"), "the same vector in every row of the old version"),
    ],
)
def test_bad_input_is_refused_with_the_remedy(first, second, told):
    with pytest.raises(SpaceError, match=told):
        DriftCheck().run((version(first, "a"), second))


ROWS_TOLD, WIDTH_TOLD = 300, 8


@pytest.fixture(scope="module")
def gaussian():
    return np.random.default_rng(0).normal(size=(ROWS_TOLD, WIDTH_TOLD))


def compared(old, new, labels=None):
    ids = [f"r{row}" for row in range(max(len(old), len(new)))]
    pair = [
        LatentSpace(one, ids[: len(one)], name=name, labels=labels)
        for name, one in (("v1", old), ("v2", new))
    ]
    drift = DriftCheck(shared=True).run(pair)
    return drift, drift.judged(Thresholds())


def headline_of(old, new):
    drift, verdict = compared(old, new)
    return drift.headline(verdict)


def test_each_combination_of_alarms_has_its_headline(gaussian):
    turn, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(WIDTH_TOLD, WIDTH_TOLD)))
    noise = np.random.default_rng(2).normal(size=(ROWS_TOLD, WIDTH_TOLD))
    told_of = {
        name: headline_of(gaussian, new) for name, new in (("same", gaussian), ("turned", gaussian @ turn))
    }
    assert told_of["same"].startswith("No drift beyond the thresholds")
    assert told_of["turned"].startswith("'v2' can replace 'v1' once all rows are embedded again")
    assert headline_of(gaussian, gaussian + noise).startswith(
        "Drift: 'v2' cannot replace 'v1'. 84 % of the 10 nearest neighbours changed, and"
    )
    assert "paired at random" in headline_of(gaussian, 9 * noise)
    drift, verdict = compared(gaussian, gaussian + 0.02 * noise)
    assert not verdict.alarmed()
    strict = drift.judged(Thresholds(everything_new=EverythingNew(churn=0.0)))
    assert drift.headline(strict).endswith("although its queries still rank the old vectors as before.")


def test_bundled_file_holds_defaults_with_word_on_each():
    assert records.to_json(Thresholds()) == tomllib.loads(default_file())


@pytest.mark.parametrize(
    "made", [Thresholds(), Thresholds(EverythingNew(rho=1e-7), NewQueries(lost=1, churn=0.3))]
)
def test_thresholds_are_written_as_they_are_read(tmp_path, made):
    (tmp_path / "t.toml").write_text(as_toml(made), encoding="utf-8")
    assert read_thresholds(tmp_path / "t.toml") == made


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("t.toml", "[everything_new]\nchrun = 0.3", "expected settings among 'churn', 'rho'.*got 'chrun'"),
        ("t.toml", "[everything_new]\nchurn = 1.5", "churn: expected a share from 0 to 1, got 1.5"),
        ("t.toml", "a = " + "[" * 20_000, "invalid TOML"),
        ("t.toml", "# " + "x" * 70_000, "at most 64 KB"),
    ],
)
def test_files_that_are_refused(tmp_path, name, text, told):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(SpaceError, match=told):
        read_thresholds(tmp_path / name)
