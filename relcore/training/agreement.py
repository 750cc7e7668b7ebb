"""`TrainingResult`: when networks begin to agree while they are trained, and where their rows move."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.names import METRICS
from relcore.base.numbers import short, signed
from relcore.base.report import Report, Reported, Table
from relcore.base.settings import check, setting
from relcore.figures.charts import Line, Lines, MovingPanels
from relcore.figures.export import chart_exportable
from relcore.scores.score import Interval

OWN = "own axes"
RELATIVE = "relative"
AXES = {OWN: "Own axes", RELATIVE: "Relative to anchors"}
MEASURES = {name: METRICS[name].title for name in ("mrr", "jaccard", "cosine")}
TO_LAST = "to its last frame"
COLORS = {OWN: 1, RELATIVE: 2, TO_LAST: 3}  # of the lines; those of metrics are the others, from 0
READING = (
    "The score is the mean reciprocal rank (MRR): for each row, 1 ÷ the place at which the same row stands"
    " among its neighbours in the other network. 1 is a perfect match. It asks for the same row, not for the"
    " same group: two maps with the same groups score low if the rows within the groups are in another order."
)
_RANGES = {"mrr": "0 … 1", "jaccard": "0 … 1", "cosine": "−1 … 1"}
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


@dataclass(frozen=True, eq=False, repr=False)
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
            verb = "begin"
            if is_halfway(float(first.score), rise.value):
                verb = "come"
            text = f"{pair} {verb} to agree: their similarities to anchors match better, {span} ({by})."
        else:
            text = f"{pair} do not come to agree: the match of their similarities goes {span} ({by})."
        own = self.agreement(OWN, self.names[0], name)
        if not len(own):
            return f"{text} Their vectors have different lengths, so their own axes cannot be compared."
        end = own.iloc[-1]
        if end.score <= end.chance_high:
            level = f"{short(end.score)}; chance level {short(end.chance)}"
            return f"{text} On their own axes they match no better than by chance ({level})."
        return f"{text} On their own axes: {short(end.score)} (chance {short(end.chance)})."

    def lines(self) -> Lines:
        """The chart of all scores and metrics over the steps. Step 0 is drawn at .5, because the axis is
        logarithmic."""
        lines = []
        drawn = self.table.dropna(subset="score")
        metrics = [name for name in drawn.quantity.unique() if name not in COLORS]
        free = [color for color in range(len(metrics) + len(COLORS)) if color not in COLORS.values()]
        named = MEASURES[self.spec.measure]
        if metrics:
            named += " and accuracy"
        colors = COLORS | dict(zip(metrics, free, strict=False))
        for (quantity, run, other), part in drawn.groupby(["quantity", "run", "other"], sort=False):
            name = self._line_name(str(quantity), str(run), str(other))
            x = np.maximum(part.step, 0.5)
            dashed = run != self.names[0] and not other
            lines.append(Line(name, x, part.score, color=colors[str(quantity)], dashed=dashed))
        chance = self.table[self.table.quantity == RELATIVE].chance
        baselines: tuple[tuple[str, float], ...] = ()
        if len(chance):
            baselines = (("chance level", round(float(chance.iloc[-1]), 3)),)
        return Lines(
            tuple(lines),
            "step",
            f"score: {named}, {_RANGES[self.spec.measure]}",
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
        steps = self.steps[np.unique(np.linspace(0, len(self.steps) - 1, 8).round().astype(int))]
        cells = [["", *(f"step {step:,}" for step in steps)]]
        for (quantity, run, other), part in self.table.groupby(["quantity", "run", "other"], sort=False):
            known = part.set_index("step").score.reindex(steps)
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
        notes = []
        if len(self.names) > 1 and self.spec.measure == "mrr":
            notes.append(READING)
        if not self.left_out:
            return notes
        counts = ", ".join(f"{n} of {name}" for name, n in self.left_out.items())
        return [
            *notes,
            f"Frames that were left out to keep the training fast: {counts}. relcore.watch(…, budget=None)"
            " keeps all.",
        ]


def is_halfway(before: float, rise: float) -> bool:
    """Whether agreement rose by half of the way from `before` to 1, a perfect match, or more."""
    return rise >= (1 - before) / 2


def _of_neighbours(spec: TrainingSpec) -> str:
    if spec.measure == "cosine":
        return ""
    return f"k = {spec.k}, "
