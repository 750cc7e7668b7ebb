"""Files that have a pickle in them, or instead of them, for each reader that could come to unpickle it."""

import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from relcore import load_space
from relcore.migrate import adapter_files
from relcore.sharded.space import ShardedSpace
from tests.relcore.migrate.planted import Made, pairs
from tests.relcore.sharded.folders import whole

BOMB = bytes.fromhex("80044B0172FFFFFF7F2E")  # ten bytes that make the unpickler allocate gigabytes


@dataclass(frozen=True)
class Case:
    """`write(folder, None)` writes a valid file, and `write(folder, pickled)` a file of the same name that
    has a pickle in it. `load(folder)` reads the one that is there."""

    write: Callable[[Path, bytes | None], Path]
    load: Callable[[Path], object]


def npy(pickled, rows=2):
    """The bytes of a .npy: of numbers, or of the pickled objects."""
    stream = io.BytesIO()
    if pickled is None:
        np.save(stream, np.eye(rows, dtype=np.float32))
    else:
        header = {"descr": "|O", "fortran_order": False, "shape": (rows, rows)}
        np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue() + (pickled or b"")


def bare(name, usual):
    """A file that is nothing but the pickle."""

    def write(folder, pickled):
        path = folder / name
        path.write_bytes(usual() if pickled is None else pickled)
        return path

    return write


def objects(folder, pickled):
    return bare("x.npy", None)(folder, npy(pickled))


def torch_file():
    import torch

    stream = io.BytesIO()
    torch.save(torch.eye(2), stream)
    return stream.getvalue()


def torch_archive(folder, pickled):
    path = folder / "x.pt"
    path.write_bytes(torch_file())
    if pickled is not None:
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in (("data.pkl", pickled), ("version", b"3\n"), ("byteorder", b"little")):
                archive.writestr(f"x/{name}", content)
    return path


def archive(member):
    def write(folder, pickled):
        members = {"vectors": npy(None), member: npy(pickled)}
        if member == "ids" and pickled is None:
            del members["ids"]
        with zipfile.ZipFile(folder / "x.npz", "w") as file:
            for name, content in members.items():
                file.writestr(f"{name}.npy", content)
        return folder / "x.npz"

    return write


def shards(folder, pickled):
    (folder / "s").mkdir(exist_ok=True)
    (folder / "s" / "part-0.npy").write_bytes(npy(None))
    (folder / "s" / "part-1.npy").write_bytes(npy(pickled))
    return folder / "s" / "part-1.npy"


def faiss_file():
    import faiss

    index = faiss.IndexFlatL2(2)
    index.add(np.eye(2, dtype=np.float32))
    return faiss.serialize_index(index).tobytes()


def adapter_file(folder, pickled):
    path = folder / adapter_files.FILE
    if pickled is None:
        made = Made()
        (new, old) = pairs()
        made.fit(new, old)
        adapter_files.write_adapter(made, adapter_files.card_of(made, new, old, method="made"), path)
    else:
        path.write_bytes(pickled)
    return path


CASES = {
    "pt archive": Case(torch_archive, lambda folder: load_space(folder / "x.pt")),
    "npy of objects": Case(objects, lambda folder: load_space(folder / "x.npy")),
    "npz": Case(archive("vectors"), lambda folder: load_space(folder / "x.npz")),
    "npz ids": Case(archive("ids"), lambda folder: load_space(folder / "x.npz")),
    "faiss": Case(bare("x.faiss", faiss_file), lambda folder: load_space(folder / "x.faiss")),
    "adapter": Case(adapter_file, lambda folder: adapter_files.load(folder)),
    "shards": Case(shards, lambda folder: whole(ShardedSpace.open(str(folder / "s")))),
}
