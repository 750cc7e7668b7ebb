"""csv, tsv and parquet: what is a dimension, what an id, and the line at which a table goes wrong."""

import numpy as np
import pandas as pd
import pytest

from relcore.base.errors import SpaceError
from relcore.files import tables
from relcore.files.reading import load_space


def write(frame, path, index=False):
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=index)
    else:
        frame.to_csv(path, index=index, sep="\t" if path.suffix == ".tsv" else ",")
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_usual_names_are_known_and_options_override_them(tmp_path, suffix):
    frame = pd.DataFrame(
        {"x": [1.0, 2], "ID": [7, 8], "y": [3.0, 4], "label": [0, 1], "count": [9, 5], "other": ["m", "n"]}
    )
    path = write(frame, tmp_path / f"t{suffix}")
    space = load_space(path)
    assert (list(space.ids), list(space.labels), list(space.counts)) == (["7", "8"], ["0", "1"], [9, 5])
    np.testing.assert_array_equal(space.vectors, [[1, 3], [2, 4]])
    other = load_space(path, id_column="other", ignore=["ID", "count"], count_column="y")
    assert (list(other.ids), other.dimension, list(other.counts)) == (["m", "n"], 1, [3, 4])
    with pytest.raises(
        SpaceError,
        match="column 'ID': expected a dimension, got numbers that may be none, judged by the name",
    ):
        load_space(path, id_column="other")
    with pytest.raises(SpaceError, match=r"id_column expects one of 'x', 'ID'.*got 'nope'"):
        load_space(path, id_column="nope")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_batches_join_without_a_seam_and_stop_at_the_limit(tmp_path, suffix, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK_BYTES", 2_000)
    monkeypatch.setattr(tables, "_BATCH_ROWS", 70)
    frame = pd.DataFrame(
        {"w": [f"w{i}" for i in range(1_000)], "x": np.arange(1_000.0), "y": -np.arange(1_000.0)}
    )
    path = write(frame, tmp_path / f"t{suffix}")
    for limit in (None, 69, 70, 71, 500):
        space = load_space(path, limit=limit)
        np.testing.assert_array_equal(space.vectors[:, 1], -np.arange(limit or 1_000))
        assert space.ids[-1] == f"w{len(space) - 1}"
    with pytest.raises(SpaceError, match="more than max_bytes = 4 kB"):
        load_space(path, max_bytes=4_000)
