"""Layer by layer: similarity of all layers of a model with all others, and heads that read other layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.names import METRICS
from relcore.base.numbers import band, short
from relcore.catalog.encoding import encode
from relcore.compare.all_pairs import AllPairs
from relcore.encoders.encoder import Encoder
from relcore.figures.charts import Matrices, MatrixPanel
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.scores.score import Null
from relcore.spaces.space import LatentSpace
from relcore.stitch.stitching import StitchSpec, stitch_matrix
from relcore.studies.material import dataset_of
from relcore.studies.statistics import Estimate, average, count_of, finding, findings_table, mean, sentence
from relcore.studies.study import Opening, Option, RunResult, Settings, Study, grid, states

PERMUTATIONS = 1000
_LAYERS = tuple(range(7))
_METRICS = ("cka", "debiased cka", "mutual knn")
_NAMES = ("embedding", *(f"layer {layer}" for layer in _LAYERS[1:]))


class Layers(Study):
    """Wikipedia sentences of 16 articles by MiniLM's embedding and its six layers. Left: similarity of the
    absolute spaces. Right: accuracy of each column's head, trained on relative rows of its own layer, on the
    rows of each row's layer, through random anchors.
    """

    kind = "layers"
    cost = 40.0
    options = (
        Option(
            "metric", "Similarity", _METRICS, "cka", names=tuple(METRICS[name].title for name in _METRICS)
        ),
        Option("method", "Heads on", ("relative", "whitened"), "relative"),
        Option("n_anchors", "Anchors", (100, 300), 300),
        states("the anchors and the test rows", choices=(3, 5)),
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        return grid(options, "metric method n_anchors")

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        spaces = encode(dataset_of("sentences"), _encoder(), store, report)
        values = stitched_values(spaces, settings)
        if settings["random_state"] == 0:  # the absolute spaces are the same in all random states
            values |= similarity_values(spaces, settings["metric"])
        return RunResult(values)

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Matrices]:
        if table.random_state.min() > 0:
            return {}
        metric, run = METRICS[options["metric"]].title, table[table.random_state == 0].iloc[0]
        diagonal = tuple((layer, layer) for layer in _LAYERS)
        similar = f"{run['most similar']}, by chance {band(run['similar, low'], run['similar, high'])}"
        chance = f"chance {short(average(table, 'chance'))}; {count_of(table, 'held-out rows')}"
        panels = []
        for title, values, note in (
            (metric, np.array(run.similarity), f"most alike {similar}; {int(run.rows):,} rows"),
            ("accuracy", np.mean(np.array(table.accuracy.tolist()), axis=0), chance),
        ):
            off = np.where(np.eye(len(values), dtype=bool), -np.inf, values)
            best = tuple(int(place) for place in np.unravel_index(off.argmax(), off.shape))
            look = {"note": note, "marked": diagonal, "framed": (best,)}
            panels.append(MatrixPanel(title, _NAMES, _NAMES, values, **look))
        notes = "; ".join(f"{panel.title}: {panel.note}" for panel in panels)
        texts = (f"{metric}, accuracy", f"Heat maps, 7 by 7 layers. {notes}.", "rows of", "heads of; columns")
        return {"layers": Matrices(tuple(panels), (0.0, 1.0), *texts, across=2)}

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        """Accuracy by the distance of the two layers, the mean of both directions."""
        return findings_table(
            [finding(f"accuracy, heads {apart} layers away", _apart(table, apart)) for apart in _LAYERS]
        )

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        chance = band(average(table, "stitched, low"), average(table, "stitched, high"))
        return sentence(
            "Heads read the next layer with an accuracy of {} and the one six layers away with {}; the best"
            f" of all stitched pairs is {chance} by chance.",
            *(_apart(table, apart) for apart in (1, 6)),
        )

    def opening(self, settings: Settings) -> Opening:
        return Opening(dataset=dataset_of("sentences"), encoders=(_encoder(),))


def _encoder() -> Encoder:
    from relcore.encoders.transformers import MiniLM

    return MiniLM(_LAYERS)


def similarity_values(spaces: Sequence[LatentSpace], metric: str) -> dict[str, Any]:
    """Similarity of every two spaces, as lists, and the best of two different ones beside what it is by
    chance.
    """
    similarity = AllPairs.of(metric).run(spaces)
    first, second, score = similarity.best
    return {
        "similarity": similarity.values.tolist(),
        "most similar": f"{first} and {second}, {short(score)}",
        "similar, low": similarity.best_chance.low,
        "similar, high": similarity.best_chance.high,
        "rows": len(spaces[0]),
    }


def stitched_values(spaces: Sequence[LatentSpace], settings: Settings) -> dict[str, Any]:
    """Accuracy of the heads of all spaces (columns) on all spaces (rows), as lists, and the best of the
    stitched ones.

    The best stitched cell is compared with the same answers and permuted labels of the held-out rows, by one
    permutation for all cells. The heads never saw these labels, so nothing has to be fitted again.
    """
    method, state = settings["method"], settings["random_state"]
    result = stitch_matrix(
        spaces, StitchSpec((method,), random_states=(state,), n_anchors=settings["n_anchors"])
    )
    run, stitched = result.runs[0], ~np.eye(len(spaces), dtype=bool)
    answers, rng = run.answers[method][stitched], np.random.default_rng(0)
    permuted = (rng.permutation(run.truth) for _ in range(PERMUTATIONS))
    best_chance = Null.from_draws(np.array([(answers == truth).mean(axis=1).max() for truth in permuted]))
    accuracy = result.by_state(method)[0]
    return {
        "accuracy": accuracy.tolist(),
        "best stitched": float(accuracy[stitched].max()),
        "stitched, low": best_chance.low,
        "stitched, high": best_chance.high,
        "chance": result.chance(),
        "test rows": len(run.truth),
    }


def _apart(table: pd.DataFrame, apart: int) -> Estimate:
    """Accuracy of heads of layers at this distance."""
    matrices = np.array(table.accuracy.tolist())
    diagonals = [np.diagonal(matrices, shift, 1, 2).mean(axis=1) for shift in (apart, -apart)]
    return mean(np.mean(diagonals, axis=0))
