"""The tab Choose of Migrate: which of several models to take, before all rows are embedded."""

from __future__ import annotations

import streamlit as st

from app import jobs, messages, results, session
from app.asking import Panel, chart_beside, lead_sentence
from app.choose.judging import answered, can_be_read, judge, searches_of
from app.choose.setup import ChooseSetup, choose_setup
from app.encode.forms import preview
from app.places import DATA, go
from app.plain_text import plain, plain_html
from app.workspace import BUNDLED, Workspace
from relcore.base.numbers import counted
from relcore.choose.chart import ChoiceChart, how_to_read
from relcore.choose.result import ModelChoice, ModelCost
from relcore.choose.sample import Corpus, cost_of, whole_of
from relcore.encoders.datasets import load_dataset

_ABOUT = (
    "Which embedding model should you take? Each model searches the same rows, and the one that finds the"
    " relevant rows first is best. A sample is enough (30 % of your rows or more). Judging by yourself stops"
    " as soon as the answer is known."
)
_EXAMPLE = (
    "**An example, not your data:** {} search {} Wikipedia, and sentences of the same article count as"
    " relevant. To choose among your own models, embed a sample of your rows with each of them in Data."
)
_NOTHING_TO_READ = (
    "These rows have numbers as ids and no texts, so nobody can judge them by reading. In Data, load their"
    " vectors together with a table of their ids and texts. Or choose above who else says which"
    " rows are relevant."
)


def draw(workspace: Workspace) -> None:
    about = st.container(horizontal=True, vertical_alignment="center", key="choose.about")
    setup = _PANEL.draw(workspace)
    with about:
        _draw_about(workspace, setup)


def _draw_about(workspace: Workspace, setup: ChooseSetup | None) -> None:
    """Say whether this is the example, with buttons to it and from it."""
    is_example = session.migrates_example()
    told = _ABOUT
    if is_example:
        models = "some models"
        rows = "sentences of"
        if setup is not None:
            models = counted(setup.n_models, "model")
            rows = f"{len(setup.spaces[0]):,} sentences of"
        told = _EXAMPLE.format(models, rows)
    st.caption(told)
    if st.button("Embed a sample in Data", icon=":material/database:", key="choose.data", type="tertiary"):
        _add_texts()
    if not is_example:
        st.button(
            "Show the example",
            icon=":material/move_up:",
            key="choose.example",
            type="tertiary",
            on_click=session.migrate_example,
            args=(True,),
        )
    elif workspace.example and workspace.models[:2] != BUNDLED:
        st.button(
            "Show your models",
            icon=":material/move_down:",
            key="choose.own",
            type="tertiary",
            on_click=session.migrate_example,
            args=(False,),
        )


def _add_texts() -> None:
    """Open Data where texts become vectors."""
    st.session_state["data.kind"] = "Texts"
    go(DATA)


def _ask(setup: ChooseSetup) -> ModelChoice | None:
    if setup.task.blind:
        if not can_be_read(setup):
            messages.info(_NOTHING_TO_READ, ":material/info:")
            if st.button("Add texts in Data", icon=":material/database:", key="choose.texts"):
                _add_texts()
            return None
        setup = answered(setup)
        return setup.task.answer(setup.spaces, searches_of(setup.task, setup.spaces))
    if not setup.task.judgements and (setup.task.has_queries or setup.spaces[0].labels is None):
        messages.info(
            "Judgements are needed: give a file above, or judge the rows yourself.", ":material/info:"
        )
        return None
    return results.result_of(
        setup.task,
        setup.specs,
        label="Compare the models",
        spaces=setup.spaces,
        unasked_seconds=results.UNASKED_SECONDS,
    )


def _report(setup: ChooseSetup, found: ModelChoice) -> None:
    report = found.report(_costs(setup))
    if found.answer is None:
        lead_sentence(report)
    else:
        # Names of models may have a colon, so the numbers begin with the name of the measure.
        head, _, leads = report.sentence.rpartition(f": {found.metric} ")
        numbers = plain_html(f"{found.metric} {leads}")
        messages.lead(f"<strong>{plain_html(head)}.</strong> <small>{numbers}</small>")
    if setup.task.blind:
        judge(setup, found.is_decided)
    if found.answer is None:
        for note in report.notes:
            st.caption(plain(note))
        return
    _offer_run(setup, found)
    task = setup.task
    if task.blind:
        task = answered(setup).task
    digests = tuple(space.digest for space in setup.spaces)
    chart = ChoiceChart(spaces=setup.specs, digests=digests, choose=task)
    chart_beside(chart.draw(found), "choose", report, how_to_read(found))


def _costs(setup: ChooseSetup) -> list[ModelCost]:
    """What each model costs for all rows, if the app embedded its rows."""
    store = jobs.queue().store
    costs = []
    for spec in setup.specs[: setup.n_models]:
        if spec.encoder is None or spec.dataset is None:
            costs.append(ModelCost())
            continue
        whole = whole_of(spec.dataset)
        about = preview(whole)
        corpus = Corpus(whole, spec.dataset, about.n, about.n_bytes)
        costs.append(cost_of(spec.encoder, load_dataset(spec.dataset), corpus, store))
    return costs


def _offer_run(setup: ChooseSetup, found: ModelChoice) -> None:
    """Offer to embed the other rows with the chosen model, if the app embedded its sample."""
    if not found.best or found.answer is None:
        return
    spec = setup.specs[found.answer.best]
    if spec.encoder is None or spec.dataset is None or whole_of(spec.dataset) == spec.dataset:
        return
    whole = whole_of(spec.dataset)
    about = preview(whole)
    sends_to = tuple(filter(None, [spec.encoder.sends_to]))
    label = f"Embed the other {found.n_corpus - found.n_rows:,} rows with {plain(found.best)}"
    if sends_to:
        label = f"Send, and {label[:1].lower()}{label[1:]}"
    given = (whole, about.digest, about.name, [spec.encoder], {}, sends_to)
    st.button(
        label,
        key="choose.run",
        icon=":material/play_arrow:",
        type="primary",
        on_click=st.session_state.update,
        args=({session.ENCODE: given},),
    )


_PANEL = Panel(choose_setup, _ask, _report, "Choose other models or queries above. Data loads your own.")
