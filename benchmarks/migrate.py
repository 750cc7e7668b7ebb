"""``python -m benchmarks.migrate encode|texts|rates|compress|table``: what the verdict of a migration, its cascade, its
price and cheaper indexes are worth on seven judged collections.

``encode FOLDER`` writes the vectors of the collections (Cranfield, NPL, TREC's questions from RELSCOPE_DATA;
sentences by article and by title; docstrings of scipy and of numpy, pandas and the standard library) as .npy; what is
there is kept. ``texts FOLDER`` writes the arrays of ``benchmarks.check_rates``. ``rates FOLDER OUT.jsonl`` measures each collection, pair of models, number and draw of the pairs: on all
queries, and on each half of them (``--part I/N`` for a share of these cells, ``--draws N``); ``compress FOLDER OUT.jsonl``
scores cheaper indexes; ``table OUT.jsonl …`` makes migrate.md of the lines of both. No constant of Relscope
was chosen on these collections, except the order of adapters, on Cranfield.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import pkgutil
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from relcore import LatentSpace, Migration
from relcore.base.access import data_folder
from relcore.base.numbers import signed
from relcore.base.rows import unit_rows
from relcore.encoders.bundled_data import wikipedia_dataset
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.encoder import Encoder, TrainedEncoder
from relcore.encoders.onnx_texts import OnnxText
from relcore.encoders.sentences import PooledWords, TfidfSvd
from relcore.encoders.transformers import MiniLM
from relcore.encoders.words import load_words
from relcore.migrate.cheaper_index import CheaperIndex, Codes
from relcore.migrate.cross_fitting import QueryScores, Resampling
from relcore.migrate.price import Need
from relcore.migrate.result import MigrationResult
from relcore.migrate.trial import OPTIONS
from relcore.migrate.verdict import contradicts
from relcore.passport.recipes import encode_texts, model_at_hand
from relcore.runs.store import Store
from relcore.runs.work import silent
from relcore.scores.relevance import JudgedQuery

RATES = Path(__file__).with_suffix(".md")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.migrate", description=__doc__)
    parser.add_argument("what", choices=("encode", "texts", "rates", "compress", "table"))
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH")
    parser.add_argument(
        "--only", nargs="+", choices=COLLECTIONS, default=[one for one in COLLECTIONS if one != WHOLE]
    )
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--part", default="0/1", metavar="I/N")
    parser.add_argument("--most", type=int, help="texts of each source of `texts`; all by default")
    options = parser.parse_args()
    if options.what == "encode":
        for name in options.only:
            encoded(options.paths[0], name)
    elif options.what == "texts":
        encode_parts(options.paths[0], options.most)
    elif options.what == "rates":
        rates(*options.paths, options.only, options.draws, *map(int, options.part.split("/")))
    elif options.what == "compress":
        compress(*options.paths, options.only)
    else:
        lines = [json.loads(line) for path in options.paths for line in path.read_text().splitlines()]
        cells = pd.DataFrame([line for line in lines if "cell" in line]).drop_duplicates("cell")
        indexes = pd.DataFrame([line for line in lines if "form" in line])
        RATES.write_text(rates_table(cells) + indexes_table(indexes), encoding="utf-8")


# Judged collections.

MODELS: dict[str, Encoder] = {
    "lsa": TfidfSvd(256),
    "words": PooledWords("word2vec-novels"),
    "paraphrase": OnnxText(),
    "minilm": MiniLM(),
}
MOST_DOCUMENTS = 1_500
MOST_ASKED = 200


class Collection(NamedTuple):
    """Texts of documents and of queries, and the documents (q, …) that are relevant to each query."""

    documents: list[str]
    queries: list[str]
    relevant: list[list[int]]


def judged(name: str, most: int = MOST_DOCUMENTS) -> Collection:
    """A test collection of RELSCOPE_DATA; of a large one, all judged documents and others at random."""
    folder = data_folder() / name
    documents, queries = (
        pd.read_parquet(folder / f"{part}.parquet").set_index("id").text for part in ("documents", "queries")
    )
    lines = [line.split() for line in (folder / "qrels.txt").read_text().splitlines()]
    of = pd.DataFrame([(query, row) for query, _, row, grade in lines if float(grade) > 0]).groupby(0)[1]
    of = {query: rows.tolist() for query, rows in list(of)[:MOST_ASKED]}
    needed = sorted({row for rows in of.values() for row in rows})
    others = np.random.default_rng(0).permutation(
        [row for row in map(str, documents.index) if row not in set(needed)]
    )
    kept = needed + others[: max(0, most - len(needed))].tolist()
    place = {row: number for number, row in enumerate(kept)}
    documents.index, queries.index = documents.index.astype(str), queries.index.astype(str)
    texts = [documents[row] or "." for row in kept]
    return Collection(
        texts, [queries[one] for one in of], [[place[row] for row in rows] for rows in of.values()]
    )


def labelled(texts: list[str], labels: list[str], asked: list[str], their: list[str]) -> Collection:
    """Documents of the same label are relevant."""
    rows = pd.Series(range(len(labels))).groupby(labels).apply(list)
    kept = [number for number, label in enumerate(their) if label in rows][:MOST_ASKED]
    return Collection(texts, [asked[one] for one in kept], [rows[their[one]] for one in kept])


def trec() -> Collection:
    train, test = (pd.read_parquet(data_folder() / "trec" / f"{part}.parquet") for part in ("train", "test"))
    train = train.drop_duplicates("text").iloc[:MOST_DOCUMENTS]
    test = test[~test.text.isin(train.text)]
    return labelled(
        *(list(part[name].astype(str)) for part in (train, test) for name in ("text", "fine_label"))
    )


def wikipedia(by_title: bool) -> Collection:
    """Sentences of 100 articles; queries are other sentences, or the titles."""
    articles = wikipedia_dataset(DatasetSpec("wikipedia"), Store())
    labels = articles.labels
    texts = articles.items(0, len(articles))
    rank = pd.Series(labels).groupby(labels).cumcount().to_numpy()
    names = pd.unique(labels)[::1][:75]
    kept = np.flatnonzero((rank < 20) & np.isin(labels.astype(str), names.astype(str)))
    documents = [texts[row] for row in kept]
    if by_title:
        return labelled(documents, list(labels[kept]), list(names), list(names))
    held = np.flatnonzero((rank >= 20) & (rank < 24) & np.isin(labels.astype(str), names.astype(str)))
    held = np.random.default_rng(0).permutation(held)
    return labelled(documents, list(labels[kept]), [texts[row] for row in held], list(labels[held]))


def docstrings(packages: tuple[str, ...]) -> Collection:
    """Docstrings of Python code: the query is the first line, and the document is the rest."""
    pairs: dict[str, str] = {}
    for package in packages:
        for _, text in sorted(set(_docstrings(package))):
            first, _, rest = re.sub(r"[ \t]+", " ", text).partition("\n\n")
            first = " ".join(first.split())
            rest = " ".join(rest.split())
            if 20 < len(first) < 200 and "(" not in first and len(rest) > 100:
                pairs.setdefault(first, rest[:600])
    some = np.random.default_rng(0).permutation(sorted(pairs))[:MOST_DOCUMENTS]
    rows = [pairs[one] for one in some]
    return Collection(rows, list(map(str, some[:MOST_ASKED])), [[row] for row in range(MOST_ASKED)])


def _docstrings(package: str) -> Iterator[tuple[str, str]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        modules = [importlib.import_module(package)]
        if hasattr(modules[0], "__path__"):
            for one in pkgutil.iter_modules(modules[0].__path__, f"{package}."):
                if not re.search(r"test|__main__|idle|setup", one.name):
                    try:
                        modules.append(importlib.import_module(one.name))
                    except Exception:
                        continue
        for module in modules:
            for name, thing in list(vars(module).items()):
                if (inspect.isclass(thing) or callable(thing)) and isinstance(thing.__doc__, str):
                    yield name, inspect.cleandoc(thing.__doc__)
                    if inspect.isclass(thing):
                        for part in vars(thing).values():
                            if isinstance(getattr(part, "__doc__", None), str) and callable(part):
                                yield "", inspect.cleandoc(part.__doc__)


# fmt: off
STANDARD = (
    "os", "shutil", "pathlib", "argparse", "asyncio", "collections", "concurrent", "csv", "ctypes",
    "datetime", "decimal", "difflib", "email", "functools", "heapq", "html", "http", "importlib", "inspect",
    "io", "ipaddress", "itertools", "json", "logging", "mailbox", "math", "multiprocessing", "optparse",
    "pickle", "plistlib", "random", "re", "sched", "secrets", "selectors", "shelve", "smtplib", "socket",
    "socketserver", "sqlite3", "ssl", "statistics", "string", "subprocess", "tarfile", "tempfile",
    "textwrap", "threading", "time", "tkinter", "tokenize", "traceback", "types", "typing", "unittest",
    "urllib", "uuid", "wave", "weakref", "xml", "zipfile", "zoneinfo", "numpy", "pandas",
)
# fmt: on
WHOLE = "npl-whole"  # 11,426 documents, of which 93 queries touch a part; only where it is named
COLLECTIONS: dict[str, Callable[[], Collection]] = {
    WHOLE: lambda: judged("npl", 1_000_000),
    "cranfield": lambda: judged("cranfield"),
    "npl": lambda: judged("npl"),
    "trec": trec,
    "articles": lambda: wikipedia(False),
    "titles": lambda: wikipedia(True),
    "scipy": lambda: docstrings(
        (
            "scipy.stats",
            "scipy.signal",
            "scipy.special",
            "scipy.linalg",
            "scipy.optimize",
            "scipy.spatial",
            "scipy.sparse",
            "scipy.ndimage",
            "scipy.interpolate",
            "scipy.integrate",
            "scipy.io",
            "scipy.fft",
            "scipy.cluster",
        )
    ),
    "python": lambda: docstrings(STANDARD),
}


def encoded(folder: Path, name: str) -> None:
    """Write the vectors of a collection, documents then queries, and what is relevant."""
    folder.mkdir(parents=True, exist_ok=True)
    known = folder / f"{name}.json"
    made = COLLECTIONS[name]()
    if not known.exists():
        known.write_text(json.dumps(made._asdict()))
    print(name, len(made.documents), len(made.queries), sum(map(len, made.relevant)), flush=True)
    documents = _texts(made.documents, name)
    for model, encoder in MODELS.items():
        path = folder / f"{name}.{model}.npy"
        if path.exists():
            continue
        if isinstance(encoder, TrainedEncoder):
            encode = encoder.restore(encoder.train(documents, silent), documents)
        else:
            encode = encoder.prepare(documents, silent)
        rows = np.concatenate(
            [next(iter(encode(texts).values())) for texts in (made.documents, made.queries)]
        )
        np.save(path, rows.astype(np.float16))
        print(name, model, rows.shape, flush=True)


def _texts(texts: list[str], name: str) -> Dataset:
    return Dataset(
        lambda start, stop: texts[start:stop],
        [str(row) for row in range(len(texts))],
        name=name,
        kind="texts",
    )


# Texts of several sources by models and layers: what `check_rates` mixes.

OF_RECIPES = 4_000  # captions that have vectors of the class token and with a prompt


def sources(most: int | None = None) -> dict[str, list[str]]:
    """Source → texts, the first `most` of each source."""
    captions = pd.read_parquet(data_folder() / "multi30k" / "train.parquet")
    documents = {
        name: pd.read_parquet(data_folder() / name / "documents.parquet") for name in ("npl", "cranfield")
    }
    articles = wikipedia_dataset(DatasetSpec("wikipedia"), Store())
    names = np.random.default_rng(0).permutation(np.unique(articles.labels))[:30]
    chosen = np.isin(articles.labels, names)
    lists = {
        "captions": captions.en[:8_000],
        "wiki": pd.Series(articles.items(0, len(articles)))[chosen],
        "npl": documents["npl"].text[:5_000],
        "trec": pd.read_parquet(data_folder() / "trec" / "train.parquet").text,
        "cranfield": documents["cranfield"].text,
        "german": captions.de[-2_000:],
        "words": pd.Series(load_words("word2vec-novels").ids[:2_000]),
        "swadesh": pd.Series((data_folder() / "swadesh" / "en").read_text(encoding="utf-8").splitlines()),
    }
    return {
        name: texts[texts.str.len() > 0].drop_duplicates()[:most].tolist() for name, texts in lists.items()
    }


def encode_parts(folder: Path, most: int | None = None) -> None:
    """Write the vectors of all texts by three layers of MiniLM, by paraphrase-MiniLM, by LSA of the same width
    and by mean word vectors of both bundled models, and of some captions by other recipes of MiniLM. Existing
    files are kept. `most` is the number of texts of each source."""
    folder.mkdir(parents=True, exist_ok=True)
    lists = sources(most)
    texts = [text for part in lists.values() for text in part]
    captions = min(OF_RECIPES, len(lists["captions"]))
    source = [name for name, part in lists.items() for _ in part]
    (folder / "rows.json").write_text(json.dumps({"source": source, "length": list(map(len, texts))}))
    minilm = model_at_hand("minilm")
    plans: dict[tuple[str, ...], tuple[Encoder, int, str]] = {
        ("mean",): (MODELS["words"], len(texts), ""),
        ("fmean",): (PooledWords("fasttext-novels"), len(texts), ""),
        ("L3", "L5", "L6"): (replace(minilm, layers=(3, 5, 6)), len(texts), ""),
        ("para",): (MODELS["paraphrase"], len(texts), ""),
        ("lsa",): (TfidfSvd(384), len(texts), ""),
        ("cls",): (replace(minilm, layers=(6,), pooling="cls"), captions, ""),
        ("query",): (MODELS["minilm"], captions, "query: "),
    }
    for names, (encoder, count, prompt) in plans.items():
        if all((folder / f"{name}.npy").exists() for name in names):
            continue
        some = texts[:count]
        if isinstance(encoder, TrainedEncoder):
            documents = _texts(some, "texts")
            encode = encoder.restore(encoder.train(documents, silent), documents)
            found = [next(iter(encode(some).values()))]
        else:
            found = list(encode_texts(encoder, some, prompt).values())
        for name, vectors in zip(names, found, strict=True):
            known = np.linalg.norm(vectors, axis=1) > 0  # a text without known words has no mean
            np.save(folder / f"{name}.npy", vectors[known].astype(np.float16))
            np.save(folder / f"{name}.rows.npy", np.flatnonzero(known))
            print(name, vectors.shape, flush=True)


def encode_judged(path: Path, made: Collection) -> None:
    """Write the vectors of documents, then queries, by three layers of MiniLM, paraphrase-MiniLM and LSA."""
    texts = [*made.documents, *made.queries]
    layers = encode_texts(replace(model_at_hand("minilm"), layers=(3, 5, 6)), texts, "")
    found = dict(zip(("L3", "L5", "L6"), layers.values(), strict=True))
    [found["para"]] = encode_texts(MODELS["paraphrase"], texts, "").values()
    documents = _texts(made.documents, "documents")
    lsa = TfidfSvd(384)
    encode = lsa.restore(lsa.train(documents, silent), documents)
    found["lsa"] = np.concatenate(
        [next(iter(encode(part).values())) for part in (made.documents, made.queries)]
    )
    np.savez(path, **{name: vectors.astype(np.float16) for name, vectors in found.items()})


# How often the verdict and the price are right.

CHANGES = (
    ("lsa", "minilm"),
    ("words", "minilm"),
    ("paraphrase", "minilm"),
    ("lsa", "paraphrase"),
    ("words", "paraphrase"),
    ("minilm", "lsa"),
    ("minilm", "words"),
    ("minilm", "paraphrase"),
)
NUMBERS_OF_PAIRS = (100, 300, 1000)


def rates(folder: Path, out: Path, only: list[str], draws: int, part: int, parts: int) -> None:
    """Write a line for each cell that is missing in the file."""
    if out.exists():
        done = {line["cell"] for line in map(json.loads, out.read_text().splitlines())}
    else:
        done = set()
    cells = list(product(only, CHANGES, NUMBERS_OF_PAIRS, range(draws)))
    with out.open("a") as stream:
        for name, change, n_pairs, draw in cells[part::parts]:
            cell = f"{name} {'-'.join(change)} {n_pairs} {draw}"
            if cell not in done:
                facts = {
                    "cell": cell,
                    "collection": name,
                    "old": change[0],
                    "new": change[1],
                    "pairs": n_pairs,
                }
                line = json.dumps(
                    facts | rate(folder, name, change, n_pairs, draw), default=lambda one: one.item()
                )
                print(line, file=stream, flush=True)


def rate(folder: Path, name: str, change: tuple[str, str], n_pairs: int, draw: int) -> dict[str, Any]:
    """The scores of the options on all queries; the verdict on each half of the queries, and whether the
    other half contradicts it; the price by one half, and the need of the other half.
    """
    taken = queries_of(folder, name, change)
    # Each cell has its own halves. Otherwise, all cells of a collection would have the same verdict on its
    # price.
    cell = draw, CHANGES.index(change), NUMBERS_OF_PAIRS.index(n_pairs)
    order = np.random.default_rng(cell).permutation(len(taken.relevant))
    half = len(order) // 2

    def result(asked: np.ndarray) -> MigrationResult:
        spaces, graded = taken.of(asked)
        return Migration(n_pairs=n_pairs, sizes=(), judgements=graded, random_state=draw).run(spaces)

    whole, *halves = (result(np.sort(some)) for some in (order, order[:half], order[half : 2 * half]))
    gain = Resampling(len(whole.queries)).difference(
        *(QueryScores(whole.scores[one]) for one in ("re-embed", "keep"))
    )
    return {
        "adapter": whole.adapter,
        **{option: float(whole.scores[option].mean()) for option in OPTIONS},
        "gain": [gain.value, gain.low, gain.high],
        "share": whole.price.share,
        "verdicts": [one.verdict.option for one in halves],
        "clear": [one.verdict.is_clear for one in halves],
        "contradicted": [refuted(*halves), refuted(*halves[::-1])],
        "covered": [
            one.low <= other.rows <= one.high
            for a, b in (halves, halves[::-1])
            for one, other in zip(needs(a), needs(b), strict=True)
        ],
        "width": [(one.high - one.low) / one.rows for half in halves for one in needs(half)],
        "touched": [one.rows / half.price.n_rows for half in halves for one in needs(half)],
    }


class Queries(NamedTuple):
    """The rows of a collection by two models, documents then queries, and what is relevant to each query."""

    names: tuple[str, str]
    rows: list[np.ndarray]
    n: int
    relevant: list[list[int]]

    def of(self, asked: Sequence[int]) -> tuple[list[LatentSpace], tuple[JudgedQuery, ...]]:
        """The spaces of a migration with some of the queries, and their judgements."""
        ids = [f"d{row}" for row in range(self.n)]
        names = [f"q{one}" for one in asked]
        spaces = [
            LatentSpace(side[: self.n], ids, name=model)
            for side, model in zip(self.rows, self.names, strict=True)
        ]
        spaces += [LatentSpace(side[self.n :][asked], names, name="queries") for side in self.rows]
        return spaces, tuple(JudgedQuery(f"q{q}", f"d{row}", 1.0) for q in asked for row in self.relevant[q])


def queries_of(folder: Path, name: str, change: tuple[str, str]) -> Queries:
    facts = json.loads((folder / f"{name}.json").read_text())
    rows = [np.load(folder / f"{name}.{model}.npy").astype(np.float32) for model in change]
    return Queries(change, rows, len(facts["documents"]), facts["relevant"])


def needs(result: MigrationResult) -> list[Need]:
    """The rows to embed for each number of candidates, from 20 to 200."""
    return sorted((result.price.need, *result.price.others), key=lambda one: one.n_candidates)


def refuted(said: MigrationResult, other: MigrationResult) -> bool:
    """Whether a clear verdict is refuted by the other half of the queries."""
    scores = {option: QueryScores(one) for option, one in other.scores.items()}
    resampling = Resampling(len(other.queries))
    return said.verdict.is_clear and contradicts(said.verdict.option, scores, resampling, said.order())


def rates_table(cells: pd.DataFrame) -> str:
    better = cells[[gain[1] > 0 for gain in cells.gain]]
    worse = cells[[gain[2] < 0 for gain in cells.gain]]
    within = better["cascade"] >= better["bridge"] - 0.005
    clear, contradicted = (np.array(cells[name].tolist()).ravel() for name in ("clear", "contradicted"))
    covered, touched, width = (np.array(cells[name].tolist()) for name in ("covered", "touched", "width"))
    covered = covered.astype(bool)
    some = touched < 0.5
    lines = [
        "# What a migration's verdict, cascade and price are worth\n",
        f"`python -m benchmarks.migrate table`, {date.today()}: {len(cells):,} cells, {cells.collection.nunique()}"
        f" judged collections, {cells.groupby(['old', 'new']).ngroups} changes of model, {NUMBERS_OF_PAIRS} pairs;"
        f" the help of the script names the collections. nDCG@10.\n",
        f"- Cascade over 50 candidates of both queries ≥ bridge − .005: {within.sum():,} of {len(better):,} cells in which"
        f" the new model is clearly better ({within.mean():.1%}); > bridge in {(better.cascade > better.bridge).sum():,}; ≥ query both models in"
        f" {(better.cascade >= better.twice).sum():,}.",
        f"- Clear verdicts from half of the queries: {clear.sum():,} of {len(clear):,}; contradicted by the other half:"
        f" {contradicted.sum():,}. Each half is a log of queries, so that the rule for small corpora without a log"
        " (no cascade where 100 queries can ask for each row) decides none of them.",
        f"- Interval of the price from half of the log covers what the other half needs: {covered.sum():,} of"
        f" {covered.size:,} ({covered.mean():.1%}; N = 20, 50, 100, 200:"
        f" {', '.join(f'{one:.1%}' for one in covered.reshape(len(cells), 2, -1).mean(axis=(0, 1)))}); where the"
        f" half touches less than half of the corpus {covered[some].mean():.1%} of {some.sum():,}. Median width:"
        f" {np.median(width):.0%} of the rows, there {np.median(width[some]):.0%}. Each half chooses its own adapter,"
        " and another adapter finds other candidates; migrate_intervals compares logs with one adapter.",
        f"- Where the new model is clearly worse ({len(worse):,} cells), the cascade loses"
        f" {(worse['keep'] - worse['cascade']).mean():.3f} against keeping on average.\n",
        "| collection | cells, new model better | cascade ≥ bridge − .005 | covered | clear, contradicted |",
        "|---|--:|--:|--:|--:|",
    ]
    for name, part in cells.groupby("collection"):
        known = better[better.collection == name]
        good = (known.cascade >= known.bridge - 0.005).sum()
        both = [np.array(part[column].tolist(), bool) for column in ("covered", "clear", "contradicted")]
        lines.append(
            f"| {name} | {len(known)} | {good} | {both[0].sum()} of {both[0].size} | {both[1].sum()}, {both[2].sum()} |"
        )
    lines += [
        "",
        "| old → new | pairs | cells | keep | bridge | both models | cascade | re-embed | rows embedded |",
    ]
    lines.append("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for (old, new), pairs in product(CHANGES, NUMBERS_OF_PAIRS):
        part = cells[(cells.old == old) & (cells.new == new) & (cells.pairs == pairs)]
        means = " | ".join(f"{part[option].mean():.3f}".lstrip("0") for option in OPTIONS)
        lines.append(f"| {old} → {new} | {pairs:,} | {len(part)} | {means} | {part.share.mean():.0%} |")
    return "\n".join([*lines, ""])


# Cheaper indexes.

COMPRESSED = tuple(change for change in CHANGES if change[1] == "minilm")
CUT_TO = 64


def compress(folder: Path, out: Path, only: list[str]) -> None:
    """Write a line for each option on each cheaper index, and one for bridges cut to 64 dimensions. Adapters learn
    from 300 pairs."""
    with out.open("a") as stream:
        for name, change in product(only, COMPRESSED):
            taken = queries_of(folder, name, change)
            spaces, graded = taken.of(range(len(taken.relevant)))
            task = Migration(n_pairs=300, sizes=(), judgements=graded)
            for one in CheaperIndex(migration=task, adapter="inverse").run(spaces).rows:
                facts = {"option": one.option, "form": one.form, **vars(one.change), "bytes": one.row_bytes}
                print(json.dumps({"collection": name, "old": change[0], **facts}), file=stream, flush=True)
            for adapter in ("whitened", "ridge"):
                facts = {
                    "option": adapter,
                    "form": f"bridge, first {CUT_TO}",
                    **cut_bridge(task, spaces, adapter),
                }
                print(json.dumps({"collection": name, "old": change[0], **facts}), file=stream, flush=True)


def cut_bridge(task: Migration, spaces: list[LatentSpace], adapter: str) -> dict[str, float]:
    """The loss of a bridge if only the first 64 dimensions of the searched rows are kept."""
    ground = task.ground(spaces, checked=True)
    trial = ground.trial
    sides = ground.trial.sides(ground.pairs.fit(adapter))
    codes = Codes(unit_rows(sides.bridged[1][:, :CUT_TO]), lambda Q: Q[:, :CUT_TO].copy(), 4 * CUT_TO)
    cut = sides._replace(bridged=(codes.queries(sides.bridged[0]), codes.rows))
    scores = [trial.score(trial.lists(one, options=("bridge",))["bridge"]) for one in (cut, sides)]
    change = Resampling(len(scores[0])).difference(*map(QueryScores, scores))
    return {**vars(change), "bytes": codes.n_bytes}


def indexes_table(lines: pd.DataFrame) -> str:
    """Mean change of nDCG@10 over the collections (least … most), and in how many it is clearly worse."""
    said = [
        "\n# What a cheaper index costs\n",
        f"`python -m benchmarks.migrate compress`: nDCG@10 less that of full vectors, mean (least … most) of"
        f" {lines.collection.nunique()} collections; in brackets how many are clearly worse (95 %, over queries). 300"
        " pairs, adapter inverse, new model MiniLM. Binary: centred, a query's own numbers, 100 ranked again.\n",
        "| index | option | old model LSA | Word2Vec | paraphrase-MiniLM |",
        "|---|---|---|---|---|",
    ]
    for (form, option), part in lines.groupby(["form", "option"], sort=False):
        cells = []
        for old, _ in COMPRESSED:
            some = part[part.old == old]
            spread = f"{signed(some.value.min())} … {signed(some.value.max())}"
            cells.append(f"{signed(some.value.mean())} ({spread}) [{(some.high < 0).sum()} of {len(some)}]")
        said.append(f"| {form} | {option} | {' | '.join(cells)} |")
    return "\n".join([*said, ""])


if __name__ == "__main__":
    main()
