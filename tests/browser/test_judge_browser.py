"""Blind judging on the Migrate page, by keys: a judge who knows each row's topic decides for the better model."""

import numpy as np
import pytest

from relcore.migrate.judging import MOST, BlindAnswers
from tests.browser.panes import settle

N, TOPICS = 1500, 30


@pytest.fixture(scope="module")
def migration(servers, tmp_path_factory):
    """The address of the app on two files, and the topic of each row; the old model sees 9 of 12 dimensions."""
    folder, rng = tmp_path_factory.mktemp("judge"), np.random.default_rng(0)
    topics = rng.integers(0, TOPICS, N)
    rows = rng.normal(size=(TOPICS, 12))[topics] + 0.5 * rng.normal(size=(N, 12))
    ids = [f"r{row}" for row in range(N)]
    for name, seen in (("old", 9), ("new", 12)):
        vectors = rows * (np.arange(12) < seen) + 0.3 * rng.normal(size=(N, 12))
        np.savez(folder / f"{name}.npz", vectors=vectors.astype(np.float32), ids=ids)
    return servers.app(folder / "store", ("old.npz", "new.npz"), folder), dict(zip(ids, topics, strict=True))


def answer(page, topic):
    """Press the key of the list with more rows of the query's topic; False at the end.

    A key that comes while the page is drawn again has no effect; the same question is then answered again.
    """
    lists = page.locator("ol.relscope-found")
    if not lists.count():
        return False
    query = topic[page.locator(".relscope-lead").nth(1).inner_text().removeprefix("Query: ")]
    left, right = (sum(topic[row] == query for row in one.split()) for one in lists.all_inner_texts())
    page.keyboard.press(str(2 + int(right > left) - int(right < left)))
    settle(page)
    return True


@pytest.mark.slow
def test_a_judge_by_relevance_decides_for_the_better_model(page, migration, tmp_path):
    url, topic = migration
    page.goto(f"{url}/migrate")
    page.get_by_role("button", name="Left is better").wait_for()
    settle(page)
    verdict = page.locator(".relscope-lead").first
    assert verdict.inner_text().startswith("No verdict.")
    while answer(page, topic):
        pass
    assert verdict.inner_text().startswith("Re-embed the corpus.")
    page.reload()
    page.get_by_role("button", name="Download the answers").wait_for()
    settle(page)
    assert verdict.inner_text().startswith("Re-embed the corpus.")
    with page.expect_download() as started:
        page.get_by_role("button", name="Download the answers").click()
    started.value.save_as(tmp_path / "answers.json")
    assert 9 <= len(BlindAnswers.read(tmp_path / "answers.json").answers) <= MOST
    page.get_by_role("button", name="Take back the last answer").click()
    page.get_by_role("button", name="Left is better").wait_for()
    assert verdict.inner_text().startswith("No verdict.")
