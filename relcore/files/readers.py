"""The readers of vector files by suffix, and why a file has none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from relcore.base.errors import SpaceError
from relcore.files.arrays import read_npy, read_npz
from relcore.files.faiss_index import read_faiss
from relcore.files.h5ad import read_h5ad
from relcore.files.pickled import read_kv
from relcore.files.rows import Rows
from relcore.files.tables import TABLES, read_delimited, read_typed
from relcore.files.tensors import read_safetensors, read_torch
from relcore.files.word_vectors import read_word2vec, read_word2vec_binary, read_word2vec_text

READERS: dict[str, Callable[..., Rows]] = {
    ".npy": read_npy,
    ".npz": read_npz,
    ".safetensors": read_safetensors,
    ".parquet": read_typed,
    ".arrow": read_typed,
    ".feather": read_typed,
    ".csv": read_delimited,
    ".tsv": read_delimited,
    ".bin": read_word2vec_binary,
    ".bin.gz": read_word2vec_binary,
    ".vec": read_word2vec_text,
    ".vec.gz": read_word2vec_text,
    ".txt": read_word2vec_text,
    ".txt.gz": read_word2vec_text,
    ".gz": read_word2vec,
    ".kv": read_kv,
    ".faiss": read_faiss,
    ".index": read_faiss,
    ".h5ad": read_h5ad,
    ".pt": read_torch,
    ".pth": read_torch,
}
WITH_MATRICES = (".npz", ".safetensors", ".h5ad", ".pt", ".pth")
WITH_MAPS = (".npy", ".safetensors", ".parquet", ".arrow", ".feather")  # which can be used where they lie
WITH_COLUMNS = (*TABLES, ".h5ad")
_PICKLES = (".pkl", ".pickle", ".joblib")
_NO_PICKLES = (
    "opening a pickle can run code, so Relscope never does; where you trust the file, save it once as .npz:"
    " data = pickle.load(open(path, 'rb')); numpy.savez('vectors.npz', vectors=data['embeddings'],"
    " ids=data['sentences'])"
)


def suffix_of(path: Path) -> str | None:
    """The known suffix of a file, ``".vec.gz"`` before ``".gz"``, or None."""
    endings = sorted((suffix for suffix in READERS if path.name.lower().endswith(suffix)), key=len)
    return endings[-1] if endings else None


def known_suffix(path: Path) -> str:
    """`suffix_of` a file that has one.

    Raises
    ------
    SpaceError
        No reader for it; for a pickle, how to save it in another form.
    """
    suffix = suffix_of(path)
    if suffix is None and path.name.lower().endswith(_PICKLES):
        raise SpaceError(f"{path.name}: expected vectors, got a pickle; {_NO_PICKLES}")
    if suffix is None:
        raise SpaceError(
            f"{path.name}: expected a file that ends in {', '.join(READERS)}; got"
            f" {path.suffix or 'no suffix'!r}, convert or rename it"
        )
    return suffix
