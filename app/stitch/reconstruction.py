"""Reconstruction stitching: can a decoder read the codes of an encoder from another run? Autoencoders are
trained here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import exports, session
from app.encode import datasets, encoders
from app.encode.datasets import Preview
from app.jobs import asked_again, engine, follow
from app.page_settings import kept
from relcore.base.numbers import counted, short
from relcore.encoders.small_vision import LARGEST
from relcore.runs.digest import digest_of
from relcore.runs.jobs import Job
from relcore.runs.pace import Expected, expect, presently
from relcore.stitch.autoencoders import REPRESENTATIONS, AutoencoderSpec, PictureSpec, part_sizes
from relcore.stitch.reconstruction import Crossed, ReconstructionSpec, collect, missing_trainings
from relcore.tasks.task import task_job

# Choosers of the Reconstruction tab: pictures, models and random states, and the cost of training them.

_FAMILIES = {"AE": False, "VAE": True}
_SEEN = 25_000  # pictures that a model is trained on by default, over 5 to 20 epochs


@dataclass(frozen=True)
class ReconstructionSetup:
    """The choices; `name` is that of the dataset."""

    name: str
    specs: tuple[ReconstructionSpec, ...]
    pixels: int
    n_train: int

    @property
    def planes(self) -> ReconstructionSpec:
        """The model with codes of two numbers on the same pictures, with the same random states; it needs
        more epochs.
        """
        first = self.specs[0]
        model = AutoencoderSpec(width=2, epochs=min(1000, 2 * first.model.epochs))
        return replace(first, model=model)


def choose(folder: str | None) -> ReconstructionSetup | None:
    """The choosers; None where there is nothing to train, which the page then says."""
    entries = [one for one in datasets.available(folder) if one.kind == "images" and one.where == "here"]
    entry = kept(
        st.selectbox,
        "Pictures",
        entries,
        format_func=lambda one: f"{one.name} · {one.n:,}" if one.n else one.name,
        key="reconstruct.dataset",
        help="Datasets on this machine. Choose a data folder on the Spaces page to add others.",
    )
    preview = datasets.preview(entry.spec)
    side = _image_size(preview)
    name = preview.digest[:8]  # defaults are the dataset's own
    n_train = kept(
        st.number_input,
        "Train on at most",
        10,
        max(5_000, preview.n),
        5_000,
        500,
        key=f"reconstruct.train-{name}",
        help=_PARTED,
    )
    pictures = PictureSpec(entry.spec, int(n_train), image_size=side)
    trained, tested = part_sizes(preview.n, pictures)
    st.caption(
        f"{trained:,} of {preview.n:,} pictures to train on, {tested:,} held out; colours become grey."
    )
    families = kept(
        st.segmented_control,
        "Autoencoders",
        list(_FAMILIES),
        default=list(_FAMILIES),
        selection_mode="multi",
        key="reconstruct.families",
    )
    forms = kept(
        st.pills,
        "Codes that the decoder reads",
        REPRESENTATIONS,
        default=REPRESENTATIONS,
        selection_mode="multi",
        key="reconstruct.forms",
        wrap=True,
        help=(
            "Whitened codes are ours: centred cosines times (K + λI)^(−1/2), where K holds the cosines of the"
            " anchors."
        ),
    )
    runs_box, anchors_box, epochs_box = st.columns(3)
    n_runs = kept(runs_box.number_input, "Runs", 2, 10, 3, key="reconstruct.runs", help=_RUNS)
    anchors = kept(
        anchors_box.number_input,
        "Anchors",
        2,
        trained,
        min(200, trained),
        50,
        key=f"reconstruct.anchors-{name}",
        help=_ANCHORS,
    )
    few = min(20, max(5, round(_SEEN / trained)))
    epochs = kept(epochs_box.number_input, "Epochs", 1, 500, few, key=f"reconstruct.epochs-{name}")
    if not families or not forms:
        st.caption("Choose at least one autoencoder and one kind of code.")
        return None
    models = [
        AutoencoderSpec(form, _FAMILIES[one], epochs=int(epochs))
        for one in _FAMILIES
        for form in REPRESENTATIONS
    ]
    chosen = [
        one for one in models if one.title in {f"{family}, {form}" for family in families for form in forms}
    ]
    states = tuple(range(int(n_runs)))
    specs = tuple(
        ReconstructionSpec(pictures, model, states, int(anchors), preview.digest) for model in chosen
    )
    width, height = (side, side) if side else preview.sizes[0]
    return ReconstructionSetup(preview.name, specs, width * height, trained)


_PARTED = (
    "Drawn at random from four fifths of the dataset with a fixed random state. Errors are measured on the"
    " other fifth."
)
_RUNS = "Number of models of each kind to train, with the random states 0, 1, 2, …"
_ANCHORS = (
    "Drawn from the training pictures with balanced classes, the same for every random state. Absolute codes"
    " need none."
)


def _image_size(preview: Preview) -> int | None:
    """The size to which all pictures are resized; the chooser appears only where sizes differ or are
    large.
    """
    if len(preview.sizes) == 1 and max(preview.sizes[0]) <= LARGEST:
        return None
    key = f"reconstruct.side-{digest_of(preview.digest)[:8]}"
    return int(kept(st.number_input, "Resize to, pixels a side", 4, LARGEST, 32, key=key))


def cost(setup: ReconstructionSetup, specs: tuple[ReconstructionSpec, ...]) -> tuple[int, float]:
    """Number of models of these kinds that are not trained yet, and about how many seconds they take
    together.
    """
    n_missing = sum(len(missing_trainings(engine().store, spec)) for spec in specs)
    return n_missing, encoders.together(
        [presently(expected(setup, spec)) for spec in specs], engine().n_workers
    )


def expected(setup: ReconstructionSetup, spec: ReconstructionSpec) -> Expected:
    """The time for the models of a kind that are not trained yet, at the pace of the last jobs on this
    machine.
    """
    n_missing = len(missing_trainings(engine().store, spec))
    return expect(engine().store, spec.kind, spec.seconds_for(setup.n_train, setup.pixels, n_missing))


# Training jobs of autoencoders for both sections of the Reconstruction tab: the button, jobs under way,
# stored results.


def offer(setup: ReconstructionSetup, specs: tuple[ReconstructionSpec, ...], key: str, noun: str) -> None:
    """The button with its cost; nothing where every job has been started."""
    left = tuple(spec for spec in specs if engine().job(spec.key()) is None)
    if not left:
        return
    n_missing, seconds = cost(setup, left)
    nouns = noun if n_missing == 1 else f"{noun}s"
    label = (
        f"Train {n_missing} {nouns} · {encoders.in_words(seconds)}"
        if n_missing
        else f"Stitch the {noun}s again"
    )
    begin = {"on_click": session.guarded, "args": (_submit, setup, left)}
    st.button(label, type="primary", icon=":material/play_arrow:", key=key, width="stretch", **begin)
    costs = [expected(setup, spec) for spec in left]
    st.caption("Finished models are saved; a stopped job resumes with them." + encoders.learned(costs))


def _submit(setup: ReconstructionSetup, specs: Sequence[ReconstructionSpec]) -> None:
    for spec in specs:
        likely = expected(setup, spec)
        engine().submit(
            spec.key(), task_job, title=f"{spec.title} · {setup.name}", expected=likely, task=spec
        )


def under_way(setup: ReconstructionSetup, specs: Sequence[ReconstructionSpec]) -> list[Job]:
    """Jobs of these kinds that are not done."""
    found = []
    for spec in specs:
        job = engine().job(spec.key())
        if job and asked_again(job):
            _submit(setup, [spec])
            job = engine().job(spec.key())
        if job and job.status().state != "done":
            found.append(job)
    return found


def stored(specs: Sequence[ReconstructionSpec]) -> dict[ReconstructionSpec, Crossed]:
    """The results that are in the store."""
    found = {spec: engine().store.get(spec.key()) for spec in specs if engine().store.has(spec.key())}
    return {spec: spec.read(entry) for spec, entry in found.items() if entry is not None}


def live_curves(jobs: list[Job]) -> None:
    """The losses of the models in training, one line per model."""
    from relcore.charts.lines import Line, Lines
    from relcore.figures.export import lines_exportable

    lines = [
        Line(f"{job.title.split(' · ')[0]}, {state}", range(1, len(losses) + 1), losses)
        for job in jobs
        for state, losses in job.status().curve.items()
    ]
    if lines:
        chart = Lines(tuple(lines), "epoch", "training loss", y_range=None)
        exports.chart(
            lines_exportable(chart).interactive(exports.theme()), f"reconstruct.live-{jobs[0].key[:8]}"
        )


def choose_states(states: tuple[int, ...], first: str, second: str, prefix: str) -> tuple[int, int]:
    """Two different random states."""
    one_box, other_box, _ = st.columns([1, 1, 1])
    name = f"{prefix}-{len(states)}"
    one = kept(one_box.selectbox, first, states, key=f"{name}.first")
    others = [state for state in states if state != one]
    return one, kept(other_box.selectbox, second, others, key=f"{name}.second-{one}")


# Codes of two numbers: the planes of two runs, and an animation that aligns the second with the first.


def draw_planes(setup: ReconstructionSetup, button: DeltaGenerator) -> None:
    """The section; its button goes to the container `button`."""
    spec = setup.planes
    with button:
        st.markdown("**Codes of two numbers**")
        st.caption(
            f"The same autoencoder with codes of two numbers, {spec.model.epochs} epochs. Its whole space can"
            " be drawn, and each run gives another plane. The disparity is the difference that is left after"
            " the best rotation or reflection."
        )
        offer(setup, (spec,), "reconstruct.planes", "plane")
    jobs, found = under_way(setup, [spec]), stored([spec])
    if not jobs and not found:
        return
    st.markdown("#### Codes of two numbers")
    if jobs:
        follow(jobs, below=live_curves)
    if found:
        _planes(setup, found[spec])


def _planes(setup: ReconstructionSetup, found: Crossed) -> None:
    from relcore.stitch.reconstruction import Planes, disparities, fit_turn

    states = setup.planes.random_states
    first, second = choose_states(
        states, "Reference: random state", "Aligned with it: random state", "planes"
    )
    figure = Planes.of([setup.planes], reference_state=first, moving_state=second).draw(found)
    codes = found.codes
    turn = fit_turn(codes[states.index(first)], codes[states.index(second)])
    numbers = st.columns([1, 1, 2])
    numbers[0].metric("Disparity as they are", short(turn.disparity(0), 2))
    numbers[1].metric(f"Disparity {'mirrored' if turn.mirrored else 'turned'}", short(turn.disparity(1), 2))
    numbers[2].caption(
        f"Squared distances of {codes.shape[1]:,} pictures between the two, divided by the spread of the"
        f" first: 0 is equal, 1 is as bad as the mean for every picture. The second is {turn.describe()}."
    )
    exports.chart(figure.interactive(exports.theme()), f"reconstruct.planes-{first}-{second}")
    every = disparities(codes)[np.triu_indices(len(codes), 1)]
    if len(every) > 1:
        st.caption(
            f"All {len(every)} pairs of the {len(codes)} runs: after the best turn the disparity is"
            f" {short(every.min(), 2)} to {short(every.max(), 2)}, median {short(np.median(every), 2)}. One"
            " pair alone is not representative."
        )
    exports.export_bar(figure, "planes")


_EXPLAINED = (
    "Autoencoders are trained several times with different random states. Then the encoder of one run is"
    " combined with the decoder of another, without more training. Absolute codes of two runs are not"
    " comparable; codes relative to the same anchors are."
)


def draw(folder: str | None) -> None:
    """The whole tab."""
    choosers, shown = st.columns([1, 2.2], gap="medium")
    with choosers:
        setup = choose(folder)
        if setup is None:
            return
        offer(setup, setup.specs, "reconstruct.start", "autoencoder")
        planes = st.container()
    found = stored(setup.specs)
    with shown:
        jobs = under_way(setup, setup.specs)
        if jobs:
            follow(jobs, below=live_curves)
        if found:
            _results(setup, found)
        elif not jobs:
            st.markdown("#### Reconstructions")
            st.info(_EXPLAINED, icon=":material/info:")
        draw_planes(setup, planes)


def _results(setup: ReconstructionSetup, stored: dict[ReconstructionSpec, Crossed]) -> None:
    from relcore.stitch.reconstruction import ReconstructionErrors, ReconstructionGrid

    specs, found = list(stored), collect(stored)
    st.markdown("#### Reconstructions")
    encoder, decoder = choose_states(
        found.random_states, "Encoder of random state", "Decoder of random state", "reconstruct"
    )
    figure = ReconstructionGrid.of(specs, encoder_state=encoder, decoder_state=decoder).draw(found)
    exports.chart(figure.interactive(exports.theme()), "reconstruct.grid")
    st.caption(
        f"Held-out pictures. Upper row of each pair: encoder {encoder} with its own decoder; lower row: with"
        f" decoder {decoder}. Beside them the mean squared error × 10³ over"
        f" {counted(found.n_test, 'held-out picture')}; the error of the mean picture is"
        f" {short(found.floor, 1)}."
    )
    exports.export_bar(figure, "reconstruction")
    st.markdown("#### Errors")
    figure = ReconstructionErrors.of(specs).draw(found)
    exports.chart(figure.interactive(exports.theme()), "reconstruct.errors")
    _table(setup, found.table())
    exports.export_bar(figure, "reconstruction-mse")


def _table(setup: ReconstructionSetup, table: pd.DataFrame) -> None:
    from relcore.figures.error_bars import readable
    from relcore.stitch.reconstruction import PUBLISHED_MNIST

    row = table.iloc[0]
    st.dataframe(readable(table), hide_index=True)
    st.caption(
        f"MSE × 10³, mean ± deviation: not stitched over {row.runs} runs, stitched over {row.pairs} ordered"
        f" pairs of runs; {counted(row.pictures, 'held-out picture')}, {setup.n_train:,} training pictures."
        " The baseline is the mean of the training pictures as the reconstruction of every picture."
    )
    if setup.name.lower().startswith("mnist"):
        st.dataframe(PUBLISHED_MNIST, hide_index=True)
        st.caption(
            "**Published, MNIST**: Moschella et al. 2023, Table 3, five random states, 500 anchors. They"
            " trained longer and on other pictures, so compare the ratio of stitched to not stitched, not the"
            " errors themselves."
        )
