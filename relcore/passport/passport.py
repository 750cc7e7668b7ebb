"""Passports: texts that are published with their vectors by a model, so that others can check whether they
use the same model, and map other vectors to it. The texts are called anchors.

A passport is a safetensors file that every command can also read as a space (docs/passport.md): `vectors` (n,
d), `gram` (n, n), `ids`, and a card that names the model. With 32 anchors, the check distinguishes rounding,
a rotation, another prompt and another model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from relcore.base.access import expand_home
from relcore.base.arguments import random_generator
from relcore.base.errors import SpaceError, quote
from relcore.base.kinds import takes_kinds
from relcore.base.records import checked_tensors, damaged_file, file_bytes
from relcore.base.rows import unit_rows
from relcore.base.settings import setting
from relcore.base.writing import write
from relcore.passport.change import PassportChange, change_between
from relcore.passport.two_parts import ShortAxes
from relcore.spaces.ids import RowNumbers
from relcore.spaces.matching import as_space, shared_ids
from relcore.spaces.space import LatentSpace, MatrixLike, ids_of, matrix

if TYPE_CHECKING:
    from PIL.Image import Image

# Layout 2 contains a fingerprint, layout 1 does not.
KEY = "relscope.passport"
SUFFIX = ".safetensors"
LAYOUT = 2
# number of axes of a fingerprint; minimum number of domains
FINGERPRINT = 48
DOMAINS = 3
# numbers of anchors: minimum, maximum
FEWEST_ANCHORS = 8
MOST = 4096


@dataclass(frozen=True)
class PassportCard:
    """The owner's description of the model that made the vectors; fields are "" if unknown."""

    model: str = setting("", metavar="NAME", help="The model that makes the vectors.")
    revision: str = setting("", metavar="NAME", help="The model's revision, or its date at a provider.")
    prompt: str = setting("", metavar="TEXT", verbatim=True, help="The text that is put before each text.")
    pooling: str = setting("", metavar="NAME", help="How the vectors of a text's tokens become one row.")
    normalisation: str = setting("", metavar="NAME", help="How the rows are normalised afterwards.")


@dataclass(frozen=True)
class _Header:
    layout: int
    card: PassportCard
    dtype: str
    anchors_digest: str
    vectors_digest: str
    checksum: str = ""


@dataclass(frozen=True, eq=False)
class Passport:
    """The ids of n anchors (usually the texts themselves), their `vectors` (n, d) float32, and the owner's
    description of the model.

    The `fingerprint`, if there is one, has the 48 axes along which the model's vectors vary least, measured
    on texts of at least three domains. `relcore.check` uses it to name the model of a collection.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import LatentSpace, Passport
    >>> X = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
    >>> passport = Passport.of(LatentSpace(X, [f"text {row}" for row in range(40)]))
    >>> passport.check(X).kind
    'same'
    """

    ids: tuple[str, ...]
    vectors: np.ndarray
    card: PassportCard = PassportCard()
    fingerprint: ShortAxes | None = None

    def __post_init__(self) -> None:
        n = len(self.vectors)
        if not FEWEST_ANCHORS <= n <= MOST:
            raise SpaceError(
                f"a passport: expected {FEWEST_ANCHORS} to {MOST:,} anchors, got {n:,}; choose another number"
            )
        if any("\n" in text or "\r" in text for text in self.ids):
            raise SpaceError("a passport: expected anchors without line breaks, got one with some; mend it")

    @classmethod
    @takes_kinds
    def of(cls, space: MatrixLike, card: PassportCard | None = None) -> Passport:
        """A passport of all rows of a space. Raises a SpaceError for too few or too many rows, and for
        zero vectors."""
        space = as_space(space)
        if (zero := np.flatnonzero(space.norms == 0)).size:
            raise SpaceError(
                f"a passport: expected anchors that the model knows, got zero vectors of"
                f" {quote(space.ids[zero[:3]])}; leave them out"
            )
        vectors = np.ascontiguousarray(space.vectors, np.float32)
        return cls(tuple(space.ids), vectors, card or PassportCard(space.name))

    @cached_property
    def gram(self) -> np.ndarray:
        """The cosines between the anchors, (n, n) float32; no rotation or scale changes them."""
        units = unit_rows(self.vectors).astype(np.float64)
        return (units @ units.T).astype(np.float32)

    @property
    def space(self) -> LatentSpace:
        return LatentSpace(self.vectors, self.ids, name=self.card.model or "passport")

    @takes_kinds
    def with_fingerprint(self, domains: Sequence[MatrixLike]) -> Passport:
        """This passport with a fingerprint of the model. `domains` has rows (n, d) for each of at least three
        domains.
        """
        matrices = [matrix(rows, "domains") for rows in domains]
        if len(matrices) < DOMAINS or {rows.shape[1] for rows in matrices} != {self.vectors.shape[1]}:
            got = ", ".join(f"{len(rows):,} × {rows.shape[1]}" for rows in matrices) or "none"
            raise SpaceError(
                f"fingerprint: expected vectors of {DOMAINS} domains or more, as wide as the anchors, got"
                f" {got}; embed other texts with the same model, too"
            )
        return replace(self, fingerprint=ShortAxes.of(*matrices, most=FINGERPRINT))

    def to_bytes(self) -> bytes:
        anchors = "\n".join(self.ids).encode()
        vectors = np.ascontiguousarray(self.vectors, "<f4")
        tensors = {"vectors": vectors, "gram": self.gram, "ids": np.frombuffer(anchors, np.uint8)}
        digests = hashlib.sha256(anchors).hexdigest(), hashlib.sha256(vectors.data).hexdigest()
        if self.fingerprint is not None:
            tensors |= {name: np.ascontiguousarray(part) for name, part in self.fingerprint._asdict().items()}
        # earlier versions read only layout 1
        layout = 1
        if self.fingerprint is not None:
            layout = LAYOUT
        exact = held_by(vectors).items()
        dtype = next((name for name, rows in exact if rows.all()), "float32")
        return file_bytes(tensors, KEY, _Header(layout, self.card, dtype, *digests))

    @takes_kinds
    def check(self, new: MatrixLike, random_state: int = 0) -> PassportChange:
        random_generator(random_state)
        return check(self, new, random_state)

    @takes_kinds
    def save(self, path: str | Path) -> None:
        path = Path(path)
        if path.suffix.lower() != SUFFIX:
            raise SpaceError(f"{path.name}: expected a file that ends in {SUFFIX}, got another; rename it")
        write(path, self.to_bytes())

    @classmethod
    @takes_kinds
    def load(cls, path: str | Path) -> Passport:
        """Read a passport. Raises a SpaceError for a file that is no passport, is damaged, or has a later
        layout."""
        path = expand_home(path)
        header, tensors = checked_tensors(path, KEY, _Header, LAYOUT, "a passport")
        kinds = {name: (tensor.dtype.kind, tensor.ndim) for name, tensor in tensors.items()}
        plain = {"vectors": ("f", 2), "gram": ("f", 2), "ids": ("u", 1)}
        if kinds not in (plain, plain | {"axes": ("f", 2), "squares": ("f", 1)}):
            raise damaged_file(path.name, "the tensors vectors, gram and ids", quote(sorted(kinds)) or "none")
        vectors = tensors["vectors"]
        anchors = tensors["ids"].tobytes()
        digests = hashlib.sha256(anchors).hexdigest(), hashlib.sha256(vectors.data).hexdigest()
        if digests != (header.anchors_digest, header.vectors_digest):
            raise damaged_file(path.name, "anchors and vectors that match its digests", "others")
        try:
            ids = tuple(anchors.decode().split("\n"))
        except UnicodeDecodeError:
            raise damaged_file(path.name, "anchors in UTF-8", "other bytes") from None
        n, d = vectors.shape
        if len(ids) != n or tensors["gram"].shape != (n, n) or not d:
            raise damaged_file(path.name, f"{n:,} anchors and a Gram matrix of them", f"{len(ids):,} ids")
        passport = cls.of(LatentSpace(vectors, ids, name=path.name), header.card)
        if "axes" not in tensors:
            return passport
        fingerprint = ShortAxes(tensors["axes"], tensors["squares"])
        sound = fingerprint.axes.shape == (d, len(fingerprint.squares)) and len(fingerprint.squares) > 0
        if not sound or not (np.isfinite(fingerprint.axes).all() and (fingerprint.squares > 0).all()):
            raise damaged_file(path.name, f"a fingerprint of axes with {d:,} numbers", "another one")
        return replace(passport, fingerprint=fingerprint)


def picture_anchors(images: Iterable[Image]) -> list[str]:
    """Ids for pictures that are used as anchors: ``sha256:``, then a digest of the width and height (32 bits
    each, little-endian) and the pixels as 8-bit RGB, row by row. So a picture has the same id in any lossless
    format.
    """
    anchors = []
    for image in images:
        rgb = image.convert("RGB")
        content = np.array(rgb.size, "<u4").tobytes() + rgb.tobytes()
        anchors.append(f"sha256:{hashlib.sha256(content).hexdigest()}")
    return anchors


def held_by(X: np.ndarray) -> dict[str, np.ndarray]:
    """For each of the formats float16 and bfloat16, which rows of the float32 array X (n, d) it represents
    exactly: masks (n,) by format.
    """
    with np.errstate(over="ignore"):
        half = (X.astype(np.float16).astype(np.float32) == X).all(axis=1)
    return {"float16": half, "bfloat16": ~(np.ascontiguousarray(X).view(np.uint32) & 0xFFFF).any(axis=1)}


def check(passport: Passport, new: MatrixLike, random_state: int = 0) -> PassportChange:
    """Compare new vectors of a passport's anchors with the vectors in the passport, and name the kind of
    change. `new` is an array (n, e) in the passport's order, or a space with the ids of the anchors.

    Raises
    ------
    SpaceError
        A space with fewer than `FEWEST_ANCHORS` of the anchors; an array whose number of rows is not the
        number of anchors.
    """
    ids, X, Y = paired_anchors(passport, new)
    return change_between(ids, X, Y, len(passport.ids) - len(ids), random_state)


def paired_anchors(passport: Passport, new: MatrixLike) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """The ids of the m anchors that `new` has, their vectors in the passport (m, d), and their vectors in
    `new` (m, e). Raises the same errors as `check`."""
    new = as_space(new)
    by_order = isinstance(ids_of(new), RowNumbers)
    if by_order and len(new) == len(passport.ids):
        new = LatentSpace(new.vectors, passport.ids, name=new.name)
    shared = shared_ids((passport.space, new))
    if len(shared) < FEWEST_ANCHORS:
        if by_order:
            got = f"{len(new):,} rows without ids"
        else:
            got = f"{len(shared)} of their ids"
        raise SpaceError(
            f"{new.name!r}: expected all {len(passport.ids):,} anchors in the passport's order, or at least"
            f" {FEWEST_ANCHORS} of them by id, got {got}; embed the anchors again, or name their ids"
        )
    X = np.asarray(passport.space.vectors[passport.space.rows(shared)])
    Y = np.asarray(new.vectors[new.rows(shared)])
    if not np.linalg.norm(Y, axis=1).all():
        raise SpaceError(f"{new.name!r}: expected vectors of the anchors, got zero vectors; embed them again")
    return tuple(shared), X, Y
