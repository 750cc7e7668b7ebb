"""The result of a universe in sentences. `scores` is its table: a line for each ordered pair of models."""

from __future__ import annotations

import pandas as pd

from relcore.base.numbers import counted, percent
from relcore.scores.score import ChanceLevel, share_interval
from relcore.spaces.matching import short_names
from relcore.universe.retrieval import FEWEST_ROWS

_FEWEST_JUDGED = 100  # minimum number of held-out rows for a statement; with fewer, the chance level is high


def headline(
    scores: pd.DataFrame,
    n_models: int,
    n_tested: int,
    same_class: tuple[float, float] | None,
    best_chance: ChanceLevel | None,
) -> str:
    """How often the nearest row in another model is the same row, with the chance level. `n_tested` is the
    number of rows that were held out; for `same_class` and `best_chance`, see `Universe`."""
    if not len(scores):
        return (
            f"Too few sure pairs to say how alike these models are: {FEWEST_ROWS} held-out pairs are"
            f" needed, here are {n_tested:,}. A fifth of the shared rows is held out; of links, only"
            f" confirmed ones count. Share or confirm about {6 * FEWEST_ROWS} rows."
        )
    chance = chance_in_words(scores)
    same = percent(float(scores.accuracy.mean()))
    found = f"is the same row in {same} of cases (by chance {chance})"
    if same_class:
        alike, guess = map(percent, same_class)
        found = (
            f"has the same class in {alike} (chance {guess}) and is the same row in {same} (chance {chance})"
        )
    on_average = ""
    if n_models > 2:
        on_average = "on average, "
    text = f"Take a row of one model into another: {on_average}the nearest row there {found}."
    n = int(scores.n.min())
    if best_chance and scores.accuracy.max() <= best_chance.high:
        text += " So the models find the same row no more often than by chance."
    elif n < _FEWEST_JUDGED:
        text += f" But {n:,} rows are too few to say how alike the {n_models} models are."
    return text


def circumstances(
    scores: pd.DataFrame, dimension: int, n_fitted: int, best_chance: ChanceLevel | None
) -> str:
    """Sentences that describe the scores: the dimension of the common space, the number of rows, the interval
    and the chance level. `n_fitted` is the largest number of rows that a map is fitted on."""
    text = f"The common space has {counted(dimension, 'dimension')}."
    text += f" Its maps are fitted on up to {n_fitted:,} shared rows"
    if not len(scores):
        return f"{text}."
    text += f" and tested on {rows_in_words(scores)} other rows, each searched among these by cosine."
    if len(scores) > 1:
        share = float(scores.accuracy.mean())
        (low, high) = scores.accuracy.quantile([0, 1])
        text += f" The same row is nearest in {percent(share)} of cases, on average over {len(scores):,}"
        text += f" directions between two models, {percent(low)} to {percent(high)}"
        low, high = share_interval(share, scores.n.min())
        text += f" (95 % interval of the mean: {percent(low)} to {percent(high)})."
    if best_chance:
        text += f" By chance, the best direction reaches at most {percent(best_chance.high)} (95 %)."
    return text


def rows_in_words(scores: pd.DataFrame) -> str:
    """The number of rows that are searched: one number, or the smallest and the largest of all pairs of
    models."""
    least = scores.n.min()
    most = scores.n.max()
    if least == most:
        return f"{least:,}"
    return f"{least:,} to {most:,}"


def chance_in_words(scores: pd.DataFrame) -> str:
    """The chance that the nearest row is the same row. It is 1 ÷ the number of rows that are searched, which
    may differ between pairs of models."""
    low = percent(scores.chance.min())
    high = percent(scores.chance.max())
    if low == high:
        return low
    return f"{low} to {high}, as 1 in {rows_in_words(scores)} rows"


def extremes(scores: pd.DataFrame, best_chance: ChanceLevel | None) -> str:
    """Which two models are most alike, and which least: a sentence; "" for two models, if all scores are
    alike, and if they are of few rows or at the chance level."""
    if not len(scores) or scores.n.min() < _FEWEST_JUDGED:
        return ""
    if best_chance and scores.accuracy.max() <= best_chance.high:
        return ""
    shares: dict[frozenset[str], list[float]] = {}
    for line in scores.itertuples():
        shares.setdefault(frozenset((line.source, line.target)), []).append(line.accuracy)
    means = {pair: round(sum(of) / len(of), 2) for pair, of in shares.items()}
    if len(set(means.values())) < 2:
        return ""
    most = _pairs_with(max(means.values()), means, scores)
    least = _pairs_with(min(means.values()), means, scores)
    return f"Most alike: {most}. Least alike: {least}."


def _pairs_with(share: float, means: dict[frozenset[str], float], scores: pd.DataFrame) -> str:
    """The pairs of models with this share, in words."""
    found = [pair for pair, mean in means.items() if mean == share]
    names = list(dict.fromkeys(scores.source))
    short = dict(zip(names, short_names(names)[0], strict=True))
    told = " and ".join(short[name] for name in names if name in found[0])
    if len(found) > 1:
        told = f"{counted(len(found), 'pair')}, such as {told}"
    return f"{told} ({percent(share)})"
