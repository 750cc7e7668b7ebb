from __future__ import annotations

import numpy as np

from app.workspace import Workspace
from tests.app.conftest import save_space
from tests.relcore.passport.test_check import FIRST, SECOND


def page(workspace):
    from streamlit.testing.v1 import AppTest

    def script(workspace):
        from app import session
        from app.spaces import check

        session.edit("open", spaces=workspace.spaces, source=workspace.source, target=workspace.target)
        check.draw(session.workspace())

    return AppTest.from_function(script, args=(workspace,), default_timeout=60).run()


def test_two_models_in_a_file_are_told_with_what_the_check_does_not_see(tmp_path, monkeypatch):
    monkeypatch.setattr("app.results.AT_ONCE_SECONDS", 100)  # no cluster
    mixed = save_space(tmp_path / "mixed.npz", np.r_[FIRST(700), SECOND(100)])
    few = save_space(tmp_path / "few.npz", FIRST(400))
    at = page(Workspace((mixed, few), mixed, few))
    assert not at.exception
    assert not at.caption  # nothing runs unasked
    at.toggle(key="check.more").set_value(True).run()
    assert not at.exception
    assert at.selectbox[0].options == ["mixed"]  # the other file has too few rows
    assert any("holds vectors of two models" in one.value for one in at.markdown)
    told = [one.value for one in at.caption]
    assert any("Parts do not reveal another prompt" in one for one in told)
    assert "check.csv" in [one.key for one in at.get("download_button")]
    assert at.get("plotly_chart")
