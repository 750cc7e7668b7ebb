"""The completion script of a shell, which shtab writes from the parsers of all commands."""

from __future__ import annotations

import argparse

from relcore.base.settings import Setting

SHELLS = ("bash", "zsh", "fish")
_FILES = ("FILE", "FOLDER", "SPACE", "PLACE", "SOURCE", "TARGET", "OLD", "NEW", "ADAPTER", "DATASET", "ROWS")


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script that completes commands, options, choices and files in a shell, one of `SHELLS`. The parser
    has the options of every command.
    """
    import shtab

    [commands] = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    for command in commands.choices.values():
        for action in command._actions:
            declared = getattr(action, "setting", Setting())
            if declared.choices and not declared.is_tuple:
                action.choices = [*declared.choices]
            elif any(name in _FILES for name in str(action.metavar).split("|")):
                action.complete = shtab.FILE
    return shtab.complete(parser, shell)
