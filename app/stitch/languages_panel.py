"""Languages: encoders of two languages, trained independently, become comparable through pairs of sentences."""

from __future__ import annotations

import streamlit as st

from app import compute, exports, messages, sharing
from app.encode import encoding_jobs
from app.page_settings import kept
from app.plain_text import plain_name
from app.stitch import across_panel, parallel_lists
from app.widgets import space_labels, space_name
from app.workspace import Workspace
from relcore.languages.figures import CrossLingual, Pairs
from relcore.languages.retrieval import RetrievalResult, RetrievalSpec, pair_up, retrieve
from relcore.names import METHODS
from relcore.numbers import counted
from relcore.sources.catalog import SpaceSpec
from relcore.sources.dataset import DatasetSpec
from relcore.sources.datasets import load_dataset
from relcore.sources.places import dataset_place
from relcore.spaces import Match, SpaceError
from relcore.store import digest_of

MOST_ROWS = 2000  # pairs, so that six methods take less than a second
SHOWN = 60  # examples in the table
_EVERYDAY, _MINE, _SPACES = "Everyday sentences", "A list of mine", "Spaces of this session"


def draw(workspace: Workspace) -> None:
    """The tab."""
    questions = {"find": "Find the translation", "head": "A head across languages"}
    asked = kept(
        st.segmented_control,
        "Question",
        list(questions),
        default="find",
        format_func=questions.get,
        key="languages.question",
        required=True,
    )
    try:
        if asked == "find":
            _find(workspace)
        else:
            across_panel.draw(workspace)
    except SpaceError as error:
        messages.error(error)


def _find(workspace: Workspace) -> None:
    st.html(
        '<p class="relscope-lead">Two encoders, one per language, were trained independently. Some sentences and their '
        "translations are known. Does every other sentence find its translation among all sentences of the other language?</p>"
    )
    folder = sharing.open_folder()
    tables = parallel_lists.tables(folder)
    source = kept(
        st.segmented_control,
        "Pairs from",
        [_EVERYDAY, *tables, _MINE, _SPACES],
        format_func=plain_name,
        default=_EVERYDAY,
        key=f"languages.source-{digest_of(list(tables))[:6]}",
        required=True,
    )
    chosen = _spaces_of(workspace, source, tables)
    if chosen is None:
        return
    specs, pairs = chosen
    pair = pair_up(compute.load_space(specs[0]), compute.load_space(specs[1]), pairs)
    total = len(pair)
    if total > MOST_ROWS:
        st.caption(f"The first {MOST_ROWS:,} of {total:,} pairs are used.")
        pair = Match(pair.source.take(range(MOST_ROWS)), pair.target.take(range(MOST_ROWS)), 0, 0, pair.n_zero)
        pairs = pairs or tuple((identifier, identifier) for identifier in pair.ids)
        present = set(pair.ids)
        pairs = tuple(one for one in pairs if one[0] in present)
    spec = _settings(len(pair))
    result = _retrieved(pair.source.digest, pair.target.digest, digest_of(pair.source.name, pair.target.name), spec, pair)
    st.html(f'<p class="relscope-lead">{lead(result)}</p>')
    figure = CrossLingual(spaces=tuple(specs), digests=compute.digests(specs), retrieval=spec, pairs=pairs).draw(result)
    exports.chart(figure.interactive(exports.theme()), "languages.map")
    zero = f" Left out: {counted(pair.n_zero, 'pair')} whose row is zero in either." if pair.n_zero else ""
    st.caption(
        f"{counted(len(result.ids), 'query', 'queries')} through {counted(spec.n_anchors, 'known pair')}, drawn at "
        f"random; k = {spec.k}. Chance level: "
        f"rows permuted.{zero} TF-IDF + SVD is fitted on all sentences of its column, but on no pair."
    )
    exports.export_bar(figure, "languages")
    _examples(specs, pairs, result)
    _join(workspace, specs)


def _spaces_of(workspace: Workspace, source: str, tables: dict) -> tuple[list[SpaceSpec], Pairs] | None:
    """The two spaces and, where their ids differ, the list that pairs them; None while something is missing."""
    if source == _SPACES:
        return _two_spaces(workspace, "languages"), ()
    if source != _MINE:
        columns = parallel_lists.everyday() if source == _EVERYDAY else tables[source]
        return _sentences(columns, source)
    found = parallel_lists.uploaded("languages.upload")
    if found is None:
        return None
    path, mine = found
    kinds = {"sentences": "Sentences", "ids": "Ids of two spaces"}
    kind = kept(
        st.segmented_control,
        "Contents of the columns",
        list(kinds),
        default="sentences",
        format_func=kinds.get,
        key="languages.holds",
        required=True,
    )
    if kind == "sentences":
        return _sentences(parallel_lists.columns_of(path, mine), digest_of(str(path))[:6])
    names = list(mine.columns)
    with st.container(horizontal=True):
        first = kept(st.selectbox, "Ids of the first space", names, key=f"languages.ids-0-{digest_of(names)[:6]}")
        second = kept(st.selectbox, "Ids of the second", names, index=1, key=f"languages.ids-1-{digest_of(names)[:6]}")
    return _two_spaces(workspace, "languages.listed"), mine.pairs(first, second)


def _sentences(columns: list[parallel_lists.Column], place: str) -> tuple[list[SpaceSpec], Pairs] | None:
    sides = []
    for number, (column, label) in enumerate(zip(st.columns(2, gap="large"), ("From", "To"), strict=True)):
        with column, st.container(horizontal=True):
            sides.append(parallel_lists.choose_side(label, columns, number, place))
    specs = parallel_lists.encoded(sides, "languages")
    return None if specs is None else (specs, ())


def _two_spaces(workspace: Workspace, key: str) -> list[SpaceSpec]:
    labels = space_labels(workspace.spaces)
    place = digest_of(workspace.spaces)[:6]
    with st.container(horizontal=True):
        return [
            kept(
                st.selectbox, side, workspace.spaces, index=number, format_func=labels.get, key=f"{key}.space-{number}-{place}"
            )
            for number, side in enumerate(("From", "To"))
        ]


def _settings(n: int) -> RetrievalSpec:
    usual = RetrievalSpec()
    most = max(2, n - usual.k - 1)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        n_anchors = kept(
            st.slider, "Known pairs", 2, most, min(usual.n_anchors, max(2, 2 * n // 3)), key=f"languages.anchors-{n}", width=320
        )
        state = kept(
            st.number_input, "Random state", 0, 9999, 0, key="languages.state", width=140, help="Draws the known pairs."
        )
    return RetrievalSpec(n_anchors=int(n_anchors), k=min(usual.k, max(1, n - int(n_anchors) - 1)), random_state=int(state))


@st.cache_resource(max_entries=24, show_spinner="Searching …")
def _retrieved(first: str, second: str, names: str, spec: RetrievalSpec, _pair: Match) -> RetrievalResult:
    return retrieve(_pair, spec)


def lead(result: RetrievalResult) -> str:
    """The result in one sentence, as HTML."""
    best = max((name for name in result.scores), key=lambda name: result.scores[name]["first"])
    score = result.scores[best]["first"]
    plain = result.scores.get("absolute")
    before = f" Without stitching, <b>{_percent(plain['first'])}</b>." if plain and best != "absolute" else ""
    if not plain:
        before = " Without stitching there is no score, as the widths differ."
    return (
        f"<b>{_percent(score)}</b> of {counted(len(result.ids), 'query', 'queries')} find their partner first, by "
        f"{METHODS[best].title}; chance "
        f"level {_percent(score.null.mean)}.{before}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 or not share else f"{100 * share:.1f} %"


def _examples(specs: list[SpaceSpec], pairs: Pairs, result: RetrievalResult) -> None:
    """The nearest candidate of each query, errors first."""
    st.markdown("#### Nearest sentences")
    methods = list(result.scores)
    method = kept(
        st.segmented_control,
        "Method",
        methods,
        default="whitened" if "whitened" in methods else methods[0],
        format_func=lambda name: METHODS[name].title,
        key=f"languages.method-{'-'.join(methods)}",
        required=True,
    )
    partner = dict(pairs)
    first = result.found[method][:, 0]
    right = first == range(len(first))
    order = sorted(range(len(first)), key=lambda row: bool(right[row]))[:SHOWN]
    texts = [_texts_of(spec.dataset) if spec.dataset else {} for spec in specs]
    second = [partner.get(identifier, identifier) for identifier in result.ids]
    st.dataframe(
        {
            "right": [bool(right[row]) for row in order],
            "query": [texts[0].get(result.ids[row], result.ids[row]) for row in order],
            "found": [texts[1].get(second[first[row]], second[first[row]]) for row in order],
            "partner": [texts[1].get(second[row], second[row]) for row in order],
        },
        hide_index=True,
        key="languages.examples",
        column_config={name: st.column_config.TextColumn(width="large") for name in ("query", "found", "partner")},
    )
    st.caption(f"{int(right.sum()):,} of {len(right):,} right. Errors first, {counted(len(order), 'row')} shown.")


def _texts_of(dataset: DatasetSpec) -> dict[str, str]:
    """Sentences by id; none where the dataset holds none, is gone, or is not open to this session."""
    try:
        dataset_place(dataset)
    except SpaceError:
        return {}
    return _read_texts(dataset)


@st.cache_resource(max_entries=8, show_spinner=False)
def _read_texts(dataset: DatasetSpec) -> dict[str, str]:
    try:
        found = load_dataset(dataset)
        texts = found.items(0, len(found)) if found.kind == "texts" else []
    except SpaceError:
        return {}
    return dict(zip(found.ids, texts, strict=False))


def _join(workspace: Workspace, specs: list[SpaceSpec]) -> None:
    new = [spec for spec in specs if spec not in workspace.spaces]
    if new:
        st.button(
            "Add both to the session",
            key="languages.join",
            icon=":material/add:",
            help=f"Compare {plain_name(space_name(specs[0]))} and {plain_name(space_name(specs[1]))} on the other pages",
            on_click=encoding_jobs.join,
            args=(specs,),
        )
