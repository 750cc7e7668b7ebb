"""Which kinds of queries get other results by an option than by the old model."""

from __future__ import annotations

import numpy as np

from relcore.base.numbers import percent
from relcore.explain.explanation import rows_that_change
from relcore.explain.items import RowItems
from relcore.migrate.result import TITLES, MigrationResult

KEEP = "keep"


def changed_share(result: MigrationResult, option: str) -> np.ndarray:
    """For each query (q,), the share of its results by the old model that the option does not find."""
    old = result.found[KEEP]
    new = result.found[option]
    kept = ((old[:, :, None] == new[:, None, :]) & (old >= 0)[:, :, None]).any(axis=2)
    return 1 - kept.sum(axis=1) / np.maximum((old >= 0).sum(axis=1), 1)


def changed_queries_in_words(result: MigrationResult, option: str, items: RowItems) -> str:
    """Which kinds of queries change more, or less, than all, in a sentence or two. The queries that suggest a
    kind do not test it."""
    change = changed_share(result, option)
    kinds, n_features = rows_that_change(change, result.queries, items)
    text = f"By “{TITLES[option]}”, {percent(float(change.mean()))} of the results of a query change."
    if not kinds:
        return f"{text} No kind of queries changes more than others ({n_features:,} features tried)."
    for more, verb in ((True, "more"), (False, "less")):
        listed = [f"{one.title} ({percent(one.churn)})" for one in kinds if (one.churn > one.of_all) == more]
        if listed:
            text += f" Results change {verb} for {', '.join(listed)}."
    return text
