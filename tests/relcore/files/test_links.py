import pandas as pd
import pytest

from relcore.base.errors import SpaceError
from relcore.files.links import LINK_FILES, known_pairs, read_links, write_links


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("name\na\n", "expected two columns of ids, source and target"),
        ("source,target\na,\n", "expected an id in every cell, got 1 rows without, first row 0"),
        ("source,target,kind\na,b,link\n", "write 'confirmed' as the kind of links that are right"),
    ],
)
def test_a_table_without_pairs_is_refused(tmp_path, content, told):
    (tmp_path / "links.csv").write_text(content, encoding="utf-8")
    with pytest.raises(SpaceError, match=told):
        known_pairs(tmp_path / "links.csv")


def test_links_of_earlier_versions_are_read_and_cut_ones_refused(tmp_path):
    path = tmp_path / "pairs.tsv"
    text = "source\ttarget\tfound\tprecision\na\tb\tseed\t1.0\n"
    path.write_text(text)
    assert known_pairs(path) == (("a", "b"),)
    path.write_text(text + "c\td\n")
    with pytest.raises(SpaceError, match="line 3: expected 4 cells as in line 1, got 2; mend or remove"):
        known_pairs(path)
    path.rename(tmp_path / "pairs.txt")
    with pytest.raises(SpaceError, match=r"expected links in a \.tsv file, got '\.txt'; rename it"):
        known_pairs(tmp_path / "pairs.txt")


ODD = [
    "a\tb",
    'a"b',
    '"',
    "a\nb",
    "a\rb",
    "a\r\nb",
    "1999-01-01",
    "1999-01-01T10:00:00Z",
    "007",
    "NA",
    "\ufeffa",
    " a ",
]


@pytest.mark.parametrize("suffix", LINK_FILES)
def test_links_are_read_as_they_were_written(tmp_path, suffix):
    for one in ODD:  # alone, as a column of dates or numbers
        table = pd.DataFrame({"source": [one], "target": [one], "kind": "seed", "precision": 0.5})
        write_links(tmp_path / f"links{suffix}", table)
        assert read_links(tmp_path / f"links{suffix}") == (((one, one),), ("seed",))
    if suffix in (".csv", ".tsv"):
        with pytest.raises(SpaceError, match="expected ids without zero bytes"):
            write_links(tmp_path / f"links{suffix}", table.assign(source="a\0"))
