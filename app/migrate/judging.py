"""Blind judgements: the user judges rows of both models without knowing whose they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import streamlit as st

from app import exports, messages
from app.items import Items, cut
from app.migrate.setup import MigrateSetup
from app.page_settings import save_value, saved_value, segments
from app.plain_text import plain_html
from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.base.numbers import counted, short
from relcore.migrate.blind_test import Answer, BlindAnswers, BlindQuestion, questions, tally, with_answers
from relcore.migrate.result import TITLES, MigrationResult

_OPTIONS = ("re-embed", "bridge", "twice", "cascade")
# maximum pixels per side of a picture; maximum number of characters of a text
_PICTURE = 120
_LONGEST = 400


def with_blind_verdict(setup: MigrateSetup, result: MigrationResult) -> MigrationResult:
    """The result, with its verdict replaced by that of finished blind judgements if there are any. Of several
    such verdicts, a clear one is used rather than an unclear one."""
    candidates = []
    for option in _judgeable(result):
        answers = _saved_answers(setup, option)
        with suppress(SpaceError):  # no judgements are saved for these settings
            candidate = with_answers(result, setup.old.ids, answers, setup.task.random_state)
            if candidate.verdict.option:
                candidates.append(candidate)
    return max(candidates, key=_clearness, default=result)


def _clearness(result: MigrationResult) -> tuple[bool, bool]:
    return result.verdict.is_clear, result.verdict.option != "keep"


def judge_blind(setup: MigrateSetup, result: MigrationResult) -> None:
    if setup.items() is None and all(map(str.isdecimal, setup.old.ids)):
        messages.info(
            "These rows have no texts to show: load a table of texts beside them in Data.", ":material/info:"
        )
        return
    titles = {name: TITLES[name] for name in _judgeable(result)}
    if result.verdict.option in titles:
        best = result.verdict.option
    else:
        best = next(iter(titles))
    option = segments("Compare the old model with", titles, f"judge.option-{len(titles)}-{best}", best)
    asked = questions(result, setup.old.ids, option, setup.task.random_state)
    _judge(setup, option, asked, tally(asked, _saved_answers(setup, option)).question is None)


@st.fragment  # after a judgement, only this part is redrawn, so it keeps up with fast keys
def _judge(setup: MigrateSetup, option: str, asked: Sequence[BlindQuestion], ended: bool) -> None:
    answers = _saved_answers(setup, option)
    found = tally(asked, answers)
    if (found.question is None) != ended:  # the verdict above the tab also changes
        st.rerun()
    if not asked:
        messages.info("Both options find the same five rows for every query.", ":material/info:")
    elif found.question is None:
        head, _, rest = found.verdict().sentence.partition(": ")
        messages.lead(f"<strong>{head}.</strong> {plain_html(rest[:1].upper() + rest[1:])}")
    else:
        so_far = ""
        if found.n_answers:
            so_far = f"; sign test so far: p = {short(found.p)}"
        st.markdown(
            f"**Which five rows answer the query better?** Question {found.n_answers + 1} of at most"
            f" {found.n_answers + found.n_left}{so_far}"
        )
        _ask(setup, option, found.question, len(answers.answers))
    with st.container(horizontal=True):
        st.button(
            "Take back the last answer",
            key="judge.back",
            icon=":material/undo:",
            disabled=not answers.answers,
            on_click=_keep_answers,
            args=(setup, replace(answers, answers=answers.answers[:-1])),
        )
        exports.download(
            "Download the answers (JSON)",
            json.dumps(records.to_json(answers), ensure_ascii=False),
            "answers.json",
            "application/json",
            "judge.download",
            disabled=not answers.answers,
            help="The command relscope migrate OLD NEW --answers FILE judges by these answers.",
        )
    st.caption(
        "One list is by the old model, one by the option above; the sides are random. Queries whose lists"
        " differ most come first; queries with the same five rows are left out. The test ends after"
        f" {counted(len(asked), 'question')}, or as soon as a sign test decides (its p-value is corrected"
        " for a look after each answer). The verdict of the answers then replaces the one above. Answers are"
        " saved with the session. Each question takes one key press."
    )


def _ask(setup: MigrateSetup, option: str, question: BlindQuestion, number: int) -> None:
    (query,) = items_as_html(setup.items(queries=True), [question.query])
    messages.lead(f"<strong>Query:</strong> {query}")
    sides = [("keep", question.keep), ("other", question.other)]
    if question.is_turned:
        sides.reverse()
    for column, name, (_, ids) in zip(st.columns(2, border=True), ("Left", "Right"), sides, strict=True):
        rows = "".join(f"<li>{row}</li>" for row in items_as_html(setup.items(), ids))
        column.html(f'<strong>{name}</strong><ol class="relscope-found">{rows}</ol>')
    says = {"Left is better": sides[0][0], "Equal": "equal", "Right is better": sides[1][0]}
    with st.container(horizontal=True, horizontal_alignment="center"):
        for key, (label, preferred) in enumerate(says.items(), start=1):
            st.button(
                label,
                key=f"judge.{option}-{number}-{key}",  # a late key press must not answer the next question
                shortcut=str(key),
                on_click=_keep_answer,
                args=(setup, option, Answer(question.query, question.keep, question.other, preferred)),
            )


def _keep_answer(setup: MigrateSetup, option: str, answer: Answer) -> None:
    answers = _saved_answers(setup, option)
    if any(replace(one, preferred=answer.preferred) == answer for one in answers.answers):
        st.toast("Not counted: this question has its answer. Wait for the next one.", icon=":material/block:")
        return
    _keep_answers(setup, replace(answers, answers=(*answers.answers, answer)))


def items_as_html(items: Items | None, ids: Sequence[str]) -> list[str]:
    """The text and the picture of each id, or the id itself, as HTML."""
    if items:
        texts = items.texts(ids)
    else:
        texts = [""] * len(ids)
    if items and items.has_pictures:
        pictures = items.pictures(ids, _PICTURE)
    else:
        pictures = [""] * len(ids)
    lines = []
    for name, text, picture in zip(ids, texts, pictures, strict=True):
        shown = cut(text, _LONGEST)
        if picture:
            image = f'<img src="{picture}" alt="Picture {plain_html(name)}">'
            lines.append(image + plain_html(shown))
        else:
            lines.append(plain_html(shown or name))
    return lines


def _judgeable(result: MigrationResult) -> list[str]:
    return [option for option in _OPTIONS if option in result.found]


def _answers_key(setup: MigrateSetup, option: str) -> str:
    return f"judge.answers-{setup.digest[:16]}-{option}"


def _saved_answers(setup: MigrateSetup, option: str) -> BlindAnswers:
    with suppress(SpaceError):
        found = records.from_json(BlindAnswers, saved_value(_answers_key(setup, option)) or {}, "answers")
        if found.option == option:
            return found
    return BlindAnswers(option)


def _keep_answers(setup: MigrateSetup, answers: BlindAnswers) -> None:
    save_value(_answers_key(setup, answers.option), records.to_json(answers))
