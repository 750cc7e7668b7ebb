"""What may take long, on a page: from the store, at once where it is quick, or else a button with the cost, then a bar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from app import compute
from app.encode import encoding_costs
from app.jobs import RESULTS, asked_again, engine, follow
from relcore.comparing.all_pairs import put_space
from relcore.engine import Job
from relcore.pace import expect
from relcore.progress import Context
from relcore.sources.catalog import SpaceSpec
from relcore.sources.small_vision import SmallVision, held_out_rows
from relcore.spaces import LatentSpace
from relcore.store import Entry, digest_of

AT_ONCE_SECONDS = 1.0
_ASKED = "relscope.results-asked"


def result_of(
    what: str,
    content: Any,
    function: Callable[..., None],
    arguments: Callable[[], dict[str, Any]],
    *,
    title: str,
    label: str,
    seconds: float,
    slower: float = 1.0,
    here: Callable[[Context], None] | None = None,
    below: Callable[[list[Job]], None] | None = None,
) -> Entry | None:
    """What was found, or None: then the page says what it costs, or how far it is.

    `content` is everything that decides the result. `arguments` gives those of the function, a job of the engine, when it is
    to run. `label` stands on the button, the cost behind it: `seconds`, as many times as a worker, which has some of the
    cores, is slower, at the pace of the last such jobs here. `here` does the same where it runs at once, of what is loaded
    already; by default the function itself. `below` draws more of the job while it is under way.

    Raises
    ------
    SpaceError
        What is wrong with the data or the settings, where it runs at once.
    """
    key = digest_of(what, RESULTS, content)
    job = engine().job(key)
    likely = expect(engine().store, what, slower * seconds)
    if job is None:
        if likely.likely < slower * AT_ONCE_SECONDS:
            with st.spinner(f"{title} …"):
                context = Context(key, engine().store)
                here(context) if here else function(context, **arguments())
            return engine().store.get(key)
        if key not in st.session_state.get(_ASKED, ()):
            cost = encoding_costs.in_words(likely.likely)
            st.button(
                f"{label} · {cost}",
                key=f"{what}.start",
                type="primary",
                icon=":material/play_arrow:",
                on_click=_ask,
                args=(key,),
            )
            told = "A job in the background: you can go on meanwhile, and the result stays."
            st.caption(told + encoding_costs.learned([likely]))
            return None
    if job is None or asked_again(job):
        job = engine().submit(key, function, title=title, expected=likely, **arguments())
    if job.status().state == "done":
        return job.result()
    follow([job], below)
    return None


def _ask(key: str) -> None:
    st.session_state[_ASKED] = (*st.session_state.get(_ASKED, ()), key)


def inputs(specs: Sequence[SpaceSpec], spaces: Sequence[LatentSpace]) -> list[str]:
    """Keys under which workers find these spaces: those of their encodings, or of copies that are put there now."""
    store = engine().store
    keys = []
    for spec, space in zip(specs, spaces, strict=True):
        stored = spec.option("key") if spec.source == "encoding" else ""  # a pairing has a key, too, but of its own
        keys.append(stored if stored and store.has(stored) else put_space(store, space))
    return keys


def held_out_ids(specs: Sequence[SpaceSpec]) -> tuple[str, ...]:
    """Ids of rows that none of the small networks among the encoders was trained on; () where there are none."""
    apart = None
    for spec in specs:
        if isinstance(spec.encoder, SmallVision):
            space = compute.load_space(spec)
            ids = dict.fromkeys(space.ids[held_out_rows(len(space))].tolist())
            apart = list(ids) if apart is None else [identifier for identifier in apart if identifier in ids]
    return tuple(apart or ())


def place_of(specs: Sequence[SpaceSpec], *more: Any) -> str:
    """For the key of a chooser whose default depends on these: other ones, another default."""
    return digest_of(tuple(specs), *more)[:8]
