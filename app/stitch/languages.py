"""Languages: encoders of two languages, compared by means of pairs of sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from app import compute, exports, messages, session, sharing
from app import jobs as jobs_
from app.encode import forms, jobs
from app.page_settings import remembered, segments
from app.places import CONNECT, go
from app.plain_text import plain_html, plain_name
from app.widgets import space_labels
from app.workspace import Workspace
from relcore.base.errors import NoCommonId, SpaceError
from relcore.base.names import METHODS
from relcore.base.numbers import counted, percent
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.encodings import encode, encode_job, encoding_job_key, stored_encodings
from relcore.encoders.bundled_data import LANGUAGES
from relcore.encoders.dataset import DatasetSpec, dataset_place
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import Encoder
from relcore.encoders.item_tables import read_pair_list
from relcore.encoders.sentences import TfidfSvd
from relcore.encoders.transformers import MiniLM
from relcore.runs.entries import digest_of
from relcore.scores.score import share_interval
from relcore.spaces.matching import Match
from relcore.stitch.try_it import CrossLingual, Pairs, RetrievalResult, RetrievalSpec, pair_up, retrieve

_Side = tuple[str, DatasetSpec, Encoder, forms.Preview]
_AT_ONCE = 2.5  # processor seconds, imports included; a longer encoding waits for a click
_MOST_READ = 1000  # number of rows read of a table; a language model encodes them within a minute
MOST_PAIRS = 2000  # number of pairs, so that six methods take less than a second
SHOWN = 60  # number of examples in the table
_ANSWERS = {"both": "Both", "right": "✓ Right", "wrong": "✗ Wrong"}
_EVERYDAY = "Everyday sentences"
_MINE = "Your own list"
_SPACES = "Spaces of this session"

Columns = dict[str, DatasetSpec]  # language → the dataset of its sentences


def parallel_tables(folder: str | None) -> dict[str, Columns]:
    """The tables of the data folder with at least two columns of texts, by name."""
    tables = {}
    for entry in forms.available(folder):
        if entry.kind != "texts" or entry.spec.source not in ("file", "folder"):
            continue
        try:
            names = forms.columns_of(entry.spec).items
        except SpaceError:
            continue
        if len(names) > 1:
            look = {"limit": _MOST_READ, "options": (("empty", "error"),)}
            tables[entry.name] = {name: replace(entry.spec, column=name, **look) for name in names}
    return tables


def encoders_for(n: int) -> list[Encoder]:
    """The text encoders that need no network access, with settings for n texts."""
    return [TfidfSvd(max(2, min(300, n // 20 * 10)), min_texts=1), MiniLM((6,)), MiniLM((4,)), MiniLM((2,))]


def encoder_name(encoder: Encoder) -> str:
    return f"{encoder.title} {encoder.outputs[0]}".strip()


def _encoded_spaces(sides: Sequence[tuple[str, DatasetSpec, Encoder]]) -> list[SpaceSpec] | None:
    """The spaces of both columns. They come from the store, or are encoded at once if that is quick. If not,
    draw a button that encodes them, and return None."""
    queue = jobs_.queue()
    missing = {}
    specs = []
    for name, dataset, encoder in sides:
        preview = forms.preview(dataset)
        stored = stored_encodings(queue.store, preview.digest, encoder)
        seconds = encoder.seconds(preview.n)
        is_quick = seconds is not None and seconds < _AT_ONCE  # without an estimate, ask first
        if stored is None and is_quick:
            with st.spinner(f"Encoding {plain_name(name)} …"):
                encode(dataset, encoder, queue.store)
            stored = stored_encodings(queue.store, preview.digest, encoder)
        if stored is None:
            missing[encoding_job_key(preview.digest, encoder)] = (name, dataset, encoder, preview)
        else:
            specs += jobs.own_specs(dataset, encoder, stored)
    if not missing:
        return specs
    _offer_to_encode(missing)
    return None


def _offer_to_encode(missing: Mapping[str, _Side]) -> None:
    """Draw a button that encodes the columns without a job, and the jobs of the others."""
    queue = jobs_.queue()
    running = {key: job for key in missing if (job := queue.job(key))}
    for key, job in running.items():
        if jobs_.retry_requested(job):
            _submit({key: missing[key]})
    waiting = {key: side for key, side in missing.items() if key not in running}
    if waiting:
        costs = [forms.expected_seconds(encoder, preview) for *_, encoder, preview in missing.values()]
        seconds = None
        if None not in costs:
            seconds = jobs_.total_seconds(costs)
        what = "both columns"
        if len(missing) == 1:
            what = next(iter(missing.values()))[0]
        st.button(
            f"Encode {plain_name(what)} · {jobs_.cost_in_words(seconds)}",
            key="languages.encode",
            type="primary",
            icon=":material/play_arrow:",
            on_click=session.guarded,
            args=(_submit, waiting),
        )
    jobs_.follow(list(running.values()))


def _submit(missing: dict) -> None:
    for key, (_, dataset, encoder, preview) in missing.items():
        title = f"{encoder_name(encoder)} · {preview.name}"
        cost = forms.expected_seconds(encoder, preview)
        jobs_.queue().submit(key, encode_job, title=title, expected=cost, dataset=dataset, encoder=encoder)


def draw(workspace: Workspace) -> None:
    st.caption(
        "Two encoders, one per language, were trained independently. You know"
        " the translations of some sentences. Do they suffice to find those of all others?"
        " You know no pair? Link finds them."
    )
    try:
        if chosen := _chosen(workspace):
            _retrieval(workspace, *chosen)
    except SpaceError as error:
        messages.error(error)


def _offer_link(source: SpaceSpec, target: SpaceSpec) -> None:
    """Say that these two spaces share no ids, with a button that opens Link with them."""
    messages.info(
        "These two spaces share no ids, so no pair is known. Link finds pairs from the vectors."
        " If you have a list of pairs, choose Your own list above.",
        ":material/info:",
    )
    if st.button("Find pairs with Link", icon=":material/link:", key="languages.link", type="primary"):
        session.edit("choose the two models", source=source, target=target)
        go(CONNECT, "Link")


def _chosen(workspace: Workspace) -> tuple[list[SpaceSpec], Pairs] | None:
    """The two spaces, and the list of pairs, which is empty if their ids agree. Returns None while something
    is missing."""
    tables = parallel_tables(sharing.open_folder())
    sources = {name: plain_name(name) for name in (_EVERYDAY, *tables, _MINE, _SPACES)}
    key = f"languages.source-{digest_of(list(tables))[:6]}"
    if len(tables) > 1:  # a select box, because the choices do not fit in one row
        source = remembered(st.selectbox, "Pairs from", list(sources), key=key, width=320)
    else:
        source = segments("Pairs from", sources, key)
    if source == _SPACES:
        return _two_spaces(workspace, "languages"), ()
    if source == _EVERYDAY:
        return _sentences({name: DatasetSpec("parallel", code) for code, name in LANGUAGES.items()}, source)
    if source != _MINE:
        return _sentences(tables[source], source)
    return _uploaded(workspace)


def _uploaded(workspace: Workspace) -> tuple[list[SpaceSpec], Pairs] | None:
    """The two spaces, and the pairs, of a table that the user uploads. Its columns are either sentences to
    encode, or ids of two spaces."""
    file = st.file_uploader(
        "A list of pairs: .csv or .tsv, with names of the columns in the first line",
        type=["csv", "tsv", "parquet"],
        key="languages.upload",
        help="One pair per line, such as a sentence and its translation, or the ids of two spaces.",
    )
    if file is None:
        return None
    path = session.keep_upload(file)
    table = read_pair_list(path)
    names = list(table.columns)
    kinds = {"sentences": "Sentences", "ids": "Ids of two spaces"}
    if segments("Contents of the columns", kinds, "languages.holds") == "sentences":
        columns = {name: DatasetSpec("file", str(path), column=name) for name in names}
        return _sentences(columns, digest_of(str(path))[:6])
    place = digest_of(names)[:6]
    with st.container(horizontal=True):
        key = f"languages.ids-0-{place}"
        first = remembered(st.selectbox, "Ids of the first space", names, index=0, key=key)
        key = f"languages.ids-1-{place}"
        second = remembered(st.selectbox, "Ids of the second space", names, index=1, key=key)
    return _two_spaces(workspace, "languages.listed"), table.pairs(first, second)


def _sentences(columns: Columns, place: str) -> tuple[list[SpaceSpec], Pairs] | None:
    sides = []
    for number, (column, label) in enumerate(zip(st.columns(2, gap="large"), ("From", "To"), strict=True)):
        with column, st.container(horizontal=True):
            index = min(number, len(columns) - 1)
            key = f"languages.column-{number}-{place}"
            name = remembered(st.selectbox, label, list(columns), index=index, key=key)
            encoder = remembered(
                st.selectbox,
                "Encoder",
                encoders_for(forms.preview(columns[name]).n),
                format_func=encoder_name,
                key=f"languages.encoder-{number}-{place}",
                help=(
                    "TF-IDF + SVD counts words and is fitted on this column alone. MiniLM was trained on"
                    " English. For other encoders, encode the two columns in Data and choose them"
                    " as spaces."
                ),
            )
            sides.append((name, columns[name], encoder))
    specs = _encoded_spaces(sides)
    if not specs:
        return None
    return specs, ()


def _two_spaces(workspace: Workspace, key: str) -> list[SpaceSpec]:
    spaces = workspace.spaces
    titled = space_labels(workspace.spaces).get
    key = f"{key}.space-{digest_of(spaces)[:6]}"
    with st.container(horizontal=True):
        return [
            remembered(st.selectbox, side, spaces, index=n, format_func=titled, key=f"{key}-{n}")
            for n, side in enumerate(("From", "To"))
        ]


def _retrieval(workspace: Workspace, specs: list[SpaceSpec], pairs: Pairs) -> None:
    try:
        pair = pair_up(*map(compute.load_space, specs), pairs)
    except NoCommonId:
        _offer_link(*specs)
        return
    if len(pair) > MOST_PAIRS:
        st.caption(f"The first {MOST_PAIRS:,} of {len(pair):,} pairs are used.")
        (pair, pairs) = _first_pairs(pair, pairs)
    spec = _choose_retrieval(workspace, specs, len(pair))
    result = _retrieved(pair, (pair.source.name, pair.target.name), spec)
    texts = [_texts_of(spec.dataset) if spec.dataset else {} for spec in specs]
    nouns = ("row", "partner")
    if all(texts):
        nouns = ("sentence", "translation")
    messages.lead(lead(result, nouns, *map(_language_of, specs)))
    recipe = CrossLingual(spaces=tuple(specs), digests=compute.digests(specs), retrieval=spec, pairs=pairs)
    with st.container(key="wide"):
        exports.figure(recipe.draw(result), "languages.map")
    _draw_how_measured(result, pair.n_zero)
    _examples(texts, nouns, dict(pairs), result)


def _first_pairs(pair: Match, pairs: Pairs) -> tuple[Match, Pairs]:
    """The first `MOST_PAIRS` pairs of rows, and the ids of each pair."""
    some = range(MOST_PAIRS)
    first = Match(pair.source.take(some), pair.target.take(some), 0, 0, pair.n_zero)
    present = set(first.ids)
    partners = pairs or tuple((row_id, row_id) for row_id in first.ids)
    return first, tuple(partner for partner in partners if partner[0] in present)


def _choose_retrieval(workspace: Workspace, specs: list[SpaceSpec], n: int) -> RetrievalSpec:
    """Draw the choosers of how many of the n pairs are known, and of the random state."""
    usual = RetrievalSpec()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        most = max(2, n - usual.k - 1)
        key = f"languages.anchors-{n}"
        known = min(usual.n_anchors, max(2, 2 * n // 3))
        told = f"Pairs whose translation is given, of {n:,}. The others are searched."
        chosen = remembered(st.slider, "Known pairs", 2, most, known, key=key, width=320, help=told)
        n_anchors = int(chosen)
        with st.popover("Method details", icon=":material/tune:", key="languages.details"):
            state = remembered(
                st.number_input,
                "Random state",
                0,
                9999,
                0,
                key="languages.state",
                help="Draws the known pairs.",
            )
            if set(specs) - set(workspace.spaces):
                st.button(
                    "Add both to the session",
                    key="languages.join",
                    icon=":material/add:",
                    help="The other pages can then compare them.",
                    on_click=jobs.join,
                    args=(specs,),
                )
    k = min(usual.k, max(1, n - n_anchors - 1))
    return RetrievalSpec(n_anchors=n_anchors, k=k, random_state=int(state))


def _language_of(spec: SpaceSpec) -> str:
    """The language of a bundled dataset, such as "English"; "" for others."""
    if spec.dataset is None or spec.dataset.source != "parallel":
        return ""
    return LANGUAGES.get(spec.dataset.name, "")


def _draw_how_measured(result: RetrievalResult, n_zero: int) -> None:
    """Draw the words of the figure, and below a fold the circumstances of its numbers."""
    st.caption(
        "Best method first. Each uses the known pairs in another way; “absolute” uses none. Found first: the"
        " share whose nearest one on the other side is right."
    )
    zero = ""
    if n_zero:
        zero = f" Left out: {counted(n_zero, 'pair')} with a zero vector."
    spec = result.spec
    told = (
        f"{counted(len(result.ids), 'query', 'queries')} through {counted(spec.n_anchors, 'known pair')},"
        f" drawn at random; k = {spec.k}. MRR: mean of 1 ÷ the rank of the partner, 0 beyond k. Jaccard:"
        " overlap of the k nearest in both spaces, shared ÷ all. Chance: rows permuted. The interval is over"
        " queries; it does not count that the best method was chosen on them. TF-IDF + SVD is fitted on all"
        f" sentences of its column, but on no pair.{zero}"
    )
    summary = "<summary>How this was measured</summary>"
    st.html(f'<details class="relscope-details">{summary}{plain_html(told)}</details>')


@compute.cached(24, "Searching the partner of each row by every method; the answer stands here …")
def _retrieved(pair: Match, names: tuple[str, str], spec: RetrievalSpec) -> RetrievalResult:
    return retrieve(pair, spec)


def lead(result: RetrievalResult, nouns: tuple[str, str], source: str = "", target: str = "") -> str:
    """The share that the best method finds, with its interval, as HTML. `nouns` are those of a query and of
    its partner; `source` and `target` are the languages, if known."""
    (best, *others) = result.best_first()
    score = result.scores[best]["first"]
    low, high = share_interval(score, score.n)
    queries = f"the {source} {nouns[0]}s".replace("  ", " ")
    partner = f"{target} {nouns[1]}".strip()
    before = ""
    if "absolute" not in result.scores:
        before = "; without known pairs the vectors cannot be compared, as the widths differ"
    elif best != "absolute":
        before = f", and without known pairs {percent(result.scores['absolute']['first'])}"
    best_of = ""
    if others:
        best_of = f", the best of {len(result.scores)} methods"
    return (
        f"<strong>{percent(score)} of {queries} find their {partner} first.</strong> By chance,"
        f" {percent(score.null.mean)} would{before}."
        f" <small>95 %: {percent(low)} to {percent(high)}, of {counted(len(result.ids), nouns[0])} that are"
        f" no known pair. Method: <b>{METHODS[best].title}</b>{best_of}.</small>"
    )


def _examples(
    texts: Sequence[Mapping[str, str]],
    nouns: tuple[str, str],
    partner: dict[str, str],
    result: RetrievalResult,
) -> None:
    query, answer = nouns
    st.markdown(f"### Nearest {query}s")
    titles = {name: METHODS[name] for name in result.best_first()}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        which = segments("Show", _ANSWERS, "languages.answers")
        method = segments("Method", titles, f"languages.method-{'-'.join(titles)}")
    first = result.found[method][:, 0]
    right = first == np.arange(len(first))
    order = _order(right, which)
    second = [partner.get(identifier, identifier) for identifier in result.ids]
    st.caption(
        f"Each line shows a {query} and the {query} found nearest on the other side. It is its {answer} for"
        f" {int(right.sum()):,} of {len(right):,}. {counted(len(order), 'line')} shown."
    )
    st.dataframe(
        {
            "answer": np.where(right[order], "✓ right", "✗ wrong"),
            query: [texts[0].get(result.ids[row], result.ids[row]) for row in order],
            "nearest found": [texts[1].get(second[first[row]], second[first[row]]) for row in order],
            f"its {answer}": [texts[1].get(second[row], second[row]) for row in order],
        },
        hide_index=True,
        key="languages.examples",
        column_config=dict.fromkeys(
            (query, "nearest found", f"its {answer}"), st.column_config.TextColumn(width="large")
        ),
    )


def _order(right: np.ndarray, which: str) -> np.ndarray:
    """The numbers of the lines to show, of queries with these answers (n,). Of both kinds, a right and a
    wrong one take turns as long as there are both."""
    lines = {"right": np.flatnonzero(right), "wrong": np.flatnonzero(~right)}
    if which in lines:
        return lines[which][:SHOWN]
    turns = np.empty(len(right))
    for number, kind in enumerate(lines.values()):
        turns[kind] = 2 * np.arange(len(kind)) + number
    return np.argsort(turns, kind="stable")[:SHOWN]


def _texts_of(dataset: DatasetSpec) -> dict[str, str]:
    """The sentences by id. Returns {} if the dataset was removed, or if this session may not read it."""
    try:
        dataset_place(dataset)  # check access here, because all sessions share the cache
        return _read_texts(dataset)
    except SpaceError:
        return {}


@st.cache_resource(max_entries=8, show_spinner=False)
def _read_texts(dataset: DatasetSpec) -> dict[str, str]:
    read = load_dataset(dataset)
    if read.kind == "texts":
        return dict(zip(read.ids, read.items(0, len(read)), strict=False))
    return {}
