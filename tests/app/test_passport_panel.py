from __future__ import annotations

import json
import re

import numpy as np
import pytest

from app.workspace import Workspace
from relcore.cli import main
from relcore.passport.passport import Passport, PassportCard
from tests.app.conftest import save_space
from tests.app.test_drift_panel import Panel

N, D = 40, 24
IDS = tuple(f"r{row}" for row in range(N))


@pytest.fixture
def vectors():
    return np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)


def shown_with(workspace):
    panel = Panel(workspace)
    mode = next(one for one in panel.at.segmented_control if one.key.startswith("drift.mode"))
    mode.set_value("A passport")
    return panel.run()


def workspace_of(tmp_path, vectors, new, anchors=IDS):
    specs = tuple(
        save_space(tmp_path / f"{name}.npz", rows) for name, rows in (("old", vectors), ("new", new))
    )
    return Workspace(specs, *specs, anchors=anchors)


def test_the_sessions_anchors_are_a_passport_and_can_be_downloaded(tmp_path, vectors):
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(D, D)))[0]
    panel = shown_with(workspace_of(tmp_path, vectors, vectors @ turn, IDS[:32]))
    assert "Rotated: the same shape in other coordinates" in panel.html
    shown = re.sub(r"</?a[^>]*>", "", panel.html)
    row = re.search(r"cosines between anchors \(correlation\)</td><td[^>]*>(.*?)</td>", shown)
    assert row[1] == "1.000"
    assert "passport.download" in [one.key for one in panel.at.get("download_button")]


def test_an_opened_file_is_checked_and_its_recipe_draws_the_figure(tmp_path, vectors, capsys):
    card = PassportCard("a model", prompt="query: ")
    Passport(IDS, vectors, card).save(tmp_path / "kept.safetensors")
    panel = shown_with(workspace_of(tmp_path, vectors * 3, vectors.astype(np.float16)))
    path = str(tmp_path / "kept.safetensors")
    panel.change("text_input", "drift.passport-path", path)
    assert "Rounded: the same vectors, rounded" in panel.html
    assert any("prompt: query:" in one.value for one in panel.at.caption)
    chosen = [one for one in panel.at.selectbox if one.key.startswith("drift.passport-new")]
    assert len(chosen) == 1
    (tmp_path / "recipe.json").write_text(
        json.dumps(
            {
                "figure": "passport",
                "passport": {"source": "file", "name": path},
                "new": {"source": "file", "name": str(tmp_path / "new.npz")},
            }
        )
    )
    out = tmp_path / "figure.csv"
    assert main(["figure", str(tmp_path / "recipe.json"), "-o", str(out)]) == 0
    lines = out.read_text().splitlines()
    assert len([line for line in lines if line.startswith("the same anchor")]) == N
    panel.change("text_input", "drift.passport-path", str(tmp_path / "none.safetensors"))
    assert any("where there is none" in one.value for one in panel.at.error)
