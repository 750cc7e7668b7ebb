"""Two word models, absolute and relative

Word2Vec and FastText learned the same words from the same novels, apart from each other. In shared axes a
word lies somewhere else in each space; relative to the same anchors it lies in the same place.
"""

from relcore import RelativeProjection, Split, load_words, match, mrr, panes_of, select_anchors

pair = match(load_words("word2vec-novels", limit=3000), load_words("fasttext-novels", limit=3000))
anchors = select_anchors(pair.source, 300)
split = Split.held_out(pair.ids, pair.source.rows(anchors))  # anchors are not scored

first, second = (
    RelativeProjection().fit(space, anchors=anchors).transform(space)[split.test]
    for space in (pair.source, pair.target)
)
absolute = mrr(pair.source.vectors[split.test], pair.target.vectors[split.test])
print("absolute:", absolute.describe())
print("relative:", mrr(first, second).describe())

figure = panes_of(pair, anchors)
figure.save("two_word_models.html")
