"""The widget's script in a real Chromium with a model of our own in Jupyter's place; `tests/installed` has
the real one.
"""

import base64
from dataclasses import replace

import numpy as np
import pytest

from relcore.charts.scene import Pane, Scene
from relcore.panes.widget import PanesWidget
from tests.browser.panes import ROOT, drag, pixels, views, zoom

N = 200
# A model holds the traits, as bytes where Python has bytes, and tells who listens that one has changed.
MODEL = """
([script, state]) => {
  const bytes = text => new DataView(Uint8Array.from(atob(text), one => one.charCodeAt(0)).buffer);
  const given = one => (typeof one === "string" ? bytes(one) : one);
  const traits = Object.fromEntries(Object.entries(state).map(([name, one]) => [name, given(one)]));
  const heard = new Set();
  let changed = false; // a model sends what is not what it has
  window.saved = [];
  const model = {
    get: name => traits[name],
    set: (name, value) => { changed = traits[name] !== value; traits[name] = value; },
    save_changes: () => changed && window.saved.push(structuredClone(traits._events)),
    on: (name, act) => heard.add(act),
    off: (name, act) => heard.delete(act),
  };
  window.change = changed => {
    for (const [name, one] of Object.entries(changed)) traits[name] = given(one);
    heard.forEach(act => act());
  };
  window.listeners = () => heard.size;
  return import(URL.createObjectURL(new Blob([script], { type: "text/javascript" }))).then(({ default: widget }) => {
    window.close_ = widget.render({ model, el: window.output ?? document.body });
  });
}
"""


def draw(anchors):
    rng = np.random.default_rng(len(anchors))
    cloud = np.random.default_rng(0).normal(size=(N, 2))
    panes = Pane("absolute", cloud), Pane("relative", rng.normal(size=(N, 2)))
    ids = np.array([f"row {i}" for i in range(N)], dtype=object)
    return Scene(panes, ids, np.arange(N) % 2, ("even", "odd"), anchors=np.arange(len(anchors))), np.arange(N)


@pytest.fixture
def widget():
    return PanesWidget(
        np.array([f"row {i}" for i in range(N)], dtype=object), draw, anchors=["row 0", "row 1"]
    )


def state(widget):
    """What Python syncs, bytes as base64."""
    traits = {
        name: getattr(widget, name) for name in set(widget.keys) if name.startswith(("_array", "_header"))
    }
    return {
        name: base64.b64encode(one).decode() if isinstance(one, bytes) else one
        for name, one in traits.items()
    }


def opened(page, widget, style=""):
    page.goto("about:blank")
    page.add_style_tag(content=f"{style}\n{widget._css}")
    page.evaluate(MODEL, [widget._esm, state(widget)])
    return page


def test_a_brush_reaches_python_and_its_answer_the_panes(page, widget):
    opened(page, widget).wait_for_selector(f"{ROOT}[data-drawn]")
    page.click(f"{ROOT} [data-tool=box]")
    drag(page, 0, [(0.002, 0.002), (0.998, 0.998)])
    page.wait_for_selector(f"{ROOT}[data-selected='{N}']")
    widget._events = page.evaluate("window.saved.at(-1)")
    assert widget.selected_rows == tuple(range(N))
    widget.selection = ["row 3", "row 5"]
    page.evaluate("changed => window.change(changed)", state(widget))
    page.wait_for_selector(f"{ROOT}[data-selected='2']")


def test_new_anchors_keep_the_zoom(page, widget):
    opened(page, widget).wait_for_selector(f"{ROOT}[data-drawn]")
    zoom(page, 1, clicks=2)
    zoomed, drawn = views(page), page.get_attribute(ROOT, "data-drawn").split("-")
    widget.anchors = ["row 0", "row 1", "row 2"]
    page.evaluate("changed => window.change(changed)", state(widget))
    page.wait_for_selector(f"{ROOT}[data-anchors='3']")
    now = page.get_attribute(ROOT, "data-drawn").split("-")
    assert [one == other for one, other in zip(drawn, now, strict=True)] == [True, False]
    assert views(page) == zoomed


@pytest.mark.parametrize("changed", [0, 1])
def test_another_picture_shows_the_part_that_the_linked_panes_show(page, widget, changed):
    opened(page, widget).wait_for_selector(f"{ROOT}[data-drawn]")
    page.click(f"{ROOT} [data-tool=link]")
    zoom(page, 1, clicks=2)
    zoomed = views(page)

    def other(anchors):
        scene, rows = draw(anchors)
        panes = [
            replace(pane, title="whitened") if i == changed else pane for i, pane in enumerate(scene.panes)
        ]
        return replace(scene, panes=tuple(panes)), rows

    ids = np.array([f"row {i}" for i in range(N)], dtype=object)
    page.evaluate(
        "changed => window.change(changed)",
        state(PanesWidget(ids, other, anchors=["row 0", "row 1", "row 2"])),
    )
    page.wait_for_selector(f"{ROOT}[data-anchors='3']")
    assert page.get_by_text("whitened", exact=True).count() == 1
    assert views(page) == ([[0, 0, 1]] * 2 if changed == 0 else zoomed)


# Browsers compute colours in the notation of their source: marimo's are color(srgb …).
@pytest.mark.parametrize(
    ("background", "theme"),
    [
        ("color(srgb 1 1 1)", "light"),
        ("color(srgb 0.07 0.07 0.07)", "dark"),
        ("oklch(0.98 0 0)", "light"),
        ("#111", "dark"),
    ],
)
def test_the_theme_follows_the_page_in_any_notation_of_its_colour(page, widget, background, theme):
    style = f"html {{ background: {background} }} body {{ background: color(srgb .5 .5 .5 / 0) }}"
    opened(page, widget, style).wait_for_selector(f"{ROOT}[data-drawn][data-theme={theme}]", timeout=10_000)


# VS Code names the kind of its theme on `body` and puts the colours on `html`; other homes leave all to the
# browser.
@pytest.mark.parametrize(
    ("style", "change"),
    [
        (".night { background: #111 }", "document.documentElement.classList.add('night')"),
        ("[data-theme=night] body { background: #111 }", "document.documentElement.dataset.theme = 'night'"),
        (
            "[data-vscode-theme-kind=vscode-dark] { background: #111 }",
            "document.body.dataset.vscodeThemeKind = 'vscode-dark'",
        ),
        ("html {}", "document.documentElement.style.setProperty('--vscode-editor-background', '#111')"),
        ("html { color-scheme: light dark }", None),
    ],
)
def test_the_theme_follows_a_change_wherever_the_home_tells_it(page, widget, style, change):
    page.emulate_media(color_scheme="light")
    opened(page, widget, style).wait_for_selector(f"{ROOT}[data-drawn][data-theme=light]")
    if change:
        page.evaluate(change)
    else:
        page.emulate_media(color_scheme="dark")
    page.wait_for_selector(f"{ROOT}[data-theme=dark]", timeout=10_000)


# Counts who listens to the media queries of the page.
COUNTED = """window.queries = 0;
  const known = MediaQueryList.prototype;
  for (const [name, step] of [["addEventListener", 1], ["removeEventListener", -1]]) {
    const usual = known[name];
    known[name] = function (...given) { window.queries += step; return usual.apply(this, given); };
  }"""


def test_a_closed_widget_leaves_nothing_behind(page, widget):
    page.add_init_script(COUNTED)
    opened(page, widget).wait_for_selector(f"{ROOT}[data-drawn]")
    assert page.evaluate("window.queries") > 0
    page.evaluate("window.close_()")
    assert page.locator(ROOT).count() == 0
    assert page.evaluate("[window.listeners(), window.queries]") == [0, 0]


def click_star(page, number):
    box = page.locator(".ls-plot").nth(0).locator(".ls-star").nth(number).bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def test_clicks_that_python_has_not_answered_are_sent_together(page, widget):
    opened(page, widget).wait_for_selector(f"{ROOT}[data-drawn]")
    for number in (0, 1):
        click_star(page, number)
        page.wait_for_function("n => window.saved.at(-1)?.length === n", arg=number + 1)
    assert [event["row"] for event in page.evaluate("window.saved.at(-1)")] == [0, 1]


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


def other_rows():
    """A widget of other rows and classes in the same places."""

    def others(anchors):
        scene, rows = draw(anchors)
        ids = np.array([f"other {i}" for i in range(N)], dtype=object)
        return replace(scene, ids=ids, category_names=("first", "second")), rows

    ids = np.array([f"other {i}" for i in range(N)], dtype=object)
    return PanesWidget(ids, others, anchors=["other 0", "other 1"])


def test_a_click_or_a_hover_on_a_row_means_nothing_among_other_rows(page, widget):
    opened(page, widget).wait_for_selector(f"{ROOT}[data-drawn]")
    page.evaluate(HELD)
    click_star(page, 1)
    assert page.evaluate("window.held.size") == 1
    page.mouse.move(0, 0)
    box = page.locator(".ls-plot").nth(0).locator(".ls-star").nth(0).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_selector(".ls-tip:not([hidden])")
    page.locator(".ls-chip").nth(0).evaluate(
        "chip => chip.dispatchEvent(new MouseEvent('click', { detail: 1 }))"
    )
    assert page.evaluate("window.held.size") == 2
    page.evaluate("changed => window.change(changed)", state(other_rows()))
    page.get_by_text("first", exact=True).first.wait_for()
    assert page.locator(".ls-tip").is_hidden()
    page.evaluate("window.held.forEach((act) => act())")
    assert page.evaluate("window.saved") == []


def test_a_widget_that_was_never_shown_stops_waiting_for_it(page, widget):
    page.goto("about:blank")
    page.evaluate("() => { window.output = document.createElement('div'); }")
    page.evaluate(MODEL, [widget._esm, state(widget)])
    page.evaluate("window.close_()")
    asked = """async () => {
      const known = requestAnimationFrame;
      await new Promise(known);
      await new Promise(known);
      let asked = 0;
      window.requestAnimationFrame = (act) => (asked++, known(act));
      await new Promise(known);
      await new Promise(known);
      return asked;
    }"""
    assert page.evaluate(asked) == 0


def test_a_pane_that_the_browser_stops_drawing_says_so_until_it_is_back(page, widget):
    page.add_init_script("window.relscopePoints = 'webgl'")
    opened(page, widget).wait_for_selector(f"{ROOT}[data-drawn]")
    before = pixels(page, 0)
    lose = (
        "window.taken ="
        " document.querySelector('.ls-points').getContext('webgl2').getExtension('WEBGL_lose_context')"
    )
    page.evaluate(f"() => {{ {lose}; window.taken.loseContext(); }}")
    page.get_by_text("The browser has stopped drawing points").first.wait_for()
    page.evaluate("window.taken.restoreContext()")
    page.locator(".ls-density-key").first.wait_for(state="hidden")
    assert pixels(page, 0) == before


def test_escape_in_a_list_gives_the_keys_back_to_the_panes(page, widget):
    opened(page, widget).wait_for_selector(f"{ROOT}[data-drawn]")
    page.click(f"{ROOT} [data-tool=help]")
    assert page.get_by_role("group", name="Keys").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("b")
    page.wait_for_selector(f"{ROOT}[data-tool=box]")


def test_without_webgl_the_panes_are_drawn_too(page, widget):
    page.add_init_script("""const known = HTMLCanvasElement.prototype.getContext;
        HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
          return kind === "webgl2" ? null : known.call(this, kind, ...rest);
        };""")
    opened(page, widget).wait_for_selector(f"{ROOT}[data-drawn]")
    assert page.get_by_role("alert").count() == 0


def test_a_cell_that_cannot_draw_says_so_until_it_can(page, widget):
    page.add_init_script("""const known = HTMLCanvasElement.prototype.getContext;
        HTMLCanvasElement.prototype.getContext = function (...given) {
          return window.allowed ? known.apply(this, given) : null;
        };""")
    opened(page, widget)
    page.get_by_role("alert").wait_for()
    assert page.locator(ROOT).count() == 0
    page.evaluate("changed => { window.allowed = true; window.change(changed); }", state(widget))
    page.wait_for_selector(f"{ROOT}[data-drawn]")
    assert page.get_by_role("alert").count() == 0


def test_a_cell_without_its_data_says_what_to_do(page, widget):
    page.goto("about:blank")
    page.evaluate(
        MODEL, [widget._esm, {name: one for name, one in state(widget).items() if name != "_array_pane1"}]
    )
    page.get_by_role("alert").filter(has_text="run this cell again").wait_for(timeout=10_000)
