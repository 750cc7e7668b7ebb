"""Each benchmark starts, says what it measures and what it takes, and is listed in benchmarks/README.md."""

import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
MODULES = sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("__"))


@pytest.mark.parametrize("name", MODULES)
def test_its_help_says_what_it_measures(name, monkeypatch, capsys):
    """A module fails if it cannot be imported, has no `main`, or prints nothing."""
    module = import_module(f"benchmarks.{name}")
    assert module.__doc__.startswith(f"``python -m benchmarks.{name}")
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit) as ended:
        module.main()
    out = capsys.readouterr().out
    assert ended.value.code == 0
    assert out.startswith(f"usage: python -m benchmarks.{name}")
    assert len(out.split()) > 20
    assert 'if __name__ == "__main__":' in Path(module.__file__).read_text(encoding="utf-8")


def test_the_list_names_these_modules():
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == MODULES
    assert len(MODULES) <= 13
