"""Choosers of the Reconstruction tab: pictures, models and random states, and the cost of training them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from app.encode import encoding_costs, raw_data
from app.encode.raw_data import Preview
from app.jobs import engine
from app.page_settings import kept
from relcore.pace import Expected, expect, presently
from relcore.reconstructing.autoencoders import REPRESENTATIONS, AutoencoderSpec
from relcore.reconstructing.job import ReconstructionSpec, missing_trainings
from relcore.reconstructing.pictures import PictureSpec, part_sizes
from relcore.sources.small_vision import LARGEST
from relcore.store import digest_of

_FAMILIES = {"AE": False, "VAE": True}
_SEEN = 25_000  # pictures that a model is trained on by default, over 5 to 20 epochs


@dataclass(frozen=True)
class Setup:
    """The choices; `name` is that of the dataset."""

    name: str
    specs: tuple[ReconstructionSpec, ...]
    pixels: int
    n_train: int

    @property
    def planes(self) -> ReconstructionSpec:
        """The model with codes of two numbers on the same pictures, with the same random states; it needs more epochs."""
        first = self.specs[0]
        model = AutoencoderSpec(width=2, epochs=min(1000, 2 * first.model.epochs))
        return replace(first, model=model)


def choose(folder: str | None) -> Setup | None:
    """The choosers; None where there is nothing to train, which the page then says."""
    entries = [one for one in raw_data.available(folder) if one.kind == "images" and one.where == "here"]
    entry = kept(
        st.selectbox,
        "Pictures",
        entries,
        format_func=lambda one: f"{one.name} · {one.n:,}" if one.n else one.name,
        key="reconstruct.dataset",
        help="Datasets on this machine. Choose a data folder on the Spaces page to add others.",
    )
    preview = raw_data.preview(entry.spec)
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
    st.caption(f"{trained:,} of {preview.n:,} pictures to train on, {tested:,} held out; colours become grey.")
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
        help="Whitened codes are ours: centred cosines times (K + λI)^(−1/2), where K holds the cosines of the anchors.",
    )
    runs_box, anchors_box, epochs_box = st.columns(3)
    n_runs = kept(runs_box.number_input, "Runs", 2, 10, 3, key="reconstruct.runs", help=_RUNS)
    anchors = kept(
        anchors_box.number_input, "Anchors", 2, trained, min(200, trained), 50, key=f"reconstruct.anchors-{name}", help=_ANCHORS
    )
    few = min(20, max(5, round(_SEEN / trained)))
    epochs = kept(epochs_box.number_input, "Epochs", 1, 500, few, key=f"reconstruct.epochs-{name}")
    if not families or not forms:
        st.caption("Choose at least one autoencoder and one kind of code.")
        return None
    models = [AutoencoderSpec(form, _FAMILIES[one], epochs=int(epochs)) for one in _FAMILIES for form in REPRESENTATIONS]
    chosen = [one for one in models if one.title in {f"{family}, {form}" for family in families for form in forms}]
    states = tuple(range(int(n_runs)))
    specs = tuple(ReconstructionSpec(pictures, model, states, int(anchors), preview.digest) for model in chosen)
    width, height = (side, side) if side else preview.sizes[0]
    return Setup(preview.name, specs, width * height, trained)


_PARTED = "Drawn at random from four fifths of the dataset with a fixed random state. Errors are measured on the other fifth."
_RUNS = "Number of models of each kind to train, with the random states 0, 1, 2, …"
_ANCHORS = "Drawn from the training pictures with balanced classes, the same for every random state. Absolute codes need none."


def _image_size(preview: Preview) -> int | None:
    """The size to which all pictures are resized; the chooser appears only where sizes differ or are large."""
    if len(preview.sizes) == 1 and max(preview.sizes[0]) <= LARGEST:
        return None
    key = f"reconstruct.side-{digest_of(preview.digest)[:8]}"
    return int(kept(st.number_input, "Resize to, pixels a side", 4, LARGEST, 32, key=key))


def cost(setup: Setup, specs: tuple[ReconstructionSpec, ...]) -> tuple[int, float]:
    """Number of models of these kinds that are not trained yet, and about how many seconds they take together."""
    n_missing = sum(len(missing_trainings(engine().store, spec)) for spec in specs)
    return n_missing, encoding_costs.together([presently(expected(setup, spec)) for spec in specs], engine().n_workers)


def expected(setup: Setup, spec: ReconstructionSpec) -> Expected:
    """The time for the models of a kind that are not trained yet, at the pace of the last jobs on this machine."""
    n_missing = len(missing_trainings(engine().store, spec))
    return expect(engine().store, spec.kind, spec.seconds_for(setup.n_train, setup.pixels, n_missing))
