"""The messages between panes and server while an anchor or a slider is dragged. The browser's side is
hand.js.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

MOVE, PROBE, SCORE, SLIDE = range(4)
# minimum number of values in a request; maximum number of further rows
_LEAST = 6
_MOST_EXTRA = 4096


def read_request(message: bytes, n: int) -> np.ndarray | None:
    """The numbers of a request from panes of n rows, an int32 array; None if the message is no request. In
    order: serial number; kind; position of the anchor; position of the row where it is now; row of the pair
    whose similarities are shown (−1 for none); number of drawn rows (0 for all); positions of further
    rows."""
    if len(message) % 4 or not 4 * _LEAST <= len(message) <= 4 * (_LEAST + _MOST_EXTRA):
        return None
    request = np.frombuffer(message, "<i4")
    _, kind, anchor, now_at, watched, n_drawn = request[:_LEAST]
    places = np.array([anchor, now_at, *request[_LEAST:]])
    known = MOVE <= kind <= SCORE and watched >= -1 and 0 <= n_drawn <= n
    if known and (places >= 0).all() and (places < n).all():
        return request
    return None


def maps_answer(
    request: np.ndarray,
    m: int,
    maps: Sequence[bytes],
    near: np.ndarray | Sequence[Sequence[int]] = ((), ()),
    similar: Sequence[float] = (np.nan, np.nan),
) -> bytes:
    """The bytes of an answer to a request, with maps of m rows; see `LiveAnswers.answer`."""
    about = np.array([*request[:2], len(near[0]), m], "<i4").tobytes()
    return b"".join((about, np.array(near, "<i4").tobytes(), np.array(similar, "<f4").tobytes(), *maps))


def sampled_places(n: int, most: int) -> np.ndarray:
    """The positions (most,) of `most` rows among n, at equal steps, as in hand.js."""
    return np.arange(most) * n // most
