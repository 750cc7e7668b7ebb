"""An encoding in a real Chromium: begun, left, found again after a reload, stopped, and chosen in the
sidebar.
"""

from __future__ import annotations

import re

import pytest

from tests.browser.panes import settle

NETWORK = "MLP 64, state 0 · digits"


@pytest.fixture(scope="module")
def url(serve, tmp_path_factory):
    return serve(
        "app/main.py", env={"RELSCOPE_STORE": str(tmp_path_factory.mktemp("store")), "RELSCOPE_DATA": ""}
    )


@pytest.fixture
def encode_tab(page, url):
    """The Spaces page with 300 digits and one small network chosen."""
    page.goto(f"{url}/spaces")
    page.get_by_role("tab", name="Encode", exact=True).click()
    page.get_by_role(
        "button", name="Add to the session"
    ).wait_for()  # all digits in the usual networks come with Relscope
    settle(page)
    fill(page, "Maximum number of items", 300)
    page.get_by_text("300 pictures").wait_for()
    page.get_by_role("button", name="Clear all").click()
    page.get_by_text("Choose one encoder or more.").wait_for()
    page.get_by_role("combobox", name="Architectures").fill("MLP")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")  # while its list is open, the rest is hidden from readers
    page.get_by_text(re.compile("MLP 64, state 0: about")).wait_for()
    return page


def fill(page, name, number):
    page.get_by_role("spinbutton", name=name).fill(str(number))
    page.keyboard.press("Enter")
    settle(page)


def begin(page, epochs):
    fill(page, "Epochs", epochs)
    page.get_by_role("button", name="Encode", exact=True).click()


def epoch(page):
    """The epoch that the bar shows, once it shows one."""
    told = page.get_by_text(re.compile(rf"{NETWORK}: epoch \d+ of"))
    told.wait_for()
    return int(re.search(r"epoch (\d+) of", told.inner_text())[1])


def test_an_encoding_is_found_again_after_a_page_switch_and_a_reload_and_ends_in_the_sidebar(encode_tab):
    page = encode_tab
    begin(page, 1000)
    first = epoch(page)
    page.locator(".st-key-encode-live .js-plotly-plot").first.wait_for()
    page.get_by_role("link", name="Compare").click()
    page.get_by_role("tab", name="Encode", exact=True).wait_for(state="detached")
    page.get_by_role("link", name="Spaces").click()  # the tab opens by itself
    assert epoch(page) >= first
    page.reload()
    assert epoch(page) >= first
    page.get_by_text("Started in another window, or before this page was reloaded").wait_for()
    page.get_by_role("button", name="Add to this session").click()
    told = page.get_by_test_id("stAlertContentSuccess").get_by_text(
        f"{NETWORK} joined the session."
    )  # a notice, too
    told.wait_for()  # eleven seconds of a free core
    page.locator(".st-key-encode-training .js-plotly-plot").wait_for()
    page.get_by_role("combobox", name=re.compile("Source")).click()
    page.get_by_role("option", name=NETWORK).click()
    settle(page)
    assert page.get_by_role("combobox", name=re.compile("Source")).input_value() == NETWORK


def test_stop_stops_and_again_begins_again(encode_tab):
    page = encode_tab
    begin(page, 999)
    epoch(page)
    page.get_by_test_id("stMain").get_by_role(
        "button", name="Stop"
    ).click()  # not that of Streamlit, in the header
    page.get_by_text(f"{NETWORK}: stopped").wait_for()
    settle(page)
    page.get_by_role("button", name="Again", exact=True).click()
    epoch(page)
    page.get_by_test_id("stMain").get_by_role(
        "button", name="Stop"
    ).click()  # not that of Streamlit, in the header
    page.get_by_text(f"{NETWORK}: stopped").wait_for()
    settle(page)
    page.get_by_role("button", name="Dismiss").click()
    page.get_by_text(f"{NETWORK}: stopped").wait_for(state="detached")
