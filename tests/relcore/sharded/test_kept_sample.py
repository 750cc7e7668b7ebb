"""The sample that the app opens, kept until a shard changes."""

import numpy as np
import pytest

from relcore.base import access
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import load, need_access, numbered_spec
from relcore.runs.store import Context, Store
from relcore.sharded.operations import Runner, sample_job, sample_shards, sample_spec
from relcore.sharded.space import ShardedSpace
from tests.relcore.sharded.folders import write_npy

N = 3000
RNG = np.random.default_rng(5)
A, B = (RNG.normal(size=(N, width)).astype(np.float32) for width in (6, 4))
IDS = [f"w{row * 7919 % N:05}" for row in range(N)]


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    return Store()


def kept(store, space, n_rows):
    spec = sample_spec(space, n_rows)
    sample_job(Context(spec.option("key"), store), place=space.place, n_rows=n_rows)
    return spec


def test_a_sample_is_loaded_from_the_store_until_a_shard_changes(tmp_path, store):
    folder = write_npy(tmp_path / "a", A, [1000, 2000], IDS)
    space = ShardedSpace.open(str(folder))
    spec = kept(store, space, 500)
    found = load(spec, store)
    assert (len(found), found.name) == (500, "a")
    np.testing.assert_array_equal(found.vectors, sample_shards(space, 500, Runner(store)).vectors)
    assert sample_spec(ShardedSpace.open(str(folder)), 500) == spec  # the second opening finds it
    assert dict(spec.options) == {"key": spec.option("key"), "rows": "500", "of": "3000"}
    np.save(folder / "part-00001.npy", 2 * A[1000:])
    with pytest.raises(
        SpaceError, match="expected the shards that its sample was drawn from, got others; draw it again"
    ):
        load(spec, store)
    again = sample_spec(ShardedSpace.open(str(folder)), 500)
    assert again.option("key") != spec.option("key")


def test_a_shared_app_opens_samples_of_open_folders_only(tmp_path, store, monkeypatch):
    spec = kept(store, ShardedSpace.open(str(write_npy(tmp_path / "data" / "a", A, [1000, 2000], IDS))), 500)
    secret = kept(store, ShardedSpace.open(str(write_npy(tmp_path / "secret", B, [1000, 2000], IDS))), 500)
    monkeypatch.setenv(access.ENVIRONMENT, "1")
    monkeypatch.setenv(access.DATA, str(tmp_path / "data"))
    assert len(load(spec, store)) == 500
    with pytest.raises(SpaceError, match="is not open to this session"):
        need_access(secret)
    stolen = type(spec)(
        "sample", spec.name, options=(("key", secret.option("key")), ("rows", "500"), ("of", "3000"))
    )
    with pytest.raises(SpaceError, match="got another result"):
        load(stolen, store)


def test_a_sample_does_not_pair_by_row_order(tmp_path):
    spec = sample_spec(ShardedSpace.open(str(write_npy(tmp_path / "a", A, [1000, 2000]))), 500)
    with pytest.raises(SpaceError, match="expected all rows to pair by row order, got a sample"):
        numbered_spec(spec)
