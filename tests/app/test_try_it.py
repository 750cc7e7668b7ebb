import base64
import io
from html import unescape
from unittest.mock import Mock

import numpy as np
import pytest
from PIL import Image

from app import live
from app.items import Items
from app.stitch import languages, try_it
from app.stitch.try_it import answers_html
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.base.names import METHODS
from relcore.base.numbers import percent
from relcore.catalog.catalog import encoding_spec, load
from relcore.catalog.encodings import encode, encoding_key
from relcore.encoders.bundled_data import load_parallel
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.sentences import TfidfSvd
from relcore.figures.style import DARK, LIGHT
from relcore.maps.pane_maps import default_view
from relcore.runs.store import Store
from relcore.scores.score import share_interval
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace
from relcore.stitch.classifiers import Stitching
from relcore.stitch.try_it import Answers, RetrievalSpec, matrices_of, pair_up, retrieve
from tests.app.conftest import Session

pytestmark = pytest.mark.usefixtures("queue")


def encoded(dataset, *encoders):
    store = Store()
    digest = load_dataset(dataset).digest
    made = [(encoder, encode(dataset, encoder, store)[0].name) for encoder in encoders]
    return tuple(encoding_spec(dataset, one, "", encoding_key(digest, one), name) for one, name in made)


def stitch_page(specs):
    return Session(None, Workspace(specs, *specs[:2]), ("connect", "Stitch"), {"stitch.try": True})


@pytest.fixture
def sentences(tmp_path):
    lines = [f"{text}\t{'question' if '?' in text else 'told'}" for text in load_parallel(["en"])["en"]]
    path = tmp_path / "said.tsv"
    path.write_text("text\tlabel\n" + "\n".join(lines), encoding="utf-8")
    return encoded(DatasetSpec("file", str(path)), TfidfSvd(20), TfidfSvd(30))


def test_a_typed_sentence_is_answered_and_fits_nothing_again(sentences, monkeypatch):
    session = stitch_page(sentences)
    assert "of 2 stitched pairs say" in session.html
    monkeypatch.setattr(Stitching, "__init__", lambda *_, **__: pytest.fail("fitted again"))
    monkeypatch.setattr(TfidfSvd, "train", lambda *_, **__: pytest.fail("trained again"))
    assert session.text_input(key="stitch.try-text").value in load_parallel(["en"])["en"]
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
    names = ("<a>", "b")
    found = np.array([[[0.9, 0.1], [0.2, 0.8]], [[np.nan] * 2, [0.6, 0.4]]])
    data = matrices_of(Answers("relative", names, names, (0, 1), ("yes", "no"), found))
    for theme in (LIGHT, DARK):
        table = answers_html(data, theme)
        assert [table.count(part) for part in ("<tr>", 'class="own"', 'class="none"')] == [3, 2, 1]
        assert data.alt in unescape(table)
        assert "<a>" not in table
        for told in ("&lt;a&gt;", "<b>yes</b><small>.90</small>", "<b>no</b><small>.80 · own: yes</small>"):
            assert told in table
        assert "no: .800<br>yes: .200<br>stitched" in unescape(table)
    assert answers_html(data, LIGHT) != answers_html(data, DARK)


@pytest.mark.parametrize(
    ("probabilities", "told"),
    [
        (
            [[[0.9, 0.1], [0.8, 0.2]], [[0.6, 0.4], [0.3, 0.7]]],
            "<b>2</b> of 2 stitched pairs say <b>&lt;no&gt;</b>. Stitching changes the answer of 1 pair.",
        ),
        (
            [[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.7, 0.3]]],
            "A tie: of 2 stitched pairs, <b>1</b> each say <b>yes</b> and <b>&lt;no&gt;</b>. Stitching changes",
        ),
    ],
)
def test_the_sentence_above_counts_pairs(probabilities, told):
    names = ("a", "b"), ("a", "b"), (0, 1), ("<no>", "yes")
    lead = try_it.lead(Answers("relative", *names, np.array(probabilities)), "yes")
    assert told in lead
    assert lead.endswith("The true label is <b>yes</b>.")


def picture_dataset(n, read=lambda row: Image.new("L", (8, 8), row)):
    ids = [f"p{row}" for row in range(n)]
    settings = {"name": "made", "kind": "images", "content": lambda: [b"made"]}
    return Dataset(lambda start, stop: [read(row) for row in range(start, stop)], ids, **settings)


def text_dataset(texts, ids):
    return Dataset(lambda start, stop: texts[start:stop], ids, name="said", kind="texts")


def opened(uri):
    return Image.open(io.BytesIO(base64.b64decode(uri.split(",")[1])))


def test_texts_and_pictures_are_those_of_their_ids():
    texts = text_dataset(["one", " two\n words ", "three"], ["p0", "p1", "p2"])
    items = Items([picture_dataset(5), texts])
    assert items.texts(["p2", "p9", "p1", "p4"]) == ["three", "", "two words", ""]
    assert [opened(uri).getpixel((3, 3)) for uri in items.pictures(["p3", "p0", "p3"], 16)] == [3, 0, 3]
    assert opened(items.picture("p4", 16)).size == (16, 16)
    assert items.picture("p9", 16) == ""


def test_only_what_is_asked_for_is_decoded_and_only_once():
    read = []
    items = Items([picture_dataset(40, lambda row: read.append(row) or Image.new("L", (8, 8)))])
    for _ in range(3):
        items.pictures(["p30", "p7"], 16)
    assert read == [7, 30]
    items.pictures(["p30", "p7", "p8"], 16)
    assert read == [7, 30, 8]


def test_a_damaged_picture_is_left_out():
    items = Items([picture_dataset(1, Mock(side_effect=SpaceError("row 1: expected an image")))])
    assert items.picture("p0", 16) == ""
    assert items.sheet(["p0"]) is None


def test_find_looks_into_texts_and_knows_labels_and_ids():
    ids = ["x/1", "x/2", "y/1"]
    space = LatentSpace(np.eye(3), ids, labels=["Rivers", "rivers", "seas"])
    items = Items([text_dataset(["The Nile flows north.", "So does\nthe Rhine.", "Salt."], ids)])
    pair = match(space, space)
    assert items.find(pair, " THE  ") == ("x/1", "x/2")
    assert items.find(pair, "does the") == ("x/2",)
    assert items.find(pair, "rivers") == ("x/1", "x/2")
    assert items.find(pair, "y/1") == ("y/1",)
    assert items.find(pair, "x/") == items.find(pair, "  ") == ()


def test_every_picture_is_in_its_cell():
    items = Items([picture_dataset(50)])
    ids = [f"p{row}" for row in np.random.default_rng(0).permutation(50)[:30]]
    sheet = items.sheet(ids)
    shown = np.asarray(Image.open(io.BytesIO(sheet.content)))
    assert (sheet.side, sheet.mimetype) == (8, "image/png")
    assert shown.shape == (sheet.lines * 8, sheet.columns * 8)
    for identifier, cell in zip(ids, sheet.cells, strict=True):
        y = cell // sheet.columns * 8
        x = cell % sheet.columns * 8
        assert set(shown[y : y + 8, x : x + 8].ravel()) == {int(identifier[1:])}


def test_a_dataset_that_is_gone_takes_its_items_only(make_session, tmp_path):
    rows = [
        f"{'red' if row % 2 else 'blue'} word{row % 7} and word{row % 5},{row % 2}\n" for row in range(60)
    ]
    path = tmp_path / "said.csv"
    path.write_text(f"text,label\n{''.join(rows)}")
    specs = encoded(DatasetSpec("file", str(path)), TfidfSvd(8), TfidfSvd(8, max_words=300))
    view = default_view(load(specs[0]))
    anchors = tuple(load(specs[0]).ids[:20])
    session = make_session(spaces=specs, source=specs[0], target=specs[1], anchors=anchors, view=view)
    path.unlink()
    session.run()
    assert not session.errors
    assert any(b"anchors" in node.proto.bytes for node in session.get("bidi_component"))


def test_languages_name_the_best_method_with_its_interval():
    vectors = np.random.default_rng(0).normal(size=(2, 150, 8))
    ids = [f"r{row}" for row in range(150)]
    one = LatentSpace(vectors[0], ids)
    noisy = LatentSpace(vectors[0][:, ::-1] + 0.7 * vectors[1], ids)
    result = retrieve(pair_up(one, noisy), RetrievalSpec(n_anchors=50, k=5))
    best = max(result.scores, key=lambda method: result.scores[method]["first"])
    share = float(result.scores[best]["first"])
    low, high = share_interval(share, 100)
    assert 0 < low < share < high < 1
    told = languages.lead(result, ("sentence", "translation"), "English", "Spanish")
    assert told.startswith(
        f"<strong>{percent(share)} of the English sentences find their Spanish translation first.</strong>"
    )
    assert f"95 %: {percent(low)} to {percent(high)}, of 100 sentences" in told
    assert f"<b>{METHODS[best].title}</b>, the best of {len(result.scores)} methods" in told
    assert "of the sentences find their translation" in languages.lead(result, ("sentence", "translation"))


def test_right_and_wrong_answers_take_turns():
    """Before, 60 wrong answers came first, and nobody saw a right one."""
    right = np.array([True, False, False, False, True])
    assert languages._order(right, "both").tolist() == [0, 1, 4, 2, 3]
    assert languages._order(right, "wrong").tolist() == [1, 2, 3]
    assert languages._order(right, "right").tolist() == [0, 4]
