"""Networks while they learn: the runs of a folder, or two networks that are trained here, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import streamlit as st

from app import compute, exports, messages, sharing
from app.asking import Panel, lead_sentence
from app.components.moving_maps import moving_maps
from app.page_settings import remembered, save_value, saved_value, segments
from app.plain_text import plain
from app.tables import report_table
from app.training import two_here
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.figures.charts import MovingPanels
from relcore.training.agreement import AXES, TrainingResult, TrainingSpec, compare_runs
from relcore.training.chart import TrainingChart
from relcore.training.runs import Run, open_run, open_runs

_FRAME = "training.frame"
_HEIGHT = 380  # pixels of a map
_SECONDS = 1.0  # between two looks for new frames
_PLACES = {"here": "Train two here", "folder": "A folder of runs"}
_HOW = {
    "here": "Two networks begin with different random weights and learn in this page, in a few seconds. Their"
    " own axes never match. Watch what their similarities to anchors do.",
    "folder": "In your training loop: with relcore.watch('runs/first', model, probe) as run: …, and"
    " run.step(accuracy=…) after each step. Then name the folder here, also during the training.",
}


@dataclass(frozen=True)
class TrainingInputs:
    """Runs, by folder, number of frames and whether they grow, and how they are shown."""

    places: tuple[tuple[str, int, bool], ...]
    spec: TrainingSpec
    axes: str

    def runs(self) -> list[Run]:
        return [open_run(place) for place, *_ in self.places]


def draw(workspace: Workspace) -> None:
    starts_training = False
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        place = segments("Networks", _PLACES, "training.place")
        if place == "here":
            starts_training = two_here.choosers()
        else:
            text = "A run that relcore.watch wrote, or a folder of runs or of checkpoints saved as spaces."
            remembered(
                st.text_input,
                "Folder",
                key="training.folder",
                placeholder="runs",
                width=320,
                help=sharing.help_with_paths(text),
            )
        segments("Axes", AXES, "training.axes")
    if starts_training:
        two_here.train()
    _PANEL.draw(workspace)


def inputs(workspace: Workspace) -> TrainingInputs | None:
    place = st.session_state["training.place"]
    if place == "here":
        folder = two_here.folder()
    else:
        folder = st.session_state["training.folder"].strip()
    if not folder:
        messages.info(_HOW[place], icon=":material/timeline:")
        return None
    runs = open_runs(folder)
    common = [layer for layer in runs[0].layers if all(layer in run.layers for run in runs)]
    if not common:
        raise SpaceError(f"{folder}: expected a layer that all runs have, got none; watch the same layers")
    layer = common[-1]
    if len(common) > 1:
        layer = remembered(
            st.selectbox, "Layer", common, index=len(common) - 1, key="training.layer", width=260
        )
    if any(run.growing for run in runs):
        _look_for_frames(folder, sum(map(len, runs)))
    return TrainingInputs(_places(runs), TrainingSpec(layer), st.session_state["training.axes"])


@st.fragment(run_every=_SECONDS)
def _look_for_frames(folder: str, n_frames: int) -> None:
    """Draw the page again when a run that still trains has a new frame."""
    st.caption("A network is still in training. New frames appear as they come.")
    runs = open_runs(folder)
    if sum(map(len, runs)) != n_frames or not any(run.growing for run in runs):
        st.rerun()


def compared(asked: TrainingInputs) -> TrainingResult:
    return _compared(asked.places, asked.spec)


@compute.cached(8)
def _compared(places: tuple[tuple[str, int, bool], ...], spec: TrainingSpec) -> TrainingResult:
    return compare_runs([open_run(place) for place, *_ in places], spec)


def draw_result(asked: TrainingInputs, result: TrainingResult) -> None:
    told = result.report()
    if st.session_state["training.place"] == "here":
        two_here.say_conclusion()
    else:
        lead_sentence(told)
    _play(result.panels(asked.axes), "training.maps", _HEIGHT)
    figure = TrainingChart.of(asked.runs(), asked.spec, asked.axes).draw(result)
    exports.export_bar(figure, "training")
    for note in told.notes:
        st.caption(plain(note))
    with st.expander("All scores", icon=":material/table_rows:"):
        for table in told.tables:
            report_table(table)


def draw_film(folder: str, key: str, height: int) -> None:
    """Draw the runs of a folder, which have one layer, with the lines of their scores."""
    runs = open_runs(folder)
    result = _compared(_places(runs), TrainingSpec())
    _play(result.panels(), key, height)


def _places(runs: Sequence[Run]) -> tuple[tuple[str, int, bool], ...]:
    return tuple((str(run.folder), len(run), run.growing) for run in runs)


@st.fragment
def _play(panels: MovingPanels, key: str, height: int) -> None:
    """Draw the player. The frame that is shown is a setting of the page, by its title."""
    title = saved_value(_FRAME)
    start = 0
    if title in panels.frames:
        start = panels.frames.index(title)
    moving_maps(replace(panels, start=start), key=key, height=height, on_frame=partial(save_value, _FRAME))


_PANEL = Panel(inputs, compared, draw_result)
