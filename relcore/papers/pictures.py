"""Autoencoders: decoders applied to other runs' codes."""

from __future__ import annotations

from relcore.papers.codes import within
from relcore.papers.local import picture_spec
from relcore.papers.ours import Number
from relcore.papers.runs import Measured, Settings
from relcore.papers.summaries import rounded
from relcore.progress import Report
from relcore.reconstructing.autoencoders import REPRESENTATIONS, AutoencoderSpec
from relcore.reconstructing.job import ReconstructionSpec, collect
from relcore.store import Store

_ERROR = "MSE × 10³"


def autoencoders(settings: Settings, store: Store, report: Report) -> Measured:
    """Table 3: error of each run's own pairs and of all pairs across runs, by representation."""
    pictures = picture_spec(settings.get("data", "digits"), image_size=settings.get("image_size"))
    found = {}
    for done, representation in enumerate(REPRESENTATIONS):
        model = AutoencoderSpec(representation, settings["variational"], settings["width"], epochs=settings["epochs"])
        spec = ReconstructionSpec(pictures, model, tuple(settings["random_states"]), settings["n_anchors"])
        found[spec] = spec.stored(store, within(report, done, len(REPRESENTATIONS), model.title))
    numbers = []
    for line in collect(found).table().to_dict("records"):
        facts = {
            "unit": _ERROR,
            "n": line["pictures"],
            "baseline": rounded(line["mean_picture"]),
            "baseline_is": "mean picture",
        }
        for pair, metric, repeats in (("own", "not stitched", "runs"), ("stitched", "stitched", "pairs")):
            deviation = rounded(line[f"{pair}_deviation"])
            label = line["model"] + (" (ours)" if "whitened" in line["model"] else "")
            numbers.append(Number(label, metric, rounded(line[pair]), deviation, repeats=line[repeats], **facts))
    return Measured(tuple(numbers))
