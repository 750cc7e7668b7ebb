"""Table 14 of the first paper on Multi30k: heads of one language applied to captions of another, with two kinds of anchors."""

from __future__ import annotations

import numpy as np

from relcore.encoding import encode
from relcore.evaluation import Split, row_keys
from relcore.papers.local import captions
from relcore.papers.ours import Number
from relcore.papers.runs import Measured, Settings
from relcore.papers.summaries import grouped
from relcore.progress import Report, silent
from relcore.similarity import mean_row, unit_rows
from relcore.sources.dataset import DatasetSpec
from relcore.sources.datasets import load_dataset
from relcore.sources.lsa import TfidfSvd
from relcore.sources.parallel import LANGUAGES, load_parallel
from relcore.spaces import LatentSpace, SpaceError
from relcore.stitching.classification import stitch_matrix
from relcore.stitching.result import StitchResult
from relcore.stitching.spec import StitchSpec
from relcore.store import Store

_METHODS = {"absolute": "absolute", "relative": "relative", "whitened": "relative, whitened (ours)"}


def across_languages(settings: Settings, store: Store, report: Report) -> Measured:
    """Weighted F1 by the language of the head (decoder) and of the rows (encoder), and the mean over the pairs.

    Classes are clusters of the English captions; a caption and its translations have the same class. Each language has its
    own encoder. Anchors are translated captions, or the bundled everyday sentences, which are no captions, where the language
    has them. Anchors, training rows and test rows are different captions.
    """
    languages = settings["languages"]
    steps, done = len(languages) + 2 * len(settings["random_states"]), 0
    specs = {one: DatasetSpec("file", str(captions()), column=one, limit=settings["n_captions"]) for one in languages}
    labels = english_classes(specs["en"], settings["n_classes"], store, report)
    spaces, outside = {}, {}
    for language, spec in specs.items():
        report(done, steps, f"encoding {language}")
        encoder = TfidfSvd(settings["n_components"])
        (space,) = encode(spec, encoder, store, report)
        spaces[language] = LatentSpace(space.vectors, space.ids, name=language, labels=labels)
        if language in LANGUAGES:
            outside[language] = everyday_rows(spec, encoder, language, store)
        done += 1
    rows: list[dict] = []
    for state in settings["random_states"]:
        split = parted(spaces["en"].ids, settings["n_anchors"], state)
        report(done, steps, f"translated anchors, random state {state}")
        anchors = [space.vectors[split.anchors] for space in spaces.values()]
        rows += _scores(_stitched(spaces, split, anchors), "translated anchors")
        if len(outside) > 1:
            report(done + 1, steps, f"everyday anchors, random state {state}")
            known = {language: spaces[language] for language in outside}
            alive = np.all([np.linalg.norm(one, axis=1) > 0 for one in outside.values()], axis=0)
            rows += _scores(_stitched(known, split, [one[alive] for one in outside.values()]), "everyday anchors")
        done += 2
    return Measured(_in_order(grouped(rows)))


def english_classes(english: DatasetSpec, n_classes: int, store: Store, report: Report) -> list[str]:
    """The class of each caption: clusters of MiniLM's rows of the English side, by k-means; MiniLM is no encoder here."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    from relcore.sources.text import MiniLM

    (space,) = encode(english, MiniLM(), store, report)
    with threadpool_limits(1):
        found = KMeans(n_classes, n_init=4, random_state=0).fit_predict(unit_rows(space.vectors, mean_row(space.vectors)))
    return [f"cluster {number}" for number in found]


def everyday_rows(captions_of: DatasetSpec, encoder: TfidfSvd, language: str, store: Store) -> np.ndarray:
    """The bundled everyday sentences as the captions' encoder sees them, (438, d); zero where it knows no word."""
    dataset = load_dataset(captions_of, store)
    trained = encoder.train(dataset, silent)
    (found,) = encoder.restore(trained, dataset)(list(load_parallel((language,))[language])).values()
    return found


def parted(ids: np.ndarray, n_anchors: int, random_state: int) -> Split:
    """Anchors by their own stream, test rows by another; the rest is trained on."""
    if n_anchors > len(ids) // 2:
        raise SpaceError(f"n_anchors: expected at most half of {len(ids)} captions, got {n_anchors}; choose fewer")
    keys = row_keys(ids, "caption anchors", random_state)
    return Split.draw(ids, anchors=np.argpartition(keys, n_anchors - 1)[:n_anchors], random_state=random_state)


def _stitched(spaces: dict[str, LatentSpace], split: Split, anchors: list[np.ndarray]) -> StitchResult:
    rows = np.sort(np.concatenate([split.train, split.test]))
    spec = StitchSpec(tuple(_METHODS), random_states=(split.random_state,), test_ids=tuple(split.ids[split.test]))
    return stitch_matrix([space.take(rows) for space in spaces.values()], spec, anchor_vectors=anchors)


def _scores(result: StitchResult, told: str) -> list[dict]:
    facts = {"n": len(result.runs[0].truth), "baseline": result.chance("f1")}
    found, off = [], ~np.eye(len(result.encoders), dtype=bool)
    languages = "mean over " + ", ".join(result.encoders)
    for method, title in _METHODS.items():
        if method == "absolute" and told != "translated anchors":
            continue  # absolute rows know no anchors
        scores = result.by_state(method, "f1")[0]
        metric = f"{title}: weighted F1" if method == "absolute" else f"{title}, {told}: weighted F1"
        for label, chosen in ((f"{languages}, not stitched", ~off), (f"{languages}, stitched pairs", off)):
            found.append({"label": label, "metric": metric, "value": scores[chosen].mean(), "group": "mean", **facts})
        for i, j in np.ndindex(scores.shape):
            label = f"decoder {result.encoders[j]}, encoder {result.encoders[i]}"
            found.append({"label": label, "metric": metric, "value": scores[i, j], "group": "pairs", **facts})
    return found


def _in_order(numbers: tuple[Number, ...]) -> tuple[Number, ...]:
    """Those of one label together, means first."""
    labels = list(dict.fromkeys(number.label for number in numbers))
    ordered = sorted(numbers, key=lambda number: (number.group != "mean", labels.index(number.label)))
    return tuple(ordered)
