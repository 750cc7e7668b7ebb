"""Do two trainings differ by an isometry only? Disparity on held-out rows over seeds, widths and networks,
and its cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.magnitude import brought, centred, scaled
from relcore.catalog.encoding import encode
from relcore.charts.lines import Line, Lines
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.small_vision import held_out_rows
from relcore.encoders.swept_vision import SweptVision
from relcore.represent.similarity import RelativeProjection, mean_row
from relcore.represent.translation import Affine, Procrustes
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.scores.dimension import condition_number, participation_ratio, two_nn
from relcore.scores.neighbours import find_neighbours
from relcore.spaces.space import LatentSpace
from relcore.stitch.autoencoders import AutoencoderSpec, fit_autoencoder
from relcore.stitch.stitching import StitchSpec, stitch_matrix
from relcore.studies.material import data_option, digit_pictures, studied_spaces, studied_split
from relcore.studies.runs import circumstances, findings_over, lines_over
from relcore.studies.statistics import Estimate, correlation, mean, share, slope
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


# How many anchors, against the intrinsic dimension and the condition number of the spaces, on held-out
# rows?

COUNTS = (2, 4, 8, 16, 32, 64, 128, 256, 512)
PLATEAU = 0.95
_MOST_ROWS = 6000
_TRAINED = tuple((network, width) for network in ("mlp", "cnn") for width in (8, 32, 128))
_REDUCED = (3, 6, 12, 25, 50)  # principal components of the word spaces: the same words, another dimension
_PAIRS = {
    "words": 1,
    "reduced": len(_REDUCED),
    "pooled": 1,
    "digits": 6,
    "sentences": 6,
    "trainings": len(_TRAINED),
}
_K = 10
_PREDICTORS = {
    "intrinsic dimension": "intrinsic dimension (TwoNN)",
    "participation ratio": "participation ratio",
    "condition number": "condition number",
    "width": "width of the space",
}
_INTERVAL = "over pairs of spaces"


class AnchorDimension(Study):
    """For each pair of spaces the number of anchors at which the held-out MRR of relative rows comes to 95 %
    of its plateau.

    Anchors are random rows, 2 to 512, and fewer are the first of more. The plateau is the best MRR over these
    numbers, means over the random states; between two of them the logarithm of the number is interpolated.
    MRR is mutual among the held-out rows, k = 10. Intrinsic dimension (TwoNN), participation ratio and
    condition number are those of the rows that are not tested on, the geometric mean of the two spaces. A
    pair has no answer where the best MRR is less than three times what chance gives, or where it is still
    growing at 512 anchors.
    """

    kind = "anchor-dimension"
    title = "Anchors and dimension"
    question = "How many anchors does a space need for its intrinsic dimension and its condition number?"
    paper = "Moschella et al. 2023, left open in section 6"
    options = (
        data_option("words", "reduced", "pooled", "digits", "sentences", "trainings"),
        Option(
            "n_states", "Random states", (3, 5, 10), 3, help="Each draws the anchors and the held-out rows."
        ),
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        return [
            {"data": data, "pair": pair, "random_state": state}
            for state in range(options["n_states"])
            for data in options["data"]
            for pair in range(_PAIRS[data])
        ]

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        data, state = settings["data"], settings["random_state"]
        pair = spaces_of_pair(data, settings["pair"], store, report)
        split = studied_split(
            {"trainings": "digits", "reduced": "words"}.get(data, data),
            pair[0],
            max(COUNTS),
            state,
            _MOST_ROWS,
        )
        report(0, 1, " and ".join(space.name for space in pair))
        if data == "reduced":
            pair = tuple(reduced(space, split.known, _REDUCED[settings["pair"]]) for space in pair)
        known = [space.vectors[split.known] for space in pair]
        values: dict[str, Any] = {
            "spaces": " and ".join(space.name for space in pair),
            "test rows": len(split.test),
        }
        for name, measure in (
            ("intrinsic dimension", two_nn),
            ("participation ratio", participation_ratio),
            ("condition number", condition_number),
            ("width", lambda rows: rows.shape[1]),
        ):
            values[name] = float(np.exp(np.mean([np.log(measure(rows)) for rows in known])))
        curve = []
        for count in COUNTS:
            anchors = split.anchors[:count]
            made = [
                RelativeProjection()
                .fit(rows, anchors=space.vectors[anchors])
                .transform(space.vectors[split.test])
                for rows, space in zip(known, pair, strict=True)
            ]
            curve.append(find_neighbours(*made, k=_K, convention="mutual").mrr(20))
        values |= {f"mrr, {count} anchors": float(mrr) for count, mrr in zip(COUNTS, curve, strict=True)}
        null = curve[-1].null
        return RunResult(values | {"chance": null.mean, "chance, 97.5 %": null.high})

    def seconds(self, settings: Settings) -> float:
        return {
            "words": 6.0,
            "reduced": 6.0,
            "pooled": 3.0,
            "digits": 2.0,
            "sentences": 3.0,
            "trainings": 4.0,
        }[settings["data"]]

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        pairs = _by_pair(table)
        if not len(pairs):
            return {}
        charts = {}
        told = f"{len(pairs)} pairs of spaces, means over {table.random_state.nunique()} random states"
        for predictor, title in _PREDICTORS.items():
            points = tuple(
                Line(data, part[predictor], part.anchors, labels=list(part.spaces))
                for data, part in pairs.groupby("data", sort=False)
            )
            y = f"anchors for {PLATEAU:.0%} of the plateau".replace("%", " %")
            charts[predictor] = Lines(points, title, y, kind="points", log_x=True, note=told)
        curves = _curves(table)
        lines = [
            line
            for data, part in curves.groupby("data", sort=False)
            for line in lines_over(part, "anchors", {"share": data})
        ]
        note = "bands: 95 % over pairs of spaces and random states"
        charts["curves"] = Lines(
            tuple(lines), "number of anchors", "MRR over its plateau", log_x=True, note=note
        )
        return charts

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        pairs = _by_pair(table)
        if not len(pairs):
            return findings_table([])
        rows = []
        for told, part in (
            ("different pairs", _different(pairs)),
            ("reduced words", pairs[pairs.data == "reduced"]),
        ):
            if not len(part):
                continue
            rows.append(
                finding(
                    f"{told}: anchors, geometric mean", _geometric(part.anchors), f"Student's t {_INTERVAL}"
                )
            )
            ratio = _geometric(part.anchors / part["intrinsic dimension"])
            rows.append(
                finding(
                    f"{told}: anchors over intrinsic dimension, geometric mean",
                    ratio,
                    f"Student's t {_INTERVAL}",
                )
            )
            for predictor, title in _PREDICTORS.items():
                rank = correlation(part[predictor], part.anchors, "spearman")
                rows.append(
                    finding(
                        f"{told}: power of the {title}", _power(part, predictor), f"logarithms {_INTERVAL}"
                    )
                )
                rows.append(
                    finding(f"{told}: Spearman of anchors and {title}", rank, f"Fisher's z {_INTERVAL}")
                )
        for data, part in pairs.groupby("data", sort=False):
            rows += [
                finding(f"{data}, {name}", mean(part[name]), f"Student's t {_INTERVAL}")
                for name in ("anchors", *_PREDICTORS)
            ]
        return findings_table(rows)

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        pairs = _by_pair(table)
        different = _different(pairs)
        if len(different) < 4:
            return ""
        dimension, condition = (
            _power(different, name) for name in ("intrinsic dimension", "condition number")
        )
        asked = table[table.data != "reduced"][["data", "pair"]].drop_duplicates().shape[0]
        without = (
            f" ({asked - len(different)} more have no plateau by {COUNTS[-1]} anchors)"
            if asked > len(different)
            else ""
        )
        growth = [
            f"{'grows' if power.low > 0 else 'is not seen to grow'} with the {name} (power {power.told(2)})"
            for name, power in (("intrinsic dimension", dimension), ("condition number", condition))
        ]
        series = _power(pairs[pairs.data == "reduced"], "intrinsic dimension")
        words = (
            f"; for the same words on fewer axes the power of the intrinsic dimension is {series.told(2)}"
            if series.has_interval
            else ""
        )
        return (
            f"Over {len(different)} pairs of spaces{without}, {PLATEAU * 100:.0f} % of the plateau of"
            f" held-out MRR takes {_geometric(different.anchors).told(0)} anchors; their number"
            f" {' and '.join(growth)}{words}."
        )


def spaces_of_pair(data: str, number: int, store: Store, report: Report) -> tuple[LatentSpace, LatentSpace]:
    """Two spaces over the same rows: of the studied ones, or two trainings of one network that differ in
    their random state.
    """
    if data == "trainings":
        network, width = _TRAINED[number]
        first, second = (trained_space(network, width, state, store, report) for state in (0, 1))
        return first, second
    if data == "reduced":
        data, number = "words", 0
    spaces = studied_spaces(data, store, report)
    first, second = list(combinations(range(len(spaces)), 2))[number]
    return spaces[first], spaces[second]


def reduced(space: LatentSpace, known: np.ndarray, width: int) -> LatentSpace:
    """The space on its first `width` principal axes, those of the known rows alone."""
    rows = space.vectors[known].astype(np.float64)
    mean = rows.mean(axis=0)
    axes = np.linalg.eigh((rows - mean).T @ (rows - mean))[1][:, ::-1][:, :width]
    return LatentSpace((space.vectors - mean) @ axes, space.ids, name=f"{space.name}, {width} components")


def needed(
    counts: Sequence[int], curve: Sequence[float], least: float, share: float = PLATEAU
) -> float | None:
    """The number of anchors at which the curve first comes to this share of its best value, its logarithm
    interpolated.

    None where the best value is below `least`, or where only the last number comes to that share: it has no
    plateau yet.
    """
    values = np.asarray(curve, dtype=float)
    wanted = share * values.max()
    if values.max() < least or (values[:-1] < wanted).all():
        return None
    last = int(np.argmax(values >= wanted))
    if last == 0:
        return float(counts[0])
    part = (wanted - values[last - 1]) / (values[last] - values[last - 1])
    low, high = np.log(counts[last - 1]), np.log(counts[last])
    return float(np.exp(low + part * (high - low)))


def _by_pair(table: pd.DataFrame) -> pd.DataFrame:
    """A row for each pair of spaces that has a plateau: the anchors it needs, and geometric means over the
    random states.
    """
    if not len(table):
        return table
    rows = []
    for (data, pair), part in table.groupby(["data", "pair"], sort=False):
        curve = [part[f"mrr, {count} anchors"].mean() for count in COUNTS]
        anchors = needed(COUNTS, curve, 3 * part["chance, 97.5 %"].mean())
        if anchors is not None:
            predictors = {
                name: float(np.exp(np.log(part[name].astype(float)).mean())) for name in _PREDICTORS
            }
            rows.append(
                {"data": data, "pair": pair, "spaces": part.spaces.iloc[0], "anchors": anchors, **predictors}
            )
    return pd.DataFrame(rows)


def _different(pairs: pd.DataFrame) -> pd.DataFrame:
    """Without the reduced words, which are one pair over and over."""
    return pairs[pairs.data != "reduced"] if len(pairs) else pairs


def _power(pairs: pd.DataFrame, predictor: str) -> Estimate:
    """The slope of the logarithm of the anchors over that of the predictor."""
    return slope(np.log(pairs[predictor]), np.log(pairs.anchors))


def _geometric(values: pd.Series) -> Estimate:
    logs = mean(np.log(values))
    value, low, high = np.exp([logs.value, logs.low, logs.high]).tolist()
    return Estimate("geometric mean", value, low, high, logs.n)


def _curves(table: pd.DataFrame) -> pd.DataFrame:
    """A row for each run and number of anchors: its share of the plateau."""
    plateau = table[[f"mrr, {count} anchors" for count in COUNTS]].max(axis=1)
    parts = [
        pd.DataFrame(
            {"data": table.data, "anchors": count, "share": table[f"mrr, {count} anchors"] / plateau}
        )
        for count in COUNTS
    ]
    return pd.concat(parts, ignore_index=True)
