"""A folder of checkpoints is a series of spaces, in natural order."""

import numpy as np

from relcore.catalog.catalog import available
from relcore.commands.app import opened
from relcore.commands.arguments import space_specs
from relcore.files.series import series_around

STEPS = (5, 20, 100, 1000)


def names(folder, text=None):
    return [spec.name.removeprefix(f"{folder}/") for spec in space_specs(text or str(folder))]


def test_files_in_natural_order_without_what_lies_beside_them(tmp_path):
    for step in STEPS:
        np.save(tmp_path / f"step-{step}.npy", np.eye(3))
        (tmp_path / f"step-{step}.ids.txt").write_text("a\nb\nc\n")
    (tmp_path / "metrics.csv").write_text("step,loss\n5,1.5\n20,1.2\n")
    (tmp_path / "notes.md").write_text("?")
    (tmp_path / ".hidden.npy").write_bytes((tmp_path / "step-5.npy").read_bytes())
    assert names(tmp_path) == [f"step-{step}.npy" for step in STEPS]
    listed = [entry.name for entry in available(tmp_path) if entry.name.startswith("step")]
    assert listed == [f"step-{step}.npy" for step in STEPS]
    specs = opened([str(tmp_path)])
    assert [spec.name for spec in specs] == [str((tmp_path / f"step-{step}.npy").resolve()) for step in STEPS]


def test_the_series_around_a_space_is_that_of_its_folder_or_of_the_one_around_it(tmp_path):
    flat = [tmp_path / "flat" / f"step-{step}.npy" for step in STEPS]
    deep = [tmp_path / "deep" / f"step-{step}" / "embeddings.npy" for step in STEPS]
    alone = tmp_path / "alone" / "one.npy"
    for path in (*flat, *deep, alone):
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, np.eye(3))
    known = {*flat, *deep, alone}
    assert series_around(flat[2], known, tmp_path) == flat
    assert series_around(deep[2], known, tmp_path) == deep
    assert series_around(alone, known, tmp_path / "alone") == []
    assert series_around(deep[2], known, deep[2].parent) == []  # nothing outside the open folder
    assert series_around(flat[0], {*flat[:2]}, tmp_path) == flat[:2]
