"""The tab Judge: which of two lists answers a query better, without knowing whose it is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import streamlit as st

from app import exports, messages
from app.items import Items, cut
from app.migrate.panel import MigrateSetup
from app.page_settings import note, noted, segments
from app.plain_text import plain_html
from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.base.numbers import counted, short
from relcore.migrate.judging import Answer, BlindAnswers, BlindQuestion, questions, tally, with_answers
from relcore.migrate.migration import TITLES, MigrationResult
from relcore.runs.digest import digest_of

_OPTIONS = ("re-embed", "bridge", "twice")
_PICTURE, _LONGEST = 120, 400  # pixels; characters


def judged(setup: MigrateSetup, result: MigrationResult) -> MigrationResult:
    """The result with the verdict of blind answers that have come to an end, a clear one first."""
    ended = []
    for option in _measured(result):
        with suppress(SpaceError):  # no answers, or answers under other settings
            state = setup.task.random_state
            ended.append(with_answers(result, setup.old.ids, _answers(setup, option), state))
    found = [one for one in ended if one.verdict.option]
    return max(found, key=lambda one: (one.verdict.is_clear, one.verdict.option != "keep"), default=result)


def draw(setup: MigrateSetup, result: MigrationResult) -> None:
    titles = {name: TITLES[name] for name in _measured(result)}
    option = segments("Compare the old model with", titles, f"judge.option-{len(titles)}")
    asked = questions(result, setup.old.ids, option, setup.task.random_state)
    answers = _answers(setup, option)
    found = tally(asked, answers)
    if not asked:
        messages.info("Both find the same five rows for every query.", ":material/info:")
    elif found.question is None:
        head, _, rest = found.verdict().sentence.partition(": ")
        messages.lead(f"<strong>{head}.</strong> {plain_html(rest[:1].upper() + rest[1:])}")
    else:
        so_far = f"; sign test so far: p = {short(found.p)}" if found.n_answers else ""
        st.markdown(
            f"**Which five rows answer the query better?** Question {found.n_answers + 1} of at most"
            f" {found.n_answers + found.n_left}{so_far}"
        )
        _ask(setup, answers, found.question)
    with st.container(horizontal=True):
        st.button(
            "Take back the last answer",
            key="judge.back",
            icon=":material/undo:",
            disabled=not answers.answers,
            on_click=_keep,
            args=(setup, replace(answers, answers=answers.answers[:-1])),
        )
        exports.download(
            "Download the answers (JSON)",
            json.dumps(records.to_json(answers), ensure_ascii=False),
            "answers.json",
            "application/json",
            "judge.download",
            disabled=not answers.answers,
            help="With the same settings, relscope migrate OLD NEW --answers FILE gives their verdict.",
        )
    st.caption(
        "One list is the old model's, the other that of the option above; their sides are random and stay"
        " hidden. Queries whose lists differ most come first; those with the same five rows are left out. It"
        f" ends after {counted(len(asked), 'question')}, or as soon as a sign test decides, whose p-value"
        " allows for a look after each answer. Then its verdict replaces the one above. Answers are saved"
        " with the session."
    )


def _ask(setup: MigrateSetup, answers: BlindAnswers, question: BlindQuestion) -> None:
    (query,) = _shown(setup.items(queries=True), [question.query])
    messages.lead(f"<strong>Query:</strong> {query}")
    sides = [("keep", question.keep), ("other", question.other)][:: -1 if question.is_turned else 1]
    for column, name, (_, ids) in zip(st.columns(2, border=True), ("Left", "Right"), sides, strict=True):
        rows = "".join(f"<li>{row}</li>" for row in _shown(setup.items(), ids))
        column.html(f'<strong>{name}</strong><ol class="relscope-found">{rows}</ol>')
    says = {"Left is better": sides[0][0], "Equal": "equal", "Right is better": sides[1][0]}
    with st.container(horizontal=True, horizontal_alignment="center"):
        for key, (label, preferred) in enumerate(says.items(), start=1):
            answer = Answer(question.query, question.keep, question.other, preferred)
            st.button(
                label,
                key=f"judge.{key}",
                shortcut=str(key),
                on_click=_keep,
                args=(setup, replace(answers, answers=(*answers.answers, answer))),
            )


def _shown(items: Items | None, ids: Sequence[str]) -> list[str]:
    """The text or picture of each id, else the id, as HTML."""
    texts = items.texts(ids) if items else [""] * len(ids)
    pictures = items.pictures(ids, _PICTURE) if items and items.has_pictures else [""] * len(ids)
    lines = []
    for name, text, picture in zip(ids, texts, pictures, strict=True):
        image = f'<img src="{picture}" alt="Picture {plain_html(name)}">' if picture else ""
        lines.append(image + plain_html(cut(text, _LONGEST) or ("" if picture else name)))
    return lines


def _measured(result: MigrationResult) -> list[str]:
    return [option for option in _OPTIONS if option in result.found]


def _key(setup: MigrateSetup, option: str) -> str:
    return f"judge.answers-{digest_of(setup.digests)[:16]}-{option}"


def _answers(setup: MigrateSetup, option: str) -> BlindAnswers:
    """Those of this session, which may come from a saved file."""
    with suppress(SpaceError):
        found = records.from_json(BlindAnswers, noted(_key(setup, option)) or {}, "answers")
        if found.option == option:
            return found
    return BlindAnswers(option)


def _keep(setup: MigrateSetup, answers: BlindAnswers) -> None:
    note(_key(setup, answers.option), records.to_json(answers))
