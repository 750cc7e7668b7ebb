"""TfidfSvd: latent semantic analysis, sentences without any pretrained model: TF-IDF, then a truncated SVD."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from relcore.progress import Report
from relcore.sources.dataset import Dataset
from relcore.sources.encoder import EncodeBatch, Trained, TrainedEncoder
from relcore.sources.settings import setting
from relcore.sources.texts import require_texts
from relcore.spaces import SpaceError


@dataclass(frozen=True)
class TfidfSvd(TrainedEncoder):
    """Words weighted by 1 + log(count) and inverse document frequency, rows of length 1, reduced by a truncated SVD."""

    kind: ClassVar = "texts"
    short: ClassVar = "tfidf"
    n_components: int = setting(
        384, label="Dimensions", option="dimensions", low=1, usual=lambda data: min(384, max(data.n // 4, 1))
    )
    min_texts: int = setting(
        2, low=1, more=True, help="Leaves out words in fewer texts. A text with no other words becomes a zero vector."
    )
    max_words: int = setting(50_000, low=1, more=True, help="Keeps the most frequent words.")
    fit_texts: int = setting(
        50_000, low=1, more=True, help="Of more texts, only every second, third, … is fitted on, to save memory."
    )
    random_state: int = setting(0, low=0, more=True)

    def seconds(self, n: int, pixels: int = 64) -> float:
        return 1.0 + n * 5e-4  # 2,000 sentences in 1.0 s

    @property
    def title(self) -> str:
        return f"TF-IDF + SVD {self.n_components}"

    def train(self, dataset: Dataset, report: Report) -> Trained:
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
                f"{dataset.name}: expected words that occur in at least {self.min_texts} texts, got none; lower min_texts"
            ) from error
        if self.n_components >= min(matrix.shape):
            raise SpaceError(
                f"n_components: expected fewer than the {matrix.shape[0]} texts and the {matrix.shape[1]} words that occur in "
                f"{self.min_texts} or more of them, got {self.n_components}; lower it, or take more texts"
            )
        report(1, 2, f"SVD of {matrix.shape[0]:,} texts × {matrix.shape[1]:,} words")
        # More threads wait for each other in these small products (seven times the work on a busy machine), and their number
        # would show in the last bits of the result.
        with threadpool_limits(1, "blas"):
            svd = TruncatedSVD(self.n_components, random_state=self.random_state).fit(matrix)
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
