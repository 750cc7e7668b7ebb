"""Blind judging: whose first five rows answer a query better, and when the answers decide."""

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
from relcore.migrate.migration import MOVES, NEIGHBOURS, TITLES, MigrationResult, Verdict
from relcore.spaces.split import row_keys

SHOWN, MOST, DEPTH = 5, 50, 10
EARLY, LEVEL = 0.0045, 0.05


@dataclass(frozen=True)
class BlindQuestion:
    """A query and the ids that two options find for it, at most five, in the order of the search.

    The old model's stand on the right where `is_turned`.
    """

    query: str
    keep: tuple[str, ...]
    other: tuple[str, ...]
    is_turned: bool


@dataclass(frozen=True)
class Answer:
    """What a judge said of one question: whose rows are better, with the rows that were shown."""

    query: str
    keep: tuple[str, ...]
    other: tuple[str, ...]
    preferred: Literal["keep", "other", "equal"]


@dataclass(frozen=True)
class BlindAnswers:
    """Answers about the old model's rows and those of another option of the migration."""

    option: Literal["bridge", "twice", "cascade", "re-embed"] = "re-embed"
    answers: tuple[Answer, ...] = ()

    @classmethod
    def read(cls, path: Path) -> BlindAnswers:
        """Read answers; raises a SpaceError for a file that is missing, too large, or of something else."""
        return records.from_json(cls, records.read_file(path, "answers of the tab Judge"), path.name)


def questions(
    result: MigrationResult, ids: np.ndarray, option: str, random_state: int = 0
) -> tuple[BlindQuestion, ...]:
    """The questions for a judge: at most 50 queries, those first whose two lists differ most; a hash of the
    query decides which list stands left.

    `ids` (n,) are those of the old space. Queries with the same five rows on both sides are left out. Lists
    are compared by their average overlap (Webber et al. 2010) down to rank 10. On 70 % of Cranfield's
    queries, with five pairs of models that are .10 to .12 nDCG@10 apart, a judge by relevance was right in
    196 of 200 draws, with queries at random in 166.
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
    """The average overlap (q,) of two ranked lists (q, k): the mean over all depths of the share that they
    have in common down to that depth.
    """
    ranks = np.arange(first.shape[1])
    later = np.cumsum(1 / (ranks[::-1] + 1))[::-1]  # what a row adds that both have from this rank on
    same = (first[:, :, None] == second[:, None]) & (first >= 0)[:, :, None]
    return (same * later[np.maximum.outer(ranks, ranks)]).sum((1, 2)) / len(ranks)


def with_answers(
    result: MigrationResult, ids: np.ndarray, answers: BlindAnswers, random_state: int = 0
) -> MigrationResult:
    """The migration's result with the verdict of the answers, in whose sentence the measured numbers follow.

    Raises a SpaceError where no answer is about the rows that this result has found.
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
    # What was measured, without the answer of the labels or judged queries, or what says that there is none.
    judged = result.relevance != NEIGHBOURS
    measured = told.partition(": ")[2] if judged else told[told.index("Of the ") :]
    sentence = f"{verdict.sentence} {measured[:1].upper()}{measured[1:]}"
    return replace(result, verdict=replace(verdict, sentence=sentence))


@dataclass(frozen=True)
class Tally:
    """Counts of answers, the p-value of those that prefer a side, and the next question; None at the end."""

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
        """The verdict of the answers, with its sentence; no option before the end."""
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

    Answers about other rows than those of the question are left out, as are those after the end.
    """
    said = {(one.query, one.keep, one.other): one.preferred for one in answers.answers}
    counts, waiting = Counter(keep=0, other=0, equal=0), []
    for question in asked:
        if (preferred := said.get((question.query, question.keep, question.other))) is None:
            waiting.append(question)
            continue
        counts[preferred] += 1
        if looks()[counts["keep"] + counts["other"]].ends[counts["other"]]:
            waiting = []
            break
    p = looks()[counts["keep"] + counts["other"]].p[counts["other"]]
    return Tally(
        answers.option, **counts, p=float(p), question=next(iter(waiting), None), n_left=len(waiting)
    )


class Peek(NamedTuple):
    """The sequential sign test after n answers that prefer a side, as arrays (n + 1,) over how many prefer
    the other option.

    `ends` says whether it ends at once; `p` is how probable it is that a fair coin ends it before, or is as
    far from n / 2.
    """

    ends: np.ndarray
    p: np.ndarray


@cache
def looks() -> tuple[Peek, ...]:
    """The sign test after 0 to 50 answers, with p-values over all paths of a fair coin, so that they allow
    for the earlier looks.
    """
    from scipy.special import bdtr  # as `scipy.stats.binom.cdf`, which takes longer to import than a page

    paths, ended, found = np.ones(1), 0.0, []  # the probability of each count where the test has not ended
    for n in range(MOST + 1):
        counts = np.arange(n + 1)
        far = abs(2 * counts - n)
        ends = 2 * bdtr(np.minimum(counts, n - counts).astype(float), n, 0.5) <= EARLY
        found.append(Peek(ends, ended + np.array([paths[far >= one].sum() for one in far])))
        ended += paths[ends].sum()
        paths = np.convolve(np.where(ends, 0, paths), [0.5, 0.5])
    return tuple(found)
