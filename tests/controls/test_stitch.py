"""Stitching where there is nothing to find: heads answer as often as chance, whatever the anchors are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from relcore.spaces.space import LatentSpace
from relcore.stitch.stitching import StitchSpec, stitch_matrix

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
# Rows, widths, anchors: few rows with a third of them anchors, and widths near the number of rows.
SHAPES = [(240, 20, 80), (180, 160, 60)]


def made(vectors, labels, name):
    return LatentSpace(vectors, [f"r{row}" for row in range(len(vectors))], name=name, labels=labels)


def share_right(results, method, cells):
    """Share of right answers over all results and these (encoder, head) cells, and how many rows were
    asked about.
    """
    right = asked = 0
    for result in results:
        for cell in cells:
            right += np.sum(result.runs[0].answers[method][cell] == result.runs[0].truth)
        asked += len(result.runs[0].truth)
    return right / (asked * len(cells)), asked


@pytest.mark.parametrize(("n", "d", "k", "named"), [(*SHAPES[0], False), (*SHAPES[1], True)])
def test_random_labels_are_answered_as_often_as_chance(n, d, k, named):
    # Answers that know nothing of the labels are right with p = 1/3. The four cells of a row are not
    # independent: the standard error is at most that of one of them.
    results = []
    for state in STATES:
        rng = np.random.default_rng([state, n])
        labels = rng.permutation(np.arange(n) % 3).astype(str)
        spaces = [made(rng.normal(size=(n, d)), labels, name) for name in "ab"]
        spec = StitchSpec(METHODS, random_states=(state,), n_anchors=k)
        spec = replace(spec, anchors=tuple(f"r{row}" for row in range(k))) if named else spec
        results.append(stitch_matrix(spaces, spec))
    for method in METHODS:
        for cells in ([(0, 1), (1, 0)], [(0, 0), (1, 1)]):
            share, asked = share_right(results, method, cells)
            assert share == pytest.approx(1 / 3, abs=3.5 * np.sqrt(2 / 9 / asked)), (method, cells)


@pytest.mark.parametrize(
    "method", ["least-squares", "affine", "procrustes", "irp-ridge", "relative", "whitened"]
)
def test_rows_of_noise_are_answered_as_often_as_chance_though_anchors_are_carried_over_exactly(method):
    # The encoder knows nothing of the classes, the head's own space all of them. A map fitted on fewer
    # anchors than dimensions takes each anchor to its own target row, which the head answers rightly: scored,
    # anchors are a third of the test rows and the share is .5. Held out, p = 1/4.
    results = []
    for state in STATES:
        rng = np.random.default_rng([state, 7])
        n, d, k = 240, 100, 80
        numbers = rng.permutation(np.arange(n) % 4)
        classes = 6 * rng.normal(size=(4, d))[numbers] / np.sqrt(d) * 4 + rng.normal(size=(n, d))
        spaces = [
            made(vectors, numbers.astype(str), name)
            for name, vectors in (("noise", rng.normal(size=(n, d))), ("b", classes))
        ]
        spec = StitchSpec((method,), random_states=(state,), anchors=tuple(f"r{row}" for row in range(k)))
        results.append(stitch_matrix(spaces, spec))
    share, asked = share_right(results, method, [(0, 1)])
    # The head may answer one class more often than others, but rows of noise not by their class: still p =
    # 1/4.
    assert share == pytest.approx(0.25, abs=3.5 * np.sqrt(0.25 * 0.75 / asked))
    assert share_right(results, method, [(1, 1)])[0] > 0.9


def test_a_rare_class_of_random_labels_gains_nothing():
    # One class of 4 %: answers that know nothing of the labels can at best be as good as always the other
    # class.
    for state in STATES:
        rng = np.random.default_rng([state, 9])
        labels = np.where(rng.permutation(250) < 10, "rare", "usual")
        spaces = [made(rng.normal(size=(250, 30)), labels, name) for name in "ab"]
        result = stitch_matrix(spaces, StitchSpec(METHODS, random_states=(state,), n_anchors=80))
        error = np.sqrt(0.04 * 0.96 / result.n_test)
        for method in METHODS:
            assert np.nanmax(result.matrix(method)[0]) <= result.chance() + 3.5 * error


@pytest.mark.parametrize(
    "case", ["all labels", "half of the labels", "a class of one row", "unequal classes"]
)
def test_every_measure_of_random_labels_is_that_of_permuted_ones(case):
    # Always the most frequent class has a weighted F1 of .09 for five equal classes, but answers of all
    # classes have .2 by chance. Its level is therefore that of the same answers for permuted labels, whose
    # mean is known exactly.
    methods, differences = ("relative", "procrustes"), {}
    for state in range(20):
        rng = np.random.default_rng([state, 11])
        labels = rng.permutation(np.arange(150) % 5).astype(str).astype(object)
        if case == "unequal classes":
            labels = np.where(np.isin(labels, ["0", "1", "2"]), "0", labels).astype(object)
        if case == "half of the labels":
            labels[rng.permutation(150)[:75]] = ""
        if case == "a class of one row":
            labels[rng.integers(150)] = "9"
        spaces = [made(rng.normal(size=(150, 10)), labels, name) for name in "ab"]
        order = tuple(sorted(set(labels) - {""}))
        result = stitch_matrix(spaces, StitchSpec(methods, random_states=(state,), n_anchors=20, order=order))
        assert ("'9'" in result.untested) == (case == "a class of one row")
        for row in result.summary().itertuples():
            differences.setdefault((row.method, row.metric), []).append(row.stitched - row.permuted)
    for which, found in differences.items():
        error = np.std(found, ddof=1) / np.sqrt(len(found))  # over draws of spaces, labels and test rows
        assert np.mean(found) == pytest.approx(0, abs=3.5 * error), which
