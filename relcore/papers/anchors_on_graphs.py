"""Fig. 6 (left) of the first paper: a graph network trained along with its relative rows, by number of anchors."""

from __future__ import annotations

from relcore.papers.end_to_end_graphs import load_nodes, parted, trained_answers, weighted_f1
from relcore.papers.runs import Measured, Settings
from relcore.papers.summaries import grouped
from relcore.progress import Report
from relcore.store import Store


def by_count(settings: Settings, store: Store, report: Report) -> Measured:
    """Weighted F1 on held-out nodes by number of anchors, and of the same network on absolute rows."""
    nodes = load_nodes(settings["graph"], store)
    steps = [(count, state) for count in settings["n_anchors"] for state in settings["random_states"]]
    rows = []
    for done, (count, state) in enumerate(steps):
        report(done, len(steps), f"{count} anchors, random state {state}")
        split = parted(nodes, count, state)
        answers = trained_answers(nodes, split, "relative", settings["width"], settings["epochs"])
        told = {"label": f"{count} anchors", "metric": "relative: weighted F1", "value": weighted_f1(nodes, split, answers)}
        rows.append({**told, "n": len(split.test)})
    return Measured(grouped(rows))
