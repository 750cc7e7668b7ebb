"""The table for Embedding Atlas: its columns, types and neighbours."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from relcore.cli import main
from relcore.compare.columns import rows_table
from relcore.compare.scene import atlas_table
from relcore.files.saving import write_space
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace

NEIGHBOURS = pa.struct([("ids", pa.list_(pa.int64())), ("distances", pa.list_(pa.float32()))])


def spaces(n=12):
    rng = np.random.default_rng(0)
    ids, labels = [f"r{row}" for row in range(n)], np.array(["x", "b"], dtype=object)[np.arange(n) % 2]
    return [LatentSpace(rng.normal(size=(n, d)), ids, name=f"{d} wide", labels=labels) for d in (4, 6)]


def test_rows_have_places_neighbours_among_the_rows_shown_and_all_columns():
    pair, rows = match(*spaces()), np.array([1, 3, 4, 7, 8, 11])
    maps = [np.arange(12.0).reshape(6, 2), np.arange(18.0).reshape(6, 3)]
    columns = rows_table(pair, rows).assign(x=list("abcdef"))
    table = atlas_table((pair.source, pair.target), rows, maps, columns, k=2)
    assert table.column_names[:3] == ["id", "label", "x (column)"]
    assert table.column_names[3:6] == ["x", "y", "neighbors"]
    assert table.column_names[6:] == ["x_6 wide", "y_6 wide", "neighbors_6 wide"]
    assert table["y_6 wide"].to_pylist() == maps[1][:, 1].tolist()
    assert table.schema.field("neighbors").type == NEIGHBOURS
    vectors = pair.source.vectors - pair.source.vectors.mean(axis=0)
    unit = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True))[rows]
    distances = 1 - unit @ unit.T
    for row, cell in enumerate(table["neighbors"].to_pylist()):
        others = np.delete(np.arange(6), row)
        nearest = others[np.argsort(distances[row, others])[:2]]
        assert cell["ids"] == nearest.tolist()
        np.testing.assert_allclose(cell["distances"], distances[row, nearest], atol=1e-6)


def test_the_command_writes_what_it_says_how_to_open(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, space in zip("ab", spaces(), strict=True):
        write_space(space, tmp_path / f"{name}.npz")
    assert main(["export", "a.npz", "b.npz", "--atlas", "rows.parquet", "-k", "3"]) == 0
    assert "embedding-atlas rows.parquet --x x --y y --neighbors neighbors" in capsys.readouterr().out
    table = parquet.read_table("rows.parquet")
    assert table.column_names == ["id", "label", "x", "y", "neighbors", "x_b", "y_b", "neighbors_b"]
    assert {len(cell["ids"]) for cell in table["neighbors"].to_pylist()} == {3}
    assert main(["export", "a.npz", "--atlas", "one.parquet"]) == 0
    assert parquet.read_table("one.parquet").column_names == ["id", "label", "x", "y", "neighbors"]
