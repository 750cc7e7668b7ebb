"""Tables and folders: what is found in them, how little is read, and where they go wrong."""

import io
from dataclasses import replace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from PIL import Image

from relcore.base.errors import SpaceError
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import available_datasets, columns_of, load_dataset, with_options
from relcore.encoders.item_tables import read_pair_list

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
    frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return DatasetSpec("file", str(path))


def write_images(path, contents, **columns):
    images = pa.array([{"bytes": content, "path": None} for content in contents])
    parquet.write_table(pa.table({"image": images, **columns}), path, row_group_size=10)
    return DatasetSpec("file", str(path))


@pytest.fixture
def read_rows(monkeypatch):
    rows = []
    iter_batches = parquet.ParquetFile.iter_batches

    def counted(self, *args, **kwargs):
        for batch in iter_batches(self, *args, **kwargs):
            rows.append(len(batch))
            yield batch

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", counted)
    return rows


def test_columns_are_found_and_two_of_them_pair(tmp_path):
    spec = write(PAIRS, tmp_path / "pairs.tsv")
    english = load_dataset(spec)
    german = load_dataset(DatasetSpec("file", spec.name, column="de", limit=2))
    assert english.items(0, 3) == PAIRS["en"].tolist()
    assert german.items(0, 2) == PAIRS["de"].tolist()[:2]
    assert english.ids.tolist() == ["pairs/0", "pairs/1", "pairs/2"]
    assert german.ids.tolist() == english.ids.tolist()[:2]
    assert english.labels.tolist() == ["p", "q", "p"]
    assert (english.name, german.name) == ("pairs · en", "pairs · de")
    assert (columns_of(spec).items, english.kind) == (("en", "de", "coarse_label"), "texts")


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


def test_only_the_rows_asked_for_are_read(tmp_path, read_rows):
    dataset = load_dataset(write_images(tmp_path / "t.parquet", [png(value) for value in range(100)]))
    assert read_rows == []
    assert [image.getpixel((0, 0)) for image in dataset.items(55, 58)] == [55, 56, 57]
    assert read_rows == [10]  # one row group
    dataset.items(57, 62)
    assert read_rows == [10, 10]
    assert dataset.digest
    assert sum(read_rows) == 100


def test_a_folder_of_tables_has_splits_and_parts(tmp_path):
    folder = tmp_path / "quiz"
    folder.mkdir()
    PAIRS.iloc[:2].to_parquet(folder / "train-00000-of-00002.parquet")
    PAIRS.iloc[2:].to_parquet(folder / "train-00001-of-00002.parquet")
    write(PAIRS, folder / "test.csv")
    train = load_dataset(DatasetSpec("folder", str(folder), "train"))
    assert train.items(1, 3) == PAIRS["en"].tolist()[1:]
    assert train.ids[2] == "quiz/train/2"
    test = load_dataset(DatasetSpec("folder", str(folder), "test"))
    assert test.digest == load_dataset(DatasetSpec("file", str(folder / "test.csv"))).digest
    with pytest.raises(SpaceError, match="split: expected one of 'test', 'train', got ''"):
        load_dataset(DatasetSpec("folder", str(folder)))
    entries = {entry.name: entry for entry in available_datasets(tmp_path)}
    assert (entries["quiz/train"].n, entries["quiz/test"].n) == (3, None)
    assert load_dataset(entries["quiz/train"].spec).digest == train.digest


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


def test_ids_come_from_the_column_of_ids(tmp_path):
    frame = pd.DataFrame({"id": ["a", "b", "c"], "text": ["x", None, "z"], "n": [1, 2, 2]})
    spec = write(frame, tmp_path / "t.csv")
    assert columns_of(spec).ids == "id"
    spec = replace(spec, options=(("empty", "drop"),))
    with pytest.raises(SpaceError, match="id_column: expected distinct ids in 'n', got '2'"):
        load_dataset(with_options(spec, id_column="n"))
    with pytest.raises(SpaceError, match="id_column: expected one of 'id', 'text', 'n', got 'key'"):
        load_dataset(with_options(spec, id_column="key"))
    assert load_dataset(with_options(spec, id_column="id")).ids.tolist() == ["a", "c"]
    for name in ("n", "text"):  # neither repeated nor empty ids are proposed
        renamed = frame.drop(columns="id").rename(columns={name: "item_id"})
        assert columns_of(write(renamed, tmp_path / "t.csv")).ids == ""


def test_a_list_of_pairs_has_the_columns_of_text(tmp_path):
    path = tmp_path / "list.tsv"
    path.write_text("n\ten\tfr\n1\tGood  day\tBonjour\n2\tThanks\tMerci\n")
    found = read_pair_list(path)
    assert (found.name, len(found)) == ("list", 2)
    assert found.columns == {"en": ("Good day", "Thanks"), "fr": ("Bonjour", "Merci")}
    assert found.pairs("fr", "en")[0] == ("Bonjour", "Good day")
