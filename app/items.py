"""The sentence or the picture of an id, shown on hover, in the inspector and in tables."""

from __future__ import annotations

import base64
import hashlib
import io
import time
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from app import compute
from app.plain_text import NAME, plain_html
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.row_tables import row_items, texts_at
from relcore.encoders.dataset import Dataset, DatasetSpec, dataset_place
from relcore.encoders.datasets import load_dataset
from relcore.encoders.pictures import png_thumbnail
from relcore.maps.pane_maps import View
from relcore.panes.payload import CRISP, Sheet
from relcore.spaces.matching import Match

if TYPE_CHECKING:
    from PIL.Image import Image

SIDE = 48  # pixels per side of a picture on a sheet, where all pictures of a map lie side by side
MOST_PIXELS = 5000 * SIDE * SIDE
MOST_SECONDS = 12.0  # seconds; a sheet that takes longer to make, such as one of photographs, is left out
LONGEST = 240  # maximum number of characters of a sentence on hover, about three lines
TABLE_PICTURES = 500  # maximum number of rows with a picture in a table
# pixels: height of a table's row; side of its picture
ROW_HEIGHT = 40
PICTURE = 64
_AT_ONCE = 16  # maximum number of pictures in memory at once
_SENTENCE = 90  # maximum number of characters of a sentence in a cell
_STYLE = Path(__file__).parents[1] / "assets" / "rows.css"


def make_sheet(pictures: Iterable[Image], n: int) -> Sheet | None:
    """One file with small pictures of n rows. Returns None if the file would be too large, or if reading
    takes too long."""
    from PIL import Image, ImageOps

    pictures = iter(pictures)
    started = time.perf_counter()
    first = list(islice(pictures, min(n, _AT_ONCE)))
    side = max((max(picture.size) for picture in first), default=SIDE)
    crisp = side <= CRISP
    side = side if crisp else SIDE
    if n * side * side > MOST_PIXELS:
        return None
    columns = int(np.ceil(np.sqrt(n)))
    lines = -(-n // columns)
    grey = all(picture.mode == "L" for picture in first)
    sheet = Image.new("L" if grey else "RGB", (columns * side, lines * side), 0 if crisp else "white")
    for number, picture in enumerate(map(_opaque, chain(first, pictures))):
        if max(picture.size) > side or not crisp:
            picture = ImageOps.contain(picture, (side, side), Image.Resampling.LANCZOS)
        x = number % columns * side
        y = number // columns * side
        sheet.paste(picture, (x + (side - picture.width) // 2, y + (side - picture.height) // 2))
        seconds = time.perf_counter() - started
        # Wait before estimating how long a sheet takes, because the first pictures of a file take longest.
        if seconds > 0.5 and number and number % _AT_ONCE == 0 and seconds * n > MOST_SECONDS * number:
            return None
    content = io.BytesIO()
    kind = "PNG" if crisp else "JPEG"
    if crisp:
        options = {"compress_level": 4}
    else:
        options = {"quality": 85}
    sheet.save(content, kind, **options)
    return Sheet(content.getvalue(), f"image/{kind.lower()}", side, columns, lines, np.arange(n))


def _opaque(picture: Image) -> Image:
    from PIL import Image

    if picture.mode in ("L", "RGB"):
        return picture
    with Image.open(io.BytesIO(png_thumbnail(picture, max(picture.size)))) as shown:
        colored = shown.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", colored.size, "white"), colored).convert("RGB")


def digest_of_bytes(content: bytes) -> str:
    """The digest of all bytes; Streamlit's own covers only a sample of a large file."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


@dataclass(frozen=True, eq=False)
class _Column:
    """A dataset, and the row number of each of its ids."""

    dataset: Dataset

    @cached_property
    def index(self) -> pd.Index:
        return pd.Index(self.dataset.ids, dtype=object)

    def rows(self, ids: Sequence[str]) -> np.ndarray:
        """Row numbers (m,) of these ids; −1 for an id that the dataset lacks."""
        return self.index.get_indexer(pd.Index(list(ids), dtype=object))

    def items(self, rows: np.ndarray) -> Iterator:
        """The items of these rows, whose numbers ascend. Consecutive rows are read together."""
        for run in np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1):
            for start in range(0, len(run), _AT_ONCE):
                part = run[start : start + _AT_ONCE]
                yield from self.dataset.items(int(part[0]), int(part[-1]) + 1)

    def texts(self, ids: Sequence[str]) -> list[str]:
        try:
            return [" ".join(text.split()) for text in texts_at(self.dataset, self.rows(ids))]
        except SpaceError:
            return [""] * len(ids)


class Items:
    """Texts and pictures by id, decoded when they are needed and then cached.

    If the spaces come from two columns of one table, there are two datasets. If items are missing, `problem`
    says why.
    """

    def __init__(self, datasets: Sequence[Dataset], problem: str = "") -> None:
        self.problem = problem
        self._texts = [_Column(dataset) for dataset in datasets if dataset.kind == "texts"]
        self._pictures = next((_Column(dataset) for dataset in datasets if dataset.kind == "images"), None)
        self.has_texts = bool(self._texts)
        self.has_pictures = self._pictures is not None
        # Single pictures are cached, so adding an anchor reads one picture instead of hundreds.
        self.picture = lru_cache(maxsize=4096)(self._picture)

    def texts(self, ids: Sequence[str]) -> list[str]:
        """The text of each id on one line; it is "" if the id has none. If the texts come from two columns,
        each id has two lines."""
        columns = [column.texts(ids) for column in self._texts] or [[""] * len(ids)]
        return ["\n".join(filter(None, dict.fromkeys(texts))) for texts in zip(*columns, strict=True)]

    def _picture(self, identifier: str, size: int) -> str:
        """The picture as a data URI; its longer side has `size` pixels. Returns "" if the picture cannot be
        read."""
        row = -1
        if self._pictures:
            row = int(self._pictures.rows([identifier])[0])
        if row < 0:
            return ""
        try:
            content = png_thumbnail(self._pictures.dataset.item(row), size)
        except SpaceError:  # a damaged picture must not break the page
            return ""
        return f"data:image/png;base64,{base64.b64encode(content).decode()}"

    def pictures(self, ids: Sequence[str], size: int) -> list[str]:
        """The `_picture` of each id. They are read in the order of the dataset, which is faster."""
        if self._pictures:
            order = np.argsort(self._pictures.rows(ids))
        else:
            order = range(len(ids))
        pictures = {ids[i]: self.picture(ids[i], size) for i in order}
        return [pictures[identifier] for identifier in ids]

    def find(self, pair: Match, query: str) -> tuple[str, ...]:
        """Ids whose text contains the query, or whose label or id equals it. Case does not matter."""
        wanted = " ".join(query.casefold().split())
        if pair.source.labels is not None:
            labels = pair.source.labels
        else:
            labels = [""] * len(pair)
        rows = ()
        if wanted:
            rows = zip(pair.ids, labels, self.texts(pair.ids), strict=True)
        return tuple(
            identifier
            for identifier, label, text in rows
            if wanted in (identifier.casefold(), label.casefold()) or wanted in text.casefold()
        )

    def sheet(self, ids: Sequence[str]) -> Sheet | None:
        """One sheet of small pictures, see `make_sheet`. Returns None if an id has no picture."""
        rows = self._pictures.rows(ids)
        if not len(rows) or rows.min() < 0:
            return None
        order = np.argsort(rows)
        try:
            sheet = make_sheet(self._pictures.items(rows[order]), len(rows))
        except SpaceError:
            return None
        if sheet is None:
            return None
        return replace(sheet, cells=np.argsort(order))


def items_of(workspace: Workspace) -> Items | None:
    """The texts or pictures behind the compared spaces, from their dataset or from columns of their files.
    Returns None if there are none."""
    specs = dict.fromkeys(map(_with_items, (workspace.source, workspace.target)))
    specs.pop(None, None)
    return _items(tuple(specs)) if specs else None


def _with_items(spec: SpaceSpec) -> SpaceSpec | DatasetSpec | None:
    """The file or the dataset that has the texts or pictures of a space; None if there is none."""
    if spec.source == "file" or spec.rows_of != spec:
        return spec
    return spec.dataset


def _stamp(spec: DatasetSpec | SpaceSpec) -> Hashable:
    """The modification times of the files, or the reason why this session may not read them."""
    try:
        if isinstance(spec, SpaceSpec):
            return compute.stamp(spec)
        path = dataset_place(spec)
    except SpaceError as error:
        return str(error)
    if path and path.exists():
        return path.stat().st_mtime_ns
    return None


@compute.cached(8, "Reading the dataset …", key=lambda specs: (specs, tuple(map(_stamp, specs))))
def _items(specs: tuple[DatasetSpec | SpaceSpec, ...]) -> Items | None:
    datasets = []
    problem = ""
    for spec in specs:
        try:
            of_rows = isinstance(spec, SpaceSpec)
            if of_rows:
                datasets += row_items(spec, compute.load_space(spec))
            else:
                datasets += [load_dataset(spec)]
        except SpaceError as error:  # vectors can be explored without texts and pictures
            problem = str(error)
    if datasets or problem:
        return Items(datasets, problem)
    return None


def with_items(items: Items | None, table: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A copy of a table with pictures or sentences before its column "id", and the arguments for
    `st.dataframe`."""
    look = {"column_config": {}}
    if items is not None and items.has_texts:
        table = table.assign(text=items.texts(list(table["id"])))
        look["column_config"]["text"] = st.column_config.TextColumn(width="large")
    if items is not None and items.has_pictures:
        pictures = items.pictures(list(table["id"].head(TABLE_PICTURES)), PICTURE)
        table = table.assign(picture=pictures + [""] * (len(table) - len(pictures)))
        look["column_config"]["picture"] = st.column_config.ImageColumn(width="small")
        look["row_height"] = ROW_HEIGHT
    order = [column for column in ("number", "picture", "text") if column in table]
    return table[[*order, *(column for column in table if column not in order)]], look


@compute.cached(12)
def hover_columns(
    pair: Match, drawn: View, items: Items | None, label: bool
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Two arrays with an entry for each drawn row: its text, and a note with its count (and its label if
    `label`). None instead of an array without content."""
    space = pair.source
    rows = drawn.rows
    texts = None
    parts = []
    if items is not None and items.has_texts:
        texts = [cut(text) for text in items.texts(space.ids[rows])]
    if label and space.labels is not None:
        parts.append([" ".join(label.split()) for label in space.labels[rows]])
    if space.counts is not None:
        parts.append([f"{count:,} times" for count in space.counts[rows].tolist()])
    notes = None
    if parts:
        notes = [" · ".join(filter(None, part)) for part in zip(*parts, strict=True)]
    return _read_only(texts), _read_only(notes)


def _read_only(texts: list[str] | None) -> np.ndarray | None:
    """The texts as a read-only array, so that the panes prepare them only once."""
    if texts is None:
        return None
    column = np.array(texts, dtype=object)
    column.flags.writeable = False
    return column


def cut(text: str, longest: int = LONGEST) -> str:
    if len(text) <= longest:
        return text
    return text[:longest].rsplit(" ", 1)[0].rstrip(",;:") + " …"


def rows_html(items: Items | None, ids: Sequence[str]) -> list[str]:
    """Each id as HTML: its picture, else its sentence, else the id itself."""
    none = [""] * len(ids)
    pictures = none
    if items is not None and items.has_pictures:
        pictures = items.pictures(ids, PICTURE)
    texts = none
    if items is not None and items.has_texts:
        texts = items.texts(ids)
    return list(map(_row_html, ids, pictures, texts))


def _row_html(identifier: str, picture: str, text: str) -> str:
    if picture:
        return f'<img src="{picture}" alt="{plain_html(identifier, NAME)}">'
    if text:
        return f"<b>{plain_html(cut(text, _SENTENCE), NAME)}</b>"
    return f"<b>{plain_html(identifier, NAME)}</b>"


def found_html(shown: str, same: bool, alike: bool) -> str:
    """A table cell with a row that a search found. `same` marks the row that was sought, `alike` a row with
    the same label."""
    kind = "other"
    if alike:
        kind = "alike"
    if same:
        kind = "same"
    return f'<td class="{kind}">{shown}</td>'


def draw_rows(tables: str) -> None:
    """Draw HTML tables with cells of `found_html`, and a legend of their colours."""
    text = "Green: the right row. Red: another row."
    if 'class="alike"' in tables:
        text += " No colour: another row, of the same label."
    st.html(_STYLE)
    st.html(f'<div class="relscope-rows">{tables}<p>{text}</p></div>')


def sheet_of(pair: Match, drawn: View, items: Items | None) -> Sheet | None:
    """A sheet of small pictures of the drawn rows. If the pictures of all rows fit on one sheet, every view
    shares it."""
    if items is None or not items.has_pictures:
        return None
    with st.spinner("Reading the pictures …"):  # the spinner of the cache would cover the old maps
        if len(pair) * CRISP * CRISP <= MOST_PIXELS and (whole := _sheet(items, pair, None)):
            return replace(whole, cells=whole.cells[drawn.rows])
        if len(drawn.rows) < len(pair):
            return _sheet(items, pair, drawn)
        return None


@compute.cached(6)
def _sheet(items: Items, pair: Match, drawn: View | None) -> Sheet | None:
    if drawn is None:
        ids = pair.ids
    else:
        ids = pair.ids[drawn.rows]
    return items.sheet(ids)
