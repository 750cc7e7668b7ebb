"""The list of commands is there at once, and what help lists is what there is."""

import subprocess
import sys
from dataclasses import is_dataclass
from pathlib import Path

import pytest

from relcore.base.settings import settings_of
from relcore.cli import COMMANDS, main, parser_of
from relcore.commands.running import values_of
from relcore.compare.reports import ExactScores
from relcore.linking.link import BootstrapSpec
from relcore.migrate.migration import Migration

ROOT = Path(__file__).parents[3]
HEAVY = ("torch", "sklearn", "dask", "distributed", "streamlit", "plotly", "matplotlib")


def test_help_lists_commands_and_an_example_and_loads_nothing_heavy():
    """All in one process: a library that one command loads is there at the end."""
    script = f"""
import sys
from relcore.cli import COMMANDS, main
def help_of(*command):
    try:
        main([*command, "--help"])
    except SystemExit as end:
        assert end.code == 0, end.code
help_of()
assert "numpy" not in sys.modules
for name in COMMANDS:
    help_of(name)
assert not set({HEAVY}) & set(sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in COMMANDS:
        assert f"\n  {name}" in ran.stdout
        assert f"\nexample:\n  relscope {name} " in ran.stdout


def _help_of(command, capsys, *arguments):
    with pytest.raises(SystemExit):
        main([command, *arguments, "--help"])
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("compare a b", ExactScores),
        ("link a b", BootstrapSpec),
        ("migrate a b", Migration),
    ],
)
def test_options_and_their_defaults_are_the_fields_of_the_task(command, kind, capsys):
    values = values_of(parser_of(command.split()).parse_args(command.split()), kind)
    assert len(values) >= 3
    for name, one in settings_of(kind).items():
        if name in values and not is_dataclass(one.kind):
            assert values[name] in (one.start(), None)  # None: depends on the spaces
    text = " ".join(_help_of(command.split()[0], capsys).split()).replace("- ", "-")
    assert all(
        choice in text for one in settings_of(kind).values() if one.name in values for choice in one.choices
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "required: command"),
        (["draw"], "'draw': expected one of available, app, "),
        (["comapre", "a", "b"], "; did you mean 'compare'? see relscope --help"),
        (["compare", "a"], "TARGET"),
        (
            ["compare", "a", "b", "--anchrs=3"],
            "--anchrs=3; did you mean '--anchors' or '--csv'? see relscope compare",
        ),
        (["compare", "a", "b", "--zzzz"], "unrecognized arguments: --zzzz; see relscope compare --help"),
    ],
)
def test_what_the_parser_refuses_has_code_2(arguments, told, capsys):
    assert main(arguments) == 2
    assert told in capsys.readouterr().err
