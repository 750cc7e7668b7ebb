"""The headline of Explore: its result in one sentence with the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app import compute
from app.glossary.terms import linked_html
from app.jobs import scores
from app.workspace import Workspace
from relcore.base.numbers import band, counted, percent, short
from relcore.catalog.row_tables import pairs_in_order
from relcore.compare.reports import themselves
from relcore.scores.score import Score
from relcore.spaces.ids import GuessedIds
from relcore.spaces.matching import Match

_FORMS = ("absolute", "relative", "whitened")


def headline(workspace: Workspace, pair: Match) -> str:
    """The result as HTML: how many rows agree in shared axes and by anchors, above all measured scores."""
    if not workspace.anchors:
        return _lead("No anchors yet: choose some above (★), or draw with the lasso.")
    if not compute.can_be_scored(pair, workspace.anchors):
        return _lead(compute.too_few_held_out(pair, workspace.anchors))
    found = {form: scores_of(workspace, pair, form) for form in _FORMS}
    measured = _measured(workspace, pair, found)
    words = _in_words(workspace, pair, found)
    if is_unmatched(workspace, pair):
        words = "Paired by row order, and they do not match: find partners with Link."
    if not words:
        return _lead(measured)
    details = linked_html(f"{measured}{_why_cka(found)}")
    return f"{_lead(words)}<details class='relscope-details'><summary>Details</summary>{details}</details>"


def is_unmatched(workspace: Workspace, pair: Match) -> bool:
    """Whether rows are paired by their order alone, and are no more alike than rows paired at random."""
    if not (_in_order(workspace) and compute.can_be_scored(pair, workspace.anchors)) or not workspace.anchors:
        return False
    found = scores_of(workspace, pair, "relative")
    # Two measures, as each is above its band of 95 % once in 40 pairs of unrelated spaces.
    return all(score.null and score <= score.null.high for score in (found["mrr"], found["cka"]))


def _in_order(workspace: Workspace) -> bool:
    ends = workspace.source, workspace.target
    return pairs_in_order(ends, list(map(compute.load_space, ends)))


def _lead(words: str) -> str:
    return f'<p class="relscope-lead">{linked_html(words)}</p>'


def _in_words(workspace: Workspace, pair: Match, found: Mapping[str, Mapping[str, Score]]) -> str:
    """A sentence on how many rows agree in the other space; "" if a stored score lacks that number."""
    relative, absolute = found["relative"], found["absolute"]
    if agreement := relative.get("class agreement"):
        near = "most neighbours in the other model are of the same class"
        shares = [agreement, absolute.get("class agreement")]
        chance = agreement.null.mean if agreement.null else None
    else:
        near, mrr = "are their own nearest neighbour in the other model", relative["mrr"]
        chance = 1 / mrr.n if mrr.null else None
        shares = [score and score.top1 for score in (relative["mrr"], absolute.get("mrr"))]
    if shares[0] is None:
        return ""
    is_words, about = pair.source.counts is not None, "about " * (relative["mrr"].interval is not None)
    rows = counted(len(pair), "word" if is_words else "row")
    opening = f"Both models {'know' if is_words else 'describe'} the same {rows}."
    if _in_order(workspace):
        opening = f"Paired by row order: {rows}."
    if isinstance(pair.ids, GuessedIds):
        n = counted(relative["mrr"].n, "confirmed pair")
        opening = f"Link paired {rows}; {n} are scored, none of them an anchor."
    by_anchors, shared = (None if share is None else f"<b>{about}{percent(share)}</b>" for share in shares)
    if not agreement:  # the panes write into it while an anchor is dragged
        by_anchors = by_anchors.replace("<b>", '<b class="relscope-live">')
    by_chance = "" if chance is None else f" (by chance {percent(chance)})"
    anchors = f"similarities to {counted(len(workspace.anchors), 'anchor')}"
    of, are = ("for ", "") if agreement else ("", " are")
    same_row = themselves(relative, about) if agreement else ""
    if shared is None:
        widths = f"{pair.source.dimension:,} and {pair.target.dimension:,}"
        opening += f" The models have {widths} dimensions, so they share no axes."
        return f"{opening} By {anchors}, {of}{by_anchors} of them {near}{by_chance}.{same_row}"
    return (
        f"{opening} In shared axes, {of}{shared} of them {near}; by {anchors}, {of}{by_anchors}{are}"
        f"{by_chance}.{same_row}"
    )


def _why_cka(found: Mapping[str, Mapping[str, Score]]) -> str:
    """An explanation of two scores of the same spaces that seem to disagree."""
    cka, mrr = (found["absolute"].get(metric) for metric in ("cka", "mrr"))
    if not (
        cka and mrr is not None and cka.null and mrr.null and cka > cka.null.high and mrr <= mrr.null.high
    ):
        return ""
    return (
        f" Linear CKA is {short(cka, 2)} where the absolute mean reciprocal rank is {short(mrr, 2)}:"
        " CKA ignores rotations; the rank depends on the coordinates."
    )


def _measured(workspace: Workspace, pair: Match, found: Mapping[str, Mapping[str, Score]]) -> str:
    rows = counted(len(pair), "row")
    opening = (
        f"Two encoders, {f'{rows} paired by their order' if _in_order(workspace) else f'the same {rows}'}"
    )
    if "mrr" not in found["absolute"]:
        opening += "; the vectors have different lengths, so only similarities to anchors can be compared"
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
