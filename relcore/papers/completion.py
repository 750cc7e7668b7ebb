"""Anchor completion of the second paper (its section 3): the canonical axes as anchors, and their effect on a translation."""

from __future__ import annotations

import numpy as np

from relcore.anchors.selection import select_anchors
from relcore.evaluation import Split
from relcore.inversion import InverseRelativeProjection
from relcore.papers.runs import Measured, Settings
from relcore.papers.summaries import grouped
from relcore.progress import Report
from relcore.similarity import mean_row, unit_rows
from relcore.store import Store
from relcore.studies.material import word_pair


def completed(matrix: np.ndarray) -> np.ndarray:
    """The translation W (d_source, d_target) after anchor completion, of the same shape.

    The axes of the source are its new anchors, and their translations, the rows of W at unit length, those of the target. A
    row relative to the axes is itself, so it is decoded by the pseudo-inverse of the new target anchors, pinv(Ŵᵀ). Where W is
    a rotation that is W again. Else a direction that W shrinks by s is stretched by 1 / s: what pruning damps comes back.
    """
    return np.linalg.pinv(unit_rows(np.asarray(matrix, dtype=np.float32)).astype(np.float64).T).astype(np.float32)


def completion(settings: Settings, store: Store, report: Report) -> Measured:
    """Mean cosine of translated and true words that are no anchors, by the pruned method without and with completion."""
    pair, rows = word_pair((), store), []
    means = [mean_row(space.vectors) for space in (pair.source, pair.target)]
    for done, state in enumerate(settings["random_states"]):
        report(done, len(settings["random_states"]), f"random state {state}")
        anchors = pair.source.rows(select_anchors(pair.source, settings["n_anchors"], random_state=state))
        test = Split.held_out(pair.ids, anchors, state).queries(settings["n_queries"])
        true = unit_rows(pair.target.vectors[test], means[1])
        chance = float(mean_row(true) @ mean_row(true))
        for omega in settings["omegas"]:
            inverse = InverseRelativeProjection(omega=omega, delta=settings["delta"], random_state=state)
            sides = [space.vectors[anchors] for space in (pair.source, pair.target)]
            inverse.fit(*sides, source_mean=means[0], target_mean=means[1])
            units = [unit_rows(vectors, mean) for vectors, mean in zip(sides, means, strict=True)]
            each = [completed(units[0][kept].T @ np.linalg.pinv(units[1][kept].T)) for kept in inverse.kept_]
            forms = {
                "without completion": inverse.matrix_,
                "completion of each pruning": np.mean(each, axis=0),
                "completion of their mean": completed(inverse.matrix_),
            }
            for told, matrix in forms.items():
                found = unit_rows((pair.source.vectors[test] - means[0]) @ matrix)
                cosine = float(np.einsum("ij,ij->i", found, true).mean(dtype=np.float64))
                facts = {"metric": "cosine", "unit": "−1 … 1", "n": len(test), "baseline": chance}
                rows.append({"label": f"words, ω = {omega}, {told}", "value": cosine, **facts})
    return Measured(grouped(rows))
