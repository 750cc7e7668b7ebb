"""kill -9 at random moments of a command that writes: what is under a final name is whole, the same command then
completes, and nothing else is left. Ctrl-C (as by a terminal, which sends it to all processes) and SIGTERM (as by
`kill`): one line, 130 or 143, and no process, file or folder is left.

Each command is killed twice and interrupted once, or RELSCOPE_TEST_KILLS times, at moments drawn from one seed.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import psutil
import pytest

from relcore import load_space
from relcore.base.families import StudyName
from relcore.base.names import STUDIES
from relcore.base.stopping import LINE
from relcore.migrate import adapter_files
from relcore.migrate.adapter_files import card_of
from relcore.sharded.space import ShardedSpace
from relcore.stores.index import open_index, parse_place
from tests.faults import victims
from tests.relcore.migrate.planted import NEW, Made, pairs
from tests.relcore.sharded.folders import whole as all_rows
from tests.relcore.sharded.folders import write_npy
from tests.relcore.stores.stores import whole
from tests.waiting import until

pytestmark = pytest.mark.slow

SEED = 12
N = 6_000
TIMES = os.environ.get("RELSCOPE_TEST_KILLS")
IDS = [f"q{row:05}" for row in range(N)]
ROOT = Path(__file__).parents[2]
TOY = StudyName("Toy", "tests.relcore.studies.toy_study:Toy", "Is twice a number on a line?", "none")


def rows():
    return np.random.default_rng(0).normal(size=(N, NEW)).astype(np.float32)


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """The files that the commands read, and a temporary folder."""
    folder = tmp_path_factory.mktemp("template")
    adapter = Made().fit(*pairs())
    (folder / "tmp").mkdir()
    adapter_files.export(adapter, card_of(adapter, *pairs(), method="made"), folder / "bridge")
    np.save(folder / "rows.npy", rows())
    (folder / "rows.ids.txt").write_text("\n".join(IDS) + "\n")
    write_npy(folder / "shards", rows()[:4000], [1000] * 4, ids=np.array(IDS[:4000]))
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(NEW, NEW)))[0]
    old = rows()[:400]
    new = old @ rotation + 0.1 * rows()[400:800]
    for name, vectors in (("rows", rows()), ("new", new), ("old", old)):
        np.savez(folder / f"{name}.npz", vectors=vectors, ids=IDS[: len(vectors)])
    return folder


def adapted(text):
    def check(folder):
        place = parse_place(text)
        with open_index(type(place)(place.kind, str(folder / place.where), place.table)) as index:
            found = whole(index, 4096)
        assert found.ids == IDS
        expected = Made().fit(*pairs()).transform(rows())
        np.testing.assert_allclose(found.vectors, expected, atol=2e-5)

    return check


def sharded(name, width):
    def check(folder):
        space = ShardedSpace.open(str(folder / name))
        assert [shard.n for shard in space.shards] == [1000] * 4
        found = all_rows(space)
        assert (found.ids.tolist(), found.dimension) == (IDS[:4000], width)

    return check


def exported(folder):
    expected = {"adapter.safetensors", "apply.py", "adapter.onnx", "corpus.onnx", "cascade.py"}
    assert {"adapter.safetensors", "apply.py"} <= names(folder / "taken") <= expected
    assert adapter_files.load(folder / "taken").card.n_pairs == 320  # a fifth is held out


def projected(folder):
    space = load_space(folder / "relative.npz")
    assert (space.ids.tolist(), space.dimension) == (IDS, 20)
    if (folder / "anchors.txt").exists():
        assert len((folder / "anchors.txt").read_text().splitlines()) == 20


def studied(folder):
    assert pd.read_csv(folder / "runs.csv").y.tolist() == [0, 2, 4]
    if (folder / "recipe.json").exists():
        assert json.loads((folder / "recipe.json").read_text())["figure"] == "study"


# Command, the names that it writes, and what the first of them must hold.
COMMANDS = {
    "npy": ("adapt bridge rows.npy mapped.npy", ("mapped.npy", "mapped.ids.txt"), adapted("mapped.npy")),
    "parquet": ("adapt bridge rows.npy mapped.parquet", ("mapped.parquet",), adapted("mapped.parquet")),
    "faiss": ("adapt bridge rows.npy m.faiss", ("m.faiss", "m.ids.txt"), adapted("m.faiss")),
    "lancedb": ("adapt bridge rows.npy lancedb:base#t", ("base",), adapted("lancedb:base#t")),
    "adapted shards": ("adapt bridge shards mapped", ("mapped",), sharded("mapped", 9)),
    "projected shards": ("project shards --anchors 20 -o mapped", ("mapped",), sharded("mapped", 20)),
    "migrate": ("migrate old.npz new.npz --no-curve --export taken", ("taken",), exported),
    "project": (
        "project rows.npz --anchors 20 -o relative.npz --save-anchors anchors.txt",
        ("relative.npz", "anchors.txt"),
        projected,
    ),
    "study": (
        "study toy --grid n_runs=3 --grid pause=0.15 -o runs.csv --recipe recipe.json",
        ("runs.csv", "recipe.json"),
        studied,
    ),
}


def command(folder, text, begun):
    """In a process of its own: one command, as `relscope` runs it."""
    from relcore.cli import main

    STUDIES["toy"] = TOY
    os.chdir(folder)
    os.environ |= {"RELSCOPE_STORE": str(folder / "store"), "TMPDIR": str(folder / "tmp")}
    tempfile.tempdir = None
    Path(begun).touch()
    os._exit(main([*text.split(), "--quiet"]))


def upload(folder, begun):
    """In a process of its own: the app keeps an upload."""
    from app.sharing import keep_upload

    os.fsync = lambda descriptor: time.sleep(0.1)  # a disk slow enough for a kill to meet it
    Path(begun).touch()
    content = (folder / "rows.npz").read_bytes()
    keep_upload(SimpleNamespace(name="rows.npz", getbuffer=lambda: memoryview(content)), folder)


def started(work, folder, *arguments):
    begun = Path(arguments[-1])
    begun.unlink(missing_ok=True)
    process = victims.started(work, folder, *arguments)
    until(lambda: begun.exists() or process.exitcode is not None)
    return process


def killed(process, folder, share, longest, early):
    """Kill the process after a share of the time that it takes or, with `early`, of the time from its first
    change of the folder. False if it had ended before.
    """
    before = names(folder)
    until(lambda: early or names(folder) - before - {"store"} or process.exitcode is not None)
    began = time.monotonic()
    if victims.killed(process, share * longest.get(early, 60)):
        return True
    longest[early] = time.monotonic() - began
    return False


def names(folder):
    if folder.exists():
        return {path.name for path in folder.iterdir()}
    return set()


def kill_often(template, folder, work, arguments, check, written):
    """Kill the work, each time in a new folder, and have it done again."""
    draw = random.Random(SEED)
    begun = f"{folder}-begun"
    n_kills = 0
    longest = {}
    known = names(template) | {*written, "store"}
    while n_kills < int(TIMES or 2):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(template, folder)
        process = started(work, folder, *arguments, begun)
        if not killed(process, folder, draw.random(), longest, early=n_kills % 2):
            check(folder)
            continue
        n_kills += 1
        left = names(folder) - known
        if done := (folder / written[0]).exists():
            check(folder)
        again = started(work, folder, *arguments, begun)
        again.join()
        # It had done all but print its last line.
        assert again.exitcode == 0 or (done and not any(name[0] != "." for name in left))
        check(folder)
        assert names(folder) <= known
        assert not names(folder / "tmp")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_killed_command_completes(name, template, tmp_path):
    text, written, check = COMMANDS[name]
    kill_often(template, tmp_path / "work", command, [text], check, written)


def test_a_killed_upload_is_kept_whole_or_not_at_all(template, tmp_path):
    content = (template / "rows.npz").read_bytes()
    name = blake2b(content, digest_size=8).hexdigest()

    def check(folder):
        assert (folder / name / "rows.npz").read_bytes() == content

    kill_often(template, tmp_path / "work", upload, [], check, (name,))


# Run as the command `relscope` does, and write a byte when its first import is done.
START = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts behind ignores it
from relcore.__main__ import run
import os, sys
os.write(int(sys.argv.pop(1)), b"1")
sys.exit(run())
"""
INTERRUPTED = {name: text for name, (text, *_) in COMMANDS.items()} | {
    "study": "study similarity-performance --grid data=digits --grid n_runs=60 -o runs.csv",
    "compare": "compare old.npz new.npz --anchors 30",
    "link": "link word2vec-novels fasttext-novels -o links.tsv",
    "app": "app old.npz --no-browser --port 0",
}


def left(session):
    """Whether a process of this session is alive. All processes that a command starts belong to its
    session."""
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, PermissionError):
            if os.getsid(process.pid) == session and victims.lives(process):
                return True
    return False


def interrupted(folder, text, number, share, longest, to_all):
    """The exit code and what was printed; None if the process ended before."""
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


@pytest.mark.parametrize(
    ("name", "number"),
    [*((name, signal.SIGINT) for name in INTERRUPTED), *((name, signal.SIGTERM) for name in ("npy", "app"))],
)
def test_an_interrupted_command_says_so_in_one_line(template, name, number):
    draw = random.Random(SEED)
    longest = {}
    known = names(template)
    for turn in range(int(TIMES or 1)):
        outcome = None
        to_all = turn % 2 == 0 and number == signal.SIGINT
        while outcome is None:
            for path in template.iterdir():
                if path.name not in known:
                    subprocess.run(["rm", "-r", path], check=True)
            outcome = interrupted(template, INTERRUPTED[name], number, draw.random(), longest, to_all)
        assert outcome == (128 + number, f"relscope: {LINE}\n")
        assert not names(template / "tmp")
        assert not [one for one in names(template) if one.startswith(".relscope")]
