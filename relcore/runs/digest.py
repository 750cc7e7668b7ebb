"""Digests of settings and arrays: the keys of the store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from relcore.base.names import FAMILIES


def digest_of(*parts: Any) -> str:
    """The hexadecimal digest of frozen dataclasses, strings, numbers, tuples, dicts and arrays; a store key.

    Equal content gives equal digests in every process and version of Python. 1, 1.0, True and "1" give
    different ones, as do dataclasses of different names; a list equals a tuple.
    """
    text = json.dumps([_canonical(part) for part in parts], ensure_ascii=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def plugins_in(*settings: Any) -> list[str]:
    """The plugins named by the settings, with versions, because a new version may change results."""
    versions = {name: entry.plugin for family in FAMILIES for name, entry in family.added.items()}
    named = versions.keys() & set(_texts(_canonical(settings))) if versions else ()
    return sorted({versions[name] for name in named})


def _texts(canonical: Any) -> Iterator[str]:
    if isinstance(canonical, str):
        yield canonical
    elif isinstance(canonical, list):
        for part in canonical:
            yield from _texts(part)


def _canonical(part: Any) -> Any:
    if isinstance(part, np.generic):
        part = part.item()
    if part is None or isinstance(part, (str, bool, int, float)):
        return part
    if isinstance(part, (tuple, list)):
        return ["list", *map(_canonical, part)]
    if isinstance(part, Mapping):
        pairs = [[_canonical(key), _canonical(value)] for key, value in part.items()]
        return ["dict", *sorted(pairs, key=json.dumps)]
    if isinstance(part, np.ndarray) and part.dtype.kind in "biuf":
        content = hashlib.blake2b(
            np.ascontiguousarray(part).reshape(-1).view(np.uint8), digest_size=16
        ).hexdigest()
        return ["array", part.dtype.str, list(part.shape), content]
    if is_dataclass(part) and not isinstance(part, type):
        return [
            "dataclass",
            type(part).__name__,
            *([field.name, _canonical(getattr(part, field.name))] for field in fields(part)),
        ]
    raise TypeError(
        "expected dataclasses, strings, numbers, tuples, dicts or arrays of numbers, got"
        f" {type(part).__name__}"
    )


# The folder of the store, from the environment.

ENVIRONMENT = "RELSCOPE_STORE"


class StoreError(RuntimeError):
    """The store cannot save an entry."""
