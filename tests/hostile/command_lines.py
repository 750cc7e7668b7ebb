"""Hostile arguments of commands; each ends with a message and the code 2."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from tests.hostile.cases import Case, pipe
from tests.hostile.npy import TABLE
from tests.hostile.npz import IDS, LABELS, npz

FILES = {
    "a.npz": npz(vectors=TABLE, ids=IDS, labels=LABELS),
    "b.npz": npz(vectors=2 * TABLE, ids=IDS, labels=LABELS),
}
PAIR = ["a.npz", "b.npz"]
_ALLOWED = (
    "pickle.find_class",
    "socket.connect",
)  # the compiler's cache, and the scheduler that a case names
NUMBERS = (
    "",
    "x",
    "-1",
    "1.5",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "9" * 30,
    "9" * 5000,
    "0x10",
    "1_0",
    "٣",
    "\x1b[31m",
)


def run(arguments: list[str]):
    """The code of a command that succeeds; what it says otherwise becomes the error that the judge sees."""

    def read(folder: Path) -> int:
        from relcore.base.errors import SpaceError
        from relcore.cli import main

        said = io.StringIO()
        with redirect_stderr(said), redirect_stdout(io.StringIO()):
            code = main(arguments)
        if code == 2:
            raise SpaceError(said.getvalue().strip().removeprefix("relscope: "))
        return code or 0

    return read


def case(
    name: str,
    *arguments: str,
    files: dict[str, Any] | None = None,
    right: Any = None,
    names: tuple[str, ...] = (),
) -> Case:
    given = tuple(one for one in arguments if one.startswith("-")) + names
    files = FILES | (files or {})
    return Case(
        name, run(list(arguments)), files, right, names=(*given, "argument"), remedy=False, allowed=_ALLOWED
    )


def cases() -> Iterator[Case]:
    yield Case(
        "control: compare",
        run(["compare", *PAIR, "--anchors", "4", "-k", "2", "--quiet"]),
        FILES,
        0,
        accept=True,
        allowed=_ALLOWED,
    )
    yield Case(
        "control: project",
        run(["project", "a.npz", "--anchors", "4", "-o", "c.npz"]),
        FILES,
        0,
        accept=True,
        allowed=_ALLOWED,
    )
    for command, option in (
        *(("compare", option) for option in ("--anchors", "--random-state", "--ridge", "--threshold", "-k")),
        *(
            ("invert", option)
            for option in ("--anchors", "--random-state", "--delta", "--omega", "--ridge", "--pruning-state")
        ),
        *(
            ("bootstrap", option)
            for option in ("--anchors", "--rows", "-k", "--seeds", "--steps", "--learning-rate")
        ),
        *(
            ("stitch", option)
            for option in ("--states", "--test-fraction", "--ridge", "--omega", "--anchors")
        ),
        *(("project", option) for option in ("--ridge", "--threshold")),
    ):
        for value in NUMBERS:
            more = {"project": ["-o", "c.npz"], "bootstrap": ["--real"]}.get(command, [])
            spaces = PAIR[:1] if command == "project" else PAIR
            known = {
                "--ridge": "ridge",
                "--threshold": "threshold",
                "--anchors": "anchors",
                "--seeds": "seeds",
            }
            names = (
                known.get(option, option.strip("-").replace("-", "_")),
                option.strip("-"),
                "n_anchors",
                "n_states",
                "ids",
                "path of",
                "a file",
            )
            if (command, option, value) in _FINE or (option == "--anchors" and value == "0x10"):
                continue
            given = [f"{option}={value}" if option[1] == "-" else option + value]
            yield case(
                f"{command} {option} {value[:20]!r} {len(value)}",
                command,
                *spaces,
                *given,
                *more,
                names=names,
            )
    for option in ("--similarity", "--strategy", "--convention"):
        for value in ("", "x", "relcore.store:Store", "Cosine", "../x", "x" * 10_000):
            yield case(
                f"compare {option} {value[:20]!r}",
                "compare",
                *PAIR,
                "--anchors",
                "4",
                option,
                value,
                names=("similarity", "strategy"),
            )
    many = ",".join(IDS[:4] + [f"word{row}" for row in range(5, 9)] * 200)
    yield case("a list of ids that is longer than a path", "compare", *PAIR, f"--anchors={many}", right=0)
    yield from _spaces()
    yield from _files()


_FINE = {
    ("compare", "--threshold", "1.5"),
    ("compare", "--ridge", "1.5"),
    ("project", "--threshold", "1.5"),
    ("project", "--ridge", "1.5"),
}
_FINE |= {
    ("project", option, value) for option in ("--ridge", "--threshold") for value in ("1_0", "٣", "9" * 30)
}
_FINE |= {
    ("compare", option, value) for option in ("--ridge", "--threshold") for value in ("1_0", "٣", "9" * 30)
}


def _spaces() -> Iterator[Case]:
    for name in (
        *(
            "",
            " ",
            "missing.npz",
            "missing",
            "a",
            "~nosuchuser/a.npz",
            "a\0b.npz",
            "x" * 5000,
            "x" * 5000 + ".npz",
            "/dev/zero",
        ),
        *(
            "/dev/null",
            ".",
            "/",
            "../../../etc/passwd",
            "http://127.0.0.1:1/a.npz",
            "file:///etc/passwd",
            "0" * 32,
            "\ud800.npz",
        ),
        *("a.npz/b.npz",),
    ):
        yield case(
            f"a space of {name[:20]!a} {len(name)}",
            "compare",
            name,
            "b.npz",
            "--quiet",
            names=(name[:20], "space", "path", "file", "''"),
        )
    yield case("a named pipe", "compare", "pipe.npz", "b.npz", files={"pipe.npz": pipe}, names=("pipe.npz",))
    yield case("one space", "stitch", "a.npz", names=("encoders",))
    yield case(
        "no ids in common", "compare", "a.npz", "c.npz", files={"c.npz": npz(vectors=TABLE)}, names=("'a'",)
    )
    yield case("an unknown command", "destroy")
    yield case("an unknown option", "compare", *PAIR, "--destroy")
    for anchors in ("word0,word0", "word0,nobody", "nobody", ",", "missing.txt", "a.npz", ".", "/dev/zero"):
        yield case(
            f"anchors {anchors}",
            "compare",
            *PAIR,
            f"--anchors={anchors}",
            right=0 if anchors == "word0,word0" else None,
            names=("anchors", "ids", "'a'", "'b'"),
        )


def _files() -> Iterator[Case]:
    for name, output in {
        "no folder": "none/c.npz",
        "a folder": ".",
        "another suffix": "c.exe",
        "a device": "/dev/null/c.npz",
        "a zero byte": "a\0.npz",
    }.items():
        yield case(
            f"output: {name}",
            "project",
            "a.npz",
            "--anchors",
            "4",
            "-o",
            output,
            names=(output[:5], "output", "path"),
        )
    for name, content in {
        "binary": bytes(range(256)),
        "a list": b"[]",
        "deep": b"[" * 10**5,
        "empty": b"{}",
    }.items():
        for command in (
            ["study", "--spec", "s.json"],
            ["stitch", *PAIR, "--spec", "s.json"],
            ["figure", "s.json"],
        ):
            yield case(
                f"{command[0]} of a spec: {name}",
                *command,
                files={"s.json": content},
                names=("s.json", "recipe", "study", "spec", "settings"),
            )
    for name in ("missing.json", ".", "/dev/zero", "~nosuchuser/x.json", "a\0.json", "x" * 5000):
        yield case(f"figure of {name[:20]!r}", "figure", name, names=(name[:20], "path", "recipe", "a file"))
    for dataset in (
        "",
        "missing",
        "missing.csv",
        "wikipedia:x",
        "wikipedia:-1",
        "parallel:xx",
        "~nosuchuser",
        "a\0b",
        "/dev/zero",
        "a.npz",
        "x" * 5000,
    ):
        yield case(
            f"dataset {dataset[:20]!r}",
            "encode",
            dataset,
            "--encoder",
            "mlp",
            names=(dataset[:20], "dataset", "path", "limit"),
        )
    for encoder in ("", "x", "mlp,x", "os:system", "MLP"):
        yield case(
            f"encoder {encoder!r}",
            "encode",
            "digits",
            "--limit",
            "20",
            "--encoder",
            encoder,
            names=("encoder",),
        )
    for limit in ("0", "-1", "x", "9" * 30, "1.5"):
        yield case(
            f"limit {limit[:20]}",
            "encode",
            "digits",
            f"--limit={limit}",
            "--encoder",
            "small-vision",
            "--epochs",
            "x",
            names=("limit", "epochs"),
        )
    for address in ("x", "tcp://", "tcp://127.0.0.1:1", "http://x y", ":::", "\0"):
        yield case(
            f"scheduler {address!r}",
            "encode",
            "digits",
            "--limit",
            "20",
            "--encoder",
            "mlp",
            f"--scheduler={address}",
            names=("scheduler",),
        )
    for store in ("/dev/null", "a.npz", "/proc/nothing", "a\0b", "~nosuchuser/store"):
        yield case(
            f"store {store!r}",
            "compare",
            "nothing",
            "b.npz",
            f"--store={store}",
            names=("store", store[:9], "path"),
        )
