"""The export menu: every figure as interactive page, print file, picture, numbers and recipe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from app import messages
from app.page_settings import menu
from relcore.base.portable import without_paths
from relcore.compare.atlas import NEIGHBOURS, how_to_open
from relcore.figures.export import MEDIA_TYPES, Exportable
from relcore.figures.style import COLUMN, DARK, LIGHT, PAGE, Style, Theme

_FORMATS = {
    "html": ("HTML", "Interactive page, works offline"),
    "pdf": ("PDF", "For the paper: vector axes, embedded fonts"),
    "svg": ("SVG", "For a drawing program"),
    "png": ("PNG", "For slides"),
    "csv": ("CSV", "The plotted numbers"),
    "tex": ("LaTeX", "The table, for a paper that uses booktabs"),
    "json": ("Recipe", "All settings as JSON"),
    "py": ("Python script", "Draws the figure again, with settings to change"),
}
_SLOW = ("pdf", "svg", "png")


def theme() -> Theme:
    return DARK if st.context.theme.type == "dark" else LIGHT


def chart(
    figure: Any,
    key: str,
    picked: Callable[[Sequence[Mapping[str, Any]]], None] | None = None,
) -> None:
    """Draw a Plotly figure with its alternative text; `picked` is called with the clicked points."""
    alt = str((figure.layout.meta or {}).get("alt", ""))
    clicks = {}
    if picked:
        clicks = {
            "on_select": lambda: picked(st.session_state[key].selection.points),
            "selection_mode": "points",
        }
    # Its tools would cover the titles; a double click still shows everything again.
    st.plotly_chart(figure, theme=None, key=key, config={"displayModeBar": False}, alt=alt, **clicks)


def figure(drawn: Exportable, key: str, bar: str = "") -> None:
    """Draw a figure and its export bar, named by default after the first part of the key."""
    chart(drawn.interactive(theme()), key)
    export_bar(drawn, bar or key.partition(".")[0])


def download(label: str, data: Any, name: str, media: str, key: str, **look: Any) -> None:
    """Draw a button that downloads a file without another run of the page."""
    look = {"icon": ":material/download:", "on_click": "ignore"} | look
    st.download_button(label, data, name, media, key=key, **look)


def export_bar(figure: Exportable, key: str, atlas: Callable[[], bytes] | None = None) -> None:
    """Draw the export menu of a figure; `atlas` returns its rows as a table for Embedding Atlas."""
    shown = theme()  # files are made in another thread, which does not know the page
    look = {"icon": ":material/download:", "type": "tertiary"}
    with menu("Export", f"export-{key}", **look) as is_open:
        if is_open:
            _formats(figure, key, shown, atlas)


def _formats(figure: Exportable, key: str, shown: Theme, atlas: Callable[[], bytes] | None) -> None:
    about = f"The rows drawn, with all columns, both maps and the {NEIGHBOURS} nearest rows in each space"
    formats = st.container()  # above their settings
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
    with formats:
        for kind, (label, explanation) in _FORMATS.items():
            if (kind in ("json", "py") and figure.recipe is None) or (kind == "tex" and figure.latex is None):
                continue
            download(
                label,
                lambda kind=kind: figure.bytes(kind, style=style, theme=shown, full_paths=full_paths),
                figure.filename(kind),
                MEDIA_TYPES[kind],
                f"export-{key}-{kind}",
                help=explanation,
                type="tertiary",
                on_click=_say_it_comes if kind in _SLOW else "ignore",
                args=(label,),
            )
        if atlas:
            name, media = figure.filename("parquet"), "application/vnd.apache.parquet"
            look = {"help": about, "type": "tertiary", "on_click": _say_it_comes, "args": ("file",)}
            download("Embedding Atlas", atlas, name, media, f"export-{key}-atlas", **look)
            st.caption(f"Embedding Atlas opens it: `{how_to_open(name)}`")
        if figure.recipe is not None:
            st.caption(f"A recipe draws the figure again: `relscope figure {figure.filename('json')}`")


def _say_it_comes(label: str) -> None:
    messages.toast(f"The {label} is being made. Its download starts by itself.")


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
