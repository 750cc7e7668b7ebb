"""What is installed: ranges that hold the pins, extras that name their libraries, and an error where one
is missing.
"""

import builtins
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement

from relcore.base.errors import SpaceError
from relcore.base.libraries import EXTRAS, extra

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DISTRIBUTIONS = {"umap": "umap-learn", "qdrant_client": "qdrant-client"}


@pytest.fixture
def without(monkeypatch):
    """``without("torch", …)``: to import these fails as if they were not installed."""
    usual = builtins.__import__

    def hide(*libraries):
        def importing(name, *arguments, **settings):
            if name.split(".")[0] in libraries:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            return usual(name, *arguments, **settings)

        monkeypatch.setattr(builtins, "__import__", importing)

    return hide


def requirements(lines):
    return {one.name: one for one in map(Requirement, lines)}


def test_every_dependency_is_pinned_to_a_version_in_its_range():
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = requirements(line for line in lines if line and not line.startswith("#"))
    extras = PROJECT["optional-dependencies"].values()
    wanted = requirements([*PROJECT["dependencies"], *(one for some in extras for one in some)])
    wanted.pop("relscope")
    assert set(wanted) <= set(pins)
    for name, one in wanted.items():
        (pin,) = pins[name].specifier
        assert pin.operator == "=="
        assert one.specifier.contains(pin.version), f"{pins[name]} is outside of {one}"


def test_the_extra_that_an_error_names_brings_the_library():
    for library, name in EXTRAS.items():
        brought = requirements(PROJECT["optional-dependencies"][name])
        assert DISTRIBUTIONS.get(library, library) in brought
        assert library not in requirements(PROJECT["dependencies"])
    everything = {name for one in PROJECT["optional-dependencies"]["all"] for name in Requirement(one).extras}
    assert everything == set(PROJECT["optional-dependencies"]) - {"all"}


def test_other_missing_libraries_are_left_alone():
    with pytest.raises(ModuleNotFoundError), extra():
        import a_library_that_nobody_wrote  # noqa: F401


def missing_head():
    from relcore.stitch.heads import fit_head

    fit_head(np.eye(4), np.array([0, 1, 0, 1]), 2, kind="mlp")


def missing_anchors():
    from relcore import LatentSpace, bootstrap_anchors

    rows = np.random.default_rng(0).normal(size=(60, 5))
    ids = [f"r{row}" for row in range(60)]
    seeds = [(one, one) for one in ids[:5]]
    bootstrap_anchors(
        LatentSpace(rows, ids), LatentSpace(rows, ids), seeds=seeds, n_anchors=10, method="paper"
    )


def missing_map():
    from relcore.maps.reduction import ReductionSpec, reduce_spaces

    reduce_spaces([np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32)], ReductionSpec("umap"))


def missing_widget():
    from relcore import show

    sys.modules.pop("relcore.panes.widget", None)  # a test before this one may have imported it
    rows = np.random.default_rng(0).normal(size=(30, 5))
    show(rows, rows)


def missing_engine():
    from relcore.runs.jobs import Engine

    Engine("tcp://127.0.0.1:1").start()


@pytest.mark.parametrize(
    ("library", "name", "function"),
    [
        ("torch", "vision", missing_head),
        ("torch", "vision", missing_anchors),
        ("umap", "app", missing_map),
        ("anywidget", "notebook", missing_widget),
        ("distributed", "cluster", missing_engine),
    ],
)
def test_a_missing_library_is_an_error_that_says_how_to_install_it(
    monkeypatch, tmp_path, without, library, name, function
):
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path))
    without(library)
    with pytest.raises(
        SpaceError, match=rf'expected the package {library}.*run: pip install "relscope\[{name}\]"'
    ):
        function()


def test_the_encoders_of_a_kind_name_its_extra(without, tmp_path):
    from relcore.catalog.encoding import encode
    from relcore.encoders.dataset import DatasetSpec
    from relcore.encoders.small_vision import SmallVision
    from relcore.encoders.transformers import MiniLM
    from relcore.runs.store import Store

    without("torch", "transformers")
    for dataset, encoder, name in (
        (DatasetSpec("digits", limit=50), SmallVision("mlp"), "vision"),
        (DatasetSpec("parallel", "en", limit=50), MiniLM((2,)), "text"),
    ):
        with pytest.raises(SpaceError, match=rf"relscope\[{name}\]"):
            encode(dataset, encoder, Store(tmp_path))


def test_jobs_run_in_place_without_dask(monkeypatch, without, capsys, tmp_path):
    from relcore.cli import main
    from relcore.commands import running

    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    monkeypatch.setattr(running, "find_spec", lambda name: None)
    without("distributed")
    path = str(tmp_path / "sentences.npz")
    assert (
        main(
            ["encode", "parallel:en", "--limit", "60", "--encoder", "tfidf", "--dimensions", "5", "-o", path]
        )
        == 0
    )
    assert np.load(path)["vectors"].shape == (60, 5)
    assert "TF-IDF" in capsys.readouterr().out


def test_a_command_says_what_to_install(monkeypatch, capsys):
    from relcore.cli import main

    def run(options):
        raise ModuleNotFoundError("No module named 'torch_geometric'", name="torch_geometric")

    monkeypatch.setattr("relcore.commands.available.run", run)
    assert main(["available"]) == 2
    assert 'run: pip install "relscope[graph]"' in capsys.readouterr().err
