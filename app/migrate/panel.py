"""The answer of the Migrate page: the verdict in one sentence, the figure, the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from app import compute, exports, jobs, messages, results, session
from app.items import items_of
from app.plain_text import plain_html
from app.sharing import keep_upload
from app.widgets import space_labels
from app.workspace import BUNDLED, Workspace
from relcore.base.errors import SpaceError
from relcore.base.names import ADAPTERS, STRATEGIES
from relcore.base.numbers import band, counted, short, signed
from relcore.catalog.catalog import SpaceSpec
from relcore.migrate.figures import MigrationChart
from relcore.migrate.migration import AUTO, Migration, MigrationResult, starting_models
from relcore.migrate.migration import TASK as EXAMPLE
from relcore.migrate.pairs import FEWEST
from relcore.migrate.retrieval import JudgedQuery, read_qrels
from relcore.spaces.space import LatentSpace

# The choosers of the Migrate page: old and new vectors, judged queries, the settings, as one task with its
# spaces.

MOST_QRELS = 50_000_000  # bytes
_KEEP: dict[str, Any] = {"persist_state": "session"}
_RELEVANT = {"neighbours": "Neighbours in the models", "labels": "Rows of the same label"}
_AUTOMATIC = "Chosen by cross-validation"


@dataclass(frozen=True, eq=False)
class MigrateSetup:
    """What is migrated: specs and spaces of old, new and, where there are judged queries, both models'
    queries; the task.
    """

    specs: tuple[SpaceSpec, ...]
    spaces: tuple[LatentSpace, ...]
    task: Migration

    @property
    def digests(self) -> tuple[str, ...]:
        return tuple(space.digest for space in self.spaces)

    @property
    def old(self) -> LatentSpace:
        return self.spaces[0]

    @property
    def new(self) -> LatentSpace:
        return self.spaces[1]


def choose(workspace: Workspace) -> MigrateSetup | None:
    """The choosers; None where they do not fit together, and the page shows why."""
    example = starting_models(jobs.engine().store.finished) or ()
    options = tuple(dict.fromkeys((*example, *workspace.spaces)))
    own = (workspace.source, workspace.target)
    usual = example if example and own == BUNDLED else own
    labels, place = space_labels(options), results.place_of(options, usual)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="migrate-choosers"):
        chosen = []
        for side, spec in zip(("Old model's vectors", "New model's vectors"), usual, strict=True):
            chosen.append(
                st.selectbox(
                    side,
                    options,
                    options.index(spec),
                    format_func=labels.get,
                    key=f"migrate.{side[:3].lower()}-{place}",
                    width=236,
                    help=(
                        "Rows pair by id. Load your own vectors on the Spaces page; the new model needs only"
                        " some rows."
                    ),
                    **_KEEP,
                )
            )
        with st.popover("Judged queries", icon=":material/quiz:"):
            queries, judgements = _judged(options, labels, place)
        with st.popover("Settings", icon=":material/tune:"):
            specs = (*chosen, *queries)
            settings = _settings(specs, tuple(chosen) == example, bool(judgements))
    if chosen[0] == chosen[1]:
        messages.info(
            "Choose two different spaces: the old model's vectors and the new model's.",
            icon=":material/info:",
        )
        return None
    spaces = tuple(compute.load_space(spec) for spec in specs)
    return MigrateSetup(specs, spaces, Migration(**settings, judgements=judgements))


def _judged(
    options: Sequence[SpaceSpec], labels: dict[SpaceSpec, str], place: str
) -> tuple[tuple[SpaceSpec, ...], tuple[JudgedQuery, ...]]:
    st.caption(
        "Real queries decide better than rows. They need three things: the queries embedded by both models,"
        " and which rows are relevant, as a TREC qrels file (query, iteration, row, grade)."
    )
    queries = [
        st.selectbox(
            f"Queries by the {side} model",
            options,
            None,
            format_func=labels.get,
            key=f"migrate.queries-{side}-{place}",
            placeholder="None",
            **_KEEP,
        )
        for side in ("old", "new")
    ]
    uploaded = st.file_uploader("Judgements (qrels)", ["txt", "qrels", "tsv", "test"], key="migrate.qrels")
    given = [*queries, uploaded]
    if not any(one is not None for one in given):
        return (), ()
    if any(one is None for one in given):
        messages.info(
            "All three are needed; until then, held-out rows are the queries.", icon=":material/info:"
        )
        return (), ()
    if uploaded.size > MOST_QRELS:
        raise SpaceError(
            f"{uploaded.name}: expected at most {MOST_QRELS // 10**6} MB, got {uploaded.size:,} bytes"
        )
    path = keep_upload(uploaded, session.uploads_folder())
    return tuple(queries), _read(str(path))


@st.cache_data(max_entries=4, show_spinner="Reading the judgements …")
def _read(path: str) -> tuple[JudgedQuery, ...]:
    return read_qrels(Path(path))


def _settings(specs: Sequence[SpaceSpec], example: bool, judged: bool) -> dict[str, Any]:
    old, new = (compute.load_space(spec) for spec in specs[:2])
    n = min(len(old), len(new))
    place = results.place_of(specs)
    n_pairs = int(
        st.number_input(
            "Pairs to learn from",
            0,
            n,
            EXAMPLE.n_pairs if example else 0,
            50,
            key=f"migrate.pairs-{place}",
            help=(
                f"Rows with a vector of each model, at least {FEWEST}. 0 takes all that are not held out as"
                " queries."
            ),
            **_KEEP,
        )
    )
    adapter = st.selectbox(
        "Adapter",
        [AUTO, *ADAPTERS],
        format_func=lambda name: _AUTOMATIC if name == AUTO else ADAPTERS[name].title,
        key="migrate.adapter",
        help=(
            "What maps new queries into the space of the old vectors. Cross-validation uses pairs only, never"
            " queries."
        ),
        **_KEEP,
    )
    strategies = [name for name in STRATEGIES if name != "class-balanced" or old.labels is not None]
    strategy = st.selectbox(
        "Choose pairs by", strategies, format_func=lambda name: STRATEGIES[name].title, **_key("strategy")
    )
    relevance = "neighbours"
    if old.labels is not None and not judged:
        relevance = st.segmented_control(
            "Relevant are",
            list(_RELEVANT),
            default=EXAMPLE.relevance if example else "neighbours",
            format_func=_RELEVANT.get,
            required=True,
            help=(
                "What a held-out row should find. Neighbours: in the model that contains the other one's, or"
                " both."
            ),
            **_key(f"relevance-{place}"),
        )
    k = int(st.number_input("Results per query, k", 1, 100, 10, **_key("k")))
    state = int(st.number_input("Random state", 0, 10_000, 0, **_key("random-state")))
    return {
        "n_pairs": n_pairs,
        "adapter": adapter,
        "strategy": strategy,
        "relevance": relevance,
        "k": k,
        "random_state": state,
    }


def _key(name: str) -> dict[str, Any]:
    return {"key": f"migrate.{name}", **_KEEP}


_STARTS_ITSELF = 20.0  # seconds
_ICONS = {
    "keep": "Keep the old model",
    "bridge": "Bridge",
    "twice": "Ask twice",
    "re-embed": "Re-embed the corpus",
}


def measured(setup: MigrateSetup) -> MigrationResult | None:
    """The result, or a job with its bar."""
    return results.computed(
        setup.task,
        setup.specs,
        label="Compare the four options",
        unasked_seconds=_STARTS_ITSELF,
        spaces=setup.spaces,
    )


def draw(setup: MigrateSetup, result: MigrationResult) -> None:
    """Verdict, figure and table."""
    verdict = result.verdict
    head = _ICONS[verdict.option]
    st.html(
        f'<p class="relscope-lead"><strong>{head}.</strong>'
        f" {plain_html(_rest(verdict.sentence, head) + _shares(result))}</p>"
    )
    for caution in result.cautions:
        messages.warning(caution)
    if not verdict.is_clear:
        st.caption("The intervals do not tell this option from every other one. More queries would.")
    figure = MigrationChart(spaces=setup.specs, digests=setup.digests, migration=setup.task).draw(result)
    exports.chart(figure.interactive(exports.theme()), "migrate.chart")
    exports.export_bar(figure, "migrate")
    st.dataframe(printed(result), hide_index=True, key="migrate.table")
    st.caption(_told(result))


def printed(result: MigrationResult) -> pd.DataFrame:
    """One row per option, as the page shows it."""
    rows = []
    for one, row in zip(result.options, result.table().itertuples(), strict=True):
        gains = {
            f"to {name}": "–" if gain is None else f"{signed(gain.value)} ({band(gain.low, gain.high)})"
            for name, gain in (("keep", one.to_keep), ("re-embed", one.to_reembed))
        }
        rows.append(
            {
                "option": row.option,
                result.metric: short(one.value),
                "95 %": band(one.low, one.high),
                f"recall@{result.k}": short(one.recall),
                **gains,
            }
        )
    return pd.DataFrame(rows)


def _rest(sentence: str, head: str) -> str:
    rest = sentence.removeprefix(head).lstrip(":, ")
    return rest[:1].upper() + rest[1:]


def _shares(result: MigrationResult) -> str:
    """How much of re-embedding the options without it reach; "" where it is not measured or not better
    than keeping.
    """
    best = result.option("re-embed")
    if best is None or best.to_keep is None or best.to_keep.low <= 0:
        return ""
    bridge, twice = (result.option(name).value / best.value for name in ("bridge", "twice"))
    return (
        f" Without re-embedding, the bridge reaches {100 * bridge:.0f} % of its score, asking twice"
        f" {100 * twice:.0f} %."
    )


def _told(result: MigrationResult) -> str:
    queries = counted(len(result.queries), "query", "queries")
    chosen = ADAPTERS[result.adapter].title
    how = f"chosen by cross-validation among {len(result.candidates)}" if result.candidates else "as set"
    what = "judged queries" if result.truth == "judgements" else "held-out rows, none of them a pair"
    return (
        f"{queries}: {what}; {result.n_rows:,} rows searched; {result.n_pairs:,} pairs. Adapter: {chosen},"
        f" {how}. Asking twice adds the bridged scores {short(result.weight, 2)} times. Intervals: bootstrap"
        " over queries, paired for differences. Bands of the curves: over queries, mean of the draws."
    )


# The texts of rows of a space that need not be the session's source or target.


def texts_of(spec: SpaceSpec, ids: Sequence[str]) -> list[str]:
    """The text of each id, "" where there is none."""
    items = items_of(replace(Workspace(), source=spec, target=spec))
    return items.texts(list(ids)) if items is not None and items.has_texts else [""] * len(ids)
