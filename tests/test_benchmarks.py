"""Each benchmark says what it measures, and benchmarks/README.md lists it."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
MODULES = sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("__"))


@pytest.mark.parametrize("name", MODULES)
def test_it_says_what_it_measures_and_is_listed(name):
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    assert f"`{name}`" in (FOLDER / "README.md").read_text(encoding="utf-8")
    assert text.startswith('"""')
    if '__name__ == "__main__"' in text:
        assert re.match(rf'"""``python -m benchmarks\.{name}\b[^`]*``: ', text)


def test_the_list_names_no_module_that_is_gone():
    table = [
        line
        for line in (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    ]
    named = {name for line in table for name in re.findall(r"`(\w+)`", line.split("|")[1])}
    assert named <= set(MODULES)
    assert len(table) >= 6
