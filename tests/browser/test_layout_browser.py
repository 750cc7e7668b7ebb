"""Headline, controls and all four panes are on one screen: on laptops, and side by side on a phone."""

import numpy as np
import pytest

from tests.browser.panes import ROOT, at_rest, settle

ABOVE = {"compare": (".st-key-headline", ".st-key-view-choosers"), "anchors": (".st-key-anchor-pickers",)}
LAPTOPS = [(1440, 900), (1280, 720)]


@pytest.fixture(scope="module")
def url(serve, tmp_path_factory):
    """The app on two spaces of 300 rows in ten classes, as most pages of own data look."""
    folder, rng = tmp_path_factory.mktemp("spaces"), np.random.default_rng(0)
    labels = np.arange(300) % 10
    vectors = 2 * rng.normal(size=(10, 6))[labels] + rng.normal(size=(300, 6))
    columns = {
        "ids": np.array([f"r{row}" for row in range(300)]),
        "labels": np.array([f"class {label}" for label in labels]),
    }
    for name in ("first", "second"):
        np.savez(folder / f"{name}.npz", vectors=vectors.astype(np.float32), **columns)
        vectors = vectors @ np.linalg.qr(rng.normal(size=(6, 6)))[0]
    environment = {"RELSCOPE_STORE": str(tmp_path_factory.mktemp("store"))}
    return serve(env=environment, arguments=("first.npz", "second.npz"), folder=folder)


def opened(page, url, width, height):
    page.set_viewport_size({"width": width, "height": height})
    page.goto(url)
    page.wait_for_selector(f"{ROOT}[data-drawn]")
    settle(page)
    at_rest(page, ".ls-grid")


def boxes(page, *selectors):
    return {selector: page.locator(selector).first.bounding_box() for selector in selectors}


@pytest.mark.parametrize("size", [*LAPTOPS, (1920, 1080), (390, 844)], ids=str)
def test_all_panes_the_headline_and_the_controls_are_in_sight(page, url, size):
    width, height = size
    for name, above in ABOVE.items():
        opened(page, f"{url}/{'' if name == 'compare' else name}", width, height)
        panes = [pane.bounding_box() for pane in page.locator(".ls-pane").all()]
        assert len(panes) == 4
        for found in [*boxes(page, *above, ".ls-toolbar").values(), *panes]:
            assert found["x"] >= 0
            assert found["x"] + found["width"] <= width
            assert found["y"] + found["height"] <= height
        assert all(min(pane["width"], pane["height"]) >= 150 for pane in panes)
        assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= width
        if size in LAPTOPS:  # one row of controls
            controls = page.locator(f"{above[-1]} > *").all()
            assert (
                len(
                    {
                        round(box["y"] + box["height"])
                        for control in controls
                        if (box := control.bounding_box())
                    }
                )
                == 1
            )


def test_the_panes_take_the_height_of_a_window_that_grows(page, url):
    opened(page, url, 1440, 900)
    before = page.locator(".ls-grid").bounding_box()
    page.set_viewport_size({"width": 1440, "height": 1000})
    page.wait_for_function(
        "before => document.querySelector('.ls-grid').clientHeight > before + 90", arg=before["height"]
    )
    after = page.locator(".ls-grid").bounding_box()
    assert after["y"] == before["y"]
    assert after["height"] == before["height"] + 100
