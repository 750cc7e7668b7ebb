from __future__ import annotations

import base64
import io

import numpy as np
from PIL import Image

from app.items import Items
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import encode, encoding_key, encoding_spec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import Dataset, DatasetSpec
from relcore.encoders.sentences import TfidfSvd
from relcore.maps.pane_maps import default_view
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace, match

ANALYSES = (TfidfSvd(n_components=8), TfidfSvd(n_components=8, max_words=300))


def pictures(n, size=(8, 8), mode="L"):
    return [Image.new(mode, size, (shade,) * len(mode) if len(mode) > 1 else shade) for shade in range(n)]


def picture_dataset(found, ids=None):
    ids = ids or [f"p{row}" for row in range(len(found))]
    return Dataset(
        lambda start, stop: found[start:stop], ids, name="made", kind="images", content=lambda: [b"made"]
    )


def text_dataset(texts, ids):
    return Dataset(lambda start, stop: texts[start:stop], ids, name="said", kind="texts")


def opened(uri):
    return Image.open(io.BytesIO(base64.b64decode(uri.split(",")[1])))


def encoded(dataset, *encoders):
    spaces = [encode(dataset, encoder, Store())[0] for encoder in encoders]
    digest = load_dataset(dataset).digest
    specs = tuple(
        encoding_spec(dataset, encoder, "", encoding_key(digest, encoder), space.name)
        for encoder, space in zip(encoders, spaces, strict=True)
    )
    return specs, match(spaces[0], spaces[-1])


def payload(session):
    return next(node for node in session.get("bidi_component") if b"anchors" in node.proto.bytes).proto.bytes


# Items by id


def test_texts_and_pictures_are_those_of_their_ids_in_any_order():
    items = Items(
        [picture_dataset(pictures(5)), text_dataset(["one", " two\n words ", "three"], ["p0", "p1", "p2"])]
    )
    assert items.texts(["p2", "p9", "p1", "p4"]) == ["three", "", "two words", ""]
    assert [opened(uri).getpixel((3, 3)) for uri in items.pictures(["p3", "p0", "p3"], 16)] == [3, 0, 3]
    assert opened(items.picture("p4", 16)).size == (16, 16)
    assert items.picture("p9", 16) == ""


def test_only_what_is_asked_for_is_decoded_and_only_once():
    read = []
    found = pictures(40)
    dataset = Dataset(
        lambda start, stop: [read.append(row) or found[row] for row in range(start, stop)],
        [f"p{row}" for row in range(40)],
        name="counted",
        kind="images",
        content=lambda: [b""],
    )
    items = Items([dataset])
    for _ in range(3):
        items.pictures(["p30", "p7"], 16)
    assert read == [7, 30]
    items.pictures(["p30", "p7", "p8"], 16)
    assert read == [7, 30, 8]


def test_a_damaged_picture_is_left_out():
    def read(start, stop):
        raise SpaceError("row 1: expected an image")

    items = Items([Dataset(read, ["p0"], name="damaged", kind="images", content=lambda: [b""])])
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


# Sheets


def test_every_picture_is_in_its_cell():
    items = Items([picture_dataset(pictures(50))])
    ids = [f"p{row}" for row in np.random.default_rng(0).permutation(50)[:30]]
    sheet = items.sheet(ids)
    shown = np.asarray(Image.open(io.BytesIO(sheet.content)))
    assert (sheet.side, sheet.mimetype) == (8, "image/png")
    assert shown.shape == (sheet.lines * 8, sheet.columns * 8)
    for identifier, cell in zip(ids, sheet.cells, strict=True):
        y, x = cell // sheet.columns * 8, cell % sheet.columns * 8
        assert set(shown[y : y + 8, x : x + 8].ravel()) == {int(identifier[1:])}


# The app on sentences


def test_a_dataset_that_is_gone_takes_only_the_items_with_it(make_session, tmp_path):
    rows = "\n".join(
        f"{'red' if row % 2 else 'blue'} word{row % 7} and word{row % 5},{row % 2}" for row in range(60)
    )
    path = tmp_path / "said.csv"
    path.write_text(f"text,label\n{rows}\n")
    specs, pair = encoded(DatasetSpec("file", str(path)), *ANALYSES)
    view = default_view(pair.source)
    session = make_session(
        spaces=specs, source=specs[0], target=specs[1], anchors=tuple(pair.ids[:20]), view=view
    )
    path.unlink()
    session.run()
    assert not session.errors
    assert payload(session)
