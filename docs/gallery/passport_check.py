"""Check a model against its passport

A passport holds some anchors with the vectors that a model gave them. It tells rounding and a rotation, which
are harmless or can be bridged, from another recipe and another model.
"""

import numpy as np

from relcore import Matrices, MatrixPanel, Passport, chart_exportable, load_words, match

pair = match(load_words("word2vec-novels", limit=500), load_words("fasttext-novels", limit=500))
anchors, other = (space.take(np.arange(0, 500, 10)) for space in (pair.source, pair.target))
passport = Passport.of(anchors)
rng = np.random.default_rng(0)
rotation, _ = np.linalg.qr(rng.normal(size=(anchors.dimension, anchors.dimension)))
changed = {
    "float16": anchors.vectors.astype(np.float16).astype(np.float32),
    "rotated": anchors.vectors @ rotation,
    "shifted": anchors.vectors + 0.3 * anchors.vectors.std(),
    "FastText": other.vectors,
}
checks = [passport.check(vectors.astype(np.float32)) for vectors in changed.values()]
for name, result in zip(changed, checks, strict=True):
    print(f"{name}: {result.sentence}")
values = [[result.cosine.value if result.cosine else np.nan, result.gram.value] for result in checks]
panel = MatrixPanel("agreement with the passport", tuple(changed), ("coordinates", "shape"), np.array(values))
figure = chart_exportable(Matrices((panel,), (-1, 1), "agreement", "Four changes by what they keep."))
figure.save("passport_check.html")
