"""Codes of two numbers: the planes of two trainings, the second turned onto the first before one's eyes."""

from __future__ import annotations

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import exports
from app.jobs import follow
from app.stitch.reconstruction_jobs import choose_states, live_curves, offer, stored, under_way
from app.stitch.reconstruction_setup import Setup
from relcore.store import Entry


def draw(setup: Setup, button: DeltaGenerator) -> None:
    """The section; its button goes to the container `button`."""
    spec = setup.planes
    with button:
        st.markdown("**Two numbers a picture**")
        st.caption(
            f"The same autoencoder with codes of two numbers, {spec.model.epochs} epochs. Its spaces can be seen whole: each "
            "training gives another plane. The disparity says how much of the difference is left after the best turn."
        )
        offer(setup, (spec,), "reconstruct.planes", "plane")
    jobs, entries = under_way(setup, [spec]), stored(setup, [spec])
    if not jobs and not entries:
        return
    st.markdown("#### Two numbers a picture")
    if jobs:
        follow(jobs, below=live_curves)
    if entries:
        _planes(setup, entries[spec])


def _planes(setup: Setup, entry: Entry) -> None:
    from relcore.reconstructing.figures import draw_planes
    from relcore.reconstructing.plane_turn import disparities, fit_turn

    states = setup.planes.random_states
    first, second = choose_states(states, "Stays: random state", "Is turned: random state", "planes")
    figure = draw_planes(setup.planes, reference_state=first, moving_state=second, dataset_digest=setup.digest, entry=entry)
    codes = entry.arrays["codes"]
    turn = fit_turn(codes[states.index(first)], codes[states.index(second)])
    numbers = st.columns([1, 1, 2])
    numbers[0].metric("Disparity as they are", f"{turn.disparity(0):.2f}")
    numbers[1].metric(f"Disparity {'mirrored' if turn.mirrored else 'turned'}", f"{turn.disparity(1):.2f}")
    numbers[2].caption(
        f"Squared distances of {codes.shape[1]:,} pictures in both, over the spread of the first: 0 is equal, 1 is what "
        f"putting all of them in the middle would give. The second is {turn.describe()}."
    )
    exports.chart(figure.interactive(exports.theme()), f"reconstruct.planes-{first}-{second}")
    every = disparities(codes)[np.triu_indices(len(codes), 1)]
    if len(every) > 1:
        st.caption(
            f"All {len(every)} pairs of the {len(codes)} runs: after the best turn the disparity is {every.min():.2f} to "
            f"{every.max():.2f}, median {np.median(every):.2f}. It varies from pair to pair, so one pair says little."
        )
    exports.export_bar(figure, "planes")
