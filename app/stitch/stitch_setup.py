"""The choosers of the Stitch page: encoders, heads, methods and anchors."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import streamlit as st

from app import compute, jobs, messages
from app.encode import encoding_jobs, raw_data
from app.page_settings import kept
from app.stitch import stitch_invitation
from app.stitch.stitch_compute import StitchSetup, shared
from app.widgets import space_labels
from app.workspace import Workspace
from relcore.names import METHODS, STRATEGIES
from relcore.numbers import counted
from relcore.sources.catalog import SpaceSpec
from relcore.sources.encodings import held_out_ids
from relcore.spaces import SpaceError
from relcore.stitching.classification import SharedRows, split_rows
from relcore.stitching.figures import short_names
from relcore.stitching.methods import MethodSettings
from relcore.stitching.one_item import why_not
from relcore.stitching.spec import StitchSpec
from relcore.store import digest_of

MOST_ENCODERS = 6  # by default; thirty pairs are read, more are searched
HEADS = {"logistic": "Logistic", "mlp": "MLP", "paper": "Paper"}
_HEAD_HELP = {
    "logistic": "Logistic regression of directions: no randomness, ready in a moment.",
    "mlp": "Two hidden layers of 256 behind a LayerNorm; each row is read by itself.",
    "paper": "The network of Moschella et al. 2023, which normalises over all rows that are asked together.",
}
_SESSION = "this session's"


def choose(workspace: Workspace) -> StitchSetup | None:
    """All choosers, of an example where the session has nothing to stitch; None where the choice is incomplete.

    One row, so that the result is on the first screen; a button opens the rest.
    """
    found = candidates(workspace)
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="stitch-choosers")
    if len(found) < 2:
        found = stitch_invitation.draw(row)
    jobs.follow(encoding_jobs.awaited(), dismiss=encoding_jobs.forget)
    if not found:
        return None
    try:
        with row, st.popover("Encoders, methods, anchors", icon=":material/tune:"):
            setup = _all_of_it(workspace, found)
    except SpaceError as error:
        messages.error(error)
        return None
    if setup is None:
        st.info("Choose at least two encoders and one method.", icon=":material/conversion_path:")
    return setup


def _all_of_it(workspace: Workspace, found: list[SpaceSpec]) -> StitchSetup | None:
    place = digest_of(found)[:8]  # the defaults depend on the candidates
    specs = _encoders(found, place)
    methods = _methods()
    if len(specs) < 2 or not methods:
        return None
    return _rest(workspace, specs, methods, shared(specs), f"{digest_of(specs)[:8]}")


def candidates(workspace: Workspace) -> list[SpaceSpec]:
    """The session's labelled spaces. Too few of the bundled words have a label to train and test on."""
    found = []
    for spec in workspace.spaces:
        try:
            labelled = spec.source != "bundled" and compute.load_space(spec).labels is not None
        except SpaceError:  # gone from the store: the Spaces page reports it
            continue
        if labelled:
            found.append(spec)
    return found


def labelled_items(workspace: Workspace, kind: str) -> list[SpaceSpec]:
    """The session's labelled encodings of "texts" or "images" whose encoders can encode new items."""
    return [spec for spec in candidates(workspace) if not why_not(spec) and raw_data.preview(spec.dataset).kind == kind]


def largest_family(specs: list[SpaceSpec]) -> list[SpaceSpec]:
    """The largest group of spaces that share rows and labels; of equal groups the one with the most rows."""
    families = [[other for other in specs if other == one or _go_together(one, other)] for one in specs]
    return max(families, key=lambda family: (len(family), len(compute.load_space(family[0]))))


def _go_together(one: SpaceSpec, other: SpaceSpec) -> bool:
    first, second = compute.load_space(one), compute.load_space(other)
    return _alike(first.digest, second.digest, (first, second))


@st.cache_data(max_entries=256, show_spinner=False)
def _alike(first: str, second: str, _spaces: tuple[Any, Any]) -> bool:
    """Whether two spaces share half of the rows of the smaller, with the same labels."""
    one, other = _spaces
    rows = other.index.get_indexer(one.index)
    both = rows >= 0
    same = (one.labels[both] == other.labels[rows[both]]).all()
    return bool(both.sum() >= min(len(one), len(other)) / 2 and same)


def _encoders(found: list[SpaceSpec], place: str) -> tuple[SpaceSpec, ...]:
    return tuple(
        kept(
            st.multiselect,
            "Encoders",
            found,
            default=largest_family(found)[:MOST_ENCODERS],
            format_func=dict(zip(found, short_names(list(space_labels(found).values()))[0], strict=True)).get,
            key=f"stitch.encoders-{place}",
            placeholder="Choose two or more",
            help="Labelled spaces of this session. A head is trained on each, and classifies the rows of every encoder.",
        )
    )


def _methods() -> tuple[str, ...]:
    chosen = kept(
        st.pills,
        "From an encoder to another's head",
        list(METHODS),
        selection_mode="multi",
        default=list(StitchSpec().methods),
        format_func=lambda name: METHODS[name].title,
        key="stitch.methods",
        wrap=True,
        help="Absolute: unchanged rows. Relative: heads read similarities to the anchors. Product: several similarities, "
        "side by side or averaged. Inverse: from similarities back into the other space. These methods prepare each space "
        "alone; Procrustes, least squares and affine need both at once.",
    )
    return tuple(name for name in METHODS if name in chosen)


def _rest(
    workspace: Workspace, specs: tuple[SpaceSpec, ...], methods: tuple[str, ...], rows: SharedRows, place: str
) -> StitchSetup:
    test_ids = held_out_ids(specs, [compute.load_space(spec) for spec in specs], rows.ids)
    widest = max(space.dimension for space in rows.spaces)
    n_train = len(rows.targets) - len(test_ids) if test_ids else int(0.8 * len(rows.targets))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        head = kept(
            st.segmented_control,
            "Head",
            list(HEADS),
            default="logistic",
            format_func=HEADS.get,
            key="stitch.head-kind",
            required=True,
        )
        strategies = [name for name in STRATEGIES if name != "most-frequent" or rows.spaces[0].counts is not None]
        strategy = kept(
            st.selectbox, "Anchors", [*strategies, _SESSION], format_func=str.capitalize, key="stitch.strategy", width=190
        )
        if strategy != _SESSION:
            number = kept(
                st.number_input,
                "How many",
                1,
                n_train,
                min(2 * widest, n_train // 2),
                16,
                key=f"stitch.anchors-{place}",
                width=130,
            )
        states = kept(
            st.segmented_control, "Random states", [1, 3, 5], default=1, key="stitch.states", required=True, help=_STATES
        )
    with st.expander("More", icon=":material/tune:"):
        settings = _settings()
        order = _order(rows.classes, place)
    anchors = {"anchors": workspace.anchors} if strategy == _SESSION else {"strategy": strategy, "n_anchors": int(number)}
    if strategy == _SESSION and not workspace.anchors:
        raise SpaceError("anchors: this session has none; choose some in the sidebar, or another strategy here")
    spec = StitchSpec(methods, head, tuple(range(states)), test_ids=test_ids, order=order, settings=settings, **anchors)
    split = split_rows(rows, spec, 0)
    st.caption(f"{_HEAD_HELP[head]} {_split(specs, rows, spec, len(split.known), len(split.test))}")
    return StitchSetup(specs, spec)


_STATES = "Number of repetitions. Each draws test rows, anchors and initial weights again; scores are means with deviations."


def _settings() -> MethodSettings:
    usual = MethodSettings()
    center = kept(st.toggle, "Centre first", usual.center, key="stitch.center", help="Subtract each encoder's mean row.")
    weight = "λ = 1 counts as much as one average anchor. A larger λ is closer to the plain relative form."
    ridge = kept(st.number_input, "λ of whitening", 0.001, 100.0, usual.ridge, 0.1, key="stitch.ridge", help=weight)
    delta = kept(
        st.number_input,
        "δ of the pruned inverse",
        0.05,
        1.0,
        usual.delta,
        0.05,
        key="stitch.delta",
        help="An anchor is left out if its distance, 1 − |cos|, to one that is kept is below δ.",
    )
    omega = kept(
        st.number_input,
        "ω of the pruned inverse",
        1,
        64,
        usual.omega,
        key="stitch.omega",
        help="Number of prunings to average.",
    )
    inverse = kept(
        st.number_input, "λ of the ridge inverse", 0.001, 1000.0, usual.inverse_ridge, 0.1, key="stitch.inverse-ridge"
    )
    return replace(usual, center=center, ridge=ridge, delta=delta, omega=int(omega), inverse_ridge=inverse)


def _order(classes: tuple[str, ...], place: str) -> tuple[str, ...]:
    """All labels from low to high, or none."""
    if not kept(
        st.toggle,
        "Labels have an order",
        key=f"stitch.ordered-{place}",
        help="For example the stars of a review. Errors are then also counted in steps (MAE).",
    ):
        return ()
    chosen = kept(
        st.multiselect, "From low to high", classes, default=sorted(classes, key=_natural), key=f"stitch.order-{place}"
    )
    if len(chosen) < len(classes):
        st.caption(f"MAE needs all labels: {len(classes) - len(chosen)} of {len(classes)} are missing.")
        return ()
    return tuple(chosen)


def _natural(label: str) -> tuple:
    """Sorts "2" before "10"."""
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", label) if part)


def _split(specs: tuple[SpaceSpec, ...], rows: SharedRows, spec: StitchSpec, n_train: int, n_test: int) -> str:
    """A sentence on training rows and test rows."""
    if spec.test_ids:
        tested = f"tested on **{n_test:,}** that no encoder was trained on either"
    else:
        anew = ", drawn again for each random state" if len(spec.random_states) > 1 else ""
        tested = f"tested on **{n_test:,}** held-out rows{anew}"
    encoders = [one.rows_of.encoder for one in specs]
    seen = not spec.test_ids and any(
        encoder and len(encoder.seen_rows(compute.load_space(one))) for one, encoder in zip(specs, encoders, strict=True)
    )
    flattered = (
        " Some encoders saw labels of the test rows in training, so the scores of all methods are optimistic." if seen else ""
    )
    trained = f"Heads are trained on **{n_train:,}** rows of {counted(len(rows.classes), 'class', 'classes')}"
    return f"{trained} and {tested}; no anchor is tested.{flattered}"
