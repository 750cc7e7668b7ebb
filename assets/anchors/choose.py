"""Chooses relcore/data/anchors/anchors.txt: 300 texts that lie far apart.

Candidates are the texts beside this file and the bundled everyday sentences, each in one of its four
languages. In each step, the text whose nearest chosen text is the farthest is added (Gonzalez 1985). The
distance uses the cosines of MiniLM and of letters (TF-IDF, 128 components) together. Run at the project's
root: ``python assets/anchors/choose.py``.
"""

from pathlib import Path

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from relcore.base.rows import mean_row, unit_rows
from relcore.encoders.bundled_data import LANGUAGES, load_parallel
from relcore.encoders.transformers import PretrainedText, minilm_folder
from relcore.passport.recipes import ANCHORS, encode_texts

# of the everyday sentences in each language
N = 300
SHARES = (0.55, 0.2, 0.15, 0.1)
HERE = Path(__file__).parent


def candidates() -> list[str]:
    own = (HERE / "candidates.txt").read_text(encoding="utf-8").splitlines()
    rows = zip(*load_parallel(tuple(LANGUAGES)).values(), strict=True)
    rng = np.random.default_rng(0)
    everyday = [row[int(rng.choice(4, p=SHARES))] for row in rows]
    return list(dict.fromkeys([*filter(None, own), *everyday]))


def centred(X: np.ndarray) -> np.ndarray:
    X = unit_rows(X)
    return unit_rows(X, mean_row(X))


def chosen(texts: list[str]) -> list[str]:
    [meaning] = encode_texts(PretrainedText(str(minilm_folder()), (6,)), texts, "").values()
    letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True).fit_transform(texts)
    spelling = TruncatedSVD(128, random_state=0).fit_transform(letters)
    X = np.hstack([centred(meaning), centred(spelling)])
    rows = [int(np.argmin(X @ X.mean(axis=0)))]
    nearest = X @ X[rows[0]]
    while len(rows) < N:
        rows.append(int(np.argmin(nearest)))
        nearest = np.maximum(nearest, X @ X[rows[-1]])
    return [texts[row] for row in sorted(rows)]


if __name__ == "__main__":
    ANCHORS.write_text("\n".join(chosen(candidates())) + "\n", encoding="utf-8")
