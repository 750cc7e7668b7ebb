"""Every figure in the README, in docs and in SECURITY.md has a row in CLAIMS.md, whose words and sources are there; findings of studies are
written from their runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CODE = re.compile(
    r"```.*?```|^\| `.*?$|`[^`]*`|\]\([^)]*\)", re.DOTALL | re.MULTILINE
)  # and rows of tables of names
YEARS_AND_NAMES = re.compile(r"\b(19|20)\d\d\b|\b\d*[A-Za-z_]\w*")  # such as Word2Vec


TEXTS = ["README.md", "SECURITY.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def claims() -> list[list[str]]:
    return [
        re.split(r"\s*\|\s*", line)[1:-1]
        for line in read("CLAIMS.md").splitlines()
        if line[:3] == "| `" and "`: " not in line
    ]


def uncovered(text: str, words: list[str]) -> list[str]:
    text = re.sub(r"\s+", " ", CODE.sub("", text))
    for some in words:
        text = text.replace(some, "")
    return re.findall(r".{0,30}\d.{0,30}", YEARS_AND_NAMES.sub("…", text))


@pytest.mark.parametrize("name", TEXTS)
def test_every_figure_has_a_row(name):
    assert uncovered(read(name), [row[0].strip("`") for row in claims()]) == []


def test_a_figure_changed_by_hand_has_none():
    words = [row[0].strip("`") for row in claims()]
    assert uncovered(read("docs/new.md").replace("438 everyday", "439 everyday"), words) != []


def test_the_words_and_sources_of_every_row_are_there():
    texts = re.sub(r"\s+", " ", "".join(map(read, TEXTS)))
    assert len(claims()) > 30
    assert [row[0] for row in claims() if row[0].strip("`") not in texts] == []
    sources = [path for row in claims() for path in re.findall(r"`([^`]+)`", row[1])]
    assert [path for path in sources if not (ROOT / path).exists()] == []


def test_every_promise_names_its_tests():
    promised = read("SECURITY.md").partition("## What is promised\n")[2].partition("\n## ")[0]
    promises = [text for text in promised.split("\n\n") if text.startswith("**")]
    tests = [re.findall(r"`(tests/[^`]+)`", text.rpartition("[")[2]) for text in promises]
    assert len(promises) > 10
    assert [text[:60] for text, paths in zip(promises, tests, strict=True) if not paths] == []
    assert [path for paths in tests for path in paths if not (ROOT / path).exists()] == []
