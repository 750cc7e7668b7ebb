"""Decide what to do about a new embedding model: measure the options that `relcore.migrate.evaluate` defines,
and recommend one."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from relcore.base.arguments import need_kind, need_sequence
from relcore.base.errors import SpaceError
from relcore.base.names import ADAPTERS, STRATEGIES
from relcore.base.numbers import and_list, band, counted, percent, short, signed
from relcore.base.report import RECOMMENDED, Report, Reported, Table
from relcore.base.rows import unit_rows
from relcore.base.settings import setting
from relcore.catalog.catalog import SpaceSpec, stored_encoding_spec
from relcore.catalog.naming import EXAMPLES, example_spaces
from relcore.catalog.task import Task
from relcore.encoders.sentences import OnnxText
from relcore.encoders.transformers import MiniLM
from relcore.files.formats import readable
from relcore.migrate.adapters import Adapter, CardScore, card_of, export
from relcore.migrate.evaluate import FEWEST as FEWEST_PAIRS
from relcore.migrate.evaluate import (
    FOLDS,
    MOST_CHOICE_ROWS,
    MOST_CURVE_ROWS,
    MOST_FITTED,
    MOST_QUERIES,
    N_CANDIDATES,
    OPTIONS,
    PARTS,
    SIZES,
    Bootstrap,
    Candidate,
    Candidates,
    CurvePoint,
    JudgedQuery,
    K,
    Pairs,
    QueryScores,
    RetrievalTask,
    check_pairs,
    cross_fitted,
    curve_of,
    held_out_trial,
    jackknife_deviations,
    judged_trial,
    length_cautions,
    parts_of,
    preprocessing_cautions,
    sample_rows,
    search,
)
from relcore.migrate.price import DEPTHS, UNKNOWN, Cost, Price, Rate, in_order_of_cost, price_of
from relcore.runs.entries import BundledResults
from relcore.runs.store import Progress, Store, silent
from relcore.scores.score import Interval, lowest_groups
from relcore.spaces.space import LatentSpace, MatrixLike, as_spaces, match
from relcore.spaces.split import TEST_FRACTION, row_keys

TITLES = {
    "keep": "keep",
    "bridge": "bridge",
    "twice": "query both models",
    "cascade": "cascade",
    "re-embed": "re-embed",
}


@dataclass(frozen=True)
class Verdict:
    """The recommendation of a migration. `option` is the recommended option; it is "" without judgements or
    labels. `is_clear` is False if another option may be better.

    `sentence` has the recommendation, a colon, and all scores. `headline` is a shorter text; "" if there is
    none.
    """

    option: str
    is_clear: bool
    sentence: str
    headline: str = ""


LEFT_OUT = "left out"  # words of a caution that is not highlighted
_SAID = ("no", "yes")
WORTH_A_CHANGE = 0.01  # minimum gain of nDCG that is worth a more expensive option


def decide(
    scores: Mapping[str, QueryScores], bootstrap: Bootstrap, order: Sequence[str] = OPTIONS
) -> tuple[str, tuple[str, ...]]:
    """Choose an option, and name the options that are too close to call. A more expensive option is chosen
    only if it is clearly better, and a cheaper change of the index replaces it if that loses less than
    `WORTH_A_CHANGE`, and not clearly. Another option is too close to call if the 95 % interval of its gain
    over the chosen one contains 0; if it is more expensive, the interval must also reach `WORTH_A_CHANGE`.

    `scores` has the score of each query (q,), by option. Options with equal scores are not compared. `order`
    has the options by their cost, the cheapest first; see `price.in_order_of_cost`.
    """
    chosen = order[0]
    for dearer in order[1:]:
        if dearer in scores and bootstrap.difference(scores[dearer], scores[chosen]).low > 0:
            chosen = dearer
    for cheaper in order[1 : order.index(chosen)]:
        if cheaper in scores:
            gain = bootstrap.difference(scores[cheaper], scores[chosen])
            if gain.value > -WORTH_A_CHANGE and gain.high >= 0:
                chosen = cheaper
                break
    found = scores[chosen].queries
    close = []
    for name, one in scores.items():
        if not np.array_equal(one.queries, found):
            gain = bootstrap.difference(one, scores[chosen])
            is_dearer = order.index(name) > order.index(chosen)
            if not gain.is_clear and not (is_dearer and gain.high < WORTH_A_CHANGE):
                close.append(name)
    return chosen, tuple(close)


def verdict_of(
    scores: Mapping[str, QueryScores],
    bootstrap: Bootstrap,
    *,
    k: int,
    on: str,
    relevance: str,
    weight: float,
    n_candidates: int = N_CANDIDATES,
    price: Price | None = None,
    order: Sequence[str] = OPTIONS,
    small_saving: str = "",
) -> Verdict:
    """Turn the choice of `decide` into a recommendation with sentences. `on` describes the data. Without
    judgements or labels, no option is recommended. If a cascade saves too little to come before re-embedding
    in the `order` of costs, `small_saving` says so.
    """
    means = {name: short(float(one.queries.mean())) for name, one in scores.items()}
    cost = ""
    if price:
        cost = f"; {price.describe()}"
    if relevance == NEIGHBOURS:
        finds = [f"{_FINDS[name]} {mean}" for name, mean in means.items() if name in _FINDS]
        told = f"Of the {k} rows that the new model finds for a row, {', '.join(finds)}{cost}; {on}."
        why = UNJUDGED
        if float(scores["keep"].queries.mean()) >= SAME_ROWS:
            why = FINDS_THE_SAME
        head, _, rest = why.partition(": ")
        return Verdict("", False, f"{why} {told}", f"{head}. {rest[:1].upper()}{rest[1:]}")
    option, close = decide(scores, bootstrap, order)
    keep = scores["keep"]
    n_queries = counted(len(scores["keep"].queries), "query", "queries")
    gains = {name: bootstrap.difference(one, keep) for name, one in scores.items() if name != "keep"}
    changes = {
        name: f"{signed(gain.value)}, 95 %: {band(gain.low, gain.high)}" for name, gain in gains.items()
    }
    harms = "re-embed" in gains and gains["re-embed"].high < 0
    quality = f"Search quality (nDCG@{k}, at most 1)"
    rivals = [_TOLD[name] for name in close]
    if option != "keep":
        answer = MOVES[option] + ", do not re-embed" * harms
        lines = [f"{quality} rises from {means['keep']} to {means[option]} ({changes[option]})"]
    else:
        answer = f"{MOVES['keep']}, nothing is better by {short(WORTH_A_CHANGE, 2)} or more"
        if close:
            answer = "Undecided, keep the old model for now"
        lines = [f"{quality} is {means['keep']} with it"]
    told = answer
    if harms:
        lines.append(f"The new model alone finds less: {means['re-embed']} ({changes['re-embed']})")
        cost = f"; the new model ranks worse than the old one, so a cascade can only harm{cost}"
    if close:
        told = f"{answer} ({and_list(rivals)} {'is' if len(close) == 1 else 'are'} too close to call)"
        first, *others = (f"{_TOLD[name]}{{}} {means[name]}" for name in close)
        reached = and_list([first.format(" reaches"), *(one.format("") for one in others)])
        reached = f"{reached[:1].upper()}{reached[1:]}: on {n_queries}, not clearly different"
        lines.append(f"{reached} from {_TOLD[option]}")
    parts = [f"{told}: {_JUDGED_BY[relevance]}, nDCG@{k} is {means['keep']} with the old model"]
    numbers = {"weight": short(weight, 2).removesuffix(".00"), "n": f"{n_candidates:,}"}
    parts += [
        f"{means[name]} {how.format(**numbers)} ({changes[name]})"
        for name, how in _WITH.items()
        if name in scores
    ]
    if option == "cascade" and not price:
        cost = f"; a cascade embeds at most {n_candidates:,} rows per query"
    if small_saving and "cascade" in scores:
        cost += f"; {small_saving}"
    if price:
        log = counted(price.n_queries, "query", "queries")
        lines.append(f"For {log} a cascade embeds {percent(price.share)} of the rows")
        if small_saving:
            lines.append(small_saving[:1].upper() + small_saving[1:])
    return Verdict(
        option,
        not close,
        f"{', '.join(parts[:-1])} and {parts[-1]}{cost}; {on}.",
        f"{'. '.join([answer, *lines])}.",
    )


_FINDS = {
    "keep": "the old model finds",
    "bridge": "the bridge",
    "twice": "both models",
    "cascade": "a cascade",
}
MOVES = {
    "keep": "Keep the old model",
    "bridge": "Bridge the models",
    "twice": "Query both models",
    "cascade": "Let the new model rank what the old index finds (cascade)",
    "re-embed": "Re-embed the corpus",
}
_FINDERS = {
    "both": "the old model and the bridge, by turns, find",
    "old": "the old model finds",
    "bridged": "the bridge finds",
}
_TOLD = {
    "keep": "keeping the old model",
    "bridge": "bridging",
    "twice": "querying both models",
    "cascade": "a cascade",
    "re-embed": "re-embedding",
}
_WITH = {
    "bridge": "with a bridge",
    "twice": "when both models search, with the new model's score counted {weight} ×",
    "cascade": "with a cascade over {n} candidates",
    "re-embed": "with everything embedded again",
}


def _change(gain: Interval | None) -> str:
    if gain:
        return f"{signed(gain.value)} ({band(gain.low, gain.high)})"
    return "–"


@dataclass(frozen=True)
class OptionScore:
    """The mean score of an option over all queries, its 95 % interval, and its chance level.

    Intervals account for the choice of queries, and for the adapter and weight that were chosen by them; the
    pairs are those of the exported adapter. `by_pairs` says how much the score may change with another draw
    of the pairs: half of a 95 % interval. The chance level is the score if each query gets the results of
    another query. `to_keep` is the score minus the score of the option "keep", and `to_reembed` the score
    minus that of "re-embed". Each is None if this is that option itself, and if that option is not measured.
    """

    option: str
    value: float
    low: float
    high: float
    chance: float
    to_keep: Interval | None = None
    to_reembed: Interval | None = None
    by_pairs: float = 0.0


@dataclass(frozen=True, eq=False)
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
    moved : option → array (5,)
        Deviations of the mean score with the adapters and weights that are chosen without a fold of the
        queries, as in `CrossFitted`.
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
    moved: Mapping[str, np.ndarray] = field(default_factory=dict)

    def fitted(self, new: np.ndarray, old: np.ndarray) -> Adapter:
        return ADAPTERS[self.adapter].load()().fit(unit_rows(new), unit_rows(old))

    @property
    def metric(self) -> str:
        if self.relevance == NEIGHBOURS:
            return f"new model's {self.k} neighbours"
        return f"nDCG@{self.k}"

    def option(self, name: str) -> OptionScore | None:
        return next((score for score in self.options if score.option == name), None)

    def table(self, rate: Rate = UNKNOWN) -> pd.DataFrame:
        """A table with one row per option: score, interval, chance level, differences from keep and re-embed,
        weight, and cost.
        """
        rows = []
        for one in self.options:
            none = Interval(np.nan, np.nan, np.nan)
            gains = {"keep": one.to_keep or none, "re-embed": one.to_reembed or none}
            row = {
                "option": TITLES[one.option],
                "score": one.value,
                **{name: getattr(one, name) for name in ("low", "high", "chance")},
                **{
                    f"to {name}{part and ', '}{part}": getattr(gain, part or "value")
                    for name, gain in gains.items()
                    for part in ("", "low", "high")
                },
                "weight": self.weight if one.option == "twice" else np.nan,
                "queries": len(self.queries),
                "rows": self.n_rows,
            }
            cost = self.cost_of(one.option)
            rows.append(row | asdict(cost) | {"rows_of_year": cost.rows_of_year(rate.queries, self.n_corpus)})
        return pd.DataFrame(rows)

    def cost_of(self, option: str) -> Cost:
        """The cost of an option. It includes embedding the pairs that the adapter is fitted on. A row that is
        both a pair and a candidate is embedded once.
        """
        old, new, searched = (4 * width * self.n_corpus for width in self.widths)
        mapped = searched if self.rewrites_corpus else 0
        pairs = min(self.n_pairs, self.n_corpus)
        bridged = mapped or old  # bytes of the index that bridged queries search
        lists = self.candidate_lists
        if option == "cascade":
            cached = 0
            if self.price:
                cached = self.price.need.rows
            index = {"old": old, "bridged": bridged}.get(lists, old + mapped) + 4 * self.widths[1] * cached
            now = cached
            if lists != "old":
                now = self.price.embedded if self.price else pairs
            if self.price:
                each = self.price.next_query
            else:
                each = float(min(self.n_candidates, max(0, self.n_corpus - now)))
            both = 2 - (lists == "bridged")
            is_rewritten = self.rewrites_corpus and lists != "old"
            return Cost(now, each, both, 1 + (lists == "both"), index, is_rewritten)
        return {
            "keep": Cost(0, 0.0, 1, 1, old, False),
            "bridge": Cost(pairs, 0.0, 1, 1, bridged, self.rewrites_corpus),
            "twice": Cost(pairs, 0.0, 2, 1 + self.rewrites_corpus, old + mapped, self.rewrites_corpus),
            "re-embed": Cost(self.n_corpus, 0.0, 1, 1, new, True),
        }[option]

    @property
    def shown(self) -> tuple[str, ...]:
        """The options that tables show: all with a score, and "re-embed", whose cost is always known."""
        return tuple(one for one in OPTIONS if self.option(one) or (one == "re-embed" and self.n_corpus))

    def order(self, rate: Rate = UNKNOWN) -> tuple[str, ...]:
        """The options by their cost, the cheapest first; see `in_order_of_cost`."""
        costs = {option: self.cost_of(option) for option in OPTIONS}
        return in_order_of_cost(costs, rate, self.n_corpus)

    def decided(self, rate: Rate = UNKNOWN) -> Self:
        """The same result with the recommendation that follows from the costs at this `rate`. A verdict from
        blind judgements is kept."""
        if not (self.verdict.headline or self.verdict == UNDECIDED):
            return self
        samples = {
            name: QueryScores(one.astype(np.float64), self.moved.get(name, 0.0))
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
            Bootstrap(len(self.queries), FOLDS),
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
            scored = ["–", "–"]
            if score:
                scored = [short(score.value), band(score.low, score.high)]
            costs = [self._rows_to_embed(option), self._year(option, rate)]
            models = f"{self.cost_of(option).models_per_query}"
            cells.append([mark + TITLES[option], *scored, _change(score and score.to_keep), *costs, models])
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
                scored = [short(score.chance), _change(score.to_reembed), moved]
            index = f"{cost.searches_per_query}", readable(cost.index_bytes), _SAID[cost.rewrites]
            cells.append([TITLES[option], *scored, *index])
        return cells

    def _rows_to_embed(self, option: str) -> str:
        cost = self.cost_of(option)
        if option == "re-embed":
            return f"all {cost.rows_now:,}"
        told = f"{cost.rows_now:,}"
        if round(cost.rows_per_query):
            up_to = ""
            if not self.price:
                up_to = "up to "
            told += f", then {up_to}{cost.rows_per_query:,.0f} per query"
        return told

    def _year(self, option: str, rate: Rate) -> str:
        cost = self.cost_of(option)
        rows = cost.rows_of_year(rate.queries, self.n_corpus)
        up_to = ""
        if cost.rows_per_query:
            up_to = "up to "
        told = f"{up_to}{counted(rows, 'row')}"
        if rate.is_known:
            told += f" · {rate.of(rows, rate.queries * cost.models_per_query)}"
        return told

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
        told = self._rows_to_embed(option)
        if option == "cascade":
            return f"Rows to embed: {told}, instead of all {self.n_corpus:,}."
        if least and least[0].n_pairs < self.n_pairs:
            told += f"; with only {least[0].n_pairs:,}, {self.metric} is {short(least[0].value)}"
        return f"Rows to embed: {told}."

    @property
    def explained(self) -> dict[str, str]:
        """For each shown option, its name and a sentence on what it does."""
        weight = f" (the bridge's count {short(self.weight, 2).removesuffix('.00')} ×)" * (self.weight != 1)
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

    def cost_note(self, rate: Rate = UNKNOWN) -> str:
        told = ""
        if self.verdict.option:
            told = "▸ is recommended. "
        told += "Rows include the pairs that the adapter learns from. "
        if self.price:
            told += "Cascade: rows for the whole log of queries, and rows that one more query adds."
        else:
            told += "With a log of queries, embedded by both models, a cascade's rows are counted."
        return (
            f"{told} An option that saves less than {rate.least} in a year comes after a simpler one, and an"
            " option is recommended only if it is clearly better than those before it."
        )

    def scaled(self, n_corpus: int, rate: Rate = UNKNOWN) -> tuple[Self, str]:
        """Adapt the result to a corpus of another size: a copy with the costs and the recommended option for
        that size, and a note.

        The scores are not changed. The queries of a log would find other rows in a corpus of another size, so
        only an upper limit of the cost of a cascade is known: the number of candidates of each query.
        """
        if n_corpus == self.n_corpus:
            scaled = self.decided(rate)
            return scaled, scaled.cost_note(rate)
        scaled = replace(self, n_corpus=n_corpus, price=None).decided(rate)
        note = f"The scores are of the {self.n_corpus:,} rows here. {scaled.cost_note(rate)}"
        return scaled, note.replace("is recommended.", f"is recommended for {n_corpus:,} rows.")

    def sentence_at(self, n_corpus: int, rate: Rate = UNKNOWN) -> str:
        """The recommendation for a corpus of another size, in a few sentences; "" for the same size, and
        without a cascade.
        """
        cascade = self.option("cascade")
        if n_corpus == self.n_corpus or cascade is None or not self.verdict.option:
            return ""
        scaled, _ = self.scaled(n_corpus, rate)
        option = scaled.verdict.option
        told = f"For {n_corpus:,} rows: {MOVES[option][:1].lower()}{MOVES[option][1:]}."
        if option != "cascade":
            return told
        if gain := cascade.to_reembed:
            told += (
                f" Its {self.metric} here is {short(cascade.value)}, {signed(gain.value)} against"
                f" re-embedding (95 %: {band(gain.low, gain.high)})."
            )
        rows = scaled.cost_of("cascade").rows_of_year(rate.queries, n_corpus)
        told += f" A year of {rate.queries:,} queries embeds at most {rows:,} rows."
        if n_corpus > self.n_corpus:
            told += f" Among more rows, {self.n_candidates:,} candidates may miss more of the relevant ones."
        return told

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

    def report(self, rate: Rate = UNKNOWN, **figures: Any) -> Report:
        return self.decided(rate)._report(rate, figures)

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
        told = " ".join([*explained, self.cost_note(rate)])
        tables = [Table("rows", self.table(rate), self.overview(rate), caption=told)]
        if self.price:
            title = f"Cascade, {counted(self.price.n_queries, 'query', 'queries')}"
            tables.append(Table(shown=self.price.cells(), title=title))
        tables.append(Table(shown=self.details(), caption=caption))
        if len(self.candidates) > 1:
            cells = (
                [
                    ADAPTERS[one.adapter].title,
                    short(one.score),
                    band(one.low, one.high),
                    _SAID[one.rewrites_corpus],
                ]
                for one in self.candidates
            )
            head = ["adapter", f"{self.metric} in the choice", "95 %", "corpus rewritten"]
            tables.append(
                Table(shown=[head, *cells], title="Choice of the adapter", caption=self.choice_note)
            )
        if self.curve:
            cells = (
                [
                    *(f"{one.n_pairs:,}", ADAPTERS[one.adapter].title, TITLES[one.option]),
                    *(short(one.value), band(one.low, one.high)),
                ]
                for one in self.curve
            )
            tables.append(Table(shown=[["pairs", "adapter", "option", self.metric, "95 %"], *cells]))
        notes = [*self.cautions, *filter(None, [self.next_note])]
        return Report(verdict.sentence, tables, facts, notes, figures)

    @property
    def choice_note(self) -> str:
        n = min(self.n_rows, MOST_CHOICE_ROWS)
        told = f"Each adapter as a bridge, among {n:,} rows"
        if n < self.n_rows:
            told += f" of {self.n_rows:,}, so that scores are higher than those of the options"
        return f"{told}. The options have cross-validated scores: no query chooses its own adapter."

    @property
    def next_note(self) -> str:
        """Which rows the new model should embed next; "" if there are enough pairs."""
        if not self.embed_next:
            return ""
        return (
            f"{self.n_pairs:,} pairs are few. Embed these {counted(len(self.embed_next), 'row')} by the new"
            f" model next: {', '.join(self.embed_next)}."
        )

    def worst_queries(self, option: str, to: str = "keep") -> pd.DataFrame:
        """A table of the queries, sorted so that those for which `option` scores worst compared with `to`
        come first. Columns: query, the two scores, change.
        """
        before = self.scores[to]
        now = self.scores[option]
        columns = {"query": self.queries, TITLES[to]: before, TITLES[option]: now, "change": now - before}
        return pd.DataFrame(columns).sort_values("change", kind="stable").reset_index(drop=True)


UNDECIDED = Verdict("", False, "")  # the verdict before `MigrationResult.decided`
ENOUGH_PAIRS = 300
AUTO = "auto"
NEIGHBOURS = "neighbours"
CHOSEN = ChainMap(ADAPTERS, {AUTO: "Automatic, by cross-validation"})
RELEVANCE = {"labels": "Rows of its label", NEIGHBOURS: "Its neighbours by the new model"}
_JUDGED_BY = {
    "judgements": "by the judgements",
    "labels": "with rows of the same label as relevant",
}
UNJUDGED = (
    "No verdict: pairs alone cannot tell which model is better. A column of labels can, or judged queries, or"
    " your answers in “Judge here, blind”."
)
# Share of the rows that the old model finds; above it, no judgements could tell the models apart.
SAME_ROWS = 0.995
FINDS_THE_SAME = "No verdict: both models find the same rows, so the new one does not improve search."


@dataclass(frozen=True, eq=False)
class MigrationData:
    """The data that a migration is measured on: the pairs to fit on, their `rows` (m,) in the old space, and
    the retrieval task.

    `relevance` is that of `MigrationResult`. `queries` are the ids of the queries, and `places` (n,) the row
    numbers, in the old space, of the corpus of the task. The old space has `n_corpus` rows. `log` has three
    arrays of unit rows: the old queries, the new queries, and the old corpus. It is None if held-out pairs
    are the queries.
    """

    pairs: Pairs
    rows: np.ndarray
    relevance: str
    trial: RetrievalTask
    queries: tuple[str, ...]
    places: np.ndarray
    cautions: tuple[str, ...]
    n_corpus: int
    log: tuple[np.ndarray, ...] | None
    embed_next: tuple[str, ...] = ()


def ids_to_embed(old: LatentSpace, new: LatentSpace, n: int, random_state: int = 0) -> tuple[str, ...]:
    """The ids of n rows of the old space, drawn at random, that have no vector of the new model yet; of all
    such rows if there are fewer."""
    missing = old.ids[new.index.get_indexer(old.index) < 0]
    order = np.argsort(row_keys(missing, "pairs", random_state), kind="stable")
    return tuple(map(str, missing[order[: max(0, n)]]))


def _need_pairs(old: LatentSpace, new: LatentSpace, m: int, least: int, random_state: int) -> None:
    """Raise a SpaceError, with the ids to embed next, if there are fewer than `least` of m pairs."""
    if m >= least:
        return
    ids = ids_to_embed(old, new, least - m, random_state)
    remedy = f"embed these by the new model next: {', '.join(ids)}"
    if m + len(ids) < least:
        remedy = f"add rows: the old space has {counted(len(old), 'row')}"
    raise SpaceError(
        f"pairs: expected {least} rows or more that both models have embedded, got {m} in {old.name!r} and"
        f" {new.name!r}; {remedy}"
    )


def _log_of(spaces: Sequence[LatentSpace], random_state: int) -> tuple[np.ndarray, ...]:
    """The `log` of `MigrationData`, with at most 2,000 queries. `spaces` are the old and the new rows, then
    the queries by the old and by the new model."""
    paired = match(*spaces[2:])
    rows = sample_rows(paired.ids, np.arange(len(paired)), random_state, MOST_QUERIES)
    old, new = (unit_rows(side.vectors[rows]) for side in (paired.source, paired.target))
    return old, new, unit_rows(spaces[0].vectors)


def _price(log: tuple[np.ndarray, ...], adapter: Adapter, candidates: Candidates, pairs: np.ndarray) -> Price:
    old, new, corpus = log
    depth = min(len(corpus), max(*DEPTHS, candidates.n))
    mapped = corpus
    if adapter.rewrites_corpus:
        mapped = adapter.corpus(corpus)
    lists = search(old, corpus, depth), search(adapter.transform(new), mapped, depth)
    candidates = candidates._replace(n=min(candidates.n, len(corpus)))
    return price_of(*lists, len(corpus), candidates, pairs)


@dataclass(frozen=True)
class Migration(Task[MigrationResult], kind="migration", version=8, title="Migration to a new model"):
    """The task that decides what to do about a new embedding model, by measurements on judged queries or
    labels. Without these, it measures how many of the new model's results are found with the old vectors.

    The first space has the old vectors of the corpus, and the second the new vectors of some of its rows,
    with the same ids. If there are judgements, two more spaces have the queries by the old and by the new
    model; otherwise, held-out pairs are the queries. `compared` names further adapters for the learning
    curves; `sizes` are their numbers of pairs.

    Examples
    --------
    >>> from relcore import Migration
    >>> Migration(adapter="ridge", n_pairs=300).n_pairs
    300
    """

    adapter: str = setting(
        AUTO,
        choices=CHOSEN,
        help="Adapter that maps new queries into the old space; auto: the best one in cross-validation over"
        " queries, which rewrites the corpus only if that is clearly better.",
    )
    n_pairs: int = setting(
        0,
        label="Pairs to learn from",
        option="pairs",
        low=0,
        step=50,
        help="Number of pairs to learn from; 0 takes all that are not held out.",
    )
    strategy: str = setting(
        "random",
        label="Choose pairs by",
        choices=STRATEGIES,
        help="How pairs are chosen, in the old space.",
    )
    compared: tuple[str, ...] = setting(("whitened", "in-place", "ridge"), choices=ADAPTERS)
    sizes: tuple[int, ...] = setting(SIZES, low=2)
    draws: int = setting(
        3,
        option="states",
        low=1,
        help="Number of random states, each with its own draw of pairs, per point of the curve.",
    )
    candidates: str = setting(
        "both",
        choices={"both": "Both queries, by turns", "old": "The old query", "bridged": "The bridged query"},
        help="A cascade ranks the rows that these queries find in the old index.",
    )
    n_candidates: int = setting(
        N_CANDIDATES, low=1, label="Candidates of a cascade", help="Rows per query that the new model ranks."
    )
    k: int = setting(K, label="Results per query, k", low=1, help="Depth of the lists that are scored.")
    judgements: tuple[JudgedQuery, ...] = ()
    relevance: str = setting(
        "labels",
        label="Relevant are",
        choices=RELEVANCE,
        help=(
            "What a held-out row should find. Without labels, neighbours by the new model are used, which"
            " cannot tell which model is better."
        ),
    )
    random_state: int = setting(0, low=0, help="Random state of the pairs, the folds and the held-out rows.")

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        widths = [space.dimension for space in spaces[:2]]
        n = len(spaces[1])
        judged = bool(self.judgements)
        m = min(self.n_pairs or (n if judged else round(n * (1 - TEST_FRACTION))), MOST_FITTED)
        curve = 1 + len(set(self.compared)), [size for size in self.sizes if size < m]
        fitted = m * (len(ADAPTERS) + PARTS + curve[0]) + self.draws * curve[0] * sum(curve[1])
        rows = len(spaces[0]) if judged else n - m
        searched = min(len(spaces[-1]) if judged else rows, MOST_QUERIES) * min(rows, MOST_CURVE_ROWS)
        searches = 60 + (curve[0] + 1) * self.draws * len(curve[1])
        return 1.0 + 4e-10 * fitted * sum(d**2 for d in widths) + 1e-10 * searches * searched * max(widths)

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> MigrationResult:
        """Measure all options. Raises a SpaceError for pairs that do not belong together, for too few pairs,
        and for judgements without known queries.
        """
        report(0, 10, "checking the pairs")
        return self.answer(self.ground(spaces), report)

    def answer(self, ground: MigrationData, report: Progress = silent) -> MigrationResult:
        pairs = ground.pairs
        trial = ground.trial
        state = self.random_state
        report(1, 10, "choosing an adapter and a weight")
        fits = {name: pairs.fit(name) for name in (ADAPTERS if self.adapter == AUTO else (self.adapter,))}
        choice = cross_fitted(trial, fits, self.k, state)
        name = choice.adapter
        weight = choice.weight
        found = choice.found
        report(4, 10, "drawing pairs again")
        by_pairs = jackknife_deviations(trial, pairs, name, weight, self.k, state)
        # Without judgements, what re-embedding finds is relevant by definition, so its score tells nothing. A
        # cascade over all rows finds the same rows.
        own = {"re-embed", *["cascade"] * (self.n_candidates >= len(trial.rows))}
        samples = {
            option: QueryScores(trial.score(lists, self.k), choice.moved.get(option, 0.0))
            for option, lists in found.items()
            if trial.is_judged or option not in own
        }
        bootstrap = Bootstrap(len(ground.queries), FOLDS)
        options = []
        for option, sample in samples.items():
            gains = [
                bootstrap.difference(sample, samples[other]) if other in samples and other != option else None
                for other in ("keep", "re-embed")
            ]
            mean = bootstrap.mean(sample)
            chance = trial.chance(found[option], self.k, state)
            half = 1.96 * float(np.sqrt(np.mean(np.square(by_pairs.get(option, 0.0)))))
            options.append(OptionScore(option, mean.value, mean.low, mean.high, chance, *gains, half))
        curve = curve_of(
            trial,
            pairs,
            (name, *self.compared),
            weight,
            sizes=self.sizes,
            draws=self.draws,
            k=self.k,
            random_state=state,
            report=lambda done, total, text: report(5 + 5 * done / total, 10, text),
        )
        m = len(pairs.ids)
        ends = [one for one in options if one.option in by_pairs and curve]
        curve += tuple(CurvePoint(m, name, one.option, one.value, one.low, one.high, 1) for one in ends)
        price = None
        if ground.log:
            price = _price(ground.log, fits[name], trial.candidates, ground.rows)
        query, row = trial.relevance.nonzero()
        result = MigrationResult(
            UNDECIDED,
            tuple(options),
            adapter=name,
            weight=weight,
            candidates=choice.candidates,
            curve=curve,
            cautions=ground.cautions,
            relevance=ground.relevance,
            k=self.k,
            n_pairs=len(pairs.ids),
            n_rows=len(trial.rows),
            queries=ground.queries,
            scores={option: sample.queries.astype(np.float32) for option, sample in samples.items()},
            found={option: np.where(rows >= 0, ground.places[rows], -1) for option, rows in found.items()},
            relevant_query=np.asarray(query, dtype=np.int64),
            relevant_row=ground.places[row],
            pairs=ground.rows,
            candidate_lists=self.candidates,
            n_candidates=self.n_candidates,
            price=price,
            n_corpus=ground.n_corpus,
            widths=(pairs.old.shape[1], pairs.new.shape[1], fits[name].corpus(pairs.old[:1]).shape[1]),
            embed_next=ground.embed_next,
            moved=choice.moved,
        )
        return result.decided()

    def ground(self, spaces: Sequence[LatentSpace], checked: bool = False) -> MigrationData:
        """Split the spaces into pairs to fit an adapter on, and a retrieval task to score it with. Raises the
        same errors as `run`. If `checked`, the test whether the pairs belong together is skipped.
        """
        old, new = spaces[:2]
        paired = match(old, new)
        state = self.random_state
        new_rows = paired.target.vectors
        old_rows = paired.source.vectors
        least = FEWEST_PAIRS * (1 if self.judgements else 2)
        _need_pairs(old, new, len(paired), least, state)
        if not checked:
            check_pairs(new_rows, old_rows, state, (old.name, new.name)).need()
        parts = parts_of(paired, self.n_pairs, self.strategy, bool(self.judgements), state)
        cautions = preprocessing_cautions(new_rows, old_rows)
        if len(spaces) == 4:
            cautions += length_cautions(old.vectors, spaces[2].vectors, "old")
            cautions += length_cautions(new.vectors, spaces[3].vectors, "new")
        if paired.n_zero:
            cautions.append(f"{counted(paired.n_zero, 'pair')} with a zero vector {LEFT_OUT}.")
        pairs = Pairs(unit_rows(new_rows), unit_rows(old_rows), paired.ids).take(parts.fitted)
        rows = old.index.get_indexer(pairs.ids)
        ranks = Candidates(self.candidates, self.n_candidates)
        log = None
        if len(spaces) == 4:
            log = _log_of(spaces, state)
        more = len(old), log, ids_to_embed(old, new, ENOUGH_PAIRS - len(paired), state)
        if self.judgements:
            trial, queries, unknown = judged_trial(spaces, self.judgements, state)
            trial = replace(trial, candidates=ranks)
            told = (*unknown, *cautions)
            return MigrationData(pairs, rows, "judgements", trial, queries, trial.rows, told, *more)
        if parts.n_repeated:
            left = counted(parts.n_repeated, "row")
            cautions.append(f"{left} {LEFT_OUT} as queries: the adapter was fitted on equal rows.")
        trial = replace(held_out_trial(paired, parts, self.relevance, self.k, state), candidates=ranks)
        held = paired.ids[trial.rows]
        relevance = "labels" if trial.is_judged else NEIGHBOURS
        queries = tuple(held[trial.own])
        places = old.index.get_indexer(held)
        return MigrationData(pairs, rows, relevance, trial, queries, places, tuple(cautions), *more)


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


# The example migration that comes with Relscope.

GROUP = "migration-example"
DATASET = EXAMPLES["sentences"].dataset
OLD = OnnxText()
NEW = MiniLM()
TASK = Migration(n_pairs=300)


def migrate(
    old: MatrixLike,
    new: MatrixLike,
    *,
    queries: tuple[MatrixLike, MatrixLike] | None = None,
    spec: Migration = Migration(),
) -> MigrationResult:
    """Decide whether to keep an old embedding model, to bridge to a new one, to query both, or to re-embed.

    Parameters
    ----------
    old, new : (n, d_old), (m, d_new)
        Vectors of the corpus by the old model; vectors by the new model of some of its rows, with the same
        ids.
    queries : (q, d_old), (q, d_new), optional
        The queries of `spec.judgements` by both models.

    Raises
    ------
    SpaceError
        The errors of `Migration.run`.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import LatentSpace, Migration, migrate
    >>> rng = np.random.default_rng(0)
    >>> kinds = rng.integers(8, size=600)
    >>> old = rng.normal(size=(8, 16))[kinds] + rng.normal(size=(600, 16))
    >>> new = old @ np.linalg.qr(rng.normal(size=(16, 16)))[0]
    >>> ids, labels = [f"row {row}" for row in range(600)], kinds.astype(str)
    >>> spaces = [LatentSpace(rows, ids, labels=labels) for rows in (old, new)]
    >>> migrate(*spaces, spec=Migration(adapter="in-place", sizes=())).option("bridge").value > 0.5
    True
    """
    need_kind("spec", spec, Migration)
    spaces = as_spaces((old, new), ("old", "new"))
    if queries is not None:
        need_sequence("queries", queries, "two spaces")
        if len(queries) != 2:
            raise SpaceError(f"queries: expected those of both models, two spaces, got {len(queries):,}")
        spaces += as_spaces(queries, ("space", "space"))
    return spec.run(spaces)


def starting_models(finished: BundledResults | None) -> tuple[SpaceSpec, SpaceSpec] | None:
    """The specs of the old and the new space of the bundled migration; None if the bundled results lack them.

    Examples
    --------
    >>> from relcore import bundled_results, starting_models
    >>> [spec.source for spec in starting_models(bundled_results())]
    ['encoding', 'encoding']
    """

    group = None
    if finished:
        group = finished.groups.get(GROUP)
    news = [spec for spec in example_spaces("sentences", finished)[0] if spec.encoder == NEW]
    summary = None
    if group and group.files:
        summary = finished.summary(group.files[0])
    if summary is None or not news:
        return None
    return stored_encoding_spec(summary), news[0]


# Queries that get worse: the classes or clusters of queries that an option serves worse than the old model.

FEWEST = 5  # minimum number of queries in a class or cluster


def losses_by_group(change: np.ndarray, groups: np.ndarray) -> pd.DataFrame:
    """A table of the mean change of the score in each group of at least five queries, greatest loss first. It
    is empty if there are fewer than two such groups.

    `change` (q,) is the change of each query's score. `groups` (q,) has the group of each query, "" for none.
    Columns: group, queries, change (mean), low and high (95 % band of random groups of the same size), p
    (corrected for the number of groups).
    """
    groups = np.asarray(groups, dtype=object)
    names, sizes = np.unique(groups[groups != ""], return_counts=True)
    kept = names[sizes >= FEWEST]
    columns = ["group", "queries", "change", "low", "high", "p"]
    if len(kept) < 2:
        return pd.DataFrame(columns=columns)
    places = {name: number for number, name in enumerate(kept)}
    numbers = np.array([places.get(group, -1) for group in groups])
    lowest = lowest_groups(change, numbers)
    mean = float(np.mean(change))
    table = pd.DataFrame(
        {
            "group": kept,
            "queries": np.bincount(numbers[numbers >= 0], minlength=len(kept)),
            "change": lowest.mean,
            "low": mean - lowest.half_width,
            "high": mean + lowest.half_width,
            "p": lowest.p,
        }
    )
    return table.sort_values("change", kind="stable", ignore_index=True)
