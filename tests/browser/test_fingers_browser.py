"""What fingers do on the maps of a phone: buttons that zoom, two fingers, and the card of a tapped row."""

import pytest

from relcore.panes.payload import joined_texts
from tests.browser.panes import at_rest, draw, events, scene, star, views


@pytest.fixture
def phone(browser):
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    yield context.new_page()
    context.close()


def test_buttons_for_a_finger_zoom_the_map(phone):
    draw(phone, scene(300, panes=2))
    buttons = phone.locator(".ls-pane").first.locator(".ls-zoom button")
    for button in buttons.all():
        box = button.bounding_box()
        assert round(min(box["width"], box["height"])) >= 44
    buttons.nth(0).tap()
    phone.wait_for_function("scatter.panes[0].view.zoom > 1.5")
    buttons.nth(1).tap()
    phone.wait_for_function("Math.abs(scatter.panes[0].view.zoom - 1) < 1e-9")
    buttons.nth(0).tap()
    buttons.nth(2).tap()
    phone.wait_for_function("scatter.panes[0].view.zoom === 1")
    assert phone.evaluate("window.events") == []


def test_tools_have_room_for_a_finger_on_a_phone(phone):
    draw(phone, scene(300, panes=2))
    tools = [one for one in phone.locator(".ls-toolbar .ls-button").all() if one.is_visible()]
    boxes = [one.bounding_box() for one in tools]
    assert len(boxes) > 6
    assert min(box["width"] for box in boxes) >= 33
    assert min(box["height"] for box in boxes) >= 39
    assert min(box["x"] for box in boxes) >= 0
    assert max(box["x"] + box["width"] for box in boxes) <= 390


def test_a_mouse_needs_no_buttons_to_zoom(page):
    draw(page, scene(300, panes=2))
    assert not page.locator(".ls-zoom").first.is_visible()


def test_two_fingers_zoom_and_move_the_map(phone):
    draw(phone, scene(300, panes=2))
    scale = phone.evaluate("visualViewport.scale")
    browser_side = phone.context.new_cdp_session(phone)
    box = phone.locator(".ls-plot").first.bounding_box()
    x = box["x"] + box["width"] / 2
    y = box["y"] + box["height"] / 2

    def send(kind, *shifts):
        points = [{"x": x + shift, "y": y, "id": i} for i, shift in enumerate(shifts)]
        browser_side.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    send("touchStart", -20, 20)
    for apart in (30, 40, 50, 60):
        send("touchMove", -apart, apart)
    phone.wait_for_function("Math.abs(scatter.panes[0].view.zoom - 3) < .2")
    middle = views(phone)[0][0]
    send("touchMove", 0, 120)
    phone.wait_for_function("before => scatter.panes[0].view.x < before - .05", arg=middle)
    send("touchEnd")
    at_rest(phone)
    assert phone.evaluate("[window.events, visualViewport.scale]") == [[], scale]  # the page stays as it was


def test_a_tap_names_the_row_beside_the_finger(phone):
    draw(phone, scene(300, panes=2))
    inspector = "() => ({ scrollIntoView: () => (window.isScrolled = true) })"
    phone.evaluate(f"scatter.place = {{ ...scatter.place, inspector: {inspector} }}")
    x, y = star(phone, 0, 1)
    phone.touchscreen.tap(x, y)
    card = phone.locator(".ls-tip")
    card.wait_for()
    assert card.locator("strong").inner_text() == "word 0"
    assert events(phone, 1)[0]["row"] == 0
    box = card.bounding_box()
    assert box["x"] - 30 < x < box["x"] + box["width"] + 30
    assert abs(box["y"] + box["height"] / 2 - y) < 120
    way = card.get_by_role("button", name="See its neighbours")
    assert round(way.bounding_box()["height"]) >= 44
    way.tap()
    phone.wait_for_function("window.isScrolled")


def test_rows_with_numbers_for_ids_are_named_by_their_texts(phone):
    texts = [f"a sentence number {row}" for row in range(300)]
    files = {"texts": joined_texts(texts)}
    draw(phone, scene(300, panes=2, mute=True, texts=texts), selected=[7], files=files)
    phone.wait_for_selector(".ls-name-chosen:has-text('a sentence number 7')")


def test_rows_with_numbers_for_ids_and_without_texts_are_named_by_their_classes(phone):
    drawn = scene(300, panes=2, mute=True)
    draw(phone, drawn, selected=[7], named_by_class=True)
    name = phone.locator(".ls-name-chosen").first
    name.wait_for()
    assert name.text_content() == drawn.category_names[drawn.categories[7]]
