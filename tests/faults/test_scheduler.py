"""The scheduler of a running job is killed: the job resumes from its last finished block, or says why not."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from relcore.catalog.catalog import encode, encode_job, encoding_job_key
from relcore.encoders.datasets import load_dataset
from relcore.runs import jobs
from relcore.runs.jobs import JobQueue
from relcore.runs.store import Store
from tests.faults.blocks import DIGITS, N_BLOCKS, ROWS, Pixels, computed_twice, lines
from tests.faults.victims import lives
from tests.waiting import until

ROOT = Path(__file__).parents[2]


class Cluster:
    """A scheduler and one worker of the user's own, at the same address each time that they are started."""

    def __init__(self, folder, cwd=None):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address, self._folder, self._processes = f"tcp://127.0.0.1:{self.port}", folder, []
        self._cwd = cwd

    def start(self):
        place = [self.address, "--nthreads", "1", "--no-dashboard", "--local-directory", self._folder]
        for command in (
            ["scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard"],
            ["worker", *place],
        ):
            self._processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "dask", *command],
                    cwd=self._cwd,
                    env=os.environ | {"PYTHONPATH": str(ROOT)},
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            )
        self.scheduler = self._processes[-2]

    def stop(self):
        for process in self._processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def cluster(tmp_path):
    cluster = Cluster(tmp_path)
    cluster.start()
    yield cluster
    cluster.stop()


def started(queue, tmp_path):
    encoder = Pixels(str(tmp_path / "log"), gate=str(tmp_path / "gate"))
    key = encoding_job_key(load_dataset(DIGITS).digest, encoder)
    job = queue.submit(key, encode_job, title="encoding", dataset=DIGITS, encoder=encoder, block_rows=ROWS)
    until(lambda: len(lines(encoder.log)) >= 5)
    return job, encoder


def finished(job, encoder, tmp_path):
    Path(encoder.gate).touch()
    assert job.wait(120).state == "done", job.status().error
    assert len(lines(encoder.log)) - computed_twice(encoder.log) == N_BLOCKS
    assert computed_twice(encoder.log) <= 1
    assert len({pid for pid, _ in lines(encoder.log)}) == 2
    stored = job.result().metadata["digest"]
    undisturbed = encode(DIGITS, Pixels(str(tmp_path / "undisturbed")), Store(tmp_path / "undisturbed-store"))
    assert undisturbed[0].digest == stored


@pytest.mark.slow
def test_our_own_scheduler_is_started_again(tmp_path):
    others = set(psutil.Process().children(recursive=True))
    queue = JobQueue(n_workers=1, store=Store(tmp_path / "store"))
    try:
        job, encoder = started(queue, tmp_path)
        first = set(psutil.Process().children(recursive=True)) - others
        psutil.Process(queue._cluster._cluster.scheduler.process.pid).kill()
        until(lambda: not any(map(lives, first)))
        finished(job, encoder, tmp_path)
    finally:
        queue.close()


@pytest.mark.slow
@pytest.mark.parametrize("back", [True, False])
def test_a_scheduler_that_is_killed(tmp_path, cluster, back, monkeypatch):
    queue = JobQueue(cluster.address, n_workers=1, store=Store(tmp_path / "store"))
    monkeypatch.setattr(jobs, "RECONNECTS", 10 if back else 1)
    try:
        job, encoder = started(queue, tmp_path)
        waiting = queue.submit("b" * 32, encode_job, title="later", dataset=DIGITS, encoder=encoder)
        cluster.stop()
        if back:
            waiting.cancel()
            cluster.start()
            finished(job, encoder, tmp_path)
            return
        for lost in (job, waiting):
            assert lost.wait(60).state == "failed"
            assert lost.status().error.startswith(f"{cluster.address}: expected a Dask scheduler")
            assert lost.status().error.endswith("finished parts are kept")
    finally:
        queue.close()
