"""``python plugins/studies/resi.py``: how well each measure of similarity passes the tests of ReSi on Cora, as tables
from the runs of the study `measures` of this package; writes resi.md beside it.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pandas as pd
from relscope_studies.measures import FORMS, OURS, SCORES, chance_precision, ranks

from relcore.base.names import METRICS
from relcore.base.numbers import short
from relcore.runs.store import Store
from relcore.studies.runs import StudyRuns
from relcore.studies.study import StudySpec, study_of

PAGE = Path(__file__).with_name("resi.md")
RUNS = Path(__file__).parent / "relscope_studies" / "finished"
_ABOVE = """# ReSi on Cora

<!-- python plugins/studies/resi.py writes this page from the runs of the package -->
ReSi (Klabunde, Wald, Schumacher, Maier-Hein, Strohmaier and Lemmerich, ICLR 2025, arXiv 2408.00531) asks of a measure of similarity whether it finds what
is known of networks: how far their outputs differ (tests 1 and 2), how they were trained (tests 3 to 5), which layers are near each other (test 6). Here are its
tests on the citation graph Cora, with {measures} measures of [docs/measures.md](../../docs/measures.md), raw and calibrated by chance levels. Every measure is shown, ours
(*{ours}*) too.

    pip install ./plugins/studies
    RELSCOPE_DATA=FOLDER relscope study measures     # FOLDER/planetoid/Cora/raw has Planetoid's files

Computed on {date} at commit {commit}. 1 is best in every column. By chance, AUPRC is {chance} (three groups of five networks), a conformity rate
.5, a correlation 0. The study's page has each test by network, with intervals.

*Calibrated* is (s − c) / (1 − c) for a score s of which the chance level has the mean c (10 permutations of the nodes of one network). Gröger, Wen and
Brbić (2026, arXiv 2602.14486) take the upper end of the chance level for c, and 0 below it. IMD has no chance level.

## Ranks

The rank among the measures in each of {cells} cells, three networks by the seven scores of the columns; its mean, with Student's 95 % interval over the cells. The columns are
means over the three networks. Tests 1 and 2 have three of the seven. *Calibrated* ranks are among one measure fewer, as IMD has none. Calibration moves a score by
{moved} on average and {most} at most, that of *{furthest}*.
"""
_BELOW = """
## What differs from ReSi

- The networks are trained again, with other random numbers, by PyTorch alone. Settings are those of ReSi's repository for Cora: width 64, batch norm, 200
  epochs of Adam; GCN and GraphSAGE have three layers, GAT two of eight heads, all three six in test 6. A test compares each convolution with PyTorch Geometric's.
- Groups: tests 3 to 5 have three of five networks, with 0, 25 and 100 % of labels wrong; with a class beside the features that is right for 0, 50 and 100 %
  of the nodes that are trained on or validated; with 0, 20 and 80 % of the edges left out in each epoch. As in ReSi's code, that class is wrong for all test nodes,
  and right for nodes outside the three parts.
- {nodes} of the 1,000 test nodes: of nodes with the same neighbours, which have equal rows in a GCN, one is taken.
- RBF CKA, RSA, second-order cosine, IMD and RTD-Lite compare 500 of these, drawn by a hash of their ids. The *{ours}* takes 300 validation nodes as anchors.
- Each pair of networks is compared once; PWCCA and cycle-kNN, which depend on the direction, are the mean of both.
- The measures are Relscope's. Mutual kNN is ReSi's Jaccard similarity with k = 10. GULP has a ridge of .01, ReSi's none; second-order cosine takes cosines, ReSi's code 1 − cosine;
  PWCCA follows its formula, not its authors' code; IMD sums all eigenvalues; RTD-Lite is the part of dimension 0 of ReSi's RTD. CKNNA, cycle-kNN, RBF and debiased CKA
  are not in ReSi.
- The paper prints its scores of graphs in its appendix. They were not at hand here, so none is beside ours.
"""


def page() -> str:
    study = study_of("measures")
    spec = StudySpec.of(study)
    with tempfile.TemporaryDirectory() as folder:
        table = StudyRuns(study, spec).table(Store(folder, finished=True))
    made = json.loads((RUNS / "measures.json").read_text(encoding="utf-8"))
    raw, calibrated = (ranks(table, prefix) for prefix in FORMS.values())
    facts = {"measures": len(raw), "cells": int(raw["n"].max()), "ours": METRICS[OURS].title}
    facts |= {"date": made["date"], "commit": made["commit"], "nodes": table.nodes.iloc[0]}
    moved = table.set_index("measure").astype(float, errors="ignore")
    moved = pd.DataFrame({name: moved[f"calibrated {name}"] - moved[name] for name in SCORES}).abs()
    facts |= {"moved": short(float(moved.stack().mean())), "most": short(float(moved.max(axis=None)))}
    facts |= {"furthest": METRICS[moved.max(axis=1).idxmax()].title}
    lines = [_ABOVE.format(**facts, chance=short(chance_precision(10, 60), 2))]
    head = ["measure", "rank", "rank, calibrated", *SCORES.values()]
    lines += [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    means = table.groupby("measure")[list(SCORES)].mean()
    for name in raw.index:
        told = [_rank(form, name) for form in (raw, calibrated)]
        values = [short(float(value), 2) for value in means.loc[name]]
        lines.append(f"| {' | '.join([METRICS[name].title, *told, *values])} |")
    return "\n".join(lines) + "\n" + _BELOW.format(**facts)


def _rank(found: pd.DataFrame, name: str) -> str:
    if name not in found.index:
        return "–"
    value, low, high = found.loc[name, ["value", "low", "high"]]
    return f"{value:.1f} ({low:.1f} to {high:.1f})"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
