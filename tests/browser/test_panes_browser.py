"""The renderer of the linked panes alone; `tests/relcore/panes/test_scripts.py` needs no browser."""

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from app.items import make_sheet
from relcore.compare.scene import FACING
from relcore.figures.colorings import Pane
from relcore.figures.scene import Clusters, Scene
from relcore.panes.payload import joined_texts, quantise
from tests.browser.panes import (
    CLASSES,
    ROOT,
    at_rest,
    chip,
    drag,
    draw,
    events,
    hover,
    inside,
    keys,
    lasso,
    over,
    picture,
    pixels,
    says,
    scene,
    star,
    unchanged,
    views,
    wait_for,
    wait_for_other,
    zoom,
)

ALL = [(0, 0), (0.999, 0.999)]
CHANGED = """before => [...document.querySelectorAll('.ls-points')].every((canvas, i) =>
    canvas.toDataURL() !== before[i])"""


@pytest.fixture
def page(panes):
    return panes


def test_a_brush_is_linked_reported_once_and_cleared(page):
    drawn = scene()
    draw(page, drawn)
    before = [pixels(page, pane) for pane in range(4)]
    n = lasso(page)
    (event,) = events(page, 1)
    assert (event["kind"], event["rows"]) == ("select", inside(page, quantise(drawn.panes[0].coordinates)))
    assert 0 < n == len(event["rows"]) < 2000
    assert all(pixels(page, pane) != before[pane] for pane in range(4))
    assert page.inner_text(".ls-status") == f"{n:,} selected"
    page.keyboard.press("Escape")
    assert events(page, 2)[1] == {"kind": "select", "rows": []}
    wait_for(page, "selected", 0)
    page.wait_for_function(CHANGED.replace("!==", "==="), arg=before)
    lasso(page)
    page.locator(".ls-plot").nth(3).dblclick(position={"x": 5, "y": 5})
    assert events(page, 4)[3]["rows"] == []
    page.mouse.click(*star(page, 3, 5))
    assert events(page, 5)[4] == {"kind": "click", "row": 28}  # every seventh row is an anchor
    assert says(page, "selected") == "0"
    assert "2,000 rows in 4 panes." in page.get_by_role("figure").get_attribute("aria-label")
    assert page.locator(f"{ROOT} button:not([aria-label]):not(.ls-all):not(.ls-link)").count() == 0


def test_each_pane_keeps_its_zoom_until_they_are_linked(page):
    first = scene()
    draw(page, first)
    keys(page, "p")
    zoom(page, 0, clicks=4)
    zoom(page, 3, clicks=2)
    zoomed = views(page)
    assert zoomed[0][2] > zoomed[3][2] > zoomed[1][2] == 1
    page.keyboard.press("l")
    lasso(page)
    drawn = says(page, "drawn")
    moved = replace(first.panes[0], coordinates=first.panes[0].coordinates[::-1])
    draw(page, replace(first, panes=(moved, *first.panes[1:])))
    wait_for_other(page, "drawn", drawn)
    assert unchanged(page, drawn) == [False, True, True, True]
    assert views(page) == zoomed
    page.click(f"{ROOT} [data-tool=link]")
    page.click(f"{ROOT} [data-tool=pan]")
    before = says(page, "views")
    drag(page, 1, [(0.5, 0.5), (0.6, 0.6)])
    wait_for_other(page, "views", before)
    assert len({tuple(view) for view in views(page)}) == 1
    page.click(f"{ROOT} [data-tool=home]")
    wait_for(page, "views", "[[0,0,1],[0,0,1],[0,0,1],[0,0,1]]")


def test_an_anchor_more_paints_one_star_per_pane(context):
    page = context.new_page()
    page.add_init_script("""[window.drawn, window.relscopePoints] = [[0, 0, 0, 0], "page"];
        const [card, canvas] = [WebGL2RenderingContext.prototype, CanvasRenderingContext2D.prototype];
        for (const [kind, name] of [[card, "drawElements"], [canvas, "putImageData"]]) {
          const draw = kind[name];
          kind[name] = function (...given) {
            window.drawn[Array.from(document.querySelectorAll(".ls-points")).indexOf(this.canvas)]++;
            return draw.apply(this, given);
          };
        }""")
    page.goto("about:blank")
    first = scene(anchors=3)
    more = scene(anchors=4)
    draw(page, first)
    at_rest(page)
    page.evaluate("""() => {
      [window.drawn, window.moved] = [[0, 0, 0, 0], new Set()];
      const watch = new MutationObserver((changes) => changes.forEach(({ target }) => window.moved.add(target)));
      const attributeFilter = ["points", "fill"];
      document.querySelectorAll(".ls-body").forEach((star) => watch.observe(star, { attributeFilter }));
    }""")
    before = [pixels(page, pane) for pane in range(4)]
    draw(page, more)
    wait_for(page, "anchors", 4)
    at_rest(page)
    assert page.locator(".ls-body").count() == 4 * 4
    assert page.locator(".ls-plot").nth(2).locator(".ls-number").last.text_content() == "4"
    assert page.evaluate("[window.drawn, window.moved.size]") == [[0, 0, 0, 0], 0]
    moved = replace(more.panes[0], coordinates=more.panes[0].coordinates[::-1])
    draw(page, replace(more, panes=(moved, *more.panes[1:])))
    page.wait_for_function("window.drawn[0]")
    at_rest(page)
    assert page.evaluate("window.drawn.slice(1)") == [0, 0, 0]
    assert [pixels(page, pane) == before[pane] for pane in range(4)] == [False, True, True, True]
    assert page.evaluate("window.moved.size") == 3  # the three earlier anchors, in the changed pane only


def test_the_legend_hides_isolates_and_selects_classes(page):
    draw(page, scene())
    before = [pixels(page, pane) for pane in range(4)]
    animals, n = chip(page, "animals")
    animals.click()
    assert events(page, 1) == [{"kind": "hidden", "hidden": [["animals"]]}]
    wait_for(page, "hidden", n)
    assert animals.get_attribute("aria-pressed") == "false"
    page.wait_for_function(CHANGED, arg=before)
    page.click(f"{ROOT} [data-tool=box]")
    drag(page, 0, ALL)
    assert len(events(page, 2)[1]["rows"]) == 2000 - n
    page.click(".ls-all")
    wait_for(page, "hidden", 0)
    assert events(page, 3)[2] == {"kind": "hidden", "hidden": [[]]}
    assert page.locator(".ls-all").is_hidden()
    keys(page, "Escape")
    animals.dblclick()
    wait_for(page, "hidden", 2000 - n)
    assert set(events(page, 5)[4]["hidden"][0]) == set(CLASSES) - {"animals"}
    animals.click(modifiers=["Shift"])
    assert len(events(page, 6)[5]["rows"]) == n
    animals.focus()
    page.keyboard.press("i")
    wait_for(page, "hidden", 0)
    emotions, others = chip(page, "emotions")
    emotions.focus()
    page.keyboard.press("Shift+Enter")
    assert len(events(page, 8)[7]["rows"]) == n + others
    page.keyboard.press("Enter")
    wait_for(page, "hidden", others)
    assert page.evaluate("document.activeElement.dataset.class") == emotions.get_attribute("data-class")


def test_the_legend_says_anchor_beside_a_selection(page):
    draw(page, scene(panes=2), selected=[7])
    wait_for(page, "selected", 1)
    entry = page.locator(".ls-legends > .ls-chip", has_text="anchor")
    assert entry.bounding_box()["width"] > 50
    page.set_viewport_size({"width": 700, "height": 900})
    at_rest(page, ".ls-legends > .ls-chip")
    assert entry.bounding_box()["width"] < 40  # its star alone


def test_a_legend_without_room_shows_the_rest_on_request(page):
    page.set_viewport_size({"width": 1000, "height": 700})
    classes = np.arange(60) % 20
    coordinates = np.random.default_rng(0).normal(size=(60, 2))
    ids = np.array([f"row {i}" for i in range(60)], dtype=object)
    names = tuple(f"a class {i}" for i in range(20))
    draw(page, Scene((Pane("one", coordinates),), ids, classes, names))
    rest = page.locator(".ls-rest")
    hidden = int(rest.inner_text().removeprefix("+"))
    assert page.locator(".ls-chip:not(.ls-over) .ls-dot").count() == 20 - hidden
    assert 0 < hidden < 20
    assert page.locator(".ls-chip", has_text="a class 19").is_hidden()
    top = page.locator(".ls-grid").bounding_box()
    rest.focus()
    page.keyboard.press("Enter")
    page.locator(".ls-chip", has_text="a class 19").click()
    assert events(page, 1) == [{"kind": "hidden", "hidden": [["a class 19"]]}]
    assert page.locator(".ls-grid").bounding_box() == top  # the maps do not move
    page.keyboard.press("Escape")
    assert rest.get_attribute("aria-expanded") == "false"
    assert page.evaluate("document.activeElement.className") == "ls-rest"
    page.set_viewport_size({"width": 2600, "height": 700})
    page.wait_for_function("document.querySelector('.ls-rest').hidden")
    assert page.locator(".ls-chip", has_text="a class 19").is_visible()


def test_lines_of_density_come_in_a_crowd_at_rest(page):
    crowd = scene(n=20_000, panes=2, classed=0.3)
    lines = page.locator(".ls-contours[d]")
    switch = page.get_by_role("button", name="Density")
    draw(page, scene(n=300, panes=2))
    at_rest(page)
    page.wait_for_function("scatter.panes.every(({ contours }) => contours.made)")
    assert (lines.count(), switch.get_attribute("aria-pressed")) == (0, "false")
    draw(page, crowd)
    page.wait_for_function("document.querySelectorAll('.ls-contours[d]').length === 2")
    page.wait_for_selector("[data-tool=density][aria-pressed=true]")
    assert (
        page.locator(".ls-density-key").first.inner_text() == "Inside the lines: 25, 50, 75, 95 % of the rows"
    )
    made = page.evaluate("""() => new Promise((done) => {
        const [pane] = scatter.panes, make = pane.contours.make;
        let times = 0;
        pane.contours.make = function (...given) { times++; make.apply(this, given); };
        let frame = 0;
        const move = () => {
          pane.follow(pane.units.map((unit) => 0.99 * unit), 3000);
          frame++ < 20 ? requestAnimationFrame(move) : done([times, pane.contours.shown]);
        };
        move();
    })""")
    assert made == [0, False]  # no lines are computed or shown while an anchor is dragged
    page.evaluate("scatter.panes[0].settle()")
    page.wait_for_function("scatter.panes[0].contours.shown")
    for shown in (0, 2):
        keys(page, "d")
        page.wait_for_function(f"document.querySelectorAll('.ls-contours[d]').length === {shown}")
        page.wait_for_selector(f"[data-tool=density][aria-pressed={str(shown > 0).lower()}]")


def test_the_wheel_scrolls_the_page_but_with_control(page):
    draw(page, scene())
    before = says(page, "views")
    over(page, 0)
    page.mouse.wheel(0, -120)
    page.wait_for_selector(".ls-hint:not([hidden])")
    assert says(page, "views") == before
    page.keyboard.down("Control")
    page.mouse.wheel(0, -120)
    page.keyboard.up("Control")
    wait_for_other(page, "views", before)


def boxes_of(page, pane, selector):
    return [one.bounding_box() for one in page.locator(".ls-plot").nth(pane).locator(selector).all()]


def test_names_come_with_zoom_and_never_touch_each_other(page):
    draw(page, scene(classed=0.5), link_zoom=True)
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
    keys(page, "n")
    page.wait_for_function("document.querySelectorAll('.ls-name-row').length === 0")
    assert events(page, 1) == [{"kind": "named", "named": False}]


def test_rows_are_named_beside_a_selection_of_one_or_many(page):
    drawn = scene(300, panes=2, classed=0.5)

    def shown(kind):
        return set(page.locator(".ls-plot").first.locator(f".ls-name-{kind}").all_text_contents())

    draw(page, drawn, selected=[7])
    wait_for(page, "selected", 1)
    zoom(page, 0, clicks=4)
    assert len(shown("row")) > 5
    assert not shown("row") & {"word 7"}
    some = range(100, 250)
    draw(page, drawn, selected=some)
    wait_for(page, "selected", len(some))
    at_rest(page)
    assert shown("row")
    assert shown("row") | shown("chosen") <= {f"word {row}" for row in some}


def test_the_wheel_hides_the_tip_and_its_rings(page):
    draw(page, scene(300, panes=2))
    page.locator(ROOT).focus()
    hover(page, 0, *star(page, 0, 1))
    page.mouse.wheel(0, -120)
    page.wait_for_selector(".ls-tip", state="hidden")
    rings = page.locator(".ls-overlay > .ls-ring").all()
    assert [ring.get_attribute("visibility") for ring in rings] == ["hidden"] * 2


def test_smaller_clusters_are_named_where_the_map_is_enlarged(page):
    drawn = scene(classed=0)
    places = drawn.panes[0].coordinates
    halves = (places[:, 0] > np.median(places[:, 0])).astype(int)
    quarters = 2 * halves + (places[:, 1] > np.median(places[:, 1]))
    finer = Clusters(quarters, ("left below", "left above", "right below", "right above"))
    draw(page, replace(drawn, clusters=Clusters(halves, ("left", "right"), finer)))
    first = page.locator(".ls-plot").first.locator(".ls-name-group")
    assert set(first.all_text_contents()) == {"left", "right"}
    zoom(page, 0, clicks=3)
    assert set(first.all_text_contents()) <= set(finer.names)
    assert first.count()
    draw(page, drawn)
    assert first.count() == 0


def test_names_cover_no_star_and_no_class(page):
    rng = np.random.default_rng(0)
    classes = np.repeat([0, 1, 2], [200, 12, 2])
    cloud = rng.normal(size=(214, 2))
    cloud[200:212] = [0.1, 0.1] + rng.normal(size=(12, 2)) * 0.02  # so small that a name hides it
    cloud[212:] = [[0.2, -0.2], [0.3, -0.2]]
    ids = np.array([f"row {i}" for i in range(214)], dtype=object)
    names = ("a large class", "a small class", "two rows")
    draw(page, Scene((Pane("one", cloud),), ids, classes, names, anchors=np.arange(38), named=True))
    at_rest(page)
    plot = page.locator(".ls-plot").bounding_box()
    places = np.array(page.evaluate("ids => ids.map((row) => scatter.panes[0].pixel(row))", list(range(214))))
    boxes = [one.bounding_box() for one in page.locator(".ls-name-group").all()]
    assert len(boxes) == 3
    covered = np.zeros(214, dtype=bool)
    for box in boxes:
        middle = [box["x"] - plot["x"] + box["width"] / 2, box["y"] - plot["y"] + box["height"] / 2]
        covered |= (np.abs(places - middle) < [box["width"] / 2, 7]).all(axis=1)
    assert not covered[:38].any()  # stars
    assert not covered[212:].any()
    assert covered[200:212].mean() <= 0.25


def test_a_selection_of_python_is_ringed_named_and_zoomed_to(page):
    draw(page, scene(), selected=[7])
    wait_for(page, "selected", 1)
    at_rest(page)
    for pane in range(4):
        plot = page.locator(".ls-plot").nth(pane)
        assert plot.locator(".ls-names .ls-ring").count() == 1
        assert plot.locator(".ls-name-chosen").text_content() == "word 7"  # the second anchor
        opacities = plot.locator(".ls-star .ls-body").evaluate_all(
            "all => all.map(one => Number(getComputedStyle(one).fillOpacity))"
        )
        assert set(opacities) == {1}  # if only a few rows are selected, the others keep their colours
    draw(page, scene(), selected=range(10))
    wait_for(page, "selected", 10)
    before = says(page, "views")
    keys(page, "z")
    wait_for_other(page, "views", before)
    for pane in range(4):
        plot = page.locator(".ls-plot").nth(pane).bounding_box()
        rings = boxes_of(page, pane, ".ls-names .ls-ring")
        assert len(rings) == 10
        assert all(plot["x"] <= ring["x"] <= plot["x"] + plot["width"] - ring["width"] for ring in rings)
        spans = [max(ring[axis] for ring in rings) - min(ring[axis] for ring in rings) for axis in ("x", "y")]
        assert spans[0] > 0.5 * plot["width"] or spans[1] > 0.5 * plot["height"]
    assert events(page, 0) == []


def test_edges_join_rows_to_their_neighbours_in_the_panes_of_each_model(page):
    first = [(3, 10, True), (3, 11, False), (3, 12, True)]
    second = [(3, 20, True)]
    drawn = scene(1000)
    draw(page, drawn, list(range(0, 1000, 3)), edges=[first, second])
    lines = "[...document.querySelectorAll('.ls-edges')].map(one => [...one.children].map(path => path.getAttribute('d')))"

    def ends(path):
        return path.count("M")

    counts = [list(map(ends, paths))[:2] for paths in page.evaluate(lines)]
    assert counts == [[1, 2], [0, 1]] * 2  # [other edges, edges that share the feature]; the models alternate
    x, y = page.evaluate("scatter.panes[1].pixel(20)")
    assert page.evaluate(lines)[1][1].endswith(f"L{x:.1f} {y:.1f}")
    assert "word 3" in page.locator(".ls-names").first.text_content()  # where the lines start
    draw(page, drawn, [], edges=[])
    page.wait_for_function(f"{lines}.flat().every(path => !path)")


def test_trails_lead_from_a_row_to_its_place_in_the_other_pane(page):
    drawn = scene(1000)
    trails = [[(3, 0.5, -0.25)], []]
    draw(page, drawn, [3], trails=trails)
    path = page.evaluate("document.querySelector('.ls-trail').getAttribute('d')")
    x, y = page.evaluate("scatter.panes[0].pixel(3)")
    toX, toY = page.evaluate(
        "scatter.panes[0].place(0.5, -0.25, scatter.panes[0].width, scatter.panes[0].height)"
    )
    assert path.startswith(f"M{x:.1f} {y:.1f}L")
    assert f"M{toX - 4:.1f} {toY:.1f}a4 4" in path
    draw(page, drawn, [3], trails=[[], []])
    page.wait_for_function("!document.querySelector('.ls-trail').getAttribute('d')")


def test_arrow_keys_point_at_rows_and_enter_selects_one(page):
    draw(page, scene())
    at_rest(page)
    page.locator(ROOT).focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowUp"):
        page.keyboard.press(key)
    row, tip = page.evaluate("[scatter.hoverRow, scatter.idOf(scatter.hoverRow)]")
    assert page.locator(".ls-tip strong").inner_text() == tip
    page.keyboard.press("Enter")
    assert events(page, 1) == [{"kind": "click", "row": row}]


def test_anchors_are_hidden_and_sized(page):
    draw(page, scene())
    shown = page.locator(".ls-stars").first
    entry = page.get_by_role("button", name="anchor", exact=True)
    keys(page, "a")
    assert events(page, 1) == [{"kind": "stars", "size": 1, "opacity": 1, "shown": False}]
    assert not shown.is_visible()
    page.click(f"{ROOT} [data-tool=stars]")
    page.get_by_label("Size of the anchors").fill("2")
    events(page, 2)
    at_rest(page, ".ls-star")
    large = shown.locator(".ls-star").first.bounding_box()["width"]
    page.get_by_label("Size of the anchors").fill("0.5")
    assert events(page, 3)[2] == {"kind": "stars", "size": 0.5, "opacity": 1, "shown": True}
    at_rest(page, ".ls-star")
    assert shown.locator(".ls-star").first.bounding_box()["width"] < large / 2
    for pressed in ("false", "true"):
        entry.click()
        assert entry.get_attribute("aria-pressed") == pressed
        assert shown.is_visible() == (pressed == "true")
    # No star has a transform of its own: 1,200 of them take Chromium most of the time of a frame.
    turned = (
        "all => all.some(one => one.transform.baseVal.length || getComputedStyle(one).transform !== 'none')"
    )
    assert not page.locator(".ls-star, .ls-star *, .ls-number").evaluate_all(turned)
    page.click(f"{ROOT} [data-tool=help]")
    assert page.get_by_role("group", name="Keys").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("b")  # after the help is closed, the panes receive the keys again
    wait_for(page, "tool", "box")


def hovers(n, side):
    texts = joined_texts([f"This is what word {i} said, at length. " * 8 for i in range(n)])
    notes = joined_texts([f"{i} times" for i in range(n)])
    sheet = make_sheet((Image.new("RGB", (side, side), (i // 20, i % 20 * 12, 128)) for i in range(n)), n)
    return sheet, {"texts": texts, "notes": notes, "sheet": sheet.content}


def test_a_hover_shows_picture_text_note_and_anchor(page):
    sheet, files = hovers(2000, 8)
    draw(page, scene(panes=2), sheet=sheet, files=files)
    page.wait_for_function(
        "scatter.tip.sheet.image.naturalWidth && scatter.tip.texts.texts && scatter.tip.notes.texts"
    )
    hover(page, 0, *star(page, 0, 3))
    assert "This is what word 14 said" in page.inner_text(".ls-tip .ls-text")
    assert "14 times · anchor 3" in page.inner_text(".ls-words > span")
    assert page.locator(".ls-text").bounding_box()["height"] < 60  # three lines
    assert [page.locator(".ls-ring").nth(i).get_attribute("visibility") for i in range(2)] == ["visible"] * 2
    box = page.locator(".ls-picture").bounding_box()
    assert page.locator(".ls-picture").get_attribute("aria-label") == "Picture of word 14"
    assert (box["width"], box["height"]) == (64, 64)
    shot = page.screenshot(clip={"x": box["x"] + 20, "y": box["y"] + 20, "width": 10, "height": 10})
    assert set(Image.open(io.BytesIO(shot)).convert("RGB").getdata()) == {(0, 14 * 12, 128)}
    draw(page, scene(panes=2), sheet=sheet, files=files)
    hover(page, 1, *star(page, 1, 5))
    assert page.locator(".ls-picture").get_attribute("aria-label") == "Picture of word 28"
    assert sorted(page.evaluate("window.loads")) == ["notes", "sheet", "texts"]


def test_a_tip_leaves_neither_its_pane_nor_the_window(page):
    draw(page, scene(n=400, anchors=40))
    seen = 0
    for width in (1360, 560):
        page.set_viewport_size({"width": width, "height": 700})
        at_rest(page)
        page.evaluate("scrollTo(0, 100)")
        for pane in (0, 3):  # together, the first and the last pane touch every edge of the grid
            for number in (1, 17, 33, 40):
                x, y = star(page, pane, number)
                if not page.evaluate(
                    "([x, y]) => !!document.elementFromPoint(x, y)?.closest('.ls-plot')", [x, y]
                ):
                    continue  # out of sight
                tip = hover(page, pane, x, y)
                plot = page.locator(".ls-plot").nth(pane).bounding_box()
                seen += 1
                for start, size, most in (("x", "width", width), ("y", "height", 700)):
                    low = max(plot[start], 0)
                    high = min(plot[start] + plot[size], most)
                    if high - low < tip[size] + 8:  # the visible part of the pane is too small for the tip
                        low = 0
                        high = most
                    assert low <= tip[start]
                    assert tip[start] + tip[size] <= high
    assert seen > 8


def test_a_solid_turns_and_is_selected_like_a_plane(page):
    draw(page, scene(n=500, solid=True))
    assert says(page, "tool") == "turn"
    before = [pixels(page, pane) for pane in range(4)]
    stars = [star(page, pane, 2) for pane in range(4)]
    drag(page, 1, [(0.4, 0.5), (0.6, 0.6)])
    page.wait_for_function(CHANGED, arg=before)
    assert all(star(page, pane, 2) != stars[pane] for pane in range(4))
    hover(page, 2, *star(page, 2, 3))
    assert "word 14" in page.inner_text(".ls-tip")
    page.mouse.click(*star(page, 2, 3))
    turned, clicked = events(page, 2)
    assert (len(turned["turn"]), clicked) == (9, {"kind": "click", "row": 14})
    assert abs(turned["turn"][0]) < 1
    page.click(f"{ROOT} [data-tool=box]")
    drag(page, 3, [(0.5, 0), (1, 1)])
    assert 100 < len(events(page, 3)[2]["rows"]) < 400
    keys(page, "Escape", "0")
    assert events(page, 5)[4] == {"kind": "turn", "turn": list(FACING)}
    page.wait_for_function(CHANGED.replace("!==", "==="), arg=before)


@pytest.mark.parametrize(
    ("settings", "selected"), [({"n": 5000, "classed": 0.5}, range(10)), ({"n": 2000, "solid": True}, None)]
)
def test_both_renderers_draw_the_same_picture(page, settings, selected):
    page.set_viewport_size({"width": 800, "height": 700})
    shown = {}
    for points in ("page", "webgl"):
        page.goto("about:blank")
        page.evaluate("points => { window.relscopePoints = points; }", points)
        draw(page, scene(**settings), selected=selected)
        at_rest(page)
        shown[points] = [on_white(picture(page, ".ls-points", pane)) for pane in range(4)]
    for mine, other in zip(*shown.values(), strict=True):
        assert mine.shape == other.shape
        differences = np.abs(mine - other).max(axis=-1)
        assert (other < 250).any(axis=-1).mean() > 0.02, "an empty picture is like any other"
        assert differences.mean() < 0.5
        assert np.quantile(differences, 0.999) < 20


def on_white(picture):
    alpha = picture[..., 3:] / 255
    return np.rint(picture[..., :3] * alpha + 255 * (1 - alpha))


def test_panes_without_webgl_or_with_a_lost_card(context):
    page = context.new_page()
    page.add_init_script("""const known = HTMLCanvasElement.prototype.getContext;
        HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
          return kind === "webgl2" && !window.relscopePoints ? null : known.call(this, kind, ...rest);
        };""")
    page.goto("about:blank")
    draw(page, scene(n=300))
    assert all(picture(page, ".ls-points", pane)[..., 3].any() for pane in range(4))
    assert page.get_by_role("alert").count() == 0
    page.goto("about:blank")
    page.evaluate("() => { window.relscopePoints = 'webgl'; }")
    draw(page, scene(n=300))
    before = pixels(page, 0)
    page.evaluate("""() => {
      window.card = document.querySelector('.ls-points').getContext('webgl2').getExtension('WEBGL_lose_context');
      card.loseContext();
    }""")
    page.get_by_text("The browser has stopped drawing points").first.wait_for()
    page.evaluate("card.restoreContext()")
    page.locator(".ls-density-key").first.wait_for(state="hidden")
    assert pixels(page, 0) == before
