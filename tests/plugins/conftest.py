"""The packages of plugins/, as pip leaves them: their modules on the path, and their entry points."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

import pytest

from relcore.base import names, plugins
from tests.relcore.conftest import data_folder, make_space, rng  # noqa: F401

PACKAGES = Path(__file__).parents[2] / "plugins"
sys.path[:0] = [str(PACKAGES / name) for name in ("measures", "studies")]  # for the imports of test files


@pytest.fixture(scope="package", autouse=True)
def installed(tmp_path_factory):
    """The packages by their entry points, here and in processes that a test starts."""
    folder = tmp_path_factory.mktemp("installed")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("measures", "studies"):
            _describe(PACKAGES / name / "pyproject.toml", folder)
        patch.syspath_prepend(folder)
        path = [str(folder), *(str(PACKAGES / name) for name in ("measures", "studies"))]
        patch.setenv("PYTHONPATH", os.pathsep.join([*path, os.environ.get("PYTHONPATH", "")]))
        _forget()
        yield
    _forget()


def _describe(project: Path, folder: Path) -> None:
    """The metadata of a package, as pip writes it."""
    about = tomllib.loads(project.read_text("utf-8"))["project"]
    made = folder / f"{about['name'].replace('-', '_')}-{about['version']}.dist-info"
    made.mkdir()
    described = [f"Name: {about['name']}", f"Version: {about['version']}", f"Summary: {about['description']}"]
    (made / "METADATA").write_text("\n".join(["Metadata-Version: 2.1", *described, ""]))
    points = [
        line
        for group, added in about["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {where}" for name, where in added.items()))
    ]
    (made / "entry_points.txt").write_text("\n".join([*points, ""]))


def _forget() -> None:
    plugins._installed.cache_clear()
    for family in names.FAMILIES:
        family.__dict__.pop("_found", None)
