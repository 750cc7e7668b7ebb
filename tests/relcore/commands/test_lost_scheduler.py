"""What the command line does when the scheduler of --scheduler does not answer."""

import argparse

import pytest

from relcore.commands.running import engine
from relcore.runs.jobs import Engine, EngineError

LOST = "tcp://somewhere:8786: the scheduler does not answer"


@pytest.fixture
def begun(monkeypatch, tmp_path):
    """Addresses at which engines were started; those elsewhere do not answer."""
    addresses = []

    def start(made):
        addresses.append(made.address)
        if made.address:
            raise EngineError(f"{made.address}: expected a Dask scheduler, got no answer in 10 s")

    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path))
    monkeypatch.setattr(Engine, "start", start)
    return addresses


def options(**changed):
    return argparse.Namespace(
        **{"scheduler": "tcp://somewhere:8786", "local_if_lost": False, "quiet": True} | changed
    )


def test_with_the_option_it_continues_here(begun, capsys):
    with engine(options(local_if_lost=True)) as made:
        assert made.address is None
    assert begun == ["tcp://somewhere:8786", None]
    assert capsys.readouterr().err.endswith("got no answer in 10 s; continuing on this machine\n")


@pytest.mark.parametrize("here", [False, True])
def test_a_scheduler_that_dies_meanwhile_is_named_once(begun, monkeypatch, capsys, here):
    monkeypatch.setattr(Engine, "start", lambda made: None)
    with engine(options(local_if_lost=here)) as made:
        made._tell(LOST)
        made._tell(LOST)
        assert made.address == (None if here else "tcp://somewhere:8786")
    assert capsys.readouterr().err == f"relscope: {LOST}{'; continuing on this machine' if here else ''}\n"
