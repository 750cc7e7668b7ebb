"""The digits, from training four encoders to the stitched matrix: what the methods are expected to reach."""

import pytest

from relcore.base.names import METHODS
from relcore.catalog.catalog import encode
from relcore.encoders.encoder import DatasetSpec
from relcore.encoders.vision import SmallVision, held_out_rows
from relcore.represent.translation import MethodSettings
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace
from relcore.stitch.stitching import StitchSpec, stitch_matrix


def digits(store: Store) -> tuple[list[LatentSpace], StitchSpec]:
    """Four architectures; tested on the fifth of the rows that none of them was trained on."""
    spaces = [
        encode(DatasetSpec("digits"), SmallVision(name), store)[0]
        for name in ("mlp", "cnn", "residual", "vit")
    ]
    test_ids = tuple(spaces[0].ids[held_out_rows(len(spaces[0]))])
    settings = MethodSettings(omega=8, delta=0.65)
    return spaces, StitchSpec(
        tuple(METHODS), n_anchors=128, test_ids=test_ids, random_states=(0, 1, 2), settings=settings
    )


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    return digits(Store(tmp_path_factory.mktemp("store")))


@pytest.mark.slow
def test_four_encoders_of_digits(task):
    table = stitch_matrix(*task).summary().query("metric == 'accuracy'").set_index("method")
    stitched = table["stitched"]
    assert table["own"].min() > 0.96
    assert stitched["relative"] >= 0.94
    assert stitched["relative, whitened"] >= stitched["relative"] - 0.01
    assert stitched["absolute"] <= 0.30
    assert stitched["Procrustes"] >= 0.95
    assert stitched["inverse, pruned"] >= 0.94
