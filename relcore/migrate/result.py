"""The result of a migration, and its report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from relcore.base.arguments import need_whole
from relcore.base.errors import need_one_of
from relcore.base.kinds import takes_kinds
from relcore.base.names import ADAPTERS
from relcore.base.numbers import band, counted, short, signed
from relcore.base.report import RECOMMENDED, Report, Reported, Table
from relcore.base.rows import unit_rows
from relcore.files.formats import readable
from relcore.migrate.adapter_files import CardScore, card_of, export
from relcore.migrate.adapters import Adapter
from relcore.migrate.cross_fitting import (
    MOST_CHOICE_ROWS,
    Candidate,
    CurvePoint,
    QueryScores,
    Resampling,
)
from relcore.migrate.price import UNKNOWN, Cost, Price, Rate, in_order_of_cost
from relcore.migrate.trial import N_CANDIDATES, OPTIONS
from relcore.migrate.verdict import (
    MOVES,
    NEIGHBOURS,
    WORTH_A_CHANGE,
    OptionScore,
    Verdict,
    decide,
    verdict_of,
)
from relcore.scores.score import Interval
from relcore.spaces.matching import paired_matrices
from relcore.spaces.space import LatentSpace, MatrixLike

TITLES = {
    "keep": "keep",
    "bridge": "bridge",
    "twice": "query both models",
    "cascade": "cascade",
    "re-embed": "re-embed",
}
_SAID = ("no", "yes")
_FINDERS = {
    "both": "the old model and the bridge, by turns, find",
    "old": "the old model finds",
    "bridged": "the bridge finds",
}


def change_text(gain: Interval | None) -> str:
    """A change with its interval as text: ``+.044 (.032 … .057)``; ``–`` if it was not measured."""
    if gain:
        return f"{signed(gain.value)} ({gain.band})"
    return "–"


@dataclass(frozen=True, eq=False, repr=False)
class MigrationResult(Reported):
    """The result of a migration: the recommendation, and all measurements.

    Attributes
    ----------
    options : tuple of OptionScore
        The scores of keep, bridge and twice; if all searched rows have new vectors, also of cascade and (with
        judgements or labels) of re-embed.
    weight : float
        Weight of the bridged search; the old search has weight 1. Without judgements, it is always 1.
    candidates : tuple of Candidate
        The adapters that were tried, best first.
    relevance : "judgements", "labels" or "neighbours"
        Which rows are relevant: judged rows, rows of the same label, or the nearest rows of the new model.
    k, n_pairs, n_rows : int
        Number of results per query that are scored; number of pairs that the adapter was fitted on; number of
        rows that were searched.
    queries : tuple of q ids
    scores : option → array (q,)
        nDCG@k of each query. Without judgements, the share of the k neighbours by the new model that were
        found.
    found : option → array (q, k)
        The rows that each option finds for each query, as row numbers in the old space, best first; −1 for
        none. Without judgements, "re-embed" is included, although it has no score.
    relevant_query, relevant_row : arrays (j,)
        The j pairs of a query and a relevant row: the index of the query, and the row number in the old
        space.
    pairs : array (m,)
        Row numbers, in the old space, of the pairs that the adapter was fitted on.
    candidate_lists, n_candidates : str, int
        Which search results a cascade ranks, and how many per query; see `Candidates`.
    price : Price or None
        The number of rows that a cascade embeds for the queries. None if held-out pairs are the queries.
    n_corpus : int
        Number of rows of the old space.
    widths : tuple of int
        Widths of the old model, of the new model, and of the space that bridged queries search.
    embed_next : tuple of str
        If there are fewer than 300 pairs, ids of rows that should be embedded by the new model next.
    chosen : option → array (r,)
        Deviations of the mean score with the adapters and weights that each resample of the queries chooses,
        as in `CrossFitted`.
    """

    verdict: Verdict
    options: tuple[OptionScore, ...]
    adapter: str
    weight: float
    candidates: tuple[Candidate, ...]
    curve: tuple[CurvePoint, ...]
    cautions: tuple[str, ...]
    relevance: str
    k: int
    n_pairs: int
    n_rows: int
    queries: tuple[str, ...]
    scores: Mapping[str, np.ndarray] = field(default_factory=dict)
    found: Mapping[str, np.ndarray] = field(default_factory=dict)
    relevant_query: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    relevant_row: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    pairs: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    candidate_lists: str = "both"
    n_candidates: int = N_CANDIDATES
    price: Price | None = None
    n_corpus: int = 0
    widths: tuple[int, int, int] = (0, 0, 0)
    embed_next: tuple[str, ...] = ()
    chosen: Mapping[str, np.ndarray] = field(default_factory=dict)

    @takes_kinds
    def fitted(self, new: MatrixLike, old: MatrixLike) -> Adapter:
        new, old = paired_matrices(new, old, ("new", "old"))
        return ADAPTERS[self.adapter].load()().fit(unit_rows(new), unit_rows(old))

    @property
    def metric(self) -> str:
        if self.relevance == NEIGHBOURS:
            return f"new model's {self.k} neighbours"
        return f"nDCG@{self.k}"

    @takes_kinds
    def option(self, name: str) -> OptionScore | None:
        return next((score for score in self.options if score.option == name), None)

    @takes_kinds
    def table(self, rate: Rate = UNKNOWN) -> pd.DataFrame:
        """A table with one row per option: score, interval, chance level, differences from keep and re-embed,
        weight, and cost.
        """
        rows = []
        for one in self.options:
            none = Interval(np.nan, np.nan, np.nan)
            to_keep = one.to_keep or none
            to_reembed = one.to_reembed or none
            row = {
                "option": TITLES[one.option],
                "score": one.value,
                "low": one.low,
                "high": one.high,
                "chance": one.chance,
                "to keep": to_keep.value,
                "to keep, low": to_keep.low,
                "to keep, high": to_keep.high,
                "to re-embed": to_reembed.value,
                "to re-embed, low": to_reembed.low,
                "to re-embed, high": to_reembed.high,
                "weight": self.weight if one.option == "twice" else np.nan,
                "queries": len(self.queries),
                "rows": self.n_rows,
            }
            cost = self.cost_of(one.option)
            rows.append(row | asdict(cost) | {"rows_of_year": cost.rows_of_year(rate.queries, self.n_corpus)})
        return pd.DataFrame(rows)

    @takes_kinds
    def cost_of(self, option: str) -> Cost:
        """The cost of an option. It includes embedding the pairs that the adapter is fitted on. A row that is
        both a pair and a candidate is embedded once.
        """
        need_one_of("option", option, OPTIONS)
        old, new, mapped = self._index_bytes()
        pairs = min(self.n_pairs, self.n_corpus)
        rewrites = self.rewrites_corpus
        if option == "keep":
            return Cost(0, 0.0, 1, 1, old, False)
        if option == "bridge":
            return Cost(pairs, 0.0, 1, 1, mapped or old, rewrites)
        if option == "twice":
            searches = 2 if rewrites else 1
            return Cost(pairs, 0.0, 2, searches, old + mapped, rewrites)
        if option == "cascade":
            return self._cost_of_cascade()
        return Cost(self.n_corpus, 0.0, 1, 1, new, True)

    def _index_bytes(self) -> tuple[int, int, int]:
        """The bytes of the old index, of one with all rows embedded again, and of the old vectors mapped for
        bridged queries; 0 if these search the old index."""
        (old, new, mapped) = self.widths
        bytes_per_dimension = 4 * self.n_corpus
        if not self.rewrites_corpus:
            mapped = 0
        return old * bytes_per_dimension, new * bytes_per_dimension, mapped * bytes_per_dimension

    def _cost_of_cascade(self) -> Cost:
        """The cost of a cascade, whose candidates come from the old query, the bridged query, or both."""
        old, _, mapped = self._index_bytes()
        pairs = min(self.n_pairs, self.n_corpus)
        cached = 0
        if self.price:
            cached = self.price.need.rows
        models = 2
        searches = 1
        rewrites = self.rewrites_corpus
        if self.candidate_lists == "old":
            now = cached
            index = old
            rewrites = False
        else:
            now = self.price.embedded if self.price else pairs
            index = old + mapped
            searches = 2
        if self.candidate_lists == "bridged":
            index = mapped or old
            models = 1
            searches = 1
        if self.price:
            each = self.price.next_query
        else:
            each = float(min(self.n_candidates, max(0, self.n_corpus - now)))
        return Cost(now, each, models, searches, index + 4 * self.widths[1] * cached, rewrites)

    @property
    def shown(self) -> tuple[str, ...]:
        """The options that tables show: all with a score, and "re-embed", whose cost is always known."""
        return tuple(one for one in OPTIONS if self.option(one) or (one == "re-embed" and self.n_corpus))

    @takes_kinds
    def order(self, rate: Rate = UNKNOWN) -> tuple[str, ...]:
        """The options by their cost, the cheapest first; see `in_order_of_cost`."""
        costs = {option: self.cost_of(option) for option in OPTIONS}
        return in_order_of_cost(costs, rate, self.n_corpus)

    @takes_kinds
    def decided(self, rate: Rate = UNKNOWN) -> Self:
        """The same result with the recommendation that follows from the costs at this `rate`. A verdict from
        blind judgements is kept."""
        if not (self.verdict.headline or self.verdict == UNDECIDED):
            return self
        samples = {
            name: QueryScores(one.astype(np.float64), chosen=self.chosen.get(name, 0.0))
            for name, one in self.scores.items()
        }
        order = self.order(rate)
        small_saving = ""
        if order.index("cascade") > order.index("re-embed"):
            small_saving = (
                f"in a year of {rate.queries:,} queries, a cascade saves less than {rate.least} compared with"
                " re-embedding, which is simpler"
            )
        verdict = verdict_of(
            samples,
            Resampling(len(self.queries)),
            k=self.k,
            on=(
                f"{counted(len(self.queries), 'query', 'queries')}, {self.n_rows:,} rows,"
                f" {self.n_pairs:,} pairs, {ADAPTERS[self.adapter].title}"
            ),
            relevance=self.relevance,
            weight=self.weight,
            n_candidates=self.n_candidates,
            price=self.price,
            order=order,
            small_saving=small_saving,
        )
        return replace(self, verdict=verdict)

    @takes_kinds
    def overview(self, rate: Rate = UNKNOWN) -> list[list[str]]:
        """The cells of a table with the score, the gain and the cost of each option. The first row is the
        table's head. If the `rate` has a time or a price, the cost of a year includes it.
        """
        year = f"in a year of {rate.queries:,} queries"
        cells = [["option", self.metric, "95 %", "vs keep", "rows to embed", year, "models per query"]]
        for option in self.shown:
            score = self.option(option)
            mark = ""
            if option == self.verdict.option:
                mark = RECOMMENDED
            scored = ["–", "–", "–"]
            if score:
                interval = band(score.low, score.high)
                scored = [short(score.value), interval, change_text(score.to_keep)]
            costs = [self._rows_to_embed(option), self._year(option, rate)]
            models = f"{self.cost_of(option).models_per_query}"
            cells.append([mark + TITLES[option], *scored, *costs, models])
        return cells

    def details(self) -> list[list[str]]:
        """The cells of a second table: for each option its chance level, its change with other pairs, the
        number of searches per query, and the size of its index. The first row is the table's head.
        """
        head = ["option", "chance", "vs re-embed", "other pairs", "searches per query", "index"]
        cells = [[*head, "corpus rewritten"]]
        for option in self.shown:
            score = self.option(option)
            cost = self.cost_of(option)
            scored = ["–", "–", "–"]
            if score:
                moved = f"± {short(score.by_pairs)}" if score.by_pairs else "–"
                scored = [short(score.chance), change_text(score.to_reembed), moved]
            index = f"{cost.searches_per_query}", readable(cost.index_bytes), _SAID[cost.rewrites]
            cells.append([TITLES[option], *scored, *index])
        return cells

    def _rows_to_embed(self, option: str) -> str:
        cost = self.cost_of(option)
        if option == "re-embed":
            return f"all {cost.rows_now:,}"
        text = f"{cost.rows_now:,}"
        if round(cost.rows_per_query):
            up_to = "" if self.price else "up to "
            text += f", then {up_to}{cost.rows_per_query:,.0f} per query"
        return text

    def _year(self, option: str, rate: Rate) -> str:
        cost = self.cost_of(option)
        rows = cost.rows_of_year(rate.queries, self.n_corpus)
        up_to = "up to " if cost.rows_per_query else ""
        text = f"{up_to}{counted(rows, 'row')}"
        if rate.is_known:
            if not rows:
                text += ", only queries"
            text += f" · {rate.of(rows, rate.queries * cost.models_per_query)}"
        return text

    def cost_sentence(self) -> str:
        """A sentence that tells the number of rows that the recommended option embeds, and the smallest
        number of pairs with which it scores nearly as high. "" if it embeds no rows.
        """
        option = self.verdict.option
        if option in ("", "keep"):
            return ""
        least = [
            point
            for point in self.curve
            if (point.adapter, point.option) == (self.adapter, option)
            and point.value >= self.option(option).value - WORTH_A_CHANGE
        ]
        text = self._rows_to_embed(option)
        if option == "cascade":
            return f"Rows to embed: {text}, instead of all {self.n_corpus:,}."
        if least and least[0].n_pairs < self.n_pairs:
            text += f"; with only {least[0].n_pairs:,}, {self.metric} is {short(least[0].value)}"
        return f"Rows to embed: {text}."

    @property
    def explained(self) -> dict[str, str]:
        """For each shown option, its name and a sentence on what it does."""
        weight = ""
        if self.weight != 1:
            weight = f" (the bridge's count {short(self.weight, 2).removesuffix('.00')} ×)"
        told = {
            "keep": "search as now",
            "bridge": "an adapter maps new queries to the old vectors",
            "twice": f"the old model and the bridge search; their scores are added{weight}",
            "cascade": (
                f"{_FINDERS[self.candidate_lists]} {self.n_candidates:,} rows; the new model ranks them"
            ),
            "re-embed": "the new model embeds every row",
        }
        return {name: told[name] for name in self.shown}

    @takes_kinds
    def cost_note(self, rate: Rate = UNKNOWN) -> str:
        """The note below the table of costs."""
        return self._cost_note("▸ is recommended.", rate)

    def _cost_note(self, recommended: str, rate: Rate) -> str:
        text = ""
        if self.verdict.option:
            text = f"{recommended} "
        text += "Rows include the pairs that the adapter learns from; time and price also those of queries. "
        if self.price:
            text += "Cascade: rows for the whole log of queries, and rows that one more query adds."
        else:
            text += "With a log of queries, embedded by both models, a cascade's rows are counted."
        return (
            f"{text} An option that saves less than {rate.least} in a year comes after a simpler one, and an"
            " option is recommended only if it is clearly better than those before it."
        )

    @takes_kinds
    def scaled(self, n_corpus: int, rate: Rate = UNKNOWN) -> tuple[Self, str]:
        """Adapt the result to a corpus of another size: a copy with the costs and the recommended option for
        that size, and a note.

        The scores are not changed. The queries of a log would find other rows in a corpus of another size, so
        only an upper limit of the cost of a cascade is known: the number of candidates of each query.
        """
        need_whole("n_corpus", n_corpus, high=10**15)
        if n_corpus == self.n_corpus:
            same = self.decided(rate)
            return same, same.cost_note(rate)
        resized = replace(self, n_corpus=n_corpus, price=None).decided(rate)
        note = resized._cost_note(f"▸ is recommended for {n_corpus:,} rows.", rate)
        return resized, f"The scores are of the {self.n_corpus:,} rows here. {note}"

    @takes_kinds
    def sentence_at(self, n_corpus: int, rate: Rate = UNKNOWN) -> str:
        """The recommendation for a corpus of another size, in a few sentences; "" for the same size, and
        without a cascade.
        """
        cascade = self.option("cascade")
        if n_corpus == self.n_corpus or cascade is None or not self.verdict.option:
            return ""
        scaled, _ = self.scaled(n_corpus, rate)
        option = scaled.verdict.option
        text = f"For {n_corpus:,} rows: {MOVES[option][:1].lower()}{MOVES[option][1:]}"
        small_saving = scaled._why_no_cascade(rate)
        if option != "cascade":
            score = self.option(option)
            assert score is not None  # an option is recommended by its score
            better = option == "re-embed" and score.to_keep is not None and score.to_keep.low > 0
            if better:
                text += f", because it is clearly better{rate.beside_a_gain(n_corpus)}"
            elif small_saving:
                text += f", because {small_saving}"
            text += "."
            text += f" Its {self.metric} here is {short(score.value)}"
            if gain := score.to_keep:
                gained = f"{signed(gain.value)} against keeping the old model"
                text += f", {gained} (95 %: {band(gain.low, gain.high)})"
            if better and small_saving:
                text += f". {small_saving[:1].upper()}{small_saving[1:]}"
            return f"{text}."
        text += "."
        if gain := cascade.to_reembed:
            text += (
                f" Its {self.metric} here is {short(cascade.value)}, {signed(gain.value)} against"
                f" re-embedding (95 %: {band(gain.low, gain.high)})."
            )
        rows = scaled.cost_of("cascade").rows_of_year(rate.queries, n_corpus)
        text += f" A year of {rate.queries:,} queries embeds at most {rows:,} rows."
        if n_corpus > self.n_corpus:
            text += f" Among more rows, {self.n_candidates:,} candidates may miss more of the relevant ones."
        return text

    def _why_no_cascade(self, rate: Rate) -> str:
        """The reason, if re-embedding is recommended only because a cascade saves too little; else ""."""
        order = list(self.order(rate))
        if self.verdict.option != "re-embed" or order.index("cascade") < order.index("re-embed"):
            return ""
        order.remove("cascade")
        order.insert(order.index("re-embed"), "cascade")
        samples = {name: QueryScores(one.astype(np.float64)) for name, one in self.scores.items()}
        if decide(samples, Resampling(len(self.queries)), order)[0] != "cascade":
            return ""
        saved = rate.saving(self.cost_of("cascade"), self.cost_of("re-embed"), self.n_corpus)
        if saved <= 0:
            return "the cascade saves nothing in a year"
        if rate.has_price:
            amount = rate.in_currency(saved)
        else:
            amount = f"{saved:,.0f} rows"
        return f"the cascade saves {amount} a year, less than your limit of {rate.least}"

    @property
    def rewrites_corpus(self) -> bool:
        """Whether the adapter also maps old vectors, so that the whole corpus must be rewritten."""
        return next(one.rewrites_corpus for one in self.candidates if one.adapter == self.adapter)

    @property
    def rewriting_note(self) -> str:
        queries = "only queries are mapped; the corpus is not rewritten"
        how = queries
        if self.rewrites_corpus:
            how = "the whole corpus is rewritten"
        return f"{ADAPTERS[self.adapter].title}: {how}."

    @property
    def weight_note(self) -> str:
        if self.relevance == NEIGHBOURS:
            return "Both searches count equally, because no query is judged."
        return "The weight of the bridged search (the old one has 1) is tuned on the other queries."

    @takes_kinds
    def report(self, rate: Rate = UNKNOWN, **figures: Any) -> Report:
        return self.decided(rate)._report(rate, figures)

    def _table_of_candidates(self) -> Table:
        """The scores of all adapters in the choice."""
        rows = [["adapter", f"{self.metric} in the choice", "95 %", "corpus rewritten"]]
        for one in self.candidates:
            title = ADAPTERS[one.adapter].title
            rows.append([title, short(one.score), band(one.low, one.high), _SAID[one.rewrites_corpus]])
        return Table(shown=rows, title="Choice of the adapter", caption=self.choice_note)

    def _table_of_curve(self) -> Table:
        """The scores by the number of pairs."""
        rows = [["pairs", "adapter", "option", self.metric, "95 %"]]
        for one in self.curve:
            named = [f"{one.n_pairs:,}", ADAPTERS[one.adapter].title, TITLES[one.option]]
            rows.append([*named, short(one.value), band(one.low, one.high)])
        return Table(shown=rows)

    def _report(self, rate: Rate, figures: Mapping[str, Any]) -> Report:
        verdict = self.verdict
        facts = {
            "verdict": {"option": verdict.option, "clear": verdict.is_clear, "sentence": verdict.sentence},
            "adapter": self.adapter,
            "rewrites_corpus": self.rewrites_corpus,
            "weight": self.weight,
            "relevance": self.relevance,
            "pairs": self.n_pairs,
            "candidates": [asdict(candidate) for candidate in self.candidates],
            "cascade": {"candidates": self.candidate_lists, "n": self.n_candidates},
            "price": asdict(self.price) if self.price else None,
            "curve": [asdict(point) for point in self.curve],
            "cautions": list(self.cautions),
            "rate": rate._asdict(),
            "embed_next": list(self.embed_next),
        }
        queries = counted(len(self.queries), "query", "queries")
        caption = (
            f"{queries}; {self.n_rows:,} rows searched; {self.n_pairs:,} pairs. {self.weight_note}"
            f" {self.rewriting_note}"
        )
        explained = (f"{TITLES[name].capitalize()}: {how}." for name, how in self.explained.items())
        text = " ".join([*explained, self.cost_note(rate)])
        tables = [Table("rows", self.table(rate), self.overview(rate), caption=text)]
        if self.price:
            title = f"Cascade, {counted(self.price.n_queries, 'query', 'queries')}"
            tables.append(Table(shown=self.price.cells(), title=title))
        tables.append(Table(shown=self.details(), caption=caption))
        if len(self.candidates) > 1:
            tables.append(self._table_of_candidates())
        if self.curve:
            tables.append(self._table_of_curve())
        notes = list(self.cautions)
        if self.next_note:
            notes.append(self.next_note)
        return Report(verdict.sentence, tables, facts, notes, figures)

    @property
    def choice_note(self) -> str:
        n = min(self.n_rows, MOST_CHOICE_ROWS)
        text = f"Each adapter as a bridge, among {n:,} rows"
        if n < self.n_rows:
            text += f" of {self.n_rows:,}, so that scores are higher than those of the options"
        return f"{text}. The options have cross-validated scores: no query chooses its own adapter."

    @property
    def next_note(self) -> str:
        """Which rows the new model should embed next; "" if there are enough pairs."""
        if not self.embed_next:
            return ""
        return (
            f"{self.n_pairs:,} pairs are few. Embed these {counted(len(self.embed_next), 'row')} by the new"
            f" model next: {', '.join(self.embed_next)}."
        )

    @takes_kinds
    def worst_queries(self, option: str, to: str = "keep") -> pd.DataFrame:
        """A table of the queries, sorted so that those for which `option` scores worst compared with `to`
        come first. Columns: query, the two scores, change.
        """
        for name, one in {"option": option, "to": to}.items():
            need_one_of(name, one, self.scores)
        before = self.scores[to]
        now = self.scores[option]
        columns = {"query": self.queries, TITLES[to]: before, TITLES[option]: now, "change": now - before}
        return pd.DataFrame(columns).sort_values("change", kind="stable").reset_index(drop=True)


UNDECIDED = Verdict("", False, "")  # the verdict before `MigrationResult.decided`


def export_result(
    result: MigrationResult, old: LatentSpace, new: LatentSpace, folder: Path, commit: str = ""
) -> tuple[Path, ...]:
    """Fit the adapter of a migration again, and `export` it to a folder with a card."""
    rows = new.vectors[new.rows(old.ids[result.pairs])], old.vectors[result.pairs]
    scores = [
        CardScore(f"{result.metric}, {TITLES[row.option]}", row.value, row.low, row.high, len(result.queries))
        for row in result.options
    ]
    adapter = result.fitted(*rows)
    models = {"new_model": new.name, "old_model": old.name}
    card = card_of(adapter, *rows, method=result.adapter, scores=scores, commit=commit, **models)
    ranks = {"candidates": result.candidate_lists, "n_candidates": result.n_candidates}
    return export(adapter, replace(card, **ranks, weight=result.weight), folder)
