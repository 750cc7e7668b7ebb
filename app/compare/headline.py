"""The headline of Explore: its result in one sentence, with a table of all scores."""

from __future__ import annotations

import re
from html import unescape

import streamlit as st

from app import compute
from app.glossary.terms import linked_html
from app.jobs import scores
from app.plain_text import plain_html
from app.widgets import space_name
from app.workspace import Workspace
from relcore.base.numbers import counted, percent
from relcore.catalog.row_tables import pairs_in_order
from relcore.compare.pictures import Scores
from relcore.compare.reports import agreement, disagreement, matched_rows
from relcore.figures.export import Exportable
from relcore.represent.representations import COMPARED, REPRESENTATIONS
from relcore.scores.comparison import class_labels
from relcore.scores.score import Score
from relcore.scores.score_report import scores_report
from relcore.spaces.ids import GuessedIds
from relcore.spaces.matching import Match, distinct_names, short_names

_LAST = "relscope.headline"


def comparing(workspace: Workspace) -> str:
    """The line ``Comparing a and b …`` as HTML. Returns "" if the last headline was about these models."""
    if st.session_state.get(_LAST, ((),))[0] == workspace.models:
        return ""
    names = [plain_html(space_name(spec)) for spec in workspace.models]
    return _lead(f"Comparing {', '.join(names[:-1])} and {names[-1]} …")


def until_scored(workspace: Workspace) -> str:
    """The HTML that the page shows until `headline` is computed. If the last headline was about other models,
    this is the line of `comparing`. Otherwise it is the last headline, in pale colours if a setting has
    changed since."""
    if told := comparing(workspace):
        return told
    _, settings, last = st.session_state[_LAST]
    if settings == workspace.scoring:
        return last
    return f'<div class="relscope-old">{last}</div>'


def headline(workspace: Workspace, models: Match) -> str:
    """Compute the headline as HTML, and remember it for `until_scored`."""
    html = _headline(workspace, models)
    st.session_state[_LAST] = workspace.models, workspace.scoring, html
    return html


def in_words(workspace: Workspace) -> str:
    """The last headline as plain text. Returns "" if it was about other models or settings."""
    models, settings, html = st.session_state.get(_LAST, ((), (), ""))
    if (models, settings) != (workspace.models, workspace.scoring):
        return ""
    return unescape(
        re.sub(r'<(details|span class="relscope-brief").*|<[^>]*>', "", html, flags=re.DOTALL)
    ).strip()


def _headline(workspace: Workspace, models: Match) -> str:
    """The result as HTML: the shares of matching rows, in shared axes and by similarities to anchors, and a
    table of all scores. Each further model is compared with the first one by similarities to anchors."""
    pair = models.pair()
    if not workspace.anchors:
        return _lead("No anchors yet: choose some above (★), or draw with the lasso.")
    if not compute.can_be_scored(pair, workspace.anchors):
        return _lead(compute.too_few_held_out(pair, workspace.anchors))
    found = {name: scores(pair, name, workspace.scoring) for name in COMPARED}
    shares: dict[str, str] = {}
    known = found, pair, workspace.anchors
    agree = matched_rows(*known, lambda *share: shares.setdefault(share[0], _bold(*share)))
    if verdict := _verdict(found["relative"]["mrr"]):
        # The verdict replaces the last of these sentences, because both give the chance level.
        agree[1:] = [verdict, *agree[1:-1]]
    agree = agree or agreement(*known)
    tables = [scores_report(found).tables[0].html()]
    names = [plain_html(one) for one in model_names(models)]
    if models.others:
        who = f"{names[0]} and {names[1]}:"
        if agree:
            agree = [
                f"{who} {agree[0][0].lower()}{agree[0][1:]}",
                *agree[1:],
                _further(workspace, models, names),
            ]
        tables[0] = f"<p>{who}</p>{tables[0]}"
        more = scores_report(against_first(workspace, models), head="model").tables[0].html()
        tables.append(f"<p>Each model against {names[0]}, relative to the anchors:</p>{more}")
    opening = _opening(workspace, models, found["relative"])
    words = opening
    if agree:
        words = f"{agree[0]} <small>{' '.join([*agree[1:], opening])}</small>"
    words = _lead(words)
    if "relative" in shares:
        words += _brief(shares, found["relative"]["mrr"])
    if is_unmatched(workspace, pair):
        words = _lead(
            "The rows were paired by their order, and they do not match. Link finds their partners."
        )
    table = f'<div class="relscope-report">{"".join(tables)}</div>'
    details = linked_html(f"{table}{disagreement(found)}")
    return f"{words}<details class='relscope-details'><summary>Details</summary>{details}</details>"


def _verdict(found: Score) -> str:
    """A sentence on whether the share of matching rows is above chance. Returns "" if the share is one half
    or more."""
    if found.top1 is None or found.top1 >= 0.5 or not found.null:
        return ""
    chance = f"chance ({percent(1 / found.n)})"
    if found <= found.null.high:
        return f"No more than {chance}."
    above = "Above"
    if found.top1 * found.n > 10:
        above = "Far above"
    return f"{above} {chance}."


def _brief(shares: dict[str, str], found: Score) -> str:
    absolute = []
    if "absolute" in shares:
        absolute = [f"{shares['absolute']} in shared axes"]
    told = [
        f"Nearest row the same: {shares['relative']} by anchors",
        *absolute,
        f"chance {percent(1 / found.n)}",
    ]
    brief = " · ".join(told).replace("about ", "≈\u00a0").replace(" %", "\u00a0%")
    return f'<span class="relscope-brief">{brief}</span>'


def model_names(models: Match) -> list[str]:
    return list(short_names(distinct_names(models.spaces))[0])


def against_first(workspace: Workspace, models: Match) -> dict[str, dict[str, Score]]:
    """The scores of each further model against the first, relative to the anchors. The names of the models
    are the keys."""
    sides = enumerate(model_names(models)[1:], 1)
    return {name: scores(models.pair(side), "relative", workspace.scoring) for side, name in sides}


def _further(workspace: Workspace, models: Match, names: list[str]) -> str:
    """A sentence as HTML with the share of rows that match between the first model and each further one."""
    shares = []
    for name, by_metric in list(against_first(workspace, models).items())[1:]:
        if (share := by_metric["mrr"].top1) is None:
            return ""
        about = ""
        if by_metric["mrr"].interval is not None:
            about = "about "
        shares.append(f"<b>{about}{percent(float(share))}</b> in {plain_html(name)}")
    return f"Against {names[0]}, by the same anchors: {', '.join(shares)}."


def is_unmatched(workspace: Workspace, pair: Match) -> bool:
    """Whether the rows are paired only by their order, and paired rows are no more similar than rows paired
    at random."""
    if (
        not (_is_paired_by_order(workspace) and compute.can_be_scored(pair, workspace.anchors))
        or not workspace.anchors
    ):
        return False
    found = scores(pair, "relative", workspace.scoring)
    # Require two measures, because a single measure exceeds its 95 % band for 1 in 40 pairs of unrelated
    # spaces.
    return all(score.null and score <= score.null.high for score in (found["mrr"], found["cka"]))


def _is_paired_by_order(workspace: Workspace) -> bool:
    ends = workspace.source, workspace.target
    return pairs_in_order(ends, list(map(compute.load_space, ends)))


def _lead(words: str) -> str:
    # Keyboard users skip these links, because Details has the same ones.
    words = linked_html(words).replace("<a ", '<a tabindex="-1" ')
    return f'<p class="relscope-lead">{words}</p>'


def _bold(representation: str, share: str) -> str:
    """A share as HTML. The CSS class lets the panes update it while an anchor is dragged."""
    if representation == "relative":
        return f'<b class="relscope-live">{share}</b>'
    return f"<b>{share}</b>"


def _opening(workspace: Workspace, models: Match, scores: dict[str, Score]) -> str:
    pair = models.pair()
    is_words = pair.source.counts is not None
    rows = counted(len(pair), "word" if is_words else "row")
    if isinstance(pair.ids, GuessedIds):
        n = counted(scores["mrr"].n, "confirmed pair")
        return f"Link paired {rows}. Only the {n} are scored."
    if _is_paired_by_order(workspace):
        return "Paired by row order."
    if not models.others:
        return ""  # for two models, the toolbar shows how many rows match
    return f"All {len(models.spaces)} models {'know' if is_words else 'describe'} the same {rows}."


def representations(anchors: tuple[str, ...]) -> tuple[str, ...]:
    if anchors:
        return REPRESENTATIONS
    return ("absolute",)


def scores_figure(
    workspace: Workspace, models: Match, found: dict[str, dict[str, Score]] | None = None
) -> Exportable:
    """The figure of these scores, or of `all_scores`."""
    pair = models.pair()
    found = found or all_scores(workspace, pair)
    sampled = any(score.interval for by_metric in found.values() for score in by_metric.values())
    n_queries = None
    if sampled:
        n_queries = compute.LIVE_QUERIES
    recipe = Scores.of(
        workspace.recipe(models),
        k=workspace.k,
        convention=workspace.convention,
        n_queries=n_queries,
        class_agreement=class_labels(pair) is not None,
    )
    return recipe.draw(found)


def all_scores(workspace: Workspace, pair: Match) -> dict[str, dict[str, Score]]:
    relative = workspace.anchors and compute.can_be_scored(pair, workspace.anchors)
    anchors = ()
    if relative:
        anchors = workspace.anchors
    return {name: scores(pair, name, workspace.scoring) for name in representations(anchors)}
