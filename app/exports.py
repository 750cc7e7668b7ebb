"""The export menu. Every figure can be saved as an interactive page, a print file, a picture, numbers or a
recipe."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import messages, session
from app.page_settings import menu
from app.plain_text import plain
from relcore.base.access import all_uploads, is_shared
from relcore.base.errors import SpaceError
from relcore.base.numbers import and_list
from relcore.base.records import is_absolute, last_part, paths_of, without_paths
from relcore.compare.notebook import how_to_open
from relcore.export.atlas import NEIGHBOURS
from relcore.figures.export import MEDIA_TYPES, Exportable
from relcore.figures.style import COLUMN, DARK, LIGHT, PAGE, Style, Theme

# Kind of export → its file formats, and a sentence about them.
_GROUPS = {
    "Picture": (
        {"html": "HTML", "pdf": "PDF", "svg": "SVG", "png": "PNG"},
        "HTML: interactive, works offline. PDF: for papers. SVG: to edit. PNG: for slides.",
    ),
    "Numbers": (
        {"csv": "CSV", "tex": "LaTeX", "parquet": "Embedding Atlas"},
        "CSV: the drawn numbers, with one line for each point, bar or cell.",
    ),
    "Repeat": (
        {"json": "Recipe", "py": "Python script"},
        "Recipe: all settings; the command below draws the figure again from it, in the folder where you"
        " saved it. Python script: the same as code. Both read your data files again. They do not keep a"
        " selection or pairs of Link."
        " On another processor, maps by UMAP and t-SNE have other coordinates with the same neighbours.",
    ),
}
_FAILED = "relscope.failed-exports"
_ANY_FOLDER = "FOLDER"  # stands for a folder that the app does not know


def theme() -> Theme:
    if st.context.theme.type == "dark":
        return DARK
    return LIGHT


def chart(
    figure: Any,
    key: str,
    picked: Callable[[Sequence[Mapping[str, Any]]], None] | None = None,
) -> None:
    """Draw a Plotly figure with its alternative text. `picked` gets the points that the user clicks."""
    alt = str((figure.layout.meta or {}).get("alt", ""))
    clicks = {}
    if picked:
        clicks = {"on_select": _each_click_once(picked, key), "selection_mode": "points"}
    # Plotly's toolbar would cover the titles. Without the toolbar, a double click still resets the axes.
    st.plotly_chart(figure, theme=None, key=key, config={"displayModeBar": False}, alt=alt, **clicks)


def _each_click_once(picked: Callable[[Sequence[Mapping[str, Any]]], None], key: str) -> Callable[[], None]:
    """A callback of a chart that hands on each click once.

    Streamlit may report a click twice. If the click replaces the chart, and a fragment such as the progress
    of a job is drawn again before the browser has the new chart, the browser sends the same click again.
    """
    answered: list[Any] = [None]

    def answer() -> None:
        points = st.session_state[key].selection.points
        if points != answered[0]:
            answered[0] = points
            picked(points)

    return answer


def figure(drawn: Exportable, key: str, bar: str = "") -> None:
    """Draw a figure and its export bar. `bar` is the key of the bar, by default the first part of `key`."""
    chart(drawn.interactive(theme()), key)
    export_bar(drawn, bar or key.partition(".")[0])


def download(label: str, data: Any, name: str, media: str, key: str, **look: Any) -> None:
    """Draw a button that downloads a file without another run of the page. `data` is the content, or a
    function that returns it later, with the rights of this session."""
    if callable(data):
        data = session.with_rights(data)
    look = {"icon": ":material/download:", "on_click": "ignore"} | look
    st.download_button(label, data, name, media, key=key, **look)


def export_bar(
    figure: Exportable,
    key: str,
    atlas: Callable[[], bytes] | None = None,
    scores: Callable[[], Exportable] | None = None,
) -> None:
    """Draw the export menu of a figure. Only the maps of Explore have the last two: `atlas` returns their
    rows as a table for Embedding Atlas, `scores` the figure of their scores."""
    shown = theme()  # another thread makes the files and cannot read the page's theme
    with menu("Export", f"export-{key}", icon=":material/download:", type="tertiary") as is_open:
        if is_open:
            _formats(figure, key, shown, atlas, scores)
        else:
            st.space(320)  # room for the menu to open below


@cache
def _import_paper() -> None:
    """Import Matplotlib once, in another thread, while the user reads the menu. The import takes seconds, and
    browsers may block a download that starts so long after its click."""
    Thread(target=import_module, args=("relcore.figures.paper_charts",), daemon=True).start()


def _formats(
    figure: Exportable,
    key: str,
    shown: Theme,
    atlas: Callable[[], bytes] | None,
    scores: Callable[[], Exportable] | None,
) -> None:
    _import_paper()
    formats = st.container(key=f"formats-{key}")  # above the settings of the formats
    with st.expander("Print style", icon=":material/tune:"):
        style = _style_choosers(key)
        full_paths = figure.recipe != without_paths(figure.recipe) and st.toggle(
            "Include full paths",
            key=f"export-paths-{key}",
            help=(
                "The recipe inside each file names your data files. Turn this on to include their"
                " folders, which others can read."
            ),
            persist_state="session",
        )
    lacks = {"tex": figure.latex, "json": figure.recipe, "py": figure.recipe, "parquet": atlas}
    failed = st.session_state.setdefault(_FAILED, {})
    for title, (kinds, about) in _GROUPS.items():
        kinds = {kind: label for kind, label in kinds.items() if lacks.get(kind, True) is not None}
        if not kinds:
            continue
        row = formats.container(
            key=f"formats-{key}-{title[:3]}", horizontal=True, vertical_alignment="center", gap="small"
        )
        row.markdown(f"**{title}**", width=96)
        for kind, label in kinds.items():
            make = partial(figure.bytes, kind, style=style, theme=shown, full_paths=full_paths)
            media = MEDIA_TYPES.get(kind, "application/vnd.apache.parquet")
            build = make
            if kind == "parquet":
                build = atlas
            made = partial(_export_bytes, failed, label, build)
            with row:
                download(label, made, figure.filename(kind), media, f"export-{key}-{kind}", icon=None)
        if atlas and title == "Numbers":
            if scores:
                with row:
                    _latex_of_scores(scores(), key)
            about += " LaTeX: the scores. Embedding Atlas: a table for this free viewer of large maps."
        formats.caption(about)
        if title == "Repeat":
            _redraw_command(figure, formats)
    if atlas:
        with formats.expander("How to open the table in Embedding Atlas", icon=":material/terminal:"):
            st.caption(f"It has all columns, both maps and each row's {NEIGHBOURS} nearest rows. Open it by:")
            st.code(how_to_open(figure.filename("parquet")), language=None, wrap_lines=True)
    with formats:
        _say_what_failed(failed)


def _redraw_command(figure: Exportable, place: DeltaGenerator) -> None:
    command = redraw_command(figure)
    place.code(command, language=None, wrap_lines=True)
    if _ANY_FOLDER in command:
        files = dict.fromkeys(last_part(path) for path in paths_of(figure.recipe) if is_absolute(path))
        place.caption(f"{_ANY_FOLDER}: the folder where you keep {plain(and_list(files))}.")


def redraw_command(figure: Exportable) -> str:
    """The command that draws the figure again from its recipe, run in the folder of the recipe. It names the
    folders of the data files, except those of a shared app, which its users do not have, and those of
    uploads, which are removed. It does not replace an exported PDF."""
    command = ["relscope", "figure", figure.filename("json")]
    for folder in dict.fromkeys(_folder_of(path) for path in paths_of(figure.recipe) if is_absolute(path)):
        command += ["--data", folder]
    return shlex.join([*command, "-o", f"{Path(figure.filename('pdf')).stem}-again.pdf"])


def _folder_of(path: str) -> str:
    if is_shared() or Path(path).is_relative_to(all_uploads()):
        return _ANY_FOLDER
    return str(Path(path).parent)


def _latex_of_scores(printed: Exportable, key: str) -> None:
    made = partial(_export_bytes, st.session_state[_FAILED], "LaTeX", partial(printed.bytes, "tex"))
    download("LaTeX", made, printed.filename("tex"), MEDIA_TYPES["tex"], f"export-{key}-tex", icon=None)


def _export_bytes(failed: dict[str, str], label: str, make: Callable[[], bytes]) -> bytes:
    """The bytes of an export. They are made in another thread when the user clicks the button. An error is
    recorded in `failed`."""
    failed.pop(label, None)
    try:
        return make()
    except Exception as error:
        if isinstance(error, SpaceError):
            failed[label] = str(error)
        else:
            failed[label] = f"{type(error).__name__}: {error}"
        raise


@st.fragment(run_every=2)
def _say_what_failed(failed: Mapping[str, str]) -> None:
    for label, why in list(failed.items()):
        messages.error(f"{label} was not made. {why}")


def _style_choosers(key: str) -> Style:
    keep = {"persist_state": "session"}
    widths = {COLUMN: f"One column, {COLUMN} in", PAGE: f"Page, {PAGE} in"}
    width = st.segmented_control(
        "Width",
        list(widths),
        default=PAGE,
        format_func=widths.get,
        key=f"export-width-{key}",
        required=True,
        **keep,
    )
    dpi = st.slider("Dots per inch", 300, 600, 300, 100, key=f"export-dpi-{key}", **keep)
    font_size = st.slider("Font size, points", 6, 12, 8, key=f"export-font-{key}", **keep)
    letters = st.toggle("Panel letters", True, key=f"export-letters-{key}", **keep)
    dark = st.toggle("Dark", False, key=f"export-dark-{key}", **keep)
    return Style(
        width=width, dpi=dpi, font_size=font_size, panel_letters=letters, theme=DARK if dark else LIGHT
    )
