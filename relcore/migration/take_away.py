"""Take-away: an adapter as files that people use without Relscope."""

from __future__ import annotations

from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from relcore.access import expanded
from relcore.migration.adapter import Adapter
from relcore.migration.adapter_file import FILE, LoadedAdapter, read_adapter, write_adapter
from relcore.migration.card import Card
from relcore.migration.onnx_graph import graph_bytes
from relcore.spaces import SpaceError

SNIPPET = "apply.py"
GRAPHS = {"queries": "adapter.onnx", "corpus": "corpus.onnx"}


def write(adapter: Adapter, card: Card, folder: Path, *, replace: bool = False) -> tuple[Path, ...]:
    """Write what people take away, and return the paths.

    ``adapter.safetensors`` holds the steps and the card; ``apply.py`` maps rows with NumPy alone; ``adapter.onnx`` maps
    queries, and ``corpus.onnx`` the corpus where the adapter projects it. The graphs are left out where the package onnx
    (extra ``onnx``) is not installed. For faiss see `faiss_map.index_with_map`.

    Raises
    ------
    SpaceError
        The folder holds an adapter already, unless `replace`; a card of other widths than the adapter.
    """
    folder = expanded(folder)
    if (folder / FILE).exists() and not replace:
        raise SpaceError(f"{folder}: expected a folder without an adapter, got one with {FILE}; choose another")
    folder.mkdir(parents=True, exist_ok=True)
    write_adapter(adapter, card, folder / FILE)
    (folder / SNIPPET).write_bytes(files("relcore.migration").joinpath(SNIPPET).read_bytes())
    written = [folder / FILE, folder / SNIPPET]
    finished = load(folder)
    for side, name in GRAPHS.items():
        (folder / name).unlink(missing_ok=True)  # of an adapter that was replaced
        if find_spec("onnx") and (side == "queries" or len(finished.corpus_steps_) > 1):
            (folder / name).write_bytes(graph_bytes(finished, side))
            written.append(folder / name)
    return tuple(written)


def load(path: Path) -> LoadedAdapter:
    """The adapter of a folder that `write` made, or of its file; errors as in `adapter_file.read_adapter`."""
    return read_adapter(path)
