"""The report of a comparison of two spaces, and the task that scores every held-out row as a query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relcore.base.numbers import counted, percent, short
from relcore.base.report import Report
from relcore.base.settings import setting
from relcore.catalog.task import Task
from relcore.represent.representations import ProjectionSpec
from relcore.runs.store import Store
from relcore.runs.work import Progress, silent
from relcore.scores.comparison import class_labels, metrics_of_a_pair, score_representations
from relcore.scores.neighbours import CONVENTION_HELP, CONVENTIONS
from relcore.scores.score import Score, share_interval
from relcore.scores.score_report import Scores, scores_report
from relcore.spaces.ids import GuessedIds, RowNumbers
from relcore.spaces.matching import Match, distinct_names, match
from relcore.spaces.space import LatentSpace


@dataclass(frozen=True)
class FoundScores:
    scores: dict[str, Score]


@dataclass(frozen=True)
class ExactScores(Task[FoundScores], kind="scores", version=3):
    """The task that scores two spaces with every held-out row as a query. Its `metrics` are those that are
    registered when the task is made.

    The representations of the spaces are not held in memory, unless a metric reads rows.
    """

    representation: str
    anchors: tuple[str, ...]
    projection: ProjectionSpec
    k: int = setting(low=1, usual=10, label="Neighbours k", help="Number of neighbours.")
    convention: str = setting(choices=CONVENTIONS, usual="paper", help=CONVENTION_HELP)
    metrics: tuple[str, ...]

    @classmethod
    def on(
        cls,
        representation: str,
        anchors: Sequence[str],
        projection: ProjectionSpec,
        k: int,
        convention: str,
    ) -> ExactScores:
        """The task with all metrics. Settings that this representation ignores are left out."""
        if representation == "absolute":
            needed = ()
        else:
            needed = tuple(anchors)
        if representation in ("relative", "whitened"):
            used = projection
        else:
            used = ProjectionSpec()
        return cls(representation, needed, used, k, convention, tuple(metrics_of_a_pair()))

    @property
    def title(self) -> str:
        return f"Scores, {self.representation}"

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        n = len(spaces[0])
        if self.representation in ("absolute", "procrustes"):
            width = spaces[0].dimension
        else:
            width = len(self.anchors)
        return n * n * width * 2 / 5e10

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> FoundScores:
        pair = match(*spaces)
        scores = score_representations(
            pair,
            (self.representation,),
            self.anchors,
            self.projection,
            k=self.k,
            convention=self.convention,
            metrics=self.metrics,
            labels=class_labels(pair),
            done=report,
        )
        return FoundScores(scores[self.representation])


def comparison_report(
    scores: Scores, pair: Match, anchors: Sequence[str] = (), figures: Mapping[str, Any] | None = None
) -> Report:
    """A report of two spaces: their sizes, how many rows agree, and each score with its chance level."""
    spaces = pair.source, pair.target
    names = distinct_names(spaces)
    sizes = (f"{name} ({len(one):,} × {one.dimension:,})" for name, one in zip(names, spaces, strict=True))
    sentence = f"{' and '.join(sizes)}, {counted(len(anchors), 'anchor')}"
    if pair.n_source_only or pair.n_target_only:
        alone = f"{pair.n_source_only:,} and {pair.n_target_only:,} rows without a partner"
        sentence += f"; {counted(len(pair), 'row')} in both, left out: {alone}"
    facts = {"source": names[0], "target": names[1], "n": len(pair)}
    facts |= {"d": [space.dimension for space in spaces], "anchors": anchors}
    return scores_report(
        scores,
        " ".join([f"{sentence}.", *agreement(scores, pair, anchors)]),
        facts,
        pair=pair,
        anchors=anchors,
        also=[*_mismatch_notes(scores, pair), *filter(None, [disagreement(scores)])],
        figures=figures,
    )


def agreement(scores: Scores, pair: Match, anchors: Sequence[str] = ()) -> list[str]:
    """Sentences on how far two spaces agree: those of `matched_rows`, one on the classes of neighbours, and
    one if the spaces differ in dimension."""
    sentences = matched_rows(scores, pair, anchors)
    votes = {
        name: scores[name]["class agreement"] for name in _BY if "class agreement" in scores.get(name, {})
    }
    for representation, score in list(votes.items())[:1]:
        chance = ""
        if score.null:
            chance = f" (by chance, {percent(score.null.mean)})"
        if sentences:
            where = ""
        else:
            where = f", {_by(representation, anchors)}"
        sentences.append(
            f"The {score.k} nearest rows in the other space vote for the row's own class in"
            f" {_about(score, score)} of cases{chance}{where}."
        )
    widths = sorted({space.dimension for space in (pair.source, pair.target)})
    if sentences and len(widths) > 1:
        sentences.append(
            f"The spaces have {' and '.join(f'{d:,}' for d in widths)} dimensions: no shared axes."
        )
    return sentences


_BY = "relative", "absolute"


def _by(representation: str, anchors: Sequence[str]) -> str:
    if representation == "relative":
        return f"by similarities to {counted(len(anchors), 'anchor')}"
    return "in shared axes"


def matched_rows(
    scores: Scores,
    pair: Match,
    anchors: Sequence[str] = (),
    share_text: Callable[[str, str], str] = lambda representation, share: share,
) -> list[str]:
    """Sentences on the share of rows that match: by similarities to anchors, in shared axes, and by chance.
    [] if no score gives this share.

    ``share_text(representation, share)`` returns the text for a share of rows whose nearest row is their own
    partner.
    """
    ranks = {name: scores[name]["mrr"] for name in _BY if "mrr" in scores.get(name, {})}
    matched = {name: score for name, score in ranks.items() if score.top1 is not None}
    if not matched:
        return []
    shares = {name: share_text(name, _about(score, score.top1)) for name, score in matched.items()}
    first, *others = matched
    row = "row"
    if pair.source.counts is not None:
        row = "word"
    rows = f"{row}s"
    n = matched[first].n
    if isinstance(pair.ids, GuessedIds):  # confirmed pairs are few, so their share is shown with its interval
        low, high = share_interval(matched[first].top1, n)
        rows = f"{n:,} confirmed pairs (95 %: {percent(low)} to {percent(high)})"
    sentences = [
        f"For {shares[first]} of the {rows}, the nearest {row} in the other space is the same {row},"
        f" {_by(first, anchors)}."
    ]
    sentences += [f"{_by(name, anchors).capitalize()}: {shares[name]}." for name in others]
    if matched[first].null:
        sentences.append(f"By chance: {percent(1 / n)}.")
    return sentences


def _about(score: Score, share: float) -> str:
    text = percent(float(share))
    if score.interval is not None:
        return f"about {text}"
    return text


def disagreement(scores: Scores) -> str:
    """An explanation of surprising absolute scores: a score below chance, and two scores that seem to
    disagree. "" if there is none."""
    absolute = scores.get("absolute", {})
    cka = absolute.get("cka")
    mrr = absolute.get("mrr")
    votes = absolute.get("class agreement")
    if votes is not None and votes.null and votes < votes.null.low:
        return (
            "Class agreement in shared axes is below chance: at the place of a row, the other space has"
            " mostly rows of other classes."
        )
    if (
        cka is None
        or mrr is None
        or not (cka.null and mrr.null and cka > cka.null.high and mrr <= mrr.null.high)
    ):
        return ""
    return (
        f"Linear CKA is {short(cka, 2)}, but the absolute mean reciprocal rank is {short(mrr, 2)}: CKA"
        " ignores rotations; the rank depends on the coordinates."
    )


def _mismatch_notes(scores: Scores, pair: Match) -> list[str]:
    ranks = [by_metric["mrr"] for by_metric in scores.values() if "mrr" in by_metric]
    matched = any(score.null is None or score > score.null.high for score in ranks)
    if matched or not ranks or not isinstance(pair.ids, RowNumbers):
        return []
    return ["Rows are paired by their order, but paired rows do not match: find pairs with relscope link."]
