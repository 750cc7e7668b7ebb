"""Train the networks of two of the papers' rows, and write their numbers to relcore/data/papers/ours.

    PYTHONPATH=plugins/studies python assets/papers/measure_trained.py deep-graphs|multilingual

deep-graphs: Table 2 of the first paper, graph networks and their heads trained together. multilingual: Table
15, one encoder for captions in four languages. Both read the data folder (RELSCOPE_DATA). The settings are
those in relcore/data/papers/runs.json. Finished random states are in the store, so a rerun resumes. Commit
first: the commit is written beside the numbers.
"""

from __future__ import annotations

import argparse
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
from measure_rows import write
from relscope_studies.graphs import Graph, load_graph

from relcore import __version__
from relcore.base.access import data_folder
from relcore.base.rows import mean_row, unit_rows
from relcore.catalog.encodings import encode
from relcore.encoders.dataset import DatasetSpec
from relcore.engine.training import reproducible
from relcore.runs.entries import digest_of
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split, row_keys
from relcore.stitch.stitching import StitchSpec, stitch_matrix
from relcore.studies.paper_runs import RUNS, commit_of
from relcore.studies.published import SHIPPED, Ours, mean_and_deviation

F1 = "weighted F1"
SIGNED = "−1 … 1"
Row = dict[str, Any]


def weighted_f1(truth: np.ndarray, answers: np.ndarray) -> float:
    from sklearn.metrics import f1_score

    return float(f1_score(truth, answers, average="weighted", zero_division=0))


# Table 2 on graphs.

DROPOUT = 0.5
LEARNING_RATE = 0.01
VALIDATION = 0.1


def graphs(settings: Row, state: int, store: Store) -> Iterator[Row]:
    """Weighted F1 on a fifth of the nodes, which are neither anchors nor training nodes. The network sees
    their features and edges. Absolute and relative networks have the same split and the same initial weights.
    """
    for name in settings["graphs"]:
        graph = load_graph(name)
        labels = graph.y.numpy().astype(str)
        ids = [f"{name}/{node}" for node in range(len(graph.y))]
        keys = row_keys(ids, "graph anchors", state)
        anchors = np.argsort(keys, kind="stable")[: settings["n_anchors"]]
        split = Split.draw(ids, anchors=anchors, labels=labels, random_state=state)
        classes, counts = np.unique(labels[split.known], return_counts=True)
        facts = {"metric": F1, "n": len(split.test)}
        chance = weighted_f1(labels[split.test], np.full(len(split.test), classes[counts.argmax()]))
        scores = {}
        for kind in ("absolute", "relative"):
            answers = trained_answers(graph, split, kind, settings)
            scores[kind] = weighted_f1(labels[split.test], answers[split.test])
            yield {"label": f"{name}, {kind}", "value": scores[kind], "baseline": chance, **facts}
        difference = scores["relative"] - scores["absolute"]
        yield {"label": f"{name}, relative − absolute", "value": difference, "unit": SIGNED, **facts}


def trained_answers(graph: Graph, split: Split, kind: str, settings: Row) -> np.ndarray:
    """The class that a network predicts for each node, (n,).

    dropout → Linear → ReLU → (dropout, GCN2Conv, ReLU) × layers → Linear, with α = .1, θ = .5 and shared
    weights as in the paper's code, then LayerNorm and Linear; relative: before the LayerNorm the cosines to
    the anchors' rows, through which the gradient passes, too. Adam, all nodes at once, one thread; weights
    of the epoch that validates best on a tenth of the training nodes.
    """
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy, dropout, normalize
    from torch_geometric.nn import GCN2Conv
    from torch_geometric.nn.conv.gcn_conv import gcn_norm

    width = settings["width"]
    features = graph.x.float() / graph.x.float().sum(dim=1, keepdim=True).clamp(min=1)
    n = len(features)
    features = features.to_sparse().coalesce()
    edges, weights = gcn_norm(graph.edge_index, None, n)
    matrix = torch.sparse_coo_tensor(edges.flip(0), weights, (n, n)).coalesce().to_sparse_csr()
    classes, targets = np.unique(graph.y.numpy().astype(str), return_inverse=True)
    truth = torch.from_numpy(targets.astype(np.int64))
    validating = np.random.default_rng(split.random_state).random(len(split.train)) < VALIDATION
    validation = torch.from_numpy(split.train[validating])
    known = torch.from_numpy(np.r_[split.anchors, split.train[~validating]])
    anchors = torch.from_numpy(split.anchors)
    if kind == "absolute":
        read = width
    else:
        read = len(anchors)
    with reproducible(split.random_state):
        first = nn.Linear(features.shape[1], width)
        last = nn.Linear(width, width)
        convolutions = nn.ModuleList(
            GCN2Conv(width, alpha=0.1, theta=0.5, layer=number, shared_weights=True, normalize=False)
            for number in range(1, settings["layers"] + 1)
        )
        head = nn.Sequential(nn.LayerNorm(read), nn.Linear(read, len(classes)))

        def scores(training: bool) -> torch.Tensor:
            # Dropout of the nonzero entries is the same as dropout of all entries.
            seen = dropout(features.values(), DROPOUT, training)
            seen = torch.sparse_coo_tensor(features.indices(), seen, features.shape)
            rows = begun = (torch.sparse.mm(seen, first.weight.T) + first.bias).relu()
            for convolution in convolutions:
                rows = convolution(dropout(rows, DROPOUT, training), begun, matrix).relu()
            rows = normalize(last(rows))
            return head(rows if kind == "absolute" else rows @ rows[anchors].T)

        parameters = nn.ModuleList([first, convolutions, last, head]).parameters()
        optimiser = torch.optim.Adam(parameters, LEARNING_RATE)
        best = -1.0
        answers = None
        for _ in range(settings["epochs"]):
            loss = cross_entropy(scores(True)[known], truth[known])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            with torch.no_grad():
                found = scores(False).argmax(dim=1)
            right = float((found[validation] == truth[validation]).float().mean())
            if right > best:
                best = right
                answers = found
    return classes[answers.numpy()]


# Table 15 on captions: one encoder of several languages.

BATCH = 512
TEMPERATURE = 0.05
RATE = 2e-3
BUCKETS = 2**15


def languages(settings: Row, state: int, store: Store) -> Iterator[Row]:
    """Weighted F1 by the language of the head (decoder) and of the rows (encoder), on captions that are
    neither anchors nor trained on, by the encoder or the head. The classes are clusters of the English
    captions by MiniLM, which is not the encoder. The control is a head of an encoder from another training.
    """
    table = pd.read_parquet(data_folder() / "multi30k" / "train.parquet")
    n = settings["n_captions"]
    names = settings["languages"]
    own, other = (encoded(table, settings, number, store) for number in (state, state + 1))
    labels = english_classes(settings, store)
    ids = [str(row) for row in range(n)]
    anchors = np.argsort(row_keys(ids, "caption anchors", state), kind="stable")[: settings["n_anchors"]]
    split = Split.draw(ids, anchors=anchors, random_state=state)
    spec = StitchSpec(
        tuple(FORMS),
        random_states=(state,),
        anchors=tuple(split.ids[split.anchors]),
        test_ids=tuple(split.ids[split.test]),
    )
    spaces = [LatentSpace(rows, ids, name=name, labels=labels) for name, rows in zip(names, own, strict=True)]
    again = LatentSpace(other[0], ids, name="again", labels=labels)
    result = stitch_matrix(spaces, spec)
    control = stitch_matrix([spaces[0], again], spec)
    off = ~np.eye(len(names), dtype=bool)
    facts = {"n": len(split.test), "baseline": result.chance("f1")}
    for form, title in FORMS.items():
        scores, apart = (one.by_state(form, "f1")[0] for one in (result, control))
        means = {
            "mean over the languages, not stitched": scores[~off].mean(),
            "mean over the languages, stitched pairs": scores[off].mean(),
            "control: English, another training's head": apart[[0, 1], [1, 0]].mean(),
        }
        pairs = {f"decoder {names[j]}, encoder {names[i]}": scores[i, j] for j, i in np.ndindex(scores.shape)}
        for group, found in (("mean", means), ("pairs", pairs)):
            for label, value in found.items():
                yield {"label": label, "metric": f"{title}: {F1}", "value": value, "group": group, **facts}


FORMS = {"absolute": "absolute", "relative": "relative, translated anchors"}


def english_classes(settings: Row, store: Store) -> list[str]:
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    from relcore.encoders.transformers import MiniLM

    path = str(data_folder() / "multi30k" / "train.parquet")
    spec = DatasetSpec("file", path, column="en", limit=settings["n_captions"])
    (space,) = encode(spec, MiniLM(), store)
    rows = unit_rows(space.vectors, mean_row(space.vectors))
    with threadpool_limits(1):
        found = KMeans(settings["n_classes"], n_init=4, random_state=0).fit_predict(rows)
    return [f"cluster {number}" for number in found]


def encoded(table: pd.DataFrame, settings: Row, state: int, store: Store) -> list[np.ndarray]:
    """The first captions in each language, (n, width) each, by an encoder trained on the others.

    Words and their letters, four in a row, are hashed, whatever the language; the mean of their vectors goes
    through Linear, GELU, Linear. It is trained so that the translation of a caption is nearer than the
    translations of the other captions in the batch (InfoNCE). Each batch has two random languages.
    """
    key = digest_of("multilingual encoder", settings, state)
    if (entry := store.get(key)) is not None:
        return [entry.arrays[name] for name in settings["languages"]]
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy, normalize

    n = settings["n_captions"]
    width = settings["width"]
    tokens = [[torch.tensor(hashed(text)) for text in table[name]] for name in settings["languages"]]
    with reproducible(state):
        bag = nn.EmbeddingBag(BUCKETS, width)
        network = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

        def rows(language: int, chosen: list[int]) -> torch.Tensor:
            lists = [tokens[language][row] for row in chosen]
            starts = torch.tensor([0, *map(len, lists[:-1])]).cumsum(0)
            return network(bag(torch.cat(lists), starts))

        optimiser = torch.optim.Adam([*bag.parameters(), *network.parameters()], RATE)
        for _ in range(settings["epochs"]):
            for batch in (torch.randperm(len(table) - n) + n).split(BATCH):
                first, second = torch.randperm(len(tokens))[:2].tolist()
                one, two = (normalize(rows(language, batch.tolist())) for language in (first, second))
                cosines = one @ two.T / TEMPERATURE
                right = torch.arange(len(batch))
                loss = cross_entropy(cosines, right) + cross_entropy(cosines.T, right)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
        with torch.no_grad():
            found = [rows(language, list(range(n))).numpy() for language in range(len(tokens))]
    store.put(key, dict(zip(settings["languages"], found, strict=True)), {"title": "multilingual captions"})
    return found


def hashed(text: str) -> list[int]:
    words = [f"<{word}>" for word in text.lower().split()]
    parts = words + [word[at : at + 4] for word in words for at in range(len(word) - 3)]
    return [zlib.crc32(part.encode()) % BUCKETS for part in parts or ["<>"]]


def main(measures: Mapping[str, Callable[[Row, int, Store], Iterator[Row]]], about: str) -> None:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=measures)
    name = parser.parse_args().name
    store = Store(finished=False)
    commit = commit_of()
    run = RUNS[name]
    rows = []
    seconds = 0.0
    for state in run.settings["random_states"]:
        key = digest_of("measured", name, run.settings, run.version, state)
        if (entry := store.get(key)) is None:
            began = time.perf_counter()
            found = list(measures[name](run.settings, state, store))
            store.put(key, {}, {"rows": found, "seconds": time.perf_counter() - began})
            entry = store.get(key)
        rows += entry.metadata["rows"]
        seconds += entry.metadata["seconds"]
        print(f"{name}: random state {state}", flush=True)
    groups = dict.fromkeys(row.get("group", "") for row in rows)
    numbers = [
        number
        for group in groups
        for number in mean_and_deviation([row for row in rows if row.get("group", "") == group], group=group)
    ]
    facts = (date.today().isoformat(), __version__, round(seconds, 1), tuple(numbers), commit, run.version)
    write(SHIPPED, Ours(name, run.data, dict(run.settings), *facts))


if __name__ == "__main__":
    main({"deep-graphs": graphs, "multilingual": languages}, __doc__)
