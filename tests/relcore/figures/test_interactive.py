"""Interactive figures: what Plotly is given."""

import numpy as np

from relcore.figures import screen


def test_the_null_lies_behind_each_bar(scores):
    null, *bars = screen.score_bars_figure(scores).data
    assert np.allclose(np.array(null.base) + np.array(null.y), scores.null_high)
    assert np.allclose(sorted(np.concatenate([bar.x for bar in bars])), sorted(null.x))
    assert null.width > bars[0].width
