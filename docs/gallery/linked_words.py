"""Link two spaces from 15 known pairs

The spaces share half of their words; the second has other ids, and only 15 pairs are known. Links come best
first, each with an estimated precision, which falls where rows have no partner.
"""

import numpy as np

from relcore import LatentSpace, Line, Lines, chart_exportable, link, load_words, match

pair = match(load_words("word2vec-novels", limit=3600), load_words("fasttext-novels", limit=3600))
order = np.concatenate([np.arange(15), np.random.default_rng(0).permutation(np.arange(1200, 3600))])
words = {f"row {place}": word for place, word in enumerate(pair.ids[order])}
hidden = LatentSpace(pair.target.vectors[order], list(words), name="fasttext-novels, other ids")
source = pair.source.take(np.arange(2400))

linked = link(source, hidden, [(words[row], row) for row in list(words)[:15]])
print(linked.verdict, "–", linked.reason)
print(linked.links.tail(5).to_string(index=False))

pairs = linked.result.pairs
best = range(1, len(pairs) + 1)
right = np.cumsum([words[row] == word for word, row in pairs]) / best
lines = Line("right", best, right.tolist()), Line("estimated", best, linked.result.precision.tolist())
figure = chart_exportable(Lines(lines, "links, best first", "share of right links", y_range=(0, 1.02)))
figure.save("linked_words.html")
