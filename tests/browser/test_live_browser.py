import json
from itertools import pairwise

import numpy as np
import pytest

from tests.browser.panes import (
    ROOT,
    at_rest,
    draw,
    hear,
    heard,
    hold_star,
    keys,
    opened,
    pixels,
    says,
    scene,
    settle,
    star,
    unchanged,
    views,
    wait_for,
    wait_for_other,
    zoom,
)

STAR_POINTS = """Array.from(document.querySelectorAll(".ls-plot"), (plot) =>
  Array.from(plot.querySelectorAll(".ls-star .ls-body"), (one) => one.getAttribute("points")))"""
BARS = ".relscope-bars[data-row] > div"


@pytest.fixture
def page(watched):
    return watched


def few(page, app, query="panes=absolute,relative&anchors=random,8,0"):
    hear(opened(page, f"{app}/explore?{query}"))


def undo_buttons(page):
    return page.locator(".st-key-history-undo button:enabled").filter(visible=True).count()


def spoken(page, words):
    begins = "words => document.querySelector('.ls-spoken').textContent.startsWith(words)"
    page.wait_for_function(begins, arg=words)


def test_maps_and_scores_follow_hand_and_keys(page, own):
    def shown():
        return page.locator(".relscope-live:visible").inner_text(), page.locator(BARS).all_inner_texts()

    few(page, own[0])
    drawn = says(page, "drawn")
    begun = page.evaluate(STAR_POINTS)
    before = shown()
    browser = page.context.browser
    browser.start_tracing(page=page, categories=["devtools.timeline"])
    hold_star(page)
    heard(page, "drawn", "scores")
    traced = json.loads(browser.stop_tracing())["traceEvents"]
    styled = [one["args"].get("elementCount", 0) for one in traced if one["name"] == "UpdateLayoutTree"]
    assert 0 < np.median(styled) < 200, "a rule with :has() may style the page again with each movement"
    assert undo_buttons(page) == 0  # the page has not run
    assert says(page, "drawn") == drawn
    followed = page.evaluate(STAR_POINTS)
    live = shown()
    assert page.locator(".ls-near circle").count() == 40  # ten in each pane
    assert live[1] != before[1]
    strip = page.locator(".ls-live").bounding_box()
    for heading in page.locator(".ls-heading").all():
        box = heading.bounding_box()
        assert strip["y"] + strip["height"] <= box["y"] or box["y"] + box["height"] <= strip["y"]
    assert followed[2][1:] == begun[2][1:], "nothing moves under the pointer"
    assert followed[3] != begun[3]
    page.mouse.up()
    wait_for_other(page, "drawn", drawn)
    settle(page)
    assert unchanged(page, drawn)[2:] == [False, False]
    spoken(page, "Anchor 1 moved from")
    assert shown() == live  # as the page computes them
    assert page.locator(".ls-near circle").count() == 0
    assert undo_buttons(page) == 1
    stars, before = (
        [float(x) for x in ",".join(maps[3]).replace(" ", ",").split(",")]
        for maps in (page.evaluate(STAR_POINTS), followed)
    )
    assert max(abs(a - b) for a, b in zip(stars, before, strict=True)) < 2  # pixels: the page draws the same
    page.keyboard.press("Control+z")
    wait_for(page, "drawn", drawn)
    settle(page)
    assert undo_buttons(page) == 0
    # Escape undoes a movement. The keyboard can move an anchor, too.
    page.evaluate("heard.length = 0")
    begun = page.evaluate(STAR_POINTS)
    before = shown()
    keys(page, "s")
    spoken(page, "Anchor 1")
    keys(page, "ArrowRight", "ArrowDown")
    heard(page, "scores")
    assert page.evaluate(STAR_POINTS) != begun
    page.keyboard.press("Escape")
    page.wait_for_function(f"before => `${{{STAR_POINTS}}}` === `${{before}}`", arg=begun)
    assert shown() == before
    keys(page, "s", "ArrowLeft", "Enter")
    spoken(page, "Anchor 2 moved")
    page.locator(".st-key-history-undo button:enabled").filter(visible=True).first.wait_for()


@pytest.mark.slow
def test_three_models_are_hovered_dragged_and_zoomed_as_one(page, own):
    few(page, own[0], "panes=relative&anchors=random,8,0&all=1")
    page.locator(".st-key-models-add-2 button").first.click()
    page.locator(".st-key-models-choose-0 button").click()
    wait_for(page, "panes", 3)
    settle(page)
    page.mouse.move(*star(page, 2, 4))
    page.wait_for_selector(".ls-tip:not([hidden])")
    assert page.locator(".ls-ring[visibility=visible]").count() == 3
    drawn = says(page, "drawn")
    hold_star(page)
    page.wait_for_selector(".ls-live:has-text('(a and b)')")  # which two models the scores are of
    assert page.locator(".ls-near circle").count() == 30
    page.mouse.up()
    wait_for_other(page, "drawn", drawn)
    settle(page)
    assert not any(unchanged(page, drawn))
    page.get_by_label("Zoom all panes together").click()
    zoom(page, 1, 2)
    assert len(set(map(str, views(page)))) == 1
    page.locator(".st-key-models-remove-0 button").filter(visible=True).first.click()
    wait_for(page, "panes", 2)


def test_a_star_is_taken_or_says_why_not(panes):
    page = panes
    two = scene(300, panes=2)
    draw(page, two)
    page.mouse.move(*star(page, 0, 1))
    page.wait_for_selector(".ls-tip:not([hidden])")
    assert page.inner_text(".ls-tip .ls-words > span").endswith("anchor 1")
    assert page.locator(".ls-on-star").count() == 0
    draw(page, two, live={"name": "one", "panes": [0, 1], "many": 0, "spread": 8})
    page.wait_for_selector(".ls-on-star")  # under a pointer that rests
    page.mouse.move(2, 2)
    page.mouse.move(*star(page, 0, 1))
    page.wait_for_selector(".ls-tip:has-text('anchor 1 · drag to move')")
    page.mouse.down()
    page.mouse.move(*star(page, 0, 2), steps=5)
    page.mouse.up()
    page.wait_for_selector(".ls-hint:has-text('is an anchor already')")
    draw(page, two, live={"refused": "UMAP takes too long."})
    x, y = star(page, 0, 1)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 40, y + 40, steps=3)
    page.wait_for_selector(".ls-hint:has-text('UMAP takes too long.')")
    page.mouse.up()
    assert page.locator(".ls-spoken").inner_text() == "UMAP takes too long."
    keys(page, "s")
    assert page.locator(".ls-moving").count() == 0


@pytest.fixture
def finger(browser):
    """A page on a phone, and a function that moves one finger along points after a rest on the first one."""
    context = browser.new_context(viewport={"width": 390, "height": 800}, has_touch=True)
    page = context.new_page()
    browser_side = context.new_cdp_session(page)

    def slide(*points, lifts=False):
        def send(kind, *at):
            touched = [{"x": x, "y": y} for x, y in at]
            browser_side.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touched})

        send("touchStart", points[0])
        if lifts:
            page.wait_for_selector(".ls-plot.ls-lifted")
        for (fromX, fromY), (toX, toY) in pairwise(points):
            for share in np.linspace(0.1, 1, 10):
                send("touchMove", (fromX + share * (toX - fromX), fromY + share * (toY - fromY)))
        for _ in range(20):  # a finger that stops gives the page no swing
            send("touchMove", points[-1])
            page.evaluate("() => new Promise(requestAnimationFrame)")
        send("touchEnd")

    yield page, slide
    context.close()


def test_a_finger_scrolls_until_it_rests_on_a_star_or_a_tool_is_tapped(finger):
    page, slide = finger
    two = scene(300, panes=2)
    draw(page, two, live={"name": "one", "panes": [0, 1], "many": 0, "spread": 8})
    page.evaluate("document.body.style.height = '3000px'")
    x, y = star(page, 0, 1)
    slide((x, y), (x + 5, y - 200))
    page.wait_for_function("scrollY > 100")
    assert page.evaluate("window.events") == []
    at_rest(page)
    page.evaluate("scrollTo(0, 0)")
    slide((x, y), (x + 90, y))
    page.wait_for_selector(".ls-hint:has-text('Hold a star')")
    assert page.evaluate("[window.events, scrollY]") == [[], 0]
    to = page.evaluate("scatter.panes[0].nearestTo(150, 150)")
    box = page.locator(".ls-plot").first.bounding_box()
    slide((x, y), (x, y), (box["x"] + 150, box["y"] + 150), lifts=True)
    page.wait_for_function("window.events.length === 1")
    event = page.evaluate("window.events[0]")
    assert (event["kind"], event["row"], event["to"]) == ("anchor", 0, to)
    assert page.evaluate("scrollY") == 0
    page.tap("button[data-tool=box]")
    page.wait_for_selector(f"{ROOT}[data-touch=box] [data-tool=box][aria-pressed=true]")
    corners = [(box["x"] + share * box["width"], box["y"] + share * box["height"]) for share in (0.1, 0.9)]
    slide(*corners)
    page.wait_for_selector(f"{ROOT}:not([data-selected='0'])")
    assert page.evaluate("scrollY") == 0
    page.tap("button[data-tool=box]")
    slide((x, y + 100), (x, y - 100))
    page.wait_for_function("scrollY > 100")


def test_a_page_says_once_that_one_of_few_stars_can_be_dragged(context):
    page = context.new_page()
    live = {"name": "one", "panes": [0, 1], "many": 0, "spread": 8}

    def is_told(anchors, **settings):
        page.mouse.move(2, 2)
        draw(page, scene(300, panes=2, anchors=anchors), **settings)
        page.evaluate("scatter.hint.hidden = true")
        box = page.locator(".ls-plot").first.bounding_box()
        page.mouse.move(box["x"] + 20, box["y"] + 20)
        settled = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        page.evaluate(settled)
        return page.locator(".ls-hint:has-text('Drag a star')").filter(visible=True).count() == 1

    assert not is_told(8)
    assert not is_told(300, live={**live, "many": 300})
    assert is_told(8, live=live)
    assert not is_told(8, live=live)


def test_without_the_channel_the_maps_follow_the_release(page, own):
    page.route_web_socket("**/live?*", lambda socket: socket.close())
    few(page, own[0])
    drawn = says(page, "drawn")
    hold_star(page)
    heard(page, "lost")
    page.mouse.up()
    wait_for_other(page, "drawn", drawn)
    page.locator(".st-key-history-undo button:enabled").filter(visible=True).first.wait_for()


@pytest.mark.slow
def test_one_of_many_stars_is_dragged_with_the_lasso(page, app):
    few(page, app, "panes=absolute,relative&anchors=random,300,0")
    x, y = star(page, 2, 1)

    def drag_by(*ways):
        page.mouse.move(x, y)
        page.mouse.down()
        for across, down in ways:
            page.mouse.move(x + across, y + down, steps=4)
        page.mouse.up()

    drag_by((60, 0), (60, 60), (0, 60), (0, 0))  # a loop back to the star selects rows
    page.wait_for_selector(f"{ROOT}:not([data-selected='0'])")
    chosen = says(page, "selected")
    settle(page)
    drag_by((60, 60))
    spoken(page, "Anchor")
    page.wait_for_selector(".ls-fewer:has-text('Use 8 anchors instead')")
    assert says(page, "selected") == chosen
    page.get_by_label("Keep all anchors").click()
    page.wait_for_selector(".ls-fewer", state="hidden")


@pytest.mark.slow
def test_in_the_story_keys_move_anchors_and_no_step(page, app):
    hear(opened(page, f"{app}/?step=3"))
    wait_for(page, "anchors", 8)
    keys(page, "s", "ArrowLeft", "ArrowDown")
    heard(page, "scores")
    page.keyboard.press("Enter")
    page.wait_for_function("!document.querySelector('.relscope-number').textContent.includes('food')")
    assert "step=3" in page.url


@pytest.mark.slow
def test_the_map_follows_a_slider(page, app):
    hear(opened(page, f"{app}/invert?inverse=forward,pruned,8,0.5,1.0,0&anchors=random,60,0"))
    value = page.locator(".st-key-invert-delta [data-testid='stSliderThumbValue']")
    track, thumb = (value.locator(of).bounding_box() for of in ("../..", ".."))
    x = thumb["x"] + thumb["width"] / 2
    y = thumb["y"] + thumb["height"] / 2
    page.mouse.move(x, y)
    drawn = says(page, "drawn")
    pictures = [pixels(page, pane) for pane in (0, 1)]
    page.mouse.down()
    page.mouse.move(x - 0.2 * track["width"], y, steps=6)
    heard(page, "drawn", "scores", "settled")
    live = page.locator(".ls-live")
    assert live.inner_text().startswith("Distance δ 0.3")
    cosine = live.inner_text().split("mean cosine ")[1].split()[0]
    assert undo_buttons(page) == 0  # the page has not run
    assert [pixels(page, pane) == pictures[pane] for pane in (0, 1)] == [True, False]
    page.mouse.up()
    wait_for_other(page, "drawn", drawn)
    settle(page)
    assert undo_buttons(page) == 1
    assert live.inner_text() == ""
    assert cosine in page.locator(".relscope-report").first.inner_text()
