"""What linking finds: parallel anchors, links with their precision, a verdict, and the report of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from relcore.base.numbers import counted
from relcore.base.report import Report, Reported, Table
from relcore.files.links import ENDS, KINDS, NOT_KEPT, Pairs

# Links, ranked by CSLS, with an estimate of how many are right.
PROMISED = 0.95


@dataclass(frozen=True)
class Round:
    """The progress of linking after one round. `rows` is the number of rows of the smaller space, so at most
    this many pairs can be matched. `pairs` is the number of matched pairs, and `objective` the mean CSLS.
    (For method "paper", `pairs` is the number of anchors, and `objective` the mean squared error.) `found` is
    the share of anchors, not counting seeds, that have the right partner; NaN if the truth is unknown.
    """

    rows: int
    pairs: int
    objective: float
    found: float


_LARGEST = 0.9999  # maximum precision of a link in a table, because no link is certain


@dataclass(frozen=True, eq=False, repr=False)
class BootstrapResult(Reported):
    """The result of `bootstrap_anchors`: parallel anchors, links, and a verdict on whether the spaces can be
    linked.

    Attributes
    ----------
    anchors : tuple of (source id, target id)
        The seeds first.
    pairs : tuple of (source id, target id)
        The seeds, then all links, best first.
    precision : array (n_pairs,)
        For each pair, the estimated share of right links among all links from the best one down to this pair,
        see `rank_links`. It is 1 for seeds; for links, it is 0 if the spaces are not linked.
    promised : float
        The requested precision of the `kept` pairs.
    held_out : float
        Mean CSLS of rows that are held out from a second fit, see `fit_held_out`.
    null : tuple of float
        Draws of the chance level of `held_out`, from rows without a partner.
    verdict : "linked", "not found" or "cannot tell"
    reason : str
        The reason for the verdict, with its numbers.
    vectors : array (n_anchors, d_target), optional
        With method "paper", the optimised anchors as unit rows, before they are replaced by the nearest
        target rows.
    rotation : array (d_source, d_target), optional
        The map from centred unit rows of the source to those of the target. If the spaces are not linked, but
        there are at least 10 seeds, it is the result of `map_from_pairs`, which is not orthogonal.
    """

    anchors: Pairs
    n_seeds: int
    pairs: Pairs
    history: tuple[Round, ...]
    held_out: float
    null: tuple[float, ...]
    verdict: str
    reason: str
    vectors: np.ndarray | None = None
    precision: np.ndarray = field(default_factory=lambda: np.empty(0))
    promised: float = PROMISED
    rotation: np.ndarray | None = None

    @property
    def nearby(self) -> np.ndarray:
        """For each pair, the estimated share of right links among links of similar rank, a decreasing array
        (n_pairs,). A group of similar rank is a tenth of the links, but at least 50. Seeds have 1.
        """
        from sklearn.isotonic import isotonic_regression

        precision = self.precision[self.n_seeds :]
        n = len(precision)
        n_groups = max(1, min(10, n // 50))
        ends = np.linspace(0, n, n_groups + 1).astype(int)
        # The number of right links among the first 0 … n links.
        right = np.r_[0, precision * np.arange(1, n + 1)]
        shares = np.diff(right[ends]) / np.maximum(np.diff(ends), 1)
        shares = isotonic_regression(shares, increasing=False, y_min=0, y_max=1)
        return np.r_[np.ones(self.n_seeds), np.repeat(shares, np.diff(ends))]

    @property
    def kept(self) -> Pairs:
        """The seeds, and the links whose precision is at least `promised`."""
        return self.pairs[: np.count_nonzero(self.precision >= self.promised)]

    @property
    def n_links(self) -> int:
        """The number of links that are kept, without the seeds."""
        return len(self.kept) - self.n_seeds

    @property
    def estimate(self) -> str:
        """The estimated share of right links among the kept ones, in words."""
        return f"{min(100 * self.precision[len(self.kept) - 1], 99.9):.1f} %"

    @property
    def links_in_words(self) -> str:
        """How many links are kept: ``"320 links of 400 beside the 15 known pairs"``."""
        n_all = len(self.pairs) - self.n_seeds
        text = counted(self.n_links, "link")
        if self.n_links < n_all:
            text += f" of {n_all:,}"
        if self.n_seeds:
            text += f" beside the {counted(self.n_seeds, 'known pair')}"
        return text

    @property
    def headline(self) -> str:
        verdict = self.verdict.capitalize()
        if not self.n_links:
            return f"{verdict}: no link is sure enough to be kept."
        return f"{verdict}. Of {self.links_in_words}, an estimated {self.estimate} are right."

    def report(self) -> Report:
        """The verdict, its reason, and the table of the links."""
        facts = {
            "verdict": self.verdict,
            "success": self.verdict == "linked",
            "reason": self.reason,
            "anchors": len(self.anchors),
            "pairs": len(self.kept),
            "precision": self.promised,
        }
        return Report(f"{self.headline} {self.reason}", [Table("rows", links_table(self))], facts)


def links_table(result: BootstrapResult, every: bool = False) -> pd.DataFrame:
    """A table of the seeds and the kept links, best first. Columns: source, target, kind ("seed", "anchor" or
    "link") and precision. The precision is the estimated share of right links among those from the best one
    down to this link; only seeds have 1. If `every` is True, the links that were not kept are appended with
    the kind "not kept".
    """
    kinds = dict.fromkeys((*result.anchors, *result.kept), "link") | dict.fromkeys(result.anchors, "anchor")
    kinds |= dict.fromkeys(result.anchors[: result.n_seeds], "seed")
    kinds |= dict.fromkeys([pair for pair in result.pairs if every and pair not in kinds], NOT_KEPT)
    precision = dict(zip(result.pairs, result.precision.round(4).tolist(), strict=True))
    rows = []
    for pair, kind in kinds.items():
        if kind == "seed":
            rows.append((*pair, kind, 1.0))
        else:
            rows.append((*pair, kind, min(precision.get(pair, 0.0), _LARGEST)))
    return pd.DataFrame(rows, columns=[*ENDS, KINDS[0], "precision"])
