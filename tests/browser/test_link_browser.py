"""Connect › Link in a browser: two files without shared ids, ten typed pairs, the verdict, and the links in use."""

import numpy as np

from tests.browser.panes import settle


def test_two_files_are_linked_from_typed_pairs_and_used_everywhere(page, servers, tmp_path):
    rng = np.random.default_rng(0)
    vectors = rng.gamma(1.0, size=(150, 12)) + rng.normal(size=(4, 12))[rng.integers(4, size=150)]
    turned = vectors @ np.linalg.qr(rng.normal(size=(12, 12)))[0]
    for name, prefix, rows in (("a", "q", vectors), ("b", "z", turned)):
        ids = [f"{prefix}{row}" for row in range(150)]
        np.savez(tmp_path / f"{name}.npz", vectors=rows.astype(np.float32), ids=ids)
    page.goto(servers.app(tmp_path / "store", ("a.npz", "b.npz"), tmp_path) + "/connect")
    page.get_by_role("tab", name="Link", exact=True).click()
    settle(page)
    page.get_by_text("A few pairs", exact=True).click()
    field = page.get_by_role("textbox", name="One pair per line")
    field.fill("\n".join(f"q{row} = z{row}" for row in range(10)))
    field.press("Control+Enter")
    settle(page)
    page.locator(".st-key-bootstrap-start button").click()
    page.get_by_text("Links to check").wait_for()
    assert page.get_by_text("Linked.").count()
    page.get_by_role("button", name="Use them everywhere").click()
    page.get_by_text("These rows are linked.").wait_for()
