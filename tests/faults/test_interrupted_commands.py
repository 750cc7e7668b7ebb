"""Ctrl-C at a random moment of a command, from its first import on: one line, 130, no traceback, and no process,
file or folder is left; SIGTERM does the same, with 143.

Each command is interrupted once, or RELSCOPE_TEST_KILLS times, at moments drawn from one seed: Ctrl-C as by a
terminal, which sends the signal to all its processes, SIGTERM as by `kill`.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from relcore.base.stopping import LINE
from tests.faults.test_killed_commands import COMMANDS, names
from tests.waiting import until

ROOT, SEED, TIMES = Path(__file__).parents[2], 12, int(os.environ.get("RELSCOPE_TEST_KILLS", "1"))
# As the command `relscope` does, with a byte that says when its first import is done.
START = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts behind ignores it
from relcore.__main__ import run
import os, sys
os.write(int(sys.argv.pop(1)), b"1")
sys.exit(run())
"""
ALL = {name: command[0] for name, command in COMMANDS.items() if name != "study"} | {
    "study": "study similarity-performance --grid data=digits --grid n_runs=60 -o runs.csv",
    "compare": "compare old.npz new.npz --anchors 30",
    "link": "link word2vec-novels fasttext-novels -o links.tsv",
    "app": "app old.npz --no-browser --port 0",
}


def left(session):
    """The processes of a session: whatever a command starts stays in it."""
    found = []
    for process in psutil.process_iter(["status"]):
        try:
            ours = os.getsid(process.pid) == session
        except (ProcessLookupError, PermissionError):
            continue
        if ours and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def interrupted(folder, text, number, share, longest, to_all):
    """The exit code and what was printed, None where it ended before."""
    read, write = os.pipe()
    environment = os.environ | {"PYTHONPATH": str(ROOT), "RELSCOPE_STORE": str(folder / "store")}
    process = subprocess.Popen(
        [sys.executable, "-c", START, str(write), *text.split()],
        cwd=folder,
        env=environment | {"TMPDIR": str(folder / "tmp")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=[write],
        start_new_session=True,
        text=True,
    )
    os.close(write)
    assert os.read(read, 1) == b"1"
    os.close(read)
    began = time.monotonic()
    try:
        process.wait(share * longest.get(text, 20))
        longest[text] = time.monotonic() - began
    except subprocess.TimeoutExpired:
        (os.killpg if to_all else os.kill)(process.pid, number)
        if process.wait() != 0:  # it had ended, but for the interpreter
            told = process.stderr.read()
            until(lambda: not left(process.pid))
            return process.returncode, told
    finally:
        process.stderr.close()
    return None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "number"),
    [*((name, signal.SIGINT) for name in ALL), *((name, signal.SIGTERM) for name in ("npy", "app"))],
)
def test_an_interrupted_command_says_so_in_one_line(template, name, number):
    folder = template
    draw, longest, outcomes, known = random.Random(SEED), {}, Counter(), names(folder)
    for turn in range(TIMES):
        outcome = None
        while outcome is None:
            for path in folder.iterdir():
                if path.name not in known:
                    subprocess.run(["rm", "-r", path], check=True)
            outcome = interrupted(
                folder,
                ALL[name],
                number,
                draw.random(),
                longest,
                to_all=turn % 2 == 0 and number == signal.SIGINT,
            )
        outcomes[outcome] += 1
        assert names(folder / "tmp") == set()
        assert not [one for one in names(folder) if one.startswith(".relscope")]
    assert outcomes == {(128 + number, f"relscope: {LINE}\n"): TIMES}
