"""Vectors in one file, their ids, labels, counts and texts in another: what belongs together, and what
each column is.
"""

import warnings

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.feather as feather
import pyarrow.parquet as parquet
import pytest

from relcore import load_space
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, load
from relcore.catalog.row_tables import TableColumns, row_items, with_their_tables
from relcore.files.columns import Choices
from relcore.files.item_rows import metadata_columns
from relcore.files.saving import save_space
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace
from tests.lazily import Lazily

torch = Lazily("torch")

N = 40
META = "doc_id,topic,body,freq,year\n" + "".join(
    f"d{row},{'pq'[row % 2]},a longer sentence that is about number {row},{row + 1},{1990 + row % 7}\n"
    for row in range(N)
)


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(N, 3)))
    (tmp_path / "meta.csv").write_text(META)
    vectors = np.random.default_rng(1).normal(size=(N, 5))
    names = [f"d{row}" for row in reversed(range(N))]
    parquet.write_table(pa.table({"id": names, "vector": vectors.tolist()}), tmp_path / "b.parquet")
    return tmp_path


def file(path, **options):
    return SpaceSpec("file", str(path), options=tuple(options.items()))


def roles(path, **choices):
    return {column.name: column.role for column in metadata_columns(path, Choices(**choices)).columns}


def test_roles_are_guessed_by_names_and_cells(folder):
    assert roles(folder / "meta.csv") == {
        "doc_id": "ids",
        "topic": "labels",
        "body": "text",
        "freq": "counts",
        "year": "left out",
    }
    (folder / "pictures.csv").write_text(
        "file,kind,n\n" + "".join(f"{row}.png,{'xyz'[row % 3]},{row}\n" for row in range(9))
    )
    assert roles(folder / "pictures.csv") == {"file": "pictures", "kind": "labels", "n": "left out"}


def test_matrix_takes_ids_labels_and_counts_from_its_table_and_pairs_by_them(folder):
    first = load(file(folder / "a.npy", metadata=str(folder / "meta.csv")))
    assert first.ids[:2].tolist() == ["d0", "d1"]
    assert first.labels[:3].tolist() == ["p", "q", "p"]
    assert first.counts[:2].tolist() == [1, 2]
    pair = match(first, load(file(folder / "b.parquet")))
    assert len(pair) == N
    assert pair.target.vectors[0].tolist() == load(file(folder / "b.parquet")).vectors[-1].tolist()
    plain = load(file(folder / "a.npy"))
    assert plain.digest != first.digest  # a recipe notices other metadata
    assert plain.vectors.tolist() == first.vectors.tolist()


def named_files(folder):
    """The vectors of a.npy in every format that keeps ids of its own: d0, d1, …"""
    vectors = np.load(folder / "a.npy").astype(np.float32)
    ids = [f"d{row}" for row in range(N)]
    space = LatentSpace(vectors, ids)
    for suffix in (".npz", ".safetensors", ".parquet"):
        save_space(space, folder / f"own{suffix}")
    cells = pa.table({"id": ids, **{f"x{at}": vectors[:, at] for at in range(3)}})
    feather.write_feather(cells, folder / "own.arrow", compression="uncompressed")
    csv.write_csv(cells, folder / "own.csv")
    torch.save({"vectors": torch.from_numpy(vectors), "ids": ids}, folder / "own.pt")
    np.save(folder / "own.npy", vectors)
    (folder / "own.ids.txt").write_text("\n".join(ids))
    return [path for path in sorted(folder.glob("own.*")) if path.suffix != ".txt"]


def test_a_table_in_any_order_is_joined_by_id(folder):
    head, *lines = META.splitlines()
    more = [*reversed(lines), "z9,p,a longer sentence about another thing,7,1990"]
    (folder / "turned.csv").write_text("\n".join([head, *more]) + "\n")
    paths = named_files(folder)
    assert len(paths) == 7
    for path in paths:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            space = load_space(path, metadata=folder / "turned.csv")
        assert space.ids[:2].tolist() == ["d0", "d1"], path.name
        assert space.labels[:3].tolist() == ["p", "q", "p"], path.name
        assert (space.counts[:3].tolist(), space.note) == ([1, 2, 3], ""), path.name
        spec = file(path, metadata=str(folder / "turned.csv"))
        (texts,) = row_items(spec, space)
        assert texts.items(2, 4) == [f"a longer sentence that is about number {row}" for row in (2, 3)]
        assert TableColumns(spec).read("year", space)[["d0", "d8"]].tolist() == ["1990", "1991"]
    few = load_space(paths[0], metadata=folder / "turned.csv", limit=5)
    assert few.labels.tolist() == ["p", "q", "p", "q", "p"]
    rows = load_space(paths[0], metadata=folder / "turned.csv", ids="rows")
    assert (rows.ids[1], rows.payload[1], rows.labels[1]) == ("1", "d1", "q")
    spec = file(paths[0], metadata=str(folder / "turned.csv"), ids="rows")
    assert TableColumns(spec).read("year", rows)[["0", "8"]].tolist() == ["1990", "1991"]


def test_other_ids_and_missing_ones_are_errors(folder):
    for path in named_files(folder):
        for change, told in (("d", "r"), ("d7,", "x7,")):
            (folder / "other.csv").write_text(META.replace(f"\n{change}", f"\n{told}"))
            n = N if change == "d" else 1
            expected = rf"other\.csv: expected the ids of {path.name}, .* {n} missing, first 'd[07]'.*ignore"
            with pytest.raises(SpaceError, match=expected):
                load_space(path, metadata=folder / "other.csv")
    (folder / "other.csv").write_text(META.replace("\nd7,", "\nd6,"))
    with pytest.raises(SpaceError, match=r"other\.csv: ids must be distinct, 1 occur"):
        load_space(folder / "own.npz", metadata=folder / "other.csv", id_column="doc_id")


def test_row_order_is_used_only_without_ids_on_one_side_and_is_said(folder):
    paths = named_files(folder)
    for path, options, lacks in (
        (folder / "a.npy", {}, "a.npy"),
        (paths[0], {"ignore": ["doc_id"]}, "meta.csv"),
        (folder / "a.npy", {"ignore": ["doc_id"]}, "meta.csv"),
    ):
        with pytest.warns(UserWarning, match=rf"joined to {path.name} by row order.*{lacks} has no ids"):
            space = load_space(path, metadata=folder / "meta.csv", **options)
        assert "by row order" in space.note
        assert space.labels[:3].tolist() == ["p", "q", "p"]


def test_a_table_goes_with_the_vectors_before_it(folder):
    np.save(folder / "c.npy", np.ones((N, 2)))
    np.save(folder / "short.npy", np.ones((N - 1, 2)))

    def told(*names):
        found = with_their_tables([file(folder / name) for name in names])
        return [(one.name.rsplit("/", 1)[1], one.option("metadata").rsplit("/", 1)[-1]) for one in found]

    assert told("a.npy", "meta.csv", "b.parquet") == [("a.npy", "meta.csv"), ("b.parquet", "")]
    assert told("a.npy", "c.npy", "meta.csv") == [("a.npy", "meta.csv"), ("c.npy", "meta.csv")]
    assert told("b.parquet", "c.npy", "meta.csv") == [("b.parquet", ""), ("c.npy", "meta.csv")]
    assert told("short.npy", "meta.csv") == [("short.npy", ""), ("meta.csv", "")]
    (folder / "a_meta.csv").write_text(META)
    assert told("a.npy", "c.npy", "a_meta.csv") == [("a.npy", "a_meta.csv"), ("c.npy", "")]
