"""The export menu: the command that it prints."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest

from app.exports import redraw_command
from relcore import AxisChart, PoleAxis, SpaceSpec
from relcore.base import access
from relcore.base.access import ENVIRONMENT
from relcore.cli import main
from relcore.compare.pictures import exportable
from relcore.figures.export import Exportable
from relcore.figures.style import Style
from relcore.maps.pane_maps import ViewSpec


def _figure(recipe):
    return Exportable("relscope-test", None, lambda style: None, pd.DataFrame, recipe)


def test_the_command_names_the_folder_of_each_data_file():
    ends = {"source": _file("/data/my words/old.npy"), "target": _file("/other/new.npy")}
    words = shlex.split(redraw_command(_figure(ends)))
    assert words[:2] == ["relscope", "figure"]
    assert words[3:] == ["--data", "/data/my words", "--data", "/other", "-o", "relscope-test-again.pdf"]


def test_the_command_names_no_folder_of_an_upload():
    uploads = access.all_uploads() / "session"
    ends = {
        "source": _file(str(uploads / "0a" / "old.npy")),
        "target": _file(str(uploads / "0b" / "new.npy")),
    }
    words = shlex.split(redraw_command(_figure(ends)))
    assert words[3:5] == ["--data", "FOLDER"]
    assert "--data" not in words[5:]
    assert str(uploads) not in " ".join(words)


def test_the_command_of_bundled_spaces_needs_no_folder():
    bundled = {"source": {"source": "bundled", "name": "word2vec-novels"}}
    assert "--data" not in redraw_command(_figure(bundled))


def test_the_command_of_a_shared_app_tells_no_folder(monkeypatch):
    monkeypatch.setenv(ENVIRONMENT, "1")
    command = redraw_command(_figure({"source": _file("/data/old.npy"), "target": _file("/data/new.npy")}))
    assert "json --data FOLDER -o" in command
    assert "/data" not in command


def test_the_command_runs_as_it_stands(tmp_path, monkeypatch):
    data = tmp_path / "my data"
    downloads = tmp_path / "downloads"
    data.mkdir()
    downloads.mkdir()
    rng = np.random.default_rng(0)
    for name in ("old", "new"):
        np.save(data / f"{name}.npy", rng.normal(size=(40, 5)))
    ends = [SpaceSpec("file", str(data / f"{name}.npy")) for name in ("old", "new")]
    drawn = AxisChart(source=ends[0], target=ends[1], axis=PoleAxis(("0",), ("1",))).draw()
    (downloads / drawn.filename("json")).write_bytes(drawn.bytes("json"))
    monkeypatch.chdir(downloads)
    words = shlex.split(redraw_command(drawn))
    assert not main([*words[1:], "-o", "again.csv"])
    assert (downloads / "again.csv").read_bytes() == drawn.bytes("csv")


@pytest.mark.parametrize("color_by", ["pivots", "source norm"])
def test_a_recipe_draws_the_stars_and_the_selected_row_at_the_same_scale(make_session, monkeypatch, color_by):
    exported = []
    monkeypatch.setattr("app.exports.export_bar", lambda drawn, *about: exported.append(drawn))
    view = ViewSpec(("r40",), n_nearest=20, color_by=color_by)
    session = make_session(anchors=("r1", "r2", "r3", "r4"), view=view)
    session.select("r5")
    drawn = [one for one in exported if one.recipe["figure"] == "comparison"][-1]
    again = exportable(json.loads(drawn.bytes("json", full_paths=True)))
    for table in (drawn.table(), again.table()):
        assert sorted(table.loc[table["anchor"] > 0, "id"]) == ["r1", "r2", "r3", "r4"]
        assert "r5" in set(table["id"])
    assert _limits(again) == pytest.approx(_limits(drawn), abs=1e-4)


def _limits(drawn):
    axes = drawn.publication(Style()).axes
    return [limit for one in axes for limit in (*one.get_xlim(), *one.get_ylim())]


def _file(path):
    return {"source": "file", "name": path}
