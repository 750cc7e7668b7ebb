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

from pathlib import Path

import numpy as np


def ranked(old_query, new_query, search, vectors, k=10, n=None, lists=None, mapped=None):
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
    rows = np.asarray(vectors(ids), np.float32)
    got = " × ".join(map(str, rows.shape))
    check(rows.shape == (len(ids), len(new_query)), "vectors", f"{len(ids)} × {len(new_query)} numbers", got)
    check(np.isfinite(rows).all(), "vectors", "finite numbers", "NaN or infinite values")
    scores = unit(rows) @ unit(new_query)
    return [ids[place] for place in np.argsort(-scores, kind="stable")[:k]]


def check(is_right, name, expected, got):
    if not is_right:
        raise ValueError(f"{name}: expected {expected}, got {got}")


def query_of(x, name):
    """A query as float32, (d,). Raises a ValueError unless it has a direction."""
    query = np.asarray(x, np.float32)
    check(query.ndim == 1, name, "one vector, of shape (d,)", f"an array of shape {query.shape}")
    check(np.isfinite(query).all(), name, "finite numbers", "NaN or infinite values")
    check(query.any(), name, "a vector with a direction", "only zeros")
    return query


def unit(x):
    x = np.asarray(x, np.float32)
    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), np.float32(1e-30))


class ListIndex:
    def __init__(self, ids, vectors):
        self.ids = list(ids)
        self.vectors = unit(vectors)
        got = f"{len(self.ids)} ids and an array of shape {self.vectors.shape}"
        check(
            self.vectors.ndim == 2 and len(self.ids) == len(self.vectors), "index", "an id for each row", got
        )

    def __call__(self, vector, n):
        return [self.ids[row] for row in np.argsort(-(self.vectors @ vector), kind="stable")[:n]]


class Cache:
    def __init__(self, path, embed):
        # the .npy file that `save` writes: ids and vectors
        self.path = Path(path)
        self.embed = embed
        stored = ()
        if self.path.exists():
            stored = np.load(path, allow_pickle=False)
            names = stored.dtype.names
            check(names == ("id", "vector"), path, "a file that `save` wrote", f"columns {names}")
        self.known = {str(one): vector for one, vector in stored}

    def __call__(self, ids):
        if missing := [one for one in ids if one not in self.known]:
            rows = np.asarray(self.embed(missing), np.float32)
            got = f"an array of shape {rows.shape}"
            check(rows.ndim == 2 and len(rows) == len(missing), "embed", f"{len(missing)} vectors", got)
            self.known |= zip(missing, rows, strict=True)
        return np.array([self.known[one] for one in ids])

    def save(self):
        if not self.known:
            return
        width = len(next(iter(self.known.values())))
        longest = max(map(len, self.known))
        np.save(self.path, np.array([*self.known.items()], [("id", f"U{longest}"), ("vector", "f4", width)]))
