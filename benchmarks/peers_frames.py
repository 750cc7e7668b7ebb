"""What a page shows, frame by frame: when points first appear, and when the picture is at rest."""

from __future__ import annotations

import base64
import io
import time
from typing import Any

import numpy as np
from PIL import Image

QUIET = 2.0  # seconds without a change
CHANGED = 24  # of 255
LEAST_INK = 0.01
_BUSY = 0.5  # seconds in which the page did not answer


class Frames:
    """Frames of a page from now on, as Chromium sends them whenever something changes."""

    def __init__(self, page: Any) -> None:
        self._page, self._session = page, page.context.new_cdp_session(page)
        self._frames: list[tuple[float, bytes]] = []
        self._session.on("Page.screencastFrame", self._take)
        size = page.viewport_size
        self._scale = 0.5
        most = {"maxWidth": size["width"] // 2, "maxHeight": size["height"] // 2}
        self._session.send("Page.startScreencast", {"format": "png", "everyNthFrame": 1, **most})

    def _take(self, frame: dict) -> None:
        self._frames.append((frame["metadata"]["timestamp"], frame["data"]))
        self._session.send("Page.screencastFrameAck", {"sessionId": frame["sessionId"]})

    def close(self) -> None:
        self._session.send("Page.stopScreencast")
        self._session.detach()

    def at_rest(self, find_box: Any, since: float, seconds: float = 90) -> tuple[float, float]:
        """Seconds from `since` to the first frame with half of what is drawn in the end, and to the last
        change after it.

        `find_box()` is the place of the picture on the page, None while there is none.

        Raises
        ------
        TimeoutError
            Nothing was drawn or changed, or it was never at rest.
        """
        until, seen, pictures, box = time.time() + seconds, 0, [], None
        quiet_from = since
        while time.time() < until:
            self._page.wait_for_timeout(100)
            asked = time.time()
            found = find_box()
            if time.time() - asked > _BUSY:
                quiet_from = time.time()  # the page was at work, and may draw only now
            if found != box:  # it has moved: all frames are looked at again
                box, seen, pictures = found, 0, []
            if box is None:
                continue
            for at, data in self._frames[seen:]:
                picture = self._cut(data, box)
                if not pictures or np.abs(picture - pictures[-1][1]).max() > CHANGED:
                    pictures.append((at, picture))
            seen = len(self._frames)
            changed = pictures[-1][0] if pictures else since
            if time.time() - max(changed, quiet_from) > QUIET and changed > since:
                last = inked(pictures[-1][1])
                if last.mean() > LEAST_INK:
                    first = next(
                        at
                        for at, picture in pictures
                        if at > since and (inked(picture) & last).sum() > last.sum() / 2
                    )
                    return first - since, changed - since
        raise TimeoutError(f"the picture was not drawn and at rest after {seconds:.0f} s")

    def _cut(self, data: str, box: dict[str, float]) -> np.ndarray:
        picture = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("L"), dtype=np.int16)
        left, top = (int(box[name] * self._scale) for name in ("x", "y"))
        right, bottom = (int((box[a] + box[b]) * self._scale) for a, b in (("x", "width"), ("y", "height")))
        return picture[max(top, 0) : bottom, max(left, 0) : right]


def inked(picture: np.ndarray) -> np.ndarray:
    """The pixels that differ from the background, which is the most frequent grey."""
    return np.abs(picture - np.bincount(picture.ravel()).argmax()) > CHANGED
