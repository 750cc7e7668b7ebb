"""What wrong pairs cost

Some of 300 anchor pairs are shuffled, so that an anchor of one space has another word as its partner. Right
pairs agree with each other and wrong ones do not, so half of them may be wrong before much is lost.
"""

import numpy as np

import relcore as rs

pair = rs.match(rs.load_words("word2vec-novels", limit=4000), rs.load_words("fasttext-novels", limit=4000))
X = pair.source.vectors
Y = pair.target.vectors
anchors = pair.source.rows(rs.select_anchors(pair.source, 300))
test = rs.Split.held_out(pair.ids, anchors).test
shares = (0, 0.2, 0.4, 0.6, 0.8, 0.9)
scores: dict[str, list[float]] = {"relative": [], "Procrustes": []}
for share in shares:
    wrong = int(share * len(anchors))
    partners = anchors.copy()
    partners[:wrong] = np.roll(partners[:wrong], 1)
    first = rs.RelativeProjection().fit(X, anchors=X[anchors]).transform(X[test])
    second = rs.RelativeProjection().fit(Y, anchors=Y[partners]).transform(Y[test])
    moved = rs.Procrustes().fit(X[anchors], Y[partners]).transform(X[test])
    scores["relative"].append(rs.mrr(first, second, n_queries=1000))
    scores["Procrustes"].append(rs.mrr(moved, Y[test], n_queries=1000))
lines = tuple(rs.Line(name, shares, values) for name, values in scores.items())
figure = rs.chart_exportable(rs.Lines(lines, "share of wrong pairs", "mean reciprocal rank", y_range=(0, 1)))
figure.save("wrong_pairs.html")
