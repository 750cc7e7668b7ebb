"""The wheel, built once for the tests in this folder."""

import sys
from pathlib import Path

import pytest

from tests.installed.wheel_environment import run


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    root = Path(__file__).parents[2]
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, root, folder=folder)
    (path,) = folder.glob("*.whl")
    return path
