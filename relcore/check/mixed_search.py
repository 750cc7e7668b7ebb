"""Search a collection with vectors of two models by the queries of both."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.numbers import percent
from relcore.base.rows import Rows, unit_rows
from relcore.base.writing import replacing, write
from relcore.check import mixed
from relcore.check.collection import Checked
from relcore.check.origins import OTHER
from relcore.spaces.space import LatentSpace

PAIRS = 300  # number of rows embedded again from which a map of the other rows is better than two queries
LARGE = 0.4  # share of the other model from which two queries are better than one
_SAMPLED = 1000  # maximum number of rows of each model by which cosines are scaled
SCRIPT = "mixed.py"


def advice(share: float, n_pairs: int = 0, as_good: bool = False) -> str:
    """Which search to use if a share of the rows is of another model: "repair" with 300 or more rows that
    were embedded again, "both models" for a large share of a model that is known to be `as_good`, otherwise
    "one model".

    Source: our measurement, docs/check.md.
    """
    if n_pairs >= PAIRS:
        return "repair"
    if share >= LARGE and as_good:
        return "both models"
    return "one model"


def advice_sentence(checked: Checked) -> str:
    """Which search to use for a checked collection until its rows are embedded again."""
    share = percent(checked.count / checked.n)
    text = f"{share} of the rows are of the other model. Until they are embedded again,"
    again = f"With {PAIRS} of them embedded again, --again and --repair are better."
    if advice(checked.count / checked.n, as_good=True) == "both models":
        return (
            f"{text} search by queries of both models only if the other one is known to be about as good, and"
            f" by the larger part's model alone otherwise. {again}"
        )
    return f"{text} search by queries of the larger part's model alone: two queries gain little. {again}"


def mixed_scores(
    queries: np.ndarray, other_queries: np.ndarray, X: Rows, is_other: np.ndarray, random_state: int = 0
) -> np.ndarray:
    """Scores (q, n) of the rows X (n, d) for queries by both models, each (q, d). A row is scored by the
    query of its own model: its cosine, on the scale of `relcore.check.mixed.tail`."""
    scores = np.empty((len(queries), len(X)), np.float32)
    samples = _samples(X, is_other, random_state)
    for asked, part, sample in zip((queries, other_queries), (~is_other, is_other), samples, strict=True):
        units = unit_rows(np.asarray(asked))
        cosines = units @ unit_rows(np.asarray(X[part])).T
        scores[:, part] = [mixed.tail(one, sample @ x) for one, x in zip(cosines, units, strict=True)]
    return scores


def _samples(X: Rows, is_other: np.ndarray, random_state: int) -> list[np.ndarray]:
    """At most 1,000 unit rows of each model."""
    rng = np.random.default_rng((random_state, 44))
    rows = [np.sort(rng.permutation(np.flatnonzero(part))[:_SAMPLED]) for part in (~is_other, is_other)]
    return [unit_rows(np.asarray(X[one])) for one in rows]


def export_mixed(space: LatentSpace, checked: Checked, folder: Path, random_state: int = 0) -> list[Path]:
    """Write mixed.py, which searches the collection by queries of both models without Relscope, and mixed.npz
    with the ids of the other model's rows.

    Raises
    ------
    SpaceError
        A check that does not say which model made each row.
    """
    told = checked.told
    if told is None or told.either:
        raise SpaceError(
            "mixed search: expected a check that knows the model of each row, got none; give trusted rows"
        )
    is_other = told.model == OTHER
    own, other = _samples(space.vectors, is_other, random_state)
    ids = np.array([*map(str, space.ids[is_other])])
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / mixed.FILE) as stream:
        np.savez(stream, ids=ids, own=own, other=other)
    write(folder / SCRIPT, files("relcore.check").joinpath(SCRIPT).read_bytes())
    return [folder / SCRIPT, folder / mixed.FILE]
