"""completion: what shtab makes of the commands' parsers, for one shell."""

from __future__ import annotations

import argparse

from relcore.base.settings import Setting

SHELLS = ("bash", "zsh", "fish")
_FILES = ("FILE", "FOLDER", "SPACE", "PLACE", "SOURCE", "TARGET", "OLD", "NEW", "ADAPTER", "DATASET")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description += (
        " It completes the names of commands, options and choices, and files where one is expected. Make it"
        " again after an update."
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell that reads it")
    parser.epilog = (
        "example:\n"
        "  relscope completion bash > ~/.local/share/bash-completion/completions/relscope\n"
        "  relscope completion zsh > ~/.zfunc/_relscope       # with fpath+=~/.zfunc before compinit\n"
        "  relscope completion fish > ~/.config/fish/completions/relscope.fish"
    )


def run(options: argparse.Namespace) -> None:
    import shtab

    from relcore.commands.parser import parser_of

    parser = parser_of((), every=True)
    for command in dict.fromkeys(parser.commands.choices.values()):
        for action in command._actions:
            setting = getattr(action, "setting", Setting())
            if setting.choices and not setting.is_tuple:
                action.choices = [*setting.choices]
            elif any(name in _FILES for name in str(action.metavar).split("|")):
                action.complete = shtab.FILE
    print(shtab.complete(parser, options.shell))
