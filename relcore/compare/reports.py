"""The report of a comparison of two spaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relcore.base.numbers import counted, percent, short
from relcore.base.report import Report
from relcore.scores.comparison import Scores, scores_report
from relcore.scores.score import Score
from relcore.spaces.ids import RowNumbers
from relcore.spaces.matching import Match, distinct_names


def comparison_report(
    scores: Scores, pair: Match, anchors: Sequence[str] = (), figures: Mapping[str, Any] | None = None
) -> Report:
    """A report of two spaces: their sizes, how many rows agree, and every score with its chance level."""
    spaces = pair.source, pair.target
    names = distinct_names(spaces)
    sizes = (f"{name} ({len(one):,} × {one.dimension:,})" for name, one in zip(names, spaces, strict=True))
    sentence = f"{' and '.join(sizes)}, {counted(len(anchors), 'anchor')}"
    if pair.n_source_only or pair.n_target_only:
        alone = f"{pair.n_source_only:,} and {pair.n_target_only:,} without a partner"
        sentence += f"; {counted(len(pair), 'row')} in both, left out: {alone}"
    in_words = agreement(scores, pair, anchors)
    facts = {"source": names[0], "target": names[1], "n": len(pair)}
    facts |= {"d": [space.dimension for space in spaces], "anchors": anchors}
    return scores_report(
        scores,
        f"{sentence}.{' ' * bool(in_words)}{in_words}",
        facts,
        pair=pair,
        anchors=anchors,
        also=[*_unmatched(scores, pair), *filter(None, [disagreement(scores)])],
        figures=figures,
    )


def agreement(
    scores: Scores,
    pair: Match,
    anchors: Sequence[str] = (),
    shown: Callable[[str, str], str] = lambda form, share: share,
) -> str:
    """One sentence on how many rows agree in shared axes and by anchors; "" if no score gives that number.

    The text of a share is ``shown(representation, share)``, of rows that are nearest to their own partner.
    """
    classes = any("class agreement" in by_metric for by_metric in scores.values())
    shares, chance, sampled = {}, None, False
    for form in ("absolute", "relative"):
        score = scores.get(form, {}).get("class agreement" if classes else "mrr")
        share = score if classes or score is None else score.top1
        if share is None:
            continue
        shares[form], sampled = float(share), sampled or score.interval is not None
        if score.null:
            chance = score.null.mean if classes else 1 / score.n
    if not shares:
        return ""
    about = "about " * sampled
    of = {form: f"{about}{percent(share)}" for form, share in shares.items()}
    of = of if classes else {form: shown(form, share) for form, share in of.items()}
    by = {"absolute": "shared axes", "relative": f"similarities to {counted(len(anchors), 'anchor')}"}
    first, *others = shares
    widths = sorted({space.dimension for space in (pair.source, pair.target)})
    opening = f"The spaces have {' and '.join(f'{d:,}' for d in widths)} dimensions, so they share no axes. "
    end = "." if chance is None else f" (by chance {percent(chance)})."
    start = f"{opening * (len(widths) > 1)}{'In' if first == 'absolute' else 'By'} {by[first]}, "
    if classes:
        start += f"most neighbours in the other space are of the same class for {of[first]} of the rows"
        told = start + "".join(f"; by {by[form]}, for {of[form]}" for form in others) + end
        return told + themselves(scores[list(shares)[-1]], about)
    start += f"{of[first]} of the rows are their own nearest neighbour in the other space"
    return start + "".join(f"; by {by[form]}, {of[form]} are" for form in others) + end


def disagreement(scores: Scores) -> str:
    """An explanation of two absolute scores that seem to disagree; "" where they do not."""
    cka, mrr = (scores.get("absolute", {}).get(metric) for metric in ("cka", "mrr"))
    if cka is None or mrr is None or not (cka.null and mrr.null):
        return ""
    if cka <= cka.null.high or mrr > mrr.null.high:
        return ""
    return (
        f"Linear CKA is {short(cka, 2)} where the absolute mean reciprocal rank is {short(mrr, 2)}: CKA"
        " ignores rotations; the rank depends on the coordinates."
    )


def themselves(scores: Mapping[str, Score], about: str = "") -> str:
    """A sentence, after one on classes, on the rows whose nearest neighbour is their own partner, which is
    what a universe counts; "" without that score."""
    share = scores["mrr"].top1 if "mrr" in scores else None
    return "" if share is None else f" The nearest is the same row for {about}{percent(share)}."


def _unmatched(scores: Scores, pair: Match) -> list[str]:
    """A note if rows that were paired by their order do not match."""
    ranks = [by_metric["mrr"] for by_metric in scores.values() if "mrr" in by_metric]
    if not isinstance(pair.ids, RowNumbers) or not ranks:
        return []
    if any(score.null is None or score > score.null.high for score in ranks):
        return []
    return ["Rows are paired by their order, and they do not match: find partners with relscope link."]
