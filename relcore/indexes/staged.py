"""Rows on their way to a target, on disk: appended block by block, and there again after a kill."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from relcore.indexes.index import Block
from relcore.plain_json import parse
from relcore.spaces import SpaceError

_VECTORS, _ROWS, _STATE = "vectors.f32", "rows.jsonl", "state.json"


class StagedRows:
    """A folder of vectors, ids and payload. What counts is what the state tells: a block that was cut short is written again.

    Parameters
    ----------
    folder : Path
        Made with the first block.
    key : str
        Of the work. A folder of other work begins again.

    Attributes
    ----------
    done : int
        Rows that are staged.
    width : int
        Of these rows; 0 before the first.
    writing : bool
        Whether the target has been begun.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self.folder, self._key = folder, key
        self.done, self.width, self.writing, self._sizes = 0, 0, False, [0, 0]
        self._recall()
        for name, size in zip((_VECTORS, _ROWS), self._sizes, strict=True):
            if (folder / name).exists():
                with (folder / name).open("ab") as stream:
                    stream.truncate(size)

    def append(self, block: Block) -> None:
        """Add a block; once this returns, a kill does not lose it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.width = block.vectors.shape[1]
        told = json.dumps({"ids": block.ids, "payload": block.payload}, default=str, ensure_ascii=False).encode() + b"\n"
        content = np.ascontiguousarray(block.vectors, "<f4").data
        for name, one in ((_VECTORS, content), (_ROWS, told)):
            with (self.folder / name).open("ab") as stream:
                stream.write(one)
        self._sizes = [self._sizes[0] + content.nbytes, self._sizes[1] + len(told)]
        self.done += len(block.ids)
        self._keep()

    def begin_writing(self) -> None:
        """Remember that the target is being written, so that a later run may continue it."""
        self.writing = True
        self._keep()

    def blocks(self) -> Iterator[Block]:
        """The blocks as they were appended."""
        with (self.folder / _VECTORS).open("rb") as vectors, (self.folder / _ROWS).open("rb") as rows:
            for line in rows:
                told = json.loads(line)
                found = np.fromfile(vectors, "<f4", len(told["ids"]) * self.width).reshape(-1, self.width)
                yield Block(told["ids"], found, tuple(told["payload"]))

    def remove(self) -> None:
        """Remove the folder, as far as it is ours."""
        for name in (_VECTORS, _ROWS, _STATE):
            (self.folder / name).unlink(missing_ok=True)
        self.folder.rmdir()

    def _keep(self) -> None:
        partial = self.folder / f"{_STATE}.partial"
        state = {"key": self._key, "done": self.done, "width": self.width, "writing": self.writing, "sizes": self._sizes}
        partial.write_text(json.dumps(state), encoding="utf-8")
        os.replace(partial, self.folder / _STATE)

    def _recall(self) -> None:
        path = self.folder / _STATE
        if not path.is_file():
            return
        try:
            state = parse(path.read_bytes(), str(path))
            held = [(self.folder / name).stat().st_size for name in (_VECTORS, _ROWS)]
            if state["key"] == self._key and all(size <= there for size, there in zip(state["sizes"], held, strict=True)):
                self.done, self.width, self.writing = state["done"], state["width"], state["writing"]
                self._sizes = state["sizes"]
        except (SpaceError, OSError, KeyError, TypeError):
            return  # damaged: the work begins again
