"""`compare_runs`: when networks begin to agree while they are trained, and where their rows move."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, quote
from relcore.base.names import METRICS
from relcore.base.numbers import short, signed
from relcore.base.report import Report, Reported, Table
from relcore.base.rows import unit_rows
from relcore.base.settings import check, setting
from relcore.engine.engine import thin_svd
from relcore.figures.charts import Line, Lines, MovingPanels
from relcore.figures.export import chart_exportable
from relcore.represent.projection import RelativeProjection
from relcore.represent.strategies import select_anchors, usual_anchors
from relcore.represent.translation import Procrustes
from relcore.runs.work import Progress, silent
from relcore.scores.cka import mean_cosine
from relcore.scores.neighbours import find_neighbours
from relcore.scores.score import ChanceLevel, Interval, Score, chance_of, mean_difference
from relcore.spaces.split import Split
from relcore.training.runs import Run

OWN = "own axes"
RELATIVE = "relative"
AXES = {OWN: "Own axes", RELATIVE: "Relative to anchors"}
MEASURES = {name: METRICS[name].title for name in ("mrr", "jaccard", "cosine")}
TO_LAST = "to its last frame"
LEAST_RISE = 0.05  # of two networks on different tasks, none rose by this much (docs/training.md)
_MOST_DRAWN = 2000
_MOST_AXES = 32  # axes in which frames are rotated
_FEWEST_ROWS = 20


@dataclass(frozen=True)
class TrainingSpec:
    """How runs are compared.

    Attributes
    ----------
    layer : str
        By default the last layer that all runs have.
    n_anchors : int, optional
        By default 300, but at most a fifth of the rows.
    measure : {"mrr", "jaccard", "cosine"}
    k : int
        The number of neighbours.
    random_state : int
        Of the choice of anchors.

    Examples
    --------
    >>> from relcore import TrainingSpec
    >>> TrainingSpec(layer="conv2", n_anchors=50).measure
    'mrr'
    """

    layer: str = setting("", help="The layer to compare. Default: the last one that all runs have.")
    n_anchors: int | None = setting(
        None, low=1, help="Number of anchors. Default: 300, or a fifth of the rows.", metavar="N"
    )
    measure: str = setting("mrr", choices=MEASURES, help="How agreement is measured.")
    k: int = setting(10, low=1, help="Number of neighbours.")
    random_state: int = setting(0, low=0, help="Random state of the choice of anchors.")

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, eq=False)
class TrainingResult(Reported):
    """Runs compared at each frame: what `compare_runs` returns.

    Attributes
    ----------
    names : names of the runs
    layer : str
    spec : TrainingSpec
    anchors, scored : ids
        Anchors, and the held-out rows of all scores.
    steps : (t,) int array
        The steps that are compared: those of the first run that all runs have reached.
    frames : for each run, (t,) int array
        Its frame at each of these steps, or the nearest one on the logarithmic scale.
    table : DataFrame
        One line per score: quantity, run, other, step, score, chance, chance_low, chance_high, k, n. The
        quantity is "own axes", "relative", "to its last frame", or the name of a metric of the training.
    rises : run → Interval
        The change of the relative agreement with the first run, from the first step to the last one, with its
        95 % interval over rows.
    places : axes → (r, t, m, 2) array
        The m drawn rows of each of r runs at each step, on own axes and relative to the anchors.
    ids, labels : (m,) arrays
        Of the drawn rows; labels may be None.
    left_out : run → int
        The number of frames that each run left out to keep the budget of `relcore.watch`; runs without any
        are missing.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> import numpy as np
    >>> import relcore
    >>> folder = Path(mkdtemp())
    >>> rows = np.random.default_rng(0).normal(size=(40, 4))
    >>> for step in (0, 10):
    ...     np.save(folder / f"step-{step}.npy", rows * (1 + step))
    >>> result = relcore.compare_runs([relcore.open_run(folder)])
    >>> result.steps.tolist(), result.places["own axes"].shape
    ([0, 10], (1, 2, 40, 2))
    """

    names: tuple[str, ...]
    layer: str
    spec: TrainingSpec
    anchors: np.ndarray
    scored: np.ndarray
    steps: np.ndarray
    frames: tuple[np.ndarray, ...]
    table: pd.DataFrame
    rises: Mapping[str, Interval]
    places: Mapping[str, np.ndarray]
    ids: np.ndarray
    labels: np.ndarray | None
    left_out: Mapping[str, int] = field(default_factory=dict)

    def agreement(self, quantity: str, run: str = "", other: str = "") -> pd.DataFrame:
        """The lines of the table for this quantity, and if they are given, for these runs."""
        found = self.table[self.table.quantity == quantity]
        if run:
            found = found[found.run == run]
        if other:
            found = found[found.other == other]
        return found

    @property
    def agree(self) -> dict[str, bool]:
        """For each run but the first, whether its agreement with the first one rose clearly: the lower end of
        the interval is above .05, and the last score above its chance level."""
        verdicts = {}
        for name, rise in self.rises.items():
            last = self.agreement(RELATIVE, self.names[0], name).iloc[-1]
            verdicts[name] = bool(rise.low > LEAST_RISE and last.score > last.chance_high)
        return verdicts

    def sentence(self) -> str:
        """What the runs show, in a few sentences."""
        if len(self.names) == 1:
            return f"{self.names[0]}: {len(self.steps)} frames up to step {self.steps[-1]:,}, one run."
        return " ".join(self._pair_in_words(name) for name in self.names[1:])

    def _pair_in_words(self, name: str) -> str:
        both = self.agreement(RELATIVE, self.names[0], name)
        first, last = both.iloc[0], both.iloc[-1]
        rise = self.rises[name]
        span = f"from {short(first.score)} at step {first.step:,} to {short(last.score)} at {last.step:,}"
        by = f"{signed(rise.value)}, 95 %: {signed(rise.low)} … {signed(rise.high)}"
        pair = f"{self.names[0]} and {name}"
        if self.agree[name]:
            text = f"{pair} come to agree: their similarities to anchors match better, {span} ({by})."
        else:
            text = f"{pair} do not come to agree: the match of their similarities goes {span} ({by})."
        own = self.agreement(OWN, self.names[0], name)
        if not len(own):
            return f"{text} Their vectors have different lengths, so their own axes cannot be compared."
        end = own.iloc[-1]
        if end.score <= end.chance_high:
            return f"{text} On their own axes they match no better than by chance ({short(end.score)})."
        return f"{text} On their own axes: {short(end.score)} (chance {short(end.chance)})."

    def lines(self) -> Lines:
        """The chart of all scores and metrics over the steps. Step 0 is drawn at .5, because the axis is
        logarithmic."""
        lines = []
        colors: dict[str, int] = {}
        drawn = self.table.dropna(subset="score")
        for (quantity, run, other), part in drawn.groupby(["quantity", "run", "other"], sort=False):
            color = colors.setdefault(str(quantity), len(colors))
            name = self._line_name(str(quantity), str(run), str(other))
            x = np.maximum(part.step, 0.5)
            lines.append(Line(name, x, part.score, color=color, dashed=run != self.names[0] and not other))
        chance = self.table[self.table.quantity == RELATIVE].chance
        baselines: tuple[tuple[str, float], ...] = ()
        if len(chance):
            baselines = (("chance level", round(float(chance.iloc[-1]), 3)),)
        return Lines(
            tuple(lines),
            "step",
            f"{MEASURES[self.spec.measure]}, accuracy",
            log_x=True,
            baselines=baselines,
            note=f"{self.layer}, {len(self.scored):,} held-out rows, {len(self.anchors):,} anchors",
            y_range=(-0.03, 1.05),
        )

    def _line_name(self, quantity: str, run: str, other: str) -> str:
        if other:
            name = f"{AXES[quantity].lower()}: {run} and {other}"
        elif len(self.names) > 1:
            name = f"{quantity}: {run}"
        else:
            name = quantity
        return name

    def panels(self, axes: str = OWN) -> MovingPanels:
        """The chart of the moving rows of each run, with the lines below."""
        groups = np.full(len(self.ids), -1)
        names: tuple[str, ...] = ()
        if self.labels is not None:
            codes, values = pd.factorize(self.labels, sort=True)
            groups = np.asarray(codes)
            names = tuple(map(str, values))
        titles = tuple(f"step {step:,}" for step in self.steps)
        places = self.places[axes]
        about = f"rows of {self.layer}, {AXES[axes].lower()}"
        xs = tuple(np.maximum(self.steps, 0.5).tolist())
        ids = tuple(map(str, self.ids))
        return MovingPanels(self.names, titles, places, ids, groups, names, about, self.lines(), xs)

    def report(self, **figures: Callable[[], Any]) -> Report:
        """The report: the sentence, a table of the first, middle and last step, and the figures."""
        shown = self.steps[np.unique(np.linspace(0, len(self.steps) - 1, 8).round().astype(int))]
        cells = [["", *(f"step {step:,}" for step in shown)]]
        for (quantity, run, other), part in self.table.groupby(["quantity", "run", "other"], sort=False):
            known = part.set_index("step").score.reindex(shown)
            values = [short(score) if np.isfinite(score) else "–" for score in known]
            cells.append([self._line_name(str(quantity), str(run), str(other)), *values])
        chance = self.table.dropna(subset="chance").groupby("quantity", sort=False)
        levels = [f"{AXES.get(name, name).lower()} {short(part.chance.iloc[-1])}" for name, part in chance]
        caption = (
            f"{MEASURES[self.spec.measure]}, {_of_neighbours(self.spec)}{len(self.scored):,} held-out rows,"
            f" {len(self.anchors):,} anchors. Chance levels: {'; '.join(levels)}."
        )
        facts = {
            "layer": self.layer,
            "agree": self.agree,
            "rises": {name: [rise.value, rise.low, rise.high] for name, rise in self.rises.items()},
        }
        if not figures:
            figures = {"training": partial(chart_exportable, self.panels(), name="relscope-training")}
        table = Table("scores", self.table, cells, "", caption)
        return Report(self.sentence(), [table], facts, self._notes(), figures)

    def _notes(self) -> list[str]:
        if not self.left_out:
            return []
        counts = ", ".join(f"{n} of {name}" for name, n in self.left_out.items())
        return [
            f"Frames that were left out to keep the training fast: {counts}. relcore.watch(…, budget=None)"
            " keeps all."
        ]


def _of_neighbours(spec: TrainingSpec) -> str:
    if spec.measure == "cosine":
        return ""
    return f"k = {spec.k}, "


def compare_runs(
    runs: Sequence[Run], spec: TrainingSpec | None = None, *, report: Progress = silent
) -> TrainingResult:
    """Compare runs at each step: each with the first one, on own axes and by similarities to anchors, and
    each with its own last frame.

    Rows are paired by id. Anchors are drawn from the probe; the other rows are held out and scored. On own
    axes, each frame is rotated to the one before it, so that what moves is change. Every frame is centred and
    scaled to a root mean square of 1 for the pictures, not for the scores.

    Parameters
    ----------
    runs : list of Run
        One run or more, as `open_run` and `open_runs` return them.
    spec : TrainingSpec, optional
    report : function (done, total, message)

    Raises
    ------
    SpaceError
        No run, no frame, no common layer or fewer than 20 rows with common ids; more anchors than rows.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> import torch
    >>> import relcore
    >>> folder = mkdtemp()
    >>> for seed in (0, 1):
    ...     _ = torch.manual_seed(seed)
    ...     model = torch.nn.Linear(4, 3)
    ...     with relcore.watch(f"{folder}/{seed}", model, torch.rand(60, 4)) as watched:
    ...         watched.step()
    >>> result = relcore.compare_runs(relcore.open_runs(folder))
    >>> result.steps.tolist(), len(result.anchors), len(result.scored), result.agree
    ([0, 1], 12, 48, {'1': False})
    """
    spec = spec or TrainingSpec()
    if not runs or not all(len(run) for run in runs):
        raise SpaceError("runs: expected one or more with a frame each, got none; train with relcore.watch")
    names = _distinct_names(runs)
    layer = _common_layer(runs, spec.layer)
    ids = runs[0].ids[np.isin(runs[0].ids, _shared_ids(runs))]
    positions = [pd.Index(run.ids).get_indexer(ids) for run in runs]
    steps, frames = _common_steps(runs)
    rows = [
        _LayerFrames(run, layer, order, at) for run, order, at in zip(runs, positions, frames, strict=True)
    ]
    split = _split(rows[0], ids, spec)
    scores, rises = _scores(rows, names, steps, split, spec, report)
    metrics = [line for run, name in zip(runs, names, strict=True) for line in _metric_lines(run, name)]
    drawn = np.sort(np.random.default_rng(0).permutation(len(ids))[:_MOST_DRAWN])
    labels = None
    if runs[0].labels is not None:
        labels = runs[0].labels[positions[0]][drawn]
    return TrainingResult(
        names=names,
        layer=layer,
        spec=spec,
        anchors=ids[split.anchors],
        scored=ids[split.test],
        steps=steps,
        frames=frames,
        table=pd.DataFrame([*metrics, *scores]),
        rises=rises,
        places=_places(rows, split, drawn),
        ids=ids[drawn],
        labels=labels,
        left_out={name: run.n_left_out for name, run in zip(names, runs, strict=True) if run.n_left_out},
    )


class _LayerFrames:
    """The rows (n, d) of one layer of a run at the compared steps, kept once they are read."""

    def __init__(self, run: Run, layer: str, order: np.ndarray, frames: np.ndarray) -> None:
        self._run = run
        self._layer = layer
        self._order = order
        self._frames = frames
        self._kept: dict[int, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self._frames)

    def __getitem__(self, number: int) -> np.ndarray:
        frame = int(self._frames[number])
        if frame not in self._kept:
            self._kept[frame] = self._run.rows(frame, self._layer)[self._order]
        return self._kept[frame]


def _distinct_names(runs: Sequence[Run]) -> tuple[str, ...]:
    names = [run.name for run in runs]
    if len({*names}) < len(names):
        names = [f"{run.folder.parent.name}/{run.name}" for run in runs]
    if len({*names}) < len(names):
        names = [f"{name} ({number})" for number, name in enumerate(names, 1)]
    return tuple(names)


def _common_layer(runs: Sequence[Run], wanted: str) -> str:
    common = [layer for layer in runs[0].layers if all(layer in run.layers for run in runs)]
    if wanted and wanted in common:
        return wanted
    if wanted or not common:
        raise SpaceError(
            f"layer: expected one that all runs have, {quote(common) or 'but they share none'}, got"
            f" {wanted or quote(runs[0].layers)}"
        )
    return common[-1]


def _shared_ids(runs: Sequence[Run]) -> list[str]:
    shared = set(runs[0].ids)
    for run in runs[1:]:
        shared &= set(run.ids)
    if len(shared) < _FEWEST_ROWS:
        raise SpaceError(
            f"runs: expected {_FEWEST_ROWS} rows or more that all runs have, by their ids, got {len(shared)};"
            " watch them with the same probe"
        )
    return list(shared)


def _common_steps(runs: Sequence[Run]) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """The steps of the first run that all runs have reached, and the nearest frame of each run at each."""
    reached = min(int(run.steps[-1]) for run in runs)
    steps = runs[0].steps[runs[0].steps <= reached]
    if not len(steps):
        steps = runs[0].steps[:1]
    frames = []
    for run in runs:
        gaps = np.abs(np.log1p(run.steps)[None] - np.log1p(steps)[:, None])
        frames.append(gaps.argmin(axis=1))
    return steps, tuple(frames)


def _split(rows: _LayerFrames, ids: np.ndarray, spec: TrainingSpec) -> Split:
    n_anchors = usual_anchors(len(ids))
    if spec.n_anchors is not None:
        n_anchors = spec.n_anchors
    if n_anchors > len(ids) - 2:
        raise SpaceError(f"n_anchors: expected at most {len(ids) - 2}, two fewer than rows, got {n_anchors}")
    chosen = select_anchors(rows[len(rows) - 1], n_anchors, random_state=spec.random_state)
    return Split.held_out(ids, anchors=chosen.astype(int), random_state=spec.random_state)


class _Measured:
    """Two frames (m, d) of the held-out rows, compared by the measure: the score, and values (m,) of rows."""

    def __init__(self, source: np.ndarray, target: np.ndarray, spec: TrainingSpec) -> None:
        if spec.measure == "cosine":
            self.score = mean_cosine(source, target)
            self.values = np.vecdot(unit_rows(source), unit_rows(target))
            return
        found = find_neighbours(source, target, min(spec.k, len(source) - 1))
        if spec.measure == "mrr":
            self.score = found.mrr()
            self.values = found.reciprocal_rank
        else:
            self.score = found.jaccard()
            self.values = found.overlap


def _scores(
    rows: Sequence[_LayerFrames],
    names: Sequence[str],
    steps: np.ndarray,
    split: Split,
    spec: TrainingSpec,
    report: Progress,
) -> tuple[list[dict[str, Any]], dict[str, Interval]]:
    lines = []
    ends: dict[str, list[np.ndarray]] = {name: [] for name in names[1:]}
    lasts = [frames[len(steps) - 1][split.test] for frames in rows]
    for number, step in enumerate(steps.tolist()):
        report(number, len(steps), "comparing frames")
        now = [frames[number] for frames in rows]
        own = [one[split.test] for one in now]
        relative = [_relative(one, split)[split.test] for one in now]
        for i, name in enumerate(names[1:], 1):
            if own[i].shape == own[0].shape:
                lines.append(_line(OWN, names[0], name, step, _Measured(own[0], own[i], spec).score))
            measured = _Measured(relative[0], relative[i], spec)
            lines.append(_line(RELATIVE, names[0], name, step, measured.score))
            ends[name].append(measured.values)
        for name, rows_now, last in zip(names, own, lasts, strict=True):
            lines.append(_line(TO_LAST, name, "", step, _Measured(rows_now, last, spec).score))
    report(len(steps), len(steps), "comparing frames")
    rises = {name: mean_difference(values[0], values[-1]) for name, values in ends.items()}
    return sorted(lines, key=lambda line: (line["quantity"] == TO_LAST, line["quantity"])), rises


def _relative(rows: np.ndarray, split: Split) -> np.ndarray:
    return RelativeProjection().fit(rows, anchors=rows[split.anchors]).transform(rows)


def _line(quantity: str, run: str, other: str, step: int, score: Score) -> dict[str, Any]:
    chance: ChanceLevel = chance_of(score)
    found = {"quantity": quantity, "run": run, "other": other, "step": int(step), "score": float(score)}
    limits = {"chance": chance.mean, "chance_low": chance.low, "chance_high": chance.high}
    return found | limits | {"k": score.k, "n": score.n}


def _metric_lines(run: Run, name: str) -> list[dict[str, Any]]:
    """The accuracy of a run at its frames; other metrics have other units and no place on the same axis."""
    lines = []
    for metric in run.metrics:
        if "acc" not in metric.lower():
            continue
        for step, value in zip(run.steps.tolist(), run.metric(metric).tolist(), strict=True):
            found = {"quantity": metric, "run": name, "other": "", "step": step, "score": value}
            lines.append(
                found | dict.fromkeys(("chance", "chance_low", "chance_high", "k"), np.nan) | {"n": 0}
            )
    return lines


# Pictures.


def _places(rows: Sequence[_LayerFrames], split: Split, drawn: np.ndarray) -> dict[str, np.ndarray]:
    own = []
    similar = []
    for frames in rows:
        own.append(_own_places([frames[number] for number in range(len(frames))], drawn))
        similar.append([_scaled(_relative(frames[number], split)[drawn]) for number in range(len(frames))])
    lasts = np.concatenate([each[-1] for each in similar])
    axes = thin_svd(lasts.astype(np.float64))[2][:2]
    relative = np.stack([[_flat(one, axes) for one in each] for each in similar])
    return {OWN: np.stack(own), RELATIVE: relative}


def _own_places(frames: Sequence[np.ndarray], drawn: np.ndarray) -> np.ndarray:
    """The rows (t, m, 2) of the frames: each rotated to the one before it, then seen on the first two
    principal axes of the last one."""
    scaled = [_scaled(one[drawn]) for one in frames]
    if scaled[0].shape[1] > _MOST_AXES:
        some = scaled[:: max(1, len(scaled) // 8)]
        pooled = np.concatenate([*some, scaled[-1]])
        basis = np.linalg.eigh(pooled.T.astype(np.float64) @ pooled)[1][:, : -_MOST_AXES - 1 : -1]
        scaled = [one @ basis for one in scaled]
    turned = [scaled[0]]
    for one in scaled[1:]:
        rotation = Procrustes(scale=False).fit(one, turned[-1])
        turned.append(np.asarray(rotation.transform(one)))
    axes = thin_svd(turned[-1].astype(np.float64))[2][:2]
    return np.stack([_flat(one, axes) for one in turned])


def _scaled(rows: np.ndarray) -> np.ndarray:
    centred = rows - rows.mean(axis=0)
    return centred / (np.sqrt(np.mean(np.sum(centred**2, axis=1))) or 1.0)


def _flat(rows: np.ndarray, axes: np.ndarray) -> np.ndarray:
    flat = np.zeros((len(rows), 2), np.float32)
    flat[:, : len(axes)] = rows @ axes.T
    return flat
