"""The Migrate page in a real browser: a picture at once, the tabs, and the adapter as a file."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

MAIN = Path(__file__).parents[2] / "app" / "main.py"
CHARTS = ".js-plotly-plot .scatterlayer"


@pytest.fixture(scope="module")
def url(serve, tmp_path_factory):
    return serve(MAIN, env={"RELSCOPE_STORE": str(tmp_path_factory.mktemp("store"))})


@pytest.fixture
def migrate(page, url):
    page.goto(f"{url}/migrate")
    page.locator(CHARTS).first.wait_for()
    return page


def test_the_example_opens_with_its_picture_and_without_a_job(migrate):
    migrate.get_by_text("This result comes with Relscope").wait_for()
    assert "nDCG@10 is .570 with the old model" in migrate.locator(".relscope-lead").inner_text()
    assert migrate.get_by_role("progressbar").count() == 0
    assert migrate.locator(".js-plotly-plot").count() == 1


def test_tabs_bring_their_figures(migrate):
    migrate.get_by_role("tab", name="Thresholds").click()
    migrate.get_by_text("Replace the threshold").wait_for()
    migrate.locator(CHARTS).nth(1).wait_for()
    migrate.get_by_role("tab", name="Queries that get worse").click()
    migrate.get_by_text("queries get worse by").wait_for()


def test_the_adapter_is_downloaded(migrate, tmp_path):
    migrate.get_by_role("tab", name="Export adapter").click()
    button = migrate.get_by_role("button", name="Download the adapter")
    button.wait_for()
    with migrate.expect_download() as started:
        button.click()
    started.value.save_as(tmp_path / "adapter.zip")
    with zipfile.ZipFile(tmp_path / "adapter.zip") as files:
        assert {"adapter.safetensors", "apply.py"} <= set(files.namelist())
