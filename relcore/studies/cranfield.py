"""Cranfield by three models: 1,400 abstracts, 225 questions and judgements, from the data folder (RELSCOPE_DATA)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from relcore.access import data_folder
from relcore.encoding import encode
from relcore.migration.retrieval import Judgement, read_qrels
from relcore.progress import Report, silent
from relcore.sources.dataset import Dataset
from relcore.sources.encoder import Encoder
from relcore.spaces import LatentSpace, SpaceError
from relcore.store import Store, digest_of

MODELS = ("minilm", "tfidf", "word2vec")


@dataclass(frozen=True, eq=False)
class Model:
    """The abstracts and the questions by one model."""

    documents: LatentSpace
    queries: LatentSpace


def cranfield_folder() -> Path | None:
    """None where the data folder has no Cranfield."""
    data = data_folder()
    folder = data / "cranfield" if data else None
    return folder if folder and folder.is_dir() else None


def cranfield(store: Store, report: Report = silent) -> tuple[dict[str, Model], tuple[Judgement, ...]]:
    """`MODELS`, encoded now where the store does not have them, and the judgements; two abstracts without text are left out.

    Raises
    ------
    SpaceError
        No Cranfield in the data folder.
    """
    folder = cranfield_folder()
    if folder is None:
        raise SpaceError("Cranfield: expected a folder cranfield in the data folder, which RELSCOPE_DATA names, got none")
    documents, queries = (_texts(folder / f"{name}.parquet", name) for name in ("documents", "queries"))
    models = {}
    for name, encoder in zip(MODELS, _encoders(), strict=True):
        space = encode(documents, encoder, store, report)[0]
        models[name] = Model(space, _queries(documents, queries, encoder, store, report))
    return models, read_qrels(folder / "qrels.txt")


def _encoders() -> tuple[Encoder, ...]:
    from relcore.sources.lsa import TfidfSvd
    from relcore.sources.pooled_words import PooledWords
    from relcore.sources.text import MiniLM

    return MiniLM(), TfidfSvd(256), PooledWords("word2vec-novels")


def _queries(documents: Dataset, queries: Dataset, encoder: Encoder, store: Store, report: Report) -> LatentSpace:
    """By the encoder as it was trained on the documents."""
    key = digest_of("cranfield queries", documents.digest, queries.digest, encoder)
    entry = store.get(key)
    if entry is None:
        run = encoder.prepare(documents, report)
        blocks = [next(iter(run(texts).values())) for _, texts in queries.blocks()]
        vectors = np.concatenate(blocks).astype(np.float32)
        store.put(key, {"vectors": vectors}, {"title": f"Cranfield queries, {encoder.title}"})
        return LatentSpace(vectors, queries.ids, name=f"{encoder.title} · queries")
    return LatentSpace(entry.arrays["vectors"], queries.ids, name=f"{encoder.title} · queries")


def _texts(path: Path, name: str) -> Dataset:
    table = pd.read_parquet(path)
    table = table[table.text.str.strip() != ""]
    texts, ids = table.text.tolist(), table.id.astype(str).tolist()
    return Dataset(lambda start, stop: texts[start:stop], ids, name=f"cranfield {name}", kind="texts")
