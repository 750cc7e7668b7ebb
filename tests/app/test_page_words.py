"""No error on a page names an argument that only a script could pass; what files are called is left as it
is.
"""

import re
from pathlib import Path

import numpy as np
import pytest

from app.plain_text import PHRASES, in_page_words
from relcore.base.errors import SpaceError
from relcore.files.columns import Choices
from relcore.files.reading import load_space
from relcore.files.tables import column_roles
from relcore.spaces.space import LatentSpace

ARGUMENT = re.compile(r"\b\w+_column\b|\bmax_bytes\b|\w+=[…'\w]|\(ignore\)|\bignore:")
CORE = "\n".join(
    path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parents[2] / "relcore").rglob("*.py"))
)


def load(text, **settings):
    def fails(folder):
        (folder / "t.csv").write_text(text)
        load_space(folder / "t.csv", **settings)

    return fails


def roles(text, **choices):
    def fails(folder):
        (folder / "t.csv").write_text(text)
        column_roles(folder / "t.csv", Choices(**choices)).check("t.csv")

    return fails


def space(**settings):
    return lambda folder: LatentSpace(**{"vectors": np.eye(2), "ids": ["a", "b"]} | settings)


FAULTS = {
    "a mixed column": roles("id,x\na,1\nb,?\n"),
    "two texts": roles("p,q,x\na,b,1\nc,d,2\n"),
    "two ids": roles("id,ids,x\na,b,1\n"),
    "one column twice": roles("id,x\na,1\n", label_column="id", id_column="id"),
    "left out and chosen": roles("id,x\na,1\n", id_column="id", ignore=("id",)),
    "not a column": roles("id,x\na,1\n", count_column="gone"),
    "duplicates": space(ids=["a", "a"]),
    "not finite": space(vectors=[[1, np.nan], [1, 2]]),
    "too large": load("id,x\n" + "".join(f"r{row},{row}\n" for row in range(100)), max_bytes=1000),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_errors_speak_the_page_s_words(fault, tmp_path):
    with pytest.raises(SpaceError) as caught:
        FAULTS[fault](tmp_path)
    assert ARGUMENT.search(str(caught.value))  # as a script is told
    assert not ARGUMENT.search(in_page_words(caught.value)), in_page_words(caught.value)


def test_names_in_quotes_stay():
    told = "t.csv: expected one of 'id_column', 'text_column', got 'x'"
    assert in_page_words(told) == told


@pytest.mark.parametrize("phrase", [phrase for phrase, _ in PHRASES])
def test_every_phrase_is_one_that_the_core_uses(phrase):
    word = max(re.findall(r"[a-z_]+(?:=…)?", phrase), key=lambda one: ("_" in one or "=" in one, len(one)))
    assert word in CORE
