import numpy as np
import pytest
from PIL import Image

from relcore.base.errors import SpaceError
from relcore.encoders.encoder import eight_bits


def picture(mode, size=(5, 3)):
    return Image.new(mode, size)


def test_sixteen_bits_keep_the_upper_eight():
    image = Image.fromarray(np.array([[0, 255, 256, 65535]], dtype=np.uint16))
    np.testing.assert_array_equal(np.asarray(eight_bits(image, "L", "told")), [[0, 0, 1, 255]])
    np.testing.assert_array_equal(np.asarray(eight_bits(image, "RGB", "told"))[..., 2], [[0, 0, 1, 255]])


@pytest.mark.parametrize("mode", ["I", "F"])
def test_thirty_two_bits_have_no_known_range(mode):
    with pytest.raises(SpaceError, match="told: expected pictures of 8 or 16 bits a channel, got 32 bits"):
        eight_bits(picture(mode), "L", "told")
