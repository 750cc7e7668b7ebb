import os
from pathlib import Path

import pytest


@pytest.fixture
def data_folder():
    folder = os.environ.get("RELSCOPE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("RELSCOPE_DATA names no folder of development data")
    return Path(folder)
