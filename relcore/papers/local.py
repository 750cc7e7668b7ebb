"""Data of the papers that are not bundled: read from the data folder (RELSCOPE_DATA)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from relcore.base.access import data_folder
from relcore.base.errors import SpaceError
from relcore.catalog.encoding import encode
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import Encoder
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace
from relcore.stitch.autoencoders import PictureSpec
from relcore.studies.material import dataset_of, labelled_spaces, test_ids_of


def folder_of(name: str) -> Path | None:
    """A folder of the data folder, such as ``"trec"``; None where there is none."""
    data = data_folder()
    path = data / name if data else None
    return path if path and path.is_dir() else None


def labelled(data: str, store: Store, report: Report) -> tuple[list[LatentSpace], tuple[str, ...]]:
    """Four spaces over the same labelled items, and the ids to test on: "digits", "mnist", "sentences" or
    "trec".

    No ids where the test rows are to be drawn. Errors as in `encode`; MNIST or TREC that are not in the data
    folder.
    """
    if data == "digits":
        spaces = labelled_spaces(data, store, report)
        return spaces, test_ids_of(data, spaces[0])
    if data == "mnist":
        spaces = [space for one in picture_encoders() for space in encode(mnist(5_000), one, store, report)]
        return spaces, test_ids_of("digits", spaces[0])
    dataset = trec() if data == "trec" else dataset_of("sentences")
    spaces = [space for encoder in text_encoders() for space in encode(dataset, encoder, store, report)]
    return spaces, tuple(one for one in spaces[0].ids if one.startswith("test/")) if data == "trec" else ()


def text_encoders() -> tuple[Encoder, ...]:
    """Four encoders of texts, each trained without the others; layers of one model would share some of
    their coordinates.
    """
    from relcore.encoders.sentences import PooledWords, TfidfSvd
    from relcore.encoders.transformers import MiniLM

    return TfidfSvd(), PooledWords("word2vec-novels"), PooledWords("fasttext-novels"), MiniLM()


def picture_encoders() -> tuple[Encoder, ...]:
    """Four small networks for MNIST at 14 × 14 pixels; a fifth of the pictures is held out from all of
    them.
    """
    from relcore.encoders.small_vision import SmallVision

    return tuple(SmallVision(name, epochs=5, image_size=14) for name in ("mlp", "cnn", "residual", "vit"))


def captions() -> Path:
    """Multi30k's training captions, a column per language: "en", "de", "fr", "cs"."""
    return _needed("multi30k") / "train.parquet"


def graph(name: str, store: Store) -> Dataset:
    """ "Cora" or "CiteSeer", a node an item."""
    return load_dataset(
        DatasetSpec("planetoid", name, options=(("folder", str(_needed("planetoid"))),)), store
    )


def mnist(limit: int) -> DatasetSpec:
    """The first `limit` of MNIST's 60,000 training pictures."""
    return DatasetSpec("file", str(_needed("mnist") / "train.parquet"), limit=limit)


def labels_of(name: str, store: Store) -> Counter[str]:
    """Number of labelled items in each class: of "MNIST", "Cora", "CiteSeer", "TREC, coarse" or "TREC,
    fine", all parts.
    """
    if name.startswith("TREC"):
        column = f"{name.partition(', ')[2]}_label"
        specs = [
            DatasetSpec("folder", str(_needed("trec")), part, "text", column) for part in ("train", "test")
        ]
    elif name == "MNIST":
        specs = [DatasetSpec("file", str(_needed("mnist") / f"{part}.parquet")) for part in ("train", "test")]
    else:
        return Counter(label for label in graph(name, store).labels if label != "")
    return Counter(label for spec in specs for label in load_dataset(spec, store).labels if label != "")


def picture_spec(data: str, n_train: int = 5_000, image_size: int | None = None) -> PictureSpec:
    """Pictures to train on, and up to 1,000 others to try: of "digits", or of the first 10,000 of "mnist"."""
    return PictureSpec(
        DatasetSpec("digits") if data == "digits" else mnist(10_000), n_train, image_size=image_size
    )


def trec() -> Dataset:
    """TREC's questions, train and test in one, with ids that say which; labels are the 6 coarse classes."""
    folder = _needed("trec")
    ids, texts, labels = [], [], []
    for part in ("train", "test"):
        table = load_dataset(DatasetSpec("folder", str(folder), part, "text", "coarse_label"))
        texts += table.items(0, len(table))
        labels += table.labels.tolist()
        ids += [f"{part}/{number}" for number in range(len(table))]
    return Dataset(lambda start, stop: texts[start:stop], ids, name="trec", kind="texts", labels=labels)


def _needed(name: str) -> Path:
    if folder := folder_of(name):
        return folder
    raise SpaceError(
        f"{name}: expected a folder {name} in the data folder, which RELSCOPE_DATA names, got none; put it"
        " there"
    )
