"""Do two trainings differ by an isometry only? Disparity on held-out rows, and its cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from relcore.base.environment import torch_name
from relcore.base.errors import SpaceError
from relcore.base.numbers import and_list, general, short
from relcore.base.rows import centred, mean_row
from relcore.base.settings import check, setting
from relcore.catalog.encodings import encode
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.swept_vision import SweptVision
from relcore.encoders.vision import held_out_rows
from relcore.engine.device import full_precision
from relcore.engine.nearest import nearest
from relcore.engine.training import model_on, one_thread, reproducible, step_settings, train_epoch
from relcore.figures.charts import Line, Lines
from relcore.represent.projection import RelativeProjection
from relcore.represent.translation import Affine, Procrustes
from relcore.runs.store import Store
from relcore.runs.work import Progress, silent
from relcore.scores.estimate import Estimate
from relcore.scores.neighbours import find_neighbours
from relcore.spaces.space import LatentSpace
from relcore.stitch.stitching import StitchSpec, stitch_matrix
from relcore.studies.estimates import (
    chart,
    count_of,
    finding,
    findings_table,
    mean,
    mean_score,
    sentence,
    share,
    slope,
)
from relcore.studies.study import Option, RunResult, Settings, Study, grid, states
from relscope_studies.data import (
    data_option,
    digit_pictures,
    lines_by,
    n_needed,
    studied_spaces,
    studied_split,
)

if TYPE_CHECKING:
    import torch
    from torch import nn

_CHANNELS = (32, 64, 128, 256)
_SMALLEST = 2  # the side to which convolutions shrink a picture
_AT_ONCE = 1024


@dataclass(frozen=True)
class AutoencoderSpec:
    """Architecture and training of an autoencoder (Moschella et al. 2023, Table 3; architecture of their
    code).

    The encoder has up to four convolutions (3 × 3, stride 2, BatchNorm, GELU), until a side is 2 pixels long;
    the decoder has the transposed ones, and a last one with a sigmoid.

    Attributes
    ----------
    width : int
        Width of the code.
    learning_rate : float
        The maximum, reached after a fifth of the steps; then the rate falls to 0.
    """

    width: int = setting(500, low=1)
    epochs: int = setting(30, low=1)
    batch_size: int = setting(64, low=2)
    learning_rate: float = setting(3e-3, above=0)

    def __post_init__(self) -> None:
        check(self)


class Autoencoder:
    """A trained autoencoder, made by `fit_autoencoder`."""

    def __init__(self, parts: nn.ModuleDict) -> None:
        self.parts = parts

    def encode(self, images: np.ndarray) -> np.ndarray:
        """Codes (n, width) of pictures (n, height, width)."""
        import torch

        device = torch_name()
        precise = full_precision(torch, device.partition(":")[0])
        with torch.inference_mode(), one_thread(), precise, model_on(self.parts, device) as parts:
            blocks = torch.from_numpy(_pixels(images)).split(_AT_ONCE)
            return np.concatenate([_code(parts, block.to(device)).cpu().numpy() for block in blocks])


def fit_autoencoder(
    images: np.ndarray,
    spec: AutoencoderSpec = AutoencoderSpec(),
    random_state: int = 0,
    report: Progress = silent,
) -> Autoencoder:
    """Train on grey pictures (n, height, width) with values 0 … 1.

    The loss is the mean squared error. Equal settings give equal bits on one kind of device
    (`training.reproducible`). `report` gets each epoch's mean loss.

    Raises
    ------
    SpaceError
        Fewer than two pictures, or values outside 0 … 1.
    """
    import torch

    pixels = _pixels(images)
    if len(pixels) < 2:
        raise SpaceError("expected two pictures or more to train on, got one")
    device = torch_name()
    with reproducible(random_state):
        parts = _parts(spec, pixels.shape[2:]).to(device)
        rows = torch.from_numpy(pixels).to(device)
        n_batches = max(1, len(rows) // spec.batch_size)
        optimiser = torch.optim.AdamW(parts.parameters(), spec.learning_rate, **step_settings(device))
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimiser, partial(_warmth, n_steps=spec.epochs * n_batches)
        )
        for epoch in range(1, spec.epochs + 1):
            parts.train()
            # Nearly equal parts, because batch normalisation fails on a remainder of one.
            batches = torch.randperm(len(rows), device=device).tensor_split(n_batches)
            total = train_epoch(lambda batch: _loss(parts, rows[batch]), batches, optimiser, schedule)
            message = f"state {random_state}: epoch {epoch} of {spec.epochs}"
            report(epoch, spec.epochs, message, {"loss": total / len(rows)})
    return Autoencoder(parts.cpu().eval())


def _warmth(step: int, n_steps: int) -> float:
    """The learning rate as a share of its maximum: a linear rise, then half a cosine down to 0."""
    rising = max(1, n_steps // 5)
    return min(
        (step + 1) / rising,
        0.5 + 0.5 * math.cos(math.pi * max(0, step + 1 - rising) / max(1, n_steps - rising)),
    )


def _pixels(images: np.ndarray) -> np.ndarray:
    images = np.asarray(images, dtype=np.float32)
    if images.ndim != 3 or not len(images) or images.min() < 0 or images.max() > 1:
        raise SpaceError(
            f"expected grey pictures (n, height, width) of values 0 … 1, got shape {images.shape}"
        )
    return images[:, None]


def _parts(spec: AutoencoderSpec, size: tuple[int, int]) -> nn.ModuleDict:
    from torch import nn

    sizes = [size]
    while max(sizes[-1]) > _SMALLEST and len(sizes) <= len(_CHANNELS):
        sizes.append(tuple(-(-side // 2) for side in sizes[-1]))
    channels = (1, *_CHANNELS[: len(sizes) - 1])
    features = [
        layer
        for before, after in pairwise(channels)
        for layer in (nn.Conv2d(before, after, 3, 2, 1), nn.BatchNorm2d(after), nn.GELU())
    ]
    flat = channels[-1] * sizes[-1][0] * sizes[-1][1]
    parts = {"features": nn.Sequential(*features, nn.Flatten()), "mean": nn.Linear(flat, spec.width)}
    parts["read"] = nn.Sequential(nn.Linear(spec.width, flat), nn.GELU())
    draw = [nn.Unflatten(1, (channels[-1], *sizes[-1]))]
    for before, after, small, large in zip(
        channels[:0:-1], (*channels[-2:0:-1], channels[1]), sizes[:0:-1], sizes[-2::-1], strict=True
    ):
        rest = tuple(to - 2 * side + 1 for side, to in zip(small, large, strict=True))
        draw += [nn.ConvTranspose2d(before, after, 3, 2, 1, rest), nn.BatchNorm2d(after), nn.GELU()]
    parts["draw"] = nn.Sequential(*draw, nn.Conv2d(channels[1], 1, 3, 1, 1), nn.Sigmoid())
    return nn.ModuleDict(parts)


def _code(parts: nn.ModuleDict, images: torch.Tensor) -> torch.Tensor:
    return parts["mean"](parts["features"](images))


def _loss(parts: nn.ModuleDict, images: torch.Tensor) -> torch.Tensor:
    return (parts["draw"](parts["read"](_code(parts, images))) - images).square().mean()


_KEPT = 0.9  # of the ratios, the smallest ones, as Facco et al. advise: the largest are those of outliers


def two_nn(X: np.ndarray) -> float:
    """Intrinsic dimension of rows (n, d) by the ratio μ of the distances to their second and first
    neighbours.

    Where the density hardly changes over that distance, −log(1 − F(μ)) = D log μ: the slope through the
    origin over the smallest nine tenths of the ratios (Facco et al., Scientific Reports 2017). Duplicate rows
    count once. Above about 20 dimensions a few thousand rows are too few, and the estimate is too small.

    Raises
    ------
    SpaceError
        Fewer than ten rows that differ.
    """
    rows = np.unique(np.asarray(X, dtype=np.float32), axis=0)
    n = len(rows)
    if n < 10:
        raise SpaceError(f"intrinsic dimension: expected ten or more rows that differ, got {n}")
    distances = _two_nearest(rows)
    ratios = np.sort(distances[:, 1] / distances[:, 0])[: int(_KEPT * n)]
    log_ratios = np.log(ratios)
    log_rest = -np.log1p(-np.arange(1, len(ratios) + 1) / n)
    return float(log_ratios @ log_rest / (log_ratios @ log_ratios))


def participation_ratio(X: np.ndarray) -> float:
    """(Σ λ)² / Σ λ² of the variances λ along the principal axes of rows (n, d), 1 … d; d where all are
    equal.
    """
    variances = _variances(X)
    return float(variances.sum() ** 2 / (variances**2).sum())


def condition_number(X: np.ndarray) -> float:
    """Largest over smallest singular value of the centred rows (n, d), 1 or more; axes below float32
    precision are left out.
    """
    variances = _variances(X)
    real = variances > variances.max() * (max(X.shape) * np.finfo(np.float32).eps) ** 2
    return float(np.sqrt(variances.max() / variances[real].min()))


def _variances(X: np.ndarray) -> np.ndarray:
    X = np.asarray(X, dtype=np.float64)
    X = X - X.mean(axis=0)
    variances = np.maximum(np.linalg.eigvalsh(X.T @ X / len(X)), 0)
    if not variances.max() > 0:
        raise SpaceError("expected rows that differ, got copies of a single row")
    return variances


def _two_nearest(rows: np.ndarray) -> np.ndarray:
    """Euclidean distances to the two nearest other rows, (n, 2), recomputed exactly for the rows found by
    inner products.
    """
    rows = rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64)
    scale = np.sqrt((rows**2).sum(axis=1).mean())
    rows = (rows / scale).astype(np.float32)
    # |x − y|² = |x|² − 2 (x·y − |y|² / 2): with one more column, the nearest row has the largest inner
    # product.
    base = np.column_stack([rows, -np.vecdot(rows, rows) / 2]).astype(np.float32)
    queries = np.column_stack([rows, np.ones(len(rows))]).astype(np.float32)
    # k = 4: the two nearest rows, the row itself, and one more, in case rounding changes the order.
    near = nearest(queries, base, 4, unit=False).rows
    exact = np.linalg.norm(rows[near].astype(np.float64) - rows[:, None].astype(np.float64), axis=2)
    exact[near == np.arange(len(rows))[:, None]] = np.inf
    return np.maximum(np.sort(exact, axis=1)[:, :2], np.finfo(np.float32).tiny)


NETWORKS = {"mlp": "MLP", "cnn": "CNN", "autoencoder": "autoencoder"}
ALIKE = 0.1  # below it an isometry and one scale explain nine tenths of the spread
_EPOCHS = {"mlp": 10, "cnn": 6, "autoencoder": 6}
_DATA = DatasetSpec("digits")
_N_ANCHORS = 300
_BELOW = f"share of disparities below {ALIKE:g}"
_RESIDUALS = (0.0, 0.5, 1.0, 1.5)
_LOSSES = {"procrustes loss": "absolute head after Procrustes", "relative loss": "relative head"}
_SCALED = ("disparity", *_LOSSES)


class Isometry(Study):
    """Train pairs of networks on the digits that differ only in their random state, equally many in each cell
    (a network and a width). The spaces are the last layers of classifiers and the codes of autoencoders.

    Disparity: centre both, fit the best isometry and one scale (orthogonal Procrustes) on all training rows,
    and divide the squared error on held-out rows by their squared distance from the mean; the mean of both
    directions. 0: the spaces differ by an isometry and a scale only; 1: as far as the mean itself. The loss
    is the accuracy of a logistic head on its own encoder less its accuracy on the other one, through 300
    anchors.

    Cells of high disparity have weak networks, too, so costs are slopes within cells: over their pairs, and
    in each pair over 0 to 1½ times what the best isometry leaves of the second space.
    """

    title = "Isometry of training runs"
    question = "How often do two training runs differ only by an isometry, and what does the rest cost?"
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
        Option("widths", "Widths", (4, 8, 32, 128), (4, 8, 32, 128), many=True, help="Of the space."),
        Option("n_states", "Pairs of trainings", (3, 4, 6, 10, 20), 20, help="For each network and width."),
    )
    cost: ClassVar = {"mlp": 5.0, "cnn": 7.0, "autoencoder": 13.0}

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        varied = {"network": options["networks"], "width": options["widths"]}
        return [run | {"residuals": list(_RESIDUALS)} for run in grid(options, "", **varied)]

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        state = settings["random_state"]
        source = trained_space(settings["network"], settings["width"], 2 * state, store, report)
        target = trained_space(settings["network"], settings["width"], 2 * state + 1, store, report)
        test = held_out_rows(len(source))
        values = compared(source, target, test, state)
        scaled = [
            compared(source, with_residual(source, target, test, times), test, state)
            for times in settings["residuals"]
        ]
        scales = {f"scaled {name}": [round(one[name], 4) for one in scaled] for name in _SCALED}
        return RunResult({name: round(value, 4) for name, value in values.items()} | scales)

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        rows = count_of(table, "held-out digits")
        disparity = "disparity on held-out rows"
        look = ("width of the space", disparity), rows, {"permuted rows": "chance"}
        lines = lines_by(table, "width", "disparity", "network", NETWORKS)
        charts = {"disparity over width": chart(table, lines, *look, log_x=True)}
        note = (
            f"{and_list(map(general, _RESIDUALS))} times what an isometry leaves; means of {len(table)} pairs"
        )
        for column, name in _LOSSES.items():
            curves = [
                Line(cell, *(np.mean(part[f"scaled {one}"].tolist(), 0) for one in ("disparity", column)))
                for cell, part in _cells(table).items()
            ]
            charts[f"loss, {name}"] = Lines(curves, disparity, "accuracy lost", note=f"{note}, {rows}")
        return charts

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        means = _over_cells(by_cell(table)).items()
        rows = [finding(f"{name}, mean of cells", value, "Student's t over cells") for name, value in means]
        for cell, part in _cells(table).items():
            rows.append(finding(f"{cell}, {_BELOW}", share(part.disparity < ALIKE), "Wilson's"))
            rows.append(finding(f"{cell}, disparity", mean(part.disparity), "Student's t over pairs"))
        return findings_table(rows)

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        cells = by_cell(table)
        shares = cells[_BELOW]
        least = f"{short(shares.min(), 2)} ({shares.idxmin()})"
        most = f"{short(shares.max(), 2)} ({shares.idxmax()})"
        return sentence(
            "An isometry and a scale explain nine tenths of the held-out spread in a share of {:2} of pairs"
            f" of trainings, the mean of {len(cells)} networks and widths with {len(table) // len(cells)}"
            f" pairs each, from {least} to {most}. Where what they leave is scaled, .1 more disparity costs"
            " {} of accuracy with an absolute head after Procrustes (between pairs of one network and width,"
            " .1 more goes with {}), and {} with a relative head ({}).",
            *_over_cells(cells).values(),
        )


def _cells(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    parts = table.groupby(["network", "width"], sort=False)
    return {f"{NETWORKS[network]}, width {width}": part for (network, width), part in parts}


def _over_cells(cells: pd.DataFrame) -> dict[str, Estimate]:
    found = {}
    for name, values in cells.items():
        if name == _BELOW:
            found[name] = mean_score(values)
        else:
            found[name] = mean(values)
    return found


def by_cell(table: pd.DataFrame) -> pd.DataFrame:
    """For each network and width, the share of pairs that are alike, and what .1 of disparity costs.

    Costs are least-squares slopes within the cell, so that no network or width is compared with another one:
    the mean of those over the scaled residuals of each pair, and that from pair to pair.
    """
    rows: dict[str, dict[str, float]] = {}
    for cell, part in _cells(table).items():
        rows[cell] = {_BELOW: (part.disparity < ALIKE).mean()}
        for loss, name in _LOSSES.items():
            pairs = zip(part["scaled disparity"], part[f"scaled {loss}"], strict=True)
            scaled = np.mean([slope(*pair).value for pair in pairs])
            rows[cell] |= {f"cost, scaled, {name}": scaled / 10}
            rows[cell] |= {f"cost, between pairs, {name}": slope(part.disparity, part[loss]).value / 10}
    return pd.DataFrame.from_dict(rows, orient="index")


def with_residual(source: LatentSpace, target: LatentSpace, test: np.ndarray, times: float) -> LatentSpace:
    """The target, with its residual from the best isometric fit of the source multiplied by a factor: 0 gives
    an isometry of the source, 1 the target itself. The fit is on the rows not tested on.
    """
    known = np.setdiff1d(np.arange(len(source)), test)
    image = Procrustes().fit(source.vectors[known], target.vectors[known]).transform(source.vectors)
    moved = image + np.float32(times) * (target.vectors - image)
    return LatentSpace(moved, target.ids, name=f"{target.name}, × {times:g}", labels=target.labels)


def trained_space(network: str, width: int, random_state: int, store: Store, report: Progress) -> LatentSpace:
    if network != "autoencoder":
        encoder = SweptVision(network, width, epochs=_EPOCHS[network], random_state=random_state)
        return encode(_DATA, encoder, store, report)[0]
    dataset, pictures = digit_pictures(store)
    known = np.setdiff1d(np.arange(len(dataset)), held_out_rows(len(dataset)))
    spec = AutoencoderSpec(width=width, epochs=_EPOCHS[network])
    vectors = fit_autoencoder(pictures[known], spec, random_state, report).encode(pictures)
    name = f"autoencoder {width}, state {random_state}"
    return LatentSpace(vectors, dataset.ids, name=name, labels=dataset.labels)


def compared(
    source: LatentSpace, target: LatentSpace, test: np.ndarray, random_state: int = 0
) -> dict[str, float]:
    """Disparities of two spaces over the same labelled rows on the test rows, and the losses of stitching."""
    known = np.setdiff1d(np.arange(len(source)), test)
    order = np.random.default_rng(random_state).permutation(len(source))
    shuffled = source.vectors[order]
    pairs = [(source.vectors, target.vectors), (target.vectors, source.vectors)]
    values = {
        "disparity": float(np.mean([disparity(*pair, known, test) for pair in pairs])),
        "affine disparity": float(np.mean([disparity(*pair, known, test, Affine()) for pair in pairs])),
        "chance": disparity(shuffled, target.vectors, known, test),
    }
    spec = StitchSpec(
        ("absolute", "relative", "procrustes"),
        random_states=(random_state,),
        n_anchors=min(_N_ANCHORS, len(known) // 2),
        test_ids=tuple(source.ids[test]),
    )
    result = stitch_matrix([source, target], spec)
    for method in ("relative", "procrustes"):
        accuracy = result.matrix(method, "accuracy")[0]
        values[f"{method} loss"] = float(np.diag(accuracy).mean() - accuracy[~np.eye(2, dtype=bool)].mean())
    own = np.diag(result.matrix("absolute", "accuracy")[0]).mean()
    return values | {"accuracy": float(own), "chance of accuracy": result.chance(), "test rows": len(test)}


def disparity(
    source: np.ndarray, target: np.ndarray, known: np.ndarray, test: np.ndarray, kind: Any = None
) -> float:
    """The Procrustes disparity Σ ‖ŷ − y‖² / Σ ‖y − mean‖² over the test rows, with map and mean fitted on
    the known rows.

    0: an isometry and a scale (or what `kind` fits) explain all; 1: no better than the mean.
    """
    fitted = (kind or Procrustes()).fit(source[known], target[known])
    errors = fitted.transform(source[test]) - target[test]
    spread = centred(target[test], mean_row(target[known]))
    return float(np.sum(errors**2, dtype=np.float64) / np.sum(spread**2, dtype=np.float64))


COUNTS = (2, 4, 8, 16, 32, 64, 128, 256, 512)
PLATEAU = 0.95
ROOT = 0.5  # the least exponent that would change how many anchors one takes; ours, no paper gives one
_MOST_ROWS = 6000
# The rows that two of the kinds of pairs are made of; the others are named after their rows.
_MATERIALS = {"trainings": "digits", "reduced": "words"}
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
_DIMENSIONS = {
    "intrinsic dimension": two_nn,
    "participation ratio": participation_ratio,
    "condition number": condition_number,
    "width": lambda rows: rows.shape[1],
}
_STUDENT = "Student's t over pairs of spaces"
_PREDICTORS = {
    "intrinsic dimension": "intrinsic dimension (TwoNN)",
    "participation ratio": "participation ratio",
    "condition number": "condition number",
    "width": "width of the space",
}


class AnchorDimension(Study):
    """For each pair of spaces the number of random anchors, 2 to 512, at which the held-out MRR of relative
    rows comes to 95 % of its plateau, its best value; means over the random states, logarithms interpolated.

    MRR is mutual among the held-out rows, k = 10. Intrinsic dimension (TwoNN), participation ratio and
    condition number are geometric means of the two spaces' other rows. A pair has no answer where the best
    MRR is less than three times what chance gives, or where it is still growing at 512 anchors.
    """

    title = "Anchors and dimension"
    question = "How many anchors does a space need for its intrinsic dimension and its condition number?"
    paper = "Moschella et al. 2023, left open in section 6"

    options = (
        data_option("words", "reduced", "pooled", "digits", "sentences", "trainings"),
        states("the anchors and the held-out rows"),
    )
    cost: ClassVar = dict.fromkeys(_PAIRS, 3.0) | {"words": 6.0, "reduced": 6.0, "trainings": 4.0}

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        runs = grid(options, "", data=options["data"], pair=range(max(_PAIRS.values())))
        return [run for run in runs if run["pair"] < _PAIRS[run["data"]]]

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        data = settings["data"]
        state = settings["random_state"]
        pair = spaces_of_pair(data, settings["pair"], store, report)
        material = _MATERIALS.get(data, data)
        split = studied_split(material, pair[0], max(COUNTS), state, _MOST_ROWS)
        report(0, 1, " and ".join(space.name for space in pair))
        if data == "reduced":
            pair = tuple(reduced(space, split.known, _REDUCED[settings["pair"]]) for space in pair)
        known = [space.vectors[split.known] for space in pair]
        values: dict[str, Any] = {
            "spaces": " and ".join(space.name for space in pair),
            "test rows": len(split.test),
        }
        for name, measure in _DIMENSIONS.items():
            values[name] = float(np.exp(np.mean([np.log(measure(rows)) for rows in known])))
        for count in COUNTS:
            relative = [
                RelativeProjection()
                .fit(rows, anchors=space.vectors[split.anchors[:count]])
                .transform(space.vectors[split.test])
                for rows, space in zip(known, pair, strict=True)
            ]
            mrr = find_neighbours(*relative, k=_K, convention="mutual").mrr()
            values[f"mrr, {count} anchors"] = float(mrr)
        return RunResult(values | {"chance": mrr.null.mean, "chance, 97.5 %": mrr.null.high})

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        pairs = _by_pair(table)
        charts = {}
        if not len(pairs):
            return {}
        y = f"anchors for {PLATEAU * 100:.0f} % of the plateau"
        note = f"{len(pairs)} pairs of spaces, means over {table.random_state.nunique()} random states"
        for predictor, title in _PREDICTORS.items():
            points = [
                Line(data, part[predictor], part.anchors, labels=list(part.spaces))
                for data, part in pairs.groupby("data", sort=False)
            ]
            charts[predictor] = Lines(points, title, y, kind="points", log_x=True, note=note)
        curves = table[[f"mrr, {count} anchors" for count in COUNTS]].set_axis(COUNTS, axis=1)
        shares = curves.div(curves.max(axis=1), axis=0).assign(data=table.data)
        long = shares.melt("data", var_name="anchors", value_name="share")
        lines = lines_by(long, "anchors", "share", "data", {data: data for data in _PAIRS})
        look = {"log_x": True, "note": "bands: 95 % over pairs of spaces and random states"}
        return charts | {"curves": Lines(lines, "number of anchors", "MRR over its plateau", **look)}

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        pairs = _by_pair(table)
        rows = []
        parts = {"different pairs": _different(pairs), "reduced words": pairs[pairs.data == "reduced"]}
        for name, part in parts.items():
            if not len(part):
                continue
            ratio = part.anchors / part["intrinsic dimension"]
            named = {"anchors": part.anchors, "anchors over intrinsic dimension": ratio}
            rows += [
                finding(f"{name}: {what}, geometric mean", _geometric(values), _STUDENT)
                for what, values in named.items()
            ]
            rows += [
                finding(f"{name}: exponent of the {title}", _power(part, predictor), "logarithms over pairs")
                for predictor, title in _PREDICTORS.items()
            ]
        return findings_table(rows)

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        pairs = _by_pair(table)
        different = _different(pairs)
        if len(different) < 4:
            return ""
        without = len(_different(table)[["data", "pair"]].drop_duplicates()) - len(different)
        growth = [_growth(different, name) for name in ("intrinsic dimension", "condition number")]
        series = _power(pairs[pairs.data == "reduced"], "intrinsic dimension")
        words = f" For {series.n} cuts of one pair of word spaces to fewer axes, the exponent is {series:2}."
        return (
            f"Over {len(different)} pairs of spaces, some with a space in common ({without} more have no"
            f" plateau by {COUNTS[-1]} anchors), {PLATEAU * 100:.0f} % of the plateau of held-out MRR takes"
            f" {_geometric(different.anchors):0} anchors. {' '.join(growth)}{words * series.has_interval}"
        )


def spaces_of_pair(data: str, number: int, store: Store, report: Progress) -> tuple[LatentSpace, LatentSpace]:
    if data == "trainings":
        first = trained_space(*_TRAINED[number], 0, store, report)
        second = trained_space(*_TRAINED[number], 1, store, report)
        return first, second
    if data == "reduced":
        first, second, *_ = studied_spaces("words", store, report)
        return first, second
    spaces = studied_spaces(data, store, report)
    return list(combinations(spaces, 2))[number]


def reduced(space: LatentSpace, known: np.ndarray, width: int) -> LatentSpace:
    rows = space.vectors[known].astype(np.float64)
    mean = rows.mean(axis=0)
    axes = np.linalg.eigh((rows - mean).T @ (rows - mean))[1][:, ::-1][:, :width]
    return LatentSpace((space.vectors - mean) @ axes, space.ids, name=f"{space.name}, {width} components")


def needed(
    counts: Sequence[int], curve: Sequence[float], least: float, share: float = PLATEAU
) -> float | None:
    """The number of anchors, interpolated, at which the curve first reaches this share of its best value.

    None if the best value is below `least`, or if only the last number reaches that share.
    """
    values = np.asarray(curve, dtype=float)
    wanted = share * values.max()
    if values.max() < least or (values[:-1] < wanted).all():
        return None
    last = int(np.argmax(values >= wanted))
    if last == 0:
        return float(counts[0])
    part = (wanted - values[last - 1]) / (values[last] - values[last - 1])
    low = np.log(counts[last - 1])
    high = np.log(counts[last])
    return float(np.exp(low + part * (high - low)))


def _by_pair(table: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for (data, pair), part in table.groupby(["data", "pair"], sort=False):
        curve = [part[f"mrr, {count} anchors"].mean() for count in COUNTS]
        anchors = needed(COUNTS, curve, 3 * part["chance, 97.5 %"].mean())
        if anchors is not None:
            row = {"data": data, "pair": pair, "spaces": part.spaces.iloc[0], "anchors": anchors}
            rows.append(row | np.exp(np.log(part[[*_PREDICTORS]].astype(float)).mean()).to_dict())
    return pd.DataFrame(rows, columns=["data", "pair", "spaces", "anchors", *_PREDICTORS])


def _different(pairs: pd.DataFrame) -> pd.DataFrame:
    return pairs[pairs.data != "reduced"]


def _power(pairs: pd.DataFrame, predictor: str) -> Estimate:
    return slope(np.log(pairs[predictor]), np.log(pairs.anchors))


def _growth(pairs: pd.DataFrame, name: str) -> str:
    power = _power(pairs, name)
    if power.low <= 0 and power.high >= ROOT:
        return (
            f"For growth with the {name} the study is underpowered (exponent {power:2}): it takes about"
            f" {n_needed(power, ROOT)} pairs to tell growth with its square root from none."
        )
    how = "with less than the square root of the"
    if power.low > 0:
        how = "with the"
    if_at_all = ""
    if power.low <= 0:
        if_at_all = ", if at all"
    return f"Their number grows {how} {name}{if_at_all} (exponent {power:2})."


def _geometric(values: pd.Series) -> Estimate:
    logs = mean(np.log(values))
    return Estimate(*np.exp([logs.value, logs.low, logs.high]).tolist(), logs.n)
