"""Reconstruction stitching: can a decoder read the codes of an encoder from another run? Autoencoders are trained here."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import exports
from app.jobs import follow
from app.stitch import planes_panel, reconstruction_setup
from app.stitch.reconstruction_jobs import choose_states, live_curves, offer, stored, under_way
from app.stitch.reconstruction_setup import Setup
from relcore.numbers import counted, short
from relcore.reconstructing.job import ReconstructionSpec, collect
from relcore.reconstructing.result import Crossed

_EXPLAINED = (
    "Autoencoders are trained several times with different random states. Then the encoder of one run is combined with the "
    "decoder of another, without more training. Absolute codes of two runs are not comparable; codes relative to the same "
    "anchors are."
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
        planes_panel.draw(setup, planes)


def _results(setup: Setup, stored: dict[ReconstructionSpec, Crossed]) -> None:
    from relcore.reconstructing.figures import ReconstructionErrors, ReconstructionGrid

    specs, found = list(stored), collect(stored)
    st.markdown("#### Reconstructions")
    encoder, decoder = choose_states(found.random_states, "Encoder of random state", "Decoder of random state", "reconstruct")
    figure = ReconstructionGrid.of(specs, encoder_state=encoder, decoder_state=decoder).draw(found)
    exports.chart(figure.interactive(exports.theme()), "reconstruct.grid")
    st.caption(
        f"Held-out pictures. Upper row of each pair: encoder {encoder} with its own decoder; lower row: with decoder "
        f"{decoder}. Beside them the mean squared error × 10³ over {counted(found.n_test, 'held-out picture')}; the error "
        "of the mean "
        f"picture is {short(found.floor, 1)}."
    )
    exports.export_bar(figure, "reconstruction")
    st.markdown("#### Errors")
    figure = ReconstructionErrors.of(specs).draw(found)
    exports.chart(figure.interactive(exports.theme()), "reconstruct.errors")
    _table(setup, found.table())
    exports.export_bar(figure, "reconstruction-mse")


def _table(setup: Setup, table: pd.DataFrame) -> None:
    from relcore.figures.error_bars import readable
    from relcore.reconstructing.figures import PUBLISHED_MNIST

    row = table.iloc[0]
    st.dataframe(readable(table), hide_index=True)
    st.caption(
        f"MSE × 10³, mean ± deviation: not stitched over {row.runs} runs, stitched over {row.pairs} ordered "
        "pairs of runs; "
        f"{counted(row.pictures, 'held-out picture')}, {setup.n_train:,} training pictures. The baseline is the mean of "
        "the training "
        "pictures as the reconstruction of every picture."
    )
    if setup.name.lower().startswith("mnist"):
        st.dataframe(PUBLISHED_MNIST, hide_index=True)
        st.caption(
            "**Published, MNIST**: Moschella et al. 2023, Table 3, five random states, 500 anchors. They trained longer and on "
            "other pictures, so compare the ratio of stitched to not stitched, not the errors themselves."
        )
