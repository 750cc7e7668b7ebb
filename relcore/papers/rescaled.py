"""The second paper's figures: rows at other lengths, lengths of rows, and pruning over δ × ω."""

from __future__ import annotations

import numpy as np

from relcore.anchors.selection import select_anchors
from relcore.inverting.sweep import SweepSpec, inversion_sweep
from relcore.metrics.calibration import Z95
from relcore.papers.local import labelled
from relcore.papers.ours import Number
from relcore.papers.runs import Measured, Settings
from relcore.papers.summaries import averaged, rounded
from relcore.progress import Report
from relcore.rescaling.input_lengths import NETWORKS, InputRescaleResult, InputRescaleSpec, rescale_input
from relcore.rescaling.layer_lengths import LayerRescaleResult, LayerRescaleSpec, rescale_network
from relcore.spaces import match
from relcore.store import Store
from relcore.studies.material import dataset_of
from relcore.studies.statistics import correlation

_CNN = 1  # among the four encoders of the digits


def layers(settings: Settings, store: Store, report: Report) -> Measured:
    """Fig. 2: accuracy as it is, and with each layer's rows at other lengths, one layer at a time."""
    from relcore.sources.text import MiniLM

    result = rescale_network(dataset_of("sentences"), MiniLM((6,)), store, LayerRescaleSpec(**settings), report)
    facts = {"n": result.n_test, "baseline": rounded(result.chance)}
    numbers = [Number("without any rescaling", "accuracy", rounded(result.own), **facts)]
    span = f"from 1/{settings['span']:g} to {settings['span']:g} times the mean length"
    for line in result.table().to_dict("records"):
        for metric in ("at about its mean", "least of all"):
            told = metric if metric != "least of all" else f"least, {span}"
            numbers.append(Number(line["layer"], f"{told}: accuracy", rounded(line[metric]), **facts))
        numbers.append(_lost(result, line["layer"]))
    return Measured(tuple(numbers))


def _lost(result: LayerRescaleResult, layer: str) -> Number:
    """Accuracy lost at about the layer's mean length, with the interval of a difference of paired answers.

    Of n items b are lost and c gained; the difference (b − c) / n has the standard error √(b + c − (b − c)² / n) / n. One more
    item counts as changed, so that the interval has a width where none did.
    """
    accuracy, changed = result.nearest(layer)
    lost, n = result.own - accuracy, result.n_test
    reach = Z95 * np.sqrt((changed * n + 1) / n - lost**2) / np.sqrt(n)
    ends = {"low": rounded(lost - reach), "high": rounded(lost + reach)}
    return Number(layer, "at about its mean: accuracy lost", rounded(lost), unit="−1 … 1", n=n, **ends)


def inputs(settings: Settings, store: Store, report: Report) -> Measured:
    """Fig. 4: accuracy of small networks by activation, rows as they are and at other lengths."""
    spaces, test_ids = labelled("digits", store, report)
    spec = InputRescaleSpec(
        span=settings["span"],
        n_alphas=settings["n_alphas"],
        random_states=tuple(settings["random_states"]),
        test_ids=test_ids,
    )
    result = rescale_input(spaces[_CNN], spec, report)
    facts = {"n": result.n_test, "baseline": rounded(result.chance)}
    numbers = []
    for network in spec.networks:
        for metric, values in _of_states(result, network).items():
            numbers.append(averaged(NETWORKS[network], f"{metric}: accuracy", values, **facts))
    return Measured(tuple(numbers))


def _of_states(result: InputRescaleResult, network: str) -> dict[str, list[float]]:
    """Accuracy of each random state: as it is, at the mean length, and the least of lengths around it."""
    away = np.abs(np.log(np.array(result.alphas) / result.mean_length))
    curves, span = np.array(result.accuracy[network]), result.spec.span
    return {
        "as it is": list(result.own[network]),
        "all at the mean length": curves[:, away.argmin()].tolist(),
        "least from 1/8 to 8 times": curves[:, away <= np.log(8) + 1e-6].min(axis=1).tolist(),
        f"least from 1/{span:g} to {span:g} times": curves.min(axis=1).tolist(),
    }


def lengths(settings: Settings, store: Store, report: Report) -> Measured:
    """Fig. 5: mean and deviation of the rows' lengths, and how far off a row is at most, by encoder."""
    numbers = []
    for data in ("digits", "sentences"):
        for space in labelled(data, store, report)[0]:
            norms = np.asarray(space.norms, dtype=np.float64)
            name = f"{space.name.partition(' · ')[0].partition(', state')[0]}, {data}"
            facts = {"n": len(norms)}
            numbers.append(Number(name, "length", rounded(norms.mean()), rounded(norms.std(ddof=1)), "length", **facts))
            spread = norms.std(ddof=1) / norms.mean()
            reach = Z95 * spread * np.sqrt((0.5 + spread**2) / len(norms))  # of a coefficient of variation (Gaussian)
            ends = {"low": rounded(spread - reach), "high": rounded(spread + reach)}
            numbers.append(Number(name, "deviation ÷ mean", rounded(spread), unit="0 = all alike", **facts, **ends))
            far = np.mean(np.abs(norms - norms.mean()) > 3 * norms.std(ddof=1))
            numbers.append(
                Number(name, "share beyond 3 deviations", rounded(far), **facts, baseline=0.0027, baseline_is="Gaussian")
            )
    return Measured(tuple(numbers))


def grid(settings: Settings, store: Store, report: Report) -> Measured:
    """Figs. 3 and 6: the best and the worst cell, and correlations over the cells of the δ × ω grid."""
    spaces, test_ids = labelled(settings["data"], store, report)
    source, target = spaces[settings["source"]], spaces[settings["target"]]
    state = settings["random_state"]
    pair = match(source, target)
    anchors = select_anchors(pair.source, settings["n_anchors"], random_state=state).tolist()
    sweep = inversion_sweep(pair, anchors, SweepSpec(random_state=state, test_ids=tuple(test_ids)), report)
    cells = sweep.table().dropna(subset=["cosine", "accuracy"])
    numbers = [*_correlations(cells), *_cells(cells, sweep)]
    rotation = Number("Procrustes, which sees both spaces", "cosine", rounded(sweep.procrustes), unit="−1 … 1", n=sweep.n_rows)
    own = Number("not stitched", "accuracy", rounded(sweep.not_stitched), n=sweep.n_test, baseline=rounded(sweep.chance))
    return Measured((*numbers, rotation, own))


def _cells(cells, sweep) -> list[Number]:
    """Three cells: no pruning, the best of all, and the hardest pruning."""
    best = cells.loc[cells.cosine.idxmax()]
    plain = cells[(cells.delta == 0) & (cells.omega == 1)].iloc[0]
    hard = cells[cells.delta == cells.delta.max()]
    told = {"no pruning": plain, "best": best, "hardest, ω least": hard.iloc[0], "hardest, ω most": hard.iloc[-1]}
    numbers = []
    for name, cell in told.items():
        label = f"{name}: δ = {cell.delta:g}, ω = {cell.omega:g}"
        cosine = {"unit": "−1 … 1", "n": sweep.n_rows}
        by_chance = {"baseline": rounded(cell.chance)}
        if name == "best":  # a maximum over the cells, so compared with the same maximum by chance
            by_chance = {"baseline": rounded(sweep.best_chance.high), "baseline_is": "best cell by chance, 97.5 %"}
        numbers.append(Number(label, "cosine between spaces", rounded(cell.cosine), **cosine, **by_chance))
        numbers.append(Number(label, "cosine within the space", rounded(cell.within), **cosine))
        chance = rounded(sweep.chance)
        numbers.append(Number(label, "accuracy", rounded(cell.accuracy), n=sweep.n_test, baseline=chance))
        numbers.append(
            Number(label, "anchors kept", rounded(cell.kept), unit="count", baseline=sweep.n_anchors, baseline_is="given")
        )
        if not np.isnan(cell.condition):
            numbers.append(Number(label, "condition number", rounded(cell.condition), unit="1 = best"))
    return numbers


def _correlations(cells) -> list[Number]:
    told = {
        "cosine and accuracy, over the cells": ("cosine", "accuracy"),
        "condition number and anchors kept": ("condition", "kept"),
    }
    numbers = []
    for label, columns in told.items():
        known = cells[list(columns)].dropna()
        found = correlation(known[columns[0]], known[columns[1]], "pearson")
        numbers.append(
            Number(
                label,
                found.name,
                rounded(found.value),
                unit="−1 … 1",
                n=found.n,
                low=rounded(found.low),  # Fisher's interval, as if the cells were independent
                high=rounded(found.high),
                baseline=0.0,
                baseline_is="unrelated",
            )
        )
    return numbers
