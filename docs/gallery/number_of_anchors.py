"""How many anchors?

A word is looked up in the other model by its similarities to more and more anchors. The chance level stays
where it is; whitened similarities, where near-duplicate anchors count once, need fewer of them.
"""

import relcore as rs

pair = rs.match(rs.load_words("word2vec-novels", limit=4000), rs.load_words("fasttext-novels", limit=4000))
order = rs.select_anchors(pair.source, 300)
sizes = (5, 10, 20, 50, 100, 200, 300)
test = rs.Split.held_out(pair.ids, pair.source.rows(order)).test  # the same rows for every number


def score(n_anchors: int, whiten: bool) -> rs.Score:
    first, second = (
        rs.RelativeProjection(whiten=whiten).fit(space, anchors=order[:n_anchors]).transform(space)[test]
        for space in (pair.source, pair.target)
    )
    return rs.mrr(first, second, n_queries=1000)


plain, whitened = ([score(n, whiten) for n in sizes] for whiten in (False, True))
print(plain[-1].describe())
lines = rs.Line("relative", sizes, plain), rs.Line("whitened", sizes, whitened)
figure = rs.chart_exportable(rs.Lines(lines, "anchors", "mean reciprocal rank", log_x=True, y_range=(0, 1)))
figure.save("number_of_anchors.html")
