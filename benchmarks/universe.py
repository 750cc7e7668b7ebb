"""``python -m benchmarks.universe``: what one map for each space costs against one for each pair, and heals.

Five caption spaces (MiniLM layers 6 and 3, means of Word2Vec and of FastText vectors, TF-IDF + SVD) of
multi30k's training captions, in RELSCOPE_DATA, are encoded once into the store; without them only the digits
and the time are measured. The table goes to benchmarks/universe.md.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

from relcore import LatentSpace, Procrustes, Universe
from relcore.base.access import data_folder
from relcore.base.numbers import short, signed
from relcore.catalog.encoding import encode
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.sentences import PooledWords, TfidfSvd
from relcore.encoders.transformers import MiniLM
from relcore.represent.heads import fit_head
from relcore.represent.similarity import unit_rows
from relcore.runs.store import Store
from relcore.universe.universe import retrieval

TABLE = Path(__file__).with_suffix(".md")
STATES, PAIRS = (10, 11, 12, 13, 14), (300, 1000, 3000)
N_CAPTIONS, HUBS, N_HUB_PAIRS = 11_000, (0, 1, 2, 4, 8), 40


def captions(folder: Path, store: Store) -> list[LatentSpace]:
    texts = pd.read_parquet(folder / "multi30k" / "train.parquet")["en"].drop_duplicates()
    drawn = texts.iloc[np.random.default_rng(0).permutation(len(texts))[:N_CAPTIONS]]
    listed = store.root / "captions.tsv"
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


def pairwise(spaces: Sequence[LatentSpace], universe: Universe) -> float:
    """The same rows, by Procrustes for each ordered pair."""
    found = []
    for first, second in permutations(spaces, 2):
        (X, Y), (asked, true) = (
            [unit_rows(one.vectors[one.rows(ids)]) for one in (first, second)]
            for ids in (universe.ids, universe.test_ids)
        )
        moved = Procrustes(scale=False).fit(X, Y).transform(asked)
        found.append(retrieval(moved - Y.mean(axis=0), true - Y.mean(axis=0)).top1)
    return float(np.mean(found))


def with_wrong_pairs(space: LatentSpace, tested: Sequence[str], state: int) -> LatentSpace:
    """A space of which 75 % of the rows that are not tested have the vector of another one."""
    pool = np.flatnonzero(~space.index.isin(tested))
    wrong, vectors = (
        np.random.default_rng(state).permutation(pool)[: 3 * len(pool) // 4],
        np.array(space.vectors),
    )
    vectors[wrong] = vectors[np.roll(wrong, 1)]
    return LatentSpace(vectors, space.ids, name=space.name)


def caption_rows(spaces: Sequence[LatentSpace]) -> Iterator[tuple[str, str]]:
    for n_pairs in PAIRS:
        fitted = [Universe.fit(spaces, rows=n_pairs, random_state=state) for state in STATES]
        ours, theirs = [mean_top1(one) for one in fitted], [pairwise(spaces, one) for one in fitted]
        told = f"{short(np.mean(ours))}, pairwise {short(np.mean(theirs))}"
        yield f"accuracy of 20 ordered pairs, maps from {n_pairs:,} rows", told
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
    yield "75 % wrong pairs in one space: the most that the others lose", signed(max(lost))
    yield "a space that is added by one map, against refitting all: the worst of five", signed(min(changed))


def stitched(state: int, noise: float, kept: float) -> list[float]:
    """Accuracy of heads on the rows of another network, both of damaged digits, by number of hubs: networks
    of undamaged digits.
    """
    rng, (X, y) = np.random.default_rng(state), load_digits(return_X_y=True)
    damaged = X + noise * rng.normal(size=X.shape), X * (rng.random(X.shape) < kept)
    spaces = []
    for number, images in enumerate([*damaged, *[X] * max(HUBS)]):
        half = rng.permutation(len(X))[: len(X) // 2]
        net = MLPClassifier((64,), max_iter=60, random_state=100 * state + number).fit(
            images[half] / 16, y[half]
        )
        hidden = np.maximum(images / 16 @ net.coefs_[0] + net.intercepts_[0], 0)
        spaces.append(LatentSpace(hidden, list(map(str, range(len(X)))), name=f"network {number}"))
    accuracy = []
    for n_hubs in HUBS:
        settings = {"rows": N_HUB_PAIRS, "random_state": state, "unit": False}
        universe, found = Universe.fit(spaces[: 2 + n_hubs], **settings), []
        tested = spaces[0].rows(universe.test_ids)
        known = np.setdiff1d(np.arange(len(X)), tested)
        for source, target in permutations(spaces[:2]):
            head = fit_head(target.vectors[known], y[known], 10)
            rows = universe.translate(source.vectors[tested], source.name, target.name)
            found.append(np.mean(head.probabilities(rows).argmax(axis=1) == y[tested]))
        accuracy.append(float(np.mean(found)))
    return accuracy


def hub_rows() -> Iterator[tuple[str, str]]:
    for noise, kept in ((8.0, 0.5), (4.0, 0.7)):
        runs = [stitched(state, noise, kept) for state in STATES]
        told = ", ".join(map(short, np.mean(runs, axis=0)))
        ranks = ", ".join(short(float(spearmanr(HUBS, one).statistic), 2) for one in runs)
        what = f"digits, noise {noise:g} of 16 against {kept:.0%} of the pixels, {N_HUB_PAIRS} pairs"
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


def main() -> None:
    warnings.simplefilter("ignore")
    folder, rows = data_folder(), [timing(), *hub_rows()]
    if folder:
        rows += caption_rows(captions(folder, Store()))
    text = f"# One map for each space\n\nBy `python -m benchmarks.universe`, {date.today()}; means of {len(STATES)} random states where no"
    text += " other number is given. Accuracy: held-out rows, of 1,000, whose nearest row in the other space is their own; chance .001.\n\n"
    text += "| what | measured |\n|---|---|\n" + "".join(f"| {what} | {told} |\n" for what, told in rows)
    TABLE.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
