"""Languages: encoders of two languages, trained independently, become comparable through pairs of
sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import streamlit as st

from app import compute, exports, messages, session, sharing
from app import jobs as jobs_
from app.encode import forms, jobs
from app.page_settings import kept
from app.plain_text import plain_name
from app.sharing import keep_upload
from app.widgets import space_labels, space_name
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.base.names import METHODS
from relcore.base.numbers import counted
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.encoding import encode, encode_job, encoding_job_key, stored_encodings
from relcore.encoders.bundled import LANGUAGES
from relcore.encoders.dataset import DatasetSpec, dataset_place
from relcore.encoders.datasets import PairList, load_dataset, read_pair_list
from relcore.encoders.encoder import Encoder
from relcore.encoders.sentences import TfidfSvd
from relcore.encoders.transformers import MiniLM
from relcore.runs.digest import digest_of
from relcore.spaces.space import Match
from relcore.stitch.languages import (
    CrossLingual,
    Pairs,
    RetrievalResult,
    RetrievalSpec,
    pair_up,
    retrieve,
)

# Sources of pairs of sentences: the bundled ones, a table of the data folder, a list of the user.

_AT_ONCE = 2.5  # processor seconds, with loading the libraries
_MOST_ROWS = 1000  # of a large table, so that a language model has read it within a minute


Columns = dict[str, DatasetSpec]  # the dataset of the sentences by the name of their language


def parallel_tables(folder: str | None) -> dict[str, Columns]:
    """Tables of the data folder with two columns of text or more, such as Multi30k's; by name."""
    tables = {}
    for entry in forms.available(folder):
        if entry.kind != "texts" or entry.spec.source not in ("file", "folder"):
            continue
        try:
            names = forms.columns_of(entry.spec).items
        except SpaceError:
            continue
        if len(names) > 1:
            look = {"limit": _MOST_ROWS, "options": (("empty", "error"),)}
            tables[entry.name] = {name: replace(entry.spec, column=name, **look) for name in names}
    return tables


def uploaded(key: str) -> tuple[Path, PairList] | None:
    """A list of the user, checked; None while there is none or it has an error, which the page then shows."""
    file = st.file_uploader(
        "A list of pairs: .csv or .tsv, with names of the columns in the first line",
        type=["csv", "tsv", "parquet"],
        key=key,
        help=(
            "One pair per line, such as a sentence and its translation, or an id of one space and an id of"
            " the other."
        ),
    )
    if file is None:
        return None
    try:
        path = keep_upload(file, session.uploads_folder())
        return path, read_pair_list(path)
    except SpaceError as error:
        messages.error(error)
        return None


def encoders_for(n: int) -> list[Encoder]:
    """Text encoders that need no network access: one fitted on the column itself, and three layers of
    MiniLM.
    """
    return [TfidfSvd(max(2, min(300, n // 20 * 10)), min_texts=1), MiniLM((6,)), MiniLM((4,)), MiniLM((2,))]


def encoder_name(encoder: Encoder) -> str:
    return f"{encoder.title} {encoder.outputs[0]}".strip()


def encoded(sides: Sequence[tuple[str, DatasetSpec, Encoder]]) -> list[SpaceSpec] | None:
    """The space of each side, from the store, or encoded in place if that is quick; else None, and a
    button with the cost.
    """
    store = jobs_.engine().store
    missing, specs = {}, []
    for name, dataset, encoder in sides:
        preview = forms.preview(dataset)
        stored = stored_encodings(store, preview.digest, encoder)
        if stored is None and (encoder.seconds(preview.n) or _AT_ONCE) < _AT_ONCE:
            with st.spinner(f"Encoding {plain_name(name)} …"):
                encode(dataset, encoder, store)
            stored = stored_encodings(store, preview.digest, encoder)
        if stored is None:
            missing[encoding_job_key(preview.digest, encoder)] = (name, dataset, encoder, preview)
        else:
            specs += jobs.own_specs(dataset, encoder, stored)
    if missing:
        _offer(missing)
        return None
    return specs


def _offer(missing: dict) -> None:
    known = {key: job for key in missing if (job := jobs_.engine().job(key))}
    for key, job in known.items():
        if jobs_.asked_again(job):
            _submit({key: missing[key]})
    if len(known) < len(missing):
        costs = [forms.expected(encoder, preview) for *_, encoder, preview in missing.values()]
        seconds = None
        if None not in costs:
            seconds = jobs_.together([cost.likely for cost in costs])
        cost = jobs_.cost_in_words(seconds)
        what = "both columns" if len(missing) > 1 else next(iter(missing.values()))[0]
        st.button(
            f"Encode {plain_name(what)} · {cost}",
            key="languages.encode",
            type="primary",
            icon=":material/play_arrow:",
            on_click=session.guarded,
            args=(_submit, {key: side for key, side in missing.items() if key not in known}),
            help=jobs_.learned(costs).strip() or None,
        )
    jobs_.follow(list(known.values()))


def _submit(missing: dict) -> None:
    for key, (_, dataset, encoder, preview) in missing.items():
        title = f"{encoder_name(encoder)} · {preview.name}"
        cost = forms.expected(encoder, preview)
        jobs_.engine().submit(key, encode_job, title=title, expected=cost, dataset=dataset, encoder=encoder)


def choose_side(label: str, columns: Columns, number: int, place: str) -> tuple[str, DatasetSpec, Encoder]:
    """Language, dataset and encoder of one side."""
    name = kept(
        st.selectbox,
        label,
        list(columns),
        index=min(number, len(columns) - 1),
        key=f"languages.column-{number}-{place}",
    )
    n = forms.preview(columns[name]).n
    encoder = kept(
        st.selectbox,
        "Encoder",
        encoders_for(n),
        format_func=encoder_name,
        key=f"languages.encoder-{number}-{place}",
        help=(
            "TF-IDF + SVD counts words and is fitted on this column alone. MiniLM was trained on English and"
            " splits words of other languages into pieces. For other encoders, encode the two columns on the"
            " Spaces page and choose them as spaces."
        ),
    )
    return name, columns[name], encoder


MOST_ROWS = 2000  # pairs, so that six methods take less than a second
SHOWN = 60  # examples in the table
_EVERYDAY, _MINE, _SPACES = "Everyday sentences", "A list of mine", "Spaces of this session"


def draw(workspace: Workspace) -> None:
    """The tab."""
    try:
        _find(workspace)
    except SpaceError as error:
        messages.error(error)


def _find(workspace: Workspace) -> None:
    st.html(
        '<p class="relscope-lead">Two encoders, one per language, were trained independently. Some sentences'
        " and their translations are known. Does every other sentence find its translation among all"
        " sentences of the other language?</p>"
    )
    tables = parallel_tables(sharing.open_folder())
    source = kept(
        st.segmented_control,
        "Pairs from",
        [_EVERYDAY, *tables, _MINE, _SPACES],
        format_func=plain_name,
        default=_EVERYDAY,
        key=f"languages.source-{digest_of(list(tables))[:6]}",
        required=True,
    )
    everyday = {name: DatasetSpec("parallel", code) for code, name in LANGUAGES.items()}
    chosen = _spaces_of(workspace, source, {_EVERYDAY: everyday, **tables})
    if chosen is None:
        return
    specs, pairs = chosen
    pair = pair_up(compute.load_space(specs[0]), compute.load_space(specs[1]), pairs)
    total = len(pair)
    if total > MOST_ROWS:
        st.caption(f"The first {MOST_ROWS:,} of {total:,} pairs are used.")
        pair = Match(
            pair.source.take(range(MOST_ROWS)), pair.target.take(range(MOST_ROWS)), 0, 0, pair.n_zero
        )
        present, partners = set(pair.ids), pairs or tuple((row_id, row_id) for row_id in pair.ids)
        pairs = tuple(partner for partner in partners if partner[0] in present)
    spec = _settings(len(pair))
    result = _retrieved(
        pair.source.digest, pair.target.digest, digest_of(pair.source.name, pair.target.name), spec, pair
    )
    st.html(f'<p class="relscope-lead">{lead(result)}</p>')
    figure = CrossLingual(
        spaces=tuple(specs), digests=compute.digests(specs), retrieval=spec, pairs=pairs
    ).draw(result)
    exports.chart(figure.interactive(exports.theme()), "languages.map")
    zero = f" Left out: {counted(pair.n_zero, 'pair')} whose row is zero in either." if pair.n_zero else ""
    st.caption(
        f"{counted(len(result.ids), 'query', 'queries')} through {counted(spec.n_anchors, 'known pair')},"
        f" drawn at random; k = {spec.k}. Chance level: rows permuted.{zero} TF-IDF + SVD is fitted on all"
        " sentences of its column, but on no pair."
    )
    exports.export_bar(figure, "languages")
    _examples(specs, pairs, result)
    _join(workspace, specs)


def _spaces_of(workspace: Workspace, source: str, tables: dict) -> tuple[list[SpaceSpec], Pairs] | None:
    """The two spaces and, where their ids differ, the list that pairs them; None while something is
    missing.
    """
    if source == _SPACES:
        return _two_spaces(workspace, "languages"), ()
    if source != _MINE:
        return _sentences(tables[source], source)
    upload = uploaded("languages.upload")
    if upload is None:
        return None
    path, mine = upload
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
        columns = {name: DatasetSpec("file", str(path), column=name) for name in mine.columns}
        return _sentences(columns, digest_of(str(path))[:6])
    names = list(mine.columns)
    with st.container(horizontal=True):
        first = kept(
            st.selectbox, "Ids of the first space", names, key=f"languages.ids-0-{digest_of(names)[:6]}"
        )
        second = kept(
            st.selectbox, "Ids of the second", names, index=1, key=f"languages.ids-1-{digest_of(names)[:6]}"
        )
    return _two_spaces(workspace, "languages.listed"), mine.pairs(first, second)


def _sentences(columns: Columns, place: str) -> tuple[list[SpaceSpec], Pairs] | None:
    sides = []
    for number, (column, label) in enumerate(zip(st.columns(2, gap="large"), ("From", "To"), strict=True)):
        with column, st.container(horizontal=True):
            sides.append(choose_side(label, columns, number, place))
    specs = encoded(sides)
    return None if specs is None else (specs, ())


def _two_spaces(workspace: Workspace, key: str) -> list[SpaceSpec]:
    labels = space_labels(workspace.spaces)
    place = digest_of(workspace.spaces)[:6]
    with st.container(horizontal=True):
        return [
            kept(
                st.selectbox,
                side,
                workspace.spaces,
                index=number,
                format_func=labels.get,
                key=f"{key}.space-{number}-{place}",
            )
            for number, side in enumerate(("From", "To"))
        ]


def _settings(n: int) -> RetrievalSpec:
    usual = RetrievalSpec()
    most = max(2, n - usual.k - 1)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        n_anchors = kept(
            st.slider,
            "Known pairs",
            2,
            most,
            min(usual.n_anchors, max(2, 2 * n // 3)),
            key=f"languages.anchors-{n}",
            width=320,
        )
        state = kept(
            st.number_input,
            "Random state",
            0,
            9999,
            0,
            key="languages.state",
            width=140,
            help="Draws the known pairs.",
        )
    return RetrievalSpec(
        n_anchors=int(n_anchors), k=min(usual.k, max(1, n - int(n_anchors) - 1)), random_state=int(state)
    )


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
        f"<b>{_percent(score)}</b> of {counted(len(result.ids), 'query', 'queries')} find their partner"
        f" first, by {METHODS[best].title}; chance level {_percent(score.null.mean)}.{before}"
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
        column_config={
            name: st.column_config.TextColumn(width="large") for name in ("query", "found", "partner")
        },
    )
    st.caption(
        f"{int(right.sum()):,} of {len(right):,} right. Errors first, {counted(len(order), 'row')} shown."
    )


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
            help=(
                f"Compare {plain_name(space_name(specs[0]))} and {plain_name(space_name(specs[1]))} on the"
                " other pages"
            ),
            on_click=jobs.join,
            args=(specs,),
        )
