"""Studies whose numbers appear beside those of the papers: pruned inverses, numbers of anchors, training on
relative rows, and similarity of networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.names import ROUTES
from relcore.base.numbers import band, counted, general, short
from relcore.base.rows import centred, mean_row, unit_rows
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import Dataset, DatasetSpec, TrainedEncoder, encoder_from_json
from relcore.encoders.vision import (
    SweptVision,
    held_out_rows,
    new_network,
    split_pictures,
)
from relcore.engine.engine import Engine
from relcore.engine.training import reproducible, train_epoch
from relcore.figures.charts import Line, Lines, Matrices, MatrixPanel
from relcore.invert.inversion import sides
from relcore.represent.heads import fit_head
from relcore.represent.similarity import select_anchors, shared_anchors
from relcore.represent.translation import InverseRelativeProjection, Procrustes, pruned_decoders
from relcore.runs.store import Progress, Store, silent
from relcore.scores.score import ChanceLevel
from relcore.spaces.space import LatentSpace, Match, match
from relcore.spaces.split import Split, row_keys
from relcore.stitch.stitching import StitchSpec, share_rows, stitch_matrix
from relcore.studies.study import (
    BASELINES,
    DATA,
    LABELLED,
    MEASURES,
    NAMES,
    OWN,
    SPACES,
    Estimate,
    Option,
    RunResult,
    Settings,
    Study,
    average,
    chart,
    correlation,
    count_of,
    finding,
    findings_over,
    findings_table,
    finished_run,
    gains,
    grid,
    labelled_spaces,
    lines_over,
    mean,
    mean_at,
    mean_score,
    points_chart,
    sentence,
    states,
    stitched_values,
    test_ids_of,
    word_pair,
)

DELTAS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9)
OMEGAS = (1, 2, 4, 8, 16)
# number of rows: held out in a cell of the study; to train a classifier
MOST_ROWS = 2000
MOST_TRAIN = 4000
_ENDS = {"digits": (1, 3), "sentences": (0, 3)}  # source and target: CNN → ViT; TF-IDF + SVD → MiniLM
_RECOVERED = ("cosine", "within", "accuracy", "condition", "kept", "chance")
_LEVELS = ("procrustes", "not stitched", "most frequent class")


class Pruning(Study):
    """Rows of a source are translated into a target through pruned anchors. With a larger δ, fewer anchors
    are kept, and they differ more. ω is the number of prunings that are averaged. Each δ and ω is judged by
    the cosine of translated rows to the true rows of the target, and by the accuracy of the target's logistic
    classifier on translated rows. "Within" inverts the target's own relative rows."""

    options = (
        Option(
            "data", "Spaces", (*LABELLED, "words"), "digits", help=f"{DATA.help} Words: the two word spaces."
        ),
        Option("route", "Recovered", tuple(ROUTES), "forward", names=tuple(r.title for r in ROUTES.values())),
        Option("n_anchors", "Anchors", (100, 300, 768), 300),
        states("anchors, prunings and rows"),
        SPACES,
    )

    shared = "data route n_anchors spaces"
    reading = "A cell is one setting: δ grows to the right, ω downwards. Dark cells recover the rows best."
    cost: ClassVar = {"digits": 2.0, "sentences": 30.0, "words": 30.0}

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        pair, test_ids = _pair_of(settings, store, report)
        state = settings["random_state"]
        anchors = select_anchors(pair.source, settings["n_anchors"], random_state=state).tolist()
        return RunResult(inversion_sweep(pair, anchors, settings["route"], state, test_ids, report=report))

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Matrices]:
        cells = mean_cells(table)
        k = table.n_anchors.iloc[0]
        circumstances = f"{count_of(table, 'held-out rows', 'n_rows')}, {k:,} anchors"
        circumstances += f", mean of {len(table)} random states"
        levels = {name: short(average(table, name), 2) for name in _LEVELS}
        chance = band(average(table, "best by chance, low"), average(table, "best by chance, high"))
        described = {
            "cosine": (
                "Recovered rows",
                f"cosine; Procrustes {levels['procrustes']}, best by chance {chance}",
            ),
            "within": ("Within the target", "cosine, by the same prunings"),
            "accuracy": (
                "Classifier of the target",
                f"accuracy; not stitched {levels['not stitched']}, chance {levels['most frequent class']}",
            ),
        }
        drawn = [name for name in described if name == "cosine" or cells[name].notna().any()]
        panels = tuple(_panel(cells, name, *described[name]) for name in drawn)
        condition = _panel(cells, "condition", "Condition number", "of what is inverted", digits=1)
        top = max(10.0, float(np.nanmax(condition.values, initial=10.0)))
        kept = _panel(cells, "kept", "Anchors kept", circumstances, digits=0)
        alt = f"Heat maps over δ × ω, {circumstances}. {self.conclusion(options, table)}"
        axes = (alt, "ω", "δ")
        return {
            "recovered": Matrices(panels, (0.0, 1.0), "cosine and accuracy", *axes),
            "condition": Matrices((condition,), (1.0, top), "condition number", *axes, log=True),
            "kept": Matrices((kept,), (0.0, float(k)), "anchors kept", *axes),
        }

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        cells = mean_cells(table)
        if not cells["cosine"].notna().any():
            return findings_table([])
        rows = [
            finding(f"δ {general(delta)}, ω {omega}, {measure}", _at(table, (delta, omega), measure))
            for delta, omega in dict.fromkeys((cells["cosine"].idxmax(), (0.0, 1), (DELTAS[-1], OMEGAS[-1])))
            for measure in ("cosine", "accuracy", "kept")
            if not np.isnan(cells.loc[(delta, omega), measure])
        ]
        levels = ("procrustes", "not stitched", "best by chance, high")
        rows += [finding(name, mean(table[name])) for name in levels if table[name].notna().any()]
        return findings_table(rows)

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        cells = mean_cells(table)["cosine"]
        if not cells.notna().any():
            return ""
        delta, omega = cells.idxmax()
        return (
            f"The best of {int(cells.notna().sum())} settings on the same runs is δ = {general(delta)}, ω ="
            f" {omega}: the mean cosine to the true rows is {_at(table, (delta, omega), 'cosine')}; by chance"
            f" the best stays below {short(average(table, 'best by chance, high'))}."
        )


def mean_cells(table: pd.DataFrame) -> pd.DataFrame:
    return pd.concat(map(cells_of, table.cells)).groupby(level=[0, 1]).mean()


def cells_of(cells: Sequence[dict[str, float | None]]) -> pd.DataFrame:
    return pd.DataFrame(list(cells)).astype({"omega": int}).set_index(["delta", "omega"]).astype(float)


def _at(table: pd.DataFrame, cell: tuple[float, int], measure: str) -> Estimate:
    return mean_score([cells_of(cells).loc[cell, measure] for cells in table.cells])


def _panel(cells: pd.DataFrame, column: str, title: str, note: str, digits: int | None = None) -> MatrixPanel:
    wide = cells[column].unstack("delta")
    texts = None
    if digits is not None:
        shown = wide.map(lambda value: "" if np.isnan(value) else f"{value:,.{digits * (value < 100)}f}")
        texts = tuple(map(tuple, shown.to_numpy()))
    hover = tuple(
        tuple(_note_of(cells.loc[(delta, omega)]) for delta in wide.columns) for omega in wide.index
    )
    rows = tuple(map(int, wide.index))
    columns = tuple(map(float, wide.columns))
    return MatrixPanel(title, rows, columns, wide.to_numpy(dtype=float), texts, hover, note)


def _note_of(cell: pd.Series) -> str:
    lines = [f"{name} {short(cell[name])}" for name in _RECOVERED if not np.isnan(cell[name])]
    return "\n".join(lines + ["pruning keeps only one anchor; lower δ"] * bool(np.isnan(cell["cosine"])))


def _pair_of(settings: Settings, store: Store, report: Progress) -> tuple[Match, tuple[str, ...]]:
    if settings["spaces"] or settings["data"] == "words":
        return word_pair(settings["spaces"], store), ()
    spaces = labelled_spaces(settings["data"], store, report)
    source, target = _ENDS[settings["data"]]
    return match(spaces[source], spaces[target]), test_ids_of(settings["data"], spaces[0])


def inversion_sweep(
    pair: Match,
    anchors: Sequence[str],
    route: str = "forward",
    random_state: int = 0,
    test_ids: Sequence[str] = (),
    deltas: Sequence[float] = DELTAS,
    omegas: Sequence[int] = OMEGAS,
    n_rows: int = MOST_ROWS,
    report: Progress = silent,
) -> dict[str, Any]:
    """Evaluate the pruned inverse on the grid δ × ω. Cells with a larger ω reuse the prunings of cells with a
    smaller one.

    It is evaluated on a random sample of the rows that are not anchors. If both spaces have the same labels,
    a logistic head of the target classifies translated test rows.

    In the result, "cells" holds a dict for each cell: delta, omega, cosine (the mean over held-out rows),
    chance (the same mean over permuted rows), within, condition and kept (means over the prunings), and
    accuracy. Missing values are None. Invalid anchors raise a SpaceError.
    """
    source, target = sides(pair, route)
    chosen = pair.source.rows(shared_anchors(anchors, pair.source, pair.target))
    test, accuracy, chance = _judge((source, target), pair.ids[chosen], test_ids, n_rows, random_state)
    rows = Split.held_out(pair.ids, chosen, random_state).queries(n_rows)
    means = mean_row(source.vectors), mean_row(target.vectors)
    pairs = source.vectors[chosen], target.vectors[chosen]
    # Fit an inverse, which raises an error if the anchors are invalid.
    InverseRelativeProjection(omega=1, delta=0).fit(*pairs, source_mean=means[0], target_mean=means[1])
    units = [unit_rows(vectors, mean) for vectors, mean in zip(pairs, means, strict=True)]
    true = unit_rows(target.vectors[rows], means[1])
    inputs = {"cosine": Engine().map_rows(source.vectors[rows], units[0].T, mean=means[0], unit=True)}
    if route != "within":
        inputs["within"] = Engine().map_rows(target.vectors[rows], units[1].T, mean=means[1], unit=True)
    tests = Engine().map_rows(source.vectors[test], units[0].T, mean=means[0], unit=True)
    cells = []
    by_chance = BestCellChance(true, random_state=random_state)
    for pruned in pruned_decoders(units[1], deltas, omegas, random_state):
        decoder = pruned.matrix.astype(np.float32)
        condition = float(np.mean(pruned.condition_numbers))
        sizes = [len(kept) for kept in pruned.kept]
        cell = {"delta": pruned.delta, "omega": pruned.omega} | dict.fromkeys(_RECOVERED)
        cell |= {"condition": condition if np.isfinite(condition) else None, "kept": float(np.mean(sizes))}
        if min(sizes) > 1:
            for name, relative in inputs.items():
                decoded = unit_rows(relative @ decoder)
                cell[name] = float(np.einsum("ij,ij->i", decoded, true).mean(dtype=np.float64))
                if name == "cosine":
                    # The mean over all permutations of the rows is the product of both mean rows.
                    cell["chance"] = float(mean_row(decoded) @ mean_row(true))
                    by_chance.add(decoded)
            if accuracy:
                cell["accuracy"] = accuracy(tests @ decoder + means[1])
        cells.append(cell)
        report(len(cells), len(deltas) * len(omegas), f"δ {general(pruned.delta)}, ω {pruned.omega}")
    rotation = Procrustes().fit(*pairs).transform(source.vectors[rows])
    rotated = np.einsum("ij,ij->i", unit_rows(rotation, means[1]), true).mean(dtype=np.float64)
    null = by_chance.null()
    return {
        "cells": cells,
        "n_rows": len(rows),
        "n_anchors": len(chosen),
        "procrustes": 1.0 if route == "within" else float(rotated),
        "not stitched": accuracy and accuracy(target.vectors[test]),
        "most frequent class": chance,
        "test rows": len(test),
        "best by chance, low": null and null.low,
        "best by chance, high": null and null.high,
    }


class BestCellChance:
    """The chance level of the best mean cosine in a grid of settings. The recovered rows (m, d) are added one
    cell at a time.

    The cells of a grid are correlated, so each permutation of the true unit rows (m, d) is used for all
    cells. A permutation is a single cycle, so that no row keeps its partner.
    """

    def __init__(self, true: np.ndarray, n_permutations: int = 200, random_state: int = 0) -> None:
        rng = np.random.default_rng(random_state)
        orders = [rng.permutation(len(true)) for _ in range(n_permutations)]
        self._true = true
        self._best = np.full(n_permutations, -np.inf)
        self._partners = np.stack([order[np.argsort(np.roll(order, 1))] for order in orders], axis=1)

    def add(self, decoded: np.ndarray) -> None:
        cosines = np.take_along_axis(decoded @ self._true.T, self._partners, axis=1)
        self._best = np.maximum(self._best, cosines.mean(axis=0, dtype=np.float64))

    def null(self) -> ChanceLevel | None:
        if np.isfinite(self._best).all():
            return ChanceLevel.from_draws(self._best)
        return None


def _judge(
    spaces: tuple[LatentSpace, LatentSpace],
    anchors: np.ndarray,
    test_ids: Sequence[str],
    n_rows: int,
    random_state: int,
) -> tuple[np.ndarray, Callable[[np.ndarray], float] | None, float | None]:
    none = np.empty(0, dtype=np.int64), None, None
    if any(space.labels is None for space in spaces):
        return none
    try:
        shared = share_rows(spaces)
        labelled = shared.spaces[0].index.get_indexer(anchors)
        known_ids = sorted(set(test_ids) & set(shared.ids) - set(anchors))
        settings = {"test_ids": known_ids, "labels": shared.targets, "random_state": random_state}
        split = Split.draw(shared.ids, anchors=labelled[labelled >= 0], **settings)
    except SpaceError:
        return none
    test = split.queries(n_rows)
    train = split.known
    if len(train) > MOST_TRAIN:
        keys = row_keys(shared.ids[train], "head", random_state)
        train = np.sort(train[np.argsort(keys)[:MOST_TRAIN]])
    if len(np.unique(shared.targets[train])) < len(shared.classes):
        return none
    head = fit_head(shared.spaces[1].vectors[train], shared.targets[train], len(shared.classes))
    targets = shared.targets[test]
    chance = float((targets == np.bincount(shared.targets).argmax()).mean())

    def accuracy(rows: np.ndarray) -> float:
        return float((head.probabilities(rows).argmax(axis=1) == targets).mean())

    return spaces[1].rows(shared.ids[test]), accuracy, chance


_ENOUGH = 0.95  # minimum share of the accuracy without stitching; the anchors are then enough
_COARSE = (2, 5, 10, 20, 50, 100, 200, 400, 800)
_PAPER = (*range(1, 50, 2), *range(50, 100, 5), *range(100, 1001, 20))


class AnchorCount(Study):
    """Fig. 6: logistic classifiers are trained on relative and on whitened rows of frozen encoders. Anchors
    are random training rows.
    """

    version = 2
    options = (
        DATA,
        Option(
            "grid",
            "Numbers of anchors",
            ("coarse", "paper"),
            "coarse",
            help="Coarse: nine numbers, 2 to 800. Paper: the 80 numbers of the paper.",
        ),
        states("the anchors and, for sentences, the test rows", 5),
    )
    by = "n_anchors"
    measures = MEASURES
    reading = "Anchors are enough where a line reaches the dashed line, which is not stitched."

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        return grid(options, "data", n_anchors=_COARSE if options["grid"] == "coarse" else _PAPER)

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        spaces = labelled_spaces(settings["data"], store, report)
        report(0, 1, f"{settings['n_anchors']} anchors")
        spec = StitchSpec(
            ("absolute", "relative", "whitened"),
            n_anchors=settings["n_anchors"],
            random_states=(settings["random_state"],),
            test_ids=test_ids_of(settings["data"], spaces[0]),
        )
        return RunResult(stitched_values(spaces, spec))

    def seconds(self, settings: Settings) -> float:
        return (6.5 if settings["data"] == "digits" else 13.0) + settings["n_anchors"] / 90

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        lines = lines_over(table, "n_anchors", MEASURES)
        rows = f"{count_of(table)}, 4 encoders, 12 pairs"
        return {
            "accuracy": chart(table, lines, ("number of anchors", "accuracy"), rows, BASELINES, log_x=True)
        }

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        rows = {"relative, stitched": "relative rows", "whitened, stitched": "whitened rows"}
        enough = _enough_anchors(table, OWN, rows)
        return enough and (
            f"The accuracy without stitching is {short(average(table, OWN))}. To come within 5 % of it,"
            f" stitched classifiers need {enough}."
        )


def _enough_anchors(table: pd.DataFrame, full: str, measures: Mapping[str, str]) -> str:
    """A text that says how many anchors bring each measured column to 95 % of the column `full`; "" if there
    are no intervals.

    A number of anchors is enough if, for it and all larger numbers, the lower end of the 95 % interval of the
    mean ratio is at least .95.
    """
    most = table.n_anchors.max()
    parts = []
    for column, name in measures.items():
        enough = None
        for n, part in sorted(table.groupby("n_anchors"), reverse=True):
            if not mean(part[column].astype(float) / part[full].astype(float)).low >= _ENOUGH:
                break
            enough = n
        reached = mean_at(table, "n_anchors", enough or most, column)
        if not reached.has_interval:
            return ""
        if enough:
            gives = f"which give {reached}"
        else:
            gives = f"where {most} give {reached}"
        parts.append(f"{enough or f'perhaps more than {most}'} anchors on {name}, {gives}")
    return f"{', and '.join(parts)}; over {table.random_state.nunique()} random states"


_FORMS = {"absolute": "absolute", "relative": "relative", "whitened": "relative, whitened"}


class TrainingRelative(Study):
    """Table 2: a small network (two hidden layers of 256, AdamW at 1e-3, 30 epochs) is trained on frozen
    features."""

    version = 2
    options = (
        DATA,
        Option(
            "n_anchors", "Anchors", (100, 300, 500), 500, help="Random training rows; the paper takes 500."
        ),
        states("the anchors and the classifier's first weights", 6, (3, 6, 10)),
    )

    shared = "data n_anchors"
    varied: ClassVar = {"features": _FORMS}
    reading = "Where training on relative rows costs accuracy, points are lower than those of absolute rows."
    cost: ClassVar = {"digits": 85.0, "sentences": 110.0}

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        spaces = labelled_spaces(settings["data"], store, report)
        report(0, 1, f"classifiers on {settings['features']} features")
        spec = StitchSpec(
            (settings["features"],),
            "mlp",
            (settings["random_state"],),
            settings["n_anchors"],
            test_ids=test_ids_of(settings["data"], spaces[0]),
        )
        result = stitch_matrix(spaces, spec)
        values: dict[str, Any] = {"test rows": result.n_test, "chance": result.chance()}
        for metric, name in (("accuracy", "accuracy"), ("f1", "F1")):
            own = np.diag(result.matrix(settings["features"], metric)[0]).tolist()
            values[name] = float(np.mean(own))
            values |= {f"{name} of {encoder}": one for encoder, one in zip(result.encoders, own, strict=True)}
        return RunResult(values)

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        encoders = {column: column.removeprefix("F1 of ") for column in table if column.startswith("F1 of ")}
        both = {"F1": "weighted F1", "accuracy": "accuracy"}
        charts = {}
        rows = f"{count_of(table)}, 4 encoders"
        for name, measures, y in (("weighted F1", encoders, "weighted F1"), ("mean", both, "score")):
            titles = ("features", y)
            chance = {"chance": "chance"}
            charts[name] = points_chart(table, "features", _FORMS, measures, titles, rows, chance)
        return charts

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        measures = {column: column for column in table if column.startswith(("F1", "accuracy"))}
        return findings_table(findings_over(table, "features", measures, _FORMS))

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        changes = gains(table, "features", "absolute", "F1")
        if len(changes) < 2:
            return ""
        answer = "No cost is seen"
        if any(change.high < 0 for change in changes.values()):
            answer = "Yes"
        return (
            f"{answer}: compared with training on absolute rows, weighted F1 changes by {changes['relative']}"
            f" on relative and by {changes['whitened']} on whitened rows."
        )


_COUNTS = (2, 5, 10, 20, 50, 100, 200)
_MEASURES = {
    "relative, same space": "relative, same space",
    "relative, stitched": "relative, stitched with another random state",
}


class TrainedCount(Study):
    """Fig. 6, left, on the digits. A network consists of an encoder, the cosines to anchors, LayerNorm, and a
    Linear head. The anchors are encoded again at each step. The head of a second network with the same
    anchors classifies the relative rows of the first network.
    """

    version = 2
    options = (
        Option("architecture", "Network", ("mlp", "cnn"), "mlp"),
        Option("epochs", "Epochs", (5, 12, 20), 12),
        states("the anchors and both networks' first weights"),
    )
    reading = "Anchors are enough where a line reaches the dashed line, a network trained on absolute rows."
    by = "n_anchors"
    measures: ClassVar = {**_MEASURES, "absolute": "absolute, not stitched"}

    shared = "architecture epochs"
    varied: ClassVar = {"n_anchors": _COUNTS}

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        dataset = load_dataset(DatasetSpec("digits"), store)
        state = settings["random_state"]
        network = {name: settings[name] for name in ("architecture", "epochs")}
        specs = [SweptVision(**network, random_state=2 * state + one) for one in (0, 1)]
        return RunResult(absolute_and_relative_accuracy(specs, dataset, settings["n_anchors"], state, report))

    def seconds(self, settings: Settings) -> float:
        return 1.0 + settings["epochs"] * {"mlp": 1.9, "cnn": 6.8}[settings["architecture"]]

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        lines = lines_over(table, "n_anchors", _MEASURES)
        titles = ("number of anchors", "accuracy")
        levels = {"absolute, not stitched": "absolute", "chance": "chance"}
        return {"accuracy": chart(table, lines, titles, count_of(table), levels, log_x=True)}

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        rows = dict(zip(_MEASURES, ("its own rows", "rows of another training run"), strict=True))
        enough = _enough_anchors(table, "absolute", rows)
        return enough and (
            f"The accuracy on absolute rows is {short(average(table, 'absolute'))}. To come within 5 % of it,"
            f" a classifier needs {enough}."
        )


# Networks that contain relative representations. Anchors are encoded again at each step, without a gradient.
# As in the authors' code, relative rows pass through a LayerNorm before the head. Without it, the head learns
# the spread of the cosines in its own network, and the stitched accuracy on digits with 200 anchors is .51
# instead of .94.

_BATCH = 64


def absolute_and_relative_accuracy(
    specs: Sequence[SweptVision], dataset: Dataset, n_anchors: int, random_state: int, report: Progress
) -> dict[str, float]:
    """The test accuracies of networks that share `n_anchors` random training pictures as anchors.

    "absolute" and "relative, same space" are the accuracies of a head on absolute and on relative rows of its
    own network. "relative, stitched" is the accuracy of the second network's head on relative rows of the
    first. The result also has "chance" and "test rows".
    """
    import torch

    parts = split_pictures(dataset)
    anchors = np.sort(np.random.default_rng(random_state).choice(parts.train, n_anchors, replace=False))
    images = torch.from_numpy(parts.pixels)
    targets = torch.from_numpy(parts.classes)
    test = images[parts.test]
    truth = parts.classes[parts.test]
    networks = ((specs[0], None), (specs[0], anchors), (specs[1], anchors))
    models = []
    for number, network in enumerate(networks):
        report(number, 3, f"network {number + 1} of 3")
        models.append(_train(*network, images, targets, parts.train))
    (encode_absolute, absolute_head), (encode, head), (_, other_head) = models
    with torch.inference_mode():
        rows = encode(test)
        scores = {
            "absolute": absolute_head(encode_absolute(test)),
            "relative, same space": head(rows),
            "relative, stitched": other_head(rows),
        }
    answers = {name: one.argmax(dim=1).numpy() for name, one in scores.items()}
    accuracy = {name: float((one == truth).mean()) for name, one in answers.items()}
    majority = np.bincount(parts.classes[parts.train]).argmax()
    return accuracy | {"chance": float(np.mean(truth == majority)), "test rows": len(truth)}


def _train(spec: SweptVision, anchors: np.ndarray | None, images, targets, train: np.ndarray):
    import torch
    from torch.nn.functional import cross_entropy, normalize

    with reproducible(spec.random_state):
        model = new_network(spec, tuple(images.shape[1:]), int(targets.max()) + 1)
        if anchors is not None:
            k = len(anchors)
            n_classes = int(targets.max()) + 1
            model["head"] = torch.nn.Sequential(torch.nn.LayerNorm(k), torch.nn.Linear(k, n_classes))

        def encode(pictures):
            rows = model["encoder"](pictures)
            if anchors is None:
                return rows
            with torch.no_grad():
                fixed = normalize(model["encoder"](images[anchors]))
            return normalize(rows) @ fixed.T

        optimizer = torch.optim.Adam(model.parameters(), lr=spec.learning_rate)
        model.train()
        loss = lambda batch: cross_entropy(model["head"](encode(images[batch])), targets[batch])  # noqa: E731
        rows = torch.from_numpy(train)
        for _ in range(spec.epochs):
            train_epoch(loss, rows[torch.randperm(len(rows))].split(_BATCH), optimizer)
        model.eval()
    return encode, model["head"]


SIMILARITIES = ("similarity", "centred similarity")
# Minimum best validation accuracy of a run that counts in the average over epochs, as in the paper.
POOR = 0.5
_REFERENCE = {
    "data": "digits",
    "encoder": "swept-vision",
    "architecture": "cnn",
    "width": 64,
    "depth": 3,
    "epochs": 20,
    "random_state": 1,
}
_N_ANCHORS = 100
_INTERVALS = {"pearson": "Fisher's z", "spearman": "Fisher's z, Bonett and Wright's variance"}
_CHOSEN = {"plain": "similarity", "centred": "centred similarity"}


class SimilarityPerformance(Study):
    """Figs. 3 and 8: networks with many settings are compared, after every epoch, with the best epoch of a
    reference network.

    The similarity is the mean cosine between the relative rows of a network and those of the reference.
    Anchors are random training items. "Centred", which is not in the paper, subtracts the mean of each space
    first. Similarities and accuracies are computed on test rows.
    """

    options = (
        Option(
            "data",
            "Networks of",
            ("digits",),
            "digits",
        ),
        Option(
            "n_runs",
            "Networks",
            (12, 30, 60, 96, 192),
            60,
            help="Drawn at random from the whole grid; always the same ones.",
        ),
        Option(
            "similarity",
            "Similarity",
            ("plain", "centred"),
            "plain",
            help=("Cosines to the anchors as in the paper, or with the mean of each space subtracted first."),
        ),
    )

    reading = (
        "Each point is a network. Points to the right are more similar to the reference, higher points more"
        " accurate."
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        runs = _grid()
        chosen = np.random.default_rng(0).permutation(len(runs))[: options["n_runs"]]
        return [{"data": options["data"], **runs[number]} for number in chosen]

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        dataset = load_dataset(DatasetSpec("digits"), store)
        encoder = _encoder(settings)
        if settings == _REFERENCE:
            return _measure(encoder, dataset, report, None)
        training = lambda *progress: report(0, 1, "training the reference first")  # noqa: E731
        rows = finished_run(self, _REFERENCE, store, training).arrays
        return _measure(encoder, dataset, report, rows)

    def seconds(self, settings: Settings) -> float:
        return 1.0 + settings["epochs"] * {"mlp": 1.1, "cnn": 3.6}[settings["architecture"]]

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        chosen = _CHOSEN[options["similarity"]]
        good = _good(table)
        charts = {"over models": _scatter(table, chosen)}
        return charts | ({"over epochs": _by_epoch(good, chosen)} if len(good) else {})

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        good = _good(table)
        rows = []
        for name in SIMILARITIES:
            for kind, title in NAMES.items():
                found = correlation(table[name], table.accuracy, kind)
                rows.append(finding(f"{title} over models, {name}", found, _INTERVALS[kind]))
            for kind, title in NAMES.items():
                found = mean(good[f"{kind} over epochs, {name}"], bounded=True)
                rows.append(
                    finding(f"mean {title} over epochs within a run, {name}", found, "bootstrap over runs")
                )
        return findings_table(rows)

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        chosen = _CHOSEN[options["similarity"]]
        if len(table) < 4:
            return ""
        over_models = correlation(table[chosen], table.accuracy)
        answer = "This is not seen"
        if over_models.low > 0:
            answer = "Yes, the more similar, the better"
        return sentence(
            f"{answer}: over {len(table)} networks, {chosen} to the reference and accuracy have a Pearson"
            " correlation of {}; over the epochs within a network it is {} on average.",
            over_models,
            mean(_good(table)[f"pearson over epochs, {chosen}"], bounded=True),
        )


def _grid() -> list[dict[str, Any]]:
    axes = {
        "encoder": ["swept-vision"],
        "architecture": ["mlp", "cnn"],
        "width": [16, 64],
        "depth": [1, 2, 3],
        "activation": ["relu", "tanh"],
        "dropout": [0.0, 0.3],
        "rate": [("adam", 0.001), ("adam", 0.0003), ("sgd", 0.02), ("sgd", 0.1)],
        "epochs": [4, 8, 15],
        "random_state": [0, 1, 2, 3, 4],
    }
    combinations = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    for one in combinations:
        one["optimizer"], one["learning_rate"] = one.pop("rate")
    return combinations


def _encoder(settings: Settings) -> TrainedEncoder:
    return encoder_from_json({name: value for name, value in settings.items() if name != "data"})


def _measure(encoder, dataset, report: Progress, reference: dict[str, np.ndarray] | None) -> RunResult:
    rows, anchors = _rows_and_anchors(len(dataset))
    compared: dict[str, list[float]] = {name: [] for name in SIMILARITIES}
    kept: list[dict[str, np.ndarray]] = []

    def watch(vectors: np.ndarray) -> None:
        own = _relative(vectors, rows, anchors)
        if reference is None:
            kept.append(own)
            return
        for name, curve in compared.items():
            cosines = np.vecdot(unit_rows(own[name]), unit_rows(reference[name]))
            curve.append(float(cosines.mean(dtype=np.float64)))

    facts = encoder.train(dataset, report, watch).metadata
    best = facts["epoch"] - 1
    accuracy = facts["test_accuracies"]
    values = {
        "outcome": "trained",
        "best epoch": facts["epoch"],
        "best validation accuracy": facts["accuracies"][best],
        "accuracy": accuracy[best],
    }
    if reference is None:
        return RunResult(values, kept[best])
    for name, curve in compared.items():
        values[name] = curve[best]
        for kind in NAMES:
            value = correlation(curve, accuracy, kind).value
            values[f"{kind} over epochs, {name}"] = None if np.isnan(value) else value
    values |= {f"{name} by epoch": [round(one, 5) for one in curve] for name, curve in compared.items()}
    return RunResult(values | {"accuracy by epoch": [round(one, 5) for one in accuracy]})


def _rows_and_anchors(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    test = held_out_rows(n)
    return test, np.sort(rng.choice(np.setdiff1d(np.arange(n), test), _N_ANCHORS, replace=False))


def _relative(vectors: np.ndarray, rows: np.ndarray, anchors: np.ndarray) -> dict[str, np.ndarray]:
    moved = centred(vectors, mean_row(vectors))
    spaces = {"similarity": vectors, "centred similarity": moved}
    return {
        name: Engine().map_rows(space[rows], unit_rows(space[anchors]).T, unit=True)
        for name, space in spaces.items()
    }


def _good(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["best validation accuracy"] >= POOR]


def _scatter(table: pd.DataFrame, similarity: str) -> Lines:
    rows = table.assign(
        x=table[similarity], y=table.accuracy, label=[model_label(row) for row in table.to_dict("records")]
    )
    correlations = {
        name: correlation(table[similarity], table.accuracy, kind) for kind, name in NAMES.items()
    }
    return _groups(rows, similarity, f"Over {counted(len(table), 'model')}", correlations)


def _by_epoch(table: pd.DataFrame, similarity: str) -> Lines:
    columns = {"x": table[f"{similarity} by epoch"], "y": table["accuracy by epoch"]}
    labels = [
        [f"{model_label(row)}, epoch {epoch + 1}" for epoch in range(row["epochs"])]
        for row in table.to_dict("records")
    ]
    rows = table.assign(**columns, label=labels).explode(["x", "y", "label"])
    correlations = {
        name: mean(table[f"{kind} over epochs, {similarity}"], bounded=True) for kind, name in NAMES.items()
    }
    head = f"Over epochs, within each of {counted(correlations['Pearson'].n, 'run')}; means"
    return _groups(rows, similarity, head, correlations)


def _groups(rows: pd.DataFrame, similarity: str, head: str, correlations: dict[str, Estimate]) -> Lines:
    lines = [
        Line(f"{kind.upper()}, {optimizer}", part.x, part.y, labels=list(part.label))
        for (kind, optimizer), part in rows.groupby(["architecture", "optimizer"])
    ]
    texts = [f"{name} {estimate}" for name, estimate in correlations.items() if not np.isnan(estimate.value)]
    note = ""
    if texts:
        note = f"{head}:\n{', '.join(texts)}"
    return Lines(lines, f"{similarity} to the reference (mean cosine)", "accuracy", kind="points", note=note)


def model_label(row: dict[str, Any]) -> str:
    size = f"{row['depth']} × {row['width']}"
    rate = f"rate {row['learning_rate']:g}"
    return f"{row['activation']}, {size}, dropout {row['dropout']:g}, {rate}, {row['epochs']} epochs"
