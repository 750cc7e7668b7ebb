"""Sets of anchors: the scores of each strategy by the number of anchors, and what each anchor adds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.names import METRICS, STRATEGIES
from relcore.charts.lines import Line, Lines
from relcore.represent.anchors import select_anchors
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.scores.comparison import LIVE_QUERIES, ProjectionSpec, represent, score_differences, score_pair
from relcore.spaces.space import Match
from relcore.spaces.split import Split, row_keys
from relcore.studies.material import SPACES, word_pair, word_specs
from relcore.studies.runs import STUDENT, circumstances, differences, findings_over, lines_over
from relcore.studies.statistics import mean
from relcore.studies.study import Opening, Option, RunResult, Settings, Study, finding, findings_table, grid

_NUMBERS = (10, 20, 50, 100, 200, 300)
_METRICS = ("jaccard", "mrr", "cosine", "cka")
_STRATEGIES = tuple(name for name in STRATEGIES if name != "class-balanced")  # words have no labels
_STATES = Option("n_states", "Random states", (3, 5, 10), 3, help="Each draws other anchors.")


class AnchorCurve(Study):
    """Each strategy chooses 10 to 300 anchors among the rows that are not tested on. All sets are scored on
    the same held-out rows, which are anchors of none.
    """

    kind = "anchor-curve"
    title = "Strategies by number of anchors"
    question = "Which strategy needs the fewest anchors?"
    paper = "Moschella et al. 2023, left open in section 6"
    options = (
        Option(
            "strategies",
            "Strategies",
            _STRATEGIES,
            ("random", "farthest-point"),
            many=True,
            names=tuple(STRATEGIES[name].title for name in _STRATEGIES),
        ),
        Option("form", "Representation", ("relative", "whitened"), "relative"),
        _STATES,
        SPACES,
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        shared = {"form": options["form"], "spaces": list(options["spaces"])}
        return grid(options, shared, strategy=options["strategies"], n_anchors=_NUMBERS)

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        pair = word_pair(settings["spaces"], store)
        split = Split.draw(pair.ids)
        anchors = _strategy_anchors(settings, pair)
        rows = represent(pair, settings["form"], anchors, ProjectionSpec())
        scores = score_pair(*rows, split, n_queries=LIVE_QUERIES, metrics=_METRICS)
        chance = {f"{name} chance": score.null.mean for name, score in scores.items()}
        return RunResult(
            {name: float(score) for name, score in scores.items()} | chance | {"rows": len(split.test)}
        )

    def seconds(self, settings: Settings) -> float:
        return 12.0 if settings["strategy"] == "k-means" else 3.0

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        if not len(table):
            return {}
        note = circumstances(table, f"{int(table.rows.iloc[0]):,} held-out rows, anchors of no set")
        return {
            METRICS[name].title: Lines(
                tuple(
                    line
                    for strategy, part in table.groupby("strategy", sort=False)
                    for line in lines_over(part, "n_anchors", {name: STRATEGIES[strategy].title})
                ),
                "number of anchors",
                METRICS[name].title,
                log_x=True,
                baselines=(("chance", float(table[f"{name} chance"].mean())),),
                note=note,
            )
            for name in _METRICS
        }

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        rows = []
        for strategy, part in table.groupby("strategy", sort=False) if len(table) else ():
            measures = {name: f"{STRATEGIES[strategy].title}: {METRICS[name].title}" for name in _METRICS}
            rows += findings_over(part.sort_values("n_anchors"), "n_anchors", measures)
        return findings_table(rows)

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        if not len(table) or "random" not in set(table.strategy):
            return ""
        part = table[table.n_anchors == table.n_anchors.min()]
        gains = {
            name: differences(part, "strategy", name, "random", "mrr")
            for name in {*part.strategy} - {"random"}
        }
        known = {name: gain for name, gain in gains.items() if gain.has_interval}
        if not known:
            return ""
        best = max(known, key=lambda name: known[name].value)
        return (
            f"With {part.n_anchors.iloc[0]} anchors, {STRATEGIES[best].title} changes the MRR of random"
            f" anchors by {known[best].told()}."
        )

    def opening(self, settings: Settings) -> Opening:
        anchors = _strategy_anchors(settings, word_pair(settings["spaces"], Store()))
        return Opening(spaces=word_specs(settings["spaces"]), anchors=tuple(anchors))


def _strategy_anchors(settings: Settings, pair: Match) -> list[str]:
    known = pair.source.take(Split.draw(pair.ids).known)
    number, state = settings["n_anchors"], settings["random_state"]
    return select_anchors(known, number, settings["strategy"], random_state=state).tolist()


# What each anchor adds to linear CKA and to the mean cosine, by exact deletion.
#
# Influence shows what an anchor contributes. It does not find wrong pairs: a ranking of 300 words by
# influence on CKA finds 10, 30 and 100 wrong ones with a precision of .04, .09 and .29 (our measurement).
# `relcore.represent.audit` finds them.

_CHANGES = ("drop", "add")
_N_CHANGED = 10
_N_CANDIDATES = 100
_FEWEST_ROWS, _MOST_ROWS = 20, 4000  # of each half
_ROUNDING = 1e-12  # of CKA, from its sums: less is no gain


class AnchorInfluence(Study):
    """Half of the rows that are no anchors choose: each anchor's effect is the score with it less the score
    without it, exactly, and the ten anchors whose deletion raises linear CKA most, one after the other, are
    dropped; ten of 100 farthest-point rows are added in the same way. The other half scores the change.
    """

    kind = "anchor-influence"
    title = "Influence of each anchor"
    question = "What does each anchor add, and does it help to drop those that harm?"
    paper = "ours; Moschella et al. 2023 choose anchors at random"
    options = (
        Option("n_anchors", "Anchors", (30, 100, 300), 100),
        _STATES,
        SPACES,
        Option("anchors", "The session's anchors", (), (), many=True, help="Instead of random ones."),
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        shared = {"spaces": list(options["spaces"])}
        if options["anchors"]:
            anchors = list(options["anchors"])
            return [{**shared, "n_anchors": len(anchors), "anchors": anchors, "random_state": 0}]
        return grid(options, shared | {"n_anchors": options["n_anchors"]})

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        pair = word_pair(settings["spaces"], store)
        anchors = _influence_anchors(settings, pair)
        rows = pair.source.rows(anchors)
        columns = np.concatenate([rows, _candidates(pair, rows)])
        split = halves(pair.ids, columns)
        fitted = ProjectionSpec().projection()
        relative = [
            fitted.fit(space.vectors, anchors=columns).transform(space.vectors)
            for space in (pair.source, pair.target)
        ]
        R, S = (Z[split.train] for Z in relative)
        is_anchor = np.arange(len(columns)) < len(rows)
        products = Products.of(R, S)
        cka = products.cka(is_anchor)
        effects = cka - products.cka_changed(is_anchor)[is_anchor]
        cosine, without = cosine_without(R[:, is_anchor], S[:, is_anchor])
        order = np.argsort(effects, kind="stable")
        values = {
            "cka": cka,
            "cosine": cosine,
            "rows": len(split.test),
            "anchor, least first": [anchors[place] for place in order],
            "effect on linear CKA": effects[order].tolist(),
            "effect on cosine": (cosine - without)[order].tolist(),
        }
        for change, allowed in zip(_CHANGES, (is_anchor, ~is_anchor), strict=True):
            changed = products.greedy(is_anchor, allowed, _N_CHANGED)[0]
            values[change] = ", ".join(map(str, pair.ids[columns[changed]]))
            now = is_anchor ^ np.isin(np.arange(len(columns)), changed)
            sides = ([Z[:, chosen] for Z in relative] for chosen in (is_anchor, now))
            moved = score_differences(*sides, split, n_queries=LIVE_QUERIES)
            values |= {f"{change}: {name}": moved[name].value for name in _METRICS if name in moved}
        return RunResult(values)

    def seconds(self, settings: Settings) -> float:
        return 4.0 + settings["n_anchors"] / 50

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        if not len(table):
            return {}
        run = table.iloc[0]
        names = run["anchor, least first"]
        lines = [
            Line(name, np.arange(1, len(names) + 1), run[f"effect on {name}"], labels=names)
            for name in ("linear CKA", "cosine")
        ]
        note = f"random state {run.random_state}; the score with the anchor less the score without it"
        return {
            "effect of each anchor": Lines(
                tuple(lines),
                "anchor, by its effect on CKA",
                "effect on the score",
                kind="points",
                baselines=(("no effect", 0.0),),
                note=note,
            )
        }

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        verbs = {"drop": "dropped", "add": "added"}
        return findings_table(
            [
                finding(
                    f"{METRICS[name].title}, change by {_N_CHANGED} {verbs[change]} anchors, other rows",
                    mean(table[f"{change}: {name}"]),
                    STUDENT,
                )
                for change in _CHANGES
                for name in _METRICS
                if f"{change}: {name}" in table
            ]
        )

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        gains = [mean(table[f"{change}: mrr"]) if f"{change}: mrr" in table else None for change in _CHANGES]
        if not all(gain and gain.has_interval for gain in gains):
            return ""
        drop, add = gains
        return (
            f"On other rows, the MRR changes by {drop.told()} without the {_N_CHANGED} anchors that lower CKA"
            f" most, and by {add.told()} with {_N_CHANGED} more that raise it most."
        )

    def opening(self, settings: Settings) -> Opening:
        anchors = _influence_anchors(settings, word_pair(settings["spaces"], Store()))
        return Opening(spaces=word_specs(settings["spaces"]), anchors=tuple(anchors))


def _influence_anchors(settings: Settings, pair: Match) -> list[str]:
    if "anchors" in settings:
        return list(settings["anchors"])
    return select_anchors(pair.source, settings["n_anchors"], random_state=settings["random_state"]).tolist()


def _candidates(pair: Match, rows: np.ndarray) -> np.ndarray:
    """Rows that may be added: at most a third of the others."""
    free = np.setdiff1d(np.arange(len(pair)), rows)
    others = pair.source.take(free)
    number = min(_N_CANDIDATES, len(free) // 3)
    return free[others.rows(select_anchors(others, number, "farthest-point"))] if number else free[:0]


def halves(ids: np.ndarray, columns: np.ndarray) -> Split:
    """Rows that are no column: `train` chooses, `test` judges; at most 4,000 each.

    Raises
    ------
    SpaceError
        Fewer than 20 of them.
    """
    free = np.setdiff1d(np.arange(len(ids)), columns)
    if len(free) < _FEWEST_ROWS:
        raise SpaceError(
            f"influence: expected {_FEWEST_ROWS} rows or more beside the anchors, got {len(free)}; use fewer"
            " anchors"
        )
    order = free[np.argsort(row_keys(ids[free], "influence"))]
    half = len(order) // 2
    return Split(ids, columns, np.sort(order[:half][:_MOST_ROWS]), np.sort(order[half:][:_MOST_ROWS]))


@dataclass(frozen=True, eq=False)
class Products:
    """Squared entries of RᵀHS, RᵀHR and SᵀHS, each (m, m), of two relative spaces (n, m) over the same
    anchors.

    H centres the columns. Linear CKA of any subset of the columns is a ratio of sums over these entries.
    """

    cross: np.ndarray
    source: np.ndarray
    target: np.ndarray

    @classmethod
    def of(cls, R: np.ndarray, S: np.ndarray) -> Products:
        """Of paired rows (n, m) and (n, m), in float64."""
        R, S = (np.asarray(Z, dtype=np.float64) - Z.mean(axis=0, dtype=np.float64) for Z in (R, S))
        return cls((R.T @ S) ** 2, (R.T @ R) ** 2, (S.T @ S) ** 2)

    def cka(self, columns: np.ndarray) -> float:
        """Linear CKA of the spaces relative to these columns, (m,) bool, 0 … 1."""
        cross, source, target = (
            M[np.ix_(columns, columns)].sum() for M in (self.cross, self.source, self.target)
        )
        return float(cross / np.sqrt(source * target))

    def cka_changed(self, columns: np.ndarray) -> np.ndarray:
        """Linear CKA after each of the m columns is taken out, where it is among `columns` (m,) bool, or else
        added, (m,).

        Deleting an anchor deletes its row and column of each product, so all m values together cost three
        sums over m².
        """
        sums = []
        for M in (self.cross, self.source, self.target):
            total, own = M[np.ix_(columns, columns)].sum(), M.diagonal()
            strip = M[:, columns].sum(axis=1) + M[columns].sum(axis=0)
            sums.append(np.where(columns, total - strip + own, total + strip + own))
        cross, source, target = sums
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where((source > 0) & (target > 0), cross / np.sqrt(source * target), np.nan)

    def greedy(self, columns: np.ndarray, allowed: np.ndarray, n: int) -> tuple[list[int], list[float]]:
        """Up to n columns among `allowed` (m,) bool, changed one after the other, each the one that raises
        CKA most, and CKA after each; fewer where nothing raises it or two columns would be left."""
        columns, allowed = columns.copy(), allowed.copy()
        steps, values, now = [], [], self.cka(columns)
        while len(steps) < n and allowed.any() and (columns.sum() > 2 or not columns[allowed].any()):
            after = np.where(allowed, self.cka_changed(columns), -np.inf)
            best = int(np.nanargmax(after))
            if not after[best] > now + _ROUNDING:
                break
            columns[best], allowed[best], now = not columns[best], False, float(after[best])
            steps.append(best)
            values.append(now)
        return steps, values


def cosine_without(R: np.ndarray, S: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean cosine of paired rows (n, m), and the same without each column, (m,)."""
    R, S = (np.asarray(Z, dtype=np.float64) for Z in (R, S))
    both, first, second = np.vecdot(R, S)[:, None], np.vecdot(R, R)[:, None], np.vecdot(S, S)[:, None]
    left = np.maximum((first - R * R) * (second - S * S), 0)
    without = np.divide(both - R * S, np.sqrt(left), out=np.zeros_like(R), where=left > 0)
    whole = np.divide(both, np.sqrt(first * second), out=np.zeros_like(both), where=first * second > 0)
    return float(whole.mean()), without.mean(axis=0)
