"""`PoleAxis`, the task that places rows between two poles in two spaces, and `axis`, the function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relcore.axis.places import AxisPlaces, agreement_on_axis, places_on_axis, pole_rows
from relcore.base.arguments import need_ids
from relcore.base.errors import SpaceError, quote
from relcore.base.settings import setting
from relcore.catalog.task import Task
from relcore.runs.progress_line import long_call, show_step
from relcore.runs.store import Store
from relcore.runs.work import Progress, silent
from relcore.spaces.matching import as_pair, distinct_names, known_rows, match
from relcore.spaces.space import LatentSpace, MatrixLike
from relcore.spaces.split import smallest_keys

FEWEST_ROWS = 10
_MOST_COMPARED = (
    5000  # maximum number of rows on which random axes are compared; then ρ is exact to about .01
)
_MOST_IN_POLE = 100  # maximum number of rows in a pole of a random axis


@dataclass(frozen=True)
class PoleAxis(Task[AxisPlaces], kind="axis", version=1, title="Axis between two poles"):
    """The task that places the rows of two spaces on the axis between two poles.

    Attributes
    ----------
    start, end : tuple of str
        The ids of the rows of each pole.
    start_name, end_name : str
        What the result calls each pole, such as the class of its rows. "" for a name made of its ids.

    Examples
    --------
    >>> from relcore import PoleAxis
    >>> PoleAxis(("he", "him"), ("she", "her")).random_axes
    200
    """

    start: tuple[str, ...]
    end: tuple[str, ...]
    random_axes: int = setting(
        200,
        low=20,
        high=2000,
        label="Random axes",
        help="Number of axes between random rows to compare with.",
    )
    random_state: int = setting(0, low=0, help="Random state of the random axes.")
    start_name: str = setting(
        "", option="from-name", metavar="NAME", help="What the result calls the first pole, such as a class."
    )
    end_name: str = setting(
        "", option="to-name", metavar="NAME", help="What the result calls the other pole."
    )

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        n = min(len(space) for space in spaces)
        width = sum(space.dimension for space in spaces)
        compared = min(n, _MOST_COMPARED)
        return 0.05 + 2e-9 * n * width + 4e-7 * compared * self.random_axes

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> AxisPlaces:
        """
        Raises
        ------
        SpaceError
            A pole names a row that a space lacks; a row is in both poles; the poles are the same point; fewer
            than 10 other rows.
        """
        pair = match(*known_rows(list(spaces)))
        sides = (pair.source, pair.target)
        start = pole_rows(pair.source, self.start, "from")
        end = pole_rows(pair.source, self.end, "to")
        both = np.intersect1d(start, end)
        if len(both):
            raise SpaceError(
                f"axis: expected poles without common rows, got {quote(pair.ids[both[:3]])} in both; remove"
                " them from one"
            )
        own = np.concatenate([start, end])
        if len(pair) - len(own) < FEWEST_ROWS:
            raise SpaceError(
                f"axis: expected {FEWEST_ROWS} rows or more besides the poles, got {len(pair) - len(own)};"
                " choose spaces with more common rows"
            )
        report(0, 2, "placing the rows")
        places = np.stack([places_on_axis(space.vectors, start, end) for space in sides])
        poles = np.zeros(len(pair), dtype=np.int64)
        poles[start] = -1
        poles[end] = 1
        report(1, 2, "comparing with random axes")
        first, second = distinct_names(sides)
        return AxisPlaces(
            names=(first, second),
            ids=tuple(map(str, pair.ids)),
            start=tuple(map(str, pair.ids[start])),
            end=tuple(map(str, pair.ids[end])),
            places=places,
            poles=poles,
            agreement=agreement_on_axis(places, own),
            random_agreement=self._random_agreement(sides, len(start), len(end)),
            start_name=self.start_name,
            end_name=self.end_name,
        )

    def _random_agreement(
        self, sides: tuple[LatentSpace, LatentSpace], n_start: int, n_end: int
    ) -> np.ndarray:
        """ρ (r,) of axes between random poles with as many rows as the poles have, in ascending order.

        Of many rows, a sample is placed on them. An axis between equal vectors is left out.
        """
        n = len(sides[0])
        most = max(1, min(_MOST_IN_POLE, n // 4))
        n_start = min(n_start, most)
        n_end = min(n_end, most)
        compared = smallest_keys(n, _MOST_COMPARED, "axis", self.random_state)
        generator = np.random.default_rng(self.random_state)
        drawn = [generator.choice(n, n_start + n_end, replace=False) for _ in range(self.random_axes)]
        on_axes = []  # per space, the places of the compared rows on all axes, up to a shift and a scale
        for space in sides:
            directions = np.stack(
                [
                    space.vectors[rows[n_start:]].mean(axis=0) - space.vectors[rows[:n_start]].mean(axis=0)
                    for rows in drawn
                ]
            )
            on_axes.append(space.vectors[compared] @ directions.T)
        places = np.stack(on_axes)
        found = []
        for number, rows in enumerate(drawn):
            inside = np.flatnonzero(np.isin(compared, rows))
            found.append(agreement_on_axis(places[:, :, number], inside).value)
        known = np.array(found)
        return np.sort(known[np.isfinite(known)])


@long_call
def axis(
    source: MatrixLike,
    target: MatrixLike,
    start: str | Sequence[str],
    end: str | Sequence[str],
    *,
    random_axes: int = 200,
    random_state: int = 0,
) -> AxisPlaces:
    """Place each row between two poles in two spaces, and say how well the spaces agree.

    Parameters
    ----------
    source, target : matrix (n, d) in any form of `relcore.spaces.space.matrix`
        The two spaces, whose rows are paired by id.
    start, end : text or texts
        The id of each pole's row. A pole of several rows is their mean.
    random_axes : int
        Number of axes between random rows with whose ρ that of this axis is compared.

    Raises
    ------
    SpaceError
        See `PoleAxis.run`.

    Examples
    --------
    >>> from relcore import axis, load_words
    >>> names = "word2vec-novels", "fasttext-novels"
    >>> first, second = (load_words(name, limit=2000) for name in names)
    >>> found = axis(first, second, start="bad", end="good")
    >>> found.agreement.n, found.agreement.value > 0.5
    (1998, True)
    """
    first, second = as_pair(source, target)
    poles = []
    for name, pole in (("start", start), ("end", end)):
        ids = [pole] if isinstance(pole, str) else need_ids(name, pole)
        poles.append(tuple(ids))
    task = PoleAxis(poles[0], poles[1], random_axes, random_state)
    return task.run([first, second], report=show_step)
