"""Which anchors? Random ones, spread ones, frequent or rare words, one class only, far points, or those
picked by hand.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.magnitude import lengths
from relcore.charts.lines import Lines
from relcore.represent.anchors import select_anchors
from relcore.represent.similarity import mean_row, unit_rows
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.scores.comparison import ProjectionSpec, held_out, represent, score_pair
from relcore.spaces.space import LatentSpace
from relcore.stitch.stitching import StitchSpec, share_rows, split_rows
from relcore.studies.material import (
    BASELINE,
    DATA,
    LABELLED,
    MEASURES,
    OWN,
    SPACES,
    labelled_spaces,
    opening_of,
    stitched_values,
    test_ids_of,
    word_pair,
    word_specs,
)
from relcore.studies.runs import average, circumstances, differences, findings_over, points_over
from relcore.studies.study import Opening, Option, RunResult, Settings, Study, findings_table

CHOICES = {
    "random": "random",
    "farthest-point": "farthest-point",
    "k-means": "k-means",
    "class-balanced": "class-balanced",
    "most-frequent": "stop words",
    "rare": "rare words",
    "one-class": "one class only",
    "far": "far points",
    "picked": "picked by hand",
}
_OF_WORDS = ("random", "farthest-point", "k-means", "most-frequent", "rare", "one-class", "far")
_OF_LABELLED = ("random", "farthest-point", "k-means", "class-balanced", "one-class", "far")
_WORD_MEASURES = {
    "jaccard": "relative: Jaccard",
    "mrr": "relative: MRR",
    "cosine": "relative: cosine",
    "whitened jaccard": "whitened: Jaccard",
    "whitened mrr": "whitened: MRR",
    "whitened cosine": "whitened: cosine",
}
_QUERIES = 2000


class AnchorChoice(Study):
    """The question that Moschella et al. leave open in their last section: strategies, and choices that
    are poor on purpose.
    """

    kind = "anchor-choice"
    version = 2
    title = "Which anchors"
    question = "Which anchors work best?"
    paper = "Moschella et al. 2023, left open in section 6"
    options = (
        Option(
            "data",
            "On",
            ("words", *LABELLED),
            "words",
            help=f"Words: Jaccard, MRR, cosine of two spaces. {DATA.help}",
        ),
        Option("n_anchors", "Anchors", (30, 100, 300), 100),
        Option(
            "n_states",
            "Random states",
            (3, 5, 10),
            3,
            help="Each draws the anchors and, of sentences, the test rows.",
        ),
        SPACES,
        Option(
            "anchors",
            "Include the session's anchors",
            (),
            (),
            many=True,
            help="As “picked by hand”, for words only.",
        ),
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        shared = {"data": options["data"], "n_anchors": options["n_anchors"]}
        words = options["data"] == "words"
        runs = [
            {
                **shared,
                "choice": choice,
                "random_state": state,
                **({"spaces": list(options["spaces"])} if words else {}),
            }
            for choice in (_OF_WORDS if words else _OF_LABELLED)
            for state in range(options["n_states"])
        ]
        if words and options["anchors"]:
            picked = {"n_anchors": len(options["anchors"]), "choice": "picked", "random_state": 0}
            runs.append(
                {**shared, **picked, "spaces": list(options["spaces"]), "anchors": list(options["anchors"])}
            )
        return runs

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        if settings["data"] == "words":
            return self._words(settings, store)
        spaces, state = labelled_spaces(settings["data"], store, report), settings["random_state"]
        methods = ("absolute", "relative", "whitened")
        n_anchors, test_ids = settings["n_anchors"], test_ids_of(settings["data"], spaces[0])
        spec = StitchSpec(methods, random_states=(state,), n_anchors=n_anchors, test_ids=test_ids)
        shared = share_rows(spaces)
        train = split_rows(shared, spec, state).known
        labels = np.array(shared.classes, dtype=object)[shared.targets[train]]
        candidates = LatentSpace(
            shared.spaces[0].vectors[train], shared.ids[train], name=spaces[0].name, labels=labels
        )
        anchors = chosen_anchors(candidates, settings["n_anchors"], settings["choice"], state)
        return RunResult(stitched_values(spaces, replace(spec, anchors=tuple(anchors))))

    def _words(self, settings: Settings, store: Store) -> RunResult:
        pair = word_pair(settings["spaces"], store)
        anchors = settings.get("anchors") or self._anchors(settings, pair.source)
        split = replace(held_out(pair, anchors), random_state=settings["random_state"])
        values: dict[str, Any] = {"rows": len(split.test)}
        for form, prefix in (("relative", ""), ("whitened", "whitened ")):
            source, target = represent(pair, form, anchors, ProjectionSpec())
            found = score_pair(source, target, split, n_queries=_QUERIES)
            values |= {f"{prefix}{name}": float(found[name]) for name in ("jaccard", "mrr", "cosine")}
        return RunResult(values)

    def _anchors(self, settings: Settings, space: LatentSpace) -> list[str]:
        return chosen_anchors(space, settings["n_anchors"], settings["choice"], settings["random_state"])

    def seconds(self, settings: Settings) -> float:
        return {"words": 4.0, "digits": 3.5, "sentences": 6.0}[settings["data"]]

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        if not len(table):
            return {}
        choices = [choice for choice in CHOICES if choice in set(table.choice)]
        look = {
            "kind": "points",
            "x_names": tuple(CHOICES[choice] for choice in choices),
            "note": _note(table),
        }
        if options["data"] == "words":
            lines = points_over(table, "choice", choices, _WORD_MEASURES)
            return {"scores": Lines(tuple(lines), "anchors", "score", **look)}
        lines = points_over(table, "choice", choices, MEASURES)
        baselines = ((BASELINE, average(table, OWN)), ("chance", average(table, "chance")))
        return {"accuracy": Lines(tuple(lines), "anchors", "accuracy", baselines=baselines, **look)}

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        measures = _WORD_MEASURES if options["data"] == "words" else MEASURES
        return findings_table(findings_over(table, "choice", measures, CHOICES) if len(table) else [])

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        column, name = (
            ("mrr", "MRR") if options["data"] == "words" else ("relative, stitched", "stitched accuracy")
        )
        others = (
            [choice for choice in CHOICES if choice in set(table.choice) - {"random", "picked"}]
            if len(table)
            else []
        )
        against = {choice: differences(table, "choice", choice, "random", column) for choice in others}
        known = {choice: found for choice, found in against.items() if found.has_interval}
        if not known:
            return ""
        best, worst = (pick(known, key=lambda choice: known[choice].value) for pick in (max, min))
        return (
            f"Against random anchors, the {name} of relative rows changes by {known[best].told()} with the"
            f" best choice, {CHOICES[best]}, and by {known[worst].told()} with the worst, {CHOICES[worst]}."
        )

    def opening(self, settings: Settings) -> Opening | None:
        if settings["data"] != "words":
            return opening_of(settings["data"])
        pair = word_pair(settings["spaces"], Store())
        anchors = settings.get("anchors") or self._anchors(settings, pair.source)
        return Opening(spaces=word_specs(settings["spaces"]), anchors=tuple(anchors))


def chosen_anchors(space: LatentSpace, n_anchors: int, choice: str, random_state: int = 0) -> list[str]:
    """Ids of anchors by any of `CHOICES` but "picked".

    The strategies of `select_anchors`, and on purpose poor ones: "rare", at random among the tenth that is
    least frequent; "one-class", the label of a random row, or without labels its nearest rows; "far", those
    farthest from the space's mean.

    Raises
    ------
    SpaceError
        An unknown choice, fewer such rows than anchors.
    """
    need_one_of("choice", choice, [name for name in CHOICES if name != "picked"])
    if choice not in ("rare", "one-class", "far"):
        return select_anchors(space, n_anchors, choice, random_state=random_state).tolist()
    rng = np.random.default_rng(random_state)
    alive = np.flatnonzero(space.norms > 0)
    if n_anchors > len(alive):
        raise SpaceError(
            f"n_anchors: expected at most {len(alive)}, the rows of {space.name!r}, got {n_anchors}"
        )
    if choice == "rare":
        order = alive if space.counts is None else alive[np.argsort(-space.counts[alive], kind="stable")]
        return space.ids[
            rng.choice(order[-max(n_anchors, len(order) // 10) :], n_anchors, replace=False)
        ].tolist()
    if choice == "far":
        found = lengths(space.vectors[alive], mean_row(space.vectors))
        far = alive[np.argsort(-found, kind="stable")]
        return space.ids[rng.choice(far[: 2 * n_anchors], n_anchors, replace=False)].tolist()
    return space.ids[_one_class(space, alive, n_anchors, rng)].tolist()


def _one_class(space: LatentSpace, alive: np.ndarray, n_anchors: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of one label, where one has enough, else the nearest rows of a random one."""
    if space.labels is not None:
        labels = space.labels[alive].astype(str)
        names, counts = np.unique(labels[labels != ""], return_counts=True)
        large = names[counts >= n_anchors]
        if len(large):
            return rng.choice(alive[labels == rng.choice(large)], n_anchors, replace=False)
    directions = unit_rows(space.vectors[alive], mean_row(space.vectors))
    near = directions @ directions[rng.integers(len(alive))]
    return alive[np.argsort(-near, kind="stable")[:n_anchors]]


def _note(table: pd.DataFrame) -> str:
    k = "k = 10, " if "mrr" in table else ""
    rows = (
        f"{_QUERIES:,} of {int(table['rows'].iloc[0]):,} rows as queries"
        if "rows" in table
        else "4 encoders, 12 pairs"
    )
    return circumstances(table, f"{table.n_anchors.iloc[0]} anchors, {k}{rows}", "bars")
