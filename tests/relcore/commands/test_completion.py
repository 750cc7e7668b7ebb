"""The scripts of `relscope --print-completion`, and what bash completes by its one."""

import shutil
import subprocess

import pytest

from relcore.base.names import COMMANDS, STRATEGIES
from relcore.cli import main, parser_of
from relcore.commands.completion import SHELLS, script


@pytest.fixture(scope="module")
def scripts():
    """Shell → script, written once, since it needs the parsers of all commands."""
    return {shell: script(parser_of((), every=True), shell) for shell in SHELLS}


@pytest.fixture
def complete(scripts, tmp_path):
    """``complete(*words)``: the completions that bash offers for the last word."""
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    (tmp_path / "script").write_text(scripts["bash"], encoding="utf-8")

    def complete(*words):
        asked = 'source ./script; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()\n'
        asked += 'f=$(complete -p relscope | sed -E "s/.* -F ([^ ]+).*/\\1/")\n'
        asked += '"$f" relscope "${COMP_WORDS[COMP_CWORD]}" "" 2>/dev/null; printf "%s\\n" "${COMPREPLY[@]}"'
        ran = subprocess.run(
            ["bash", "-c", asked, "bash", *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        return set(map(str.strip, ran.stdout.split("\n"))) - {""}

    return complete


def test_bash_completes_commands_options_choices_and_files(complete, tmp_path):
    assert complete("relscope", "") >= set(COMMANDS)
    assert complete("relscope", "comp") == {"compare"}
    options = {flag for action in parser_of(["compare"]).called._actions for flag in action.option_strings}
    assert complete("relscope", "compare", "--") == {flag for flag in options if flag.startswith("--")}
    assert complete("relscope", "compare", "--anch") == {"--anchors"}
    assert complete("relscope", "compare", "--strategy", "") == set(STRATEGIES)
    assert complete("relscope", "passport", "") == {"make", "check"}
    (tmp_path / "first.npy").touch()
    assert complete("relscope", "compare", "fi") == {"first.npy"}
    assert complete("relscope", "link", "a", "b", "--pairs", "fi") == {"first.npy"}


@pytest.mark.parametrize("shell", SHELLS)
def test_each_script_names_every_command_and_option(scripts, shell):
    for name in COMMANDS:
        assert name in scripts[shell]
        for action in parser_of([name]).called._actions:
            if action.option_strings and action.help != "==SUPPRESS==":
                assert action.option_strings[-1].lstrip("-") in scripts[shell]
    if shutil.which(shell):
        assert subprocess.run([shell, "-n"], input=scripts[shell], text=True, check=False).returncode == 0


def test_the_command_prints_the_script(scripts, capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--print-completion", "bash"])
    assert capsys.readouterr().out == scripts["bash"]


def test_another_shell_is_refused_with_those_that_are_known(refuse):
    assert "choose from" in refuse("--print-completion csh")
