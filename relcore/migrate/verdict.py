"""The verdict on a migration: which option is recommended, and whether the data carry it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from relcore.base.numbers import and_list, counted, percent, short, signed
from relcore.migrate.cross_fitting import QueryScores, Resampling
from relcore.migrate.price import Price
from relcore.migrate.trial import N_CANDIDATES, OPTIONS
from relcore.scores.score import Interval


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


WORTH_A_CHANGE = 0.01  # minimum gain of nDCG that is worth a more expensive option


def decide(
    scores: Mapping[str, QueryScores], resampling: Resampling, order: Sequence[str] = OPTIONS
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
        if dearer in scores and resampling.difference(scores[dearer], scores[chosen]).low > 0:
            chosen = dearer
    for cheaper in order[1 : order.index(chosen)]:
        if cheaper in scores:
            gain = resampling.difference(scores[cheaper], scores[chosen])
            if gain.value > -WORTH_A_CHANGE and gain.high >= 0:
                chosen = cheaper
                break
    found = scores[chosen].queries
    close = []
    for name, one in scores.items():
        if not np.array_equal(one.queries, found):
            gain = resampling.difference(one, scores[chosen])
            is_dearer = order.index(name) > order.index(chosen)
            if not gain.is_clear and not (is_dearer and gain.high < WORTH_A_CHANGE):
                close.append(name)
    return chosen, tuple(close)


def contradicts(
    option: str, scores: Mapping[str, QueryScores], resampling: Resampling, order: Sequence[str] = OPTIONS
) -> bool:
    """Whether the `scores` of other queries refute a clear verdict for an option: a cheaper option is clearly
    better, or a more expensive one clearly gains more than `WORTH_A_CHANGE`. See `decide` for `order`."""
    for other, one in scores.items():
        least = 0.0
        if order.index(other) > order.index(option):
            least = WORTH_A_CHANGE
        if other != option and resampling.difference(one, scores[option]).low > least:
            return True
    return False


def verdict_of(
    scores: Mapping[str, QueryScores],
    resampling: Resampling,
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
    if relevance == NEIGHBOURS:
        return _unjudged(scores, k, on, price)
    means = {name: short(float(one.queries.mean())) for name, one in scores.items()}
    option, close = decide(scores, resampling, order)
    keep = scores["keep"]
    gains = {name: resampling.difference(one, keep) for name, one in scores.items() if name != "keep"}
    changes = {name: f"{signed(gain.value)}, 95 %: {gain.band}" for name, gain in gains.items()}
    harms = "re-embed" in gains and gains["re-embed"].high < 0
    quality = f"Search quality (nDCG@{k}, at most 1)"
    answer = _answer(option, close, harms)
    lines = [f"{quality} is {means['keep']} with it"]
    if option != "keep":
        lines = [f"{quality} rises from {means['keep']} to {means[option]} ({changes[option]})"]
    text = answer
    if harms:
        lines.append(f"The new model alone finds less: {means['re-embed']} ({changes['re-embed']})")
    if close:
        are = "is" if len(close) == 1 else "are"
        text = f"{answer} ({and_list([_TOLD[name] for name in close])} {are} too close to call)"
        n_queries = counted(len(keep.queries), "query", "queries")
        lines.append(f"{_reached(close, means)}: on {n_queries}, not clearly different from {_TOLD[option]}")
    parts = [f"{text}: {_JUDGED_BY[relevance]}, nDCG@{k} is {means['keep']} with the old model"]
    numbers = {"weight": short(weight, 2).removesuffix(".00"), "n": f"{n_candidates:,}"}
    parts += [
        f"{means[name]} {how.format(**numbers)} ({changes[name]})"
        for name, how in _WITH.items()
        if name in scores
    ]
    cost = _cost_in_words(option, price, harms, n_candidates)
    if small_saving and "cascade" in scores:
        cost += f"; {small_saving}"
    if price:
        log = counted(price.n_queries, "query", "queries")
        lines.append(f"For {log} a cascade embeds {percent(price.share)} of the rows")
        if small_saving:
            lines.append(_capitalized(small_saving))
    return Verdict(
        option,
        not close,
        f"{', '.join(parts[:-1])} and {parts[-1]}{cost}; {on}.",
        f"{'. '.join([answer, *lines])}.",
    )


def _answer(option: str, close: Sequence[str], harms: bool) -> str:
    """What to do, in words. `close` are the options that are too close to call; `harms` says whether the new
    model is clearly worse than the old one."""
    if option == "keep" and close:
        return "Undecided, keep the old model for now"
    if option == "keep":
        return f"{MOVES['keep']}, nothing is better by {short(WORTH_A_CHANGE, 2)} or more"
    if harms:
        return f"{MOVES[option]}, do not re-embed"
    return MOVES[option]


def _cost_in_words(option: str, price: Price | None, harms: bool, n_candidates: int) -> str:
    """What a cascade costs, as the end of a sentence; "" if there is nothing to say about it."""
    if option == "cascade" and not price:
        return f"; a cascade embeds at most {n_candidates:,} rows per query"
    cost = ""
    if harms:
        cost = "; the new model ranks worse than the old one, so a cascade can only harm"
    if price:
        cost += f"; {price.describe()}"
    return cost


def _unjudged(scores: Mapping[str, QueryScores], k: int, on: str, price: Price | None) -> Verdict:
    """The verdict without judgements or labels. It recommends no option, and says which share of the new
    model's rows each option finds."""
    finds = []
    for name, one in scores.items():
        if name in _FINDS:
            finds.append(f"{_FINDS[name]} {short(float(one.queries.mean()))}")
    text = f"Of the {k} rows that the new model finds for a row, {', '.join(finds)}"
    if price:
        text += f"; {price.describe()}"
    why = UNJUDGED
    if float(scores["keep"].queries.mean()) >= SAME_ROWS:
        why = FINDS_THE_SAME
    head, _, rest = why.partition(": ")
    return Verdict("", False, f"{why} {text}; {on}.", f"{head}. {_capitalized(rest)}")


def _reached(close: Sequence[str], means: Mapping[str, str]) -> str:
    """The scores of options that are too close to call: "A bridge reaches .41 and both models .42"."""
    first = close[0]
    others = [f"{_TOLD[name]} {means[name]}" for name in close[1:]]
    return _capitalized(and_list([f"{_TOLD[first]} reaches {means[first]}", *others]))


def _capitalized(text: str) -> str:
    """The text with a capital first letter; the other letters stay as they are."""
    return text[:1].upper() + text[1:]


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


NEIGHBOURS = "neighbours"
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
