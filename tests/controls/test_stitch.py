"""Stitching and retrieval without anything to find: the share of right answers is that of chance, whatever
the anchors."""

import numpy as np
import pytest

from relcore.spaces.space import LatentSpace
from relcore.stitch.stitching import StitchSpec, stitch_matrix
from relcore.stitch.try_it import RetrievalSpec, pair_up, retrieve
from tests.controls.spaces import unrelated

METHODS = (
    "relative",
    "whitened",
    "irp-pruned",
    "irp-ridge",
    "irp-whitened",
    "procrustes",
    "least-squares",
    "affine",
)
STATES = range(6)


def rows(k):
    return tuple(f"r{row}" for row in range(k))


def share_right(results, method, cells):
    """Share of right answers over all results and these (encoder, head) cells, and the number of these
    rows.
    """
    right = asked = 0
    for result in results:
        for cell in cells:
            right += np.sum(result.runs[0].answers[method][cell] == result.runs[0].truth)
        asked += len(result.runs[0].truth)
    return right / (asked * len(cells)), asked


@pytest.mark.parametrize(("n", "d", "k", "named"), [(240, 20, 80, False), (180, 160, 60, True)])
def test_random_labels_are_answered_as_often_as_chance(n, d, k, named):
    # Answers that are independent of the labels are right with p = 1/3. The four cells of a row are not
    # independent: the standard error is at most that of one of them.
    results = []
    for state in STATES:
        labels = np.random.default_rng([state, n]).permutation(np.arange(n) % 3).astype(str)
        if named:
            anchors = {"anchors": rows(k)}
        else:
            anchors = {"n_anchors": k}
        spec = StitchSpec(METHODS, random_states=(state,), **anchors)
        results.append(stitch_matrix(unrelated(n, d, state, labels=labels), spec))
    for method in METHODS:
        for cells in ([(0, 1), (1, 0)], [(0, 0), (1, 1)]):
            share, asked = share_right(results, method, cells)
            assert share == pytest.approx(1 / 3, abs=3.5 * np.sqrt(2 / 9 / asked)), (method, cells)


@pytest.mark.parametrize(
    "method", ["least-squares", "affine", "procrustes", "irp-ridge", "relative", "whitened"]
)
def test_noise_is_answered_by_chance_though_anchors_are_carried_over(method):
    # The encoder's rows are noise; the head's own space separates all four classes. With fewer anchors than
    # dimensions, the map takes each anchor exactly to its target row, where the head is right. If anchors were
    # scored, they would be a third of the test rows, and the share would be 1/3 + 2/3 · 1/4 = .5. They are
    # held out, so it is 1/4.
    results = []
    for state in STATES:
        rng = np.random.default_rng([state, 7])
        n = 240
        d = 100
        k = 80
        numbers = rng.permutation(np.arange(n) % 4)
        classes = 6 * rng.normal(size=(4, d))[numbers] / np.sqrt(d) * 4 + rng.normal(size=(n, d))
        spaces = [
            LatentSpace(vectors, rows(n), name=name, labels=numbers.astype(str))
            for name, vectors in (("noise", rng.normal(size=(n, d))), ("b", classes))
        ]
        spec = StitchSpec((method,), random_states=(state,), anchors=rows(k))
        results.append(stitch_matrix(spaces, spec))
    share, asked = share_right(results, method, [(0, 1)])
    # The head may answer one class more often than others, but rows of noise not by their class: still p =
    # 1/4.
    assert share == pytest.approx(0.25, abs=3.5 * np.sqrt(0.25 * 0.75 / asked))
    assert share_right(results, method, [(1, 1)])[0] > 0.9


def test_a_rare_class_of_random_labels_gains_nothing():
    # One class of 4 %: answers that are independent of the labels can at best be as good as always the other
    # class.
    for state in STATES:
        labels = np.where(np.random.default_rng([state, 9]).permutation(250) < 10, "rare", "usual")
        result = stitch_matrix(
            unrelated(250, 30, state, labels=labels),
            StitchSpec(METHODS, random_states=(state,), n_anchors=80),
        )
        error = np.sqrt(0.04 * 0.96 / result.n_test)
        for method in METHODS:
            assert np.nanmax(result.matrix(method)[0]) <= result.chance() + 3.5 * error


@pytest.mark.parametrize(
    "case", ["all labels", "half of the labels", "a class of one row", "unequal classes"]
)
def test_measures_of_random_labels_are_those_of_permuted_ones(case):
    # For five equal classes, answering always with the most frequent class has a weighted F1 of .09, but
    # random answers have .2. Its level is therefore that of the same answers for permuted labels, whose mean
    # is known exactly.
    methods = ("relative", "procrustes")
    differences = {}
    for state in range(20):
        rng = np.random.default_rng([state, 11])
        labels = rng.permutation(np.arange(150) % 5).astype(str).astype(object)
        if case == "unequal classes":
            labels = np.where(np.isin(labels, ["0", "1", "2"]), "0", labels).astype(object)
        if case == "half of the labels":
            labels[rng.permutation(150)[:75]] = ""
        if case == "a class of one row":
            labels[rng.integers(150)] = "9"
        order = tuple(sorted(set(labels) - {""}))
        spec = StitchSpec(methods, random_states=(state,), n_anchors=20, order=order)
        result = stitch_matrix(unrelated(150, 10, state, labels=labels), spec)
        assert ("'9'" in result.untested) == (case == "a class of one row")
        for row in result.summary().itertuples():
            differences.setdefault((row.method, row.metric), []).append(row.stitched - row.permuted)
    for which, found in differences.items():
        error = np.std(found, ddof=1) / np.sqrt(len(found))  # over draws of spaces, labels and test rows
        assert np.mean(found) == pytest.approx(0, abs=3.5 * error), which


@pytest.mark.parametrize(("n", "d", "k"), [pytest.param(200, 30, 66, marks=pytest.mark.slow), (180, 150, 60)])
def test_no_partner_is_found_among_unrelated_rows(n, d, k):
    # Given the anchors, the other rows of one space can be permuted at will: each of the n − k rows finds its
    # partner with probability 1 / (n − k), so over 8 draws about 8 do (Poisson). 20 or more have probability
    # 2e-4.
    methods = ("relative", "whitened", "irp-pruned", "irp-whitened", "procrustes")
    found = dict.fromkeys(methods, 0.0)
    above = 0
    for state in range(8):
        spec = RetrievalSpec(methods, n_anchors=k, k=5, random_state=state)
        result = retrieve(pair_up(*unrelated(n, d, state)), spec)
        assert len(result.ids) == n - k
        for method, scores in result.scores.items():
            found[method] += scores["first"] * (n - k)
            above += sum(float(scores[metric]) > scores[metric].null.high for metric in ("mrr", "jaccard"))
    assert max(found.values()) < 20, found
    # Above the band with probability .025 to .05 (the distribution of MRR leans to the right): 80 scores,
    # whose methods share their rows; 16 of them would be a fifth.
    assert above < 16
