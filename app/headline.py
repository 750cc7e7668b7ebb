"""The headline of the Compare page: its result in one sentence with the numbers."""

from __future__ import annotations

from collections.abc import Mapping

from app import compute
from app.jobs import scores
from app.workspace import Workspace
from relcore.metrics.calibration import Score
from relcore.numbers import counted, short
from relcore.spaces import Match

_FORMS = ("absolute", "relative", "whitened")
_Found = Mapping[str, Mapping[str, Score]]


def headline(workspace: Workspace, pair: Match) -> str:
    """As HTML: class agreement where the rows have classes, else the rank of a row as a neighbour of itself."""
    if not workspace.anchors:
        return _paragraph("No anchors yet: choose some in the sidebar, or pick them on the Anchors page.")
    if not compute.can_be_scored(pair, workspace.anchors):
        return _paragraph(compute.TOO_MANY_ANCHORS)
    found = {form: scores_of(workspace, pair, form) for form in _FORMS}
    rows, anchors = counted(len(pair), "row"), f"with {counted(len(workspace.anchors), 'anchor')}"
    opening = f"Two encoders, the same {rows}: "
    if "mrr" not in found["absolute"]:
        opening = (
            f"The same {rows} in spaces that have different dimensions, so they share no coordinates but those to anchors: "
        )
    if agreement := found["relative"].get("class agreement"):
        text = (
            f"{opening}{_do_neighbours(agreement.k)}? "
            f"Class agreement {anchors}: {_numbers(found, 'class agreement')}. "
            f"Mean reciprocal rank of the row itself: {_numbers(found, 'mrr', ('relative',))}."
        )
        return _paragraph(f"{text} {_queries(agreement)}")
    question = "how high does a row of one space rank as a neighbour of itself in the other?"
    text = f"{opening}{question} Mean reciprocal rank {anchors}: {_numbers(found, 'mrr')}."
    return _paragraph(f"{text} {_queries(found['relative']['mrr'])}")


def scores_of(workspace: Workspace, pair: Match, form: str) -> dict[str, Score]:
    """Scores of one representation, as the sidebar's settings say."""
    return scores(pair, form, workspace.anchors, workspace.projection, workspace.k, workspace.convention)


def _do_neighbours(k: int) -> str:
    if k == 1:
        return "does the nearest neighbour of a row in the other space have its class"
    return f"do the {k} nearest neighbours of a row in the other space have mostly its class"


def _numbers(found: _Found, metric: str, forms: tuple[str, ...] = _FORMS) -> str:
    """``relative <b>.930</b> ± .028, whitened …; chance level .102``, of the representations that have this score."""
    scored = {form: found[form][metric] for form in forms if metric in found[form]}
    told = ", ".join(f"{form} <b>{short(score)}</b>{_reach(score)}" for form, score in scored.items())
    chance = scored["relative"].null
    return f"{told}; chance level {short(chance.mean, chance.places)}" if chance else told


def _reach(score: Score) -> str:
    return f" ± {short((score.interval[1] - score.interval[0]) / 2)}" if score.interval else ""


def _queries(score: Score) -> str:
    rows = f"all {score.n:,}" if score.interval is None else f"{score.n_queries:,} of {score.n:,}"
    return f"Queries: {rows} held-out rows, none of them an anchor."


def _paragraph(text: str) -> str:
    return f'<p class="relscope-lead">{text}</p>'
