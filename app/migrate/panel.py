"""The tab New model of Migrate: choosers, the verdict, and the next steps."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import compute, exports, jobs, messages, results, session
from app.glossary.card import caption
from app.glossary.terms import linked_html
from app.items import Items, cut, items_of
from app.page_settings import remembered, save_value, saved_value, segments
from app.places import CONNECT, go
from app.plain_text import plain, plain_html
from app.tables import chosen_rows
from app.widgets import setting_widget, space_labels
from app.workspace import Workspace
from relcore.base import records
from relcore.base.errors import NoCommonId, SpaceError
from relcore.base.names import ADAPTERS, STRATEGIES
from relcore.base.numbers import band, counted, short, signed
from relcore.base.report import Cells, Table, delimited_text
from relcore.base.settings import settings_of
from relcore.base.writing import temporary
from relcore.catalog.catalog import SpaceSpec, base_of, is_linked
from relcore.compare.columns import clusters_of
from relcore.migrate.adapters import CASCADE, GRAPHS, SNIPPET
from relcore.migrate.evaluate import FEWEST, JudgedQuery, Pairing, check_pairs, read_qrels
from relcore.migrate.measurements import (
    AFTER,
    Answer,
    BlindAnswers,
    BlindQuestion,
    CascadePrice,
    CheaperIndex,
    MigrationChart,
    ThresholdChange,
    ThresholdScores,
    questions,
    tally,
    threshold_table,
    with_answers,
)
from relcore.migrate.migration import FEWEST as FEWEST_OF_GROUP
from relcore.migrate.migration import (
    LEFT_OUT,
    NEIGHBOURS,
    TITLES,
    Migration,
    MigrationResult,
    export_result,
    losses_by_group,
    starting_models,
)
from relcore.migrate.migration import TASK as EXAMPLE
from relcore.migrate.price import UNKNOWN, Rate
from relcore.runs.entries import digest_of
from relcore.spaces.space import GuessedIds, LatentSpace, Match
from relcore.studies.papers import commit_of

KEEP: dict[str, Any] = {"persist_state": "session"}
_COMPARED = "relscope.migrate-compared"
MOST_QRELS = 50_000_000  # bytes of a file of relevance judgements


@dataclass(frozen=True, eq=False)
class MigrateSetup:
    """The spaces of the old and the new model and, if queries are chosen, the spaces of the queries by both
    models."""

    specs: tuple[SpaceSpec, ...]
    spaces: tuple[LatentSpace, ...]
    task: Migration
    details: DeltaGenerator

    @property
    def digests(self) -> tuple[str, ...]:
        return tuple(space.digest for space in self.spaces)

    @property
    def old(self) -> LatentSpace:
        return self.spaces[0]

    @property
    def new(self) -> LatentSpace:
        return self.spaces[1]

    def items(self, queries: bool = False) -> Items | None:
        """Texts and pictures of the corpus. With `queries`, texts and pictures of the queries, if these are
        separate spaces."""
        if queries and self.task.judgements:
            source, target = self.specs[2:]
        else:
            source, target = self.specs[:2]
        return items_of(replace(Workspace(), source=source, target=target))


def choose(workspace: Workspace) -> MigrateSetup | None:
    """Draw the choosers. If the choices do not fit together, the page shows why, and None is returned."""
    example = starting_models(jobs.queue().store.finished) or ()
    options = tuple(dict.fromkeys((*example, *workspace.spaces)))
    if example and session.migrates_example():
        usual = example
    else:
        usual = (workspace.source, workspace.target)
    labels = space_labels(options)
    place = results.place_of(options, usual)

    def space(label: str, key: str, **look: Any) -> SpaceSpec | None:
        return st.selectbox(
            label, options, format_func=labels.get, key=f"migrate.{key}-{place}", **look, **KEEP
        )

    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="migrate-choosers"):
        look = {
            "width": 380,
            "help": "Rows are paired by id. The new model needs only some of the rows. Load spaces in Data.",
        }
        old = space("Old model's vectors", "old", index=options.index(usual[0]), **look)
        new = space("New model's vectors", "new", index=options.index(usual[1]), **look)
        with st.popover("Queries", icon=":material/quiz:"):
            st.caption(
                "A log of queries, embedded by both models, tells how many rows a cascade embeds. Queries"
                " with judgements (a TREC qrels file: query, iteration, row, grade) also decide the verdict,"
                " better than rows do."
            )
            sides = [
                space(f"Queries by the {side} model", f"queries-{side}", index=None, placeholder="None")
                for side in ("old", "new")
            ]
            queries, judgements = _queries_and_judgements(sides)
        details = st.popover("Method details", icon=":material/tune:", key="migrate.details")
        with details:
            specs = (old, new, *queries)
            settings = _settings(specs, (old, new) == example, bool(judgements))
    if old == new:
        messages.info(
            "Choose two different spaces: the old model's vectors and the new model's.",
            icon=":material/info:",
        )
        return None
    spaces = tuple(compute.load_space(spec) for spec in specs)
    return MigrateSetup(specs, spaces, Migration(**settings, judgements=judgements), details)


def _queries_and_judgements(
    queries: Sequence[SpaceSpec | None],
) -> tuple[tuple[SpaceSpec, ...], tuple[JudgedQuery, ...]]:
    """The spaces of the queries, and their judgements. Both are empty until the queries of both models are
    chosen."""
    uploaded = st.file_uploader("Judgements (qrels)", ["txt", "qrels", "tsv", "test"], key="migrate.qrels")
    if None in queries:
        if uploaded or any(queries):
            messages.info("The queries of both models are needed.", icon=":material/info:")
        return (), ()
    if uploaded is None:
        return tuple(queries), ()
    if uploaded.size > MOST_QRELS:
        raise SpaceError(
            f"{uploaded.name}: expected at most {MOST_QRELS // 10**6} MB, got {uploaded.size:,} bytes"
        )
    return tuple(queries), _read(str(session.keep_upload(uploaded)))


@st.cache_data(max_entries=4, show_spinner="Reading the judgements …")
def _read(path: str) -> tuple[JudgedQuery, ...]:
    return read_qrels(Path(path))


def _settings(specs: Sequence[SpaceSpec], example: bool, judged: bool) -> dict[str, Any]:
    old, new = (compute.load_space(spec) for spec in specs[:2])
    place = results.place_of(specs)
    start = EXAMPLE if example else Migration()
    strategies = [name for name in STRATEGIES if name != "class-balanced" or old.labels is not None]
    shown = {
        "n_pairs": (f"pairs-{place}", 0, min(len(old), len(new))),
        "adapter": ("adapter",),
        "strategy": ("strategy", *strategies),
        "relevance": (f"relevance-{place}",),
        "candidates": ("candidates",),
        "n_candidates": ("n-candidates", 1, 1000),
        "k": ("k", 1, 100),
        "random_state": ("random-state", 0, 10_000),
    }
    if (old.labels is None and new.labels is None) or judged:
        del shown["relevance"]
    return {
        name: setting_widget(settings_of(Migration)[name], f"migrate.{key}", getattr(start, name), *limits)
        for name, (key, *limits) in shown.items()
    }


@compute.cached(16)
def _pairing(pair: Match, random_state: int) -> Pairing:
    rows = pair.target.vectors, pair.source.vectors
    return check_pairs(*rows, random_state, (pair.source.name, pair.target.name))


def belong(workspace: Workspace, setup: MigrateSetup) -> bool:
    """Whether rows with the same id are the same item. If not, the page says so and offers to link the
    rows."""
    old, new = setup.specs[:2]
    label = "Link the rows"
    try:
        pair = compute.matched_pair(old, new)
        found, guesses = _pairing(pair, setup.task.random_state), isinstance(pair.ids, GuessedIds)
    except NoCommonId:
        told = "The two models share no row ids."
        why = "Migrate needs rows that both models have embedded."
    else:
        if guesses and not setup.task.judgements:
            missing = FEWEST - len(pair.ids.marks)
        else:
            missing = 0
        if found.is_clear and not found.shift and missing <= 0:
            return True
        told = "Rows of the same id are not the same thing in these two models."
        why = (
            "An adapter fitted on half of the rows pairs the other half no better than by chance"
            f" (MRR {short(found.score)}, chance {short(found.chance)}, n = {found.n:,})."
        )
        if found.shift:
            told = f"The rows are shifted by {found.shift:+d}."
            why = "Look for a header or a missing row in one of the files."
        elif found.is_clear:
            told = "Link guessed how these rows are paired."
            why = f"Only links that you confirm are scored. Confirm {missing} more of {len(pair):,}."
            label = "Confirm links"
    with st.container(border=True, key="unpaired"):
        st.markdown(f"**{told}** {why}")
        others = (spec for spec in workspace.spaces if spec not in (old, new))
        linked = next((spec for spec in others if is_linked(spec, old, new)), None)
        with st.container(horizontal=True):
            if linked:
                label = "Use the links found"
                key = "use-links"
            else:
                key = "link"
            if st.button(label, key=f"migrate.{key}", icon=":material/hub:", type="primary"):
                ends = {"source": old, "target": linked or new}
                if linked and base_of(linked) == old:
                    ends = {"source": linked, "target": new}
                session.edit("choose the two models", **ends)
                if not linked:
                    go(CONNECT, "Link")
                st.rerun()
            st.button(
                "Show the example instead",
                icon=":material/move_up:",
                key="migrate.example",
                type="tertiary",
                on_click=session.migrate_example,
                args=(True,),
            )
    return False


def show_verdict(setup: MigrateSetup, result: MigrationResult) -> None:
    # The number fields stand above the verdict, because its length changes with these numbers.
    n_corpus, rate = _corpus(setup, result)
    scaled, note = result.scaled(n_corpus, rate)
    st.session_state[_RATE] = rate
    told = [one for one in result.cautions if LEFT_OUT in one]
    here = result.decided(rate)
    _headline(here, result.sentence_at(n_corpus, rate), scaled.cost_sentence())
    for caution in result.cautions:
        if caution not in told:
            messages.warning(caution)
    if result.next_note:
        with st.expander(f"{result.n_pairs:,} pairs are few: rows to embed next"):
            st.code("\n".join(result.embed_next), language=None)
    _options(scaled, rate, note)
    figure = MigrationChart(spaces=setup.specs, digests=setup.digests, migration=setup.task).draw(result)
    exports.figure(figure, "migrate.chart")
    n = len(result.candidates)
    n_queries = len(result.queries)
    how = "as set"
    if n > 1:
        how = f"chosen by cross-validation over queries among {n}"
    kind = "held-out rows as"
    if result.relevance == "judgements":
        kind = "judged"
    relevant = _RELEVANT[result.relevance].format(k=result.k)
    caption(
        f"{n_queries:,} {kind} queries search {result.n_rows:,} rows. {relevant} The adapter is fitted on"
        f" {counted(result.n_pairs, 'other row')} that both models have embedded (pairs)."
        f" {' '.join([*told, 'Scores are rounded; differences are of unrounded scores.'])}"
    )
    with setup.details:
        _cells(scaled.details(), "migrate.details-table")
        caption(
            f"Adapter: {how}. {result.rewriting_note} {result.weight_note} Intervals: over queries, for this"
            " adapter; for differences, paired. Other pairs: how much an adapter from other pairs changes the"
            " score, 95 %. Chance: each query scored with another query's results. Curves: means of three"
            " draws of the pairs."
        )


def _headline(result: MigrationResult, for_corpus: str, cost: str) -> None:
    """Draw the verdict and its cost. If the verdict for the size of the user's corpus is given
    (`for_corpus`), it comes first, and the verdict for the loaded rows stands below it."""
    head, rest = lead(result)
    by_label = ""
    if result.relevance == "labels":
        by_label = " <small>Rows of the same label count as relevant.</small>"
    if for_corpus:
        first, _, more = for_corpus.partition(". ")
        messages.lead(f"<strong>{plain_html(first.rstrip('.'))}.</strong> {plain_html(cost)}{by_label}")
        caption(f"{more} For the {result.n_corpus:,} rows here: {head[:1].lower()}{head[1:]}.")
    else:
        messages.lead(f"<strong>{head}.</strong> {plain_html(f'{rest} {cost}')}{by_label}")


def _options(result: MigrationResult, rate: Rate, note: str) -> None:
    html = Table(shown=result.overview(rate), caption=note).html()
    for name, told in result.explained.items():
        html = html.replace(f"{TITLES[name]}</td>", f"{TITLES[name]}<small>{told}</small></td>", 1)
    with st.container(key="migrate-options"):
        st.html(f'<div class="relscope-report">{linked_html(html)}</div>')


_ABOUT = (
    "Should you change the embedding model? Five options are compared, each with its cost: keep the old one,"
    " translate new queries (bridge), query both models, let the new model rank what the old one finds"
    " (cascade), or re-embed all rows. They are scored on rows that both models have embedded. Your data stay"
    " as they are."
)
_EXAMPLE = (
    "An example: should a search in {n:,} sentences change its embedding model? Five options are compared."
    " Data, at the top left, loads your own vectors."
)
_RELEVANT = {
    "judgements": "Relevant for a query: the rows that your judgements name.",
    "labels": "Relevant for a query: the rows of its label, as no judged queries are loaded.",
    NEIGHBOURS: "Relevant for a query: its {k} nearest rows by the new model.",
}


def _cells(cells: Cells, key: str) -> None:
    """Draw a table of texts, whose first row is the head. Columns that contain only dashes are left out."""
    columns, *lines = cells
    table = pd.DataFrame(lines, columns=columns)
    st.dataframe(table.loc[:, (table != "–").any()], hide_index=True, key=key)


def lead(result: MigrationResult) -> tuple[str, str]:
    """Split the verdict into the answer and the reason. In a verdict from blind judgements, the first
    sentence is the answer, and all other sentences are the reason."""
    if result.verdict.headline:
        head, _, rest = result.verdict.headline.partition(". ")
        return head, rest
    head, _, rest = result.verdict.sentence.partition(": ")
    return head, rest[:1].upper() + rest[1:]


TOKENS_PER_WORD = 1.3  # average for English
_RATE = "relscope.migrate-rate"
_ROWS = "migrate.rows-{}"  # widget key, with the number of rows loaded here


def _corpus(setup: MigrateSetup, result: MigrationResult) -> tuple[int, Rate]:
    """Draw fields for the number of rows in the user's corpus and for the price of embedding them. Returns
    both."""
    encoder = setup.specs[1].encoder
    place = digest_of(setup.digests)[:8]
    seconds = 0.0
    if encoder:
        seconds = (encoder.seconds(result.n_corpus) or 0.0) / result.n_corpus
    words = [len(text.split()) for text in _texts(setup, setup.old.ids[:1000])]
    with st.container(horizontal=True, key="migrate-corpus"):
        n = remembered(
            st.number_input,
            "Rows of your corpus",
            1,
            None,
            result.n_corpus,
            key=_ROWS.format(result.n_corpus),
            help="Costs and recommendation are for this number of rows. Scores are for the rows loaded here.",
        )
        fields = {
            "seconds": (
                "Seconds to embed a row",
                seconds,
                "The table then says how long embedding takes.",
            ),
            "price": ("Price of a million tokens", 0.0, "The table then says what embedding costs."),
            "tokens": (
                "Tokens per row",
                float(np.mean(words)) * TOKENS_PER_WORD,
                "Only used with a price. Default, if the texts are loaded: 1.3 tokens per English word.",
            ),
            "queries": (
                "Queries in a year",
                float(UNKNOWN.queries),
                "Each query is embedded, and a cascade embeds the rows that it finds.",
            ),
            "least_money": (
                "Smallest saving that counts",
                UNKNOWN.least_money,
                "In the currency of the price. A simpler option comes first if another one saves less.",
            ),
        }
        values = {
            name: remembered(
                st.number_input,
                label,
                0.0,
                None,
                value or None,
                None,
                "%.3g",
                key=f"migrate.rate-{name}-{place}",
                help=told,
                placeholder="unknown",
            )
            for name, (label, value, told) in fields.items()
        }
        currency = remembered(
            st.text_input, "Currency", UNKNOWN.currency, 8, key=f"migrate.rate-currency-{place}"
        )
    known = {name: value or 0.0 for name, value in values.items()}
    known["queries"] = int(known["queries"])
    return int(n), Rate(**known, currency=currency)


def cascade_price(setup: MigrateSetup, result: MigrationResult) -> None:
    if result.price is None:
        messages.info(
            "The price needs a log of queries. Add one, embedded by both models, under Queries above.",
            ":material/info:",
        )
        return
    described = result.price.describe()
    st.markdown(f"**{plain(described[:1].upper() + described[1:])}.**")
    recipe = CascadePrice(spaces=setup.specs, digests=setup.digests, migration=setup.task)
    exports.figure(recipe.draw(result), "migrate.price")
    _cells(result.price.cells(), "migrate.needs")


def cheaper_index(setup: MigrateSetup, result: MigrationResult) -> None:
    outcome = results.result_of(
        CheaperIndex(migration=setup.task, adapter=result.adapter, weight=result.weight),
        setup.specs,
        label="Compare cheaper indexes",
        unasked_seconds=results.UNASKED_SECONDS,
        spaces=setup.spaces,
    )
    if outcome is None:
        return
    report = outcome.report()
    st.markdown(f"**{plain(report.sentence)}**")
    for caution in report.notes:
        messages.warning(caution)
    (table,) = report.tables
    _cells(table.shown, "migrate.compressed")
    caption(table.caption)


_OPTIONS = ("re-embed", "bridge", "twice", "cascade")
# maximum pixels per side of a picture; maximum number of characters of a text
_PICTURE = 120
_LONGEST = 400


def with_blind_verdict(setup: MigrateSetup, result: MigrationResult) -> MigrationResult:
    """The result, with its verdict replaced by that of finished blind judgements if there are any. Of several
    such verdicts, a clear one is used rather than an unclear one."""
    ended = []
    for option in _judgeable(result):
        with suppress(SpaceError):  # no judgements are saved for these settings
            state = setup.task.random_state
            ended.append(with_answers(result, setup.old.ids, _saved_answers(setup, option), state))
    found = [one for one in ended if one.verdict.option]
    return max(found, key=lambda one: (one.verdict.is_clear, one.verdict.option != "keep"), default=result)


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
    (query,) = _items_as_html(setup.items(queries=True), [question.query])
    messages.lead(f"<strong>Query:</strong> {query}")
    sides = [("keep", question.keep), ("other", question.other)][:: -1 if question.is_turned else 1]
    for column, name, (_, ids) in zip(st.columns(2, border=True), ("Left", "Right"), sides, strict=True):
        rows = "".join(f"<li>{row}</li>" for row in _items_as_html(setup.items(), ids))
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


def _items_as_html(items: Items | None, ids: Sequence[str]) -> list[str]:
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
        image = ""
        if picture:
            image = f'<img src="{picture}" alt="Picture {plain_html(name)}">'
        lines.append(image + plain_html(cut(text, _LONGEST) or ("" if picture else name)))
    return lines


def _judgeable(result: MigrationResult) -> list[str]:
    return [option for option in _OPTIONS if option in result.found]


def _answers_key(setup: MigrateSetup, option: str) -> str:
    return f"judge.answers-{digest_of(setup.digests)[:16]}-{option}"


def _saved_answers(setup: MigrateSetup, option: str) -> BlindAnswers:
    with suppress(SpaceError):
        found = records.from_json(BlindAnswers, saved_value(_answers_key(setup, option)) or {}, "answers")
        if found.option == option:
            return found
    return BlindAnswers(option)


def _keep_answers(setup: MigrateSetup, answers: BlindAnswers) -> None:
    save_value(_answers_key(setup, answers.option), records.to_json(answers))


_LISTED = 200
_CODES = {
    "bridge": """from apply import corpus, queries  # the file apply.py needs NumPy and nothing else

scores = queries(new_queries) @ corpus(old_vectors).T  # cosines""",
    "twice": """from apply import both, corpus  # the file apply.py needs NumPy and nothing else

# the same queries by both models, as one search: the sum of both scores
scores = both(old_queries, new_queries, old_vectors) @ corpus(old_vectors).T""",
    "cascade": """from cascade import Cache, ListIndex, ranked  # the files need NumPy and nothing else

search = ListIndex(ids, old_vectors)  # or your index: see cascade.py
cache = Cache("cache.npy", embed)  # embed(ids) calls the new model
best = ranked(old_query, new_query, search, cache)
cache.save()""",
}
_REWRITTEN = """import numpy as np
from apply import both, corpus, unit  # the file apply.py needs NumPy and nothing else

# the same queries by both models, as one search: the sum of both scores
rows = np.column_stack([unit(old_vectors), corpus(old_vectors)])
scores = both(old_queries, new_queries, old_vectors) @ rows.T"""


def thresholds(setup: MigrateSetup, result: MigrationResult) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        system = segments("Scores", AFTER, "threshold.system", "bridge")
        threshold = remembered(
            st.number_input,
            "Threshold of the old model",
            -1.0,
            1.0,
            None,
            0.01,
            key="threshold.value",
            placeholder="Ten rows per query",
            width=240,
            help="Rows with at least this cosine count as found. Default: ten rows per query are found.",
        )
    task = ThresholdChange(migration=setup.task, adapter=result.adapter, system=system, threshold=threshold)
    try:
        outcome = results.result_of(
            task,
            setup.specs,
            label="Restore the threshold",
            unasked_seconds=results.UNASKED_SECONDS,
            spaces=setup.spaces,
        )
    except SpaceError as error:
        messages.error(error)
        return
    if outcome is None:
        return
    st.markdown(f"**{plain(outcome.describe())}**")
    figure = ThresholdScores(spaces=setup.specs, digests=setup.digests, task=task).draw(outcome)
    exports.figure(figure, "threshold.chart")
    table = threshold_table(outcome)
    for column in table.columns[1:]:
        table[column] = [short(value, 1 if column == "rows per query" else 3) for value in table[column]]
    st.dataframe(table, hide_index=True, key="threshold.table")
    st.caption(
        f"A monotone map: isotonic regression of sorted scores, fitted on {outcome.n_fitted:,} queries and"
        f" judged on {outcome.n_queries:,} others. Wrong decisions: of the rows that the old or the new"
        " decision accepts, the share that only one accepts. The map keeps the number of rows that pass, but"
        " other rows pass."
    )
    exports.download(
        "Download the map (CSV)",
        delimited_text(pd.DataFrame({"new score": outcome.map.new, "old score": outcome.map.old})),
        "score-map.csv",
        "text/csv",
        "threshold.download",
        help="numpy.interp(score, new, old) applies it.",
    )


def queries_that_get_worse(setup: MigrateSetup, result: MigrationResult) -> None:
    measured = [name for name in TITLES if name in result.scores]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if result.verdict.option == "keep":
            usual = "bridge"
        else:
            usual = result.verdict.option
        others = [name for name in measured if name != "keep"]
        option = _option("Option", others, usual, "worse.option")
        others = [name for name in measured if name != option]
        to = _option("Compared with", others, "keep", f"worse.to-{option}")
    table = result.worst_queries(option, to)
    lost = int((table.change < 0).sum())
    won = int((table.change > 0).sum())
    st.markdown(
        f"**{lost:,} of {len(table):,} queries get worse by “{TITLES[option]}” compared with “{TITLES[to]}”;"
        f" {won:,} get better.** Select a query to see what each option finds."
    )
    shown = table.head(_LISTED).copy()
    texts = _texts(setup, shown["query"], queries=True)
    if any(texts):
        shown.insert(1, "text", texts)
    for column in (TITLES[to], TITLES[option], "change"):
        shown[column] = [short(value) for value in shown[column]]
    if rows := chosen_rows(
        shown, f"worse.table-{digest_of((option, to, result.queries[:50]))[:8]}", height=300
    ):
        _one_query(setup, result, str(table["query"].iloc[rows[0]]))
    _by_group(setup, result, option, to)


def _option(label: str, names: list[str], usual: str, key: str) -> str:
    first = usual if usual in names else names[0]
    titles = {name: TITLES[name] for name in names}
    return segments(label, titles, f"{key}-{len(names)}-{first}", first)


def _texts(setup: MigrateSetup, ids, queries: bool = False) -> list[str]:
    items = setup.items(queries)
    if items is not None and items.has_texts:
        return items.texts(list(ids))
    return [""] * len(ids)


def _one_query(setup: MigrateSetup, result: MigrationResult, query: str) -> None:
    place = result.queries.index(query)
    old = setup.old
    relevant = set(result.relevant_row[result.relevant_query == place].tolist())
    columns = {}
    for option, lists in result.found.items():
        rows = lists[place][lists[place] >= 0]
        columns[TITLES[option]] = pd.Series(
            [
                f"{'✓' if row in relevant else '·'} {text or old.ids[row]}"
                for row, text in zip(rows, _texts(setup, old.ids[rows]), strict=True)
            ],
            dtype=object,
        )
    table = pd.DataFrame(columns).fillna("")
    narrow = {name: st.column_config.TextColumn(width=260) for name in table.columns}
    st.dataframe(table, hide_index=True, key="worse.found", column_config=narrow)
    st.caption(f"✓ marks relevant rows; there are {len(relevant):,}.")


def _by_group(setup: MigrateSetup, result: MigrationResult, option: str, to: str) -> None:
    rows = setup.old.index.get_indexer(pd.Index(result.queries, dtype=object))
    labels = setup.old.labels
    if (rows < 0).any():
        return
    if labels is None:
        groups = _clusters(setup.old.digest, digest_of(rows), setup, rows)
    else:
        groups = labels[rows]
    table = losses_by_group(np.asarray(result.scores[option], np.float64) - result.scores[to], groups)
    if table.empty:
        return
    noun = "class"
    if labels is None:
        noun = "cluster"
    st.markdown(f"### By {noun}")
    worst = table[table.p < 0.05]
    if len(worst):
        messages.warning(f"{', '.join(worst.group)}: worse than random groups of queries of the same size.")
    shown = pd.DataFrame(
        {
            "group": table.group,
            "queries": table.queries,
            "mean change": [signed(value) for value in table.change],
            "random groups of that size, 95 %": [
                band(*ends) for ends in zip(table.low, table.high, strict=True)
            ],
            "p": [short(value) for value in table.p],
        }
    )
    st.dataframe(shown, hide_index=True, key="worse.groups")


@st.cache_data(max_entries=8, show_spinner=False)
def _clusters(digest: str, queries: str, _setup: MigrateSetup, _rows: np.ndarray) -> np.ndarray:
    space = _setup.old.take(_rows)
    numbers, names = clusters_of(space, max(1, min(8, len(space) // FEWEST_OF_GROUP)))
    return np.array(names, dtype=object)[numbers]


def export_adapter(setup: MigrateSetup, result: MigrationResult) -> None:
    n_corpus = st.session_state.get(_ROWS.format(result.n_corpus), result.n_corpus)
    scaled, _ = result.scaled(n_corpus, st.session_state.get(_RATE, UNKNOWN))
    option = scaled.verdict.option
    unneeded = ""
    if option in ("keep", "re-embed"):
        unneeded = f"The recommended “{TITLES.get(option)}” needs no adapter. "
    carried = "bridge, query both models and cascade"
    if option in _CODES:
        carried = f"the recommended “{TITLES[option]}”"
    st.markdown(f"{unneeded}These files carry out {carried}.")
    st.markdown(
        f"**{ADAPTERS[result.adapter].title}**, fitted on {result.n_pairs:,} pairs: maps"
        f" {setup.new.dimension:,}-dimensional new queries to the space in which the"
        f" {setup.old.dimension:,}-dimensional old vectors are searched."
    )
    exports.download(
        "Download the adapter (ZIP)",
        lambda: archive(setup, result),
        "adapter.zip",
        "application/zip",
        "export-adapter.zip",
        type="primary",
    )
    graphs = " and ".join(list(GRAPHS.values())[: 1 + result.rewrites_corpus])
    if find_spec("onnx"):
        onnx = f"As ONNX: {graphs}."
    else:
        onnx = f"With the package onnx installed, also {graphs}."
    st.caption(
        "adapter.safetensors holds the adapter's steps and its card: widths, digests, models, settings,"
        f" scores with intervals, date and commit. {SNIPPET} applies the adapter with NumPy alone. {CASCADE}"
        f" ranks the rows that an index finds: faiss, LanceDB or a list. {onnx}"
    )
    code = _CODES.get(option, _CODES["bridge"])
    if option == "twice" and result.rewrites_corpus:
        code = _REWRITTEN
    st.code(code, language="python")
    if "corpus(" in code and not result.rewrites_corpus:
        st.caption("corpus(…) only scales the old vectors to length 1. The index stays as it is.")


def archive(setup: MigrateSetup, result: MigrationResult) -> bytes:
    with temporary() as folder, io.BytesIO() as file:
        paths = export_result(result, setup.old, setup.new, Path(folder) / "adapter", commit_of())
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
            for path in paths:
                packed.writestr(zipfile.ZipInfo(path.name, (2026, 1, 1, 0, 0, 0)), path.read_bytes())
        return file.getvalue()


_AFTER = {
    "Judge here, blind": judge_blind,
    "Queries that get worse": queries_that_get_worse,
    "Export adapter": export_adapter,
    "Similarity thresholds": thresholds,
    "What a cascade costs": cascade_price,
    "A cheaper index": cheaper_index,
}


def draw(workspace: Workspace) -> None:
    setup = result = None
    about = st.container()
    try:
        setup = choose(workspace)
        if setup and belong(workspace, setup):
            # The first comparison of the user's own pair waits for a click. Later, a changed setting starts
            # the comparison by itself.
            known = session.migrates_example() or st.session_state.get(_COMPARED) == setup.specs[:2]
            look = {"label": "Compare the options", "details": setup.details}
            look["unasked_seconds"] = results.UNASKED_SECONDS * known
            result = results.result_of(setup.task, setup.specs, spaces=setup.spaces, **look)
    except SpaceError as error:
        messages.error(error)
        st.caption("Choose other vectors or settings above. Load your own by Data, at the top left.")
    if result is None:
        about.caption(_ABOUT)
        return
    if setup.specs[:2] == starting_models(jobs.queue().store.finished):
        about.caption(_EXAMPLE.format(n=len(setup.old)))
    st.session_state[_COMPARED] = setup.specs[:2]
    unjudged = result.relevance == NEIGHBOURS
    result = with_blind_verdict(setup, result)
    show_verdict(setup, result)
    st.subheader("Next steps", anchor=False)
    for name, part in _AFTER.items():
        # Without judgements, the part for judging is open, because judging is the next step.
        look = {"expanded": unjudged and part is judge_blind, "key": f"migrate.{name}"}
        with st.expander(name, on_change="rerun", **look) as opened:
            if opened.open:
                part(setup, result)
