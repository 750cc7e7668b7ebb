"""Cheaper indexes: what a form must equal, what it must lose, and the caution about cut vectors."""

import numpy as np
import pytest

from relcore.base.rows import unit_rows
from relcore.migrate.compression import FORMS, CheaperIndex
from relcore.migrate.evaluate import search
from relcore.migrate.migration import Migration
from relcore.spaces.space import LatentSpace
from tests.relcore.migrate.planted import migration_spaces


@pytest.fixture
def rows(rng):
    """Rows (300, 32) on 8 axes that lie across all dimensions."""
    turned = rng.normal(size=(300, 8)) @ rng.normal(size=(8, 32))
    return unit_rows(turned)


def overlap(form, rows):
    codes, queries = FORMS[form](rows), rows[:50]
    exact, found = search(queries, rows, 10), search(codes.queries(queries), codes.rows, 10)
    return np.mean([len({*a} & {*b}) / 10 for a, b in zip(exact, found, strict=True)])


def test_principal_components_keep_what_first_dimensions_lose(rows):
    assert overlap("pca-half", rows) == 1.0  # 16 of 32 dimensions hold the 8 axes
    assert overlap("pca-quarter", rows) > 0.99
    assert overlap("int8", rows) > 0.97
    assert overlap("first-quarter", rows) < 0.85
    assert 0.3 < overlap("binary", rows) < overlap("int8", rows)
    sizes = [FORMS[form](rows).n_bytes for form in FORMS]
    assert sizes == [32, 4, 64, 32, 64, 32]


@pytest.mark.parametrize("adapter", ["inverse", "whitened"])
def test_each_option_on_each_form_by_the_judgements(adapter):
    spaces, judgements = migration_spaces(n=300, n_queries=40, old_topics=8)
    migration = Migration(judgements=judgements, sizes=(), adapter=adapter, n_candidates=30)
    result = migration.run(spaces)
    found = CheaperIndex(migration=migration, adapter=adapter, weight=result.weight).run(spaces)
    table = {(one.option, one.form): one for one in found.rows}
    assert len(table) == 5 * len(FORMS)
    for option in ("keep", "bridge", "re-embed"):
        assert table[option, "int8"].score == pytest.approx(result.option(option).value, abs=0.01)
        assert table[option, "binary"].score == pytest.approx(result.option(option).value, abs=0.05)
        assert table[option, "first-quarter"].change.high < 0
    assert table["keep", "int8"].row_bytes == 24
    assert table["twice", "int8"].row_bytes == (24 if adapter == "inverse" else 48)
    assert table["cascade", "pca-half"].change.value > table["keep", "first-quarter"].change.value
    assert "cut only vectors of models that were trained for it" in found.cautions[0]
    assert "first d/4" in str(found.report().tables[0].shown)
    assert found.best("keep").change.high >= 0


def test_full_vectors_that_are_few_axes_first_are_cut_without_a_caution():
    """Rows as a model trained for it gives them: all is in the first dimensions."""
    spaces, judgements = migration_spaces(n=300, n_queries=40, noise=0.0)
    cut = []
    for one in spaces:
        width = one.dimension
        padded = np.hstack([one.vectors, np.full((len(one), 3 * width), 1e-6)])
        cut.append(LatentSpace(padded, one.ids, name=one.name))
    migration = Migration(judgements=judgements, sizes=(), adapter="in-place")
    assert CheaperIndex(migration=migration, adapter="in-place").run(cut).cautions == ()
