import json

import numpy as np
import pytest

from tests.browser.panes import ROOT, draw, scene, settle, star, views, zoom

HEARD = """root => {
  window.heard = [];
  document.querySelector(root).addEventListener("ls-hand", ({ detail }) => heard.push(detail.what));
}"""
PLACES = """Array.from(document.querySelectorAll(".ls-plot"), (plot) =>
  Array.from(plot.querySelectorAll(".ls-star .ls-body"), (one) => one.getAttribute("points")))"""
BARS = ".relscope-bars[data-row] > div"


@pytest.fixture
def eight(watched, own):
    return opened(watched, own[0])


def opened(page, app, anchors=8):
    page.set_viewport_size({"width": 1440, "height": 1000})
    page.goto(f"{app}/explore?panes=absolute,relative&anchors=random,{anchors},0")
    page.wait_for_selector(f"{ROOT}[data-drawn]")
    settle(page)
    page.evaluate(HEARD, ROOT)
    return page


def heard(page, what, times=1):
    page.wait_for_function(
        "([what, times]) => heard.filter((one) => one === what).length >= times", arg=[what, times]
    )


def held(page, pane=2):
    """Take the first star, and bring it towards the middle of the pane; it stays in the hand."""
    x, y = star(page, pane, 1)
    box = page.locator(".ls-plot").nth(pane).bounding_box()
    page.mouse.move(x, y)
    page.wait_for_selector(".ls-on-star")
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=12)


def undo_buttons(page):
    return page.locator(".st-key-history-undo button:enabled").filter(visible=True).count()


def test_maps_and_scores_follow_hand_and_keys_and_the_release_is_one_step(eight):
    drawn = eight.get_attribute(ROOT, "data-drawn").split("-")
    bars, begun = eight.locator(BARS).all_inner_texts(), eight.evaluate(PLACES)
    browser = eight.context.browser
    browser.start_tracing(page=eight, categories=["devtools.timeline"])
    held(eight)
    heard(eight, "drawn", 2)
    heard(eight, "scores")
    events = json.loads(browser.stop_tracing())["traceEvents"]
    styled = [one["args"]["elementCount"] for one in events if one["name"] == "UpdateLayoutTree"]
    assert 0 < np.median(styled) < 200, "a rule with :has() may style the page anew with each movement"
    assert undo_buttons(eight) == 0  # the page has not run
    assert eight.get_attribute(ROOT, "data-drawn").split("-") == drawn
    number = eight.locator(".relscope-live:visible").inner_text()
    assert eight.locator(".ls-near circle").count() == 40  # ten in each pane
    assert eight.locator(BARS).all_inner_texts() != bars
    strip = eight.locator(".ls-live").bounding_box()
    for heading in eight.locator(".ls-heading").all():
        box = heading.bounding_box()
        assert strip["y"] + strip["height"] <= box["y"] or box["y"] + box["height"] <= strip["y"]
    followed, bars = eight.evaluate(PLACES), eight.locator(BARS).all_inner_texts()
    assert followed[2][1:] == begun[2][1:], "nothing moves under the pointer"
    assert followed[3] != begun[3]
    eight.mouse.up()
    eight.wait_for_function(
        "([root, drawn]) => document.querySelector(root).dataset.drawn !== drawn", arg=[ROOT, "-".join(drawn)]
    )
    settle(eight)
    now = eight.get_attribute(ROOT, "data-drawn").split("-")
    assert [a == b for a, b in zip(drawn, now, strict=True)][2:] == [False, False]
    assert eight.locator(".ls-spoken").inner_text().startswith("Anchor 1 moved from")
    assert eight.locator(".relscope-live:visible").inner_text() == number
    assert eight.locator(BARS).all_inner_texts() == bars  # as the page computes them
    assert eight.locator(".ls-near circle").count() == 0
    assert undo_buttons(eight) == 1
    stars, before = (
        [float(x) for x in ",".join(maps[3]).replace(" ", ",").split(",")]
        for maps in (eight.evaluate(PLACES), followed)
    )
    assert max(abs(a - b) for a, b in zip(stars, before, strict=True)) < 2  # pixels: the page draws the same
    eight.keyboard.press("Control+z")
    eight.wait_for_function(
        "([root, drawn]) => document.querySelector(root).dataset.drawn === drawn", arg=[ROOT, "-".join(drawn)]
    )
    settle(eight)
    assert undo_buttons(eight) == 0
    # Escape brings all back, and the keyboard moves an anchor, too.
    eight.evaluate("heard.length = 0")
    before, number = eight.evaluate(PLACES), eight.locator(".relscope-live:visible").inner_text()
    bars = eight.locator(BARS).all_inner_texts()
    eight.locator(ROOT).focus()
    eight.keyboard.press("s")
    eight.wait_for_function("document.querySelector('.ls-spoken').textContent.startsWith('Anchor 1')")
    eight.keyboard.press("ArrowRight")
    eight.keyboard.press("ArrowDown")
    heard(eight, "scores")
    assert eight.evaluate(PLACES) != before
    eight.keyboard.press("Escape")
    eight.wait_for_function(f"before => `${{{PLACES}}}` === `${{before}}`", arg=before)
    assert eight.locator(".relscope-live:visible").inner_text() == number
    assert eight.locator(BARS).all_inner_texts() == bars
    eight.keyboard.press("s")
    eight.keyboard.press("ArrowLeft")
    eight.keyboard.press("Enter")
    eight.wait_for_function("document.querySelector('.ls-spoken').textContent.startsWith('Anchor 2 moved')")
    eight.locator(".st-key-history-undo button:enabled").filter(visible=True).first.wait_for()


@pytest.mark.slow
def test_three_models_are_hovered_dragged_and_zoomed_as_one_and_one_is_removed(watched, own):
    watched.set_viewport_size({"width": 1440, "height": 1000})
    watched.goto(f"{own[0]}/explore?panes=relative&anchors=random,8,0&all=1")
    watched.wait_for_selector(f"{ROOT}[data-drawn]")
    settle(watched)
    watched.locator(".st-key-models-add-2 button").first.click()
    watched.locator(".st-key-models-choose-0 button").click()
    watched.wait_for_selector(f"{ROOT}[data-panes='3']")
    settle(watched)
    watched.mouse.move(*star(watched, 2, 4))
    watched.wait_for_selector(".ls-tip:not([hidden])")
    assert watched.locator(".ls-ring[visibility=visible]").count() == 3
    watched.evaluate(HEARD, ROOT)
    before = watched.get_attribute(ROOT, "data-drawn").split("-")
    held(watched, pane=2)
    watched.wait_for_selector(".ls-live:has-text('(a and b)')")  # which two models the scores are of
    assert watched.locator(".ls-near circle").count() == 30
    watched.mouse.up()
    watched.wait_for_function(
        "([root, before]) => document.querySelector(root).dataset.drawn !== before",
        arg=[ROOT, "-".join(before)],
    )
    settle(watched)
    now = watched.get_attribute(ROOT, "data-drawn").split("-")
    assert not any(one == other for one, other in zip(now, before, strict=True))
    watched.get_by_label("Zoom all panes together").click()
    zoom(watched, 1, 2)
    assert len(set(map(str, views(watched)))) == 1
    watched.locator(".st-key-models-remove-0 button").filter(visible=True).first.click()
    watched.wait_for_selector(f"{ROOT}[data-panes='2']")


def test_a_star_under_a_pointer_that_rests_can_be_taken_once_the_channel_is_known(panes):
    page = panes
    few, live = scene(300, panes=2), {"name": "one", "panes": [0, 1], "many": 0, "spread": 8}
    draw(page, few)
    page.mouse.move(*star(page, 0, 1))
    page.wait_for_selector(".ls-tip:not([hidden])")
    assert page.locator(".ls-on-star").count() == 0
    draw(page, few, live=live)
    page.wait_for_selector(".ls-on-star")
    page.mouse.down()
    page.mouse.move(*star(page, 0, 2), steps=5)
    page.mouse.up()
    page.wait_for_selector(".ls-hint:has-text('is an anchor already')")


def test_a_star_that_cannot_be_dragged_says_why(panes):
    page = panes
    draw(page, scene(300, panes=2), live={"refused": "UMAP takes too long."})
    x, y = star(page, 0, 1)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 40, y + 40, steps=3)
    page.wait_for_selector(".ls-hint:has-text('UMAP takes too long.')")
    page.mouse.up()
    assert page.locator(".ls-spoken").inner_text() == "UMAP takes too long."
    page.locator(ROOT).focus()
    page.keyboard.press("s")
    assert page.locator(".ls-moving").count() == 0


def test_without_the_channel_the_star_moves_and_the_maps_follow_the_release(watched, own):
    watched.route_web_socket("**/live?*", lambda socket: socket.close())
    opened(watched, own[0])
    drawn = watched.get_attribute(ROOT, "data-drawn")
    held(watched)
    heard(watched, "lost")
    watched.mouse.up()
    watched.wait_for_function(
        "([root, drawn]) => document.querySelector(root).dataset.drawn !== drawn", arg=[ROOT, drawn]
    )
    watched.locator(".st-key-history-undo button:enabled").filter(visible=True).first.wait_for()


@pytest.mark.slow
def test_one_of_many_stars_is_dragged_with_the_lasso_and_a_loop_back_to_it_selects_rows(watched, app):
    opened(watched, app, 300)
    x, y = star(watched, 2, 1)

    def drag_by(*ways):
        watched.mouse.move(x, y)
        watched.mouse.down()
        for across, down in ways:
            watched.mouse.move(x + across, y + down, steps=4)
        watched.mouse.up()

    drag_by((60, 0), (60, 60), (0, 60), (0, 0))
    watched.wait_for_selector(f"{ROOT}:not([data-selected='0'])")
    chosen = watched.get_attribute(ROOT, "data-selected")
    settle(watched)
    drag_by((60, 60))
    watched.wait_for_function("document.querySelector('.ls-spoken').textContent.startsWith('Anchor')")
    watched.wait_for_selector(".ls-fewer:has-text('Use 8 anchors instead')")
    assert watched.get_attribute(ROOT, "data-selected") == chosen
    watched.get_by_label("Keep all anchors").click()
    watched.wait_for_selector(".ls-fewer", state="hidden")


@pytest.mark.slow
def test_in_the_story_eight_anchors_move_by_keys_that_turn_no_step(watched, app):
    watched.goto(f"{app}/?step=3")
    watched.wait_for_selector(f"{ROOT}[data-anchors='8']")
    settle(watched)
    watched.evaluate(HEARD, ROOT)
    watched.locator(ROOT).focus()
    watched.keyboard.press("s")
    watched.keyboard.press("ArrowLeft")
    watched.keyboard.press("ArrowDown")
    heard(watched, "scores")
    watched.keyboard.press("Enter")
    watched.wait_for_function("!document.querySelector('.relscope-number').textContent.includes('food')")
    assert "step=3" in watched.url


def pictures_of(page):
    """The points of each pane, as text."""
    page.evaluate("new Promise(requestAnimationFrame)")
    return page.evaluate(
        "Array.from(document.querySelectorAll('.ls-points'), (canvas) => {"
        " const copy = Object.assign(document.createElement('canvas'), { width: canvas.width, height: canvas.height });"
        " copy.getContext('2d').drawImage(canvas, 0, 0); return copy.toDataURL(); })"
    )


def on_slider(page, app):
    """Invert with its sliders open, and δ in the hand, moved down: where it was, and the points before."""
    page.set_viewport_size({"width": 1440, "height": 1000})
    page.goto(f"{app}/invert?inverse=forward,pruned,8,0.5,1.0,0&anchors=random,60,0")
    page.wait_for_selector(f"{ROOT}[data-drawn]")
    settle(page)
    page.evaluate(HEARD, ROOT)
    value = page.locator(".st-key-invert-delta [data-testid='stSliderThumbValue']")
    track = value.locator("../..").bounding_box()
    thumb = value.locator("..").bounding_box()
    at = [thumb["x"] + thumb["width"] / 2, thumb["y"] + thumb["height"] / 2]
    page.mouse.move(*at)
    pictures = pictures_of(page)
    page.mouse.down()
    page.mouse.move(at[0] - 0.2 * track["width"], at[1], steps=6)
    return at, pictures


@pytest.mark.slow
def test_the_map_follows_a_slider_and_the_release_is_one_step(watched, app):
    _, pictures = on_slider(watched, app)
    drawn = watched.get_attribute(ROOT, "data-drawn")
    heard(watched, "drawn")
    heard(watched, "scores")
    heard(watched, "settled")
    assert watched.locator(".ls-live").inner_text().startswith("Distance δ 0.3")
    cosine = watched.locator(".ls-live").inner_text().split("mean cosine ")[1].split()[0]
    assert undo_buttons(watched) == 0  # the page has not run
    assert [before == now for before, now in zip(pictures, pictures_of(watched), strict=True)] == [
        True,
        False,
    ]
    watched.mouse.up()
    watched.wait_for_function(
        "([root, drawn]) => document.querySelector(root).dataset.drawn !== drawn", arg=[ROOT, drawn]
    )
    settle(watched)
    assert undo_buttons(watched) == 1
    assert watched.locator(".ls-live").inner_text() == ""
    assert cosine in watched.locator(".relscope-report").first.inner_text()
