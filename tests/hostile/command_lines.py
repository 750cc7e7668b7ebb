"""Hostile arguments of commands; each ends with a message and the code 2."""

import io
from contextlib import redirect_stderr, redirect_stdout
from itertools import product
from unittest.mock import patch

from relcore.base.errors import SpaceError
from relcore.cli import main
from relcore.runs.jobs import JobQueue
from tests.hostile.cases import IDS, LABELS, TABLE, Case, pipe
from tests.hostile.npz import npz

FILES = {
    "a.npz": npz(vectors=TABLE, ids=IDS, labels=LABELS),
    "b.npz": npz(vectors=2 * TABLE, ids=IDS, labels=LABELS),
}
PAIR = ["a.npz", "b.npz"]
_ALLOWED = ("pickle.find_class", "socket.connect")  # the compiler's cache, and the scheduler of a case
NUMBERS = ("", "x", "-1", "1.5", "nan", "-inf", "1e400", "9" * 30, "9" * 5000, "0x10", "1_0", "٣", "\x1b[31m")


def run(arguments):
    """The exit code of the command. If it is 2, what the command prints is raised as the error that the judge
    sees."""

    def read(folder):
        said = io.StringIO()
        seconds = patch.object(JobQueue.start, "__defaults__", (1,))  # to wait for a scheduler
        with seconds, redirect_stderr(said), redirect_stdout(io.StringIO()):
            code = main(arguments)
        if code == 2:
            raise SpaceError(said.getvalue().strip().removeprefix("relscope: "))
        return code or 0

    return read


def case(name, *arguments, right=None, names=(), **files):
    given = (*(one for one in arguments if one.startswith("-")), *names, "argument")
    read = run(list(arguments))
    files = FILES | files
    return Case(name, read, files, right, names=given, remedy=False, allowed=_ALLOWED)


def cases():
    for name, line in {
        "compare": [*PAIR, "--anchors", "4", "-k", "2", "--quiet"],
        "project": ["a.npz", "--anchors", "4", "-o", "c.npz"],
    }.items():
        yield Case(f"control: {name}", run([name, *line]), FILES, 0, accept=True, allowed=_ALLOWED)
    for line in (
        "compare --anchors --random-state --ridge --threshold -k",
        "invert --anchors --random-state --delta --omega --inverse-ridge --pruning-state",
        "link --anchors --rows -k --pairs --steps --learning-rate",
        "stitch --states --test-fraction --ridge --omega --anchors",
        "project --ridge --threshold",
    ):
        command, *options = line.split()
        spaces = PAIR
        if command == "project":
            spaces = PAIR[:1]
        more = {"project": ["-o", "c.npz"]}.get(command, [])
        for option, value in product(options, NUMBERS):
            if command in ("compare", "project") and option in ("--ridge", "--threshold") and value in _FINE:
                continue
            if option == "--anchors" and value == "0x10":
                continue
            plain = option.strip("-")
            names = (plain, plain.replace("-", "_"), "n_anchors", "n_states", "ids", "path of", "a file")
            if option[1] == "-":
                given = f"{option}={value}"
            else:
                given = option + value
            name = f"{command} {option} {value[:20]!r} {len(value)}"
            yield case(name, command, *spaces, given, *more, names=names)
    for option in ("--similarity", "--strategy", "--convention"):
        for value in ("", "relcore.store:Store", "Cosine", "../x", "x" * 10_000):
            line = ["compare", *PAIR, "--anchors", "4", option, value]
            yield case(f"compare {option} {value[:20]!r}", *line, names=("similarity", "strategy"))
    for what, (line, names, values) in VALUES.items():
        for value in values:
            given = [one.replace("VALUE", value) for one in line.split()]
            yield case(f"{what} {value[:20]!a} {len(value)}", *given, names=(value[:20], *names))
    many = ",".join(IDS[:4] + [f"word{row}" for row in range(5, 9)] * 200)
    for name, anchors in {"that is longer than a path": many, "with one twice": "word0,word0"}.items():
        yield case(f"a list of ids {name}", "compare", *PAIR, f"--anchors={anchors}", right=0)
    yield case("a named pipe", "compare", "pipe.npz", "b.npz", names=("pipe.npz",), **{"pipe.npz": pipe})
    other = {"c.npz": npz(vectors=TABLE)}
    yield case("no ids in common", "compare", "a.npz", "c.npz", names=("'a'",), **other)
    yield case("an unknown command", "destroy")
    names = ("s.json", "recipe", "study", "spec", "settings")
    for name, content in {"binary": bytes(range(256)), "a list": b"[]"}.items():
        for line in (["study", "--spec"], ["stitch", *PAIR, "--spec"], ["figure"]):
            yield case(f"{line[0]} of a spec: {name}", *line, "s.json", names=names, **{"s.json": content})


_FINE = ("1.5", "1_0", "٣", "9" * 30)
_SPACES = ["", "missing.npz", "a", "~nosuchuser/a.npz", "a\0b.npz", "x" * 5000, "/dev/zero", ".", "0" * 32]
_SPACES += [
    "a.npz/b.npz",
    "../../../etc/passwd",
    "http://127.0.0.1:1/a.npz",
    "file:///etc/passwd",
    "\ud800.npz",
]
_DATASETS = ["", "missing.csv", "wikipedia:x", "wikipedia:-1", "parallel:xx", "~nosuchuser", "a\0b", "a.npz"]
_MISSING = ["missing.json", ".", "/dev/zero", "~nosuchuser/x.json", "a\0.json", "x" * 5000]
# What is wrong → the command, the words that its error may name, and the values.
VALUES = {
    "a space of": ("compare VALUE b.npz --quiet", ("space", "path", "file", "''"), _SPACES),
    "anchors": (
        "compare a.npz b.npz --anchors=VALUE",
        ("anchors", "ids", "'a'", "'b'"),
        ["word0,nobody", ",", "missing.txt", "a.npz", ".", "/dev/zero"],
    ),
    "output:": ("project a.npz --anchors 4 -o VALUE", ("output",), ["none/c.npz", ".", "/dev/null/c.npz"]),
    "figure of": ("figure VALUE", ("path", "recipe", "a file"), _MISSING),
    "dataset": (
        "encode VALUE --encoder mlp",
        ("dataset", "path", "limit"),
        [*_DATASETS, "/dev/zero", "x" * 5000],
    ),
    "encoder": ("encode digits --limit 20 --encoder VALUE", ("encoder",), ["", "mlp,x", "os:system", "MLP"]),
    "limit": (
        "encode digits --limit=VALUE --encoder small-vision --epochs x",
        ("limit", "epochs"),
        ["0", "-1", "x", "9" * 30, "1.5"],
    ),
    "scheduler": (
        "encode digits --limit 20 --encoder mlp --scheduler=VALUE",
        ("scheduler",),
        ["x", "tcp://", "tcp://127.0.0.1:1", "http://x y", ":::", "\0"],
    ),
    "store": (
        "compare nothing b.npz --store=VALUE",
        ("store", "path"),
        ["/dev/null", "a.npz", "/proc/nothing", "a\0b", "~nosuchuser/store"],
    ),
}
