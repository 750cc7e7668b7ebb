"""--device sets the device of a command and of its workers; options of other tools are understood."""

import os
from types import SimpleNamespace

import pytest

from relcore.base.environment import DEVICE, chosen
from relcore.cli import main
from relcore.runs import jobs
from relcore.runs.entries import digest_of
from relcore.runs.jobs import JobQueue


def test_command_computes_on_device_that_is_named(monkeypatch):
    seen = []
    monkeypatch.setattr("relcore.commands.encode.run_available.run", lambda options: seen.append(chosen()))
    monkeypatch.delenv(DEVICE, raising=False)
    assert main(["available", "--device", "torch"]) == 0
    assert main(["available"]) == 0
    assert seen == ["torch", "auto"]
    assert DEVICE not in os.environ


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        ("compare a b --topk 1", "'-k'"),
        ("compare a b --strategy k-mean", "'k-means'"),
        ("passport chek a", "'check'"),
        ("comapre a b", "'compare'? see relscope --help"),
        ("compare a b --anchrs=3", "'--anchors' or '--csv'? see relscope compare"),
    ],
)
def test_errors_name_what_was_meant(refuse, arguments, meant):
    assert f"did you mean {meant}" in refuse(arguments)


class Client:
    def __init__(self):
        self.sent = []

    def submit(self, function, job_function, *arguments, **look):
        self.sent.append((job_function, arguments[-1], look["resources"]))
        return SimpleNamespace(add_done_callback=lambda callback: None)


def on_gpu(context):
    pass


def on_cpu(context):
    pass


on_cpu.on_cpu = True


@pytest.mark.parametrize(("cluster", "resource"), [(SimpleNamespace(has_gpu=True), {"GPU": 1}), (None, None)])
def test_work_for_gpu_of_this_machine_goes_to_one_process(monkeypatch, tmp_path, cluster, resource):
    from relcore.runs.store import Store

    monkeypatch.setenv(DEVICE, "cuda")
    queue = JobQueue(store=Store(tmp_path))
    queue._client, queue._cluster = Client(), cluster
    monkeypatch.setattr(queue, "start", lambda: None)
    for function in (on_gpu, on_cpu):
        queue.submit(digest_of(function.__name__), function, title="any")
    assert queue._client.sent == [(on_gpu, "cuda", resource), (on_cpu, "cuda", None)]


def test_one_process_of_a_cluster_claims_the_gpu(tmp_path):
    assert jobs.claim_gpu(str(tmp_path))
    assert not jobs.claim_gpu(str(tmp_path))
    jobs._held.pop().close()  # as when its process ends
    assert jobs.claim_gpu(str(tmp_path))
    jobs._held.pop().close()
