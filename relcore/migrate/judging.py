"""Blind judging: a judge says which of two lists of five rows answers a query better, and a test says when
the answers decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from relcore.base import records
from relcore.base.errors import SpaceError, counted, short
from relcore.migrate.migration import MOVES, NEIGHBOURS, TITLES, MigrationResult, Verdict
from relcore.spaces.split import row_keys

SHOWN, MOST, DEPTH = 5, 50, 10
EARLY, LEVEL = 0.0045, 0.05


@dataclass(frozen=True)
class BlindQuestion:
    """A query, and the ids that two options find for it: at most five each, in the order of the search.

    If `is_turned`, the ids of the old model are on the right.
    """

    query: str
    keep: tuple[str, ...]
    other: tuple[str, ...]
    is_turned: bool


@dataclass(frozen=True)
class Answer:
    """The answer of a judge to a question: which rows are better, and the rows that were shown."""

    query: str
    keep: tuple[str, ...]
    other: tuple[str, ...]
    preferred: Literal["keep", "other", "equal"]


@dataclass(frozen=True)
class BlindAnswers:
    """Answers that compare the rows of the old model with those of another option of the migration."""

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
    """The questions for a judge: at most 50 queries. Queries whose two lists differ most come first. A hash
    of the query decides which list is on the left.

    `ids` (n,) are the ids of the old space. Queries with the same five rows in both lists are left out. Lists
    are compared by their average overlap (Webber et al. 2010) down to rank 10. This was tested with simulated
    judges who know the relevant rows, on 70 % of the queries of Cranfield, with five pairs of models whose
    nDCG@10 differs by .10 to .12. The judges were right in 196 of 200 draws; with random queries, in 166.
    """
    order, sides = (row_keys(result.queries, f"{what} {option}", random_state) for what in ("judge", "side"))
    lists, asked = [result.found[name][:, :DEPTH] for name in ("keep", option)], []
    for place in np.lexsort((order, average_overlap(*lists))):
        keep, other = (
            tuple(map(str, ids[rows[rows >= 0]])) for rows in (one[place, :SHOWN] for one in lists)
        )
        if set(keep) != set(other):
            asked.append(BlindQuestion(result.queries[place], keep, other, bool(sides[place] < 0.5)))
    return tuple(asked[:MOST])


def average_overlap(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The average overlap (q,) of two ranked lists (q, k). For each depth, take the share of rows that both
    lists have down to it; the result is the mean over all depths.
    """
    ranks = np.arange(first.shape[1])
    later = np.cumsum(1 / (ranks[::-1] + 1))[::-1]  # weight of a row that both lists have from here on
    same = (first[:, :, None] == second[:, None]) & (first >= 0)[:, :, None]
    return (same * later[np.maximum.outer(ranks, ranks)]).sum((1, 2)) / len(ranks)


def with_answers(
    result: MigrationResult, ids: np.ndarray, answers: BlindAnswers, random_state: int = 0
) -> MigrationResult:
    """The result of the migration with the verdict of the answers. Its sentence also has the measured
    numbers.

    Raises a SpaceError if no answer concerns the rows that this result found.
    """
    option = answers.option
    found = tally(questions(result, ids, option, random_state) if option in result.found else (), answers)
    if not found.n_answers:
        raise SpaceError(
            f"answers: expected some about the rows that “{TITLES['keep']}” and “{TITLES[option]}” find here,"
            f" got {counted(len(answers.answers), 'answer')} about others; are these the vectors and settings"
            " that were judged?"
        )
    verdict, told = found.verdict(), result.verdict.sentence
    # The measured numbers, without the earlier verdict (from labels or judged queries, or that there is
    # none).
    measured = told.partition(": ")[2] if result.relevance != NEIGHBOURS else told[told.index("Of the ") :]
    sentence = f"{verdict.sentence} {measured[:1].upper()}{measured[1:]}"
    return replace(result, verdict=replace(verdict, sentence=sentence))


@dataclass(frozen=True)
class Tally:
    """The counts of answers, the p-value of the answers that prefer one option, and the next question (None
    at the end)."""

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

    @property
    def is_clear(self) -> bool:
        return self.question is None and self.p <= LEVEL

    def verdict(self) -> Verdict:
        """The verdict of the answers, with its sentence. Before the end, it has no option."""
        told = f"of {counted(self.n_answers, 'blind answer')}, {self.other:,} prefer “{TITLES[self.option]}”,"
        told += f" {self.keep:,} “{TITLES['keep']}”, and {self.equal:,} neither (sign test, p ="
        told += f" {short(self.p)})"
        if self.question:
            return Verdict("", False, f"Not decided yet: {told}; up to {self.n_left:,} more to answer.")
        if self.is_clear:
            better = self.option if self.other > self.keep else "keep"
            return Verdict(better, True, f"{MOVES[better]}: {told}.")
        return Verdict("keep", False, f"No clear preference: {told}.")


def tally(asked: Sequence[BlindQuestion], answers: BlindAnswers) -> Tally:
    """Count the answers to these questions.

    Answers on rows that differ from those of the question are left out; so are answers after the end.
    """
    said = {(one.query, one.keep, one.other): one.preferred for one in answers.answers}
    counts, waiting = Counter(keep=0, other=0, equal=0), []
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
    """The sequential sign test after n answers that prefer one of the two options. Both arrays are (n + 1,):
    entry i is for i answers that prefer the new option.

    `ends` says whether the test ends after these answers. `p` is a probability for a fair coin: that the test
    has ended earlier, or that the count is at least as far from n / 2.
    """

    ends: np.ndarray
    p: np.ndarray


@cache
def sequential_test() -> tuple[SignTest, ...]:
    """The sign tests after 0, 1, …, 50 answers. The p-values are computed over all paths of a fair coin, so
    they account for earlier looks.
    """
    from scipy.special import bdtr  # equals `scipy.stats.binom.cdf`, which takes long to import

    paths, ended, found = np.ones(1), 0.0, []  # probability of each count if the test has not ended
    for n in range(MOST + 1):
        counts = np.arange(n + 1)
        far = abs(2 * counts - n)
        ends = 2 * bdtr(np.minimum(counts, n - counts).astype(float), n, 0.5) <= EARLY
        found.append(SignTest(ends, ended + np.array([paths[far >= one].sum() for one in far])))
        ended += paths[ends].sum()
        paths = np.convolve(np.where(ends, 0, paths), [0.5, 0.5])
    return tuple(found)
