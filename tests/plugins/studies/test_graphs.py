"""Planetoid's raw files, and pickles that ask for more than arrays."""

import pickle
from collections import defaultdict

import numpy as np
import pytest
import scipy.sparse
from relscope_studies.graphs import PARTS, load_graph

from relcore.base.errors import SpaceError


@pytest.fixture
def small_cora(tmp_path):
    """A ring of 600 nodes in Cora's raw layout; the last two are tested, in the other order."""
    raw = tmp_path / "graphs" / "Cora" / "raw"
    raw.mkdir(parents=True)
    x = np.eye(600, 12, dtype=np.float32)
    y = np.eye(3, dtype=np.int32)[np.arange(600) % 3]
    parts = {"x": x[:6], "allx": x[:598], "tx": x[598:]}
    parts = {name: scipy.sparse.csr_matrix(part) for name, part in parts.items()}
    parts |= {"y": y[:6], "ally": y[:598], "ty": y[598:]}
    parts["graph"] = defaultdict(list, {node: [(node - 1) % 600, (node + 1) % 600] for node in range(600)})
    for name, part in parts.items():
        (raw / f"ind.cora.{name}").write_bytes(pickle.dumps(part, protocol=3))
    (raw / "ind.cora.test.index").write_text("599\n598\n")
    return raw


def read(raw):
    return load_graph("Cora", raw.parents[1])


def listing(folder):
    return sorted((path.relative_to(folder), path.stat().st_mtime_ns) for path in folder.rglob("*"))


def test_a_graph_is_read_and_its_folder_left_alone(small_cora):
    before = listing(small_cora.parent)
    graph = read(small_cora)
    assert listing(small_cora.parent) == before
    assert graph.y.tolist() == [node % 3 for node in [*range(598), 599, 598]]
    assert (graph.x.shape, graph.edge_index.shape) == ((600, 12), (2, 1200))
    assert [int(mask.sum()) for mask in (graph.train_mask, graph.val_mask, graph.test_mask)] == [6, 500, 2]
    with pytest.raises(SpaceError, match=r"PubMed: expected ind.pubmed.x and its like .*, got none; copy"):
        load_graph("PubMed", small_cora.parents[1])


class _Evil:
    def __reduce__(self):
        return exec, ("raise SystemExit('unpickled')",)


@pytest.mark.parametrize(("protocol", "confined"), [(0, ""), (4, "1")])
def test_pickles_that_ask_for_more_are_refused_before_they_run(small_cora, protocol, confined, monkeypatch):
    monkeypatch.setenv("RELSCOPE_CONFINED", confined)
    for name in PARTS[1:-1]:
        path = small_cora / f"ind.cora.{name}"
        usual = path.read_bytes()
        path.write_bytes(pickle.dumps(_Evil(), protocol=protocol))
        with pytest.raises(SpaceError, match=rf"ind.cora.{name}: .* asks for \w+\.exec, which this format"):
            read(small_cora)
        path.write_bytes(usual)
    assert len(read(small_cora).y) == 600


def test_edges_to_nodes_that_are_none_and_numbers_of_other_rows_are_refused(small_cora):
    for name, content in (("graph", pickle.dumps({0: [600]})), ("test.index", b"597\n598\n")):
        path = small_cora / f"ind.cora.{name}"
        usual = path.read_bytes()
        path.write_bytes(content)
        with pytest.raises(SpaceError, match=r"ind.cora.x: expected .* got (an edge|2 nodes)"):
            read(small_cora)
        path.write_bytes(usual)
