"""The other homes of the linked panes: a file, which asks no server, and the notebook's widget on a model of our own;
`tests/installed` has the real one."""

import base64
import re
from dataclasses import replace

import numpy as np
import pytest

from relcore import LatentSpace, match, show
from relcore.compare.pictures import panes_of
from relcore.figures.colorings import Pane
from relcore.figures.scene import Scene
from relcore.figures.style import DARK
from relcore.panes.page import scene_exportable
from relcore.panes.widget import PanesWidget
from tests.browser.panes import (
    ROOT,
    at_rest,
    drag,
    hear,
    heard,
    hold_star,
    hover,
    keys,
    says,
    star,
    unchanged,
    wait_for,
    wait_for_other,
)

N = 400
ALL = [(0.002, 0.002), (0.998, 0.998)]


def two_panes():
    """Two panes of the same rows, the second one turned; texts, notes, two classes and rows of none."""
    rng = np.random.default_rng(0)
    cloud = rng.uniform(-1, 1, size=(N, 2))
    cloud[np.abs(cloud) < 0.02] = 0.02  # none where the edge of a box may be a pixel off
    cloud[:4] = [[-1, -1], [1, 1], [-1, 1], [1, -1]]  # so that the middle of the pane is 0
    ids, texts, notes = (
        np.array([form.format(i) for i in range(N)], dtype=object)
        for form in ("row {} <b>é</b>", "The text of row {}.", "{} times")
    )
    panes = (Pane("first", cloud), Pane("second", cloud[:, ::-1]))
    classes = np.arange(N) % 3 - 1
    about = {"texts": texts, "notes": notes, "caption": "Four hundred."}
    return Scene(panes, ids, classes, ("even", "odd"), anchors=np.array([7, 9]), **about)


@pytest.fixture
def opened(page, tmp_path):
    """``opened(scene, theme=…) -> page``, once it is drawn. The test fails if the page requests anything but itself."""
    asked = []
    page.on("request", lambda request: asked.append(request.url))

    def open_page(scene, **settings):
        path = tmp_path / "panes.html"
        figure = scene
        if isinstance(scene, Scene):
            figure = scene_exportable(scene)
        path.write_bytes(figure.bytes("html", **settings))
        page.goto(path.as_uri())
        page.wait_for_selector(f"{ROOT}[data-drawn]")
        return page

    yield open_page
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_a_file_selects_lists_and_describes_rows(opened):
    scene = replace(two_panes(), marked=np.array([3, 5]))
    page = opened(scene)
    wait_for(page, "selected", 2)  # those that were found when the file was written
    page.click(f"{ROOT} [data-tool=box]")
    drag(page, 0, [(0.002, 0.002), (0.5, 0.998)])
    expected = np.flatnonzero(scene.panes[0].coordinates[:, 0] < 0)
    wait_for(page, "selected", len(expected))
    assert page.locator(".ls-entry").all_inner_texts() == [str(scene.ids[row]) for row in expected]
    drag(page, 1, ALL)
    wait_for(page, "selected", N)
    assert "and 100 more" in page.inner_text(".ls-inspector")
    keys(page, "Escape")
    wait_for(page, "selected", 0)
    page.mouse.click(*star(page, 1, 1))
    wait_for(page, "selected", 1)
    described = page.inner_text(".ls-inspector")
    assert "row 7 <b>é</b>" in described
    assert re.search(r"The text of row 7\.\s+Colour\s+even\s+Note\s+7 times\s+Anchor\s+1", described)
    hover(page, 1, *star(page, 1, 1))
    assert "The text of row 7." in page.inner_text(".ls-tip")
    drag(page, 0, ALL)
    page.locator(".ls-entry").nth(1).press("Enter")
    wait_for(page, "selected", 1)
    assert page.evaluate("document.activeElement.textContent") == "1 row selected"


def test_an_anchor_is_dragged_in_a_file_without_a_server(opened):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(N, 8))
    ids = [f"r{row}" for row in range(N)]
    pair = match(LatentSpace(rows, ids), LatentSpace(rows + rng.normal(size=rows.shape), ids))
    page = opened(panes_of(pair, ids[:6]))
    drawn = says(page, "drawn")
    hear(page)
    hold_star(page)
    heard(page, "drawn", "scores")
    assert page.locator(".ls-near circle").count() == 40
    page.mouse.up()
    wait_for_other(page, "drawn", drawn)
    assert unchanged(page, drawn)[:2] == [True, True]
    assert page.locator(".ls-spoken").inner_text().startswith("Anchor 1 moved from “r0”")
    page.locator(".ls-plot").nth(3).scroll_into_view_if_needed()
    page.mouse.move(*star(page, 3, 1))  # and again
    page.wait_for_selector(".ls-on-star")


def test_a_file_fits_every_window_and_has_its_theme(opened):
    page = opened(two_panes(), theme=DARK)
    assert says(page, "theme") == "dark"
    surface = tuple(int(DARK.surface[i : i + 2], 16) for i in (1, 3, 5))
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == f"rgb{surface}"
    at_rest(page)
    assert page.evaluate("document.scrollingElement.scrollHeight <= innerHeight")
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator(ROOT).focus()
    page.locator(".ls-legend [data-class]").first.click(modifiers=["Shift"])
    page.wait_for_function("document.querySelector('.ls-status').textContent.endsWith('selected')")
    at_rest(page)
    tools = ".ls-button, .ls-status"
    boxes = [box for one in page.locator(tools).all() if (box := one.bounding_box())]
    assert len(boxes) == 12
    assert min(box["x"] for box in boxes) >= 0
    assert max(box["x"] + box["width"] for box in boxes) <= 390
    before = page.locator(".ls-grid").bounding_box()["height"]
    page.evaluate("scrollTo(0, 200)")
    page.evaluate("dispatchEvent(new Event('resize'))")
    at_rest(page)
    assert page.locator(".ls-grid").bounding_box()["height"] == before


def test_a_file_that_cannot_be_drawn_says_what_to_do(page, tmp_path):
    content = scene_exportable(two_panes()).bytes("html").decode()
    start = content.index('id="relscope-panes">') + len('id="relscope-panes">')
    path = tmp_path / "panes.html"
    path.write_text(content[: start + 400] + content[content.index("</script>", start) :], encoding="utf-8")
    page.goto(path.as_uri())
    page.get_by_role("alert").filter(has_text="Export the page again").wait_for()
    path.write_text(content, encoding="utf-8")
    page.add_init_script("HTMLCanvasElement.prototype.getContext = () => null")
    page.goto(path.as_uri())
    page.get_by_role("alert").filter(has_text="use another browser").wait_for()


# A model like that of Jupyter: it holds the traits (bytes as bytes), and calls listeners when a trait changes.
MODEL = """
([script, state]) => {
  const bytes = text => new DataView(Uint8Array.from(atob(text), (one) => one.charCodeAt(0)).buffer);
  const value = (one) => (typeof one === "string" ? bytes(one) : one);
  const traits = {}, [listening, heard] = [new Set(), new Set()];
  for (const [name, one] of Object.entries(state)) traits[name] = value(one);
  let changed = false; // a model sends what is not what it has
  window.saved = [];
  const model = {
    get: (name) => traits[name],
    set: (name, value) => { changed = traits[name] !== value; traits[name] = value; },
    save_changes: () => changed && window.saved.push(structuredClone(traits._events)),
    on: (name, act) => (name === "msg:custom" ? heard : listening).add(act),
    off: (name, act) => (name === "msg:custom" ? heard : listening).delete(act),
    send: async (content, callbacks, [asked]) => {
      const answer = await window.ask(content, [...new Uint8Array(asked)]);
      if (answer) heard.forEach((act) => act(content, [bytes(answer)]));
    },
  };
  window.change = (changed) => {
    for (const [name, one] of Object.entries(changed)) traits[name] = value(one);
    listening.forEach((act) => act());
  };
  window.listeners = () => listening.size;
  return import(URL.createObjectURL(new Blob([script], { type: "text/javascript" }))).then(({ default: widget }) => {
    window.close_ = widget.render({ model, el: window.output ?? document.body });
  });
}
"""
ROWS = 200


def new_widget(name="row"):

    def draw(anchors):
        rng = np.random.default_rng(len(anchors))
        cloud = np.random.default_rng(0).normal(size=(ROWS, 2))
        panes = Pane("absolute", cloud), Pane("relative", rng.normal(size=(ROWS, 2)))
        if name == "row":
            classes = ("even", "odd")
        else:
            classes = ("first", "second")
        scene = Scene(panes, ids, np.arange(ROWS) % 2, classes, anchors=np.arange(len(anchors)))
        return scene, np.arange(ROWS)

    ids = np.array([f"{name} {i}" for i in range(ROWS)], dtype=object)
    return PanesWidget(ids, draw, anchors=ids[:2].tolist())


@pytest.fixture
def widget():
    return new_widget()


def state(widget):
    traits = {name: getattr(widget, name) for name in widget.keys if name.startswith(("_array", "_header"))}
    packed = {name: base64.b64encode(one).decode() for name, one in traits.items() if isinstance(one, bytes)}
    return traits | packed


def change(page, widget):
    page.evaluate("changed => window.change(changed)", state(widget))


def shown(page, widget, style="", drawn=True):
    page.goto("about:blank")
    page.add_style_tag(content=f"{style}\n{widget._css}")
    page.evaluate(MODEL, [widget._esm, state(widget)])
    if drawn:
        page.wait_for_selector(f"{ROOT}[data-drawn]")
    return page


def test_a_brush_reaches_python_and_its_answer_the_panes(page, widget):
    shown(page, widget)
    page.click(f"{ROOT} [data-tool=box]")
    drag(page, 0, ALL)
    wait_for(page, "selected", ROWS)
    widget._events = page.evaluate("window.saved.at(-1)")
    assert widget.selected_rows == tuple(range(ROWS))
    widget.selection = ["row 3", "row 5"]
    change(page, widget)
    wait_for(page, "selected", 2)


@pytest.mark.slow
def test_an_anchor_is_dragged_in_a_notebook_and_stays(page, monkeypatch):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(ROWS, 8))
    ids = [f"r{row}" for row in range(ROWS)]
    other = rows + rng.normal(size=rows.shape)
    widget = show(LatentSpace(rows, ids), LatentSpace(other, ids), anchors=ids[:5])
    sent = []
    monkeypatch.setattr(widget, "send", lambda content, buffers: sent.append(buffers[0]))

    def ask(content, message):
        widget._dragged(widget, content, [bytes(message)])
        if sent:
            return base64.b64encode(sent.pop()).decode()
        return None

    page.expose_function("ask", ask)
    hear(shown(page, widget))
    hold_star(page)
    heard(page, "drawn", "scores")
    page.mouse.up()
    page.wait_for_function("window.saved.some((all) => all.some((one) => one.kind === 'anchor'))")
    widget._events = page.evaluate("window.saved.at(-1)")
    change(page, widget)
    assert widget.anchors[0] not in ids[:5]
    assert widget.anchors[1:] == tuple(ids[1:5])
    page.wait_for_function("document.querySelector('.ls-live').textContent === ''")


# VS Code names the kind of its theme on `body` and puts the colours on `html`; other homes leave all to the browser.
THEMES = {
    "[data-vscode-theme-kind=vscode-dark] { background: #111 }": "document.body.dataset.vscodeThemeKind = 'vscode-dark'",
    # Browsers compute colours in the notation of their source: marimo's are color(srgb …).
    "html { background: oklch(0.98 0 0) } body { background: color(srgb .5 .5 .5 / 0) }": "document.documentElement.style.background = 'color(srgb 0.07 0.07 0.07)'",
    "html {}": "document.documentElement.style.setProperty('--vscode-editor-background', '#111')",
    "html { color-scheme: light dark }": None,
}


@pytest.mark.parametrize("style", THEMES)
def test_the_theme_follows_a_change_wherever_the_home_has_it(page, widget, style):
    page.emulate_media(color_scheme="light")
    shown(page, widget, style)
    wait_for(page, "theme", "light")
    if THEMES[style]:
        page.evaluate(THEMES[style])
    else:
        page.emulate_media(color_scheme="dark")
    wait_for(page, "theme", "dark")


# Counts who listens to the media queries of the page.
COUNTED = """window.queries = 0;
  for (const [name, step] of [["addEventListener", 1], ["removeEventListener", -1]]) {
    const usual = MediaQueryList.prototype[name];
    MediaQueryList.prototype[name] = function (...given) { window.queries += step; return usual.apply(this, given); };
  }"""


def test_a_closed_widget_leaves_nothing_behind(page, widget):
    page.add_init_script(COUNTED)
    shown(page, widget)
    assert page.evaluate("window.queries") > 0
    page.evaluate("window.close_()")
    assert page.locator(ROOT).count() == 0
    assert page.evaluate("[window.listeners(), window.queries]") == [0, 0]
    page.evaluate("() => { window.output = document.createElement('div'); }")
    page.evaluate(MODEL, [widget._esm, state(widget)])
    page.evaluate("window.close_()")
    asked = """async () => {
      const frame = requestAnimationFrame;
      await new Promise(frame);
      await new Promise(frame);
      let asked = 0;
      window.requestAnimationFrame = (act) => (asked++, frame(act));
      await new Promise(frame);
      await new Promise(frame);
      return asked;
    }"""
    assert page.evaluate(asked) == 0


# Keeps the waits for a second click until the test ends them.
HELD = """() => {
  const [set, clear, held] = [setTimeout, clearTimeout, new Map()];
  window.setTimeout = (act, wait, ...rest) => {
    const number = set(wait === 220 || wait === 240 ? () => {} : act, wait, ...rest);
    if (wait === 220 || wait === 240) held.set(number, act);
    return number;
  };
  window.clearTimeout = (number) => { held.delete(number); clear(number); };
  window.held = held;
}"""


def test_a_click_means_nothing_among_other_rows(page, widget):
    shown(page, widget)
    page.evaluate(HELD)
    page.mouse.click(*star(page, 0, 2))
    assert page.evaluate("window.held.size") == 1
    hover(page, 0, *star(page, 0, 1))
    click = "chip => chip.dispatchEvent(new MouseEvent('click', { detail: 1 }))"
    page.locator(".ls-chip").nth(0).evaluate(click)
    assert page.evaluate("window.held.size") == 2
    change(page, new_widget(name="other"))
    page.get_by_text("first", exact=True).first.wait_for()
    assert page.locator(".ls-tip").is_hidden()
    page.evaluate("window.held.forEach((act) => act())")
    assert page.evaluate("window.saved") == []


def test_a_cell_that_cannot_draw_says_so_until_it_can(page, widget):
    page.add_init_script("""const known = HTMLCanvasElement.prototype.getContext;
        window.allowed = false;
        HTMLCanvasElement.prototype.getContext = function (...given) {
          return window.allowed ? known.apply(this, given) : null;
        };""")
    shown(page, widget, drawn=False)
    page.get_by_role("alert").wait_for()
    assert page.locator(ROOT).count() == 0
    page.evaluate("window.allowed = true")
    change(page, widget)
    page.wait_for_selector(f"{ROOT}[data-drawn]")
    assert page.get_by_role("alert").count() == 0
    page.goto("about:blank")
    rest = {name: one for name, one in state(widget).items() if name != "_array_pane1"}
    page.evaluate("window.allowed = true")
    page.evaluate(MODEL, [widget._esm, rest])
    page.get_by_role("alert").filter(has_text="run this cell again").wait_for()
