"""Encoders of texts that need no torch: `TfidfSvd` (latent semantic analysis) and `PooledWords` (means of
vectors)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from relcore.base.access import readable_path
from relcore.base.errors import SpaceError
from relcore.base.settings import setting
from relcore.encoders.dataset import Dataset
from relcore.encoders.encoder import EncodeBatch, Trained, TrainedEncoder
from relcore.encoders.model_files import file_digest, require_texts
from relcore.encoders.words import BUNDLED, load_words
from relcore.runs.work import Progress
from relcore.spaces.space import LatentSpace


@dataclass(frozen=True)
class TfidfSvd(TrainedEncoder):
    """TF-IDF + SVD: the weight of a word is (1 + log(count)) · IDF, rows are scaled to length 1, and a
    truncated SVD reduces the dimensions."""

    kind: ClassVar = "texts"
    short: ClassVar = "tfidf"
    n_components: int = setting(
        384,
        label="Dimensions",
        option="dimensions",
        low=1,
        usual=lambda data: min(384, max(data.n // 4, 1)),
        help="Maximum number. Few texts, or texts of few words, give fewer.",
    )
    min_texts: int = setting(
        2,
        low=1,
        more=True,
        help="Leaves out words that are in fewer texts. A text without other words becomes a zero vector.",
    )
    max_words: int = setting(50_000, low=1, more=True, help="Keeps the most frequent words.")
    fit_texts: int = setting(
        50_000,
        low=1,
        more=True,
        help="If there are more texts, only every second, third, … is used for fitting, to save memory.",
    )
    random_state: int = setting(0, low=0, more=True)

    def seconds(self, n: int, pixels: int = 64) -> float:
        return 1.0 + n * 5e-4

    @property
    def title(self) -> str:
        return f"TF-IDF + SVD {self.n_components}"

    def train(self, dataset: Dataset, report: Progress) -> Trained:
        from sklearn.decomposition import TruncatedSVD
        from threadpoolctl import threadpool_limits

        require_texts(dataset)
        report(0, 2, "counting words")
        step = -(-len(dataset) // self.fit_texts)
        texts = (text for _, block in dataset.blocks() for text in block)
        vectorizer = self._vectorizer(min_df=self.min_texts, max_features=self.max_words)
        try:
            matrix = vectorizer.fit_transform(islice(texts, 0, None, step))
        except ValueError as error:  # scikit-learn raises it for an empty vocabulary
            raise SpaceError(
                f"{dataset.name}: expected words that occur in at least {self.min_texts} texts, got none;"
                " lower min_texts"
            ) from error
        width = min(self.n_components, min(matrix.shape) - 1)
        if width < 1:
            raise SpaceError(
                f"{dataset.name}: expected at least two texts and two words that occur in {self.min_texts} or"
                f" more of them, got {matrix.shape[0]} and {matrix.shape[1]}; lower min_texts, or"
                " take more texts"
            )
        report(1, 2, f"SVD of {matrix.shape[0]:,} texts × {matrix.shape[1]:,} words")
        # Use one thread: for these small products, several are slower and change the last bits.
        with threadpool_limits(1, "blas"):
            svd = TruncatedSVD(width, random_state=self.random_state).fit(matrix)
        report(2, 2, "ready")
        arrays = {
            "words": np.frombuffer("\n".join(vectorizer.get_feature_names_out()).encode(), np.uint8),
            "idf": vectorizer.idf_,
            "components": svd.components_.astype(np.float32),
        }
        explained = float(svd.explained_variance_ratio_.sum())
        facts = {"texts": matrix.shape[0], "words": matrix.shape[1], "explained variance": explained}
        return Trained(arrays, facts)

    def restore(self, trained: Trained, dataset: Dataset) -> EncodeBatch:
        vectorizer = self._vectorizer(vocabulary=trained.arrays["words"].tobytes().decode().split("\n"))
        vectorizer.idf_ = trained.arrays["idf"]
        basis = np.ascontiguousarray(trained.arrays["components"].T)
        return lambda texts: {"": np.asarray(vectorizer.transform(texts) @ basis, dtype=np.float32)}

    def _vectorizer(self, **settings: Any) -> Any:
        from sklearn.feature_extraction.text import TfidfVectorizer

        return TfidfVectorizer(sublinear_tf=True, dtype=np.float32, **settings)


_WORDS = "word2vec-novels"
_NAMES = {"plain": "mean", "idf": "IDF"}
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


@dataclass(frozen=True)
class PooledWords(TrainedEncoder):
    """The weighted mean (1 / n) Σ w(word) · vector(word) over the n known words of a text; zero if n = 0.

    Attributes
    ----------
    words : str
        The name or path of a word space, as in `relcore.encoders.words.load_words`.
    weighting : "plain", "idf" or "sif"
        "plain": w = 1. "idf": w = 1 + ln((1 + texts) / (1 + texts with the word)). "sif": w = a / (a +
        p(word)), and the component of each row along the first singular vector of all rows is removed (Arora,
        Liang, Ma, "A simple but tough-to-beat baseline for sentence embeddings", ICLR 2017, algorithm 1).
    smoothing : float
        The a of SIF. p(word) is computed from the counts of the word space, or, if it has none, from this
        dataset.
    """

    kind: ClassVar = "texts"
    short: ClassVar = "words"
    words: str = setting(
        _WORDS,
        label="Word vectors",
        suggestions=tuple(BUNDLED),
        help="A bundled space, or the path of a file.",
    )
    weighting: Literal["plain", "idf", "sif"] = setting(
        "sif",
        choices={"plain": "Plain mean", "idf": "IDF", "sif": "SIF"},
        several=True,
        help=(
            "IDF: rare words count more. SIF: rare words count more, and the direction common to all rows is"
            " removed."
        ),
    )
    smoothing: float = setting(
        1e-3, above=0, more=True, help="The a of SIF: words more frequent than this count less."
    )

    def seconds(self, n: int, pixels: int = 64) -> float:
        return 1.0 + n * 2e-4

    @property
    def title(self) -> str:
        if self.words == _WORDS:
            words = ""
        else:
            words = Path(self.words).name
        if self.weighting == "sif":
            weighting = ""
        else:
            weighting = _NAMES[self.weighting]
        return ", ".join(filter(None, ("Pooled word vectors", words, weighting)))

    def content(self) -> str:
        path = BUNDLED.get(self.words) or Path(self._source())
        if path.is_file():
            return file_digest(path)
        return ""

    def _source(self) -> str:
        """A name for `load_words`, or a path that this session may read."""
        if self.words in BUNDLED:
            return self.words
        return str(readable_path(self.words))

    def train(self, dataset: Dataset, report: Progress) -> Trained:
        require_texts(dataset)
        report(0, 2, f"loading {self.words}")
        pooling = _Pooling(load_words(self._source()))
        n = len(dataset)
        known = 0
        texts_with = np.zeros(len(pooling.space), np.int64)
        occurrences = np.zeros(len(pooling.space))
        for _, texts in dataset.blocks():
            counts = pooling.counts(texts)
            known += np.count_nonzero(np.diff(counts.indptr))
            texts_with += np.bincount(counts.indices, minlength=counts.shape[1])
            occurrences += np.asarray(counts.sum(axis=0)).ravel()
        if not known:
            raise SpaceError(
                f"{dataset.name}: expected texts with words of {self.words!r}, got none of {n}; choose other"
                " words"
            )
        weights = self._weights(pooling.space, n, texts_with, occurrences)
        arrays = {"weights": weights}
        if self.weighting == "sif":
            report(1, 2, "common direction")
            # The first right singular vector of the rows, which are not centred, as in the paper.
            blocks = (pooling.rows(texts, weights) for _, texts in dataset.blocks())
            arrays["common"] = np.linalg.eigh(sum(rows.T @ rows for rows in blocks))[1][:, -1]
        report(2, 2, "ready")
        return Trained(arrays, {"texts": n, "texts without a known word": n - int(known)})

    def restore(self, trained: Trained, dataset: Dataset) -> EncodeBatch:
        pooling = _Pooling(load_words(self._source()))
        weights = trained.arrays["weights"]
        common = trained.arrays.get("common")

        def encode(texts: list[str]) -> dict[str, np.ndarray]:
            rows = pooling.rows(texts, weights)
            if common is not None:
                rows = rows - np.outer(rows @ common, common)
            return {"": rows.astype(np.float32)}

        return encode

    def _weights(
        self, space: LatentSpace, n: int, texts_with: np.ndarray, occurrences: np.ndarray
    ) -> np.ndarray:
        if self.weighting == "plain":
            return np.ones(len(space))
        if self.weighting == "idf":
            return 1 + np.log((1 + n) / (1 + texts_with))
        if space.counts is None:
            counts = occurrences
        else:
            counts = space.counts
        return self.smoothing / (self.smoothing + counts / counts.sum())


class _Pooling:
    """Counts the known words of texts, and computes weighted means of their vectors. A word is first looked
    up as it is written, then in lower case."""

    def __init__(self, space: LatentSpace) -> None:
        from sklearn.feature_extraction.text import CountVectorizer

        row_of = {word: row for row, word in enumerate(space.ids)}

        def words(text: str) -> list[str]:
            return [w if w in row_of else w.lower() for w in _WORD.findall(text.replace("’", "'"))]

        self.space = space
        self.counts = CountVectorizer(vocabulary=row_of, analyzer=words, dtype=np.float64).transform

    def rows(self, texts: list[str], weights: np.ndarray) -> np.ndarray:
        """The weighted means of the texts, (m, d), as float64."""
        counts = self.counts(texts)
        n_known = np.asarray(counts.sum(axis=1)).ravel()
        counts.data *= weights[counts.indices]
        # Select columns first, because SciPy copies the vectors to float64, which takes gigabytes for some
        # spaces.
        used = np.unique(counts.indices)
        return (counts[:, used] @ self.space.vectors[used]) / np.maximum(n_known, 1)[:, None]
