import os
import socket
import threading

import pytest

from relcore.base.errors import SpaceError
from relcore.encoders import encoder
from relcore.encoders.transformers import content_of_model, model_folder


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


def test_a_folder_with_pickles_only_is_refused(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(
        SpaceError,
        match=r"expected weights as .safetensors, got 'pytorch_model.bin', which would run code.*conver",
    ):
        model_folder(str(folder))


def test_a_network_that_never_answers_is_given_up(monkeypatch):
    waits, join = [], threading.Thread.join
    monkeypatch.setattr(
        threading.Thread, "join", lambda thread, timeout=None: waits.append(timeout) or join(thread, timeout)
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not encoder.answers(f"http://127.0.0.1:{server.getsockname()[1]}/")
    assert encoder.PATIENCE + 0.5 in waits
    assert encoder.PATIENCE + 0.5 < 3  # and so it is told within three seconds


def test_content_follows_weights_and_not_their_place_or_time(folder, tmp_path):
    before = content_of_model(str(folder))
    moved = folder.rename(tmp_path / "moved")
    os.utime(moved / "model.safetensors", (0, 0))
    (moved / "README.md").write_text("a note")
    assert content_of_model(str(moved)) == before
    (moved / "model.safetensors").write_bytes(b"retrain")  # as many bytes as before
    assert content_of_model(str(moved)) != before
    assert content_of_model("owner/model") == ""
