"""Do two trainings differ by an isometry only? Disparity on held-out rows over seeds, widths and networks,
and its cost.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from relcore.base.magnitude import brought, centred, scaled
from relcore.catalog.encoding import encode
from relcore.charts.lines import Line, Lines
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.small_vision import held_out_rows
from relcore.encoders.swept_vision import SweptVision
from relcore.represent.similarity import mean_row
from relcore.represent.translation import Affine, Procrustes
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace
from relcore.stitch.autoencoders import AutoencoderSpec, fit_autoencoder
from relcore.stitch.stitching import StitchSpec, stitch_matrix
from relcore.studies.material import digit_pictures
from relcore.studies.runs import circumstances, findings_over, lines_over
from relcore.studies.statistics import correlation, mean, share, slope
from relcore.studies.study import Option, RunResult, Settings, Study, finding, findings_table, grid

NETWORKS = {"mlp": "MLP", "cnn": "CNN", "autoencoder": "autoencoder"}
ALIKE = 0.1  # below it an isometry and one scale explain nine tenths of the spread
_EPOCHS = {"mlp": 10, "cnn": 6, "autoencoder": 6}
_DATA = DatasetSpec("digits")
_N_ANCHORS = 300
_LOSSES = {"procrustes loss": "absolute head after Procrustes", "relative loss": "relative head"}
_DISPARITIES = {
    "disparity": "disparity of an isometry",
    "affine disparity": "disparity of an affine map",
    "chance": "disparity of an isometry, permuted rows",
}


class Isometry(Study):
    """Pairs of trainings on the digits that differ in their random state alone: classifiers' last layers,
    autoencoders' codes.

    Disparity: centre both, fit the best isometry and one scale (orthogonal Procrustes) on all rows that the
    networks were trained on, and divide the squared error on held-out rows by their squared distance from the
    mean; the mean of both directions. 0: the spaces differ by an isometry and a scale only; 1: as far as the
    mean itself. The loss is the accuracy of a logistic head on its own encoder less its accuracy on the other
    one, through 300 anchors.
    """

    kind = "isometry"
    title = "Isometry of training runs"
    question = (
        "How often do two training runs differ only by an isometry, and what does the remaining difference"
        " cost?"
    )
    paper = "Moschella et al. 2023, Fig. 1 and section 3"
    options = (
        Option(
            "networks",
            "Networks",
            tuple(NETWORKS),
            tuple(NETWORKS),
            many=True,
            names=tuple(NETWORKS.values()),
        ),
        Option("widths", "Widths", (4, 8, 32, 128), (8, 32, 128), many=True, help="Of the space."),
        Option("n_states", "Pairs of trainings", (3, 4, 6, 10), 4, help="For each network and width."),
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        return grid(options, {}, network=options["networks"], width=options["widths"])

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        first = 2 * settings["random_state"]
        spaces = [
            trained_space(settings["network"], settings["width"], state, store, report)
            for state in (first, first + 1)
        ]
        test = held_out_rows(len(spaces[0]))
        return RunResult(compared(*spaces, test, settings["random_state"]))

    def seconds(self, settings: Settings) -> float:
        return {"mlp": 4.0, "cnn": 6.0, "autoencoder": 12.0}[settings["network"]]

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        if not len(table):
            return {}
        groups = list(table.groupby("network", sort=False))
        rows = f"{int(table['test rows'].iloc[0]):,} held-out digits"
        charts = {
            "disparity over width": Lines(
                tuple(
                    line
                    for name, part in groups
                    for line in lines_over(part, "width", {"disparity": NETWORKS[name]})
                ),
                "width of the space",
                "disparity on held-out rows",
                log_x=True,
                baselines=(("permuted rows", float(table.chance.mean())),),
                note=circumstances(table, rows),
            )
        }
        for column, told in _LOSSES.items():
            points = tuple(
                Line(
                    NETWORKS[name],
                    part.disparity,
                    part[column],
                    labels=[f"width {one}" for one in part.width],
                )
                for name, part in groups
            )
            note = f"{len(table)} pairs of trainings, {rows}"
            charts[f"loss, {told}"] = Lines(
                points, "disparity on held-out rows", "accuracy lost", kind="points", note=note
            )
        return charts

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        if not len(table):
            return findings_table([])
        rows = [
            finding(
                f"share of pairs with a disparity below {ALIKE:g}", _alike(table), "Wilson's score interval"
            )
        ]
        for column, told in _LOSSES.items():
            rows.append(
                finding(
                    f"accuracy lost for a disparity of 1, {told}",
                    slope(table.disparity, table[column]),
                    "least squares",
                )
            )
            found = correlation(table.disparity, table[column], "spearman")
            rows.append(
                finding(
                    f"Spearman of disparity and loss, {told}",
                    found,
                    "Fisher's z, Bonett and Wright's variance",
                )
            )
        for network, part in table.groupby("network", sort=False):
            names = {width: f"{NETWORKS[network]}, width {width}" for width in part.width}
            rows += findings_over(part, "width", {**_DISPARITIES, **_LOSSES}, names)
        return findings_table(rows)

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        if len(table) < 4 or not slope(table.disparity, table["relative loss"]).has_interval:
            return ""
        costs = [
            f"{slope(table.disparity / 0.1, table[column]).told()} of accuracy with an {told}".replace(
                "an relative", "a relative"
            )
            for column, told in _LOSSES.items()
        ]
        alike = _alike(table)
        count = f"{round(alike.value * alike.n)} of {alike.n} pairs of trainings, a share of {alike.told(2)}"
        return (
            f"An isometry and a scale explain nine tenths of the held-out spread in {count}; the mean"
            f" disparity is {mean(table.disparity).told(2)}, and .1 more of it costs {' and '.join(costs)}."
        )


def trained_space(network: str, width: int, random_state: int, store: Store, report: Report) -> LatentSpace:
    """The digits in a network of this width, trained on those that are not held out."""
    if network != "autoencoder":
        encoder = SweptVision(network, width, epochs=_EPOCHS[network], random_state=random_state)
        return encode(_DATA, encoder, store, report)[0]
    dataset, pictures = digit_pictures(store)
    known = np.setdiff1d(np.arange(len(dataset)), held_out_rows(len(dataset)))
    model = fit_autoencoder(
        pictures[known],
        known[:0],
        AutoencoderSpec(width=width, epochs=_EPOCHS[network]),
        random_state,
        report,
    )
    return LatentSpace(
        model.encode(pictures),
        dataset.ids,
        name=f"autoencoder {width}, state {random_state}",
        labels=dataset.labels,
    )


def compared(
    source: LatentSpace, target: LatentSpace, test: np.ndarray, random_state: int = 0
) -> dict[str, float]:
    """Disparities of two spaces over the same labelled rows, measured on the test rows, and the losses of
    stitching them.
    """
    known = np.setdiff1d(np.arange(len(source)), test)
    order = np.random.default_rng(random_state).permutation(len(source))
    shuffled = source.vectors[order]
    pairs = [(source.vectors, target.vectors), (target.vectors, source.vectors)]
    values = {
        "disparity": float(np.mean([disparity(*pair, known, test) for pair in pairs])),
        "affine disparity": float(np.mean([disparity(*pair, known, test, Affine()) for pair in pairs])),
        "chance": disparity(shuffled, target.vectors, known, test),
    }
    spaces = [
        LatentSpace(one.vectors, one.ids, name=name, labels=one.labels)
        for name, one in zip("ab", (source, target), strict=True)
    ]
    spec = StitchSpec(
        ("absolute", "relative", "procrustes"),
        random_states=(random_state,),
        n_anchors=min(_N_ANCHORS, len(known) // 2),
        test_ids=tuple(source.ids[test]),
    )
    result = stitch_matrix(spaces, spec)
    for method in ("relative", "procrustes"):
        accuracy = result.matrix(method, "accuracy")[0]
        values[f"{method} loss"] = float(np.diag(accuracy).mean() - accuracy[~np.eye(2, dtype=bool)].mean())
    own = np.diag(result.matrix("absolute", "accuracy")[0]).mean()
    return values | {"accuracy": float(own), "chance of accuracy": result.chance(), "test rows": len(test)}


def disparity(
    source: np.ndarray, target: np.ndarray, known: np.ndarray, test: np.ndarray, kind: Any = None
) -> float:
    """Σ ‖ŷ − y‖² / Σ ‖y − mean‖² over the test rows, ŷ carried by a map that was fitted on the known rows,
    the mean theirs.

    0: an isometry and a scale (or what `kind` fits) explain all; 1: no better than the mean, which is also
    what unrelated spaces give, but for a little more that the fit to chance costs.
    """
    fitted = (kind or Procrustes()).fit(source[known], target[known])
    exponent, mean = brought(target)[1], mean_row(target[known])
    errors = scaled(fitted.transform(source[test]), exponent) - scaled(target[test], exponent)
    spread = centred(scaled(target[test], exponent), scaled(mean, exponent))
    return float(np.sum(errors**2, dtype=np.float64) / np.sum(spread**2, dtype=np.float64))


def _alike(table: pd.DataFrame):
    return share(int((table.disparity < ALIKE).sum()), len(table))
