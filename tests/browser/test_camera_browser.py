from pathlib import Path

import numpy as np
import pytest

from app.components.drawing_pad import read_picture
from tests.browser.chromium import FLAGS, find_chromium

SCRIPT = Path(__file__).parents[2] / "app" / "components" / "camera.js"
# Python's part: each picture is answered, until `most` have come.
MOUNT = """async ([script, most]) => {
  const { default: mount } = await import(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
  window.pictures = [];
  const show = () => {
    const data = { label: "What the camera sees", size: 120, answered: pictures.length };
    window.close_ = mount({ data, parentElement: document.body, setStateValue: (name, picture) => {
      pictures.push(picture);
      if (pictures.length < most) setTimeout(show);
    } });
  };
  show();
}"""


@pytest.fixture
def camera(tmp_path, browser, demo):
    seen = np.full((240, 320), 30, dtype=np.uint8)
    seen[80:160, 60:140] = 220
    frame = seen.tobytes() + bytes([128]) * (160 * 120 * 2)
    film = tmp_path / "camera.y4m"
    film.write_bytes(b"YUV4MPEG2 W320 H240 F20:1 C420jpeg\n" + 20 * (b"FRAME\n" + frame))
    fake = ["--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream"]
    arguments = [*FLAGS, *fake, f"--use-file-for-fake-video-capture={film}"]
    other = browser.browser_type.launch(executable_path=find_chromium(), args=arguments)
    page = other.new_page()
    page.goto(f"{demo}/_stcore/health")  # cameras are for secure origins only
    yield page
    other.close()


def test_pictures_come_one_by_one_from_start_to_stop(camera):
    refuse = "() => { throw new DOMException('no', 'NotAllowedError'); }"
    camera.evaluate(f"() => {{ navigator.mediaDevices.getUserMedia = async {refuse}; }}")
    camera.evaluate(MOUNT, [SCRIPT.read_text(encoding="utf-8"), 6])
    camera.get_by_role("button", name="Start the camera").click()
    camera.get_by_text("(NotAllowedError). Allow it").wait_for()
    assert camera.evaluate("pictures.length") == 0
    camera.reload()
    camera.evaluate(MOUNT, [SCRIPT.read_text(encoding="utf-8"), 6])
    assert camera.evaluate("pictures.length") == 0
    camera.get_by_role("button", name="Start the camera").click()
    camera.wait_for_function("pictures.length === 6")  # and no seventh, which nothing has asked for
    picture = read_picture(camera.evaluate("pictures.at(-1)"))
    assert picture.size == (120, 120)
    grey = np.asarray(picture.convert("L"))
    assert grey[60, 30] > 180 > 90 > grey[60, 100]  # the square of 240 in the middle: 40 … 280 across
    camera.get_by_role("button", name="Stop the camera").click()
    assert camera.evaluate("document.querySelector('video').srcObject") is None


PAD = """async (script) => {
  const { default: mount } = await import(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
  window.pictures = [];
  window.answer = (answered) => mount({
    data: { label: "Draw", size: 120, answered }, parentElement: document.body, setStateValue: (_, picture) => pictures.push(picture),
  });
  answer(0);
}"""


def test_a_drawing_is_sent_when_the_last_is_answered(page, demo):
    page.goto(f"{demo}/_stcore/health")
    page.evaluate(PAD, SCRIPT.with_name("drawing_pad.js").read_text(encoding="utf-8"))
    box = page.locator("canvas").bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 80, box["y"] + 80, steps=8)
    assert page.evaluate("pictures.length") == 1  # the rest waits for the answer
    page.evaluate("answer(1)")
    assert page.evaluate("pictures.length") == 2
    page.evaluate("answer(2)")
    assert page.evaluate("pictures.length") == 2  # nothing new was drawn
    page.mouse.up()
    assert page.evaluate("pictures.length") == 3
    assert page.evaluate("pictures[1] === pictures[2] && pictures[0] !== pictures[1]")
