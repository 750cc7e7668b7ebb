"""Unrelated spaces are not linked

Fifteen pairs are known. Two models of the same words are linked; if the second space is noise of the
same size, the verdict says so, and no link is kept but the pairs that were given.
"""

import numpy as np

from relcore import LatentSpace, Line, Lines, chart_exportable, link, load_words, match

pair = match(load_words("word2vec-novels", limit=2000), load_words("fasttext-novels", limit=2000))
noise = np.random.default_rng(0).normal(size=pair.target.vectors.shape)
seconds = {"FastText": pair.target, "noise": LatentSpace(noise, pair.ids, name="noise")}
results = [
    link(pair.source, second, [(word, word) for word in pair.ids[:15]]).result for second in seconds.values()
]
for name, result in zip(seconds, results, strict=True):
    print(f"{name}: {result.verdict}, {len(result.kept)} links. {result.reason}")

low = [min(result.null) for result in results]
high = [max(result.null) for result in results]
middle = [sum(result.null) / len(result.null) for result in results]
lines = (
    Line("score", (0, 1), [result.held_out for result in results]),
    Line("chance level", (0, 1), middle, low, high),
)
titles = "the second space", "similarity of held-out rows, CSLS"
figure = chart_exportable(Lines(lines, *titles, kind="points", x_names=tuple(seconds)))
figure.save("refused_link.html")
