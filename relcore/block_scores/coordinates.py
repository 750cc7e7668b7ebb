"""The coordinates of both spaces of a pair, and the representations in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from relcore.block_scores.device import NumpyDevice
from relcore.block_scores.first_pass import ColumnSums
from relcore.block_scores.forms import BlockRows, Form, Frame
from relcore.block_scores.question import Question, RowNumbers
from relcore.magnitude import brought, scaled
from relcore.similarity import AnchorAxes, rounded_mean, unit_rows
from relcore.translation import Procrustes

Frames = dict[str, Frame]


def coordinates_of(
    question: Question, rows: RowNumbers, sums: Sequence[ColumnSums], gathered: Mapping[str, Sequence[np.ndarray]]
) -> tuple[Frames, Frames]:
    """The coordinates that the representations need, in either space."""
    gathered = dict(gathered) | {"centre": gathered[_centre(gathered)]}
    sides = ({name: found[side] for name, found in gathered.items()} for side in (0, 1))
    return tuple(_frames(question, rows, one, side) for one, side in zip(sums, sides, strict=True))


def forms_of(
    question: Question, frames: Sequence[Frames], sums: Sequence[ColumnSums], gathered: Mapping[str, Sequence[np.ndarray]]
) -> dict[str, tuple[Form, Form]]:
    """Each representation in either space."""
    made = {
        "absolute": lambda: (Form("raw"), Form("raw")),
        "procrustes": lambda: _procrustes(frames, sums, gathered),
        "relative": lambda: tuple(_relative(one, None) for one in frames),
        "whitened": lambda: tuple(_relative(one, question.projection.ridge) for one in frames),
    }
    return {name: made[name]() for name in question.forms}


def _frames(question: Question, rows: RowNumbers, sums: ColumnSums, gathered: Mapping[str, np.ndarray]) -> Frames:
    mean, exponent = rounded_mean(sums.mean, gathered["centre"]), sums.exponent
    centre = mean
    if len(rows.left_out):  # a row that is left out may be so long that the mean is far from all others
        rest = sums.total - gathered["left out"].sum(axis=0, dtype=np.float64)
        centre = rounded_mean(rest / (sums.n - len(rows.left_out)), gathered["centre"])
    frames = {"raw": Frame(scaled(centre, exponent), exponent=exponent)}
    if wanted := {"relative", "whitened"} & set(question.forms):
        spec = question.projection
        if wanted != {"relative"} or spec.similarity == "cosine":
            axes = AnchorAxes.of(unit_rows(gathered["anchors"], mean if spec.center else None))
            moved = scaled(mean, exponent) if spec.center else None
            frames["turned"] = Frame(np.zeros(len(axes.stretch)), moved, axes.turn, stretch=axes.stretch, basis=axes.basis)
        if "relative" in wanted and spec.similarity != "cosine":
            known = gathered.get("clustered", gathered["centre"])
            frames["own"] = Frame(np.zeros(1), projection=spec.projection().fit_from(mean, gathered["anchors"], known))
    return _with_centres(frames, gathered["centre"])


def _with_centres(frames: Frames, sample: np.ndarray) -> Frames:
    """Close to the mean of the rows, by a sample: exact where they are few. The rest is corrected after the pass."""
    if "own" in frames:
        _, exponent = brought(frames["own"].projection.transform(sample))
        frames["own"] = replace(frames["own"], exponent=exponent)
    rows = BlockRows(NumpyDevice(), frames, sample, 0)
    for name in frames.keys() - {"raw"}:
        found = rows.coordinates(name)
        frames[name] = replace(frames[name], centre=rounded_mean(found.mean(axis=0, dtype=np.float64), found))
    return frames


def _relative(frames: Frames, ridge: float | None) -> Form:
    """Relative, or whitened with a ridge."""
    if ridge is None and "own" in frames:
        return Form("own")
    frame = frames["turned"]
    factors = frame.stretch if ridge is None else frame.stretch / np.sqrt(frame.stretch**2 + ridge)
    return Form("turned", factors=factors, basis=frame.basis)


def _procrustes(frames: Sequence[Frames], sums: Sequence[ColumnSums], gathered: Mapping) -> tuple[Form, Form]:
    """The map of the anchors; both spaces are then centred by the mean of the target, as `comparison.represent` does."""
    fitted = Procrustes().fit(*gathered["anchors"])
    (source, target), (to_source, to_target) = (frame["raw"] for frame in frames), (one.exponent for one in sums)
    mean = rounded_mean(sums[1].mean, gathered[_centre(gathered)][1])
    centre = np.ldexp(source.centre.astype(np.float64), to_source)
    shift = (centre - fitted.source_mean_) @ fitted.matrix_ + fitted.target_mean_ - mean
    turned = Form("raw", True, matrix=scaled(fitted.matrix_, to_target - to_source), shift=scaled(shift, to_target))
    left = target.centre - scaled(mean, to_target)
    return turned, Form("raw", True, shift=left if left.any() else None)


def _centre(gathered: Mapping[str, Sequence[np.ndarray]]) -> str:
    """The name of the sample of rows that the centres come from."""
    return "centre held out" if "centre held out" in gathered else "centre all"
