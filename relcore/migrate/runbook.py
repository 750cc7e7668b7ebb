"""The runbook of a migration: steps with commands and numbers; and shadow queries against a store."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.numbers import band, counted, short
from relcore.base.rows import unit_rows
from relcore.files.formats import readable
from relcore.migrate.adapters import CASCADE, SNIPPET, Card
from relcore.migrate.estimators import Adapter
from relcore.migrate.evaluate import Interval, search
from relcore.migrate.migration import MigrationResult
from relcore.spaces.space import LatentSpace
from relcore.stores.index import StorePlace, load_rows, open_index

QUERIES = 200
_DIFFERS = 1e-3  # more than float16 and other orders of summation make of rows of length 1


@dataclass(frozen=True)
class Shadow:
    """The answers of a store of n rows to queries of the new model through the adapter, compared with exact
    searches.

    Attributes
    ----------
    recall : Interval
        Share of the k nearest mapped rows, by an exact search, that the store finds, 0 … 1.
    overlap_old, overlap_new : Interval
        Share of k answers in common with the old model, and with an exact search by the new one among the
        `n_new` rows that it has embedded.
    chance : float
        The overlap of k rows drawn at random: k/n, and `chance_new` k/n_new.
    old_ms, mapped_ms : (p50, p95)
        Milliseconds of a query, the map included; None where the old rows are in no store that searches.
    """

    place: str
    n: int
    n_new: int
    n_queries: int
    k: int
    recall: Interval
    overlap_old: Interval
    overlap_new: Interval
    chance: float
    chance_new: float
    old_ms: tuple[float, float] | None
    mapped_ms: tuple[float, float]

    def rows(self) -> list[list[str]]:
        """The measures as a table of texts, the first row its head."""
        found = [["measure", "value", "95 %", "chance level"]]
        for name, one, chance in (
            ("recall of the store's index after mapping", self.recall, self.chance),
            ("overlap with the old model's answers", self.overlap_old, self.chance),
            (f"overlap with the new model's answers, {self.n_new:,} rows", self.overlap_new, self.chance_new),
        ):
            found.append(
                [f"{name}, k = {self.k}", short(one.value), band(one.low, one.high), short(chance, 5)]
            )
        for name, times in (("old", self.old_ms), ("mapped", self.mapped_ms)):
            if times:
                text = f"{times[0]:.1f} ms, {times[1]:.1f} ms"
                found.append([f"latency of {name} queries, p50 and p95", text, "–", "–"])
        return found


def shadow(
    adapter: Adapter,
    place: StorePlace,
    spaces: Sequence[LatentSpace],
    queries: Sequence[str],
    old_place: StorePlace | None = None,
    k: int = 10,
) -> Shadow:
    """Run the first 200 queries against a store whose rows went through `adapter`.

    Parameters
    ----------
    spaces : old and new rows, and where the queries are no rows their old and new vectors
    old_place : StorePlace, optional
        Of the old rows; without a store that searches their answers come from an exact search.

    Raises
    ------
    SpaceError
        A store that does not search, or whose rows are not those that the adapter makes of the old ones.
    """
    old, new = spaces[:2]
    ids = [*queries][:QUERIES]
    own = len(spaces) == 2 or ids[0] not in spaces[2].index  # beside a log the queries are held-out rows
    asked = spaces[:2] if own else spaces[2:]
    old_queries, new_queries = (side.vectors[side.index.get_indexer(ids)] for side in asked)
    rows = load_rows(place)
    at = old.index.get_indexer(rows.ids)
    some = np.flatnonzero(at >= 0)[:100]
    X = unit_rows(rows.vectors)
    wanted = adapter.corpus(old.vectors[at[some] if len(some) else [0]])
    if not len(some) or wanted.shape[1] != X.shape[1] or np.abs(X[some] - wanted).max() > _DIFFERS:
        raise SpaceError(
            f"{place.text}: expected the old rows as the adapter maps them, got others; write them with"
            f" relscope adapt ADAPTER OLD {place.text} --corpus"
        )

    def exact(vectors: np.ndarray, names: np.ndarray, sought: np.ndarray) -> list[list[str]]:
        where = {name: row for row, name in enumerate(names)}
        mine = np.array([where.get(name, -2) for name in ids]) if own else None
        lists = search(unit_rows(sought), vectors, k, mine)
        return [[str(names[row]) for row in found if row >= 0] for found in lists]

    def served(where: StorePlace, of: Callable[[np.ndarray], np.ndarray], sought: np.ndarray):
        answers, seconds = [], []
        with open_index(where) as index:
            index.search(of(sought[:1]), k + own)  # the first one loads the index
            for row in range(len(sought)):
                start = time.perf_counter()
                (found,) = index.search(of(sought[row : row + 1]), k + own)
                seconds.append(time.perf_counter() - start)
                answers.append([name for name in found if not own or name != ids[row]][:k])
        p50, p95 = np.percentile(seconds, [50, 95]) * 1000
        return answers, (float(p50), float(p95))

    mapped_answers, mapped_ms = served(place, adapter.transform, new_queries)
    truth = exact(X, rows.ids, adapter.transform(new_queries))
    old_ms, old_rows = None, unit_rows(old.vectors)
    old_answers = exact(old_rows, old.ids, old_queries)
    if old_place is not None:
        old_answers, old_ms = served(old_place, lambda row: row, old_queries)
    both = new.index.get_indexer(rows.ids) >= 0  # not `np.isin`, which compares each text with all
    shared = rows.index.get_indexer(new.ids) >= 0
    among = truth if both.all() else exact(X[both], rows.ids[both], adapter.transform(new_queries))
    new_answers = exact(unit_rows(new.vectors[shared]), new.ids[shared], new_queries)
    return Shadow(
        place.text,
        len(rows),
        int(shared.sum()),
        len(ids),
        k,
        _shared(mapped_answers, truth, k),
        _shared(mapped_answers, old_answers, k),
        _shared(mapped_answers if both.all() else among, new_answers, k),
        min(1.0, k / len(rows)),
        min(1.0, k / max(1, shared.sum())),
        old_ms,
        mapped_ms,
    )


def _shared(one: list[list[str]], other: list[list[str]], k: int) -> Interval:
    """The mean share of common answers, with its normal 95 % interval over queries."""
    shares = np.array([len({*a} & {*b}) / k for a, b in zip(one, other, strict=True)])
    half = 1.96 * shares.std(ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else np.nan
    mean = float(shares.mean())
    return Interval(mean, max(0.0, mean - half), min(1.0, mean + half))


@dataclass(frozen=True)
class PlanStep:
    title: str
    text: str
    commands: tuple[str, ...] = ()


def target_of(old: StorePlace | None) -> StorePlace:
    """The place of the mapped rows, beside that of the old ones."""
    if old is None:
        return StorePlace("faiss", "mapped.faiss")
    if old.is_file:
        path = Path(old.where)
        return StorePlace("faiss", str(path.with_name(f"{path.stem}-mapped.faiss")))
    return replace(old, table=f"{old.table.partition('/')[0]}_mapped")


def steps(
    result: MigrationResult,
    card: Card,
    call: str,
    old: str,
    bridge: str,
    n: int,
    goal: StorePlace,
    limits: Sequence[str] = (),
    found: Shadow | None = None,
    exported: bool = False,
) -> list[PlanStep]:
    """The five steps of a runbook: prepare, dual write, shadow queries, switch, rollback.

    `call` is the command without --export, --plan and --shadow, `old` its OLD, `bridge` the folder of the
    adapter, which is there if it is `exported`, n the rows of OLD, `goal` the store that mapped queries
    search: OLD where nothing is projected.
    """
    projects, bridged = goal.text != old, result.option("bridge")
    place = shlex.quote(goal.text)
    copy, size = f"relscope adapt {bridge} {shlex.quote(old)} {place} --corpus", readable(4 * n * card.width)
    score = f"; {result.metric} {short(bridged.value)} ({band(bridged.low, bridged.high)})" if bridged else ""
    said = f"It writes {n:,} rows × {card.width:,}, {size}." if projects else "No stored row changes."
    grow = f"relscope adapt {bridge} new-documents.parquet {place} --corpus --add"
    if goal.is_file:  # which takes no more rows, so all are written again under another name
        path = Path(goal.where)
        later = replace(goal, where=str(path.with_name(f"{path.stem}-later{path.suffix}"))).text
        grow = (
            f"relscope adapt {bridge} {shlex.quote(old)} {shlex.quote(later)} --corpus   # with the new rows"
        )
    apply = (
        "import apply, numpy; numpy.save('mapped-queries.npy', apply.queries(numpy.load('new-queries.npy')))"
    )
    return [
        PlanStep(
            "Prepare",
            f"{result.verdict.sentence} The adapter is {card.adapter}, learned from {card.n_pairs:,} pairs"
            f"{score}, {counted(len(result.queries), 'query', 'queries')}. {said}",
            (*[f"{call} --export {bridge}"] * (not exported), *[copy] * projects),
        ),
        PlanStep(
            "Dual write",
            "Embed each new document by the old model, and write it to both stores until the switch is final."
            " Then either can serve at any time."
            if projects
            else "Embed each new document by the old model, as before. All queries search one store.",
            (grow,) * projects,
        ),
        PlanStep(
            "Shadow queries",
            "Users get the old answers. A sample of queries also goes through the new model, the adapter and"
            f" {goal.text}. Continue where the recall of its index is .95 or more (else raise its search"
            " effort, or build it again) and p95 is what you can serve."
            f" {'Measured on this store:' if found else 'Not measured yet:'}",
            (f"{call} --plan runbook.md --shadow {place}",),
        ),
        PlanStep(
            "Switch",
            f"Embed queries by the new model, map them by {bridge}/{SNIPPET}, and search {goal.text}: 1 % of"
            " the traffic, then 10 %, 50 % and all. Change score thresholds at the same time."
            + f" For the cascade, {bridge}/{CASCADE} then ranks what both searches find by the new model."
            * (result.verdict.option == "cascade")
            + "".join(f" {limit}" for limit in limits),
            (f'PYTHONPATH={bridge} python -c "{apply}"   # NumPy alone',),
        ),
        PlanStep(
            "Rollback",
            f"Send queries through the old model to {old} again. Nothing there was removed or overwritten,"
            " and dual writing kept it complete. Roll back where p95 doubles, or where the share of searches"
            " that end without a click leaves its usual range. Keep the old store until then.",
        ),
    ]


def markdown(title: str, listed: Sequence[PlanStep], found: Shadow | None) -> str:
    """The runbook as a page in Markdown."""
    parts = [f"# {title}"]
    for number, step in enumerate(listed, 1):
        parts.append(f"## {number}. {step.title}\n\n{step.text}")
        if step.commands:
            parts.append("\n".join(["```sh", *step.commands, "```"]))
        if found and step.title == "Shadow queries":
            head, *rows = found.rows()
            table = [head, ["---"] * len(head), *rows]
            parts.append("\n".join(f"| {' | '.join(row)} |" for row in table))
            parts.append(f"{found.n_queries:,} queries, {found.n:,} rows in {found.place}.")
    return "\n\n".join(parts) + "\n"
