"""PanesWidget: the linked panes as an anywidget for Jupyter, VS Code and marimo."""

from __future__ import annotations

import operator
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import anywidget
import numpy as np
import pandas as pd
import traitlets

from relcore.base.errors import SpaceError, quote
from relcore.base.text import encodable
from relcore.figures.scene import Scene
from relcore.figures.style import Style
from relcore.panes.page import hover_columns, part, scene_exportable, script
from relcore.panes.payload import PaneEvent, PaneSettings, ids_digest, payload_of, read_events

_STATIC_DPI = 100  # resolution of the picture in a saved notebook
Draw = Callable[[Sequence[str]], tuple[Scene, np.ndarray]]


class Live(Protocol):
    """The interface of objects that answer the panes while an anchor is dragged."""

    def header(self, anchors: Sequence[str]) -> Mapping[str, Any] | None:
        """What the panes must know to let the user drag these anchors (see `hand.js`). None if they cannot be
        dragged."""

    def answer(self, anchors: Sequence[str], message: bytes) -> bytes:
        """The answer to a message of the panes with these anchors; empty if there is no answer."""

    def spread(self) -> Sequence[str]:
        """A few anchors that are far from each other."""


if TYPE_CHECKING:
    # The type of the value, and the types that can be assigned.
    _Trait = traitlets.TraitType[tuple[Any, ...], Iterable[Any]]
else:
    _Trait = traitlets.TraitType


class _Several(_Trait):
    """A trait that converts any iterable except a text to a tuple."""

    default_value: tuple[Any, ...] = ()

    def __init__(self, what: str, item: Callable[[Any], Any], **settings: Any) -> None:
        super().__init__(**settings)
        self.what: str = what
        self.item: Callable[[Any], Any] = item

    def validate(self, widget: Any, value: Any) -> tuple[Any, ...]:
        try:
            if isinstance(value, str | bytes):
                raise TypeError
            return tuple(map(self.item, value))
        except TypeError as error:
            raise SpaceError(f"{self.name}: expected a list of {self.what}, got {value!r:.80}") from error


class PanesWidget(anywidget.AnyWidget):
    """The widget of the linked panes. Its selection and its anchors can be read, set and observed.

    Parameters
    ----------
    ids : array (n,) of str
    draw : ids of anchors → (Scene, rows)
        A function that returns the scene with these anchors, and the numbers (m,), ascending, of the rows
        that it draws. It raises a SpaceError for anchors that it cannot draw.
    anchors : sequence of ids
    height : int
        Height of all panes together, in pixels.
    link_zoom : bool
        Whether all panes are zoomed together at first.
    live : Live, optional
        An object that answers the panes, so that anchors can be dragged.

    Attributes
    ----------
    selection : tuple of ids
        The ids of the selected rows. Setting it highlights these rows in all panes.
    selected_rows : tuple of int
        The numbers of the selected rows, from 0 to n − 1.
    anchors : tuple of ids
        The ids of the anchors. Setting them draws the relative panes again; zoom and selection do not change.
    """

    _esm = script(part("widget.js"))
    _css = part("panes.css")
    _header = traitlets.Dict().tag(sync=True)
    _events = traitlets.List().tag(sync=True)
    selection: _Several = _Several("ids", str)
    selected_rows: _Several = _Several("row numbers", operator.index)
    anchors: _Several = _Several("ids", str)

    def __init__(
        self,
        ids: np.ndarray,
        draw: Draw,
        *,
        anchors: Sequence[str] = (),
        height: int = 640,
        link_zoom: bool = False,
        live: Live | None = None,
    ) -> None:
        self._live = live
        self._index = pd.Index(ids, dtype=object)
        self._draw = draw
        self._settings = PaneSettings(height=height, link_zoom=link_zoom)
        self._answered = 0
        self._drawn_for = tuple(anchors)
        self._scene, self._drawn_rows = encodable(draw(self._drawn_for))
        header, arrays = self._payload()
        self._have_traits(arrays)
        super().__init__(anchors=self._drawn_for, _header=header, **arrays)
        self.on_msg(self._dragged)

    def __repr__(self) -> str:
        # A saved notebook shows this text where widgets are not available. anywidget cuts it at 110 letters.
        rows = len(self._scene)
        anchors = len(self._scene.anchors)
        return f"PanesWidget of {rows:,} rows and {anchors:,} anchors. Run this cell again to draw it."

    def _repr_mimebundle_(self, **look: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = super()._repr_mimebundle_(**look) or ({}, {})
        # A saved notebook and its export show this picture, because without a kernel the widget is not drawn.
        picture = scene_exportable(self._scene).bytes("png", Style(dpi=_STATIC_DPI))
        return {**data, "image/png": b64encode(picture).decode()}, metadata

    @property
    def scene(self) -> Scene:
        """The scene that the panes show. Its `table()` has the coordinates."""
        return self._scene

    @traitlets.validate("anchors")
    def _drawable(self, proposal: Any) -> tuple[str, ...]:
        # Draw before any change, so that the widget stays as it was if anchors cannot be drawn.
        if proposal.value != self._drawn_for:
            scene, self._drawn_rows = encodable(self._draw(proposal.value))
            self._scene = _with_settings_of(self._scene, scene)
            self._drawn_for = proposal.value
        return proposal.value

    @traitlets.validate("selection")
    def _known_ids(self, proposal: Any) -> tuple[str, ...]:
        if unknown := [row_id for row_id in proposal.value if row_id not in self._index]:
            raise SpaceError(
                f"selection: expected ids of the rows, got {len(unknown)} unknown: {quote(unknown[:3])}"
            )
        return tuple(dict.fromkeys(proposal.value))

    @traitlets.validate("selected_rows")
    def _known_rows(self, proposal: Any) -> tuple[int, ...]:
        n = len(self._index)
        if unknown := [row for row in proposal.value if not 0 <= row < n]:
            raise SpaceError(f"selected_rows: expected row numbers from 0 to {n - 1:,}, got {unknown[0]:,}")
        return tuple(dict.fromkeys(proposal.value))

    @traitlets.observe("selection")
    def _rows_follow(self, change: Any) -> None:
        self.selected_rows = tuple(self._index.get_indexer(pd.Index(change.new, dtype=object)).tolist())

    @traitlets.observe("selected_rows")
    def _ids_follow(self, change: Any) -> None:
        self.selection = tuple(self._index[list(change.new)])
        self._show()

    @traitlets.observe("anchors")
    def _panes_follow(self, change: Any) -> None:
        self._show()

    @traitlets.observe("_events")
    def _receive(self, change: Any) -> None:
        version = ids_digest(self._scene)
        n = len(self._scene)
        events, self._answered = read_events(change.new, version, n, self._answered)
        with self.hold_sync():  # sends a single message, whatever changes the event causes
            for event in events:
                if event.kind in ("anchor", "spread"):
                    self._anchor(event)
                elif event.kind in ("select", "clear", "click"):
                    self.selected_rows = self._drawn_rows[event.rows].tolist()
                elif event.hidden is None:
                    self._scene = replace(self._scene, **{event.kind: getattr(event, event.kind)})
                else:
                    first, *others = event.hidden
                    second = self._scene.second and replace(self._scene.second, hidden=others[0])
                    self._scene = replace(self._scene, hidden=first, second=second)
            self._show()

    def _anchor(self, event: PaneEvent) -> None:
        if event.kind == "spread":
            if self._live:
                self.anchors = tuple(self._live.spread())
            return
        before, now = self._index[self._drawn_rows[event.rows]]
        moved = tuple(now if one == before else one for one in self.anchors)
        if before in self.anchors and len(set(moved)) == len(moved):
            self.anchors = moved

    def _dragged(self, _: Any, content: Any, buffers: Sequence[Any]) -> None:
        name = isinstance(content, dict) and content.get("live")
        if not (self._live and buffers and name == self._live_name):
            return
        if answer := self._live.answer(self._drawn_for, bytes(buffers[0])):
            self.send({"live": name}, [answer])

    @property
    def _live_name(self) -> str:
        return str(hash(self._drawn_for))

    def _payload(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        selected = np.flatnonzero(np.isin(self._drawn_rows, np.array(self.selected_rows, dtype=np.int64)))
        columns = hover_columns(self._scene)
        live: Mapping[str, Any] | None = None
        if self._live:
            live = self._live.header(self._drawn_for)
        if live:
            live = {**live, "name": self._live_name}
        payload = payload_of(
            self._scene,
            version=ids_digest(self._scene),
            answered=self._answered,
            selected=selected,
            files={name: name for name in columns},
            settings=replace(self._settings, live=live),
        )
        return payload.header, {f"_array_{name}": array for name, array in (payload.arrays | columns).items()}

    def _have_traits(self, names: Iterable[str]) -> None:
        """Add a trait for each array that has none yet. When the first anchors are set, new panes with new
        arrays appear."""
        new = [name for name in names if not self.has_trait(name)]
        self.add_traits(**{name: traitlets.Bytes().tag(sync=True) for name in new})
        # `keys`, set by __init__: the names of the traits that are sent to the browser.
        if "keys" in self._trait_values:
            self.keys = [*self.keys, *new]

    def _show(self) -> None:
        header, arrays = self._payload()
        self._have_traits(arrays)
        with self.hold_sync():
            for name, content in arrays.items():
                setattr(self, name, content)
            self._header = header


def _with_settings_of(before: Scene, scene: Scene) -> Scene:
    second = scene.second and before.second and replace(scene.second, hidden=before.second.hidden)
    kept = {name: getattr(before, name) for name in ("hidden", "named", "density", "turn", "stars")}
    return replace(scene, **kept, second=second)
