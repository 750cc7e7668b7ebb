"""Codes of two numbers: the planes of two runs, and an animation that aligns the second with the first."""

from __future__ import annotations

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import exports
from app.jobs import follow
from app.stitch.reconstruction_jobs import choose_states, live_curves, offer, stored, under_way
from app.stitch.reconstruction_setup import Setup
from relcore.numbers import short
from relcore.reconstructing.result import Crossed


def draw(setup: Setup, button: DeltaGenerator) -> None:
    """The section; its button goes to the container `button`."""
    spec = setup.planes
    with button:
        st.markdown("**Codes of two numbers**")
        st.caption(
            f"The same autoencoder with codes of two numbers, {spec.model.epochs} epochs. Its whole space can be drawn, and "
            "each run gives another plane. The disparity is the difference that is left after the best rotation or reflection."
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


def _planes(setup: Setup, found: Crossed) -> None:
    from relcore.reconstructing.figures import Planes
    from relcore.reconstructing.plane_turn import disparities, fit_turn

    states = setup.planes.random_states
    first, second = choose_states(states, "Reference: random state", "Aligned with it: random state", "planes")
    figure = Planes.of([setup.planes], reference_state=first, moving_state=second).draw(found)
    codes = found.codes
    turn = fit_turn(codes[states.index(first)], codes[states.index(second)])
    numbers = st.columns([1, 1, 2])
    numbers[0].metric("Disparity as they are", short(turn.disparity(0), 2))
    numbers[1].metric(f"Disparity {'mirrored' if turn.mirrored else 'turned'}", short(turn.disparity(1), 2))
    numbers[2].caption(
        f"Squared distances of {codes.shape[1]:,} pictures between the two, divided by the spread of the first: 0 is equal, "
        f"1 is as bad as the mean for every picture. The second is {turn.describe()}."
    )
    exports.chart(figure.interactive(exports.theme()), f"reconstruct.planes-{first}-{second}")
    every = disparities(codes)[np.triu_indices(len(codes), 1)]
    if len(every) > 1:
        st.caption(
            f"All {len(every)} pairs of the {len(codes)} runs: after the best turn the disparity is {short(every.min(), 2)} to "
            f"{short(every.max(), 2)}, median {short(np.median(every), 2)}. One pair alone is not representative."
        )
    exports.export_bar(figure, "planes")
