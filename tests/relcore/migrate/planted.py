"""Models of made-up documents, which see the same latent topics, each with its own noise; adapters with
random numbers.
"""

from dataclasses import dataclass

import numpy as np

from relcore.base.rows import unit_rows
from relcore.migrate.adapters import Adapter, AffineStep
from relcore.scores.relevance import JudgedQuery
from relcore.spaces.space import LatentSpace

NEW = 12
OLD = 9
PROJECTED = 7


@dataclass(eq=False)
class Made(Adapter):
    """An adapter that maps only queries, or the corpus, too."""

    projected: bool = False

    def _solve(self, new, old):
        rng = np.random.default_rng(7)
        end = PROJECTED if self.projected else OLD
        steps = [
            AffineStep(*(rng.normal(size=shape).astype(np.float32) for shape in ((width, end), end)))
            for width in (NEW, OLD)
        ]
        return (steps[0],), (steps[1],) * self.projected


def pairs(n=40):
    """Rows of both models, (n, 12) and (n, 9), of uneven lengths; one new row is zero."""
    rng = np.random.default_rng(3)
    new, old = (
        (rng.normal(size=(n, width)) * rng.uniform(0.1, 30, (n, 1))).astype(np.float32)
        for width in (NEW, OLD)
    )
    new[5] = 0
    return new, old


def model(topics, noise, width, seed, offset=0.0):
    """Rows (n, width): a random linear map of the topics, plus noise and an offset."""
    rng = np.random.default_rng(seed)
    turned = topics @ rng.normal(size=(topics.shape[1], width)) / np.sqrt(topics.shape[1])
    return turned + noise * rng.normal(size=turned.shape) + offset


def write_migration(folder):
    """Write the spaces and the judgements of a small migration, and return both."""
    spaces, judgements = migration_spaces(n=300, n_queries=40)
    for name, space in zip(("old", "new", "q_old", "q_new"), spaces, strict=True):
        np.savez(folder / f"{name}.npz", vectors=space.vectors, ids=space.ids.astype(str))
    lines = [f"{one.query} 0 {one.row} {one.grade:.0f}\n" for one in judgements]
    (folder / "qrels.txt").write_text("".join(lines), encoding="utf-8")
    return spaces, judgements


def migration_spaces(n=400, n_queries=60, old_topics=12, new_topics=12, noise=0.2, n_new=None):
    """Old and new vectors of n documents, queries by both models, and judgements: for each query, the five
    nearest documents by all twelve topics. A model that sees fewer topics is worse.
    """
    rng = np.random.default_rng(0)
    topics = rng.normal(size=(n, 12))
    asked = rng.normal(size=(n_queries, 12))
    ids = [f"d{row}" for row in range(n)]
    names = [f"q{row}" for row in range(n_queries)]
    both = np.concatenate([topics, asked])
    old = model(both[:, :old_topics], noise, 24, 1, 0.5)
    new = model(both[:, -new_topics:], noise, 32, 2)
    best = np.argsort(-(unit_rows(asked) @ unit_rows(topics).T), axis=1)[:, :5]
    judgements = tuple(
        JudgedQuery(name, ids[row], 1.0) for name, rows in zip(names, best, strict=True) for row in rows
    )
    spaces = (
        LatentSpace(old[:n], ids, name="old"),
        LatentSpace(new[:n][:n_new], ids[:n_new], name="new"),
        LatentSpace(old[n:], names, name="old queries"),
        LatentSpace(new[n:], names, name="new queries"),
    )
    return spaces, judgements
