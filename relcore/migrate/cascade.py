"""Rank the results of the old index by the new model. This needs NumPy, and apply.py beside this file.

    cache = Cache("cache.npy", embed)
    ids = ranked(old_query, new_query, search, cache)

embed(ids) returns new vectors (m, d). The cache may be any function from ids to new vectors.
search(vector, n) returns the ids of the n nearest rows of the old index by cosine, best first:

    faiss    lambda vector, n: [ids[row] for row in index.search(vector[None], n)[1][0] if row >= 0]
    LanceDB  lambda vector, n: [
                 row["id"] for row in table.search(vector).distance_type("cosine").limit(n).to_list()]
    a list   ListIndex(ids, vectors)
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np


def ranked(
    old_query: Any,
    new_query: Any,
    search: Callable[[np.ndarray, int], Sequence[Any]],
    vectors: Callable[[list[Any]], Any],
    k: int = 10,
    n: int | None = None,
    lists: str | None = None,
    mapped: Callable[[np.ndarray, int], Sequence[Any]] | None = None,
) -> list[Any]:
    """Find the k best ids for a query, which is given by its vectors from both models, (d_old,) and (d_new,).

    The new model ranks n candidates. `lists` says where they come from: "old", the results of the old query;
    "bridged", the results of the new query after the adapter; or "both", alternately from both lists. By
    default, n and `lists` are those of the adapter's card. If the adapter rewrites the corpus, `mapped` must
    search the rewritten rows.
    """
    import apply

    card = apply.adapter()[0]["card"]
    n = card["n_candidates"] if n is None else n
    lists = card["candidates"] if lists is None else lists
    check(lists in ("old", "bridged", "both"), "lists", "'old', 'bridged' or 'both'", repr(lists))
    for name, number in (("k", k), ("n", n)):
        is_count = isinstance(number, int | np.integer) and number > 0 and number is not True
        check(is_count, name, "a whole number from 1", repr(number))
    old_query = query_of(old_query, "old_query")
    new_query = query_of(new_query, "new_query")
    found = []
    if lists != "bridged":
        found = [list(search(unit(old_query), n))]
    if lists != "old":
        found.append(list((mapped or search)(apply.queries(np.asarray(new_query)[None])[0], n)))
    ids = list(dict.fromkeys(one[row] for row in range(n) for one in found if row < len(one)))[:n]
    if not ids:
        return []
    rows = numbers_of(vectors(ids), "vectors")
    got = " × ".join(map(str, rows.shape))
    check(rows.shape == (len(ids), len(new_query)), "vectors", f"{len(ids)} × {len(new_query)} numbers", got)
    check(np.isfinite(rows).all(), "vectors", "finite numbers", "NaN or infinite values")
    scores = unit(rows) @ unit(new_query)
    return [ids[place] for place in np.argsort(-scores, kind="stable")[:k]]


def check(is_right: Any, name: object, expected: str, got: str) -> None:
    if not is_right:
        raise ValueError(f"{name}: expected {expected}, got {got}")


def query_of(x: Any, name: str) -> np.ndarray:
    """A query as float32, (d,). Raises a ValueError unless it has a direction."""
    query = numbers_of(x, name)
    check(query.ndim == 1, name, "one vector, of shape (d,)", f"an array of shape {query.shape}")
    check(np.isfinite(query).all(), name, "finite numbers", "NaN or infinite values")
    check(query.any(), name, "a vector with a direction", "only zeros")
    return query


def numbers_of(x: Any, name: str) -> np.ndarray:
    """The numbers as float32. Raises a ValueError unless they are real numbers and none is masked."""
    check(not np.ma.is_masked(x), name, "numbers", "masked values")
    try:
        numbers = np.asarray(x)
    except (ValueError, TypeError):
        raise ValueError(f"{name}: expected rows of one length, got others") from None
    check(numbers.dtype.kind in "iuf", name, "real numbers", f"values of type {numbers.dtype}")
    with np.errstate(over="ignore"):  # a number too large for float32 becomes infinite and is refused
        return numbers.astype(np.float32)


def unit(x: Any) -> np.ndarray:
    """The vectors (…, d), scaled to length 1. A zero vector stays zero."""
    x = np.asarray(x, np.float32)
    largest = np.abs(x).max(axis=-1, keepdims=True, initial=0)
    # The square of a very large or very small number would leave the range of float32.
    far = (largest > 1e15) | ((largest > 0) & (largest < 1e-15))
    x = x / np.where(far, largest, np.float32(1))
    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), np.float32(1e-30))


class ListIndex:
    def __init__(self, ids: Sequence[Any], vectors: Any) -> None:
        self.ids = list(ids)
        rows = numbers_of(vectors, "index")
        got = f"{len(self.ids)} ids and an array of shape {rows.shape}"
        check(rows.ndim == 2 and len(self.ids) == len(rows), "index", "an id for each row", got)
        check(len(set(self.ids)) == len(self.ids), "index", "distinct ids", "an id of several rows")
        check(np.isfinite(rows).all(), "index", "finite numbers", "NaN or infinite values")
        self.vectors = unit(rows)

    def __call__(self, vector: np.ndarray, n: int) -> list[Any]:
        width = self.vectors.shape[1]
        check(len(vector) == width, "index", f"a query of {width} numbers", f"{len(vector)}")
        return [self.ids[row] for row in np.argsort(-(self.vectors @ vector), kind="stable")[:n]]


class Cache:
    def __init__(self, path: str | Path, embed: Callable[[list[Any]], Any]) -> None:
        # the .npy file that `save` writes: ids and vectors
        self.path = Path(path)
        self.embed = embed
        stored: Any = ()
        if self.path.exists():
            try:
                stored = np.load(path, allow_pickle=False)
            except (ValueError, EOFError, OSError) as error:
                raise ValueError(f"{path}: expected a file that `save` wrote, got {error}") from None
            names = None
            if isinstance(stored, np.ndarray):
                names = stored.dtype.names
            check(names == ("id", "vector"), path, "a file that `save` wrote", f"columns {names}")
        self.known: dict[str, np.ndarray] = {str(one): vector for one, vector in stored}

    def __call__(self, ids: Sequence[Any]) -> np.ndarray:
        # The file holds ids as texts.
        if missing := [one for one in ids if str(one) not in self.known]:
            rows = numbers_of(self.embed(missing), "embed")
            got = f"an array of shape {rows.shape}"
            check(rows.ndim == 2 and len(rows) == len(missing), "embed", f"{len(missing)} vectors", got)
            check(np.isfinite(rows).all(), "embed", "finite numbers", "NaN or infinite values")
            width = len(next(iter(self.known.values()), rows[0]))
            check(rows.shape[1] == width, "embed", f"vectors of {width} numbers", got)
            self.known |= zip(map(str, missing), rows, strict=True)
        return np.array([self.known[str(one)] for one in ids])

    def save(self) -> None:
        if not self.known:
            return
        width = len(next(iter(self.known.values())))
        longest = max(map(len, self.known))
        np.save(self.path, np.array([*self.known.items()], [("id", f"U{longest}"), ("vector", "f4", width)]))
