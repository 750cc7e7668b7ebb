"""`compare_runs`: runs that are compared at each frame, and pictures of where their rows move."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, quote
from relcore.base.rows import unit_rows
from relcore.engine.engine import thin_svd
from relcore.represent.projection import RelativeProjection
from relcore.represent.strategies import select_anchors, usual_anchors
from relcore.represent.translation import Procrustes
from relcore.runs.progress_line import long_call, show_step
from relcore.runs.work import Progress, silent
from relcore.scores.cka import mean_cosine
from relcore.scores.neighbours import find_neighbours
from relcore.scores.score import ChanceLevel, Interval, Score, chance_of, mean_difference
from relcore.spaces.split import Split
from relcore.training.agreement import OWN, RELATIVE, TO_LAST, TrainingResult, TrainingSpec
from relcore.training.runs import Run

_MOST_DRAWN = 2000
_MOST_KEPT = 256 << 20  # bytes of rows that are kept of each run while it is compared
_MOST_AXES = 32  # axes in which frames are rotated
_FEWEST_ROWS = 20
_FEW = 8  # frames of a single run that grows, which are compared with its last one
_CHANCE = ("chance", "chance_low", "chance_high")
_COLUMNS = ["quantity", "run", "other", "step", "score", *_CHANCE, "k", "n"]


@long_call
def compare_runs(
    runs: Sequence[Run], spec: TrainingSpec | None = None, *, report: Progress = show_step
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
    return RunComparison(spec).compare(runs, report=report)


class RunComparison:
    """Compares runs, again and again while they grow: what is known of earlier frames is kept.

    Parameters
    ----------
    spec : TrainingSpec, optional
    to_last : bool
        Whether all frames are compared with the last one of their run. While a run grows, each new frame
        would change all these scores, so only those of a few frames of a single run are computed.
    """

    def __init__(self, spec: TrainingSpec | None = None, *, to_last: bool = True) -> None:
        self.spec = spec or TrainingSpec()
        self._to_last = to_last
        self._measured: dict[tuple[str, int, int, int], _Measured] = {}
        self._pictures: list[_Pictures] = []
        self._known: tuple[Any, ...] = ()  # folders, layer, rows and anchors of what is kept

    def compare(self, runs: Sequence[Run], *, report: Progress = silent) -> TrainingResult:
        """As `compare_runs`."""
        now = _Together(runs, self.spec)
        self._keep(now)
        scores, rises = self._scores(now, report)
        names = now.names
        metrics = [line for run, name in zip(runs, names, strict=True) for line in _metric_lines(run, name)]
        labels = None
        if runs[0].labels is not None:
            labels = runs[0].labels[now.positions[0]][now.drawn]
        return TrainingResult(
            names=names,
            layer=now.layer,
            spec=self.spec,
            anchors=now.ids[now.split.anchors],
            scored=now.ids[now.split.test],
            steps=now.steps,
            frames=now.frames,
            table=pd.DataFrame([*metrics, *scores], columns=_COLUMNS),
            rises=rises,
            places={axes: self._places(now, axes) for axes in (OWN, RELATIVE)},
            ids=now.ids[now.drawn],
            labels=labels,
            left_out={name: run.n_left_out for name, run in zip(names, runs, strict=True) if run.n_left_out},
        )

    def of_ended_runs(self) -> RunComparison:
        """A comparison with the last frames, too, that knows the scores of this one."""
        ended = RunComparison(self.spec)
        ended._known = self._known
        ended._measured = self._measured
        ended._pictures = self._pictures
        return ended

    def places(self, runs: Sequence[Run], axes: str) -> tuple[np.ndarray, np.ndarray]:
        """The steps (t,) of the runs as they are now, and the places (r, t, m, 2) of the drawn rows at each.
        These are `steps` and `places` of the result, without its scores."""
        now = _Together(runs, self.spec)
        self._keep(now)
        return now.steps, self._places(now, axes)

    def _keep(self, now: _Together) -> None:
        """Forget what is known of other rows, anchors or layers."""
        if now.key != self._known:
            self._known = now.key
            self._measured = {}
            self._pictures = [_Pictures() for _ in now.rows]

    def _scores(self, now: _Together, report: Progress) -> tuple[list[dict[str, Any]], dict[str, Interval]]:
        lines = []
        names = now.names
        n = len(now.steps)
        with_last = set(range(n))
        if not self._to_last and len(names) > 1:
            with_last = set()
        elif not self._to_last:
            with_last = set(np.linspace(0, n - 1, _FEW).astype(int).tolist())
        ends: dict[str, list[np.ndarray]] = {name: [] for name in names[1:]}
        for number, step in enumerate(now.steps.tolist()):
            report(number, n, "comparing frames")
            for i, name in enumerate(names[1:], 1):
                if now.have_one_length(i):
                    lines.append(_line(OWN, names[0], name, step, self._pair(now, OWN, i, number).score))
                measured = self._pair(now, RELATIVE, i, number)
                lines.append(_line(RELATIVE, names[0], name, step, measured.score))
                ends[name].append(measured.values)
            if number in with_last:
                for frames, name in zip(now.rows, names, strict=True):
                    of = frames[number][now.split.test], frames[n - 1][now.split.test]
                    lines.append(_line(TO_LAST, name, "", step, _Measured(*of, self.spec).score))
        report(n, n, "comparing frames")
        rises = {name: mean_difference(values[0], values[-1]) for name, values in ends.items()}
        return sorted(lines, key=lambda line: (line["quantity"] == TO_LAST, line["quantity"])), rises

    def _pair(self, now: _Together, quantity: str, i: int, number: int) -> _Measured:
        """The first run and run `i` at a compared step."""
        sides = now.rows[0], now.rows[i]
        key = quantity, i, sides[0].step(number), sides[1].step(number)
        if key not in self._measured:
            rows = [side[number] for side in sides]
            if quantity == RELATIVE:
                rows = [_relative(one, now.split) for one in rows]
            source, target = (one[now.split.test] for one in rows)
            self._measured[key] = _Measured(source, target, self.spec)
        return self._measured[key]

    def _places(self, now: _Together, axes: str) -> np.ndarray:
        if axes == OWN:
            pairs = zip(self._pictures, now.rows, strict=True)
            return np.stack([one.own(frames, now.drawn, exact=self._to_last) for one, frames in pairs])
        similar = [
            one.similar(frames, now.split, now.drawn)
            for one, frames in zip(self._pictures, now.rows, strict=True)
        ]
        lasts = np.concatenate([each[-1] for each in similar])
        common = thin_svd(lasts.astype(np.float64))[2][:2]
        return np.stack([[_flat(one, common) for one in each] for each in similar])


class _Together:
    """Runs with their common rows, layer and steps, and the split of the rows."""

    def __init__(self, runs: Sequence[Run], spec: TrainingSpec) -> None:
        if not runs or not all(len(run) for run in runs):
            raise SpaceError(
                "runs: expected one or more with a frame each, got none; train with relcore.watch"
            )
        self.names = _distinct_names(runs)
        self.layer = _common_layer(runs, spec.layer)
        shared = _shared_ids(runs)
        self.ids = runs[0].ids[[one in shared for one in runs[0].ids]]
        self.positions = [pd.Index(run.ids).get_indexer(self.ids) for run in runs]
        self.steps, self.frames = _common_steps(runs)
        self.rows = [
            _LayerFrames(run, self.layer, order, at)
            for run, order, at in zip(runs, self.positions, self.frames, strict=True)
        ]
        self.split = _split(self.rows[0], self.ids, spec)
        self.drawn = np.sort(np.random.default_rng(0).permutation(len(self.ids))[:_MOST_DRAWN])
        folders = tuple(str(run.folder) for run in runs)
        self.key = (folders, self.layer, tuple(self.ids), tuple(self.split.anchors.tolist()))

    def have_one_length(self, i: int) -> bool:
        """Whether the rows of the first run and of run `i` have as many numbers."""
        return self.rows[0].dimension == self.rows[i].dimension


class _LayerFrames:
    """The rows (n, d) of one layer of a run at the compared steps. What was read is kept, up to a limit; the
    frame that is read first, the last one, always."""

    def __init__(self, run: Run, layer: str, order: np.ndarray, frames: np.ndarray) -> None:
        self._run = run
        self._layer = layer
        self._order = order
        self._frames = frames
        self._kept: dict[int, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self._frames)

    def step(self, number: int) -> int:
        return int(self._run.steps[self._frames[number]])

    @property
    def dimension(self) -> int:
        return self[len(self) - 1].shape[1]

    def __getitem__(self, number: int) -> np.ndarray:
        frame = int(self._frames[number])
        if frame in self._kept:
            return self._kept[frame]
        rows = self._run.rows(frame, self._layer)[self._order]
        if not self._kept or (len(self._kept) + 1) * rows.nbytes <= _MOST_KEPT:
            self._kept[frame] = rows
        return rows


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


def _shared_ids(runs: Sequence[Run]) -> set[str]:
    shared = set(runs[0].ids)
    for run in runs[1:]:
        shared &= set(run.ids)
    if len(shared) < _FEWEST_ROWS:
        raise SpaceError(
            f"runs: expected {_FEWEST_ROWS} rows or more that all runs have, by their ids, got {len(shared)};"
            " watch them with the same probe"
        )
    return shared


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
            lines.append(found | dict.fromkeys((*_CHANCE, "k"), np.nan) | {"n": 0})
    return lines


# Pictures.


class _Pictures:
    """The rows of one run as they are drawn, kept by the steps of their frames."""

    def __init__(self) -> None:
        self._similar: dict[int, np.ndarray] = {}
        self._turned: dict[int, np.ndarray] = {}
        self._basis: np.ndarray | None = None
        self._based_on = 0  # number of frames from which the basis was computed

    def similar(self, frames: _LayerFrames, split: Split, drawn: np.ndarray) -> list[np.ndarray]:
        """The similarities (m, k) of the drawn rows to the anchors at each frame."""
        kept = {}
        for number in range(len(frames)):
            step = frames.step(number)
            if step in self._similar:
                kept[step] = self._similar[step]
            elif step not in kept:
                kept[step] = _scaled(_relative(frames[number], split)[drawn])
        self._similar = kept
        return [kept[frames.step(number)] for number in range(len(frames))]

    def own(self, frames: _LayerFrames, drawn: np.ndarray, exact: bool) -> np.ndarray:
        """The rows (t, m, 2) of the frames: each rotated to the one before it, then seen on the first two
        principal axes of the last one.

        If not `exact`, frames that were rotated before stay as they are, also if one between them has been
        removed since.
        """
        steps = [frames.step(number) for number in range(len(frames))]
        last = max(self._turned, default=-1)
        is_new = [step > last for step in steps]
        follows = all(step in self._turned or new for step, new in zip(steps, is_new, strict=True))
        # More frames give a better basis, but another one means to rotate all frames again.
        if exact or not follows or len(steps) > max(8, 2 * self._based_on):
            self._turned = {}
            self._basis = _basis(frames, drawn)
            self._based_on = len(steps)
        kept = {step: self._turned[step] for step in steps if step in self._turned}
        before = None
        for number, step in enumerate(steps):
            if step not in kept:
                one = _scaled(frames[number][drawn])
                if self._basis is not None:
                    one = one @ self._basis
                if before is not None:
                    one = np.asarray(Procrustes(scale=False).fit(one, before).transform(one))
                kept[step] = one
            before = kept[step]
        self._turned = kept
        axes = thin_svd(kept[steps[-1]].astype(np.float64))[2][:2]
        return np.stack([_flat(kept[step], axes) for step in steps])


def _basis(frames: _LayerFrames, drawn: np.ndarray) -> np.ndarray | None:
    """The axes (d, 32) along which the rows of some frames and of the last one vary most; None if there are
    no more axes than these."""
    if frames.dimension <= _MOST_AXES:
        return None
    numbers = [*range(0, len(frames), max(1, len(frames) // 8)), len(frames) - 1]
    pooled = np.concatenate([_scaled(frames[number][drawn]) for number in numbers])
    return np.linalg.eigh(pooled.T.astype(np.float64) @ pooled)[1][:, : -_MOST_AXES - 1 : -1]


def _scaled(rows: np.ndarray) -> np.ndarray:
    centred = rows - rows.mean(axis=0)
    return centred / (np.sqrt(np.mean(np.sum(centred**2, axis=1))) or 1.0)


def _flat(rows: np.ndarray, axes: np.ndarray) -> np.ndarray:
    flat = np.zeros((len(rows), 2), np.float32)
    flat[:, : len(axes)] = rows @ axes.T
    return flat
