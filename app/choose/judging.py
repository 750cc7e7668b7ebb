"""Blind judgements: the user ticks the rows that answer a query, without knowing which model found them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import streamlit as st

from app import compute, exports, messages
from app.choose.setup import ChooseSetup
from app.migrate.judging import items_as_html
from app.page_settings import save_value, saved_value
from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.choose.looks import LOOKS
from relcore.choose.task import Choose, ModelSearches
from relcore.scores.relevance import JudgedQuery
from relcore.spaces.space import LatentSpace

_PER_LINE = 2
_NUMBERED = re.compile(r"[^\W\d]*\W*\d+")  # ids such as 12, t12 and row 12


@dataclass(frozen=True)
class JudgedQueries:
    """The judgements of a person, in the order in which they were given."""

    judgements: tuple[JudgedQuery, ...] = ()


@compute.cached(4, "Searching …")
def searches_of(task: Choose, spaces: tuple[LatentSpace, ...]) -> ModelSearches:
    return replace(task, judgements=()).searches(spaces)


def can_be_read(setup: ChooseSetup) -> bool:
    """Whether rows and queries have texts, pictures, or ids that are more than a word with a number."""
    sides = [(setup.items(), setup.spaces[0])]
    if setup.task.has_queries:
        sides.append((setup.items(queries=True), setup.spaces[-1]))
    return all(items or not all(map(_NUMBERED.fullmatch, space.ids)) for items, space in sides)


def answered(setup: ChooseSetup) -> ChooseSetup:
    """The setup with the judgements that were given so far."""
    return replace(setup, task=replace(setup.task, judgements=_saved(setup).judgements))


def judge(setup: ChooseSetup, is_decided: bool) -> None:
    """Ask for the next query, unless the answer is known or no query is left."""
    found = searches_of(setup.task, setup.spaces)
    judgements = _saved(setup).judgements
    done = {one.query for one in judgements}
    waiting = [place for place, query in enumerate(found.queries) if str(query) not in done]
    if is_decided:
        messages.success("Decided: no more judgements are needed.")
    elif not waiting:
        messages.info("All queries are judged.", ":material/info:")
    else:
        _ask(setup, found, waiting[0], len(done))
    with st.container(horizontal=True):
        st.button(
            "Take back the last query",
            key="choose.back",
            icon=":material/undo:",
            disabled=not done,
            on_click=_take_back,
            args=(setup,),
        )
        exports.download(
            "Download the judgements (qrels)",
            "".join(f"{one.query} 0 {one.row} {one.grade:.0f}\n" for one in judgements),
            "judgements.qrels",
            "text/plain",
            "choose.download",
            disabled=not done,
            help="The command relscope choose takes this file with --qrels.",
        )
    st.caption(
        "The first rows of all models, mixed; which model found a row is not shown. The first look is after"
        f" {LOOKS[0]} queries with a relevant row, the last one after {LOOKS[-1]}. Judgements are saved with"
        " the session."
    )


def _ask(setup: ChooseSetup, found: ModelSearches, place: int, number: int) -> None:
    query = str(found.queries[place])
    pool = found.pool(place)
    st.markdown(f"**Which of these rows answer the query?** Query {number + 1}")
    (asked,) = items_as_html(setup.items(queries=setup.task.has_queries), [query])
    messages.lead(f"<strong>Query:</strong> {asked}")
    with st.form(f"choose.form-{number}", border=False):
        head = st.container(horizontal=True, vertical_alignment="center")  # in sight above many rows
        ticked: dict[str, bool] = {}
        for start in range(0, len(pool), _PER_LINE):
            columns = st.columns(_PER_LINE, border=True)
            line = pool[start : start + _PER_LINE]
            for column, row, shown in zip(columns, line, items_as_html(setup.items(), line), strict=False):
                with column:
                    key = f"choose.row-{number}-{len(ticked)}"
                    ticked[row] = st.checkbox(f"Row {len(ticked) + 1} is relevant", key=key)
                    st.html(shown)
        with head:
            look = {"key": f"choose.next-{number}", "type": "primary", "shortcut": "Enter"}
            clicked = st.form_submit_button("Next query", **look)
            st.caption(
                "Tick the rows that answer, if any. Enter does the same as this button.", width="content"
            )
        if clicked:
            said = [JudgedQuery(query, row, float(is_relevant)) for row, is_relevant in ticked.items()]
            _save(setup, (*_saved(setup).judgements, *said))
            st.rerun()


def _take_back(setup: ChooseSetup) -> None:
    judgements = _saved(setup).judgements
    last = judgements[-1].query
    _save(setup, [one for one in judgements if one.query != last])


def _key(setup: ChooseSetup) -> str:
    return f"choose.answers-{setup.digest[:16]}"


def _saved(setup: ChooseSetup) -> JudgedQueries:
    with suppress(SpaceError):
        return records.from_json(JudgedQueries, saved_value(_key(setup)) or {}, "judgements")
    return JudgedQueries()


def _save(setup: ChooseSetup, judgements: Sequence[JudgedQuery]) -> None:
    save_value(_key(setup), records.to_json(JudgedQueries(tuple(judgements))))
