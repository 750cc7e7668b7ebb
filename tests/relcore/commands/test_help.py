"""The list of commands is there at once, and what help lists is what there is."""

import json
import re
import subprocess
import sys
from dataclasses import is_dataclass
from pathlib import Path

import pytest

from relcore.base.names import ENCODERS
from relcore.base.settings import settings_of
from relcore.bootstrap.spec import BootstrapSpec
from relcore.cli import COMMANDS, _parser, main
from relcore.commands.options import values_of
from relcore.compare.audit import PairAudit
from relcore.compare.exact import ExactScores
from relcore.drift.check import DriftCheck
from relcore.invert.recovery import InversionSpec
from relcore.migrate.migration import Migration
from relcore.scores.comparison import ProjectionSpec
from relcore.stitch.stitching import StitchSpec

ROOT = Path(__file__).parents[3]
HEAVY = ("torch", "sklearn", "dask", "distributed", "streamlit", "plotly", "matplotlib")


@pytest.mark.parametrize("arguments", [["--help"], *([name, "--help"] for name in COMMANDS)], ids=" ".join)
def test_help_lists_commands_and_an_example_and_loads_nothing_heavy(arguments):
    heavy = ("numpy", *HEAVY) if arguments == ["--help"] else HEAVY
    script = f"""
import json, sys
from relcore.cli import main
try:
    main({arguments})
except SystemExit as end:
    print(json.dumps([end.code, [name for name in {heavy} if name in sys.modules]]))
"""
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    *help_lines, last = ran.stdout.splitlines()
    assert json.loads(last) == [0, []]
    text = "\n".join(help_lines)
    if arguments == ["--help"]:
        assert all(f"\n  {name}" in text for name in COMMANDS)
    else:
        assert f"\nexample:\n  relscope {arguments[0]} " in text


def _help_of(command, capsys, *arguments):
    with pytest.raises(SystemExit):
        main([command, *arguments, "--help"])
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("compare a b", ExactScores),
        ("project a -o b", ProjectionSpec),
        ("audit a b", PairAudit),
        ("bootstrap a b", BootstrapSpec),
        ("drift a b", DriftCheck),
        ("invert a b", InversionSpec),
        ("migrate a b", Migration),
        ("stitch a b", StitchSpec),
    ],
)
def test_options_and_their_defaults_are_the_fields_of_the_task(command, kind, capsys):
    values = values_of(_parser(command.split()).parse_args(command.split()), kind)
    assert len(values) > 3
    for name, one in settings_of(kind).items():
        if name in values and not is_dataclass(one.kind):
            assert values[name] in (one.start(), None)  # None: depends on the spaces
    text = " ".join(_help_of(command.split()[0], capsys).split()).replace("- ", "-")
    assert all(
        choice in text for one in settings_of(kind).values() if one.name in values for choice in one.choices
    )


def test_encoders_are_listed_with_their_short_names_and_each_setting_is_an_option(capsys):
    from dataclasses import fields

    from relcore.encoders.encoder import encoder_class

    text = " ".join(_help_of("encode", capsys).split()).replace("- ", "-")
    assert all(
        name in text
        for name in (*ENCODERS, "mlp", "cnn", "residual", "vit", "tfidf", "words", "gcn2", "gin", "timm:NAME")
    )
    assert "--epochs" not in text
    for name in ENCODERS:
        text = " ".join(_help_of("encode", capsys, "--encoder", name).split()).replace("- ", "-")
        options = [field.name.replace("n_components", "dimensions") for field in fields(encoder_class(name))]
        assert re.findall(r" --([a-z-]+) VALUE", text) == [option.replace("_", "-") for option in options]
    text = " ".join(_help_of("encode", capsys, "--encoder", "cnn").split()).replace("- ", "-")
    assert "--epochs VALUE small-vision: Passes over the training rows; default: 12" in text
    assert (
        "--architecture VALUE small-vision: Architectures; one of mlp, cnn, residual, vit; default: cnn"
        in text
    )
    assert "--dropout" not in text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [([], "required: command"), (["draw"], "invalid choice: 'draw'"), (["compare", "a"], "TARGET")],
)
def test_what_the_parser_refuses_has_code_2(arguments, told, capsys):
    assert main(arguments) == 2
    assert told in capsys.readouterr().err
