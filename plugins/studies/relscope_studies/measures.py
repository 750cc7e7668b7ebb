"""Which measures of similarity recognise networks that are known to be similar? The tests of ReSi."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import combinations, pairwise, product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.names import METRICS
from relcore.base.numbers import and_list, short
from relcore.compare.all_pairs import AllPairs, metrics_among_spaces
from relcore.engine.training import reproducible
from relcore.figures.charts import Line, Lines
from relcore.figures.matrices import Matrices, MatrixPanel
from relcore.runs.store import Store
from relcore.runs.work import Progress
from relcore.scores.estimate import Estimate
from relcore.scores.sampled import fewer_permutations
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split
from relcore.studies.estimates import finding, findings_table, mean
from relcore.studies.runs import finished_run
from relcore.studies.study import Chart, Option, RunResult, Settings, Study, states
from relscope_studies.graphs import load_graph

if TYPE_CHECKING:
    import torch

# Settings of the networks, as in ReSi's code: layers, dropout, learning rate, weight decay.

ARCHITECTURES = {"gcn": "GCN", "sage": "GraphSAGE", "gat": "GAT"}
_KINDS = {"gcn": (3, 0.5, 0.01, 0.0), "sage": (3, 0.5, 0.005, 5e-4), "gat": (2, 0.6, 0.005, 5e-4)}
EPOCHS = 200
# layers of the networks whose layers are compared
_WIDTH = 64
_HEADS = 8
_DEEP = 6
_TEST_STATE = 2024  # of the labels that all networks read beside the test nodes, as in ReSi's code


def _parameters(kind: str, width: int, out: int, last: bool) -> dict[str, torch.Tensor]:
    """Draw the parameters of a convolution from `width` to `out` columns as PyTorch Geometric does."""
    import torch

    def drawn(bound: float, *shape: int) -> torch.Tensor:
        return torch.empty(shape).uniform_(-bound, bound)

    if kind == "sage":
        shapes = {"weight": (width, out), "own": (width, out), "bias": (out,)}
        return {name: drawn(width**-0.5, *shape) for name, shape in shapes.items()}
    if kind == "gcn" or last:
        each = out
    else:
        each = out // _HEADS
    wide = each if kind == "gcn" else each * _HEADS
    parts = {"weight": drawn((6 / (width + wide)) ** 0.5, width, wide), "bias": torch.zeros(out)}
    if kind == "gat":
        parts |= {end: drawn((6 / (_HEADS + each)) ** 0.5, _HEADS, each) for end in ("source", "target")}
    return parts


def _convolved(kind: str, part: Any, rows: Any, graph: Sequence[Any], kept: float) -> torch.Tensor:
    """One convolution: GCN (Kipf and Welling 2017, eq. 2), GraphSAGE with means (Hamilton et al. 2017), or
    GAT (Veličković et al. 2018, eqs. 3 to 6), of which a share `kept` of the attention is not dropped."""
    import torch
    from torch.nn import functional

    sent = _times(rows, part["weight"])
    if kind == "gcn":
        return _times(graph, sent) + part["bias"]
    if kind == "sage":
        return _times(graph, sent) + _times(rows, part["own"]) + part["bias"]
    (source, target) = graph
    n = len(sent)
    heads = sent.view(n, _HEADS, -1)
    ends = [
        (heads * part[end]).sum(dim=2).index_select(0, side)
        for end, side in zip(("source", "target"), graph, strict=True)
    ]
    scores = functional.leaky_relu(ends[0] + ends[1], 0.2)
    most = torch.full((n, _HEADS), -torch.inf)
    most = most.scatter_reduce(0, target[:, None].expand_as(scores), scores.detach(), "amax")
    weights = (scores - most.index_select(0, target)).exp()
    sums = torch.zeros(n, _HEADS).index_add(0, target, weights)
    weights = _dropped(weights / sums.index_select(0, target), kept)
    moved = sent.index_select(0, source).view(len(source), _HEADS, -1) * weights[:, :, None]
    mixed = torch.zeros_like(sent).index_add(0, target, moved.flatten(1))
    if len(part["bias"]) != mixed.shape[1]:  # the last layer takes the mean of its heads
        mixed = mixed.view(n, _HEADS, -1).mean(dim=1)
    return mixed + part["bias"]


def _dropped(values: torch.Tensor, kept: float) -> torch.Tensor:
    """Dropout; drawn uniformly, which takes half the time of torch's own on a CPU."""
    import torch

    if kept == 1:
        return values
    return values * (torch.rand(values.shape) < kept) / kept


def _times(matrix: Any, rows: torch.Tensor) -> torch.Tensor:
    """The product of a matrix, or of a sparse one that is given with its transpose, and rows."""
    import torch

    if isinstance(matrix, torch.Tensor):
        return matrix @ rows
    return _product()(rows, *matrix)


@cache
def _product() -> Callable[..., torch.Tensor]:
    """A sparse product with a gradient. torch transposes a sparse matrix again for each gradient, which
    takes most of an epoch.
    """
    import torch

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(
            context: Any, rows: torch.Tensor, matrix: torch.Tensor, turned: torch.Tensor
        ) -> torch.Tensor:
            context.turned = turned
            return matrix @ rows

        @staticmethod
        def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
            return context.turned @ gradient, None, None

    return Product.apply


def _both_ways(matrix: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """A sparse matrix of SciPy and its transpose."""
    import torch

    def read(one: Any) -> torch.Tensor:
        parts = (torch.from_numpy(part) for part in (one.indptr, one.indices, one.data.astype(np.float32)))
        return torch.sparse_csr_tensor(*parts, one.shape, check_invariants=False)

    return read(matrix.tocsr()), read(matrix.T.tocsr())


def _gathering(kind: str, edges: np.ndarray, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The edges (2, m) in the form that a convolution needs: the matrix (n, n) that sums the rows of each
    node's neighbours, and its transpose. For a GAT, the ends of all edges, including those from each node to
    itself."""
    import torch
    from scipy.sparse import coo_array

    if kind == "sage":
        source, target = edges
    else:
        source, target = np.hstack([edges, np.tile(np.arange(n), (2, 1))])
    if kind == "gat":
        return torch.from_numpy(source), torch.from_numpy(target)
    degrees = np.maximum(np.bincount(target, minlength=n), 1)
    if kind == "sage":
        shares = 1 / degrees[target]
    else:
        shares = (degrees[source] * degrees[target]) ** -0.5
    return _both_ways(coo_array((shares, (target, source)), (n, n)))


def trained(
    kind: str, n_layers: int, x: torch.Tensor, y: torch.Tensor, graph: Any, drop: float, random_state: int
) -> tuple[np.ndarray, np.ndarray]:
    """Train a network on the graph's training nodes; returns the output of each hidden convolution for each
    node, (n_layers − 1, n, 64), before its batch norm, and the network's answers (n, classes).

    All nodes at once, Adam, 200 epochs, the last one's weights; a share `drop` of the edges is left out of
    each epoch.
    """
    import torch
    from scipy.sparse import csr_array
    from torch import nn
    from torch.nn import functional

    _, dropout, rate, decay = _KINDS[kind]
    widths = [x.shape[1], *[_WIDTH] * (n_layers - 1), int(graph.y.max()) + 1]
    if kind == "gat":
        activated = functional.elu
    else:
        activated = functional.relu
    edges = graph.edge_index.numpy()
    nodes = graph.train_mask
    n = len(x)
    features = _both_ways(csr_array(x.numpy()))
    whole = _gathering(kind, edges, n)
    with reproducible(random_state):
        layers = nn.ModuleList(
            nn.ParameterDict(_parameters(kind, *ends, last=number == n_layers - 1))
            for number, ends in enumerate(pairwise(widths))
        )
        norms = nn.ModuleList(nn.BatchNorm1d(_WIDTH) for _ in widths[2:])
        learned = [*layers.parameters(), *norms.parameters()]
        optimiser = torch.optim.Adam(learned, lr=rate, weight_decay=decay)

        def forward(gathering: Sequence[Any], kept: float) -> tuple[list[torch.Tensor], torch.Tensor]:
            rows = features
            hidden = []
            for layer, norm in zip(layers, norms, strict=False):
                hidden.append(_convolved(kind, layer, rows, gathering, kept))
                rows = _dropped(activated(norm(hidden[-1])), kept)
            return hidden, _convolved(kind, layers[-1], rows, gathering, kept)

        for _ in range(EPOCHS):
            left = edges[:, torch.rand(edges.shape[1]).numpy() >= drop]
            gathering = whole
            if drop:
                gathering = _gathering(kind, left, n)
            loss = functional.cross_entropy(forward(gathering, 1 - dropout)[1][nodes], y[nodes])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        norms.eval()
        with torch.inference_mode():
            hidden, answers = forward(whole, 1.0)
    return torch.stack(hidden).numpy(), answers.numpy()


def other_labels(labels: np.ndarray, share: float, random_state: int, n_classes: int) -> np.ndarray:
    """The labels (n,) with another class, at random, for a share of them."""
    rng = np.random.default_rng(random_state)
    changed = labels.copy()
    chosen = rng.permutation(len(labels))[: int(share * len(labels))]
    changed[chosen] = (labels[chosen] + rng.integers(1, n_classes, len(chosen))) % n_classes
    return changed


# What the networks of a group have in common: a share of wrong labels; a class added to the features, which
# is right for a share of the nodes; or a share of edges that are left out in training.
_GROUPS: dict[str, dict[str, float]] = {
    "normal": {},
    "labels 25": {"labels": 0.25},
    "labels 100": {"labels": 1.0},
    "shortcut 0": {"shortcut": 0.0},
    "shortcut 50": {"shortcut": 0.5},
    "shortcut 100": {"shortcut": 1.0},
    "edges 20": {"drop": 0.2},
    "edges 80": {"drop": 0.8},
}
_TESTS = {
    "random labels": ("normal", "labels 25", "labels 100"),
    "shortcuts": ("shortcut 0", "shortcut 50", "shortcut 100"),
    "augmentation": ("normal", "edges 20", "edges 80"),
}


def _models(n_states: int) -> list[tuple[str, int]]:
    """(group, random state) of each network. The group "normal" has twice as many networks as the others."""
    counts = {group: 2 * n_states if group == "normal" else n_states for group in _GROUPS}
    return [(group, state) for group, count in counts.items() for state in range(count)]


def _places(n_states: int, groups: Sequence[str]) -> np.ndarray:
    """The numbers of the networks of these groups, (groups × states,)."""
    wanted = [(group, state) for group in groups for state in range(n_states)]
    return np.array([_models(n_states).index(one) for one in wanted])


def _given(graph: Any, group: dict[str, float], state: int) -> dict[str, Any]:
    import torch

    x = graph.x / graph.x.sum(dim=1, keepdim=True).clamp(min=1)
    y = graph.y
    n_classes = int(graph.y.max()) + 1
    if "labels" in group:
        y = torch.from_numpy(other_labels(y.numpy(), group["labels"], state, n_classes))
    if "shortcut" in group:
        told = graph.y.numpy().copy()  # as in ReSi, nodes outside of the three parts keep their true class
        for part in ("train_mask", "val_mask"):
            nodes = getattr(graph, part).numpy()
            told[nodes] = other_labels(told[nodes], 1 - group["shortcut"], state, n_classes)
        nodes = graph.test_mask.numpy()
        told[nodes] = other_labels(told[nodes], 1.0, _TEST_STATE, n_classes)
        x = torch.cat([x, torch.nn.functional.one_hot(torch.from_numpy(told), n_classes)], dim=1)
    return {"x": x, "y": y, "graph": graph, "drop": group.get("drop", 0.0), "random_state": state}


def compared_nodes(graph: Any) -> tuple[np.ndarray, np.ndarray]:
    """Choose the test nodes, and up to 300 validation nodes as anchors.

    Of test nodes with the same neighbours (including themselves), only the first is taken. A GCN gives them
    equal rows, and chance levels by permutation would be too low.
    """
    around: list[set[int]] = [{node} for node in range(len(graph.y))]
    for source, target in graph.edge_index.T.tolist():
        around[target].add(source)
    tested = np.flatnonzero(graph.test_mask.numpy()).tolist()
    nodes = {frozenset(around[node]): node for node in reversed(tested)}
    validated = np.random.default_rng(0).permutation(np.flatnonzero(graph.val_mask.numpy()))
    return np.sort([*nodes.values()]), np.sort(validated[:300])


# The scores of pairs.

_USUAL = (
    *("cka", "debiased cka", "kernel cka", "svcca", "pwcca", "gulp", "rsa", "procrustes", "mutual knn"),
    *("knn recall", "cycle knn", "cknna", "second-order cosine", "rtd lite", "imd", "relative cosine"),
)
USUAL = tuple(name for name in _USUAL if name in METRICS)  # plugins/measures has two of them
OURS = "relative cosine"
_DIRECTED = ("pwcca", "cycle knn")  # the mean of both directions
_FEW_ROWS = 500  # of measures that permute a matrix of rows × rows, or need its eigenvalues
_ON_FEW = ("kernel cka", "rsa", "second-order cosine", "imd")
_PERMUTATIONS = 10  # enough for the mean of a chance level, up to a third of its spread


def pair_scores(
    name: str,
    stack: np.ndarray,
    ids: Sequence[str],
    anchors: Sequence[str],
    pairs: Sequence[tuple[int, int]],
    step: Callable[[], None] = lambda: None,
) -> np.ndarray:
    """Raw and calibrated score of each pair (p, 2) of the spaces of a stack (m, n, d), of which the last rows
    are the anchors'.

    Calibrated is (s − c) / (1 − c) with c the mean of the score's chance level: 0 by chance, 1 where the
    score is 1. NaN where it has no chance level, or the two cannot be compared.
    """
    metric = METRICS[name].load()()
    needs = METRICS[name].needs
    n_rows = len(ids) if "anchors" in needs else len(ids) - len(anchors)
    rows = np.arange(n_rows)
    if name in _ON_FEW and len(rows) > _FEW_ROWS:
        rows = np.sort(Split.held_out(np.asarray(ids)[rows]).queries(_FEW_ROWS))
    names = np.asarray(ids)[rows].tolist()
    spaces = [LatentSpace(one[rows], names, name=str(number)) for number, one in enumerate(stack)]
    asked = AllPairs.of(name, anchors=tuple(anchors))
    known: dict[str, Any] = {}

    def own(space: LatentSpace) -> Any:
        if space.name not in known:
            known[space.name] = metric.own(space, asked)
        return known[space.name]

    found = np.full((len(pairs), 2), np.nan)
    with fewer_permutations(_PERMUTATIONS):
        for number, pair in enumerate(pairs):
            step()
            try:
                directions = [pair]
                if name in _DIRECTED:
                    directions.append(pair[::-1])
                scores = [metric.between(spaces[i], spaces[j], own, asked) for i, j in directions]
            except SpaceError:
                continue
            chances = [score.null.mean if score.null else np.nan for score in scores]
            calibrated = [(score - c) / (1 - c) for score, c in zip(scores, chances, strict=True)]
            found[number] = np.mean(scores), np.mean(calibrated)
    return found


# The tests. A score near 1 is what a measure should have in each.

_RESAMPLES = 500


def separation(scores: np.ndarray, groups: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """The AUPRC and conformity rate, 0 … 1, of similarities (m, m) of networks in groups (m,), averaged over
    the groups: 1 where networks of one group are more alike than those of two.

    AUPRC is the average precision with which the most alike pairs with a network of the group are both of it;
    the conformity rate is the share of (pair within, pair across) of which the first is more alike, 1 − the
    violation rate of ReSi. Each network counts `weights` times, never paired with itself. NaN where a group
    has no pair.
    """
    first, second = np.triu_indices(len(groups), 1)
    values = scores[first, second]
    counts = weights[first] * weights[second]
    known = ~np.isnan(values) & (counts > 0)
    precisions = []
    rates = []
    for group in np.unique(groups):
        left = groups[first] == group
        right = groups[second] == group
        inside = known & left & right
        across = known & (left != right)
        if not inside.any() or not across.any():
            return np.nan, np.nan
        within = values[inside]
        between = values[across]
        precisions.append(average_precision(within, between, counts[inside], counts[across]))
        more = counts[inside] @ (within[:, None] > between) @ counts[across]
        rates.append(more / (counts[inside].sum() * counts[across].sum()))
    return float(np.mean(precisions)), float(np.mean(rates))


def average_precision(right: np.ndarray, wrong: np.ndarray, counts: np.ndarray, others: np.ndarray) -> float:
    """Average precision, 0 … 1, of scores of right and wrong pairs, each of which counts some times."""
    scores = np.concatenate([right, wrong])
    hits = np.concatenate([counts, np.zeros(len(wrong))])
    every = np.concatenate([counts, others])
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))  # of equal scores
    found = hits[order].cumsum()[ends]
    listed = every[order].cumsum()[ends]
    return float(np.diff(found, prepend=0) @ (found / listed) / found[-1])


def chance_precision(n_right: int, n: int) -> float:
    """The mean of `average_precision` over all orders of n pairs of which `n_right` are right."""
    ranks = np.arange(1, n + 1)
    return float(np.mean((1 + (ranks - 1) * (n_right - 1) / (n - 1)) / ranks))


def rank_correlation(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> float:
    """Spearman's rank correlation of pairs with integer weights; NaN where one side is constant."""
    from scipy.stats import rankdata

    use = ~(np.isnan(x) | np.isnan(y))
    x = rankdata(np.repeat(x[use], counts[use]))
    y = rankdata(np.repeat(y[use], counts[use]))
    if len(x) and np.ptp(x) and np.ptp(y):
        return float(np.corrcoef(x, y)[0, 1])
    return np.nan


def monotony(scores: np.ndarray) -> tuple[float, float]:
    """Spearman and conformity rate of similarities (l, l) of a network's layers: 1 where they fall with the
    distance from each layer, up and down.

    Spearman's rank correlation of dissimilarity and distance, the mean over layers and directions with two
    layers or more; the share of pairs of a nearer and a farther layer of which the nearer one is at least as
    alike.
    """
    correlations = []
    kept = []
    for layer in range(len(scores)):
        for places in (np.arange(layer + 1, len(scores)), np.arange(layer - 1, -1, -1)):
            values = scores[layer, places]
            correlations.append(rank_correlation(-values, np.arange(len(places)), np.ones(len(places), int)))
            kept += [near >= far for near, far in combinations(values, 2) if not np.isnan(near + far)]
    known = [value for value in correlations if not np.isnan(value)]
    if known:
        return (float(np.mean(known)), float(np.mean(kept)))
    return (np.nan, np.nan)


def _square(pairs: np.ndarray, values: np.ndarray, m: int) -> np.ndarray:
    matrix = np.full((m, m), np.nan)
    matrix[pairs[:, 0], pairs[:, 1]] = matrix[pairs[:, 1], pairs[:, 0]] = values
    return matrix


def _interval(value: float, draws: Sequence[float], n: int) -> Estimate:
    """The estimate with its interval from resamples; without an interval if a measure has no value."""
    if np.isnan(value) or np.isnan(draws).all():
        return Estimate(value, n=n)
    return Estimate(value, *np.nanquantile(draws, [0.025, 0.975]).tolist(), n)


def output_differences(answers: np.ndarray, truth: np.ndarray) -> dict[str, np.ndarray]:
    """The differences (m, m) of the networks' answers (m, n, classes): of accuracy, the mean Jensen–Shannon
    divergence (base 2) of class probabilities, and the share of nodes with another answer.
    """
    from scipy.special import entr, softmax

    chosen = answers.argmax(axis=2)
    shares = softmax(answers.astype(np.float64), axis=2)
    accuracy = (chosen == truth).mean(axis=1)
    own = entr(shares).sum(axis=2)
    divergence = np.zeros((len(answers),) * 2)
    for i, j in combinations(range(len(answers)), 2):
        mixed = entr((shares[i] + shares[j]) / 2).sum(axis=1) - (own[i] + own[j]) / 2
        divergence[i, j] = divergence[j, i] = mixed.mean() / np.log(2)
    return {
        "accuracy": np.abs(accuracy[:, None] - accuracy),
        "divergence": divergence,
        "disagreement": (chosen[:, None] != chosen).mean(axis=2),
    }


def evaluated(
    matrix: np.ndarray,
    layers: np.ndarray,
    differences: dict[str, np.ndarray],
    n_states: int,
    random_state: int,
) -> Iterator[tuple[str, Estimate]]:
    """Each test's scores with bootstrap intervals over networks: of similarities (m, m) of the networks,
    those of layers (n, l, l), and how far the normal networks' outputs differ."""
    rng = np.random.default_rng(random_state)
    normal = 2 * n_states
    left, right = np.triu_indices(normal, 1)
    weights = [np.ones(normal, int), *(rng.multinomial(normal, np.full(normal, 1 / normal), _RESAMPLES))]
    for name, apart in differences.items():
        sides = -matrix[left, right], apart[left, right]
        value, *draws = (rank_correlation(*sides, weight[left] * weight[right]) for weight in weights)
        yield f"{name}, Spearman", _interval(value, draws, normal)
    for test, names in _TESTS.items():
        places = _places(n_states, names)
        groups = np.repeat(np.arange(len(names)), n_states)
        some = matrix[np.ix_(places, places)]
        each = rng.multinomial(n_states, np.full(n_states, 1 / n_states), (_RESAMPLES, len(names)))
        every = [np.ones(len(places), int), *each.reshape(_RESAMPLES, -1)]
        found = np.array([separation(some, groups, weight) for weight in every])
        for column, score in enumerate(("AUPRC", "conformity")):
            yield f"{test}, {score}", _interval(float(found[0, column]), found[1:, column], len(places))
    each = np.array([monotony(one) for one in layers])
    for column, score in enumerate(("Spearman", "conformity")):
        yield f"layers, {score}", mean(each[:, column], bounded=True)


SCORES = {
    "accuracy, Spearman": "accuracy",
    "divergence, Spearman": "output, JSD",
    "disagreement, Spearman": "output, answers",
    "random labels, AUPRC": "labels",
    "shortcuts, AUPRC": "shortcuts",
    "augmentation, AUPRC": "edges",
    "layers, Spearman": "layers",
}
_NUMBERS = ("1", "2a", "2b", "3", "4", "5", "6")  # of the tests, for columns of a heat map
FORMS = {"raw": "", "calibrated": "calibrated "}


class MeasuresTested(Study):
    """The six tests of ReSi (Klabunde et al. 2025) on a citation graph: networks are trained from several
    random states, and each measure compares their rows of the test nodes, those before the last convolution.

    Do the measures follow how far the accuracies of two networks differ (1), and their outputs, by the
    Jensen–Shannon divergence (2a) and the share of nodes with another answer (2b)? Are networks more alike
    that were trained with the same share of wrong labels (3), with a class beside the features that is right
    as often (4), with as many edges left out (5)? Is a layer more like its neighbours than the layers farther
    away (6)? Tests 1, 2 and 6 have Spearman's correlation, the others the area under
    the precision–recall curve (AUPRC); chance is 0, and .22 with five networks in each of three groups.
    Intervals: 500 resamples of the networks. "Calibrated" takes (s − c) / (1 − c) for the score s, c the mean
    of its chance level over 10 permutations. Angular CKA and shape are left out: they order pairs as CKA and
    Procrustes do.
    """

    title = "Measures of similarity"
    question = "Which measures of similarity recognise networks that are known to be similar?"
    paper = "Klabunde et al. 2025 (ReSi)"

    options = (
        Option(
            "data", "Graph", ("Cora", "CiteSeer"), "Cora", help="Needs Planetoid's raw files (RELSCOPE_DATA)."
        ),
        Option(
            "architectures",
            "Networks",
            tuple(ARCHITECTURES),
            tuple(ARCHITECTURES),
            many=True,
            names=ARCHITECTURES.values(),
        ),
        Option(
            "measures",
            "Measures",
            tuple(metrics_among_spaces()),
            USUAL,
            many=True,
            names=metrics_among_spaces().values(),
        ),
        states(
            "first weights, and what is random in a group; tests 1 and 2 have twice as many", 5, (2, 3, 5, 10)
        ),
    )
    cost: ClassVar = 45.0

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        same = {"data": options["data"], "n_states": options["n_states"], "random_state": 0}  # of resamples
        chosen = product(options["architectures"], options["measures"])
        return [{**same, "architecture": kind, "measure": name} for kind, name in chosen]

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        networks = {name: settings[name] for name in ("data", "architecture", "n_states")}
        if "measure" not in settings:
            return _trained_networks(networks, store, report)
        entry = finished_run(self, networks, store, report)
        if settings.get("part") == "scores":
            return _scored(settings, entry.arrays, entry.metadata["values"], report)
        scores = finished_run(self, {**settings, "part": "scores"}, store, report).arrays
        m = len(_models(settings["n_states"]))
        n_states = settings["n_states"]
        differences = output_differences(entry.arrays["answers"], entry.arrays["truth"])
        values: dict[str, Any] = {"nodes": entry.metadata["values"]["nodes"]}
        for column, prefix in enumerate(FORMS.values()):
            matrix = _square(scores["pairs"], scores["scores"][:, column], m)
            deep = [_square(scores["layer pairs"], one, _DEEP - 1) for one in scores["layers"][:, :, column]]
            found_in = evaluated(matrix, np.array(deep), differences, n_states, settings["random_state"])
            for name, found in found_in:
                ends = {"": found.value, " low": found.low, " high": found.high}
                values |= {f"{prefix}{name}{end}": _known(value) for end, value in ends.items()}
        return RunResult(values)

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Chart]:
        ranked = {form: ranks(table, prefix) for form, prefix in FORMS.items()}
        ranked = {form: found for form, found in ranked.items() if len(found)}
        if not ranked:
            return {}
        order = next(iter(ranked.values())).index
        lines = []
        for number, (form, found) in enumerate(ranked.items()):
            shown = found.loc[[name for name in order if name in found.index]]
            x = np.array([order.get_loc(name) for name in shown.index]) + 0.2 * number
            lines.append(Line(form, x, *(shown[end] for end in ("value", "low", "high"))))
        charts: dict[str, Chart] = {
            form: _heat_map(table, FORMS[form], list(found.index), form) for form, found in ranked.items()
        }
        parts = [part for _, part in table.groupby("architecture", sort=False)]
        if len(parts) > 1 and "raw" in ranked:
            charts["by network"] = _heat_map(table, "", list(order), "raw", parts)
        names = tuple(METRICS[name].title for name in order)
        note = f"{options['data']}; mean rank among the measures, bars: 95 % over networks and tests"
        titles = ("measure, best first", "mean rank")
        charts["ranks"] = Lines(tuple(lines), *titles, kind="points", x_names=names, note=note)
        return charts

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        rows = []
        for form, prefix in FORMS.items():
            for name, found in ranks(table, prefix).iterrows():
                estimate = Estimate(*(float(found[end]) for end in ("value", "low", "high")), int(found["n"]))
                rows.append(
                    finding(f"{METRICS[name].title}, {form}: mean rank", estimate, "Student's t over cells")
                )
        return findings_table(rows)

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        raw, calibrated = (ranks(table, prefix) for prefix in FORMS.values())
        if len(raw) < 2 or raw.low.isna().any():
            return ""
        best = raw.index[0]
        places = list(raw.index)
        text = (
            f"Of {len(raw)} measures on {options['data']}, {METRICS[best].title} has the best mean rank over"
            f" {int(raw['n'].max())} cells of networks and tests, {_told(raw.loc[best])}"
        )
        if OURS in places:
            ours = places.index(OURS) + 1, _told(raw.loc[OURS])
            text += f"; the {METRICS[OURS].title}, ours, is number {ours[0]}, {ours[1]}"
        moved = (_cells(table, "calibrated ") - _cells(table, "")).abs()
        ends = (short(float(reduced(moved))) for reduced in (np.nanmean, np.nanmax))
        return (
            f"{text}. Calibrated by chance levels, {METRICS[calibrated.index[0]].title} is first, and the"
            f" score in a cell moves by {next(ends)} on average, {next(ends)} at most."
        )


def _known(value: float) -> float | None:
    if np.isnan(value):
        return None
    return round(float(value), 5)


def _told_cell(row: pd.Series, name: str) -> str:
    """``GCN .93 (95 %: .90 to .95)``, "" where there is no score."""
    cells = [row[f"{name}{end}"] for end in ("", " low", " high")]
    ends = [np.nan if cell is None else cell for cell in cells]
    if np.isnan(ends[0]):
        return ""
    return f"{ARCHITECTURES[row.architecture]} {Estimate(*ends):2}"


def _told(row: pd.Series) -> str:
    return f"{Estimate(row.value, row.low, row.high, row.n):1}"


def _cells(table: pd.DataFrame, prefix: str) -> pd.DataFrame:
    """The main score of each test, (measures × cells), NaN where there is none."""
    wide = table.assign(**{name: table.get(f"{prefix}{name}") for name in SCORES})
    return wide.pivot(index="measure", columns="architecture", values=list(SCORES)).astype(float)


def ranks(table: pd.DataFrame, prefix: str) -> pd.DataFrame:
    """Mean rank of each measure over the cells of architectures and tests, best first, with its interval;
    those without a score are left out."""
    cells = _cells(table, prefix).dropna(how="all")
    placed = cells.rank(ascending=False)
    rows = [vars(mean(row)) for _, row in placed.iterrows()]
    found = pd.DataFrame(rows, index=placed.index, columns=["value", "low", "high", "n"])
    return found.sort_values("value", kind="stable")


def _heat_map(
    table: pd.DataFrame, prefix: str, names: Sequence[str], form: str, parts: Sequence[pd.DataFrame] = ()
) -> Matrices:
    """A heat map of the means over all networks or, with `parts`, a panel for each part of the table."""
    titles = tuple(METRICS[name].title for name in names)
    panels = []
    columns = {f"{prefix}{name}": title for name, title in SCORES.items()}
    for part in parts or [table]:
        kinds = [ARCHITECTURES[kind] for kind in part.architecture.unique()]
        values = part.groupby("measure")[[*columns]].mean().reindex(names).to_numpy(dtype=float)
        known = part.set_index("measure")
        hover = tuple(
            tuple(
                "\n".join([title, *(_told_cell(row, name) for _, row in known.loc[[measure]].iterrows())])
                for name, title in columns.items()
            )
            for measure in names
        )
        if len(kinds) == 1:
            title = kinds[0]
        else:
            title = f"mean of {and_list(kinds)}"
        panels.append(MatrixPanel(title, titles, _NUMBERS, values, hover=hover))
    tests = ", ".join(f"{number}: {title}" for number, title in zip(_NUMBERS, SCORES.values(), strict=True))
    alt = f"Heat map of the {form} scores of {len(names)} measures in tests ({tests}); first: {titles[0]}."
    return Matrices(
        tuple(panels), (0.0, 1.0), "Spearman or AUPRC", alt, "measure, best first", "test of ReSi"
    )


def _trained_networks(settings: Settings, store: Store, report: Progress) -> RunResult:
    graph = load_graph(settings["data"])
    kind = settings["architecture"]
    n_states = settings["n_states"]
    nodes, anchors = compared_nodes(graph)
    kept = np.r_[nodes, anchors]
    models = _models(n_states)
    rows = []
    answers = []
    accuracies = []
    for number, (group, state) in enumerate(models):
        report(number, len(models) + n_states, f"{ARCHITECTURES[kind]}, {group}, state {state}")
        hidden, found = trained(kind, _KINDS[kind][0], **_given(graph, _GROUPS[group], state))
        rows.append(hidden[-1][kept])
        accuracies.append(float((found.argmax(axis=1) == graph.y.numpy())[graph.test_mask.numpy()].mean()))
        if group == "normal":
            answers += [found[nodes]]
    layers = []
    for state in range(n_states):
        report(len(models) + state, len(models) + n_states, f"{ARCHITECTURES[kind]}, {_DEEP} layers")
        layers.append(trained(kind, _DEEP, **_given(graph, {}, state))[0][:, kept])
    arrays = {"rows": np.array(rows), "layers": np.array(layers), "answers": np.array(answers)}
    ids = [f"{settings['data']}/{node}" for node in kept]
    facts = {"accuracies": accuracies, "nodes": len(nodes), "ids": ids}
    return RunResult({**facts, "anchors": len(anchors)}, arrays | {"truth": graph.y.numpy()[nodes]})


def _scored(
    settings: Settings, arrays: dict[str, np.ndarray], facts: dict[str, Any], report: Progress
) -> RunResult:
    name = settings["measure"]
    n_states = settings["n_states"]
    ids = facts["ids"]
    anchors = ids[len(ids) - facts["anchors"] :]
    tests = [_places(n_states, groups).tolist() for groups in _TESTS.values()]
    every = {
        tuple(sorted(pair)) for places in (range(2 * n_states), *tests) for pair in combinations(places, 2)
    }
    pairs = sorted(every)
    layers = [*combinations(range(_DEEP - 1), 2)]
    total = len(pairs) + n_states * len(layers)
    done = iter(range(10**6))
    step = lambda: report(next(done), total, METRICS[name].title)  # noqa: E731
    scores = pair_scores(name, arrays["rows"], ids, anchors, pairs, step)
    deep = [pair_scores(name, one, ids, anchors, layers, step) for one in arrays["layers"]]
    found = {
        "pairs": np.array(pairs),
        "scores": scores,
        "layer pairs": np.array(layers),
        "layers": np.array(deep),
    }
    return RunResult({}, found)
