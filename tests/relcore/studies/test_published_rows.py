"""Every table and figure of the three papers has its row, and what it prints is there as printed."""

import pytest

from relcore.studies.papers import find_row, load_rows

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


@pytest.mark.parametrize(
    ("row", "line", "measure", "text"),
    [
        ("relative-table-1", ("relative", "Word2Vec", "FastText"), "MRR", "0.98"),
        ("relative-table-3", ("AE", "Rel", "Stitch"), "CIFAR-100", "18.03 ± 12.46"),
        ("inverse-table-2", ("text", "TREC"), "zero-shot", "0.73 ± 0.09"),
        ("bootstrapping-table-5", ("AO", "FT", "W2V"), "Jaccard", "0.49 ± 0.00"),
    ],
)
def test_numbers_are_those_of_the_paper(row, line, measure, text):
    table = find_row(row).published
    column = [one.name for one in table.measures].index(measure)
    (cells,) = [cells for labels, cells in table.lines if labels == line]
    assert cells[column].text == text
