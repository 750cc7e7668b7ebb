"""What the Stitch page computes: every pair, at once or by a job, and the fitted heads that answer what is typed."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from app import compute, results
from app.encode import encoding_costs
from app.jobs import RESULTS, asked_again, engine, follow
from relcore.engine import Job
from relcore.pace import Expected, expect
from relcore.progress import Context
from relcore.sources.catalog import SpaceSpec
from relcore.spaces import LatentSpace, distinct_names
from relcore.stitching.classification import SharedRows, Stitching, share_rows, stitch_matrix
from relcore.stitching.job import estimated_seconds, put_stitching, stitching_job, stitching_key, stitching_of
from relcore.stitching.result import StitchResult
from relcore.stitching.spec import StitchSpec
from relcore.store import digest_of

AT_ONCE_SECONDS = 1.0
UNASKED_SECONDS = 20.0  # what takes longer waits for a click
_ASKED, _LATEST = "relscope.stitching-asked", "relscope.stitching-latest"


@dataclass(frozen=True)
class StitchSetup:
    """Which encoders are stitched, in this order, and how."""

    specs: tuple[SpaceSpec, ...]
    spec: StitchSpec


def spaces_of(setup: StitchSetup) -> list[LatentSpace]:
    return [compute.load_space(spec) for spec in setup.specs]


def digests_of(setup: StitchSetup) -> list[str]:
    return [space.digest for space in spaces_of(setup)]


def shared(specs: tuple[SpaceSpec, ...], order: tuple[str, ...] = ()) -> SharedRows:
    """The labelled rows that all encoders have. Errors as in `share_rows`."""
    spaces = [compute.load_space(spec) for spec in specs]
    return _shared(digest_of([space.digest for space in spaces], distinct_names(spaces), order), spaces, order)


@st.cache_resource(max_entries=4, show_spinner=False)
def _shared(key: str, _spaces: list[LatentSpace], _order: tuple[str, ...]) -> SharedRows:
    return share_rows(_spaces, _order)


def stitched(setup: StitchSetup) -> StitchResult | None:
    """Every pair by every method, from the store, at once or by a job; None meanwhile, and then the page says what goes on."""
    spaces, rows = spaces_of(setup), shared(setup.specs, setup.spec.order)
    key = stitching_key(spaces, setup.spec, RESULTS)
    job = engine().job(key)
    if job is None:
        seconds = estimated_seconds(rows, setup.spec)
        if seconds < AT_ONCE_SECONDS:
            with st.spinner("Stitching every pair …"):
                found = stitch_matrix(spaces, setup.spec)
            put_stitching(Context(key, engine().store), found)
            return found
        if seconds > UNASKED_SECONDS and st.session_state.get(_ASKED) != key:
            n_pairs = len(spaces) * (len(spaces) - 1)
            likely = _expected(setup)
            label = f"Stitch {n_pairs} pairs · {_duration(likely.likely)}"
            told = encoding_costs.learned([likely]).strip() or None
            look = {"icon": ":material/conversion_path:", "type": "primary", "help": told}
            st.button(label, key="stitch.start", on_click=st.session_state.__setitem__, args=(_ASKED, key), **look)
            return None
    if job is None or asked_again(job):
        job = _submit(key, setup, spaces)
    if job.status().state == "done":
        return _read(key, job)
    follow([job])
    return None


@st.cache_resource(max_entries=12, show_spinner=False)
def _read(key: str, _job: Job) -> StitchResult:
    return stitching_of(_job.result())


def _submit(key: str, setup: StitchSetup, spaces: list[LatentSpace]) -> Job:
    """The job; what this session asked for before and no longer looks at is stopped."""
    before = st.session_state.get(_LATEST)
    if before and before != key and (old := engine().job(before)) and not old.status().ended:
        old.cancel()
    st.session_state[_LATEST] = key
    inputs = results.inputs(setup.specs, spaces)
    likely = _expected(setup)
    return engine().submit(key, stitching_job, title="Stitching every pair", expected=likely, inputs=inputs, spec=setup.spec)


def _expected(setup: StitchSetup) -> Expected:
    """A worker has some of the cores, not all; and the pace of the last jobs here."""
    seconds = estimated_seconds(shared(setup.specs, setup.spec.order), setup.spec)
    return expect(engine().store, "stitch", 1.5 * seconds)


def _duration(seconds: float) -> str:
    return f"about {seconds:.0f} s" if seconds < 90 else f"about {seconds / 60:.0f} min"


def fitted(setup: StitchSetup, random_state: int) -> Stitching:
    """Heads and maps of one random state, fitted once; they answer rows of any items by `Stitching.probabilities`."""
    rows = shared(setup.specs, setup.spec.order)
    return _fitted(stitching_key(spaces_of(setup), setup.spec, RESULTS), random_state, rows, setup.spec)


@st.cache_resource(max_entries=6, show_spinner="Fitting every head …")
def _fitted(key: str, random_state: int, _rows: SharedRows, _spec: StitchSpec) -> Stitching:
    return Stitching(_rows, _spec, random_state)
