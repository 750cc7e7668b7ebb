"""Where the names of the points of a diagram are written, so that they do not overlap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

# Pixels of a usual diagram on screen, of a letter, and of a dot with a gap around it. On paper, type is a
# little smaller in relation to the diagram, so what fits on screen fits there, too.
_SIZE = np.array([640.0, 380.0])
_LETTER = 7.3
_LINE = 16.0
_DOT = 10.0
_TEXT = np.array([40.0, 16.0])  # of a text on a line
_MOST_LETTERS = 24
# Costs of a name that lies on another one, on a dot, beyond the edge, and on a line.
_ON_NAME = 40.0
_ON_DOT = 20.0
_OUTSIDE = 20.0
_ON_LINE = 1.0
_SWEEPS = 4
SIDES = ("above", "below", "right", "left", "above right", "above left", "below right", "below left")
_ALONG = (0.5, 0.4, 0.6, 0.3, 0.7)  # places of a text on its line, as shares of its length


def in_pixels(points: np.ndarray) -> np.ndarray:
    """The points (n, 2) of a diagram in pixels from its middle."""
    wide = np.ptp(points, axis=0)
    room = 1.18 * np.maximum(wide, 0.35 * max(float(wide.max()), 1e-9))
    return (points - (points.max(0) + points.min(0)) / 2) * (_SIZE / room).min()


def name_sides(points: np.ndarray, names: Sequence[str], lines: Iterable[tuple[int, int]] = ()) -> list[str]:
    """For each point, the side on which its name is written, one of `SIDES`; "" if it has no room, because
    every side lies on another name.

    Names are moved in turn to their best side, a few times. They avoid, in this order: other names, dots and
    the edge, lines.
    """
    places = in_pixels(points)
    boxes = np.array(
        [[_box(place, len(name), side) for side in SIDES] for place, name in zip(places, names, strict=True)]
    )
    dots = np.hstack([places - _DOT / 2, places + _DOT / 2])
    on_lines = np.concatenate([_dots_of_line(places[i], places[j]) for i, j in lines] or [np.empty((0, 4))])
    chosen = np.zeros(len(names), dtype=int)
    own = np.empty((len(names), len(SIDES)))
    for i in range(len(names)):
        for side in range(len(SIDES)):
            box = boxes[i, side]
            outside = (np.abs(box.reshape(2, 2)) > _SIZE / 2).any()
            own[i, side] = 0.1 * side + _OUTSIDE * outside
            own[i, side] += _ON_DOT * _touched(box, np.delete(dots, i, axis=0))
            own[i, side] += _ON_LINE * min(3, _touched(box, on_lines))
    every = np.arange(len(names))
    for _ in range(_SWEEPS):
        for i in every:
            others = boxes[every, chosen][every != i]
            on_names = [_ON_NAME * _touched(box, others) for box in boxes[i]]
            chosen[i] = int(np.argmin(own[i] + on_names))
    sides = [SIDES[side] for side in chosen]
    placed: list[int] = []
    for i in np.argsort(own[every, chosen], kind="stable").tolist():  # the freest first
        if _touched(boxes[i, chosen[i]], boxes[placed, chosen[placed]]):
            sides[i] = ""
        else:
            placed.append(i)
    return sides


def texts_on_lines(
    points: np.ndarray, names: Sequence[str], sides: Sequence[str], lines: Sequence[tuple[int, int]]
) -> list[float | None]:
    """For each line, where on it a short text is written, as a share of its length from the first point; None
    if every place lies on a dot, a name, or another text."""
    places = in_pixels(points)
    taken = [np.concatenate([place - _DOT, place + _DOT]) for place in places]
    named = zip(places, names, sides, strict=True)
    taken += [_box(place, len(name), side) for place, name, side in named if side]
    found: list[float | None] = []
    for i, j in lines:
        found.append(None)
        for share in _ALONG:
            middle = (1 - share) * places[i] + share * places[j]
            box = np.concatenate([middle - _TEXT / 2, middle + _TEXT / 2])
            if not _touched(box, np.array(taken)):
                taken.append(box)
                found[-1] = share
                break
    return found


def _box(place: np.ndarray, letters: int, side: str) -> np.ndarray:
    """The box of a name beside its point: left, bottom, right, top."""
    x, y = place
    wide = _LETTER * min(letters, _MOST_LETTERS)
    bottom = y - _LINE / 2
    left = x - wide / 2
    if side.startswith("above"):
        bottom = y + _DOT / 2
    elif side.startswith("below"):
        bottom = y - _DOT / 2 - _LINE
    if side == "right":
        left = x + _DOT
    elif side == "left":
        left = x - _DOT - wide
    elif side.endswith("right"):
        left = x
    elif side.endswith("left"):
        left = x - wide
    return np.array([left, bottom, left + wide, bottom + _LINE])


def _dots_of_line(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Points along a line, as boxes without size (m, 4); its ends lie at the dots and do not count."""
    shares = np.linspace(0.06, 0.94, 40)[:, None]
    along = (1 - shares) * start + shares * end
    return np.hstack([along, along])


def _touched(box: np.ndarray, boxes: np.ndarray) -> int:
    """How many of the boxes (m, 4) overlap with a box."""
    return int(np.count_nonzero(overlapping(boxes, box)))


def overlapping(boxes: np.ndarray, box: np.ndarray) -> np.ndarray:
    """For each of the `boxes` (n, 4), whether it overlaps another `box` (4,). The numbers are left, bottom,
    right, top."""
    return ((boxes[:, :2] < box[2:]) & (boxes[:, 2:] > box[:2])).all(axis=1)
