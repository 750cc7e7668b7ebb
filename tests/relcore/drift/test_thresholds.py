"""Files of thresholds: TOML and JSON, the defaults, and what is refused."""

from __future__ import annotations

import tomllib

import pytest

from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.drift.check import (
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


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("t.toml", "[everything_new]\nchrun = 0.3", "expected settings among 'churn', 'rho'.*got 'chrun'"),
        ("t.toml", "[everything_new]\nchurn = 1.5", "churn: expected a share from 0 to 1, got 1.5"),
        ("t.toml", "[everything_new]\nchurn = nan", "finite"),
        ("t.toml", "a = " + "[" * 20_000, "invalid TOML"),
        ("t.toml", "[everything_new]\nchurn = " + "9" * 5000, "invalid TOML"),
        ("t.toml", "# " + "x" * 70_000, "at most 64 KB"),
        ("t.yaml", "everything_new:", "as a .toml file, got .yaml"),
    ],
)
def test_files_that_are_refused(tmp_path, name, text, told):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(SpaceError, match=told):
        read_thresholds(tmp_path / name)
