"""Sources of pairs of sentences: the bundled ones, a table of the data folder, a list of the user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import streamlit as st

from app import jobs, messages, session
from app.encode import encoding_costs, encoding_jobs, raw_data
from app.page_settings import kept
from app.plain_text import plain_name
from app.uploads import keep_upload
from relcore.encoding import encode, encode_job, encoding_job_key, stored_encodings
from relcore.sources.catalog import SpaceSpec
from relcore.sources.dataset import DatasetSpec
from relcore.sources.encoder import Encoder
from relcore.sources.lsa import TfidfSvd
from relcore.sources.pair_lists import PairList, read_pair_list
from relcore.sources.parallel import LANGUAGES
from relcore.sources.text import MiniLM
from relcore.spaces import SpaceError

_AT_ONCE = 2.5  # processor seconds, with loading the libraries
_MOST_ROWS = 1000  # of a large table, so that a language model has read it within a minute


@dataclass(frozen=True)
class Column:
    """One language of a list: its name, and the dataset of its sentences."""

    name: str
    dataset: DatasetSpec


def everyday() -> list[Column]:
    """The bundled sentences."""
    return [Column(name, DatasetSpec("parallel", code)) for code, name in LANGUAGES.items()]


def tables(folder: str | None) -> dict[str, list[Column]]:
    """Tables of the data folder with two columns of text or more, such as Multi30k's; by name."""
    found = {}
    for entry in raw_data.available(folder):
        if entry.kind != "texts" or entry.spec.source not in ("file", "folder"):
            continue
        try:
            names = raw_data.columns(entry.spec).items
        except SpaceError:
            continue
        if len(names) > 1:
            found[entry.name] = [
                Column(name, replace(entry.spec, column=name, limit=_MOST_ROWS, options=(("empty", "error"),)))
                for name in names
            ]
    return found


def uploaded(key: str) -> tuple[Path, PairList] | None:
    """A list of the user, checked; None while there is none or it has an error, which the page then shows."""
    file = st.file_uploader(
        "A list of pairs: .csv or .tsv, with names of the columns in the first line",
        type=["csv", "tsv", "parquet"],
        key=key,
        help="One pair per line, such as a sentence and its translation, or an id of one space and an id of the other.",
    )
    if file is None:
        return None
    try:
        path = keep_upload(file, session.uploads_folder())
        return path, read_pair_list(path)
    except SpaceError as error:
        messages.error(error)
        return None


def columns_of(path: Path, found: PairList) -> list[Column]:
    """Of an uploaded list of sentences."""
    return [Column(name, DatasetSpec("file", str(path), column=name)) for name in found.columns]


def encoders_for(n: int) -> list[Encoder]:
    """Text encoders that need no network access: one fitted on the column itself, and three layers of MiniLM."""
    return [TfidfSvd(max(2, min(300, n // 20 * 10)), min_texts=1), MiniLM((6,)), MiniLM((4,)), MiniLM((2,))]


def encoder_name(encoder: Encoder) -> str:
    return f"{encoder.title} {encoder.outputs[0]}".strip()


def encoded(sides: Sequence[tuple[Column, Encoder]], key: str) -> list[SpaceSpec] | None:
    """The space of each side, from the store, or encoded in place if that is quick; else None, and a button with the cost."""
    store = jobs.engine().store
    missing, specs = {}, []
    for column, encoder in sides:
        preview = raw_data.preview(column.dataset)
        stored = stored_encodings(store, preview.digest, encoder)
        if stored is None and (encoder.seconds(preview.n) or _AT_ONCE) < _AT_ONCE:
            with st.spinner(f"Encoding {plain_name(column.name)} …"):
                encode(column.dataset, encoder, store)
            stored = stored_encodings(store, preview.digest, encoder)
        if stored is None:
            missing[encoding_job_key(preview.digest, encoder)] = (column, encoder, preview)
        else:
            specs += encoding_jobs.own_specs(column.dataset, encoder, stored)
    if missing:
        _offer(missing, key)
        return None
    return specs


def _offer(missing: dict, key: str) -> None:
    known = {one: job for one in missing if (job := jobs.engine().job(one))}
    for one, job in known.items():
        if jobs.asked_again(job):
            _submit({one: missing[one]})
    if len(known) < len(missing):
        costs = [encoding_costs.expected(encoder, preview) for _, encoder, preview in missing.values()]
        seconds = None if None in costs else encoding_costs.together([one.likely for one in costs], jobs.engine().n_workers)
        cost = encoding_costs.in_words(seconds)
        what = "both columns" if len(missing) > 1 else next(iter(missing.values()))[0].name
        st.button(
            f"Encode {plain_name(what)} · {cost}",
            key=f"{key}.encode",
            type="primary",
            icon=":material/play_arrow:",
            on_click=session.guarded,
            args=(_submit, {one: side for one, side in missing.items() if one not in known}),
            help=encoding_costs.learned(costs).strip() or None,
        )
    jobs.follow(list(known.values()))


def _submit(missing: dict) -> None:
    for one, (column, encoder, preview) in missing.items():
        title = f"{encoder_name(encoder)} · {preview.name}"
        cost = encoding_costs.expected(encoder, preview)
        jobs.engine().submit(one, encode_job, title=title, expected=cost, dataset=column.dataset, encoder=encoder)


def choose_side(label: str, columns: Sequence[Column], number: int, place: str) -> tuple[Column, Encoder]:
    """Language and encoder of one side."""
    names = {column.name: column for column in columns}
    name = kept(st.selectbox, label, list(names), index=min(number, len(names) - 1), key=f"languages.column-{number}-{place}")
    n = raw_data.preview(names[name].dataset).n
    encoder = kept(
        st.selectbox,
        "Encoder",
        encoders_for(n),
        format_func=encoder_name,
        key=f"languages.encoder-{number}-{place}",
        help="TF-IDF + SVD counts words and is fitted on this column alone. MiniLM was trained on English and splits words of "
        "other languages into pieces. For other encoders, encode the two columns on the Spaces page and choose them as spaces.",
    )
    return names[name], encoder
