"""The choosers of the Bootstrap page: experiment or real use, the known pairs, the method and the rows, as one frozen spec."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from app import compute, messages
from app.page_settings import kept
from app.workspace import MOST_ANCHORS, Workspace
from relcore.anchors.literal import LEARNING_RATE
from relcore.bootstrapping.seed_pairs import read_pairs
from relcore.bootstrapping.spec import BootstrapSpec
from relcore.names import BOOTSTRAPS
from relcore.sources.catalog import SpaceSpec
from relcore.spaces import LatentSpace, SpaceError

FEWEST_SHARED = 20
_MODES = {"hide": "Experiment", "real": "Real use"}
_SEEDS = {"random": "Random", "anchors": "Anchors", "typed": "Typed", "none": "None"}
_METHODS = {name: method.title[:1].upper() + method.title[1:] for name, method in BOOTSTRAPS.items()}
_ROWS = (500, 1000, 2000, 3000, 4000, 10_000, 20_000, 50_000)


@dataclass(frozen=True, eq=False)
class Setup:
    """The two spaces and the settings."""

    source_spec: SpaceSpec
    target_spec: SpaceSpec
    source: LatentSpace
    target: LatentSpace
    spec: BootstrapSpec

    @property
    def digests(self) -> tuple[str, str]:
        return self.source.digest, self.target.digest


def choose(workspace: Workspace) -> Setup | None:
    """The choosers of the page; None if the settings are invalid, and the page shows why."""
    source, target = (compute.load_space(spec) for spec in (workspace.source, workspace.target))
    if workspace.source == workspace.target:
        st.info("Source and target are the same space. Choose two different spaces in the sidebar.", icon=":material/info:")
        return None
    guessed = any(spec.rows_of.source == "renamed" for spec in (workspace.source, workspace.target))
    if guessed:
        tell_in_use()
    n_shared = 0 if guessed else _shared(source, target)  # ids that were found are not the truth
    modes = list(_MODES) if n_shared >= FEWEST_SHARED else ["real"]
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="bootstrap-choosers"):
        mode = _segments("Purpose", modes, _MODES, "bootstrap.mode", _MODE_HELP)
        starts = [one for one in _SEEDS if n_shared >= FEWEST_SHARED or one in ("typed", "none")]
        starts = [one for one in starts if not (one == "random" and mode == "real")]
        start = _segments("Seeds (known pairs)", starts, _SEEDS, f"bootstrap.start-{'-'.join(starts)}", _SEEDS_HELP)
        method = _segments("Method", list(_METHODS), _METHODS, "bootstrap.method", _METHOD_HELP)
        numbers = st.popover("Numbers", icon=":material/tune:")
    with numbers:
        rows = _rows(min(len(source), len(target)), source.counts is not None, method)
        most = min(rows or len(source), len(target), MOST_ANCHORS)
        n_anchors = int(
            kept(
                st.number_input, "Anchors", 1, most, min(300, max(1, most // 2)), 10, key=f"bootstrap.anchors-{most}", width=140
            )
        )
        n_seeds = 0
        if start in ("random", "anchors"):
            most = max(3, n_anchors - 1)
            n_seeds = int(kept(st.number_input, "Seeds", 3, most, min(15, most), key=f"bootstrap.seeds-{most}", width=140))
        learning_rate = LEARNING_RATE
        if method == "paper":
            learning_rate = float(
                kept(
                    st.number_input,
                    "Learning rate",
                    0.001,
                    1.0,
                    LEARNING_RATE,
                    0.01,
                    format="%.3f",
                    key="bootstrap.learning-rate",
                    width=140,
                    help=_RATE_HELP,
                )
            )
        random_state = int(kept(st.number_input, "Random state", 0, 10_000, 0, key="bootstrap.random-state", width=140))
    pairs: tuple[tuple[str, str], ...] = ()
    if start == "anchors":
        if len(workspace.anchors) < 3:
            st.info("At least three anchors are needed. Choose some in the sidebar, or other seeds.", icon=":material/star:")
            return None
        pairs = tuple((one, one) for one in workspace.anchors[:n_seeds])
    elif start == "typed":
        pairs = _typed()
        if pairs is None:
            return None
    if method == "paper" and not (pairs or n_seeds):
        st.info("The published method needs seeds. Choose some, or use self-learning.", icon=":material/info:")
        return None
    given = {"n_anchors": n_anchors, "n_seeds": n_seeds, "k": workspace.k, "random_state": random_state}
    spec = BootstrapSpec(method, pairs=pairs, rows=rows, hide=mode == "hide", **given, learning_rate=learning_rate)
    return Setup(workspace.source, workspace.target, source, target, spec)


def tell_in_use() -> None:
    """Say that the pair of the sidebar was bootstrapped."""
    st.info(
        "This pairing was bootstrapped, and Compare, Anchors and Invert use it. To bootstrap again, choose the original "
        "space in the sidebar, or undo.",
        icon=":material/hub:",
    )


_MODE_HELP = (
    "Experiment: the target's rows are shuffled and only the seeds are known; the ids are used to score the result. Real use: "
    "two spaces whose rows may have no ids in common."
)
_SEEDS_HELP = (
    "Pairs that are known to belong together: at least three; the paper uses 15. Random pairs, the session's anchors, or pairs "
    "that you type. Without seeds, both spaces need word counts or at most 4,000 rows."
)
_METHOD_HELP = (
    "Self-learning alternates Procrustes on the pairs with matching by CSLS (after Artetxe et al.). As published: Sinkhorn "
    "and Adam, Cannistraci et al. 2023, Algorithm 1. The seeds stay fixed. The paper's text optimises them, too, which finds "
    "almost none of the hidden anchors here (.049 instead of .986 on 1,000 words)."
)
_RATE_HELP = (
    "Adam's learning rate. The paper uses .02 for retrieval and .05 for stitching. Raise it if the error is still falling "
    "at the end."
)


def _segments(label: str, options: list[str], names: dict[str, str], key: str, explanation: str) -> str:
    return kept(
        st.segmented_control,
        label,
        options,
        default=options[0],
        format_func=names.get,
        key=key,
        help=explanation,
        required=True,
    )


def _rows(n: int, counted: bool, method: str) -> int | None:
    """All rows, or the most frequent; the published method starts with few, because each of its steps compares all pairs."""
    options = [0, *(rows for rows in _ROWS if rows < n)]  # 0 for all: a chooser of None could be emptied
    usual = max((rows for rows in options if rows <= 2000), default=0) if method == "paper" else 0
    which = "most frequent" if counted else "first"
    chosen = kept(
        st.selectbox,
        "Rows",
        options,
        index=options.index(usual),
        format_func=lambda rows: f"{which} {rows:,}" if rows else f"all {n:,}",
        key=f"bootstrap.rows-{n}-{method}",
        width=200,
    )
    return chosen or None


def _typed() -> tuple[tuple[str, str], ...] | None:
    """The pairs in the text area; None if there are none or they cannot be read."""
    text = kept(
        st.text_area,
        "One pair per line: id of the source, then a tab or “=”, then id of the target",
        placeholder="river = fluss\nmountain = berg\nsea = meer",
        key="bootstrap.typed",
        height=120,
    )
    try:
        pairs = read_pairs(text)
    except SpaceError as error:
        messages.warning(error)
        return None
    if not pairs:
        st.caption("Type at least three pairs to start.")
        return None
    return pairs


def _shared(source: LatentSpace, target: LatentSpace) -> int:
    return _count_shared(source.digest, target.digest, source, target)


@st.cache_data(max_entries=32, show_spinner=False)
def _count_shared(source_digest: str, target_digest: str, _source: LatentSpace, _target: LatentSpace) -> int:
    return int((_target.index.get_indexer(_source.index) >= 0).sum())
