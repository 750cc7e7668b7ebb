"""Figs. 1 and 5 of the first paper: how far the codes of several trainings differ after the best rotation, over all pairs."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from relcore.papers.local import picture_spec
from relcore.papers.ours import Number
from relcore.papers.runs import Measured, Settings
from relcore.papers.summaries import averaged, rounded
from relcore.progress import Report
from relcore.reconstructing.autoencoders import AutoencoderSpec
from relcore.reconstructing.job import ReconstructionSpec, trained_autoencoders
from relcore.reconstructing.plane_turn import disparities, fit_turn
from relcore.store import Store

_ALIKE = 0.1
_DRAWS = 1000
_UNIT = "0 = equal, 1 = unrelated"


def turned(settings: Settings, store: Store, report: Report) -> Measured:
    """Disparity after the best turn, its distribution over the pairs of runs, by width of the code.

    Codes of two numbers as they are; of wider ones all numbers at once, and their first two principal components: of each run
    by itself, or of the first run for all, as the paper draws them.
    """
    numbers: list[Number] = []
    pictures = picture_spec(settings["data"], settings["n_train"], settings["image_size"])
    first = ReconstructionSpec(pictures, AutoencoderSpec(epochs=settings["epochs"]), tuple(range(settings["n_states"])))
    for done, width in enumerate(settings["widths"]):
        spec = replace(first, model=replace(first.model, width=width))
        found, models = trained_autoencoders(spec, store, within(report, done, len(settings["widths"]), f"{width} numbers"))
        codes = [model.encode(found.test) for model in models]
        if width == 2:
            numbers += _distribution("2 numbers", codes, "plane")
            pairs = [(one, other) for place, one in enumerate(codes) for other in codes[place + 1 :]]
            mirrored = [fit_turn(one, other).mirrored for one, other in pairs]
            chance = {"baseline": 0.5, "baseline_is": "turned or mirrored at random"}
            share = rounded(np.mean(mirrored))
            numbers.append(
                Number("2 numbers", "share mirrored", share, n=len(codes[0]), repeats=len(codes), **chance, group="plane")
            )
        else:
            axes = [_axes(code) for code in codes]
            own = [_reduced(code, axis) for code, axis in zip(codes, axes, strict=True)]
            numbers += _distribution(f"all {width} numbers", codes, "wide")
            numbers += _distribution(f"{width} numbers, each run's own PCA", own, "wide")
            numbers += _distribution(
                f"{width} numbers, the first run's PCA for all", [_reduced(one, axes[0]) for one in codes], "wide"
            )
        errors = [1000 * np.mean((model.decode(code) - found.test) ** 2) for model, code in zip(models, codes, strict=True)]
        blank = 1000 * np.mean((found.train.mean(axis=0) - found.test) ** 2)
        floor = {"baseline": rounded(blank), "baseline_is": "mean picture", "n": len(found.test), "unit": "MSE × 10³"}
        numbers.append(
            averaged(f"{width} numbers", "reconstruction error", errors, **floor, group="plane" if width == 2 else "wide")
        )
    return Measured(tuple(numbers))


def _distribution(label: str, codes: list[np.ndarray], group: str) -> list[Number]:
    """Mean, median with its interval, quantiles, and the share of pairs that are alike; beside rows that are not paired."""
    found = disparities(codes)
    pairs = found[np.triu_indices(len(codes), 1)]
    rng = np.random.default_rng(0)
    shuffled = [disparities([one, rng.permutation(other)])[0, 1] for one, other in pairwise(codes)]
    facts = {"n": len(codes[0]), "group": group, "unit": _UNIT, "repeats": len(codes)}
    chance = {"baseline": rounded(np.mean(shuffled)), "baseline_is": "rows permuted"}
    low, high = _median_interval(found, rng)
    told = "disparity after the best turn"
    numbers = [Number(label, f"{told}: median", rounded(np.median(pairs)), low=low, high=high, **facts, **chance)]
    for name, share in (("smallest", 0), ("10 % quantile", 0.1), ("90 % quantile", 0.9), ("largest", 1)):
        numbers.append(Number(label, f"{told}: {name}", rounded(np.quantile(pairs, share)), **facts, **chance))
    numbers.append(Number(label, f"{told}: mean", rounded(pairs.mean()), rounded(pairs.std(ddof=1)), **facts, **chance))
    alike = {**facts, "unit": "0 … 1"}
    return [
        *numbers,
        Number(label, f"share of pairs with a disparity under {_ALIKE:g}", rounded(np.mean(pairs < _ALIKE)), **alike),
    ]


def _median_interval(found: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """95 % interval of the median from resampled runs, not pairs: pairs that share a run are not independent."""
    medians = []
    for _ in range(_DRAWS):
        drawn = rng.integers(len(found), size=len(found))
        part = found[np.ix_(drawn, drawn)][drawn[:, None] != drawn]
        medians.append(np.median(part) if len(part) else np.nan)
    low, high = np.nanquantile(medians, [0.025, 0.975])
    return rounded(low), rounded(high)


def _axes(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = codes.mean(axis=0)
    return mean, np.linalg.svd(codes - mean, full_matrices=False)[2][:2].T


def _reduced(codes: np.ndarray, axes: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    mean, directions = axes
    return (codes - mean) @ directions


def within(report: Report, done: int, total: int, title: str) -> Report:
    """A report on one part of several."""
    return lambda at, of, message="", *measured: report(
        done * 1000 + round(1000 * at / max(of, 1)), total * 1000, f"{title}: {message}"
    )
