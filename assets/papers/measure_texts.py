"""Stitch two text models across their architectures, and write the numbers to relcore/data/papers/ours.

    python assets/papers/measure_texts.py stitch-transformers|stitch-transformers-trec|bootstrap-transformers

The models are MiniLM L6 and paraphrase-MiniLM L3 (ONNX). stitch-transformers: Table 5 of the first paper and
Table 2 of the second, on Wikipedia sentences, and on TREC from the data folder (RELSCOPE_DATA).
bootstrap-transformers: Tables 2 and 6 of the third, heads stitched through anchors that were found from 15
pairs. See measure_trained.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np
import pandas as pd
from measure_trained import Row, main

from relcore.base.access import data_folder
from relcore.base.rows import mean_row
from relcore.catalog.encodings import encode
from relcore.encoders.dataset import Dataset
from relcore.encoders.onnx_texts import OnnxText
from relcore.encoders.transformers import MiniLM
from relcore.linking.link import BootstrapSpec, held_out_split
from relcore.represent.heads import fit_heads
from relcore.represent.representations import FittedSpace, MethodSettings, representation
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split
from relcore.stitch.stitching import StitchSpec, stitch_matrix
from relcore.studies.data import dataset_of

MODELS = {"MiniLM L6": MiniLM(), "paraphrase L3": OnnxText()}
SCORES = {"accuracy": "accuracy", "f1": "weighted F1"}
STITCHED = {
    "absolute": "absolute",
    "relative": "relative",
    "whitened": "relative, whitened (ours)",
    "irp-pruned": "inverse, pruned",
    "irp-ridge": "inverse, ridge (ours)",
    "irp-whitened": "inverse, whitened (ours)",
    "procrustes": "Procrustes",
}


def spaces_of(data: str, store: Store) -> tuple[dict[str, LatentSpace], tuple[str, ...]]:
    """Model → its space with labels, and the ids of the test rows, if the data have a test part."""
    dataset = dataset_of("sentences")
    tested = ()
    if data == "trec":
        parts = [pd.read_parquet(data_folder() / "trec" / f"{name}.parquet") for name in ("train", "test")]
        texts, labels = (
            list(pd.concat([part[name] for part in parts]).astype(str)) for name in ("text", "coarse_label")
        )
        ids = [str(row) for row in range(len(texts))]
        tested = tuple(ids[len(parts[0]) :])
        dataset = Dataset(
            lambda start, stop: texts[start:stop], ids, name="TREC", kind="texts", labels=labels
        )
    made = {}
    for name, encoder in MODELS.items():
        (space,) = encode(dataset, encoder, store)
        made[name] = space.with_columns(name=name)
    return made, tested


def stitched(settings: Row, state: int, store: Store) -> Iterator[Row]:
    """Accuracy and weighted F1 of a model's heads on rows of the other model and on its own rows."""
    spaces, tested = spaces_of(settings["data"], store)
    inverse = MethodSettings(omega=settings["omega"], delta=settings["delta"])
    spec = StitchSpec(
        tuple(STITCHED),
        settings["head"],
        (state,),
        settings["n_anchors"],
        test_ids=tested,
        settings=inverse,
    )
    result = stitch_matrix(list(spaces.values()), spec)
    own = np.eye(len(spaces), dtype=bool)
    for method, title in STITCHED.items():
        for metric, name in SCORES.items():
            scores = result.by_state(method, metric)[0]
            facts = {"n": result.n_test, "group": "mean"}
            for told, cells in (("not stitched", own), ("stitched", ~own)):
                row = {"label": title, "metric": f"{told}: {name}", "value": scores[cells].mean()}
                yield {**row, "baseline": result.chance(metric), **facts}


FOUND = {"paper": "AO (as published)", "self-learning": "self-learning (ours)"}
FORMS = {"relative": "relative", "whitened": "whitened (ours)"}


def through_found_anchors(settings: Row, state: int, store: Store) -> Iterator[Row]:
    """The share of the hidden anchors found, and the accuracy of a head on rows relative to the true anchors
    (GT), to the 15 known ones (Seed) and to those found, in both directions."""
    spaces, _ = spaces_of("sentences", store)
    for own, other in permutations(spaces):
        decoder = spaces[own]
        encoder = spaces[other]
        label = f"sentences, decoder {own}, encoder {other}"
        classes = sorted(set(decoder.labels))
        targets = np.searchsorted(classes, decoder.labels)
        for method, title in FOUND.items():
            sizes = {name: settings[name] for name in ("n_anchors", "n_seeds", "steps", "learning_rate")}
            outcome = BootstrapSpec(method, **sizes, random_state=state).run((encoder, decoder))
            anchors = outcome.result.anchors
            share = outcome.share
            yield {"label": f"{label}, {title}", "metric": "share of the hidden found", "value": share}
            apart = held_out_split(encoder, decoder, outcome.result)
            split = Split.draw(apart.ids, anchors=apart.anchors, random_state=state)
            known, test = (encoder.rows(split.ids[rows]) for rows in (split.known, split.test))
            sets = {title: anchors}
            if method == "paper":
                truth = tuple((one, one) for one, _ in anchors)
                sets |= {"GT": truth, "Seed": anchors[: outcome.result.n_seeds]}
            for name, pairs in sets.items():
                sides = [
                    FittedSpace(X[known], X[space.rows(ids)], mean_row(X[known]))
                    for space, ids in zip((encoder, decoder), zip(*pairs, strict=True), strict=True)
                    for X in [space.vectors]
                ]
                for form, told in FORMS.items():
                    reads, trains = (representation(form, side, MethodSettings()) for side in sides)
                    (head,) = fit_heads(
                        [trains(decoder.vectors[known])], [targets[known]], len(classes), "logistic", state
                    )
                    answers = head.probabilities(reads(encoder.vectors[test])).argmax(axis=1)
                    row = {"label": f"{label}, {name}", "metric": f"{told}: accuracy", "n": len(test)}
                    chance = float(np.mean(targets[test] == np.bincount(targets[known]).argmax()))
                    yield {**row, "value": float(np.mean(answers == targets[test])), "baseline": chance}


if __name__ == "__main__":
    measures = dict.fromkeys(("stitch-transformers", "stitch-transformers-trec"), stitched)
    main(measures | {"bootstrap-transformers": through_found_anchors}, __doc__)
