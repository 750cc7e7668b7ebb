import numpy as np
import pytest

from relcore.cli import main
from relcore.commands import progress
from relcore.runs import jobs
from relcore.runs.store import Store
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace

# In these folders a warning is an error, except those that are named here or at a test.
STRICT = (
    *("audit", "base", "catalog", "compare", "drift", "engine", "invert", "linking", "migrate", "passport"),
    *("project", "represent", "runs", "scores", "sharded", "spaces", "stitch", "studies", "universe"),
)
EXPECTED = (
    "ignore::DeprecationWarning",
    "ignore:the memory of the GPU ran out",
    "ignore::pytest.PytestUnraisableExceptionWarning",  # of what earlier tests left: it is collected in any test
)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent.name in STRICT and item.path.parent.parent.name == "relcore":
            item.add_marker(pytest.mark.filterwarnings("error", *EXPECTED), append=False)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def make_space():

    def make(vectors, ids=None, name="made", **columns):
        return LatentSpace(vectors, ids or [f"r{row}" for row in range(len(vectors))], name=name, **columns)

    return make


@pytest.fixture
def turned_pair(rng):
    """300 rows of five classes in 8 dimensions. The second space has the same rows in 10 dimensions, rotated
    and with noise."""
    n = 300
    d = 8
    labels = np.array([f"c{row % 5}" for row in range(n)])
    X = rng.normal(size=(n, d)) + 4 * np.eye(5, d)[np.arange(n) % 5] + 1
    turn = np.linalg.qr(rng.normal(size=(d + 2, d + 2)))[0][:d]
    Y = 2 * X @ turn + 0.3 * rng.normal(size=(n, d + 2)) - 3
    ids = [f"r{row}" for row in range(n)]
    return match(LatentSpace(X, ids, name="a", labels=labels), LatentSpace(Y, ids, name="b", labels=labels))


# For the commands.


@pytest.fixture
def own_store(monkeypatch, tmp_path):
    """A store of the test's own; its folder is the working folder."""
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    monkeypatch.delenv("RELSCOPE_SCHEDULER", raising=False)
    monkeypatch.chdir(tmp_path)
    return Store(tmp_path / "store")


@pytest.fixture
def one_queue(monkeypatch, shared_queue):
    """Commands take the shared queue, with the store of the test, and leave it running."""

    class Lent:
        def __init__(self, address=None):
            assert address is None
            monkeypatch.setattr(shared_queue, "store", Store())
            self.n_workers = 1

        def __getattr__(self, name):
            return getattr(shared_queue, name)

        def close(self):
            pass

    monkeypatch.setattr(jobs, "JobQueue", Lent)
    return shared_queue


@pytest.fixture
def files(own_store, tmp_path):
    """Two files. The first has rows of three classes in 12 dimensions. The second has the same rows, rotated,
    with noise and in another order. One row of each is missing in the other."""
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 3, 151)
    vectors = rng.normal(size=(151, 12)) + rng.normal(size=(3, 12))[labels]
    rotation, _ = np.linalg.qr(rng.normal(size=(12, 12)))
    ids = np.array([f"w{row}" for row in range(151)])
    names = np.array(["red", "green", "blue"])[labels]
    np.savez(tmp_path / "first.npz", vectors=vectors, ids=ids, labels=names)
    order = rng.permutation(151)
    other = np.array([*ids[:-1], "x"])
    noisy = vectors @ rotation + 0.1 * rng.normal(size=vectors.shape)
    np.savez(tmp_path / "second.npz", vectors=noisy[order], ids=other[order], labels=names[order])
    return "first.npz", "second.npz"


@pytest.fixture
def no_log(monkeypatch):
    """Commands print no line of a job's log, which a slow machine, or a Python without compiled files, would print
    every half minute."""
    monkeypatch.setattr(progress, "_EVERY", float("inf"))


@pytest.fixture
def run(capsys, no_log):
    """``run(*arguments, code=0) -> stdout``; arguments are split at their spaces."""

    def run(*arguments, code=0):
        assert main(" ".join(map(str, arguments)).split()) == code
        out, err = capsys.readouterr()
        assert err == ""
        return out

    return run


@pytest.fixture
def refuse(capsys, no_log):
    def refuse(*arguments):
        assert main(" ".join(map(str, arguments)).split()) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert err.startswith("relscope: ")
        return err

    return refuse
