"""link: find the rows of two spaces that describe the same items; files of links."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from relcore.base.access import expanded, regular_file
from relcore.base.errors import SpaceError, quote
from relcore.base.libraries import extra
from relcore.base.report import delimited, json_lines
from relcore.base.rows import mean_row
from relcore.base.text import lines_in, read_lines
from relcore.base.writing import replacing, write
from relcore.files.formats import checked_labels
from relcore.files.saving import write_parquet
from relcore.linking.bootstrap import PROMISED, BootstrapResult, Pairs, Round, bootstrap_anchors
from relcore.represent.translation import Affine, Procrustes
from relcore.spaces.ids import GuessedIds
from relcore.spaces.matching import Match, match
from relcore.spaces.space import LatentSpace, MatrixLike, as_space

CONFIRMED = "confirmed"  # the kind of links that a user checked and confirmed
NOT_KEPT = "not kept"  # the kind of links below the promised precision
_LARGEST = 0.9999  # largest precision in a table, because no link is certain
KNOWN = ("seed", "anchor", CONFIRMED)  # pairs of these kinds are seeds of another run
SCORED = ("", "seed", CONFIRMED)  # "" for files without kinds, whose pairs count as known
LINK_FILES = (".parquet", ".tsv", ".csv", ".jsonl")
_ENDS = ("source", "target")
_KINDS = ("kind", "found")  # names of this column in `link`, and in `audit` and earlier versions
_MOST_LINKS = 10_000_000


@dataclass(frozen=True, eq=False)
class Linked:
    """Two spaces, and the result of `link`.

    Attributes
    ----------
    result : BootstrapResult
    verdict, reason : str
        Those of the result.
    """

    source: LatentSpace
    target: LatentSpace
    result: BootstrapResult

    @property
    def verdict(self) -> str:
        return self.result.verdict

    @property
    def reason(self) -> str:
        return self.result.reason

    @cached_property
    def links(self) -> pd.DataFrame:
        """A table with columns source, target, kind and precision, see `links_table`; empty if nothing
        was found."""
        return links_table(self.result)

    @cached_property
    def pair(self) -> Match:
        """The linked rows of both spaces under the ids of the source. Links are guesses, so only the known
        pairs are scored. Raises a SpaceError without a link."""
        kept = self._kept()
        known = [own for own, _ in kept[: self.result.n_seeds]]
        renamed = self.target.take(self.target.rows([other for _, other in kept]))
        ids = GuessedIds.of([own for own, _ in kept], known)
        ids.unlinked = len(self.target) - len(kept)
        return match(self.source, renamed.with_columns(ids=ids))

    @cached_property
    def map(self) -> Procrustes | Affine:
        """The map of source rows (n, d_source) to the target (n, d_target), fitted on the kept links.

        If only seeds are kept, it is `BootstrapResult.rotation`, which is linear if the spaces are not
        linked. Raises a SpaceError without links and seeds.
        """
        alone = len(self.result.kept) == self.result.n_seeds
        if alone and (self.result.n_seeds or self.verdict == "linked") and self.result.rotation is not None:
            X, Y = (space.vectors - mean_row(space.vectors) for space in (self.source, self.target))
            moved = X @ self.result.rotation
            moved *= np.linalg.norm(Y, axis=1).mean() / np.linalg.norm(moved, axis=1).mean()
            kind = Procrustes if self.verdict == "linked" else Affine
            return kind().fit(self.source.vectors, moved + mean_row(self.target.vectors))
        own, other = zip(*self._kept(), strict=True)
        rows = self.source.rows(own), self.target.rows(other)
        return Procrustes().fit(self.source.vectors[rows[0]], self.target.vectors[rows[1]])

    def _kept(self) -> Pairs:
        if not self.result.kept:
            raise SpaceError(f"link: expected one link or more, got none. {self.reason}")
        return self.result.kept


def link(
    source: MatrixLike,
    target: MatrixLike,
    pairs: Sequence[tuple[str, str]] = (),
    *,
    precision: float = PROMISED,
    k: int = 10,
    random_state: int = 0,
    method: Literal["self-learning", "paper"] = "self-learning",
    n_anchors: int | None = None,
    after: Callable[[Sequence[Round]], object] = len,
) -> Linked:
    """Find the rows of two spaces that describe the same items, from a few known pairs or from none.

    Only some rows need a partner, and only the ids in `pairs` are read. The links are guesses, each with an
    estimated precision; the verdict says whether the spaces can be linked at all.

    Parameters
    ----------
    source, target : LatentSpace or array, (n, d_source) and (m, d_target)
        The ids of an array are its row numbers, as text.
    pairs : pairs of (source id, target id)
        Known pairs: none, or at least three.
    precision, k, random_state, method, n_anchors, after
        As in `bootstrap_anchors`; by default the known pairs are the only anchors.

    Raises
    ------
    SpaceError
        Wrong, contradictory or too few pairs.

    Sources: self-learning (Artetxe, Labaka and Agirre 2018); parallel anchors from a few pairs (Cannistraci
    et al. 2023); without pairs also mini-vec2vec (Dar, arXiv 2510.02348).

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import LatentSpace, link
    >>> X = np.random.default_rng(0).normal(size=(400, 10))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(10, 10)))
    >>> first = LatentSpace(X, [f"en{row}" for row in range(400)])
    >>> second = LatentSpace(X @ rotation, [f"fr{row}" for row in range(400)])
    >>> linked = link(first, second, [(f"en{row}", f"fr{row}") for row in range(15)])
    >>> linked.verdict, len(linked.links), np.allclose(linked.map.transform(X), X @ rotation, atol=1e-4)
    ('linked', 400, True)
    >>> linked.links.head(2).to_numpy().tolist()
    [['en0', 'fr0', 'seed', 1.0], ['en1', 'fr1', 'seed', 1.0]]
    """
    first, second = as_space(source, "source"), as_space(target, "target")
    result = bootstrap_anchors(
        first,
        second,
        seeds=pairs,
        n_anchors=max(len(pairs), 1) if n_anchors is None else n_anchors,
        method=method,
        k=k,
        precision=precision,
        random_state=random_state,
        after=after,
    )
    return Linked(first, second, result)


def links_table(result: BootstrapResult, every: bool = False) -> pd.DataFrame:
    """The kept seeds, anchors and other links, best first: source, target, kind ("seed", "anchor" or "link")
    and precision. Precision is the estimated share of correct links down to this one; only seeds have 1. With
    `every`, also the links below the promised precision, of the kind "not kept"."""
    kinds = dict.fromkeys((*result.anchors, *result.kept), "link") | dict.fromkeys(result.anchors, "anchor")
    kinds |= dict.fromkeys(result.anchors[: result.n_seeds], "seed")
    kinds |= dict.fromkeys([pair for pair in result.pairs if every and pair not in kinds], NOT_KEPT)
    precision = dict(zip(result.pairs, result.precision.round(4).tolist(), strict=True))
    rows = [
        (*pair, kind, 1.0 if kind == "seed" else min(precision.get(pair, 0.0), _LARGEST))
        for pair, kind in kinds.items()
    ]
    return pd.DataFrame(rows, columns=[*_ENDS, _KINDS[0], "precision"])


def write_links(path: Path, links: pd.DataFrame) -> None:
    """Write links as .parquet, .tsv, .csv or .jsonl, which `read_links` reads."""
    if path.suffix.lower() == ".parquet":
        with extra():
            import pyarrow as pa
        table = pa.Table.from_pandas(links, preserve_index=False)
        with replacing(path) as stream:
            write_parquet(stream, table.schema, [table])
        return
    if path.suffix.lower() == ".jsonl":
        text = json_lines(links)
    else:
        text = delimited(links, "," if path.suffix.lower() == ".csv" else "\t")
        if "\0" in text:
            raise SpaceError(
                f"{path.name}: expected ids without zero bytes, got one with some; write .parquet or .jsonl"
            )
    write(path, text.encode())


def read_links(path: Path, option: str = "") -> tuple[Pairs, tuple[str, ...]]:
    """The pairs of ids in a file except those of the kind "not kept", and the kind of each pair, "" if the
    file has no kinds.

    A .parquet, .csv or .jsonl, or a .tsv that `write_links` wrote, has the ids in the columns source and
    target, or in its first two; other files have one pair per line, separated by a tab or "=".

    Raises
    ------
    SpaceError
        A missing file, no pair, a line without two ids, empty cells.
    """
    path, where = expanded(path), f"{option}: " if option else ""
    if not path.is_file():
        got = f"{str(path)!r:.200}, where there is none"
        raise SpaceError(f"{where}expected a file of pairs, got {got}; check the spelling")
    suffix = path.suffix.lower()
    if suffix == ".csv" or is_links(path):
        if suffix not in LINK_FILES:
            raise SpaceError(f"{path.name}: expected links in a .tsv file, got {suffix!r}; rename it")
        pairs, kinds = _in_table(path)
    else:
        lines = read_lines(path, "one pair per line")
        try:
            pairs = read_pairs("\n".join(lines))
        except SpaceError as error:
            raise SpaceError(f"{path.name}, {error}") from error
        kinds = ("",) * len(pairs)
    kept = [kind != NOT_KEPT for kind in kinds]
    pairs, kinds = tuple(compress(pairs, kept)), tuple(compress(kinds, kept))
    if not pairs:
        raise SpaceError(f"{path.name}: expected at least one pair, got none; write one pair per line")
    return pairs, kinds


def known_pairs(path: Path, option: str = "") -> Pairs:
    """The known pairs in a file: seeds, anchors and confirmed links; all pairs if the file has no kinds.
    Raises as `read_links`."""
    pairs, kinds = read_links(path, option)
    known = tuple(pair for pair, kind in zip(pairs, kinds, strict=True) if kind in ("", *KNOWN))
    if not known:
        raise SpaceError(
            f"{path.name}: expected pairs of the kinds {quote(KNOWN)}, got none; write {CONFIRMED!r} as the"
            " kind of links that are right"
        )
    return known


def _in_table(path: Path) -> tuple[Pairs, tuple[str, ...]]:
    from relcore.files.items import open_table

    table = open_table([path])
    names = list(table.columns)
    ends = list(_ENDS) if {*_ENDS} <= {*names} else names[:2]
    if len(ends) < 2 or len(table) > _MOST_LINKS:
        got = quote(names) or "none" if len(ends) < 2 else f"{len(table):,} rows"
        raise SpaceError(
            f"{path.name}: expected two columns of ids, source and target, with at most {_MOST_LINKS:,} rows,"
            f" got {got}; name the columns in the first line"
        )
    kind = next((name for name in _KINDS if name in names and ends == [*_ENDS]), None)
    cells = [
        list(map(str, checked_labels(table.read(name, 0, len(table)), f"{path.name}, column {name!r}")))
        for name in (*ends, *filter(None, [kind]))
    ]
    if empty := [row for row, pair in enumerate(zip(*cells[:2], strict=True)) if not all(pair)]:
        raise SpaceError(
            f"{path.name}: expected an id in every cell, got {len(empty)} rows without, first row {empty[0]};"
            " fill it, or leave the row out"
        )
    kinds = tuple(cells[2]) if kind else ("",) * len(cells[0])
    return tuple(zip(*cells[:2], strict=True)), kinds


def is_links(path: Path) -> bool:
    """Whether a file is a table, or its first line names the columns that `link` and `audit` write."""
    if path.suffix.lower() in (".parquet", ".jsonl"):
        return True
    with regular_file(path).open("rb") as stream:
        head = re.split("[\t,\r\n]", stream.read(100).decode("utf-8-sig", "replace").replace('"', ""))
    return tuple(head[:2]) == _ENDS and head[2:3] in [[kind] for kind in _KINDS]


def read_pairs(text: str) -> Pairs:
    """Pairs of ids, one per line, separated by a tab or else by "="; further columns are ignored. Raises
    SpaceError for a line without two ids.
    """
    pairs = []
    for number, line in enumerate(lines_in(text), start=1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in (line.split("\t") if "\t" in line else line.split("=", 1))]
        if len(cells) < 2 or not cells[0] or not cells[1]:
            got = f"{line.strip()!r:.60}"
            raise SpaceError(
                f"line {number}: expected “id of the source = id of the target”, got {got}; mend or remove it"
            )
        pairs.append((cells[0], cells[1]))
    return tuple(pairs)
