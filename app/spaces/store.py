"""The store: its encodings, its size, and buttons that add and remove entries."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import jobs, session
from app.encode import jobs as encoding_jobs
from app.plain_text import plain
from app.tables import chosen_rows
from relcore.base.access import is_shared
from relcore.base.environment import STORE_GB
from relcore.base.errors import SpaceError
from relcore.base.settings import UNSET, settings_of
from relcore.catalog.catalog import stored_encoding_spec
from relcore.encoders.encoder import encoder_from_json
from relcore.runs.entries import ENVIRONMENT, Summary, digest_of


def draw() -> None:
    """Draw the tab. In a shared app, it shows only the entries of this session."""
    store = jobs.queue().store
    if is_shared():
        mine = map(store.summary, session.member().made)
    else:
        mine = store.summaries()
    entries = [entry for entry in mine if entry is not None]
    total = sum(entry.size for entry in entries) if is_shared() else store.size()
    limit = store.limit_bytes
    if is_shared():
        where = "for all sessions together"
    else:
        where = f"in {plain(store.root)}"
    st.progress(
        min(1.0, total / limit),
        text=(
            f"{total / 1e6:,.1f} MB in {len(entries):,} entries, of at most {limit / 1e9:,.1f} GB {where};"
            f" {ENVIRONMENT} and {STORE_GB} set folder and limit. Above the limit, the least recently used"
            " entries are removed."
        ),
    )
    if is_shared():
        st.caption(
            "This app is shared, so the store shows what this session made. Other sessions do not see it."
        )
    encodings = [entry for entry in entries if "encoder" in entry.metadata]
    if encodings:
        # Sort by name: sorted by last use, entries would move when one is looked at, and another row would be
        # selected.
        _encodings(sorted(encodings, key=lambda entry: (entry.metadata["name"], _settings(entry))))
    else:
        st.caption("There are no encodings yet. Texts and pictures are encoded above, each once.")


def _encodings(encodings: list[Summary]) -> None:
    present = {spec.option("key") for spec in session.workspace().spaces}
    table = pd.DataFrame(
        [
            {
                "name": entry.metadata["name"],
                "dataset": entry.metadata["dataset"],
                "settings": _settings(entry),
                "rows": entry.shapes["vectors"][0],
                "dimensions": entry.shapes["vectors"][1],
                "megabytes": entry.size / 1e6,
                "accuracy": entry.metadata.get("training", {}).get("accuracy"),
                "in this session": entry.key in present,
            }
            for entry in encodings
        ]
    )
    number = st.column_config.NumberColumn
    look = {
        "name": st.column_config.TextColumn(width="medium"),
        "rows": number(format="localized"),
        "megabytes": number(format="%.1f"),
        "accuracy": number(
            format="%.3f", help="Accuracy on rows held out from training; only for encoders trained here"
        ),
    }
    key = f"store.table-{digest_of([entry.key for entry in encodings])}"
    chosen = [encodings[row] for row in chosen_rows(table, key, several=True, column_config=look)]
    with st.container(horizontal=True):
        st.button(
            "Add to the session",
            key="store.add",
            icon=":material/add:",
            type="primary",
            disabled=not chosen,
            on_click=session.guarded,
            args=(_add, chosen),
        )
        size = ""
        if chosen:
            size = f", {sum(entry.size for entry in chosen) / 1e6:,.1f} MB"
        st.button(
            f"Remove from the store{size}",
            key="store.remove",
            icon=":material/delete:",
            disabled=not chosen,
            help="Removed data can be encoded again.",
            on_click=_remove,
            args=([entry.key for entry in chosen],),
        )


def _settings(entry: Summary) -> str:
    """The settings of an encoder that differ from their defaults, in words."""
    try:
        encoder = encoder_from_json(entry.metadata["encoder"])
    except SpaceError:  # a script made the entry with an encoder that Relscope lacks
        return ""
    values = [(setting, getattr(encoder, setting.name)) for setting in settings_of(type(encoder)).values()]
    return ", ".join(
        f"{setting.name} {value}" for setting, value in values if setting.default not in (UNSET, value)
    )


def _add(chosen: list[Summary]) -> None:
    specs = [stored_encoding_spec(entry) for entry in chosen]
    if None in specs:
        name = chosen[specs.index(None)].metadata["name"]
        raise SpaceError(
            f"{name!r} was made by a script from its own dataset; expected an encoding of a dataset that can"
            " be read again"
        )
    encoding_jobs.join(specs)


def _remove(keys: list[str]) -> None:
    """Remove these entries. In a shared app, keep entries that another session also made."""
    member = session.member()
    for key in keys:
        if not (is_shared() and member.wanted_by_others(key)):
            jobs.queue().store.remove(key)
        member.made.discard(key)
