"""How many known pairs are enough: seeds for bootstrapping, pairs for an adapter."""

from __future__ import annotations

import lzma
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from relcore.base.access import data_folder
from relcore.base.errors import SpaceError
from relcore.base.names import ADAPTERS
from relcore.base.numbers import and_list, short
from relcore.base.rows import mean_row, unit_rows
from relcore.catalog.encodings import encode
from relcore.encoders.dataset import Dataset
from relcore.encoders.encoder import Encoder
from relcore.encoders.vision import SmallVision
from relcore.figures.charts import Lines
from relcore.figures.matrices import Matrices, MatrixPanel
from relcore.linking.bootstrap import bootstrap_anchors
from relcore.linking.link import BootstrapSpec, most_frequent
from relcore.linking.links_found import BootstrapResult
from relcore.linking.optimisation import optimise_anchors
from relcore.migrate.cross_fitting import QueryScores, Resampling
from relcore.migrate.migration import DATASET, NEW, OLD, Migration, MigrationData
from relcore.migrate.pairing import check_pairs
from relcore.migrate.result import TITLES, MigrationResult
from relcore.migrate.verdict import contradicts
from relcore.runs.entries import digest_of
from relcore.runs.store import Store
from relcore.runs.work import Progress, silent
from relcore.scores.estimate import Estimate
from relcore.scores.relevance import JudgedQuery, ndcg, read_qrels
from relcore.spaces.space import LatentSpace
from relcore.studies.data import dataset_of, word_pair
from relcore.studies.estimates import (
    chart,
    count_of,
    finding,
    findings_over,
    findings_table,
    lines_over,
    mean_score,
    sentence,
    share,
)
from relcore.studies.study import Option, RunResult, Settings, Study, grid, states
from relscope_studies.data import lines_by

WIDTH = 100
EPOCHS = 5
WINDOW = 5
TOKENS = 4_000_000
MOST_WORDS = 6_000
_VERSION = 1


def corpus_words(path: Path, store: Store, report: Callable[..., None], tokens: int = TOKENS) -> LatentSpace:
    """The 6,000 most frequent words of a corpus (.xz, one sentence per line), with counts; 100 d.

    Gensim's skip-gram on about `tokens` words spread evenly over the corpus, with one thread so that equal
    settings give equal vectors. Kept in the store.
    """
    key = digest_of(
        "corpus words", _VERSION, path.name, path.stat().st_size, tokens, WIDTH, EPOCHS, WINDOW, MOST_WORDS
    )
    entry = store.get(key)
    if entry is None:
        from gensim.models import Word2Vec

        report(0, 1, f"training word vectors on {path.name}")
        try:
            sentences = list(_sentences(path, tokens))
        except (lzma.LZMAError, EOFError, UnicodeDecodeError) as error:
            raise SpaceError(
                f"{path}: expected UTF-8 text in xz, got a damaged file ({error}); copy it again"
            ) from error
        settings = {"vector_size": WIDTH, "epochs": EPOCHS, "window": WINDOW, "max_final_vocab": MOST_WORDS}
        words = Word2Vec(
            sentences, sg=1, negative=5, sample=1e-4, min_count=5, workers=1, seed=0, **settings
        ).wv
        counts = np.array([words.get_vecattr(word, "count") for word in words.index_to_key])
        store.put(
            key,
            {"vectors": words.vectors.astype(np.float32), "counts": counts},
            {"ids": list(words.index_to_key)},
        )
        entry = store.get(key)
    name = path.name.partition(".")[0]
    return LatentSpace(
        entry.arrays["vectors"], entry.metadata["ids"], name=name, counts=entry.arrays["counts"]
    )


def swadesh_pairs(source: Path, target: Path) -> list[tuple[str, str]]:
    """Words in the same line of two Swadesh lists: the first of variants, each word once per language.

    Raises a SpaceError for other text than UTF-8, and lists of different lengths.
    """
    try:
        lists = [path.read_text(encoding="utf-8-sig").splitlines() for path in (source, target)]
    except UnicodeDecodeError as error:
        raise SpaceError(
            f"{source}, {target}: expected UTF-8 text, got {error.reason}; copy the list again"
        ) from None
    columns = [[re.split(r"[,/(]", line)[0].strip().lower() for line in lines] for lines in lists]
    if len(columns[0]) != len(columns[1]):
        raise SpaceError(
            f"{target}: expected {len(columns[0]):,} lines as in {source.name}, got {len(columns[1]):,}; line"
            " i means the same in both, so copy the lists again"
        )
    kept: dict[str, str] = {}
    for word, other in zip(*columns, strict=True):
        if word.isalpha() and other.isalpha() and word not in kept and other not in kept.values():
            kept[word] = other
    return list(kept.items())


def in_data_folder(*parts: str) -> Path:
    """A file of the data folder; raises a SpaceError if RELSCOPE_DATA is not set or lacks it."""
    data = data_folder()
    path = (data or Path()).joinpath(*parts)
    if not data or not path.is_file():
        got = "none" if data else "no data folder"
        raise SpaceError(
            f"expected {'/'.join(parts)} in the data folder, got {got}; set RELSCOPE_DATA to a folder that"
            " has it"
        )
    return path


def _sentences(path: Path, tokens: int) -> Iterator[list[str]]:
    """Every n-th line as words, because a corpus changes from its beginning to its end."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        total = sum(line.count(" ") + 1 for line in lines)
    step = max(1, round(total / tokens))
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number % step == 0 and (
                words := [word for word in line.replace("'", " ").split() if word.isalpha()]
            ):
                yield words


METHODS = {"self-learning": "self-learning", "paper": "as published"}
ENOUGH = 0.9  # of the hidden pairs; most runs find nearly all of them or next to none
_ANCHORS = 300
_LITERAL = {"steps": 125, "learning_rate": 0.05}  # Table 3 of the paper, stitching


class SeedCount(Study):
    """Two pairs of spaces. Word2Vec and FastText of one corpus: the seeds are some of 300 anchors, the others
    are hidden, and the target's rows are shuffled.

    English and French, from two corpora: seeds are drawn from the Swadesh list of 207 basic words, and the
    other pairs of the list are hidden. Only the listed translation of a word counts as right.
    """

    title = "Number of seeds"
    question = "How many seeds does bootstrapping need?"
    paper = "Cannistraci et al. 2023, section 4: “remove the need for initial parallel seeds”"

    options = (
        Option(
            "spaces",
            "Spaces",
            ("words", "english-french"),
            "words",
            names=("Word2Vec and FastText, bundled", "English and French, trained here"),
            help=(
                "English and French need the data folder that RELSCOPE_DATA names; their first run trains for"
                " two minutes."
            ),
        ),
        Option(
            "seeds",
            "Seeds",
            (0, 3, 4, 5, 6, 8, 10, 12, 15),
            (0, 3, 5, 8, 15),
            many=True,
            help="0 seeds: self-learning only.",
        ),
        Option(
            "rows",
            "Rows",
            (500, 1000, 2000, 4000),
            (500, 1000, 2000),
            many=True,
            help="The most frequent of each space.",
        ),
        Option(
            "methods", "Methods", tuple(METHODS), ("self-learning",), many=True, names=tuple(METHODS.values())
        ),
        states("the seeds and the hidden pairs", 20, (3, 5, 10, 20)),
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        varied = {"method": options["methods"], "rows": options["rows"], "seeds": options["seeds"]}
        runs = grid(options, "spaces", **varied)
        return [run for run in runs if run["seeds"] or run["method"] == "self-learning"]

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        report(0, 1, f"{settings['seeds']} seeds, {settings['rows']} rows")
        measured = _hidden
        if settings["spaces"] == "english-french":
            measured = _translated
        result, share, hidden = measured(settings, store, report)
        chance = 1 / result.history[-1].rows
        return RunResult({"found": share, "hidden": hidden, "chance": chance})

    def seconds(self, settings: Settings) -> float:
        millions = settings["rows"] ** 2 / 1e6
        if settings["method"] == "paper":
            return 1 + 4 * millions
        if settings["seeds"]:
            return 1 + millions
        return 1 + 5 * millions

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        charts = {}
        titles = ("seeds", "share of hidden pairs found")
        names = {rows: f"{rows:,} rows" for rows in options["rows"]}
        for method, part in table.groupby("method", sort=False):
            lines = lines_by(part.sort_values("rows", kind="stable"), "seeds", "found", "rows", names)
            look = titles, f"{int(part.hidden.median()):,} hidden pairs a run", {"chance": "chance"}
            charts[METHODS[method]] = chart(part, lines, *look, y_range=(0, 1.02))
        return charts

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        rows: list[dict[str, Any]] = []
        for (method, n), part in table.groupby(["method", "rows"], sort=False):
            name = f"{METHODS[method]}, {n:,} rows"
            rows += findings_over(part, "seeds", {"found": f"{name}, found"})
            for seeds, some in _reached(part).items():
                rows.append(finding(f"seeds {seeds}, {name}, draws that find {ENOUGH:g}", some, "Wilson's"))
        return findings_table(rows)

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        rows = int(table.rows.max())
        parts = []
        for method, part in table[table.rows == rows].groupby("method", sort=False):
            counts = [f"with {seeds} in {some:2}" for seeds, some in _reached(part).items()]
            parts.append(f"{METHODS[method]} {', '.join(counts)}")
        pair = "Word2Vec and FastText"
        if options["spaces"] == "english-french":
            pair = "English and French"
        draws = table.random_state.nunique()
        if draws <= 1:
            return ""
        return (
            f"By number of seeds, share of {draws} draws in which at least {short(ENOUGH, 1)} of the hidden"
            f" pairs among {rows:,} words of {pair} are found: {'; '.join(parts)}."
        )


def _reached(table: pd.DataFrame) -> dict[int, Estimate]:
    return {int(seeds): share(part.found >= ENOUGH) for seeds, part in table.groupby("seeds")}


def _hidden(settings: Settings, store: Store, report: Progress) -> tuple[BootstrapResult, float, int]:
    pair = word_pair((), store)
    sizes = {"n_anchors": _ANCHORS, "n_seeds": settings["seeds"], "rows": settings["rows"]}
    spec = BootstrapSpec(settings["method"], **sizes, random_state=settings["random_state"], **_LITERAL)
    outcome = spec.run((pair.source, pair.target))
    return outcome.result, outcome.share, _ANCHORS - settings["seeds"]


def _translated(settings: Settings, store: Store, report: Progress) -> tuple[BootstrapResult, float, int]:
    english_words = corpus_words(in_data_folder("corpora", "english.txt.xz"), store, report)
    french_words = corpus_words(in_data_folder("corpora", "french.txt.xz"), store, report)
    english = most_frequent(english_words, settings["rows"])
    french = most_frequent(french_words, settings["rows"])
    listed = swadesh_pairs(in_data_folder("swadesh", "en"), in_data_folder("swadesh", "fr"))
    pairs = [pair for pair in listed if pair[0] in english.index and pair[1] in french.index]
    method = settings["method"]
    state = settings["random_state"]
    order = [pairs[number] for number in np.random.default_rng(state).permutation(len(pairs))]
    seeds = order[: settings["seeds"]]
    hidden = order[settings["seeds"] :]
    anchors = [one for one, _ in hidden]
    if method == "paper":  # as many anchors as in the paper: add words that are not scored
        others = np.setdiff1d(english.ids, [one for one, _ in pairs])
        more = np.random.default_rng(state).choice(others, _ANCHORS - len(pairs), replace=False)
        anchors += more.tolist()
    literal = _LITERAL if method == "paper" else {}
    shared = {"method": method, "random_state": state, "n_anchors": len(pairs), **literal}
    result = bootstrap_anchors(english, french, seeds=seeds, anchors=anchors, **shared)
    linked = dict(result.anchors)
    return result, float(np.mean([linked[one] == other for one, other in hidden])), len(hidden)


PAIRS = {
    "words": "Word2Vec and FastText",
    "sentences": "MiniLM's layers 6 and 4",
    "sentences-centred": "the same layers, centred",
    "models": "MiniLM L6 and paraphrase-MiniLM L3",
    "models-centred": "the same models, centred",
    "digits": "MLP and CNN of digits",
    "unrelated-centred": "unrelated, centred",
}
_USUAL_PAIRS = tuple(name for name in PAIRS if not name.startswith("models"))
_CERTIFIED = 0.95  # chosen on the words
_CENTRED = "-centred"
_MOST_ROWS = 2000


class AnchorOptimisation(Study):
    """The published optimisation with fixed seeds: 300 anchors, or all rows of fewer, 125 steps. Each run
    draws its rows, from the 2,000 most frequent words, 2,000 sentences or 1,797 digits, and its seeds, and
    shuffles the target. Centred: rows less their mean, which the paper does not subtract.

    A run is certified if at least .95 of the anchors beside the seeds return: the row nearest to the anchor
    is assigned the anchor's own source row, as the optimisation assigns rows. This takes no known pair. The
    threshold was chosen on the words; on the other spaces the certificate is right if .9 of the hidden
    anchors are found.
    """

    title = "Phases of the anchor optimisation"
    question = "With how many seeds and rows, on which spaces, does the published optimisation find anchors?"
    paper = "Cannistraci et al. 2023, Algorithm 1 and section 4"

    options = (
        Option("pairs", "Spaces", tuple(PAIRS), _USUAL_PAIRS, many=True, names=tuple(PAIRS.values())),
        Option("rows", "Rows", (200, 400, 800, 1600), (200, 400, 800), many=True),
        Option("seeds", "Seeds", (3, 4, 8, 15, 30, 60), (4, 8, 15, 30), many=True),
        states("the rows, the seeds, the hidden anchors and the start", 7, (3, 7, 20, 50)),
    )
    varied: ClassVar = {"pair": "pairs", "rows": "rows", "seeds": "seeds"}

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        name = settings["pair"]
        n = settings["rows"]
        n_seeds = settings["seeds"]
        rng = np.random.default_rng((settings["random_state"], n, n_seeds))
        spaces = _row_by_row(name.removesuffix(_CENTRED), store, report)
        rows = rng.choice(min(_MOST_ROWS, *map(len, spaces)), n, replace=False)
        X = spaces[0].vectors[rows]
        Y = spaces[1].vectors[rows]
        if name.endswith(_CENTRED):
            X = unit_rows(X, mean_row(X))
            Y = unit_rows(Y, mean_row(Y))
        else:
            X = unit_rows(X)
            Y = unit_rows(Y)
        order = rng.permutation(n)
        anchors = rng.choice(n, min(_ANCHORS, n), replace=False)
        partners = np.argsort(order)[anchors]
        drawn = {"random_state": int(rng.integers(2**31))} | _LITERAL
        *_, last = optimise_anchors(X, Y[order], anchors, partners[:n_seeds], **drawn)
        values = {
            "found": float((last.nearest == partners)[n_seeds:].mean()),
            "returned": float(last.returned[n_seeds:].mean()),
            "error": last.error,
        }
        return RunResult(values | {"hidden": len(anchors) - n_seeds, "chance": 1 / n})

    def seconds(self, settings: Settings) -> float:
        return 0.2 + 2.0 * settings["rows"] ** 2 / 1e6

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Matrices]:
        told = "Heat maps of {}, a panel per pair of spaces, mean of {:,} random states. {}"
        return {
            name: Matrices(
                tuple(
                    _phases(pair, part)
                    for pair, part in table.assign(shown=values).groupby("pair", sort=False)
                ),
                (0.0, 1.0),
                name,
                told.format(name, table.random_state.nunique(), self.conclusion(options, table)),
                "seeds",
                "rows",
                across=3,
            )
            for name, values in (
                ("share of hidden anchors found", table.found),
                ("share of runs certified", table.returned >= _CERTIFIED),
            )
        }

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        rows: list[dict[str, Any]] = []
        for (pair, n, seeds), part in table.groupby(["pair", "rows", "seeds"], sort=False):
            name = f"{PAIRS[pair]}, {n:,} rows, {seeds} seeds"
            certified = share(part.returned >= _CERTIFIED)
            rows.append(finding(f"{name}: hidden anchors found", mean_score(part.found)))
            rows.append(finding(f"{name}: runs certified", certified, "Wilson's"))
        return findings_table(rows)

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        found = table.found >= ENOUGH
        certified = table.returned >= _CERTIFIED
        others = table.pair != "words"
        control = table.pair.str.startswith("unrelated")
        sizes = sorted(set(table.rows))
        reached = []
        for pair, part in table.assign(reached=found).groupby("pair", sort=False):
            needed = [_fewest_seeds(part[part.rows == n]) for n in sizes]
            seeds = _NEVER
            if set(needed) != {_NEVER}:
                seeds = and_list(needed)
            reached.append(f"{PAIRS[pair]} {seeds}")
        certificate = sentence(
            "The certificate, chosen on the words, is right for {:2} of the other runs that it certifies; it"
            " certifies {:2} of those that find as many, and {:2} of the unrelated ones.",
            share(found[others & certified]),
            share(certified[others & found]),
            share(certified[control]),
        )
        draws = table.random_state.nunique()
        told = (
            f"Fewest seeds from which on at least {short(ENOUGH, 1)} of {draws} draws find at least"
            f" {short(ENOUGH, 1)} of the hidden anchors, among {and_list(f'{n:,}' for n in sizes)} rows:"
            f" {'; '.join(reached)}; {draws} of {draws} draws is {share([True] * draws):2}."
        )
        return f"{told} {certificate}".rstrip() * (draws > 1)


_NEVER = "none"


def _phases(pair: str, table: pd.DataFrame) -> MatrixPanel:
    cells = table.pivot_table("shown", "seeds", "rows")
    return MatrixPanel(PAIRS[pair], tuple(cells.index), tuple(f"{n:,}" for n in cells), cells.to_numpy())


def _fewest_seeds(table: pd.DataFrame) -> str:
    reached = table.groupby("seeds").reached.mean() >= ENOUGH
    enough = reached[::-1].cummin()
    if enough.any():
        return str(enough[enough].index.min())
    return _NEVER


def _row_by_row(name: str, store: Store, report: Progress) -> list[LatentSpace]:
    """Two spaces, row i of one with row i of the other; of "unrelated" ones these have nothing in common."""
    if name == "digits":
        encoders = SmallVision("mlp"), SmallVision("cnn")
        return [space for one in encoders for space in encode(dataset_of("digits"), one, store, report)]
    if name == "words":
        pair = word_pair((), store)
        return [pair.source, pair.target]
    from relcore.encoders.transformers import MiniLM

    if name == "models":
        from relcore.encoders.onnx_texts import OnnxText

        both = MiniLM(), OnnxText()
        return [space for one in both for space in encode(dataset_of("sentences"), one, store, report)]
    fourth, sixth = encode(dataset_of("sentences"), MiniLM((4, 6)), store, report)
    if name == "sentences":
        return [sixth, fourth]
    return [word_pair((), store).source, sixth]


# Cranfield by three models: 1,400 abstracts, 225 questions and judgements, from the data folder
# (RELSCOPE_DATA).

MODELS = ("minilm", "tfidf", "word2vec")


@dataclass(frozen=True, eq=False)
class Material:
    """Two models of one corpus: the spaces that `Migration` takes, and what is relevant."""

    spaces: tuple[LatentSpace, ...]
    judgements: tuple[JudgedQuery, ...] = ()


def cranfield_folder() -> Path | None:
    data = data_folder()
    folder = data / "cranfield" if data else None
    if folder and folder.is_dir():
        return folder
    return None


def cranfield(new: str, old: str, store: Store, report: Progress = silent) -> Material:
    """Abstracts and questions by two of `MODELS`, and the judgements; two abstracts without text are left
    out.

    Raises
    ------
    SpaceError
        No Cranfield in the data folder.
    """
    folder = cranfield_folder()
    if folder is None:
        raise SpaceError(
            "Cranfield: expected a folder cranfield in the data folder, which RELSCOPE_DATA names, got none"
        )
    documents = _texts(folder / "documents.parquet", "documents")
    queries = _texts(folder / "queries.parquet", "queries")
    encoders = [_encoder(name) for name in (old, new)]
    corpora = [encode(documents, encoder, store, report)[0] for encoder in encoders]
    asked = [_queries(documents, queries, encoder, store, report) for encoder in encoders]
    return Material((*corpora, *asked), read_qrels(folder / "qrels.txt"))


def _encoder(name: str) -> Encoder:
    from relcore.encoders.sentences import PooledWords, TfidfSvd
    from relcore.encoders.transformers import MiniLM

    return {"minilm": MiniLM(), "tfidf": TfidfSvd(256), "word2vec": PooledWords("word2vec-novels")}[name]


def _queries(
    documents: Dataset, queries: Dataset, encoder: Encoder, store: Store, report: Progress
) -> LatentSpace:
    key = digest_of("cranfield queries", documents.digest, queries.digest, encoder)
    if (entry := store.get(key)) is not None:
        vectors = entry.arrays["vectors"]
    else:
        run = encoder.prepare(documents, report)
        blocks = [next(iter(run(texts).values())) for _, texts in queries.blocks()]
        vectors = np.concatenate(blocks).astype(np.float32)
        store.put(key, {"vectors": vectors}, {"title": f"Cranfield queries, {encoder.title}"})
    return LatentSpace(vectors, queries.ids, name=f"{encoder.title} · queries")


def _texts(path: Path, name: str) -> Dataset:
    table = pd.read_parquet(path)
    table = table[table.text.str.strip() != ""]
    texts = table.text.tolist()
    ids = table.id.astype(str).tolist()
    return Dataset(lambda start, stop: texts[start:stop], ids, name=f"cranfield {name}", kind="texts")


_ADAPTERS = {name: adapter.title for name, adapter in ADAPTERS.items()}
BEST = "best method"
CHOSEN = "chosen"
_BY_DATA = {"sentences": ("minilm", "tfidf"), "cranfield": MODELS}
_CLOSE = 0.01


class MigrationQuality(Study):
    """Wikipedia sentences: held-out sentences are queries, those of the same article relevant. Cranfield:
    judged questions.

    Each run draws its pairs at random. Every method is scored as a bridge; the chosen one, cross-validated
    over queries, also with queries by both models. The verdict of half of the queries is tried on the other
    half; the same pairs, shuffled, and shifted by one row, are shown to the check of pairs. On Cranfield, all
    rows are searched; of the sentences, the held-out ones.
    """

    title = "Migration: pairs and methods"
    question = "How many pairs does an adapter between two models need, and which method is best?"
    paper = "ours; Vejendla 2025 (Drift-Adapter) reports recall after 20,000 pairs"

    version = 3

    options = (
        Option(
            "data",
            "On",
            tuple(_BY_DATA),
            "sentences",
            names=("Wikipedia sentences, bundled", "Cranfield, from the data folder"),
            help=(
                "Cranfield needs the data folder that RELSCOPE_DATA names; its first run encodes 1,398"
                " abstracts with MiniLM."
            ),
        ),
        Option(
            "pairs",
            "Pairs",
            (25, 50, 100, 300, 500, 1000),
            (50, 100, 300),
            many=True,
            help="Fewer than the corpus has rows.",
        ),
        states("the pairs", 5),
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        models = [f"{new} → {old}" for new, old in permutations(_BY_DATA[options["data"]], 2)]
        return grid(options, "data", models=models, pairs=options["pairs"])

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        report(0, 4, "encoding")
        new, old = settings["models"].split(" → ")
        material = material_of(settings["data"], new, old, store, report)
        state = settings["random_state"]
        plan = {"n_pairs": settings["pairs"], "sizes": (), "random_state": state}
        report(1, 4, "searching")
        task = Migration(**plan, judgements=material.judgements)
        ground = task.ground(material.spaces)
        result = task.answer(ground)
        report(2, 4, "every method")
        values = values_of(result) | methods_of(ground)
        report(3, 4, "half of the queries")
        verdicts = {
            CHOSEN: result.option("bridge").value,
            BEST: max(values[name] for name in ADAPTERS),
            "verdict": result.verdict.option,
            "clear": result.verdict.is_clear,
            "contradicted": contradicted(task, ground),
            "adapter": result.adapter,
        }
        return RunResult(values | verdicts | refusals(material, result, state))

    def seconds(self, settings: Settings) -> float:
        seconds = 12.0
        if settings["data"] == "sentences":
            seconds = 4.0
        return seconds + settings["pairs"] / 50

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        charts = {}
        titles = ("pairs", "nDCG@10")
        measures = _ADAPTERS | {"twice": TITLES["twice"]}
        levels = {TITLES[name]: name for name in ("keep", "re-embed")}
        for models, part in table.groupby("models", sort=False):
            rows = f"{models}: {count_of(part, 'queries', 'queries')}, {count_of(part, 'rows', 'rows')}"
            lines = lines_over(part, "pairs", measures)
            charts[models] = chart(part, lines, titles, rows, levels, log_x=True)
        return charts

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        rows = []
        for models, part in table.groupby("models", sort=False):
            names = {pairs: f"{models}, {pairs:,} pairs" for pairs in options["pairs"]}
            rows += findings_over(part.sort_values("pairs"), "pairs", TITLES | _ADAPTERS, names)
        return findings_table(
            rows
            + [finding(f"{name}, all draws", part, "Wilson's") for name, part in shares_of(table).items()]
        )

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        if table.random_state.nunique() < 2:
            return ""
        shares = shares_of(table)
        return sentence(
            f"In all {table.random_state.nunique()} draws of pairs, the chosen adapter is within .01 nDCG@10"
            " of the best one for a share of {:2} of the models and numbers of pairs, and the other half of"
            " the queries contradicts no clear verdict of one half for {:2}.",
            shares["chosen within .01 of the best method"],
            shares["verdicts that other queries do not contradict"],
        )


def material_of(data: str, new: str, old: str, store: Store, report: Progress) -> Material:
    if data == "cranfield":
        return cranfield(new, old, store, report)
    sentences = {"tfidf": OLD, "minilm": NEW}
    return Material(tuple(encode(DATASET, sentences[name], store, report)[0] for name in (old, new)))


def values_of(result: MigrationResult) -> dict[str, Any]:
    values: dict[str, Any] = {"queries": len(result.queries), "rows": result.n_rows, "weight": result.weight}
    for one in result.options:
        values[one.option] = one.value
        for name, gain in (("keep", one.to_keep), ("re-embed", one.to_reembed)):
            if gain:
                values |= {f"{one.option} − {name}, low": gain.low, f"{one.option} − {name}, high": gain.high}
    return values


def methods_of(ground: MigrationData) -> dict[str, float]:
    scores = {}
    trial = ground.trial
    for name in ADAPTERS:
        lists = trial.search(ground.pairs.fit(name), options=("bridge",))["bridge"]
        scores[name] = float(ndcg(lists, trial.relevance).mean())
    return scores


def contradicted(task: Migration, ground: MigrationData) -> bool:
    """Whether the other queries refute a clear verdict of every second query."""
    halves = []
    for side in (0, 1):
        trial = ground.trial.take(np.arange(side, len(ground.queries), 2))
        halves.append(task.answer(replace(ground, trial=trial, queries=ground.queries[side::2])))
    said, other = halves
    scores = {name: QueryScores(one) for name, one in other.scores.items()}
    resampling = Resampling(len(other.queries))
    return said.verdict.is_clear and contradicts(said.verdict.option, scores, resampling, said.order())


def refusals(material: Material, result: MigrationResult, state: int) -> dict[str, bool]:
    old, new = material.spaces[:2]
    rows = np.sort(result.pairs)
    sides = new.vectors[new.rows(old.ids[rows])], old.vectors[rows]
    order = np.random.default_rng(state).permutation(len(rows))
    return {
        "accepted": _accepted(*sides),
        "shuffled refused": not _accepted(sides[0][order], sides[1]),
        "shift named": check_pairs(sides[0][1:], sides[1][:-1]).shift == 1,
    }


def _accepted(new: np.ndarray, old: np.ndarray) -> bool:
    try:
        check_pairs(new, old).need()
    except SpaceError:
        return False
    return True


def shares_of(table: pd.DataFrame) -> dict[str, Estimate]:
    """The share of cells (models and number of pairs) for which a statement holds in all draws. Draws of one
    cell are not independent."""
    flags = {
        "chosen within .01 of the best method": table[CHOSEN] >= table[BEST] - _CLOSE,
        "verdicts that other queries do not contradict": ~table.contradicted.astype(bool),
        "shuffled pairs that are refused": table["shuffled refused"],
        "shifts by one row that are named": table["shift named"],
        "true pairs that are accepted": table.accepted,
    }
    by = [table.models, table.pairs]
    return {name: share(values.groupby(by).all()) for name, values in flags.items()}
