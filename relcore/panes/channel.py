"""The requests of panes while an anchor or a slider is dragged, and the bytes of the answers; hand.js is the
other end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

MOVE, PROBE, SCORE, SLIDE = range(4)
_LEAST, _MOST_EXTRA = 6, 4096  # numbers in a request: at least this many, and at most this many further rows


def read_request(message: bytes, n: int) -> np.ndarray | None:
    """The numbers of a request by panes of n rows, int32. In order: serial number, kind, the places of the
    anchor and of the row where it is now, the row of the pair whose similarities are shown or −1, the number
    of drawn rows or 0 for all, and the places of further wanted rows. None for any other message.
    """
    if len(message) % 4 or not 4 * _LEAST <= len(message) <= 4 * (_LEAST + _MOST_EXTRA):
        return None
    request = np.frombuffer(message, "<i4")
    places = request[[2, 3, *range(_LEAST, len(request))]]
    known = MOVE <= request[1] <= SCORE and 0 <= request[5] <= n and request[4] >= -1
    return request if known and (places >= 0).all() and (places < n).all() else None


def maps_answer(
    request: np.ndarray,
    m: int,
    maps: Sequence[bytes],
    near: np.ndarray | Sequence[Sequence[int]] = ((), ()),
    similar: Sequence[float] = (np.nan, np.nan),
) -> bytes:
    """The answer to a request with maps of m rows, see `LiveAnswers.answer`."""
    about = np.array([*request[:2], len(near[0]), m], "<i4").tobytes()
    return b"".join((about, np.array(near, "<i4").tobytes(), np.array(similar, "<f4").tobytes(), *maps))


def sampled_places(n: int, most: int) -> np.ndarray:
    """The positions (most,) of `most` of n rows at equal steps, as in hand.js."""
    return np.arange(most) * n // most
