"""A choice of spaces is written down at once, and what it asks of anchors and pivots is fitted in the run
that follows.
"""

from dataclasses import replace

import numpy as np
import pytest
from streamlit.runtime.scriptrunner_utils.exceptions import StopException

from app import compute
from app.session import fit_to_pair
from tests.app.conftest import save_space


@pytest.fixture
def other(tmp_path):
    return save_space(tmp_path / "other.npz", np.random.default_rng(2).normal(size=(60, 6)))


def test_anchors_that_the_user_removed_stay_removed(make_workspace):
    workspace = replace(make_workspace(), anchors=(), anchors_from="")
    assert fit_to_pair(workspace, compute.matched_pair(workspace.source, workspace.target)) == workspace


def test_a_choice_needs_no_work_that_the_next_click_could_break_off(
    make_session, make_workspace, other, monkeypatch
):
    session = make_session(spaces=(*make_workspace().spaces, other))

    def next_click(*_):
        raise StopException

    with monkeypatch.context() as patch:
        patch.setattr(compute, "matched_pair", next_click)
        session.change("selectbox", "choose.target", other)
    session.run()
    assert session.workspace.target == other
    assert not session.errors


@pytest.mark.parametrize("before", [10, 200])
def test_the_number_of_anchors_of_a_new_pair_depends_on_the_pair_only(make_workspace, tmp_path, before):
    rows = np.random.default_rng(3).normal(size=(50, 6))
    ends = tuple(save_space(tmp_path / f"{name}.npz", rows, prefix="x") for name in "ab")
    opened = replace(
        make_workspace(), anchors=("r0",), anchors_from=f"random {before} 0", source=ends[0], target=ends[1]
    )
    fitted = fit_to_pair(opened, compute.matched_pair(*ends))
    assert (len(fitted.anchors), fitted.anchors_from) == (10, "random 10 0")
