import gc
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from app import sharing
from app.jobs import OwnQueue, need_access_to_all
from app.sharing import Member
from relcore.base import access
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, encoding_spec, stored_encoding_spec
from relcore.catalog.encodings import encode, encode_job
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.sentences import TfidfSvd
from tests.app.conftest import save_space
from tests.session_files import to_session_file
from tests.waiting import until

SECRET = b"swordfish is the password\n"
LSA = TfidfSvd(2, min_texts=1)


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))


@pytest.fixture
def shared(tmp_path, monkeypatch, shared_queue):
    # Start the worker before the environment changes: other tests use the same worker, which keeps the
    # environment of its start.
    shared_queue.start()
    monkeypatch.setenv(access.ENVIRONMENT, "1")
    monkeypatch.setenv(access.DATA, str(tmp_path))
    return tmp_path


@pytest.fixture
def secret(tmp_path_factory):
    folder = tmp_path_factory.mktemp("secret")
    (folder / "secret.txt").write_bytes(SECRET)
    (folder / "texts.csv").write_bytes(b"text,label\n" + b"swordfish is the password,a\n" * 3)
    np.save(folder / "vectors.npy", np.eye(120))
    return folder


def with_upload(session, name="mine.npz"):
    path = Path(tempfile.gettempdir()) / name
    save_space(path, np.random.default_rng(1).normal(size=(120, 6)))
    session.open("data").upload("spaces.upload", name, path.read_bytes()).click("spaces.load-file")
    return session.workspace.spaces[-1]


def opened(session, *specs):
    workspace = session.workspace
    body = json.loads(to_session_file(workspace, {}))
    body["session"]["spaces"] += [spec.to_json() for spec in specs if spec not in workspace.spaces]
    session.upload("session.file", "session.json", json.dumps(body).encode()).click("Open the session")
    return session


def refusal(session):
    assert not any("swordfish" in element for element in (session.everything, session.html))
    return " ".join(session.errors).replace("\\", "")


def test_path_boxes_of_a_shared_app_are_confined(shared, secret, make_session):
    session = make_session()
    session.session_state["data.kind"] = "Bundled"
    session.open("data")
    assert str(shared) not in session.text_input(key="spaces.folder").placeholder
    for folder in (str(secret), "~nosuchuser/x"):
        session.change("text_input", "spaces.folder", folder)
        (warning,) = session.warning
        assert ("write it in full" if "~" in folder else "open to this session") in warning.value
    session.change("text_input", "spaces.folder", "")
    for kind, name in (
        ("Vectors", "texts.csv"),
        ("Vectors", "none.csv"),
        ("Texts", "texts.csv"),
        ("Pictures", "."),
    ):
        session.change("button_group", "data.kind", kind).change(
            "text_input", "data.path", str(secret / name)
        )
        assert "is not open to this session" in refusal(session)


def test_a_session_file_opens_and_quotes_no_file_outside(shared, secret, make_session):
    for name in ("secret.txt", "vectors.npy"):
        session = opened(make_session(), SpaceSpec("file", str(secret / name)))
        assert "is not open to this session" in refusal(session)
        assert len(session.workspace.spaces) == 2


def test_a_session_file_opens_no_upload_of_another_session(shared, make_session, monkeypatch):
    monkeypatch.setenv(access.ENVIRONMENT, "")
    first = make_session()
    second = make_session()
    theirs = with_upload(first)
    with_upload(second, "other.npz")  # it has uploads of its own
    assert "only the session that uploaded a file opens it" in refusal(opened(second, theirs))
    assert theirs not in second.workspace.spaces
    assert not refusal(opened(first, theirs))


def test_what_another_session_has_in_a_cache_is_refused(shared, secret, make_session, monkeypatch):
    path = SpaceSpec("file", str(secret / "vectors.npy"))
    monkeypatch.setenv(access.ENVIRONMENT, "")
    assert not refusal(opened(make_session(), path))
    monkeypatch.setenv(access.ENVIRONMENT, "1")
    assert "is not open to this session" in refusal(opened(make_session(), path))


def test_uploads_lie_in_a_folder_that_nobody_guesses_or_opens(make_session):
    spec = with_upload(make_session())
    root = access.all_uploads()
    (folder,) = root.iterdir()
    host, pid, _, token = folder.name.split("~")
    assert (int(pid), host) == (os.getpid(), socket.gethostname())
    assert len(token) == 32
    assert spec.name.startswith(str(folder))
    for one in (root, folder):
        assert one.stat().st_mode & 0o777 == 0o700


def uploaded(content, name="rows.npz"):
    return SimpleNamespace(name=name, getbuffer=lambda: memoryview(content))


def test_an_upload_that_was_cut_short_is_written_again(tmp_path):
    path = sharing.keep_upload(uploaded(b"0123456789"), tmp_path)
    os.truncate(path, 4)
    assert sharing.keep_upload(uploaded(b"0123456789"), tmp_path) == path
    assert path.read_bytes() == b"0123456789"


def test_an_upload_gets_a_number_if_another_file_has_its_name(tmp_path):
    first = sharing.keep_upload(uploaded(b"first"), tmp_path)
    second = sharing.keep_upload(uploaded(b"second"), tmp_path, [first])
    third = sharing.keep_upload(uploaded(b"third"), tmp_path, [first, second])
    stem, suffix = first.stem, first.suffix
    assert [second.name, third.name] == [f"{stem}-2{suffix}", f"{stem}-3{suffix}"]
    # The same file again is the same upload, whatever came meanwhile.
    assert sharing.keep_upload(uploaded(b"first"), tmp_path, [second, third, first]) == first
    assert sharing.keep_upload(uploaded(b"second"), tmp_path, [first, second]) == second
    assert [path.read_bytes() for path in (first, second, third)] == [b"first", b"second", b"third"]


def test_uploads_go_with_their_session():
    member = Member()
    folder = member.uploads_folder()
    (folder / "file").write_bytes(b"1")
    del member
    gc.collect()
    assert not folder.exists()


def test_uploads_of_a_killed_server_are_swept_and_others_stay():
    own = Member()
    kept = own.uploads_folder()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = access.all_uploads() / f"{socket.gethostname()}~{ended.pid}~1~{'0' * 32}"
    elsewhere = access.all_uploads() / f"another-machine~{ended.pid}~1~{'1' * 32}"
    for folder in (left, elsewhere):
        folder.mkdir()
        (folder / "file").write_bytes(b"1")
    sharing.sweep()
    assert (kept.exists(), left.exists(), elsewhere.exists()) == (True, False, True)


def test_a_folder_that_was_put_there_in_advance_is_refused(tmp_path, monkeypatch):
    (tmp_path / "trap").mkdir()
    access.all_uploads().symlink_to(tmp_path / "trap")
    with pytest.raises(SpaceError, match="got another account"):
        Member().uploads_folder()
    access.all_uploads().unlink()
    access.all_uploads().mkdir(mode=0o777)
    monkeypatch.setattr(sharing.os, "getuid", lambda: os.geteuid() + 1)
    with pytest.raises(SpaceError, match="got another account"):
        Member().uploads_folder()


def texts(path):
    words = ["cat", "dog", "bird", "cow"] * 10
    rows = [f"the {word} sat on number {row % 7},{row % 2}\n" for row, word in enumerate(words)]
    path.write_text("text,label\n" + "".join(rows))
    return DatasetSpec("file", str(path))


def encode_as_worker(dataset, store):
    find = access._find_asker
    access._find_asker = None
    try:
        encode(dataset, LSA, store)
    finally:
        access._find_asker = find
    (summary,) = (one for one in store.summaries() if "encoder" in one.metadata)
    return summary


def store_tab(session):
    session.session_state["data.store"] = True
    return session.open("data")


def test_a_session_sees_and_removes_only_what_it_encoded(shared, queue, make_session):
    first, second, third = (make_session(60) for _ in range(3))
    summary = encode_as_worker(texts(shared / "texts.csv"), queue.store)
    for session in (first, second):
        session.session_state["relscope.member"].made.add(summary.key)
    store_tab(third)
    assert "There are no encodings yet" in third.captions
    assert str(queue.store.root) not in third.everything
    for session, is_last in ((first, False), (second, True)):  # it stays for the other session
        assert store_tab(session).table("store.table")["name"].tolist() == [summary.metadata["name"]]
        session.select_rows("store.table", 0).click("store.remove")
        assert "There are no encodings yet" in session.captions
        assert queue.store.has(summary.key) != is_last


def test_a_session_file_opens_no_encoding_of_another_sessions_upload(shared, queue, make_session):
    first = make_session()
    second = make_session()
    member = first.session_state["relscope.member"]
    path = member.uploads_folder() / "texts.csv"
    theirs = stored_encoding_spec(encode_as_worker(texts(path), queue.store))
    said_to_be_mine = encoding_spec(DatasetSpec("digits"), LSA, "", theirs.option("key"), "digits")
    assert "made of data that this session may not read" in refusal(opened(second, theirs))
    assert "made of data that this session may not read" in refusal(opened(second, said_to_be_mine))
    assert not refusal(opened(first, theirs))


def wait_for(context, *, path):
    context.report(0, 1, "waiting")
    until(lambda: os.path.exists(path))
    context.put({}, {})


@pytest.fixture
def members(monkeypatch):
    runtime = SimpleNamespace(is_active_session=lambda session: True)
    monkeypatch.setattr(sharing.st.runtime, "get_instance", lambda: runtime)
    return Member(), Member()


KEY = "a" * 32


def test_jobs_are_hidden_from_another_session_and_stopped_alone(shared, one_worker, members, tmp_path):
    first, second = (OwnQueue(one_worker, member) for member in members)
    mine = first.submit(KEY, wait_for, title="mine", path=str(tmp_path / "go"))
    assert [one.key for one in first.jobs()] == [KEY]
    assert second.jobs() == []
    assert second.job(KEY) is None
    theirs = second.submit(KEY, wait_for, title="mine", path=str(tmp_path / "go"))
    assert len(one_worker.jobs()) == 1
    mine.cancel()
    assert mine.status().state == first.job(KEY).status().state == "cancelled"
    assert theirs.status().state in ("queued", "running")
    (tmp_path / "go").touch()
    assert theirs.wait().state == "done"
    third = OwnQueue(one_worker, Member())
    assert third.job(KEY).status().state == "done"  # whoever can tell the key has the data
    assert third.jobs() == []


def test_a_job_reads_only_data_of_its_session(shared, one_worker, members, secret, monkeypatch):
    monkeypatch.setattr(access, "_find_asker", lambda: members[0].asker)
    queue = OwnQueue(one_worker, members[0])
    closed = SpaceSpec("file", str(secret / "vectors.npy"))
    for dataset in (secret / "texts.csv", members[1].uploads_folder() / "texts.csv"):
        dataset = DatasetSpec("file", str(dataset))
        with pytest.raises(SpaceError, match="not open to this session"):
            queue.submit(KEY, encode_job, title="theirs", dataset=dataset, encoder=LSA)
    for arguments in (
        {"specs": [("first", closed)]},
        {"settings": {"spaces": [json.dumps(closed.to_json() | {"digest": "0"})]}},
        {"spec": encoding_spec(DatasetSpec("folder", str(secret)), LSA, "", "b" * 32, "theirs")},
    ):
        with pytest.raises(SpaceError, match="not open to this session"):
            need_access_to_all(arguments, one_worker.store)
    open_to_all = {"title": "{no JSON", "settings": {"spaces": ['{"other": 1}']}, "seeds": (1, None)}
    need_access_to_all(open_to_all, one_worker.store)
    assert queue.jobs() == []
