"""The answers of all encoders with all heads to a new sentence or picture; and cross-lingual retrieval."""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, quote
from relcore.base.names import METHODS, STITCHED
from relcore.base.numbers import band, short
from relcore.base.rows import mean_row, unit_rows
from relcore.base.settings import check, setting
from relcore.base.text import shortened
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.encodings import trained_weights
from relcore.catalog.task import SpacesRecipe
from relcore.encoders.dataset import Dataset, Kind
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import EncodeBatch, Encoder, TrainedEncoder
from relcore.encoders.pictures import decode_image
from relcore.figures.export import Exportable, chart_exportable
from relcore.figures.matrices import Matrices, MatrixPanel
from relcore.represent.representations import FittedSpace, MethodSettings, fit_representation, fit_translation
from relcore.runs.store import Store
from relcore.runs.work import silent
from relcore.scores.neighbours import find_neighbours
from relcore.scores.score import ChanceLevel, Score, chance_of
from relcore.spaces.matching import Match, distinct_names, match, short_names
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split
from relcore.stitch.classifiers import Stitching
from relcore.stitch.shared_rows import share_rows
from relcore.stitch.stitching import StitchSpec

if TYPE_CHECKING:
    from PIL.Image import Image

TOP = 3
NONE = "none of these"


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers to one item, for every pair of an encoder and a head.

    Attributes
    ----------
    encoders, heads : names
        The names of the encoders and of the heads. An encoder that cannot encode the item is not in
        `encoders`, but its head is in `heads`.
    own : numbers (E,)
        For each encoder, the index of its own head in `heads`.
    probabilities : array (E, H, C) float32
        The probability of each class; NaN if the encoder and the head cannot be combined.
    silent : names
        Encoders that know no part of the item, for example no word of a sentence. Their row is zero.
    least_sure : array (E, H), optional
        The threshold of each pair. If the most probable class has a lower probability, the answer is "none of
        these".
    """

    method: str
    encoders: tuple[str, ...]
    heads: tuple[str, ...]
    own: tuple[int, ...]
    classes: tuple[str, ...]
    probabilities: np.ndarray
    silent: tuple[str, ...] = ()
    least_sure: np.ndarray | None = None

    def top(self, i: int, j: int, n: int = TOP) -> list[tuple[str, float]]:
        """The n most probable classes with their probabilities. [] if encoder i and head j cannot be
        combined."""
        shares = self.probabilities[i, j]
        if np.isnan(shares[0]):
            return []
        return [(self.classes[k], float(shares[k])) for k in np.argsort(-shares, kind="stable")[:n]]

    def answer(self, i: int, j: int) -> str:
        """The answer: the most probable class, or "none of these". "" if encoder i and head j cannot be
        combined."""
        for name, probability in self.top(i, j, 1):
            unsure = self.least_sure is not None and probability < self.least_sure[i, j]
            return NONE if unsure else name
        return ""

    def agrees(self, i: int, j: int) -> bool | None:
        """Whether a pair gives the same answer as the encoder with its own head. None if one of the answers
        is missing."""
        own = self.answer(i, self.own[i])
        answer = self.answer(i, j)
        if own and answer:
            return answer == own
        return None

    def verdict(self) -> tuple[tuple[str, ...], int, int]:
        """Three values: the most frequent answers of stitched pairs (several if there is a tie), the number
        of pairs with such an answer, and the number of all pairs. If no pair has an answer, ((), 0, 0)."""
        pairs = [(i, j) for i, own in enumerate(self.own) for j in range(len(self.heads)) if j != own]
        counts = Counter(name for i, j in pairs if (name := self.answer(i, j)))
        most = max(counts.values(), default=0)
        return tuple(name for name, n in counts.items() if n == most), most, counts.total()

    def table(self) -> pd.DataFrame:
        """A table with one row per pair and class. Columns: encoder, head, stitched, class, probability."""
        rows = [
            (encoder, head, self.own[i] != j, name, probability)
            for i, encoder in enumerate(self.encoders)
            for j, head in enumerate(self.heads)
            for name, probability in self.top(i, j, len(self.classes))
        ]
        return pd.DataFrame(rows, columns=["encoder", "head", "stitched", "class", "probability"])

    def wide(self) -> pd.DataFrame:
        """A table with one row per encoder and one column per head. Each cell has the answer and its
        probability."""
        columns: dict[str, Any] = {"encoder": self.encoders}
        for j, head in enumerate(self.heads):
            column = []
            for i in range(len(self.encoders)):
                cell = ""
                if top := self.top(i, j, 1):
                    cell = f"{self.answer(i, j)} ({short(top[0][1], 2)})"
                column.append(cell)
            columns[head] = column
        return pd.DataFrame(columns)


def answers_of(
    stitching: Stitching, method: str, rows: Sequence[np.ndarray | None], *, reject_unsure: bool = True
) -> Answers:
    """The answers of all pairs to one item. `rows` has the row (1, d) of the item for each encoder; None if
    an encoder cannot encode it.

    With `reject_unsure`, the answer is "none of these" if its probability is below `Stitching.least_sure`.
    This assumes that items are similar to the test rows.

    Raises
    ------
    SpaceError
        No encoder can encode the item; the method was not fitted; a head needs more than one row.
    """
    spaces = stitching.shared.spaces
    names = distinct_names(stitching.shared.spaces)
    if method not in stitching.spec.methods:
        titles = [METHODS[one].title for one in stitching.spec.methods]
        raise SpaceError(
            f"method: expected a fitted one, {quote(titles)}, got {method!r}; choose it for the stitching"
        )
    usable = [number for number, row in enumerate(rows) if row is not None]
    if not usable:
        raise SpaceError(
            f"expected an encoder that takes new items, got none among {quote(names)}; encode a dataset"
        )
    widths = [space.dimension for space in spaces]
    inputs = [np.zeros((1, width)) if row is None else row for width, row in zip(widths, rows, strict=True)]
    least_sure = None
    if reject_unsure:
        least_sure = stitching.least_sure(method)[usable]
    return Answers(
        method,
        encoders=tuple(names[number] for number in usable),
        heads=tuple(names),
        own=tuple(usable),
        classes=stitching.shared.classes,
        probabilities=stitching.probabilities(method, inputs)[usable, :, 0],
        least_sure=least_sure,
        silent=tuple(names[number] for number in usable if not np.any(rows[number])),
    )


_BLOCK = 256


@dataclass(frozen=True, eq=False)
class ItemEncoder:
    """The loaded encoder of the space `spec`, with the dataset that the space was encoded from."""

    spec: SpaceSpec
    dataset: Dataset
    encode_batch: EncodeBatch

    @property
    def kind(self) -> Kind:
        return self.dataset.kind

    def rows(self, items: Sequence[Any]) -> np.ndarray:
        """The vectors (m, d) float32 of m texts or pictures. If a TF-IDF encoder knows no word of a text, its
        row is zero.

        Raises
        ------
        SpaceError
            No items; an empty text; pictures of a wrong size; rows that are not finite.
        """
        rows = rows_of([self], items)[0]
        assert rows is not None, "only a missing encoder has no rows"
        return rows


def rows_of(encoders: Sequence[ItemEncoder | None], items: Sequence[Any]) -> list[np.ndarray | None]:
    """The rows of the items for each encoder; None where the encoder is None. If encoders share a model, it
    runs only once."""
    if not len(items):
        raise SpaceError("expected one item or more to encode, got none")
    outputs: dict[int, dict[str, np.ndarray]] = {}
    every: list[np.ndarray | None] = []
    for encoder in encoders:
        if encoder is None:
            every.append(None)
            continue
        name = encoder.spec.name
        one_pass = id(encoder.encode_batch)
        if encoder.kind == "texts" and not all(isinstance(text, str) and text.strip() for text in items):
            raise SpaceError(f"{name}: expected texts, got an empty one; type a sentence")
        if one_pass not in outputs:
            starts = range(0, len(items), _BLOCK)
            blocks = [encoder.encode_batch(list(items[start : start + _BLOCK])) for start in starts]
            outputs[one_pass] = {
                output: np.concatenate([block[output] for block in blocks]) for output in blocks[0]
            }
        rows = outputs[one_pass][encoder.spec.option("output")].astype(np.float32)
        if not np.isfinite(rows).all():
            raise SpaceError(
                f"{name}: expected finite numbers for each item, got NaN or infinite; try another item"
            )
        every.append(rows)
    return every


def encoder_of(spec: SpaceSpec) -> Encoder:
    """The encoder of a space that Relscope encoded (see `why_not`)."""
    assert spec.encoder is not None, f"{spec.name} is no encoding"
    return spec.encoder


def joined_encoder(spec: SpaceSpec, others: Sequence[SpaceSpec]) -> Encoder:
    """The encoder of a space, joined with the encoders of those other spaces whose rows the same pass can
    compute."""
    joined = encoder_of(spec)
    for other in others:
        if other.dataset == spec.dataset and other.encoder is not None:
            joined = joined.with_outputs_of(other.encoder) or joined
    return joined


def why_not(spec: SpaceSpec) -> str:
    """A phrase on why a space cannot encode new items; "" if it can."""
    if spec.source == "encoding":
        return ""
    return "came as vectors, without an encoder"


def item_encoder(spec: SpaceSpec, store: Store, joined: Encoder | None = None) -> ItemEncoder:
    """The loaded encoder of a space that Relscope encoded. Loading a large model takes seconds.

    Raises
    ------
    SpaceError
        A space that is no encoding of texts or pictures; a dataset that is missing or has changed.
    """
    if reason := why_not(spec):
        raise SpaceError(
            f"{spec.name!r}: expected an encoding of texts or pictures, got a space that {reason}"
        )
    assert spec.dataset is not None, "an encoding has a dataset"
    dataset = load_dataset(spec.dataset, store)
    encoder = joined or encoder_of(spec)
    entry = store.summary(spec.option("key"))
    if entry and entry.metadata["dataset_digest"] != dataset.digest:
        raise SpaceError(
            f"{spec.name!r}: its dataset has changed since it was encoded; encode the current data,"
            " and choose the new encoding"
        )
    if isinstance(encoder, TrainedEncoder):
        weights = trained_weights(encoder, dataset, store)
        return ItemEncoder(spec, dataset, encoder.restore(weights, dataset))
    return ItemEncoder(spec, dataset, encoder.prepare(dataset, silent))


_LONGEST = 18  # maximum number of letters of a class in a cell
_LARGEST = 256 * 1024  # maximum number of bytes of a picture in a recipe


@dataclass(frozen=True, kw_only=True)
class TryIt(SpacesRecipe, figure="try-it"):
    """A figure with the answer of every pair to one item, by the first method and the first random state. The
    item is `text`, or `picture`, a PNG as base64."""

    stitching: StitchSpec
    text: str | None = None
    picture: str | None = None

    @classmethod
    def of(cls, item: str | Image, **settings: Any) -> TryIt:
        if isinstance(item, str):
            return cls(text=item, **settings)
        content = BytesIO()
        item.save(content, "PNG", optimize=True)
        return cls(picture=base64.b64encode(content.getvalue()).decode(), **settings)

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in super().to_json().items() if value is not None}

    @property
    def item(self) -> str | Image:
        """The text or the picture. Raises a SpaceError if there is neither a text nor a readable picture."""
        if self.text is not None and self.picture is None:
            return self.text
        try:
            content = base64.b64decode(self.picture, validate=True)  # type: ignore[arg-type]  # None: see below
        except (TypeError, ValueError, binascii.Error) as error:
            raise SpaceError(
                "recipe of try it: expected a 'text', or a 'picture' as base64 of a PNG, got neither"
            ) from error
        if len(content) > _LARGEST:
            raise SpaceError(
                f"recipe of try it: expected a picture of at most {_LARGEST:,} bytes, got {len(content):,}"
            )
        return decode_image(content, "the recipe's picture")

    def draw(self, result: Answers | None = None) -> Exportable:
        if result is None:
            item = self.item
            store = Store()
            spaces = self.loaded()
            rows = [_row_of(item, spec, store) for spec in self.spaces]
            settings = self.stitching
            fitted = Stitching(share_rows(spaces, settings.order), settings, settings.random_states[0])
            result = answers_of(fitted, settings.methods[0], rows, reject_unsure=self.text is not None)
        data = matrices_of(result)
        tables = {"latex": result.wide, "table": result.table}
        return chart_exportable(data, self.to_json(), "relscope-try-it", **tables)


def matrices_of(answers: Answers) -> Matrices:
    """The data of a heat map. Each cell has its answer as text; the deeper the colour, the more probable the
    answer."""
    heads, _ = short_names(answers.heads)
    every = [[(i, j) for j in range(len(answers.heads))] for i in range(len(answers.encoders))]
    texts = [[_cell(answers, i, j) for i, j in line] for line in every]
    panel = MatrixPanel(
        "",
        tuple(heads[own] for own in answers.own),
        heads,
        answers.probabilities.max(axis=2),
        tuple(tuple(text for text, _ in line) for line in texts),
        tuple(tuple(hover for _, hover in line) for line in texts),
        marked=tuple(enumerate(answers.own)),
    )
    leaders, count, n = answers.verdict()
    each = " each" if len(leaders) > 1 else ""
    verdict = "no two can be stitched."
    if n:
        verdict = f"{count} of {n} stitched pairs{each} answer {' and '.join(leaders[:3])}."
    alt = (
        f"Heat map of {len(answers.encoders)} encoders by {len(answers.heads)} classifiers,"
        f" {METHODS[answers.method].title}: {verdict}"
    )
    return Matrices((panel,), (0, 1), "probability of the answer", alt, "encoder", "classifier of")


def _row_of(item: str | Image, spec: SpaceSpec, store: Store) -> np.ndarray | None:
    """The row (1, d) of an item; None if its encoder cannot encode new items."""
    if why_not(spec):
        return None
    return item_encoder(spec, store).rows([item])


def _cell(answers: Answers, i: int, j: int) -> tuple[str, str]:
    top = answers.top(i, j)
    agrees = answers.agrees(i, j)
    if not top:
        return "", "this method cannot stitch spaces of different widths"
    answer = shortened(answers.answer(i, j), _LONGEST)
    own = shortened(answers.answer(i, answers.own[i]), _LONGEST)
    other = ""
    kind = "stitched"
    if answers.own[i] == j:
        kind = "the encoder's own classifier, not stitched"
    elif agrees:
        kind = "stitched; the encoder's own classifier answers the same"
    elif agrees is not None:
        kind = f"stitched; the encoder's own classifier answers {own}"
    if agrees is False:
        other = f" · own: {own}"
    lines = [f"{name}: {short(share)}" for name, share in top]
    if answers.answer(i, j) == NONE:
        other = f" for {shortened(top[0][0], _LONGEST)}{other}"  # not the probability of “none of these”
        lines.append("less sure than in 95 % of this pair's right answers to test rows")
    return f"{answer}\n{short(top[0][1], 2)}{other}", "\n".join([*lines, kind])


# Cross-lingual retrieval: find the translation of each row in another space, given only parallel anchors.

METRICS = {"first": "found first", "mrr": "MRR", "jaccard": "Jaccard"}


@dataclass(frozen=True)
class RetrievalSpec:
    """The settings of a retrieval. `n_anchors` known pairs are drawn at random as anchors; all other rows are
    queries."""

    methods: tuple[str, ...] = setting(STITCHED, choices=METHODS, distinct=True)
    n_anchors: int = setting(300, low=2)
    k: int = setting(10, low=1)
    settings: MethodSettings = MethodSettings()
    random_state: int = setting(0, low=0)

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, eq=False)
class RetrievalResult:
    """The scores and the neighbours of the queries.

    Attributes
    ----------
    ids : array (m,)
        Ids of the queries in the first space.
    scores : method → metric → Score
        If the widths differ, methods that need equal widths are missing.
    found : method → array (m, k)
        For each query, the indices of its nearest candidates in the second space, nearest first.
    """

    spec: RetrievalSpec
    names: tuple[str, str]
    ids: np.ndarray
    scores: dict[str, dict[str, Score]]
    found: dict[str, np.ndarray]

    def best_first(self) -> list[str]:
        """The methods, sorted by the share of partners that they find first."""
        return sorted(self.scores, key=lambda method: -self.scores[method]["first"])

    def table(self) -> pd.DataFrame:
        """A table with one row per method and metric."""
        rows = [
            (METHODS[method].title, METRICS[metric], float(score), null.mean, null.low, null.high)
            for method, by_metric in self.scores.items()
            for metric, score in by_metric.items()
            if (null := score.null)
        ]
        table = pd.DataFrame(rows, columns=["method", "metric", "score", "chance", "null_low", "null_high"])
        return table.assign(k=self.spec.k, pairs=len(self.ids), anchors=self.spec.n_anchors)

    def wide(self) -> pd.DataFrame:
        columns: dict[str, list[Any]] = {"method": [*(METHODS[name].title for name in self.scores), "chance"]}
        for metric, title in METRICS.items():
            scores = [by_metric[metric] for by_metric in self.scores.values()]
            columns[title] = [*scores, np.mean([chance_of(score).mean for score in scores])]
        return pd.DataFrame(columns)


def pair_up(first: LatentSpace, second: LatentSpace, pairs: Sequence[tuple[str, str]] = ()) -> Match:
    """The match of two spaces: by equal ids, or by a list of pairs (id in the first space, id in the second
    space).

    Rows that are zero in one of the spaces are left out and counted. If an id has several partners, the first
    one is used.

    Raises
    ------
    SpaceError
        No row remains; the spaces have none of the ids in the list.
    """
    if not pairs:
        return match(first, second)
    known = pd.DataFrame(list(pairs))
    known = known[known[0].isin(first.index) & known[1].isin(second.index)]
    partners = {}
    used = set()
    for left, right in known.itertuples(index=False):
        if left not in partners and right not in used:
            partners[left] = right
            used.add(right)
    if not partners:
        raise SpaceError(
            f"list of pairs: expected ids of {first.name!r} in the first column and of {second.name!r} in the"
            f" second, got none of {len(pairs):,}, first {quote(pairs[0])}; swap the columns, or choose the"
            " spaces that the list was written for"
        )
    rows = second.vectors[second.rows(list(partners.values()))]
    return match(first.take(first.rows(list(partners))), LatentSpace(rows, list(partners), name=second.name))


def retrieve(pair: Match, spec: RetrievalSpec) -> RetrievalResult:
    """The retrieval scores by method. Queries are all rows except anchors; they are searched among the same
    rows of the second space.

    Translated rows are compared by cosine after the mean of the second space is subtracted; absolute rows are
    not centred. Neighbours and Jaccard follow the "paper" convention of `scores.neighbours`.

    Raises
    ------
    SpaceError
        Too few pairs for this number of anchors and neighbours.
    """
    n = len(pair)
    if n < spec.n_anchors + spec.k + 1:
        raise SpaceError(
            f"expected more than n_anchors + k = {spec.n_anchors + spec.k} pairs, so that some are queries,"
            f" got {n}; lower the number of anchors, or take a longer list"
        )
    anchors = np.sort(np.random.default_rng(spec.random_state).permutation(n)[: spec.n_anchors])
    rest = Split.held_out(pair.ids, anchors, spec.random_state).test
    sides = [FittedSpace(X, X[anchors], mean_row(X)) for X in (pair.source.vectors, pair.target.vectors)]
    scores = {}
    found = {}
    for method in spec.methods:
        rows = _comparable(method, sides, rest, spec)
        if rows is None:
            continue
        near = find_neighbours(rows[0], rows[1], spec.k)
        first = float((near.second_lists[:, 0] == near.queries).mean())
        # The error is exact: the number of fixed points of a random permutation has mean 1 and variance 1.
        null = ChanceLevel.from_moments(1 / len(rest), 1 / len(rest) ** 2)
        scores[method] = {
            "first": Score(first, metric="first", n=len(rest), k=1, null=null),
            "mrr": near.mrr(),
            "jaccard": near.jaccard(),
        }
        found[method] = near.second_lists
    return RetrievalResult(spec, (pair.source.name, pair.target.name), pair.ids[rest], scores, found)


def _comparable(
    method: str, sides: list[FittedSpace], rest: np.ndarray, spec: RetrievalSpec
) -> list[np.ndarray] | None:
    """The rows `rest` of both spaces in a form in which they can be compared; None if the method has none for
    these spaces."""
    source, target = sides
    source_rows = source.train[rest]
    target_rows = target.train[rest]
    representation = METHODS[method].representation
    if representation != "absolute":
        represent_source = fit_representation(representation, source, spec.settings)
        represent_target = fit_representation(representation, target, spec.settings)
        return [represent_source(source_rows), represent_target(target_rows)]
    translate = fit_translation(method, source, target, spec.settings, spec.random_state)
    if translate is None:
        return None
    if method == "absolute":
        return [source_rows, target_rows]
    return [unit_rows(translate(source_rows), target.mean), unit_rows(target_rows, target.mean)]


Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class CrossLingual(SpacesRecipe, figure="cross-lingual"):
    """A figure of retrieval scores by method. If the spaces have different ids, `pairs` of ids are needed."""

    spaces: tuple[SpaceSpec, SpaceSpec]
    retrieval: RetrievalSpec
    pairs: Pairs = ()

    def draw(self, result: RetrievalResult | None = None) -> Exportable:
        if not result:
            first, second = self.loaded()
            result = retrieve(pair_up(first, second, self.pairs), self.retrieval)
        methods = result.best_first()
        lines = [[result.scores[method][metric] for metric in METRICS] for method in methods]
        rows = tuple(METHODS[method].title for method in methods)
        columns = ("found first", f"MRR, k = {result.spec.k}", f"Jaccard, k = {result.spec.k}")
        texts = tuple(tuple(map(_text, line)) for line in lines)
        hover = tuple(tuple(map(_hover, line)) for line in lines)
        panel = MatrixPanel("", rows, columns, np.array(lines, dtype=float), texts, hover)
        best = max(result.scores, key=lambda method: result.scores[method]["mrr"])
        alt = (
            f"Heat map of retrieval from {result.names[0]} to {result.names[1]}, {len(result.ids)} queries"
            f" through {result.spec.n_anchors} known pairs; best by MRR {METHODS[best].title},"
            f" {short(result.scores[best]['mrr'], 2)}."
        )
        data = Matrices((panel,), (0, 1), "score", alt)
        return chart_exportable(data, self.to_json(), "relscope-cross-lingual", result.wide, result.table)


def _text(score: Score) -> str:
    return f"{short(score, 2)}\nchance {short(chance_of(score).mean, 2)}"


def _hover(score: Score) -> str:
    chance = chance_of(score)
    ends = band(max(0, chance.low), chance.high)
    neighbours = ""
    if score.metric != "first":
        neighbours = f", k = {score.k}"
    return f"{short(score)}\nchance {short(chance.mean)} ({ends})\nn = {score.n:,}{neighbours}"
