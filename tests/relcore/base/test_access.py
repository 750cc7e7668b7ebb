"""Which files a path may lead to: all of the account's, or RELSCOPE_DATA and the session's uploads where
the app is shared.
"""

import json
import os
from pathlib import Path

import pytest

from relcore.base import access
from relcore.base.access import AccessContext
from relcore.base.errors import SpaceError


@pytest.fixture
def shared(tmp_path, monkeypatch):
    """A shared app with a data folder, a session's uploads, and a secret file outside both."""
    for name in ("data", "secret", "uploads/mine", "uploads/others"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file.txt").write_text(name)
    monkeypatch.setattr(access, "all_uploads", lambda: tmp_path / "uploads")
    own = AccessContext(tmp_path / "uploads" / "mine", {"0" * 32})
    monkeypatch.setattr(access, "_find_asker", lambda: own)
    monkeypatch.setenv(access.ENVIRONMENT, "1")
    monkeypatch.setenv(access.DATA, str(tmp_path / "data"))
    return tmp_path


def test_a_shared_app_opens_data_folder_and_own_uploads_and_refuses_every_way_out(shared):
    for folder in ("data", "uploads/mine"):
        assert access.readable_path(shared / folder / "file.txt").read_text() == folder
    (shared / "data" / "link.txt").symlink_to(shared / "secret" / "file.txt")
    (shared / "data" / "up").symlink_to(shared)
    outside = [
        shared / "secret" / "file.txt",
        shared / "uploads" / "others" / "file.txt",
        shared / "uploads",
        shared / "data" / ".." / "secret" / "file.txt",
        shared / "data" / "link.txt",
        shared / "data" / "up" / "secret" / "file.txt",
        shared / "data-of-another",
        "/etc/passwd",
        "~",
        "../secret/file.txt",
    ]
    for path in outside:
        with pytest.raises(SpaceError, match="not open to this session"):
            access.readable_path(path)
        assert not access.may_read(path)


@pytest.mark.parametrize("resolve", [Path.resolve, lambda path: Path(os.path.realpath(path))])
def test_a_circle_of_links_leads_nowhere(shared, monkeypatch, resolve):
    # Paths are resolved as in this version of Python, and as since 3.13, which raises no error.
    monkeypatch.setattr(Path, "resolve", resolve)
    for name, to in (("loop", "loop"), ("one", "two"), ("two", "one")):
        (shared / "data" / name).symlink_to(shared / "data" / to)
    for name in ("loop", "loop/x", "one", "two/x"):
        assert access.resolve_links(shared / "data" / name) is None
        with pytest.raises(SpaceError, match="not open to this session"):
            access.readable_path(shared / "data" / name)
    assert not access.beside(shared / "data" / "file.txt", shared / "data" / "loop")
    assert access.resolve_links(shared / "data" / "none.txt") == shared / "data" / "none.txt"


def test_refusal_does_not_tell_whether_file_is_there(shared):
    messages = []
    for name in ("file.txt", "none.txt"):
        with pytest.raises(SpaceError) as caught:
            access.readable_path(shared / "secret" / name)
        messages.append(str(caught.value).replace(name, ""))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("share", ["", "1"])
def test_session_never_opens_upload_of_another(shared, monkeypatch, share):
    monkeypatch.setenv(access.ENVIRONMENT, share)
    uploads = shared / "uploads"
    access.readable_path(uploads / "mine" / "file.txt")
    (uploads / "mine" / "link").symlink_to(uploads / "others")
    for path in (uploads / "others" / "file.txt", uploads / "mine" / "link" / "file.txt"):
        with pytest.raises(SpaceError, match="only the session that uploaded a file"):
            access.readable_path(path)


def test_worker_opens_uploads_of_all_sessions_and_no_more(shared, monkeypatch):
    monkeypatch.setattr(access, "_find_asker", None)
    access.readable_path(shared / "uploads" / "others" / "file.txt")
    with pytest.raises(SpaceError, match="not open"):
        access.readable_path(shared / "secret" / "file.txt")


def test_without_uploads_only_data_folder_is_open(shared, monkeypatch):
    with pytest.raises(SpaceError, match="not open"):
        access.readable_path(shared / "uploads" / "mine", uploads=False)
    monkeypatch.setattr(access, "_find_asker", AccessContext)
    access.readable_path(shared / "data" / "file.txt")
    with pytest.raises(SpaceError, match="not open"):
        access.readable_path(shared / "uploads" / "mine" / "file.txt")


def test_shared_app_opens_files_that_it_was_started_with(shared, monkeypatch):
    given = shared / "secret" / "file.txt"
    opened = [{"source": "file", "name": str(given)}, {"source": "bundled", "name": "x"}]
    monkeypatch.setenv(access.OPENED, json.dumps(opened))
    assert access.readable_path(given) == given
    with pytest.raises(SpaceError, match="not open"):
        access.readable_path(given.with_name("other.txt"))


def test_link_in_open_folder_leads_out_even_if_another_link_leads_to_the_same_place(shared):
    data = shared / "data"
    for name in ("x", "link.txt"):
        (data / name).symlink_to(shared / "secret" / "file.txt")
    assert access.lies_in(data, data / "file.txt")
    assert not access.lies_in(data, data / "x")
    assert not access.lies_in(data, data / "link.txt")


def test_file_beside_open_one_is_part_of_it_unless_it_is_link_that_leads_out(shared):
    vectors = shared / "data" / "vectors.npy"
    assert access.beside(vectors, shared / "data" / "vectors.ids.txt")
    (shared / "data" / "vectors.labels.txt").symlink_to(shared / "secret" / "file.txt")
    assert not access.beside(vectors, shared / "data" / "vectors.labels.txt")


def test_only_regular_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"")
    assert access.regular_file(tmp_path / "file") == tmp_path / "file"
    refused = {
        "pipe": "a named pipe",
        ".": "the folder",
        "none": "where there is none",
        "/dev/zero": "a device",
    }
    for path, said in refused.items():
        with pytest.raises(SpaceError, match=said):
            access.regular_file(tmp_path / path)


def test_an_upload_that_is_gone_is_to_be_uploaded_again():
    with pytest.raises(SpaceError, match=r"'words\.npz': this upload is no longer kept; upload"):
        access.regular_file(access.all_uploads() / "gone" / "words.npz")
