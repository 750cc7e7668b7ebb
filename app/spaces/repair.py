"""Repair a file with vectors of two models: what the repair would do, what it still needs, and the repaired
file."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import streamlit as st

from app import compute, exports, messages, session
from app.page_settings import remembered
from app.plain_text import plain
from app.results import place_of
from app.widgets import space_labels
from relcore.base.errors import SpaceError
from relcore.base.numbers import counted
from relcore.catalog.catalog import SpaceSpec
from relcore.check.collection import Checked
from relcore.check.repair import repair, rows_to_embed, why_not_again
from relcore.files.saving import save_space
from relcore.linking.bootstrap import PAIRED
from relcore.linking.clusters import FEWEST_CLUSTERED_ROWS as LINKABLE
from relcore.spaces.space import LatentSpace

_MADE = "relscope.check-repaired"  # state key: the spaces that the user had repaired last
_CHECKED = "relscope.check-repaired-space"  # state key: the repaired file that the user checks
_WITHOUT = "none: link the two parts"
_FILES = ["csv", "parquet", "npz"]


def draw_repair(spec: SpaceSpec, found: Checked, others: Sequence[SpaceSpec]) -> None:
    """Draw what a repair of this space would do, and the button that makes it. `others` are the session's
    spaces, which may hold rows of the smaller part that were embedded again."""
    space = compute.load_space(spec)
    small = found.suspected_rows
    n_small = int(np.count_nonzero(small))
    n_large = len(space) - n_small
    st.markdown("**Repair**")
    result = st.container()  # in sight above the uploader, which is tall
    n_unknown = int(np.count_nonzero(rows_to_embed(found) & ~small))
    unknown = ""
    if n_unknown:
        unknown = f" Rows of an unknown model ({n_unknown:,}) stay as they are unless you embed them again."
    st.caption(
        f"Maps the {counted(n_small, 'row')} of the smaller part into the space of the larger part, and"
        f" writes a new file. Your file stays as it is.{unknown} Embedding the rows again is better, if you"
        " can."
    )
    ids = space.ids[small]
    uploaded = _uploaded(ids, space.dimension)
    others = list(dict.fromkeys([*uploaded, *others]))
    again = [one for one in others if one != spec and _n_again(one, ids, space.dimension) >= PAIRED]
    doubts = {one: _why_not(space, found, compute.load_space(one)) for one in again}
    likely = [one for one in again if one in uploaded or not doubts[one]]
    choices: list[SpaceSpec | str] = [*likely]
    if min(n_small, n_large) >= LINKABLE:
        choices.append(_WITHOUT)
    choices += [one for one in again if one not in likely]
    if not choices:
        st.button("Make the repaired file", key="check.repair", icon=":material/build:", disabled=True)
        st.caption(f"Without rows embedded again, it needs {LINKABLE:,} rows of each model.")
        return
    labels = space_labels(others)
    chosen = remembered(
        st.selectbox,
        "Repair by",
        choices,
        format_func=lambda one: labels.get(one, one),
        key=f"check.repair-by-{place_of(choices, spec)}",
        help="Some rows of the smaller part by the model of the larger part, under the same ids. The map is"
        " fitted on them, and a third of them is held out to test it.",
    )
    pairs = None
    if chosen != _WITHOUT:
        pairs = compute.load_space(chosen)
        if doubts[chosen]:
            messages.warning(doubts[chosen], icon=":material/warning:")
    asked = (space.digest, pairs.digest if pairs else "")
    # An upload is made for the repair, so that it needs no further click.
    if chosen in uploaded or st.button("Make the repaired file", key="check.repair", icon=":material/build:"):
        st.session_state[_MADE] = asked
    if st.session_state.get(_MADE) == asked:
        with result:
            _draw_repaired(space, found, pairs)


def _uploaded(ids: np.ndarray, dimension: int) -> list[SpaceSpec]:
    """An uploader of rows embedded again. Returns the space of the uploaded file if it has enough of these
    ids; otherwise, a message says what is missing."""
    uploaded = st.file_uploader(
        f"Rows embedded again: a table with a column id and {counted(dimension, 'column')} of numbers, or an"
        " .npz with ids and vectors",
        _FILES,
        key="check.again-file",
        help=f"Download the ids above, and embed {PAIRED} or more of these rows (300 are better) with the"
        " model of the larger part. Keep their ids.",
    )
    if uploaded is None:
        return []
    spec = SpaceSpec("file", str(session.keep_upload(uploaded)))
    try:
        given = compute.load_space(spec)
    except SpaceError as error:
        messages.error(error)
        return []
    if given.dimension != dimension:
        messages.error(
            f"{uploaded.name}: expected {dimension:,} dimensions, as the other rows have, got"
            f" {given.dimension:,}; embed the rows with the model of the larger part"
        )
        return []
    n = _n_again(spec, ids, dimension)
    if n < PAIRED:
        messages.error(
            f"{uploaded.name}: expected {PAIRED} or more ids of the smaller part, got {n:,} among its"
            f" {counted(len(given), 'row')}; keep the ids of the download above in a column id"
        )
        return []
    st.caption(f":material/check: {plain(uploaded.name)}: {n:,} of the {len(ids):,} rows, embedded again.")
    return [spec]


def _n_again(spec: SpaceSpec, ids: np.ndarray, dimension: int) -> int:
    """The number of these ids that a space of the same dimension has."""
    if not compute.digest_or_blank(spec):
        return 0
    space = compute.load_space(spec)
    if space.dimension != dimension:
        return 0
    return int(space.index.isin(ids).sum())


@compute.cached(8, key=lambda space, found, again: (space.digest, found.count, again.digest))
def _why_not(space: LatentSpace, found: Checked, again: LatentSpace) -> str:
    return why_not_again(space, found, again)


def _draw_repaired(space: LatentSpace, found: Checked, pairs: LatentSpace | None) -> None:
    try:
        content, sentence, warning = _repaired(space, found, pairs)
    except SpaceError as error:
        messages.error(error)
        return
    st.markdown(plain(sentence))
    kind = "primary"
    if warning:
        messages.warning(warning, icon=":material/warning:")
        kind = "secondary"
    name = f"{space.name}-repaired.npz"
    with st.container(horizontal=True):
        exports.download(
            f"Download {plain(name)}",
            content,
            name,
            "application/octet-stream",
            "check.repaired",
            type=kind,
        )
        st.button(
            "Check the repaired file",
            key="check.again-repaired",
            icon=":material/verified:",
            help="Adds the repaired file to this session, and checks it as this one.",
            on_click=session.guarded,
            args=(_check_repaired, name, content),
        )


def _check_repaired(name: str, content: bytes) -> None:
    file = BytesIO(content)
    file.name = name
    spec = SpaceSpec("file", str(session.keep_upload(file)))
    st.session_state[_CHECKED] = spec
    spaces = session.workspace().spaces
    if spec not in spaces:
        session.edit(f"add {name}", spaces=(*spaces, spec))


def repaired_space() -> SpaceSpec | None:
    """The repaired file that the user wants to check, if any."""
    return st.session_state.get(_CHECKED)


@compute.cached(
    2,
    "Mapping the rows …",
    key=lambda space, found, pairs: (space.digest, found.count, pairs.digest if pairs else ""),
)
def _repaired(space: LatentSpace, found: Checked, pairs: LatentSpace | None) -> tuple[bytes, str, str]:
    """The repaired file (.npz), a sentence on the quality of the map, and a warning, "" if none."""
    repaired = repair(space, found, pairs)
    with TemporaryDirectory() as folder:
        path = Path(folder, "repaired.npz")
        save_space(repaired.space, path)
        return path.read_bytes(), repaired.sentence, repaired.warning
