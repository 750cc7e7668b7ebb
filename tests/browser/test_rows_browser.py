"""Rows found while one types, and neighbours that are links: what is picked is selected, and the steps
after it are undone.
"""

import re

import pytest

from tests.browser.panes import settle


@pytest.fixture
def compare(page, serve, tmp_path_factory):
    page.goto(serve("app/main.py", env={"RELSCOPE_STORE": str(tmp_path_factory.mktemp("store"))}))
    page.wait_for_selector(".ls-root[data-drawn]")
    settle(page)
    return page


def inspected(page):
    return page.locator(".relscope-word").inner_text()


def wait_until_inspected(page, identifier):
    page.wait_for_function("id => document.querySelector('.relscope-word')?.innerText === id", arg=identifier)
    settle(page)


def search(page, text):
    """Type, and wait for the matches of just this text."""
    box = page.locator(".st-key-inspector-search input")
    box.fill(text)
    page.locator(".st-key-inspector-search li", has_text=re.compile(f"^{text}")).first.wait_for()
    settle(page)
    return box


def neighbour(page):
    """The first neighbour in the source that is not inspected now, and its id."""
    found = page.locator(".relscope-neighbours ol").first.locator("li").first
    return found, found.locator("b").inner_text()


def change_anchor_and_undo(page, identifier):
    """Make the inspected row an anchor, or no longer one, and take it back: the row stays selected."""
    undo, change = (
        page.locator(".st-key-history-undo button").first,
        page.locator(".st-key-inspector-anchor button").first,
    )
    assert undo.is_disabled()  # a selection is no step
    before = change.inner_text()
    change.click()
    page.wait_for_function(
        "before => ![before, undefined].includes(document.querySelector('.st-key-inspector-anchor"
        " button')?.innerText)",
        arg=before,
    )
    settle(page)
    assert inspected(page) == identifier
    undo.click()
    page.wait_for_function(
        "before => document.querySelector('.st-key-inspector-anchor button')?.innerText === before",
        arg=before,
    )
    settle(page)
    assert inspected(page) == identifier
    assert undo.is_disabled()


def test_a_completion_that_is_clicked_is_selected_and_a_step_after_it_is_undone(compare):
    box = search(compare, "mount")
    entry = compare.locator(".st-key-inspector-search li", has_text=re.compile("^mountain$"))
    assert inspected(compare) != "mountain"
    entry.click()
    wait_until_inspected(compare, "mountain")
    assert box.get_attribute("aria-expanded") == "false"
    change_anchor_and_undo(compare, "mountain")


def test_the_keys_choose_a_completion(compare):
    box = search(compare, "mount")
    entries = compare.locator(".st-key-inspector-search li b").all_inner_texts()
    box.press("ArrowDown")
    box.press("ArrowDown")
    box.press("ArrowUp")
    box.press("Enter")
    wait_until_inspected(compare, entries[1])


def test_a_neighbour_that_is_clicked_is_selected_and_a_step_after_it_is_undone(compare):
    search(compare, "mountain").press("Enter")
    wait_until_inspected(compare, "mountain")
    link, identifier = neighbour(compare)
    assert identifier != "mountain"
    link.click()
    wait_until_inspected(compare, identifier)
    change_anchor_and_undo(compare, identifier)
    link, further = neighbour(compare)
    link.focus()
    compare.keyboard.press("Enter")
    wait_until_inspected(compare, further)
