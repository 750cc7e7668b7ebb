"""What the Reconstruction tab trains: pictures, models, random states, and what that will cost."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from app.encode import encoding_costs, raw_data
from app.encode.raw_data import Preview
from app.jobs import engine
from relcore.pace import Expected, expect
from relcore.reconstructing.autoencoders import REPRESENTATIONS, AutoencoderSpec
from relcore.reconstructing.job import ReconstructionSpec, missing_trainings, reconstruction_key
from relcore.reconstructing.pictures import PictureSpec, part_sizes
from relcore.sources.small_vision import LARGEST
from relcore.store import digest_of

_KEEP = {"persist_state": "session"}
_FAMILIES = {"AE": False, "VAE": True}
# Measured, one thread of a server's processor of 2026: 28 × 28 pixels 2.0 ms a picture and epoch, 8 × 8 pixels 0.3 ms; of it
# 200 anchors, which are encoded again with every batch, a quarter.
_SECONDS, _PIXELS, _POWER = 3e-4, 64, 0.76
_START = 4.0  # a process that loads torch
_SEEN = 25_000  # pictures that a model is shown by default, in epochs of 5 to 20


@dataclass(frozen=True)
class Setup:
    """The choices; `digest` is of the dataset, `name` what people call it."""

    name: str
    digest: str
    specs: tuple[ReconstructionSpec, ...]
    pixels: int
    n_train: int

    @property
    def planes(self) -> ReconstructionSpec:
        """The model of two numbers on the same pictures from the same random states; it takes longer to unfold."""
        first = self.specs[0]
        model = AutoencoderSpec(width=2, epochs=min(1000, 2 * first.model.epochs))
        return replace(first, model=model)

    def key(self, spec: ReconstructionSpec) -> str:
        return reconstruction_key(self.digest, spec)


def choose(folder: str | None) -> Setup | None:
    """The choosers; None where there is nothing to train, which is said."""
    entries = [one for one in raw_data.available(folder) if one.kind == "images" and one.where == "here"]
    entry = st.selectbox(
        "Pictures",
        entries,
        format_func=lambda one: f"{one.name} · {one.n:,}" if one.n else one.name,
        key="reconstruct.dataset",
        help="What is on this machine: the data folder of the Spaces page adds its own.",
        **_KEEP,
    )
    preview = raw_data.preview(entry.spec)
    side = _image_size(preview)
    name = preview.digest[:8]  # defaults are the dataset's own
    n_train = st.number_input(
        "Train on at most", 10, max(5_000, preview.n), 5_000, 500, key=f"reconstruct.train-{name}", help=_PARTED, **_KEEP
    )
    pictures = PictureSpec(entry.spec, int(n_train), image_size=side)
    trained, tested = part_sizes(preview.n, pictures)
    st.caption(f"{trained:,} of {preview.n:,} pictures to train on, {tested:,} others to try; colours become grey.")
    families = st.segmented_control(
        "Autoencoders", list(_FAMILIES), default=list(_FAMILIES), selection_mode="multi", key="reconstruct.families", **_KEEP
    )
    forms = st.pills(
        "The decoder reads codes that are",
        REPRESENTATIONS,
        default=REPRESENTATIONS,
        selection_mode="multi",
        key="reconstruct.forms",
        wrap=True,
        help="Whitened is ours: the cosines, centred, with what the anchors share taken out.",
        **_KEEP,
    )
    runs_box, anchors_box, epochs_box = st.columns(3)
    n_runs = runs_box.number_input("Runs", 2, 10, 3, key="reconstruct.runs", help=_RUNS, **_KEEP)
    anchors = anchors_box.number_input(
        "Anchors", 2, trained, min(200, trained), 50, key=f"reconstruct.anchors-{name}", help=_ANCHORS, **_KEEP
    )
    few = min(20, max(5, round(_SEEN / trained)))
    epochs = epochs_box.number_input("Epochs", 1, 500, few, key=f"reconstruct.epochs-{name}", **_KEEP)
    if not families or not forms:
        st.caption("Choose at least one autoencoder and one kind of code.")
        return None
    models = [AutoencoderSpec(form, _FAMILIES[one], epochs=int(epochs)) for one in _FAMILIES for form in REPRESENTATIONS]
    chosen = [one for one in models if one.title in {f"{family}, {form}" for family in families for form in forms}]
    states = tuple(range(int(n_runs)))
    specs = tuple(ReconstructionSpec(pictures, model, states, int(anchors)) for model in chosen)
    width, height = (side, side) if side else preview.sizes[0]
    return Setup(preview.name, preview.digest, specs, width * height, trained)


_PARTED = (
    "Drawn at random from four fifths of the dataset, always the same; the errors are those of pictures from the last fifth."
)
_RUNS = "So many trainings of each kind, equal but for their random state: 0, 1, 2, …"
_ANCHORS = "Of the training pictures, as many of each class, the same for every state; absolute codes need none."


def _image_size(preview: Preview) -> int | None:
    """A size to bring all pictures to, asked for only where they differ or are large."""
    if len(preview.sizes) == 1 and max(preview.sizes[0]) <= LARGEST:
        return None
    key = f"reconstruct.side-{digest_of(preview.digest)[:8]}"
    return int(st.number_input("Resize to, pixels a side", 4, LARGEST, 32, key=key, **_KEEP))


def cost(setup: Setup, specs: tuple[ReconstructionSpec, ...]) -> tuple[int, float]:
    """How many trainings these kinds still lack, and about how many seconds they take together."""
    n_missing = sum(len(missing_trainings(engine().store, setup.digest, spec)) for spec in specs)
    return n_missing, encoding_costs.together([expected(setup, spec).likely for spec in specs], engine().n_workers)


def expected(setup: Setup, spec: ReconstructionSpec) -> Expected:
    """What the trainings that a kind lacks will take, at the pace of the last ones here."""
    n_missing = len(missing_trainings(engine().store, setup.digest, spec))
    shown = setup.n_train * _SECONDS * (setup.pixels / _PIXELS) ** _POWER
    return expect(engine().store, "reconstruction", _START + n_missing * spec.model.epochs * shown)
