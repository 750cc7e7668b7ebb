"""Search of rows by meaning: `rank_rows` finds the rows that words or a vector mean."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.numbers import counted
from relcore.base.rows import unit_rows
from relcore.engine.engine import Engine
from relcore.represent.similarity import mean_of
from relcore.spaces.matching import Match
from relcore.spaces.space import LatentSpace

# Search: the rows of a pair that are nearest to a query in either space, ranked by both spaces.

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_NUMBERS_AS_WORDS = 8  # maximum number of numbers without brackets that are read as words
_FEEDBACK = 5  # if a space cannot encode a query, the mean of this number of rows replaces it
_SIF = 1e-3  # a word of this frequency has half the weight of a very rare word
# Words about the query: in "kinds of drinks", only "drinks" counts.
_ASKING = re.compile("(?:example|kind|list|name|sort|thing|type|word)s?", re.IGNORECASE)
_FUSION = 60  # constant of reciprocal rank fusion: Cormack, Clarke and Büttcher, SIGIR 2009


@dataclass(frozen=True, eq=False)
class Ranking:
    """The rows found for a query, best first.

    Attributes
    ----------
    rows : array (m,)
        The row numbers in the pair.
    similarities : array (m, 2) float32
        The cosine to the query after centring, in the source and in the target, −1 to 1.
    found : array (m, 2) of bool
        Whether the row is among the nearest rows, in the source and in the target.
    how : two texts
        A text for each space that says what replaces the query if the space cannot encode it.
    """

    rows: np.ndarray
    similarities: np.ndarray
    found: np.ndarray
    how: tuple[str, str]


class TextIndex:
    """An index of texts by TF-IDF, which searches in spaces that cannot encode a query."""

    def __init__(self, texts: Sequence[str]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self._n = len(texts)
        self._words = TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
        try:
            self._matrix = self._words.fit_transform(texts)
        except ValueError:  # no text has a word that counts
            self._matrix = None

    def similarities(self, query: str) -> np.ndarray:
        """The cosine between each text and the query, (n,), 0 to 1. It is 0 for texts without a word of the
        query."""
        if self._matrix is None:
            return np.zeros(self._n, dtype=np.float32)
        return (self._matrix @ self._words.transform([query]).T).toarray()[:, 0]


def words_row(space: LatentSpace, query: str) -> np.ndarray | None:
    """The mean (d,) of the rows of the words in the query, centred and scaled to length 1. None if no word is
    an id.

    Words such as "kinds" count only if the query has no other word. If the space has counts, frequent words
    have less weight (SIF: Arora, Liang and Ma, ICLR 2017).
    """
    words = _WORD.findall(query.replace("’", "'"))
    words = [word for word in words if not _ASKING.fullmatch(word)] or words
    places = space.index.get_indexer([word if word in space.index else word.lower() for word in words])
    rows = places[places >= 0]
    if not len(rows):
        return None
    counts = space.counts
    if counts is None:
        weights = None
    else:
        weights = _SIF / (_SIF + counts[rows] / counts.sum())
    return _mean_direction(space, rows, weights)


def vector_in(query: str, widths: Collection[int] = ()) -> np.ndarray | None:
    """The vector (d,) that is written in a query, as in "[.2, −1, 3e-2]" or "0.2 -1 0.03". None if the query
    is a text. `widths` are the numbers of dimensions of the spaces.

    A few numbers may be words, such as "1984 2001". Numbers are a vector if they are in brackets, if there
    are as many as a space has dimensions, or if there are more than eight. A query in quotes is a text.
    """
    written = query.replace("−", "-").strip()
    numbers = written.strip("[]() \n\t").replace(",", " ").replace(";", " ").split()
    if len(numbers) < 2:
        return None
    try:
        vector = np.array(numbers, dtype=np.float64)
    except ValueError:
        return None
    is_vector = written.startswith(("[", "(")) or len(vector) in widths or len(vector) > _NUMBERS_AS_WORDS
    return vector if is_vector else None


def rank_rows(
    pair: Match,
    queries: tuple[np.ndarray | None, np.ndarray | None],
    n_each: int = 12,
    *,
    words: np.ndarray | None = None,
    how: tuple[str, str] = ("", ""),
) -> Ranking:
    """The rows nearest to a query in either space, ranked by the sum of their reciprocal ranks in both
    spaces.

    Parameters
    ----------
    queries : two of array (d,) or None
        The query as a vector of each space. If one of the two is None, it is replaced by the mean of the rows
        that are nearest to the query in the other space (relevance feedback: Rocchio 1971).
    n_each : int
        Number of nearest rows of each space. The result has `n_each` to 2 · `n_each` rows.
    words : array (n,), optional
        Similarities between the texts of the rows and the query. They are used if both queries are None: then
        the mean of the rows with the most similar texts replaces the query, and these similarities count in
        the ranking.

    Raises
    ------
    SpaceError
        A vector whose width differs from that of the space, with a number that is not finite, or equal to the
        space's mean; no vector, and no text with a word of the query.

    Examples
    --------
    >>> from relcore import load_words, match
    >>> pair = match(*(load_words(name, limit=2000) for name in ("word2vec-novels", "fasttext-novels")))
    >>> rows = rank_rows(pair, (words_row(pair.source, "the king"), words_row(pair.target, "the king"))).rows
    >>> bool("king" in pair.ids[rows])
    True
    """
    spaces = (pair.source, pair.target)
    descriptions = list(how)
    for space, query in zip(spaces, queries, strict=True):
        if query is not None:
            _check_query(space, query)
    known = [side for side in (0, 1) if queries[side] is not None]
    by_space = [None, None]
    lists = []
    if not known:
        if words is None or not np.any(words > 0):
            raise SpaceError(
                "No text has a word of this query, and no model here can encode the query. Try other words."
            )
        best = np.argsort(-words, kind="stable")[:_FEEDBACK]
        best = best[words[best] > 0]
        lists = [words]
        stand_in = f"the mean of the {counted(len(best), 'row')} whose texts fit best"
        by_space = [_similarities(space, _mean_direction(space, best)) for space in spaces]
        descriptions = [stand_in, stand_in]
    for side in known:
        by_space[side] = _similarities(spaces[side], queries[side])
    if len(known) == 1:  # the other space has no query of its own
        side = 1 - known[0]
        best = np.argsort(-by_space[1 - side], kind="stable")[:_FEEDBACK]
        by_space[side] = _similarities(spaces[side], _mean_direction(spaces[side], best))
        descriptions[side] = f"the mean of the {len(best)} rows nearest in {spaces[1 - side].name}"
    ranks = []
    for similarities in (*by_space, *lists):
        rank = np.empty(len(similarities), dtype=np.int64)
        rank[np.argsort(-similarities, kind="stable")] = np.arange(len(similarities))
        ranks.append(rank)
    nearest = np.stack(ranks[:2], axis=1) < n_each
    rows = np.flatnonzero(nearest.any(axis=1))
    gain = sum(1 / (_FUSION + 1 + rank[rows]) for rank in ranks)
    rows = rows[np.argsort(-gain, kind="stable")]
    return Ranking(
        rows,
        np.stack([found[rows] for found in by_space], axis=1),
        nearest[rows],
        (descriptions[0], descriptions[1]),
    )


def _check_query(space: LatentSpace, query: np.ndarray) -> None:
    """Raise a SpaceError unless the query is a vector of the space that has a direction from its mean."""
    if query.shape != (space.dimension,):
        raise SpaceError(f"{space.name}: expected a vector of {space.dimension} numbers, got {len(query)}")
    wrong = np.flatnonzero(~np.isfinite(query))
    if len(wrong):
        raise SpaceError(
            f"query: expected finite numbers, got {query[wrong[0]]} as number {wrong[0] + 1}; mend the"
            " vector, or put the query in quotes to search for words"
        )
    if not _direction(query, mean_of(space)).any():
        raise SpaceError(
            f"query: expected a vector other than the mean of {space.name}, got the mean, to which no row is"
            " nearer than another; give another vector"
        )


def _direction(query: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The query (d,) minus the mean, as a unit row (1, d)."""
    direction = query.astype(np.float64) - mean
    # The square of a very large or small number would leave the range of float32.
    largest = np.abs(direction).max()
    return unit_rows((direction / (largest or 1))[None])


def _similarities(space: LatentSpace, query: np.ndarray) -> np.ndarray:
    mean = mean_of(space)
    direction = _direction(query, mean)
    return Engine().map_rows(space.vectors, direction.T, mean=mean, unit=True)[:, 0]


def _mean_direction(space: LatentSpace, rows: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    mean = mean_of(space)
    return np.average(unit_rows(space.vectors[rows], mean), axis=0, weights=weights).astype(np.float32) + mean
