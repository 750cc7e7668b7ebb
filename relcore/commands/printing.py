"""Print the report of a command, or write it into a file."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pandas as pd

from relcore.base.junit import junit, junit_of_error
from relcore.base.report import Report, Table, delimited_text, json_lines
from relcore.base.writing import write
from relcore.commands.options import REPORT_FILES


def finish(options: argparse.Namespace, report: Report) -> int:
    """Write the recipe and the JUnit report, print the report, and return the exit code: 1 after an alarm."""
    figures = [*report.figures.values()]
    if getattr(options, "recipe", None) and figures:
        write(options.recipe, figures[0]().bytes("json", full_paths=options.full_paths))
    written = getattr(options, "output", None)
    if written and getattr(options, "suffixes", {}).get("output") is REPORT_FILES:
        write(written, _text(report, REPORT_FILES[written.suffix.lower()]).encode())
    if getattr(options, "junit", None):
        write(options.junit, junit(_suite(options), report.cases, report.sentence))
    with suppress(BrokenPipeError):  # a reader such as `head` stopped reading; keep the exit code
        print(_text(report, options.format, str(written or "")).removesuffix("\n"))
    return int(bool(report.facts.get("alarm")))


@contextmanager
def errors_in_junit(options: argparse.Namespace) -> Iterator[None]:
    """Write an error into the file of --junit, too: without it, a CI server would show no test, or those of
    an earlier run."""
    try:
        yield
    except Exception as error:
        if getattr(options, "junit", None):
            write(options.junit, junit_of_error(_suite(options), f"{error}"))
        raise


def _suite(options: argparse.Namespace) -> str:
    """The name of a JUnit suite, such as "passport check"."""
    return " ".join(filter(None, (options.command, getattr(options, "verb", ""))))


def _text(report: Report, kind: str, written: str = "") -> str:
    """The report as text in a format of --format. As JSON and as plain text, it includes `written`, which
    names the file that the command wrote."""
    rows = next((table.rows for table in report.tables if table.rows is not None), None)
    if kind == "json":
        record = report.record()
        if written:
            record = report.record(output=written)
        return json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    if kind in ("csv", "jsonl") and rows is not None:
        if kind == "jsonl":
            return json_lines(rows)
        return delimited_text(rows)
    if kind == "markdown":
        return report.markdown()
    return "\n".join(filter(None, [report.text(), written])) + "\n"


def written(
    sentence: str = "", notes: Sequence[str] = (), facts: Mapping[str, Any] | None = None, **row: Any
) -> Report:
    """The report on a file that a command wrote: a sentence, and a table whose single row is `row`."""
    return Report(sentence, [Table("written", pd.DataFrame([row]))], facts or {}, notes)
