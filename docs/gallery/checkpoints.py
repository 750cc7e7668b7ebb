"""Checkpoints of a training

Word vectors are saved after each epoch of a training on 300 news reports. The share of neighbours that one
more epoch changes says when the space has settled.
"""

from itertools import pairwise

from gensim.models import Word2Vec
from gensim.test.utils import datapath
from gensim.utils import simple_preprocess

from relcore import LatentSpace, Line, Lines, chart_exportable, drift

with open(datapath("lee_background.cor"), encoding="utf-8") as text:
    sentences = [simple_preprocess(line) for line in text]
model = Word2Vec(vector_size=30, min_count=5, workers=1, seed=0, sg=1)
model.build_vocab(sentences)
spaces = []
for epoch in range(1, 7):
    model.train(sentences, total_examples=model.corpus_count, epochs=1, start_alpha=0.025, end_alpha=0.02)
    words = [str(word) for word in model.wv.index_to_key]
    spaces.append(LatentSpace(model.wv.vectors.copy(), words, name=f"epoch {epoch}"))

changes = [drift(old, new) for old, new in pairwise(spaces)]
churn = [change.of("everything_new", "churn").value for change in changes]
print(f"neighbours that changed: first {churn[0]:.3f}, last {churn[-1]:.3f}")
lines = Lines((Line("churn", range(2, 7), churn),), "epoch", "share of neighbours that changed")
figure = chart_exportable(lines)
figure.save("checkpoints.html")
