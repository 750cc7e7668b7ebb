"""completion: the completion script that shtab writes for a shell from the commands' parsers."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from relcore.base.settings import Setting, setting
from relcore.commands.arguments import CommandOptions

_FILES = ("FILE", "FOLDER", "SPACE", "PLACE", "SOURCE", "TARGET", "OLD", "NEW", "ADAPTER", "DATASET")


@dataclass
class CompletionOptions:
    shell: str = setting(choices=("bash", "zsh", "fish"), help="the shell that reads it")


OPTIONS = CommandOptions(
    (CompletionOptions,),
    "It completes the names of commands, options and choices, and files where one is expected. Make it"
    " again after an update.",
    (
        "bash > ~/.local/share/bash-completion/completions/relscope",
        "zsh > ~/.zfunc/_relscope       # with fpath+=~/.zfunc before compinit",
        "fish > ~/.config/fish/completions/relscope.fish",
    ),
)


def run(options: argparse.Namespace) -> None:
    import shtab

    from relcore.commands.parser import parser_of

    parser = parser_of((), every=True)
    for command in dict.fromkeys(parser.commands.choices.values()):
        for action in command._actions:
            declared = getattr(action, "setting", Setting())
            if declared.choices and not declared.is_tuple:
                action.choices = [*declared.choices]
            elif any(name in _FILES for name in str(action.metavar).split("|")):
                action.complete = shtab.FILE
    print(shtab.complete(parser, options.shell))
