"""adapter.safetensors: the steps of an adapter as tensors, and its card as JSON in the file's metadata.

The metadata have one key, ``relscope-adapter``: a JSON object with the version of this layout, the kinds of the steps of
queries and of the corpus, and the card. Tensors are float32 and named by their place: ``queries.1.matrix``. The file is read
here, not by the library, which maps it into memory and takes more forms than an adapter has.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from relcore.access import expanded, regular_file
from relcore.migration.adapter import Adapter
from relcore.migration.card import Card
from relcore.migration.steps import Affine, Residual, Step, Unit
from relcore.plain_json import parse
from relcore.record import from_json, to_json
from relcore.spaces import SpaceError, quote

FILE = "adapter.safetensors"
KEY = "relscope-adapter"
LAYOUT = 1
_KINDS: dict[str, type[Step]] = {"unit": Unit, "affine": Affine, "residual": Residual}
_SHAPES = {
    "matrix": ("d", "e"),
    "offset": ("e",),
    "inner": ("d", "h"),
    "inner_offset": ("h",),
    "outer": ("h", "d"),
    "outer_offset": ("d",),
}
_MOST_STEPS, _MOST_HEADER, _MOST_BYTES = 16, 1 << 20, 1 << 30
_AGAIN = "export or copy it again"


@dataclass(frozen=True)
class Plan:
    """What the metadata hold."""

    layout: int
    queries: tuple[str, ...]
    corpus: tuple[str, ...]
    card: Card


class LoadedAdapter(Adapter):
    """An adapter from a file: it maps queries and the corpus, and learns nothing.

    Attributes
    ----------
    card : Card
    """

    def __init__(self, card: Card, queries: tuple[Step, ...], corpus: tuple[Step, ...]) -> None:
        self.card = card
        self.query_steps_, self.corpus_steps_ = queries, corpus
        self.n_features_in_, self.n_features_old_ = card.new_width, card.old_width

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings with which it was learned."""
        return dict(self.card.settings)

    def _solve(self, new: np.ndarray, old: np.ndarray) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        raise SpaceError("fit: expected an adapter that learns, got one that was loaded from a file; make one of its method")


def write_adapter(adapter: Adapter, card: Card, path: Path) -> None:
    """Write the file as a whole or not at all; equal adapters and cards give equal bytes.

    Raises
    ------
    SpaceError
        A card of other widths, or numbers that are not finite.
    """
    from safetensors.numpy import save

    steps = {"queries": adapter.query_steps_, "corpus": adapter.corpus_steps_}
    kinds = {side: tuple(_kind(step) for step in found) for side, found in steps.items()}
    tensors = {
        f"{side}.{place}.{one.name}": np.ascontiguousarray(getattr(step, one.name), dtype="<f4")
        for side, found in steps.items()
        for place, step in enumerate(found)
        for one in fields(step)
    }
    _check(path.name, card, *(_steps(path.name, side, kinds[side], dict(tensors)) for side in steps))
    plan = json.dumps(to_json(Plan(LAYOUT, **kinds, card=card)), ensure_ascii=False, sort_keys=True)
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(save(tensors, metadata={KEY: plan}))
    os.replace(partial, path)


def read_adapter(path: Path) -> LoadedAdapter:
    """The adapter in a file, or in a folder that `take_away.write` made.

    Raises
    ------
    SpaceError
        Another file, a damaged one, shapes that do not fit together, numbers that are not finite, a later layout.
    """
    path = expanded(path)
    path = regular_file(path / FILE if path.is_dir() else path)
    size = path.stat().st_size
    if size > _MOST_BYTES:
        raise SpaceError(f"{path.name}: expected an adapter of at most {_MOST_BYTES >> 20} MB, got {size >> 20} MB; {_AGAIN}")
    with path.open("rb") as stream:
        with _described(path.name):
            header = _header(path.name, stream, size)
            plan = _plan(path.name, header.pop("__metadata__", None))
        tensors = _tensors(path.name, header, stream, size - stream.tell())
    queries, corpus = (_steps(path.name, side, getattr(plan, side), tensors) for side in ("queries", "corpus"))
    if tensors:
        raise SpaceError(
            f"{path.name}: expected the tensors of its steps only, got also {quote(sorted(tensors)[:3])}; {_AGAIN}"
        )
    _check(path.name, plan.card, queries, corpus)
    return LoadedAdapter(plan.card, queries, corpus)


def _kind(step: Step) -> str:
    return next(name for name, kind in _KINDS.items() if type(step) is kind)


@contextmanager
def _described(name: str) -> Iterator[None]:
    """Errors about JSON with the name of the file and what to do about it."""
    try:
        yield
    except SpaceError as error:
        said = str(error) if str(error).startswith(name) else f"{name}: {error}"
        raise SpaceError(said if "; " in said else f"{said:.700}; {_AGAIN}") from None


def _header(name: str, stream: BinaryIO, size: int) -> dict[str, Any]:
    length = int.from_bytes(stream.read(8), "little")
    if not 0 < length <= min(size - 8, _MOST_HEADER):
        raise SpaceError(f"{name}: expected an adapter as safetensors, got another file or a damaged one; {_AGAIN}")
    header = parse(stream.read(length), name, "the header of a safetensors file")
    if not isinstance(header, dict):
        raise SpaceError(f"{name}: expected a header as a JSON object, got {type(header).__name__}; {_AGAIN}")
    return header


def _plan(name: str, metadata: Any) -> Plan:
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get(KEY), str):
        raise SpaceError(f"{name}: expected an adapter with its card, got a safetensors file without {KEY!r}; {_AGAIN}")
    described = parse(metadata[KEY], f"{name}, {KEY}")
    if isinstance(described, dict) and type(layout := described.get("layout")) is int and layout > LAYOUT:
        raise SpaceError(f"{name}: expected layout {LAYOUT}, got {layout} of a later version; update Relscope")
    plan = from_json(Plan, described, name)
    for side in ("queries", "corpus"):
        kinds = getattr(plan, side)
        ends = {kinds[0], kinds[-1]} if kinds else set()
        if unknown := set(kinds) - set(_KINDS):
            raise SpaceError(f"{name}: expected steps among {quote(_KINDS)}, got {quote(sorted(unknown)[:3])}; update Relscope")
        if ends != {"unit"} or len(kinds) > _MOST_STEPS:
            raise SpaceError(
                f"{name}: expected at most {_MOST_STEPS} steps of the {side}, the first and the last 'unit', got "
                f"{quote(kinds[:6]) or 'none'}; {_AGAIN}"
            )
    return plan


def _tensors(name: str, header: Mapping[str, Any], stream: BinaryIO, left: int) -> dict[str, np.ndarray]:
    """Every tensor of the header, which must cover the rest of the file without gaps; nothing is read before that is known."""
    shapes, end = {}, 0
    try:
        for tensor, part in sorted(header.items(), key=lambda item: tuple(item[1]["data_offsets"])):
            (start, stop), shape = part["data_offsets"], part["shape"]
            whole = all(type(one) is int for one in (start, stop, *shape)) and min(shape) > 0
            if part["dtype"] != "F32" or not whole or start != end or stop - start != 4 * math.prod(shape):
                raise ValueError
            shapes[tensor], end = shape, stop
        if end != left:
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise SpaceError(f"{name}: expected float32 tensors that fill the file, got other sizes; {_AGAIN}") from None
    return {tensor: np.frombuffer(stream.read(4 * math.prod(shape)), "<f4").reshape(shape) for tensor, shape in shapes.items()}


def _steps(name: str, side: str, kinds: tuple[str, ...], tensors: dict[str, np.ndarray]) -> tuple[Step, ...]:
    """The steps of one side; takes their tensors out of the dict."""
    return tuple(_step(name, f"{side}.{place}", _KINDS[kind], tensors) for place, kind in enumerate(kinds))


def _step(name: str, place: str, kind: type[Step], tensors: dict[str, np.ndarray]) -> Step:
    lengths: dict[str, int] = {}
    arrays = {}
    for one in fields(kind):
        array = tensors.pop(f"{place}.{one.name}", None)
        dims = _SHAPES[one.name]
        shape = () if array is None else array.shape
        if len(shape) != len(dims) or any(lengths.setdefault(dim, n) != n for dim, n in zip(dims, shape, strict=True)):
            expected = tuple(lengths.get(dim, dim) for dim in dims)
            raise SpaceError(f"{name}: expected the tensor {place}.{one.name} of shape {expected}, got {shape}; {_AGAIN}")
        if not np.isfinite(array).all():
            raise SpaceError(f"{name}: expected finite numbers in {place}.{one.name}, got NaN or infinity; {_AGAIN}")
        arrays[one.name] = array
    return kind(**arrays)


def _check(name: str, card: Card, queries: tuple[Step, ...], corpus: tuple[Step, ...]) -> None:
    """The widths of the steps against those of the card."""
    for side, width, steps in (("queries", card.new_width, queries), ("corpus", card.old_width, corpus)):
        found = _width_after(name, side, width, steps)
        if found != card.width:
            raise SpaceError(f"{name}: expected {side} of width {card.width} after all steps, got {found}; {_AGAIN}")


def _width_after(name: str, side: str, width: int, steps: tuple[Step, ...]) -> int:
    for place, step in enumerate(steps):
        if isinstance(step, Unit):
            continue
        taken, given = step.matrix.shape if isinstance(step, Affine) else (len(step.inner), len(step.inner))
        if taken != width:
            raise SpaceError(f"{name}: expected {side}.{place} to take rows of width {width}, got {taken}; {_AGAIN}")
        width = given
    return width
