"""Report: a result in words and numbers, rendered for terminal, JSON, CSV, Markdown, notebook, app and
agents."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import starmap
from typing import TYPE_CHECKING, Any

from relcore.base.text import visible

if TYPE_CHECKING:
    import pandas as pd

Cells = Sequence[Sequence[str]]
RECOMMENDED = "▸ "  # before the first cell of a row to emphasise
_NUMBER = set("0123456789.,+−-–±∞… ")
_PLAIN = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ,.+=%()/–−-±…")
# Signs that end a cell, begin HTML or mention a user; the others begin Markdown or a link.
_LOOKALIKES = str.maketrans({"|": "¦", "<": "‹", ">": "›", "@": "＠"})
_MARKS = ("\\", "`", "*", "_", "[", "]", "#", "://", "www.")


@dataclass(frozen=True)
class Table:
    """Rows of a report.

    Attributes
    ----------
    name : str Key of the table in JSON; "" if only people read it.
    rows : DataFrame, optional
        For machines: the values with all digits.
    shown : rows of texts
        For people: the cells, with the head first; empty if only machines read the table.
    title : str
    caption : str
        The number of rows behind it, and the chance level.
    """

    name: str = ""
    rows: pd.DataFrame | None = None
    shown: Cells = ()
    title: str = ""
    caption: str = ""

    @classmethod
    def of(cls, name: str, rows: Sequence[Mapping[str, Any]]) -> Table:
        """A table that shows people the same rows that machines read."""
        import pandas as pd

        cells = [[f"{one:,}" if isinstance(one, int) else str(one) for one in row.values()] for row in rows]
        return cls(name, pd.DataFrame(rows), [[*rows[0]], *cells] if rows else ())

    def text(self) -> str:
        """The table as aligned text."""
        return "\n".join(filter(None, (self.title, text_table(self.shown) if self.shown else "")))

    def html(self) -> str:
        parts = [f"<h4>{escape(self.title)}</h4>" * bool(self.title)]
        if self.shown:
            head, *rows = self.shown
            looks = [' style="text-align: right"' * number for number in _numeric(self.shown)]
            cells = (
                f'<th scope="col"{look}>{escape(cell)}</th>' for look, cell in zip(looks, head, strict=True)
            )
            parts.append(f"<table><thead><tr>{''.join(cells)}</tr></thead><tbody>")
            for row in rows:
                cells = (
                    f"<td{look}>{escape(visible(cell))}</td>" for look, cell in zip(looks, row, strict=True)
                )
                chosen = ' class="chosen"' * row[0].startswith(RECOMMENDED)
                parts.append(f"<tr{chosen}>{''.join(cells)}</tr>")
            parts.append("</tbody></table>")
        return "".join([*parts, f"<p><small>{escape(self.caption)}</small></p>" * bool(self.caption)])

    def markdown(self) -> str:
        """The table in GitHub's Markdown; no cell can become a link, a mention or HTML."""
        if not self.shown:
            return ""
        head, *rows = self.shown
        lines = [" | ".join(head), "|".join("---:" if number else "---" for number in _numeric(self.shown))]
        lines += [" | ".join(map(_markdown_cell, row)) for row in rows]
        title = [f"**{_markdown(self.title)}**", ""] if self.title else []
        return "\n".join([*title, *(f"| {line} |" for line in lines)])


@dataclass(frozen=True)
class Report:
    """A result in words and numbers.

    Attributes
    ----------
    sentence : str
        The result in one sentence, or a few.
    tables : Tables
        CSV holds the first.
    facts : name → value
        Values that the JSON has besides the tables.
    notes : texts
        What readers must know before they rely on the numbers.
    figures : name → function that draws an `Exportable`
        --recipe writes the recipe of the first, and a notebook shows it.
    """

    sentence: str = ""
    tables: Sequence[Table] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    figures: Mapping[str, Callable[[], Any]] = field(default_factory=dict)

    def text(self) -> str:
        """The report as text for a terminal."""
        parts = [self.sentence]
        for table in self.tables:
            parts += [table.text(), table.caption] if table.shown else []
        return "\n\n".join(filter(None, [*parts, "\n".join(self.notes)]))

    def record(self, **more: Any) -> dict[str, Any]:
        """The report as a JSON object: sentence, notes, facts, and the rows of each named table."""
        record = {"sentence": self.sentence, "notes": list(self.notes), **self.facts, **more}
        named = {table.name: table.rows for table in self.tables if table.name and table.rows is not None}
        return plain(record | {name: rows.to_dict("records") for name, rows in named.items()})

    def markdown(self) -> str:
        """The report in GitHub's Markdown for a comment; it begins with ❌ after an alarm, else with ✅."""
        sign = "" if "alarm" not in self.facts else "❌ " if self.facts["alarm"] else "✅ "
        parts = [sign + _markdown(self.sentence)]
        for table in self.tables:
            parts += [table.markdown(), _markdown(table.caption)] if table.shown else []
        parts.append("\n".join(f"- {_markdown(note)}" for note in self.notes))
        return "\n\n".join(filter(None, parts)) + "\n"

    def html(self) -> str:
        """The report as an HTML fragment, with the first figure as a picture."""
        parts = [f"<p>{escape(self.sentence)}</p>" * bool(self.sentence)]
        if picture := self._repr_png_():
            parts.append(f'<img alt="" src="data:image/png;base64,{b64encode(picture).decode()}">')
        parts += [table.html() for table in self.tables if table.shown]
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return f"<div>{''.join(parts)}{f'<ul>{notes}</ul>' * bool(notes)}</div>"

    _repr_html_ = html

    def _repr_png_(self) -> bytes | None:
        draw = next(iter(self.figures.values()), None)
        return draw and draw()._repr_png_()


class Reported:
    """A result that a notebook shows by its report."""

    def report(self) -> Report:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return self.report().html()

    def _repr_png_(self) -> bytes | None:
        return self.report()._repr_png_()


def text_table(rows: Cells, indent: str = "  ") -> str:
    """Rows of cells as a text table; the first row is the head, and columns of numbers are aligned to the
    right.
    """
    cells = []
    for number, (head, *column) in zip(_numeric(rows), zip(*rows, strict=True), strict=True):
        cells.append(f"{{:{'>' if number else '<'}{max(map(len, (head, *column)))}}}")
    return "\n".join(map(str.rstrip, starmap((indent + "  ".join(cells)).format, rows)))


def _numeric(rows: Cells) -> list[bool]:
    """Whether each column holds only numbers."""
    return [set("".join(column)) <= _NUMBER for _, *column in zip(*rows, strict=True)]


def delimited_text(rows: pd.DataFrame, sep: str = ",") -> str:
    """The rows as delimited text with a line of names; `load_space` and `read_links` read the same cells
    back. Texts are quoted if necessary."""
    text = rows.to_csv(sep=sep, index=False, lineterminator="\n")
    # Python's writer does not quote a lone carriage return, which readers take for the end of the row.
    return rows.to_csv(sep=sep, index=False, lineterminator="\n", quoting=2) if "\r" in text else text


def json_lines(rows: pd.DataFrame) -> str:
    """A JSON object for each row, on its line, with all digits."""
    records = map(plain, rows.to_dict("records"))
    return "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)


def plain(value: Any) -> Any:
    """The value with types that JSON has: NumPy numbers become Python numbers, NaN becomes null."""
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return float(value) if abs(value) < float("inf") else None  # also false for NaN
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _markdown(text: str) -> str:
    """The text without characters that could begin markup or a link, or mention someone."""
    text = visible(text).translate(_LOOKALIKES)
    for mark in _MARKS:
        text = text.replace(mark, f"{mark[:-1]}\\{mark[-1]}" if len(mark) > 1 else f"\\{mark}")
    return text


def _markdown_cell(text: str) -> str:
    """The text as a cell; a name with unusual characters becomes code."""
    if set(text) <= _PLAIN and "www." not in text:
        return text
    return f"`{visible(text, 120).translate(_LOOKALIKES).replace('`', 'ˋ')}`"
