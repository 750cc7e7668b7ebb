"""In a shared app every way in which a path reaches a reader is held to the data folder and the session's
own uploads.
"""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from PIL import Image

from relcore.base import access
from relcore.base.access import AccessContext
from relcore.base.errors import SpaceError
from relcore.catalog import catalog
from relcore.catalog.catalog import SpaceSpec, encoding_spec, renamed_spec
from relcore.catalog.encodings import encode, encoding_key, put_space
from relcore.catalog.renamed import put_pairing
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import available_datasets, columns_of, load_dataset
from relcore.encoders.model_files import content_of_model, model_folder
from relcore.encoders.sentences import PooledWords, TfidfSvd
from relcore.encoders.transformers import PretrainedText
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace

LINES = [f"the {word} of number {row},{row % 2}" for row, word in enumerate(["cat", "dog"] * 10)]
TEXTS = "\n".join(["text,label", *LINES, ""])
SECRET = "swordfish"


@pytest.fixture
def shared(tmp_path, monkeypatch):
    """A shared app: a data folder, two sessions' uploads of which "mine" asks, and a folder that nobody
    may read.
    """
    monkeypatch.setattr(access, "all_uploads", lambda: tmp_path / "uploads")
    for name in ("data", "secret", "uploads/mine", "uploads/other"):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / "texts.csv").write_text(TEXTS.replace("cat", SECRET) if name == "secret" else TEXTS)
        np.save(folder / "vectors.npy", np.eye(4))
        (folder / "pictures" / "a").mkdir(parents=True)
        Image.new("L", (8, 8), 7).save(folder / "pictures" / "a" / "one.png")
    monkeypatch.setenv(access.ENVIRONMENT, "1")
    monkeypatch.setenv(access.DATA, str(tmp_path / "data"))
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    asker = AccessContext(tmp_path / "uploads" / "mine", set())
    monkeypatch.setattr(access, "_find_asker", lambda: asker)
    return tmp_path


def refused(read, *arguments):
    with pytest.raises(SpaceError, match="not open to this session") as caught:
        read(*arguments)
    assert SECRET not in str(caught.value)
    return str(caught.value)


def test_files_and_folders_of_others_are_refused_by_every_source(shared):
    folder = shared / "uploads" / "other"
    refused(catalog.load, SpaceSpec("file", str(folder / "vectors.npy")))
    refused(catalog.load, renamed_spec(SpaceSpec("file", str(folder / "vectors.npy")), "0" * 32, "renamed"))
    own = str(shared / "data" / "vectors.npy")
    refused(catalog.load, SpaceSpec("file", own, options=(("metadata", str(folder / "texts.csv")),)))
    specs = [
        DatasetSpec("file", str(folder / "texts.csv")),
        DatasetSpec("folder", str(folder)),
        DatasetSpec("folder", str(folder / "pictures")),
        DatasetSpec("huggingface", str(folder)),
    ]
    for spec in specs:
        refused(load_dataset, spec)
        refused(columns_of, spec)
    refused(catalog.available, folder)
    refused(available_datasets, folder)
    refused(model_folder, str(folder))
    refused(content_of_model, str(folder))
    refused(PretrainedText(str(folder)).content)
    refused(PooledWords(str(folder / "vectors.npy")).content)


def test_own_uploads_are_read(shared):
    folder = shared / "uploads" / "mine"
    assert len(catalog.load(SpaceSpec("file", str(folder / "vectors.npy")))) == 4
    assert len(load_dataset(DatasetSpec("file", str(folder / "texts.csv")))) == 20
    assert len(load_dataset(DatasetSpec("folder", str(folder / "pictures")))) == 1
    assert {entry.name for entry in catalog.available(folder)} >= {"vectors.npy"}


def test_folder_of_uploads_is_no_model_and_no_dataset_of_hub(shared):
    """A README.md or a tokenizer's settings in it could name any file, and the libraries would read it."""
    mine = shared / "uploads" / "mine"
    (mine / "README.md").write_text(
        f"---\nconfigs:\n- config_name: default\n  data_files: {shared}/secret/texts.csv\n---\n"
    )
    refused(load_dataset, DatasetSpec("huggingface", str(mine)))
    refused(model_folder, str(mine))


def test_names_of_hub_lead_to_no_folder_and_fetch_nothing_unknown(shared, monkeypatch):
    monkeypatch.chdir(shared)
    monkeypatch.setenv("HF_DATASETS_CACHE", str(shared / "cache"))
    for name in ("secret", "uploads/other", "owner/not-on-the-list"):
        with pytest.raises(SpaceError, match="downloads no datasets"):
            load_dataset(DatasetSpec("huggingface", name))
        with pytest.raises(SpaceError, match="is not downloaded yet"):
            model_folder(name)
        assert content_of_model(name) == ""


def test_links_that_lead_out_are_neither_listed_nor_read(shared):
    data = shared / "data"
    secret = shared / "secret"
    (data / "link.csv").symlink_to(secret / "texts.csv")
    (data / "link.npy").symlink_to(secret / "vectors.npy")
    (data / "linked").symlink_to(secret)
    (data / "pictures" / "a" / "link.png").symlink_to(secret / "pictures" / "a" / "one.png")
    (data / "pictures" / "b").symlink_to(secret / "pictures" / "a")
    (data / "vectors.ids.txt").symlink_to(secret / "texts.csv")
    listed = [entry.name for entry in (*catalog.available(), *available_datasets())]
    assert "vectors.npy" in listed
    assert not [name for name in listed if "link" in name]
    for name in ("link.csv", "linked/texts.csv"):
        refused(load_dataset, DatasetSpec("file", str(data / name)))
    refused(catalog.load, SpaceSpec("file", str(data / "link.npy")))
    assert load_dataset(DatasetSpec("folder", str(data / "pictures"))).ids.tolist() == ["a/one.png"]
    assert catalog.load(SpaceSpec("file", str(data / "vectors.npy"))).ids.tolist() == ["0", "1", "2", "3"]


def test_pictures_of_table_stay_in_open_folders(shared):
    paths = ("pictures/a/one.png", "../../secret/pictures/a/one.png")
    rows = [{"bytes": None, "path": path} for path in paths]
    for folder in ("data", "uploads/mine"):
        parquet.write_table(pa.table({"image": pa.array(rows)}), shared / folder / "table.parquet")
        found = load_dataset(DatasetSpec("file", str(shared / folder / "table.parquet")))
        assert found.item(0).size == (8, 8)
        assert "row 1: expected the image" in refused(found.item, 1)


@pytest.fixture
def stored(shared, monkeypatch):
    """``stored(folder) -> spec``: an encoding of the texts of a folder, which someone who may read it put
    into the store.
    """

    def put(folder, encoder=TfidfSvd(4, min_texts=1)):  # noqa: B008, a frozen dataclass
        dataset = DatasetSpec("file", str(shared / folder / "texts.csv"))
        with monkeypatch.context() as worker:
            worker.setattr(access, "_find_asker", None)
            worker.setenv(access.ENVIRONMENT, "")
            encode(dataset, encoder, Store())
            key = encoding_key(load_dataset(dataset).digest, encoder)
        return encoding_spec(dataset, encoder, "", key, folder)

    return put


def test_an_encoding_opens_where_its_data_do(stored):
    assert len(catalog.load(stored("data"))) == 20


def test_naming_key_of_another_sessions_encoding_does_not_open_it(stored, shared):
    theirs = stored("secret")
    refused(catalog.load, theirs)
    own = DatasetSpec("file", str(shared / "data" / "texts.csv"))
    key = theirs.option("key")
    refused(catalog.load, encoding_spec(own, TfidfSvd(4, min_texts=1), "", key, "said to be mine"))
    renamed = renamed_spec(theirs, put_pairing(Store(), [("a", "b")]), "renamed")
    refused(catalog.load, renamed)


def test_encoding_through_vectors_of_another_session_does_not_open(stored, shared):
    np.savez(shared / "uploads" / "other" / "words.npz", vectors=np.eye(3), ids=["cat", "dog", "number"])
    encoder = PooledWords(str(shared / "uploads" / "other" / "words.npz"), "plain")
    refused(catalog.load, stored("data", encoder))


def test_session_opens_what_it_made_though_another_made_it_first(stored):
    theirs = stored("uploads/other")
    refused(catalog.load, theirs)
    access._find_asker().made.add(theirs.option("key"))
    assert len(catalog.load(theirs)) == 20


def test_entry_that_tells_no_dataset_does_not_open(shared):
    store = Store()
    key = put_space(store, LatentSpace(np.eye(4), list("abcd"), name="copy for a worker"))
    spec = encoding_spec(DatasetSpec("digits"), TfidfSvd(4), "", key, "guessed")
    refused(catalog.load, spec)
    metadata = {"dataset_spec": {"source": "digits"}, "encoder": TfidfSvd(4).to_record()}
    store.put("a" * 32, {"vectors": np.eye(4)}, metadata)
    refused(catalog.load, encoding_spec(DatasetSpec("digits"), TfidfSvd(4), "", "a" * 32, "no encoding"))
