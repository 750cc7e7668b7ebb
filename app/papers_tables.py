"""The published and the measured numbers as two small HTML tables side by side."""

from __future__ import annotations

from html import escape
from math import isnan

from relcore.numbers import short
from relcore.papers.intervals import spread_of
from relcore.papers.ours import SHARE, Number, Ours
from relcore.papers.published import WORDS, Cell, PublishedTable
from relcore.papers.rows import PaperRow
from relcore.papers.verdict import DOES_NOT, HOLDS, NO, RULE, YES, Decided, Verdict

_SIGNS = {YES: "✓", NO: "✗"}


def head(row: PaperRow) -> str:
    """Number, title and sentence."""
    name = f"{row.name} · {row.title}"
    return (
        f'<div class="relscope-paper"><h3>{escape(name)}<small>{escape(row.paper.authors)}</small></h3>'
        f"<p>{escape(row.shows)}</p></div>"
    )


def published(row: PaperRow) -> str:
    """The printed table, with its setting; or why there is none."""
    mark = '<p class="relscope-mark">published <span>(their data)</span></p>'
    if row.published is None:
        return f'{mark}<p class="relscope-small">{escape(row.note)}</p>'
    setting = f'<p class="relscope-small">{escape(row.published.setting)}.</p>'
    return f'{mark}<div class="relscope-box" tabindex="0">{_printed(row.published, row.name)}</div>{setting}'


def told(text: str, what: str = "") -> str:
    """A line in small type, with its topic in bold."""
    return f'<p class="relscope-small">{f"<b>{escape(what)}</b> " if what else ""}{escape(text)}</p>'


def here(ours: Ours, groups: tuple[str, ...]) -> str:
    """The measured table: a line per label, a column per metric; the data, the date and the settings."""
    numbers = ours.of_groups(groups)
    return (
        f'<p class="relscope-mark here">here <span>({escape(ours.data)})</span></p>'
        f'<div class="relscope-box here" tabindex="0">{_measured(numbers)}</div>'
        f'<p class="relscope-small">{escape(_rests_on(numbers))} · {escape(_settings(ours))} · {escape(ours.date)}, '
        f"Relscope {escape(ours.version)}{_commit(ours.commit)}, {_took(ours.seconds)}</p>"
    )


def verdict(found: Verdict) -> str:
    """The verdict, how many comparisons hold, and, folded, each comparison with its difference, and the rule."""
    kind = {HOLDS: "holds", DOES_NOT: "not"}.get(found.word, "partly")
    lines = "".join(f"<li>{_claim(one)}</li>" for one in found.claims)
    return (
        f'<details class="relscope-verdict {kind}"><summary><b>{escape(found.word.capitalize())}</b> · {escape(found.counts())}'
        f"</summary><ul>{lines}</ul><p>{escape(RULE)}</p></details>"
    )


def _claim(one: Decided) -> str:
    ends = "no interval" if isnan(one.low) else f"95 %: {_short(one.low)} … {_short(one.high)}"
    told = f"{_short(one.more)} against {_short(one.than)}, difference {_short(one.difference)} ({ends})"
    outcome = f"{_SIGNS.get(one.outcome, '○')} <b>{escape(one.outcome.capitalize())}:</b>"
    return f"{outcome} {escape(one.claim.says)} <span>{told}</span>"


def _printed(table: PublishedTable, name: str) -> str:
    labels = "".join(f'<th scope="col">{escape(label)}</th>' for label in table.labels)
    measures = "".join(f'<th scope="col">{escape(measure.name)}{_unit(measure.unit)}</th>' for measure in table.measures)
    words = tuple(measure.unit in WORDS for measure in table.measures)
    body = "".join(
        "<tr>"
        + "".join(f'<th scope="row">{escape(label)}</th>' for label in line)
        + "".join(_cell(cell, wide) for cell, wide in zip(cells, words, strict=True))
        + "</tr>"
        for line, cells in table.lines
    )
    return _table(f"{name}, as published", labels + measures, body)


def _cell(cell: Cell, words: bool) -> str:
    value, plus, deviation = cell.text.partition(" ± ")
    more = f" <span>± {escape(deviation)}</span>" if plus else ""
    return f"<td{' class=words' if words else ''}>{escape(value).replace('-', '−') if not words else escape(value)}{more}</td>"


def _measured(numbers: tuple[Number, ...]) -> str:
    """A table for each group of labels with the same metrics, so that no table has empty cells."""
    by_label: dict[str, dict[str, Number]] = {}
    for number in numbers:
        by_label.setdefault(number.label, {})[number.metric] = number
    alike: dict[tuple[str, ...], dict[str, dict[str, Number]]] = {}
    for label, by_metric in by_label.items():
        alike.setdefault(tuple(by_metric), {})[label] = by_metric
    return "".join(_block(lines) for lines in alike.values())


def _block(lines: dict[str, dict[str, Number]]) -> str:
    metrics = next(iter(lines.values()))
    columns = "".join(f'<th scope="col">{escape(name)}{_unit(one.unit)}</th>' for name, one in metrics.items())
    body = "".join(
        f'<tr><th scope="row">{escape(label)}</th>' + "".join(map(_number, by_metric.values())) + "</tr>"
        for label, by_metric in lines.items()
    )
    return _table("measured here", f'<th scope="col"></th>{columns}', body)


def _number(number: Number) -> str:
    more = "" if number.deviation is None else f" <span>± {_short(number.deviation)}</span>"
    least = "" if number.baseline is None else f"<small>{escape(number.baseline_is)} {_short(number.baseline)}</small>"
    spread = spread_of(number)
    band = f"<small>95 %: {_short(spread.low)} … {_short(spread.high)}</small>" if spread else ""
    return f"<td>{_short(number.value)}{more}{band}{least}</td>"


def _table(caption: str, columns: str, body: str) -> str:
    label = escape(caption, quote=True)
    return f'<table class="relscope-papers" aria-label="{label}"><thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table>'


def _unit(unit: str) -> str:
    return "" if unit in WORDS or unit == SHARE else f"<small>{escape(unit)}</small>"


def _short(value: float) -> str:
    return short(value, 3 if abs(value) < 100 and value != int(value) else 0)


def _rests_on(numbers: tuple[Number, ...]) -> str:
    """``"n = 359, k = 10, mean ± deviation over 5"``; ranges where they differ."""
    told = []
    for name in ("n", "k"):
        values = sorted({value for number in numbers if (value := getattr(number, name)) is not None})
        if values:
            told.append(f"{name} = {values[0]:,}" + (f" … {values[-1]:,}" if len(values) > 1 else ""))
    repeats = sorted({number.repeats for number in numbers if number.deviation is not None and number.repeats > 1})
    if repeats:
        over = f"{repeats[0]}" + (f" … {repeats[-1]}" if len(repeats) > 1 else "")
        told.append(f"mean ± deviation over {over}")
    return ", ".join(told) or "one run"


def _settings(ours: Ours) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {_value(value)}" for name, value in ours.settings.items()) or "no settings"


def _value(value) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name} {one}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) if len(value) < 3 else f"{value[0]} … {value[-1]}"
    return str(value)


def _commit(commit: str) -> str:
    return f", commit {escape(commit)}" if commit else ""


def _took(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
