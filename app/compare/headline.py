"""The headline of the Compare page: its result in one sentence with the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app import compute
from app.jobs import scores
from app.workspace import Workspace
from relcore.base.numbers import band, counted, short
from relcore.scores.score import Score
from relcore.spaces.space import Match

_FORMS = ("absolute", "relative", "whitened")


def headline(workspace: Workspace, pair: Match) -> str:
    """As HTML: class agreement where the rows have classes, else the rank of a row as a neighbour of
    itself.
    """
    return f'<p class="relscope-lead">{_sentence(workspace, pair)}</p>'


def _sentence(workspace: Workspace, pair: Match) -> str:
    if not workspace.anchors:
        return "No anchors yet: choose some in the sidebar, or pick them on the Anchors page."
    if not compute.can_be_scored(pair, workspace.anchors):
        return compute.too_few_held_out(pair, workspace.anchors)
    found = {form: scores_of(workspace, pair, form) for form in _FORMS}
    opening = f"Two encoders, the same {counted(len(pair), 'row')}"
    if "mrr" not in found["absolute"]:
        opening += ", different dimensions, and so no coordinates in common but those to anchors"
    if agreement := found["relative"].get("class agreement"):
        question = "does the nearest neighbour of a row in the other space have its class"
        if agreement.k > 1:
            near = f"do the {agreement.k} nearest neighbours of a row in the other space"
            question = f"{near} have mostly its class"
        return (
            f"{opening}: {question}? Class agreement {_circumstances(workspace, agreement)}:"
            f" {_numbers(found, 'class agreement')}. Mean reciprocal rank of the row itself:"
            f" {_numbers(found, 'mrr', ('relative',))}."
        )
    return (
        f"{opening}: how high does a row rank as a neighbour of itself in the other space? Mean reciprocal"
        f" rank {_circumstances(workspace, found['relative']['mrr'])}: {_numbers(found, 'mrr')}."
    )


def scores_of(workspace: Workspace, pair: Match, form: str) -> dict[str, Score]:
    return scores(pair, form, workspace.anchors, workspace.projection, workspace.k, workspace.convention)


def _numbers(found: Mapping[str, Mapping[str, Score]], metric: str, forms: Sequence[str] = _FORMS) -> str:
    """``relative <b>.930</b> ± .028, whitened …; chance level .102``, of representations with this score."""
    scored, parts = {form: found[form][metric] for form in forms if metric in found[form]}, []
    for form, score in scored.items():
        reach = f" ± {short((score.interval[1] - score.interval[0]) / 2)}" if score.interval else ""
        parts.append(f"{form} <b>{short(score)}</b>{reach}")
    chance = scored["relative"].null
    after = f"; chance level {short(chance.mean, chance.places)}" if chance else ""
    return ", ".join(parts) + after


def _circumstances(workspace: Workspace, score: Score) -> str:
    rows = f"all {score.n:,}" if score.interval is None else f"{score.n_queries:,} of {score.n:,}"
    recall, near = score.recall, ""
    if recall:
        ends = band(recall.low, recall.high)
        near = f", approximate neighbours with a recall of {short(recall.value)} ({ends})"
    return f"with {counted(len(workspace.anchors), 'anchor')}, {rows} held-out rows as queries{near}"
