"""The judge: reads cases in processes of their own, ends what takes ten seconds or a gigabyte, and names
the outcomes.
"""

import gc
import json
import os
import re
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from relcore.files import confined
from tests.hostile.cases import same

CPU_SECONDS = 10
WALL_SECONDS = 60  # for cases that wait forever, as on a pipe; a busy machine does not add processor time
MOST_BYTES = 10**9
LONGEST_MESSAGE = 900
RIGHT = ("refused", "accepted")
WRONG = ("unclear", "wrongly refused", "wrongly accepted", "traceback", "too long", "too large", "executed")
OUTCOMES = (*RIGHT, *WRONG)
_EXECUTES = {"os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "socket.connect"}
_EXECUTES |= {"pickle.find_class", "webbrowser.open"}
_PAGE = os.sysconf("SC_PAGE_SIZE")
_BATCH = 50  # cases that one process reads, as long as all goes well: a process costs more than most cases
_LARGE = 10**8  # a process that took more memory reads no further case, which could use it again unnoticed


@dataclass(frozen=True)
class Verdict:
    """The outcome of a case: one of `OUTCOMES`, the message, processor seconds, and the bytes of memory that
    were added.
    """

    case: str
    outcome: str
    said: str = ""
    seconds: float = 0.0
    size: int = 0


def judged(cases):
    waiting = iter(cases)
    found = []
    with patch.dict(os.environ, {"RELSCOPE_CONFINED": "1"}):
        confined.start()  # once for all cases, as in an app: its start costs more than most cases
    while batch := list(islice(waiting, _BATCH)):
        while batch:
            memory = None
            if os.path.isdir("/dev/shm"):
                memory = "/dev/shm"
            with tempfile.TemporaryDirectory(
                prefix="hostile-", dir=memory, ignore_cleanup_errors=True
            ) as folder:
                done = _watched(batch, Path(folder))
            found += done
            batch = batch[len(done) :]
    return found


def _watched(batch, folder):
    """Verdicts of the first cases of a batch, at least one: of those that one process reads before it ends."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(told)
        _read(batch, folder, tell)
    os.close(tell)
    done = []
    before = _resident(child)
    ended = ""
    deadline = time.monotonic() + WALL_SECONDS
    with os.fdopen(told, "rb") as answers:
        while True:
            ready = select.select([answers], [], [], 0.005)[0]
            line = answers.readline() if ready else None
            if line == b"":
                break
            if line:
                answer = json.loads(line)
                if isinstance(answer, int):  # the memory with which the next case begins
                    before = answer
                    deadline = time.monotonic() + WALL_SECONDS
                else:
                    done.append(Verdict(batch[len(done)].name, *answer))
            over = _resident(child) - before > MOST_BYTES
            if not ended and (over or time.monotonic() > deadline):
                ended = "too large" if over else "too long"
                os.kill(child, signal.SIGKILL)
    _, code, used = os.wait4(child, 0)
    if code and len(done) < len(batch):
        size = max(0, used.ru_maxrss * 1024 - before)
        limited = os.WIFSIGNALED(code) and os.WTERMSIG(code) in (signal.SIGXCPU, signal.SIGKILL)
        outcome = ended or ("too long" if limited else "traceback")
        seconds = used.ru_utime + used.ru_stime - sum(one.seconds for one in done)
        done.append(
            Verdict(batch[len(done)].name, outcome, f"the process ended with status {code}", seconds, size)
        )
    return done


def _resident(process):
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def _read(batch, folder, tell):
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    os.environ["RELSCOPE_CONFINED"] = "1"
    if confined._ready is not None:  # the parent's, which only the parent can wait for
        process = SimpleNamespace(poll=lambda: None, wait=lambda: None)
        confined._ready = confined._Ready(os.getpid(), confined._ready.connection, process)
    executed = []
    sys.addaudithook(lambda event, _: executed.append(event) if event in _EXECUTES else None)
    for number, case in enumerate(batch):
        place = folder / str(number)
        _write(case, place)
        gc.collect(0)
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak of memory so far
        used = _seconds()
        before = _resident("self")
        os.write(tell, f"{before}\n".encode())
        resource.setrlimit(resource.RLIMIT_CPU, (int(used) + 1 + CPU_SECONDS, resource.RLIM_INFINITY))
        outcome, said = _outcome(case, place)
        executed[:] = [event for event in executed if event not in case.allowed]
        if executed or (place / "executed").exists():
            outcome = "executed"
            said = ", ".join(executed)
        executed.clear()
        size = max(0, _peak() - before)
        if outcome in RIGHT and size > MOST_BYTES:
            outcome = "too large"
        os.write(tell, json.dumps([outcome, said[:5000], _seconds() - used, size]).encode() + b"\n")
        shutil.rmtree(place, ignore_errors=True)
        if size > _LARGE:
            break
    os._exit(0)


def _write(case, place):
    place.mkdir()
    for name, content in case.files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content(path) if callable(content) else path.write_bytes(content)
    os.chdir(place)
    os.environ |= {"RELSCOPE_STORE": str(place / ".store"), "HOME": str(place), "HF_HUB_OFFLINE": "1"}


def _seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _peak():
    told = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(told[1]) * 1024 if told else 0


def _outcome(case, folder):
    from relcore.base.errors import SpaceError
    from relcore.runs.cluster import JobQueueError
    from relcore.runs.entries import StoreError

    try:
        found = case.read(folder)
    except (SpaceError, StoreError, JobQueueError) as error:
        said = str(error)
        if case.accept:
            return "wrongly refused", said
        files = [Path(name).name for name in case.files]
        stems = [name.split(".")[0] for name in files]  # a space has its file's name without suffix
        names = case.names or (*files, *stems)
        return ("refused" if clear(said, names, case.remedy) else "unclear"), said
    except BaseException as error:
        return "traceback", f"{type(error).__name__}: {error!s:.200} at {_place(error)}"
    truth = case.truth
    if callable(truth):
        truth = truth()
    if truth is None:
        return "wrongly accepted", f"got {_shown(found)}"
    if not same(found, truth):
        if isinstance(found, dict) and isinstance(truth, dict):
            odd = [key for key in found if not same(found[key], truth.get(key))]
            found, truth = ({key: one.get(key) for key in odd} for one in (found, truth))
        return "wrongly accepted", f"got {_shown(found)} where the truth is {_shown(truth)}"
    return "accepted", ""


def clear(message, names, remedy=True):
    """Whether an error says, in one line that is not too long, what was given, what is wrong with it, and how
    to fix it.
    """
    words = "expected got promises refused damaged more_than must_be hold is_missing invalid cannot not_be"
    said = any(word.replace("_", " ") in message for word in f"{words} opens_it share_no unrec".split())
    mend = re.search(r"; \S+ \S+", message)
    if not remedy:  # the error of a setting begins with its place; what it expects is the remedy
        mend = mend or "is missing" in message or ("expected" in message and "got" in message)
        if re.match(r"-?[\w '\[\].-]+: ", message):
            names = (*names, "")
    odd = re.search(r"[\x00-\x08\x0b-\x1f\x7f]|Traceback|at 0x[0-9a-f]{8}", message)
    plain = len(message) <= LONGEST_MESSAGE and not odd
    return bool(any(name in message for name in names) and said and mend and plain)


def _place(error):
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "/tests/" not in frame.filename]
    last = [frame for frame in ours if "/relcore/" in frame.filename or "/app/" in frame.filename] or ours
    if last:
        return "/".join(last[-1].filename.split("/")[-3:]) + f":{last[-1].lineno}"
    return "the case itself"


def _shown(value):
    return re.sub(r"\s+", " ", f"{value!r}")[:160]
