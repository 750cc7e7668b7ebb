"""AnnData files for tests, written by h5py in the layout of anndata 0.7 and later, which needs an older
pandas than ours.
"""

import h5py
import numpy as np
from scipy.sparse import csc_matrix, csr_matrix

VECTORS = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
COUNTS = np.random.default_rng(1).poisson(0.4, size=(20, 6)).astype(np.float32)
CELLS = [f"cell-{row}" for row in range(20)]
TYPES = ["B", "T", "NK", ""] * 5


def encoded(node, kind, version="0.2.0", **more):
    node.attrs.update({"encoding-type": kind, "encoding-version": version} | more)
    return node


def texts(group, name, values):
    encoded(
        group.create_dataset(name, data=np.array(values, dtype=object), dtype=h5py.string_dtype()),
        "string-array",
    )


def sparse(group, name, matrix):
    node = encoded(group.create_group(name), f"{matrix.format}_matrix", "0.1.0", shape=np.array(matrix.shape))
    for part in ("data", "indices", "indptr"):
        node.create_dataset(
            part, data=getattr(matrix, part), compression="gzip" if part != "indptr" else None
        )


def write(path, *, obsm=None, x=COUNTS, cells=CELLS, change=None):
    """obsm: name → matrix, by default X_pca and X_umap; `change(file)` then alters the open file."""
    with h5py.File(path, "w") as file:
        encoded(file, "anndata", "0.1.0")
        if isinstance(x, csr_matrix | csc_matrix):
            sparse(file, "X", x)
        elif x is not None:
            encoded(file.create_dataset("X", data=x, chunks=(7, 2), compression="lzf"), "array")
        obs = encoded(
            file.create_group("obs"),
            "dataframe",
            _index="_index",
            **{"column-order": ["cell_type", "batch", "reads"]},
        )
        texts(obs, "_index", cells)
        kind = encoded(obs.create_group("cell_type"), "categorical", ordered=False)
        texts(kind, "categories", ["B", "NK", "T"])
        kind.create_dataset(
            "codes", data=np.array([{"B": 0, "NK": 1, "T": 2, "": -1}[one] for one in TYPES], np.int8)
        )
        texts(obs, "batch", [f"batch {row % 2}" for row in range(20)])
        obs.create_dataset("reads", data=np.arange(20) * 10)
        matrices = {"X_pca": VECTORS, "X_umap": VECTORS[:, :2]} if obsm is None else obsm
        group = encoded(file.create_group("obsm"), "dict", "0.1.0")
        for name, matrix in matrices.items():
            group.create_dataset(name, data=matrix)
        encoded(file.create_group("layers"), "dict", "0.1.0")
        sparse(file["layers"], "counts", csr_matrix(COUNTS))
        if change:
            change(file)
    return path
