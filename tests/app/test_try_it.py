from __future__ import annotations

from html import unescape

import numpy as np
import pytest

from app import jobs, live
from app.stitch import try_it
from app.stitch.try_it import answers_html
from app.workspace import Workspace
from relcore.catalog.catalog import encode, encoding_key, encoding_spec
from relcore.encoders.datasets import load_dataset, load_parallel
from relcore.encoders.encoder import DatasetSpec
from relcore.encoders.sentences import TfidfSvd
from relcore.figures.style import DARK, LIGHT
from relcore.stitch.stitching import Stitching
from relcore.stitch.try_it import Answers, matrices_of
from tests.app.conftest import Session


def encoded(dataset, *encoders):
    store, digest = jobs.queue().store, load_dataset(dataset).digest
    made = [(encoder, encode(dataset, encoder, store)[0].name) for encoder in encoders]
    return tuple(encoding_spec(dataset, one, "", encoding_key(digest, one), name) for one, name in made)


def stitch_page(specs) -> Session:
    return Session(None, Workspace(specs, *specs[:2]), ("connect", "Stitch"), {"stitch.try": True})


@pytest.fixture(autouse=True)
def queues_store(own_store, monkeypatch):
    """The job queue serves all tests of a process: what it stores has to be where the pages look for it."""
    monkeypatch.setenv("RELSCOPE_STORE", str(jobs.queue().store.root))


@pytest.fixture
def sentences(tmp_path):
    lines = [f"{text}\t{'question' if '?' in text else 'told'}" for text in load_parallel(["en"])["en"]]
    path = tmp_path / "said.tsv"
    path.write_text("text\tlabel\n" + "\n".join(lines), encoding="utf-8")
    return encoded(DatasetSpec("file", str(path)), TfidfSvd(20), TfidfSvd(30))


def test_a_typed_sentence_is_answered_by_every_pair_and_fits_nothing_again(sentences, monkeypatch):
    session = stitch_page(sentences)
    assert "of 2 stitched pairs say" in session.html
    monkeypatch.setattr(Stitching, "__init__", lambda *_, **__: pytest.fail("fitted again"))
    monkeypatch.setattr(TfidfSvd, "train", lambda *_, **__: pytest.fail("trained again"))
    assert session.at.text_input(key="stitch.try-text").value in load_parallel(["en"])["en"]
    spared = []
    monkeypatch.setattr(try_it.first_imports, "spare_collector", lambda: spared.append(1))
    session.change("text_input", "stitch.try-text", "Where is the station?")
    assert spared  # a collection of all modules of encoders takes longer than the answer
    assert "of 2 stitched pairs say" in session.html
    assert "The true label is" not in session.html
    session.change("text_input", "stitch.try-text", "xyzzy")
    assert "knows none of these words" in session.html
    session.change("text_input", "stitch.try-text", "   ")
    assert "stitched pairs say" not in session.html


def test_the_channel_answers_a_sentence_as_the_page_does(sentences, monkeypatch):
    made = []
    monkeypatch.setattr(live, "channel_of", lambda key, offer: made.append(offer))
    session = stitch_page(sentences)
    session.change("text_input", "stitch.try-text", "Where is the station?")
    offer, *_, last = (one for one in made if isinstance(one, try_it.ItemOffer))  # of another sentence first
    assert offer.content == last.content
    answered = offer.answer(offer.read(b"  Where is  the station? "), lambda: False).decode()

    assert answered.partition("Encoded and answered in")[0] in "".join(one.value for one in session.at.html)
    assert "By other methods: relative" in answered
    assert offer.read(b"\xff") is None
    assert offer.answer(offer.read(b" "), lambda: False) == b""
    assert offer.read(b"a" * (1 << 21)) is None


def test_the_table_of_answers_says_what_the_figure_says():
    answers = Answers(
        "relative",
        ("<a>", "b"),
        ("<a>", "b"),
        (0, 1),
        ("yes", "no"),
        np.array([[[0.9, 0.1], [0.2, 0.8]], [[np.nan] * 2, [0.6, 0.4]]]),
    )
    data = matrices_of(answers)
    for theme in (LIGHT, DARK):
        table = answers_html(data, theme)
        assert [table.count(part) for part in ("<tr>", 'class="own"', 'class="none"')] == [3, 2, 1]
        assert data.alt in unescape(table)
        assert "<a>" not in table
        for told in ("&lt;a&gt;", "<b>yes</b><small>.90</small>", "<b>no</b><small>.80 · own: yes</small>"):
            assert told in table
        assert "no: .800<br>yes: .200<br>stitched; the encoder's own classifier answers yes" in unescape(
            table
        )
    assert answers_html(data, LIGHT) != answers_html(data, DARK)


@pytest.mark.parametrize(
    ("probabilities", "told"),
    [
        (
            [[[0.9, 0.1], [0.8, 0.2]], [[0.6, 0.4], [0.3, 0.7]]],
            "<b>2</b> of 2 stitched pairs say <b>&lt;no&gt;</b>. Stitching changes the answer of 1 pair."
            " Not stitched, a says <b>&lt;no&gt;</b>; b says <b>yes</b>.",
        ),
        (
            [[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.7, 0.3]]],
            "A tie: of 2 stitched pairs, <b>1</b> each say <b>yes</b> and <b>&lt;no&gt;</b>. Stitching changes",
        ),
    ],
)
def test_the_sentence_above_counts_pairs_and_says_what_each_encoder_says_alone(probabilities, told):
    names = ("a", "b"), ("a", "b"), (0, 1), ("<no>", "yes")
    lead = try_it.lead(Answers("relative", *names, np.array(probabilities)), "yes")
    assert told in lead
    assert lead.endswith("The true label is <b>yes</b>.")
