"""The linked panes, as the browser tests drive them; every wait is for something that happens."""

import base64
import json
import re
from functools import cache
from io import BytesIO

import numpy as np
from matplotlib.path import Path as Polygon
from PIL import Image

from relcore.figures.colorings import Pane
from relcore.figures.scene import Scene
from relcore.panes.page import part, script
from relcore.panes.payload import POSITION_STEPS, PaneSettings, ids_digest, payload_of, unpack_rows
from tests.browser.chromium import SETTLED

ROOT = ".ls-root"
PLACES = ("Start", "Connect", "Migrate", "Research", "Explore")
CLASSES = ("countries", "capitals", "animals", "professions", "emotions", "colours")
TITLES = ("Word2Vec · shared axes", "FastText · shared axes", "Word2Vec · relative", "FastText · relative")


def clouds(n, classed):
    """The classes (n,) of blobs, -1 for a share of 1 - `classed`, and the coordinates (n, 2) of four panes."""
    rng = np.random.default_rng(0)
    classes = np.where(rng.random(n) < classed, rng.integers(0, len(CLASSES), n), -1)
    centres = rng.normal(size=(len(CLASSES) + 1, 2)) * 2.2
    spread = np.where(classes < 0, 2.4, 0.6)[:, None]
    base = centres[classes] * (classes >= 0)[:, None] + rng.normal(size=(n, 2)) * spread
    turn = np.array([[np.cos(2.1), -np.sin(2.1)], [np.sin(2.1), np.cos(2.1)]])
    bent = np.c_[np.tanh(base[:, 0] / 3), np.tanh(base[:, 1] / 3) + 0.1 * base[:, 0] ** 2 / 9]
    return classes, [base * 40, base @ turn, bent, bent + rng.normal(size=(n, 2)) * 0.02]


def scene(n=2000, panes=4, anchors=8, classed=1.0, solid=False, **parts):
    """`clouds` as a scene; every seventh row is an anchor."""
    classes, coordinates = clouds(n, classed)
    if solid:
        coordinates = [np.c_[cloud, cloud.std() * np.sin(np.arange(n))] for cloud in coordinates]
    ids = np.array([f"word {row}" for row in range(n)], dtype=object)
    drawn = tuple(Pane(title, cloud, "PCA") for title, cloud in zip(TITLES, coordinates, strict=True))
    caption = f"{n:,} rows in {panes} panes."
    stars = np.arange(anchors) * 7 % n
    usual = {"anchors": stars, "caption": caption, "named": True}
    return Scene(drawn[:panes], ids, classes, CLASSES, **{**usual, **parts})


# A page for the panes without a server: `events` has what the panes report, and `files` what they may load.
HOME = """
const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
window.events = [];
window.loads = [];
const load = async (name) => {
  window.loads.push(name);
  if (!(name in window.files)) throw new Error(name);
  return new Blob([bytes(window.files[name])]);
};
const home = { send: (all) => window.events.push(all.at(-1)), load, scroller: () => null, content: () => null };
window.draw = (content) => {
  window.scatter = render(host, unpack(bytes(content)), { ...home, background: "Canvas" });
};
window.again = (content) => (remove(host), draw(content));
const wait = setTimeout;
window.clear = () => {
  if (window.scatter) remove(host);
  for (const name of ["scatter", "relscopePoints"]) delete window[name];
  Object.assign(window, { events: [], loads: [], files: {}, setTimeout: wait });
  performance.clearMarks();
  host.removeAttribute("style");
  scrollTo(0, 0);
};
"""


@cache
def _document():
    colours = ":root { color-scheme: light dark; background: Canvas }"
    body = f"<div id=host></div><script type=module>{script(HOME)}</script>"
    return f"<!doctype html><meta charset=utf-8><style>{colours}{part('panes.css')}</style>{body}"


def content(scene, selected=None, sheet=None, files=(), **settings):
    """A payload in base64; what Python selects overrides what was selected in the browser."""
    payload = payload_of(
        scene,
        version=ids_digest(scene),
        answered=1 << 50,
        selected=selected,
        sheet=sheet,
        files={name: name for name in files},
        settings=PaneSettings(**settings),
    )
    return base64.b64encode(payload.to_bytes()).decode()


def draw(page, scene, selected=None, files=None, **settings):
    """Draw the scene in the renderer alone, without Streamlit. Later calls on the same page send the next
    payload."""
    if not page.evaluate("Boolean(window.draw)"):
        page.set_content(_document())
        page.wait_for_function("Boolean(window.draw)")
    files = {name: base64.b64encode(one).decode() for name, one in (files or {}).items()}
    page.evaluate("files => { window.files = files; }", files)
    page.evaluate("content => draw(content)", content(scene, selected, files=files, **settings))
    page.wait_for_selector(f"{ROOT}[data-drawn]")
    return page


def events(page, count):
    """Wait for at least this number of reported events and return them, with the rows of a selection as a
    list."""
    page.wait_for_function("count => window.events.length >= count", arg=count)
    reported = page.evaluate("window.events.map(({ serial, version, ...event }) => event)")
    n = page.evaluate("scatter.header.n")
    for event in reported:
        if "bits" in event:
            event["rows"] = unpack_rows(base64.b64decode(event.pop("bits")), n).tolist()
    return reported


def settle(page):
    page.evaluate(SETTLED)


def at_rest(page, selector=ROOT):
    """Wait until the first of these elements has had the same place and size in ten drawn frames."""
    page.wait_for_selector(selector)
    page.evaluate(
        """selector => new Promise(done => {
          let [before, same] = ["", 0];
          const look = () => {
            const now = JSON.stringify(document.querySelector(selector)?.getBoundingClientRect());
            same = now && now === before ? same + 1 : 0;
            before = now;
            same < 10 ? requestAnimationFrame(look) : done();
          };
          look();
        })""",
        selector,
    )


def opened(page, url, size=(1440, 1000)):
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto(url)
    page.wait_for_selector(f"{ROOT}[data-drawn]")
    settle(page)
    return page


def keys(page, *pressed):
    page.locator(ROOT).focus()
    for key in pressed:
        page.keyboard.press(key)


def says(page, name):
    return page.get_attribute(ROOT, f"data-{name}")


def views(page):
    return json.loads(says(page, "views"))


def wait_for_other(page, name, before):
    """Wait until this value in the panes' data attributes has changed."""
    changed = "([root, name, before]) => document.querySelector(root).dataset[name] !== before"
    page.wait_for_function(changed, arg=[ROOT, name, before])


def unchanged(page, drawn):
    return [
        now == before for now, before in zip(says(page, "drawn").split("-"), drawn.split("-"), strict=True)
    ]


def hear(page):
    page.evaluate(
        """root => {
          window.heard = [];
          document.querySelector(root).addEventListener("ls-hand", ({ detail }) => heard.push(detail.what));
        }""",
        ROOT,
    )


def heard(page, *what):
    page.wait_for_function("what => what.every((one) => heard.includes(one))", arg=what)


def hold_star(page, pane=2):
    """Drag the first star to the middle of the pane, without releasing it."""
    page.mouse.move(*star(page, pane, 1))
    page.wait_for_selector(".ls-on-star")
    page.mouse.down()
    box = page.locator(".ls-plot").nth(pane).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=12)


def wait_for(page, name, value):
    page.wait_for_selector(f"{ROOT}[data-{name}='{value}']")


def pixels(page, pane):
    return page.evaluate("pane => document.querySelectorAll('.ls-points')[pane].toDataURL()", pane)


def picture(page, selector, pane):
    """What a canvas of the pane shows, (height, width, 4) of red, green, blue and alpha."""
    copy = "([selector, pane]) => document.querySelectorAll(selector)[pane].toDataURL()"
    image = Image.open(BytesIO(base64.b64decode(page.evaluate(copy, [selector, pane]).split(",")[1])))
    return np.asarray(image.convert("RGBA"))


def star(page, pane, number):
    box = page.locator(".ls-plot").nth(pane).locator(".ls-star").nth(number - 1).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(page, pane, path):
    """Drag along points, which are given as fractions of the pane's plot."""
    box = page.locator(".ls-plot").nth(pane).bounding_box()
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in path]
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*point, steps=5)
    page.mouse.up()


def lasso(page, pane=0):
    """Select a square in the middle of the pane, wait for the selection, and return the number of its
    rows."""
    drag(page, pane, [(0.3, 0.3), (0.7, 0.3), (0.7, 0.7), (0.3, 0.7)])
    page.wait_for_selector(f"{ROOT}:not([data-selected='0'])")
    return int(says(page, "selected"))


def inside(page, steps):
    """The rows inside the last brush; `steps` are their places, in steps of the pane."""
    units = page.evaluate("performance.getEntriesByName('linked_scatter:brushed').at(-1).detail")
    edge = (np.array(units) + 1) * POSITION_STEPS / 2
    return np.flatnonzero(Polygon(edge).contains_points(steps)).tolist()


def over(page, pane):
    box = page.locator(".ls-plot").nth(pane).bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.4)


def zoom(page, pane, clicks):
    """Turn the wheel over the pane by some clicks. Each click waits until the panes have followed the last
    one."""
    page.locator(ROOT).focus()
    over(page, pane)
    for _ in range(clicks):
        before = says(page, "views")
        page.mouse.wheel(0, -120)
        wait_for_other(page, "views", before)


def hover(page, pane, x, y):
    """Move the pointer to this point, and away from it first so that it is a new hover. Returns the box of
    the tip."""
    page.mouse.move(2, 2)
    page.wait_for_selector(".ls-tip", state="hidden")
    page.mouse.move(x, y)
    page.wait_for_selector(".ls-tip:not([hidden])")
    return page.locator(".ls-tip").bounding_box()


def chip(page, name):
    entry = page.locator(".ls-chip", has_text=name)
    return entry, int(re.search(r"(\d+) points", entry.get_attribute("title"))[1])
