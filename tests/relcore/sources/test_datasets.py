"""The specs, the bundled datasets, the list of what is there, and the promises that every dataset keeps."""

import io

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from relcore.base.errors import SpaceError
from relcore.encoders import datasets, wikipedia
from relcore.encoders.dataset import Dataset, DatasetSpec, evenly
from relcore.encoders.datasets import available_datasets, load_dataset
from relcore.encoders.images import png_thumbnail
from relcore.runs.digest import digest_of
from relcore.runs.store import Store

ARTICLES = {"B": ["b one.", "b two.", "b three."], "A": ["a one."], "C": ["c one.", "c two."]}


@pytest.fixture
def small_wikipedia(monkeypatch):
    monkeypatch.setattr(wikipedia, "sentences_by_article", lambda store=None: ARTICLES)


def test_a_spec_goes_to_json_and_back_and_into_a_key():
    spec = DatasetSpec("file", "x.csv", column="de", limit=5, options=(("empty", "drop"),))
    assert DatasetSpec.from_json(spec.to_json()) == spec
    assert digest_of(spec) != digest_of(
        DatasetSpec("file", "x.csv", column="en", limit=5, options=spec.options)
    )
    assert len({spec, DatasetSpec.from_json(spec.to_json())}) == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DatasetSpec("digit"), r"source: expected one of 'digits'.*got 'digit'"),
        (lambda: DatasetSpec("digits", limit=0), r"limit: expected a whole number.*got 0"),
        (
            lambda: DatasetSpec.from_json({"source": "digits", "colour": 1}),
            r"dataset: expected settings among .*'colour'",
        ),
        (
            lambda: load_dataset(DatasetSpec("digits", options=(("a", 1),))),
            r"options: expected 'look' for .*'digits', got 'a'",
        ),
        (
            lambda: load_dataset(DatasetSpec("wikipedia", options=(("articles", 0),))),
            r"articles: expected a whole number.*0",
        ),
    ],
)
def test_wrong_specs_say_what_is_right(make, message):
    with pytest.raises(SpaceError, match=message):
        make()


def test_digits_are_scikit_learns():
    digits, known = load_dataset(DatasetSpec("digits")), load_digits()
    assert (len(digits), digits.kind) == (1797, "images")
    assert digits.labels.tolist() == [str(label) for label in known.target]
    images = digits.items(5, 8)
    assert [(image.mode, image.size) for image in images] == [("L", (8, 8))] * 3
    for image, scan in zip(images, known.images[5:8], strict=True):
        assert np.abs(np.asarray(image) / 255 * 16 - scan).max() <= 16 / 255 / 2
    assert load_dataset(DatasetSpec("digits", limit=3)).ids.tolist() == ["digits/0", "digits/1", "digits/2"]


def test_items_are_asked_for_within_bounds():
    digits = load_dataset(DatasetSpec("digits", limit=3))
    assert digits.items(3, 3) == []
    for start, stop in ((2, 4), (-1, 1), (2, 1)):
        with pytest.raises(IndexError, match=f"got {start} and {stop}"):
            digits.items(start, stop)
    with pytest.raises(SpaceError, match="expected a graph, got images"):
        digits.graph()
    with pytest.raises(ValueError, match="read-only"):
        digits.labels[0] = "9"


def test_equal_content_equal_digest_and_every_part_counts():
    def dataset(texts, ids="ab", labels=None, name="t"):
        return Dataset(
            lambda start, stop: list(texts[start:stop]), list(ids), name=name, kind="texts", labels=labels
        )

    digest = dataset(["x", "y"]).digest
    assert dataset(["x", "y"], name="other").digest == digest
    others = [
        dataset(["x", "z"]),
        dataset(["xy", ""]),
        dataset(["x", "y"], "ac"),
        dataset(["x", "y"], labels=["p", "q"]),
    ]
    assert len({digest, *(other.digest for other in others)}) == 5


def test_digest_reads_piece_by_piece():
    asked = []

    def read(start, stop):
        asked.append(stop - start)
        return ["t"] * (stop - start)

    dataset = Dataset(read, [str(i) for i in range(1000)], name="t", kind="texts")
    assert not asked
    assert dataset.digest == dataset.digest
    assert sum(asked) == 1000
    assert max(asked) <= 256


@pytest.mark.parametrize(
    ("limit", "rows"),
    [(None, [0, 1, 2, 3, 4, 5]), (3, [0, 3, 4]), (5, [0, 1, 3, 4, 5]), (1, [0]), (9, [0, 1, 2, 3, 4, 5])],
)
def test_a_limit_takes_of_every_class(limit, rows):
    assert evenly(["p", "p", "p", "q", "r", "r"], limit).tolist() == rows


@pytest.mark.usefixtures("small_wikipedia")
def test_longest_articles_and_so_many_sentences_each():
    dataset = load_dataset(DatasetSpec("wikipedia", options=(("articles", 2), ("per_article", 2))))
    assert dataset.ids.tolist() == ["B/0", "B/1", "C/0", "C/1"]
    assert dataset.labels.tolist() == ["B", "B", "C", "C"]
    assert dataset.items(1, 3) == ["b two.", "c one."]
    first = load_dataset(
        DatasetSpec("wikipedia", options=(("articles", 1), ("fewest", 2), ("per_article", 1)))
    )
    assert first.ids.tolist() == ["B/0"]
    with pytest.raises(SpaceError, match=r"expected at most the \d sentences of the longest article, got 9"):
        load_dataset(DatasetSpec("wikipedia", options=(("fewest", 9),)))
    assert load_dataset(DatasetSpec("wikipedia", limit=4)).ids.tolist() == ["B/0", "B/1", "A/0", "C/0"]


def test_sentences_come_from_prose_without_markup():
    article = (
        "==Heading that is long enough to be taken for a sentence.==\n'''Bold''' words begin this first (, )"
        " sentence of text. It takes in 3.5 million more of them, and so on, here. Short one.\n* A list item"
        " that is long enough to be a sentence."
    )
    assert wikipedia._sentences(article) == [
        "Bold words begin this first sentence of text.",
        "It takes in 3.5 million more of them, and so on, here.",
    ]


@pytest.mark.slow
def test_wikipedia_is_parsed_once(tmp_path, monkeypatch):
    store = Store(tmp_path)
    whole = load_dataset(DatasetSpec("wikipedia"), store)
    entries = {entry.name: entry.n for entry in available_datasets(tmp_path)}
    assert len(whole) == entries["wikipedia"]
    assert len(set(whole.labels)) == 103
    assert whole.item(0).startswith("Anarchism is a political philosophy")
    monkeypatch.setattr(wikipedia, "_parsed", lambda path: pytest.fail("parsed again"))
    assert load_dataset(DatasetSpec("wikipedia"), store).digest == whole.digest
    task = load_dataset(wikipedia.TASK, store)
    assert len(task) == entries["wikipedia, 16 articles"]
    assert np.unique(task.labels.astype(str), return_counts=True)[1].max() == 400


def test_the_list_tells_what_is_here_without_the_network(tmp_path, monkeypatch):
    for variable in ("HF_HOME", "HF_DATASETS_CACHE"):
        monkeypatch.setenv(variable, str(tmp_path / "hub"))
    monkeypatch.delenv("RELSCOPE_DATA", raising=False)
    monkeypatch.setattr("socket.socket", lambda *_, **__: pytest.fail("the network was asked"))
    entries = {entry.name: entry for entry in available_datasets()}
    assert (entries["digits"].where, entries["digits"].n, entries["Cora"].where) == (
        "here",
        1797,
        "needs the network",
    )
    assert entries["ylecun/mnist"].where == "needs the network"
    (tmp_path / "hub" / "ylecun___mnist").mkdir(parents=True)
    assert {entry.name: entry.where for entry in available_datasets()}["ylecun/mnist"] == "here"


@pytest.mark.data
def test_the_development_data_are_found(data_folder):
    entries = {entry.name: entry for entry in available_datasets(data_folder)}
    kinds = {
        "mnist/test": "images",
        "trec/train": "texts",
        "multi30k/val": "texts",
        "Cora": "graph",
        "CiteSeer": "graph",
    }
    assert {name: entries[name].kind for name in kinds} == kinds
    for name in ("mnist/test", "trec/test", "multi30k/val"):
        dataset = load_dataset(entries[name].spec)
        assert (len(dataset), dataset.kind) == (entries[name].n, entries[name].kind)
    assert datasets.columns_of(entries["multi30k/val"].spec).items == ("en", "de", "fr", "cs")


def test_small_pictures_become_squares_and_large_ones_shrink():
    digits = load_dataset(DatasetSpec("digits", limit=2))
    shown = Image.open(io.BytesIO(png_thumbnail(digits.item(1), 80)))
    assert (shown.format, shown.size) == ("PNG", (80, 80))
    np.testing.assert_array_equal(np.asarray(shown)[::10, ::10], np.asarray(digits.item(1)))
    assert Image.open(io.BytesIO(png_thumbnail(Image.new("RGB", (400, 200)), 96))).size == (96, 48)


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "CMYK", "I;16", "I", "F", "YCbCr"])
def test_every_mode_has_a_thumbnail(mode):
    ramp = Image.fromarray(np.tile(np.arange(0, 256, dtype=np.float32), (4, 1)))
    image = (
        ramp.convert("I").convert("I;16")
        if mode == "I;16"
        else ramp
        if mode == "F"
        else ramp.convert("L").convert(mode)
    )
    shown = np.asarray(Image.open(io.BytesIO(png_thumbnail(image, 64))).convert("L")).astype(int)
    assert shown[0, 0] < 40
    assert shown[0, -1] > 215
