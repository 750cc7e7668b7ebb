"""Graph encoders: the network by hand, learning on a small made graph, and Cora."""

import numpy as np
import pytest

from relcore.encoders.encoder import Dataset
from relcore.encoders.vision import GraphEncoder
from tests.lazily import Lazily

torch = Lazily("torch")
geometric = Lazily("torch_geometric.data")
nn = Lazily("torch_geometric.nn")

SMALL = {"width": 16, "epochs": 40, "dropout": 0.1}


def graph_dataset(data, name="made"):
    n = len(data.x) if data.x is not None else 10
    return Dataset(
        lambda start, stop: list(range(start, stop)),
        [f"n{row}" for row in range(n)],
        name=name,
        kind="graph",
        content=list,
        graph=lambda: data,
    )


@pytest.fixture(scope="module")
def communities():
    """Three groups of 40 nodes, edges mostly inside, features that say little; directed, so that a
    transposed matrix shows.
    """
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(3), 40)
    inside = groups[:, None] == groups
    edges = np.argwhere(rng.random((120, 120)) < np.where(inside, 0.15, 0.01))
    features = rng.random((120, 12)) + np.eye(3)[groups].repeat(4, axis=1) * 0.4
    return geometric.Data(
        x=torch.tensor(features).float(), edge_index=torch.tensor(edges.T), y=torch.tensor(groups) * 2 + 1
    )


def encode(encoder, dataset):
    return encoder.prepare(dataset, lambda *_: None)(dataset.items(0, len(dataset)))[""]


@pytest.mark.parametrize("architecture", ["gcn2", "gin"])
def test_rows_equal_the_layers_by_hand_over_the_list_of_edges(communities, architecture):
    encoder = GraphEncoder(architecture, layers=3, convolution_activation="tanh", **{**SMALL, "epochs": 2})
    dataset = graph_dataset(communities)
    trained = encoder.train(dataset, lambda *_: None)
    weights = {name: torch.from_numpy(array) for name, array in trained.arrays.items()}
    features = communities.x - communities.x.min()
    features = features / features.sum(dim=1, keepdim=True).clamp(min=1)
    rows = first = torch.relu(features @ weights["first.weight"].T + weights["first.bias"])
    for layer in range(3):
        start = f"convolutions.{layer}."
        part = {
            name.removeprefix(start): tensor for name, tensor in weights.items() if name.startswith(start)
        }
        if architecture == "gcn2":
            convolution = nn.GCN2Conv(16, alpha=0.1, theta=0.5, layer=layer + 1)
            inputs = (rows, first, communities.edge_index)
        else:
            convolution, inputs = nn.GINConv(torch.nn.Linear(16, 16)), (rows, communities.edge_index)
        convolution.load_state_dict(part)
        with torch.inference_mode():
            rows = torch.tanh(convolution(*inputs))
    rows = rows @ weights["last.weight"].T + weights["last.bias"]
    expected = rows / rows.norm(dim=1, keepdim=True)
    found = encoder.restore(trained, dataset)(list(range(120)))[""]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert (found.dtype, found.shape) == (np.float32, (120, 16))


@pytest.mark.parametrize("architecture", ["gcn2", "gin"])
def test_a_small_graph_is_learnt_and_repeated(communities, architecture):
    encoder, dataset, reports = GraphEncoder(architecture, **SMALL), graph_dataset(communities), []
    trained = encoder.train(dataset, lambda *report: reports.append(report))
    facts = trained.metadata
    assert facts["validation accuracy"] >= 0.8
    assert facts["validation accuracy"] == max(facts["accuracies"]) == facts["accuracies"][facts["epoch"] - 1]
    assert facts["losses"][-1] < 0.7 * facts["losses"][0]
    assert reports[-1][:2] == (40, 40)
    before = torch.random.get_rng_state()
    again = encode(encoder, dataset)
    assert torch.equal(before, torch.random.get_rng_state())
    np.testing.assert_array_equal(again, encoder.restore(trained, dataset)(list(range(120)))[""])
    other = encode(GraphEncoder(architecture, random_state=1, **SMALL), dataset)
    assert not np.allclose(again, other, atol=0.1)
    np.testing.assert_array_equal(encoder.restore(trained, dataset)([5, 3])[""], again[[5, 3]])
