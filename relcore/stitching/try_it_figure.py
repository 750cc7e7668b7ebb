"""The figure of Try it: every encoder × head and what they say of one sentence or picture, on the page and from its recipe."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from relcore import __version__
from relcore.figures.export import Exportable
from relcore.figures.matrices import Matrices, MatrixPanel, matrices_exportable
from relcore.names import METHODS
from relcore.recipe import load_again, need_same_content
from relcore.sources.catalog import SpaceSpec
from relcore.sources.images import decode_image
from relcore.spaces import SpaceError, quote
from relcore.stitching.figures import short_names
from relcore.stitching.one_item import item_encoder, why_not
from relcore.stitching.spec import StitchSpec
from relcore.stitching.try_it import Answers, answers_of
from relcore.store import Store

if TYPE_CHECKING:
    from PIL.Image import Image

_LONGEST = 18  # letters of a class in a cell
_LARGEST = 256 * 1024  # bytes of a picture that a recipe may carry


def draw_try_it(
    specs: Sequence[SpaceSpec],
    stitching: StitchSpec,
    method: str,
    item: str | Image,
    *,
    digests: Sequence[str] = (),
    answers: Answers | None = None,
) -> Exportable:
    """What every pair says of the item, by one method and for the first random state of the stitching."""
    if answers is None:
        answers = _ask(specs, replace(stitching, methods=(method,)), method, item, digests)
    recipe = {
        "relscope": __version__,
        "figure": "try-it",
        "spaces": [spec.to_json() for spec in specs],
        "digests": list(digests),
        "stitching": replace(stitching, methods=(method,)).to_json(),
        **_to_json(item),
    }
    return matrices_exportable(matrices_of(answers), recipe, "relscope-try-it", answers.wide, answers.table)


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
    alt += f"{count} of {n} stitched pairs answer {most}." if n else "no two can be put together."
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
    return f"{name}\n{probability:.2f}{other}"


def _told(answers: Answers, i: int, j: int) -> str:
    top = answers.top(i, j)
    if not top:
        return "cannot be put together by this method: the widths differ"
    lines = [f"{name}: {probability:.3f}" for name, probability in top]
    kind = "the head's own encoder, not stitched" if answers.own[i] == j else "stitched"
    if answers.own[i] != j and answers.agrees(i, j) is not None:
        kind += (
            ", answers as the head's own encoder does" if answers.agrees(i, j) else ", another answer than its own encoder's"
        )
    return "\n".join([*lines, kind])


def _ask(specs: Sequence[SpaceSpec], stitching: StitchSpec, method: str, item: Any, digests: Sequence[str]) -> Answers:
    from relcore.stitching.classification import Stitching, share_rows

    store, spaces = Store(), [load_again(spec) for spec in specs]
    for space, digest in zip(spaces, digests or [""] * len(spaces), strict=True):
        need_same_content(space, digest)
    rows = [None if why_not(spec) else item_encoder(spec, store).rows([item]) for spec in specs]
    fitted = Stitching(share_rows(spaces, stitching.order), stitching, stitching.random_states[0])
    return answers_of(fitted, method, rows)


def _to_json(item: str | Image) -> dict[str, str]:
    if isinstance(item, str):
        return {"text": item}
    content = BytesIO()
    item.save(content, "PNG", optimize=True)
    return {"picture": base64.b64encode(content.getvalue()).decode()}


def _item(settings: Mapping[str, Any]) -> str | Image:
    text, picture = settings.get("text"), settings.get("picture")
    if isinstance(text, str) and picture is None:
        return text
    try:
        content = base64.b64decode(picture, validate=True)
    except (TypeError, ValueError, binascii.Error) as error:
        raise SpaceError("recipe of try it: expected a 'text', or a 'picture' as base64 of a PNG, got neither") from error
    if len(content) > _LARGEST:
        raise SpaceError(f"recipe of try it: expected a picture of at most {_LARGEST:,} bytes, got {len(content):,}")
    return decode_image(content, "the recipe's picture")


def _try_it(settings: dict[str, Any]) -> Exportable:
    expected = {"spaces", "digests", "stitching", "text", "picture"}
    spaces, digests = settings.get("spaces"), settings.get("digests", [])
    lists = isinstance(spaces, list) and isinstance(digests, list) and len(digests) in (0, len(spaces))
    if not lists or not isinstance(settings.get("stitching"), Mapping) or set(settings) - expected:
        raise SpaceError(
            f"recipe of try it: expected {quote(sorted(expected))}, of them lists of spaces with their digests, got "
            f"{quote(sorted(settings))}"
        )
    stitching = StitchSpec.from_json(settings["stitching"])
    specs = [SpaceSpec.from_json(one) for one in spaces]
    return draw_try_it(specs, stitching, stitching.methods[0], _item(settings), digests=digests)


FIGURES = {"try-it": _try_it}
