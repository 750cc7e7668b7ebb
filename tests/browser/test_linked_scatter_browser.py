"""The linked panes in a real Chromium: brushing, clicking, zooming, keyboard, themes, and many rows."""

import io
import json
import re
from pathlib import Path

import pytest
from PIL import Image

from tests.browser.panes import ROOT, at_rest, drag, pixels, settle, views, zoom

DEMO = Path(__file__).parent / "demo_linked_scatter.py"


@pytest.fixture
def demo(page, serve):
    """``demo("n=2000") -> page`` once the panes are drawn."""

    def open_demo(query=""):
        page.goto(f"{serve(DEMO)}/?{query}")
        page.wait_for_selector(f"{ROOT}[data-drawn]")
        return page

    return open_demo


def heard(page):
    return json.loads(page.locator("[data-testid=stCode] code").inner_text())


def wait_for_runs(page, runs):
    page.wait_for_function(
        "runs => JSON.parse(document.querySelector('[data-testid=stCode] code')?.innerText || '{}').runs >="
        " runs",
        arg=runs,
    )


def wait_for_events(page, count):
    page.wait_for_function(
        "count => JSON.parse(document.querySelector('[data-testid=stCode] code')?.innerText ||"
        " '{}').events?.length >= count",
        arg=count,
    )
    return heard(page)["events"]


def lasso(page, pane=0):
    drag(page, pane, [(0.3, 0.3), (0.7, 0.3), (0.7, 0.7), (0.3, 0.7)])


def test_a_brush_in_one_pane_lights_all_and_python_hears_it_once(demo):
    page = demo()
    before = [pixels(page, pane) for pane in range(4)]
    lasso(page)
    events = wait_for_events(page, 1)
    count = int(page.get_attribute(ROOT, "data-selected"))
    assert 0 < count < 2000
    assert [(kind, n) for kind, n, _ in events] == [("select", count)]
    assert all(pixels(page, pane) != before[pane] for pane in range(4))
    assert f"{count:,} of 2,000 selected" in page.inner_text(".ls-status")
    runs = heard(page)["runs"]
    page.get_by_text("Run again").click()
    wait_for_runs(page, runs + 1)
    assert len(heard(page)["events"]) == 1
    assert int(page.get_attribute(ROOT, "data-selected")) == count


def test_a_box_selects_what_lies_in_it_and_shift_adds(demo):
    page = demo("callback=1")
    page.click(f"{ROOT} [data-tool=box]")
    drag(page, 1, [(0, 0), (0.5, 1)])
    left = wait_for_events(page, 1)[0][1]
    page.keyboard.down("Shift")
    drag(page, 1, [(0.5, 0), (1, 1)])
    page.keyboard.up("Shift")
    assert wait_for_events(page, 2)[1][1] == 2000
    assert 0 < left < 2000


def star(page, pane, number):
    """The middle of an anchor's star on the page."""
    box = page.locator(".ls-plot").nth(pane).locator(".ls-star").nth(number - 1).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_click_is_a_row_and_no_brush(demo):
    page = demo()
    page.mouse.click(*star(page, 3, 5))
    assert wait_for_events(page, 1) == [["click", 1, [28]]]  # the demo's anchors are every seventh row
    assert page.get_attribute(ROOT, "data-selected") == "0"


def test_escape_and_double_click_clear(demo):
    page = demo()
    lasso(page)
    wait_for_events(page, 1)
    page.keyboard.press("Escape")
    assert wait_for_events(page, 2)[1] == ["clear", 0, []]
    page.wait_for_selector(f"{ROOT}[data-selected='0']")
    lasso(page, pane=2)
    wait_for_events(page, 3)
    page.locator(".ls-plot").nth(3).dblclick(position={"x": 5, "y": 5})
    assert wait_for_events(page, 4)[3] == ["clear", 0, []]


def test_zoom_lasts_through_reruns_brushes_and_moves(demo):
    page = demo()
    page.locator(ROOT).focus()
    page.keyboard.press("p")
    zoom(page, 0, clicks=4)
    zoom(page, 3, clicks=2)
    zoomed = views(page)
    assert zoomed[0][2] > 2
    assert 1 < zoomed[3][2] < zoomed[0][2]
    assert zoomed[1] == [0, 0, 1]
    page.get_by_text("Run again").click()
    wait_for_runs(page, 2)
    page.locator(ROOT).focus()
    page.keyboard.press("l")
    lasso(page)
    wait_for_events(page, 1)
    drawn = page.get_attribute(ROOT, "data-drawn").split("-")
    page.get_by_text("Move one pane").click()
    page.wait_for_function(
        "drawn => document.querySelector('.ls-root').dataset.drawn !== drawn", arg="-".join(drawn)
    )
    now = page.get_attribute(ROOT, "data-drawn").split("-")
    assert [a == b for a, b in zip(drawn, now, strict=True)] == [False, True, True, True]
    assert views(page) == zoomed


def test_large_arrays_are_files_that_load_once_and_new_ones_come_with_the_payload(page, serve):
    asked = []
    page.on(
        "request",
        lambda request: asked.append(request.url) if re.search(r"/media/\w+\.bin", request.url) else None,
    )
    page.goto(f"{serve(DEMO)}/?n=20000&panes=4")
    page.wait_for_selector(f"{ROOT}[data-drawn]")
    first = len(asked)
    assert first == len(set(asked)) >= 5  # four panes and the ids
    page.get_by_text("Run again").click()
    wait_for_runs(page, 2)
    lasso(page)
    wait_for_events(page, 1)
    drawn = page.get_attribute(ROOT, "data-drawn")
    assert len(asked) == first
    page.get_by_text("Move one pane").click()
    page.wait_for_function("drawn => document.querySelector('.ls-root').dataset.drawn !== drawn", arg=drawn)
    assert len(asked) == first
    assert int(page.get_attribute(ROOT, "data-selected")) > 0


def test_linked_zoom_and_its_way_back(demo):
    page = demo("link=1")
    page.click(f"{ROOT} [data-tool=pan]")
    zoom(page, 1, clicks=4)
    before = page.get_attribute(ROOT, "data-views")
    drag(page, 1, [(0.5, 0.5), (0.6, 0.6)])
    page.wait_for_function(
        "before => document.querySelector('.ls-root').dataset.views !== before", arg=before
    )
    assert len({tuple(view) for view in views(page)}) == 1
    assert views(page)[0][2] > 2
    page.click(f"{ROOT} [data-tool=home]")
    page.wait_for_selector(f"{ROOT}[data-views='{json.dumps([[0, 0, 1]] * 4, separators=(',', ':'))}']")
    assert views(page) == [[0, 0, 1]] * 4


def test_python_highlights_and_adds_an_anchor_without_moving_anything(demo):
    page = demo()
    drawn = page.get_attribute(ROOT, "data-drawn")
    page.get_by_text("Highlight ten").click()
    page.wait_for_selector(f"{ROOT}[data-selected='10']")
    page.get_by_text("More anchors").click()
    page.wait_for_selector(f"{ROOT}[data-anchors='9']")
    assert page.locator(".ls-plot").nth(2).locator(".ls-number").last.text_content() == "9"
    assert page.get_attribute(ROOT, "data-drawn") == drawn
    assert heard(page)["events"] == []


@pytest.mark.parametrize("points", ["page", "webgl"])
def test_an_anchor_more_paints_one_star_a_pane_and_no_points(page, serve, points):
    page.add_init_script(f"""[window.drawn, window.relscopePoints] = [[0, 0, 0, 0], "{points}"];
        const [card, canvas] = [WebGL2RenderingContext.prototype, CanvasRenderingContext2D.prototype];
        const draws = [[card, "drawElements"], [canvas, "putImageData"]];
        for (const [kind, name] of draws) {{
          const draw = kind[name];
          kind[name] = function (...given) {{
            window.drawn[Array.from(document.querySelectorAll(".ls-points")).indexOf(this.canvas)]++;
            return draw.apply(this, given);
          }};
        }}""")
    page.goto(f"{serve(DEMO)}/?n=2000&panes=4&anchors=3")
    at_rest(page)
    settle(page)
    page.evaluate("""() => {
          [window.drawn, window.moved] = [[0, 0, 0, 0], new Set()];
          const watch = new MutationObserver((changes) => changes.forEach(({ target }) => window.moved.add(target)));
          const attributeFilter = ["points", "fill"];
          document.querySelectorAll(".ls-body").forEach((star) => watch.observe(star, { attributeFilter }));
        }""")
    before = [pixels(page, pane) for pane in range(4)]
    page.get_by_text("More anchors").click()
    page.wait_for_selector(f"{ROOT}[data-anchors='4']")
    settle(page)
    assert page.locator(".ls-body").count() == 4 * 4
    assert page.evaluate("[window.drawn, window.moved.size]") == [[0, 0, 0, 0], 0]
    assert [pixels(page, pane) for pane in range(4)] == before
    page.get_by_text("Move one pane").click()
    page.wait_for_function("window.drawn[0]")
    settle(page)
    assert page.evaluate("window.drawn.slice(1)") == [0, 0, 0]
    assert pixels(page, 0) != before[0]
    assert page.evaluate("window.moved.size") == 3  # those of the pane that moved


def hidden(page, n):
    page.wait_for_function(
        "([root, n]) => Number(document.querySelector(root).dataset.hidden) === n", arg=[ROOT, n]
    )


def test_a_click_in_the_legend_hides_a_class_in_all_panes_and_a_second_one_shows_it(demo):
    page = demo("callback=1")
    before = [pixels(page, pane) for pane in range(4)]
    chip = page.locator(".ls-chip", has_text="animals")
    count = int(re.search(r"(\d+) points", chip.get_attribute("title"))[1])
    chip.click()
    assert wait_for_events(page, 1) == [["hidden", [["animals"]]]]
    hidden(page, count)
    assert chip.get_attribute("aria-pressed") == "false"
    assert page.inner_text(".ls-all") == f"{count} rows hidden · show all"
    page.wait_for_function(
        "pixels => [...document.querySelectorAll('.ls-points')].every((one, i) => one.toDataURL() !=="
        " pixels[i])",
        arg=before,
    )
    page.click(f"{ROOT} [data-tool=box]")
    drag(page, 0, [(0, 0), (0.999, 0.999)])
    assert wait_for_events(page, 2)[1][1] == 2000 - count
    page.click(".ls-all")
    hidden(page, 0)
    assert wait_for_events(page, 3)[2] == ["hidden", [[]]]
    assert page.locator(".ls-all").is_hidden()


def test_a_double_click_in_the_legend_shows_one_class_alone_and_shift_selects(demo):
    page = demo("callback=1")
    animals, emotions = (page.locator(".ls-chip", has_text=name) for name in ("animals", "emotions"))
    count = int(re.search(r"(\d+) points", animals.get_attribute("title"))[1])
    animals.dblclick()
    hidden(page, 2000 - count)
    assert sorted(wait_for_events(page, 1)[0][1][0]) == [
        "capitals",
        "colours",
        "countries",
        "emotions",
        "professions",
    ]
    animals.click(modifiers=["Shift"])
    assert wait_for_events(page, 2)[1][:2] == ["select", count]
    animals.dblclick()
    hidden(page, 0)
    emotions.click(modifiers=["Shift"])
    assert wait_for_events(page, 4)[3][1] > count


def test_the_legend_is_worked_by_keys(demo):
    page = demo("callback=1")
    chip = page.locator(".ls-chip", has_text="animals")
    count = int(re.search(r"(\d+) points", chip.get_attribute("title"))[1])
    chip.focus()
    page.keyboard.press("Enter")
    hidden(page, count)
    assert wait_for_events(page, 1)[0] == ["hidden", [["animals"]]]
    page.keyboard.press("i")
    hidden(page, 2000 - count)
    page.keyboard.press("Shift+Enter")
    assert wait_for_events(page, 3)[2][:2] == ["select", count]
    assert page.evaluate("document.activeElement.dataset.class") == chip.get_attribute("data-class")


def test_the_legend_is_as_high_with_any_room(demo):
    page = demo()
    heights = []
    for width in (1440, 1280, 900):
        page.set_viewport_size({"width": width, "height": 900})
        at_rest(page, ".ls-grid")
        heights.append(page.locator(".ls-bar").bounding_box()["height"])
    assert heights == [32, 32, 32]
    legend = page.locator(".ls-legend")
    assert legend.evaluate("one => one.scrollHeight <= one.clientHeight")


def test_python_hears_of_names_and_of_a_turn_when_it_is_done(demo):
    page = demo("callback=1&solid=1")
    page.click(f"{ROOT} [data-tool=names]")
    assert wait_for_events(page, 1) == [["named", False]]
    drag(page, 0, [(0.3, 0.5), (0.5, 0.5), (0.7, 0.6)])
    kind, turn = wait_for_events(page, 2)[1]
    assert (kind, len(turn)) == ("turn", 9)
    assert abs(turn[0]) < 1
    page.focus(ROOT)
    page.keyboard.press("0")
    assert wait_for_events(page, 3)[2] == ["turn", [1, 0, 0, 0, 1, 0, 0, 0, 1]]


def test_hover_says_who_it_is_and_rings_it_everywhere(demo):
    page = demo("panes=2")
    box = page.locator(".ls-plot").nth(0).bounding_box()
    page.mouse.move(*star(page, 0, 3))
    page.wait_for_selector(".ls-tip:not([hidden])")
    assert "word 14" in page.inner_text(".ls-tip")
    assert "anchor 3" in page.inner_text(".ls-tip")
    assert [page.locator(".ls-ring").nth(i).get_attribute("visibility") for i in range(2)] == ["visible"] * 2
    page.mouse.move(box["x"], box["y"] - 60)
    page.wait_for_selector(".ls-tip", state="hidden")


def test_one_key_hides_the_anchors_and_python_hears_their_look(demo):
    page = demo("callback=1")
    shown = page.locator(".ls-stars").first
    page.locator(ROOT).focus()
    page.keyboard.press("a")
    assert wait_for_events(page, 1) == [["stars", [1, 1, False]]]
    assert not shown.is_visible()
    page.click(f"{ROOT} [data-tool=stars]")
    page.get_by_label("Size of the anchors").fill("2")
    wait_for_events(page, 2)
    large = shown.locator(".ls-star").first.bounding_box()["width"]
    page.get_by_label("Size of the anchors").fill("0.5")
    assert wait_for_events(page, 3)[2] == ["stars", [0.5, 1, True]]
    assert shown.is_visible()
    assert shown.locator(".ls-star").first.bounding_box()["width"] < large / 2
    # A transform on each of 1,200 stars takes Chromium most of the time of a frame.
    transforms = (
        "all => all.filter(one => one.transform.baseVal.length || getComputedStyle(one).transform !=="
        " 'none').length"
    )
    assert page.locator(".ls-star, .ls-star *, .ls-number").evaluate_all(transforms) == 0


def test_a_selected_row_has_a_ring_and_its_name_and_other_anchors_are_dimmed(demo):
    page = demo()
    page.get_by_text("Highlight one").click()
    page.wait_for_selector(f"{ROOT}[data-selected='1']")
    at_rest(page)
    for pane in range(4):
        plot = page.locator(".ls-plot").nth(pane)
        assert plot.locator(".ls-names .ls-ring").count() == 1
        assert plot.locator(".ls-name-chosen").text_content() == "word 7"  # the second anchor
        bodies = plot.locator(".ls-star .ls-body")
        opacities = bodies.evaluate_all("all => all.map(one => Number(getComputedStyle(one).fillOpacity))")
        assert opacities[1] == 1
        assert max(opacities[:1] + opacities[2:]) < 0.5


def boxes_of(page, pane, selector):
    found = page.locator(".ls-plot").nth(pane).locator(selector)
    return [found.nth(i).bounding_box() for i in range(found.count())]


def test_names_come_with_zoom_and_never_touch_each_other(demo):
    page = demo("link=1&named=.5")
    assert page.locator(".ls-name-row").count() == 0
    assert page.locator(".ls-plot").first.locator(".ls-name-group").count() > 3
    counts = []
    for _ in range(2):
        zoom(page, 0, clicks=3)  # in lasso mode: the wheel zooms with every tool
        counts.append(page.locator(".ls-plot").first.locator(".ls-name-row").count())
    assert 0 < counts[0] < counts[1]
    boxes = boxes_of(page, 0, ".ls-name")
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            apart = one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
            assert apart or abs(one["y"] - other["y"]) > 12
    page.locator(ROOT).focus()
    page.keyboard.press("n")
    page.wait_for_function("document.querySelectorAll('.ls-name-row').length === 0")


def test_zoom_to_the_selection_shows_all_of_it(demo):
    page = demo()
    page.get_by_text("Highlight ten").click()
    page.wait_for_selector(f"{ROOT}[data-selected='10']")
    before = page.get_attribute(ROOT, "data-views")
    page.locator(ROOT).focus()
    page.keyboard.press("z")
    page.wait_for_function(
        "before => document.querySelector('.ls-root').dataset.views !== before", arg=before
    )
    for pane in range(4):
        plot = page.locator(".ls-plot").nth(pane).bounding_box()
        rings = boxes_of(page, pane, ".ls-names .ls-ring")
        assert len(rings) == 10
        assert all(
            plot["x"] <= ring["x"] and ring["x"] + ring["width"] <= plot["x"] + plot["width"]
            for ring in rings
        )
        spans = [max(ring[axis] for ring in rings) - min(ring[axis] for ring in rings) for axis in ("x", "y")]
        assert spans[0] > 0.5 * plot["width"] or spans[1] > 0.5 * plot["height"]


def test_a_solid_turns_by_drag_and_is_hovered_clicked_and_selected_like_a_plane(demo):
    page = demo("solid=1&n=500&callback=1")
    assert page.get_attribute(ROOT, "data-tool") == "turn"
    before, places = [pixels(page, pane) for pane in range(4)], [star(page, pane, 2) for pane in range(4)]
    drag(page, 1, [(0.4, 0.5), (0.6, 0.6)])
    page.wait_for_function(
        "before => [...document.querySelectorAll('.ls-points')].every((one, i) => one.toDataURL() !=="
        " before[i])",
        arg=before,
    )
    assert all(star(page, pane, 2) != places[pane] for pane in range(4))
    assert page.get_attribute(ROOT, "data-selected") == "0"
    page.mouse.move(*star(page, 2, 3))
    page.wait_for_selector(".ls-tip:not([hidden])")
    assert "word 14" in page.inner_text(".ls-tip")
    page.mouse.click(*star(page, 2, 3))
    turned, clicked = wait_for_events(page, 2)
    assert (turned[0], clicked) == ("turn", ["click", 1, [14]])
    page.click(f"{ROOT} [data-tool=box]")
    drag(page, 3, [(0.5, 0), (1, 1)])
    kind, count, _ = wait_for_events(page, 3)[2]
    assert kind == "select"
    assert 100 < count < 400
    page.locator(ROOT).focus()
    page.keyboard.press("Escape")
    page.keyboard.press("0")
    page.wait_for_function(
        "before => [...document.querySelectorAll('.ls-points')].every((one, i) => one.toDataURL() ==="
        " before[i])",
        arg=before,
    )


def hover(page, pane, x, y):
    """Move the pointer there, away first so that it is a new hover, and give the box of the tip that comes
    up.
    """
    page.mouse.move(2, 2)
    page.wait_for_selector(".ls-tip", state="hidden")
    page.mouse.move(x, y)
    page.wait_for_selector(".ls-tip:not([hidden])")
    return page.locator(".ls-tip").bounding_box()


def test_hover_shows_the_sentence_of_the_row(demo):
    page = demo("panes=2&texts=1")
    page.wait_for_load_state("networkidle")
    hover(page, 0, *star(page, 0, 3))
    assert "This is what word 14 said" in page.inner_text(".ls-tip .ls-text")
    assert "word 14 · " in page.inner_text(".ls-words > span")
    assert "14 times · anchor 3" in page.inner_text(".ls-words > span")
    assert page.locator(".ls-text").bounding_box()["height"] < 60  # three lines


def test_hover_shows_the_picture_of_the_row_from_a_sheet_that_is_loaded_once(page, serve):
    asked = []
    page.on(
        "request",
        lambda request: asked.append(request.url) if re.search(r"/media/\w+\.png", request.url) else None,
    )
    page.goto(f"{serve(DEMO)}/?panes=2&sheet=8")
    page.wait_for_selector(f"{ROOT}[data-drawn]")
    page.wait_for_load_state("networkidle")
    hover(page, 1, *star(page, 1, 3))
    picture = page.locator(".ls-picture")
    assert picture.get_attribute("aria-label") == "Picture of word 14"
    box = picture.bounding_box()
    assert (box["width"], box["height"]) == (64, 64)
    shot = page.screenshot(clip={"x": box["x"] + 20, "y": box["y"] + 20, "width": 10, "height": 10})
    assert set(Image.open(io.BytesIO(shot)).convert("RGB").getdata()) == {(0, 14 * 12, 128)}
    page.get_by_text("Run again").click()
    wait_for_runs(page, 2)
    hover(page, 0, *star(page, 0, 5))
    assert page.locator(".ls-picture").get_attribute("aria-label") == "Picture of word 28"
    at_rest(page, ".ls-picture")  # a sheet that is not there yet would be asked for before it is drawn
    assert len(asked) == 1


@pytest.mark.parametrize("query", ["texts=1&sheet=60", ""])
@pytest.mark.parametrize("width", [1360, 560])
def test_a_tip_leaves_neither_its_pane_nor_the_window(page, demo, query, width):
    page.set_viewport_size({"width": width, "height": 700})
    demo(f"panes=4&anchors=40&n=400&{query}")
    at_rest(page)  # the page lays itself out in steps
    page.mouse.wheel(0, 150)
    at_rest(page)
    seen = 0
    for pane in range(4):
        for number in (1, 17, 33, 40):
            x, y = star(page, pane, number)
            if not page.evaluate(
                "([x, y]) => !!document.elementFromPoint(x, y)?.closest('.ls-plot')", [x, y]
            ):
                continue  # out of sight
            tip, plot = hover(page, pane, x, y), page.locator(".ls-plot").nth(pane).bounding_box()
            seen += 1
            for start, size, most in (("x", "width", width), ("y", "height", 700)):
                low, high = max(plot[start], 0), min(plot[start] + plot[size], most)
                if high - low < tip[size] + 8:  # of a pane scrolled half away too little is seen
                    low, high = 0, most
                assert low <= tip[start]
                assert tip[start] + tip[size] <= high
    assert seen > 2


def test_without_its_files_a_hover_still_has_the_id(page, serve):
    page.route("**/media/**", lambda route: route.abort())
    page.goto(f"{serve(DEMO)}/?panes=2&texts=1&sheet=8")
    page.wait_for_selector(f"{ROOT}[data-drawn]")
    hover(page, 0, *star(page, 0, 3))
    assert page.inner_text(".ls-tip strong") == "word 14"
    assert page.locator(".ls-picture").count() == 0


def test_it_can_be_read_aloud(demo):
    page = demo()
    assert "2,000 made-up words" in page.get_by_role("figure").get_attribute("aria-label")
    assert page.locator(f"{ROOT} button:not([aria-label]):not(.ls-all)").count() == 0


@pytest.mark.parametrize("panes", [1, 2, 3])
def test_fewer_panes_fill_the_grid(demo, panes):
    page = demo(f"panes={panes}&n=100")
    boxes = [page.locator(".ls-plot").nth(i).bounding_box() for i in range(panes)]
    assert page.locator(".ls-plot").count() == panes
    assert len({round(box["x"]) for box in boxes}) == min(panes, 2)


def test_dark_follows_the_page(page, serve):
    page.emulate_media(color_scheme="dark")
    page.goto(f"{serve(DEMO)}/?n=300")
    page.wait_for_selector(f"{ROOT}[data-drawn][data-theme=dark]")
    page.emulate_media(color_scheme="light")
    page.wait_for_selector(f"{ROOT}[data-theme=light]")


@pytest.mark.parametrize("n", [20_000, 100_000])
def test_a_lasso_over_many_rows_is_linked_and_heard_once(demo, n):
    page = demo(f"n={n}&callback=1&named=.3")
    at_rest(page)
    clock = """() => new Promise(done => {
      const root = document.querySelector('.ls-root');
      let start;
      const heard = () => JSON.parse(document.querySelector('[data-testid=stCode] code').innerText).events.length;
      const [times, before] = [{}, heard()];
      const look = () => {
        if (root.dataset.selected !== '0' && !times.linked) {  // of WebGL read a pixel: it must have drawn
          for (const canvas of document.querySelectorAll('.ls-points'))
            canvas.getContext('webgl2')?.readPixels(0, 0, 1, 1, 6408, 5121, new Uint8Array(4));
          times.linked = performance.now() - start;
        }
        if (heard() > before) times.python = performance.now() - start;
        times.linked && times.python ? done(times) : requestAnimationFrame(look);
      };
      const released = () => { start = performance.now(); requestAnimationFrame(look); };
      document.querySelector('.ls-plot').addEventListener('pointerup', released, { once: true, capture: true });
    })"""
    page.evaluate(f"void (window.timing = ({clock})())")
    lasso(page)
    times = page.evaluate("window.timing")
    print(
        f"\n{n:,} rows × 4 panes: linked after {times['linked']:.0f} ms, known to Python after"
        f" {times['python']:.0f} ms"
    )
    ((kind, count, _),) = heard(page)["events"]
    assert (kind, count) == ("select", int(page.get_attribute(ROOT, "data-selected")))
    assert 0 < count < n


def test_positions_that_cannot_be_loaded_are_told_in_the_panes_place_until_they_can(page, serve):
    page.route("**/media/**", lambda route: route.abort())
    page.goto(f"{serve(DEMO)}/?panes=2&n=20000")
    page.get_by_role("alert").filter(has_text="could not be loaded").wait_for()
    page.unroute("**/media/**")
    page.get_by_text("Highlight ten").click()  # another payload: Streamlit does not send the same one again
    page.wait_for_selector(f"{ROOT}[data-drawn][data-selected='10']", timeout=20_000)
    assert page.locator(".ls-error").count() == 0
