"""Figures of bootstrapping from their recipes: how it went round by round, and what the anchors are worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pandas as pd

from relcore import __version__
from relcore.bootstrapping.job import BootstrapSpec, Outcome, run_bootstrap
from relcore.charts.lines import Line, Lines
from relcore.comparison import score_table
from relcore.figures.export import Exportable, lines_exportable, scores_exportable
from relcore.names import METRICS
from relcore.recipe import load_again, need_same_content
from relcore.sources.catalog import SpaceSpec
from relcore.spaces import SpaceError


def recipe_of(figure: str, source: SpaceSpec, target: SpaceSpec, spec: BootstrapSpec, digests=("", "")) -> dict[str, Any]:
    """All that it takes to bootstrap again and draw the figure."""
    pairs = [list(pair) for pair in spec.pairs]
    spaces = {"source": source.to_json(), "target": target.to_json(), "digests": list(digests)}
    return {"relscope": __version__, "figure": figure, **spaces, "bootstrap": asdict(spec) | {"pairs": pairs}}


def draw_rounds(source: SpaceSpec, target: SpaceSpec, spec: BootstrapSpec, outcome: Outcome, digests=("", "")) -> Exportable:
    """Rows paired and hidden anchors found by round; of the published method its error."""
    recipe = recipe_of("bootstrap", source, target, spec, digests)
    return lines_exportable(rounds_chart(spec, outcome), recipe, name="relscope-bootstrap")


def draw_scores(source: SpaceSpec, target: SpaceSpec, spec: BootstrapSpec, outcome: Outcome, digests=("", "")) -> Exportable:
    """Ground truth, seeds and found: Jaccard, MRR and cosine, each beside its chance level.

    Raises
    ------
    SpaceError
        Where the truth is not known there are no scores.
    """
    if not outcome.scores:
        got = "no held-out row: ask for fewer anchors" if outcome.known else "one without a truth"
        raise SpaceError(f"bootstrap-scores: expected an experiment with the pairing hidden, got {got}")
    recipe = recipe_of("bootstrap-scores", source, target, spec, digests)
    drawn = scores_exportable(score_table(outcome.scores), recipe, name="relscope-bootstrap-scores")
    return Exportable(drawn.name, drawn.interactive, drawn.publication, drawn.table, recipe, lambda: printed_table(outcome))


def rounds_chart(spec: BootstrapSpec, outcome: Outcome) -> Lines:
    """Round by round, 0 … 1; the error of the published method falls from what it was in the first step."""
    rounds = outcome.result.history
    x = range(1, len(rounds) + 1)
    literal = spec.method == "paper"
    lines = [Line("share of hidden anchors found", x, [one.found for one in rounds])] if outcome.known else []
    if literal:
        lines.append(Line("error, share of the first step's", x, [one.objective / rounds[0].objective for one in rounds]))
    else:
        lines.append(Line("share of rows that found each other", x, [one.pairs / one.rows for one in rounds]))
    note = f"Verdict: {outcome.result.verdict}"
    return Lines(tuple(lines), "step" if literal else "round", "share", y_range=(0, 1.02), note=note)


def printed_table(outcome: Outcome) -> pd.DataFrame:
    """The table of the paper: a row for each set of anchors, with the share of hidden anchors found and the verdict."""
    shares, verdicts = {"found": outcome.share}, {"found": outcome.result.verdict}
    rows = [
        {
            "anchors": form,
            **{METRICS[name].title: float(score) for name, score in found.items()},
            "hidden found": shares.get(form),
            "verdict": verdicts.get(form, ""),
        }
        for form, found in outcome.scores.items()
    ]
    return pd.DataFrame(rows)


def _run(settings: Mapping[str, Any]) -> tuple[SpaceSpec, SpaceSpec, BootstrapSpec, Outcome, tuple[str, str]]:
    expected = {"source", "target", "bootstrap", "digests"}
    if not {"source", "target", "bootstrap"} <= set(settings) <= expected:
        raise SpaceError(f"recipe: expected {', '.join(sorted(expected))}, got {', '.join(sorted(settings))}")
    source, target = (SpaceSpec.from_json(settings[side]) for side in ("source", "target"))
    try:
        spec = BootstrapSpec(**settings["bootstrap"])
    except TypeError as error:
        raise SpaceError(f"recipe: unknown or misplaced setting ({error})") from error
    digests = tuple(settings.get("digests") or ("", ""))
    spaces = [load_again(one) for one in (source, target)]
    for space, digest in zip(spaces, digests, strict=True):
        need_same_content(space, digest)
    return source, target, spec, run_bootstrap(*spaces, spec), digests


FIGURES = {
    "bootstrap": lambda settings: draw_rounds(*_run(settings)),
    "bootstrap-scores": lambda settings: draw_scores(*_run(settings)),
}
