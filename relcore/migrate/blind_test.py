"""Blind judgements: which model's rows are better, by a test that can stop early."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.base.numbers import counted, short
from relcore.migrate.result import TITLES, MigrationResult
from relcore.migrate.verdict import MOVES, NEIGHBOURS, Verdict
from relcore.spaces.split import row_keys

AFTER = {"bridge": "After bridging", "re-embed": "After re-embedding"}
# Blind judging: for each query, a person sees the five rows of two options and says which are better. A
# sequential test stops when the answers suffice.
SHOWN = 5
MOST = 50
DEPTH = 10
EARLY = 0.0045
LEVEL = 0.05


@dataclass(frozen=True)
class BlindQuestion:
    """A question to a person who judges search results without knowing which option found them. It has a
    query, and at most five ids that the old model and another option find, in the order of the search.

    If `is_turned`, the ids of the old model are on the right.
    """

    query: str
    keep: tuple[str, ...]
    other: tuple[str, ...]
    is_turned: bool


@dataclass(frozen=True)
class Answer:
    """The answer of a judge to a question: the ids that were shown from the old model (`keep`) and from the
    other option, and which list is better."""

    query: str
    keep: tuple[str, ...]
    other: tuple[str, ...]
    preferred: Literal["keep", "other", "equal"]


@dataclass(frozen=True)
class BlindAnswers:
    """All answers of a judge who compares the search results of the old model with those of another option of
    the migration."""

    option: Literal["bridge", "twice", "cascade", "re-embed"] = "re-embed"
    answers: tuple[Answer, ...] = ()

    @classmethod
    def read(cls, path: Path) -> BlindAnswers:
        """Read answers from a file. Raises a SpaceError if the file is missing or too large, and if it holds
        no answers."""
        return records.from_json(cls, records.read_file(path, "answers of the tab Judge"), path.name)


def questions(
    result: MigrationResult, ids: np.ndarray, option: str, random_state: int = 0
) -> tuple[BlindQuestion, ...]:
    """At most 50 questions for a judge, to compare search results of the old model with those of `option`.
    Queries whose two lists differ most come first. A hash of the query decides which list is shown on the
    left.

    `ids` (n,) are the ids of the old space. Queries with the same five rows in both lists are left out. Lists
    are compared by their average overlap (Webber et al. 2010) down to rank 10. This order was tested on
    Cranfield with simulated judges who know the relevant rows, for five pairs of models whose nDCG@10 differs
    by .10 to .12. They preferred the better model in 196 of 200 draws of queries; with queries in random
    order, in 166.
    """
    order = row_keys(result.queries, f"judge {option}", random_state)
    sides = row_keys(result.queries, f"side {option}", random_state)
    kept = result.found["keep"]
    others = result.found[option]
    asked = []
    for place in np.lexsort((order, average_overlap(kept[:, :DEPTH], others[:, :DEPTH]))):
        keep = _shown_ids(kept[place], ids)
        other = _shown_ids(others[place], ids)
        if set(keep) != set(other):
            asked.append(BlindQuestion(result.queries[place], keep, other, bool(sides[place] < 0.5)))
    return tuple(asked[:MOST])


def _shown_ids(rows: np.ndarray, ids: np.ndarray) -> tuple[str, ...]:
    """The ids of the first rows of a list, in which −1 is no row."""
    rows = rows[:SHOWN]
    return tuple(map(str, ids[rows[rows >= 0]]))


def average_overlap(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The average overlap (q,) of two ranked lists (q, k): the share of rows among the first i that both
    lists have, averaged over i = 1 … k.
    """
    k = first.shape[1]
    places = np.arange(k)
    # A row at the places a and b of the two lists counts in all shares from place max(a, b) on, in the share
    # of i rows as 1 / i. So it adds the sum of 1 / i over i = max(a, b) + 1 … k.
    added = np.cumsum(1 / (places[::-1] + 1))[::-1]
    in_both = (first[:, :, None] == second[:, None]) & (first >= 0)[:, :, None]
    return (in_both * added[np.maximum.outer(places, places)]).sum((1, 2)) / k


def with_answers(
    result: MigrationResult, ids: np.ndarray, answers: BlindAnswers, random_state: int = 0
) -> MigrationResult:
    """Replace the recommendation of a migration by the one that follows from a judge's answers. The new
    sentence still has the measured scores.

    Raises a SpaceError if no answer is about the rows of this result.
    """
    option = answers.option
    asked: Sequence[BlindQuestion] = ()
    if option in result.found:
        asked = questions(result, ids, option, random_state)
    found = tally(asked, answers)
    if not found.n_answers:
        raise SpaceError(
            f"answers: expected answers about the rows that “{TITLES['keep']}” and “{TITLES[option]}” find"
            f" here, got {counted(len(answers.answers), 'answer')} about other rows; were other vectors or"
            " settings judged?"
        )
    verdict = found.verdict()
    told = result.verdict.sentence
    # Keep the measured scores, but not the earlier verdict before them.
    if result.relevance != NEIGHBOURS:
        measured = told.partition(": ")[2]
    else:
        measured = told[told.index("Of the ") :]
    sentence = f"{verdict.sentence} {measured[:1].upper()}{measured[1:]}"
    return replace(result, verdict=replace(verdict, sentence=sentence))


@dataclass(frozen=True)
class Tally:
    """The state of a comparison by a judge: the numbers of answers that prefer the old model (`keep`), the
    other option, or neither (`equal`); the p-value of the sequential test; the next question, None at the
    end; and the number of questions that are left.
    """

    option: str
    keep: int
    other: int
    equal: int
    p: float
    question: BlindQuestion | None
    n_left: int

    @property
    def n_answers(self) -> int:
        return self.keep + self.other + self.equal

    def verdict(self) -> Verdict:
        """The recommendation that follows from the answers. Before the end of the test, its option is ""."""
        text = (
            f"of {counted(self.n_answers, 'blind answer')}, {self.other:,} prefer “{TITLES[self.option]}”,"
            f" {self.keep:,} “{TITLES['keep']}”, and {self.equal:,} neither (sign test, p = {short(self.p)})"
        )
        if self.question:
            return Verdict("", False, f"Not decided yet: {text}; up to {self.n_left:,} more to answer.")
        if self.p <= LEVEL:
            better = "keep"
            if self.other > self.keep:
                better = self.option
            return Verdict(better, True, f"{MOVES[better]}: {text}.")
        return Verdict("keep", False, f"No clear preference: {text}.")


def tally(asked: Sequence[BlindQuestion], answers: BlindAnswers) -> Tally:
    """Count the answers to the questions `asked`.

    An answer counts only if it was given for the same rows, and before the end of the test.
    """
    said = {(one.query, one.keep, one.other): one.preferred for one in answers.answers}
    counts = Counter(keep=0, other=0, equal=0)
    waiting = []
    for question in asked:
        if (preferred := said.get((question.query, question.keep, question.other))) is None:
            waiting.append(question)
            continue
        counts[preferred] += 1
        if sequential_test()[counts["keep"] + counts["other"]].ends[counts["other"]]:
            waiting = []
            break
    p = sequential_test()[counts["keep"] + counts["other"]].p[counts["other"]]
    return Tally(
        answers.option, **counts, p=float(p), question=next(iter(waiting), None), n_left=len(waiting)
    )


class SignTest(NamedTuple):
    """The sequential sign test after n answers, not counting those that prefer neither list. Both arrays are
    (n + 1,): entry i is for the case that i of the n answers prefer the other option to the old model.

    `ends` says whether the test ends now. `p` is the p-value: if each answer were a random coin toss, the
    probability that the test ends earlier, or that i is at least as far from n / 2 now.
    """

    ends: np.ndarray
    p: np.ndarray


@cache
def sequential_test() -> tuple[SignTest, ...]:
    """The sign tests after 0, 1, …, 50 answers. The p-values are exact, and account for the fact that the
    answers are tested after each new answer.
    """
    from scipy.special import bdtr  # `scipy.stats` has the same function, but its import takes long

    # `paths`: the probability of each count before the test ends.
    paths = np.ones(1)
    ended = 0.0
    found = []
    for n in range(MOST + 1):
        counts = np.arange(n + 1)
        far = abs(2 * counts - n)
        ends = 2 * bdtr(np.minimum(counts, n - counts).astype(float), n, 0.5) <= EARLY
        found.append(SignTest(ends, ended + np.array([paths[far >= one].sum() for one in far])))
        ended += paths[ends].sum()
        paths = np.convolve(np.where(ends, 0, paths), [0.5, 0.5])
    return tuple(found)
