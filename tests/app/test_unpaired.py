import numpy as np
import pytest

from relcore.catalog.catalog import SpaceSpec

N = 60


@pytest.fixture
def strangers(make_session, make_workspace, tmp_path):
    """A session on r0 … r59 and on a table of other ids, whose column `known` has those of the first."""
    first = make_workspace(N).source
    rng = np.random.default_rng(3)
    lines = "".join(
        f"x{row},r{row},{one:.5f},{other:.5f}\n" for row, (one, other) in enumerate(rng.normal(size=(N, 2)))
    )
    (tmp_path / "table.csv").write_text(f"id,known,d0,d1\n{lines}")
    table = SpaceSpec("file", str(tmp_path / "table.csv"))
    return make_session(N, spaces=(first, table), source=first, target=table)


def test_another_column_of_ids_pairs_them(strangers):
    chooser = next(box for box in strangers.at.selectbox if box.key.startswith("unpaired.target"))
    assert chooser.options == ["Automatic", "id", "known", "d0", "d1"]
    strangers.change("selectbox", chooser.key, "known")
    assert not strangers.errors
    assert f"{N} rows in both" in strangers.captions
    assert dict(strangers.workspace.target.options) == {"id_column": "known"}


def test_a_column_that_cannot_be_ids_is_refused_and_changes_nothing(strangers, tmp_path):
    table = (tmp_path / "table.csv").read_text()
    (tmp_path / "table.csv").write_text(table.replace("r7,", "r8,"))
    before = strangers.run().workspace
    chooser = next(box for box in strangers.at.selectbox if box.key.startswith("unpaired.target"))
    strangers.change("selectbox", chooser.key, "known")
    assert "ids must be distinct" in strangers.errors[0]
    assert strangers.workspace == before
