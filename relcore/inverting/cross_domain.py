"""Cross-domain matrix: rows of one domain and encoder, classified by heads of another domain and encoder.

Fig. 7 of Maiorca et al. 2024: there the domains are the texts and the pictures of the same articles, and the anchors articles.
The domains share only the labels, and a few anchors that every encoder has encoded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from relcore.names import HEADS, METHODS
from relcore.similarity import mean_row
from relcore.spaces import LatentSpace, SpaceError, need_one_of, quote
from relcore.stitching.heads import fit_head
from relcore.stitching.methods import MethodSettings, Rows, Side, carrier, representation
from relcore.task import Report, silent


@dataclass(frozen=True, eq=False)
class Part:
    """One domain through one encoder.

    Attributes
    ----------
    domain, encoder : str
        Distinct together.
    space : LatentSpace
        With a label for every row.
    test : row numbers
        Test rows of the heads, which are trained on all others.
    anchors : array (m, d)
        Rows to draw anchors from; row i is the same thing in every part.
    """

    domain: str
    encoder: str
    space: LatentSpace
    test: np.ndarray
    anchors: np.ndarray

    @property
    def name(self) -> str:
        return f"{self.encoder} · {self.domain}"


@dataclass(frozen=True)
class CrossDomainSpec:
    """The methods, the heads, and how often the anchors are drawn.

    Attributes
    ----------
    methods : tuple of str
        Some of `methods.METHODS`.
    n_anchors : int
        Number of anchors to draw from those that the parts share, at most.
    head : str
        Of `heads.HEADS`.
    random_states : tuple of int
        Each draws anchors, prunings, and a network's first weights.
    settings : MethodSettings
    """

    methods: tuple[str, ...] = ("irp-pruned", "procrustes", "absolute")
    n_anchors: int = 256
    head: str = "logistic"
    random_states: tuple[int, ...] = (0,)
    settings: MethodSettings = MethodSettings()

    def __post_init__(self) -> None:
        for name in ("methods", "random_states"):
            values = getattr(self, name)
            if not isinstance(values, tuple) or not values or len(set(values)) < len(values):
                raise SpaceError(f"{name}: expected at least one, none twice, got {values!r}")
        for method in self.methods:
            need_one_of("methods", method, METHODS)
        need_one_of("head", self.head, HEADS)
        if self.n_anchors < 2:
            raise SpaceError(f"n_anchors: expected a whole number from 2, got {self.n_anchors!r}")


@dataclass(frozen=True)
class CrossDomainResult:
    """Accuracy of every head on the rows of every part.

    Attributes
    ----------
    domains, encoders : s strings each
        Part i is encoder i on domain i.
    accuracy : method → random states × s × s
        Rows are parts whose test rows are classified, columns the heads; None where the method needs equal widths. The
        diagonal is not stitched.
    chance : s shares
        Of a part's test rows, those of the class that is most frequent in the part.
    n_test : s counts
    n_anchors : int
    """

    spec: CrossDomainSpec
    domains: tuple[str, ...]
    encoders: tuple[str, ...]
    accuracy: Mapping[str, tuple[tuple[tuple[float | None, ...], ...], ...]]
    chance: tuple[float, ...]
    n_test: tuple[int, ...]
    n_anchors: int

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{encoder} · {domain}" for encoder, domain in zip(self.encoders, self.domains, strict=True))

    def matrix(self, method: str) -> np.ndarray:
        """Mean over the random states, (s, s), NaN where there is none."""
        return np.array(self.accuracy[method], dtype=float).mean(axis=0)

    def deviation(self, method: str) -> np.ndarray:
        """Over the random states, (s, s); 0 for a single one."""
        found = np.array(self.accuracy[method], dtype=float)
        return found.std(axis=0, ddof=1) if len(found) > 1 else np.zeros(found.shape[1:])

    def margins(self, method: str) -> tuple[np.ndarray, np.ndarray]:
        """Means without the diagonal, (s,) each: of the rows (encoding from) and of the columns (decoding into)."""
        stitched = np.where(np.eye(len(self.domains), dtype=bool), np.nan, self.matrix(method))
        return _means(stitched, axis=1), _means(stitched, axis=0)

    def summary(self) -> pd.DataFrame:
        """A row per method: mean accuracy not stitched, between encoders of one domain, between domains; pairs, chance."""
        own = np.eye(len(self.domains), dtype=bool)
        same = np.equal.outer(np.array(self.domains), np.array(self.domains))
        rows = []
        for method in self.spec.methods:
            found = self.matrix(method)
            within, across = found[same & ~own], found[~same]
            able = int((~np.isnan(across)).sum())
            means = [float(np.nanmean(part)) if (~np.isnan(part)).any() else np.nan for part in (found[own], within, across)]
            rows.append((METHODS[method].title, *means, able, across.size, float(np.mean(self.chance))))
        columns = ["method", "not stitched", "same domain", "other domain", "pairs across", "of", "chance"]
        return pd.DataFrame(rows, columns=columns)

    def table(self) -> pd.DataFrame:
        """A row per method and cell: method, encoder, domain, head's two, accuracy, deviation, chance, test rows."""
        rows = []
        for method in self.spec.methods:
            means, deviations = self.matrix(method), self.deviation(method)
            for i, j in np.ndindex(means.shape):
                names = METHODS[method].title, self.encoders[i], self.domains[i], self.encoders[j], self.domains[j]
                rows.append((*names, means[i, j], deviations[i, j], self.chance[i], self.n_test[i]))
        columns = ["method", "encoder", "domain", "head of", "trained on", "accuracy", "deviation", "chance", "test rows"]
        return pd.DataFrame(rows, columns=columns)


def cross_domain_matrix(
    parts: Sequence[Part], spec: CrossDomainSpec | None = None, report: Report = silent
) -> CrossDomainResult:
    """Classify the test rows of every part with every head, by each method.

    Raises
    ------
    SpaceError
        Fewer than two parts, labels that are absent or of other classes, anchors that are not parallel, a part without
        training rows of a class; what a method cannot do with these anchors.
    """
    spec = spec or CrossDomainSpec()
    classes = _classes(parts)
    targets = [np.searchsorted(classes, part.space.labels.astype(str)) for part in parts]
    train = [np.setdiff1d(np.arange(len(part.space)), part.test) for part in parts]
    n_anchors = min(spec.n_anchors, len(parts[0].anchors))
    accuracy: dict[str, list] = {method: [] for method in spec.methods}
    steps = [(state, method) for state in spec.random_states for method in spec.methods]
    absolute_heads: list = []
    for done, (state, method) in enumerate(steps):
        report(done, len(steps), f"{METHODS[method].title}, random state {state}")
        drawn = np.random.default_rng(state).choice(len(parts[0].anchors), n_anchors, replace=False)
        sides = [
            Side(part.space.vectors[rows], part.anchors[drawn], mean_row(part.space.vectors[rows]))
            for part, rows in zip(parts, train, strict=True)
        ]
        kind = METHODS[method].heads
        represent = [representation(kind, side, spec.settings) for side in sides]
        if kind != "absolute" or not absolute_heads or spec.head != "logistic":
            heads = [
                fit_head(function(side.train), target[rows], len(classes), spec.head, state)
                for function, side, target, rows in zip(represent, sides, targets, train, strict=True)
            ]
            absolute_heads = heads if kind == "absolute" else absolute_heads
        else:
            heads = absolute_heads  # logistic regression has no randomness, and the rows are the same
        accuracy[method].append(_ask(parts, sides, targets, represent, heads, method, spec, state))
    report(len(steps), len(steps), "")
    chances = (np.mean(target[part.test] == np.bincount(target).argmax()) for part, target in zip(parts, targets, strict=True))
    return CrossDomainResult(
        spec,
        tuple(part.domain for part in parts),
        tuple(part.encoder for part in parts),
        {method: tuple(found) for method, found in accuracy.items()},
        tuple(map(float, chances)),
        tuple(len(part.test) for part in parts),
        n_anchors,
    )


def _ask(
    parts: Sequence[Part],
    sides: Sequence[Side],
    targets: Sequence[np.ndarray],
    represent: Sequence[Rows],
    heads: Sequence,
    method: str,
    spec: CrossDomainSpec,
    state: int,
) -> tuple[tuple[float | None, ...], ...]:
    """Accuracy of each head (columns) on the test rows of each part (rows)."""
    square = []
    for i, part in enumerate(parts):
        rows, truth, line = part.space.vectors[part.test], targets[i][part.test], []
        for j, head in enumerate(heads):
            found: np.ndarray | None = represent[i](rows)
            if METHODS[method].heads == "absolute" and i != j:
                carry = carrier(method, sides[i], sides[j], spec.settings, state)
                found = carry(rows) if carry else None
            right = None if found is None else float(np.mean(head.probabilities(found).argmax(axis=1) == truth))
            line.append(right)
        square.append(tuple(line))
    return tuple(square)


def _classes(parts: Sequence[Part]) -> np.ndarray:
    """The classes that all parts have, by name, after all other checks."""
    if len(parts) < 2:
        raise SpaceError(f"expected at least two encoders or domains, got {len(parts)}")
    names = [part.name for part in parts]
    if len(set(names)) < len(names):
        raise SpaceError(
            f"expected each encoder once per domain, got {quote(sorted({n for n in names if names.count(n) > 1}))} twice"
        )
    if len({len(part.anchors) for part in parts}) > 1:
        counts = ", ".join(str(len(part.anchors)) for part in parts)
        raise SpaceError(f"anchors: expected the same things encoded by every encoder, got {counts} of them")
    first: np.ndarray | None = None
    for part in parts:
        if part.space.labels is None or "" in set(part.space.labels):
            raise SpaceError(f"{part.name!r}: expected a label for every row, got rows without; choose a labelled dataset")
        known = np.unique(part.space.labels.astype(str))
        first = known if first is None else first
        if not np.array_equal(known, first):
            raise SpaceError(
                f"{parts[0].name!r} and {part.name!r} have different classes ({quote(first[:3])} … and {quote(known[:3])} …): "
                "a head can only predict labels that it was trained on; choose domains with the same labels"
            )
    return first


def _means(values: np.ndarray, axis: int) -> np.ndarray:
    """Means that ignore NaN; NaN if there is nothing else."""
    there = ~np.isnan(values)
    counts = there.sum(axis=axis)
    return np.where(counts, np.where(there, values, 0).sum(axis=axis) / np.maximum(counts, 1), np.nan)
