"""Hostile adapters; the truth is what the package safetensors and Python's JSON find in the same bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.hostile.cases import Case, hole, places, spoiled
from tests.hostile.corpus import changes

FILE = "adapter.safetensors"
KEY = "relscope-adapter"
CARD = {
    "adapter": "affine",
    "new_width": 3,
    "old_width": 2,
    "width": 2,
    "n_pairs": 40,
    "new_digest": "ab",
    "old_digest": "cd",
    "new_model": "new",
    "old_model": "old",
    "settings": {"ridge": 0.5},
    "date": "2026-01-02",
    "commit": "",
    "version": "1",
    "scores": [{"name": "nDCG@10", "value": 0.4, "low": 0.3, "high": 0.5, "n": 9}],
}
PLAN = {"layout": 1, "queries": ["unit", "affine", "unit"], "corpus": ["unit"], "card": CARD}
TENSORS = {
    "queries.1.matrix": np.arange(6, dtype="<f4").reshape(3, 2) / 8,
    "queries.1.offset": np.ones(2, "<f4"),
}


def packed(
    plan: Any = PLAN, tensors: dict[str, np.ndarray] = TENSORS, *, text: str | None = None, **parts: dict
) -> bytes:
    """A file of this plan and these tensors; `parts` changes a tensor's entry in the header."""
    header: dict[str, Any] = {"__metadata__": {KEY: json.dumps(plan) if text is None else text}}
    body = b""
    for name, array in tensors.items():
        content = array.tobytes()
        dtype = {"<f4": "F32", "<f8": "F64"}[array.dtype.str]
        header[name] = {
            "dtype": dtype,
            "shape": list(array.shape),
            "data_offsets": [len(body), len(body) + len(content)],
        }
        header[name] |= parts.get(name.rpartition(".")[2], {})
        body += content
    return raw(json.dumps(header).encode(), body)


def raw(header: bytes, body: bytes = b"", length: int | None = None) -> bytes:
    return struct.pack("<Q", len(header) if length is None else length) + header + body


def read(folder: Path) -> dict:
    from relcore.base.records import to_json
    from relcore.migrate.adapter_file import load

    found = load(folder / FILE)
    return {
        "card": to_json(found.card),
        "tensors": [found.query_steps_[1].matrix, found.query_steps_[1].offset],
    }


def truth(content: bytes) -> dict | None:
    """Of a file with the steps of `PLAN`, if every field of its card has the type that it has there."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        tensors = load(content)
        length = int.from_bytes(content[:8], "little")
        plan = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][KEY])
        steps = {name: plan.pop(name) for name in ("layout", "queries", "corpus")}
        card = plan.pop("card")
        alike = (
            steps == {name: PLAN[name] for name in steps}
            and not plan
            and _typed(card, CARD)
            and card["n_pairs"] >= 2
        )
        alike &= all(card[name] == CARD[name] for name in CARD if name.endswith("width"))
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError):
        return None
    found = [tensors.pop(name, None) for name in TENSORS]
    same = [
        one is not None and (one.shape, one.dtype) == (two.shape, two.dtype)
        for one, two in zip(found, TENSORS.values(), strict=False)
    ]
    return (
        {"card": card, "tensors": found} if alike and all(same) and not tensors and _finite(found) else None
    )


def _typed(got: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        return (
            isinstance(got, dict)
            and got.keys() == expected.keys()
            and all(_typed(got[one], expected[one]) for one in got)
        )
    if isinstance(expected, list):
        return isinstance(got, list) and len(got) == len(expected) and all(map(_typed, got, expected))
    return type(got) is type(expected)


def _finite(arrays: list[np.ndarray]) -> bool:
    return all(np.isfinite(one).all() for one in arrays)


def with_card(**changed: Any) -> dict:
    return PLAN | {"card": CARD | changed}


def cases() -> Iterator[Case]:
    whole = packed()
    yield Case("control: an adapter", read, {FILE: whole}, truth(whole), accept=True)
    for name, plan in {
        "a later layout": PLAN | {"layout": 2},
        "no layout": {name: one for name, one in PLAN.items() if name != "layout"},
        "no card": {name: one for name, one in PLAN.items() if name != "card"},
        "steps: none": PLAN | {"queries": []},
        "steps: no unit at the end": PLAN | {"queries": ["unit", "affine"]},
        "steps: unknown": PLAN | {"queries": ["unit", "exec", "unit"]},
        "steps: a text": PLAN | {"queries": "unit"},
        "steps: ten thousand": PLAN | {"queries": ["unit"] * 10_000},
        "steps: an affine without tensors": PLAN | {"corpus": ["unit", "affine", "unit"]},
        "steps: a residual without tensors": PLAN | {"queries": ["unit", "residual", "unit"]},
        "steps: tensors of no step": PLAN | {"queries": ["unit"]},
        "card: a setting of another version": with_card(surprise=1),
        "card: another new width": with_card(new_width=4),
        "card: another old width": with_card(old_width=3),
        "card: another width": with_card(width=3),
        "card: a width as text": with_card(new_width="3"),
        "card: a negative width": with_card(new_width=-3),
        "card: a width beyond 64 bits": with_card(new_width=2**80),
        "card: one pair": with_card(n_pairs=1),
        "card: a score that is a text": with_card(scores=["0.4"]),
        "a list": [],
        "null": None,
    }.items():
        yield Case(name, read, {FILE: packed(plan)})
    for name, text in {
        "metadata: not JSON": "{hello",
        "metadata: NaN": json.dumps(with_card(settings={"ridge": float("nan")})),
        "metadata: nested 100,000 deep": "[" * 100_000,
        "metadata: a name twice": '{"layout": 1, ' + json.dumps(PLAN)[1:],
        "metadata: half a surrogate pair": json.dumps(with_card(new_model="\ud800")),
    }.items():
        yield Case(name, read, {FILE: packed(text=text)})
    nan, far = np.float32("nan"), np.float32("inf")
    for name, tensors in {
        "tensors: none": {},
        "tensors: one missing": {"queries.1.matrix": TENSORS["queries.1.matrix"]},
        "tensors: one more": TENSORS | {"queries.7.matrix": np.ones((2, 2), "<f4")},
        "tensors: float64": TENSORS | {"queries.1.offset": np.ones(2)},
        "tensors: NaN": TENSORS | {"queries.1.offset": np.full(2, nan)},
        "tensors: infinity": TENSORS | {"queries.1.matrix": np.full((3, 2), far)},
        "tensors: three dimensions": TENSORS | {"queries.1.matrix": np.ones((3, 2, 1), "<f4")},
        "tensors: transposed": TENSORS | {"queries.1.matrix": np.ones((2, 3), "<f4")},
        "tensors: no rows": TENSORS | {"queries.1.matrix": np.ones((0, 2), "<f4")},
    }.items():
        yield Case(name, read, {FILE: packed(tensors=tensors)})
    for name, entry in {
        "larger than the file": {"shape": [10**9, 2], "data_offsets": [0, 8 * 10**9]},
        "beyond 64 bits": {"shape": [2**62, 4]},
        "negative": {"shape": [-3, -2]},
        "overlapping": {"data_offsets": [8, 32]},
        "a gap": {"data_offsets": [4, 28]},
        "offsets as text": {"data_offsets": ["0", "24"]},
        "a shape of flags": {"shape": [True, 6]},
        "no offsets": {"data_offsets": []},
    }.items():
        yield Case(f"sizes: {name}", read, {FILE: packed(matrix=entry)})
    header = json.dumps({"__metadata__": {KEY: json.dumps(PLAN)}}).encode()
    for name, content in {
        "not JSON": raw(b"{hello}"),
        "a list": raw(b"[]"),
        "an entry that is a number": raw(header[:-1] + b', "queries.1.matrix": 7}'),
        "other metadata": raw(json.dumps({"__metadata__": {"format": "pt"}}).encode()),
        "metadata is a list": raw(b'{"__metadata__": []}'),
        "longer than the file": raw(header, length=10**6),
        "of 16 exabytes": raw(header, length=2**64 - 1),
        "nested 100,000 deep": raw(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
        "a pickle": b"cos\nsystem\n(S'touch executed'\ntR.",
    }.items():
        yield Case(f"header: {name}", read, {FILE: content})
    yield Case("header: of 900 MB", read, {FILE: hole(9 * 10**8 + 8, struct.pack("<Q", 9 * 10**8))})
    yield Case("12 GB of zeros after it", read, {FILE: hole(12 * 10**9, whole)})
    yield Case("900 MB of zeros after it", read, {FILE: hole(9 * 10**8, whole)})
    yield from places(FILE, read)
    for name, content in spoiled(whole, n_flips=24):
        yield Case(name, read, {FILE: content}, truth(content))


def drawn():
    return changes(packed(), lambda name, content: Case(name, read, {FILE: content}, truth(content)))
