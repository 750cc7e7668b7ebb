import pytest

from tests.browser.conftest import N
from tests.browser.panes import at_rest, drag, opened, settle

ABOVE = (".st-key-toolbar-row", ".st-key-headline", ".st-key-idea", ".ls-toolbar")
ZOOMED = (720, 450)  # 1,440 × 900 at 200 %
ARROWS = 24  # pixels that the arrows below the scores take after a change of anchors
SIZES = [ZOOMED, (1440, 900), (1440, 1000), (1280, 720), (1920, 1080), (390, 844)]


@pytest.mark.slow
def test_a_filter_comes_back_with_the_link(page, own):
    url, _ = own
    opened(page, f"{url}/explore?panes=own&all=1")
    closed = page.locator(".ls-grid").bounding_box()
    page.locator("[data-tool=filter]").click()
    page.locator("[data-column='source norm'] input").first.wait_for()
    settle(page)
    fills = "[...document.querySelectorAll('.ls-body')].map((star) => star.getAttribute('fill'))"
    colored = page.evaluate(fills)
    beside = page.locator(".ls-grid").bounding_box()
    assert beside["x"] + beside["width"] < page.locator(".ls-filter").bounding_box()["x"]  # covers no map
    assert beside["width"] < closed["width"]
    low = page.locator("[data-column='source norm'] input").first
    low.focus()
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    kept = page.locator(".ls-kept").inner_text()
    assert 0 < int(kept.split()[0]) < N
    page.wait_for_function("location.search.includes('filter=')")
    settle(page)
    assert page.evaluate(fills) != colored
    drag(page, 0, [(0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98)])
    settle(page)
    status = page.locator(".ls-status").inner_text()
    assert status == f"{kept.split()[0]} selected"
    page.keyboard.press("Escape")
    page.locator(".ls-filter").wait_for(state="hidden")
    assert page.locator(".ls-status").inner_text() == status
    mark = page.locator(".ls-filtered")
    assert mark.is_visible()
    assert f"Filter: {kept.split()[0]} of {N}" in mark.inner_text()
    assert "scores are of all rows" in mark.inner_text()
    button = page.locator("[data-tool=filter]")  # says that a closed filter still filters
    assert button.inner_text().split() == ["Filter", "1"]
    assert button.get_attribute("aria-label").endswith("; 1 condition holds")
    unlike = page.locator("[data-tool=density]")
    color = "(one) => getComputedStyle(one).color"
    assert button.evaluate(color) != unlike.evaluate(color)
    opened(page, page.evaluate("location.href"))
    assert page.locator(".ls-kept").inner_text() == kept
    page.get_by_role("button", name="Clear the filters").click()
    assert not mark.is_visible()
    assert page.evaluate(fills) == colored  # at once
    assert page.locator(".ls-kept").inner_text() == f"Counted: {N} rows."
    assert button.inner_text().split() == ["Filter"]
    assert "holds" not in button.get_attribute("aria-label")


@pytest.mark.slow
def test_panes_headline_controls_and_scores_are_in_sight(page, own):
    opened(page, f"{own[0]}/explore?panes=absolute,relative")
    heights = {}
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        settle(page)
        at_rest(page, ".ls-grid")
        panes = [pane.bounding_box() for pane in page.locator(".ls-pane").all()]
        assert len(panes) == 4
        controls = [page.locator(selector).first.bounding_box() for selector in ABOVE]
        if height >= 900 and width > 480:
            scores = page.locator(".st-key-effect").bounding_box()
            controls.append(scores | {"height": scores["height"] + ARROWS})
        if (width, height) == ZOOMED:
            assert panes[0]["y"] < height
            choices = page.locator(".st-key-idea [data-testid=stRadioOption]").all()
            assert len({round(one.bounding_box()["y"]) for one in choices}) == 1, "the switch is one line"
            continue
        in_sight = panes[:2] if width < 480 else panes  # on a phone the second row is a scroll away
        for box in [*controls, *in_sight]:
            assert box["x"] >= 0, (width, height)
            assert box["x"] + box["width"] <= width, (width, height)
            assert box["y"] + box["height"] <= height, (width, height)
        assert all(min(pane["width"], pane["height"]) >= 150 for pane in panes)
        assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= width
        heights[height] = page.locator(".ls-grid").bounding_box()["height"]
    assert heights[1000] == heights[900] + 100  # the panes take the height of a window that grows


@pytest.mark.slow
def test_a_tag_is_typed_at_once_and_a_chosen_pole_closes_its_list(page, own):
    opened(page, f"{own[0]}/explore?panes=own&all=1")
    drag(page, 0, [(0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98)])
    settle(page)
    page.get_by_role("button", name="Tag").first.click()
    page.wait_for_function("document.activeElement.placeholder === 'Name of the tag'")
    page.keyboard.type("mine")
    page.locator("[data-testid=stPopoverButton][aria-expanded=true]").first.focus()
    page.keyboard.press("Enter")  # closes no menu with a name in it
    assert page.evaluate("document.activeElement.value") == "mine"
    page.keyboard.press("Enter")
    page.get_by_text("tagged “mine”").wait_for()
    page.keyboard.press("Escape")
    tab = page.get_by_role("tab", name="Axis")
    tab.click()
    tab.evaluate("(one) => one.scrollIntoView()")  # scrolling closes a list
    poles = page.locator(".st-key-axis-poles")
    poles.get_by_role("combobox").first.fill("Tag")
    page.get_by_role("option", name="Tag: mine").click()
    poles.get_by_text("Tag: mine").wait_for()
    page.wait_for_function("!document.querySelector('[role=option]')")
