"""The study of measures: its networks against PyTorch Geometric's, its tests against their definitions."""

import pickle
from collections import defaultdict
from itertools import product

import numpy as np
import pytest
import scipy.sparse
from relscope_studies import measures
from relscope_studies.graphs import load_graph
from resi import PAGE, page
from scipy.spatial.distance import jensenshannon
from sklearn.metrics import average_precision_score

from relcore.runs.store import Store
from relcore.studies.runs import StudyRuns, run_job, run_row
from relcore.studies.study import StudySpec, study_of


@pytest.mark.slow
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("kind", measures.ARCHITECTURES)
def test_a_convolution_is_that_of_pytorch_geometric(kind, last):
    import torch
    from torch_geometric import nn

    torch.manual_seed(0)
    edges = torch.randint(0, 30, (2, 90)).unique(dim=1)
    rows = torch.randn(30, 12)
    out = 7 if last else 16
    edges = edges[:, edges[0] != edges[1]]
    part = measures._parameters(kind, 12, out, last)
    part["bias"] = torch.randn(out)
    if kind == "gcn":
        theirs = nn.GCNConv(12, out)
        weights = {"lin.weight": part["weight"].T, "bias": part["bias"]}
    elif kind == "sage":
        theirs = nn.SAGEConv(12, out)
        weights = {
            "lin_l.weight": part["weight"].T,
            "lin_r.weight": part["own"].T,
            "lin_l.bias": part["bias"],
        }
    else:
        theirs = nn.GATConv(12, out if last else out // 8, heads=8, concat=not last)
        weights = {"lin.weight": part["weight"].T, "bias": part["bias"]}
        weights |= {"att_src": part["source"][None], "att_dst": part["target"][None]}
    theirs.load_state_dict(weights)
    ours = measures._convolved(kind, part, rows, measures._gathering(kind, edges.numpy(), 30), 1.0)
    torch.testing.assert_close(ours, theirs(rows, edges), rtol=1e-5, atol=1e-5)


GROUPS = np.repeat([0, 1, 2], 5)


def symmetric(seed):
    values = np.random.default_rng(seed).normal(size=(15, 15)).round(1)  # some are equal
    return values + values.T


@pytest.mark.parametrize("weighted", [False, True])
def test_separation_is_average_precision_and_the_share_of_pairs_in_order(weighted):
    scores = symmetric(1)
    if weighted:
        weights = np.random.default_rng(2).integers(0, 3, 15)
    else:
        weights = np.ones(15, int)
    precisions = []
    rates = []
    for group in range(3):
        within = []
        across = []
        for i, j in product(range(15), repeat=2):
            if GROUPS[i] == group and (GROUPS[j] != group or i < j):
                chosen = within if GROUPS[j] == group else across
                chosen += [scores[i, j]] * (weights[i] * weights[j])
        right = [1] * len(within) + [0] * len(across)
        precisions.append(average_precision_score(right, within + across))
        rates.append(np.mean([one > other for one, other in product(within, across)]))
    expected = np.mean(precisions), np.mean(rates)
    assert measures.separation(scores, GROUPS, weights) == pytest.approx(expected)


def test_output_differences():
    rng = np.random.default_rng(0)
    answers = rng.normal(size=(2, 40, 3))
    truth = rng.integers(0, 3, 40)
    found = measures.output_differences(answers, truth)
    shares = np.exp(answers) / np.exp(answers).sum(axis=2, keepdims=True)
    apart = np.mean([jensenshannon(*rows, base=2) ** 2 for rows in zip(*shares, strict=True)])
    first, second = answers.argmax(axis=2)
    assert found["divergence"][0, 1] == pytest.approx(apart)
    assert found["disagreement"][0, 1] == np.mean(first != second)
    assert found["accuracy"][0, 1] == pytest.approx(abs(np.mean(first == truth) - np.mean(second == truth)))


# A small graph in Cora's raw files: 30 nodes to train on, 500 to validate, 80 to test; three classes.


@pytest.fixture
def small_graph(tmp_path, monkeypatch):
    raw = tmp_path / "planetoid" / "Cora" / "raw"
    raw.mkdir(parents=True)
    rng = np.random.default_rng(0)
    n = 640
    tested = 80
    classes = rng.integers(0, 3, n)
    x = (rng.random((n, 24)) < 0.1 + 0.5 * (np.arange(24) % 3 == classes[:, None])).astype(np.float32)
    y = np.eye(3, dtype=np.int32)[classes]
    first = n - tested
    edges = defaultdict(list)
    for node in range(n - 2):
        for other in rng.choice(np.flatnonzero(classes[: n - 2] == classes[node]), 2):
            edges[node].append(int(other))
            edges[int(other)].append(node)
    # a GCN gives both the same row
    edges[n - 2] = [n - 1]
    edges[n - 1] = [n - 2]
    parts = {"x": x[:30], "allx": x[:first], "tx": x[first:]}
    parts = {name: scipy.sparse.csr_matrix(part) for name, part in parts.items()}
    parts |= {"y": y[:30], "ally": y[:first], "ty": y[first:], "graph": edges}
    for name, part in parts.items():
        (raw / f"ind.cora.{name}").write_bytes(pickle.dumps(part, protocol=3))
    (raw / "ind.cora.test.index").write_text("".join(f"{node}\n" for node in range(first, n)))
    monkeypatch.setenv("RELSCOPE_DATA", str(tmp_path))
    monkeypatch.setattr(measures, "EPOCHS", 2)
    monkeypatch.setattr(measures, "_RESAMPLES", 20)


def test_of_nodes_with_the_same_neighbours_one_is_compared(small_graph):
    graph = load_graph("Cora")
    nodes, anchors = measures.compared_nodes(graph)
    assert (len(nodes), nodes.max(), len(anchors)) == (79, 638, 300)
    assert not set(nodes) & set(anchors)


class Here:
    """The arguments of a job, without its place."""

    def __init__(self, store, key):
        self.store = store
        self.key = key
        self.report = lambda *told: None


def test_the_study_runs_on_a_small_graph(small_graph, tmp_path):
    study = study_of("measures")
    store = Store(tmp_path / "store")
    given = {"architectures": ("gcn", "gat"), "measures": ("cka", "imd", "relative cosine"), "n_states": 2}
    spec = StudySpec.of(study, given)
    runs = StudyRuns(study, spec)
    for settings, key in zip(runs.settings, runs.keys, strict=True):
        run_job(Here(store, key), study=study, settings=settings)
    table = runs.table(store)
    assert (len(table), set(table.nodes)) == (6, {79})
    assert table[list(measures.SCORES)].abs().max(axis=None) <= 1
    without = table[table.measure == "imd"][[f"calibrated {name}" for name in measures.SCORES]]
    assert without.isna().all(axis=None)  # IMD has no chance level
    charts = study.charts(spec.settings, table)
    assert list(charts) == ["raw", "calibrated", "by network", "ranks"]
    assert [panel.title for panel in charts["raw"].panels] == ["mean of GCN and GAT"]
    assert [panel.title for panel in charts["by network"].panels] == ["GCN", "GAT"]
    conclusion = study.conclusion(spec.settings, table)
    assert "Of 3 measures on Cora" in conclusion
    assert "relative cosine, ours, is number" in conclusion
    findings = study.findings(spec.settings, table)
    assert findings.what.str.contains("raw: mean rank").sum() == 3
    again = study.measure(runs.settings[0], Store(tmp_path / "again"), lambda *told: None).values
    assert {name: run_row(runs.keys[0], store)[name] for name in again} == again


def test_the_tables_are_those_of_the_runs_that_come_with_relscope():
    assert PAGE.read_text(encoding="utf-8") == page()
