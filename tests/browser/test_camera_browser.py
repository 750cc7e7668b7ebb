"""The camera of *Try it*, in a Chromium whose camera is a file: off until it is started, one picture an answer, and
off again.
"""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

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
    """A page with a camera that sees a bright square in the middle of the left half of the dark."""
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


def test_pictures_come_one_by_one_from_the_start_to_the_stop(camera):
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
    assert isinstance(picture, Image.Image)


def test_a_camera_that_is_refused_is_told(camera):
    camera.evaluate(
        "() => { navigator.mediaDevices.getUserMedia = async () => { throw new DOMException('no', 'NotAllowedError'); }; }"
    )
    camera.evaluate(MOUNT, [SCRIPT.read_text(encoding="utf-8"), 6])
    camera.get_by_role("button", name="Start the camera").click()
    camera.get_by_text("(NotAllowedError). Allow it").wait_for()
    assert camera.evaluate("pictures.length") == 0
