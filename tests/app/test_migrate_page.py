"""The Migrate page: digits of the command, each tab on own files, judged queries, and what does not fit,
with the reason.
"""

from __future__ import annotations

import io
import json
import re
import sys
import zipfile

import numpy as np
import pytest

from app.migrate import panel
from app.workspace import Workspace
from relcore.base.numbers import short
from relcore.catalog.catalog import load
from relcore.cli import main
from relcore.migrate.migration import TASK, Migration, MigrationResult, starting_models
from relcore.runs.finished import finished
from tests.app.conftest import Session, save_space
from tests.relcore.migrate.planted import migration_spaces

pytestmark = pytest.mark.usefixtures("ran_in_place")


def saved(folder, spaces, labels=None):
    """The planted spaces as files: their specs."""
    specs = []
    for number, space in enumerate(spaces):
        columns = {"labels": labels} if labels is not None and number == 0 else {}
        specs.append(save_space(folder / f"{space.name}.npz", space.vectors, space.ids[0][0], **columns))
    return specs


@pytest.fixture
def planted():
    return migration_spaces(n=240, n_queries=40, n_new=200)


def open_page(specs, tab="Thresholds") -> Session:
    workspace = Workspace(spaces=tuple(specs), source=specs[0], target=specs[1])
    session = Session(workspace=workspace)
    session.at.session_state["migrate.tab"] = tab
    return session.open("migrate")


def table_with(session, column):
    return next(table.value for table in session.at.dataframe if column in table.value)


def option_table(session):
    return table_with(session, "recall@10").set_index("option")


def test_the_page_and_the_command_give_the_same_digits(tmp_path, planted, capsys, monkeypatch):
    specs = saved(tmp_path, planted[0][:2])
    session = open_page(specs)
    table = option_table(session)
    monkeypatch.setattr(sys, "argv", ["relscope", "migrate", specs[0].name, specs[1].name, "--json"])
    main()
    found = json.loads(capsys.readouterr().out)
    assert table["nDCG@10"].tolist() == [short(row["ndcg"]) for row in found["rows"]]
    assert table["recall@10"].tolist() == [short(row["recall"]) for row in found["rows"]]
    assert found["verdict"]["sentence"].split(": ", 1)[1].split(",")[0].lower() in session.html.lower()
    assert f"{found['pairs']:,} pairs" in session.captions
    assert not session.errors


def test_every_tab_runs_on_own_files(tmp_path, planted):
    labels = np.array(["red", "green"])[np.arange(240) % 2]
    session = open_page(saved(tmp_path, planted[0][:2], labels))
    tabs = {"Thresholds": "wrong decisions", "Queries that get worse": "mean change"}
    for tab, column in (tabs | {"Export adapter": "", "Drift": ""}).items():
        session.at.session_state["migrate.tab"] = tab
        session.run()
        assert not session.errors, tab
        assert not column or len(table_with(session, column))


def test_a_query_that_gets_worse_is_shown_in_compare(tmp_path, planted):
    session = open_page(saved(tmp_path, planted[0][:2]), "Queries that get worse")
    session.select_rows("worse.table", 0)
    found = table_with(session, "re-embed")
    assert list(found.columns) == ["keep", "bridge", "query both models", "re-embed"]
    assert found.apply(lambda column: column.str.startswith(("✓", "·", "")).all()).all()
    query = table_with(session, "query")["query"].iloc[0]
    session.click("worse.compare")
    assert query in session.at.session_state["relscope.selection"]


def test_judged_queries_decide_instead_of_rows(tmp_path, planted):
    spaces, judgements = planted
    specs = saved(tmp_path, spaces)
    session = open_page(specs)
    for side, spec in (("old", specs[2]), ("new", specs[3])):
        (chooser,) = [one for one in session.selectbox if one.label == f"Queries by the {side} model"]
        chooser.set_value(spec)
        session.run()
    lines = "".join(f"{one.query} 0 {one.row} 1\n" for one in judgements)
    session.upload("migrate.qrels", "qrels.txt", (lines + "q1 0 nowhere 1\n").encode())
    assert not session.errors
    assert "judged queries" in session.captions
    assert any("1 judgements name rows that the old vectors lack" in one.value for one in session.at.warning)
    expected = Migration(judgements=panel._read.__wrapped__(_path(tmp_path, lines))).run(
        [load(one) for one in specs]
    )
    assert option_table(session)["nDCG@10"].tolist() == [short(one.value) for one in expected.options]


def _path(folder, lines):
    path = folder / "judged.txt"
    path.write_text(lines + "q1 0 nowhere 1\n")
    return str(path)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda rows: np.roll(rows, 1, axis=0), "shifted by"),
        (lambda rows: np.random.default_rng(0).permutation(rows), "in another order"),
        (lambda rows: rows[:20], "25 rows or more"),
    ],
)
def test_pairs_that_do_not_pair_are_refused_with_the_reason(tmp_path, planted, change, told):
    old, new = planted[0][:2]
    specs = [
        save_space(tmp_path / "old.npz", old.vectors, "d"),
        save_space(tmp_path / "new.npz", change(np.asarray(new.vectors)), "d"),
    ]
    session = open_page(specs)
    assert any(told in error for error in session.errors), session.errors
    assert "Choose other vectors or settings above" in session.captions
    assert "This needs the comparison above" in session.captions


def test_one_space_twice_is_refused(tmp_path, planted):
    (old,) = saved(tmp_path, planted[0][:1])
    session = open_page([old, old])
    assert [info.value for info in session.info if info.value.startswith("Choose two different spaces")]


def test_the_exported_files_map_as_the_adapter_does(tmp_path, planted):
    from app.migrate.panel import MigrateSetup as Setup
    from app.migrate.tabs import archive
    from relcore.migrate.adapter_file import load as load_adapter

    specs, task = saved(tmp_path, planted[0][:2]), Migration(sizes=())
    spaces = tuple(load(spec) for spec in specs)
    result = task.run(spaces)
    packed = archive(Setup(tuple(specs), spaces, task), result)
    assert packed == archive(Setup(tuple(specs), spaces, task), result)
    with zipfile.ZipFile(io.BytesIO(packed)) as files:
        assert {"adapter.safetensors", "apply.py"} <= set(files.namelist())
        files.extractall(tmp_path / "taken")
    adapter = load_adapter(tmp_path / "taken")
    assert adapter.corpus(spaces[0].vectors[:5]).shape[0] == 5


def test_the_example_comes_with_relscope():
    specs = starting_models(finished())
    spaces = [load(spec) for spec in specs]
    assert [len(space) for space in spaces] == [960, 960]
    assert spaces[0].ids.tolist() == spaces[1].ids.tolist()
    entry = finished().get(TASK.key(spaces))
    assert entry is not None, "bundle the result again: python assets/finished/make_finished.py migration"
    result = TASK.read(entry)
    assert isinstance(result, MigrationResult)
    assert result.option("bridge").to_keep.low > 0
    head, rest = panel.lead(result)
    assert head == "Re-embed the corpus"
    assert rest.startswith("With rows of the same label as relevant, nDCG@10 is .570 with the old model")
    assert re.search(r"the bridge reaches \d+ % of its score, and querying both models \d+ %\.$", rest)
