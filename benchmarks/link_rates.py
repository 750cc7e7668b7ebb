"""``python -m benchmarks.link_rates [situation … | universe] [--draws N] [--rows N] [--pairs N]``: how often two collections
without any pair are linked, and whether the map is right. A line of JSON for each draw; ``--table FILE …`` makes
link_rates.md of such lines.

Apart from known pairs, no row has its partner in the other space. `top1` is the share of 1,000 further rows
whose partner is the nearest of the 1,000. Captions for MiniLM are those of ``universe``. Encodings are kept
in the store. Texts are read from RELSCOPE_DATA; reviews are the movie reviews among the lines of its English
corpus.

``universe`` measures what one map for each space costs against one for each pair, and writes universe.md. Five
spaces (MiniLM layers 6 and 3, means of Word2Vec and of FastText vectors, TF-IDF + SVD) of multi30k's training
captions and of TREC's training questions, in RELSCOPE_DATA, are encoded once into the store; without them only
the digits and the time are measured.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from functools import cache
from itertools import islice, permutations, product
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

from relcore import LatentSpace, Procrustes, Universe
from relcore.base.access import data_folder
from relcore.base.numbers import percent, short, signed
from relcore.base.rows import mean_row, unit_rows
from relcore.catalog.encodings import encode
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.sentences import PooledWords, TfidfSvd
from relcore.encoders.transformers import MiniLM
from relcore.encoders.words import load_words
from relcore.engine.engine import thin_svd
from relcore.linking.clusters import link_clusters, map_from_pairs
from relcore.represent.heads import fit_head
from relcore.runs.store import Store
from relcore.universe.retrieval import retrieval

TABLE = Path(__file__).with_suffix(".md")
HELD_OUT = 1000
WORDS = ("word2vec-novels", "fasttext-novels")
CAPTIONS = {"layers": (0, 1), "minilm-word2vec": (0, 2), "minilm-lsa": (0, 4)}
POOLED = {  # texts, and the weighting of their words
    "captions": ("captions", "plain"),
    "reviews": ("reviews", "plain"),
    "reviews-sif": ("reviews", "sif"),
    "wikipedia-sif": ("wikipedia", "sif"),
}
N_TEXTS = 20_000
REVIEWS = (1_558_500, 1_623_000)
FEWEST_WORDS = 6
SITUATIONS = {
    "words": "different words, Word2Vec and FastText",
    "captions": "different captions, mean Word2Vec and mean FastText vectors",
    "reviews": "different sentences of reviews, mean Word2Vec and mean FastText vectors",
    "reviews-sif": "the same, weighted by SIF",
    "wikipedia-sif": "different sentences of Wikipedia, weighted by SIF, Word2Vec and FastText",
    "layers": "different captions, MiniLM's layers 6 and 3",
    "minilm-word2vec": "different captions, MiniLM and mean Word2Vec vectors",
    "minilm-lsa": "different captions, MiniLM and TF-IDF + SVD",
    "shifted": "frequent words in Word2Vec, rarer ones in FastText",
    "unrelated": "abstracts in TF-IDF + SVD, captions in mean FastText vectors",
    "outline": "the same 20 clusters, unrelated within them, 100 axes",
    "noise": "Gaussian noise, 50 axes",
    "spectrum": "Gaussian noise with the spectra of both word spaces",
}


@cache
def _texts(name: str) -> DatasetSpec:
    """At most 20,000 different texts."""
    folder = Path(os.environ["RELSCOPE_DATA"])
    if name == "wikipedia":
        return DatasetSpec("wikipedia")
    if name == "reviews":
        with lzma.open(folder / "corpora" / "english.txt.xz", "rt", encoding="utf-8") as lines:
            texts = [line for line in islice(lines, *REVIEWS) if len(line.split()) >= FEWEST_WORDS]
    elif name == "abstracts":
        texts = pd.read_parquet(folder / "npl" / "documents.parquet")["text"]
    else:
        texts = pd.read_parquet(folder / "multi30k" / "train.parquet")["en"]
    texts = list(dict.fromkeys(" ".join(text.replace('"', "'").split()) for text in texts))
    order = np.random.default_rng(0).permutation(len(texts))[:N_TEXTS]
    listed = Store().root / f"{name}.tsv"
    listed.write_text("text\n" + "\n".join(texts[place] for place in order) + "\n", encoding="utf-8")
    return DatasetSpec("file", str(listed))


@cache
def _encoded(texts: str, encoder: PooledWords | TfidfSvd) -> np.ndarray:
    (space,) = encode(_texts(texts), encoder, Store())
    return space.vectors


def _unrelated() -> list[np.ndarray]:
    found = [
        _encoded("abstracts", TfidfSvd(100)),
        _encoded("captions", PooledWords(WORDS[1], weighting="plain")),
    ]
    return [rows[: min(map(len, found))] for rows in found]


@cache
def _caption_spaces() -> list[np.ndarray]:
    return [space.vectors for space in text_spaces(Path(os.environ["RELSCOPE_DATA"]), Store(), "captions")]


@cache
def _spectrum(name: str) -> np.ndarray:
    vectors = load_words(name).vectors
    return np.linalg.svd(unit_rows(vectors, mean_row(vectors)), compute_uv=False)


def _outline(rng: np.random.Generator, n: int, d: int = 100, clusters: int = 20) -> list[np.ndarray]:
    centres = 0.3 * rng.normal(size=(clusters, d))
    spread = np.arange(1, d + 1) ** -0.5
    turns = [np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in WORDS]
    return [
        centres[rng.integers(clusters, size=n)] + rng.normal(size=(n, d)) * spread @ turn for turn in turns
    ]


def spaces(situation: str, n: int, rng: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray]:
    """Two spaces, whose rows with the same number are partners, and the order in which rows are drawn."""
    if situation in CAPTIONS:
        found = [_caption_spaces()[place] for place in CAPTIONS[situation]]
    elif situation in POOLED:
        texts, weighting = POOLED[situation]
        found = [_encoded(texts, PooledWords(name, weighting=weighting)) for name in WORDS]
    elif situation == "unrelated":
        found = _unrelated()
    elif situation == "outline":
        found = _outline(rng, 2 * n + HELD_OUT)
    elif situation == "noise":
        found = [rng.normal(size=(2 * n + HELD_OUT, 50)) for _ in WORDS]
    elif situation == "spectrum":
        found = [rng.normal(size=(2 * n + HELD_OUT, 100)) * _spectrum(name) for name in WORDS]
    else:
        found = [load_words(name).vectors for name in WORDS]
    order = rng.permutation(len(found[0]))
    if situation == "shifted":  # the words between are further rows
        frequent = np.argsort(-load_words(WORDS[0]).counts, kind="stable")
        parts = (frequent[:8000], frequent[12_000:], frequent[8000:12_000])
        order = np.concatenate(
            [rng.permutation(rows)[:m] for rows, m in zip(parts, (n, n, HELD_OUT), strict=True)]
        )
    return found, order


def drawn(situation: str, n: int, n_pairs: int, state: int) -> dict[str, float | str | bool]:
    rng = np.random.default_rng((n, n_pairs, state))
    vectors, order = spaces(situation, n, rng)
    n = min(n, (len(order) - HELD_OUT - n_pairs) // 2)
    source, target, further, paired = np.split(
        order[: 2 * n + HELD_OUT + n_pairs], [n, 2 * n, 2 * n + HELD_OUT]
    )
    sides = []
    for rows, own in zip(vectors, (source, target), strict=True):
        own = np.r_[paired, own]
        mean = mean_row(rows[own])
        sides.append([unit_rows(rows[part], mean) for part in (own, further)])
    (X, held_x), (Y, held_y) = sides
    began = process_time()
    if n_pairs:
        same = np.stack([np.arange(n_pairs)] * 2)
        mapping = map_from_pairs(X, Y, same, state)
        found = {}
    else:
        *_, fit = link_clusters(X, Y, state)
        mapping = fit.mapping
        found = {"linked": fit.agrees, "agreement": round(fit.agreement, 3), "chance": round(fit.chance, 3)}
        found["same"] = round(fit.same, 3)
    seconds = process_time() - began
    nearest = (unit_rows(held_x @ mapping) @ held_y.T).argmax(axis=1)
    return {
        "situation": situation,
        "rows": n,
        "pairs": n_pairs,
        "state": state,
        **found,
        "top1": float(np.mean(nearest == np.arange(HELD_OUT))),
        "seconds": round(seconds, 1),
    }


def table(lines: pd.DataFrame) -> str:
    """Markdown: a row for each situation, number of rows and of pairs."""
    told = [
        "| collections | rows a side | known pairs | draws | linked | accuracy, 1 of 1,000: mean (lowest) |"
        " seconds of one core |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, title in SITUATIONS.items():
        for (n, n_pairs), part in lines[lines["situation"] == name].groupby(["rows", "pairs"]):
            if n_pairs:
                linked = ""
            else:
                linked = f"{int(part['linked'].sum())}"
            accuracy = f"{part['top1'].mean():.3f} ({part['top1'].min():.3f})"
            cells = (title, f"{n:,}", n_pairs, len(part), linked, accuracy, f"{part['seconds'].median():.0f}")
            told.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(told)


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.link_rates", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "situations", nargs="*", metavar="situation", help=f"default all: {', '.join(SITUATIONS)}"
    )
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--pairs", type=int, default=0, help="known pairs, of captions")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="state of the first draw")
    parser.add_argument(
        "--table", type=Path, nargs="+", metavar="FILE", help="write link_rates.md from lines"
    )
    options = parser.parse_args(given)
    if options.situations == ["universe"]:
        universe()
        return
    if unknown := set(options.situations) - set(SITUATIONS):
        parser.error(f"expected {', '.join(SITUATIONS)}, got {', '.join(sorted(unknown))}")
    if options.table:
        lines = pd.concat([pd.read_json(path, lines=True) for path in options.table])
        _, mark, earlier = TABLE.read_text(encoding="utf-8").partition("\n## Earlier")
        TABLE.write_text(f"{_HEAD}\n{table(lines)}\n{mark}{earlier}", encoding="utf-8")
        return
    for state in range(options.first, options.first + options.draws):
        for situation in options.situations or SITUATIONS:
            print(json.dumps(drawn(situation, options.rows, options.pairs, state)), flush=True)


_HEAD = """# How often collections are linked

Made by `python -m benchmarks.link_rates`, which see. No row has its partner on the other side, but for the known
pairs. Accuracy: 1,000 further rows, of which the nearest is to be the partner; by chance .001. With known pairs the
map is `map_from_pairs`, without `link_clusters`. Seconds of one core of a busy machine. The rule was tuned on
sentences of news, of novels and of the Brown corpus, on words, and on draws of other states; one draw of the reviews
showed that right maps were refused.
"""
# Many spaces in one.
UNIVERSE_TABLE = Path(__file__).with_name("universe.md")
STATES = (20, 21, 22, 23, 24)
PAIRS = (300, 1000, 3000)
N_CAPTIONS = 11_000
GCCA_WIDTH = 250
GCCA_RIDGE = 1.0
HUBS = (0, 1, 2, 4, 8)
N_SHARED = 25
N_OF_A_HUB = 200
N_TESTED = 400
TEXTS = {"captions": ("multi30k", "en"), "questions": ("trec", "text")}


def text_spaces(folder: Path, store: Store, name: str) -> list[LatentSpace]:
    place, column = TEXTS[name]
    texts = pd.read_parquet(folder / place / "train.parquet")[column].drop_duplicates()
    drawn = texts.iloc[np.random.default_rng(0).permutation(len(texts))[:N_CAPTIONS]]
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
    if kept is None:
        kept = range(len(universe.members))
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
    """The places of the same rows, by Procrustes for each ordered pair."""
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
    whitened = []
    regressions = []
    for X, _ in parts:
        left, values, right = thin_svd(X.astype(np.float64))
        shrunk = values / np.sqrt(values**2 + GCCA_RIDGE * np.mean(values**2))
        whitened.append(left * shrunk)
        regressions.append((right.T * (shrunk**2 / np.maximum(values, 1e-9))) @ left.T)
    common = thin_svd(np.hstack(whitened))[0][:, :GCCA_WIDTH]
    places = [held @ by @ common for (_, held), by in zip(parts, regressions, strict=True)]
    return float(np.mean([retrieval(*pair).top1 for pair in permutations(places, 2)]))


def with_wrong_pairs(space: LatentSpace, tested: Sequence[str], state: int) -> LatentSpace:
    """A space in which 75 % of the rows outside of `tested` have the vector of another row."""
    pool = np.flatnonzero(~space.index.isin(tested))
    wrong = np.random.default_rng(state).permutation(pool)[: 3 * len(pool) // 4]
    vectors = np.array(space.vectors)
    vectors[wrong] = vectors[np.roll(wrong, 1)]
    return LatentSpace(vectors, space.ids, name=space.name)


def methods(spaces: Sequence[LatentSpace]) -> Iterator[tuple[str, ...]]:
    """Mean accuracy of the 20 ordered pairs, by number of rows that the maps are fitted on."""
    yield "rows", "universe, 5 maps", "Procrustes, 20 maps", "GCCA with a ridge, 5 maps"
    for n_rows in PAIRS:
        found = []
        for state in STATES:
            one = Universe.fit(spaces, rows=n_rows, random_state=state)
            found.append([mean_top1(one), pairwise(spaces, one), gcca(spaces, one)])
        yield f"{n_rows:,}", *map(short, np.mean(found, axis=0))


def text_rows(spaces: Sequence[LatentSpace]) -> Iterator[tuple[str, str]]:
    state = STATES[0]
    lost = []
    changed = []
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
    cycle = Universe.fit([first, second], rows=1000, random_state=state, unit=False)
    X = first.vectors
    around = cycle.translate(cycle.translate(X, first.name, second.name), second.name, first.name)
    moved = np.linalg.norm(around - X, axis=1).max() / np.linalg.norm(X, axis=1).mean()
    yield "a cycle of two with `--no-unit`: the most that a row has moved, of the mean length", f"{moved:.1e}"


def stitched(state: int, noise: float, kept: float, hub_rows: int | None) -> list[float]:
    """The accuracy of a head on the rows of another network, for each number of hubs. Both networks are
    trained on damaged digits and share few rows. Hubs are networks trained on undamaged digits; each has its
    own draw of `hub_rows` rows, or all rows if None.
    """
    rng = np.random.default_rng(state)
    (X, y) = load_digits(return_X_y=True)
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
    heads = [fit_head(hidden[i][own[i]], y[own[i]], 10) for i in (0, 1)]
    accuracy = []
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
        of_a_hub = "all rows in each hub"
        if rows:
            of_a_hub = f"{rows} rows in each hub"
        what = f"digits, noise {noise:g} of 16 against {percent(kept)} of the pixels, {N_SHARED} shared rows, {of_a_hub}"
        yield f"{what}: stitched accuracy with 0, 1, 2, 4, 8 hubs", f"{told}; Spearman {ranks}"


def timing() -> tuple[str, str]:
    rng = np.random.default_rng(0)
    ids = [str(i) for i in range(20_000)]
    spaces = []
    true = rng.normal(size=(20_000, 384)) * np.linspace(2, 0.1, 384)
    for number in range(12):
        turn, _ = np.linalg.qr(rng.normal(size=(384, 384)))
        rows = (true @ turn + 0.5 * rng.normal(size=true.shape)).astype(np.float32)
        spaces.append(LatentSpace(rows, ids, name=str(number)))
    begun = time.perf_counter()
    used = time.process_time()
    Universe.fit(spaces)
    seconds = time.perf_counter() - begun
    cores = time.process_time() - used
    return "12 spaces of 20,000 × 384, with scores", f"{seconds:.0f} s ({cores:.0f} s of CPU)"


def universe_table(rows: Iterable[tuple[str, ...]]) -> str:
    first, *others = rows
    lines = [first, ("---",) * len(first), *others]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def universe() -> None:
    warnings.simplefilter("ignore")
    what = ("what", "measured")
    parts = []
    if folder := data_folder():
        parts.append(
            "Accuracy: held-out rows, of 1,000, whose nearest row in the other space is their own; chance .001."
            f" Means of {len(STATES)} random states."
        )
        for name in TEXTS:
            spaces = text_spaces(folder, Store(), name)
            parts += [
                f"{name.capitalize()} in five spaces:\n\n{universe_table(methods(spaces))}",
                universe_table([what, *text_rows(spaces)]),
            ]
    parts.append(universe_table([what, *hub_rows(), timing()]))
    made = f"# One map for each space\n\nBy `python -m benchmarks.link_rates universe`, {date.today()}."
    text = "\n\n".join([made, *(part.strip() for part in parts)]) + "\n"
    UNIVERSE_TABLE.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
