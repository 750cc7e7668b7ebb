"""The packages of plugins/, as pip leaves them: their modules on the path, and their entry points."""

from __future__ import annotations

import os
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from relcore.base import names, plugins
from tests.relcore.conftest import rng  # noqa: F401

PACKAGES = Path(__file__).parents[2] / "plugins"
FOLDERS = [str(PACKAGES / name) for name in ("measures", "studies")]
sys.path[:0] = FOLDERS  # for the imports of test files


@contextmanager
def _installed(folder: Path) -> Iterator[None]:
    """The packages by their entry points, here and in processes that a test starts."""
    with pytest.MonkeyPatch.context() as patch:
        for package in FOLDERS:
            _describe(Path(package, "pyproject.toml"), folder)
        patch.syspath_prepend(folder)
        path = [str(folder), *FOLDERS, os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(path))
        _forget()
        yield
    _forget()


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory):
    """The scope is a file of tests. "package" would be the whole session, because no folder of tests is a
    package."""
    with _installed(tmp_path_factory.mktemp("installed")):
        yield


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
    plugins._entry_points.cache_clear()
    for family in names.FAMILIES:
        family.__dict__.pop("_found", None)


# The study of measures lists those of plugins/measures when it is imported, and test files import it before fixtures.
with tempfile.TemporaryDirectory() as folder, _installed(Path(folder)):
    import relscope_studies.measures  # noqa: F401
