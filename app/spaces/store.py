"""The tab Store: which entries it has, how large they are, and buttons to remove them."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import jobs, session
from app.encode import jobs as encoding_jobs
from app.plain_text import plain
from app.tables import chosen_rows
from relcore.base.access import shared
from relcore.base.errors import SpaceError
from relcore.base.settings import UNSET, settings_of
from relcore.catalog.catalog import stored_encoding_spec
from relcore.encoders.encoder import encoder_from_json
from relcore.runs.digest import ENVIRONMENT, LIMIT_ENVIRONMENT, digest_of
from relcore.runs.entries import Summary
from relcore.runs.store import Store


def draw() -> None:
    """The whole tab; in a shared app only what this session made."""
    store = jobs.engine().store
    mine = map(store.summary, session.member().made) if shared() else store.summaries()
    found = [one for one in mine if one is not None]
    total, limit = sum(one.size for one in found) if shared() else store.size(), store.limit_bytes
    used, kept, spaces = st.columns([2, 1, 1])
    # By name: the order of last use changes with a look, and a selected row would become another.
    encodings = sorted(
        (one for one in found if "encoder" in one.metadata),
        key=lambda one: (one.metadata["name"], _settings(one)),
    )
    used.metric(
        "In use",
        f"{total / 1e6:,.1f} MB",
        help="Above the limit, the entries that were unused for the longest time are removed.",
    )
    kept.metric("Entries", f"{len(found):,}")
    spaces.metric("Encodings among them", f"{len(encodings):,}")
    where = "for all sessions together" if shared() else f"in {plain(store.root)}"
    st.progress(
        min(1.0, total / limit),
        text=(
            f"of at most {limit / 1e9:,.1f} GB {where}; {ENVIRONMENT} and {LIMIT_ENVIRONMENT} set folder and"
            " limit"
        ),
    )
    if shared():
        st.caption(
            "This app is shared, so the store shows what this session made. Other sessions do not see it."
        )
    if encodings:
        _encodings(encodings, store)
    else:
        st.caption("There are no encodings yet. The tab “Encode” computes them, each once.")
    _clean(store, found)


def _encodings(encodings: list[Summary], store: Store) -> None:
    present = {spec.option("key") for spec in session.workspace().spaces}
    table = pd.DataFrame(
        [
            {
                "name": one.metadata["name"],
                "dataset": one.metadata["dataset"],
                "settings": _settings(one),
                "rows": one.shapes["vectors"][0],
                "dimensions": one.shapes["vectors"][1],
                "megabytes": one.size / 1e6,
                "accuracy": one.metadata.get("training", {}).get("accuracy"),
                "in this session": one.key in present,
            }
            for one in encodings
        ]
    )
    rows = chosen_rows(
        table,
        f"store.table-{digest_of([one.key for one in encodings])}",
        several=True,
        column_config={
            "name": st.column_config.TextColumn(width="medium"),
            "rows": st.column_config.NumberColumn(format="localized"),
            "megabytes": st.column_config.NumberColumn(format="%.1f"),
            "accuracy": st.column_config.NumberColumn(
                format="%.3f", help="On the rows held out from training; only for encoders trained here"
            ),
        },
    )
    chosen = [encodings[row] for row in rows]
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
        size = f", {sum(one.size for one in chosen) / 1e6:,.1f} MB" if chosen else ""
        st.button(
            f"Remove from the store{size}",
            key="store.remove",
            icon=":material/delete:",
            disabled=not chosen,
            help="It can be encoded again.",
            on_click=_remove,
            args=(store, [one.key for one in chosen]),
        )


def _settings(one: Summary) -> str:
    """What differs from an encoder's defaults."""
    try:
        encoder = encoder_from_json(one.metadata["encoder"])
    except SpaceError:  # an encoder of a script's own
        return ""
    values = [(setting, getattr(encoder, setting.name)) for setting in settings_of(type(encoder)).values()]
    return ", ".join(
        f"{setting.name} {value}" for setting, value in values if setting.default not in (UNSET, value)
    )


def _add(chosen: list[Summary]) -> None:
    specs = [stored_encoding_spec(one) for one in chosen]
    if None in specs:
        name = chosen[specs.index(None)].metadata["name"]
        raise SpaceError(
            f"{name!r} was made by a script from its own dataset; expected an encoding of a dataset that can"
            " be read again"
        )
    encoding_jobs.join(specs)


def _remove(store: Store, keys: list[str]) -> None:
    """Remove these entries; in a shared app those stay that another session made, too."""
    member = session.member()
    for key in keys:
        if not (shared() and member.wanted_by_others(key)):
            store.remove(key)
        member.made.discard(key)


def _clean(store: Store, found: list[Summary]) -> None:
    """Remove everything but the spaces of the session, after a second click."""
    present = {spec.option("key") for spec in session.workspace().spaces}
    busy = any(not job.status().ended for job in jobs.engine().jobs())
    with st.popover("Clean", icon=":material/cleaning_services:", key="store.clean", disabled=not found):
        keep = st.toggle("Keep the spaces of this session", True, key="store.keep")
        going = [one for one in found if not (keep and one.key in present)]
        size = sum(one.size for one in going) / 1e6
        st.markdown(
            f"Removes **{len(going):,} entries, {size:,.1f} MB**: encodings, trained weights, maps. They can"
            " be computed again."
        )
        if busy:
            st.caption("Jobs are in progress; their intermediate results would be removed, too.")
        st.button(
            f"Remove {len(going):,} entries",
            key="store.clean-now",
            icon=":material/delete_forever:",
            type="primary",
            disabled=not going,
            on_click=_remove,
            args=(store, [one.key for one in going]),
        )
