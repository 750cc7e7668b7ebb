"""Does a decoder understand an encoder of another training? Autoencoders trained on the spot, taken apart and stitched."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import exports
from app.jobs import follow
from app.stitch import planes_panel, reconstruction_setup
from app.stitch.reconstruction_jobs import choose_states, live_curves, offer, stored, under_way
from app.stitch.reconstruction_setup import Setup
from relcore.reconstructing.job import ReconstructionSpec, collect
from relcore.store import Entry

_EXPLAINED = (
    "Autoencoders are trained several times, equal but for their random numbers. Then the encoder of one training draws with "
    "the decoder of another, without more training. Absolute codes of two trainings have nothing to do with each other; codes "
    "relative to the same anchors do."
)


def draw(folder: str | None) -> None:
    """The whole tab."""
    choosers, shown = st.columns([1, 2.2], gap="medium")
    with choosers:
        setup = reconstruction_setup.choose(folder)
        if setup is None:
            return
        offer(setup, setup.specs, "reconstruct.start", "autoencoder")
        planes = st.container()
    entries = stored(setup, setup.specs)
    with shown:
        jobs = under_way(setup, setup.specs)
        if jobs:
            follow(jobs, below=live_curves)
        if entries:
            _results(setup, entries)
        elif not jobs:
            st.markdown("#### Reconstructions")
            st.info(_EXPLAINED, icon=":material/info:")
        planes_panel.draw(setup, planes)


def _results(setup: Setup, entries: dict[ReconstructionSpec, Entry]) -> None:
    from relcore.reconstructing.figures import draw_errors, draw_grid

    specs, found = list(entries), collect(list(entries.values()))
    common = {"dataset_digest": setup.digest, "entries": list(entries.values())}
    st.markdown("#### Reconstructions")
    encoder, decoder = choose_states(
        found.random_states, "Encoder of random state", "Stitched to the decoder of", "reconstruct"
    )
    figure = draw_grid(specs, encoder_state=encoder, decoder_state=decoder, **common)
    exports.chart(figure.interactive(exports.theme()), "reconstruct.grid")
    st.caption(
        f"Pictures that no model was trained on. Upper row of each pair: encoder {encoder} with its own decoder; lower row: "
        f"with decoder {decoder}. Beside them the mean squared error × 10³ over {found.n_test:,} pictures; the mean picture, "
        f"shown every time, gives {found.floor:.1f}."
    )
    exports.export_bar(figure, "reconstruction")
    st.markdown("#### How far off")
    figure = draw_errors(specs, **common)
    exports.chart(figure.interactive(exports.theme()), "reconstruct.errors")
    _table(setup, found.table())
    exports.export_bar(figure, "reconstruction-mse")


def _table(setup: Setup, table: pd.DataFrame) -> None:
    from relcore.figures.error_bars import readable
    from relcore.reconstructing.figures import PUBLISHED_MNIST

    row = table.iloc[0]
    st.dataframe(readable(table), hide_index=True)
    st.caption(
        f"MSE × 10³, mean ± deviation: not stitched over {row.runs} runs, stitched over {row.pairs} ordered pairs of runs; "
        f"{row.pictures:,} test pictures, {setup.n_train:,} to train on. "
        "The baseline is the mean of the training pictures, shown every time."
    )
    if setup.name.lower().startswith("mnist"):
        st.dataframe(PUBLISHED_MNIST, hide_index=True)
        st.caption(
            "**Published, MNIST**, not ours: Moschella et al. 2023, Table 3, five random states, 500 anchors. Their trainings "
            "differ from these in length and pictures; what compares is how far stitched lies from not stitched."
        )
