import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from distributed import KilledWorker

from relcore.base.errors import SpaceError
from relcore.runs.digest import digest_of
from relcore.runs.jobs import Engine, EngineError, Job, warn_of_open
from relcore.runs.store import Store
from tests.waiting import until

ROOT = Path(__file__).parents[2]


def wait_for(path):
    """In a worker: go on when the test says that it has heard of the job."""
    while not Path(path).exists():
        time.sleep(0.01)


def gone(pid):
    """Whether the process has ended. It may end between any two looks at it."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def hold(context, *, log):
    """Keeps its worker until the test lets it go."""
    Path(log).write_text("holds\n")
    wait_for(f"{log}-heard")
    context.put({})


def count(context, *, log, n, pause=0.0):
    """Counts to n, and leaves a line with its process id each time that it is run."""
    with open(log, "a") as file:
        file.write(f"{os.getpid()}\n")
    for i in range(1, n + 1):
        time.sleep(pause)
        context.report(i, n, f"number {i}")
    context.put({"numbers": np.arange(n)}, {"n": n})


def busy(context, *, log, how):
    with open(log, "a") as file:
        file.write(f"{os.getpid()}\n")
    if how == "sleep":
        time.sleep(600)
    matrix = np.random.default_rng(0).normal(size=(300, 300))
    while True:
        np.linalg.svd(matrix)


def measure(context, *, n, die_after=0, log=None):
    """Measures at each of n steps, faster than reports are sent; killed once, after so many, where that is
    asked for.
    """
    for i in range(1, n + 1):
        context.report(i, n, "", {"loss": 1 / i, "step": i})
        if i == die_after and not lines(log):
            wait_for(f"{log}-heard")
            Path(log).write_text("died\n")
            os.kill(os.getpid(), signal.SIGKILL)
    if log:
        Path(log).write_text("died\nended\n")
    context.put({})


def fail(context, *, error):
    raise error


def forget(context):
    pass


def die(context, *, log):
    with open(log, "a") as file:
        file.write("died\n")
    wait_for(f"{log}-heard")
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    engine = Engine(n_workers=2, store=Store(tmp_path_factory.mktemp("store")))
    yield engine
    engine.close()


@pytest.fixture
def key(request):
    return digest_of(request.node.nodeid)


@pytest.fixture
def log(tmp_path):
    return str(tmp_path / "log")


def lines(log):
    return Path(log).read_text().split() if Path(log).exists() else []


def test_progress_then_the_result(engine, key, log):
    job = engine.submit(key, count, title="counting", log=log, n=40, pause=0.05)
    seen = []
    while not job.wait(0.05).ended:
        seen.append(job.status())
    running = [status for status in seen if status.state == "running" and status.done]
    assert len({status.done for status in running}) >= 3
    assert [status.done for status in running] == sorted(status.done for status in running)
    assert running[-1].total == 40
    assert running[-1].message == f"number {running[-1].done}"
    assert running[-1].rate > 0
    assert all(status.seconds_left is None or status.seconds_left > 0 for status in running)
    assert running[-1].seconds_left is not None or running[-1].exceeded
    status = job.status()
    assert (status.state, status.done, status.total, status.error) == ("done", 40, 40, "")
    assert status.seconds > 0
    entry = job.result()
    np.testing.assert_array_equal(entry.arrays["numbers"], np.arange(40))
    assert entry.metadata == {"n": 40}


def test_rate_and_what_is_left_are_those_of_the_present_stage(tmp_path, monkeypatch):
    now = SimpleNamespace(monotonic=lambda: clock[0])
    clock = [100.0]
    monkeypatch.setattr("relcore.runs.jobs.time", now)
    job = Job(Engine(store=Store(tmp_path)), "a" * 32, "counting", "queued")

    def hear(second, done, total):
        clock[0] = 100.0 + second
        job._hear({"event": "progress", "done": done, "total": total, "message": "", "measured": []})
        status = job.status()
        return status.seconds, status.rate, status.seconds_left

    assert job.status().rate is None
    job._hear({"event": "started", "worker": "tcp://worker", "pid": 1})
    assert hear(1, 18, 40) == (1, 18, pytest.approx(22 / 18))
    assert hear(2, 40, 40) == (2, 20, None)  # all is counted: nothing is known of what is left
    assert hear(4, 0, 10) == (4, None, None)  # another stage, which has its own pace
    assert hear(6, 4, 10) == (6, 2, 3)
    clock[0] = 107.0
    job._end("done")
    clock[0] = 200.0
    assert (job.status().seconds, job.status().seconds_left) == (7, None)


def test_what_is_measured_at_each_step_makes_a_curve(engine, key):
    job = engine.submit(key, measure, title="measuring", n=200)
    assert job.wait(60).state == "done"
    assert job.status().curve == {
        "loss": tuple(1 / i for i in range(1, 201)),
        "step": tuple(map(float, range(1, 201))),
    }
    assert job.function is measure
    assert job.arguments == {"n": 200}
    assert engine.job(key) is job


def test_a_curve_begins_anew_when_the_worker_was_killed(engine, key, log):
    job = engine.submit(key, measure, title="measuring", n=3, die_after=2, log=log)
    until(lambda: job.status().curve.get("step") == (1.0, 2.0))
    Path(f"{log}-heard").touch()
    assert job.wait(60).state == "done"
    assert len(lines(log)) == 2
    assert job.status().curve["step"] == (1.0, 2.0, 3.0)


def test_one_key_is_one_job_for_all_threads(engine, key, log):
    jobs = []
    threads = [
        threading.Thread(
            target=lambda: jobs.append(engine.submit(key, count, title="t", log=log, n=5, pause=0.05))
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(jobs) == 8
    assert len(set(map(id, jobs))) == 1
    assert engine.job(key) is jobs[0]
    assert jobs[0] in engine.jobs()
    assert jobs[0].wait(60).state == "done"
    assert len(lines(log)) == 1


def test_a_stored_result_runs_nothing(engine, key, log):
    engine.store.put(key, {"numbers": np.arange(3)})
    unstarted = Engine(store=engine.store)
    job = unstarted.submit(key, count, title="t", log=log, n=5)
    assert job.status().state == "done"
    assert len(job.result().arrays["numbers"]) == 3
    assert unstarted.job(key).status().state == "done"
    assert lines(log) == []
    assert unstarted._cluster is None


@pytest.mark.parametrize("how", ["sleep", "svd"])
def test_cancel_kills_the_process_and_spares_the_others(engine, key, log, tmp_path, how):
    other_log = str(tmp_path / "other")
    other = engine.submit(digest_of(key, "other"), count, title="other", log=other_log, n=60, pause=0.05)
    job = engine.submit(key, busy, title="busy", log=log, how=how)
    until(lambda: lines(log) and lines(other_log))
    pid = int(lines(log)[0])
    # returns once the nanny has killed the process, which would sleep, or decompose, for minutes
    job.cancel()
    until(lambda: gone(pid))
    assert job.status().state == "cancelled"
    with pytest.raises(EngineError, match="busy: cancelled"):
        job.result()
    assert other.wait(60).state == "done"
    assert len(lines(other_log)) == 1
    # The killed worker is back: two jobs run at once again, in two processes, and the cancelled one is not
    # tried again.
    again = [engine.submit(digest_of(key, i), count, title="t", log=log, n=40, pause=0.05) for i in range(2)]
    assert [job.wait(60).state for job in again] == ["done", "done"]
    assert len(lines(log)) == 3


def test_cancelling_a_waiting_job_and_running_it_anew(engine, key, log):
    blockers = [engine.submit(digest_of(key, i), hold, title="t", log=f"{log}{i}") for i in range(2)]
    until(lambda: all(lines(f"{log}{i}") for i in range(2)))
    job = engine.submit(key, count, title="t", log=log, n=2)
    job.cancel()
    assert job.status().state == "cancelled"
    for i in range(2):
        Path(f"{log}{i}-heard").touch()
    assert [blocker.wait(60).state for blocker in blockers] == ["done", "done"]
    assert lines(log) == []
    anew = engine.submit(key, count, title="t", log=log, n=2)
    assert anew is not job
    assert anew.wait(60).state == "done"


def test_a_cancel_at_any_moment_of_the_start_stops_the_job(engine, key, log):
    for i in range(6):
        job = engine.submit(digest_of(key, i), busy, title="t", log=f"{log}{i}", how="sleep")
        time.sleep(0.003 * i)
        job.cancel()
    done = engine.submit(key, count, title="t", log=log, n=1)
    assert done.wait(60).state == "done"
    pids = [int(line) for i in range(6) for line in lines(f"{log}{i}")]
    until(lambda: all(gone(pid) for pid in pids))


class Scheduler:
    """Stands for a connected client: keeps what it is sent, and may have the worker answer before `submit`
    returns.
    """

    def __init__(self, engine, answers_at_once=False):
        self.engine, self.answers_at_once, self.status = engine, answers_at_once, "running"
        self.sent, self.cancelled, self.ended = [], [], []
        engine._client = self

    def submit(self, function, *arguments, key, priority, **options):
        self.sent.append((key, priority))
        if self.answers_at_once:
            self.engine._heard((0.0, {"event": "started", "token": key, "worker": "tcp://worker", "pid": 1}))
        return SimpleNamespace(add_done_callback=self.ended.append, cancel=lambda: self.cancelled.append(key))

    def processing(self):
        return {}


def test_a_worker_that_begins_before_submit_returns_is_not_taken_for_a_cancelled_one(
    tmp_path, key, monkeypatch
):
    engine = Engine(store=Store(tmp_path))
    scheduler = Scheduler(engine, answers_at_once=True)
    killed = []
    monkeypatch.setattr(engine, "_kill", lambda *place: killed.append(place))
    job = engine.submit(key, count, title="t", log="", n=1)
    assert job.status().state == "running"
    for thread in threading.enumerate():
        if thread.name == "kill-cancelled":
            thread.join()
    assert killed == []
    job.cancel()
    assert (scheduler.cancelled, killed) == ([scheduler.sent[0][0]], [("tcp://worker", 1)])


def test_a_job_that_is_tried_again_keeps_its_priority(tmp_path, key):
    """Its workers died of other jobs before it began, so it is sent anew: with the rank of what waits
    behind everything.
    """
    engine = Engine(store=Store(tmp_path))
    scheduler = Scheduler(engine)
    job = engine.submit(key, count, title="t", priority=-1, log="", n=1)
    ((token, _),) = scheduler.sent
    scheduler.ended[0](
        SimpleNamespace(status="error", exception=lambda: KilledWorker(token, "tcp://worker", 3))
    )
    assert [priority for _, priority in scheduler.sent] == [-1, -1]
    assert job.status().state == "queued"


def test_a_job_whose_worker_is_killed_is_tried_again(engine, key, log):
    job = engine.submit(key, count, title="t", log=log, n=30, pause=0.05)
    until(lambda: lines(log))
    os.kill(int(lines(log)[0]), signal.SIGKILL)
    assert job.wait(60).state == "done"
    first, second = lines(log)
    assert first != second
    np.testing.assert_array_equal(job.result().arrays["numbers"], np.arange(30))


def test_a_job_that_always_kills_its_worker_fails_and_says_so(engine, key, log):
    job = engine.submit(key, die, title="deadly", log=log)
    until(lambda: job.status().state == "running")
    Path(f"{log}-heard").touch()
    assert job.wait(120).state == "failed"
    assert lines(log) == ["died"] * 3
    with pytest.raises(EngineError, match=r"deadly: the worker process died each time .* memory"):
        job.result()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ZeroDivisionError("no such thing"), "^ZeroDivisionError: no such thing$"),
        (SpaceError("take more rows"), "^take more rows$"),
    ],
)
def test_a_failing_function_is_reported_and_can_be_run_anew(engine, key, error, message):
    job = engine.submit(key, fail, title="failing", error=error)
    status = job.wait(60)
    assert status.state == "failed"
    assert re.search(message, status.error)
    assert engine.submit(key, fail, title="failing", error=error) is not job


def test_a_result_that_left_the_store_is_told_and_run_anew(engine, key, log):
    job = engine.submit(key, count, title="t", log=log, n=2)
    job.wait(60)
    engine.store.remove(key)
    with pytest.raises(EngineError, match="no longer in"):
        job.result()
    assert engine.job(key) is None  # or whoever asks would be given the same error for ever
    again = engine.submit(key, count, title="t", log=log, n=2)
    assert again.wait(60).state == "done"
    assert engine.job(key) is again
    assert len(lines(log)) == 2


def test_close_ends_jobs_and_processes_and_a_later_submit_starts_afresh(tmp_path, log):
    engine = Engine(n_workers=1, store=Store(tmp_path / "store"))
    before = set(psutil.Process().children(recursive=True))
    job = engine.submit("a" * 32, busy, title="busy", log=log, how="sleep")
    until(lambda: lines(log))
    started = set(psutil.Process().children(recursive=True)) - before
    engine.close()
    assert job.status().state == "cancelled"
    assert not [
        process for process in started if process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    ]
    assert engine.submit("b" * 32, count, title="t", log=log, n=2).wait(60).state == "done"
    engine.close()


SCRIPT = """
import os, signal, sys, psutil
from relcore.runs.jobs import Engine
from relcore.runs.store import Store
engine = Engine(n_workers=1, store=Store(sys.argv[1]))
engine.start()
print(*[process.pid for process in psutil.Process().children(recursive=True)], flush=True)
if sys.argv[2] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("how", ["ends", "killed"])
def test_no_process_outlives_its_interpreter(tmp_path, how):
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), how],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == (0 if how == "ends" else -signal.SIGKILL), run.stderr
    pids = [int(pid) for pid in run.stdout.split()]
    assert len(pids) >= 2
    until(lambda: all(gone(pid) for pid in pids))


def test_a_scheduler_that_does_not_answer(tmp_path):
    engine = Engine("tcp://127.0.0.1:9", store=Store(tmp_path))
    with pytest.raises(
        EngineError, match=r"tcp://127.0.0.1:9: expected a Dask scheduler.*unset RELSCOPE_SCHEDULER"
    ):
        engine.submit("a" * 32, forget, title="t")
    assert engine.job("a" * 32) is None


STRANGER = """
import os, sys
from distributed import Client, Security
address, how = sys.argv[1:]
security = Security.temporary() if how == "another certificate" else None
if how == "no encryption":
    address = address.replace("tls://", "tcp://")
try:
    client = Client(address, timeout=2, security=security)
    print("code ran:", client.submit(os.getpid).result(10))
except Exception as error:
    print("refused", type(error).__name__)
    os._exit(0)
"""


@pytest.mark.parametrize("how", ["no encryption", "no certificate", "another certificate"])
def test_a_process_without_the_certificate_cannot_submit_to_the_local_cluster(engine, key, log, how):
    assert engine.submit(key, count, title="t", log=log, n=1).wait(60).state == "done"
    for address in (engine._cluster.address, *engine._client.scheduler_info()["workers"]):
        assert address.startswith("tls://127.0.0.1:")
        run = subprocess.run(
            [sys.executable, "-c", STRANGER, address, how], capture_output=True, text=True, timeout=60
        )
        assert run.stdout.startswith("refused"), run.stdout + run.stderr


@pytest.mark.parametrize(
    ("address", "warns"),
    [
        ("tcp://10.0.0.7:8786", True),
        ("tcp://127.0.0.1:8786", False),
        ("tcp://[::1]:8786", False),
        ("tcp://localhost:8786", False),
        ("tls://10.0.0.7:8786", False),
        (None, False),
    ],
)
def test_a_scheduler_that_others_reach_without_a_certificate_is_warned_of(caplog, address, warns):
    warn_of_open.cache_clear()
    warn_of_open(address)
    warn_of_open(address)
    assert len(caplog.records) == warns


@pytest.mark.slow
def test_a_cluster_of_the_users_own(tmp_path, monkeypatch, log):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(__file__).parent)])}
    file = tmp_path / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    quiet = {"env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    processes = [
        subprocess.Popen(
            [
                *dask,
                "scheduler",
                "--host",
                "127.0.0.1",
                "--port",
                "0",
                "--no-dashboard",
                "--scheduler-file",
                file,
            ],
            **quiet,
        )
    ]
    for _ in range(2):
        command = [
            *dask,
            "worker",
            "--scheduler-file",
            file,
            "--nthreads",
            "1",
            "--no-dashboard",
            "--local-directory",
            tmp_path,
        ]
        processes.append(subprocess.Popen(command, **quiet))
    try:
        until(file.exists)
        until(lambda: file.read_text().strip().endswith("}"))
        monkeypatch.setenv("RELSCOPE_SCHEDULER", json.loads(file.read_text())["address"])
        engine = Engine(store=Store(tmp_path / "store"))
        try:
            assert (
                engine.submit("a" * 32, count, title="t", log=log, n=10, pause=0.05).wait(120).state == "done"
            )
            job = engine.submit("b" * 32, busy, title="t", log=log, how="svd")
            until(lambda: len(lines(log)) == 2)
            job.cancel()
            until(lambda: gone(int(lines(log)[1])))
            jobs = [engine.submit(digit * 32, count, title="t", log=log, n=20, pause=0.05) for digit in "cd"]
            assert [job.wait(60).state for job in jobs] == ["done", "done"]
        finally:
            engine.close()
        assert all(process.poll() is None for process in processes)  # the cluster is the user's: it stays
    finally:
        for process in reversed(processes):  # a worker asks its scheduler before it leaves
            process.terminate()
            process.wait(30)
