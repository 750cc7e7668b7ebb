"""Every figure in README and SECURITY has a row in CLAIMS.md, and every promise of SECURITY names its tests."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CODE = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)", re.DOTALL)
YEARS_AND_NAMES = re.compile(r"\b(19|20)\d\d\b|\b\d*[A-Za-z_]\w*")  # such as Word2Vec


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)


CLAIMS = [re.split(r"\s*\|\s*", line)[1:-1] for line in read("CLAIMS.md").splitlines() if line[:3] == "| `"]


@pytest.mark.parametrize("name", ["README.md", "SECURITY.md"])
def test_every_figure_has_a_row(name):
    text = flat(CODE.sub("", read(name)))
    for words, *_ in CLAIMS:
        text = text.replace(words.strip("`"), "")
    assert re.findall(r".{0,30}\d.{0,30}", YEARS_AND_NAMES.sub("…", text)) == []


def test_the_words_and_sources_of_every_row_are_there():
    texts = flat(read("README.md") + read("SECURITY.md"))
    assert [words for words, *_ in CLAIMS if words.strip("`") not in texts] == []
    sources = [path for _, made_by, _ in CLAIMS for path in re.findall(r"`([^`]+)`", made_by)]
    assert [path for path in sources if not (ROOT / path).exists()] == []


def test_every_promise_names_its_tests():
    promised = read("SECURITY.md").partition("## What is promised\n")[2].partition("\n## ")[0]
    promises = [text for text in promised.split("\n\n") if text.startswith("**")]
    tests = [re.findall(r"`(tests/[^`]+)`", text.rpartition("[")[2]) for text in promises]
    assert len(promises) > 10
    assert [text[:60] for text, paths in zip(promises, tests, strict=True) if not paths] == []
    assert [path for paths in tests for path in paths if not (ROOT / path).exists()] == []
