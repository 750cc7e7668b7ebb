"""`encode` and `layers`: the latent spaces of a user's own network, one for each layer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pandas as pd

from relcore.base.access import expand_home
from relcore.base.arguments import need_whole
from relcore.base.errors import SpaceError
from relcore.base.mapped_rows import MappedRows
from relcore.base.writing import new_folder
from relcore.encode.batches import (
    Batches,
    InputBatch,
    ItemBatches,
    batches_of,
    first_batch,
    items_of,
    preparation,
)
from relcore.encode.layer_rows import LayerRows
from relcore.encode.row_files import CollectedRows
from relcore.nn.capture import OUTPUT, Pooling, pooled, tensor_of
from relcore.runs.progress_line import long_call, show_step
from relcore.runs.work import Progress
from relcore.spaces.space import LatentSpace, matrix

if TYPE_CHECKING:
    from torch import nn

_AT_ONCE = 32  # number of items in a call of a function


@overload
def encode(
    model: Any,
    data: Any,
    *,
    layers: None = None,
    pooling: Pooling = "auto",
    processor: Any = None,
    ids: Sequence[str] | np.ndarray | None = None,
    labels: Sequence[str] | np.ndarray | None = None,
    name: str = "",
    batch_size: int | None = None,
    device: str = "auto",
    half: bool = False,
    folder: str | Path | None = None,
    report: Progress = show_step,
) -> LatentSpace: ...


@overload
def encode(
    model: Any,
    data: Any,
    *,
    layers: str | Sequence[str],
    pooling: Pooling = "auto",
    processor: Any = None,
    ids: Sequence[str] | np.ndarray | None = None,
    labels: Sequence[str] | np.ndarray | None = None,
    name: str = "",
    batch_size: int | None = None,
    device: str = "auto",
    half: bool = False,
    folder: str | Path | None = None,
    report: Progress = show_step,
) -> dict[str, LatentSpace]: ...


@long_call
def encode(
    model: Any,
    data: Any,
    *,
    layers: Any = None,  # a module is refused below, with its name
    pooling: Pooling = "auto",
    processor: Any = None,
    ids: Sequence[str] | np.ndarray | None = None,
    labels: Sequence[str] | np.ndarray | None = None,
    name: str = "",
    batch_size: int | None = None,
    device: str = "auto",
    half: bool = False,
    folder: str | Path | None = None,
    report: Progress = show_step,
) -> LatentSpace | dict[str, LatentSpace]:
    """The space of what a network returns for the data; with `layers`, a dict with the space of each layer.

    All layers come from one pass, in full float32. Afterwards, also after an error or Ctrl-C, the network is
    as before: training mode, gradients, buffers, hooks and the states of random generators.

    Parameters
    ----------
    model : nn.Module or function
        A PyTorch network, a model of transformers, a SentenceTransformer, or any function from a list of m
        items to rows (m, d).
    data : array, tensor, list, Dataset or DataLoader
        An array or tensor (n, …), tensors by name, a list of texts or pictures, or what yields inputs or
        pairs (inputs, label). Row i is item i, so a DataLoader must not shuffle.
    layers : str or list of str, optional
        Names or patterns of modules, as `layers` lists them, such as ``["conv1", "blocks.*"]``. The name
        "output" is what the network returns.
    pooling : {"auto", "mean", "first", "last", "flat"}
        How the output of a layer becomes one row for each item. "mean" is the mean over the tokens that the
        mask shows or over the places of pictures; "first" and "last" are tokens; "flat" keeps all numbers.
        "auto" is "mean", and leaves outputs (m, d) as they are.
    processor : tokenizer, image processor or function, optional
        It turns a list of items into inputs. A model of transformers needs its own for texts and pictures; a
        SentenceTransformer has one.
    ids, labels : n strings, optional
        By default, ids are row numbers, and labels those of the data.
    name : str
        The name of the spaces; by default that of the network's class. With `layers`, the layer is added.
    batch_size : int, optional
        By default 32 on a CPU and 256 on a GPU. If memory runs out, it is halved.
    device : str
        "auto" is the GPU that the network is on, or the chosen device (see `relcore.base.environment`). A
        network on another device is copied for this call.
    half : bool
        Whether to compute in half precision (bfloat16 on a CPU, float16 on a GPU) and to keep float16.
    folder : path, optional
        Write the rows to ``<layer>.npy`` in this folder, with ids and labels beside it, and map them. The
        files appear when all are whole. Without a folder, rows of more than 512 MB are mapped from temporary
        files.
    report : function (done, total, message)

    Raises
    ------
    SpaceError
        Unknown layers; texts without a processor; a shuffling DataLoader; a layer that gives no rows, or not
        one per item; NaN or infinite numbers; a single item that exceeds the memory of the device.

    Examples
    --------
    >>> import torch
    >>> import relcore
    >>> model = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten())
    >>> pictures = torch.rand(10, 1, 8, 8)
    >>> relcore.encode(model, pictures).dimension
    144
    >>> spaces = relcore.encode(model, pictures, layers=["0", "1"], name="CNN")
    >>> [(layer, space.name, space.dimension) for layer, space in spaces.items()]
    [('0', 'CNN, 0', 4), ('1', 'CNN, 1', 4)]
    """
    if batch_size is not None:
        need_whole("batch_size", batch_size)
    rows_of: LayerRows | _FunctionRows
    batches: Batches
    if _is_network(model):
        rows_of = LayerRows(model, layers, pooling, device, half)
        batches = batches_of(data, preparation(model, processor), batch_size or rows_of.size)
    else:
        rows_of = _FunctionRows(model, layers)
        if not isinstance(data, np.ndarray):
            data = items_of(data)
        batches = ItemBatches(data, None, batch_size or _AT_ONCE)
    title = name or getattr(model, "__name__", type(model).__name__)
    dtype = np.dtype(np.float16 if half else np.float32)
    place = None if folder is None else expand_home(folder)
    vectors, labels = _vectors(rows_of, batches, ids, labels, title, dtype, place, report)
    columns: dict[str, Any] = {"ids": ids, "labels": labels, "payload": batches.payload}
    if layers is None:
        return LatentSpace(vectors[OUTPUT], name=title, **columns)
    return {layer: LatentSpace(rows, name=f"{title}, {layer}", **columns) for layer, rows in vectors.items()}


def _vectors(
    rows_of: LayerRows | _FunctionRows,
    batches: Batches,
    ids: Sequence[str] | np.ndarray | None,
    labels: Sequence[str] | np.ndarray | None,
    title: str,
    dtype: np.dtype,
    folder: Path | None,
    report: Progress,
) -> tuple[dict[str, np.ndarray | MappedRows], Sequence[str] | np.ndarray | None]:
    """Run the network on all batches. Returns the rows of each layer, in memory or mapped, and the labels."""
    if batches.n:
        _need_columns(batches.n, ids, labels, title)
    with ExitStack() as stack:
        written = None
        if folder:
            written = stack.enter_context(new_folder(folder))
        collected = CollectedRows(dtype, written)
        stack.callback(collected.close)
        with rows_of:
            own_labels = _collect(batches, rows_of, collected, report)
        if labels is None:
            labels = own_labels
        _need_columns(collected.n, ids, labels, title)
        collected.finish()
        if written:
            collected.write_columns({"ids": ids, "labels": labels})
    return collected.vectors(folder), labels


def layers(model: nn.Module, example: Any, *, processor: Any = None) -> pd.DataFrame:
    """A table of the layers that run for an example, one line per module in the order of the network.

    Columns: layer (its name), kind (its class), shape (of its output for the first two items of the example),
    d (the width of the rows that `encode` gives; 0 if it gives none). The last line is "output". The example
    takes any form that the data of `encode` take.

    Examples
    --------
    >>> import torch
    >>> import relcore
    >>> model = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU())
    >>> print(relcore.layers(model, torch.rand(2, 1, 8, 8)).to_string(index=False))
     layer       kind        shape  d
         0     Conv2d (2, 4, 6, 6)  4
         1       ReLU (2, 4, 6, 6)  4
    output Sequential (2, 4, 6, 6)  4
    """
    with LayerRows(model, ["*", OUTPUT]) as rows_of:
        batch = first_batch(batches_of(example, preparation(model, processor), 2)).part(0, 2)
        lines = [
            _line(layer, output, len(batch), dict(model.named_modules()).get(layer, model))
            for layer, output in rows_of.outputs(batch).items()
        ]
    return pd.DataFrame(lines, columns=["layer", "kind", "shape", "d"])


def _line(layer: str, output: Any, n: int, module: nn.Module) -> tuple[str, str, tuple[int, ...], int]:
    """A line of the table of layers. The module may return no tensor, or none for each item."""
    shape: tuple[int, ...] = ()
    width = 0
    with suppress(SpaceError):
        tensor = tensor_of(output, layer)
        shape = tuple(tensor.shape)
        width = pooled(tensor, "auto", n, None, module, layer).shape[1]
    return layer, type(module).__name__, shape, width


def _is_network(model: Any) -> bool:
    torch = sys.modules.get("torch")  # a network exists only after torch was imported
    return torch is not None and isinstance(model, torch.nn.Module)


def _need_columns(n: int, ids: Any, labels: Any, name: str) -> None:
    """Raise the error that a space of n rows would raise, before hours of work are lost or files written."""
    LatentSpace(np.zeros((n, 1), np.float32), ids, labels=labels, name=name)


class _FunctionRows(nullcontext[None]):
    """A user's function from m items to rows (m, d), as `LayerRows`."""

    def __init__(self, function: Callable[[Any], Any], layers: object) -> None:
        super().__init__()
        if not callable(function):
            raise SpaceError(f"model: expected a network or a function, got {type(function).__name__}")
        if layers is not None:
            raise SpaceError(
                "layers: expected a PyTorch network, got a function, which has none; leave it out"
            )
        self.function = function

    def __call__(self, batch: InputBatch) -> dict[str, np.ndarray]:
        rows = matrix(self.function(batch.inputs), "the rows that the function returns")
        if len(rows) != len(batch):
            raise SpaceError(f"model: expected a row for each of {len(batch)} items, got {len(rows)}")
        return {OUTPUT: rows}


def _collect(
    batches: Batches,
    rows_of: Callable[[InputBatch], dict[str, np.ndarray]],
    collected: CollectedRows,
    report: Progress,
) -> list[str] | None:
    """Collect the rows of all batches. Returns the labels that came with the data."""
    labels: list[str] = []
    done = 0
    for batch in batches:
        report(done, batches.n or done + len(batch), "encoding")
        collected.add(batch.rows, rows_of(batch))
        labels += batch.labels or []
        done += len(batch)
    if not done:
        raise SpaceError("data: expected at least one item, got none")
    report(done, done, "encoding")
    if len(labels) == done:
        return labels
    return None
