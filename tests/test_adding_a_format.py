"""A new format is one class and one line: read, listed, limited and refused like all others."""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.base.names import FORMATS, Named
from relcore.files.formats import Blocks, Description, Format, Request, float32, in_blocks
from relcore.files.reading import load_space, shape_of


class Floats(Format):
    """Rows of three float32, one after the other."""

    def describe(self, path) -> Description:
        return Description({"": (path.stat().st_size // 12, 3)}, "")

    def blocks(self, path, request: Request) -> Blocks:
        n = request.rows(path, path.stat().st_size // 12, 3)
        rows = np.memmap(path, "<f4", "r").reshape(-1, 3)
        for some in in_blocks(n, 12):
            yield float32(rows[some], path.name)
        return {}


def test_a_format_is_a_class_and_a_line(tmp_path, monkeypatch):
    monkeypatch.setitem(FORMATS, ".floats", Named("Floats", f"{__name__}:Floats"))
    path, vectors = tmp_path / "x.floats", np.arange(1, 13, dtype=np.float32).reshape(4, 3)
    path.write_bytes(vectors.tobytes())
    (tmp_path / "x.ids.txt").write_text("a\nb\nc\nd\n")
    assert shape_of(path) == (4, 3)
    space = load_space(path)
    assert np.array_equal(space.vectors, vectors)
    assert space.ids.tolist() == ["a", "b", "c", "d"]
    assert len(load_space(path, limit=2)) == 2
    with pytest.raises(SpaceError, match="max_bytes"):
        load_space(path, max_bytes=100)
    path.write_bytes(b"12345")
    with pytest.raises(SpaceError, match=r"x\.floats: expected"):
        load_space(path)
