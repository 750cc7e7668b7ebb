"""Invert a relative representation

A row of one space is written as its similarities to anchors, and these are inverted with the anchors of the
other space. The histogram shows how far the found direction is from the true one, on held-out rows.
"""

from relcore import load_words, match, select_anchors
from relcore.figures.export import histogram_exportable
from relcore.invert.inversion import InversionSpec, invert_pair

pair = match(load_words("word2vec-novels", limit=4000), load_words("fasttext-novels", limit=4000))
inverted = invert_pair(pair, tuple(select_anchors(pair.source, 300)), InversionSpec())
for method, score in inverted.scores.items():
    print(f"{method}: {score.describe()}")

figure = histogram_exportable(inverted.errors, "1 − cosine of the found and the true row")
figure.save("inverted_rows.html")
