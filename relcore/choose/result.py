"""The result of a comparison of models: which one is best, how sure that is, and what each costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.numbers import and_list, counted, general, percent, short, signed
from relcore.base.report import RECOMMENDED, Report, Reported, Table
from relcore.base.version import __version__
from relcore.choose.looks import LOOKS, InterimLook, more_in_words
from relcore.runs.jobs import in_words

_ROUNDED = 0.005  # 419 of 1,398 rows are 30 %
LEAST_SHARE = 0.3  # of a smaller sample, differences may have the wrong sign
JUDGED = {
    "judgements": "judged queries",
    "labels": "queries, for which rows of their label are relevant",
    "blind": "queries, judged blind",
}


@dataclass(frozen=True)
class ModelCost:
    """What a model costs for the whole corpus: seconds to embed it, at the pace of the sample; and dollars,
    if a provider's price is known. None is unknown."""

    seconds: float | None = None
    dollars: float | None = None


@dataclass(frozen=True, eq=False)
class ModelChoice(Reported):
    """Which of several models finds best, by judged queries.

    Attributes
    ----------
    names : texts
    n_rows, n_corpus : int
        Number of rows that were searched, and of the whole corpus.
    depth : int
        Number of rows that each model finds for a query.
    epsilon : float
        By how much the chosen model may be behind another one.
    relevance : "judgements", "labels" or "blind"
        Who says which rows are relevant; "blind" is a person who sees the rows that were found.
    n_queries, n_judged : int
        Number of queries, and of those that count: they are judged, and a row is relevant to them.
    n_useless : int
        Number of judged queries without a relevant row.
    widths : tuple of int
        The dimensions of each model.
    looks : tuple of InterimLook
        The last look has the answer. There is none before 10 queries.
    queries : texts
        The ids of the queries that count, in the order in which they were drawn.
    scores : array (n_judged, n_models)
        The score of each of these queries, down to rank `depth`: nDCG, or for blind judgements
        `scores.relevance.discounted_precision`.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import LatentSpace, choose
    >>> labels = list("abcd") * 50
    >>> good = LatentSpace(np.eye(4)[[0, 1, 2, 3] * 50], labels=labels, name="good")
    >>> poor = LatentSpace(np.random.default_rng(0).normal(size=(200, 4)), labels=labels, name="poor")
    >>> choose([good, poor]).best
    'good'
    """

    names: tuple[str, ...]
    n_rows: int
    n_corpus: int
    depth: int
    epsilon: float
    relevance: str
    n_queries: int
    n_judged: int
    n_useless: int
    widths: tuple[int, ...]
    looks: tuple[InterimLook, ...]
    queries: tuple[str, ...]
    scores: np.ndarray

    @property
    def metric(self) -> str:
        if self.relevance == "blind":
            return f"precision@{self.depth} by rank"
        return f"nDCG@{self.depth}"

    @property
    def answer(self) -> InterimLook | None:
        """The last look; None before 10 queries."""
        if not self.looks:
            return None
        return self.looks[-1]

    @property
    def is_decided(self) -> bool:
        return self.answer is not None and self.answer.decided

    @property
    def best(self) -> str:
        """The name of the chosen model; "" while nothing is decided."""
        if self.answer is None or not self.answer.decided:
            return ""
        return self.names[self.answer.best]

    def report(
        self, costs: Sequence[ModelCost] = (), notes: Sequence[str] = (), **figures: Callable[[], Any]
    ) -> Report:
        costs = costs or [ModelCost()] * len(self.names)
        facts = {
            "relscope": __version__,
            "best": self.best,
            "decided": self.is_decided,
            "more": self.answer and self.answer.more,
            **{name: getattr(self, name) for name in ("n_rows", "n_corpus", "depth", "epsilon")},
            **{name: getattr(self, name) for name in ("relevance", "n_queries", "n_judged", "n_useless")},
            "looks": [asdict(look) for look in self.looks],
        }
        all_notes = [*cautions(self), *notes]
        return Report(sentence(self), [models_table(self, costs)], facts, all_notes, figures)

    def __repr__(self) -> str:
        found = self.answer
        if found is None:
            return f"<ModelChoice: no answer yet, {self.n_judged} of {LOOKS[0]} queries>"
        if not found.decided:
            return f"<ModelChoice: undecided, after {found.n} queries>"
        return f"<ModelChoice: {self.best} is best, after {found.n} queries>"


def sentence(found: ModelChoice) -> str:
    """The answer in words."""
    look = found.answer
    if look is None:
        judged = counted(found.n_judged, "judged query", "judged queries")
        return f"No answer yet: {judged} with a relevant row; the first look is after {LOOKS[0]}."
    after = f"after {counted(look.n, 'query', 'queries')}"
    best = found.names[look.best]
    leads = leads_in_words(found, look)
    if not look.decided:
        return f"Undecided {_so_far(found, look)}; {more_in_words(look.more)}. {best} leads: {leads}."
    if look.is_ahead:
        return f"{best} is best, {after}: {leads}."
    close = {place: lead for place, lead in enumerate(look.leads) if lead is not None and lead.low <= 0}
    behind = and_list([found.names[place] for place in close])
    furthest = short(max(-lead.low for lead in close.values()))
    return (
        f"{best} is best, or so little behind {behind} that it does not count, {after}: {leads}. If it is"
        f" behind, then by at most {furthest}; less than {short(found.epsilon)} does not count."
    )


def _so_far(found: ModelChoice, look: InterimLook) -> str:
    """After how many queries nothing is decided, and when a person's judgements are looked at again."""
    after = f"after {counted(look.n, 'query', 'queries')}"
    if found.n_judged > look.n:
        after = f"at the last look, after {look.n:,} of {found.n_judged:,} queries"
    later = [n for n in LOOKS if n > look.n]
    some_left = found.n_judged + found.n_useless < found.n_queries
    if found.relevance == "blind" and later and some_left:
        after += f"; the next look is after {later[0]:,}"
    return after


def leads_in_words(found: ModelChoice, look: InterimLook) -> str:
    """How far the best model is ahead of each other one by mean score, with the interval."""
    return f"{found.metric} " + ", ".join(
        f"{signed(lead.value)} against {found.names[place]} ({signed(lead.low)} … {signed(lead.high)})"
        for place, lead in enumerate(look.leads)
        if lead is not None
    )


def cautions(found: ModelChoice) -> list[str]:
    """Facts that readers must know before they rely on the answer."""
    notes = []
    share = found.n_rows / found.n_corpus
    if share < LEAST_SHARE - _ROUNDED:
        notes.append(
            f"Only {percent(share)} of the rows are embedded. Below {percent(LEAST_SHARE)}, the difference of"
            " two models may have the wrong sign; embed more rows."
        )
    if found.n_useless:
        useless = counted(found.n_useless, "judged query", "judged queries")
        notes.append(f"{useless} without a relevant row among those that were searched: left out.")
    return notes


def models_table(found: ModelChoice, costs: Sequence[ModelCost]) -> Table:
    """A row for each model, the best one first: its score, how far the best one is ahead,
    and what it costs."""
    look = found.answer
    rows = []
    lines = []
    places = list(range(len(found.names)))
    if look is not None:
        places.sort(key=lambda place: (place != look.best, -look.scores[place]))
    for place in places:
        name = found.names[place]
        width = found.widths[place]
        cost = costs[place]
        score = float("nan")
        behind = None
        sign = ""
        if look is not None:
            score = look.scores[place]
            behind = look.leads[place]
            if look.decided and place == look.best:
                sign = RECOMMENDED
        size = 4 * width * found.n_corpus
        row = {"model": name, "score": score, "dimensions": width, "bytes": size, **asdict(cost)}
        if behind is not None:
            row |= {"behind": behind.value, "low": behind.low, "high": behind.high}
        rows.append(row)
        cells = [f"{sign}{name}", short(score), "", f"{width:,}", size_in_words(size)]
        if behind is not None:
            cells[2] = f"{short(behind.value)} ({short(behind.low)} … {short(behind.high)})"
        lines.append([*cells, _seconds(cost.seconds), _dollars(cost.dollars)])
    head = ["model", found.metric, "best is ahead by", "dimensions", "vectors", "to embed", "price"]
    kept = [place for place in range(len(head)) if place < 5 or any(cells[place] != "–" for cells in lines)]
    table = [[row[place] for place in kept] for row in (head, *lines)]
    return Table("models", pd.DataFrame(rows), table, caption=circumstances(found))


def circumstances(found: ModelChoice) -> str:
    """The numbers behind the scores."""
    n = found.n_judged
    if found.answer is not None:
        n = found.answer.n
    sample = ""
    if found.n_rows < found.n_corpus:
        sample = f", a sample of {percent(found.n_rows / found.n_corpus)} of {found.n_corpus:,}"
    measure = ""
    if found.relevance == "blind":
        measure = (
            f" Precision@{found.depth} counts more for the first ranks. It stands for nDCG@{found.depth},"
            " which needs all relevant rows, and only rows that were found are judged."
        )
    return (
        f"{n:,} of {found.n_queries:,} {JUDGED[found.relevance]}; {found.n_rows:,} rows are"
        f" searched{sample}. All intervals of all pairs of models are right together with a probability of"
        f" 95 %, however often the scores are looked at. Sizes and costs are for all {found.n_corpus:,}"
        f" rows.{measure}"
    )


def size_in_words(size: int) -> str:
    """A number of bytes in words: ``"3.1 MB"``."""
    for unit, least in (("GB", 1e9), ("MB", 1e6)):
        if size >= least:
            return f"{general(size / least, 3)} {unit}"
    return f"{general(size / 1000, 3)} KB"


def _seconds(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return in_words(seconds)


def _dollars(dollars: float | None) -> str:
    if dollars is None:
        return "–"
    if dollars < 0.1:
        return f"${general(dollars, 2)}"
    return f"${short(dollars, 2)}"
