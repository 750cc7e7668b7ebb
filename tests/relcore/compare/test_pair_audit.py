"""PairAudit: suspects by id, scores with and without them, results that survive the store, and the
figure's recipe.
"""

import numpy as np
import pytest

from relcore.audit.anchor_audit import ALL, KEPT, AuditOutcome, PairAudit
from relcore.runs.store import Store

WRONG = ("r3", "r11", "r20", "r25")


@pytest.fixture
def spaces(make_space, rng):
    """200 rows and their noisy rotation; in the second, the ids of four rows are exchanged."""
    X = rng.normal(size=(200, 16))
    turn, _ = np.linalg.qr(rng.normal(size=(16, 16)))
    Y = X @ turn + 0.1 * rng.normal(size=X.shape)
    rows = [int(one[1:]) for one in WRONG]
    Y[rows] = Y[np.roll(rows, 1)]
    return make_space(X, name="a"), make_space(Y, name="b")


ANCHORS = tuple(f"r{row}" for row in range(40))


def test_wrong_ids_are_suspect_and_removing_them_helps_on_held_out_rows(spaces, tmp_path):
    task = PairAudit(ANCHORS)
    outcome = task.compute(Store(tmp_path), spaces, unsaved=pytest.fail)
    assert {outcome.anchors[position] for position in outcome.suspects} == set(WRONG)
    assert outcome.headline == "4 of 40 pairs are suspect. About 4 of 40 pairs are wrong (95 %: 2 to 5)."
    assert outcome.scores[ALL]["mrr"].n == 160
    assert outcome.scores[KEPT]["cosine"] > outcome.scores[ALL]["cosine"]
    change = outcome.differences["cosine"]
    assert change.low > 0
    assert change.value == pytest.approx(
        outcome.scores[KEPT]["cosine"] - outcome.scores[ALL]["cosine"], abs=1e-5
    )
    table = outcome.table()
    assert table["anchor"].head(4).isin(WRONG).all()
    assert table["suspect"].tolist() == [True] * 4 + [False] * 36
    assert table["agreement"].is_monotonic_increasing


def test_pairs_of_different_ids_are_audited_without_shared_ids(spaces, make_space):
    source, target = spaces
    renamed = make_space(target.vectors, [f"q{row}" for row in range(200)], name="b")
    outcome = PairAudit(ANCHORS, tuple(f"q{one[1:]}" for one in ANCHORS)).run((source, renamed))
    assert {outcome.anchors[position] for position in outcome.suspects} == set(WRONG)
    assert outcome.scores == {}


def outcome_of(n_suspects, n_wrong, interval, k=200):
    ids = tuple(f"r{row}" for row in range(k))
    agreement = np.linspace(0, 1, k)
    told = {"n_wrong": n_wrong, "wrong_interval": interval, "decided": True}
    return AuditOutcome(ids, ids, agreement, np.arange(n_suspects), np.linspace(-0.5, 0.5, 201), **told)


def test_none_is_said_only_where_none_can_be_wrong():
    """Before, "None of 200 pairs is suspect" while `n_wrong` was 10 to 11, and 10 were wrong."""
    assert outcome_of(0, 0.0, (0, 0)).headline == "None of 200 pairs is suspect."
    assert outcome_of(0, 0.4, (0, 2)).headline.startswith("At most 2 of 200 pairs may be wrong (95 %)")
    found = outcome_of(0, 11.1, (3, 15))
    assert found.headline.startswith(
        "About 11 of 200 pairs are wrong (95 %: 3 to 15), but every list of suspects"
    )
    assert found.doubtful()["anchor"].tolist() == [f"r{row}" for row in range(15)]
    assert not found.report().notes
    assert len(outcome_of(4, 11.1, (3, 15)).doubtful()) == 4


def test_unrelated_spaces_have_no_suspects(make_space, rng):
    pair = [make_space(rng.normal(size=(200, 16)), name=name) for name in "ab"]
    outcome = PairAudit(ANCHORS).run(pair)
    assert not outcome.decided
    assert not len(outcome.suspects)
    assert outcome.headline.startswith("Cannot tell: ")
