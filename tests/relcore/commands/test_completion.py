"""The scripts of `relscope completion`, and what bash completes by its one."""

import shutil
import subprocess

import pytest

from relcore.base.names import STRATEGIES
from relcore.cli import COMMANDS, parser_of


@pytest.fixture
def complete(run, tmp_path):
    """What bash offers for the last of some words."""
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    (tmp_path / "script").write_text(run("completion", "bash"))

    def complete(*words):
        asked = 'source ./script; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()\n'
        asked += 'f=$(complete -p relscope | sed -E "s/.* -F ([^ ]+).*/\\1/")\n'
        asked += '"$f" relscope "${COMP_WORDS[COMP_CWORD]}" "" 2>/dev/null; printf "%s\\n" "${COMPREPLY[@]}"'
        ran = subprocess.run(
            ["bash", "-c", asked, "bash", *words], cwd=tmp_path, capture_output=True, text=True
        )
        return set(map(str.strip, ran.stdout.split("\n"))) - {""}

    return complete


def test_bash_completes_commands_options_choices_and_files(complete, tmp_path):
    assert complete("relscope", "") >= set(COMMANDS)
    assert complete("relscope", "comp") == {"compare", "completion"}
    options = {flag for action in parser_of(["compare"]).called._actions for flag in action.option_strings}
    assert complete("relscope", "compare", "--") == {flag for flag in options if flag.startswith("--")}
    assert complete("relscope", "compare", "--anch") == {"--anchors"}
    assert complete("relscope", "compare", "--strategy", "") == set(STRATEGIES)
    assert complete("relscope", "passport", "") == {"make", "check", "bridge"}
    (tmp_path / "first.npy").touch()
    assert complete("relscope", "compare", "fi") == {"first.npy"}
    assert complete("relscope", "link", "a", "b", "--pairs", "fi") == {"first.npy"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_script_names_every_command_and_option(run, shell):
    script = run("completion", shell)
    for name in COMMANDS:
        assert name in script
    for flag in ("pair-by-row", "save-anchors", "print-thresholds", "queries-old"):
        assert flag in script
