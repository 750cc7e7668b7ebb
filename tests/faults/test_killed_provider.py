"""kill -9 of an encoding by a provider: the same encoding sends only the batches that are missing, counted by a server
on this machine."""

import random
from collections import Counter
from threading import Event

import numpy as np
import pytest

from relcore.catalog.encodings import encode
from relcore.encoders.api import ApiText
from relcore.runs.store import Store
from tests.faults import victims
from tests.provider import hashed, provider
from tests.relcore.encoders.texts import texts_dataset
from tests.waiting import until

BATCH = 5
N_BATCHES = 24
TEXTS = [f"text {row}" for row in range(BATCH * N_BATCHES)]


def work(root, address):
    encoder = ApiText("hashed", f"{address}/v1", batch_size=BATCH)
    host = address.removeprefix("http://")
    return encode(texts_dataset(TEXTS), encoder, Store(root), send_to=host)


class Gate:
    """Holds the answer to one batch back until `free` is set."""

    def __init__(self):
        self.held = -1
        self.reached = Event()
        self.free = Event()

    def hold(self, number):
        self.reached.clear()
        self.free.clear()
        self.held = number

    def answer(self, number, body):
        if number == self.held:
            self.reached.set()
            self.free.wait(120)


def sent(server):
    """The number of the first text of each batch that was sent, in the order in which they came."""
    return [int(body["input"][0].split()[1]) // BATCH for _, _, body in server.asked]


@pytest.mark.parametrize("n_kills", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_a_killed_encoding_sends_only_the_missing_batches(tmp_path, monkeypatch, n_kills):
    """If the encoding is killed while it waits for a batch, only this batch is sent again."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    gate = Gate()
    places = sorted(random.Random(n_kills).sample(range(N_BATCHES), n_kills))
    with provider(gate.answer) as (server, address):
        for number, place in enumerate(places):
            gate.hold(place + number)  # each kill before it made one request more
            process = victims.started(work, str(tmp_path), address)
            until(lambda process=process: gate.reached.is_set() or process.exitcode is not None)
            assert victims.killed(process, 0), "it ended before the kill"
            gate.free.set()
            assert sent(server)[-1] == place
        [space] = work(str(tmp_path), address)
        assert sent(server) == sorted([*range(N_BATCHES), *places])
    np.testing.assert_array_equal(space.vectors, np.float32([hashed(text) for text in TEXTS]))
    assert len(Store(str(tmp_path)).entries()) == 1


@pytest.mark.slow
def test_an_encoding_that_is_killed_at_any_moment_repeats_at_most_one_batch(tmp_path, monkeypatch):
    """Kills also happen while an answer is read or a block is written."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    draw = random.Random(0)
    n_kills = 0
    with provider() as (server, address):
        while len(set(sent(server))) < N_BATCHES - 3:
            before = len(server.asked)
            process = victims.started(work, str(tmp_path), address)
            until(lambda n=before, process=process: len(server.asked) > n or process.exitcode is not None)
            n_kills += victims.killed(process, draw.uniform(0, 0.03))
        [space] = work(str(tmp_path), address)
        twice = sum(Counter(sent(server)).values()) - N_BATCHES
    assert n_kills > 2
    assert twice <= n_kills
    np.testing.assert_array_equal(space.vectors, np.float32([hashed(text) for text in TEXTS]))
