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
    n = n or card["n_candidates"]
    lists = lists or card["candidates"]
    found = []
    if lists != "bridged":
        found = [list(search(unit(old_query), n))]
    if lists != "old":
        found.append(list((mapped or search)(apply.queries(np.asarray(new_query)[None])[0], n)))
    ids = list(dict.fromkeys(one[row] for row in range(n) for one in found if row < len(one)))[:n]
    scores = unit(vectors(ids)) @ unit(new_query)
    return [ids[place] for place in np.argsort(-scores, kind="stable")[:k]]


def unit(x):
    x = np.asarray(x, np.float32)
    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), np.float32(1e-30))


class ListIndex:
    def __init__(self, ids, vectors):
        self.ids = list(ids)
        self.vectors = unit(vectors)

    def __call__(self, vector, n):
        return [self.ids[row] for row in np.argsort(-(self.vectors @ vector), kind="stable")[:n]]


class Cache:
    def __init__(self, path, embed):
        # the .npy file that `save` writes: ids and vectors
        self.path = Path(path)
        self.embed = embed
        stored = ()
        if self.path.exists():
            stored = np.load(path)
        self.known = {str(one): vector for one, vector in stored}

    def __call__(self, ids):
        if missing := [one for one in ids if one not in self.known]:
            self.known |= zip(missing, np.asarray(self.embed(missing), np.float32), strict=True)
        return np.array([self.known[one] for one in ids])

    def save(self):
        width = len(next(iter(self.known.values())))
        longest = max(map(len, self.known))
        np.save(self.path, np.array([*self.known.items()], [("id", f"U{longest}"), ("vector", "f4", width)]))
