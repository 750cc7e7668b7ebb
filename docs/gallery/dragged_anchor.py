"""Drag an anchor

Eight words are the anchors. In the file that this writes, drag a star to other words: the maps of both models
follow together, without a server. The script moves one of them, too, and prints both scores.
"""

from relcore import RelativeProjection, Split, load_words, match, mrr, panes_of

pair = match(load_words("word2vec-novels", limit=3000), load_words("fasttext-novels", limit=3000))
first = ("food", "water", "money", "child", "house", "war", "music", "winter")
moved = ("food", "water", "money", "child", "house", "war", "music", "letter")  # winter became letter
test = Split.held_out(pair.ids, pair.source.rows([*first, moved[-1]])).test  # the same rows for both scores

for anchors in (first, moved):
    source, target = (
        RelativeProjection().fit(space, anchors=anchors).transform(space)[test]
        for space in (pair.source, pair.target)
    )
    print(f"with {anchors[-1]}:", mrr(source, target).describe())

figure = panes_of(pair, first)
figure.save("dragged_anchor.html")
