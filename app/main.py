"""The entry point of the app: it draws the bar and the page. `app/serve.py` serves it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import streamlit as st

# Threads that wait in a loop take processor time from the browser. OpenBLAS has no setting against this, so
# `one_thread_products` keeps it from using threads.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("RELSCOPE_CONFINED", "1")  # files are parsed in a separate process

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:  # Streamlit adds only this file's folder to the path
    sys.path.insert(0, str(ROOT))

from app.server import first_imports  # noqa: E402

first_imports.wait()

from app import messages, places, results, saving, session, sharing, toolbar, undo  # noqa: E402
from app.components.page import around_the_page  # noqa: E402
from app.glossary import card  # noqa: E402
from app.glossary.terms import term  # noqa: E402
from app.spaces import pairing  # noqa: E402
from relcore.base.errors import NoCommonId, RelscopeError, extra  # noqa: E402
from relcore.engine.threads import one_thread_products  # noqa: E402
from relcore.runs.store import in_use  # noqa: E402

first_imports.spare_collector()
sharing.confine_if_reachable()
st.set_page_config(
    page_title="Relscope",
    page_icon=str(ROOT / "assets" / "icon.svg"),
    layout="wide",
    menu_items={
        "about": "**Relscope**, an interactive explorer for latent spaces, absolute and relative to anchors."
        f" {term('all', 'All terms, with pictures')}"
    },
)
st.logo(str(ROOT / "assets" / "logo.svg"), size="large", icon_image=str(ROOT / "assets" / "icon.svg"))
st.html(ROOT / "assets" / "style.css")
page = st.navigation(places.pages(), position="top")
st.html(f'<h1 class="relscope-unseen">Relscope</h1><h2 class="relscope-unseen">{page.title}</h2>')
st.html(f'<style>:root {{ --relscope-place: "{page.title}"; }}</style>')
around_the_page([".", *places.PLACES])
place = places.PLACES.get(page.title.lower())
saving.restore()
session.history(saving.first_workspace)
try:
    if session.encodes():  # finished encodings join the session, whatever page is open
        from app.encode import jobs as encoding_jobs
        from app.encode import panel

        encoding_jobs.collect()
        if place is not places.DATA:  # the page Data shows this progress in its form
            panel.draw_elsewhere()
    results.draw_elsewhere(place)
    toolbar.lead_to_opened(place)
    session.show_notices()
    undo.move(place)
    with in_use(), extra(), one_thread_products():
        toolbar.waiting(place)
        session.fit_to_models()
        saving.save()
        saving.draw_notice(page.title)
        with toolbar.around(place):
            page.run()
        card.draw()
except NoCommonId:
    toolbar.end_waiting()
    pairing.draw_unpaired(session.workspace())
except RelscopeError as error:
    toolbar.end_waiting()
    messages.error(error)
    st.caption("Your work is not lost. Undo the last step, or choose other spaces or settings.")
saving.save()  # the page may have changed the session
