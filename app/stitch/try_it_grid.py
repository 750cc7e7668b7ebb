"""The answers as a table of the page: drawn in a tenth of the time that Plotly takes, which matters while typing."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from app.plain_text import plain_html
from relcore.figures.cell_colors import text_on
from relcore.figures.matrices import Matrices, name_of
from relcore.figures.palette import Theme

STYLE = Path(__file__).parents[2] / "assets" / "answers.css"


def answers_html(data: Matrices, theme: Theme) -> str:
    """The only panel of `Matrices` in its own colours, texts and frames; a cell explains itself on hover and on focus."""
    (panel,) = data.panels
    heads = "".join(f'<th scope="col">{plain_html(name_of(name))}</th>' for name in panel.columns)
    lines = []
    for i, name in enumerate(panel.rows):
        cells = "".join(_cell(data, i, j, theme) for j in range(len(panel.columns)))
        lines.append(f'<tr><th scope="row">{plain_html(name_of(name))}</th>{cells}</tr>')
    corner = f"<td><small>{plain_html(data.row_title)} ↓<br>{plain_html(data.column_title)} →</small></td>"
    return (
        f'<table class="relscope-answers"><caption class="relscope-unseen">{plain_html(data.alt)}</caption>'
        f"<thead><tr>{corner}{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    )


def _cell(data: Matrices, i: int, j: int, theme: Theme) -> str:
    (panel,) = data.panels
    told = "<br>".join(map(plain_html, panel.explain(i, j).split("\n")))
    hint = f'<span role="tooltip">{told}</span>'
    if np.isnan(panel.values[i, j]):
        return f'<td class="none" tabindex="0">–{hint}</td>'
    color = data.color(panel.values[i, j], theme)
    paint = f"background: rgb({', '.join(f'{255 * share:.0f}' for share in color)}); color: {text_on(color)}"
    first, _, small = panel.text(i, j).partition("\n")
    own = ' class="own"' if (i, j) in panel.marked else ""
    return f'<td{own} style="{paint}" tabindex="0"><b>{plain_html(first)}</b><small>{plain_html(small)}</small>{hint}</td>'
