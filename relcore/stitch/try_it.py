"""The answers of all encoders with all heads to a new sentence or picture."""

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
from relcore.base.names import METHODS
from relcore.base.numbers import short
from relcore.catalog.catalog import SpaceSpec, trained_weights
from relcore.catalog.task import SpacesRecipe
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import Dataset, EncodeBatch, Encoder, Kind, TrainedEncoder
from relcore.encoders.images import decode_image
from relcore.figures.charts import Matrices, MatrixPanel
from relcore.figures.export import Exportable, chart_exportable
from relcore.runs.store import Store, silent
from relcore.spaces.matching import distinct_names, short_names
from relcore.stitch.stitching import Stitching, StitchSpec, share_rows

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
        own, answer = self.answer(i, self.own[i]), self.answer(i, j)
        return answer == own if own and answer else None

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
            tops = [self.top(i, j, 1) for i in range(len(self.encoders))]
            columns[head] = [
                f"{self.answer(i, j)} ({short(top[0][1], 2)})" if top else "" for i, top in enumerate(tops)
            ]
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
    spaces, names = stitching.shared.spaces, distinct_names(stitching.shared.spaces)
    if method not in stitching.spec.methods:
        titles = [METHODS[one].title for one in stitching.spec.methods]
        raise SpaceError(
            f"method: expected one that was fitted, {quote(titles)}, got {method!r}; choose it for the"
            " stitching"
        )
    usable = [number for number, row in enumerate(rows) if row is not None]
    if not usable:
        raise SpaceError(
            f"expected an encoder that takes new items, got none among {quote(names)}; encode a dataset"
        )
    widths = [space.dimension for space in spaces]
    given = [np.zeros((1, width)) if row is None else row for width, row in zip(widths, rows, strict=True)]
    return Answers(
        method,
        encoders=tuple(names[number] for number in usable),
        heads=tuple(names),
        own=tuple(usable),
        classes=stitching.shared.classes,
        probabilities=stitching.probabilities(method, given)[usable, :, 0],
        least_sure=stitching.least_sure(method)[usable] if reject_unsure else None,
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
        return rows_of([self], items)[0]


def rows_of(encoders: Sequence[ItemEncoder | None], items: Sequence[Any]) -> list[np.ndarray | None]:
    """The rows of the items for each encoder; None for an encoder that is None. If encoders share a model, it
    runs only once."""
    if not len(items):
        raise SpaceError("expected one item or more to encode, got none")
    outputs: dict[int, dict[str, np.ndarray]] = {}
    every: list[np.ndarray | None] = []
    for encoder in encoders:
        if encoder is None:
            every.append(None)
            continue
        name, one_pass = encoder.spec.name, id(encoder.encode_batch)
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
                f"{name}: expected finite numbers for each item, got NaN or infinite; try another one"
            )
        every.append(rows)
    return every


def joined_encoder(spec: SpaceSpec, others: Sequence[SpaceSpec]) -> Encoder:
    """The encoder of a space. If one pass can also compute the rows of other spaces, it is joined with their
    encoders."""
    joined = spec.encoder
    for other in others:
        if other.dataset == spec.dataset:
            joined = joined.with_outputs_of(other.encoder) or joined
    return joined


def why_not(spec: SpaceSpec) -> str:
    """A phrase on why a space cannot encode new items; "" if it can."""
    if spec.source != "encoding":
        return "came as vectors, without an encoder"
    return ""


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
    dataset, encoder = load_dataset(spec.dataset, store), joined or spec.encoder
    entry = store.summary(spec.option("key"))
    if entry and entry.metadata["dataset_digest"] != dataset.digest:
        raise SpaceError(
            f"{spec.name!r}: its dataset has changed since it was encoded; encode what is there now, and"
            " choose that"
        )
    if isinstance(encoder, TrainedEncoder):
        weights = trained_weights(encoder, dataset, store)
        return ItemEncoder(spec, dataset, encoder.restore(weights, dataset))
    return ItemEncoder(spec, dataset, encoder.prepare(dataset, silent))


_LONGEST = 18  # most letters of a class in a cell
_LARGEST = 256 * 1024  # most bytes of a picture in a recipe


@dataclass(frozen=True, kw_only=True)
class TryIt(SpacesRecipe, figure="try-it"):
    """A figure with the answer of every pair to one item, by the first method and the first random state. The
    item is a text, or a PNG picture as base64."""

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
        """
        Raises
        ------
        SpaceError
            Neither a text nor a readable picture.
        """
        if self.text is not None and self.picture is None:
            return self.text
        try:
            content = base64.b64decode(self.picture, validate=True)
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
            item, store = self.item, Store()
            spaces = self.loaded()
            rows = [None if why_not(spec) else item_encoder(spec, store).rows([item]) for spec in self.spaces]
            settings = self.stitching
            fitted = Stitching(share_rows(spaces, settings.order), settings, settings.random_states[0])
            result = answers_of(fitted, settings.methods[0], rows, reject_unsure=self.text is not None)
        data, tables = matrices_of(result), {"latex": result.wide, "table": result.table}
        return chart_exportable(data, self.to_json(), "relscope-try-it", **tables)


def matrices_of(answers: Answers) -> Matrices:
    """A heat map with the answers as texts. The deeper the colour, the more probable the answer."""
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
    each, most = " each" if len(leaders) > 1 else "", " and ".join(leaders[:3])
    verdict = f"{count} of {n} stitched pairs{each} answer {most}." if n else "no two can be put together."
    alt = (
        f"Heat map of {len(answers.encoders)} encoders by {len(answers.heads)} classifiers,"
        f" {METHODS[answers.method].title}: {verdict}"
    )
    return Matrices((panel,), (0, 1), "probability of the answer", alt, "encoder", "classifier of")


def _cell(answers: Answers, i: int, j: int) -> tuple[str, str]:
    top, agrees = answers.top(i, j), answers.agrees(i, j)
    if not top:
        return "", "cannot be put together by this method: the widths differ"
    name, own = (
        one if len(one) <= _LONGEST else one[: _LONGEST - 1] + "…"
        for one in (answers.answer(i, j), answers.answer(i, answers.own[i]))
    )
    kind = {
        None: "stitched",
        True: "stitched; the encoder's own classifier answers the same",
        False: f"stitched; the encoder's own classifier answers {own}",
    }[agrees]
    kind = "the encoder's own classifier, not stitched" if answers.own[i] == j else kind
    lines = [f"{name}: {short(share)}" for name, share in top]
    if answers.answer(i, j) == NONE:
        lines.append("less sure than 95 % of its right answers to test rows")
    other = f" · own: {own}" if agrees is False else ""
    return f"{name}\n{short(top[0][1], 2)}{other}", "\n".join([*lines, kind])
