"""Tables and folders: what is found in them, how little is read, and where they go wrong."""

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from PIL import Image

from relcore.base.errors import SpaceError
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import available_datasets, columns_of, load_dataset
from relcore.files import items

PAIRS = pd.DataFrame(
    {
        "en": ["a dog", "a cat", "a, b"],
        "de": ["ein Hund", 'eine\n"Katze"', "ä"],
        "coarse_label": ["p", "q", "p"],
    }
)


def png(value=0, size=(3, 2), mode="L"):
    content = io.BytesIO()
    Image.new(mode, size, value).save(content, "PNG")
    return content.getvalue()


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return DatasetSpec("file", str(path))


def write_images(path, contents, **columns):
    images = pa.array([{"bytes": content, "path": None} for content in contents])
    parquet.write_table(pa.table({"image": images, **columns}), path, row_group_size=10)
    return DatasetSpec("file", str(path))


@pytest.fixture
def read_rows(monkeypatch):
    """Numbers of rows that pyarrow handed out, batch by batch."""
    rows, iter_batches = [], parquet.ParquetFile.iter_batches

    def counted(self, *args, **kwargs):
        for batch in iter_batches(self, *args, **kwargs):
            rows.append(len(batch))
            yield batch

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", counted)
    return rows


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_columns_are_found_and_two_of_them_pair(tmp_path, suffix):
    spec = write(PAIRS, tmp_path / f"pairs{suffix}")
    english, german = load_dataset(spec), load_dataset(DatasetSpec("file", spec.name, column="de", limit=2))
    assert english.items(0, 3) == PAIRS["en"].tolist()
    assert german.items(0, 2) == PAIRS["de"].tolist()[:2]
    assert english.ids.tolist() == ["pairs/0", "pairs/1", "pairs/2"]
    assert german.ids.tolist() == english.ids.tolist()[:2]
    assert english.labels.tolist() == ["p", "q", "p"]
    assert (english.name, german.name) == ("pairs · en", "pairs · de")
    assert (columns_of(spec).items, english.kind) == (("en", "de", "coarse_label"), "texts")


def test_formats_agree(tmp_path):
    digests = {
        load_dataset(write(PAIRS, tmp_path / f"pairs{suffix}")).digest
        for suffix in (".csv", ".tsv", ".parquet")
    }
    assert len(digests) == 1


def test_images_in_huggingfaces_layout(tmp_path):
    contents = [png(10), png((1, 2, 3), (5, 5), "RGB")]
    spec = write_images(tmp_path / "test.parquet", contents, label=[3.0, 1.0], caption=["x", "y"])
    dataset = load_dataset(spec)
    assert [(image.mode, image.size) for image in dataset.items(0, 2)] == [("L", (3, 2)), ("RGB", (5, 5))]
    assert dataset.item(1).getpixel((0, 0)) == (1, 2, 3)
    assert dataset.labels.tolist() == ["3", "1"]
    assert dataset.ids[0] == f"{tmp_path.name}/test/0"
    captions = load_dataset(DatasetSpec("file", spec.name, column="caption"))
    assert (captions.kind, captions.ids.tolist()) == ("texts", dataset.ids.tolist())


def test_images_by_path_and_class_names(tmp_path):
    (tmp_path / "a.png").write_bytes(png(7))
    table = pa.table(
        {
            "image": pa.array([{"bytes": None, "path": "a.png"}, {"bytes": None, "path": "b.png"}]),
            "label": [1, -1],
        }
    )
    names = b'{"info": {"features": {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}}}'
    parquet.write_table(table.replace_schema_metadata({b"huggingface": names}), tmp_path / "t.parquet")
    dataset = load_dataset(DatasetSpec("file", str(tmp_path / "t.parquet")))
    assert dataset.labels.tolist() == ["dog", ""]
    assert dataset.item(0).getpixel((0, 0)) == 7
    with pytest.raises(SpaceError, match=r"t.parquet, row 1: expected the image 'b.png', got No such file"):
        dataset.item(1)


def test_only_the_rows_asked_for_are_read(tmp_path, read_rows):
    dataset = load_dataset(write_images(tmp_path / "t.parquet", [png(value) for value in range(100)]))
    assert read_rows == []
    assert [image.getpixel((0, 0)) for image in dataset.items(55, 58)] == [55, 56, 57]
    assert read_rows == [10]  # one row group
    dataset.items(57, 62)
    assert read_rows == [10, 10]
    assert dataset.digest
    assert sum(read_rows) == 100


def test_a_table_larger_than_what_is_held(tmp_path, monkeypatch):
    monkeypatch.setattr(items, "_REMEMBERED_BYTES", 1 << 20)
    content = np.random.default_rng(0).bytes(80 << 20)
    images = [content[start : start + 20_000] for start in range(0, len(content), 20_000)]
    parquet.write_table(pa.table({"image": images}), tmp_path / "t.parquet", use_dictionary=False)
    table = items.open_table([tmp_path / "t.parquet"])
    before, held = pa.total_allocated_bytes(), 0
    for start in range(0, len(images), 200):
        assert table.read("image", start, start + 2) == images[start : start + 2]
        held = max(held, pa.total_allocated_bytes() - before)
    assert held < len(content) / 3


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_empty_text_is_named_or_dropped(tmp_path, suffix):
    spec = write(
        pd.DataFrame({"text": ["a", " ", "b", None, "c"], "label": [1, 2, 3, 4, None]}),
        tmp_path / f"t{suffix}",
    )
    with pytest.raises(
        SpaceError, match=r"2 empty of 5 \(rows 1, 3, counted from 0\); fill them.*empty='drop'"
    ):
        load_dataset(spec)
    dataset = load_dataset(DatasetSpec("file", spec.name, options=(("empty", "drop"),)))
    assert dataset.ids.tolist() == ["t/0", "t/2", "t/4"]
    assert dataset.items(0, 3) == ["a", "b", "c"]
    assert dataset.items(1, 3) == ["b", "c"]
    assert [label.removesuffix(".0") for label in dataset.labels] == ["1", "3", ""]


def test_unreadable_images_are_named(tmp_path):
    dataset = load_dataset(write_images(tmp_path / "t.parquet", [png(), png()[:40], b"", b"%!PS-Adobe"]))
    for row, message in (
        (1, r"row 1: expected an image \(PNG.*cannot be read"),
        (2, "row 2: .*got nothing"),
        (3, "row 3: .*cannot"),
    ):
        with pytest.raises(SpaceError, match=message):
            dataset.items(row, row + 1)
    assert len(dataset.digest) == 32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"column": "es"},
            r"column: expected one with images or text, of 'en', 'de', 'coarse_label', got 'es'",
        ),
        ({"column": "year"}, r"got 'year', which holds numbers"),
        ({"label_column": "kind"}, r"label_column: expected one with text or numbers, of .*got 'kind'"),
        ({"options": (("empty", "keep"),)}, r"empty: expected 'error' or 'drop', got 'keep'"),
        ({"name": "nowhere.csv"}, r"expected a file, got 'nowhere.csv', where there is none"),
    ],
)
def test_wrong_choices_list_what_there_is(tmp_path, change, message):
    spec = write(PAIRS.assign(year=[1, 2, 3]), tmp_path / "t.csv")
    with pytest.raises(SpaceError, match=message):
        load_dataset(DatasetSpec(**({"source": "file", "name": spec.name} | change)))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"a,b\n1,x\n2\n", r"t.csv, line 3: expected 2 cells as in line 1, got 1"),
        ("t.csv", b"a,b\n1,caf\xe9\n", r"save it as UTF-8"),
        ("t.csv", b"a,a\n1,x\n", r"expected distinct column names in the first line, got 'a', 'a'"),
        ("t.csv", b'text\nsome\n"open\n', r"expected cells in pairs of quotes"),
        ("t.csv", b"text\na\0b\n", r"a zero byte"),
        (
            "t.csv",
            b"text\n" + b"x" * (9 << 20),
            r"a line that is too long",
        ),
        ("t.csv", b"", r"expected a line of column names"),
        ("t.csv", b"text\n", r"expected at least one row, got none"),
        ("t.csv", b"a,b\n1,2\n", r"expected a column of images or text, got only 'a', 'b'"),
        ("t.parquet", b"PAR1 no", r"expected a \.parquet file that can be read"),
        ("t.json", b"{}", r"expected a table that ends in .parquet, .csv, .tsv, got '.json'"),
    ],
)
def test_broken_tables_say_where(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SpaceError, match=message):
        load_dataset(DatasetSpec("file", str(tmp_path / name)))


def test_a_folder_of_tables_has_splits_and_parts(tmp_path):
    folder = tmp_path / "quiz"
    folder.mkdir()
    PAIRS.iloc[:2].to_parquet(folder / "train-00000-of-00002.parquet")
    PAIRS.iloc[2:].to_parquet(folder / "train-00001-of-00002.parquet")
    write(PAIRS, folder / "test.csv")
    train = load_dataset(DatasetSpec("folder", str(folder), "train"))
    assert train.items(1, 3) == PAIRS["en"].tolist()[1:]
    assert train.ids[2] == "quiz/train/2"
    assert (
        load_dataset(DatasetSpec("folder", str(folder), "test")).digest
        == load_dataset(DatasetSpec("file", str(folder / "test.csv"))).digest
    )
    with pytest.raises(SpaceError, match="split: expected one of 'test', 'train', got ''"):
        load_dataset(DatasetSpec("folder", str(folder)))
    entries = {entry.name: entry for entry in available_datasets(tmp_path)}
    assert (entries["quiz/train"].n, entries["quiz/test"].n) == (3, None)
    assert load_dataset(entries["quiz/train"].spec).digest == train.digest


def test_a_table_of_vectors_is_no_dataset(tmp_path):
    write(
        pd.DataFrame(np.zeros((2, 50))).add_prefix("x").assign(word=["a", "b"]), tmp_path / "vectors.parquet"
    )
    assert "vectors" not in {entry.name for entry in available_datasets(tmp_path)}


@pytest.fixture
def pictures(tmp_path):
    folder = tmp_path / "pets"
    for name, value in (("cat/1.png", 1), ("cat/2.PNG", 2), ("cat/far/3.png", 3), ("dog/1.png", 4)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(png(value))
    (folder / "dog" / "notes.txt").write_text("no picture")
    return folder


def test_a_folder_of_pictures_by_class(pictures):
    dataset = load_dataset(DatasetSpec("folder", str(pictures)))
    assert dataset.ids.tolist() == ["cat/1.png", "cat/2.PNG", "cat/far/3.png", "dog/1.png"]
    assert dataset.labels.tolist() == ["cat", "cat", "cat", "dog"]
    assert [image.getpixel((0, 0)) for image in dataset.items(1, 4)] == [2, 3, 4]
    assert load_dataset(DatasetSpec("folder", str(pictures), limit=2)).labels.tolist() == ["cat", "dog"]
    (entry,) = (entry for entry in available_datasets(pictures.parent) if entry.spec.source == "folder")
    assert load_dataset(entry.spec).digest == dataset.digest
    (pictures / "cat" / "2.PNG").write_bytes(b"gone")
    with pytest.raises(SpaceError, match=r"row 1, .*2.PNG: expected an image"):
        dataset.items(1, 2)


def test_pictures_in_train_and_test(pictures):
    root = pictures.parent / "both"
    root.mkdir()
    pictures.rename(root / "train")
    (root / "test").mkdir()
    (root / "test" / "1.png").write_bytes(png())
    train = load_dataset(DatasetSpec("folder", str(root), "train"))
    assert (train.name, train.ids[0], train.labels[0]) == ("both/train", "train/cat/1.png", "cat")
    assert load_dataset(DatasetSpec("folder", str(root), "test")).labels is None
    listed = [entry.name for entry in available_datasets(root.parent) if entry.spec.source == "folder"]
    assert listed == ["both/test", "both/train"]
    with pytest.raises(SpaceError, match="split: expected one of 'test', 'train', got 'dev'"):
        load_dataset(DatasetSpec("folder", str(root), "dev"))


def test_an_empty_or_missing_folder(tmp_path):
    with pytest.raises(SpaceError, match=r"expected tables .* or pictures .*, got none"):
        load_dataset(DatasetSpec("folder", str(tmp_path)))
    with pytest.raises(SpaceError, match="expected a folder, got 'nowhere'"):
        load_dataset(DatasetSpec("folder", "nowhere"))
