"""The choosers of the tab Choose: models, queries, judgements and settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import streamlit as st

from app import compute, jobs, messages, results, session
from app.encode.forms import preview
from app.items import Items, items_of
from app.migrate.setup import KEEP, MOST_QRELS
from app.page_settings import segments
from app.plain_text import plain
from app.widgets import setting_widget, space_labels
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.base.numbers import percent
from relcore.base.settings import settings_of
from relcore.catalog.catalog import SpaceSpec, base_of
from relcore.catalog.naming import example_spaces
from relcore.choose.sample import whole_of
from relcore.choose.task import FEWEST_MODELS, MOST_MODELS, Choose
from relcore.encoders.encoder import TrainedEncoder
from relcore.runs.entries import digest_of
from relcore.scores.relevance import JudgedQuery, read_qrels
from relcore.spaces.matching import short_names
from relcore.spaces.space import LatentSpace

BLIND = "blind"
LABELS = "labels"
QRELS = "qrels"
_JUDGES = {LABELS: "Labels", BLIND: "You, blind", QRELS: "A file (qrels)"}


@dataclass(frozen=True, eq=False)
class ChooseSetup:
    """The spaces of the rows by each model, then those of the queries if there are any."""

    specs: tuple[SpaceSpec, ...]
    spaces: tuple[LatentSpace, ...]
    task: Choose
    n_models: int

    @property
    def digest(self) -> str:
        """What tells these spaces and this order of queries from others, in the names of saved answers."""
        return digest_of([space.digest for space in self.spaces], self.task.random_state)

    def items(self, queries: bool = False) -> Items | None:
        """Texts and pictures of the rows, or of the queries."""
        spec = self.specs[0]
        if queries:
            spec = self.specs[-1]
        return items_of(replace(Workspace(), source=spec, target=spec))


def choose_setup(workspace: Workspace) -> ChooseSetup | None:
    """Draw the choosers. None, with the reason on the page, until two models are chosen."""
    example: Sequence[SpaceSpec] = ()
    usual = _own_models(workspace)
    if session.migrates_example():
        example, _ = example_spaces("sentences", jobs.queue().store.finished)
        usual = tuple(example) or usual
    options = tuple(dict.fromkeys((*example, *workspace.spaces)))
    labels = _short_labels(options, usual)
    place = results.place_of(options, usual)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="choose-choosers"):
        models = st.multiselect(
            "Models to compare",
            options,
            default=usual[:MOST_MODELS],
            format_func=labels.get,
            max_selections=MOST_MODELS,
            key=f"choose.models-{place}",
            width=760,
            wrap=True,
            help="Vectors of the same rows by two to five models. Data embeds a sample of your own texts.",
            **KEEP,
        )
        with st.popover("Queries", icon=":material/quiz:"):
            queries = _queries(models, options, labels)
        with st.popover("Method details", icon=":material/tune:", key="choose.details"):
            settings = _settings(models)
    if len(models) < FEWEST_MODELS:
        messages.info("Choose two models or more.", ":material/info:")
        return None
    specs = (*models, *queries)
    spaces = tuple(compute.load_space(spec) for spec in specs)
    given, blind = _judgements(spaces, bool(queries))
    task = Choose(**settings, has_queries=bool(queries), judgements=given, blind=blind)
    return ChooseSetup(specs, spaces, task, len(models))


def _own_models(workspace: Workspace) -> tuple[SpaceSpec, ...]:
    """The models that are compared, and the other spaces of the session that have the same rows."""
    first = workspace.source
    linked = {base_of(spec) for spec in workspace.spaces if spec.source == "renamed"}
    others = [
        spec
        for spec in workspace.spaces
        if spec not in workspace.models and spec not in linked and spec.source != "bundled"
    ]
    found = [spec for spec in others if _have_same_rows(first, spec)]
    return (*workspace.models, *found)[:MOST_MODELS]


def _have_same_rows(one: SpaceSpec, other: SpaceSpec) -> bool:
    """Whether two spaces share at least half of their rows, paired by more than an unconfirmed order."""
    shared = compute.shared_rows(one, other)
    if isinstance(shared, str) or compute.is_paired_by_order(one, other):
        return False
    return 2 * shared >= max(len(compute.load_space(spec)) for spec in (one, other))


def _short_labels(options: Sequence[SpaceSpec], usual: Sequence[SpaceSpec]) -> dict[SpaceSpec, str]:
    """The labels of the options. Those that are chosen at first are named as in the answer, without the name
    of their data, which all of them share."""
    labels = space_labels(options)
    named = [spec for spec in usual if spec in labels]
    short, _ = short_names([labels[spec] for spec in named])
    if set(short) & {labels[spec] for spec in options if spec not in named}:
        return labels
    return labels | dict(zip(named, short, strict=True))


def _queries(
    models: Sequence[SpaceSpec], options: Sequence[SpaceSpec], labels: dict[SpaceSpec, str]
) -> tuple[SpaceSpec, ...]:
    """The spaces of the queries. There are none until one is chosen for each model."""
    st.caption("By default, each row is a query. Or choose your queries, embedded by each model in Data.")
    others = [spec for spec in options if spec not in models]
    found = [
        st.selectbox(
            f"Queries by {plain(labels[model])}",
            others,
            index=None,
            format_func=labels.get,
            placeholder="Each row",
            key=f"choose.queries-{results.place_of([model], others)}",
            **KEEP,
        )
        for model in models
    ]
    chosen = [spec for spec in found if spec is not None]
    if not chosen:
        return ()
    if len(chosen) < len(found):
        messages.info("Choose the queries of each model.", ":material/info:")
        return ()
    for model, spec in zip(models, chosen, strict=True):
        if isinstance(spec.encoder, TrainedEncoder) and spec.dataset != model.dataset:
            raise SpaceError(
                f"{labels[model]}: expected queries by the encoder that was fitted to the rows, got one that"
                " was fitted to the queries, which is another space; relscope choose CORPUS QUERIES embeds"
                " them"
            )
    return tuple(chosen)


def _settings(models: Sequence[SpaceSpec]) -> dict[str, Any]:
    fields = settings_of(Choose)
    n_rows = 0
    if models and models[0].dataset and whole_of(models[0].dataset) != models[0].dataset:
        n_rows = preview(whole_of(models[0].dataset)).n
        n_here = len(compute.load_space(models[0]))
        st.caption(f"{n_here:,} of {n_rows:,} rows are embedded ({percent(n_here / n_rows)}).")
    else:
        n_rows = setting_widget(replace(fields["n_rows"], label="Rows of the whole corpus"), "choose.rows", 0)
    return {
        "n_rows": n_rows,
        "epsilon": setting_widget(fields["epsilon"], "choose.epsilon", Choose.epsilon),
        "random_state": setting_widget(fields["random_state"], "choose.random-state", 0, 0, 10_000),
    }


def _judgements(spaces: Sequence[LatentSpace], has_queries: bool) -> tuple[tuple[JudgedQuery, ...], bool]:
    """The judgements of a file, and whether the user judges blind."""
    judges = dict(_JUDGES)
    if has_queries or all(space.labels is None for space in spaces):
        del judges[LABELS]
    judge = segments(
        "Who says which rows are relevant", judges, f"choose.judge-{len(judges)}", next(iter(judges))
    )
    if judge != QRELS:
        return (), judge == BLIND
    uploaded = st.file_uploader(
        "Judgements (TREC qrels: query, iteration, row, grade)",
        ["txt", "qrels", "tsv", "test"],
        key="choose.qrels",
    )
    if uploaded is None:
        return (), False
    if uploaded.size > MOST_QRELS:
        raise SpaceError(
            f"{uploaded.name}: expected at most {MOST_QRELS // 10**6} MB, got {uploaded.size:,} bytes"
        )
    return read_qrels(Path(str(session.keep_upload(uploaded)))), False
