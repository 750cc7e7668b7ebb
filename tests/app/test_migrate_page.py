import base64
import json
import re
import sys
from contextlib import contextmanager
from dataclasses import replace
from html import unescape
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from app.migrate import judging, panel, setup
from app.migrate.panel import _AFTER
from app.page_settings import _Settings
from app.workspace import History, Workspace
from relcore import bundled_results, starting_models
from relcore.base.numbers import short
from relcore.catalog.catalog import SpaceSpec, renamed_spec
from relcore.catalog.renamed import put_pairing
from relcore.cli import main
from relcore.migrate.blind_test import MOST, Answer
from relcore.migrate.cheaper_index import FORMS
from relcore.migrate.pairing import check_pairs
from relcore.runs.store import Store
from tests.app.conftest import Session, save_space
from tests.relcore.migrate.planted import migration_spaces

pytestmark = pytest.mark.usefixtures("ran_in_place")


def saved(folder, spaces, **columns):
    """The specs of files; the first has these columns."""
    return [
        save_space(folder / f"{space.name}.npz", space.vectors, space.ids[0][0], **(columns if not n else {}))
        for n, space in enumerate(spaces)
    ]


@pytest.fixture
def planted():
    return migration_spaces(n=240, n_queries=40, n_new=200)


def open_page(specs, part="Similarity thresholds"):
    workspace = Workspace(spaces=tuple(specs), source=specs[0], target=specs[1])
    return started(Session(None, workspace, ("migrate",), {f"migrate.{part}": True}))


def started(session):
    if "migration.start" in session.keys:
        return session.click("migration.start")
    return session


def option_table(session):
    table = unescape(session.html.partition("relscope-report")[2].partition("</table>")[0])
    head, *rows = (re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row) for row in table.split("<tr")[1:])
    return pd.DataFrame(rows, columns=head)


def test_the_page_and_the_command_give_the_same_digits(tmp_path, planted, capsys, monkeypatch):
    specs = saved(tmp_path, planted[0][:2])
    session = open_page(specs)
    table = option_table(session)
    details = session.table_with("chance")
    monkeypatch.setattr(sys, "argv", ["relscope", "migrate", specs[0].name, specs[1].name, "--json"])
    main()
    found = json.loads(capsys.readouterr().out)
    assert table["new model's 10 neighbours"].tolist()[:3] == [short(row["score"]) for row in found["rows"]]
    changes = [one for one in table["vs keep"] if one != "–"]
    values = [float(one.split()[0].replace("−", "-")) for one in changes]
    dots = [float(one) for one in re.findall(r"--value:([\d.]+)%", session.html)]
    assert len(dots) == len(values) > 1
    np.testing.assert_allclose(np.corrcoef(dots, values)[0, 1], 1, atol=0.01)  # one scale for all
    assert details["chance"].tolist()[:3] == [short(row["chance"]) for row in found["rows"]]
    assert "No verdict" in session.html
    assert found["verdict"]["option"] == ""
    assert not session.errors


def test_the_page_says_that_it_checks_the_pairs(tmp_path, planted, monkeypatch):
    waits = []

    @contextmanager
    def recorded(text):
        waits.append(text)
        yield
        waits.remove(text)

    def check(pair, random_state):
        assert waits == ["Checking the pairs …"]
        return check_pairs(pair.target.vectors, pair.source.vectors, random_state)

    monkeypatch.setattr(setup.st, "spinner", recorded)
    monkeypatch.setattr(setup, "_pairing", check)
    session = open_page(saved(tmp_path, planted[0][:2]))
    assert not session.errors
    assert "No verdict" in session.html


def test_every_tab_runs_on_own_files(tmp_path, planted):
    labels = np.array(["red", "green"])[np.arange(240) % 2]
    session = open_page(saved(tmp_path, planted[0][:2], labels=labels))
    for part in _AFTER:
        session.session_state[f"migrate.{part}"] = True
    assert not session.run().errors
    assert not session.open("migrate", "Drift").errors


def test_queries_a_day_set_the_costs_of_a_year_where_there_is_no_log(tmp_path, planted):
    session = open_page(saved(tmp_path, planted[0][:2]), "What a cascade costs")
    session.change("select_slider", "migrate.a-day", 30)
    assert session.find("number_input", "migrate.rate-queries").value == 30 * 365
    assert "in a year of 10,950 queries" in option_table(session).columns
    (chart,) = [one for one in session.charts if "with 30 queries each" in str(one["layout"])]
    rows = np.frombuffer(base64.b64decode(chart["data"][0]["y"]["bdata"]))
    assert (rows[0], rows[-1]) == (160, 240)  # the pairs, and the whole corpus
    assert any(one.value.startswith("**With 30 queries a day, a cascade") for one in session.markdown)


def test_prices_are_in_the_currency_of_the_user(tmp_path, planted):
    session = open_page(saved(tmp_path, planted[0][:2]))
    keys = [one.key for one in session.number_input]
    assert not any("rate-tokens" in key for key in keys)  # only a price needs tokens, and so the texts
    session.change("text_input", "migrate.currency", "€")
    session.change("number_input", "migrate.rate-price", 5.0)
    session.change("number_input", "migrate.rate-tokens", 100.0)
    costs = option_table(session)["in a year of 10,000 queries"]
    assert len(costs) >= 4
    assert costs.str.contains(r"€\d").all()
    widths = [float(one) for one in costs.str.extract(r"width:([\d.]+)%")[0]]
    assert max(widths) == 100
    assert widths[0] < widths[2]  # one model per query before two
    assert "€100" in session.html  # the smallest saving that counts


def test_cheaper_indexes_are_a_figure_above_a_folded_table(tmp_path, planted, ran_in_place):
    session = open_page(saved(tmp_path, planted[0][:2]), "A cheaper index")
    if "cheaper-index.start" in session.keys:
        session.click("cheaper-index.start")
    chart = session.charts[-1]
    assert "keep, full vectors" in str(chart)
    (table,) = [one for one in session.expander if one.label == "All numbers"]
    assert not table.proto.expanded
    assert len(table.dataframe[0].value) == len(FORMS) * len(chart["data"])


def test_the_open_tab_is_kept_when_one_comes_back(tmp_path, planted):
    session = open_page(saved(tmp_path, planted[0][:2])).open("migrate", "Drift")
    session.open("connect", "Link").open("migrate")
    assert session.session_state["migrate.tab"] == "Drift"


def test_blind_answers_replace_the_verdict_and_are_saved(tmp_path):
    spaces, judgements = migration_spaces(n=240, n_queries=40, old_topics=4)
    specs = []
    for space in spaces:  # tables with a text beside each vector
        columns = {"id": space.ids, "text": [f"the text of {one}" for one in space.ids]}
        table = pd.DataFrame(space.vectors).add_prefix("x").assign(**columns)
        table.to_csv(tmp_path / f"{space.name}.csv", index=False)
        specs.append(SpaceSpec("file", str(tmp_path / f"{space.name}.csv")))
    session = open_page(specs, "Judge here, blind")
    assert session.html.count("<li>the text of d") == 10
    place = next(one.key for one in session.selectbox if "queries-old" in one.key).rpartition("-")[2]
    for side, spec in zip(("old", "new"), specs[2:], strict=True):
        session.change("selectbox", f"migrate.queries-{side}-{place}", spec)
    session.session_state["migrate.What a cascade costs"] = True
    assert not session.run().errors
    assert any(one.value.startswith("**To rank ") for one in session.markdown)  # with a log, it is counted
    session.session_state["migrate.What a cascade costs"] = False
    lines = [f"{one.query} 0 {one.row} 1" for one in judgements]
    session.upload("migrate.qrels", "judgements.qrels", "\n".join(lines).encode())
    relevant = {(one.query, one.row) for one in judgements}
    for _ in range(MOST):
        query, *lists = session.html.split("<ol")
        (query,) = re.findall(r"the text of (q\d+)", query)
        left, right = (
            sum((query, row) in relevant for row in re.findall(r"the text of (d\d+)", one)) for one in lists
        )
        session.click(judge_key(session, 2 + (right > left) - (right < left)))
        if "<ol" not in session.html:
            break
    for _ in range(2):
        assert session.html.count("<strong>Re-embed the corpus.</strong> Of") == 2  # above, and in the tab
        assert "By the judgements, nDCG@10 is" in session.html
        kept = json.loads(json.dumps(session.session_state["relscope.page-settings"].chosen))
        session.session_state["relscope.page-settings"] = _Settings(kept)
        session.run()
    session.click("judge.back")
    assert session.html.count("<ol") == 2
    assert "<strong>Re-embed the corpus.</strong> Search quality (nDCG@10" in session.html


def judge_key(session, key):
    return next(one.key for one in session.button if re.fullmatch(rf"judge\..*-\d+-{key}", one.key or ""))


def test_a_press_counts_once_for_the_shown_question(monkeypatch, tmp_path):
    told = []
    kept = {}
    monkeypatch.setattr(judging.st, "toast", lambda text, icon: told.append(text))
    monkeypatch.setattr(judging, "save_value", kept.__setitem__)
    monkeypatch.setattr(judging, "saved_value", kept.get)
    setup = SimpleNamespace(digest="ab")
    first, second = (Answer(query, ("x",), ("y",), "keep") for query in "pq")
    for answer in (first, replace(first, preferred="other"), second, first):
        judging._keep_answer(setup, "bridge", answer)
    assert judging._saved_answers(setup, "bridge").answers == (first, second)
    assert len(told) == 2


def test_shifted_rows_start_no_job(tmp_path, planted, ran_in_place):
    old, new = planted[0][:2]
    rows = {"old": old.vectors, "new": np.roll(np.asarray(new.vectors), 1, axis=0)}
    session = open_page([save_space(tmp_path / f"{name}.npz", found, "d") for name, found in rows.items()])
    assert any("shifted by" in one.value for one in session.markdown)
    assert not session.errors
    assert not ran_in_place
    session.click("migrate.example")
    assert "nDCG@10" in session.html
    assert not ran_in_place, "bundle its result again: python assets/finished/make_finished.py migration"
    session.session_state["migrate.Export adapter"] = True
    session.change("number_input", "migrate.rows-960", 2_000_000)
    verdict = re.search(r'relscope-lead"><strong>(.*?)</strong>', session.html)[1]
    assert verdict.startswith("For 2,000,000 rows: let the new model rank")
    assert "For the 960 rows here: re-embed" in session.captions
    assert any("carry out the recommended “cascade" in one.value for one in session.markdown)


def test_rows_in_another_order_lead_to_link(tmp_path, planted):
    old, new = planted[0][:2]
    order = np.random.default_rng(1).permutation(len(new))
    rows = {"old": old.vectors, "new": np.asarray(new.vectors)[order]}
    specs = [save_space(tmp_path / f"{name}.npz", found, "d") for name, found in rows.items()]
    session = open_page(specs)
    assert any("are not the same thing" in one.value for one in session.markdown)
    session.click("migrate.link")
    now = session.workspace
    assert (now.source, now.target) == tuple(specs)
    places = old.index.get_indexer(new.ids[order])
    pairs = [(f"d{place}", f"d{row}") for row, place in enumerate(places)]
    for n_confirmed, told in ((0, "Confirm 25 more of 200"), (60, "No verdict")):
        key = put_pairing(Store(tmp_path / "store"), pairs, [own for own, _ in pairs[:n_confirmed]])
        linked = renamed_spec(specs[1], key, "new · linked")
        session.session_state["relscope.history"] = History(replace(now, spaces=(*specs, linked)))
        started(session.open("migrate").click("migrate.use-links"))
        assert session.workspace.target == linked
        assert told in session.html + " ".join(one.value for one in session.markdown)


def test_queries_that_get_worse_come_with_the_kinds_of_queries_that_change(tmp_path, planted):
    session = open_page(saved(tmp_path, planted[0][:2]), "Queries that get worse")
    told = [block.value for block in session.at.markdown]
    assert any("of the results of a query change" in one for one in told), told
    assert not session.errors


def thresholds_page(tmp_path, planted, **columns):
    """The part Similarity thresholds, for rows with or without labels."""
    return open_page(saved(tmp_path, planted[0][:2], **columns))


def test_a_moved_line_changes_what_passes(tmp_path, planted):
    labels = np.array(["red", "green", "blue"])[np.arange(240) % 3]
    session = thresholds_page(tmp_path, planted, labels=labels)
    (line,) = session.slider
    fixed = [one["layout"] for one in session.charts if one["layout"].get("dragmode") is False]
    assert len(fixed) == 2
    assert all(one[axis]["fixedrange"] for one in fixed for axis in ("xaxis", "yaxis"))
    before = [one.value for one in session.metric]
    listed = session.table_with("relevant")
    assert len(before) == 3
    assert session.at.button(key="threshold.back").disabled
    session.change("slider", line.key, line.max)
    assert [one.value for one in session.metric] != before
    assert len(session.table_with("relevant")) < len(listed)
    session.click("threshold.back")
    assert [one.value for one in session.metric] == before
    assert re.search(r"<strong>Set cosine ≥ [\d.]+\.</strong>", session.html)
    assert any("Set: cosine ≥" in one.value for one in session.code)
    session.change("button_group", "threshold.score", "l2")
    assert any("Set: L2 distance ≤" in one.value for one in session.code)
    session.change("button_group", "threshold.keep", "recall")
    assert "keeps recall" in session.html
    assert any("--gate precision=" in one.value for one in session.code)
    assert not session.errors


def test_a_threshold_outside_the_range_of_scores_is_refused_in_words(tmp_path, planted):
    """Before, the field turned red without a word."""
    session = thresholds_page(tmp_path, planted)
    session.change("number_input", "threshold.value-cosine", 5.0)
    assert any("5 is no threshold: expected a cosine, from −1 to 1" in one for one in session.errors)
    session.change("number_input", "threshold.value-cosine", None)
    assert not session.errors


def test_a_button_under_the_verdict_opens_the_thresholds(tmp_path, planted):
    """Before, the closed row far below was the only way. The script of the page scrolls to it."""
    session = open_page(saved(tmp_path, planted[0][:2]), part="A cheaper index")
    assert not session.slider
    session.click("migrate.to-thresholds")
    assert len(session.slider) == 1


def test_the_threshold_of_the_recommended_option_comes_first(tmp_path, planted, monkeypatch):
    monkeypatch.setattr("app.migrate.thresholds.advised", lambda result: "re-embed")
    session = thresholds_page(tmp_path, planted)
    assert session.find("button_group", "threshold.system").value == "re-embed"


def test_a_threshold_of_other_rows_is_refused_without_judgements(tmp_path, planted):
    session = thresholds_page(tmp_path, planted)
    assert "</strong> A cut-off of about " in session.html
    assert not any("--gate" in one.value for one in session.code)
    other = save_space(tmp_path / "other.npz", planted[0][2].vectors, "d")
    workspace = session.workspace
    session.session_state["relscope.history"] = History(replace(workspace, spaces=(*workspace.spaces, other)))
    session.run()
    (chooser,) = [one for one in session.selectbox if one.label == "Chosen on"]
    session.change("selectbox", chooser.key, other)
    assert any("pass judgements of some queries" in one for one in session.errors)


def test_the_example_is_named_before_anything_is_computed(monkeypatch):
    chosen = SimpleNamespace(specs=starting_models(bundled_results()), old=range(2000))
    told = []
    monkeypatch.setattr(panel, "choose", lambda _: chosen)
    monkeypatch.setattr(panel, "belong", lambda *_: "in 2,000 sentences" in told[0])
    assert panel.inputs(SimpleNamespace(caption=told.append), Workspace()) is chosen
