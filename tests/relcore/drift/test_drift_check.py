"""The check of drift, its thresholds from files, and what its reports say."""

import re

import numpy as np
import pytest
from scipy.stats import ortho_group

from relcore import LatentSpace
from relcore.base.errors import SpaceError
from relcore.base.rows import unit_rows
from relcore.drift.broken_rows import broken_table
from relcore.drift.check import DriftCheck, cautions
from relcore.drift.measures import EVERYTHING_NEW, JITTER, NEW_QUERIES, ROWS, with_jitter
from relcore.drift.thresholds import (
    BrokenRows,
    EverythingNew,
    NewQueries,
    Thresholds,
    as_toml,
    read_thresholds,
)

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
    "rows times 1,000": ("moved", lambda X, rng: np.where(rng.random((N, 1)) < 0.1, 1000 * X, X)),
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
    assert drift.headline(verdict).startswith("Do not release") or drift.unrelated
    if quantity in vars(BrokenRows()):
        assert verdict.alarms(NEW_QUERIES)[0].measure.quantity == quantity
        told = "has broken rows that were fine"
        if quantity == "constant":
            told = "has more constant dim"
        assert drift.headline(verdict).startswith(f"Do not release 'v2': it {told}")
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
    assert "has broken rows that were fine in 'v1': 1 " in drift.headline(verdict)
    assert "'row 7'" in drift.headline(verdict, planned=True)
    quantity = {"longer": "moved"}.get(kind, kind)
    assert quantity in {one.quantity for one in drift.broken if one.n}
    table = broken_table(version(vectors, "v1"), version(new, "v2", rows=rows), DriftCheck().jitter)
    assert ("row 7", quantity) in set(zip(table.id, table.broken, strict=True))
    assert len(table) == sum(one.n for one in drift.broken)


SPREAD = np.sqrt(2**2 + 1)  # of each number of the fixture's rows: 8 means of variance 4, and rows about them


@pytest.mark.parametrize("turn", [False, True], ids=["same axes", "rotated"])
@pytest.mark.parametrize("kind", ["twice as long", "half as long", "noise of .3"])
def test_the_smallest_promised_changes_of_a_row_are_found(vectors, kind, turn):
    """A row of double length was found in 0 of 36 draws, noise of .3 of the spread on sentences in 0 of 12."""
    rng = np.random.default_rng(6)
    new = with_jitter(vectors, JITTER, rng)
    if kind == "noise of .3":
        new[7:10] += 0.3 * SPREAD * rng.normal(size=(3, D)).astype(np.float32)
    elif kind == "twice as long":
        new[7] *= 2
    else:
        new[7] /= 2
    if turn:
        new = (new @ ortho_group.rvs(D, random_state=1)).astype(np.float32)
    drift, verdict = compared(vectors, new)
    assert verdict.alarmed([])
    assert "'row 7'" in drift.headline(verdict)
    assert drift.of(ROWS, "moved").value <= 3 / N, "no other row is named"


@pytest.mark.parametrize("change", ["normalised", "normalised before", "other lengths"])
def test_rows_that_changed_only_their_length_are_rescaled(vectors, change):
    """Neighbours about the mean change if rows are normalised; those by cosine do not."""
    rng = np.random.default_rng(3)
    old = vectors
    new = unit_rows(vectors)
    if change == "normalised before":
        old, new = new, old
    elif change == "other lengths":
        new = (vectors * np.exp(0.3 * rng.normal(size=(N, 1)))).astype(np.float32)
    drift, verdict = compared(with_jitter(old, JITTER, rng), with_jitter(new, JITTER, rng))
    assert not verdict.alarmed()
    assert drift.n_rescaled > 0.9 * N
    assert "rescaled" in drift.headline(verdict)
    assert any("inner product" in told for told in cautions(drift, verdict))
    turned = (new @ ortho_group.rvs(D, random_state=1)).astype(np.float32)
    drift, verdict = compared(old, turned)
    assert [verdict.alarmed([one]) for one in (EVERYTHING_NEW, NEW_QUERIES)] == [False, True]


def test_other_lengths_do_not_hide_another_change(vectors):
    new = unit_rows(vectors) + 0.05 * np.random.default_rng(3).normal(size=(N, D)).astype(np.float32)
    drift, verdict = compared(vectors, new)
    assert drift.n_rescaled
    assert verdict.alarmed([EVERYTHING_NEW])


def test_a_shift_changes_lengths_and_is_still_a_shift(vectors):
    drift, verdict = compared(vectors, vectors + np.float32(1))
    assert drift.n_rescaled == 0
    assert not verdict.alarmed([EVERYTHING_NEW])


def test_two_exchanged_dimensions_are_a_rotation_and_break_no_row():
    """They move the few rows far that are large there, and most rows hardly."""
    X = np.random.default_rng(9).standard_t(2, size=(N, 40)).astype(np.float32)
    new = X.copy()
    new[:, [3, 5]] = X[:, [5, 3]]
    _, verdict = compared(X, new)
    assert not verdict.alarmed([EVERYTHING_NEW])
    new[7] = -new[7]
    drift, verdict = compared(X, new)
    assert "1 row that no longer fits its place ('row 7')" in drift.headline(verdict)


def test_versions_of_other_widths_are_not_said_to_rank_vectors(vectors):
    """The card of the same report says that they cannot be compared."""
    wider = np.pad(vectors, ((0, 0), (0, 3))).astype(np.float32)
    drift, verdict = compared(vectors, wider)
    assert drift.headline(verdict) == (
        "Release 'v2' only after all rows are embedded again; until then, the new queries cannot be compared"
        " with the vectors of 'v1'."
    )
    noise = np.random.default_rng(8).normal(size=wider.shape)
    drift, verdict = compared(vectors, wider + noise.astype(np.float32))
    assert drift.headline(verdict).startswith("Do not release 'v2': it cannot replace 'v1'.")
    assert "rank" not in drift.headline(verdict)
    assert "cannot be compared" in drift.headline(verdict)


def test_a_planned_change_of_rows_that_differ_does_not_say_that_all_are_there(vectors):
    drift, verdict = compared(vectors, vectors[5:], rows=range(5, N), shared=True)
    assert drift.headline(verdict, planned=True).startswith(
        "No broken rows: 'v1' and 'v2' have 395 rows in common."
    )


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
        (X, "You can release 'v2'"),
        (X @ turn, "Release 'v2' only after all rows are embedded again"),
        (X + noise, "Do not release 'v2': it cannot replace 'v1'. 8"),
        (9 * noise, "'v2' and 'v1' have no more neighbours in common"),
    ):
        drift, verdict = compared(X, new)
        assert drift.headline(verdict).startswith(told)
    drift, verdict = compared(X, X + 0.02 * noise)
    assert not verdict.alarmed()
    strict = drift.judged(Thresholds(everything_new=EverythingNew(churn=0.0)))
    assert drift.headline(strict).endswith("although the new queries rank the old vectors as before.")


def test_the_printed_report_names_each_quantity_by_its_words(vectors):
    drift, _ = compared(vectors, vectors + 1, LABELS)
    text = drift.report().text()
    assert re.search(r"All embedded again +changed shape +all rows", text)
    assert not re.search(r"\bchurn\b|ρ", text)


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


def test_a_notebook_shows_the_report_and_a_console_one_line(vectors):
    drift, verdict = compared(vectors, -vectors, LABELS)
    assert drift.headline(verdict).replace("'", "&#x27;") in drift._repr_html_()
    assert "alarm" in drift._repr_html_()
    assert repr(drift).startswith("<Drift 'v1' → 'v2': churn .000 (k = 10, n = 400; chance .975), ρ .000")
    assert len(repr(drift)) < 120
