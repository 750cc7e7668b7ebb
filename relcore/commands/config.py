"""config: defaults of options in relscope.toml, in the working folder or above it."""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from relcore.base.report import Report, Table
from relcore.commands.arguments import CommandOptions, Printed
from relcore.commands.parser import FILE, defaults, parser_of, place, tables

OPTIONS = CommandOptions(
    (Printed,),
    f"{FILE} lies in the working folder, or in the nearest one above it up to your home folder. It has a"
    " table for each command, whose keys are options: [compare] with anchors = 500 makes --anchors 500"
    " the default. What is typed wins. Options that write files, --store, --scheduler, --share and"
    " --no-token are only typed.",
    ("--json",),
)


def run(options: argparse.Namespace) -> Report:
    path = place()
    rows = [
        (name, *one)
        for name in (tables(path) if path else ())
        for one in defaults(parser_of([name]).called, name)
    ]
    head = ("command", "option", "default")
    sentence = str(path) if path else f"No {FILE} in {Path.cwd()} or above it."
    table = Table("defaults", pd.DataFrame(rows, columns=head), [head, *rows] if rows else ())
    return Report(sentence, [table], {"file": path and str(path)})
