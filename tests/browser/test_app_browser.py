import re
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from relcore.figures.export import read_recipe
from relcore.figures.style import DARK, LIGHT
from tests.browser.panes import (
    PLACES,
    ROOT,
    keys,
    lasso,
    opened,
    pixels,
    says,
    settle,
    star,
    unchanged,
    views,
    wait_for,
    wait_for_other,
    zoom,
)


@pytest.fixture
def compare(watched, app):
    return opened(watched, f"{app}/?panes=absolute,relative")


@pytest.fixture
def small(watched, own):
    return opened(watched, f"{own[0]}/explore?panes=absolute,relative&anchors=random,60,0")


def inspected(page):
    return page.locator(".relscope-word").inner_text()


def wait_until_inspected(page, text):
    page.wait_for_function("text => document.querySelector('.relscope-word')?.innerText === text", arg=text)
    settle(page)


def wait_until_selected(page, n):
    page.locator(".relscope-word").filter(has_text=f"{n:,} selected").wait_for()


def n_anchors(page, number):
    page.locator(".st-key-toolbar-anchors").get_by_text(f"{number} anchors", exact=True).wait_for()


def press(page, verb):
    """Click undo or redo; Streamlit keeps a hidden copy of buttons with a tooltip."""
    page.locator(f".st-key-history-{verb} button").filter(visible=True).click()


def go_to(page, title):
    page.get_by_test_id("stTopNavLink").get_by_text(title, exact=True).click()
    page.wait_for_function(
        "title => document.querySelector('h2.relscope-unseen')?.innerText === title", arg=title
    )
    settle(page)


def download(page, label):
    page.locator(".st-key-export-explore button").click()
    menu = page.get_by_test_id("stPopoverBody")
    menu.get_by_role("button", name=label).filter(visible=True).wait_for()
    settle(page)  # a click is lost if a rerun replaces the button
    with page.expect_download() as expected:
        menu.get_by_role("button", name=label).filter(visible=True).click()
    page.keyboard.press("Escape")
    assert expected.value.suggested_filename.startswith("relscope-panes-")
    return Path(expected.value.path()).read_bytes()


def a_word_under_the_pointer_is_ringed_in_every_map(page):
    maps = page.locator("svg[role=img]")
    maps.nth(5).wait_for()
    point = maps.nth(0).locator("circle:not(.ring)").nth(100)
    assert point.evaluate("point => getComputedStyle(point).transitionDuration") == "0s"  # reduced motion
    point.hover(force=True)
    page.locator(".ring.on").nth(5).wait_for()
    assert len(set(page.locator(".tip.on").all_inner_texts())) == 1
    assert maps.count() == page.locator(".tip.on").count() == 6
    page.mouse.move(2, 2)
    page.locator(".ring.on").first.wait_for(state="detached")


def test_every_place_opens_fits_and_is_left_by_back(small):
    page = small
    (*places, first) = PLACES
    for title in (first, *places):
        if title != first:
            go_to(page, title)
        assert page.get_by_test_id("stException").count() == 0, title
        assert page.get_by_test_id("stAlertContentError").count() == 0, title
        main = page.get_by_test_id("stMain")
        assert len(main.inner_text().strip()) > 100, title
        assert main.evaluate("main => main.scrollWidth <= main.clientWidth"), title
        levels = page.evaluate(
            "[...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map(one => +one.tagName[1])"
        )
        assert all(level <= above + 1 for above, level in pairwise([0, *levels])), (title, levels)
        if title == "Start":
            a_word_under_the_pointer_is_ringed_in_every_map(page)
    page.go_back(wait_until="commit")
    page.locator("h2.relscope-unseen").filter(has_text=places[-2]).wait_for(state="attached")


@pytest.mark.slow
def test_a_walk_by_keyboard_opens_every_place(page, app):
    for title, place in (*zip(PLACES, PLACES, strict=True), ("Open your data", "Data")):
        page.goto(app)
        settle(page)
        for _ in range(15):
            page.keyboard.press("Tab")
            focused = page.evaluate_handle("document.activeElement").as_element()
            if focused.inner_text().strip().endswith(title):
                break
        assert focused.inner_text().strip().endswith(title), f"{title} is within 15 presses of Tab"
        look = focused.evaluate(
            "one => [getComputedStyle(one).outlineStyle, getComputedStyle(one).boxShadow]"
        )
        assert look != ["none", "none"], title
        page.keyboard.press("Enter")
        page.wait_for_function(
            "place => document.querySelector('h2.relscope-unseen')?.innerText === place", arg=place
        )


def test_the_switch_changes_axes_and_a_term_opens(watched, own):
    page = opened(watched, f"{own[0]}/?panes=own")
    shown = set()
    switches = {"": "own axes", "Shared axes": "shared axes", "Relative to anchors": "relative"}
    for position, title in switches.items():
        if position:
            page.get_by_test_id("stRadioOption").filter(has_text=position).click()
        page.locator(".ls-title").filter(has_text=f"· {title}").nth(1).wait_for()
        settle(page)
        assert page.locator(".ls-points").count() == 2
        shown.add(pixels(page, 1))
    assert len(shown) == 3
    address = page.evaluate("[location.href, history.length]")
    card = page.get_by_role("dialog", name="Anchor")
    page.locator(".relscope-lead a").filter(has_text="anchors").focus()
    page.keyboard.press("Enter")
    card.locator("svg").filter(visible=True).wait_for()
    assert "Moschella" in card.inner_text()
    card.get_by_text("All terms").click()
    assert page.locator(".relscope-glossary article").filter(visible=True).count() > 25
    page.keyboard.press("Escape")
    assert page.locator(".relscope-glossary").is_hidden()
    assert page.evaluate("document.activeElement.hash") == "#what-anchor"
    assert page.evaluate("[location.href, history.length]") == address


def test_a_brush_selects_and_a_click_inspects(small):
    page = small
    titles = ["a · shared axes", "b · shared axes", "a · relative", "b · relative"]
    assert page.locator(".ls-title").all_text_contents() == titles
    colour = page.get_by_test_id("stApp").evaluate("element => getComputedStyle(element).backgroundColor")
    assert colour == f"rgb{tuple(bytes.fromhex(LIGHT.surface[1:]))}"  # the theme of the app in any folder
    n_anchors(page, 60)
    wait_until_selected(page, lasso(page))
    keys(page, "Escape")
    wait_for(page, "selected", 0)
    settle(page)
    default = inspected(page)
    page.mouse.click(*star(page, 2, 1))
    page.wait_for_function(
        "text => document.querySelector('.relscope-word')?.innerText !== text", arg=default
    )
    identifier = inspected(page)
    neighbours = page.locator(".relscope-neighbours ol")
    # while the page is drawn again, the former lists are still there
    page.wait_for_function(
        "() => [...document.querySelectorAll('.relscope-neighbours ol')].map(list => list.children.length).join() === '10,10'"
    )
    assert identifier not in neighbours.first.inner_text().split("\n")
    for mark in (".relscope-neighbours li.shared", "table.relscope-scores td i"):
        colour = page.locator(mark).first.evaluate("element => getComputedStyle(element).backgroundColor")
        assert colour != "rgba(0, 0, 0, 0)", mark
    page.get_by_test_id("stMain").get_by_role("button", name="Remove anchor").click()  # a star is an anchor
    n_anchors(page, 59)
    page.get_by_role("button", name="Add as anchor").click()
    n_anchors(page, 60)
    settle(page)
    page.keyboard.press("Control+z")
    n_anchors(page, 59)
    press(page, "undo")
    n_anchors(page, 60)
    press(page, "redo")
    n_anchors(page, 59)
    settle(page)
    page.keyboard.press("Control+y")
    n_anchors(page, 60)
    assert inspected(page) == identifier


def search(page, text):
    box = page.locator(".st-key-inspector-search input")
    box.fill(text)
    page.locator(".st-key-inspector-search li", has_text=re.compile(f"^{text}")).first.wait_for()
    settle(page)
    return box


@pytest.mark.slow
def test_rows_are_picked_from_completions_and_lists_of_neighbours(compare):
    page = compare
    box = search(page, "mount")
    page.locator(".st-key-inspector-search li", has_text=re.compile("^mountain$")).click()
    wait_until_inspected(page, "mountain")
    assert box.get_attribute("aria-expanded") == "false"
    assert page.locator(".st-key-history-undo button").first.is_disabled()  # a selection is no step
    neighbour = page.locator(".relscope-neighbours li button").first
    identifier = neighbour.locator("b").inner_text()
    neighbour.focus()
    page.keyboard.press("Enter")
    wait_until_inspected(page, identifier)
    box = search(page, "mount")
    entries = page.locator(".st-key-inspector-search li b").all_inner_texts()
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "Enter"):
        box.press(key)
    wait_until_inspected(page, entries[1])


@pytest.mark.slow
def test_a_query_is_answered_by_both_models(compare):
    page = compare
    box = page.locator(".st-key-inspector-search input")
    box.fill("gold and silver coins")
    box.press("Enter")  # before the list is there
    page.locator(".relscope-found li").first.wait_for()
    settle(page)
    listed = page.locator(".relscope-found li button b").all_inner_texts()
    assert {"silver", "coins"} <= set(listed)
    wait_for(page, "selected", len(listed))
    single = page.locator(".relscope-found em").count()
    assert 0 < single < len(listed)
    assert page.locator(".ls-ring.ls-dashed").count() == single * page.locator(".ls-pane").count()
    page.locator(".relscope-found button").first.click()
    page.locator(".st-key-inspector-back button").click()
    page.locator(".relscope-found li").first.wait_for()


@pytest.mark.slow
def test_zoom_brush_and_focus_outlive_a_change(compare):
    page = compare
    n = lasso(page, pane=1)
    wait_until_selected(page, n)
    page.get_by_role("button", name="Use only these as anchors").click()
    n_anchors(page, n)
    settle(page)
    zoom(page, 0, clicks=4)
    zoom(page, 3, clicks=2)
    zoomed = views(page)
    drawn = says(page, "drawn")
    assert zoomed[0][2] > zoomed[3][2] > zoomed[1][2] == 1
    page.locator(".st-key-toolbar-anchors button").click()
    menu = page.get_by_test_id("stPopoverBody")
    menu.get_by_text("Method details").click()
    menu.get_by_text("Centre first").click()
    wait_for_other(page, "drawn", drawn)
    settle(page)
    assert unchanged(page, drawn) == [True, True, False, False]
    assert views(page) == zoomed
    page.keyboard.press("Escape")
    wait_for(page, "selected", n)
    page.get_by_role("tab", name="Anchors").click()
    field = page.get_by_placeholder("river, mountain, sea")
    field.fill("wolves, qzxqzx")
    field.press("Enter")
    n_anchors(page, n + 1)
    settle(page)
    assert field.evaluate("field => field === document.activeElement"), "the next word could be typed"


@pytest.mark.slow
def test_two_sessions_are_apart_and_figures_have_a_recipe(browser, compare, app):
    light = compare
    context = browser.new_context(color_scheme="dark", accept_downloads=True)
    dark = opened(context.new_page(), f"{app}/explore")
    wait_for(dark, "theme", "dark")
    assert says(light, "theme") == "light"
    brightness = [
        np.asarray(Image.open(BytesIO(page.screenshot())).convert("L")).mean() for page in (light, dark)
    ]
    assert brightness[0] > 200
    assert brightness[1] < 60
    n = lasso(light)
    for page, theme in ((light, LIGHT), (dark, DARK)):
        exported = re.search(r"body \{ background: (#\w+)", download(page, "HTML").decode())
        assert exported[1] == theme.surface
    light.get_by_role("button", name="Use only these as anchors").click()
    n_anchors(light, n)
    dark.get_by_role("button", name="Add as anchor").click()
    n_anchors(dark, 301)
    wait_for(dark, "selected", 0)
    settle(light)
    files = {label: download(light, label) for label in ("PDF", "Recipe", "CSV")}
    assert files["PDF"].startswith(b"%PDF")
    recipe = read_recipe(files["PDF"])
    assert recipe == read_recipe(files["Recipe"])
    assert len(recipe["anchors"]) == n
    assert files["CSV"].count(b"\n") > 500
    context.close()


@pytest.mark.slow
def test_a_cell_of_a_stitching_shows_its_confusion(page, app):
    page.goto(f"{app}/stitch")
    page.get_by_role("button", name="Method details").click()
    page.get_by_role("button", name=re.compile("Train them here")).click()
    page.keyboard.press("Escape")
    page.get_by_text("Best of 6 methods").first.wait_for()
    cells = page.locator(".js-plotly-plot").first.locator(".heatmaplayer image")
    cells.nth(5).wait_for()  # of the last of six methods
    settle(page)
    cells.first.scroll_into_view_if_needed()
    for row, column, encoder, head in ((1, 2, "CNN", "Residual CNN"), (3, 0, "ViT", "MLP")):
        box = cells.first.bounding_box()
        x = box["x"] + box["width"] * (column + 0.5) / 4
        y = box["y"] + box["height"] * (row + 0.5) / 4
        page.mouse.click(x, y)
        page.get_by_text(f"{encoder} → classifier of {head}", exact=True).wait_for()
        settle(page)
    method = page.get_by_role("combobox", name=re.compile("^Method")).input_value()
    page.locator(".js-plotly-plot").first.get_by_text(f"{method} · best", exact=True).wait_for()
    assert page.get_by_role("combobox", name=re.compile("^Encoder$|^Encoder ")).input_value() == "ViT"
    assert page.locator(".js-plotly-plot").nth(1).locator(".heatmaplayer image").count() == 2


def test_a_reason_colours_its_rows_in_every_pane_and_ends_with_a_second_click(small):
    page = small
    page.get_by_role("tab", name="Why they differ").click()
    page.get_by_placeholder("such as ing").fill("r1")
    page.keyboard.press("Enter")
    reason = page.locator(".st-key-explain-open-own-0 button")
    reason.wait_for()
    settle(page)
    before = [pixels(page, pane) for pane in range(4)]
    reason.click()
    page.locator(".relscope-examples .relscope-neighbours").first.wait_for()
    page.wait_for_function("root => Number(document.querySelector(root).dataset.selected) > 0", arg=ROOT)
    settle(page)
    assert int(says(page, "selected")) == 111  # r1, r10 to r19, and r100 to r199
    assert all(pixels(page, pane) != before[pane] for pane in range(4))
    reason.click()
    wait_for(page, "selected", 0)
