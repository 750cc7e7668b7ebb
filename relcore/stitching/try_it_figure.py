"""The figure of Try it: every encoder × head and what they say of one sentence or picture, on the page and from its recipe."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from relcore.figures.export import Exportable
from relcore.figures.matrices import Matrices, MatrixPanel, matrices_exportable
from relcore.names import METHODS
from relcore.numbers import short
from relcore.recipe import Recipe, load_all
from relcore.sources.catalog import SpaceSpec
from relcore.sources.images import decode_image
from relcore.spaces import SpaceError
from relcore.stitching.figures import short_names
from relcore.stitching.one_item import item_encoder, why_not
from relcore.stitching.spec import StitchSpec
from relcore.stitching.try_it import Answers, answers_of
from relcore.store import Store

if TYPE_CHECKING:
    from PIL.Image import Image

_LONGEST = 18  # letters of a class in a cell
_LARGEST = 256 * 1024  # bytes of a picture that a recipe may carry


@dataclass(frozen=True, kw_only=True)
class TryIt(Recipe):
    """What every pair says of one item, a text or a PNG as base64, by the stitching's first method and random state."""

    figure: ClassVar[str] = "try-it"

    spaces: tuple[SpaceSpec, ...]
    digests: tuple[str, ...] = ()
    stitching: StitchSpec
    text: str | None = None
    picture: str | None = None

    @classmethod
    def of(cls, item: str | Image, **settings: Any) -> TryIt:
        """The recipe of a sentence or a picture."""
        if isinstance(item, str):
            return cls(text=item, **settings)
        content = BytesIO()
        item.save(content, "PNG", optimize=True)
        return cls(picture=base64.b64encode(content.getvalue()).decode(), **settings)

    def to_json(self) -> dict[str, Any]:
        """With the item as it came."""
        return {name: value for name, value in super().to_json().items() if value is not None}

    @property
    def item(self) -> str | Image:
        """
        Raises
        ------
        SpaceError
            No text, and no picture that can be read.
        """
        if self.text is not None and self.picture is None:
            return self.text
        try:
            content = base64.b64decode(self.picture, validate=True)
        except (TypeError, ValueError, binascii.Error) as error:
            raise SpaceError("recipe of try it: expected a 'text', or a 'picture' as base64 of a PNG, got neither") from error
        if len(content) > _LARGEST:
            raise SpaceError(f"recipe of try it: expected a picture of at most {_LARGEST:,} bytes, got {len(content):,}")
        return decode_image(content, "the recipe's picture")

    def draw(self, result: Answers | None = None) -> Exportable:
        answers = result or self._ask()
        return matrices_exportable(matrices_of(answers), self.to_json(), "relscope-try-it", answers.wide, answers.table)

    def _ask(self) -> Answers:
        from relcore.stitching.classification import Stitching, share_rows

        item, store = self.item, Store()
        spaces = load_all(self.spaces, self.digests, self.figure)
        rows = [None if why_not(spec) else item_encoder(spec, store).rows([item]) for spec in self.spaces]
        fitted = Stitching(share_rows(spaces, self.stitching.order), self.stitching, self.stitching.random_states[0])
        return answers_of(fitted, self.stitching.methods[0], rows)


def matrices_of(answers: Answers) -> Matrices:
    """One heat map: in each cell the answer, the deeper the surer; the pairs that are not stitched have a dotted frame."""
    heads, _ = short_names(answers.heads)
    every = [[(i, j) for j in range(len(answers.heads))] for i in range(len(answers.encoders))]
    panel = MatrixPanel(
        "",
        tuple(heads[own] for own in answers.own),
        heads,
        np.array([[_probability(answers, i, j) for i, j in line] for line in every]),
        tuple(tuple(_text(answers, i, j) for i, j in line) for line in every),
        tuple(tuple(_told(answers, i, j) for i, j in line) for line in every),
        marked=tuple((i, j) for i, j in enumerate(answers.own)),
    )
    most, count, n = answers.verdict()
    alt = f"Heat map of {len(answers.encoders)} encoders by {len(answers.heads)} heads, {METHODS[answers.method].title}: "
    each, most = (" each", " and ".join(leaders[:3])) if len(leaders := answers.leaders()) > 1 else ("", most)
    alt += f"{count} of {n} stitched pairs{each} answer {most}." if n else "no two can be put together."
    return Matrices((panel,), (0, 1), "probability of the answer", alt, "rows of", "head of")


def _probability(answers: Answers, i: int, j: int) -> float:
    top = answers.top(i, j, 1)
    return top[0][1] if top else np.nan


def _text(answers: Answers, i: int, j: int) -> str:
    top = answers.top(i, j, 1)
    if not top:
        return ""
    (name, probability) = top[0]
    name = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
    other = "" if answers.agrees(i, j) in (True, None) else " · differs"
    return f"{name}\n{short(probability, 2)}{other}"


def _told(answers: Answers, i: int, j: int) -> str:
    top = answers.top(i, j)
    if not top:
        return "cannot be put together by this method: the widths differ"
    lines = [f"{name}: {short(probability)}" for name, probability in top]
    kind = "the head's own encoder, not stitched" if answers.own[i] == j else "stitched"
    if answers.own[i] != j and answers.agrees(i, j) is not None:
        kind += (
            ", answers as the head's own encoder does" if answers.agrees(i, j) else ", another answer than its own encoder's"
        )
    return "\n".join([*lines, kind])
