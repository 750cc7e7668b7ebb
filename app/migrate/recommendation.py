"""What the page recommends for a corpus of the user's size at the user's prices, as texts and lengths of
bars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from relcore.base.report import Cells
from relcore.migrate.price import Rate
from relcore.migrate.result import TITLES, MigrationResult, change_text
from relcore.migrate.verdict import Verdict

# Cells of `MigrationResult.overview` in the order of the page: what is gained stands beside what it costs.
_COLUMNS = (0, 1, 2, 3, 5, 4, 6)
_COST = _COLUMNS.index(5)


@dataclass(frozen=True)
class Recommendation:
    """A recommendation, and the table of the options.

    Attributes
    ----------
    option : str
        The recommended option; "" if none is.
    answer, reason : str
        The verdict for the rows that are loaded here.
    for_corpus : str
        The verdict for another size of the corpus, in a few sentences; "" for the size of the loaded rows.
    cost : str
        A sentence on the rows that the option embeds.
    cells, details : lists of lists of str
        The cells of the table, and those of the table of details. The first row is the head.
    explained : {title of an option: sentence}
        What each option does.
    intervals : list of (str, {"low" | "value" | "high" | "keep": str})
        For each option that is compared with "keep", the text of its change in the table, and the places of
        the change and of its interval on a bar, as CSS lengths. All bars have the same scale.
    costs : list of (str, str)
        For each option, its cost of a year in the table, and the length of its bar, as a CSS length.
    note : str
        How the table is read.
    """

    option: str
    answer: str
    reason: str
    for_corpus: str
    cost: str
    cells: Cells
    details: Cells
    explained: Mapping[str, str]
    intervals: list[tuple[str, dict[str, str]]]
    costs: list[tuple[str, str]]
    note: str


def recommendation_of(result: MigrationResult, n_corpus: int, rate: Rate) -> Recommendation:
    """The recommendation for a corpus of `n_corpus` rows. Scores stay those of the loaded rows."""
    scaled, note = result.scaled(n_corpus, rate)
    here = scaled
    if n_corpus != result.n_corpus:
        here = result.decided(rate)
    answer, reason = _answer_and_reason(here.verdict)
    cells = [[row[place] for place in _COLUMNS] for row in scaled.overview(rate)]
    return Recommendation(
        option=scaled.verdict.option,
        answer=answer,
        reason=reason,
        for_corpus=result.sentence_at(n_corpus, rate),
        cost=scaled.cost_sentence(),
        cells=cells,
        details=scaled.details(),
        explained={TITLES[name]: told for name, told in scaled.explained.items()},
        intervals=_intervals(scaled),
        costs=_costs(scaled, rate, [row[_COST] for row in cells[1:]]),
        note=note,
    )


def _answer_and_reason(verdict: Verdict) -> tuple[str, str]:
    """Split the verdict into the answer and the reason. In a verdict from blind judgements, the first
    sentence is the answer, and all other sentences are the reason."""
    if verdict.headline:
        answer, _, reason = verdict.headline.partition(". ")
        return answer, reason
    answer, _, reason = verdict.sentence.partition(": ")
    return answer, reason[:1].upper() + reason[1:]


def _intervals(result: MigrationResult) -> list[tuple[str, dict[str, str]]]:
    changes = [one.to_keep for one in map(result.option, result.shown) if one and one.to_keep]
    if not changes:
        return []
    low = min(0.0, *(one.low for one in changes))
    width = max(0.0, *(one.high for one in changes)) - low
    if not width:
        return []

    def place(value: float) -> str:
        return f"{3 + 94 * (value - low) / width:.1f}%"

    bars = []
    for one in changes:
        values = {"low": one.low, "value": one.value, "high": one.high, "keep": 0.0}
        bars.append((change_text(one), {name: place(value) for name, value in values.items()}))
    return bars


def _costs(result: MigrationResult, rate: Rate, told: list[str]) -> list[tuple[str, str]]:
    sizes = [rate.size_of_year(result.cost_of(option), result.n_corpus) for option in result.shown]
    largest = max(sizes, default=0.0) or 1.0
    shares = [f"{100 * size / largest:.1f}%" for size in sizes]
    return list(zip(told, shares, strict=True))
