import numpy as np
import pytest

from tests.browser.panes import settle

STEPS = (0, 1, 3, 10, 30, 100)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs of checkpoints in whose last frame the rows lie as they do in no other one."""
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(0)
    for name in ("first", "second"):
        (folder / name).mkdir()
        rows = rng.normal(size=(60, 5))
        for step in STEPS:
            np.save(folder / name / f"step-{step}.npy", rows + rng.normal(size=rows.shape))
    return folder


def opened(page, address, folder):
    page.goto(f"{address}/research")
    page.get_by_role("tab", name="Training").click()
    page.get_by_text("A folder of runs").click()
    page.get_by_role("textbox", name="Folder").fill(str(folder))
    page.keyboard.press("Enter")
    return page.locator(".mm-root")


@pytest.fixture
def player(watched, own, runs):
    player = opened(watched, own[0], runs)
    settle(watched)
    return player


def shows(page, frame):
    page.locator(f'.mm-root[data-frame="{frame}"]').wait_for()
    assert page.locator(".mm-step").text_content() == f"step {STEPS[frame]}"


def pictures(page):
    """The pixels of both maps, as text."""
    return page.locator(".mm-plot canvas").evaluate_all("(all) => all.map((one) => one.toDataURL())")


def test_frames_play_and_the_step_stays_on_the_page(watched, player):
    shows(watched, 0)
    first = pictures(watched)
    watched.evaluate(
        """() => {
            const page = [...document.querySelectorAll("*")].map((one) => one.shadowRoot).find((one) => one?.querySelector(".mm-root"));
            const root = page.querySelector(".mm-root");
            window.seen = [root.dataset.frame];
            new MutationObserver(() => seen.push(root.dataset.frame)).observe(root, { attributeFilter: ["data-frame"] });
            const put = CanvasRenderingContext2D.prototype.putImageData;
            window.drawn = [];
            CanvasRenderingContext2D.prototype.putImageData = function (...given) {
                const now = page.querySelector(".mm-now");
                if (now) drawn.push(now.style.transform);
                return put.apply(this, given);
            };
        }"""
    )
    player.get_by_role("button", name="Play").click()
    shows(watched, len(STEPS) - 1)
    player.get_by_role("button", name="Play").wait_for()  # it stopped at the end
    seen = list(map(int, watched.evaluate("seen")))
    assert seen == sorted(seen)
    assert len(set(seen)) > 2
    # Where motion is to be reduced, as in these pages, both maps are drawn once a frame: points do not glide.
    assert len(watched.evaluate("drawn")) == len(watched.evaluate("[...new Set(drawn)]")) * 2
    last = pictures(watched)
    assert all(one != other for one, other in zip(first, last, strict=True))
    player.get_by_role("slider").focus()
    watched.keyboard.press("ArrowLeft")
    watched.keyboard.press("ArrowLeft")
    shows(watched, len(STEPS) - 3)
    settle(watched)
    watched.get_by_role("tab", name="Papers").click()
    player.wait_for(state="detached")
    watched.get_by_role("tab", name="Training").click()
    shows(watched, len(STEPS) - 3)
    settle(watched)
    a_click_on_the_lines_shows_its_frame(watched, player)
    a_row_is_ringed_in_both_maps(watched, player)


def a_click_on_the_lines_shows_its_frame(page, player):
    chart = player.get_by_role("img", name="MRR").bounding_box()
    page.mouse.click(chart["x"] + chart["width"] - 13, chart["y"] + 30)
    shows(page, len(STEPS) - 1)


def a_row_is_ringed_in_both_maps(page, player):
    plot = player.locator(".mm-plot").first.bounding_box()
    middle = plot["x"] + plot["width"] / 2, plot["y"] + plot["height"] / 2
    for up in range(0, 150, 4):  # along a line, until a row is near
        page.mouse.move(middle[0], middle[1] - up)
        if player.locator(".ls-tip").is_visible():
            break
    assert player.locator(".ls-tip strong").text_content().isdigit()
    assert player.locator('.ls-ring[visibility="visible"]').count() == 2


def test_frames_of_a_training_are_drawn_as_they_come(watched, own, tmp_path):
    torch = pytest.importorskip("torch")
    from relcore.training.watching import watch

    network = torch.nn.Linear(5, 4)
    rows = torch.rand(60, 5)
    with watch(tmp_path / "first", network, rows, budget=None) as run:
        run.step()
        player = opened(watched, own[0], tmp_path)
        said = player.locator(".mm-step")
        said.get_by_text("step 1", exact=True).wait_for()  # of runs that grow, the last frame is shown
        run.step()
        said.get_by_text("step 2", exact=True).wait_for()
        player.get_by_role("button", name="One step back").click()
        said.get_by_text("step 1", exact=True).wait_for()
        settle(watched)
        run.step()
        watched.wait_for_function(
            "(slider) => slider.max === '3'", arg=player.get_by_role("slider").element_handle()
        )
        assert said.text_content() == "step 1"  # the reader looks at another one
    watched.get_by_text("still in training").wait_for(state="detached")
    player.get_by_text("to its last frame").wait_for()
    assert said.text_content() == "step 1"


@pytest.mark.slow
@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_a_training_that_has_ended_is_played_to_its_end_by_itself(watched, own, motion):
    pytest.importorskip("torch")
    watched.emulate_media(reduced_motion=motion)
    watched.goto(f"{own[0]}/research")
    watched.get_by_role("tab", name="Training").click()
    watched.get_by_role("button", name="Train", exact=True).click()
    player = watched.locator(".mm-root")
    player.locator(".mm-step").get_by_text("step 30", exact=True).wait_for()
    player.get_by_role("button", name="Play").wait_for()
    settle(watched)
    player.get_by_role("button", name="One step back").click()  # it does not play again
    settle(watched)
    assert player.locator(".mm-step").text_content() != "step 30"
