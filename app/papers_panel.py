"""The rows of the Papers page: filter, tables side by side, runs with their bars, and links to the pages that explore them."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from app import papers_tables, session
from app.encode import encoding_costs
from app.jobs import asked_again, engine, follow
from app.page_settings import kept
from app.papers_openings import Opening, opening_of
from app.plain_text import plain
from app.study import studies_panel
from relcore.access import shared
from relcore.numbers import general
from relcore.pace import Expected, presently
from relcore.papers import tables
from relcore.papers.ours import Ours
from relcore.papers.paper_run import RUNS
from relcore.papers.rows import PaperRow, load_rows
from relcore.papers.runs import expected, paper_job, result_of, run_key, what_is_missing
from relcore.papers.verdict import DOES_NOT, HOLDS, PARTLY, verdict_of
from relcore.studies import study_of

_ASSETS = Path(__file__).parents[1] / "assets"
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
    found = {name: ours for name in RUNS if (ours := result_of(name, engine().store))}
    told = sum(any(name in found for name in row.run_names()) for row in rows)
    words = [verdict.word for row in rows if (verdict := verdict_of(row, found))]
    holds, partly, does_not = (words.count(word) for word in (HOLDS, PARTLY, DOES_NOT))
    st.html(
        f'<p class="relscope-lead"><b>{len(rows)}</b> tables and figures of three papers; <b>{told}</b> have numbers measured '
        f"here. The paper’s pattern holds in <b>{holds}</b>, holds partly in <b>{partly}</b> and does not hold in "
        f"<b>{does_not}</b>. Published numbers come from the papers’ data and models, ours from the data and models at hand: "
        "compare the patterns, not the values.</p>"
    )
    chosen = _filtered(rows, found)
    _exports(chosen, found)
    if not chosen:
        st.info("No row matches. Choose another paper, or also show rows without numbers.", icon=":material/filter_alt_off:")
    shown_jobs: set[str] = set()
    for row in chosen:
        _row(row, found, shown_jobs)


def _filtered(rows: tuple[PaperRow, ...], found: dict[str, Ours]) -> list[PaperRow]:
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
        one = papers[paper]
        st.caption(f"{one.authors}, [{one.title}]({one.url})")
    return [
        row for row in rows if paper in (_ALL, row.paper.id) and (not only or any(name in found for name in row.run_names()))
    ]


def _exports(rows: list[PaperRow], found: dict[str, Ours]) -> None:
    files = {
        "csv": ("CSV", tables.as_csv, "text/csv", "One number per line, published and measured"),
        "tex": ("LaTeX", tables.as_latex, "application/x-tex", "A longtable, for a paper that uses booktabs"),
        "json": ("JSON", tables.as_json, "application/json", "Everything, with settings, dates and versions"),
    }
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        for suffix, (label, make, mime, explanation) in files.items():
            st.download_button(
                label,
                data=lambda make=make: make(rows, found),
                file_name=f"papers.{suffix}",
                mime=mime,
                key=f"papers.{suffix}",
                help=f"{explanation}: the rows shown",
                type="tertiary",
                icon=":material/download:",
                on_click="ignore",
                disabled=not rows,
            )


def _row(row: PaperRow, found: dict[str, Ours], shown_jobs: set[str]) -> None:
    with st.container(border=True, key=f"papers-{row.id}"):
        st.html(papers_tables.head(row))
        measured = any(name in found for name in row.run_names())
        widths = [1, 1] if measured else [2.2, 1]
        left, right = st.columns(widths if row.published else [1, 2.2], gap="large")
        with left:
            needs = papers_tables.told(row.needs, "Their data and models:") if row.needs else ""
            st.html(papers_tables.published(row) + needs)
        with right:
            _ours(row, found)
        _actions(row, found, shown_jobs)


def _ours(row: PaperRow, found: dict[str, Ours]) -> None:
    names = row.run_names()
    parts = [papers_tables.here(found[name], row.groups(name)) for name in names if name in found]
    if verdict := verdict_of(row, found):
        parts.insert(0, papers_tables.verdict(verdict))
    if parts and row.differs:
        parts.append(papers_tables.told(row.differs, "Differences from the paper:"))
    waiting = [f"{RUNS[name].title}, {_told(expected(name, engine().store))}" for name in names if name not in found]
    if waiting:
        parts.append(papers_tables.told(f"{'; '.join(waiting)}.", "Not run yet:"))
    if not names:
        parts.append(papers_tables.told(row.why_not, "Not measured here:"))
    st.html("".join(parts))


def _actions(row: PaperRow, found: dict[str, Ours], shown_jobs: set[str]) -> None:
    jobs = {job.key: job for job in engine().jobs()}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for name in row.run_names():
            job = jobs.get(run_key(name))
            if job is None or job.status().state == "done":
                _button(row, name, name in found)
        _explore(row)
    for name in row.run_names():
        job = jobs.get(run_key(name))
        if job is None or job.status().state == "done":
            continue
        if asked_again(job):
            job = _start(name)
        if job.key in shown_jobs:  # another row above has the same run, and its bar
            st.caption(f"{job.title}: see its progress above.")
        else:
            shown_jobs.add(job.key)
            follow([job])


def _button(row: PaperRow, name: str, known: bool) -> None:
    run, likely = RUNS[name], expected(name, engine().store)
    missing = what_is_missing(name)
    mine = not shared() or not known or run_key(name) in session.member().made
    others = "" if mine else "This app is shared: the result is there already, and others may be reading it."
    many = f" {run.title}" if len(row.run_names()) > 1 else ""
    st.button(
        f"{'Run again' if known else 'Run'}{many} · {_told(likely)}",
        key=f"papers.run-{row.id}-{name}",
        icon=":material/play_arrow:",
        on_click=session.guarded,
        args=(_start, name),
        disabled=bool(missing or others),
        help=missing or others or f"{run.title}.{encoding_costs.learned([likely])}",
    )


def _start(name: str):
    """Submit the run; it is measured again even if the store has it."""
    key = run_key(name)
    engine().store.remove(key)
    return engine().submit(
        key, paper_job, title=RUNS[name].title, expected=expected(name, engine().store), here=True, name=name
    )


def _told(likely: Expected) -> str:
    return encoding_costs.in_words(presently(likely))


def _explore(row: PaperRow) -> None:
    page = PAGES[row.page]
    told = _study_title(row.tab) if row.page == "studies" else row.tab
    opening = opening_of(row, session.workspace(), engine().store)
    st.button(
        f"Explore on {page}, {told}" if told else f"Explore on {page}",
        key=f"papers.explore-{row.id}",
        type="tertiary",
        icon=":material/arrow_forward:",
        disabled=bool(opening.why_not),
        help=plain(opening.why_not) or _opened(opening),
        on_click=session.guarded,
        args=(_open, row),
    )
    if st.session_state.get(_GOING) == row.id:
        del st.session_state[_GOING]
        st.switch_page(Path(__file__).parents[1] / "pages" / f"{row.page}.py")


def _opened(opening: Opening) -> str | None:
    """What the page opens with, as a help text."""
    numbers = [
        f"{name.replace('_', ' ')} {general(one)}" for name, one in opening.settings.items() if type(one) in (int, float)
    ]
    return f"With the table's settings: {', '.join(numbers)}." if numbers else None


def _open(row: PaperRow) -> None:
    """Make the table's settings those of the page, and go there in the run that follows."""
    opening = opening_of(row, session.workspace(), engine().store)
    if opening.change:
        session.become(f"open {row.name}", opening.change(session.workspace()))
    if opening.study:
        studies_panel.open_spec(opening.study)
    for key, value in opening.state.items():
        st.session_state[key] = value
    if row.tab:
        st.session_state[_TABS[row.page]] = row.tab
    st.session_state[_GOING] = row.id


def _study_title(kind: str) -> str:
    return study_of(kind).title
