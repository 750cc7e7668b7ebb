"""The bundled everyday sentences, an encoder per language: how often translations are retrieved, and how close they are."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np

from relcore.encoding import encode
from relcore.inverting.translation import translate_all
from relcore.inverting.translation_result import TranslationSpec
from relcore.languages.retrieval import METRICS, RetrievalSpec, pair_up, retrieve
from relcore.names import METHODS
from relcore.papers.ours import Number
from relcore.papers.runs import Measured, Settings
from relcore.papers.summaries import grouped, rounded
from relcore.progress import Report
from relcore.similarity import unit_rows
from relcore.sources.dataset import DatasetSpec
from relcore.sources.lsa import TfidfSvd
from relcore.sources.parallel import LANGUAGES
from relcore.spaces import LatentSpace
from relcore.stitching.methods import MethodSettings
from relcore.store import Store

_WAYS = ("absolute", "relative", "whitened", "procrustes")
_CARRIED = ("absolute", "irp-pruned", "irp-whitened", "procrustes")
_OURS = ("whitened", "irp-whitened")
_TOLD = {"raw cosine": "cosine", "cosine": "cosine from the mean", "mrr": "MRR"}


def translations_found(settings: Settings, store: Store, report: Report) -> Measured:
    """Share of sentences whose translation is ranked first, and MRR: the mean over the pairs of languages, and each pair."""
    spaces = _spaces(settings, store, report)
    steps = [(state, one, other) for state in settings["random_states"] for one, other in permutations(spaces, 2)]
    means, pairs = [], []
    for done, (state, one, other) in enumerate(steps):
        report(done, len(steps), f"{other} searched in {one}, random state {state}")
        spec = RetrievalSpec(_WAYS, settings["n_anchors"], settings["k"], random_state=state)
        result = retrieve(pair_up(spaces[one], spaces[other]), spec)
        for method, scores in result.scores.items():
            for metric in ("first", "mrr"):
                score = scores[metric]
                row = {"metric": f"{_title(method)}: {METRICS[metric]}", "value": float(score), "n": score.n, "k": score.k}
                row["baseline"] = score.null.mean
                means.append({"label": "mean of the 12 pairs", "state": state, "group": "mean", **row})
                if method != "absolute":
                    pairs.append({"label": f"{one} → {other}", "group": f"into {other}", **row})
    return Measured(grouped([*_by_state(means), *pairs]))


def carried_over(settings: Settings, store: Store, report: Report) -> Measured:
    """Cosine of translated and true rows, raw (as in the paper) and from the mean, of each language into English."""
    spaces = _spaces(settings, store, report)
    carry = MethodSettings(omega=settings["omega"], delta=settings["delta"])
    rows = []
    unrelated = _different_pairs(spaces["en"].vectors)
    for state in settings["random_states"]:
        ids = spaces["en"].ids
        anchors = np.random.default_rng(state).permutation(ids)[: settings["n_anchors"]].tolist()
        spec = TranslationSpec(_CARRIED, settings["k"], None, settings=carry, random_state=state)
        result = translate_all(list(spaces.values()), anchors, spec, report)
        names = list(spaces)
        for i, method, (metric, told) in product(range(len(names)), _CARRIED, _TOLD.items()):
            score, chance = map(float, result.scores[method][metric][i, names.index("en")])
            row = {"label": f"{names[i]} → en, {_title(method)}", "metric": told, "value": score, "baseline": chance}
            rows.append({**row, "n": result.n, "unit": "0 … 1" if metric == "mrr" else "−1 … 1"})
    return Measured((*grouped(rows), unrelated))


def _different_pairs(vectors: np.ndarray) -> Number:
    """Cosine of rows of two different sentences, mean and deviation over all pairs (section 4.1): the common mean's part.

    Pairs that share a sentence are not independent, so the interval of the mean rests on the n sentences.
    """
    units = unit_rows(vectors).astype(np.float64)
    cosines = (units @ units.T)[np.triu_indices(len(units), 1)]
    value, deviation = rounded(cosines.mean()), rounded(cosines.std(ddof=1))
    return Number("en, different sentences", "cosine", value, deviation, "−1 … 1", n=len(units))


def _spaces(settings: Settings, store: Store, report: Report) -> dict[str, LatentSpace]:
    encoder = TfidfSvd(settings["n_components"], min_texts=1)
    return {language: encode(DatasetSpec("parallel", language), encoder, store, report)[0] for language in LANGUAGES}


def _by_state(rows: list[dict]) -> list[dict]:
    """The mean over the pairs of each random state, so that the deviation is one over random states."""
    kept: dict[tuple, list[dict]] = {}
    for row in rows:
        kept.setdefault((row["state"], row["metric"]), []).append(row)
    found = []
    for part in kept.values():
        means = {name: float(np.mean([row[name] for row in part])) for name in ("value", "baseline")}
        found.append({**{name: value for name, value in part[0].items() if name != "state"}, **means})
    return found


def _title(method: str) -> str:
    return METHODS[method].title + (" (ours)" if method in _OURS else "")
