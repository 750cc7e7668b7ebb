"""How many more pairs pay, and which rows to embed next."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from app import messages
from app.migrate.panel import MigrateSetup, texts_of
from relcore.base.errors import SpaceError
from relcore.base.names import STRATEGIES
from relcore.migrate.migration import MigrationResult
from relcore.migrate.partial import CHOICES, outlook, rows_to_embed
from relcore.spaces.space import LatentSpace

_KEEP = {"persist_state": "session"}
_LISTED = 200


def draw(setup: MigrateSetup, result: MigrationResult) -> None:
    """The tab."""
    st.markdown(f"**{outlook(result)}**")
    old = setup.old
    known = np.flatnonzero(old.index.isin(setup.new.index))
    if len(known) == len(old):
        known = result.pairs
        st.caption("Every row has a new vector here, so the list is of rows that are not among the pairs.")
    left = len(old) - len(known)
    if left < 1:
        messages.info("Every row is a pair already.", icon=":material/check:")
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        usual = max(1, min(len(result.pairs), left))
        n_more = int(
            st.number_input(
                "Rows to embed next", 1, left, usual, key=f"pairs.more-{left}", width=180, **_KEEP
            )
        )
        choice = st.segmented_control(
            "Choose them by",
            CHOICES,
            default=CHOICES[0],
            format_func=lambda name: STRATEGIES[name].title,
            key="pairs.choice",
            required=True,
            help=(
                "Farthest-point covers what the pairs do not cover yet. k-means takes the most typical rows."
                " Random rows are what the curve above was measured with."
            ),
            **_KEEP,
        )
    try:
        chosen = _chosen(old.digest, tuple(known.tolist()), n_more, choice, setup.task.random_state, old)
    except SpaceError as error:
        messages.error(error)
        return
    table = pd.DataFrame({"id": chosen[:_LISTED], "text": texts_of(setup.specs[0], chosen[:_LISTED])})
    st.dataframe(table if table.text.any() else table[["id"]], hide_index=True, height=260, key="pairs.table")
    st.download_button(
        f"Download the list of {n_more:,}",
        "\n".join(chosen) + "\n",
        "rows-to-embed.txt",
        "text/plain",
        key="pairs.download",
        icon=":material/download:",
        on_click="ignore",
    )


@st.cache_data(max_entries=8, show_spinner="Choosing rows …")
def _chosen(
    digest: str, known: tuple[int, ...], n_more: int, choice: str, state: int, _old: LatentSpace
) -> list[str]:
    return list(rows_to_embed(_old, np.array(known, dtype=np.int64), n_more, choice, state))
