"""Folders of shards for tests."""

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet

from relcore.spaces.space import LatentSpace

X = np.random.default_rng(3).normal(size=(100, 6)).astype(np.float32)


def parts(n, sizes):
    stops = np.cumsum(sizes)
    assert stops[-1] == n
    return [slice(stop - size, stop) for size, stop in zip(sizes, stops, strict=True)]


def write_npy(folder, vectors, sizes, ids=None, labels=None):
    folder.mkdir(exist_ok=True, parents=True)
    for number, part in enumerate(parts(len(vectors), sizes)):
        np.save(folder / f"part-{number:05}.npy", vectors[part])
        for what, column in (("ids", ids), ("labels", labels)):
            if column is not None:
                (folder / f"part-{number:05}.{what}.txt").write_text("\n".join(column[part]) + "\n")
    return folder


def tables(vectors, sizes, ids, labels):
    for part in parts(len(vectors), sizes):
        columns = {"id": ids, "label": labels}
        columns = {name: pa.array(column[part]) for name, column in columns.items() if column is not None}
        values = pa.FixedSizeListArray.from_arrays(pa.array(vectors[part].ravel()), vectors.shape[1])
        yield pa.table({**columns, "embedding": values})


def write_parquet(folder, vectors, sizes, ids=None, labels=None):
    folder.mkdir(exist_ok=True, parents=True)
    for number, table in enumerate(tables(vectors, sizes, ids, labels)):
        parquet.write_table(table, folder / f"part-{number:05}.parquet")
    return folder


def write_feather(folder, vectors, sizes, ids=None, labels=None):
    folder.mkdir(exist_ok=True, parents=True)
    for number, table in enumerate(tables(vectors, sizes, ids, labels)):
        feather.write_feather(table, folder / f"part-{number:05}.feather", compression="uncompressed")
    return folder


def write_arrow(folder, vectors, sizes, ids=None, labels=None):
    folder.mkdir(exist_ok=True, parents=True)
    for number, table in enumerate(tables(vectors, sizes, ids, labels)):
        with (
            pa.OSFile(str(folder / f"part-{number:05}.arrow"), "wb") as sink,
            pa.ipc.new_stream(sink, table.schema) as stream,
        ):
            stream.write_table(table)
    return folder


def whole(space):
    """All rows of a sharded space as a space in memory."""
    blocks = [(shard, block) for shard in space.shards for block in shard.blocks(labels=True)]
    ids = np.concatenate([shard.ids_of(block) for shard, block in blocks])
    labels = [label for _, block in blocks for label in block.labels or ()]
    vectors = np.concatenate([block.vectors for _, block in blocks])
    return LatentSpace(vectors, ids, name=space.name, labels=labels or None)
