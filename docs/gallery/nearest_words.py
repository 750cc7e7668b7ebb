"""The same word in the other model

Cosines of ten words in one model with the same ten words in the other. The diagonal is each word with
itself: in absolute coordinates nothing is there, relative to 300 anchors it stands out.
"""

import numpy as np

import relcore as rs

words = ("king", "queen", "river", "sea", "red", "green", "monday", "winter", "bread", "horse")
pair = rs.match(rs.load_words("word2vec-novels"), rs.load_words("fasttext-novels"))
anchors = rs.select_anchors(pair.source.take(~np.isin(pair.ids, words)), 300)


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    first, second = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (first, second))
    return np.asarray(first @ second.T)


spaces = (pair.source, pair.target)
absolute = [space.take(space.rows(words)).vectors for space in spaces]
fitted = [rs.RelativeProjection().fit(space, anchors=anchors) for space in spaces]
relative = [projection.transform(rows) for projection, rows in zip(fitted, absolute, strict=True)]
forms = {"absolute": absolute, "relative": relative}
panels = tuple(rs.MatrixPanel(form, words, words, cosines(*forms[form])) for form in forms)
figure = rs.chart_exportable(rs.Matrices(panels, (-1, 1), "cosine", "Cosines of ten words in both models."))
figure.save("nearest_words.html")
