"""The list of commands is there at once, and what help lists is what there is."""

import subprocess
import sys
from pathlib import Path

from relcore.cli import COMMANDS

ROOT = Path(__file__).parents[3]
HEAVY = ("torch", "sklearn", "dask", "distributed", "streamlit", "plotly", "matplotlib")


def test_help_lists_commands_and_example_and_loads_nothing_heavy():
    """All in one process: a library that one command loads is there at the end."""
    script = f"""
import sys
from relcore.cli import COMMANDS, main
def help_of(*command):
    try:
        main([*command, "--help"])
    except SystemExit as end:
        assert end.code == 0, end.code
help_of()
assert "numpy" not in sys.modules
for name in COMMANDS:
    help_of(name)
assert not set({HEAVY}) & set(sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in COMMANDS:
        assert f"\n  {name}" in ran.stdout
        assert f"\nexample:\n  relscope {name} " in ran.stdout
