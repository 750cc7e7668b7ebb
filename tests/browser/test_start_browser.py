import pytest

from app.start.story import STEPS
from tests.browser.panes import settle


def at_step(page, number):
    page.locator(".relscope-step").get_by_text(f"{number} · {STEPS[number - 1].title}").wait_for()
    settle(page)  # before, keys may not be heard yet


@pytest.mark.slow
def test_the_story_by_keyboard_alone(watched, app):
    watched.goto(f"{app}/?step=1")
    for number in range(1, len(STEPS)):
        at_step(watched, number)
        watched.keyboard.press("ArrowRight")
    at_step(watched, len(STEPS))
    # A lecturer clicks first, and then continues by keys.
    for clicked, leads_to in (("5", 6), ("Present the story", 5)):
        watched.get_by_role("button", name=clicked, exact=True).click()
        settle(watched)
        watched.keyboard.press("ArrowRight" if leads_to == 6 else "ArrowLeft")
        at_step(watched, leads_to)
    watched.keyboard.press("ArrowLeft")
    at_step(watched, 4)
    slider = watched.get_by_role("slider")
    slider.focus()
    watched.keyboard.press("End")  # the arrows move the slider, too, and then not the story
    watched.locator(".relscope-number").get_by_text("300 anchors").wait_for()
    watched.keyboard.press("ArrowLeft")
    watched.locator(".relscope-number").get_by_text("200 anchors").wait_for()
    at_step(watched, 4)
    watched.get_by_test_id("stSlider").click()  # in its middle; then the arrows move the story again
    watched.locator(".relscope-number").get_by_text("200 anchors").wait_for(state="detached")
    settle(watched)
    watched.keyboard.press("ArrowRight")
    at_step(watched, 5)
    watched.get_by_role("button", name="Exercise:").click()
    answer = watched.get_by_text("More anchors, from everywhere").bounding_box()
    assert answer["y"] + answer["height"] < watched.viewport_size["height"]
