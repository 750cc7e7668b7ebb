import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import psutil
import pytest

from relcore.base.errors import NoCommonId, SpaceError
from relcore.runs import cluster, jobs
from relcore.runs.cluster import JobQueueError, connect, warn_of_open
from relcore.runs.entries import StoreError, digest_of
from relcore.runs.jobs import JobQueue
from relcore.runs.store import Store
from tests.waiting import until

ROOT = Path(__file__).parents[3]


def wait_for(path):
    while not Path(path).exists():
        time.sleep(0.01)


def gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def sign(log):
    """Leave a line with the id of this process."""
    with open(log, "a") as file:
        file.write(f"{os.getpid()}\n")


def hold(context, *, log):
    sign(log)
    wait_for(f"{log}-heard")
    context.put({})


def count(context, *, log, n=2, pause=0.0):
    sign(log)
    for i in range(1, n + 1):
        time.sleep(pause)
        context.report(i, n, f"number {i}")
    context.put({"numbers": np.arange(n)}, {"n": n})


def busy(context, *, log):
    sign(log)
    matrix = np.random.default_rng(0).normal(size=(300, 300))
    while True:
        np.linalg.svd(matrix)


def fail(context, *, error):
    raise error


def die(context, *, log):
    sign(log)
    wait_for(f"{log}-heard")
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def queue(two_workers, tmp_path_factory):
    two_workers.store = Store(tmp_path_factory.mktemp("store"))
    return two_workers


@pytest.fixture
def key(request):
    return digest_of(request.node.nodeid)


@pytest.fixture
def counted(queue, key, log):
    """Submit a job that counts to two."""
    return lambda: queue.submit(key, count, title="t", log=log)


@pytest.fixture
def log(tmp_path):
    return str(tmp_path / "log")


def lines(log):
    if Path(log).exists():
        return Path(log).read_text().split()
    return []


def test_progress_then_the_result(queue, key, log):
    job = queue.submit(key, count, title="counting", log=log, n=20, pause=0.05)
    seen = []
    while not job.wait(0.05).ended:
        seen.append(job.status())
    running = [status for status in seen if status.state == "running" and status.done]
    assert len({status.done for status in running}) >= 3
    assert [status.done for status in running] == sorted(status.done for status in running)
    assert (running[-1].total, running[-1].message) == (20, f"number {running[-1].done}")
    status = job.status()
    assert (status.state, status.done, status.total, status.error) == ("done", 20, 20, "")
    assert status.seconds > 0
    entry = job.result()
    np.testing.assert_array_equal(entry.arrays["numbers"], np.arange(20))
    assert entry.metadata == {"n": 20}


def test_one_key_is_one_job_for_all_threads(queue, key, log):
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(queue.submit, key, count, title="t", log=log, pause=0.05) for _ in range(8)]
    jobs = [one.result() for one in asked]
    assert len(set(map(id, jobs))) == 1
    assert queue.job(key) is jobs[0]
    assert jobs[0] in queue.jobs()
    assert jobs[0].wait(60).state == "done"
    assert len(lines(log)) == 1


def test_a_stored_result_runs_nothing(queue, key, log):
    queue.store.put(key, {"numbers": np.arange(3)})
    unstarted = JobQueue(store=queue.store)
    job = unstarted.submit(key, count, title="t", log=log)
    assert job.status().state == "done"
    assert len(job.result().arrays["numbers"]) == 3
    assert unstarted.job(key).status().state == "done"
    assert lines(log) == []
    assert unstarted._cluster is None


def test_cancel_kills_process_and_spares_others(queue, key, log, tmp_path):
    other_log = str(tmp_path / "other")
    other = queue.submit(digest_of(key, "other"), hold, title="other", log=other_log)
    job = queue.submit(key, busy, title="busy", log=log)
    until(lambda: lines(log) and lines(other_log))
    pid = int(lines(log)[0])
    # returns once the nanny has killed the process, which would decompose for ever
    job.cancel()
    until(lambda: gone(pid))
    assert job.status().state == "cancelled"
    with pytest.raises(JobQueueError, match="busy: cancelled"):
        job.result()
    Path(f"{other_log}-heard").touch()
    assert other.wait(60).state == "done"
    assert len(lines(other_log)) == 1
    # The killed worker is back: two jobs run at once again, in two processes, and the cancelled one is not
    # tried again.
    again = [queue.submit(digest_of(key, i), count, title="t", log=log, pause=0.1) for i in range(2)]
    assert [job.wait(60).state for job in again] == ["done", "done"]
    assert len(lines(log)) == 3


def test_cancelling_waiting_job_and_running_it_anew(queue, key, log, counted):
    blockers = [queue.submit(digest_of(key, i), hold, title="t", log=f"{log}{i}") for i in range(2)]
    until(lambda: all(lines(f"{log}{i}") for i in range(2)))
    # The scheduler reads both messages at once: Dask forgets to cancel a task whose graph it still reads.
    scheduler = psutil.Process(queue._cluster._cluster.scheduler.process.pid)
    scheduler.suspend()
    threading.Timer(0.3, scheduler.resume).start()
    job = counted()
    job.cancel()
    assert job.status().state == "cancelled"
    for i in range(2):
        Path(f"{log}{i}-heard").touch()
    assert [blocker.wait(60).state for blocker in blockers] == ["done", "done"]
    assert lines(log) == []
    anew = counted()
    assert anew is not job
    assert anew.wait(60).state == "done"


def test_job_that_always_kills_its_worker_fails_and_says_so(queue, key, log):
    job = queue.submit(key, die, title="deadly", log=log)
    until(lambda: job.status().state == "running")
    Path(f"{log}-heard").touch()
    assert job.wait(120).state == "failed"
    assert len(lines(log)) == 3
    with pytest.raises(JobQueueError, match=r"deadly: the worker process died each time .* memory"):
        job.result()


@pytest.mark.parametrize("kind", [SpaceError, NoCommonId, StoreError])
def test_failing_function_is_reported_and_can_be_run_anew(queue, key, kind):
    error = kind("take more rows")
    job = queue.submit(key, fail, title="failing", error=error)
    status = job.wait(60)
    assert (status.state, status.error) == ("failed", "take more rows")
    assert queue.submit(key, fail, title="failing", error=error) is not job


def test_result_that_left_store_is_told_and_run_anew(queue, key, log, counted):
    job = counted()
    job.wait(60)
    queue.store.remove(key)
    with pytest.raises(JobQueueError, match="no longer in"):
        job.result()
    assert queue.job(key) is None  # or whoever asks would be given the same error for ever
    again = counted()
    assert again.wait(60).state == "done"
    assert queue.job(key) is again
    assert len(lines(log)) == 2


@pytest.mark.slow
def test_close_ends_jobs_and_processes_and_later_submit_starts_afresh(tmp_path, log):
    queue = JobQueue(n_workers=1, store=Store(tmp_path / "store"))
    before = set(psutil.Process().children(recursive=True))
    job = queue.submit("a" * 32, busy, title="busy", log=log)
    until(lambda: lines(log))
    started = set(psutil.Process().children(recursive=True)) - before
    queue.close()
    assert job.status().state == "cancelled"
    assert all(gone(process.pid) for process in started)
    assert queue.submit("b" * 32, count, title="t", log=log).wait(60).state == "done"
    queue.close()


SCRIPT = """
import os, signal, sys, psutil
from relcore.runs.jobs import JobQueue
from relcore.runs.store import Store
queue = JobQueue(n_workers=1, store=Store(sys.argv[1]))
queue.start()
print(*[process.pid for process in psutil.Process().children(recursive=True)], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_no_process_outlives_its_killed_interpreter(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert run.returncode == -signal.SIGKILL, run.stderr
    pids = [int(pid) for pid in run.stdout.split()]
    assert len(pids) >= 2
    until(lambda: all(gone(pid) for pid in pids))


STRANGER = """
import os, sys
from distributed import Client, Security
for address in sys.argv[1:]:
    places = [address.replace("tls://", "tcp://"), address, address]
    for place, security in zip(places, [None, None, Security.temporary()]):
        try:
            client = Client(place, timeout=2, security=security)
            print("code ran:", client.submit(os.getpid).result(10), flush=True)
        except Exception as error:
            print("refused", type(error).__name__, flush=True)
os._exit(0)
"""


def test_process_without_certificate_cannot_submit_to_local_cluster(queue, counted):
    """Without encryption, without a certificate, and with another one."""
    assert counted().wait(60).state == "done"
    addresses = [queue._cluster.address, *queue._client.scheduler_info()["workers"]]
    assert all(address.startswith("tls://127.0.0.1:") for address in addresses)
    command = [sys.executable, "-c", STRANGER, *addresses]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout.splitlines()
    assert len(said) == 3 * len(addresses)
    assert all(line.startswith("refused") for line in said), said


NOSY = """
import os, socket, ssl, sys
tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
os.setgroups([])
os.setgid(65534)
os.setuid(65534)

def answer(port, secured):
    stream = socket.socket()
    stream.settimeout(10)
    stream.connect(("127.0.0.1", port))
    try:
        stream = tls.wrap_socket(stream) if secured else stream
        stream.sendall(b"GET /info/main/workers.html HTTP/1.0\\r\\n\\r\\n")
        return stream.recv(1000)
    except OSError:  # also of TLS
        return b""

for place in sys.argv[1:]:
    try:
        if place.isdigit():
            print(answer(int(place), False) + answer(int(place), True) or "nothing")
        else:
            print(os.listdir(place) if os.path.isdir(place) else open(place).read())
    except PermissionError:
        print("nothing")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another account")
def test_another_account_gets_nothing_from_ports_and_files_of_local_cluster(queue, counted):
    assert counted().wait(60).state == "done"
    leaders = [psutil.Process(group) for group in queue._cluster._groups]
    processes = [process for one in leaders for process in (one, *one.children(recursive=True))]
    connections = [one for process in processes for one in process.net_connections("inet")]
    ports = {one.laddr.port for one in connections if one.status == psutil.CONN_LISTEN}
    known = [queue._cluster.address, *queue._client.scheduler_info()["workers"]]
    assert ports >= {int(address.rpartition(":")[2]) for address in known}
    folder = queue._cluster._folder.name
    secrets = [f"/proc/{process.pid}/environ" for process in processes]
    places = [folder, f"{folder}/scheduler.json", *secrets, *map(str, sorted(ports))]
    run = subprocess.run(
        [sys.executable, "-I", "-c", NOSY, *places], capture_output=True, text=True, timeout=120
    )
    assert run.stdout.split("\n") == ["nothing"] * len(places) + [""], run.stdout + run.stderr


def test_scheduler_that_others_reach_without_certificate_is_warned_of_once(caplog):
    warn_of_open.cache_clear()
    for address in ("tcp://127.0.0.1:8786", "tcp://10.0.0.7:8786", "tcp://10.0.0.7:8786"):
        warn_of_open(address)
    assert [record.args for record in caplog.records] == [("tcp://10.0.0.7:8786",)]


def test_processes_of_this_machine_that_do_not_answer_are_named_so(monkeypatch):
    deaf = MagicMock(address="tcp://127.0.0.1:1", security=None)
    monkeypatch.setattr(cluster, "LocalCluster", lambda *_: deaf)
    told = "got no answer in 1 s"
    with pytest.raises(JobQueueError, match=f"expected the processes of this machine to start, {told}"):
        connect(None, 1, 1)
    deaf.close.assert_called_once()
    with pytest.raises(
        JobQueueError, match=rf"^tcp://127\.0\.0\.1:1: expected a Dask scheduler, {told}; .*--scheduler"
    ):
        connect(deaf.address, 1, 1)


def test_a_first_job_waits_for_no_process_and_says_why_none_started(monkeypatch, tmp_path, key, log):
    asked = threading.Event()

    def refuse(*_):
        assert asked.wait(60)
        raise JobQueueError("the machine is busy")

    monkeypatch.setattr(jobs, "connect", refuse)
    job = JobQueue(store=Store(tmp_path)).submit(key, count, title="t", log=log)
    assert job.status().state == "queued"
    asked.set()
    ended = job.wait(60)
    assert ended.state == "failed"
    assert "the machine is busy" in ended.error


def test_no_job_waits_for_the_start_of_processes_and_all_are_sent_in_order(monkeypatch, tmp_path, log):
    asked = threading.Event()
    sent = []

    def answer(*_):
        assert asked.wait(60)
        return MagicMock(), None

    monkeypatch.setattr(jobs, "connect", answer)
    monkeypatch.setattr(JobQueue, "_dispatch", lambda self, job: sent.append(job.key))
    queue = JobQueue(store=Store(tmp_path))
    keys = [digest_of(name) for name in "abc"]
    first, second, third = (queue.submit(key, count, title="t", log=log) for key in keys)
    second.cancel()
    assert (first.status().state, second.status().state) == ("queued", "cancelled")
    asked.set()
    until(lambda: len(sent) == 2)
    assert sent == [first.key, third.key]
    queue.close()


def test_a_queue_that_was_closed_while_it_started_keeps_no_process(monkeypatch, tmp_path, key, log):
    asked = threading.Event()
    started = MagicMock()

    def answer(*_):
        assert asked.wait(60)
        return started, started

    monkeypatch.setattr(jobs, "connect", answer)
    queue = JobQueue(store=Store(tmp_path))
    job = queue.submit(key, count, title="t", log=log)
    queue.close()
    asked.set()
    assert job.wait(60).state == "cancelled"
    until(lambda: started.close.call_count == 2)


def test_a_cluster_gives_its_processes_an_environment_and_leaves_ours_alone():
    """A change of this process's environment while a cluster starts was lost when it had started."""
    one = object.__new__(cluster.LocalCluster)
    one._ends = False
    one._groups = []
    one._variables = {"RELSCOPE_TRIED": "given"}

    async def answer():
        script = "import os; print(os.environ['RELSCOPE_TRIED'], 'PATH' in os.environ)"
        process = await one._start(sys.executable, "-c", script, stdout=subprocess.PIPE)
        told, _ = await process.communicate()
        return told.split()

    with ThreadPoolExecutor(1) as other:  # browser tests leave a loop that runs in this thread
        assert other.submit(lambda: asyncio.run(answer())).result() == [b"given", b"True"]
    assert "RELSCOPE_TRIED" not in os.environ
