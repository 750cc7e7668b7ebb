"""Each benchmark starts, says what it measures and what it takes, and is listed in benchmarks/README.md."""

import json
import re
import sys
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest

from benchmarks import check_rates
from benchmarks.checked import tables

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


def test_draws_pooled_with_a_written_table_are_the_table_of_all_draws():
    """Columns are counts, means of those answered, means of those that named rows, and a highest value."""
    answered = {"answered": True, "either": False, "swapped": False, "bound": 0.1, "power": 1.0}
    draws = [
        {**answered, "other": "L5", "false": 0.0, "shifted": False, "unknown": 0.0},
        {**answered, "other": "L5", "false": 0.25, "shifted": True, "unknown": 0.5},
        {**answered, "other": "rotated", "false": 0.0, "shifted": False, "unknown": 0.25},
        {"other": "L5", "answered": False},
        {**answered, "other": "L5", "either": True, "false": 0.5, "shifted": False, "unknown": 0.25},
        {**answered, "other": "L3", "bound": None, "false": 0.5, "shifted": False, "unknown": 0.25},
    ]
    frame = pd.DataFrame(draws).assign(mode="none", share=0.5)
    whole = list(tables.whose_table(frame))
    earlier = [f"| {' | '.join(row)} |" for row in tables.whose_table(frame[:3])]
    assert list(tables.whose_table(frame[3:], earlier)) == whole
    of_layers = ["none", "another layer", "0.5", "4 of 5", "1", "0", ".250", ".500", "1.000", "1 of 2"]
    assert whole[0] == [*of_layers, ".250", ".250"]


def test_a_section_without_draws_is_written_again_as_it_was(tmp_path, monkeypatch):
    written = tmp_path / "whose_rates.md"
    size = {"part": "size", "other": "L3", "seconds": 9.0, "busy": 8.0, "before": 0.1, "peak": 0.5}
    draws = tmp_path / "draws.jsonl"
    draws.write_text(json.dumps(size) + "\n", encoding="utf-8")
    monkeypatch.setattr(check_rates, "WHOSE_TABLE", written)
    title = tables.WHOSE_SECTIONS["nothing"][0]
    written.write_text(f"# Rates\n\n## {title}\n\n| kind |\n|---|\n| few rows |\n", encoding="utf-8")
    for _ in range(2):
        lines = check_rates.table(draws)
        start = lines.index(f"## {title}")
        assert lines[start - 1 :][:7] == ["", f"## {title}", "", "| kind |", "|---|", "| few rows |", ""]
        assert lines[-1] == "| L3 | 9.00 | 8.00 | .10 | .50 |"
        written.write_text("\n".join(lines) + "\n", encoding="utf-8")
