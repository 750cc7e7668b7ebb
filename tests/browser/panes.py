"""The linked panes, as the browser tests drive them. Every wait is for something that happens, none for a
time.
"""

from __future__ import annotations

import json

from benchmarks.browser_sessions import SETTLED

ROOT = ".ls-root"


def settle(page):
    """Wait until Streamlit has been at rest for a quarter of a second."""
    page.evaluate(SETTLED)


def at_rest(page, selector=ROOT):
    """Wait until the first of these elements has had the same place and size in thirty drawn frames."""
    page.wait_for_selector(selector)
    page.evaluate(
        """selector => new Promise(done => {
          let [before, same] = ["", 0];
          const look = () => {
            const now = JSON.stringify(document.querySelector(selector)?.getBoundingClientRect());
            same = now && now === before ? same + 1 : 0;
            before = now;
            same < 30 ? requestAnimationFrame(look) : done();
          };
          look();
        })""",
        selector,
    )


def views(page):
    return json.loads(page.get_attribute(ROOT, "data-views"))


def pixels(page, pane):
    """A copy of what the pane shows, as one string."""
    return page.evaluate("pane => document.querySelectorAll('.ls-points')[pane].toDataURL()", pane)


def drag(page, pane, path):
    """Press at the first and release at the last of points given as fractions of the pane's plot."""
    box = page.locator(".ls-plot").nth(pane).bounding_box()
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in path]
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*point, steps=5)
    page.mouse.up()


def zoom(page, pane, clicks):
    """Turn the wheel over the pane: the next click once the panes have followed the one before."""
    box = page.locator(".ls-plot").nth(pane).bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.4)
    for _ in range(clicks):
        before = page.get_attribute(ROOT, "data-views")
        page.mouse.wheel(0, -120)
        page.wait_for_function(
            "([root, before]) => document.querySelector(root).dataset.views !== before", arg=[ROOT, before]
        )
