"""AnnData files: the matrix that is chosen, dense or sparse, with ids and labels from obs; a crash is an
error.
"""

import h5py
import numpy as np
import pytest
from scipy.sparse import csc_matrix, csr_matrix

from relcore.base.errors import SpaceError
from relcore.files.reading import load_space, shape_of
from tests.relcore.files.h5ad import CELLS, COUNTS, TYPES, VECTORS, write


@pytest.mark.parametrize("limit", [None, 6])
def test_the_usual_matrix_names_and_cell_types(tmp_path, limit):
    path = write(tmp_path / "x.h5ad")
    assert shape_of(path) == (20, 3)
    space = load_space(path, limit=limit)
    np.testing.assert_array_equal(space.vectors, VECTORS[:limit])
    assert (list(space.ids), list(space.labels)) == (CELLS[:limit], TYPES[:limit])


@pytest.mark.parametrize(
    "x", [COUNTS, csr_matrix(COUNTS), csc_matrix(COUNTS), COUNTS.astype(np.int64)], ids=str
)
@pytest.mark.parametrize("limit", [None, 6])
def test_x_dense_and_sparse(tmp_path, x, limit):
    space = load_space(write(tmp_path / "x.h5ad", x=x), matrix="X", limit=limit)
    np.testing.assert_array_equal(space.vectors, COUNTS[:limit])


def test_a_matrix_and_columns_are_chosen(tmp_path):
    path = write(tmp_path / "x.h5ad")
    np.testing.assert_array_equal(load_space(path, matrix="X_umap").vectors, VECTORS[:, :2])
    np.testing.assert_array_equal(load_space(path, matrix="layers/counts").vectors, COUNTS)
    space = load_space(path, id_column="reads", label_column="batch", count_column="reads")
    assert list(space.ids) == [str(10 * row) for row in range(20)]
    assert set(space.labels) == {"batch 0", "batch 1"}
    assert list(space.counts) == [10 * row for row in range(20)]
    with pytest.raises(SpaceError, match=r"expected one matrix 'X_tsne', got .*X_pca.*; choose one"):
        load_space(path, matrix="X_tsne")
    with pytest.raises(SpaceError, match=r"x\.h5ad: .*'kind'"):
        load_space(path, label_column="kind")


def test_nothing_outside_the_file_is_read(tmp_path):
    secret = tmp_path / "secret.bin"
    secret.write_bytes(VECTORS.tobytes())

    def external(file):
        del file["obsm/X_pca"]
        file["obsm"].create_dataset("X_pca", (20, 3), "<f4", external=[(str(secret), 0, 240)])

    def linked(file):
        del file["obsm/X_pca"]
        file["obsm/X_pca"] = h5py.ExternalLink(str(tmp_path / "other.h5ad"), "/obsm/X_pca")

    def virtual(file):
        del file["obsm/X_pca"]
        layout = h5py.VirtualLayout((20, 3), "<f4")
        layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5ad"), "/obsm/X_pca", (20, 3))
        file["obsm"].create_virtual_dataset("X_pca", layout)

    write(tmp_path / "other.h5ad")
    for change in (external, linked, virtual):
        path = write(tmp_path / "x.h5ad", change=change)
        with pytest.raises(SpaceError, match=r"x\.h5ad: expected .* data in"):
            load_space(path)
