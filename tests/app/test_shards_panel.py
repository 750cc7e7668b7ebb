"""Folders of shards in the app: a sample of each, drawn by a job, compared, with the command that scores
every row.
"""

import json
import shlex

import numpy as np
import pytest

from app import jobs
from relcore.base import records
from relcore.base.access import DATA, ENVIRONMENT, OPENED
from relcore.catalog.catalog import load
from relcore.cli import main
from relcore.sharded import sample
from relcore.sharded.space import ShardedSpace
from tests.app.conftest import Session
from tests.relcore.sharded.folders import write_npy, write_parquet

N, SMALL = 3000, 1000
RNG = np.random.default_rng(7)
A = RNG.normal(size=(N, 6)).astype(np.float32)
B = (A @ RNG.normal(size=(6, 5))).astype(np.float32)
IDS = [f"w{row:05}" for row in range(N)]


@pytest.fixture(autouse=True)
def own_engine():
    """One on this test's store."""
    jobs.whole_engine.clear()
    yield
    jobs.whole_engine().close()
    jobs.whole_engine.clear()


@pytest.fixture
def folders(tmp_path):
    first = write_npy(tmp_path / "vectors a", A, [1000, 2000], IDS)
    return str(first), str(write_parquet(tmp_path / "vectors-b", B, [1000, 2000], IDS))


@pytest.fixture
def page(make_session):
    return make_session(60).open("spaces")


def asked(session, first, second=""):
    session.text_input(key="shards.first").set_value(first)
    session.text_input(key="shards.second").set_value(second)
    session.number_input(key="shards.rows").set_value(SMALL)
    return session.run()


def test_two_folders_are_sampled_by_jobs_and_compared(page, folders, ran_in_place):
    asked(page, *folders)
    assert "vectors a: 3,000 rows × 6 in 2 shards" in page.captions.replace("\\", "")
    page.click("shards.draw")
    assert ran_in_place == ["Sample of vectors a", "Sample of vectors-b"]
    workspace = page.workspace
    assert [(one.source, one.name) for one in (workspace.source, workspace.target)] == [
        ("sample", one) for one in folders
    ]
    source, target = load(workspace.source), load(workspace.target)
    assert len(source) == len(target) == SMALL
    assert set(source.ids) == set(target.ids)
    page.open("compare")
    assert not page.errors
    assert "1,000 rows in both" in page.captions
    assert "1,000 of 3,000 rows, drawn by a hash of their ids; scores of every row:" in page.captions
    (code,) = page.code
    assert code.value == f"relscope compare {shlex.quote(folders[0])} {folders[1]}"
    page.click("history.undo")
    assert not page.code


def test_the_command_beside_the_sample_scores_every_row(page, folders, ran_in_place, capsys):
    asked(page, *folders).click("shards.draw")
    (code,) = page.open("compare").code
    assert not page.errors
    assert main([*shlex.split(code.value)[1:], "--anchors", "20", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["n"] == N


def test_what_is_no_folder_of_shards_is_said_and_nothing_can_be_drawn(page, tmp_path):
    (tmp_path / "empty").mkdir()
    for wrong in (str(tmp_path / "gone"), str(tmp_path / "empty"), "nowhere://a/b"):
        asked(page, wrong)
        assert page.button(key="shards.draw").disabled
        assert any("expected" in one.value for one in page.warning), wrong


def test_a_shard_that_cannot_be_read_ends_the_job_with_its_name(page, tmp_path):
    X = A.copy()
    X[2000, 0] = np.nan
    asked(page, str(write_npy(tmp_path / "a", X, [1000, 2000], IDS))).click("shards.draw")
    job = jobs.whole_engine().jobs()[-1]
    job.wait(60)
    page.run()
    assert any("part-00001.npy" in one.value.replace("\\", "") for one in page.warning)
    page.click(f"dismiss-{job.key}")
    assert not any("part-00001" in one.value for one in page.warning)
    assert [one.source for one in page.workspace.spaces] == ["file", "file"]


def test_a_shared_app_opens_folders_of_its_data_only(page, folders, tmp_path, tmp_path_factory, monkeypatch):
    secret = write_npy(tmp_path_factory.mktemp("elsewhere"), A, [1000, 2000], IDS)
    monkeypatch.setenv(ENVIRONMENT, "1")
    monkeypatch.setenv(DATA, str(tmp_path))
    assert not asked(page, folders[0]).button(key="shards.draw").disabled
    for wrong in (str(secret), "memory://a"):
        asked(page, wrong)
        assert page.button(key="shards.draw").disabled
        assert any("is not open to this session" in one.value for one in page.warning)


def test_samples_of_the_command_line_open_the_session(folders, monkeypatch, own_store):
    monkeypatch.setattr(
        "os.execve", lambda path, arguments, environment: monkeypatch.setenv(OPENED, environment[OPENED])
    )
    monkeypatch.setattr(sample, "MOST_ROWS", 2000)
    assert main(["app", *folders, "--sample", "500"]) == 0
    session = Session()
    assert not session.errors
    assert [one.name for one in session.workspace.spaces[:2]] == list(folders)
    assert "500 of 3,000 rows, drawn by a hash of their ids" in session.captions


def test_samples_with_and_without_ids_are_not_paired_by_row_order(tmp_path, monkeypatch):
    places = (
        write_npy(tmp_path / "bare", A, [1000, 2000]),
        write_npy(tmp_path / "named", B, [1000, 2000], IDS),
    )
    specs = [sample.sample_spec(ShardedSpace.open(str(place)), 500) for place in places]
    monkeypatch.setattr(sample, "MOST_ROWS", 2000)
    monkeypatch.setattr("os.execve", lambda path, arguments, environment: None)
    assert main(["app", *map(str, places), "--sample", "500"]) == 0
    monkeypatch.setenv(OPENED, json.dumps([records.to_json(spec) for spec in specs]))
    session = Session()
    assert not session.errors
    assert "Samples of shards pair by ids only" in session.captions
    assert "unpaired.rows" not in [button.key for button in session.button]
