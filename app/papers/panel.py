"""The tab Papers of Research: filter the rows, compare their tables side by side, and open the places that
explore them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from math import isnan
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import compute, exports, messages, session
from app.jobs import queue
from app.page_settings import remembered, segments
from app.places import FORMER, RESEARCH, Place, go
from app.plain_text import plain
from app.session import fit_to_pair
from app.studies import panel
from app.workspace import BUNDLED, Workspace
from relcore.base.names import STUDIES
from relcore.base.numbers import and_list, general, short
from relcore.base.report import Table
from relcore.studies.claims import (
    DOES_NOT,
    HOLDS,
    NO,
    PARTLY,
    RULE,
    UNDECIDED,
    YES,
    ClaimVerdict,
    Decided,
    as_csv,
    verdicts_of,
)
from relcore.studies.paper_runs import RUNS, PaperRun, is_own, result_of
from relcore.studies.papers import PaperRow, PublishedTable, find_row, load_rows, named_rows, studies_of
from relcore.studies.published import SHARE, WORDS, Number, Ours, spread_of
from relcore.studies.study import StudySpec, study_of

_SIGNS = {YES: "✓", NO: "✗"}
_DIRECTION = re.compile(r".*?(?P<direction>, (?P<source>[^,]+) → (?P<target>[^,]+)).*")
_WIDE = 8  # columns; from this number on, a table gets the whole width


def small_print(text: str, what: str = "") -> str:
    topic = ""
    if what:
        topic = f"<b>{escape(what)}</b> "
    return f'<p class="relscope-small">{topic}{escape(text)}</p>'


def _box(table: Table, label: str, kind: str = "") -> str:
    name = escape(label, quote=True)
    return f'<div class="relscope-papers {kind}" tabindex="0" aria-label="{name}">{table.html()}</div>'


def _column_title(name: str, unit: str) -> str:
    if unit in WORDS or unit == SHARE:
        return name
    return f"{name} ({unit})".replace(" … ", "\u00a0…\u00a0")


def published_as_html(row: PaperRow) -> str:
    mark = '<p class="relscope-mark">published <span>(their data)</span></p>'
    table = row.published
    if table is None:
        return mark + small_print(row.note)
    words = [measure.unit in WORDS for measure in table.measures]
    lines = [[*table.labels, *(_column_title(measure.name, measure.unit) for measure in table.measures)]]
    for labels, cells in table.lines:
        texts = zip(cells, words, strict=True)
        lines.append([*labels, *(cell.text if word else cell.text.replace("-", "−") for cell, word in texts)])
    printed = _box(Table(shown=lines), f"{row.name}, as published")
    return f"{mark}{printed}{small_print(table.setting + '.')}"


def here(ours: Ours, row: PaperRow, groups: tuple[str, ...]) -> str:
    numbers = ours.of_groups(groups)
    units = {number.unit: number.unit for number in numbers}
    if row.published and any("%" in measure.unit for measure in row.published.measures):
        units[SHARE] = "%"
    by_label: dict[str, dict[str, Number]] = {}
    for number in numbers:
        by_label.setdefault(number.label, {})[number.metric] = number

    ends = row.published is not None and {"source", "target"} <= set(row.published.labels)
    if ends:  # rows that compare with the printed numbers come first
        by_label = dict(sorted(by_label.items(), key=lambda item: "as published" not in item[0]))

    def tables(cell: Callable[[Number, str], str]) -> str:
        alike: dict[tuple, list[list[str]]] = {}
        for label, by_metric in by_label.items():
            head = [_column_title(name, units[number.unit]) for name, number in by_metric.items()]
            cells = [label]
            titles = [""]
            # "source → target" labels become two columns, as in the printed table.
            if ends and (found := _DIRECTION.fullmatch(label)):
                cells = [label.replace(found["direction"], ""), found["source"], found["target"]]
                titles = [row.published.labels[0], "source", "target"]
            lines = alike.setdefault((*titles, *by_metric), [[*titles, *head]])
            lines.append([*cells, *(cell(one, units[one.unit]) for one in by_metric.values())])
        return "".join(_box(Table(shown=lines), "measured here", "here") for lines in alike.values())

    measured = tables(lambda number, unit: _in_unit(number.value, number, unit))
    more = {
        "deviations": any(number.deviation is not None for number in numbers),
        "95 % intervals (in brackets)": any(map(spread_of, numbers)),
        "baselines": any(number.baseline is not None for number in numbers),
    }
    if any(more.values()):
        told = and_list(name for name, some in more.items() if some)
        measured += (
            f'<details class="relscope-precise"><summary>With {told}</summary>{tables(_number)}</details>'
        )
    settings = (f"{name.replace('_', ' ')} {_value(value)}" for name, value in ours.settings.items())
    if ours.seconds < 120:
        seconds = f"{ours.seconds:.0f} s"
    else:
        seconds = f"{ours.seconds / 60:.0f} min"
    small = f"{_rests_on(numbers)} · {', '.join(settings) or 'no settings'} · {ours.date}"
    where = "here"
    if is_own(ours):
        where = "here, by your own runs"
    mark = f'<p class="relscope-mark here">{where} <span>({escape(ours.data)})</span></p>'
    return mark + measured + small_print(f"{small}, Relscope {ours.version}, {seconds}")


def _in_unit(value: float, number: Number, unit: str) -> str:
    if unit == "%" != number.unit:
        return short(100 * value, 1)
    return _short(value)


def _number(number: Number, unit: str) -> str:
    """A number of a paper as text, with its deviation, interval and baseline if known. If `unit` is "%",
    shares are in percent, as in the paper."""

    def said(value: float) -> str:
        return _in_unit(value, number, unit)

    cell = said(number.value)
    spread = spread_of(number)
    if number.deviation is not None:
        cell += f" ± {said(number.deviation)}"
    if spread:
        cell += f" ({said(spread.low)} … {said(spread.high)})"
    if number.baseline is None:
        return cell
    return f"{cell}; {number.baseline_is} {said(number.baseline)}"


def verdict_html(on: str, verdict: ClaimVerdict) -> str:
    if verdict.word == HOLDS:
        kind = "holds"
    elif verdict.word == DOES_NOT:
        kind = "not"
    else:
        kind = "partly"
    failed = "".join(f"<br>{_claim(claim)}" for claim in verdict.claims if claim.outcome == NO)
    lines = "".join(f"<li>{_claim(claim)}</li>" for claim in verdict.claims if claim.outcome != NO)
    title = f"{on}: {verdict.word}"
    return (
        f'<details class="relscope-verdict {kind}"><summary><b>{escape(title[0].upper() + title[1:])}</b> ·'
        f" {escape(verdict.counts())}{failed}</summary><ul>{lines}</ul><p>{escape(RULE)}</p></details>"
    )


def _claim(decided: Decided) -> str:
    if isnan(decided.low):
        ends = "no interval"
    else:
        ends = f"95 %: {_short(decided.low)} … {_short(decided.high)}"
    sides = f"{_short(decided.more)} against {_short(decided.than)}"
    paired = ""
    if decided.paired:
        paired = ", paired"
    ours = ""
    if decided.claim.ours:
        ours = "; our threshold"
    ends += paired + ours
    outcome = f"{_SIGNS.get(decided.outcome, '○')} <b>{escape(decided.outcome.capitalize())}:</b>"
    return (
        f"{outcome} {escape(decided.claim.says)} <span>{sides}, difference {_short(decided.difference)}"
        f" ({ends})</span>"
    )


def _short(value: float) -> str:
    digits = 0
    if abs(value) < 100 and value != int(value):
        digits = 3
    return short(value, digits)


def _rests_on(numbers: tuple[Number, ...]) -> str:
    """The number of rows and the other conditions of these numbers: ``"n = 359, k = 10, mean ± deviation over
    5"``. If they differ, the text gives ranges."""
    values = {
        "n = ": {number.n for number in numbers if number.n is not None},
        "k = ": {number.k for number in numbers if number.k is not None},
        "mean ± deviation over ": {
            number.repeats for number in numbers if number.deviation is not None and number.repeats > 1
        },
    }
    parts = []
    for name, some in values.items():
        if len(some) > 1:
            parts.append(f"{name}{min(some):,} … {max(some):,}")
        elif some:
            parts.append(f"{name}{min(some):,}")
    return ", ".join(parts) or "one run"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name} {part}" for name, part in value.items())
    if isinstance(value, list):
        if len(value) < 3:
            return ", ".join(map(str, value))
        return f"{value[0]} … {value[-1]}"
    return str(value)


STYLE = Path(__file__).parents[2] / "assets" / "papers.css"
_ALL = "All"
_UNMEASURED = "not measured here"
_NOTHING = "nothing to measure"
_NO_CLAIM = "measured, without a claim to test"
_SAID = {_NOTHING: "has no numbers to compare", PARTLY: "holds in part"}
_COLORS = {HOLDS: "green", PARTLY: "orange", DOES_NOT: "red"}
_ICONS = {HOLDS: "check_circle", PARTLY: "contrast", DOES_NOT: "cancel", UNDECIDED: "help"}
_GOING = "relscope.papers-going"


def draw(_: Workspace) -> None:
    st.html(STYLE)
    rows = load_rows()
    results = {name: ours for name in RUNS if (ours := result_of(name, queue().store))}
    n_measured = sum(any(name in results for name in row.run_names()) for row in rows)
    found = [verdict for row in rows for verdict in verdicts_of(row, results).values()]
    own = [verdict.own for verdict in found if verdict.own]
    n_ours = sum(claim.claim.ours for verdict in found for claim in verdict.claims)
    messages.lead(
        f"Three papers, measured again in <b>{len(found)}</b> experiments. Their patterns"
        f" {_counts_in_words(found)}. Compare patterns, not values: the papers had other data and models."
        '<details class="relscope-details"><summary>How this is counted</summary>The papers have'
        f" {len(rows)} tables and figures; {n_measured} have numbers measured here. An experiment is a table"
        f" or figure on one data set, and counts once. Of the"
        f" {sum(len(verdict.claims) for verdict in found)} comparisons, {n_ours} rest on a threshold of ours."
        f" Without these, {len(own)} experiments are left: the patterns {_counts_in_words(own)}."
        f" {RULE}</details>"
    )
    verdicts = {row.id: _verdict(row, results) for row in rows}
    chosen = _choose_rows(rows, verdicts, results)
    if not chosen:
        messages.info(
            "No table or figure matches. Change the search or the choices above.", ":material/search_off:"
        )
    for paper in dict.fromkeys(row.paper for row in chosen):
        st.markdown(f"### {paper.short}")
        st.caption(f"{paper.authors}, [{paper.title}]({paper.url})")
        of_paper = [row for row in chosen if row.paper == paper]
        with st.container(gap=None, key=f"papers-rows-{paper.id}"):
            for row in sorted(of_paper, key=lambda row: not _is_judged(verdicts[row.id])):
                _row(row, verdicts[row.id], results)
    if going := st.session_state.pop(_GOING, None):
        go(*_place(find_row(going)))


def _counts_in_words(found: Sequence[ClaimVerdict]) -> str:
    words = [verdict.word for verdict in found]
    return (
        f"hold in <b>{words.count(HOLDS)}</b>, hold partly in {words.count(PARTLY)}, do not hold in"
        f" {words.count(DOES_NOT)} and are not decided in {words.count(UNDECIDED)}"
    )


Shown = dict[str, list[tuple[str, str]]]  # verdict → (name of the data, counts of comparisons)


def _verdict(row: PaperRow, results: dict[str, Ours]) -> Shown:
    """A dictionary from each verdict to the data on which it was reached. If there is no verdict, the only
    key is the reason why there is none, and its list is empty."""
    if row.repeats:
        return {f"the same experiment as {find_row(row.repeats).name}": []}
    by_word: Shown = {}
    for on, verdict in verdicts_of(row, results).items():
        by_word.setdefault(verdict.word, []).append((on, verdict.counts()))
    measured = any(name in results for name in row.run_names())
    without = _UNMEASURED
    if "nothing to measure" in row.why_not:
        without = _NOTHING
    return by_word or {_NO_CLAIM if measured else without: []}


def _is_judged(verdict: Shown) -> bool:
    """Whether the patterns of a row were tested. Rows without a verdict come last."""
    return not _ICONS.keys().isdisjoint(verdict)


def _icon(verdict: Shown) -> str:
    """The sign of a row's verdict: if its data sets have several, the sign of *partly*; if none, a dash."""
    words = [word for word in verdict if word in _ICONS]
    if not words:
        return ":material/remove:"
    if len(words) > 1:
        return f":material/{_ICONS[PARTLY]}:"
    return f":material/{_ICONS[words[0]]}:"


def _source(name: str, counts: str, several: bool, verdict: str, alone: bool) -> str:
    """The data of a verdict, if there are several verdicts, or the counts of a partly confirmed one, after
    its data unless these are `alone`."""
    if several:
        return f"“{plain(name)}”"
    if verdict == PARTLY and alone:
        return f"({counts})"
    if verdict == PARTLY:
        return f"on “{plain(name)}” ({counts})"
    return ""


def _in_line(verdict: Shown) -> str:
    """The verdicts of a row in one line of Markdown. Each has its colour and, where this helps, its data."""
    several = len(verdict) > 1
    parts = []
    for word, data in verdict.items():
        short_word = _SAID.get(word, word.removeprefix("pattern "))
        part = f":{_COLORS.get(word, 'gray')}[{short_word}]"
        sources = [_source(name, counts, several, word, len(data) == 1) for name, counts in data]
        sources_text = ", ".join(sources).strip()
        if any(sources) and several:
            part += f" :small[on {sources_text}]"
        elif any(sources):
            part += f" :small[{sources_text}]"
        parts.append(part)
    return " · ".join(parts)


def _choose_rows(
    rows: tuple[PaperRow, ...], verdicts: dict[str, Shown], results: dict[str, Ours]
) -> list[PaperRow]:
    papers = {row.paper.id: row.paper.short for row in rows}
    words = [HOLDS, PARTLY, DOES_NOT, UNDECIDED, _UNMEASURED, _NOTHING]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="papers-choosers"):
        paper = segments("Paper", {_ALL: _ALL} | papers, "papers.paper")
        verdict = remembered(
            st.selectbox,
            "Verdict",
            [_ALL, *words],
            key="papers.verdict",
            format_func=str.capitalize,
            width=220,
        )
        asked = remembered(
            st.text_input,
            "Search",
            key="papers.search",
            placeholder="Table 1, digits, anchors …",
            icon=":material/search:",
            width=260,
        )
        chosen = [
            row
            for row in rows
            if paper in (_ALL, row.paper.id)
            and (verdict == _ALL or verdict in verdicts[row.id])
            and _fits(row, asked.lower().split())
        ]
        exports.download(
            "CSV",
            partial(as_csv, chosen, results),
            "papers.csv",
            "text/csv",
            "papers.csv",
            type="tertiary",
            disabled=not chosen,
            help="One number per line, published and measured: the rows shown",
        )
    return chosen


def _fits(row: PaperRow, asked: list[str]) -> bool:
    """Whether the search is the name of this row, or the row contains all words of the search. A number in
    the search must equal a whole number in the row: 3 does not find 30."""
    if rows := named_rows(" ".join(asked)):
        return row in rows
    studies = [STUDIES[kind].title for kind in studies_of(row)]
    told = [row.name, row.title, row.shows, row.paper.authors, row.paper.short, *studies]
    told += [RUNS[name].data for name in row.run_names()]
    text = " ".join(told).lower()
    whole = set(re.findall(r"\w+", text))
    numbers = {word for word in asked if word.isdecimal()}
    return numbers <= whole and all(word in text for word in asked)


def _row(row: PaperRow, verdict: Shown, results: dict[str, Ours]) -> None:
    with st.expander(
        f"**{row.name}** · {plain(row.title)} · {_in_line(verdict)}",
        icon=_icon(verdict),
        key=panel.open_key(row),
        on_change="rerun",
    ) as opened:
        if opened.open:
            _opened_row(row, results)


def _opened_row(row: PaperRow, results: dict[str, Ours]) -> None:
    st.html(f'<div class="relscope-paper"><p>{escape(row.shows)}</p></div>')
    links = st.container(horizontal=True, gap="small")
    measured = [here(results[name], row, row.groups(name)) for name in row.run_names() if name in results]
    left, right = _columns_for(row.published, bool(measured))
    needs = ""
    if row.needs:
        needs = small_print(row.needs, "Their data and models:")
    left.html(published_as_html(row) + needs)
    for kind in studies_of(row):
        with links:
            _explore(row, f"Open the study: {STUDIES[kind].title}", kind)
        with right:
            panel.draw_finished(_spec_of(row, kind), f"papers.{row.id}")
    right.html(_measured_as_html(row, measured, results))
    if row.page != "studies":
        with links:
            _explore(row, f"Open in {_place(row)[1] or _place(row)[0].title}")


def _columns_for(table: PublishedTable | None, measured: bool) -> Sequence[DeltaGenerator]:
    """The places of the published and of the measured numbers: side by side, or, if the published table is
    wide, one below the other."""
    if table and measured and len(table.labels) + len(table.measures) >= _WIDE:
        return st.container(), st.container()
    if not table:
        widths = [1, 2.2]
    elif measured:
        widths = [1, 1]
    else:
        widths = [2.2, 1]
    return st.columns(widths, gap="large")


def _measured_as_html(row: PaperRow, measured: Sequence[str], results: dict[str, Ours]) -> str:
    """The numbers measured here, after their verdicts, or the reason why there are none."""
    parts = []
    if row.repeats:
        parts.append(small_print(f"Counted as {find_row(row.repeats).name}.", "The same experiment:"))
    if measured:
        parts += [verdict_html(on, verdict) for on, verdict in verdicts_of(row, results).items()]
        parts += measured
    if parts and row.differs:
        parts.append(small_print(row.differs, "Differences from the paper:"))
    if parts:
        return "".join(parts)
    reason = row.why_not or "No result with the row's settings."
    if _NOTHING in reason:
        return small_print(reason, "")
    return small_print(reason, "Not measured here:")


def _explore(row: PaperRow, label: str, kind: str = "") -> None:
    run = _run_of(row, kind)
    numbers = []
    measures = ""
    if run:
        numbers = [
            f"{name.replace('_', ' ')} {general(value)}"
            for name, value in run.settings.items()
            if type(value) in (int, float)
        ]
    if run and run.study:
        measures = " Its runs measure these numbers again."
    help_text = None
    if numbers:
        help_text = f"With the table's settings: {', '.join(numbers)}.{measures}"
    key = f"papers.explore-{row.id}"
    if kind:
        key = f"papers.explore-{row.id}-{kind}"
    st.button(
        label,
        key=key,
        type="tertiary",
        icon=":material/arrow_forward:",
        help=help_text,
        on_click=session.guarded,
        args=(_open, row, kind),
    )


def _place(row: PaperRow) -> tuple[Place, str]:
    place, tab = FORMER[row.page]
    if row.tab in place.tabs:
        tab = row.tab
    return place, tab


def _run_of(row: PaperRow, kind: str) -> PaperRun | None:
    """The run that reproduces a row of a paper by this kind of study. If `kind` is "", the run on the bundled
    words."""
    for name in row.run_names():
        run = RUNS[name]
        if kind and run.study == kind:
            return run
        if not kind and run.words:
            return run
    return None


def _spec_of(row: PaperRow, kind: str) -> StudySpec:
    run = _run_of(row, kind)
    return StudySpec.of(study_of(kind), run.settings if run else None)


def _open(row: PaperRow, kind: str) -> None:
    """Apply the settings of the row's table to the page that explores it, and open this page in the
    next run."""
    run = _run_of(row, kind)
    if kind:
        panel.open_spec(_spec_of(row, kind))
        st.session_state[RESEARCH.key] = RESEARCH.tabs[0]
        return
    if run:
        session.set_workspace(f"open {row.name}", _on_words(run, session.workspace()))
    st.session_state[_GOING] = row.id


def _on_words(run: PaperRun, now: Workspace) -> Workspace:
    n = run.settings["n_anchors"]
    state = run.settings["random_states"][0]
    pair = compute.matched_models(*BUNDLED)
    spaces = tuple(dict.fromkeys((*now.spaces, *BUNDLED)))
    changed = replace(
        now, spaces=spaces, source=BUNDLED[0], target=BUNDLED[1], k=run.settings["k"], convention="paper"
    )
    anchors = compute.select_anchors(pair, n, "random", state)
    return fit_to_pair(changed.with_anchors(anchors, f"random {n} {state}"), pair)
