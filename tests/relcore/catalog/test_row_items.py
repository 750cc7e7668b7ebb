"""Texts and pictures of vectors that come from files: of their own table, of metadata, or ids that row
order replaced.
"""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from PIL import Image

from relcore.catalog.catalog import SpaceSpec, load
from relcore.catalog.row_tables import row_items


@pytest.fixture
def folder(tmp_path):
    vectors = np.eye(4)
    vectors[1] = np.nan
    np.save(tmp_path / "holes.npy", vectors)
    np.save(tmp_path / "a.npy", np.eye(4))
    for row in range(4):
        Image.new("L", (8, 8), 10 * row).save(tmp_path / f"{row}.png")
    lines = "".join(f"d{row},text {row},{row}.png\n" for row in range(4))
    (tmp_path / "meta.csv").write_text(f"id,text,file\n{lines}")
    return tmp_path


def items(path, **options):
    spec = SpaceSpec("file", str(path), options=tuple(options.items()))
    return {dataset.kind: dataset for dataset in row_items(spec, load(spec))}


def test_texts_and_pictures_of_metadata(folder):
    found = items(folder / "a.npy", metadata=str(folder / "meta.csv"))
    assert found["texts"].ids.tolist() == ["d0", "d1", "d2", "d3"]
    assert found["texts"].items(1, 3) == ["text 1", "text 2"]
    assert found["images"].item(3).getpixel((0, 0)) == 30


@pytest.mark.filterwarnings("ignore:holes")
def test_rows_that_are_left_out_shift_nothing(folder):
    found = items(folder / "holes.npy", metadata=str(folder / "meta.csv"), invalid="drop")["texts"]
    assert dict(zip(found.ids, found.items(0, 3), strict=True))["d2"] == "text 2"
    found = items(folder / "holes.npy", metadata=str(folder / "meta.csv"), invalid="drop", ids="rows")[
        "texts"
    ]
    assert dict(zip(found.ids, found.items(0, 3), strict=True))["2"] == "text 2"


def test_a_table_of_vectors_has_texts_of_its_own(folder):
    table = pa.table(
        {
            "id": list("wxyz"),
            "text": ["a b", "c d", None, "g h"],
            "more": [*"abcd"],
            "vector": np.eye(4).tolist(),
        }
    )
    parquet.write_table(table, folder / "own.parquet")
    assert items(folder / "own.parquet")["texts"].items(1, 3) == ["c d", ""]
    assert items(folder / "own.parquet", text_column="more")["texts"].items(0, 2) == ["a", "b"]
