import numpy as np
import pytest

from relcore import load_space
from relcore.represent.projection import RelativeProjection
from relcore.represent.strategies import select_anchors

pytestmark = pytest.mark.usefixtures("own_store")


def test_the_file_is_the_relative_space(run, files, tmp_path):
    out = run("project first.npz --anchors 7 --strategy farthest-point --random-state 3 -o relative.npz")
    space = load_space("first.npz")
    anchors = select_anchors(space, 7, "farthest-point", random_state=3)
    expected = RelativeProjection().fit(space.vectors, anchors=space.rows(anchors)).transform(space.vectors)
    written = load_space(tmp_path / "relative.npz")
    assert np.array_equal(written.vectors, expected)
    assert (written.ids.tolist(), written.labels.tolist()) == (space.ids.tolist(), space.labels.tolist())
    assert out == "151 rows × 7 anchors, cosine, centred.\nrelative.npz\n"
