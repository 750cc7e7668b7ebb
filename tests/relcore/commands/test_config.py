"""relscope.toml sets defaults of the same options that are typed, and nothing that a folder must not decide."""

import json

import pytest

from relcore.cli import parser_of
from relcore.commands import config


@pytest.fixture
def write(tmp_path):
    return (tmp_path / "relscope.toml").write_text


def parsed(*arguments):
    return parser_of(arguments).parse_args(arguments)


def test_defaults_are_read_as_what_is_typed_and_typing_wins(write):
    typed = parsed(
        "compare", "a", "b", "--anchors", "50", "-k", "7", "--metrics", "mrr,cka", "--no-center", "--exact"
    )
    write(
        '[compare]\nanchors = 50\nk = 7\nmetrics = ["mrr", "cka"]\ncenter = false\nexact = true\n[link]\nrows = 90\n'
    )
    assert vars(parsed("compare", "a", "b")) == vars(typed)
    assert parsed("compare", "a", "b", "--anchors", "8", "--center").anchors == "8"
    assert parsed("link", "a", "b").rows == 90
    assert parsed("encode", "digits", "--encoder", "mlp").encoder == ["mlp"]
    write('[encode]\nencoder = ["mlp", "cnn"]\ntrain-rows = 90\n')
    encode = parsed("encode", "digits")
    assert (encode.encoder, encode.train_rows) == (["mlp", "cnn"], "90")


def test_the_numbers_are_those_of_the_option(files, write, run):
    typed = run("compare", *files, "--anchors", "9", "--json")
    write("[compare]\nanchors = 9\n")
    assert run("compare", *files, "--json") == typed


def test_config_and_help_show_what_is_set(write, run, tmp_path, capsys):
    assert run("config").startswith("No relscope.toml in ")
    assert json.loads(run("config", "--json")).items() >= {"file": None, "defaults": []}.items()
    write("[compare]\nanchors = 50\ncenter = false\n")
    assert (
        json.loads(run("config", "--json")).items()
        >= {
            "file": str(tmp_path / "relscope.toml"),
            "defaults": [
                {"command": "compare", "option": "--anchors", "default": "50"},
                {"command": "compare", "option": "--center", "default": "false"},
            ],
        }.items()
    )
    with pytest.raises(SystemExit):
        parsed("compare", "--help")
    assert f"{tmp_path / 'relscope.toml'} sets: --anchors 50, --center false" in " ".join(
        capsys.readouterr().out.split()
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[compare]\nanchrs = 3", "[compare] anchrs: expected an option of relscope compare; did you mean 'anchors'?"),
        ("[compar]\nanchors = 3", "got [compar]; did you mean 'compare'?"),
        ("anchors = 3", "got anchors outside of a table"),
        ("[compare]\nk = 0", "[compare] k: expected a whole number from 1, got 0"),
        ('[compare]\nstrategy = "best"', "[compare] strategy: expected one of random, "),
        ("[compare]\nexact = 1", "[compare] exact: expected true or false, got 1"),
        ("[compare]\nk = {}", "[compare] k: expected a number, a text or a list of them"),
        ("[compare", "expected defaults as TOML, got "),
        ("[compare]\nk = 1\nk = 2", "expected defaults as TOML, got "),
        pytest.param("[compare]\nk = " + "9" * 5000, "expected defaults as TOML, got ", id="long"),
        pytest.param("[compare]\nk = " + "[" * 5000, "expected defaults as TOML, got ", id="deep"),
        ("[compare]\nk = nan", "[compare] k: expected a whole number from 1, got 'nan'"),
        pytest.param("# " + "x" * (1 << 20), "expected defaults as TOML, got more than 1 MB", id="large"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line_with_its_place(write, refuse, text, told):
    write(text)
    err = refuse("compare", "a.npy", "b.npy")
    assert "relscope.toml: " in err
    assert told in err


@pytest.mark.parametrize(
    "line",
    ['[compare]\nrecipe = "x.json"', '[link]\noutput = "x.csv"', '[migrate]\nplan = "x.md"', '[compare]\nscheduler = "tcp://h:1"',
     '[compare]\nstore = "x"', "[app]\nshare = true", "[app]\nno-token = true", '[project]\nsave-anchors = "x"'],
)  # fmt: skip
def test_a_folder_does_not_decide_what_is_written_or_who_enters(write, refuse, line):
    write(line)
    name = line[1 : line.index("]")]
    assert f"expected an option of relscope {name}" in refuse(name, "a.npy", "b.npy")


def test_the_nearest_file_up_to_the_home_folder_counts(tmp_path, monkeypatch):
    inner = tmp_path / "home" / "project" / "deep"
    inner.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "relscope.toml").write_text("")
    monkeypatch.chdir(inner)
    assert config.place() is None  # above the home folder
    for folder in (tmp_path / "home", inner.parent, inner):
        (folder / "relscope.toml").write_text("")
        assert config.place() == folder / "relscope.toml"
    monkeypatch.setenv("HOME", str(tmp_path / "other"))
    (inner / "relscope.toml").unlink()
    assert config.place() is None  # outside of the home folder only that of the working folder
