from pathlib import Path

import pytest

from app.places import PLACES
from tests.browser.panes import settle

package = pytest.importorskip("axe_playwright_python", reason="axe-core is in axe-playwright-python")
AXE = (Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
# 1,440 × 900 at 200 % is 720 × 450
WIDE = (1440, 1000)
PHONE = (390, 844)
ZOOMED = (720, 450)
# Both are Streamlit's: the column of check boxes of a table, and the drop zone for files.
KNOWN = ["empty-table-header", "presentation-role-conflict"]
FAULTS = """known => axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
  violations.filter(({ id }) => !known.includes(id))
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`))"""


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE, ZOOMED], ids=["wide", "phone", "zoomed"])
def test_axe_finds_no_fault_on_any_tab(browser, app, size, scheme):
    page = browser.new_context(color_scheme=scheme, viewport={"width": size[0], "height": size[1]}).new_page()
    page.set_default_timeout(120_000)
    found = {}
    for name, place in PLACES.items():
        page.goto(f"{app}/{name}")
        page.locator(".st-key-history").wait_for()
        settle(page)
        for tab in place.tabs or ("",):
            if tab:
                page.get_by_role("tab", name=tab).click()
            settle(page)
            page.evaluate(AXE)
            found[name, tab] = page.evaluate(FAULTS, KNOWN)
            main = page.get_by_test_id("stMain")
            assert main.evaluate("main => main.scrollWidth <= main.clientWidth"), (name, tab)
    assert {place: faults for place, faults in found.items() if faults} == {}
    page.context.close()
