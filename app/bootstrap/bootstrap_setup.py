"""What to bootstrap from: experiment or real use, the known pairs, the method and the rows, as one frozen spec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from app import compute
from app.workspace import MOST_ANCHORS, Workspace
from relcore.anchors.literal import LEARNING_RATE
from relcore.bootstrapping.job import BootstrapSpec
from relcore.sources.catalog import SpaceSpec
from relcore.spaces import LatentSpace, SpaceError

FEWEST_SHARED = 20
_MODES = {"hide": "Experiment: hide the pairing", "real": "For real: the pairing is not known"}
_SEEDS = {"random": "Random pairs", "anchors": "The session's anchors", "typed": "Typed pairs", "none": "None"}
_METHODS = {"self-learning": "Self-learning", "paper": "As published"}
_ROWS = (500, 1000, 2000, 3000, 4000, 10_000, 20_000, 50_000)
_KEEP: dict[str, Any] = {"persist_state": "session"}


@dataclass(frozen=True, eq=False)
class Setup:
    """The two spaces and what is asked of them."""

    source_spec: SpaceSpec
    target_spec: SpaceSpec
    source: LatentSpace
    target: LatentSpace
    spec: BootstrapSpec

    @property
    def digests(self) -> tuple[str, str]:
        return self.source.digest, self.target.digest


def choose(workspace: Workspace) -> Setup | None:
    """The choosers of the page; None where what they say cannot be done, and then the page says why."""
    source, target = (compute.load_space(spec) for spec in (workspace.source, workspace.target))
    if workspace.source == workspace.target:
        st.info("Source and target are the same space: choose two in the sidebar.", icon=":material/info:")
        return None
    guessed = any(spec.source == "renamed" for spec in (workspace.source, workspace.target))
    if guessed:
        st.info(
            "This pairing was bootstrapped: Compare, Anchors and Invert stand on it. To bootstrap again, choose the space that "
            "it was made of in the sidebar, or undo.",
            icon=":material/hub:",
        )
    n_shared = 0 if guessed else _shared(source, target)  # ids that were found are no truth to score against
    modes = list(_MODES) if n_shared >= FEWEST_SHARED else ["real"]
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom", key="bootstrap-choosers"):
        mode = _segments("What for", modes, _MODES, "bootstrap.mode", _MODE_HELP)
        starts = [one for one in _SEEDS if n_shared >= FEWEST_SHARED or one in ("typed", "none")]
        starts = [one for one in starts if not (one == "random" and mode == "real")]
        start = _segments("Seeds, the known pairs", starts, _SEEDS, f"bootstrap.start-{'-'.join(starts)}", _SEEDS_HELP)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom", key="bootstrap-numbers"):
        method = _segments("Method", list(_METHODS), _METHODS, "bootstrap.method", _METHOD_HELP)
        rows = _rows(min(len(source), len(target)), source.counts is not None, method)
        most = min(rows or len(source), len(target), MOST_ANCHORS)
        n_anchors = int(
            st.number_input(
                "Anchors", 1, most, min(300, max(1, most // 2)), 10, key=f"bootstrap.anchors-{most}", width=140, **_KEEP
            )
        )
        n_seeds = 0
        if start in ("random", "anchors"):
            most = max(3, n_anchors - 1)
            n_seeds = int(st.number_input("Seeds", 3, most, min(15, most), key=f"bootstrap.seeds-{most}", width=140, **_KEEP))
        learning_rate = LEARNING_RATE
        if method == "paper":
            learning_rate = float(
                st.number_input(
                    "Learning rate",
                    0.001,
                    1.0,
                    LEARNING_RATE,
                    0.01,
                    format="%.3f",
                    key="bootstrap.learning-rate",
                    width=140,
                    help=_RATE_HELP,
                    **_KEEP,
                )
            )
        random_state = int(st.number_input("Random state", 0, 10_000, 0, key="bootstrap.random-state", width=140, **_KEEP))
    pairs: tuple[tuple[str, str], ...] = ()
    if start == "anchors":
        if len(workspace.anchors) < 3:
            st.info("Three anchors at least: choose some in the sidebar, or other seeds.", icon=":material/star:")
            return None
        pairs = tuple((one, one) for one in workspace.anchors[:n_seeds])
    elif start == "typed":
        pairs = _typed()
        if pairs is None:
            return None
    if method == "paper" and not (pairs or n_seeds):
        st.info("The published method needs seeds: choose some, or self-learning.", icon=":material/info:")
        return None
    numbers = {"n_anchors": n_anchors, "n_seeds": n_seeds, "k": workspace.k, "random_state": random_state}
    spec = BootstrapSpec(method, pairs=pairs, rows=rows, hide=mode == "hide", **numbers, learning_rate=learning_rate)
    return Setup(workspace.source, workspace.target, source, target, spec)


_MODE_HELP = (
    "Experiment: the target's rows are shuffled and only the seeds are told; its ids serve to score what is found. For real: "
    "two spaces whose rows may have no ids in common."
)
_SEEDS_HELP = (
    "Pairs that are known to belong together. Three at least; the paper takes 15. Without any: both spaces "
    "need word counts, or at most 4,000 rows."
)
_METHOD_HELP = (
    "Self-learning: Procrustes on the pairs, mutual nearest neighbours by CSLS, and again (after Artetxe et al.). As "
    "published: Sinkhorn and Adam, Cannistraci et al. 2023, Algorithm 1. The seeds stay fixed; the paper's text optimises "
    "them, too, which finds almost none of the hidden anchors here (.049 instead of .986 on 1,000 words)."
)
_RATE_HELP = "Of Adam. The paper takes .02 for retrieval and .05 for stitching. Raise it when the error still falls at the end."


def _segments(label: str, options: list[str], names: dict[str, str], key: str, explanation: str) -> str:
    return st.segmented_control(
        label, options, default=options[0], format_func=names.get, key=key, help=explanation, required=True, **_KEEP
    )


def _rows(n: int, counted: bool, method: str) -> int | None:
    """All, or the most frequent; the published method starts with few, as each of its steps compares all with all."""
    options = [0, *(rows for rows in _ROWS if rows < n)]  # 0 for all: a chooser of None could be emptied
    usual = max((rows for rows in options if rows <= 2000), default=0) if method == "paper" else 0
    which = "most frequent" if counted else "first"
    chosen = st.selectbox(
        "Rows",
        options,
        index=options.index(usual),
        format_func=lambda rows: f"{which} {rows:,}" if rows else f"all {n:,}",
        key=f"bootstrap.rows-{n}-{method}",
        width=200,
        **_KEEP,
    )
    return chosen or None


def _typed() -> tuple[tuple[str, str], ...] | None:
    """The pairs in the text area; None while they cannot be read or there are none."""
    text = st.text_area(
        "One pair a line: id of the source, then a tab or “=”, then id of the target",
        placeholder="river = fluss\nmountain = berg\nsea = meer",
        key="bootstrap.typed",
        height=120,
        **_KEEP,
    )
    try:
        pairs = read_pairs(text)
    except SpaceError as error:
        st.warning(str(error), icon=":material/warning:")
        return None
    if not pairs:
        st.caption("Type three pairs or more to begin.")
        return None
    return pairs


def read_pairs(text: str) -> tuple[tuple[str, str], ...]:
    """Pairs of ids, one a line, separated by a tab or else by "="; blank lines left out.

    Raises
    ------
    SpaceError
        A line that does not have two sides.
    """
    pairs = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        first, _, second = (part.strip() for part in line.partition("\t" if "\t" in line else "="))
        if not first or not second:
            raise SpaceError(f"line {number}: expected “id of the source = id of the target”, got {line.strip()!r:.60}")
        pairs.append((first, second))
    return tuple(pairs)


def _shared(source: LatentSpace, target: LatentSpace) -> int:
    return _count_shared(source.digest, target.digest, source, target)


@st.cache_data(max_entries=32, show_spinner=False)
def _count_shared(source_digest: str, target_digest: str, _source: LatentSpace, _target: LatentSpace) -> int:
    return int((_target.index.get_indexer(_source.index) >= 0).sum())
