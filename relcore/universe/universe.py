"""Universes: generalised Procrustes analysis maps N spaces into a common space, each by an orthogonal map.

Pairwise Procrustes needs N (N − 1) maps, and the translations A → B → C and A → C give different rows. Here
each space has one map into the common space, and all translations follow from these maps (Gower 1975; Ten
Berge 1977; Achara et al. 2026, arXiv 2602.06205). The place of a row is its position in the common space, by
the map of its space. Its mean place (in the array `consensus`) is the mean over all spaces that have the row.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from relcore.base.access import expand_home, regular_file
from relcore.base.errors import NoCommonId, SpaceError, quote
from relcore.base.kinds import takes_kinds
from relcore.base.numbers import counted, short
from relcore.base.records import need_plain, pack, unpack
from relcore.base.report import Report, Reported, Table
from relcore.base.settings import setting
from relcore.base.text import visible
from relcore.base.writing import write
from relcore.catalog.task import Task
from relcore.engine.engine import Engine
from relcore.engine.threads import one_thread_products
from relcore.represent.estimator import need_finite
from relcore.runs import entries
from relcore.runs.progress_line import long_call, show_step
from relcore.runs.store import Store
from relcore.runs.work import Progress, silent
from relcore.scores.score import ChanceLevel, Score
from relcore.spaces.ids import scored_rows
from relcore.spaces.matching import as_spaces, distinct_names, need_spaces
from relcore.spaces.space import LatentSpace, MatrixLike, matrix
from relcore.spaces.split import row_keys
from relcore.universe.generalised_procrustes import (
    Grid,
    align,
    centred_rows,
    fit_rotations,
    known_rows,
    mean_and_scale,
    mean_place,
)
from relcore.universe.retrieval import FEWEST_ROWS, labels_of_rows, retrieval, scores_of_pairs
from relcore.universe.sentences import circumstances, headline

SUFFIX = ".universe"
MOST_SPACES = 100
MOST_TESTED = 1000
MOST_KEPT = 5000  # number of mean places in a file, which are needed to add spaces
_TESTED = 0.2
_MOST_BYTES = 4 << 30


@dataclass(frozen=True, eq=False)
class FittedMember:
    """A space of a universe, with its map into the common space. A row x is mapped to ((x − mean) / scale) ·
    matrix; if the universe has `unit` True, x is first scaled to length 1.

    Attributes
    ----------
    name, digest : str
        Name and digest of the space.
    matrix : array (d, D) float32
        The map, with orthonormal rows.
    mean : array (d,) float32
    scale : float
        Root mean square length of the centred rows.
    n : int
        Number of rows that the map is fitted on.
    score : Score
        Mean reciprocal rank (MRR) and `top1` of held-out rows. Each searches, among the mean places of all
        held-out rows over the other spaces, its own mean place.
    labelled : bool
        Whether the rows of the space have labels.
    added : bool
        Whether the space was added after the fit.
    """

    name: str
    digest: str
    matrix: np.ndarray
    mean: np.ndarray
    scale: float
    n: int
    score: Score
    added: bool = False
    labelled: bool = False

    def placed(self, X: np.ndarray, unit: bool) -> np.ndarray:
        matrix = self.matrix / np.float32(self.scale)
        if not unit:
            return Engine().map_rows(X, matrix, mean=self.mean)
        # Rows are centred after they are scaled, so the mean is mapped and subtracted last.
        return Engine().map_rows(X, matrix, unit=True, shift=-(self.mean @ matrix))

    def back(self, places: np.ndarray) -> np.ndarray:
        return Engine().map_rows(places, self.matrix.T * np.float32(self.scale), shift=self.mean)


@dataclass(frozen=True, eq=False, repr=False)
class Universe(Reported):
    """Spaces, each with an orthogonal map into a common space, whose dimension D is the width of the widest
    space.

    Attributes
    ----------
    members : tuple of FittedMember
    unit : bool
        Whether rows are scaled to length 1 before they are centred.
    ids, consensus : arrays (m,), (m, D)
        Ids and mean places of at most 5,000 rows that the maps are fitted on. They are used to add spaces.
    test_ids, test_consensus : arrays (t,), (t, D)
        Ids and mean places of at most 1,000 held-out rows.
    scores : N × N of Score or None
        MRR (k = 10) and `top1` of the held-out rows of one space (row of the table), which search the same
        rows in another space (column). None if the two spaces share fewer than 20 held-out rows, and for
        spaces that were added later.
    best_chance : ChanceLevel or None
        The chance level of the largest `top1` among all pairs of spaces.
    same_class : (float, float) or None
        The share of labelled held-out rows whose nearest row in another space has the same label, averaged
        over all pairs of spaces, and its chance level. None without labels, and in files of earlier versions.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import LatentSpace, Universe
    >>> rng = np.random.default_rng(0)
    >>> X, (turn, _) = rng.normal(size=(200, 4)), np.linalg.qr(rng.normal(size=(4, 4)))
    >>> ids = [f"row {i}" for i in range(200)]
    >>> spaces = LatentSpace(X, ids, name="a"), LatentSpace(X @ turn, ids, name="b")
    >>> universe = Universe.fit(spaces, unit=False)
    >>> universe.names, universe.accuracy.tolist()
    (('a', 'b'), [[nan, 1.0], [1.0, nan]])
    >>> bool(np.allclose(universe.translate(X, "a", "b"), X @ turn, atol=1e-5))
    True
    """

    members: tuple[FittedMember, ...]
    unit: bool
    ids: np.ndarray
    consensus: np.ndarray
    test_ids: np.ndarray
    test_consensus: np.ndarray
    scores: Grid
    best_chance: ChanceLevel | None = None
    same_class: tuple[float, float] | None = None

    @classmethod
    @long_call
    def fit(
        cls,
        spaces: Sequence[LatentSpace | MatrixLike],
        *,
        unit: bool = True,
        rows: int = 10_000,
        rounds: int = 30,
        random_state: int = 0,
    ) -> Self:
        """Fit a universe to two or more spaces. Rows are paired by id; rows without ids are paired by row
        number.

        Parameters
        ----------
        unit, rows, rounds, random_state
            As in `UniverseSpec`.
        """
        spec = UniverseSpec(unit, rows, rounds, random_state)
        need_spaces("spaces", spaces)
        named = as_spaces(spaces, [f"space {place}" for place in range(1, len(spaces) + 1)])
        return spec.run(named, report=show_step)

    def __repr__(self) -> str:
        return f"Universe({quote(self.names)}, dimension={self.dimension})"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.members)

    @property
    def dimension(self) -> int:
        return self.consensus.shape[1]

    def headline(self) -> str:
        """How often the nearest row in another model is the same row, with the chance level."""
        return headline(
            self.table(), len(self.members), len(self.test_ids), self.same_class, self.best_chance
        )

    def circumstances(self) -> str:
        """Sentences that describe the scores: the dimension, the number of rows, the interval and the chance
        level."""
        n_fitted = max(member.n for member in self.members)
        return circumstances(self.table(), self.dimension, n_fitted, self.best_chance)

    def report(self, **figures: Any) -> Report:
        """A report with one line per space, which has the `score` of the space."""
        facts = {"spaces": self.names, "dimension": self.dimension, "best_chance": None}
        if best := self.best_chance:
            facts["best_chance"] = {"mean": best.mean, "low": best.low, "high": best.high}
        rows = [["model", "dimensions", "fitted on", "tested on", "same row", "by chance"]]
        for member in self.members:
            share = chance = np.nan
            if member.score.n >= FEWEST_ROWS:
                share = member.score.top1
                chance = 1 / member.score.n
            added = ""
            if member.added:
                added = " (added)"
            matched = f"{short(share)}{added}"
            counts = f"{member.n:,}", f"{member.score.n:,}"
            rows.append((member.name, str(len(member.mean)), *counts, matched, short(chance)))
        tables = [
            Table(
                "pairs",
                self.table(),
                rows,
                caption="Same row: how often a row is nearest to its own mean place in the other models.",
            )
        ]
        return Report(self.headline(), tables, facts, [self.circumstances()], figures)

    def table(self) -> pd.DataFrame:
        """A table with one row for each ordered pair of spaces that has a score. Columns: source, target,
        accuracy, mrr, chance, n, k."""
        rows = [
            (self.names[i], self.names[j], score.top1, float(score), 1 / score.n, score.n, score.k)
            for i, of in enumerate(self.scores)
            for j, score in enumerate(of)
            if score is not None
        ]
        return pd.DataFrame(rows, columns=["source", "target", "accuracy", "mrr", "chance", "n", "k"])

    @property
    def accuracy(self) -> np.ndarray:
        """An array (N, N). Entry i, j is the share of held-out rows of space i whose nearest row in space j
        is the same row; NaN if the pair has no score.
        """
        return np.array(
            [[np.nan if score is None else score.top1 for score in row] for row in self.scores], dtype=float
        )

    @takes_kinds
    def member(self, name: str) -> FittedMember:
        found = next((member for member in self.members if member.name == name), None)
        if found is None:
            raise SpaceError(f"space: expected one of {quote(self.names)}, got {name!r:.80}")
        return found

    @takes_kinds
    def map(self, X: MatrixLike, name: str) -> np.ndarray:
        """Map rows (n, d) of a space into the common space, an array (n, D) float32. Raises a SpaceError for
        an unknown name, a wrong width, and numbers that are not finite.
        """
        member = self.member(name)
        X = matrix(X)
        if X.shape[1] != len(member.mean):
            raise SpaceError(f"{name}: expected rows of width {len(member.mean)}, got {X.shape[1]}")
        places = member.placed(X, self.unit)
        need_finite(places[:, 0])
        return places

    @takes_kinds
    def translate(self, X: MatrixLike, source: str, target: str) -> np.ndarray:
        """Translate rows (n, d_source) of one space into another one, an array (n, d_target) float32. Raises
        as `map`.

        If B is at least as wide as A and `unit` is False, translating A → B → A gives back the same row.
        (With `unit`, a translated row is scaled to length 1 before the next translation.)
        """
        return self.member(target).back(self.map(X, source))

    @takes_kinds
    def add(self, space: LatentSpace) -> Self:
        """The universe with one more space. The maps of the other spaces do not change.

        Raises
        ------
        SpaceError
            The space has fewer than 20 of the rows in `ids` and `test_ids`, or more dimensions than the
            universe.
        """
        if space.dimension > self.dimension:
            raise SpaceError(
                f"{space.name}: expected at most {self.dimension} dimensions, as the universe has, got"
                f" {space.dimension}; fit a new universe with this space"
            )
        name = distinct_names([*(space.with_columns(name=known) for known in self.names), space])[-1]
        rows, places = known_rows(space, self.ids, self.consensus)
        tested, expected = known_rows(space, self.test_ids, self.test_consensus)
        if len(rows) < FEWEST_ROWS or not len(tested):
            raise NoCommonId(
                f"{space.name}: expected {FEWEST_ROWS} rows or more of the universe, and some of its held-out"
                f" rows, got {len(rows)} and {len(tested)}; encode the same items (ids such as"
                f" {quote(self.ids[:2])})"
            )
        mean, scale = mean_and_scale(space.vectors[rows], self.unit, space.name)
        fitted = centred_rows(space.vectors[rows], mean, scale, self.unit)
        rotation, _ = Engine().rotation(Engine().product(fitted.T, places))
        made = FittedMember(
            name,
            space.digest,
            rotation.astype(np.float32),
            mean,
            scale,
            len(rows),
            Score(0, metric="mrr", n=1),
            True,
        )
        score = retrieval(made.placed(space.vectors[tested], self.unit), expected)
        scores = (*((*row, None) for row in self.scores), (None,) * (len(self.members) + 1))
        return replace(self, members=(*self.members, replace(made, score=score)), scores=scores)

    def __post_init__(self) -> None:
        """Raise a SpaceError for contradictory or invalid arrays, which may come from a file."""
        n = len(self.members)
        wide = self.consensus.shape[-1] if self.consensus.ndim == 2 else 0
        shapes = [
            (self.consensus, (len(self.ids), wide)),
            (self.test_consensus, (len(self.test_ids), wide)),
        ]
        for member in self.members:
            width = 0
            if member.mean.ndim == 1:
                width = len(member.mean)
            shapes.append((member.matrix, (width, wide)))
            if not 0 < width <= wide or not 0 < member.scale < np.inf or not np.isfinite(member.mean).all():
                raise SpaceError(
                    f"universe: {member.name!r:.60} expected a mean and a scale above 0, got others"
                )
        for array, shape in shapes:
            if array.shape != shape or array.dtype.kind != "f" or not np.isfinite(array).all():
                raise SpaceError(
                    f"universe: expected finite numbers of shape {shape}, got shape {array.shape}"
                )
        sizes = [len(row) for row in self.scores]
        if len(set(self.names)) < n or n < 2 or sizes != [n] * n:
            raise SpaceError(
                f"universe: expected two spaces or more with distinct names, and a score of each pair, got"
                f" {counted(n, 'space')}, {quote(self.names[:3])}"
            )
        for ids in (self.ids, self.test_ids):
            if ids.ndim != 1 or len({one for one in ids.tolist() if isinstance(one, str)}) < len(ids):
                raise SpaceError(f"universe: expected distinct ids, got others: {quote(ids.ravel()[:3])}")
        # A space whose rows are all guessed pairs has no scored row.
        unscored = (0, 0, 0)
        scores = [member.score for member in self.members]
        scores = [score for score in scores if (score.n, score.top1, float(score)) != unscored]
        scores += [score for row in self.scores for score in row if score is not None]
        for score in scores:
            if score.n < 1 or score.top1 is None or not (0 <= score.top1 <= 1 and 0 <= score <= 1):
                raise SpaceError(
                    "universe: expected scores from 0 to 1 of one row or more, got"
                    f" {float(score)!r:.20}, top1 {score.top1!r:.20}, n {score.n!r:.20}"
                )

    @takes_kinds
    def save(self, path: str | Path) -> None:
        """Write a `.universe` file: safetensors with JSON metadata and checksums, nothing pickled."""
        path = expand_home(path)
        if path.suffix != SUFFIX:
            raise SpaceError(f"{path.name}: expected a name that ends in {SUFFIX!r}, got {path.suffix!r}")
        write(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        arrays, facts = pack(self)
        text = json.dumps({UniverseSpec.kind: facts, "version": UniverseSpec.version}, ensure_ascii=False)
        stream = BytesIO()
        entries.write_into(stream, arrays, text)
        return stream.getvalue()

    @classmethod
    @takes_kinds
    def load(cls, path: str | Path) -> Self:
        """Read a file that `save` wrote. Raises a SpaceError for another kind of file, a damaged file, and a
        file of a later version."""
        path = regular_file(expand_home(path))
        if (size := path.stat().st_size) > _MOST_BYTES:
            raise SpaceError(
                f"{path.name}: expected at most {_MOST_BYTES >> 30} GB, got {size / 2**30:.1f} GB"
            )
        try:
            entry = entries.read(path)
            facts = entry.metadata[UniverseSpec.kind]
            version = entry.metadata["version"]
        except (entries.Damaged, KeyError, TypeError) as error:
            if isinstance(error, entries.Damaged):
                reason = str(error)
            else:
                reason = "another kind of file"
            raise SpaceError(
                f"{path.name}: expected a universe, got {reason:.200}; save or copy it again"
            ) from None
        if version not in (2, UniverseSpec.version):  # layout 2 does not contain `same_class`
            raise SpaceError(
                f"{path.name}: expected layout {UniverseSpec.version}, got {version!r:.20}; use the Relscope"
                " that wrote it"
            )
        need_plain(facts, path.name)
        try:
            return unpack(cls, entry.arrays, facts)
        except SpaceError as error:
            raise SpaceError(f"{path.name}: {error}; save or copy it again") from None
        except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
            got = visible(f"{error!r:.80}")
            raise SpaceError(
                f"{path.name}: expected a whole universe, got {got}; save or copy it again"
            ) from None


@dataclass(frozen=True)
class UniverseSpec(Task[Universe], kind="universe", version=3, title="One space for all models"):
    """The task that maps spaces into a common space, each by an orthogonal map.

    Examples
    --------
    >>> from relcore import UniverseSpec
    >>> UniverseSpec() == UniverseSpec()
    True
    """

    unit: bool = setting(
        True,
        help="Scale rows to length 1 first, as in search by cosine; otherwise lengths are kept.",
    )
    rows: int = setting(10_000, low=FEWEST_ROWS, help="Fit on at most this many rows, drawn at random.")
    rounds: int = setting(
        30, low=1, help="Maximum number of rounds. The fit ends earlier if the maps stop changing."
    )
    random_state: int = setting(0, low=0, help="Random state of the rows that are held out.")

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        n = min(max(map(len, spaces)), self.rows)
        total = sum(space.dimension for space in spaces)
        wide = max(space.dimension for space in spaces)
        pairs = len(spaces) ** 2
        return 0.2 + (n * total**2 + 10 * total**2 * wide) / 4e10 + pairs * (0.01 + wide / 2e4)

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> Universe:
        """
        Raises
        ------
        SpaceError
            Fewer than two spaces; more than 100 spaces; too few shared rows; a space that shares no row with
            the others.
        """
        if not 2 <= len(spaces) <= MOST_SPACES:
            raise SpaceError(f"spaces: expected 2 to {MOST_SPACES}, got {len(spaces)}")
        report(0, 4, "pairing the rows")
        ids, rows = _shared_ids_and_rows(spaces)
        scored = _may_be_scored(spaces, rows)
        train, test = self._split(spaces, ids, scored)
        centres = [
            mean_and_scale(space.vectors[own[train][own[train] >= 0]], self.unit, space.name)
            for space, own in zip(spaces, rows, strict=True)
        ]
        fitted = []
        tested = []
        asked = np.where(scored, rows, -1)[:, test]
        for space, own, own_asked, centre in zip(spaces, rows, asked, centres, strict=True):
            fitted.append(align(space, own[train], *centre, self.unit))
            tested.append(align(space, own_asked, *centre, self.unit))
        present = rows[:, train] >= 0
        test_present = asked >= 0
        report(1, 4, "rotating")
        with one_thread_products():  # with such small matrices, two threads take longer than one
            rotations = fit_rotations(fitted, present, self.rounds, [space.name for space in spaces])
        places = [X @ rotation for X, rotation in zip(fitted, rotations, strict=True)]
        test_places = [X @ rotation for X, rotation in zip(tested, rotations, strict=True)]
        report(2, 4, "scoring held-out rows")
        scores, best, same_class = scores_of_pairs(test_places, test_present, labels_of_rows(spaces, asked))
        members = []
        names = distinct_names(spaces)
        for i, space in enumerate(spaces):
            others, among = mean_place(test_places, test_present, without=i)
            both = test_present[i] & among
            score = retrieval(test_places[i][both], others[both])
            facts = {"n": int(present[i].sum()), "score": score, "labelled": space.labels is not None}
            members.append(FittedMember(names[i], space.digest, rotations[i], *centres[i], **facts))
        kept = np.sort(np.argsort(row_keys(ids[train], "kept", self.random_state))[:MOST_KEPT])
        report(4, 4, "")
        return Universe(
            tuple(members),
            self.unit,
            ids[train][kept],
            mean_place(places, present)[0][kept],
            ids[test],
            mean_place(test_places, test_present)[0],
            scores,
            best,
            same_class,
        )

    def _split(
        self, spaces: Sequence[LatentSpace], ids: np.ndarray, scored: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Split rows into those to fit on and held-out ones, as ascending indices. Hashes of the ids decide,
        so a row stays in its set if another space is added to the fit. `scored` (N, n) is that of
        `_may_be_scored`.
        """
        tested = row_keys(ids, "test", self.random_state) < _TESTED
        keys = row_keys(ids, "queries", self.random_state)
        test = _smallest(np.flatnonzero(tested & (scored.sum(axis=0) >= 2)), keys, MOST_TESTED)
        train = _smallest(np.flatnonzero(~tested), keys, self.rows)
        if len(ids) >= FEWEST_ROWS and scored.sum(axis=0).max() < 2:
            raise NoCommonId(
                f"universe: expected confirmed pairs to score, got {len(ids):,} guessed by Link; confirm"
                " some in Connect, Link"
            )
        if len(ids) < FEWEST_ROWS or not len(test):
            raise NoCommonId(
                f"universe: expected {FEWEST_ROWS} rows or more that two spaces share, got {len(ids)} (ids"
                f" such as {quote(spaces[0].ids[:2])} and {quote(spaces[1].ids[:2])}); encode the same items"
                " with all models"
            )
        return train, test


def _may_be_scored(spaces: Sequence[LatentSpace], rows: np.ndarray) -> np.ndarray:
    """A mask (N, n) of the rows that each space has and that may be scored there. A guessed pair bars the row
    of the space with the guess only, so the other spaces are still compared on it."""
    scored = rows >= 0
    for space, own, mask in zip(spaces, rows, scored, strict=True):
        mask[mask] = scored_rows(space.ids)[own[mask]]
    return scored


def _smallest(rows: np.ndarray, keys: np.ndarray, most: int) -> np.ndarray:
    """At most `most` of these row numbers, those with the smallest keys, ascending."""
    return np.sort(rows[np.argsort(keys[rows], kind="stable")[:most]])


def _shared_ids_and_rows(spaces: Sequence[LatentSpace]) -> tuple[np.ndarray, np.ndarray]:
    """The ids (n,) that at least two spaces share, and the row number of each id in each space, an array (N,
    n); −1 if the row is missing or zero.
    """
    index = spaces[0].index
    for space in spaces[1:]:
        if not index.equals(space.index):
            index = index.append(space.index[~space.index.isin(index)])
    rows = np.stack([space.index.get_indexer(index) for space in spaces])
    for space, own in zip(spaces, rows, strict=True):
        own[np.isin(own, space.zero_rows)] = -1
    shared = (rows >= 0).sum(axis=0) >= 2
    return np.asarray(index, dtype=object)[shared], rows[:, shared]
