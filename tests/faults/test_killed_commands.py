"""kill -9 at random moments of a command that writes: what is under a final name is whole, the same command
then completes, and nothing else is left.

Each target is killed twice in make test, RELSCOPE_TEST_KILLS times in make test-slow; each kill begins in an empty
folder, at a moment drawn from one seed.
"""

import json
import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import psutil
import pytest

from relcore.base.names import STUDIES, StudyName
from relcore.files.reading import load_space
from relcore.migrate import adapters as adapter_file
from relcore.migrate.adapters import card_of
from relcore.sharded.space import ShardedSpace
from relcore.stores.index import open_index, parse_place
from tests.faults import victims
from tests.relcore.migrate.planted import NEW, Made, pairs
from tests.relcore.sharded.folders import whole as all_rows
from tests.relcore.sharded.folders import write_npy
from tests.relcore.stores.stores import whole
from tests.waiting import until

SEED, N, FEW, MANY = 12, 6_000, 400, int(os.environ.get("RELSCOPE_TEST_KILLS", "2"))
IDS = [f"q{row:05}" for row in range(N)]
TOY = StudyName("Toy", "tests.relcore.studies.toy_study:Toy", "Is twice a number on a line?", "none")


def rows():
    return np.random.default_rng(0).normal(size=(N, NEW)).astype(np.float32)


def sources(folder):
    """What the commands read."""
    adapter = Made().fit(*pairs())
    adapter_file.export(adapter, card_of(adapter, *pairs(), method="made"), folder / "bridge")
    np.savez(folder / "rows.npz", vectors=rows(), ids=IDS)
    for name, n in (("rows", N), ("few", FEW)):
        np.save(folder / f"{name}.npy", rows()[:n])
        (folder / f"{name}.ids.txt").write_text("\n".join(IDS[:n]) + "\n")
    write_npy(folder / "shards", rows()[:4000], [1000] * 4, ids=np.array(IDS[:4000]))
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(NEW, NEW)))[0]
    for name, vectors in (("new", rows()[:400] @ rotation + 0.1 * rows()[400:800]), ("old", rows()[:400])):
        np.savez(folder / f"{name}.npz", vectors=vectors, ids=IDS[:400])
    return {path.name for path in folder.iterdir()}


def adapted(text, n=N):
    def check(folder):
        place = parse_place(text)
        with open_index(type(place)(place.kind, str(folder / place.where), place.table)) as index:
            found = whole(index, 4096)
        assert found.ids == IDS[:n]
        expected = Made().fit(*pairs()).transform(rows()[:n])
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
    assert adapter_file.load(folder / "taken").card.n_pairs == 320  # a fifth is held out


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
    """Kill it after this share of the time that it takes, or takes from its first change to the folder on, and
    wait for all its children; False where it had ended.
    """
    before = names(folder)
    until(lambda: early or names(folder) - before - {"store"} or process.exitcode is not None)
    began = time.monotonic()
    process.join(share * longest.get(early, 60))
    if process.exitcode is not None:
        assert process.exitcode == 0
        longest[early] = time.monotonic() - began
        return False
    children = []
    with suppress(psutil.NoSuchProcess):
        children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.join()
    until(lambda: not any(map(victims.lives, children)))
    return process.exitcode == -signal.SIGKILL


def names(folder):
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def kill_often(template, folder, work, arguments, check, written):
    """Kill the work MANY times, each time in a new folder, and have it done again."""
    draw, begun, n_kills, outcomes, longest = random.Random(SEED), f"{folder}-begun", 0, Counter(), {}
    known = names(template) | {*written, "store"}
    while n_kills < MANY:
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
        assert names(folder / "tmp") == set()
        outcomes["whole" if done else "begun" if left else "not begun"] += 1
    print(f"{n_kills} kills: {dict(outcomes)}")


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_killed_command_completes(name, template, tmp_path):
    text, written, check = COMMANDS[name]
    kill_often(template, tmp_path / "work", command, [text], check, written)


@pytest.mark.slow
def test_a_killed_upload_is_kept_whole_or_not_at_all(template, tmp_path):
    content = (template / "rows.npz").read_bytes()
    name = blake2b(content, digest_size=8).hexdigest()

    def check(folder):
        assert (folder / name / "rows.npz").read_bytes() == content

    kill_often(template, tmp_path / "work", upload, [], check, (name,))
