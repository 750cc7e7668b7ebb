"""Exported adapters give the same numbers, also in a process that cannot import relcore."""

import importlib
import json
import subprocess
import sys

import faiss
import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.base.names import ADAPTERS
from relcore.migrate.adapter_files import FILE, KEY, card_of, export, index_with_map, load
from tests.relcore.migrate.planted import Made, pairs

ALONE = """
import sys
sys.modules["relcore"] = None
import numpy as np
folder = sys.argv[1]
sys.path.insert(0, folder)
given = np.load(f"{folder}/given.npz")
"""


def alone(script, folder):
    """The arrays that a script writes to found.npz. It runs in a process that cannot import relcore."""
    command = [sys.executable, "-I", "-c", ALONE + script, str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert ran.returncode == 0, ran.stderr
    with np.load(folder / "found.npz") as found:
        return dict(found)


@pytest.fixture(params=[False, True], ids=["affine", "projected"])
def exported(request, tmp_path):
    new, old = pairs()
    adapter = Made(request.param).fit(new, old)
    export(adapter, card_of(adapter, new, old, method="made"), tmp_path)
    np.savez(tmp_path / "given.npz", new=new, old=old)
    return adapter, tmp_path


def assert_the_same(found, adapter):
    new, old = pairs()
    np.testing.assert_allclose(found["queries"], adapter.transform(new), atol=1e-5)
    np.testing.assert_allclose(found["corpus"], adapter.corpus(old), atol=1e-5)


@pytest.mark.parametrize("method", ADAPTERS)
def test_every_method_can_be_exported_and_loaded(method, tmp_path):
    new, old = pairs()
    adapter = ADAPTERS[method].load()().fit(new, old)
    export(adapter, card_of(adapter, new, old, method=method), tmp_path)
    loaded = load(tmp_path)
    assert np.array_equal(loaded.transform(new), adapter.transform(new))
    assert np.array_equal(loaded.corpus(old), adapter.corpus(old))


def test_the_snippet_needs_numpy_only(exported):
    adapter, folder = exported
    script = """
before = set(sys.modules)
import apply
found = {"queries": apply.queries(given["new"]), "corpus": apply.corpus(given["old"])}
libraries = {name.split(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)
assert libraries <= {"numpy", "apply"}, libraries
np.savez(f"{folder}/found.npz", **found)
"""
    assert_the_same(alone(script, folder), adapter)


def test_onnxruntime_runs_graphs_on_any_number_of_rows(exported):
    onnxruntime = pytest.importorskip("onnxruntime")
    adapter, folder = exported
    assert (folder / "corpus.onnx").exists() == adapter.projected

    def run(name, x):
        session = onnxruntime.InferenceSession(folder / f"{name}.onnx", providers=["CPUExecutionProvider"])
        [one], [every] = (session.run(["mapped"], {"rows": rows}) for rows in (x[:1], x))
        np.testing.assert_allclose(one, every[:1], atol=1e-6)
        return every

    new, old = pairs()
    if adapter.projected:
        corpus = run("corpus", old)
    else:
        corpus = adapter.corpus(old)
    assert_the_same({"queries": run("adapter", new), "corpus": corpus}, adapter)


@pytest.mark.parametrize("built", ["Flat", "IVF4,Flat"])
def test_a_faiss_index_with_the_adapter_finds_what_the_adapter_finds(exported, built):
    adapter, folder = exported
    new, old = pairs(300)
    corpus = adapter.corpus(old)
    index = faiss.index_factory(corpus.shape[1], built, faiss.METRIC_INNER_PRODUCT)
    index.train(corpus)
    index.add(corpus)
    if "IVF" in built:
        index.nprobe = 4  # all lists, so that the search is exact
    path = str(folder / "mapped.faiss")
    faiss.write_index(index_with_map(index, load(folder), projected=adapter.projected), path)
    scores, rows = faiss.read_index(path).search(new, 5)
    expected = adapter.transform(new) @ corpus.T
    best = np.argsort(-expected, axis=1, kind="stable")[:, :5]
    assert np.array_equal(rows, best)
    np.testing.assert_allclose(scores, np.take_along_axis(expected, best, 1), atol=1e-5)
    if adapter.projected:
        with pytest.raises(SpaceError, match="expected vectors projected by this adapter"):
            index_with_map(index, adapter)


def test_no_flipped_bit_of_a_file_is_used(exported):
    _, folder = exported
    path = folder / FILE
    script = {"__file__": str(folder / "apply.py")}
    exec(compile((folder / "apply.py").read_text(), "apply.py", "exec"), script)
    whole = path.read_bytes()
    for number in range(60):
        at = number * len(whole) // 60
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << number % 8)]) + whole[at + 1 :])
        with pytest.raises(SpaceError, match=r"adapter\.safetensors: .*; "):
            load(folder)
        script["adapter"].cache_clear()
        with pytest.raises((ValueError, KeyError, TypeError)):
            script["adapter"]()


def test_the_exported_scripts_refuse_what_they_cannot_use(exported, monkeypatch):
    _, folder = exported
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "apply", raising=False)
    new, old = pairs()
    apply = importlib.import_module("apply")
    for wrong, told in (
        (new[0], r"queries: expected rows of shape \(n, \d+\), got \d+; reshape"),
        (new[:, :-1], r"queries: expected rows of shape"),
        (np.full_like(new, np.nan), "queries: expected finite numbers"),
        (np.full(new.shape, 1e300), "queries: expected finite numbers"),
        (new.astype(complex), "queries: expected real numbers, got values of type complex"),
        (new.astype(str), "queries: expected real numbers"),
        (new.astype("datetime64[s]"), "queries: expected real numbers"),
        ([[1.0, 2.0], [1.0]], "queries: expected rows of one length"),
        (np.ma.masked_less(new, 0), "queries: expected numbers, got masked values"),
        (None, "queries: expected real numbers"),
    ):
        with pytest.raises(ValueError, match=told):
            apply.queries(wrong)
    for scale in (1e38 / np.abs(new).max(), 1e-38):  # only the direction of a row counts
        np.testing.assert_allclose(apply.unit(new * scale), apply.unit(new), atol=1e-5)
    with pytest.raises(ValueError, match="old_vectors: expected a sample of the corpus, got 1"):
        apply.both(old[:2], new[:2], old[:1])
    with pytest.raises(ValueError, match="both: expected vectors of the same queries by both models, got 2"):
        apply.both(old[:2], new[:3], old)
    with pytest.raises(ValueError, match="old_queries: expected rows of shape"):
        apply.both(old[:2, 1:], new[:2], old)
    monkeypatch.delitem(sys.modules, "apply")


def test_the_cascade_refuses_what_it_cannot_use(exported, monkeypatch, tmp_path):
    from relcore.migrate.cascade import Cache, ListIndex, ranked

    _, folder = exported
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "apply", raising=False)
    new, old = pairs()
    ids = [f"r{row}" for row in range(len(old))]
    search = ListIndex(ids, old)
    rows = dict(zip(ids, new, strict=True))
    usual = {"n": 5, "lists": "old"}

    def vectors(some):
        return np.array([rows[one] for one in some])

    assert ranked(old[7], new[7], search, vectors, **usual)[0] == "r7"
    assert ranked(old[7], new[7], lambda vector, n: [], vectors, **usual) == []
    for told, *arguments, options in (
        ("old_query: expected one vector", old[:1], new[7], vectors, {}),
        ("old_query: expected finite numbers", old[7] * np.nan, new[7], vectors, {}),
        ("new_query: expected a vector with a direction", old[7], 0 * new[7], vectors, {}),
        ("lists: expected 'old', 'bridged' or 'both', got 'new'", old[7], new[7], vectors, {"lists": "new"}),
        ("k: expected a whole number from 1, got 0", old[7], new[7], vectors, {"k": 0}),
        ("n: expected a whole number from 1, got 2.5", old[7], new[7], vectors, {"n": 2.5}),
        ("vectors: expected 5 × ", old[7], new[7], lambda some: vectors(some)[:1], {}),
        ("vectors: expected finite numbers", old[7], new[7], lambda some: vectors(some) * np.inf, {}),
    ):
        first, second, embed = arguments
        with pytest.raises(ValueError, match=told):
            ranked(first, second, search, embed, **usual | options)
    with pytest.raises(ValueError, match="index: expected an id for each row"):
        ListIndex(ids[1:], old)
    with pytest.raises(ValueError, match="index: expected distinct ids"):
        ListIndex(["r0"] * len(old), old)
    with pytest.raises(ValueError, match="index: expected finite numbers"):
        ListIndex(ids, old * np.nan)
    with pytest.raises(ValueError, match=r"index: expected a query of \d+ numbers, got"):
        ranked(old[7, 1:], new[7], search, vectors, **usual)
    with pytest.raises(ValueError, match="old_query: expected real numbers"):
        ranked(old[7].astype(str), new[7], search, vectors, **usual)
    large = 1e38 / np.abs(new).max()  # a query's length does not change what it finds
    found = ranked(old[7], new[7], search, vectors, **usual)
    assert ranked(old[7], new[7] * large, search, vectors, **usual) == found
    with pytest.raises(ValueError, match="embed: expected 2 vectors"):
        Cache(tmp_path / "cache.npy", lambda some: new[:1])(ids[:2])
    with pytest.raises(ValueError, match="embed: expected finite numbers"):
        Cache(tmp_path / "cache.npy", lambda some: new[: len(some)] * np.nan)(ids[:2])
    (tmp_path / "damaged.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(ValueError, match=r"damaged\.npy: expected a file that `save` wrote"):
        Cache(tmp_path / "damaged.npy", None)
    numbered = Cache(tmp_path / "numbered.npy", lambda some: new[some])  # ids that are numbers
    assert np.array_equal(numbered([3, 5]), new[[3, 5]])
    numbered.save()
    assert np.array_equal(Cache(tmp_path / "numbered.npy", None)([5, 3]), new[[5, 3]])
    with pytest.raises(ValueError, match=r"embed: expected vectors of \d+ numbers"):
        Cache(tmp_path / "numbered.npy", lambda some: new[:1, 1:])([7])
    Cache(tmp_path / "cache.npy", None).save()
    np.save(tmp_path / "other.npy", new)
    with pytest.raises(ValueError, match="expected a file that `save` wrote"):
        Cache(tmp_path / "other.npy", None)
    monkeypatch.delitem(sys.modules, "apply", raising=False)


def test_file_of_version_0_1_has_no_checksum_and_opens(exported):
    adapter, folder = exported
    whole = (folder / FILE).read_bytes()
    length = int.from_bytes(whole[:8], "little")
    head = json.loads(whole[8 : 8 + length])
    plan = json.loads(head["__metadata__"][KEY])
    assert len(plan.pop("checksum")) == 32
    head["__metadata__"][KEY] = json.dumps(plan)
    text = json.dumps(head).encode().ljust(length)
    (folder / FILE).write_bytes(len(text).to_bytes(8, "little") + text + whole[8 + length :])
    new, old = pairs()
    loaded = load(folder)
    assert_the_same({"queries": loaded.transform(new), "corpus": loaded.corpus(old)}, adapter)
