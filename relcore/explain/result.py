"""The result of an explanation: reasons, how one space is coarser, and how much is explained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.numbers import and_list, band, percent, short, signed
from relcore.base.report import Report, Reported, Table
from relcore.base.version import __version__
from relcore.explain.coarser import FEWER, PRINCIPAL, Coarser
from relcore.explain.moved import MovedRows, most_changed, most_changed_in_words, moved_in_words
from relcore.explain.reason import Reason
from relcore.represent.noise import ROUNDED

_P = 0.001  # smaller p-values are printed as "p < .001"


@dataclass(frozen=True, eq=False)
class Explanation(Reported):
    """Why two spaces differ.

    Attributes
    ----------
    names : texts
        The two compared spaces, then others whose shares are listed beside theirs.
    n, n_rows : int
        Number of rows that all spaces have, and number of those among which neighbours were searched.
    k : int
        Number of neighbours per row.
    n_queries : int
        Number of compared rows. One half of them suggested reasons, and the other half tested them.
    families : texts
        The families of features that were tried.
    n_features : int
        Number of features that were tried, families as a whole included.
    overlap : float
        The share of a row's neighbours that both spaces have. Chance level: k / (n_rows − 1).
    coarser : Coarser or None
        How one space is a noisier or coarser copy of the other.
    reasons : tuple of Reason
        The strongest first.
    own : tuple of Reason
        The user's own features, each tested alone, whether they are reasons or not. Their p-values are
        corrected for their number only.
    moved : tuple of MovedRows
        Kinds of rows of which more, or fewer, neighbours differ than of all rows.
    explained : (float, float)
        Of the neighbours that only the first space lists (only the second), the share that share one of the
        features of the reasons with the row.
    smallest : two floats
        The effect of a feature with 1 % (10 %) of the rows that would be found in 95 % of the draws; NaN if
        none would, or if there is no feature of such a size.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import explain
    >>> rows = np.random.default_rng(0).normal(size=(200, 5))
    >>> explain(rows, 2 * rows, columns={"kind": ["a", "b"] * 100})
    <Explanation 'source' and 'target': no reason (12 tried)>
    """

    names: tuple[str, ...]
    n: int
    n_rows: int
    k: int
    n_queries: int
    families: tuple[str, ...]
    n_features: int
    overlap: float
    coarser: Coarser | None
    reasons: tuple[Reason, ...]
    own: tuple[Reason, ...]
    moved: tuple[MovedRows, ...]
    explained: tuple[float, float]
    smallest: tuple[float, ...]

    def report(self, **figures: Callable[[], Any]) -> Report:
        return report(self, figures)

    def __repr__(self) -> str:
        found = ", ".join(reason.short or reason.family for reason in self.reasons) or "no reason"
        return f"<Explanation {self.names[0]!r} and {self.names[1]!r}: {found} ({self.n_features} tried)>"


def report(found: Explanation, figures: Mapping[str, Callable[[], Any]] | None = None) -> Report:
    facts = {
        "relscope": __version__,
        "spaces": list(found.names),
        **{name: getattr(found, name) for name in ("n", "n_rows", "k", "n_queries", "n_features", "overlap")},
        "families": list(found.families),
        "chance_overlap": found.k / (found.n_rows - 1),
        "explained": list(found.explained),
        "smallest": list(found.smallest),
        "moved": [_moved_facts(one) for one in found.moved],
        "coarser": found.coarser and asdict(found.coarser),
    }
    table = Table("reasons", reasons_table(found), _shown(found), caption=circumstances(found))
    return Report(headline(found), [table], facts, notes(found), figures or {})


def _moved_facts(one: MovedRows) -> dict[str, Any]:
    return {name: value for name, value in vars(one).items() if name != "rows"}


def headline(found: Explanation) -> str:
    """The sentences as one text."""
    return " ".join(sentences(found))


def sentences(found: Explanation) -> list[str]:
    """How one space is coarser, then a sentence for each reason, the strongest first. If there is neither,
    the kind of rows that changed most, and that no feature explains how."""
    texts = []
    if found.coarser is not None:
        texts.append(coarser_in_words(found.coarser, found.names))
    texts += [in_words(found, reason) for reason in found.reasons]
    if texts:
        return texts
    most = _leading(found)
    if most is None:
        return [f"No reason found among {found.n_features:,} features."]
    unexplained = f"No feature explains which neighbours changed ({found.n_features:,} tried)."
    return [most_changed_in_words(most), unexplained]


def _leading(found: Explanation) -> MovedRows | None:
    """The kind of rows that the headline names. It names none if there are reasons."""
    if found.reasons or found.coarser is not None:
        return None
    return most_changed(found.moved)


def in_words(found: Explanation, reason: Reason) -> str:
    """A reason in one sentence."""
    more = reason.more
    less = 1 - more
    alike = "have this feature, too"
    if reason.whole:
        alike = "share this feature with it"
    text = (
        f"{found.names[more]} puts {reason.title} closer together than {found.names[less]} does: of the"
        f" {found.k} nearest neighbours of such a row, {_compared(reason.shares, more)} {alike}."
    )
    if not reason.parts:
        return text
    heading = "Likewise"
    if reason.whole:
        heading = "Clearest"
    parts = [f"{part.short} ({_compared(part.shares, more)})" for part in reason.parts]
    return f"{text} {heading}: {and_list(parts)}."


def _compared(shares: Sequence[float], more: int) -> str:
    return f"{percent(shares[more])} against {percent(shares[1 - more])}"


def coarser_in_words(coarser: Coarser, names: Sequence[str]) -> str:
    name = names[coarser.side]
    other = names[1 - coarser.side]
    sizes = {
        FEWER: f"{percent(coarser.level)} of its dimensions",
        PRINCIPAL: f"its {percent(coarser.level)} longest axes",
        ROUNDED: f"rounding to steps of {short(coarser.level, 2)} of a row's largest number",
    }
    usual = f"noise of {short(coarser.level, 2)} times the spread"
    return (
        f"{name} is like a noisier or coarser copy of {other}: {other} with"
        f" {sizes.get(coarser.kind, usual)} would differ likewise, which explains"
        f" {percent(coarser.explained)} of the differences."
    )


def own_in_words(found: Explanation, own: Reason) -> str:
    """The shares of a feature of the user's own, with their difference."""
    shares = [f"{short(share)} in {name}" for name, share in zip(found.names, own.shares, strict=True)]
    return (
        f"Your feature, {own.title}: share of the {found.k} nearest that have it, too, {and_list(shares)}"
        f" (difference {signed(own.difference)}, 95 %: {band(own.low, own.high)}; {p_in_words(own.p)})."
    )


def explained_in_words(found: Explanation) -> str:
    """How much the reasons explain. Returns "" if there is none."""
    if not found.reasons:
        return ""
    first, second = found.names[:2]
    one = "share one of these features with their row"
    if len(found.reasons) == 1:
        one = "share this feature with their row"
    return (
        f"Of the neighbours that only {second} lists, {percent(found.explained[1])} {one}; of those that only"
        f" {first} lists, {percent(found.explained[0])}. The others remain unexplained."
    )


def kinds_in_words(found: Explanation) -> str:
    """The kinds of rows that changed more, or less, without the one that the headline names. Returns "" if
    there are none."""
    leading = _leading(found)
    return moved_in_words([one for one in found.moved if one is not leading])


def smallest_in_words(found: Explanation) -> str:
    """The smallest effect that would be found, or that there are too few rows to state one."""
    effects = dict(zip(("1 %", "10 %"), found.smallest, strict=True))
    stated = {share: effect for share, effect in effects.items() if not np.isnan(effect)}
    if not stated:
        return (
            "Too few rows: a feature of 10 % of them would not be found in 95 % of cases, however large its"
            " difference."
        )
    parts = [f"{short(effect)} for a feature of {share} of the rows" for share, effect in stated.items()]
    text = f"Smallest difference of shares that would be found in 95 % of cases: {and_list(parts)}."
    if "1 %" not in stated:
        text += " Features of 1 % of the rows are too small to be found here."
    return text


def notes(found: Explanation) -> list[str]:
    """How much is explained, and what could not have been found."""
    limits = (
        "Only differences between groups of rows are tested, not what causes them. Features that were not"
        f" tried cannot be found; tried were {and_list(found.families)}."
    )
    lines = (
        *(own_in_words(found, own) for own in found.own),
        explained_in_words(found),
        kinds_in_words(found),
        smallest_in_words(found),
        limits,
    )
    return list(filter(None, lines))


def p_in_words(p: float) -> str:
    if p < _P:
        return "p < .001"
    return f"p = {short(p)}"


def circumstances(found: Explanation) -> str:
    """The numbers behind the reasons."""
    sample = ""
    if found.n_rows < found.n:
        sample = f", a sample of {found.n:,}"
    tested = found.n_queries - found.n_queries // 2
    return (
        f"Shares: of a row's {found.k} nearest neighbours (by cosine, centred) among {found.n_rows:,} rows"
        f"{sample}. {found.n_queries:,} rows are compared: one half suggests reasons, the other half (about"
        f" {tested:,}) gives all numbers here. p is corrected for {found.n_features:,} features. The spaces"
        f" have {percent(found.overlap)} of the neighbours in common, chance"
        f" {percent(found.k / (found.n_rows - 1))}."
    )


def reasons_table(found: Explanation) -> pd.DataFrame:
    """A row for each reason and each of its parts, with all digits."""
    rows = []
    for rank, reason in enumerate(found.reasons, 1):
        shares = dict(zip(found.names, reason.shares, strict=True))
        rows.append(
            {
                "reason": rank,
                "feature": reason.title,
                "family": reason.family,
                "rows": reason.n,
                **shares,
                "difference": reason.difference,
                "low": reason.low,
                "high": reason.high,
                "beyond": reason.beyond,
                "p": reason.p,
            }
        )
        for part in reason.parts:
            shares = dict(zip(found.names, part.shares, strict=True))
            rows.append(
                {"reason": rank, "feature": part.title, "family": reason.family, "rows": part.n, **shares}
            )
    columns = ["reason", "feature", "family", "rows", *found.names]
    columns += ["difference", "low", "high", "beyond", "p"]
    return pd.DataFrame(rows, columns=columns)


def _shown(found: Explanation) -> list[list[str]]:
    if not found.reasons:
        return []
    rows = [["feature", "rows", *found.names, "difference", "95 %", "p"]]
    for reason in found.reasons:
        rows.append(
            [
                reason.title,
                f"{reason.n:,}",
                *map(short, reason.shares),
                signed(reason.difference),
                band(reason.low, reason.high),
                p_in_words(reason.p).removeprefix("p ").removeprefix("= "),
            ]
        )
        for part in reason.parts:
            rows.append([f"  {part.title}", f"{part.n:,}", *map(short, part.shares), "", "", ""])
    return rows
