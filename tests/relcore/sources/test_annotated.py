"""AnnData files: the matrix that is chosen, dense or sparse, with ids and labels from obs; a crash is an
error.
"""

import h5py
import numpy as np
import pytest
from scipy.sparse import csc_matrix, csr_matrix

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import available, load
from relcore.files.reading import load_space, shape_of
from tests.relcore.sources.h5ad import CELLS, COUNTS, TYPES, VECTORS, encoded, write


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
    with pytest.raises(
        SpaceError,
        match=r"expected one matrix 'X_tsne', got .*X_pca.*; choose one",
    ):
        load_space(path, matrix="X_tsne")
    with pytest.raises(SpaceError, match=r"x\.h5ad: .*'kind'"):
        load_space(path, label_column="kind")


def test_what_is_read_where_nothing_is_chosen(tmp_path):
    assert load_space(write(tmp_path / "one.h5ad", obsm={"X_scVI": VECTORS[:, :2]})).dimension == 2
    assert load_space(write(tmp_path / "none.h5ad", obsm={})).dimension == COUNTS.shape[1]
    two = write(tmp_path / "two.h5ad", obsm={"a": VECTORS, "b": VECTORS})
    with pytest.raises(SpaceError, match="expected one matrix, got 'X', 'obsm/a', 'obsm/b', 'layers/counts'"):
        load_space(two)
    assert shape_of(two) is None


def test_the_catalogue_lists_each_matrix(tmp_path):
    write(tmp_path / "x.h5ad")
    found = {entry.name: entry for entry in available(tmp_path) if entry.kind == "file"}
    assert {name: (one.n, one.dimension) for name, one in found.items()} == {
        "x.h5ad#matrix=X": (20, 6),
        "x.h5ad#matrix=obsm/X_pca": (20, 3),
        "x.h5ad#matrix=obsm/X_umap": (20, 2),
        "x.h5ad#matrix=layers/counts": (20, 6),
    }
    assert load(found["x.h5ad#matrix=obsm/X_umap"].spec).dimension == 2


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


def test_sizes_are_checked_before_memory(tmp_path):
    def huge(file):
        del file["obsm/X_pca"]
        file["obsm"].create_dataset("X_pca", (3 * 10**6, 1000), "<f4", chunks=(1000, 1000))

    path = write(tmp_path / "x.h5ad", change=huge)
    assert path.stat().st_size < 10**6
    with pytest.raises(SpaceError, match="3,000,000 × 1,000 values take 12 GB, more than max_bytes"):
        load_space(path, max_bytes=8 << 30)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data["X/indices"].__setitem__(0, 99), ""),
        (lambda data: data["X/indptr"].__setitem__(3, 10**6), ""),
        (lambda data: data["X"].attrs.__setitem__("shape", [19, 6]), ""),
        (lambda data: data["obs/cell_type/codes"].__setitem__(0, 7), "codes of no category"),
    ],
)
def test_parts_that_do_not_fit(tmp_path, change, message):
    path = write(tmp_path / "x.h5ad", x=csr_matrix(COUNTS), change=change)
    with pytest.raises(SpaceError, match=rf"x\.h5ad: .*{message}"):
        load_space(path, matrix="X")


def test_another_hdf5_file(tmp_path):
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        encoded(file.create_group("weights"), "dict")
    with pytest.raises(SpaceError, match=r"x\.h5ad: expected one matrix, got none"):
        load_space(tmp_path / "x.h5ad")
