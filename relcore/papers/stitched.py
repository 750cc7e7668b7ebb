"""Heads applied to encoders on which they were not trained: relative ones, absolute ones by inversion, across domains."""

from __future__ import annotations

import numpy as np

from relcore.inverting.cross_domain import CrossDomainSpec, cross_domain_matrix
from relcore.inverting.domain_spaces import DomainsSpec, trained_parts
from relcore.names import METHODS, STITCH_METRICS
from relcore.papers.local import labelled
from relcore.papers.ours import Number
from relcore.papers.runs import Measured, Settings
from relcore.papers.summaries import averaged, rounded
from relcore.progress import Report
from relcore.sources.dataset import DatasetSpec
from relcore.sources.small_vision import SmallVision
from relcore.stitching.classification import stitch_matrix
from relcore.stitching.methods import MethodSettings
from relcore.stitching.result import StitchResult
from relcore.stitching.spec import StitchSpec
from relcore.store import Store

_OURS = ("whitened", "irp-ridge", "irp-whitened")


def relative_heads(settings: Settings, store: Store, report: Report) -> Measured:
    """Tables 5, 6 and 16: weighted F1 of absolute, relative and whitened heads, not stitched and stitched; every pair."""
    result = _stitched(("absolute", "relative", "whitened"), settings, MethodSettings(), store, report)
    names = [name.partition(" · ")[0].partition(", state")[0] for name in result.encoders]
    numbers = _means(result, "f1")
    facts = {"n": result.n_test, "group": "pairs", "baseline": rounded(result.chance("f1"))}
    for i, j in np.ndindex(len(names), len(names)):
        for method in result.spec.methods:
            scores = result.by_state(method, "f1")[:, i, j]
            if not np.isnan(scores).any():
                label = f"decoder {names[j]}, encoder {names[i]}"
                numbers.append(averaged(label, f"{_title(method)}: weighted F1", scores, **facts))
    return Measured(tuple(numbers))


def absolute_heads(settings: Settings, store: Store, report: Report) -> Measured:
    """Table 2 of the second paper: accuracy of absolute heads on translated rows, by each method."""
    carry = MethodSettings(omega=settings["omega"], delta=settings["delta"])
    methods = ("absolute", "irp-pruned", "irp-ridge", "irp-whitened", "procrustes")
    result = _stitched(methods, settings, carry, store, report)
    return Measured(tuple(_means(result, "accuracy")))


def across_looks(settings: Settings, store: Store, report: Report) -> Measured:
    """Fig. 7 of the second paper: heads trained on one look of the digits, applied to another."""
    datasets = tuple(DatasetSpec("digits", options=(("look", one),) if one != "plain" else ()) for one in settings["looks"])
    domains = DomainsSpec(datasets, tuple(SmallVision(name) for name in settings["networks"]))
    parts = trained_parts(domains, store, report)
    carry = MethodSettings(omega=settings["omega"], delta=settings["delta"])
    result = cross_domain_matrix(parts, CrossDomainSpec(n_anchors=settings["n_anchors"], settings=carry), report)
    numbers = []
    for line in result.summary().to_dict("records"):
        facts = {"n": result.n_test[0], "baseline": rounded(line["chance"])}
        for metric in ("not stitched", "same domain", "other domain"):
            if not np.isnan(line[metric]):
                numbers.append(Number(line["method"], f"{metric}: accuracy", rounded(line[metric]), **facts))
    return Measured(tuple(numbers))


def _stitched(
    methods: tuple[str, ...], settings: Settings, carry: MethodSettings, store: Store, report: Report
) -> StitchResult:
    spaces, test_ids = labelled(settings["data"], store, report)
    states = tuple(settings["random_states"])
    head = settings.get("head", "logistic")
    spec = StitchSpec(methods, head, states, settings["n_anchors"], test_ids=test_ids, settings=carry)
    return stitch_matrix(spaces, spec, report=report)


def _means(result: StitchResult, metric: str) -> list[Number]:
    """A method's mean over encoders (not stitched) and over ordered pairs (stitched), deviations over the random states."""
    off = ~np.eye(len(result.encoders), dtype=bool)
    facts = {"n": result.n_test, "group": "mean", "baseline": rounded(result.chance(metric))}
    numbers = []
    for method in result.spec.methods:
        scores = result.by_state(method, metric)
        for where, chosen in (("not stitched", scores[:, ~off]), ("stitched", scores[:, off])):
            able = chosen[:, ~np.isnan(chosen[0])]
            if able.shape[1]:
                numbers.append(averaged(_title(method), f"{where}: {STITCH_METRICS[metric].title}", able.mean(axis=1), **facts))
    return numbers


def _title(method: str) -> str:
    return METHODS[method].title + (" (ours)" if method in _OURS else "")
