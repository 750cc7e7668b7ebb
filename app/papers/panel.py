"""The rows of the Papers page: filter, tables side by side, and links to the pages that explore them."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from math import isnan
from pathlib import Path

import streamlit as st

from app import compute, session
from app.jobs import engine
from app.page_settings import kept
from app.session import fit_to_pair
from app.studies import panel
from app.workspace import BUNDLED, Workspace
from relcore.base.numbers import general, short
from relcore.papers import tables
from relcore.papers.rows import (
    DOES_NOT,
    HOLDS,
    NO,
    PARTLY,
    RULE,
    SHARE,
    WORDS,
    YES,
    Cell,
    ClaimVerdict,
    Decided,
    Number,
    Ours,
    PaperRow,
    PublishedTable,
    load_rows,
    spread_of,
    verdict_of,
)
from relcore.papers.runs import RUNS, PaperRun, result_of
from relcore.studies.study import StudySpec, study_of

# The published and the measured numbers as two small HTML tables side by side.

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


def small_print(text: str, what: str = "") -> str:
    """A line in small type, with its topic in bold."""
    return f'<p class="relscope-small">{f"<b>{escape(what)}</b> " if what else ""}{escape(text)}</p>'


def here(ours: Ours, groups: tuple[str, ...]) -> str:
    """The measured table: a line per label, a column per metric; the data, the date and the settings."""
    numbers = ours.of_groups(groups)
    return (
        f'<p class="relscope-mark here">here <span>({escape(ours.data)})</span></p><div class="relscope-box'
        f' here" tabindex="0">{_measured(numbers)}</div><p'
        f' class="relscope-small">{escape(_rests_on(numbers))} · {escape(_settings(ours))} ·'
        f" {escape(ours.date)}, Relscope {escape(ours.version)}{_commit(ours.commit)},"
        f" {_took(ours.seconds)}</p>"
    )


def verdict_html(verdict: ClaimVerdict) -> str:
    """The verdict, how many comparisons hold, and, folded, each comparison with its difference, and the
    rule.
    """
    kind = {HOLDS: "holds", DOES_NOT: "not"}.get(verdict.word, "partly")
    lines = "".join(f"<li>{_claim(claim)}</li>" for claim in verdict.claims)
    return (
        f'<details class="relscope-verdict {kind}"><summary><b>{escape(verdict.word.capitalize())}</b> ·'
        f" {escape(verdict.counts())}</summary><ul>{lines}</ul><p>{escape(RULE)}</p></details>"
    )


def _claim(decided: Decided) -> str:
    ends = "no interval" if isnan(decided.low) else f"95 %: {_short(decided.low)} … {_short(decided.high)}"
    sides = f"{_short(decided.more)} against {_short(decided.than)}"
    sides = f"{sides}, difference {_short(decided.difference)} ({ends})"
    outcome = f"{_SIGNS.get(decided.outcome, '○')} <b>{escape(decided.outcome.capitalize())}:</b>"
    return f"{outcome} {escape(decided.claim.says)} <span>{sides}</span>"


def _printed(table: PublishedTable, name: str) -> str:
    labels = "".join(f'<th scope="col">{escape(label)}</th>' for label in table.labels)
    measures = "".join(
        f'<th scope="col">{escape(measure.name)}{_unit(measure.unit)}</th>' for measure in table.measures
    )
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
    shown = escape(value) if words else escape(value).replace("-", "−")
    return f"<td{' class=words' if words else ''}>{shown}{more}</td>"


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
    columns = "".join(
        f'<th scope="col">{escape(name)}{_unit(number.unit)}</th>' for name, number in metrics.items()
    )
    body = "".join(
        f'<tr><th scope="row">{escape(label)}</th>' + "".join(map(_number, by_metric.values())) + "</tr>"
        for label, by_metric in lines.items()
    )
    return _table("measured here", f'<th scope="col"></th>{columns}', body)


def _number(number: Number) -> str:
    more = "" if number.deviation is None else f" <span>± {_short(number.deviation)}</span>"
    least = (
        ""
        if number.baseline is None
        else f"<small>{escape(number.baseline_is)} {_short(number.baseline)}</small>"
    )
    spread = spread_of(number)
    band = f"<small>95 %: {_short(spread.low)} … {_short(spread.high)}</small>" if spread else ""
    return f"<td>{_short(number.value)}{more}{band}{least}</td>"


def _table(caption: str, columns: str, body: str) -> str:
    label = escape(caption, quote=True)
    return (
        '<table class="relscope-papers"'
        f' aria-label="{label}"><thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table>'
    )


def _unit(unit: str) -> str:
    return "" if unit in WORDS or unit == SHARE else f"<small>{escape(unit)}</small>"


def _short(value: float) -> str:
    return short(value, 3 if abs(value) < 100 and value != int(value) else 0)


def _rests_on(numbers: tuple[Number, ...]) -> str:
    """``"n = 359, k = 10, mean ± deviation over 5"``; ranges where they differ."""
    parts = []
    for name in ("n", "k"):
        values = sorted({value for number in numbers if (value := getattr(number, name)) is not None})
        if values:
            parts.append(f"{name} = {values[0]:,}" + (f" … {values[-1]:,}" if len(values) > 1 else ""))
    repeats = sorted(
        {number.repeats for number in numbers if number.deviation is not None and number.repeats > 1}
    )
    if repeats:
        over = f"{repeats[0]}" + (f" … {repeats[-1]}" if len(repeats) > 1 else "")
        parts.append(f"mean ± deviation over {over}")
    return ", ".join(parts) or "one run"


def _settings(ours: Ours) -> str:
    return (
        ", ".join(f"{name.replace('_', ' ')} {_value(value)}" for name, value in ours.settings.items())
        or "no settings"
    )


def _value(value) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name} {part}" for name, part in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) if len(value) < 3 else f"{value[0]} … {value[-1]}"
    return str(value)


def _commit(commit: str) -> str:
    return f", commit {escape(commit)}" if commit else ""


def _took(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


_ASSETS = Path(__file__).parents[2] / "assets"
STYLE = _ASSETS / "papers.css"
PAGES = {
    "compare": "Compare",
    "stitch": "Stitch",
    "invert": "Invert",
    "spaces": "Spaces",
    "bootstrap": "Bootstrap",
    "studies": "Studies",
}
_TABS = {"stitch": "stitch.tab", "invert": "invert.tab", "studies": "studies.kind"}
_ALL = "All"
_GOING = "relscope.papers-going"


def draw() -> None:
    """The page."""
    st.html(STYLE)
    rows = load_rows()
    results = {name: ours for name in RUNS if (ours := result_of(name, engine().store))}
    n_measured = sum(any(name in results for name in row.run_names()) for row in rows)
    words = [verdict.word for row in rows if (verdict := verdict_of(row, results))]
    holds, partly, does_not = (words.count(word) for word in (HOLDS, PARTLY, DOES_NOT))
    st.html(
        f'<p class="relscope-lead"><b>{len(rows)}</b> tables and figures of three papers; <b>{n_measured}</b>'
        f" have numbers measured here. The paper’s pattern holds in <b>{holds}</b>, holds partly in"
        f" <b>{partly}</b> and does not hold in <b>{does_not}</b>. Published numbers come from the papers’"
        " data and models, ours from the data and models at hand: compare the patterns, not the values.</p>"
    )
    chosen = _filtered(rows, results)
    _exports(chosen, results)
    if not chosen:
        st.info(
            "No row matches. Choose another paper, or also show rows without numbers.",
            icon=":material/filter_alt_off:",
        )
    for row in chosen:
        _row(row, results)


def _filtered(rows: tuple[PaperRow, ...], results: dict[str, Ours]) -> list[PaperRow]:
    papers = {row.paper.id: row.paper for row in rows}
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        paper = kept(
            st.segmented_control,
            "Paper",
            [_ALL, *papers],
            default=_ALL,
            format_func=lambda name: papers[name].short if name in papers else _ALL,
            key="papers.paper",
            label_visibility="collapsed",
            required=True,
        )
        only = kept(st.toggle, "With numbers measured here", key="papers.only")
    if paper in papers:
        chosen = papers[paper]
        st.caption(f"{chosen.authors}, [{chosen.title}]({chosen.url})")
    return [
        row
        for row in rows
        if paper in (_ALL, row.paper.id) and (not only or any(name in results for name in row.run_names()))
    ]


def _exports(rows: list[PaperRow], results: dict[str, Ours]) -> None:
    files = {
        "csv": ("CSV", tables.as_csv, "text/csv", "One number per line, published and measured"),
        "tex": ("LaTeX", tables.as_latex, "application/x-tex", "A longtable, for a paper that uses booktabs"),
        "json": ("JSON", tables.as_json, "application/json", "Everything, with settings, dates and versions"),
    }
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        for suffix, (label, make, mime, explanation) in files.items():
            st.download_button(
                label,
                data=lambda make=make: make(rows, results),
                file_name=f"papers.{suffix}",
                mime=mime,
                key=f"papers.{suffix}",
                help=f"{explanation}: the rows shown",
                type="tertiary",
                icon=":material/download:",
                on_click="ignore",
                disabled=not rows,
            )


def _row(row: PaperRow, results: dict[str, Ours]) -> None:
    with st.container(border=True, key=f"papers-{row.id}"):
        st.html(head(row))
        measured = any(name in results for name in row.run_names())
        widths = [1, 1] if measured else [2.2, 1]
        left, right = st.columns(widths if row.published else [1, 2.2], gap="large")
        with left:
            needs = small_print(row.needs, "Their data and models:") if row.needs else ""
            st.html(published(row) + needs)
        with right:
            st.html(_ours(row, results))
        _explore(row)


def _ours(row: PaperRow, results: dict[str, Ours]) -> str:
    parts = [here(results[name], row.groups(name)) for name in row.run_names() if name in results]
    if not parts:
        return small_print(row.why_not or "No result with the row's settings.", "Not measured here:")
    if verdict := verdict_of(row, results):
        parts.insert(0, verdict_html(verdict))
    if row.differs:
        parts.append(small_print(row.differs, "Differences from the paper:"))
    return "".join(parts)


def _explore(row: PaperRow) -> None:
    tab = study_of(row.tab).title if row.page == "studies" else row.tab
    run = _opened(row)
    numbers = [
        f"{name.replace('_', ' ')} {general(value)}"
        for name, value in (run.settings if run else {}).items()
        if type(value) in (int, float)
    ]
    measures = " Its runs measure these numbers again." if run and run.study else ""
    st.button(
        f"Explore on {PAGES[row.page]}{f', {tab}' if tab else ''}",
        key=f"papers.explore-{row.id}",
        type="tertiary",
        icon=":material/arrow_forward:",
        help=f"With the table's settings: {', '.join(numbers)}.{measures}" if numbers else None,
        on_click=session.guarded,
        args=(_open, row),
    )
    if st.session_state.get(_GOING) == row.id:
        del st.session_state[_GOING]
        st.switch_page(Path(__file__).parents[2] / "pages" / f"{row.page}.py")


def _opened(row: PaperRow) -> PaperRun | None:
    """The row's first run whose settings its page can take."""
    runs = (RUNS[name] for name in row.run_names())
    return next((run for run in runs if run.words or (run.study and run.study == row.tab)), None)


def _open(row: PaperRow) -> None:
    """Make the table's settings those of the page, and go there in the run that follows."""
    run = _opened(row)
    if row.page == "studies":
        panel.open_spec(StudySpec.of(study_of(row.tab), run.settings if run else None))
    elif run:
        session.become(f"open {row.name}", _on_words(run, session.workspace()))
    if row.tab:
        st.session_state[_TABS[row.page]] = row.tab
    st.session_state[_GOING] = row.id


def _on_words(run: PaperRun, now: Workspace) -> Workspace:
    """The two bundled word spaces with the run's anchors and k."""
    n, state, pair = run.settings["n_anchors"], run.settings["random_states"][0], compute.matched(*BUNDLED)
    spaces = tuple(dict.fromkeys((*now.spaces, *BUNDLED)))
    changed = replace(
        now, spaces=spaces, source=BUNDLED[0], target=BUNDLED[1], k=run.settings["k"], convention="paper"
    )
    anchors = compute.select_anchors(pair, n, "random", state)
    return fit_to_pair(changed.with_anchors(anchors, f"random {n} {state}"), pair)
