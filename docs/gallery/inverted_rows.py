"""Invert a relative representation

A row of one space is written as its similarities to anchors, and these are inverted with the anchors of the
other space. The histogram shows how far the found direction is from the true one, on held-out rows.
"""

from relcore import histogram_exportable, invert, load_words, match, select_anchors

pair = match(load_words("word2vec-novels", limit=4000), load_words("fasttext-novels", limit=4000))
inverted = invert(pair.source, pair.target, select_anchors(pair.source, 300).tolist())
for method, score in inverted.scores.items():
    print(f"{method}: {score.describe()}")

figure = histogram_exportable(inverted.errors, "1 − cosine of the found and the true row")
figure.save("inverted_rows.html")
