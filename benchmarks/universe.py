"""``python -m benchmarks.universe``: what one map for each space costs against one for each pair, and heals.

Five spaces (MiniLM layers 6 and 3, means of Word2Vec and of FastText vectors, TF-IDF + SVD) of multi30k's
training captions and of TREC's training questions, in RELSCOPE_DATA, are encoded once into the store (RELSCOPE_STORE keeps it
elsewhere), from which a second run takes them; without them only the digits and the time are measured. The table goes to benchmarks/universe.md.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

from relcore import LatentSpace, Procrustes, Universe
from relcore.base.access import data_folder
from relcore.base.numbers import percent, short, signed
from relcore.base.rows import unit_rows
from relcore.catalog.encoding import encode
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.sentences import PooledWords, TfidfSvd
from relcore.encoders.transformers import MiniLM
from relcore.engine.engine import thin_svd
from relcore.represent.heads import fit_head
from relcore.runs.store import Store
from relcore.universe.universe import retrieval

TABLE = Path(__file__).with_suffix(".md")
STATES, PAIRS = (20, 21, 22, 23, 24), (300, 1000, 3000)
N_TEXTS, GCCA_WIDTH, GCCA_RIDGE = 11_000, 250, 1.0
HUBS, N_SHARED, N_OF_A_HUB, N_TESTED = (0, 1, 2, 4, 8), 25, 200, 400


TEXTS = {"captions": ("multi30k", "en"), "questions": ("trec", "text")}


def text_spaces(folder: Path, store: Store, name: str) -> list[LatentSpace]:
    place, column = TEXTS[name]
    texts = pd.read_parquet(folder / place / "train.parquet")[column].drop_duplicates()
    drawn = texts.iloc[np.random.default_rng(0).permutation(len(texts))[:N_TEXTS]]
    listed = store.root / f"{name}.tsv"
    listed.write_text("text\n" + "\n".join(" ".join(one.split()) for one in drawn) + "\n", encoding="utf-8")
    encoders = (
        MiniLM((6, 3)),
        *(PooledWords(f"{name}-novels", weighting="plain") for name in ("word2vec", "fasttext")),
    )
    return [
        space
        for one in (*encoders, TfidfSvd(300))
        for space in encode(DatasetSpec("file", str(listed)), one, store)
    ]


def mean_top1(universe: Universe, kept: Sequence[int] | None = None) -> float:
    kept = range(len(universe.members)) if kept is None else kept
    return float(np.nanmean(universe.accuracy[np.ix_(kept, kept)]))


def of_both(spaces: Sequence[LatentSpace], universe: Universe) -> list[tuple[np.ndarray, np.ndarray]]:
    """Unit rows of each space that the maps are fitted on, and held-out ones, centred at the mean of the
    former.
    """
    parts = []
    for one in spaces:
        fitted, held = (unit_rows(one.vectors[one.rows(ids)]) for ids in (universe.ids, universe.test_ids))
        middle = fitted.mean(axis=0)
        parts.append((fitted - middle, held - middle))
    return parts


def pairwise(spaces: Sequence[LatentSpace], universe: Universe) -> float:
    """The same rows, by Procrustes for each ordered pair."""
    return float(
        np.mean(
            [
                retrieval(Procrustes(scale=False).fit(X, Y).transform(asked), true).top1
                for (X, asked), (Y, true) in permutations(of_both(spaces, universe), 2)
            ]
        )
    )


def gcca(spaces: Sequence[LatentSpace], universe: Universe) -> float:
    """The same rows, by MAXVAR generalised canonical correlation (Kettenring 1971): the directions in which
    the whitened spaces agree most, each regressed on its own rows, with a small ridge.
    """
    parts = of_both(spaces, universe)
    whitened, regressions = [], []
    for X, _ in parts:
        left, values, right = thin_svd(X.astype(np.float64))
        shrunk = values / np.sqrt(values**2 + GCCA_RIDGE * np.mean(values**2))
        whitened.append(left * shrunk)
        regressions.append((right.T * (shrunk**2 / np.maximum(values, 1e-9))) @ left.T)
    common = thin_svd(np.hstack(whitened))[0][:, :GCCA_WIDTH]
    places = [held @ by @ common for (_, held), by in zip(parts, regressions, strict=True)]
    return float(np.mean([retrieval(*pair).top1 for pair in permutations(places, 2)]))


def with_wrong_pairs(space: LatentSpace, tested: Sequence[str], state: int) -> LatentSpace:
    """A space of which 75 % of the rows that are not tested have the vector of another one."""
    pool = np.flatnonzero(~space.index.isin(tested))
    wrong, vectors = (
        np.random.default_rng(state).permutation(pool)[: 3 * len(pool) // 4],
        np.array(space.vectors),
    )
    vectors[wrong] = vectors[np.roll(wrong, 1)]
    return LatentSpace(vectors, space.ids, name=space.name)


def methods(spaces: Sequence[LatentSpace]) -> Iterator[tuple[str, ...]]:
    """Mean accuracy of the 20 ordered pairs, by number of rows that the maps are fitted on."""
    yield "rows", "universe, 5 maps", "with `--correct`", "Procrustes, 20 maps", "GCCA with a ridge, 5 maps"
    for n_rows in PAIRS:
        found = []
        for state in STATES:
            one = Universe.fit(spaces, rows=n_rows, random_state=state)
            corrected = Universe.fit(spaces, rows=n_rows, random_state=state, correct=True)
            found.append([mean_top1(one), mean_top1(corrected), pairwise(spaces, one), gcca(spaces, one)])
        yield f"{n_rows:,}", *map(short, np.mean(found, axis=0))


def text_rows(spaces: Sequence[LatentSpace]) -> Iterator[tuple[str, str]]:
    state, lost, changed = STATES[0], [], []
    whole = Universe.fit(spaces, rows=1000, random_state=state)
    for i, space in enumerate(spaces):
        others = [j for j in range(len(spaces)) if j != i]
        mixed = [with_wrong_pairs(one, whole.test_ids, i) if one is space else one for one in spaces]
        damaged = Universe.fit(mixed, rows=1000, random_state=state)
        lost.append(mean_top1(whole, others) - mean_top1(damaged, others))
        added = Universe.fit([spaces[j] for j in others], rows=1000, random_state=state).add(space)
        tested = [one.vectors[one.rows(added.test_ids)] for one in (*(spaces[j] for j in others), space)]
        *known, last = (added.map(rows, name) for rows, name in zip(tested, added.names, strict=True))
        found = [retrieval(*pair).top1 for other in known for pair in ((last, other), (other, last))]
        changed.append(np.mean(found) - np.nanmean([whole.accuracy[i, others], whole.accuracy[others, i]]))
    yield "75 % wrong pairs in one of them: the most that the others lose", signed(max(lost))
    yield "one added by one map, against refitting all five: the worst", signed(min(changed))
    first, second = spaces[:2]  # of one width: no direction is lost on the way
    cycle, X = Universe.fit([first, second], rows=1000, random_state=state, unit=False), first.vectors
    around = cycle.translate(cycle.translate(X, first.name, second.name), second.name, first.name)
    moved = np.linalg.norm(around - X, axis=1).max() / np.linalg.norm(X, axis=1).mean()
    yield "a cycle of two with `--no-unit`: the most that a row has moved, of the mean length", f"{moved:.1e}"


def stitched(state: int, noise: float, kept: float, hub_rows: int | None) -> list[float]:
    """Accuracy of heads on the rows of another network, both of damaged digits, by number of hubs: networks
    of undamaged digits. The two share few rows; each hub has `hub_rows` rows of its own draw, None: all.
    """
    rng, (X, y) = np.random.default_rng(state), load_digits(return_X_y=True)
    damaged = X + noise * rng.normal(size=X.shape), X * (rng.random(X.shape) < kept)
    hidden = []
    for number, images in enumerate([*damaged, *[X] * max(HUBS)]):
        half = rng.permutation(len(X))[: len(X) // 2]
        net = MLPClassifier((64,), max_iter=60, random_state=100 * state + number).fit(
            images[half] / 16, y[half]
        )
        hidden.append(np.maximum(images / 16 @ net.coefs_[0] + net.intercepts_[0], 0))
    tested, used = np.split(rng.permutation(len(X)), [N_TESTED])
    shared, rest = np.split(used, [N_SHARED])
    own = [np.r_[shared, rest[::2]], np.r_[shared, rest[1::2]]]
    own += [rng.permutation(used)[:hub_rows] for _ in range(max(HUBS))]
    spaces = [
        LatentSpace(rows[of], list(map(str, of)), name=f"network {number}")
        for number, (rows, of) in enumerate(zip(hidden, own, strict=True))
    ]
    heads, accuracy = [fit_head(hidden[i][own[i]], y[own[i]], 10) for i in (0, 1)], []
    for n_hubs in HUBS:
        universe = Universe.fit(spaces[: 2 + n_hubs], unit=False, random_state=state)
        found = [
            heads[j].probabilities(universe.translate(hidden[i][tested], spaces[i].name, spaces[j].name))
            for i, j in permutations(range(2))
        ]
        accuracy.append(float(np.mean([rows.argmax(axis=1) == y[tested] for rows in found])))
    return accuracy


def hub_rows() -> Iterator[tuple[str, str]]:
    for (noise, kept), rows in product(((8.0, 0.5), (4.0, 0.7)), (N_OF_A_HUB, None)):
        runs = [stitched(state, noise, kept, rows) for state in STATES]
        told = ", ".join(map(short, np.mean(runs, axis=0)))
        ranks = ", ".join(short(float(spearmanr(HUBS, one).statistic), 2) for one in runs)
        of_a_hub = f"{rows} rows in each hub" if rows else "all rows in each hub"
        what = f"digits, noise {noise:g} of 16 against {percent(kept)} of the pixels, {N_SHARED} shared rows, {of_a_hub}"
        yield f"{what}: stitched accuracy with 0, 1, 2, 4, 8 hubs", f"{told}; Spearman {ranks}"


def timing() -> tuple[str, str]:
    rng, ids, spaces = np.random.default_rng(0), [str(i) for i in range(20_000)], []
    true = rng.normal(size=(20_000, 384)) * np.linspace(2, 0.1, 384)
    for number in range(12):
        turn, _ = np.linalg.qr(rng.normal(size=(384, 384)))
        rows = (true @ turn + 0.5 * rng.normal(size=true.shape)).astype(np.float32)
        spaces.append(LatentSpace(rows, ids, name=str(number)))
    begun, used = time.perf_counter(), time.process_time()
    Universe.fit(spaces)
    seconds, cores = time.perf_counter() - begun, time.process_time() - used
    return "12 spaces of 20,000 × 384, with scores", f"{seconds:.0f} s ({cores:.0f} s of CPU)"


def table(rows: Iterable[tuple[str, ...]]) -> str:
    first, *others = rows
    lines = [first, ("---",) * len(first), *others]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.universe", description=__doc__)
    parser.parse_args()
    warnings.simplefilter("ignore")
    what, parts = ("what", "measured"), []
    if folder := data_folder():
        parts.append(
            "Accuracy: held-out rows, of 1,000, whose nearest row in the other space is their own; chance .001."
            f" Means of {len(STATES)} random states."
        )
        for name in TEXTS:
            spaces = text_spaces(folder, Store(), name)
            parts += [
                f"{name.capitalize()} in five spaces:\n\n{table(methods(spaces))}",
                table([what, *text_rows(spaces)]),
            ]
    parts.append(table([what, *hub_rows(), timing()]))
    made = f"# One map for each space\n\nBy `python -m benchmarks.universe`, {date.today()}."
    text = "\n\n".join([made, *(part.strip() for part in parts)]) + "\n"
    TABLE.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
