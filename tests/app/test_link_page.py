from dataclasses import replace

import numpy as np
import pytest

from app import jobs
from app.link import links
from app.workspace import Workspace, from_session_file
from relcore.catalog.catalog import load
from relcore.catalog.encodings import load_encoding
from relcore.catalog.task import inputs_of
from relcore.linking.links_found import BootstrapResult
from tests.app.conftest import Session, save_space
from tests.session_files import to_session_file

LINK = ("connect", "Link")
pytestmark = pytest.mark.usefixtures("ran_in_place", "queue")


@pytest.fixture
def make_rotated(tmp_path):
    """``make_rotated(prefix)``: 150 rows and their rotation; another prefix makes other ids."""

    def make(prefix="r", related=True):
        rng = np.random.default_rng(0)
        vectors = rng.gamma(1.0, size=(150, 12)) + rng.normal(size=(4, 12))[rng.integers(4, size=150)]
        turn, _ = np.linalg.qr(rng.normal(size=(12, 12)))
        if related:
            other = vectors @ turn
        else:
            other = rng.normal(size=(150, 12))
        first = save_space(tmp_path / "first.npz", vectors)
        second = save_space(tmp_path / "second.npz", other, prefix)
        anchors = ()
        if prefix == "r":
            anchors = tuple(f"r{row}" for row in range(30))
        return Workspace((first, second), first, second, anchors)

    return make


def choose(session, setting, value):
    return session.change("button_group", f"bootstrap.{setting}-", value)


def test_rows_without_ids_are_linked_by_row_numbers(make_rotated):
    specs = make_rotated().spaces
    for spec in specs:
        np.save(spec.name.replace("npz", "npy"), load(spec).vectors)
    specs = tuple(replace(spec, name=spec.name.replace("npz", "npy")) for spec in specs)
    session = Session(None, Workspace(specs, *specs), LINK)
    assert "150 rows, not paired yet" in session.captions
    assert session.find("button_group", "bootstrap.have-").options == ["A few pairs", "No pair"]
    choose(session, "have", "few")
    assert "row of first = row of second. Rows count from 0" in session.text_area[0].label
    by_rows = tuple(replace(spec, options=(("ids", "rows"),)) for spec in specs)
    session = Session(None, Workspace(by_rows, *by_rows), LINK)
    assert "150 rows in both" in session.captions
    assert session.find("button_group", "bootstrap.have-").options[-1] == "Test: hide the shared ids"


def test_links_anchors_and_scored_pairs_are_told_apart():
    """Before, “280 links become the anchors” stood beside “Use the 14,887 links”, also after their use."""
    first = links.numbers_in_words(14_887, 280, "20 known pairs", False)
    assert first.startswith("14,887 links will pair the rows on all pages, 280 pairs become the anchors")
    assert first.endswith("scores use only 20 known pairs.")
    assert "280 pairs are the anchors" in links.numbers_in_words(14_887, 280, "20 known pairs", True)


def test_links_without_confirmed_pairs_can_be_used_but_not_scored():
    """Before, “Scores need 5 confirmed pairs” stood alone below a button that uses the links."""
    told = links.numbers_in_words_without_scores(False, 3)
    assert told.startswith("You can use the links now")
    assert told.endswith("Scores need 5 confirmed pairs: select 3 more below.")
    assert links.numbers_in_words_without_scores(True, 3).startswith("The links are in use")


def test_the_example_without_shared_ids_starts_from_twenty_known_pairs():
    session = Session(None, Workspace(), LINK)
    session.click("bootstrap.example")
    assert "20 pairs, 20 of them" in session.captions
    assert "Its text is for checking only" in session.captions
    words, rows = (load(spec) for spec in session.workspace.models[:2])
    word, row = session.text_area[0].value.splitlines()[-1].split(" = ")
    assert word in words.ids
    assert rows.payload[int(row)] == word
    assert len(rows) < len(words)


def test_unrelated_spaces_are_no_success(make_rotated):
    session = Session(None, make_rotated(related=False), LINK)
    session.change("number_input", "bootstrap.anchors-150", 60).click("bootstrap.start")
    assert not session.success
    wrong = session.table_with("linked to")
    assert len(wrong) > 40
    assert (wrong["source"] != wrong["linked to"]).all()


def test_a_space_cannot_be_linked_to_itself(make_rotated):
    workspace = make_rotated("q")
    session = Session(None, replace(workspace, target=workspace.source), LINK)
    assert any("are the same space" in box.value for box in session.info)
    assert not session.errors


def test_spaces_without_shared_ids_are_compared(make_rotated):
    session = Session(workspace=make_rotated("q"))
    session.click("unpaired.link").open("connect")  # from a page that needs pairs
    pairs = "".join(f"r{row},q{row}\n" for row in range(8))
    choose(choose(session, "have", "few"), "from", "file")
    session.upload("bootstrap.file", "known.csv", f"mine,theirs\n{pairs}".encode()).click("bootstrap.start")
    links = session.table("bootstrap.list")
    assert len(links) > 60
    assert (links["source"].str[1:] == links["linked to"].str[1:]).mean() > 0.97
    assert links["likely right"].between(90, 99.99).all()
    assert "used as" not in links
    session.click("bootstrap.use")
    assert session.errors == []
    now = session.workspace
    assert now.target.source == "renamed"
    known = {f"r{row}" for row in range(8)}
    assert len(now.anchors) == 67
    assert known.isdisjoint(now.anchors)
    base = load(now.spaces[1])
    renamed = load(now.target)
    assert renamed.ids.marks == known
    assert "Only the 8 confirmed pairs are scored" in session.html  # Explore was opened
    rows = base.rows([f"q{one[1:]}" for one in renamed.ids])
    assert np.mean((renamed.vectors == base.vectors[rows]).all(axis=1)) > 0.97
    (key,) = inputs_of(
        jobs.queue().store, [now.target], [renamed]
    )  # one input: the pairing is no space of its own
    assert load_encoding(jobs.queue().store, key).digest == renamed.digest
    assert "8 held-out rows" in session.open("connect", "Invert").html
    session.open("connect", "Link")
    assert session.button(key="bootstrap.use").label == "Show the scores"
    listed = session.table("bootstrap.list")
    assert len(listed) == len(renamed) - 8
    anchor = listed.index[listed["used as"] == "★ anchor"][0]
    session.select_rows("bootstrap.list", anchor).click("bootstrap.use")
    checked = listed["source"][anchor]
    assert load(session.workspace.target).ids.marks == known | {checked}
    assert set(session.workspace.anchors) == set(now.anchors) - {checked}
    session.click("history.undo")
    back, _ = from_session_file(to_session_file(now, {}))
    assert back == now
    session.click("history.undo")
    assert session.workspace.target == now.spaces[1]


def test_links_that_nobody_knows_are_confirmed_before_they_are_scored(make_rotated):
    session = choose(Session(None, make_rotated("q"), LINK), "have", "none")
    assert "about 4,000 rows of each space" in session.captions
    session.click("bootstrap.start")
    assert "select 5 more" in session.captions
    session.click("bootstrap.use")
    assert load(session.workspace.target).ids.marks == frozenset()
    assert session.button(key="bootstrap.use").disabled
    assert "select 5 more" in session.captions  # still here
    for rows in ((0, 1, 2), (3, 4)):  # the list forgets its selection when another page is opened
        session.open("connect", "Link").select_rows("bootstrap.list", *rows).click("bootstrap.use")
    assert "Only the 5 confirmed pairs are scored" in session.html
    session.open("connect", "Invert")
    assert not session.errors


@pytest.mark.parametrize(("n_links", "anchors", "scored"), [(40, 40, 15), (2, 12, 5)])
def test_known_pairs_are_scored_and_no_anchors_where_links_suffice(n_links, anchors, scored):
    pairs = tuple((f"s{row}", f"t{row}") for row in range(15 + n_links))
    result = BootstrapResult(pairs, 15, pairs, (), 0.0, (), "linked", "")
    known = [own for own, _ in pairs[:15]]
    found = links.anchors_beside(result, known)
    assert len(found) == anchors
    assert len(set(known).difference(found)) == scored


@pytest.mark.parametrize(
    ("place", "key"),
    [
        (("data",), "unpaired"),
        (("migrate", "New model"), "migrate"),
        (("migrate", "Drift"), "drift"),
        (LINK, "bootstrap"),
    ],
)
def test_links_of_a_finished_job_are_used_from_other_pages(make_rotated, place, key):
    session = Session(None, make_rotated("q"), LINK)
    pairs = "".join(f"r{row},q{row}\n" for row in range(12))
    choose(choose(session, "have", "few"), "from", "file")
    session.upload("bootstrap.file", "known.csv", f"mine,theirs\n{pairs}".encode())
    assert "bootstrap.use-finished" not in session.keys
    session.click("bootstrap.start")
    n_links = len(session.table("bootstrap.list"))
    choose(session, "from", "typed")  # without the pairs of the file
    session.open(*place)
    (button,) = (one for one in session.button if one.key == f"{key}.use-finished")
    assert button.label.strip() == f"Use the {n_links} links"
    session.click(f"{key}.use-finished")
    assert session.errors == []
    assert session.workspace.target.source == "renamed"
    assert load(session.workspace.target).ids.marks == {f"r{row}" for row in range(12)}
    session.click("history.undo")
    assert session.workspace.target.source == "file"
