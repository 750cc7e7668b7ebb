import shlex

import numpy as np
import pytest

from relcore.base.access import DATA, ENVIRONMENT, OPENED
from relcore.catalog.catalog import load
from relcore.cli import main
from relcore.sharded import survey
from tests.app.conftest import Session
from tests.relcore.sharded.folders import write_npy, write_parquet

N = 3000
SMALL = 1000
RNG = np.random.default_rng(7)
A = RNG.normal(size=(N, 6)).astype(np.float32)
B = (A @ RNG.normal(size=(6, 5))).astype(np.float32)
IDS = [f"w{row:05}" for row in range(N)]
pytestmark = pytest.mark.usefixtures("queue")


@pytest.fixture
def folders(tmp_path):
    first = write_npy(tmp_path / "vectors a", A, [1000, 2000], IDS)
    return str(first), str(write_parquet(tmp_path / "vectors-b", B, [1000, 2000], IDS))


@pytest.fixture
def page(make_session):
    return make_session(60, ("data",), {"data.kind": "Database or shards"})


def asked(session, first, second=""):
    session.text_input(key="shards.first").set_value(first)
    session.text_input(key="shards.second").set_value(second)
    session.number_input(key="shards.rows").set_value(SMALL)
    return session.run()


def test_two_folders_are_sampled_by_jobs_and_compared(page, folders, ran_in_place):
    asked(page, *folders)
    page.click("shards.draw")
    assert ran_in_place == ["Sample of vectors a", "Sample of vectors-b"]
    workspace = page.workspace
    ends = [(one.source, one.name) for one in (workspace.source, workspace.target)]
    assert ends == [("sample", one) for one in folders]
    source = load(workspace.source)
    target = load(workspace.target)
    assert len(source) == len(target) == SMALL
    assert set(source.ids) == set(target.ids)
    page.open("explore")
    assert not page.errors
    assert "1,000 rows in both" in page.captions
    (code,) = (one for one in page.code if one.value.startswith("relscope compare"))
    assert code.value == f"relscope compare {shlex.quote(folders[0])} {folders[1]}"
    page.click("history.undo")
    assert not [one for one in page.code if one.value.startswith("relscope compare")]


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
    monkeypatch.setattr("os.execve", lambda *given: monkeypatch.setenv(OPENED, given[2][OPENED]))
    monkeypatch.setattr(survey, "MOST_ROWS", 2000)
    assert main(["app", *folders, "--sample", "500"]) == 0
    session = Session()
    assert not session.errors
    assert [one.name for one in session.workspace.spaces[:2]] == list(folders)
    assert "500 of 3,000 rows, drawn by a hash of their ids" in session.captions
