"""Twelve measures of the same two spaces

Each measure says how alike Word2Vec and FastText are, in its own sense, and each has its own chance level. A
score is worth reading where it is clear of that.
"""

from relcore import METRICS, AlignedPair, Line, Lines, Split, chart_exportable, load_words, match

pair = match(load_words("word2vec-novels", limit=400), load_words("fasttext-novels", limit=400))
split = Split.held_out(pair.ids)
aligned = AlignedPair.of(pair.source.vectors, pair.target.vectors, split)
names = [name for name, metric in METRICS.items() if "more" in metric.of]
scores = {METRICS[name].title: METRICS[name].load()().score(aligned) for name in names}
scores = {name: score for name, score in scores.items() if score.null}
for score in scores.values():
    print(score.describe())

bands = [score.null for score in scores.values()]
places = range(len(scores))
low = [band.low for band in bands]
high = [band.high for band in bands]
chance = Line("chance level", places, [band.mean for band in bands], low, high)
lines = Line("score", places, list(scores.values())), chance
figure = chart_exportable(Lines(lines, "", "score", kind="points", x_names=tuple(scores)))
figure.save("all_measures.html")
