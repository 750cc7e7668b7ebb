"""The table of translation comes back from its recipe, and a wrong recipe is refused."""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, load
from relcore.compare.scene import exportable
from relcore.invert.inversion import TranslationSpec, TranslationTable


@pytest.fixture
def figure(tmp_path, rng):
    vectors, specs = rng.normal(size=(90, 6)), []
    for name in ("first", "second"):
        path = tmp_path / f"{name}.npz"
        labels = np.array([str(i % 2) for i in range(90)])
        ids = np.array([f"r{row}" for row in range(90)])
        np.savez(path, vectors=vectors + 0.2 * rng.normal(size=vectors.shape), ids=ids, labels=labels)
        specs.append(SpaceSpec("file", str(path)))
    spaces = {"spaces": tuple(specs), "digests": tuple(load(spec).digest for spec in specs)}
    spec = TranslationSpec(("absolute", "procrustes"))
    anchors = tuple(f"r{row}" for row in range(30))
    return TranslationTable(**spaces, anchors=anchors, metric="mrr", spec=spec).draw()


def test_drawn_again_it_holds_the_same_numbers(figure):
    again = exportable(figure.recipe)
    assert again.bytes("csv") == figure.bytes("csv")
    assert b"toprule" in again.bytes("tex")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "magic"}, "metric: expected one of cosine"),
        ({"digests": ["0" * 32]}, "expected 2 digests, one per space, got 1"),
    ],
)
def test_a_wrong_recipe_says_what_is_right(figure, change, message):
    with pytest.raises(SpaceError, match=message):
        exportable(figure.recipe | change)
