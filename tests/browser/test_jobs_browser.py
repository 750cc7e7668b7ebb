import re

import pytest

from tests.browser.panes import settle

NETWORK = "MLP 64, state 0 · digits"


@pytest.fixture
def encoding(page, app):
    page.goto(f"{app}/spaces")  # as an earlier version called it
    page.get_by_text("Bundled", exact=True).click()
    page.get_by_text("Texts and pictures", exact=True).click()
    page.get_by_role("button", name="Encode and compare").wait_for()
    settle(page)
    return page


def begin(page):
    for name in ("Small networks, trained here", "Pixels and edges"):
        page.get_by_role("button", name=name).or_(page.get_by_role("checkbox", name=name)).first.click()
        settle(page)
    page.get_by_text("Settings of the encoders").click()
    page.get_by_role("button", name="Clear all").filter(visible=True).click()
    page.get_by_role("combobox", name="Architectures").fill("MLP")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")  # while its list is open, the rest is hidden from readers
    page.get_by_role("spinbutton", name="Epochs").fill("1000")  # it lasts until it is stopped
    page.keyboard.press("Enter")
    settle(page)
    page.locator(".st-key-encode-start button").click()


def epoch(page):
    bar = page.get_by_text(re.compile(rf"{NETWORK}: epoch \d+ of"))
    bar.wait_for()
    return int(re.search(r"epoch (\d+) of", bar.inner_text())[1])


def stop(page):
    page.get_by_test_id("stMain").get_by_role("button", name="Stop").click()  # not Streamlit's, in the header
    page.get_by_text(f"{NETWORK}: stopped").wait_for()
    settle(page)


@pytest.mark.slow
def test_a_job_outlives_pages_and_reloads(encoding):
    page = encoding
    begin(page)
    first = epoch(page)
    page.get_by_role("link", name="Explore").click()
    page.get_by_role("heading", name="What do you have?").wait_for(state="detached")
    page.get_by_role("button", name="Data").click()
    assert epoch(page) >= first
    page.reload()
    assert epoch(page) >= first
    stop(page)
    page.get_by_role("button", name="Again", exact=True).click()
    epoch(page)
    stop(page)
    page.get_by_role("button", name="Dismiss").click()
    page.get_by_text(f"{NETWORK}: stopped").wait_for(state="detached")
