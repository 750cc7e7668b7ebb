"""``python -m benchmarks.link_rates [situation …] [--draws N] [--rows N] [--pairs N]``: how often two collections
without any pair are linked, and whether the map is right. A line of JSON for each draw; ``--table FILE …`` makes
link_rates.md of such lines.

No row of one side has its partner on the other, but for known pairs. `top1` is the share of 1,000 further rows
whose partner is the nearest of the 1,000. Captions for MiniLM are those of `benchmarks.universe`. Encodings are kept
in the store. Texts are read from RELSCOPE_DATA; reviews are the movie reviews among the lines of its English corpus.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
from collections.abc import Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd

from benchmarks.universe import text_spaces
from relcore.base.rows import mean_row, unit_rows
from relcore.catalog.encoding import encode
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.sentences import PooledWords, TfidfSvd
from relcore.encoders.words import load_words
from relcore.linking.clusters import link_clusters, map_from_pairs
from relcore.runs.store import Store

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
N_TEXTS, REVIEWS, FEWEST_WORDS = 20_000, (1_558_500, 1_623_000), 6
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
    centres, spread = 0.3 * rng.normal(size=(clusters, d)), np.arange(1, d + 1) ** -0.5
    turns = [np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in WORDS]
    return [
        centres[rng.integers(clusters, size=n)] + rng.normal(size=(n, d)) * spread @ turn for turn in turns
    ]


def spaces(situation: str, n: int, rng: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray]:
    """Two spaces, rows of the same number partners, and the order in which rows are taken."""
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
        mapping, found = map_from_pairs(X, Y, same, state), {}
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
            linked = "" if n_pairs else f"{int(part['linked'].sum())}"
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


if __name__ == "__main__":
    main()
