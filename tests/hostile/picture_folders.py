"""Hostile folders of pictures; the independent reading walks the folder with os.walk and Pillow."""

from functools import partial
from pathlib import Path

from tests.hostile.cases import Case, csv_table, hole, link, pipe
from tests.hostile.item_tables import dataset
from tests.hostile.picture_bytes import picture, pixels

FOLDER = "shapes"
PNG = picture("PNG")
JPEG = picture("JPEG")


def case(name, files, right=None, accept=False, **spec):
    files = {f"{FOLDER}/{path}": content for path, content in files.items()}
    names = tuple({FOLDER, *(Path(path).name for path in files), *spec})
    read = dataset(FOLDER, source="folder", **spec)
    of_settings = "split" in name or "limit" in name
    return Case(name, read, files, right, accept=accept, names=names, remedy=not of_settings)


def cases():
    two = {"items": [pixels(PNG), pixels(JPEG)], "labels": ["cat", "dog"]}
    yield case("control: classes", {"cat/1.png": PNG, "dog/2.jpg": JPEG}, two, accept=True)
    yield case("control: no classes", {"1.png": PNG, "2.jpg": JPEG}, two | {"labels": None}, accept=True)
    yield case("control: splits", {"train/cat/1.png": PNG, "test/dog/2.jpg": JPEG},
               {"items": [pixels(JPEG)], "labels": ["dog"]}, accept=True, split="test")  # fmt: skip
    texts = {"items": ["a", "b"], "labels": None}
    yield case("control: a table", {"train.csv": csv_table([["text"], ["a"], ["b"]])}, texts, accept=True)
    yield case("a split is not chosen", {"train/cat/1.png": PNG, "test/dog/2.jpg": JPEG})
    yield case("nothing in it", {".keep": b""})
    yield case("a folder called .png", {"cat/1.png": PNG, "dog/2.png/3.jpg": JPEG}, two)
    files = {"items": [pixels(PNG)], "labels": ["cat"]}  # what is no file is no picture of the folder
    yield case("a link to a device", {"cat/1.png": PNG, "dog/2.png": link("/dev/zero")}, files)
    circle = {"cat/1.png": PNG, "dog/2.jpg": JPEG, "dog/loop": link("..")}
    yield case("a folder that contains itself", circle, two)
    yield case("a picture of 3 GB that begins well", {"cat/1.png": PNG, "dog/2.png": hole(3 * 10**9, PNG)})
    deep = {"/".join(["d"] * 100) + "/1.png": PNG}
    yield case("100 folders deep", deep, {"items": [pixels(PNG)], "labels": ["d"]})
    many = {f"c{number}/1.png": PNG for number in range(1000)}
    five = {"items": [pixels(PNG)] * 5, "labels": ["c0", "c1", "c10", "c100", "c101"]}
    yield case("1,000 classes", many, five, limit=5)
    yield case("a limit of 0", {"cat/1.png": PNG}, limit=0)
    yield case("a table beside the pictures", {"cat/1.png": PNG, "a.csv": b"\0\0"})
    yield case("a split as a named pipe", {"train.csv": pipe})
    for name in ("missing", f"{FOLDER}/1.png"):
        read = dataset(name, source="folder")
        files = {f"{FOLDER}/1.png": PNG}
        yield Case(f"not a folder: {name}", read, files, names=(name,))
    for name in ("~nosuchuser/pictures", "a\0b", "x" * 5000):
        read = partial(dataset(name, source="folder"), Path())
        yield Case(f"a path of {name[:20]!r}", lambda _, read=read: read(), names=(name[:20], "path"))
