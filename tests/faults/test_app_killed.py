"""kill -9 of a real Streamlit process in the middle of a job; its workers end, and the next process
resumes the job.
"""

import os
import random
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from relcore.catalog.encoding import encode
from relcore.runs.store import Store
from tests.faults.blocks import DIGITS, Pixels, computed_twice, lines
from tests.faults.victims import lives, n_lines
from tests.waiting import run_apart, until

KILLS, SEED = int(os.environ.get("RELSCOPE_TEST_KILLS", "3")), 12
ROOT = Path(__file__).parents[2]


async def visit(port: int) -> None:
    """Open the page as a browser does: connect, and ask for a run of the script."""
    from streamlit.proto.BackMsg_pb2 import BackMsg
    from tornado.websocket import websocket_connect

    connection = await websocket_connect(f"ws://127.0.0.1:{port}/_stcore/stream", subprotocols=["streamlit"])
    message = BackMsg()
    message.rerun_script.query_string = ""
    await connection.write_message(message.SerializeToString(), binary=True)
    for _ in range(3):
        await connection.read_message()


def served(folder: Path, log: str) -> tuple[subprocess.Popen, int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        "streamlit",
        "run",
        "tests/faults/app_of_one_job.py",
        f"--server.port={port}",
        "--server.headless=true",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", *command, "--server.fileWatcherType=none", "--", log],
        cwd=ROOT,
        env=os.environ | {"RELSCOPE_STORE": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(lambda: answers(port) or process.poll() is not None)
    return process, port


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
def test_a_streamlit_process(tmp_path):
    folder, log, draw = tmp_path / "store", str(tmp_path / "log"), random.Random(SEED)
    for _ in range(KILLS):
        before = n_lines(log)
        process, port = served(folder, log)
        try:
            run_apart(visit(port))
            until(lambda: n_lines(log) > before or process.poll() is not None)  # noqa: B023, called in this turn only
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(draw.uniform(0, 0.1))
            children = psutil.Process(process.pid).children(recursive=True)
            assert len(children) >= 3  # scheduler, nanny and worker at least
        finally:
            process.kill()
            process.wait()
        until(lambda: not any(map(lives, children)))  # noqa: B023
        store = Store(folder)
        assert list((folder / "partial").iterdir()) == []
        assert store.size() == sum(one.size for one in store.summaries())
    (space,) = encode(DIGITS, Pixels(log, 0.02), Store(folder), block_rows=2)
    assert len(lines(log)) - computed_twice(log) == 250
    assert computed_twice(log) <= KILLS
    (undisturbed,) = encode(
        DIGITS, Pixels(str(tmp_path / "undisturbed")), Store(tmp_path / "undisturbed-store")
    )
    assert space.digest == undisturbed.digest
