"""The formats of safetensors and torch."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from relcore.base.errors import SpaceError
from relcore.files.formats import (
    OF_TOKENS,
    Blocks,
    Description,
    Format,
    Regions,
    Request,
    Shape,
    describe_matrices,
    float32,
    in_blocks,
    the_matrix,
)
from relcore.files.numpy_files import check_length


class Safetensors(Format):
    """.safetensors files. The vectors are the tensor that the option `matrix` names. By default they are the
    first of these: `vectors`, a model's token embeddings, the only matrix.

    `ids` and `labels` are lines of UTF-8 text, in uint8 tensors or in the metadata. `counts` are integers.
    """

    libraries = ("safetensors",)
    several_matrices = has_regions = True
    _KINDS = {"F16": "float16", "F32": "float32", "F64": "float64", "BF16": "bfloat16"}  # noqa: RUF012

    def _open(self, path: Path) -> tuple[Any, dict[str, Shape]]:
        from safetensors import safe_open

        file = safe_open(path, framework="np")
        return file, {name: tuple(file.get_slice(name).get_shape()) for name in sorted(file.keys())}

    def describe(self, path: Path) -> Description:
        return describe_matrices(path, self._open(path)[1])

    def _parts(self, path: Path, request: Request) -> tuple[str, Any, Regions]:
        file, shapes = self._open(path)
        main = the_matrix(path, shapes, request.matrix)
        rows, d = shapes[main]
        if request.limit is None:
            n = rows
        else:
            n = min(rows, request.limit)
        metadata = file.metadata() or {}
        columns = {}
        for name in ("ids", "labels"):
            if name in shapes:
                text = file.get_tensor(name).tobytes().decode()
            else:
                text = metadata.get(name)
            if text is not None:
                lines = text.replace("\r\n", "\n").removesuffix("\r").split("\n")
                check_length(path, name, (len(lines),), rows)
                columns[name] = lines[:n]
        if "counts" in shapes:
            check_length(path, "counts", shapes["counts"], rows)
            columns["counts"] = file.get_slice("counts")[:n]
        if "ids" not in columns and OF_TOKENS.fullmatch(main):
            columns["tokens"] = [main, rows]
        with path.open("rb") as stream:  # `safe_open` has already checked this header
            length = int.from_bytes(stream.read(8), "little")
            begin = 8 + length + msgspec.json.decode(stream.read(length))[main]["data_offsets"][0]
        tensor = file.get_slice(main)
        kind = self._KINDS.get(tensor.get_dtype(), "")
        return main, tensor, Regions([(begin, kind, (n, d))], (main,), columns)

    def blocks(self, path: Path, request: Request) -> Blocks:
        main, tensor, regions = self._parts(path, request)
        begin, kind, (n, d) = regions.parts[0]
        n = request.rows(path, n, d)
        halves = None
        if kind == "bfloat16":
            halves = np.memmap(path, "<u2", "r", begin, (n, d))
        for rows in in_blocks(n, 8 * d):
            if halves is not None:  # NumPy has no bfloat16, so these numbers are read as whole numbers
                yield (halves[rows].astype(np.uint32) << 16).view(np.float32)
            else:
                yield float32(tensor[rows], f"{path.name}, tensor {main!r:.60}")
        return regions.columns

    def regions(self, path: Path, request: Request) -> Regions | None:
        regions = self._parts(path, request)[2]
        _, kind, shape = regions.parts[0]
        if kind and 0 not in shape:
            return regions
        return None


def _are_names(value: Any) -> bool:
    """Whether a value of a torch file can be ids or labels: a list of texts and whole numbers."""
    return isinstance(value, list | tuple) and {type(item) for item in value} <= {str, int}


class Torch(Format):
    """Files of torch.save. They hold a tensor (n, d), or a dict of tensors with lists `ids` and `labels`. In
    a dict, the vectors are the tensor that the option `matrix` names. By default they are `vectors`, or the
    only tensor. Only tensors and plain values are allowed.
    """

    libraries = ("torch",)
    several_matrices = True

    def _open(self, path: Path, whole: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        """The tensors of the file, and its lists `ids` and `labels`, by name. With `whole`, every checksum is
        checked first."""
        import torch

        content = self._load(path, whole)
        items = {"vectors": content}
        if isinstance(content, Mapping):
            items = content
        tensors = {}
        texts = {}
        for name, value in items.items():
            if isinstance(value, torch.Tensor) and value.layout == torch.strided and isinstance(name, str):
                tensors[name] = value
            elif name in ("ids", "labels") and _are_names(value):
                texts[name] = list(value)
        return tensors, texts

    def _load(self, path: Path, whole: bool) -> Any:
        import torch

        with zipfile.ZipFile(path) as archive:
            compressed = any(member.compress_type for member in archive.infolist())
            if compressed or (whole and archive.testzip()):
                raise ValueError("an archive that is compressed or damaged")
            byte_orders = {archive.read(name) for name in archive.namelist() if name.endswith("/byteorder")}
            if byte_orders - {b"little"}:
                raise ValueError("numbers in another order of bytes")
        try:
            return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except Exception as error:
            # If the file holds other objects, torch advises weights_only=False, which is unsafe. Its message
            # names the setting as "Weights only" or "weights_only".
            if "eights" not in str(error):
                raise
            raise SpaceError(
                f"{path.name}: expected tensors, lists and texts, got other objects, which could run code;"
                ' save the tensors alone: torch.save({"vectors": tensor, "ids": ids}, "vectors.pt")'
            ) from error

    def describe(self, path: Path) -> Description:
        tensors = self._open(path, whole=False)[0].items()
        return describe_matrices(path, {name: tuple(tensor.shape) for name, tensor in tensors})

    def blocks(self, path: Path, request: Request) -> Blocks:
        import torch

        tensors, texts = self._open(path, whole=True)
        shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        tensor = tensors[the_matrix(path, shapes, request.matrix)].detach()
        n = request.rows(path, *tensor.shape)
        if tensor.is_complex() or tensor.is_quantized or tensor.dtype == torch.bool:
            raise SpaceError(
                f"{path.name}: expected real numbers, got {tensor.dtype}; save it with tensor.float()"
            )
        for rows in in_blocks(n, 8 * tensor.shape[1]):
            yield tensor[rows].resolve_neg().float().numpy()
        return texts
