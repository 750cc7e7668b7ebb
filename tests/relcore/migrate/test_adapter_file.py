"""What people take away gives the same numbers, also in a process that cannot import relcore."""

import json
import subprocess
import sys

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.base.names import ADAPTERS
from relcore.migrate import adapters as adapter_file
from relcore.migrate.adapters import CardScore, card_of
from tests.relcore.migrate.adapters import KINDS, Made, pairs

ALONE = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "relcore":
            raise ModuleNotFoundError("relcore is not here", name=name)

sys.meta_path.insert(0, Blocked())
try:
    import relcore
    raise SystemExit("relcore could be imported")
except ModuleNotFoundError:
    pass
import numpy as np
folder = sys.argv[1]
given = np.load(f"{folder}/given.npz")
"""


def alone(script, folder):
    """Run a script in a fresh process without relcore; it writes found.npz into the folder."""
    command = [sys.executable, "-I", "-c", ALONE + script, str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert ran.returncode == 0, ran.stderr
    with np.load(folder / "found.npz") as found:
        return dict(found)


@pytest.fixture(params=KINDS)
def taken(request, tmp_path):
    new, old = pairs()
    adapter = Made(request.param).fit(new, old)
    scores = (CardScore("nDCG@10", 0.41, 0.39, 0.43, 225),)
    card = card_of(
        adapter,
        new,
        old,
        method="made",
        new_model="MiniLM",
        old_model="word2vec",
        scores=scores,
        commit="a8e5362",
    )
    folder = tmp_path / "adapter"
    adapter_file.export(adapter, card, folder)
    np.savez(folder / "given.npz", new=new, old=old)
    return adapter, folder


def nearest(queries, corpus):
    return np.argsort(-(queries @ corpus.T), axis=1)[:, :5]


def assert_the_same(found, adapter):
    new, old = pairs()
    queries, corpus = adapter.transform(new), adapter.corpus(old)
    np.testing.assert_allclose(found["queries"], queries, atol=1e-5)
    np.testing.assert_allclose(found["corpus"], corpus, atol=1e-5)
    assert np.array_equal(nearest(found["queries"], found["corpus"]), nearest(queries, corpus))


@pytest.mark.parametrize("method", ADAPTERS)
def test_every_method_can_be_exported_and_loaded(method, tmp_path):
    new, old = pairs()
    adapter = ADAPTERS[method].load()().fit(new, old)
    adapter_file.export(adapter, card_of(adapter, new, old, method=method), tmp_path)
    loaded = adapter_file.load(tmp_path)
    assert np.array_equal(loaded.transform(new), adapter.transform(new))
    assert np.array_equal(loaded.corpus(old), adapter.corpus(old))


def test_the_snippet_needs_numpy_only(taken):
    adapter, folder = taken
    script = """
sys.path.insert(0, folder)
before = set(sys.modules)
import apply
found = {"queries": apply.queries(given["new"]), "corpus": apply.corpus(given["old"])}
libraries = {name.split(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names) - {"numpy", "apply"}
assert not libraries, libraries
np.savez(f"{folder}/found.npz", **found)
"""
    assert_the_same(alone(script, folder), adapter)


def test_onnxruntime_runs_graphs_on_any_number_of_rows(taken):
    pytest.importorskip("onnxruntime")
    adapter, folder = taken
    assert (folder / "corpus.onnx").exists() == (adapter.kind == "projected")
    script = """
import os
import onnxruntime

def run(name, x):
    session = onnxruntime.InferenceSession(f"{folder}/{name}.onnx", providers=["CPUExecutionProvider"])
    one, = session.run(None, {"rows": x[:1]})
    every, = session.run(["mapped"], {"rows": x})
    assert every.dtype == np.float32 and np.allclose(one, every[:1], atol=1e-6)
    return every

old = given["old"]
units = old / np.linalg.norm(old, axis=1, keepdims=True)
corpus = run("corpus", old) if os.path.exists(f"{folder}/corpus.onnx") else units
np.savez(f"{folder}/found.npz", queries=run("adapter", given["new"]), corpus=corpus)
"""
    assert_the_same(alone(script, folder), adapter)


def test_no_flipped_bit_of_a_file_is_used(taken):
    _, folder = taken
    path, script = folder / adapter_file.FILE, {"__file__": str(folder / "apply.py")}
    exec(compile((folder / "apply.py").read_text(), "apply.py", "exec"), script)
    whole = path.read_bytes()
    for number in range(60):
        at = number * len(whole) // 60
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << number % 8)]) + whole[at + 1 :])
        with pytest.raises(SpaceError, match=r"adapter\.safetensors: .*; "):
            adapter_file.load(folder)
        script["adapter"].cache_clear()
        with pytest.raises((ValueError, KeyError, TypeError)):
            script["adapter"]()


def test_file_of_version_0_1_has_no_checksum_and_opens(taken):
    adapter, folder = taken
    path = folder / adapter_file.FILE
    whole = path.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    head = json.loads(whole[8 : 8 + length])
    plan = json.loads(head["__metadata__"][adapter_file.KEY])
    assert len(plan.pop("checksum")) == 32
    head["__metadata__"][adapter_file.KEY] = json.dumps(plan)
    text = json.dumps(head).encode().ljust(length)
    path.write_bytes(len(text).to_bytes(8, "little") + text + whole[8 + length :])
    assert_the_same(
        {"queries": adapter.transform(pairs()[0]), "corpus": adapter.corpus(pairs()[1])},
        adapter_file.load(folder),
    )
