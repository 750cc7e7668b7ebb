"""The session survives a reload of the page, and a server that is killed and started with another token."""

import os
import signal
import subprocess
import sys

import pytest

from tests.browser.chromium import wait_until_healthy
from tests.browser.conftest import ROOT
from tests.browser.panes import opened, settle
from tests.loopback import free_port


@pytest.fixture
def server(tmp_path):
    """``server() -> link`` starts the app. If it runs already, it is killed first, and ``server(killed)``
    then calls `killed`."""
    port = free_port()
    running = []
    printed = tmp_path / "printed"

    def start(killed=lambda: None):
        for process in running:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            killed()
        command = [sys.executable, "-m", "relcore", "app", "--no-browser", f"--port={port}"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "RELSCOPE_STORE": str(tmp_path / "store")}
        with printed.open("w") as output:
            running[:] = [subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=output)]
        wait_until_healthy(running[0], f"http://127.0.0.1:{port}")
        return printed.read_text().split()[-1]

    yield start
    running[0].kill()
    running[0].wait()


def shown(page):
    page.wait_for_selector(".ls-root[data-drawn]")
    settle(page)
    return {
        "page": page.url.split("?")[0],
        "undo": [
            page.locator(f".st-key-history-{verb} button:enabled").count() > 0 for verb in ("undo", "redo")
        ],
        "anchors": page.locator(".st-key-toolbar-anchors").inner_text(),
        "selected": page.locator("button", has_text="selected").all_inner_texts(),
    }


def number_of_anchors(page, number):
    page.locator(".st-key-toolbar-anchors button").click()
    box = page.locator("input[aria-label='Number of anchors']")
    box.fill(str(number))
    box.press("Enter")
    page.wait_for_selector(f"text={number} anchors")
    page.keyboard.press("Escape")
    settle(page)


@pytest.mark.slow
def test_f5_and_a_killed_server_lose_nothing(page, server):
    opened(page, server().replace("/?", "/anchors?"))
    for number in (120, 80, 60):
        number_of_anchors(page, number)
    page.locator(".st-key-history-undo button").first.click()
    page.wait_for_selector("text=80 anchors")
    settle(page)
    box = page.locator("input[aria-label='Add anchors by name']")
    box.fill("river")
    box.press("Enter")
    page.wait_for_selector("text=81 anchors")
    before = shown(page)
    assert before["undo"] == [True, False]
    page.reload()
    assert shown(page) == before
    server(page.get_by_role("heading", name="Relscope was stopped").wait_for)
    page.reload()
    assert shown(page) == before
    for number in (80, 120, 300):
        page.locator(".st-key-history-undo button").first.click()
        page.wait_for_selector(f"text={number} anchors")
        settle(page)
    assert shown(page)["undo"] == [False, True]
