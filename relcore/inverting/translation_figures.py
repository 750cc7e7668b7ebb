"""Tables of translation from their recipes: every pair of spaces, and encoders × domains with their margins."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from relcore import __version__
from relcore.figures.export import Exportable
from relcore.figures.marginals import Margins, margins_exportable
from relcore.figures.matrices import Matrices, MatrixPanel, matrices_exportable
from relcore.inverting.cross_domain import CrossDomainResult, CrossDomainSpec, cross_domain_matrix
from relcore.inverting.domain_spaces import DomainsSpec, session_parts, trained_parts
from relcore.inverting.translation import translate_all
from relcore.inverting.translation_result import METHODS, METRICS, TranslationResult, TranslationSpec
from relcore.names import METHODS as ALL_METHODS
from relcore.numbers import in_cell
from relcore.recipe import load_all, need_settings, object_of, specs_of, strings_of
from relcore.sources.catalog import SpaceSpec
from relcore.sources.dataset import DatasetSpec
from relcore.sources.encoder import encoder_from_json, encoder_to_json
from relcore.spaces import SpaceError, need_one_of
from relcore.store import Store


def draw_translation(
    specs: Sequence[SpaceSpec],
    anchors: Sequence[str],
    spec: TranslationSpec,
    metric: str = "cosine",
    digests: Sequence[str] = (),
    result: TranslationResult | None = None,
) -> Exportable:
    """A heat map a method, every space with every other (Table 1 of Maiorca et al. 2024); as LaTeX a row a pair."""
    need_one_of("metric", metric, METRICS)
    if result is None:
        result = translate_all(load_all(specs, digests, "translation-table"), anchors, spec)
    need_one_of("metric", metric, result.metrics)
    recipe = {"relscope": __version__, "figure": "translation-table", "spaces": [one.to_json() for one in specs]}
    recipe |= {"digests": list(digests), "anchors": list(anchors), "metric": metric, "spec": _plain(spec)}

    def table() -> pd.DataFrame:
        found = result.table()
        return found[found["metric"] == result.title(metric)].reset_index(drop=True)

    return matrices_exportable(
        _translations(result, metric), recipe, f"relscope-translation-{metric}", lambda: result.wide(metric), table
    )


def draw_cross_domain(result: CrossDomainResult, method: str, made_of: dict[str, Any]) -> Exportable:
    """Encoders × heads of all domains with the mean of each row and column (Fig. 7 of the same); as LaTeX its summary."""
    need_one_of("method", method, result.spec.methods)
    recipe = {"relscope": __version__, "figure": "cross-domain", **made_of, "spec": _plain(result.spec), "method": method}

    def table() -> pd.DataFrame:
        found = result.table()
        return found[found["method"] == ALL_METHODS[method].title].reset_index(drop=True)

    return margins_exportable(_cross_domain(result, method), recipe, "relscope-cross-domain", result.summary, table)


def made_of_datasets(domains: DomainsSpec) -> dict[str, Any]:
    """The part of a cross-domain recipe that tells which networks are trained on what."""
    return {
        "datasets": [dataset.to_json() for dataset in domains.datasets],
        "encoders": [encoder_to_json(encoder) for encoder in domains.encoders],
        "anchor_dataset": domains.anchor_dataset,
    }


def made_of_spaces(
    specs: Sequence[SpaceSpec],
    digests: Sequence[str],
    domains: Sequence[str],
    encoders: Sequence[str],
    anchors: Sequence[str],
    test_ids: Sequence[str] = (),
) -> dict[str, Any]:
    """The part of a cross-domain recipe that tells which spaces it is of."""
    named = {"domain_names": list(domains), "encoder_names": list(encoders), "anchors": list(anchors)}
    if test_ids:
        named["test_ids"] = list(test_ids)
    return {"spaces": [one.to_json() for one in specs], "digests": list(digests), **named}


def _translations(result: TranslationResult, metric: str) -> Matrices:
    panels, n = [], len(result.names)
    marked = tuple((i, i) for i in range(n))
    for method in result.spec.methods:
        values = result.matrix(method, metric)
        hover = tuple(tuple(_told(result, i, j, method, metric) for j in range(n)) for i in range(n))
        others = values[~np.eye(n, dtype=bool) & ~np.isnan(values)]
        note = f"mean {in_cell(others.mean())}, chance {in_cell(result.chance(method, metric))}" if len(others) else ""
        panels.append(MatrixPanel(METHODS[method], result.names, result.names, values, hover=hover, note=note, marked=marked))
    count = f"{result.n_test:,} test rows" if metric == "accuracy" else f"{result.n:,} rows that are no anchors"
    told = "; ".join(f"{panel.title}: {panel.note}" for panel in panels)
    alt = (
        f"Heat maps of {result.title(metric)}, {n} by {n} spaces, one a method, {count}, {result.n_anchors:,} anchors. {told}."
    )
    return Matrices(tuple(panels), (0.0, 1.0), result.title(metric), alt, "from", "to")


def _told(result: TranslationResult, i: int, j: int, method: str, metric: str) -> str:
    found = result.scores.get((i, j, method, metric))
    if found is None:
        return "the widths differ"
    lines = [f"{result.title(metric)} {found[0]:.3f}", f"chance {found[1]:.3f}"]
    if metric == "accuracy":
        lines.append(f"not stitched {result.own[j]:.3f}")
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
        spread = f" ± {deviation[i, j]:.3f}" if many else ""
        beside = f"not stitched {own[i]:.3f} (encoder), {own[j]:.3f} (head)"
        return f"accuracy {values[i, j]:.3f}{spread}\n{beside}\nchance {result.chance[i]:.3f}, {result.n_test[i]:,} test rows"

    hover = tuple(tuple(told_of(i, j) for j in range(n)) for i in range(n))
    panel = MatrixPanel("", result.names, result.names, values, hover=hover, marked=tuple((i, i) for i in range(n)))
    summary = result.summary().set_index("method").loc[ALL_METHODS[method].title]
    told = f"not stitched {summary['not stitched']:.2f}, same domain {summary['same domain']:.2f}, "
    told += f"other domain {summary['other domain']:.2f}, chance {summary['chance']:.2f}"
    alt = f"Heat map of accuracy by {ALL_METHODS[method].title}, {n} by {n} encoders of domains. Means: {told}."
    matrices = Matrices((panel,), (0.0, 1.0), "accuracy", alt, "encoded by", "head trained on")
    titles = {"row_title": "encoding from, mean", "column_title": "decoding into, mean", "mark_title": "not stitched"}
    return Margins(matrices, rows, columns, own, own, **titles)


def _plain(spec: Any) -> dict[str, Any]:
    return json.loads(json.dumps(asdict(spec)))


def _translation(settings: dict[str, Any]) -> Exportable:
    figure = "translation-table"
    need_settings(settings, ("spaces", "digests", "anchors", "metric", "spec"), figure, ("spaces", "anchors"))
    spec = TranslationSpec.from_json(object_of(settings, "spec", figure))
    digests, anchors = (strings_of(settings, name, figure) for name in ("digests", "anchors"))
    return draw_translation(specs_of(settings, figure), anchors, spec, settings.get("metric", "cosine"), digests)


def _crossing(settings: dict[str, Any]) -> Exportable:
    figure = "cross-domain"
    spec = CrossDomainSpec.from_json(object_of(settings, "spec", figure))
    method = settings.get("method", spec.methods[0])
    if "datasets" in settings:
        need_settings(settings, ("datasets", "encoders", "anchor_dataset", "spec", "method"), figure, ("datasets", "encoders"))
        domains = _domains(settings)
        return draw_cross_domain(cross_domain_matrix(trained_parts(domains, Store()), spec), method, made_of_datasets(domains))
    names = ("domain_names", "encoder_names", "anchors")
    need_settings(settings, ("spaces", "digests", *names, "test_ids", "spec", "method"), figure, ("spaces", *names))
    specs, digests = specs_of(settings, figure), strings_of(settings, "digests", figure)
    domains, encoders, anchors = (strings_of(settings, name, figure) for name in names)
    if not len(specs) == len(domains) == len(encoders):
        raise SpaceError(
            f"recipe of {figure}: expected a domain and an encoder for each of {len(specs)} spaces, got {len(domains)} and "
            f"{len(encoders)}"
        )
    tested = strings_of(settings, "test_ids", figure)
    parts = session_parts(load_all(specs, digests, figure), domains, encoders, anchors, test_ids=tested)
    made_of = made_of_spaces(specs, digests, domains, encoders, anchors, tested)
    return draw_cross_domain(cross_domain_matrix(parts, spec), method, made_of)


def _domains(settings: dict[str, Any]) -> DomainsSpec:
    try:
        datasets = tuple(DatasetSpec.from_json(one) for one in settings["datasets"])
        encoders = tuple(encoder_from_json(one) for one in settings["encoders"])
        return DomainsSpec(datasets, encoders, settings.get("anchor_dataset"))
    except (TypeError, AttributeError) as error:
        raise SpaceError(f"recipe of cross-domain: unknown or misplaced setting ({error})") from error


FIGURES = {"translation-table": _translation, "cross-domain": _crossing}
