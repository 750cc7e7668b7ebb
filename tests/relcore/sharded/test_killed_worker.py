"""A worker that is killed in the middle of `compare` by shard: the same scores, and one shard read again."""

import os
import signal
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.made_shards import MadeShard, made
from relcore.runs.jobs import Engine
from relcore.runs.store import Store
from relcore.sharded.compare import compare_shards
from relcore.sharded.passes import Runner

ROWS = 1000  # of a block: several in a shard, so that one is read in part when its process dies


@dataclass(frozen=True)
class LoggedShard(MadeShard):
    """Leaves a line each time its rows are read from the start. One `dies_at` kills its process once, when it
    has been read so many times and half of its rows are read again."""

    log: str = ""
    dies_at: int = 0

    def blocks(self, rows=0, labels=False):
        with open(self.log, "a") as file:
            file.write(f"{self.name}\t{os.getpid()}\n")
        for block in super().blocks(ROWS, labels):
            yield block
            dies = self.dies_at and readings(self.log)[self.name] == self.dies_at
            if dies and block.first >= self.n // 2:
                os.kill(os.getpid(), signal.SIGKILL)


def readings(log):
    """How many times each shard was read, by its name."""
    return Counter(line.split("\t")[0] for line in Path(log).read_text().splitlines())


def logged(space, log, **dies_at):
    """The space with shards that leave their lines in a file, in processes of workers too."""
    facts = (
        vars(shard) | {"log": str(log), "dies_at": dies_at.get(f"shard_{at}", 0)}
        for at, shard in enumerate(space.shards)
    )
    return replace(space, shards=tuple(LoggedShard(**one) for one in facts))


@pytest.fixture
def engine(tmp_path):
    engine = Engine(n_workers=2, store=Store(tmp_path / "there"))
    yield engine
    engine.close()


def test_it_costs_one_shard_and_changes_no_number(engine, tmp_path):
    pair = [made(rows=24_000, width=8, shards=6, side=side) for side in (0, 1)]
    killed_in = pair[0].shards[3].name
    undisturbed = compare_shards(
        *(logged(one, tmp_path / "log") for one in pair), 20, Runner(Store(tmp_path / "here")), n_queries=30
    )
    assert readings(tmp_path / "log") == Counter(
        {shard.name: 4 for shard in pair[0].shards}
    )  # means, then scores, of both

    run, logs = Runner(engine.store, engine), [tmp_path / "source.log", tmp_path / "target.log"]
    source, target = (
        logged(pair[0], logs[0], shard_3=2),
        logged(pair[1], logs[1]),
    )  # in its second reading: of the scores
    found = compare_shards(source, target, 20, run, n_queries=30)
    for log in logs:
        assert readings(log) - Counter({shard.name: 2 for shard in source.shards}) == Counter({killed_in: 1})
    pids = [line.split("\t")[1] for line in logs[0].read_text().splitlines() if line.startswith(killed_in)]
    assert pids[1] != pids[2]  # the one that died, and the one that read the shard again
    assert [len(one.ran) for title, one in run.done if title == "compare"] == [6]
    for form, scores in undisturbed.scores.items():
        assert found.scores[form].keys() == scores.keys()
        for metric, score in scores.items():
            other = found.scores[form][metric]
            np.testing.assert_array_equal(
                [float(other), *(other.interval or ())], [float(score), *(score.interval or ())]
            )
            assert vars(other.null) == vars(score.null), (form, metric)
