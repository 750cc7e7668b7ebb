"""Large files are read where they lie: the same space as in memory, whatever the format, and nothing is
read twice.
"""

import os
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from safetensors.numpy import save_file

from relcore import load_space
from relcore.base.errors import SpaceError
from relcore.base.mapped_rows import MappedRows
from relcore.runs.store import Store
from relcore.spaces.matching import match

N = 700
D = 6
X = np.random.default_rng(0).standard_normal((N, D)).astype(np.float16)
IDS = [f"word {row}" for row in range(N)]
LONG_AGO = 1_600_000_000


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def lists(rows, kind="fixed"):
    values = pa.array(rows.ravel())
    if kind == "fixed":
        return pa.FixedSizeListArray.from_arrays(values, rows.shape[1])
    offsets = np.arange(0, rows.size + 1, rows.shape[1], dtype=np.int32 if kind == "list" else np.int64)
    return {"list": pa.ListArray, "large": pa.LargeListArray}[kind].from_arrays(pa.array(offsets), values)


def arrow(path, rows, kind="fixed", batch=300, ids=IDS, form="file"):
    table = pa.table(
        {"vector": lists(rows, kind), "word": pa.array(ids), "label": pa.array(["a", "b"] * (N // 2))}
    )
    if form == "file":
        write = pa.ipc.new_file
    else:
        write = pa.ipc.new_stream
    with pa.OSFile(str(path), "wb") as sink, write(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=batch)


def bfloat16(path, rows):
    import torch
    from safetensors.torch import save_file as save

    save({"vectors": torch.from_numpy(rows.astype(np.float32)).to(torch.bfloat16)}, path)


WRITERS = {
    "half.npy": lambda path: np.save(path, X),
    "single.npy": lambda path: np.save(path, X.astype(np.float32)),
    "half.safetensors": lambda path: save_file({"vectors": X, "counts": np.arange(N)}, path),
    "single.safetensors": lambda path: save_file(
        {"vectors": X.astype(np.float32), "ids": np.frombuffer("\n".join(IDS).encode(), np.uint8)}, path
    ),
    "bfloat.safetensors": lambda path: bfloat16(path, X),
    "half.arrow": lambda path: arrow(path, X),
    "double.arrow": lambda path: arrow(path, X.astype(np.float64), "large", form="stream"),
    "lists.arrow": lambda path: arrow(path, X.astype(np.float32), "list"),
    "half.parquet": lambda path: parquet.write_table(
        pa.table({"vector": lists(X), "word": IDS}), path, row_group_size=256
    ),
    "columns.parquet": lambda path: parquet.write_table(
        pa.table({f"x{j}": X[:, j].astype(np.float32) for j in range(D)}), path
    ),
}


def written(folder, name):
    path = folder / name
    WRITERS[name](path)
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def on_disk(path, store, **choices):
    return load_space(path, map_from=1, store=store, **choices)


def is_map(space):
    base = space.vectors
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    return isinstance(space.vectors, MappedRows) or not isinstance(base, np.ndarray)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("limit", [301])
def test_a_file_on_disk_is_the_space_in_memory(tmp_path, store, name, limit):
    path = written(tmp_path, name)
    held = load_space(path, limit=limit)
    for _ in range(2):  # first time, and from what is known
        found = on_disk(path, store, limit=limit)
        assert is_map(found)
        assert not is_map(held)
        assert found.digest == held.digest
        assert found.ids.tolist() == held.ids.tolist()
        np.testing.assert_array_equal(np.asarray(found.vectors), held.vectors)
        np.testing.assert_array_equal(found.norms, held.norms)
        np.testing.assert_array_equal(found.vectors[[5, 0, 300]], held.vectors[[5, 0, 300]])


@pytest.mark.parametrize("name", ["single.npy", "half.safetensors", "lists.arrow", "half.parquet"])
def test_the_second_time_no_value_is_looked_at(tmp_path, store, name):
    path = written(tmp_path, name)
    digest = on_disk(path, store).digest
    with (
        patch.object(MappedRows, "blocks", side_effect=AssertionError("a look at the values")),
        patch("relcore.files.table_formats.vectors_of", side_effect=AssertionError("decoded again")),
    ):
        again = on_disk(path, store)
        assert again.digest == digest
        pair = match(again, on_disk(path, store).with_columns(name="other"))
    assert len(pair) == N
    assert len(pair.source.norms) == N


@pytest.mark.parametrize("name", ["half.npy", "lists.arrow"])
def test_file_that_changes_is_refused_when_it_is_used_again(tmp_path, store, name):
    path = written(tmp_path, name)
    space = on_disk(path, store)
    other = on_disk(path, store).digest
    os.utime(path, (LONG_AGO + 5, LONG_AGO + 5))
    for use in (lambda: space.vectors, lambda: space.take([1]), lambda: space.digest):
        with pytest.raises(
            SpaceError, match=f"{name}: expected a file that stays as it was .* load it again"
        ):
            use()
    assert on_disk(path, store).digest == other  # its content is the same


@pytest.mark.parametrize("name", ["half.npy", "lists.arrow"])
def test_file_that_shrinks_is_refused_before_it_is_read(tmp_path, store, name):
    path = written(tmp_path, name)
    space = on_disk(path, store)
    rows = space.vectors
    os.truncate(path, 100)
    for use in (lambda: space.vectors, lambda: rows[:5], lambda: rows[[1]]):
        with pytest.raises(SpaceError, match="changed since"):
            use()


def parts(folder, write, names):
    folder.mkdir()
    for place, name in enumerate(names):
        write(folder / name, X[100 * place : 100 * place + 100])
        os.utime(folder / name, (LONG_AGO, LONG_AGO))
    return folder


def arrow_part(path, rows):
    table = pa.table({"vector": lists(rows)})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=30)


def parquet_part(path, rows):
    parquet.write_table(pa.table({"vector": lists(rows)}), path)


@pytest.mark.parametrize(("suffix", "write"), [("arrow", arrow_part), ("parquet", parquet_part)])
@pytest.mark.parametrize("limit", [None, 150])
def test_the_parts_of_a_folder_stay_on_disk(tmp_path, store, suffix, write, limit):
    folder = parts(tmp_path / "made", write, [f"data-{place:05}-of-00003.{suffix}" for place in range(3)])
    held = load_space(folder, limit=limit)
    digest = on_disk(folder, store, limit=limit).digest
    with patch.object(MappedRows, "blocks", side_effect=AssertionError("a look at the values")):
        found = on_disk(folder, store, limit=limit)
        assert is_map(found)
        assert found.digest == digest == held.digest
    np.testing.assert_array_equal(np.asarray(found.vectors), held.vectors)
    np.testing.assert_array_equal(found.norms, held.norms)
    os.utime(folder / f"data-00001-of-00003.{suffix}", (LONG_AGO + 9, LONG_AGO + 9))
    if suffix == "arrow":
        with pytest.raises(
            SpaceError, match=r"data-00001-of-00003\.arrow: expected a file that stays as it was"
        ):
            _ = found.vectors
