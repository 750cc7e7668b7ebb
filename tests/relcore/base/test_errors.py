"""All errors whose message is meant for the user have one base class, so that no caller lists them."""

import pytest

import relcore
from relcore import cli
from relcore.base.errors import NoCommonId, RelscopeError, SpaceError
from relcore.represent.estimator import not_fitted
from relcore.runs.cluster import JobQueueError
from relcore.runs.entries import StoreError


def test_errors_for_users_have_one_base_class():
    assert relcore.RelscopeError is RelscopeError
    for kind in (SpaceError, NoCommonId, StoreError, JobQueueError, type(not_fitted("call fit first"))):
        assert issubclass(kind, RelscopeError)
    assert issubclass(SpaceError, ValueError)


class OwnError(RelscopeError):
    """An error of a plugin."""


@pytest.mark.parametrize("kind", [SpaceError, StoreError, JobQueueError, OwnError])
def test_command_prints_error_for_users_in_one_line(kind, capsys):
    assert cli._report_error(kind("expected a, got b"), None) == 2
    assert capsys.readouterr().err == "relscope: expected a, got b\n"
