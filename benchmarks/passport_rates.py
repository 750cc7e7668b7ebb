"""``python -m benchmarks.passport_rates``: what `relcore.passport` says of vectors whose change is known.

Of texts that are drawn again each time a passport is made from a model's vectors, then compared with the same
vectors after a known change: rounding, scale, rotation, another prompt, pooling and layer of the model, and
other models. A table says how often the right class is named. Needs MiniLM and the folder trec in RELSCOPE_DATA.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd

from relcore.base.access import data_folder
from relcore.encoders.dataset import Dataset
from relcore.encoders.transformers import PretrainedText, minilm_folder
from relcore.encoders.words import load_words
from relcore.passport.passport import PROMPTS, Passport, PassportCard, check
from relcore.represent.similarity import unit_rows
from relcore.runs.progress import silent

SHORT, LONG = PROMPTS[1], PROMPTS[-1]


def encoded(texts: list[str], prompts: tuple[str, ...]) -> dict[str, np.ndarray]:
    """“pooling|prompt|layer” → vectors of all texts by MiniLM."""
    dataset = Dataset(lambda start, stop: texts[start:stop], texts, name="texts", kind="texts")
    found = {}
    for pooling in ("mean", "cls"):
        layers = tuple(range(pooling == "cls", 7))
        encoder = replace(PretrainedText(str(minilm_folder()), layers), pooling=pooling)
        encode = encoder.prepare(dataset, silent)
        for prompt in prompts:
            rows = encode([f"{prompt}{text}" for text in texts])
            found |= {f"{pooling}|{prompt}|{output.split()[-1]}": matrix for output, matrix in rows.items()}
    return found


def other_models(texts: list[str], width: int) -> dict[str, np.ndarray]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = load_words("word2vec-novels")
    known = {word: row for row, word in enumerate(words.ids)}
    rows = [[known[word] for word in text.lower().split() if word in known] for text in texts]
    means = np.array([words.vectors[one].mean(axis=0) if one else words.vectors[0] for one in rows])
    tfidf = TfidfVectorizer(max_features=width).fit_transform(texts).toarray()
    tfidf[np.linalg.norm(tfidf, axis=1) == 0, 0] = 1
    return {"Word2Vec, mean": means, "TF-IDF": tfidf.astype(np.float32)}


def changes(X: np.ndarray, rng: np.random.Generator) -> dict[str, tuple[str, np.ndarray]]:
    """Name → the right class and the vectors (n, d) after this change."""
    rotation = np.linalg.qr(rng.normal(size=(X.shape[1], X.shape[1])))[0]
    noise = rng.normal(size=X.shape)
    noise *= 0.05 * np.linalg.norm(X, axis=1, keepdims=True) / np.linalg.norm(noise, axis=1, keepdims=True)
    step = np.abs(X).max(axis=1, keepdims=True) / 127
    return {
        "other batch": ("same", X * (1 + rng.uniform(-1e-6, 1e-6, X.shape))),
        "float16": ("rounded", X.astype(np.float16).astype(np.float32)),
        "int8": ("rounded", np.round(X / step) * step),
        "scaled": ("rescaled", X * rng.uniform(1.2, 20)),
        "unit rows": ("rescaled", unit_rows(X) * 3),
        "rotated": ("rotated", X @ rotation),
        "rotated, 5 % noise": ("rotated", (X + noise) @ rotation),
    }


def rates(
    pool: dict[str, np.ndarray], base: str, others: dict[str, np.ndarray], draws: int, n: int
) -> pd.DataFrame:
    X, rows = pool[base], []
    for draw in range(draws):
        rng = np.random.default_rng((draw, n))
        some = rng.choice(len(X), n, replace=False)
        passport = Passport(
            tuple(map(str, some)), np.ascontiguousarray(X[some], np.float32), PassportCard("model")
        )
        cases = changes(X[some], rng)
        cases |= {name: ("changed recipe", one[some]) for name, one in pool.items() if name != base}
        cases |= {name: ("other model", one[some]) for name, one in others.items()}
        cases["shuffled"] = "other model", X[np.random.default_rng(draw).permutation(len(X))[:n]]
        for name, (right, Y) in cases.items():
            rows.append({"change": name, "right": right, "said": check(passport, Y, draw).kind})
    table = pd.DataFrame(rows)
    told = table.groupby(["change", "right"], sort=False).said.agg(Counter).reset_index()
    told.insert(2, "share", [said[right] / draws for right, said in zip(told.right, told.said, strict=True)])
    return told


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--anchors", type=int, default=32)
    options = parser.parse_args()
    texts = pd.read_parquet(data_folder() / "trec" / "train.parquet").text.drop_duplicates().tolist()[:1000]
    pool = encoded(texts, ("", SHORT, LONG))
    others = other_models(texts, pool["mean||6"].shape[1])
    for base in ("mean||6", "mean||3"):
        print(f"\nMiniLM, layer {base[-1]}, {options.anchors} anchors, {options.draws} draws each")
        print(rates(pool, base, others, options.draws, options.anchors).to_string(index=False))


if __name__ == "__main__":
    main()
