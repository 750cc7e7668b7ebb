"""GraphEncoder: GCN2Conv and GIN networks trained on a graph's labels; the space is the input of the head."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from relcore.base.environment import torch_name
from relcore.base.errors import SpaceError
from relcore.base.numbers import short
from relcore.base.settings import setting
from relcore.encoders.dataset import Dataset
from relcore.encoders.encoder import EncodeBatch, Trained, TrainedEncoder
from relcore.engine.device import full_precision
from relcore.engine.training import load_arrays, saved_arrays
from relcore.runs.progress import Progress
from relcore.spaces.space import LatentSpace

if TYPE_CHECKING:
    import torch

_TITLES = {"gcn2": "GCN2Conv", "gin": "GIN"}
_SECONDS = 0.39 / 2708  # per node and epoch at width 300


@dataclass(frozen=True)
class GraphEncoder(TrainedEncoder):
    """A node classifier of Moschella et al. 2023, § 4.2 ("Relative representations …", ICLR).

    dropout → Linear → activation → (dropout, convolution, activation) × layers → Linear → unit rows, which
    are the space (n, width). A Linear head is trained with cross-entropy on 90 % of the nodes; 10 % validate.
    As in their code, not their Table 8, GCN2Conv has α = 0.1, θ = 0.5 and shared weights, and GIN has one
    Linear. The paper's reference is ``GraphEncoder(layers=32, epochs=500, random_state=1)``.
    """

    kind: ClassVar = "graph"
    version: ClassVar = 2
    architecture: Literal["gcn2", "gin"] = setting(
        "gcn2", label="Convolutions", choices=_TITLES, several=True, usual=tuple(_TITLES)
    )
    layers: int = setting(
        2,
        low=1,
        help="Number of convolutions. A GIN sums its neighbours without normalising, so deep ones do not"
        " learn.",
    )
    width: int = setting(300, low=1, help="Dimension of the space.")
    dropout: float = setting(0.5, low=0, below=1, more=True)
    activation: Literal["relu", "tanh"] = setting("relu", more=True)
    convolution_activation: Literal["relu", "tanh"] = setting("relu", more=True)
    optimizer: Literal["adam", "sgd"] = setting("adam", more=True)
    learning_rate: float = setting(0.02, above=0, more=True)
    epochs: int = setting(60, low=1)
    keep: Literal["best", "last"] = setting(
        "best",
        more=True,
        help="Keep the weights of the epoch with the best validation accuracy, or of the last.",
    )
    split_state: int = setting(0, low=0, more=True, help="Random state of the validation nodes.")
    random_state: int = setting(0, low=0)

    def seconds(self, n: int, pixels: int = 64) -> float:
        return 5.0 + n * self.epochs * _SECONDS * self.width / 300 * self.layers / 2

    def seen_rows(self, data: Dataset | LatentSpace) -> np.ndarray:
        return np.arange(len(data))  # 90 % train, 10 % validate

    @property
    def title(self) -> str:
        return f"{_TITLES[self.architecture]} {self.layers} × {self.width}, state {self.random_state}"

    def train(
        self, dataset: Dataset, report: Progress, watch: Callable[[np.ndarray], None] | None = None
    ) -> Trained:
        """Train; `watch` is called with the space, (n, width), after each epoch.

        Equal settings give equal bits on a CPU. On a GPU, results agree only up to rounding, because a node's
        neighbours are summed in no fixed order.
        """
        import torch
        from torch.nn.functional import cross_entropy
        from torch_geometric.transforms import RandomNodeSplit

        device = torch_name()
        graph = _Graph(dataset, self.architecture)
        with torch.random.fork_rng(), full_precision(torch, device.partition(":")[0]):
            torch.manual_seed(self.split_state)
            split = RandomNodeSplit(num_val=0.1, num_test=0)(graph.data)
            training, validation = split.train_mask.to(device), split.val_mask.to(device)
            torch.manual_seed(self.random_state)
            network = _network(self, graph).to(device)
            graph.to(device)
            kinds = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
            optimizer = kinds[self.optimizer](network.parameters(), lr=self.learning_rate)
            losses, accuracies, best, weights = [], [], -1, {}
            for epoch in range(self.epochs):
                network.train()
                optimizer.zero_grad()
                loss = cross_entropy(network.head(network(graph))[training], graph.classes[training])
                loss.backward()
                optimizer.step()
                network.eval()
                with torch.inference_mode():
                    rows = network(graph)
                    right = network.head(rows).argmax(dim=1) == graph.classes
                if watch:
                    watch(rows.cpu().numpy())
                losses.append(loss.item())
                accuracies.append(float(right[validation].float().mean()))
                if not math.isfinite(losses[-1]):
                    raise SpaceError(
                        f"{self.title}: the training diverged in epoch {epoch + 1}; lower learning_rate or"
                        " layers"
                    )
                if self.keep == "last" or best < 0 or accuracies[-1] > accuracies[best]:
                    best, weights = epoch, saved_arrays(network)
                measured = {"loss": losses[-1], "accuracy": accuracies[-1]}
                scores = f"loss {short(losses[-1])}, validation accuracy {short(accuracies[-1])}"
                report(epoch + 1, self.epochs, scores, measured)
        facts = {
            "validation accuracy": accuracies[best],
            "epoch": best + 1,
            "losses": losses,
            "accuracies": accuracies,
        }
        return Trained(weights, facts)

    def restore(self, trained: Trained, dataset: Dataset) -> EncodeBatch:
        import torch

        graph = _Graph(dataset, self.architecture)
        with torch.random.fork_rng():  # building a network draws weights
            network = _network(self, graph)
        device = torch_name()
        load_arrays(network, trained.arrays).to(device)
        graph.to(device)
        with torch.inference_mode(), full_precision(torch, device.partition(":")[0]):
            rows = network(graph).float().cpu().numpy()
        return lambda nodes: {"": rows[np.asarray(nodes, dtype=np.int64)]}


class _Graph:
    """Features with rows that sum to 1, classes, and the matrix of the convolutions."""

    def __init__(self, dataset: Dataset, architecture: str) -> None:
        import torch
        from torch_geometric.nn.conv.gcn_conv import gcn_norm
        from torch_geometric.transforms import NormalizeFeatures

        self.data = dataset.graph()
        if self.data.x is None or self.data.edge_index is None:
            raise SpaceError(
                f"{dataset.name}: expected a graph with node features x and edges, got {self.data}"
            )
        if self.data.y is None or self.data.y.ndim != 1 or len(self.data.y.unique()) < 2:
            kinds = "none" if self.data.y is None else f"{len(self.data.y.unique())}"
            raise SpaceError(
                f"{dataset.name}: expected one label a node, of at least 2 classes, to train on, got {kinds}"
            )
        self.data = NormalizeFeatures()(self.data)
        self.features, self.classes = self.data.x.float(), self.data.y.unique(return_inverse=True)[1]
        # Sparse (n, n), one row per receiving node, is faster than a list of edges.
        edges, n = self.data.edge_index, len(self.features)
        weights = torch.ones(edges.shape[1])
        if architecture == "gcn2":
            edges, weights = gcn_norm(edges, None, n)
        matrix = torch.sparse_coo_tensor(edges.flip(0), weights, (n, n), check_invariants=True)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse CSR tensor support")
            self.matrix = matrix.coalesce().to_sparse_csr()

    def to(self, device: str) -> None:
        tensors = (self.features, self.classes, self.matrix)
        self.features, self.classes, self.matrix = (tensor.to(device) for tensor in tensors)


def _dropout(rows: torch.Tensor, share: float, training: bool) -> torch.Tensor:
    """Dropout with a probability in steps of 1/65,536; one 64-bit draw serves four entries, because torch's
    dropout takes longer than the layer's product."""
    import torch

    if not training or share == 0:
        return rows
    bits = torch.empty((rows.numel() + 3) // 4, dtype=torch.int64, device=rows.device).random_(-(2**63), None)
    kept = bits.view(torch.int16)[: rows.numel()].view(rows.shape) >= round(share * 2**16) - 2**15
    return rows * kept.to(rows.dtype).mul_(1 / (1 - share))


def _network(spec: GraphEncoder, graph: _Graph) -> Any:
    import torch
    from torch.nn.functional import normalize
    from torch_geometric.nn import GCN2Conv, GINConv

    activations = {"relu": torch.relu, "tanh": torch.tanh}

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            width = spec.width
            self.first = torch.nn.Linear(graph.features.shape[1], width)
            self.convolutions = torch.nn.ModuleList(
                # The matrix is already normalised.
                (
                    GCN2Conv(
                        width, alpha=0.1, theta=0.5, layer=layer + 1, shared_weights=True, normalize=False
                    )
                    if spec.architecture == "gcn2"
                    else GINConv(torch.nn.Linear(width, width))
                )
                for layer in range(spec.layers)
            )
            self.last = torch.nn.Linear(width, width)
            self.head = torch.nn.Linear(width, int(graph.classes.max()) + 1)

        def forward(self, graph: _Graph) -> torch.Tensor:
            rows = _dropout(graph.features, spec.dropout, self.training)
            rows = first = activations[spec.activation](self.first(rows))
            for convolution in self.convolutions:
                rows = _dropout(rows, spec.dropout, self.training)
                inputs = (rows, first) if spec.architecture == "gcn2" else (rows,)
                rows = activations[spec.convolution_activation](convolution(*inputs, graph.matrix))
            return normalize(self.last(rows))

    return Network()
