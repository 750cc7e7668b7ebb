"""Graph encoders: the network by hand, learning on a small made graph, and Cora."""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.base.torch_state import seeded
from relcore.encoders import graphs
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import encoder_from_json, encoder_to_json
from relcore.encoders.graphs import GraphEncoder
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


def test_the_last_epoch_is_kept_when_asked_for(communities):
    dataset = graph_dataset(communities)
    facts = GraphEncoder(keep="last", **SMALL).train(dataset, lambda *_: None).metadata
    assert (facts["epoch"], facts["validation accuracy"]) == (40, facts["accuracies"][-1])


def test_the_split_goes_by_its_own_state(communities, monkeypatch):
    """Encoders of different random states have seen the same labels, so that their accuracies can be
    compared.
    """
    masks, split = [], graphs._Graph.split
    monkeypatch.setattr(graphs._Graph, "split", lambda graph: masks.append(split(graph)) or masks[-1])
    for states in ({"random_state": 0}, {"random_state": 1}, {"split_state": 1}):
        GraphEncoder(**states, **{**SMALL, "epochs": 1}).train(graph_dataset(communities), lambda *_: None)
    (training, validation), (same, _), (other, _) = masks
    assert torch.equal(training, same)
    assert not torch.equal(training, other)
    assert torch.equal(training, ~validation)
    assert validation.sum() == 12


def test_graphs_that_cannot_be_learnt(communities):
    def changed(**parts):
        return graph_dataset(geometric.Data(**{**communities.to_dict(), **parts}))

    encoder = GraphEncoder(**SMALL)
    with pytest.raises(SpaceError, match="of at least 2 classes, to train on, got 1"):
        encode(encoder, changed(y=torch.zeros(120, dtype=torch.long)))
    with pytest.raises(SpaceError, match="of at least 2 classes, to train on, got none"):
        encode(encoder, changed(y=None))
    with pytest.raises(SpaceError, match="expected a graph with node features x and edges"):
        encode(encoder, changed(x=None))
    texts = Dataset(lambda start, stop: ["a"], ["a"], name="told", kind="texts")
    with pytest.raises(SpaceError, match="told: expected a graph, got texts"):
        encode(encoder, texts)
    with pytest.raises(
        SpaceError, match=r"the training diverged in epoch \d+; lower learning_rate or layers"
    ):
        encode(
            GraphEncoder("gin", layers=40, learning_rate=1e6, optimizer="sgd", **SMALL),
            graph_dataset(communities),
        )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"architecture": "gcn"}, "architecture: expected one of gcn2, gin, got 'gcn'"),
        ({"activation": "gelu"}, "activation: expected one of relu, tanh, got 'gelu'"),
        ({"layers": 0}, "layers: expected a whole number from 1, got 0"),
        ({"dropout": 1.0}, "dropout: expected a number from 0 to below 1, got 1.0"),
    ],
)
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(SpaceError, match=message):
        GraphEncoder(**settings)


def test_settings_go_to_json_and_back():
    encoder = GraphEncoder("gin", layers=3, random_state=7)
    assert encoder_from_json(encoder_to_json(encoder)) == encoder
    assert encoder.title == "GIN 3 × 300, state 7"


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["gcn2", "gin"])
def test_cora_is_learnt(architecture):
    from relcore.encoders.planetoid import raw_folder

    if raw_folder("Cora") is None:
        pytest.skip("Cora's raw files are not under RELSCOPE_DATA")
    dataset = load_dataset(DatasetSpec("planetoid", "Cora"))
    encoder = GraphEncoder(architecture)
    trained = encoder.train(dataset, lambda *_: None)
    assert trained.metadata["validation accuracy"] >= 0.80
    rows = encoder.restore(trained, dataset)(dataset.items(0, len(dataset)))[""]
    assert rows.shape == (2708, 300)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def test_dropped_are_so_many_entries_and_the_sum_stays():
    rows = torch.full((999, 101), 2.0)
    with seeded(0):
        dropped = graphs._dropout(rows, 0.3, training=True)
        other = graphs._dropout(rows, 0.3, training=True)
    zeros = (dropped == 0).double()
    n = rows.numel()
    assert abs(zeros.mean() - 0.3) < 4 * (0.3 * 0.7 / n) ** 0.5
    assert dropped.unique().tolist() == pytest.approx([0, 2 / 0.7])
    for first, second in (
        (zeros, (other == 0).double()),
        (zeros[:, 1:], zeros[:, :-1]),
        (zeros[:, 4:], zeros[:, :-4]),
    ):
        assert abs(torch.corrcoef(torch.stack([first.flatten(), second.flatten()]))[0, 1]) < 4 / n**0.5
    assert graphs._dropout(rows, 0.3, training=False) is rows
    assert graphs._dropout(rows, 0.0, training=True) is rows
