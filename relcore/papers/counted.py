"""Table 7 of the first paper: the classes of its datasets, counted in the files that are here."""

from __future__ import annotations

from relcore.papers.local import labels_of
from relcore.papers.ours import Number
from relcore.papers.runs import Measured, Settings
from relcore.papers.summaries import rounded
from relcore.progress import Report
from relcore.store import Store


def classes(settings: Settings, store: Store, report: Report) -> Measured:
    """Classes and labelled items of each dataset, and the share of the items that its largest class has."""
    numbers = []
    for done, name in enumerate(settings["datasets"]):
        report(done, len(settings["datasets"]), name)
        counts = labels_of(name, store)
        n = sum(counts.values())
        numbers.append(Number(name, "classes", len(counts), unit="count", n=n, low=len(counts), high=len(counts)))
        numbers.append(Number(name, "share of the largest class", rounded(max(counts.values()) / n), n=n))
    return Measured(tuple(numbers))
