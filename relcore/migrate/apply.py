"""Map rows with an adapter of Relscope. This needs only NumPy, and adapter.safetensors beside this file.

queries(x) maps rows of the new model; corpus(x) maps rows of the old model. Search the results by inner
product, which is their cosine. both(…) makes the queries of "query both models".
"""

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np


@cache
def adapter() -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read the adapter. Returns a plan, which lists the kinds of steps for "queries" and for "corpus", and a
    dict with the arrays of the steps by name, such as "queries.1.matrix".
    """
    raw = Path(__file__).with_name("adapter.safetensors").read_bytes()
    begin = 8 + int.from_bytes(raw[:8], "little")
    head = json.loads(raw[8:begin])
    plan = json.loads(head.pop("__metadata__")["relscope-adapter"])
    told = plan["checksum"]  # computed with zeros in place of the checksum
    content = raw.replace(told.encode(), b"0" * 32, 1)
    if hashlib.blake2b(content, digest_size=16).hexdigest() != told:
        raise ValueError("adapter.safetensors: expected the content that was written; copy it again")
    values = {
        name: np.frombuffer(raw[begin:][slice(*one["data_offsets"])], "<f4") for name, one in head.items()
    }
    return plan, {name: one.reshape(head[name]["shape"]) for name, one in values.items()}


def mapped(x: Any, side: str) -> np.ndarray:
    (plan, tensors) = adapter()
    matrices = [one for name, one in sorted(tensors.items()) if name.startswith(f"{side}.") and one.ndim == 2]
    x = rows_of(x, side, len(matrices[0]) if matrices else None)
    for place, kind in enumerate(plan[side]):
        step = {
            name.split(".")[2]: one for name, one in tensors.items() if name.startswith(f"{side}.{place}.")
        }
        if kind == "unit":
            x = unit(x)
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                x = x @ step["matrix"] + step["offset"]
    if not np.isfinite(x).all():
        raise ValueError(f"{side}: expected smaller numbers, got rows that are too large to map; scale them")
    return x


def numbers_of(x: Any, name: str) -> np.ndarray:
    """The numbers as float32. Raises a ValueError unless they are real numbers and none is masked."""
    if np.ma.is_masked(x):
        raise ValueError(f"{name}: expected numbers, got masked values; leave such rows out")
    try:
        numbers = np.asarray(x)
    except (ValueError, TypeError):
        raise ValueError(f"{name}: expected rows of one length, got others; leave such rows out") from None
    if numbers.dtype.kind not in "iuf":
        raise ValueError(f"{name}: expected real numbers, got values of type {numbers.dtype}")
    with np.errstate(over="ignore"):  # a number too large for float32 becomes infinite and is refused
        return numbers.astype(np.float32)


def rows_of(x: Any, name: str, width: int | None = None) -> np.ndarray:
    """The rows (n, d) as float32. Raises a ValueError unless they are finite numbers of this width."""
    rows = numbers_of(x, name)
    if rows.ndim != 2 or (width and rows.shape[1] != width):
        got = " × ".join(map(str, rows.shape)) or "one number"
        raise ValueError(f"{name}: expected rows of shape (n, {width or 'd'}), got {got}; reshape them")
    if not np.isfinite(rows).all():
        raise ValueError(f"{name}: expected finite numbers, got NaN or infinite values; leave such rows out")
    return rows


def unit(x: Any) -> np.ndarray:
    """The rows (n, d), scaled to length 1. A zero row stays zero."""
    x = np.asarray(x, np.float32)
    largest = np.abs(x).max(axis=1, keepdims=True, initial=0)
    # The square of a very large or very small number would leave the range of float32.
    far = (largest > 1e15) | ((largest > 0) & (largest < 1e-15))
    x = x / np.where(far, largest, np.float32(1))
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), np.float32(1e-30))


def queries(x: Any) -> np.ndarray:
    """Map rows of the new model (n, d_new), so that they can search the corpus."""
    return mapped(x, "queries")


def corpus(x: Any) -> np.ndarray:
    """Map rows of the old model (n, d_old), so that they can be searched."""
    return mapped(x, "corpus")


def both(old_queries: Any, new_queries: Any, old_vectors: Any) -> np.ndarray:
    """Join vectors of the same queries by both models, (m, d_old) and (m, d_new), so that one search adds the
    scores of both models.

    Search corpus(old_vectors) with the result, by inner product. If the adapter rewrites the corpus, search
    np.column_stack([unit(old_vectors), corpus(old_vectors)]) instead. The scores of each model are divided by
    their standard deviation over `old_vectors`, which are the corpus or a large sample of it.
    """
    plan, _ = adapter()
    old_vectors = rows_of(old_vectors, "old_vectors")
    if len(old_vectors) < 2:
        raise ValueError(
            f"old_vectors: expected a sample of the corpus, got {len(old_vectors)} rows; give more"
        )
    old_queries = rows_of(old_queries, "old_queries", old_vectors.shape[1])
    new_queries = rows_of(new_queries, "new_queries")
    if len(old_queries) != len(new_queries):
        raise ValueError(
            f"both: expected vectors of the same queries by both models, got {len(old_queries)} and"
            f" {len(new_queries)}; give both in the same order"
        )
    old = standardised(unit(old_queries), np.cov(unit(old_vectors).T, bias=True))
    new = standardised(queries(new_queries), np.cov(corpus(old_vectors).T, bias=True))
    new = np.float32(plan["card"]["weight"]) * new
    if plan["corpus"] == ["unit"]:
        return old + new
    return np.column_stack([old, new])


def standardised(x: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Scale each query in x (m, d) so that its inner products with the rows of a corpus have variance 1.
    `covariance` is that of the corpus. A query whose inner products are all equal becomes zero.
    """
    wide = x.astype(np.float64)
    spread = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", wide, covariance, wide, optimize=True), 0))
    factors = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 1e-9)
    return (wide * factors[:, None]).astype(np.float32)
