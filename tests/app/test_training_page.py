"""The tab Training: runs of a folder, and two networks that are trained in the page."""

from contextlib import nullcontext

import numpy as np
import pytest

from app.training import panel
from relcore.training import two_networks
from relcore.training.two_networks import TwoNetworks
from tests.app.conftest import Session

torch = pytest.importorskip("torch")
TRAINING = ("research", "Training")


def test_two_networks_are_trained_in_the_page(make_workspace, monkeypatch):
    monkeypatch.setattr(two_networks.TwoNetworks.__init__, "__defaults__", ("digits", 0, 2))
    session = Session(None, make_workspace(60), TRAINING)
    assert not session.errors
    session.click("training.train")
    assert not session.errors
    assert "Means of 5 pairs of random states" in session.text
    assert "are of one pair" in session.captions
    assert "mean reciprocal rank" in session.captions
    assert "for the same row, not for the same group" in session.captions
    assert len(session.players) == 1


def test_runs_of_a_folder_are_drawn_and_a_wrong_folder_is_an_error(make_workspace, tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(panel.st, "spinner", lambda text, **look: said.append(text) or nullcontext())
    networks = TwoNetworks(tmp_path / "runs", epochs=2)
    for _ in networks.train():
        pass
    session = Session(None, make_workspace(60), TRAINING)
    session.change("segmented_control", "training.place", "folder")
    loop, tree = (block.value for block in session.code)
    compile(loop, "loop", "exec")
    assert "step-100.npy" in tree
    session.change("text_input", "training.folder", str(tmp_path / "runs"))
    assert not session.errors
    assert "first and second" in session.text
    session.run()
    told = [text for text in said if text.startswith("Reading the checkpoints in ")]
    assert len(told) == 1, "the message stands once, in place of what was there"
    session.change("text_input", "training.folder", str(tmp_path / "nothing"))
    assert "There is no folder" in session.errors[0]
    assert not session.players
    assert [block.value for block in session.code] == [loop, tree], "how a folder looks stays in sight"


def test_checkpoints_are_read_again_only_after_a_change(tmp_path, monkeypatch):
    read = []
    open_runs = panel.open_runs
    monkeypatch.setattr(panel, "open_runs", lambda folder: read.append(folder) or open_runs(folder))
    run = tmp_path / "runs" / "first"
    run.mkdir(parents=True)
    rows = np.random.default_rng(0).normal(size=(3, 6, 2))
    for step in (0, 1):
        np.save(run / f"step-{step}.npy", rows[step])
    folder = str(tmp_path / "runs")
    assert [len(one) for one in panel.read_runs(folder)] == [2]
    panel.read_runs(folder)
    assert len(read) == 1
    np.save(run / "step-2.npy", rows[2])
    assert [len(one) for one in panel.read_runs(folder)] == [3]
    (tmp_path / "runs" / "labels.txt").write_text("a\n" * 6)
    assert panel.read_runs(folder)[0].labels.tolist() == ["a"] * 6
    assert len(read) == 3
