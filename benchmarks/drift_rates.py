"""``python -m benchmarks.drift_rates [change … | passport | designs]``: how often the drift gate alarms, by what was done to the
new version.

Three spaces: a digit network (ViT), MiniLM on Wikipedia sentences, bundled words. Each draw takes other rows
and rounds both versions apart. Then 1, 3 and 40 rows are broken in each of `BROKEN`. A line for each draw goes to a file as soon as it is there (default
drift_rates.jsonl, which git ignores), and the same command resumes where it was stopped. The table goes to
benchmarks/drift_rates.md.

``passport`` measures what `relcore.passport` says of vectors whose change is known, and writes
passport_rates.md. A passport of texts that are drawn again each time is compared with the same vectors after a
known change: rounding, scale, rotation, another prompt, pooling and layer of the model, and other models. Tables
say how often the right class is named, and the recipe where the model is at hand, and how well the bundled
anchors do beside texts drawn at random. It needs MiniLM, and the folders trec and multi30k in RELSCOPE_DATA;
about 15 minutes of one core.

``designs`` measures the verdicts of passports on changes that were not used to choose a limit.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path
from runpy import run_path
from zlib import crc32

import numpy as np
import pandas as pd

from relcore.base.access import data_folder
from relcore.base.numbers import short
from relcore.base.rows import unit_rows
from relcore.catalog.catalog import load
from relcore.catalog.naming import EXAMPLES, example_spaces
from relcore.drift.check import DriftCheck
from relcore.drift.measures import EVERYTHING_NEW, JITTER, NEW_QUERIES, with_jitter
from relcore.drift.thresholds import EverythingNew, NewQueries, Thresholds
from relcore.encoders.dataset import Dataset
from relcore.encoders.datasets import load_dataset
from relcore.encoders.onnx_texts import OnnxText
from relcore.encoders.transformers import MiniLM
from relcore.encoders.vision import SmallVision
from relcore.encoders.words import load_words
from relcore.migrate.migration import Migration
from relcore.passport.passport import Passport, PassportCard, check
from relcore.passport.recipes import ANCHORS, PROMPTS, encode_texts, fitting, model_at_hand, recipes_of
from relcore.runs.store import Store
from relcore.runs.work import silent
from relcore.spaces.space import LatentSpace
from relcore.studies.estimates import share

ROWS = 900
SPACES = ("digits", "sentences", "words")
DEFAULT = Thresholds()
STRICT = Thresholds(EverythingNew(0.0, 0.0, 0.0, 0.0), NewQueries(0.0, 0.0, 0.0, 0.0))
TABLE = Path(__file__).with_suffix(".md")
Change = Callable[[np.ndarray, np.ndarray | None, np.random.Generator], np.ndarray]


def main() -> None:
    if sys.argv[1:2] == ["passport"]:
        passport(sys.argv[2:])
        return
    if sys.argv[1:2] == ["designs"]:
        print("\n".join(designs(range(20))))
        return
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.drift_rates", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "changes", nargs="*", metavar="change", help=f"default all: {'; '.join(CHANGES)}".replace("%", "%%")
    )
    parser.add_argument("--file", type=Path, default=Path("drift_rates.jsonl"))
    options = parser.parse_args()
    if unknown := set(options.changes) - {*CHANGES, *BROKEN}:
        parser.error(
            f"expected changes among {'; '.join([*CHANGES, *BROKEN])}, got {'; '.join(sorted(unknown))}"
        )
    lines = []
    if options.file.is_file():
        lines = options.file.read_text().splitlines()
    done = {(one["change"], one["space"], one["draw"]): one for one in map(json.loads, lines)}
    for change in options.changes or [*CHANGES, *BROKEN]:
        for space in SPACES:
            n_draws = 34 if change in NULLS else 8
            if left_out(change, space):
                n_draws = 0
            for draw in range(n_draws):
                if (change, space, draw) not in done:
                    found = alarms
                    if change in BROKEN:
                        found = broken_alarms
                    one = {"change": change, "space": space, "draw": draw, **found(change, space, draw)}
                    done[change, space, draw] = one
                    with options.file.open("a") as file:
                        file.write(json.dumps(one) + "\n")
        of_change = [one for one in done.values() if one["change"] == change]
        print(f"{change}: {(rates if change in CHANGES else broken_rates)(of_change)}", flush=True)
    if not options.changes:
        TABLE.write_text(table(list(done.values())), encoding="utf-8")


@cache
def space_of(name: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Vectors and labels."""
    if name == "words":
        return load_words("word2vec-novels", limit=4000).vectors, None
    space = load(example_spaces(name, Store().finished)[0][-1])
    return space.vectors, space.labels


@cache
def swapped(name: str) -> np.ndarray:
    """The vectors of the same encoder with two of its layers in the wrong order."""
    data = load_dataset(EXAMPLES[name].dataset)
    if name == "sentences":
        rows = MiniLM().prepare(data, silent)
        layers = rows.model.encoder.layer
        layers[2], layers[3] = layers[3], layers[2]
        return rows(data.items(0, len(data)))["layer 6"]
    encoder = SmallVision("vit")
    trained = encoder.train(data, silent)
    first = "encoder.layers.layers.0."
    second = "encoder.layers.layers.1."
    names = {
        one: one.replace(first, "?").replace(second, first).replace("?", second) for one in trained.arrays
    }
    arrays = {names[one]: array for one, array in trained.arrays.items()}
    return encoder.restore(type(trained)(arrays, trained.metadata), data)(data.items(0, len(data)))[""]


def alarms(change: str, space: str, draw: int) -> dict[str, list[bool]]:
    """Whether each of both situations alarms, with the default thresholds and with thresholds of zero."""
    vectors, labels = space_of(space)
    rng = np.random.default_rng((crc32(change.encode()), SPACES.index(space), draw))
    rows = rng.choice(len(vectors), ROWS, replace=change == "A/A, rows drawn with repetition")
    old = vectors[rows]
    own = None if labels is None else labels[rows]
    base = old
    if change == "layers swapped":
        base = swapped(space)[rows]
    new = CHANGES[change](rounded(base, rng), own, rng)
    ids = [str(row) for row in range(ROWS)]
    pair = [
        LatentSpace(one, ids, labels=own, name=name)
        for name, one in (("old", rounded(old, rng)), ("new", new))
    ]
    drift = DriftCheck(random_state=draw).run(pair)
    situations = (EVERYTHING_NEW, NEW_QUERIES)
    judged = {name: drift.judged(one) for name, one in (("default", DEFAULT), ("strict", STRICT))}
    return {name: [verdict.alarmed([one]) for one in situations] for name, verdict in judged.items()}


def broken_alarms(kind: str, space: str, draw: int) -> dict[str, list[bool]]:
    """Whether only broken rows alarm, with 1, 3 and 40 of them; in every second draw the new version is
    rotated, too."""
    vectors, _ = space_of(space)
    found = []
    for n_broken in N_BROKEN:
        rng = np.random.default_rng((crc32(kind.encode()), SPACES.index(space), draw, n_broken))
        base = vectors[rng.choice(len(vectors), ROWS, replace=False)]
        old = rounded(base, rng)
        new = rounded(base, rng)
        some = rng.choice(ROWS, n_broken, replace=False)
        ids = np.array([str(row) for row in range(ROWS)])
        if draw % 2:
            new = turned(new, None, rng)
        kept = np.ones(ROWS, bool)
        if BROKEN[kind] is None:
            kept[some] = False
        else:
            new = np.array(new, np.float32)
            new[some] = BROKEN[kind](new, some, rng)
        pair = LatentSpace(old, ids, name="old"), LatentSpace(new[kept], ids[kept], name="new")
        drift = DriftCheck(n_queries=50, random_state=draw).run(pair)
        found.append(drift.judged(DEFAULT).alarmed([]))
    return {"default": found}


def rounded(vectors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The rows as a second run of the model would return them."""
    return with_jitter(vectors, JITTER, rng)


def size_of(vectors: np.ndarray) -> float:
    """The root mean square distance of the rows from their mean."""
    return float(np.sqrt(vectors.var(axis=0, dtype=np.float64).sum()))


def noisy(share: float) -> Change:
    return lambda X, labels, rng: X + share * size_of(X) / np.sqrt(X.shape[1]) * rng.normal(size=X.shape)


def class_moved(share: float) -> Change:
    def moved(X, labels, rng):
        step = rng.normal(size=X.shape[1])
        return X + np.outer(
            labels == rng.choice(np.unique(labels)), share * size_of(X) * step / np.linalg.norm(step)
        )

    return moved


def shuffled(share: float) -> Change:
    def moved(X, labels, rng):
        rows = rng.choice(len(X), round(share * len(X)), replace=False)
        found = X.copy()
        found[rows] = X[np.roll(rows, 1)]
        return found

    return moved


def turned(X, labels, rng):
    return X @ np.linalg.qr(rng.normal(size=(X.shape[1],) * 2))[0]


def int8(X, labels, rng):
    """Each column in 255 steps up to its largest number."""
    step = np.abs(X).max(axis=0) / 127
    return np.round(X / step) * step


def half(X, labels, rng):
    return X.astype(np.float16).astype(np.float32)


def brain_half(X, labels, rng):
    """Rounded to bfloat16: the upper half of a float32."""
    bits = np.ascontiguousarray(X, dtype=np.float32).view(np.uint32)
    return ((bits + np.uint32(0x8000)) & np.uint32(0xFFFF0000)).view(np.float32)


def shifted(X, labels, rng):
    step = rng.normal(size=X.shape[1])
    return X + 0.5 * size_of(X) * step / np.linalg.norm(step)


def unchanged(X, labels, rng):
    return X


CHANGES: dict[str, Change] = {
    "A/A": unchanged,
    "A/A, rows drawn with repetition": unchanged,
    "rotation": turned,
    "rotation, scale and shift": lambda X, labels, rng: shifted(2 * turned(X, labels, rng), labels, rng),
    "shift by .5 of the spread": shifted,
    "scale by 2": lambda X, labels, rng: 2 * X,
    "float16": half,
    "bfloat16": brain_half,
    "int8": int8,
    "noise .02 of the spread": noisy(0.02),
    "noise .05": noisy(0.05),
    "noise .1": noisy(0.1),
    "noise .2": noisy(0.2),
    "noise .3": noisy(0.3),
    "one class moved by .25 of the spread": class_moved(0.25),
    "one class moved by .5": class_moved(0.5),
    "one class moved by 1": class_moved(1.0),
    "2 % of the rows shuffled": shuffled(0.02),
    "5 % of the rows shuffled": shuffled(0.05),
    "layers swapped": unchanged,
}
N_BROKEN = (1, 3, 40)
Breaks = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]
# The new vectors of some rows (m,) of X (n, d); None if they are missing.
BROKEN: dict[str, Breaks | None] = {
    "missing": None,
    "zero": lambda X, some, rng: 0 * X[some],
    "all equal to another row": lambda X, some, rng: X[(some[:1] + 1) % len(X)],
    "each equal to the next row": lambda X, some, rng: X[(some + 1) % len(X)],
    "nearly equal to another row": lambda X, some, rng: rounded(X[(some + 7) % len(X)], rng),
    "one number in all dimensions": lambda X, some, rng: np.abs(X[some]).mean(axis=1, keepdims=True),
    "second half zero": lambda X, some, rng: X[some] * (np.arange(X.shape[1]) < X.shape[1] // 2),
    "times 1,000": lambda X, some, rng: 1000 * X[some],
    "times 1e-10": lambda X, some, rng: 1e-10 * X[some],
    "negated": lambda X, some, rng: -X[some],
    "noise": lambda X, some, rng: X.std() * rng.normal(size=X[some].shape),
    "the mean row": lambda X, some, rng: rounded(np.tile(X.mean(axis=0), (len(some), 1)), rng),
    "one large number": lambda X, some, rng: X[some] + 100 * X.std() * (np.arange(X.shape[1]) == 3),
    "dimensions in another order": lambda X, some, rng: X[some, ::-1],
    "signs alone": lambda X, some, rng: X.std() * np.sign(X[some]),
}
NULLS = ("A/A", "A/A, rows drawn with repetition", "rotation")


def left_out(change: str, space: str) -> bool:
    """Words have no classes and no layers."""
    return space == "words" and ("class" in change or change == "layers swapped")


def rates(found: list[dict]) -> list[str]:
    """The numbers of draws with an alarm, for the situations everything new and new queries: with the default
    thresholds, then with thresholds of zero."""
    columns = [[one[kind][place] for one in found] for kind in ("default", "strict") for place in (0, 1)]
    return [f"{sum(column)} of {len(column)}" for column in columns]


def broken_rates(found: list[dict]) -> list[str]:
    """Alarms of draws with 1, 3 and 40 broken rows."""
    return [f"{sum(one['default'][n] for one in found)} of {len(found)}" for n in range(len(N_BROKEN))]


def table(found: list[dict]) -> str:
    lines = [
        "# How often the drift gate alarms",
        "",
        (
            f"`python -m benchmarks.drift_rates`, {date.today()}. {ROWS} rows of a digit network (ViT, 64 d),"
            " of MiniLM on"
        ),
        (
            "Wikipedia sentences (384 d), and of bundled words (100 d; without classes and layers). Each draw"
            " takes other rows;"
        ),
        (
            "both versions have numeric noise of their own, as large as rounding to float16. Alarms of draws,"
            " over all spaces and"
        ),
        "for each space.",
        "",
        "| change | thresholds | everything is new | new queries, old vectors | by space |",
        "|---|---|---|---|---|",
    ]
    for change in CHANGES:
        of_change = [one for one in found if one["change"] == change]
        for number, kind in enumerate(("default", "zero")):
            places = slice(2 * number, 2 * number + 2)
            by_space = []
            for space in SPACES:
                if of_space := [one for one in of_change if one["space"] == space]:
                    by_space.append(
                        f"{space} {' and '.join(one.split(' ')[0] for one in rates(of_space)[places])}"
                    )
            lines.append(
                f"| {change} | {kind} | {' | '.join(rates(of_change)[places])} | {'; '.join(by_space)} |"
            )
    lines += [
        "",
        "## Broken rows",
        "",
        f"Some of the {ROWS} rows were whole and are broken in the new version, which is rotated, too, in half of the",
        "draws. Alarms of draws, all spaces, by broken rows alone (`--gate planned`).",
        "",
        f"| broken rows | {' | '.join(map(str, N_BROKEN))} |",
        "|---|---|---|---|",
    ]
    for kind in BROKEN:
        of_kind = [one for one in found if one["change"] == kind]
        lines.append(f"| {kind} | {' | '.join(broken_rates(of_kind))} |")
    return "\n".join([*lines, ""])


# Passports.

SHORT = PROMPTS[1]
LONG = PROMPTS[-1]
PASSPORT_TABLE = Path(__file__).with_name("passport_rates.md")
CHOOSE = Path(__file__).parents[1] / "assets" / "anchors" / "choose.py"
BUNDLED = {"the bundled ones": ANCHORS.read_text(encoding="utf-8").splitlines()}
TEXTS = 300
HELD_OUT = 1000
SETS = 3
FEW = 20
MODEL = "MiniLM"
NARROW = "MiniLM, layer 3"
WORDS = {"Word2Vec, mean": "word2vec-novels", "FastText, mean": "fasttext-novels"}
BRIDGES = ((MODEL, NARROW), (MODEL, "Word2Vec, mean"), ("FastText, mean", "Word2Vec, mean"))


def recipe(prompt: str, pooling: str, layer: int) -> str:
    return f"the prompt {prompt!r}, pooling {pooling}, layer {layer}"


BASES = {recipe("", "mean", 6): "MiniLM", recipe("", "mean", 3): "its layer 3"}
KNOWN = (  # recipes that a provider may change to
    *(recipe(prompt, "mean", 6) for prompt in (SHORT, LONG)),
    *(recipe("", "cls", layer) for layer in (6, 3)),
    *(recipe("", "mean", layer) for layer in (5, 4, 3, 1, 6)),
)


def of_words(texts: Sequence[str], name: str) -> np.ndarray:
    """The mean of the words' vectors, zero for a text without known words."""
    words = load_words(name)
    known = {word: row for row, word in enumerate(words.ids)}
    rows = [[known[word] for word in text.lower().split() if word in known] for text in texts]
    nothing = np.zeros(words.dimension, np.float32)
    return np.array([words.vectors[one].mean(axis=0) if one else nothing for one in rows])


def other_models(texts: Sequence[str], width: int) -> dict[str, np.ndarray]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    found = {name: of_words(texts, words) for name, words in WORDS.items()}
    found["TF-IDF"] = TfidfVectorizer(max_features=width).fit_transform(texts).toarray().astype(np.float32)
    for rows in found.values():
        rows[np.linalg.norm(rows, axis=1) == 0, 0] = 1
    return found


def changes(X: np.ndarray, rng: np.random.Generator) -> dict[str, tuple[str, np.ndarray]]:
    """Name → the right class and the vectors (n, d) after this change."""
    rotation = np.linalg.qr(rng.normal(size=(X.shape[1], X.shape[1])))[0]
    noise = rng.normal(size=X.shape)
    noise *= 0.05 * np.linalg.norm(X, axis=1, keepdims=True) / np.linalg.norm(noise, axis=1, keepdims=True)
    half = X.shape[1] // 2
    return {
        "other batch": ("same", X * (1 + rng.uniform(-1e-6, 1e-6, X.shape))),
        "float16": ("rounded", X.astype(np.float16).astype(np.float32)),
        "bfloat16": ("rounded", brain_half(X, None, rng)),
        "int8": ("rounded", on_grid(X, 127, 1)),
        "int8 by dimension": ("rounded", on_grid(X, 127, 0)),
        "4 bits": ("rounded", on_grid(X, 7, 1)),
        "scaled": ("rescaled", X * rng.uniform(1.2, 20)),
        "unit rows": ("rescaled", unit_rows(X) * 3),
        "rotated": ("rotated", X @ rotation),
        "rotated, 5 % noise": ("rotated", (X + noise) @ rotation),
        "noise of 2 %": ("changed recipe", X + 0.4 * noise),
        "noise of 5 %": ("changed recipe", X + noise),
        "first half": ("cut", X[:, :half]),
        "first half, unit rows": ("cut", unit_rows(X[:, :half])),
        "first quarter, float16": ("cut", X[:, : half // 2].astype(np.float16).astype(np.float32)),
        "second half zero": ("cut", X * (np.arange(X.shape[1]) < half)),
    }


def on_grid(X: np.ndarray, levels: int, axis: int) -> np.ndarray:
    """Rounded to `levels` steps up to the largest number of each row (axis 1) or dimension (axis 0)."""
    step = np.abs(X).max(axis=axis, keepdims=True) / levels
    return np.round(X / step) * step


def mixtures(
    X: np.ndarray, others: Mapping[str, np.ndarray], rng: np.random.Generator
) -> dict[str, tuple[str, np.ndarray]]:
    """Name → "mixed" and the vectors X (n, d) with 5, 30 or 50 % of the rows replaced: by rotated rows, by rows
    of another model (padded, rotated and scaled to the same lengths), or by rows of another recipe."""
    rotation = np.linalg.qr(rng.normal(size=(X.shape[1], X.shape[1])))[0]
    found = {}
    for name, rows in {"rotated": X, **others}.items():
        other = np.zeros_like(X)
        other[:, : rows.shape[1]] = rows
        if name == "rotated" or rows.shape[1] < X.shape[1]:
            other = unit_rows(other @ rotation) * np.linalg.norm(X, axis=1, keepdims=True)
        for part in (0.05, 0.3, 0.5):
            mixed = X.copy()
            some = rng.choice(len(X), max(1, round(part * len(X))), replace=False)
            mixed[some] = other[some]
            found[f"{100 * part:.0f} % of another model: {name}"] = "mixed", mixed
    return found


def made(X: np.ndarray, some: np.ndarray) -> Passport:
    return Passport(tuple(map(str, some)), np.ascontiguousarray(X[some], np.float32), PassportCard("model"))


def passport_rates(
    pool: Mapping[str, np.ndarray],
    base: str,
    others: Mapping[str, np.ndarray],
    draws: Sequence[int],
    n: int,
) -> dict[tuple[str, str], Counter[str]]:
    """(change, right class) → how often each class was said."""
    X = pool[base]
    told = {}
    for draw in draws:
        rng = np.random.default_rng((draw, n))
        some = rng.choice(len(X), n, replace=False)
        cases = changes(X[some], rng)
        cases |= {name: ("changed recipe", one[some]) for name, one in pool.items() if name != base}
        cases |= {name: ("other model", one[some]) for name, one in others.items()}
        cases["rows in another order"] = "other model", X[rng.permutation(len(X))[:n]]
        recipes = (
            recipe("", "mean", 4),
            recipe(LONG, "mean", 6) if "layer 6" in base else recipe("", "mean", 6),
        )
        parts = {name: pool[name][some] for name in recipes if name in pool}
        cases |= mixtures(X[some], {"Word2Vec, mean": others["Word2Vec, mean"][some], **parts}, rng)
        for name, (right, Y) in cases.items():
            said = check(made(X, some), Y, draw).kind
            if name in pool and said == "related model":  # a distant layer
                said = "changed recipe"
            told.setdefault((name, right), Counter())[said] += 1
    return told


def elsewhere(draws: Sequence[int]) -> list[str]:
    """The tables of `passport_rates` on 300 captions and 300 abstracts, which no threshold was chosen on."""
    encoder = model_at_hand("minilm")
    lines = []
    for kind, texts in texts_elsewhere().items():
        pool = encode_texts(encoder, texts, "", SHORT, LONG)
        layers = encoder.layers[1:]  # the class token has no embedding of its own
        pool |= encode_texts(replace(encoder, pooling="cls", layers=layers), texts, "")
        pool = {name: rows for name, rows in pool.items() if name in KNOWN}
        others = other_models(texts, pool[KNOWN[0]].shape[1])
        for base, name in BASES.items():
            told = passport_rates(pool, base, others, draws, 32)
            right = sum(said[kind] for (_, kind), said in told.items())
            total = len(draws) * len(told)
            lines += [
                "",
                f"### {kind}, a passport of {name}: {of_draws(right, total)}, {len(told)} changes",
                "",
            ]
            lines += table_of(told, len(draws))
            print("\n".join(lines[-len(told) - 4 :]), flush=True)
    return lines


def designs(draws: Sequence[int], n: int = 64) -> list[str]:
    """The table of `design_rates`, each line with its target."""
    lines = [f"| texts | design, {n} anchors | right | right of draws | target |", "|---|---|---|---|---|"]
    least = len(draws) - len(draws) // 20
    for kind, name, truth, right in design_rates(draws, n):
        lines.append(f"| {kind} | {name} | {truth} | {right} of {len(draws)} | {least} of {len(draws)} |")
    return lines


def design_rates(draws: Sequence[int], n: int = 64, state: int = 1) -> Iterator[tuple[str, str, str, int]]:
    """Texts, change, right verdict, and number of draws with it, of changes and texts that chose no limit. The
    limit between a changed recipe and a related model was chosen on the bundled anchors, with other prompts.
    Another `state` takes other texts."""
    encoder = model_at_hand("minilm")
    paraphrase = OnnxText()
    for kind, texts in texts_elsewhere(state).items():
        pool = encode_texts(encoder, texts, "", "passage: ")
        pool |= encode_texts(replace(encoder, pooling="cls", layers=encoder.layers[-1:]), texts, "")
        dataset = Dataset(lambda start, stop: texts[start:stop], list(texts), name=kind, kind="texts")  # noqa: B023
        other = paraphrase.prepare(dataset, silent)(texts)[""]
        X = pool[recipe("", "mean", 6)]
        words = other_models(texts, X.shape[1])
        cases = {
            "layer 5": (X, pool[recipe("", "mean", 5)], "changed recipe"),
            "the prompt 'passage: '": (X, pool[recipe("passage: ", "mean", 6)], "changed recipe"),
            "the class token": (X, pool[recipe("", "cls", 6)], "changed recipe"),
            "paraphrase-MiniLM": (X, other, "related model"),
            "MiniLM, from paraphrase-MiniLM": (other, X, "related model"),
            "paraphrase-MiniLM, from layer 4": (pool[recipe("", "mean", 4)], other, "related model"),
            "mean Word2Vec, from FastText": (words["FastText, mean"], words["Word2Vec, mean"], "other model"),
        }
        right: Counter[str] = Counter()
        truths = {name: truth for name, (_, _, truth) in cases.items()}
        for draw in draws:
            rng = np.random.default_rng((draw, 77))
            some = rng.choice(len(X), n, replace=False)
            for name, (old, new, truth) in cases.items():
                right[name] += check(made(old, some), new[some], draw).kind == truth
            own = made(X, some)
            for size, name in ((2, "two rows swapped"), (3, "three rows in a cycle")):
                rows = rng.choice(n, size, replace=False)
                new = X[some].copy()
                new[rows] = new[np.roll(rows, 1)]
                found = check(own, new, draw)
                names = {own.ids[row] for row in rows}
                right[name] += found.kind == "mixed" and {*found.exchanged} == names
                truths[name] = "mixed, and named"
            for name, further in {
                "zeros appended": 0 * X[some],
                "repeated": X[some],
                "other dimensions appended": other[some],
            }.items():
                right[name] += check(own, np.c_[X[some], further], draw).kind == "extended"
                truths[name] = "extended"
        for name, truth in truths.items():
            yield kind, name, truth, right[name]


def texts_elsewhere(state: int = 1) -> dict[str, list[str]]:
    """300 captions and 300 abstracts, which no threshold was chosen on."""
    captions = pd.read_parquet(data_folder() / "multi30k" / "train.parquet").en
    abstracts = pd.read_parquet(data_folder() / "cranfield" / "documents.parquet").text
    abstracts = abstracts.str.split().str[:40].str.join(" ")
    return {
        kind: column[column.str.len() > 10].drop_duplicates().sample(TEXTS, random_state=state).tolist()
        for kind, column in {"Captions": captions, "Abstracts of Cranfield": abstracts}.items()
    }


def table_of(told: Mapping[tuple[str, str], Counter[str]], n: int) -> list[str]:
    lines = ["| change | right | right of draws (95 %) | else said |", "|---|---|---|---|"]
    for (name, right), said in told.items():
        wrong = ", ".join(f"{kind} {count}" for kind, count in said.items() if kind != right)
        lines.append(f"| {name} | {right} | {of_draws(said[right], n)} | {wrong} |")
    return lines


def of_draws(right: int, n: int) -> str:
    found = share(np.arange(n) < right)
    return f"{right} of {n} ({short(found.low)} to {short(found.high)})"


def named(
    tried: Mapping[str, np.ndarray], others: Mapping[str, np.ndarray], draws: Sequence[int]
) -> list[str]:
    """How often `fitting` names the right recipe for 32 anchors, and names none for vectors of unknown
    recipes."""
    right = Counter()
    cases = {name: (name, tried[name]) for name in KNOWN}
    cases |= {name: ("", rows) for name, rows in others.items()}
    for draw in draws:
        some = np.random.default_rng((draw, 32)).choice(TEXTS, 32, replace=False)
        of_anchors = {name: rows[some] for name, rows in tried.items()}
        for name, (truth, rows) in cases.items():
            right[name] += fitting(of_anchors, rows[some]) == truth
    lines = ["| vectors by | right name | right of draws (95 %) |", "|---|---|---|"]
    for name, (truth, _) in cases.items():
        lines.append(f"| {name} | {'its own' if truth else 'none'} | {of_draws(right[name], len(draws))} |")
    return lines


def vectors_of(texts: Sequence[str]) -> dict[str, np.ndarray]:
    """Name of a model → vectors of the texts."""
    encoder = model_at_hand("minilm")
    found = encode_texts(encoder, texts, "")
    rows = {MODEL: found[recipe("", "mean", 6)], NARROW: found[recipe("", "mean", 3)]}
    return rows | {name: of_words(texts, words) for name, words in WORDS.items()}


def sources() -> dict[str, list[str]]:
    """Texts that anchors may be drawn from."""
    captions = pd.read_parquet(data_folder() / "multi30k" / "train.parquet").en
    questions = pd.read_parquet(data_folder() / "trec" / "train.parquet").text
    candidates = run_path(str(CHOOSE))["candidates"]()
    drawn = {"captions": captions, "questions": questions}
    found = {
        name: one.drop_duplicates().sample(frac=1, random_state=0).tolist() for name, one in drawn.items()
    }
    return found | {"candidates of the bundled ones": candidates}


def bridged(
    anchors: Mapping[str, np.ndarray], pair: tuple[str, str], tested: Mapping[str, Mapping[str, np.ndarray]]
) -> list[float]:
    """Top-1 of each set of held-out rows through the adapter that `migrate --export` makes of the anchors."""
    new, old = known(anchors, pair)
    ids = [f"r{row}" for row in range(len(new))]
    spaces = LatentSpace(old, ids, name="old"), LatentSpace(new, ids, name="new")
    adapter = Migration(sizes=()).run(spaces).fitted(new, old)
    found = []
    for rows in tested.values():
        asked, there = known(rows, pair)
        near = adapter.transform(asked) @ adapter.corpus(there).T
        found.append(float((near.argmax(axis=1) == np.arange(len(near))).mean()))
    return found


def known(rows: Mapping[str, np.ndarray], pair: tuple[str, str]) -> tuple[np.ndarray, np.ndarray]:
    """The rows of both models, without those that are zero in one of them."""
    new, old = (rows[name] for name in pair)
    kept = (np.linalg.norm(new, axis=1) > 0) & (np.linalg.norm(old, axis=1) > 0)
    return new[kept], old[kept]


def bridges(texts: Mapping[str, list[str]], state: int) -> list[str]:
    """The bundled anchors and sets of 300 random texts: top-1 of held-out captions and questions."""
    captions = pd.read_parquet(data_folder() / "multi30k" / "val.parquet").en.drop_duplicates().tolist()
    questions = pd.read_parquet(data_folder() / "trec" / "test.parquet").text.drop_duplicates().tolist()
    tested = {"captions": vectors_of(captions[:HELD_OUT]), "questions": vectors_of(questions[:HELD_OUT])}
    titles = [f"{new} → {old}, {test}" for new, old in BRIDGES for test in tested]
    lines = [f"| 300 anchors | {' | '.join(titles)} |", "|---" * (len(titles) + 1) + "|"]
    for name, some in (BUNDLED | dict(texts)).items():
        rng = np.random.default_rng((state, 3))
        cells = []
        n = 1 if name in BUNDLED else SETS
        sets = [vectors_of([some[row] for row in rng.permutation(len(some))[:300]]) for _ in range(n)]
        for pair in BRIDGES:
            for top1 in np.transpose([bridged(anchors, pair, tested) for anchors in sets]):
                spread = ""
                if n > 1:
                    spread = f" ({short(top1.min())} to {short(top1.max())})"
                cells.append(f"{short(float(top1.mean()))}{spread}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    sizes = " and ".join(f"{len(rows[MODEL]):,} {name}" for name, rows in tested.items())
    return [
        f"Top-1 among {sizes} that are held out, through the adapter that `relscope migrate --export` makes; of"
        f" random texts the mean and range of {SETS} sets. Texts of which a model has no word are left out.",
        "",
        *lines,
    ]


def detection(texts: Mapping[str, list[str]], draws: Sequence[int]) -> list[str]:
    """Right verdicts of few anchors from each source, over all changes of MiniLM."""
    lines = ["| anchors of | 8 | 16 | 32 | wrong |", "|---|---|---|---|---|"]
    for name, some in (BUNDLED | dict(texts)).items():
        some = some[:300]
        pool = pool_of(recipes_of(model_at_hand("minilm"), some, ("", SHORT)))
        others = other_models(some, 384)
        cells = []
        wrong = Counter()
        for n in (8, 16, 32):
            told = passport_rates(pool, next(iter(BASES)), others, draws, n)
            right = sum(said[truth] for (_, truth), said in told.items())
            total = len(told) * len(draws)
            for (change, truth), said in told.items():
                wrong[change] += sum(said.values()) - said[truth]
            cells.append(f"{short(right / total, 4)} of {total:,}")
        missed = "; ".join(f"{change} {count}" for change, count in wrong.most_common() if count)
        lines.append(f"| {name} | {' | '.join(cells)} | {missed} |")
        print(lines[-1], flush=True)
    return lines


def pool_of(tried: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The base, and the recipes of `KNOWN` to compare it with."""
    return {name: tried[name] for name in dict.fromkeys((*BASES, *KNOWN)) if name in tried}


def passport(given: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drift_rates passport")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--state", type=int, default=0, help="another one draws other texts")
    parser.add_argument("--file", type=Path, default=PASSPORT_TABLE)
    options = parser.parse_args(given)
    draws = range(options.state * 10_000, options.state * 10_000 + options.draws)
    texts = sources()
    asked = texts["questions"][:TEXTS]
    tried = recipes_of(model_at_hand("minilm"), asked)
    others = other_models(asked, 384)
    pool = pool_of(tried)
    again = np.random.default_rng(options.state).permutation(TEXTS)
    shuffled = encode_texts(model_at_hand("minilm"), [asked[row] for row in again], "")
    lines = [
        "# How often a passport is right",
        "",
        f"`python -m benchmarks.drift_rates passport --state {options.state}`, {date.today()}. {options.draws} draws of"
        " 32 of 300 TREC questions each, with MiniLM offline.",
    ]
    for base, title in BASES.items():
        lines += [
            "",
            f"## A passport of {title}",
            "",
            *table_of(passport_rates(pool, base, others, draws, 32), len(draws)),
        ]
        rows = np.empty_like(pool[base])
        rows[again] = shuffled[base]
        same = sum(
            check(made(pool[base], some), rows[some]).kind == "same"
            for some in (np.random.default_rng((draw, 1)).choice(TEXTS, 32, replace=False) for draw in draws)
        )
        lines += [
            "",
            f"Embedded again, in another order and other batches: same in {of_draws(same, len(draws))}.",
        ]
        print("\n".join(lines), flush=True)
    unlisted = encode_texts(model_at_hand("minilm"), asked, "Question: ")[recipe("Question: ", "mean", 6)]
    lines += ["", "## The recipe, with the model at hand", ""]
    lines += [f"{len(tried)} recipes are tried: 6 prompts, 2 poolings, all layers.", ""]
    lines += named(tried, {"an unlisted prompt, 'Question: '": unlisted} | others, draws)
    lines += [
        "",
        "## The bundled anchors and random ones",
        "",
        "Right verdicts by number of anchors, and what was missed,",
    ]
    lines += [f"{FEW} draws of each change:", "", *detection(texts, draws[:FEW])]
    print("\n".join(lines), flush=True)
    lines += ["", *bridges(texts, options.state), "", "## Other texts"]
    lines += elsewhere([state + 10_000 for state in draws[:FEW]])
    options.file.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
