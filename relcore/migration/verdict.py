"""Verdict: keep, bridge, ask twice or re-embed, by intervals, and one sentence that says why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from relcore.migration.evaluate import OPTIONS, Bootstrap
from relcore.numbers import band, short, signed

TITLES = {"keep": "keep", "bridge": "bridge", "twice": "ask twice", "re-embed": "re-embed"}
WORTH = 0.02  # what a dearer option must gain at least where one model's neighbours are the truth: that truth favours it


@dataclass(frozen=True)
class Verdict:
    """What to do.

    Attributes
    ----------
    option : "keep", "bridge", "twice" or "re-embed"
    is_clear : bool
        Whether the scores tell it from every other option at 95 %.
    sentence : str
    """

    option: str
    is_clear: bool
    sentence: str


def decide(scores: Mapping[str, np.ndarray], bootstrap: Bootstrap, worth: float = 0.0) -> tuple[str, bool]:
    """The option, from keep to the next dearer one only where it is clearly better, and whether it differs from all others
    that do not find the same for every query.

    Parameters
    ----------
    scores : option → array (q,)
        nDCG of each query; options that are not measured are left out.
    worth : float
        The 95 % interval of a dearer option's gain must lie above this.
    """
    chosen = OPTIONS[0]
    for dearer in OPTIONS[1:]:
        if dearer in scores and bootstrap.difference(scores[dearer], scores[chosen]).low > worth:
            chosen = dearer
    others = [one for one in scores.values() if not np.array_equal(one, scores[chosen])]
    return chosen, all(bootstrap.difference(scores[chosen], one).is_clear for one in others)


def verdict_of(
    scores: Mapping[str, np.ndarray], bootstrap: Bootstrap, *, k: int, on: str, truth: str, worth: float = 0.0
) -> Verdict:
    """`decide`, with its sentence; `on` says on what the scores rest, `truth` what was searched for."""
    option, is_clear = decide(scores, bootstrap, worth)
    means = {name: short(float(one.mean())) for name, one in scores.items()}
    first = _KEPT if option == "keep" else _MOVED[option]
    parts = [f"{first}: {truth}, nDCG@{k} is {means['keep']} with the old model"]
    for name in ("bridge", "twice", "re-embed"):
        if name in scores:
            gain = bootstrap.difference(scores[name], scores["keep"])
            parts.append(f"{means[name]} {_WITH[name]} ({signed(gain.value)}, 95 %: {band(gain.low, gain.high)})")
    return Verdict(option, is_clear, f"{', '.join(parts[:-1])} and {parts[-1]}; {on}.")


_KEPT = "Keep the old model"
_MOVED = {
    "bridge": "Bridge: let new queries search the old vectors through the adapter",
    "twice": "Ask twice: search the old vectors with both models and add their scores",
    "re-embed": "Re-embed the corpus",
}
_WITH = {"bridge": "with a bridge", "twice": "when both models search", "re-embed": "with everything embedded again"}
