import argparse
import io
import json
import os
import subprocess
import sys
import warnings
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from relcore.base.environment import DEVICE, chosen
from relcore.base.names import COMMANDS
from relcore.base.report import Report, Table
from relcore.catalog.catalog import SpaceSpec, load
from relcore.catalog.encodings import encode
from relcore.catalog.naming import space_spec
from relcore.cli import main, parser_of
from relcore.commands import progress
from relcore.commands.anchors import number_or_ids
from relcore.commands.printing import finish
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.sentences import TfidfSvd
from relcore.runs import cluster
from relcore.runs.cluster import JobQueueError, connect
from relcore.runs.entries import digest_of
from relcore.runs.jobs import JobQueue

pytestmark = pytest.mark.usefixtures("own_store")

ROOT = Path(__file__).parents[3]
HEAVY = ("torch", "sklearn", "dask", "distributed", "streamlit", "plotly", "matplotlib")


def test_help_lists_commands_and_example_and_loads_nothing_heavy():
    script = f"""
import sys
from relcore.base.names import COMMANDS
from relcore.cli import main
def help_of(*command):
    try:
        main([*command, "--help"])
    except SystemExit as end:
        assert end.code == 0, end.code
help_of()
assert "numpy" not in sys.modules
for name in COMMANDS.own:
    help_of(name)
assert not set({HEAVY}) & set(sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in COMMANDS.own:
        assert f"\n  {name}" in ran.stdout
        assert f"\nexample:\n  relscope {name} " in ran.stdout


ANSWER_NOTHING = {"app", "mcp"}  # they serve


def actions(name):
    return {flag: action for action in parser_of([name]).called._actions for flag in action.option_strings}


@pytest.mark.parametrize("name", COMMANDS.own)
def test_options_of_one_name_are_one_option(name):
    known = actions(name)
    assert {"--quiet", "--device", "--store"} <= set(known)
    reports = name not in ANSWER_NOTHING
    assert ("--json" in known) == ("-o" in known) == reports
    if reports:
        assert known["-o"].type("s3://bucket/folder") == "s3://bucket/folder"
    assert not {"-q", "-j", "--out", "--verbose", "--progress"} & set(known)


ROW = {"n": 3, "score": 0.1 + 0.2}
RECORD = {"sentence": "3 rows", "notes": [], "spaces": 2, "output": "new.npz", "rows": [ROW]}


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("table", "3 rows\nnew.npz\n"),
        ("json", RECORD),
        ("jsonl", ROW),
        ("csv", "n,score\n3,0.30000000000000004\n"),
    ],
)
def test_a_result_names_the_file_of_o(form, expected, capsys):
    report = Report("3 rows", [Table("rows", pd.DataFrame([ROW]))], {"spaces": 2})
    finish(argparse.Namespace(format=form, output="new.npz"), report)
    out = capsys.readouterr().out
    assert (json.loads(out) if form.startswith("json") else out) == expected


@pytest.mark.parametrize("kind", ["csv", "jsonl", "markdown", "table"])
def test_o_writes_the_report_of_a_command_that_writes_nothing(kind, tmp_path, run, refuse):
    goal = "report." + {"markdown": "md", "table": "txt"}.get(kind, kind)
    np.save(tmp_path / "a.npy", np.eye(4))
    printed = run("available a.npy --format", kind)
    assert goal in run("available a.npy -o", goal)
    assert (tmp_path / goal).read_text().strip() == printed.strip()
    assert "expected a name that ends in one of" in refuse("available a.npy -o report.pdf")


RUN = "relcore.available.command.run_available.run"
STOPPED = "Stopped. Finished work is saved; rerun the command to resume."


def test_available_tells_what_is_here_from_what_needs_the_network(files, tmp_path, capsys):
    assert main(["available", "--data", str(tmp_path)]) == 0
    here, network = capsys.readouterr().out.split("Needs the network\n")
    assert here.startswith("On this machine\n")
    assert {"word2vec-novels", "fasttext-novels", "first.npz", "second.npz"} <= set(here.split())
    assert "glove-wiki-gigaword-50" in network.split()


def test_the_store_is_the_named_one_while_a_command_runs(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(RUN, lambda options: seen.append(os.environ["RELSCOPE_STORE"]))
    before = os.environ["RELSCOPE_STORE"]
    assert main(["available", "--store", "elsewhere"]) == 0
    assert seen == [str(tmp_path / "elsewhere")]
    assert os.environ["RELSCOPE_STORE"] == before


@pytest.mark.parametrize(("code", "told"), [(0, "3 rows were left out"), (130, STOPPED)])
def test_warnings_and_ctrl_c_are_one_line(monkeypatch, capsys, code, told):
    def run(options):
        if code:
            raise KeyboardInterrupt
        warnings.warn(told, stacklevel=1)

    monkeypatch.setattr(RUN, run)
    assert main(["available"]) == code
    assert capsys.readouterr().err == f"relscope: {told}\n"


def test_a_fault_of_ours_is_raised(monkeypatch):
    monkeypatch.setattr(RUN, lambda options: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["available"])


def test_a_reader_may_stop_reading():
    command = ["bash", "-c", f"{sys.executable} -m relcore available | true"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_columns_are_chosen_after_the_name_of_a_table(refuse, tmp_path):
    for name in ("t.csv", "t#x=1.csv"):
        (tmp_path / name).write_text("name,group,x,y\na,p,1,2\nb,q,3,4\n")
    spec = space_spec("t.csv#label_column=group#ignore=y,x#duplicates=first")
    options = {"label_column": "group", "ignore": '["y", "x"]', "duplicates": "first"}
    assert (spec.name, dict(spec.options)) == ("t.csv", options)
    assert space_spec("t#x=1.csv").name == "t#x=1.csv"  # a file of that name
    assert "after '#', got 'idz'" in refuse("available", "t.csv#idz=name")
    assert load(space_spec("t.csv#id_column=group")).ids.tolist() == ["p", "q"]


def test_command_computes_on_device_that_is_named(monkeypatch):
    seen = []
    monkeypatch.setattr("relcore.available.command.run_available.run", lambda options: seen.append(chosen()))
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
    queue._client = Client()
    queue._cluster = cluster
    monkeypatch.setattr(queue, "start", lambda: None)
    for function in (on_gpu, on_cpu):
        queue.submit(digest_of(function.__name__), function, title="any")
    assert queue._client.sent == [(on_gpu, "cuda", resource), (on_cpu, "cuda", None)]


def test_one_process_of_a_cluster_claims_the_gpu(tmp_path):
    assert cluster.claim_gpu(str(tmp_path))
    assert not cluster.claim_gpu(str(tmp_path))
    cluster._held.pop().close()  # as when its process ends
    assert cluster.claim_gpu(str(tmp_path))
    cluster._held.pop().close()


NAME = "clear\x1b[2J\x9b31m\u202eab.npy"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / NAME, np.eye(4, dtype=np.float32))
    return tmp_path


def test_name_is_shown_without_what_would_steer_terminal(folder, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    assert main(["available", "--data", str(folder)]) == 0
    assert "clear�[2J�31m�ab.npy" in screen.getvalue()
    assert "\n" in screen.getvalue()


def test_an_error_is_one_harmless_line(folder, capsys):
    assert main(["compare", f"{NAME}\n.npy", f"{NAME}.csv"]) == 2
    told = capsys.readouterr().err
    assert not set("\x1b\x9b\u202e") & set(told)
    assert told.count("\n") == 1


def test_without_terminal_a_line_comes_every_half_minute(monkeypatch, capsys):
    clock = iter([0.0, 29.9, 30.0, 45.0, 61.0])
    monkeypatch.setattr(progress.time, "monotonic", clock.__next__)
    with progress.Bar(Namespace(quiet=False)) as bar:
        for done in (1, 2, 3, 4):
            bar.show(done, 10, f"row {done}\x1b[2J")
    assert capsys.readouterr().err == "relscope:  20%  row 2�[2J\nrelscope:  40%  row 4�[2J\n"


@pytest.fixture
def encoded(own_store):
    for dimensions in (5, 6):
        encode(DatasetSpec("parallel", "en", limit=60), TfidfSvd(dimensions), own_store)
    return {one.metadata["name"]: one.key for one in own_store.summaries() if "encoder" in one.metadata}


def test_bundled_gensim_file_and_json(files, tmp_path):
    assert space_spec("word2vec-novels") == SpaceSpec("bundled", "word2vec-novels")
    assert space_spec("first.npz") == SpaceSpec("file", "first.npz")
    limited = SpaceSpec("file", "first.npz", 10, (("invalid", "drop"),))
    (tmp_path / "spec.json").write_text(json.dumps(limited.to_json()))
    assert space_spec("spec.json") == limited


def test_encoding_by_key_start_of_key_and_name(encoded):
    assert len(encoded) == 2
    for name, key in encoded.items():
        spec = space_spec(key)
        assert spec == space_spec(key[:8]) == space_spec(name)
        assert (spec.source, spec.name, spec.option("key")) == ("encoding", name, key)
        assert load(spec).name == name
        assert spec.dataset == DatasetSpec("parallel", "en", limit=60)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("word2vec-novel", "did you mean 'word2vec-novels'"),
        ("frst.npz", "'frst.npz', where there is none"),
        ("list.json", "expected a space's spec as a JSON object, got list"),
    ],
)
def test_what_is_no_space_is_told(refuse, files, tmp_path, name, message):
    (tmp_path / "list.json").write_text("[]")
    assert message in refuse("compare", name, "second.npz")


def test_anchors_by_number_file_and_ids(tmp_path):
    (tmp_path / "list.txt").write_text("\ufeffking\n\n river \nking\n", encoding="utf-8")
    assert number_or_ids("300") == 300
    assert number_or_ids("list.txt") == ("king", "river")
    assert number_or_ids("sea, king,sea") == ("sea", "king")


UNKNOWN = ("data://", "jupyter://", "reference://", "dask://x", "nosuch://x")
PROJECT = "project first.npz -o out.npz --anchors"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"{PROJECT}=5 --ridge=nan", "--ridge: expected a"),
        (f"{PROJECT}=5 --ridge=1e400", "--ridge: expected a"),
        (f"{PROJECT}=5 --random-state=１２", "--random-state: expected a"),
        (f"{PROJECT}=binary", "binary: expected UTF-8 text with one id per line, got byte 0x80 at 128"),
        (f"{PROJECT}=large.txt", "of at most 64 MB, got 4,096 MB"),
        (f"{PROJECT}=+2.5", "--anchors: expected a number from 0, ids, or a file of ids, got '+2.5'; write"),
        (f"{PROJECT}={'9' * 5000}", "--anchors: expected a number of at most 18 digits, got 5,000 digits"),
        *((f"adapt none {place} x.npy", place) for place in UNKNOWN),
        *((f"compare {place} {place} --shards", place) for place in UNKNOWN),
    ],
)
def test_a_value_that_cannot_be_is_one_line(line, said, files, refuse, tmp_path):
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    with open("large.txt", "wb") as stream:
        stream.truncate(2**32)
    told = refuse(line)
    assert said in told
    assert len(told) < 500


@pytest.mark.parametrize("address", ["banana", "tls://127.0.0.1:1", "tcp://[::1"])
def test_a_scheduler_has_an_address(address):
    with pytest.raises(JobQueueError, match="expected the address of a Dask scheduler"):
        connect(address, 1, 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("RELSCOPE_STORE_GB", value) for value in ("abc", "-1", "0", "nan", "inf", "1e400", "9" * 5000)),
        *((name, value) for name in ("RELSCOPE_SHARE", "RELSCOPE_CONFINED") for value in ("no", "2", "true")),
        ("RELSCOPE_DATA", "no-such-folder"),
    ],
)
def test_a_variable_of_the_environment_has_a_possible_value(name, value, files, monkeypatch, refuse):
    monkeypatch.setenv(name, value)
    assert f"{name}: expected " in refuse("compare", *files)
