"""Try it in a real Chromium: a sentence is typed, and every pair answers."""

from __future__ import annotations

import re

import pytest

from app.workspace import Workspace, to_session_file
from relcore.catalog.catalog import encoding_key, encoding_spec
from relcore.catalog.encoding import encode
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.parallel import load_parallel
from relcore.encoders.sentences import TfidfSvd
from relcore.runs.store import Store
from tests.browser.panes import settle

LEAD = re.compile(r"\d of 2 stitched pairs say")


@pytest.fixture(scope="module")
def made(serve, tmp_path_factory):
    """The app's address, and a session file with two tiny encoders of labelled sentences."""
    folder = tmp_path_factory.mktemp("said")
    lines = [f"{text}\t{'question' if '?' in text else 'told'}" for text in load_parallel(["en"])["en"]]
    (folder / "said.tsv").write_text("text\tlabel\n" + "\n".join(lines), encoding="utf-8")
    dataset, store = DatasetSpec("file", str(folder / "said.tsv")), Store(folder / "store")
    specs, digests = [], {}
    for encoder in (TfidfSvd(20), TfidfSvd(30)):
        [space] = encode(dataset, encoder, store)
        specs.append(
            encoding_spec(
                dataset, encoder, "", encoding_key(load_dataset(dataset).digest, encoder), space.name
            )
        )
        digests[specs[-1]] = space.digest
    file = folder / "session.json"
    file.write_text(to_session_file(Workspace(tuple(specs), *specs), digests), encoding="utf-8")
    return serve("app/main.py", env={"RELSCOPE_STORE": str(folder / "store"), "RELSCOPE_DATA": ""}), file


@pytest.fixture
def try_it(page, made):
    """The tab, open, with the two encoders."""
    url, file = made
    page.goto(url)
    settle(page)
    page.get_by_text("Session", exact=True).click()
    page.locator("[data-testid=stSidebar] input[type=file]").set_input_files(file)
    page.get_by_role("button", name="Open the session").click()
    settle(page)
    page.get_by_role("link", name="Stitch").click()
    page.get_by_role("tab", name="Try it").click()
    page.get_by_text(LEAD).wait_for()
    settle(page)
    return page


def test_a_typed_sentence_is_answered_by_every_pair_while_one_types(try_it):
    page = try_it
    page.locator(".st-key-stitch-try-map table").wait_for()
    page.get_by_text("Its label is").wait_for()
    field = page.get_by_role("textbox", name="A sentence")
    field.fill("")
    page.get_by_text(LEAD).wait_for(state="detached")
    field.fill("Where is the station?")
    page.get_by_text(LEAD).wait_for()
    settle(page)
    answers = page.locator(".st-key-stitch-try-map td b")
    assert answers.count() == 4
    assert all(re.match("(told|question)", text) for text in answers.all_text_contents())
    field.fill("xyzzy qwrk")
    page.get_by_text("knows none of these words").wait_for()
