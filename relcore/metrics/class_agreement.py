"""Class agreement: do a row's neighbours in the other space have the row's class?"""

from __future__ import annotations

import numpy as np

from relcore.metrics.calibration import Null, Score, sampling_interval
from relcore.metrics.metric import AlignedPair, Metric
from relcore.metrics.neighbours import number_of_draws, without_fixed_points, without_itself
from relcore.metrics.paired import Difference, mean_difference
from relcore.metrics.search import nearest_directions


class ClassAgreement(Metric):
    """Share of the held-out rows whose k nearest neighbours in the other space have mostly the row's label, 0 … 1.

    A row's vector in the source is the query, the held-out rows of the target are searched, the row itself left out. Its
    label has to be more frequent among the k than any other: a tie does not count. For "mutual" the score is the mean of both
    directions. Rows without a label are left out.

    Chance level: the rows of one space permuted, the vote repeated. It is below the classes' shares where k is near n, as a
    row does not vote for itself. Two spaces whose classes lie in clusters may have their clusters in one place or another by
    coincidence, so an absolute score outside the band need not mean that the spaces are alike: the relative one is to be read.
    """

    def score(self, pair: AlignedPair) -> Score | None:
        votes = _votes(pair)
        if votes is None:
            return None
        classes, queries, lists = votes
        hits, null = _hits(*votes), None
        if len(queries) > 1:
            rng = np.random.default_rng(0)
            drawn = np.array([_permuted(*votes, rng) for _ in range(number_of_draws(len(queries)))])
            drawn += (hits.mean() - drawn.mean()) / len(classes)  # of all n rows one in n stays where it is
            null = Null.from_draws(drawn)
        return Score(
            hits.mean(),
            metric="class agreement",
            convention=pair.convention,
            k=lists[0].shape[1] - 1,
            n=len(classes),
            n_queries=len(queries),
            interval=sampling_interval(hits, len(classes)),
            null=null,
            note=pair.neighbours.note,
        )

    def difference(self, before: AlignedPair, now: AlignedPair) -> Difference | None:
        votes = _votes(before), _votes(now)
        return None if None in votes else mean_difference(*(_hits(*each) for each in votes))


_Votes = tuple[np.ndarray, np.ndarray, tuple[np.ndarray, ...]]


def _votes(pair: AlignedPair) -> _Votes | None:
    """The class number of each labelled row (n,), the queries among them (m,), and the k + 1 rows (m, k + 1) nearest to each
    query in the other space, one array per direction; None without labels, or with spaces of two widths."""
    if pair.labels is None or not pair.same_width:
        return None
    labelled = np.flatnonzero(pair.labels != "")
    names, classes = np.unique(pair.labels[labelled].astype(str), return_inverse=True)
    found = pair.neighbours
    queries = np.flatnonzero(np.isin(labelled, found.queries))
    if not 1 < len(names) < len(classes) or not len(queries):
        return None
    spaces = [rows if len(labelled) == len(rows) else rows[labelled] for rows in (found.source, found.target)]
    k = min(pair.k, len(classes) - 1)
    directions = [spaces] if pair.convention == "paper" else [spaces, spaces[::-1]]
    return classes, queries, tuple(nearest_directions(one[queries], other, k + 1, found.device) for one, other in directions)


def _hits(classes: np.ndarray, queries: np.ndarray, lists: tuple[np.ndarray, ...]) -> np.ndarray:
    """1 for a query whose class wins the vote of its neighbours, 0 for others, the mean of both directions; (m,)."""
    own = classes[queries]
    return np.mean([_wins(own, classes[without_itself(queries, found)]) for found in lists], axis=0)


def _permuted(classes: np.ndarray, queries: np.ndarray, lists: tuple[np.ndarray, ...], rng: np.random.Generator) -> float:
    """The score when each query has the neighbours of another one, itself left out of these."""
    order = without_fixed_points(len(queries), rng)
    return float(_hits(classes, queries, tuple(found[order] for found in lists)).mean())


def _wins(own: np.ndarray, voted: np.ndarray) -> np.ndarray:
    """Whether the class of each row (m,) is more frequent than any other among those of its neighbours (m, k)."""
    voted = np.sort(voted, axis=1)
    run, most = np.zeros(len(own), dtype=np.int64), np.zeros((2, len(own)), dtype=np.int64)
    for place in range(voted.shape[1]):
        same = voted[:, place] == voted[:, place - 1] if place else np.zeros(len(own), dtype=bool)
        run = np.where(same, run + 1, 1)
        mine = voted[:, place] == own
        most[0], most[1] = np.maximum(most[0], run * ~mine), np.maximum(most[1], run * mine)
    return most[1] > most[0]
