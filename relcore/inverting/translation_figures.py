"""Tables of translation from their recipes: every pair of spaces, and encoders × domains with their margins."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from relcore import record
from relcore.figures.export import Exportable
from relcore.figures.marginals import Margins, margins_exportable
from relcore.figures.matrices import Matrices, MatrixPanel, matrices_exportable
from relcore.inverting.cross_domain import CrossDomainResult, CrossDomainSpec
from relcore.inverting.domain_spaces import DomainsSpec, SessionDomains, TrainedDomains
from relcore.inverting.translation import translate_all
from relcore.inverting.translation_result import METHODS, METRICS, TranslationResult, TranslationSpec
from relcore.names import METHODS as ALL_METHODS
from relcore.numbers import counted, in_cell, short
from relcore.recipe import Recipe, load_all, need_same_datasets
from relcore.sources.catalog import SpaceSpec
from relcore.sources.dataset import DatasetSpec
from relcore.sources.encoder import Encoder
from relcore.spaces import SpaceError, need_one_of


@dataclass(frozen=True, kw_only=True)
class TranslationTable(Recipe):
    """A heat map per method, every space with every other (Table 1 of Maiorca et al. 2024); as LaTeX a row per pair."""

    figure: ClassVar[str] = "translation-table"

    spaces: tuple[SpaceSpec, ...]
    digests: tuple[str, ...] = ()
    anchors: tuple[str, ...]
    metric: str = "cosine"
    spec: TranslationSpec = TranslationSpec()

    def draw(self, result: TranslationResult | None = None) -> Exportable:
        need_one_of("metric", self.metric, METRICS)
        result = result or translate_all(load_all(self.spaces, self.digests, self.figure), self.anchors, self.spec)
        need_one_of("metric", self.metric, result.metrics)

        def table() -> pd.DataFrame:
            found = result.table()
            return found[found["metric"] == result.title(self.metric)].reset_index(drop=True)

        name, latex = f"relscope-translation-{self.metric}", lambda: result.wide(self.metric)
        return matrices_exportable(_translations(result, self.metric), self.to_json(), name, latex, table)


class CrossDomain(Recipe):
    """Encoders × heads of all domains with the mean of each row and column (Fig. 7 of the same); as LaTeX its summary.

    Either of networks that are trained (`TrainedCrossDomain`), or of spaces (`SessionCrossDomain`).
    """

    figure: ClassVar[str] = "cross-domain"
    spec: CrossDomainSpec
    method: str

    def __post_init__(self) -> None:
        if not self.method:
            object.__setattr__(self, "method", self.spec.methods[0])
        need_one_of("method", self.method, self.spec.methods)

    @classmethod
    def from_record(cls, settings: Mapping[str, Any]) -> CrossDomain:
        kind = TrainedCrossDomain if "datasets" in settings else SessionCrossDomain
        return record.from_json(kind, settings, f"recipe of {cls.figure}")

    def draw(self, result: CrossDomainResult | None = None) -> Exportable:
        result = result or self._computed()

        def table() -> pd.DataFrame:
            found = result.table()
            return found[found["method"] == ALL_METHODS[self.method].title].reset_index(drop=True)

        data = _cross_domain(result, self.method)
        return margins_exportable(data, self.to_json(), "relscope-cross-domain", result.summary, table)

    @abstractmethod
    def _computed(self) -> CrossDomainResult: ...


@dataclass(frozen=True, kw_only=True)
class TrainedCrossDomain(CrossDomain):
    """Of networks, each trained on each dataset; see `DomainsSpec`."""

    datasets: tuple[DatasetSpec, ...]
    encoders: tuple[Encoder, ...]
    anchor_dataset: int | None = None
    spec: CrossDomainSpec = CrossDomainSpec()
    method: str = ""
    dataset_digests: tuple[str, ...] = ()

    newer: ClassVar[tuple[str, ...]] = ("dataset_digests",)

    def _computed(self) -> CrossDomainResult:
        need_same_datasets(self.datasets, self.dataset_digests, self.figure)
        return TrainedDomains(DomainsSpec(self.datasets, self.encoders, self.anchor_dataset), self.spec).run()


@dataclass(frozen=True, kw_only=True)
class SessionCrossDomain(CrossDomain):
    """Of spaces with a domain and an encoder each; see `SessionDomains`."""

    spaces: tuple[SpaceSpec, ...]
    digests: tuple[str, ...] = ()
    domain_names: tuple[str, ...]
    encoder_names: tuple[str, ...]
    anchors: tuple[str, ...]
    test_ids: tuple[str, ...] = ()
    spec: CrossDomainSpec = CrossDomainSpec()
    method: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        counts = [len(self.spaces), len(self.domain_names), len(self.encoder_names)]
        if len(set(counts)) > 1:
            raise SpaceError(
                f"recipe of {self.figure}: expected a domain and an encoder for each of {counts[0]} spaces, got {counts[1]} "
                f"and {counts[2]}"
            )

    def to_record(self) -> dict[str, Any]:
        """Without test ids where there are none."""
        return {one.name: value for one in fields(self) if (value := getattr(self, one.name)) or one.name != "test_ids"}

    def _computed(self) -> CrossDomainResult:
        task = SessionDomains(self.domain_names, self.encoder_names, self.anchors, self.spec, self.test_ids)
        return task.run(load_all(self.spaces, self.digests, self.figure))


def _translations(result: TranslationResult, metric: str) -> Matrices:
    panels, n = [], len(result.names)
    marked = tuple((i, i) for i in range(n))
    for method in result.spec.methods:
        values = result.matrix(method, metric)
        hover = tuple(tuple(_told(result, i, j, method, metric) for j in range(n)) for i in range(n))
        others = values[~np.eye(n, dtype=bool) & ~np.isnan(values)]
        note = f"mean {in_cell(others.mean())}, chance {in_cell(result.chance(method, metric))}" if len(others) else ""
        panels.append(MatrixPanel(METHODS[method], result.names, result.names, values, hover=hover, note=note, marked=marked))
    count = counted(result.n_test, "test row") if metric == "accuracy" else f"{counted(result.n, 'row')} that are not anchors"
    told = "; ".join(f"{panel.title}: {panel.note}" for panel in panels)
    scored = f"{count}, {counted(result.n_anchors, 'anchor')}"
    alt = f"Heat maps of {result.title(metric)}, {n} by {counted(n, 'space')}, one per method, {scored}. {told}."
    return Matrices(tuple(panels), (0.0, 1.0), result.title(metric), alt, "from", "to")


def _told(result: TranslationResult, i: int, j: int, method: str, metric: str) -> str:
    score, chance = result.scores[method][metric][i, j]
    if np.isnan(score):
        return "the widths differ"
    lines = [f"{result.title(metric)} {short(score)}", f"chance {short(chance)}"]
    if metric == "accuracy":
        lines.append(f"not stitched {short(result.own[j])}")
    return "\n".join(lines)


def _cross_domain(result: CrossDomainResult, method: str) -> Margins:
    values, deviation = result.matrix(method), result.deviation(method)
    n = len(values)
    rows, columns = result.margins(method)
    own = np.diag(values)
    many = len(result.spec.random_states) > 1

    def told_of(i: int, j: int) -> str:
        if np.isnan(values[i, j]):
            return "the widths differ"
        spread = f" ± {short(deviation[i, j])}" if many else ""
        beside = f"not stitched {short(own[i])} (encoder), {short(own[j])} (head)"
        tested = f"chance {short(result.chance[i])}, {counted(result.n_test[i], 'test row')}"
        return f"accuracy {short(values[i, j])}{spread}\n{beside}\n{tested}"

    hover = tuple(tuple(told_of(i, j) for j in range(n)) for i in range(n))
    panel = MatrixPanel("", result.names, result.names, values, hover=hover, marked=tuple((i, i) for i in range(n)))
    summary = result.summary().set_index("method").loc[ALL_METHODS[method].title]
    told = f"not stitched {short(summary['not stitched'], 2)}, same domain {short(summary['same domain'], 2)}, "
    told += f"other domain {short(summary['other domain'], 2)}, chance {short(summary['chance'], 2)}"
    alt = f"Heat map of accuracy by {ALL_METHODS[method].title}, {n} by {counted(n, 'encoder')} of domains. Means: {told}."
    matrices = Matrices((panel,), (0.0, 1.0), "accuracy", alt, "encoded by", "head trained on")
    titles = {"row_title": "encoding from, mean", "column_title": "decoding into, mean", "mark_title": "not stitched"}
    return Margins(matrices, rows, columns, own, own, **titles)
