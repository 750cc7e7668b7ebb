import pytest


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """The files that the commands read, and a temporary folder."""
    from tests.faults.test_killed_commands import sources

    folder = tmp_path_factory.mktemp("template")
    sources(folder)
    (folder / "tmp").mkdir()
    return folder
