"""Studies: a grid of runs that answers one question of the papers, each run kept in the store as soon as it is done."""

from __future__ import annotations

from importlib import import_module

from relcore.spaces import need_one_of
from relcore.studies.study import Study

STUDIES: dict[str, str] = {
    "similarity-performance": "relcore.studies.similarity_performance:SimilarityPerformance",
    "anchor-count": "relcore.studies.anchor_count:AnchorCount",
    "trained-count": "relcore.studies.trained_count:TrainedCount",
    "anchor-choice": "relcore.studies.anchor_choice:AnchorChoice",
    "training": "relcore.studies.training:TrainingRelative",
    "quasi-isometry": "relcore.studies.quasi_isometry:QuasiIsometry",
    "inversion-sensitivity": "relcore.studies.inversion_sensitivity:InversionSensitivity",
    "robustness": "relcore.studies.robustness:Robustness",
    "quantisation": "relcore.studies.quantisation:Quantisation",
    "isometry": "relcore.studies.isometry:Isometry",
    "anchor-dimension": "relcore.studies.anchor_dimension:AnchorDimension",
    "seed-count": "relcore.studies.seed_count:SeedCount",
    "common-mean": "relcore.studies.common_mean:CommonMean",
}


def study_of(kind: str) -> Study:
    """The study of this name.

    Raises
    ------
    SpaceError
        There is none.
    """
    need_one_of("study", kind, STUDIES)
    module, _, name = STUDIES[kind].partition(":")
    return getattr(import_module(module), name)()
