"""Word vectors after each epoch of training, as a series of versions: how much does one more epoch still
change?

    python assets/examples/checkpoints_of_word_vectors.py checkpoints
    relscope app checkpoints
    relscope drift checkpoints/epoch-11.npz checkpoints/epoch-12.npz

The text is the Lee corpus of 300 news reports, which comes with gensim. It takes some seconds.
"""

import sys
from pathlib import Path

import numpy as np
from gensim.models import Word2Vec
from gensim.models.callbacks import CallbackAny2Vec
from gensim.test.utils import datapath
from gensim.utils import simple_preprocess

from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import load_all
from relcore.drift.check import DriftSeries
from relcore.drift.reports import DriftLines, DriftMap

EPOCHS = 12


class Save(CallbackAny2Vec):
    """A file of vectors after each epoch."""

    def __init__(self, folder):
        self.folder, self.epoch = folder, 0

    def on_epoch_end(self, model):
        self.epoch += 1
        words = model.wv.index_to_key
        np.savez(self.folder / f"epoch-{self.epoch:02}.npz", vectors=model.wv.vectors, ids=np.array(words))


folder = Path(sys.argv[1])
folder.mkdir(exist_ok=True)
text = Path(datapath("lee_background.cor")).read_text(encoding="utf-8")
sentences = [simple_preprocess(line) for line in text.splitlines()]
# One worker and one state, so that every run gives the same files.
Word2Vec(
    sentences, vector_size=50, min_count=5, epochs=EPOCHS, workers=1, seed=0, sg=1, callbacks=[Save(folder)]
)

specs = tuple(SpaceSpec("file", str(path)) for path in sorted(folder.glob("epoch-*.npz")))
spaces = load_all(specs, (), "drift-series")
series = DriftSeries().run(spaces)
print(series.headline())
DriftLines(spaces=specs).draw(series).save(folder / "lines.png")
DriftMap(spaces=specs).draw(series).save(folder / "map.png")
