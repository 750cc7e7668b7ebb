"""Make the two bundled word spaces: Word2Vec and FastText, trained apart on one corpus.

    python assets/words/train_words.py CORPUS.txt[.xz|.gz|.bz2] --output relcore/data/words

The corpus is plain text, lower case, one sentence a line. The bundled files were made from `english.txt.xz`:
1.7 million sentences, 30 million tokens of 200 public-domain novels, ELTeC (CC BY), and the NLTK copies of
Brown, news, reviews and speeches. Each space keeps the 20,000 most frequent words, 100 dimensions, float16.
About half an hour on two cores. After only 5 epochs the rare words of the two spaces still disagree (relative
MRR .70 and .78 where these have .93 and .94). With more than one worker gensim's updates race, so a repeated
run gives equally good, not equal, vectors.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from gensim.models import FastText, Word2Vec
from gensim.models.word2vec import LineSentence
from safetensors.numpy import save_file

SKIP_GRAM = {"vector_size": 100, "sg": 1, "window": 5, "min_count": 10, "sample": 1e-4}
TRAININGS = {
    "word2vec-novels": (Word2Vec, {"seed": 1, "epochs": 15}),
    "fasttext-novels": (FastText, {"seed": 2, "epochs": 10, "min_n": 4, "max_n": 6, "bucket": 1_000_000}),
}


def train_words(corpus: Path, output: Path, n_words: int, workers: int) -> None:
    for name, (model_class, settings) in TRAININGS.items():
        model = model_class(LineSentence(str(corpus)), workers=workers, **SKIP_GRAM, **settings)
        words = model.wv.index_to_key[:n_words]  # gensim sorts the vocabulary by falling frequency
        tensors = {
            "vectors": np.stack([model.wv[word] for word in words]).astype(np.float16),
            "ids": np.frombuffer("\n".join(words).encode(), dtype=np.uint8),
            "counts": np.array([model.wv.get_vecattr(word, "count") for word in words], dtype=np.int32),
        }
        about = {"name": name, "corpus": corpus.name, "trainer": f"gensim {model_class.__name__}"}
        about |= {key: str(value) for key, value in (SKIP_GRAM | settings).items()}
        save_file(tensors, output / f"{name}.safetensors", metadata=about)
        print(
            f"{name}: {len(words)} words, loss of precision"
            f" {np.abs(model.wv[words[0]] - tensors['vectors'][0]).max():.1e}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parents[2] / "relcore" / "data" / "words"
    )
    parser.add_argument("--n-words", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    train_words(arguments.corpus, arguments.output, arguments.n_words, arguments.workers)
