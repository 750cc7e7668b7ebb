"""Every table and figure of the three papers has its row, and what it prints is there as printed."""

import pytest

from relcore.base.errors import SpaceError
from relcore.papers.published import WORDS, Cell, PublishedTable
from relcore.papers.rows import find_row, load_rows
from relcore.papers.runs import RUNS

# From the captions of the papers.
CAPTIONS = {"relative": (16, 8), "inverse": (2, 7), "bootstrapping": (7, 0)}


def test_every_table_and_figure_has_its_row():
    expected = {
        (paper, kind, number)
        for paper, counts in CAPTIONS.items()
        for kind, count in zip(("Table", "Figure"), counts, strict=True)
        for number in range(1, count + 1)
    }
    rows = load_rows()
    assert {(row.paper.id, row.kind, row.number) for row in rows} == expected
    assert len(rows) == len(expected) == 40


def test_tables_print_numbers_with_units_and_figures_say_where_there_are_none():
    for row in load_rows():
        assert row.shows.endswith("."), row.id
        if row.published is None:
            assert (row.kind, bool(row.note)) == ("Figure", True), row.id
            continue
        assert row.published.setting, row.id
        assert row.published.lines, row.id
        for _, cells in row.published.lines:
            for cell, measure in zip(cells, row.published.measures, strict=True):
                assert measure.unit, row.id
                assert (cell.value is not None) == (measure.unit not in WORDS and cell.text != "–"), (
                    row.id,
                    cell,
                )


def test_what_has_no_numbers_here_says_why():
    for row in load_rows():
        drawing = row.note.startswith("A drawing")
        assert row.runs or row.needs or drawing, row.id
        assert not row.runs or row.differs, row.id


@pytest.mark.parametrize(
    ("row", "line", "measure", "text"),
    [
        ("relative-table-1", ("relative", "Word2Vec", "FastText"), "MRR", "0.98"),
        ("relative-table-3", ("AE", "Rel", "Stitch"), "CIFAR-100", "18.03 ± 12.46"),
        (
            "relative-table-6",
            ("vit-base-resnet50-384", "vit-base-patch16-224"),
            "CIFAR-100 coarse: absolute",
            "4.69 ± 0.07",
        ),
        ("relative-table-13", ("ja", "es"), "relative, translated anchors: F1", "70.37 ± 6.94"),
        ("relative-table-16", ("rexnet-100", "vit-small-patch16-224"), "relative", "44.11 ± 0.84"),
        ("relative-figure-3", ("mean over models, over epochs",), "Pearson", "0.955"),
        ("inverse-table-2", ("text", "TREC"), "zero-shot", "0.73 ± 0.09"),
        ("bootstrapping-table-5", ("AO", "FT", "W2V"), "Jaccard", "0.49 ± 0.00"),
    ],
)
def test_numbers_are_those_of_the_paper(row, line, measure, text):
    table = find_row(row).published
    column = [one.name for one in table.measures].index(measure)
    (cells,) = [cells for labels, cells in table.lines if labels == line]
    assert cells[column].text == text


def test_rows_name_runs_that_exist():
    named = {name for row in load_rows() for name in row.run_names()}
    assert named == set(RUNS)


def test_a_cell_reads_value_and_deviation():
    assert Cell.of("88.08 ± 1.37", "%") == Cell("88.08 ± 1.37", 88.08, 1.37)
    assert Cell.of("-0.02", "cosine").value == -0.02
    assert Cell.of("-", "%").value is None
    assert Cell.of("Adam, SGD", "setting").value is None


def test_what_is_no_number_or_no_whole_line_is_refused():
    with pytest.raises(SpaceError, match="expected a number in a column of unit '%', got 'about 3'"):
        Cell.of("about 3", "%")
    record = {"setting": "", "labels": ["a"], "measures": [{"name": "F1", "unit": "%"}], "rows": [["x"]]}
    with pytest.raises(SpaceError, match="expected 2 entries in a line"):
        PublishedTable.from_json(record)
    with pytest.raises(SpaceError, match="row: expected one of"):
        find_row("relative-table-99")
