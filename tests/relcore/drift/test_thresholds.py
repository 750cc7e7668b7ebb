"""Files of thresholds: TOML and JSON, the defaults, and what is refused."""

from __future__ import annotations

import json
import tomllib

import pytest

from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.drift.verdict import (
    EverythingNew,
    NewQueries,
    Thresholds,
    as_toml,
    default_file,
    read_thresholds,
)


def test_the_bundled_file_holds_the_defaults_with_a_word_on_each():
    assert records.to_json(Thresholds()) == tomllib.loads(default_file())


@pytest.mark.parametrize(
    "made", [Thresholds(), Thresholds(EverythingNew(rho=1e-7), NewQueries(lost=1, churn=0.3))]
)
def test_thresholds_are_written_as_they_are_read(tmp_path, made):
    (tmp_path / "t.toml").write_text(as_toml(made), encoding="utf-8")
    assert read_thresholds(tmp_path / "t.toml") == made


def test_what_a_file_leaves_out_takes_the_default(tmp_path):
    (tmp_path / "t.toml").write_text("[everything_new]\nchurn = 0.3\n", encoding="utf-8")
    (tmp_path / "t.json").write_text(json.dumps({"new_queries": {"lost": 0}}), encoding="utf-8")
    assert read_thresholds(tmp_path / "t.toml") == Thresholds(everything_new=EverythingNew(churn=0.3))
    assert read_thresholds(tmp_path / "t.json") == Thresholds(new_queries=NewQueries(lost=0))


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("t.toml", "[everything_new]\nchrun = 0.3", "expected settings among 'churn', 'rho'.*got 'chrun'"),
        (
            "t.toml",
            "[everything]\nchurn = 0.3",
            "expected settings among 'everything_new', 'new_queries', got 'everything'",
        ),
        ("t.toml", "[everything_new]\nchurn = '0.3'", "expected a number, got '0.3'"),
        ("t.toml", "[everything_new]\nchurn = 1.5", "churn: expected a share from 0 to 1, got 1.5"),
        ("t.toml", "[everything_new]\nchurn = nan", "finite"),
        ("t.toml", "[everything_new]\nchurn = 1" + "0" * 40, "64 bits"),
        ("t.toml", "a = " + "[" * 20_000, "invalid TOML"),
        ("t.toml", "# " + "x" * 70_000, "at most 64 KB"),
        ("t.json", '{"new_queries": {"lost": -1}}', "lost: expected a share from 0 to 1"),
        ("t.yaml", "everything_new:", "as a .toml or .json file, got .yaml"),
    ],
)
def test_files_that_are_refused(tmp_path, name, text, told):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(SpaceError, match=told):
        read_thresholds(tmp_path / name)


@pytest.mark.parametrize("name", ["gone.toml", "gone.json"])
def test_a_file_that_is_not_there(tmp_path, name):
    with pytest.raises(SpaceError, match="no such file"):
        read_thresholds(tmp_path / name)
