"""What holds for every test: one core for linear algebra, because tests run beside each other; one job queue and one
browser per process.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest

# Read when NumPy, Torch and numba are loaded, which is later.
for library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# Most tests read files in their own process. Tests of the confined reader and of hostile files switch the
# confined process on.
os.environ.setdefault("RELSCOPE_CONFINED", "0")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Imported objects stay, so the garbage collector need not search them, which would take seconds. Cycles
    are rare, so it searches new objects less often than usual."""
    gc.disable()
    collected = yield
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
    return collected


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """A file at a time, so that its fixtures are made once; all browser tests are one file, so that one process alone
    starts a browser and servers.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::", 1)[0]
            if file.startswith("tests/browser/"):
                return "tests/browser"
            return file

    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the browser tests first and the many short files of the core last, so that both processes end at
    about the same time."""
    items.sort(
        key=lambda item: (
            not item.nodeid.startswith("tests/browser/"),
            item.nodeid.startswith("tests/relcore/"),
        )
    )


@pytest.fixture(scope="session")
def shared_queue(tmp_path_factory):
    """A job queue of one worker for all tests of this process that need no job queue of their own: to start one
    takes seconds.

    A test takes it through `one_worker`, or gives it a store of its own with `monkeypatch`.
    """
    from relcore.runs.jobs import JobQueue
    from relcore.runs.store import Store

    queue = JobQueue(n_workers=1, store=Store(tmp_path_factory.mktemp("queue")))
    yield queue
    queue.close()


@pytest.fixture(scope="session")
def two_workers(tmp_path_factory):
    """A job queue of two workers for files that kill or cancel what runs; each file gives it a store of its own."""
    from relcore.runs.jobs import JobQueue
    from relcore.runs.store import Store

    queue = JobQueue(n_workers=2, store=Store(tmp_path_factory.mktemp("two")))
    yield queue
    queue.close()


@pytest.fixture
def one_worker(shared_queue, monkeypatch, tmp_path):
    """The job queue of one worker, with a store of the test's own and no job of another test."""
    from relcore.runs.store import Store

    monkeypatch.setattr(shared_queue, "store", Store(tmp_path / "store"))
    monkeypatch.setattr(shared_queue, "_jobs", {})
    return shared_queue


@pytest.fixture(scope="session")
def browser() -> Iterator:
    """One Chromium for all tests of this process: Playwright runs once in a thread."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="the browser tests need playwright: pip install playwright"
    )
    from tests.browser.chromium import FLAGS, find_chromium

    path = find_chromium()
    if path is None:
        pytest.skip(
            "no Chromium found: install one, run `playwright install chromium`, or set RELSCOPE_CHROMIUM to"
            " its path"
        )
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def context(browser):
    """One context for the pages of all tests, so that they find scripts and fonts in its cache."""
    context = browser.new_context(
        viewport={"width": 1360, "height": 900}, accept_downloads=True, reduced_motion="reduce"
    )
    context.set_default_timeout(120_000)
    context.new_page()  # stays open: a tab costs half of the window that would open after the last page closed
    return context


@pytest.fixture
def page(context) -> Iterator:
    """A page without cookie, storage or session of another test; errors of its scripts fail the test."""
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    for one in context.pages[1:]:
        if one.url.startswith("http"):
            one.evaluate("localStorage.clear()")
        one.close()
    context.clear_cookies()
    assert not errors, errors
