"""Link: choose the data, press a button, read the verdict, check links, and use them on all pages."""

from __future__ import annotations

from contextlib import nullcontext

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import compute, exports, results, session
from app.glossary.card import caption
from app.glossary.terms import with_links
from app.jobs import queue
from app.link.finished import draw_finished_links, remember_job
from app.link.links import in_use, known_source_ids, links_to_check, use_button
from app.link.setup import BootstrapSetup, choose, show_linked_notice
from app.plain_text import plain
from app.tables import report_table
from app.workspace import Workspace
from relcore.base.numbers import counted
from relcore.base.report import delimited_text
from relcore.linking.link import Outcome
from relcore.linking.links_found import links_table
from relcore.linking.pictures import BootstrapRounds, BootstrapScores


def draw(setup: BootstrapSetup, used: bool = False, above: DeltaGenerator | None = None) -> None:
    """Draw the job, and the links in the place `above`. `used` is True if the session already uses the linked
    spaces and their anchors."""
    specs = (setup.source_spec, setup.target_spec)
    outcome = results.result_of(setup.spec, specs, label="Link", details=setup.details)
    if outcome is not None or queue().job(setup.spec.key((setup.source, setup.target))):
        remember_job(setup)
    if outcome is None:
        draw_finished_links(specs, "bootstrap")
        return
    with above or nullcontext():
        _draw_links(setup, outcome, used)
        if above:
            st.subheader("Link again", anchor=False)


def _draw_links(setup: BootstrapSetup, outcome: Outcome, used: bool) -> None:
    """Draw what was found, with a button that uses it, the links, and how they were tested."""
    specs = (setup.source_spec, setup.target_spec)
    result = outcome.result
    if outcome.linked:
        show = st.success
        icon = "check_circle"
    else:
        show = st.warning
        icon = "help"
    n_links = len(result.kept) - result.n_seeds
    verdict, button = st.columns([3, 1], vertical_alignment="center")
    with verdict:
        show(with_links(f"**{plain(outcome.headline)}** {_next_step(outcome)}"), icon=f":material/{icon}:")
    digests = setup.source.digest, setup.target.digest
    recipe = {"source": specs[0], "target": specs[1], "digests": digests, "bootstrap": setup.spec}
    confirmed = frozenset(known_source_ids(outcome))
    if used:
        confirmed |= compute.load_space(session.workspace().target).ids.marks
    chosen = frozenset(links_to_check(setup, outcome, used, confirmed)) - confirmed
    if len(result.pairs) > result.n_seeds:
        n_unsure = len(result.pairs) - len(result.kept)
        contents = []
        if n_links > 0:
            contents.append(counted(n_links, "link"))
        if n_unsure > 0:
            contents.append(f"{n_unsure:,} unsure guesses")
        label = f"{' and '.join(contents)} as .csv"
        table = delimited_text(links_table(result, every=True))
        exports.download(label, table, "links.csv", "text/csv", "bootstrap.links")
    with st.expander("How this was tested"):
        caption(plain(result.reason))
        exports.figure(BootstrapRounds(**recipe).draw(outcome), "bootstrap.rounds", "bootstrap-rounds")
        if setup.spec.method != "paper":
            first = result.history[0].rows
            last = result.history[-1].rows
            few = ""
            if first < last:
                few = f" The first rounds use the {first:,} most frequent rows."
            st.caption(f"Each round fits a rotation to the pairs so far, and matches the rows again.{few}")
    if outcome.scores:
        with st.expander("How good the links are as anchors"):
            caption("The closer “the anchors found” are to “all true anchors”, the better.")
            report_table(outcome.report().tables[-1])
            exports.export_bar(BootstrapScores(**recipe).draw(outcome), "bootstrap-scores")
    if n_links or not outcome.known:
        with button:
            use_button(setup, outcome, used, confirmed, chosen)


def _next_step(outcome: Outcome) -> str:
    """The sentence after the verdict. If no links were found, it says what to do next; if the result is
    unclear, why."""
    n = outcome.result.n_seeds
    if outcome.verdict != "not found":
        if outcome.linked:
            return ""
        return plain(outcome.result.reason)
    if not n:
        return "Next step: start from 15 to 30 known pairs."
    return (
        f"Next step: {'try' if outcome.known else 'give'} {2 * n:,} known pairs instead of {n:,}. Models that"
        " are too different cannot be linked, even from many pairs."
    )


def page(workspace: Workspace) -> None:
    caption(
        "Link finds which rows of two spaces are the same thing, where they share no ids: from a few known"
        " pairs, or from none. Links are guesses, each with an estimate of how likely it is right."
    )
    if (used := in_use(workspace)) is not None:
        show_linked_notice()
        draw(used, used=True)
        return
    above = st.container()  # the links, once they are found
    setup = choose(workspace)
    if setup is None:
        draw_finished_links((workspace.source, workspace.target), "bootstrap")
    else:
        draw(setup, above=above)
