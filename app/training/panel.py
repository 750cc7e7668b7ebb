"""Networks while they learn: the runs of a folder, or two networks that are trained here, side by side."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import compute, exports, messages, sharing
from app.asking import Panel, lead_sentence
from app.components.moving_maps import moving_maps
from app.page_settings import remembered, save_value, saved_value, segments
from app.plain_text import plain, plain_html
from app.tables import report_table
from app.training import following, two_here
from app.workspace import Workspace
from relcore.base.access import readable_path
from relcore.base.errors import SpaceError
from relcore.figures.charts import MovingPanels
from relcore.training.agreement import AXES, TO_LAST, TrainingResult, TrainingSpec
from relcore.training.beside import LABELS
from relcore.training.chart import TrainingChart
from relcore.training.runs import Run, open_run, open_runs

_FRAME = "training.frame"
_READ = "relscope.training-read"
_REST = 10.0  # seconds after which the tables of growing runs are drawn again
_HEIGHT = 380  # pixels of a map
_SECONDS = 0.2  # between two looks for new frames
_DEPTH = 3  # levels of a folder of runs: run, step, layer
_STEP = {
    "here": "A step is an epoch: each training digit is shown once.",
    "folder": "A step is what the training counted, such as a batch or an epoch.",
}
_TO_LAST = (
    "“To its last frame” compares a network with itself at its last step: it is 1 when its rows have settled."
)
_ONE_PAIR = (
    "These are means of several pairs. The maps, the lines and the numbers beside them are of one pair, so"
    " they differ a little."
)
_PLACES = {"here": "Train two here", "folder": "A folder of runs"}
_LOOP = """\
import relcore

with relcore.watch("runs/first", model, probe) as run:
    for batch in batches:
        ...  # your training step
        run.step(accuracy=accuracy)"""
_TREE = """\
runs/
├── labels.txt        a line for each row: its colour
├── first/            one training
│   ├── step-0.npy    rows × dimensions
│   ├── step-100.npy
│   └── metrics.csv   step,accuracy
└── second/           another one
    ├── step-0.npy
    └── step-100.npy"""
_FILES = (
    "Any file that Relscope reads as a space opens: .npy, .npz, .parquet and others. Its name ends in its"
    " step: step-100.npy, epoch-3.npz. A folder epoch-3/ has a file for each layer. labels.txt and"
    " metrics.csv may be missing; an .npz may hold vectors, ids and labels instead."
)


@dataclass(frozen=True)
class TrainingInputs:
    """Runs, by folder, number of frames, the digest of their labels and metrics, and whether they grow; and
    how they are shown. `folder` is the one that holds them all."""

    folder: str
    places: tuple[tuple[str, int, str, bool], ...]
    spec: TrainingSpec
    axes: str

    def runs(self) -> list[Run]:
        return read_runs(self.folder)

    @property
    def growing(self) -> bool:
        return any(growing for *_, growing in self.places)


def read_runs(folder: str) -> list[Run]:
    """The runs of a folder, which are read again only if one of its files has changed. Whether a training
    still runs is no file, so runs that grow are always read."""
    runs = _read_runs(folder)
    if any(run.growing for run in runs):
        return open_runs(folder)
    return runs


def _stamps(folder: str) -> tuple[str, tuple[tuple[str, int, int], ...]]:
    """The names, modification times and sizes of the files in a folder of runs, and of the labels beside
    it."""
    place = readable_path(folder, uploads=False)
    files = [place.parent / LABELS]
    for depth in range(1, _DEPTH + 1):
        files += place.glob("/".join("*" * depth))
    found = []
    for path in sorted(files):
        with suppress(OSError):  # removed meanwhile, or not there
            about = path.stat()
            found.append((str(path), about.st_mtime_ns, about.st_size))
    return str(place), tuple(found)


@compute.cached(4, key=_stamps)
def _read_runs(folder: str) -> list[Run]:
    return open_runs(folder)


def draw(workspace: Workspace) -> None:
    starts_training = False
    folder = ""
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
            folder = st.session_state["training.folder"].strip()
        segments("Axes", AXES, "training.axes")
    if starts_training:
        two_here.train()
    with _place_of(folder):
        drawn = _PANEL.draw(workspace)
        if place == "folder" and drawn is None:
            _say_what_opens()


def _place_of(folder: str) -> DeltaGenerator:
    """The place of the result. While a folder is read for the first time in a session, what stood there gives
    way to a message."""
    if not folder or st.session_state.get(_READ) == folder:
        return st.container()
    place = st.empty()
    waiting = st.spinner(f"Reading the checkpoints in {plain(folder)} …", show_time=True)
    with place, waiting, suppress(SpaceError):  # the panel reads the folder again and tells what is wrong
        runs = read_runs(folder)
        if common := _common_layers(runs):
            _result_of(folder, runs, TrainingSpec(common[-1]))
    st.session_state[_READ] = folder
    return place.container()


def _common_layers(runs: Sequence[Run]) -> list[str]:
    return [layer for layer in runs[0].layers if all(layer in run.layers for run in runs)]


def inputs(workspace: Workspace) -> TrainingInputs | None:
    place = st.session_state["training.place"]
    if place == "here":
        folder = two_here.folder()
    else:
        folder = st.session_state["training.folder"].strip()
    if not folder:
        if place == "here":
            two_here.say_what_comes()
        return None
    runs = read_runs(folder)
    common = _common_layers(runs)
    if not common:
        raise SpaceError(f"{folder}: expected a layer that all runs have, got none; watch the same layers")
    layer = common[-1]
    if len(common) > 1:
        layer = remembered(
            st.selectbox, "Layer", common, index=len(common) - 1, key="training.layer", width=260
        )
    return TrainingInputs(folder, _places(runs), TrainingSpec(layer), st.session_state["training.axes"])


def _say_what_opens() -> None:
    """Draw what a folder of runs is, and how to make one."""
    (watched, saved) = st.columns(2, gap="large")
    with watched:
        st.markdown("**Watch a training**")
        st.code(_LOOP, language="python")
        st.caption("Type the folder above: “runs”. New frames are drawn while the training runs.")
    with saved:
        st.markdown("**Or open checkpoints that you saved as vectors**")
        st.code(_TREE, language=None)
        st.caption(_FILES)


def compared(asked: TrainingInputs) -> TrainingResult:
    return _result_of(asked.folder, asked.runs(), asked.spec)


def _result_of(folder: str, runs: Sequence[Run], spec: TrainingSpec) -> TrainingResult:
    if any(run.growing for run in runs):
        return following.compared(folder, spec, runs)
    return _compared(_places(runs), spec)


@compute.cached(8)
def _compared(places: tuple[tuple[str, int, str, bool], ...], spec: TrainingSpec) -> TrainingResult:
    return following.comparison(spec).compare([open_run(place) for place, *_ in places])


def draw_result(asked: TrainingInputs, result: TrainingResult) -> None:
    told = result.report()
    here = st.session_state["training.place"] == "here"
    if asked.growing:
        _follow(asked.axes, time.monotonic())
    else:
        if here:
            two_here.say_conclusion()
            st.caption(_ONE_PAIR)
        else:
            lead_sentence(told)
        for note in told.notes:
            st.caption(plain(note))
        _play(result.panels(asked.axes), "training.maps", _HEIGHT, trained_here=here)
    caption = _STEP[st.session_state["training.place"]]
    if TO_LAST in set(result.table.quantity):
        caption += f" {_TO_LAST}"
    st.caption(caption)
    figure = TrainingChart.of(asked.runs(), asked.spec, asked.axes).draw(result)
    exports.export_bar(figure, "training")
    if asked.growing:
        for note in told.notes:
            st.caption(plain(note))
    with st.expander("All scores", icon=":material/table_rows:"):
        for table in told.tables:
            report_table(table)


def draw_film(folder: str, key: str, height: int) -> None:
    """Draw the runs of a folder, which have one layer, with the lines of their scores."""
    runs = read_runs(folder)
    result = _compared(_places(runs), TrainingSpec())
    _play(result.panels(), key, height)


def _places(runs: Sequence[Run]) -> tuple[tuple[str, int, str, bool], ...]:
    return tuple((str(run.folder), len(run), _beside(run), run.growing) for run in runs)


def _beside(run: Run) -> str:
    """The digest of the labels and the metrics of a run, which may be given later than its frames."""
    digest = hashlib.blake2b(digest_size=8)
    if run.labels is not None:
        digest.update("\n".join(map(str, run.labels)).encode())
    for name, (steps, values) in run.metrics.items():
        digest.update(name.encode() + steps.tobytes() + values.tobytes())
    return digest.hexdigest()


@st.fragment
def _play(panels: MovingPanels, key: str, height: int, trained_here: bool = False) -> None:
    """Draw the player. The frame that is shown is a setting of the page, by its title. A training that has
    just ended in the page plays by itself."""
    film = ""
    if trained_here:
        film = two_here.film()
    frame = 0
    if saved_value(_FRAME) in panels.frames and not film:
        frame = panels.frames.index(saved_value(_FRAME))

    def rest(title: str) -> None:
        if trained_here:
            two_here.end_film()
        save_value(_FRAME, title)

    moving_maps(panels, key=key, height=height, frame=frame, on_frame=rest, film=film)


@st.fragment(run_every=_SECONDS)
def _follow(axes: str, begin: float) -> None:
    """Draw the player of runs that grow. A new frame is drawn at once; its scores follow in one of the next
    runs of this fragment, and the rest of the page some seconds after `begin`."""
    growing = following.growing_runs()
    if growing is None:
        st.rerun()
    try:
        growing.look()
        if growing.is_due:
            growing.compare()
        panels = growing.panels(axes)
    except SpaceError as error:
        messages.error(error)
        return
    if not growing.growing and not saved_value(_FRAME):
        save_value(_FRAME, panels.frames[-1])  # the reader followed the training to its end
    if not growing.growing or (growing.compared_at > begin and time.monotonic() > begin + _REST):
        st.rerun()
    messages.lead(f"<b>{plain_html(growing.result.sentence())}</b>")
    st.caption("A network is still in training. New frames appear as they come.")
    last = len(panels.frames) - 1
    frame = last
    if saved_value(_FRAME) in panels.frames:
        frame = panels.frames.index(saved_value(_FRAME))

    def rest(title: str) -> None:
        """At the last frame, the reader wants to see the next ones."""
        if title == panels.frames[last]:
            title = ""
        save_value(_FRAME, title)

    moving_maps(panels, key="training.maps", height=_HEIGHT, frame=frame, on_frame=rest)


_PANEL = Panel(inputs, compared, draw_result)
