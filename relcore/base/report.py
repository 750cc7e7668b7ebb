"""`Report`: a result in words and numbers. It can be rendered for the terminal, a notebook, the app and
agents, and as JSON, CSV or Markdown."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from relcore.base.junit import GateCase
from relcore.base.text import visible

if TYPE_CHECKING:
    import pandas as pd

Cells = Sequence[Sequence[str]]
RECOMMENDED = "▸ "  # stands before the first cell of an emphasised row
_NUMBER = set("0123456789.,+−-–±∞… ")
_PLAIN = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ,.+=%()/–−-±…")
# `_LOOKALIKES` replaces signs that would end a cell, begin HTML or mention a user. `_MARKS` would begin
# Markdown or a link.
_LOOKALIKES = str.maketrans({"|": "¦", "<": "‹", ">": "›", "@": "＠"})
_MARKS = ("\\", "`", "*", "_", "[", "]", "#", "://", "www.")


@dataclass(frozen=True)
class Table:
    """A table of a report.

    Attributes
    ----------
    name : str
        The key of the table in JSON; "" if only people read the table.
    rows : DataFrame, optional
        The values with all digits, for machines.
    shown : rows of texts
        The cells that people read; the first row is the head. Empty if only machines read the table.
    title : str
    caption : str
        Tells the number of rows behind the values, and the chance level.
    """

    name: str = ""
    rows: pd.DataFrame | None = None
    shown: Cells = ()
    title: str = ""
    caption: str = ""

    @classmethod
    def of(cls, name: str, rows: Sequence[Mapping[str, Any]]) -> Table:
        """A table whose rows both people and machines read."""
        import pandas as pd

        cells = [[f"{one:,}" if isinstance(one, int) else str(one) for one in row.values()] for row in rows]
        return cls(name, pd.DataFrame(rows), [[*rows[0]], *cells] if rows else ())

    def text(self) -> str:
        """The table as aligned text."""
        return "\n".join(filter(None, (self.title, text_table(self.shown) if self.shown else "")))

    def html(self) -> str:
        title = ""
        if self.title:
            title = f"<h4>{escape(self.title)}</h4>"
        parts = [title]
        if self.shown:
            head, *rows = self.shown
            looks = [' style="text-align: right"' if number else "" for number in _numeric(self.shown)]
            cells = (
                f'<th scope="col"{look}>{escape(cell)}</th>' for look, cell in zip(looks, head, strict=True)
            )
            parts.append(f"<table><thead><tr>{''.join(cells)}</tr></thead><tbody>")
            for row in rows:
                cells = (
                    f"<td{look}>{escape(visible(cell))}</td>" for look, cell in zip(looks, row, strict=True)
                )
                chosen = ""
                if row[0].startswith(RECOMMENDED):
                    chosen = ' class="chosen"'
                parts.append(f"<tr{chosen}>{''.join(cells)}</tr>")
            parts.append("</tbody></table>")
        caption = ""
        if self.caption:
            caption = f"<p><small>{escape(self.caption)}</small></p>"
        return "".join([*parts, caption])

    def markdown(self) -> str:
        """The table in GitHub's Markdown. Cells are escaped, so that none becomes a link, a mention or
        HTML."""
        if not self.shown:
            return ""
        head, *rows = self.shown
        lines = [" | ".join(head), "|".join("---:" if number else "---" for number in _numeric(self.shown))]
        lines += [" | ".join(map(_markdown_cell, row)) for row in rows]
        title = []
        if self.title:
            title = [f"**{_markdown(self.title)}**", ""]
        return "\n".join([*title, *(f"| {line} |" for line in lines)])


@dataclass(frozen=True)
class Report:
    """A result in words and numbers.

    Attributes
    ----------
    sentence : str
        The result in one sentence or a few.
    tables : Tables
        The tables of the result; a CSV file holds the first one.
    facts : name → value
        Values that the JSON contains besides the tables.
    notes : texts
        Facts that readers must know before they rely on the numbers.
    figures : name → function that draws an `Exportable`
        The figures of the result. --recipe writes the recipe of the first figure, and a notebook shows that
        figure.
    cases : GateCases
        The conditions of a gate, which --junit writes. One of them failed if the facts tell of an alarm.
    """

    sentence: str = ""
    tables: Sequence[Table] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    figures: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    cases: Sequence[GateCase] = ()

    def text(self) -> str:
        parts = [self.sentence]
        for table in self.tables:
            if table.shown:
                parts += [table.text(), table.caption]
        return "\n\n".join(filter(None, [*parts, "\n".join(self.notes)]))

    def record(self, **more: Any) -> dict[str, Any]:
        """The report as a JSON object: sentence, notes, facts, and the rows of each named table."""
        record = {"sentence": self.sentence, "notes": list(self.notes), **self.facts, **more}
        named = {table.name: table.rows for table in self.tables if table.name and table.rows is not None}
        return plain(record | {name: rows.to_dict("records") for name, rows in named.items()})

    def markdown(self) -> str:
        """The report as a comment in GitHub's Markdown. If the facts tell whether there is an alarm, it
        begins with ❌ or ✅."""
        if "alarm" not in self.facts:
            sign = ""
        elif self.facts["alarm"]:
            sign = "❌ "
        else:
            sign = "✅ "
        parts = [sign + _markdown(self.sentence)]
        for table in self.tables:
            if table.shown:
                parts += [table.markdown(), _markdown(table.caption)]
        parts.append("\n".join(f"- {_markdown(note)}" for note in self.notes))
        return "\n\n".join(filter(None, parts)) + "\n"

    def html(self) -> str:
        """The report as an HTML fragment, with the first figure as a picture."""
        sentence = ""
        if self.sentence:
            sentence = f"<p>{escape(self.sentence)}</p>"
        parts = [sentence]
        if picture := self._repr_png_():
            parts.append(f'<img alt="" src="data:image/png;base64,{b64encode(picture).decode()}">')
        parts += [table.html() for table in self.tables if table.shown]
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        listed = ""
        if notes:
            listed = f"<ul>{notes}</ul>"
        return f"<div>{''.join(parts)}{listed}</div>"

    _repr_html_ = html

    def _repr_png_(self) -> bytes | None:
        if not self.figures:
            return None
        draw = next(iter(self.figures.values()))
        return draw()._repr_png_()


class Reported:
    """The base class of results. A notebook shows such a result as its report, a terminal as its sentence."""

    def report(self) -> Report:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.report().sentence}>"

    def _repr_html_(self) -> str:
        return self.report().html()

    def _repr_png_(self) -> bytes | None:
        return self.report()._repr_png_()


def text_table(rows: Cells) -> str:
    """The cells as a text table. The first row is the head. Columns of numbers are aligned to the right."""
    columns = []
    for is_number, cells in zip(_numeric(rows), zip(*rows, strict=True), strict=True):
        width = max(map(len, cells))
        if is_number:
            columns.append([cell.rjust(width) for cell in cells])
        else:
            columns.append([cell.ljust(width) for cell in cells])
    return "\n".join("".join(f"  {cell}" for cell in row).rstrip() for row in zip(*columns, strict=True))


def _numeric(rows: Cells) -> list[bool]:
    return [set("".join(column)) <= _NUMBER for _, *column in zip(*rows, strict=True)]


def delimited_text(rows: pd.DataFrame, sep: str = ",") -> str:
    """The rows as delimited text whose first line holds the column names. Texts are quoted if necessary.
    `load_space` and `read_links` read the same cells back."""
    text = rows.to_csv(sep=sep, index=False, lineterminator="\n")
    # Python's writer does not quote a lone carriage return, but readers would take it for the end of a row.
    if "\r" in text:
        return rows.to_csv(sep=sep, index=False, lineterminator="\n", quoting=2)
    return text


def json_lines(rows: pd.DataFrame) -> str:
    """The rows as lines of JSON, one object per row, with all digits."""
    records = map(plain, rows.to_dict("records"))
    return "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)


def plain(value: Any) -> Any:
    """The value converted to types that JSON has: NumPy numbers become Python numbers, and NaN becomes
    null."""
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        # the comparison is also false for NaN
        if abs(value) < float("inf"):
            return float(value)
        return None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def _markdown(text: str) -> str:
    """The text, escaped so that it begins no markup, begins no link and mentions no user."""
    text = visible(text).translate(_LOOKALIKES)
    for mark in _MARKS:
        text = text.replace(mark, f"{mark[:-1]}\\{mark[-1]}")
    return text


def _markdown_cell(text: str) -> str:
    """The text as a cell of a Markdown table. A name with unusual characters is shown as code."""
    if set(text) <= _PLAIN and "www." not in text:
        return text
    return f"`{visible(text, 120).translate(_LOOKALIKES).replace('`', 'ˋ')}`"
