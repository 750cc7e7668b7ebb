"""Citation graphs in the raw files of Planetoid. These are pickles of 2016, from which only listed objects
are created."""

from __future__ import annotations

import pickle
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from relcore.base import access
from relcore.base.errors import SpaceError
from relcore.base.text import visible
from relcore.files import confined

if TYPE_CHECKING:
    import torch

PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")


class State:
    """A harmless stand-in for a pickled object: it keeps the state and runs no code."""

    def __setstate__(self, state: Any) -> None:
        self.state = state


_HARMLESS = {
    "numpy.dtype": np.dtype,
    "numpy.ndarray": np.ndarray,
    **dict.fromkeys(
        ("numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct"),
        np.empty(0).__reduce__()[0],
    ),
    **dict.fromkeys(("scipy.sparse.csr.csr_matrix", "scipy.sparse._csr.csr_matrix"), State),
    "collections.defaultdict": defaultdict,
    **dict.fromkeys(("__builtin__.list", "builtins.list"), list),
}


@dataclass(frozen=True)
class Graph:
    """A citation graph of n nodes: features `x` (n, d), classes `y` (n,), edges (2, m), the public masks."""

    x: torch.Tensor
    edge_index: torch.Tensor
    y: torch.Tensor
    train_mask: torch.Tensor
    val_mask: torch.Tensor
    test_mask: torch.Tensor


def load_graph(name: str, folder: Path | None = None) -> Graph:
    """The graph "Cora", "CiteSeer" or "PubMed", from the folder `name`/raw in `folder`, by default that of
    RELSCOPE_DATA or its folder planetoid.

    Raises a SpaceError where a raw file is missing, damaged or asks for more than arrays and lists.
    """
    import torch

    data = folder or access.data_folder()
    files = [f"ind.{name.lower()}.{part}" for part in PARTS]
    places = []
    if data:
        places = [data / "planetoid" / name / "raw", data / name / "raw"]
    raw = next((place for place in places if all((place / file).is_file() for file in files)), None)
    if raw is None:
        looked = data or "no folder (RELSCOPE_DATA is not set)"
        raise SpaceError(
            f"{name}: expected {files[0]} and its like in {name}/raw under {looked}, got none; copy them"
            " there from github.com/kimiyoung/planetoid"
        )
    paths = [raw / file for file in files]
    used = {"others": paths[1:], "libraries": (__name__, "scipy.sparse")}
    arrays = confined.run(read_graph, paths[0], paths=list(map(str, paths[1:])), **used)
    return Graph(**{part: torch.from_numpy(array) for part, array in arrays.items()})


def read_graph(_: Path, paths: list[str]) -> dict[str, np.ndarray]:
    """The nodes' features `x` (n, d) float32, classes `y` (n,), `edge_index` (2, m) and the public masks
    (n,), as in PyTorch Geometric's Planetoid."""
    tx, allx, y, ty, ally = map(read_matrix, paths[:5])
    edges = unpickle_listed(paths[5])
    test = np.loadtxt(paths[6], np.int64, ndmin=1)
    first = len(allx)
    n = int(test.max()) + 1
    if not first == len(ally) == test.min() > n - test.min() or len({*test.tolist()}) != len(tx):
        raise ValueError(f"{len(tx):,} nodes to test, of the numbers {test.min():,} to {test.max():,}")

    def joined(known: np.ndarray, tested: np.ndarray) -> np.ndarray:
        whole = np.zeros((n, known.shape[1]), np.float32)  # some nodes have no features
        whole[:first] = known
        whole[test] = tested
        return whole

    pairs = [(node, other) for node, others in edges.items() for other in others if node != other]
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    if ends.min(initial=0) < 0 or ends.max(initial=0) >= n:
        raise ValueError(f"an edge to a node beyond {n:,}")
    codes = np.unique(ends @ [1, n])
    numbers = np.arange(n)
    return {
        "x": joined(allx, tx),
        "edge_index": np.stack([codes % n, codes // n]),
        "y": joined(ally, ty).argmax(1),
        "train_mask": numbers < len(y),
        "val_mask": (numbers >= len(y)) & (numbers < len(y) + 500),
        "test_mask": np.isin(numbers, test),
    }


def read_matrix(path: str) -> np.ndarray:
    """The matrix in one of Planetoid's raw files, as float32."""
    from scipy.sparse import csr_matrix

    content = unpickle_listed(path)
    if isinstance(content, State):
        parts = content.state
        content = csr_matrix((parts["data"], parts["indices"], parts["indptr"]), parts["_shape"])
        content.check_format(full_check=True)
        content = content.toarray()
    return content.astype(np.float32)


class _ListedUnpickler(pickle.Unpickler):
    # Names are checked when objects are made, so nothing unchecked can be used.
    def find_class(self, module: str, name: str) -> Any:
        if (item := f"{module}.{name}") not in _HARMLESS:
            raise pickle.UnpicklingError(f"a pickle that asks for {item}, which this format never needs")
        return _HARMLESS[item]


def unpickle_listed(path: str) -> Any:
    """The content of one of Planetoid's raw files, of which only the objects in `_HARMLESS` are made."""
    try:
        with open(path, "rb") as stream:
            return _ListedUnpickler(stream, encoding="latin1").load()
    except Exception as error:  # an unpickler may raise any exception
        raise SpaceError(
            f"{Path(path).name}: expected one of Planetoid's raw files, got {visible(error, 200)}; copy it"
            " again from a source that you trust. Nothing of it was run"
        ) from error
