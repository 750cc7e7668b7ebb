"""The report of a comparison of two spaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relcore.base.numbers import counted, percent, short
from relcore.base.report import Report
from relcore.scores.comparison import Scores, scores_report
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
    facts = {"source": names[0], "target": names[1], "n": len(pair)}
    facts |= {"d": [space.dimension for space in spaces], "anchors": anchors}
    return scores_report(
        scores,
        " ".join([f"{sentence}.", *agreement(scores, pair, anchors)]),
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
) -> list[str]:
    """Sentences on how many rows agree by anchors, in shared axes and by chance; [] if no score gives that.

    ``shown(representation, share)`` formats a share, that of rows whose nearest row is their own partner.
    """
    classes = any("class agreement" in by_metric for by_metric in scores.values())
    shares, chance, sampled = {}, None, False
    for form in ("relative", "absolute"):
        score = scores.get(form, {}).get("class agreement" if classes else "mrr")
        share = score if classes or score is None else score.top1
        if share is None:
            continue
        shares[form], sampled = float(share), sampled or score.interval is not None
        if score.null:
            chance = score.null.mean if classes else 1 / score.n
    if not shares:
        return []
    about, row = "about " * sampled, "row" if pair.source.counts is None else "word"
    of = {form: f"{about}{percent(share)}" for form, share in shares.items()}
    of = of if classes else {form: shown(form, share) for form, share in of.items()}
    by = {"relative": f"by similarities to {counted(len(anchors), 'anchor')}", "absolute": "in shared axes"}
    first, *others = shares
    what = f"the nearest {row} in the other space is the same {row}"
    what = "most neighbours in the other space have the same class" if classes else what
    sentences = [f"For {of[first]} of the {row}s, {what}, {by[first]}."]
    sentences += [f"{by[form].capitalize()}: {of[form]}." for form in others]
    if chance is not None:
        sentences.append(f"By chance: {percent(chance)}.")
    widths = sorted({space.dimension for space in (pair.source, pair.target)})
    if len(widths) > 1:
        sentences.append(
            f"The spaces have {' and '.join(f'{d:,}' for d in widths)} dimensions: no shared axes."
        )
    same = scores[first]["mrr"].top1 if classes and "mrr" in scores[first] else None
    if same is not None:  # what a universe counts
        sentences.append(f"The nearest {row} is the same {row}: {about}{percent(same)}.")
    return sentences


def disagreement(scores: Scores) -> str:
    """An explanation of two absolute scores that seem to disagree; "" if they agree."""
    cka, mrr = (scores.get("absolute", {}).get(metric) for metric in ("cka", "mrr"))
    if cka is None or mrr is None or not (cka.null and mrr.null):
        return ""
    if cka <= cka.null.high or mrr > mrr.null.high:
        return ""
    return (
        f"Linear CKA is {short(cka, 2)} where the absolute mean reciprocal rank is {short(mrr, 2)}: CKA"
        " ignores rotations; the rank depends on the coordinates."
    )


def _unmatched(scores: Scores, pair: Match) -> list[str]:
    """A note if rows that were paired by their order do not match."""
    ranks = [by_metric["mrr"] for by_metric in scores.values() if "mrr" in by_metric]
    if not isinstance(pair.ids, RowNumbers) or not ranks:
        return []
    if any(score.null is None or score > score.null.high for score in ranks):
        return []
    return ["Rows are paired by their order, and they do not match: find partners with relscope link."]
