"""Results on stdout, as an aligned table, JSON or CSV; recipes and spaces as files; a bar on stderr."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import Any

from relcore.base.report import Report, delimited, json_lines
from relcore.base.text import visible
from relcore.base.writing import write
from relcore.commands.arguments import REPORT_FILES

_WIDTH = 20  # of a bar
_ERASE = "\r\x1b[2K"  # the line
_EVERY = 30.0  # seconds between lines without a terminal


def finish(options: argparse.Namespace, report: Report) -> int:
    """Write the recipe, print the report, and return the exit code: 1 after an alarm."""
    figures = [*report.figures.values()]
    if getattr(options, "recipe", None) and figures:
        write(options.recipe, figures[0]().bytes("json", full_paths=options.full_paths))
    written = getattr(options, "output", None)
    if written and getattr(options, "writes_report", False):
        write(written, _text(report, REPORT_FILES[written.suffix.lower()]).encode())
    with suppress(BrokenPipeError):  # a reader such as `head` stopped reading; the exit code is kept
        print(_text(report, options.format, str(written or "")).removesuffix("\n"))
    return int(bool(report.facts.get("alarm")))


def _text(report: Report, kind: str, written: str = "") -> str:
    """The report in one of the formats of --format; two of them name the file that was `written`."""
    rows = next((table.rows for table in report.tables if table.rows is not None), None)
    if kind == "json":
        record = report.record(**({"output": written} if written else {}))
        return json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    if kind in ("csv", "jsonl") and rows is not None:
        return json_lines(rows) if kind == "jsonl" else delimited(rows)
    if kind == "markdown":
        return report.markdown()
    return "\n".join(filter(None, [report.text(), written])) + "\n"


@dataclass
class Bar(AbstractContextManager):
    """A progress bar on stderr, erased at the end. If stderr is no terminal, as in a job's log, a line every
    half minute; nothing with --quiet.
    """

    options: argparse.Namespace
    drawn: bool = False
    _next: float = field(default_factory=lambda: time.monotonic() + _EVERY)

    def show(self, done: float, total: float, text: str = "", *_) -> None:
        """Draw how much is done, and a text."""
        if self.options.quiet:
            return
        share = min(1.0, done / total) if total else 0.0
        if not sys.stderr.isatty():
            if (now := time.monotonic()) >= self._next:
                self._next = now + _EVERY
                print(f"relscope: {share:4.0%}  {visible(text)}", file=sys.stderr, flush=True)
            return
        line = f"[{'=' * round(_WIDTH * share):<{_WIDTH}}] {share:4.0%}  {visible(text)}"
        self.drawn, line = True, line[: shutil.get_terminal_size().columns - 1]
        print(f"{_ERASE}{line}", end="", file=sys.stderr, flush=True)

    def event(self, event: Mapping[str, Any]) -> None:
        """`show` an event that a job reports."""
        self.show(event["done"], event["total"], event["message"])

    def __exit__(self, *_) -> None:
        if self.drawn:
            print(_ERASE, end="", file=sys.stderr, flush=True)
