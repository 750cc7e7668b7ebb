"""Models of made-up documents: each sees the same latent topics, with a noise of its own."""

import numpy as np

from relcore.migrate.evaluate import JudgedQuery
from relcore.spaces.space import LatentSpace


def model(topics, noise, width, seed, offset=0.0):
    """Rows (n, width): a random linear map of the topics, noise of its own, a common offset."""
    rng = np.random.default_rng(seed)
    turned = topics @ rng.normal(size=(topics.shape[1], width)) / np.sqrt(topics.shape[1])
    return turned + noise * rng.normal(size=turned.shape) + offset


def migration_spaces(n=400, n_queries=60, old_topics=12, new_topics=12, noise=0.2, n_new=None, seed=0):
    """Old and new vectors of n documents, queries by both models, and judgements: the five nearest by all
    twelve topics.

    A model that sees few topics is the worse one. Noise would not do: vectors do not show which of two models
    is noisier.
    """
    rng = np.random.default_rng(seed)
    topics, asked = rng.normal(size=(n, 12)), rng.normal(size=(n_queries, 12))
    ids, names = [f"d{row}" for row in range(n)], [f"q{row}" for row in range(n_queries)]
    both = np.concatenate([topics, asked])
    old, new = (
        model(both[:, :old_topics], noise, 24, seed + 1, 0.5),
        model(both[:, -new_topics:], noise, 32, seed + 2),
    )
    unit = lambda X: X / np.linalg.norm(X, axis=1, keepdims=True)  # noqa: E731
    best = np.argsort(-(unit(asked) @ unit(topics).T), axis=1)[:, :5]
    judgements = tuple(
        JudgedQuery(names[query], ids[row], 1.0) for query in range(n_queries) for row in best[query]
    )
    kept = slice(0, n_new)
    spaces = (
        LatentSpace(old[:n], ids, name="old"),
        LatentSpace(new[:n][kept], ids[kept], name="new"),
        LatentSpace(old[n:], names, name="old queries"),
        LatentSpace(new[n:], names, name="new queries"),
    )
    return spaces, judgements
