"""What is installed: ranges that hold the pins, extras that name their libraries, and an error where one
is missing.
"""

import builtins
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from relcore import cli
from relcore.base.errors import EXTRAS, SpaceError
from relcore.maps.principal_axes import ReductionSpec
from relcore.maps.reduction import reduce_spaces
from relcore.represent.heads import fit_head
from relcore.runs.jobs import JobQueue

ROOT = Path(__file__).parents[3]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


PROJECT = tomllib.loads(read("pyproject.toml"))["project"]
DISTRIBUTIONS = {"ot": "POT", "umap": "umap-learn"}


def requirements(lines):
    return {one.name: one for one in map(Requirement, lines)}


def test_every_dependency_is_pinned_to_version_in_its_range():
    lines = read("requirements.txt").splitlines()
    pins = requirements(line for line in lines if line and not line.startswith("#"))
    extras = PROJECT["optional-dependencies"].values()
    wanted = requirements([*PROJECT["dependencies"], *(one for some in extras for one in some)])
    wanted.pop("relscope")
    assert set(wanted) <= set(pins)
    for name, one in wanted.items():
        (pin,) = pins[name].specifier
        assert pin.operator == "=="
        assert one.specifier.contains(pin.version), f"{pins[name]} is outside of {one}"


def test_every_package_of_install_is_locked_with_hashes():
    """As `make lock` writes them: the pins of requirements.txt, each version with its sha256."""
    pins, *locks, cpu = map(read, ("requirements.txt", "requirements.lock", "torch.lock", "torch-cpu.lock"))
    locked = "".join(locks)
    blocks = re.split(r"\n(?=\w)", locked.strip())
    assert all(re.match(r"[\w.-]+==[\w.]+ .*\n    --hash=sha256:[0-9a-f]{64}", block) for block in blocks)
    names = {canonicalize_name(block.split(" ")[0].replace("==", "-")) for block in blocks}
    assert {canonicalize_name(pin.replace("==", "-")) for pin in re.findall(r"^\w.+$", pins, re.M)} <= names
    assert f"torch=={re.search('^torch==(.+)$', pins, re.M)[1]}+cpu" == cpu.split(" ")[0]


def test_extra_that_error_names_brings_library():
    for library, name in EXTRAS.items():
        brought = requirements(PROJECT["optional-dependencies"][name])
        assert DISTRIBUTIONS.get(library, library) in brought
        assert library not in requirements(PROJECT["dependencies"])
    everything = {name for one in PROJECT["optional-dependencies"]["all"] for name in Requirement(one).extras}
    assert everything == set(PROJECT["optional-dependencies"]) - {"all"}


@pytest.mark.parametrize(
    ("library", "name", "call"),
    [
        ("torch", "vision", lambda: fit_head(np.eye(4), np.array([0, 1, 0, 1]), 2, kind="mlp")),
        ("umap", "app", lambda: reduce_spaces([np.eye(30, dtype=np.float32)], ReductionSpec("umap"))),
        ("distributed", "cluster", lambda: JobQueue("tcp://127.0.0.1:1").start()),
    ],
)
def test_missing_library_is_error_that_says_how_to_install_it(monkeypatch, tmp_path, library, name, call):
    usual = builtins.__import__

    def importing(wanted, *arguments, **settings):
        if wanted.split(".")[0] == library:
            raise ModuleNotFoundError(f"No module named {wanted!r}", name=wanted)
        return usual(wanted, *arguments, **settings)

    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path))
    monkeypatch.setattr(builtins, "__import__", importing)
    told = rf'expected the package {library}.*run: pip install "relscope\[{name}\]"'
    with pytest.raises(SpaceError, match=told):
        call()


def test_a_package_that_every_installation_has_is_named_too(capsys):
    assert cli._report_error(ModuleNotFoundError(name="numpy"), None) == 2
    told = capsys.readouterr().err
    assert told.startswith("relscope: expected the package numpy, which is not installed")
    assert "--no-deps" in told
