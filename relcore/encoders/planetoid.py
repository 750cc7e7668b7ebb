"""Citation graphs (Cora, CiteSeer, PubMed) through PyTorch Geometric's Planetoid.

Their raw files are pickles of 2016, and PyTorch Geometric un-pickles them itself. It is let near them only
after every one has been looked through without running it, and asks for nothing but NumPy arrays, SciPy's
csr_matrix, lists and defaultdict. What it writes while it reads goes to a temporary folder and away again:
neither the user's folder changes, nor is there a file that a later run would un-pickle unseen.
"""

from __future__ import annotations

import copy
import os
import pickletools
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from relcore.base import access
from relcore.base.errors import SpaceError, quote
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.network import answers
from relcore.runs.store import Store

GRAPHS = {"Cora": 2708, "CiteSeer": 3327, "PubMed": 19717}
_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
_HARMLESS = {
    "numpy dtype",
    "numpy ndarray",
    "numpy.core.multiarray _reconstruct",
    "numpy._core.multiarray _reconstruct",
    "scipy.sparse.csr csr_matrix",
    "scipy.sparse._csr csr_matrix",
    "collections defaultdict",
    "__builtin__ list",
    "builtins list",
}
_HIDDEN_NAMES = (
    "STACK_GLOBAL",
    "INST",
    "EXT1",
    "EXT2",
    "EXT4",
    "PERSID",
    "BINPERSID",
)  # the files of 2016 have none


def planetoid_dataset(spec: DatasetSpec, store: Store | None = None) -> Dataset:
    """The nodes; labels are the classes' numbers. `graph()` is the whole Data: `x`, `edge_index`, `y` and the
    public masks.

    The raw files are looked for under the option `folder`, else under RELSCOPE_DATA, then in the store's
    folder, where a download goes.
    """
    settings = spec.settings(folder=None)
    names = {name.lower(): name for name in GRAPHS}
    if spec.name.lower() not in names:
        raise SpaceError(f"planetoid: expected one of {quote(GRAPHS)}, got {spec.name!r}")
    if spec.limit is not None:
        raise SpaceError(f"{spec.name}: a graph is encoded whole; expected no limit, got {spec.limit}")
    name = names[spec.name.lower()]
    raw = raw_folder(name, settings["folder"]) or _fetch(name, store or Store(), settings["folder"])
    data = _read(name, raw)
    nodes = len(data.y)
    return Dataset(
        lambda start, stop: list(range(start, stop)),
        [f"{name}/{row}" for row in range(nodes)],
        name=name,
        kind="graph",
        labels=[str(label) for label in data.y.tolist()],
        content=lambda: (
            memoryview(data[part].contiguous().numpy()).cast("B") for part in ("x", "edge_index")
        ),
        graph=lambda: copy.copy(data),
    )


def raw_folder(name: str, folder: str | Path | None = None) -> Path | None:
    """Where all raw files of the graph are on this machine: `<folder>/<name>/raw`, or None."""
    data = access.data_folder()
    roots = [access.allowed(folder)] if folder else [data / "planetoid", data] if data else []
    places = (place for root in roots for place in (root / name / "raw", root / name.lower() / "raw"))
    return next(
        (
            place
            for place in places
            if all(access.may_read(place / file) and (place / file).is_file() for file in _files(name))
        ),
        None,
    )


def _files(name: str) -> list[str]:
    return [f"ind.{name.lower()}.{part}" for part in _PARTS]


def _fetch(name: str, store: Store, folder: str | None) -> Path:
    downloads = store.root / "planetoid"
    if found := raw_folder(name, downloads):
        return found
    from torch_geometric.datasets import Planetoid
    from torch_geometric.io import fs

    raw = downloads / name / "raw"
    addresses = [f"{Planetoid.url}/{file}" for file in _files(name)]
    if not answers(addresses[0]):
        looked = folder or os.environ.get("RELSCOPE_DATA") or "no folder (RELSCOPE_DATA is not set)"
        raise SpaceError(
            f"{name}: expected {_files(name)[0]} and its like in {name}/raw under {looked}, or the network to"
            " download them, got neither; copy them there"
        )
    raw.mkdir(parents=True, exist_ok=True)
    try:
        for address in addresses:
            fs.cp(address, str(raw))
    except Exception as error:  # fsspec's, aiohttp's and the disk's
        shutil.rmtree(raw, ignore_errors=True)
        raise SpaceError(
            f"{name}: expected to download it, got {error}; try again, or copy its files to {raw}"
        ) from error
    return raw


def _read(name: str, raw: Path) -> Any:
    from torch_geometric.datasets import Planetoid

    with tempfile.TemporaryDirectory(prefix="relscope-planetoid-") as scratch:
        copies = Path(scratch, name, "raw")
        copies.mkdir(parents=True)
        for file in _files(name):
            shutil.copyfile(raw / file, copies / file)  # what was looked through is what is read
            if not file.endswith(".index"):
                _require_harmless(copies / file)
        try:
            return Planetoid(root=scratch, name=name)[0]
        except Exception as error:  # un-pickling damaged bytes can raise anything
            raise SpaceError(
                f"{raw}: expected Planetoid's raw files, got damaged ones ({error}); copy them again"
            ) from error


def _require_harmless(path: Path) -> None:
    strange = list(_strange_names(path))
    if strange:
        raise SpaceError(
            f"{path.name}: refused, the pickle asks for {quote(strange[:3])}, which Planetoid's files never"
            " need; nothing of it was run. Get the raw files from a source you trust"
        )


def _strange_names(path: Path) -> Iterator[str]:
    try:
        with path.open("rb") as stream:
            for opcode, argument, _ in pickletools.genops(stream):
                if opcode.name in _HIDDEN_NAMES:
                    yield opcode.name
                elif opcode.name == "GLOBAL" and argument not in _HARMLESS:
                    yield argument
    except ValueError as error:
        raise SpaceError(
            f"{path.name}: expected one of Planetoid's raw files, got a damaged one; copy it again"
        ) from error
