"""The list of commands is there at once, and what help lists is what there is."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from relcore.base.names import ENCODERS, INVERSES, METHODS, ROUTES, SIMILARITIES, STITCH_METRICS, STRATEGIES
from relcore.cli import COMMANDS, main

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


def test_lists_in_help_are_those_of_the_core(capsys):
    listed = {
        "stitch": [METHODS, STRATEGIES, STITCH_METRICS],
        "invert": [INVERSES, ROUTES],
        "compare": [SIMILARITIES],
    }
    for command, lists in listed.items():
        text = " ".join(_help_of(command, capsys).split())
        for names in lists:
            assert all(name in text.replace("- ", "-") for name in names)  # a name may break at its hyphen


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
