"""Ctrl-C while a command works."""

import subprocess
import sys

import pytest

# Ctrl-C arrives within the import of a module that then says whether it was initialised.
MODULE = """
import os, signal
os.kill(os.getpid(), signal.SIGINT)
for _ in range(1000):  # Python calls the handler between instructions
    pass
whole = True
"""
COMMAND = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts behind ignores it
from relcore.base import stopping
stopping.listen(stopping.stop)
try:
    import interrupted
    while True:
        pass
except KeyboardInterrupt:
    print(sys.modules["interrupted"].whole)
    stopping.end(stopping.print_stopped())
"""


@pytest.mark.parametrize("nested", [False, True])
def test_an_import_is_not_interrupted_in_the_middle(tmp_path, nested):
    (tmp_path / "interrupted.py").write_text(MODULE)
    command = COMMAND
    if nested:
        (tmp_path / "outer.py").write_text("import interrupted\n")
        command = command.replace("    import interrupted", "    import outer")
    ran = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{command}"],
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stdout) == (130, "True\n")
    assert ran.stderr.count("\n") == ran.stderr.count("Stopped. Finished work is saved") == 1
