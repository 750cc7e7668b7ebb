"""A folder of checkpoints is a series of spaces, in natural order."""

import numpy as np

from relcore.catalog.catalog import available
from relcore.catalog.naming import space_specs
from relcore.commands.app import opened

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
