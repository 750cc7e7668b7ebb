"""The scheduler of a running job is killed: the job resumes from its last finished block, or says why not."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
import pytest

from relcore.catalog.encodings import encode, encode_job
from relcore.runs import jobs
from relcore.runs.jobs import JobQueue
from relcore.runs.store import Store
from tests.faults.victims import DIGITS, N_BLOCKS, ROWS, Pixels, computed_twice, lines, lives, submit
from tests.waiting import until

ROOT = Path(__file__).parents[2]


@contextmanager
def cluster(folder, address="", cwd=None):
    """The address of a scheduler and one worker of the user's own; both are killed in the end."""
    if not address:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    scheduler = ["scheduler", "--host", "127.0.0.1", "--port", address.rpartition(":")[2]]
    worker = ["worker", address, "--nthreads", "1", "--local-directory", folder]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "dask", *command, "--no-dashboard"],
            cwd=cwd,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            **quiet,
        )
        for command in (scheduler, worker)
    ]
    try:
        yield address
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def started(queue, tmp_path):
    encoder = Pixels(str(tmp_path / "log"), gate=str(tmp_path / "gate"))
    job = submit(queue, encoder, ROWS)
    until(lambda: len(lines(encoder.log)) >= 5)
    return job, encoder


def finished(job, encoder, tmp_path):
    Path(encoder.gate).touch()
    assert job.wait(120).state == "done", job.status().error
    assert len(lines(encoder.log)) - computed_twice(encoder.log) == N_BLOCKS
    assert computed_twice(encoder.log) <= 1
    assert len({pid for pid, _ in lines(encoder.log)}) == 2
    (undisturbed,) = encode(DIGITS, Pixels(str(tmp_path / "other log")), Store(tmp_path / "other store"))
    assert undisturbed.digest == job.result().metadata["digest"]


@pytest.mark.slow
def test_our_own_scheduler_is_started_again(tmp_path):
    others = set(psutil.Process().children(recursive=True))
    with closing(JobQueue(n_workers=1, store=Store(tmp_path / "store"))) as queue:
        job, encoder = started(queue, tmp_path)
        first = set(psutil.Process().children(recursive=True)) - others
        psutil.Process(queue._cluster._cluster.scheduler.process.pid).kill()
        until(lambda: not any(map(lives, first)))
        finished(job, encoder, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("back", [True, False])
def test_a_scheduler_that_is_killed(tmp_path, back, monkeypatch):
    monkeypatch.setattr(jobs, "RECONNECTS", 10 if back else 1)
    with cluster(tmp_path) as address:
        queue = JobQueue(address, n_workers=1, store=Store(tmp_path / "store"))
        job, encoder = started(queue, tmp_path)
        waiting = queue.submit("b" * 32, encode_job, title="later", dataset=DIGITS, encoder=encoder)
    with closing(queue):
        if back:
            waiting.cancel()
            with cluster(tmp_path, address):
                finished(job, encoder, tmp_path)
            return
        for lost in (job, waiting):
            assert lost.wait(60).state == "failed"
            assert lost.status().error.startswith(f"{address}: expected a Dask scheduler")
            assert lost.status().error.endswith("finished parts are kept")
