import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from relcore.base import access
from relcore.catalog.catalog import SpaceSpec
from relcore.cli import main

pytestmark = pytest.mark.usefixtures("own_store")

ROOT = Path(__file__).parents[3]


@pytest.fixture
def started(monkeypatch):
    calls = []
    monkeypatch.setattr(
        os, "execve", lambda _, arguments, environment: calls.append((arguments, environment))
    )
    return calls


def opened(environment):
    return [SpaceSpec.from_json(one) for one in json.loads(environment[access.OPENED])]


def test_server_is_told_spaces_by_their_full_paths(started, files, tmp_path):
    assert (
        main(["app", "first.npz", "word2vec-novels", "--port", "8600", "--no-browser", "--store", "kept"])
        == 0
    )
    ((arguments, environment),) = started
    launch = ROOT / "app" / "server" / "launch.py"
    serve = ROOT / "app" / "serve.py"
    assert arguments[:5] == [sys.executable, "-P", str(launch), "run", str(serve)]
    assert arguments[5:] == ["--server.port=8600", "--server.headless=true"]
    first = SpaceSpec("file", str(tmp_path / "first.npz"))
    assert opened(environment) == [first, SpaceSpec("bundled", "word2vec-novels")]
    assert environment["RELSCOPE_STORE"] == str(tmp_path / "kept")


def test_a_table_after_vectors_is_their_metadata(started, files, tmp_path, monkeypatch):
    np.save("a.npy", np.eye(4))
    Path("meta.csv").write_text("id,genre\nr0,p\nr1,q\nr2,p\nr3,q\n")
    assert main(["app", "a.npy", "meta.csv", "first.npz"]) == 0
    ((_, environment),) = started
    first, second = opened(environment)
    assert (first.name, first.options) == (
        str(tmp_path / "a.npy"),
        (("metadata", str(tmp_path / "meta.csv")),),
    )
    assert second == SpaceSpec("file", str(tmp_path / "first.npz"))
    monkeypatch.setenv(access.ENVIRONMENT, "1")
    monkeypatch.setenv(access.OPENED, environment[access.OPENED])
    assert access.readable_path(tmp_path / "meta.csv")  # whoever started a shared app opened it to all


def test_shared_app_listens_and_is_confined(started, files, tmp_path, monkeypatch, capsys):
    (tmp_path / "srv").mkdir()
    monkeypatch.setenv("RELSCOPE_DATA", str(tmp_path / "srv"))
    assert main(["app", "first.npz", "--port", "8600", "--share"]) == 0
    ((arguments, environment),) = started
    assert arguments[5:] == ["--server.port=8600", "--server.address=0.0.0.0", "--server.allowedHosts=*"]
    assert environment["RELSCOPE_SHARE"] == "1"
    said = capsys.readouterr().out
    assert "has the link" in said
    assert str(tmp_path / "srv") in said


def test_short_token_is_refused_and_none_only_on_request(started, refuse, files, monkeypatch):
    monkeypatch.setenv(access.TOKEN, "hunter2")
    assert "RELSCOPE_TOKEN: expected at least 8" in (said := refuse("app", "first.npz"))
    assert "hunter2" not in said
    monkeypatch.setenv(access.TOKEN, "hunter22")
    monkeypatch.delenv(access.NO_TOKEN, raising=False)
    assert main(["app", "first.npz"]) == main(["app", "first.npz", "--no-token"]) == 0
    assert [environment.get(access.NO_TOKEN) for _, environment in started] == [None, "1"]
    assert not any("hunter22" in argument for arguments, _ in started for argument in arguments)


def test_command_is_not_confined_though_app_would_be(started, files, tmp_path, monkeypatch):
    monkeypatch.setenv("RELSCOPE_SHARE", "1")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("RELSCOPE_DATA", str(tmp_path / "elsewhere"))
    assert main(["compare", str(tmp_path / "first.npz"), str(tmp_path / "second.npz")]) == 0
    assert os.environ["RELSCOPE_SHARE"] == "1"


def test_file_that_cannot_be_read_is_said_before_anything_starts(started, refuse, files, tmp_path):
    (tmp_path / "broken.npy").write_bytes(b"no matrix")
    assert "broken.npy" in refuse("app", "first.npz", "broken.npy")
    assert "'gone.npz', where there is none" in refuse("app", "gone.npz")
    assert not started
