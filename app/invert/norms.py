"""Lengths: how much the row lengths of each space vary. A relative space does not contain them, so no
inverse recovers them.
"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import compute, exports, messages
from app.plain_text import plain_name
from app.widgets import space_labels
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.compare.figures import MOST_TOGETHER, Norms
from relcore.figures.export import Exportable
from relcore.invert.figures import Lengths, lengths, variation


def draw(workspace: Workspace) -> None:
    """The whole tab: a sentence with its numbers, lengths from the mean over their average, and raw norms."""
    loaded, labels = {}, space_labels(workspace.spaces)
    for spec in workspace.spaces:
        try:
            loaded[spec] = compute.load_space(spec)
        except SpaceError as error:
            messages.warning(f"{labels[spec]} is left out: {error}")
    if not loaded:
        return
    told = ", ".join(
        f"**{100 * variation(lengths(space)):.0f} %** in {plain_name(labels[spec])}"
        for spec, space in loaded.items()
    )
    st.markdown(
        f"Row lengths vary by {told}. Inversion cannot recover them: every row gets the mean length of the"
        " target's anchors, reduced by the part of its direction that they do not span."
    )
    spaces = list(loaded.values())
    many = len(spaces) > MOST_TOGETHER
    recipe = {"spaces": tuple(loaded), "digests": tuple(space.digest for space in spaces), "panels": many}
    centred, raw = st.columns(2, gap="large")
    with centred:
        st.markdown("**Length of the centred rows ÷ its average**")
        _show(Lengths(**recipe).draw(spaces), "lengths", many)
        st.caption("As inversion uses them: each space is centred, with an average length of 1.")
    with raw:
        st.markdown("**Norm**")
        _show(Norms(**recipe).draw(spaces), "norms", many)
        st.caption("Norms of the vectors, not centred (Maiorca et al. 2024, Fig. 5).")
    table = pd.DataFrame(
        [
            {
                "space": labels[spec],
                "rows": len(space),
                "mean norm": float(space.norms.mean()),
                "norms vary by": variation(space.norms),
                "from the mean, vary by": variation(lengths(space)),
            }
            for spec, space in loaded.items()
        ]
    )
    percent = st.column_config.NumberColumn(format="percent", help="Standard deviation over mean")
    st.dataframe(
        table,
        hide_index=True,
        column_config={
            "norms vary by": percent,
            "from the mean, vary by": percent,
            "mean norm": st.column_config.NumberColumn(format="%.3g"),
            "rows": st.column_config.NumberColumn(format="localized"),
        },
    )


def _show(figure: Exportable, key: str, many: bool) -> None:
    drawn = figure.interactive(exports.theme())
    if not many:
        drawn.update_layout(title={"text": ""}, margin={"t": 12}, height=340)  # the heading says it
    exports.chart(drawn, f"invert.{key}")
    exports.export_bar(figure, f"invert-{key}")
