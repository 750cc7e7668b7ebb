"""project: what is written is a space again, the one that the projection gives, in every format."""

import numpy as np
import pytest

from relcore.files.reading import load_space, write_space
from relcore.represent.similarity import RelativeProjection, select_anchors
from relcore.spaces.space import LatentSpace


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".parquet"])
def test_ids_of_any_length_survive_in_little_space(tmp_path, suffix):
    ids = ["a\0", "a", "\ufeffb", "ü" * 20_000, *map(str, range(1000))]
    space = LatentSpace(np.ones((len(ids), 2)), ids, name="odd", labels=[*ids[:5], *[""] * (len(ids) - 5)])
    write_space(space, tmp_path / f"odd{suffix}")
    assert (tmp_path / f"odd{suffix}").stat().st_size < 150_000
    assert load_space(tmp_path / f"odd{suffix}").digest == space.digest


def test_the_file_is_the_relative_space(run, files, tmp_path):
    out = run("project first.npz --anchors 7 --strategy farthest-point --random-state 3 -o relative.npz")
    space = load_space("first.npz")
    anchors = select_anchors(space, 7, "farthest-point", random_state=3)
    expected = RelativeProjection().fit(space.vectors, anchors=space.rows(anchors)).transform(space.vectors)
    written = load_space(tmp_path / "relative.npz")
    assert np.array_equal(written.vectors, expected)
    assert (written.ids.tolist(), written.labels.tolist()) == (space.ids.tolist(), space.labels.tolist())
    assert out == "151 rows × 7 anchors, cosine, centred.\nrelative.npz\n"
