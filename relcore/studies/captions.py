"""Pictures and words: classify pictures by sentences about their classes, through pairs of a picture and its
caption alone (ASIF; Norelli et al. 2023).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.catalog.encoding import encode
from relcore.encoders.dataset import Dataset
from relcore.encoders.encoder import Encoder
from relcore.encoders.sentences import TfidfSvd
from relcore.encoders.vision import SmallVision
from relcore.figures.charts import Lines
from relcore.represent.heads import fit_head
from relcore.represent.similarity import mean_row, unit_rows
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace
from relcore.studies.material import dataset_of, test_ids_of
from relcore.studies.statistics import average, chart, count_of, lines_over, mean_at, sentence
from relcore.studies.study import Opening, Option, RunResult, Settings, Study, grid, states

TEMPLATES = (
    "a hand-written {}",
    "a photo of the number {}",
    "the digit {}",
    "someone wrote {} on paper",
    "this is a {}",
    "a small grey picture of a {}",
)
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_ENCODERS = {"tfidf": "TF-IDF + SVD", "minilm": "MiniLM"}
_NUMBERS = (10, 20, 50, 100, 200, 500, 1000)
_VISION = SmallVision("cnn")


class PicturesAndWords(Study):
    """Digits through a CNN and sentences through an encoder of texts, trained apart. Some pictures have a
    caption, "the digit seven"; a held-out picture is the class whose sentence, "a hand-written seven", which
    is no caption, is most similar relative to these pairs. Captions are made of the labels, so none is wrong,
    and the CNN saw the labels of other pictures, which helps the sentences and the head alike.
    """

    kind = "zero-shot"
    title = "Pictures and words"
    question = "How many pictures with captions does it take to classify pictures by sentences?"
    paper = "Norelli et al. 2023 (ASIF)"
    options = (
        Option("encoder", "Sentences by", tuple(_ENCODERS), "tfidf", names=tuple(_ENCODERS.values())),
        Option(
            "keep", "Similarities to keep", (10, 30, 100, 300), 100, help="ASIF keeps 800 of 1.6 million."
        ),
        Option("exponent", "Exponent", (1, 2, 4, 8), 8, help="ASIF uses 8."),
        states("the pictures with captions", 5),
    )
    by, measures = "n_pairs", {"accuracy": "accuracy by sentences"}

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        return grid(options, "encoder keep exponent", n_pairs=_NUMBERS)

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        (images,) = encode(dataset_of("digits"), _VISION, store, report)
        sentences = [template.format(word) for word in _DIGITS for template in TEMPLATES]
        ids = [f"caption/{number}" for number in range(len(sentences))]
        captions = Dataset(lambda start, stop: sentences[start:stop], ids, name="captions", kind="texts")
        (texts,) = encode(captions, _text_encoder(settings["encoder"]), store, report)
        by_class = texts.vectors.reshape(len(_DIGITS), len(TEMPLATES), -1)
        test = images.rows(test_ids_of("digits", images))
        names = ("n_pairs", "keep", "exponent", "random_state")
        return RunResult(zero_shot(images, by_class, test, **{name: settings[name] for name in names}))

    def seconds(self, settings: Settings) -> float:
        return 2.0

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        lines = lines_over(table, "n_pairs", {"accuracy": _ENCODERS[options["encoder"]]})
        titles, rows = ("pictures with captions", "accuracy"), count_of(table, "held-out digits, 10 classes")
        levels, look = {"chance": "chance", "head trained on labels": "head"}, {"y_range": (0, 1.02)}
        return {"accuracy": chart(table, lines, titles, rows, levels, log_x=True, **look)}

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        most = table.n_pairs.max()
        return sentence(
            f"From {most:,} pictures with captions, sentences classify {{}} of the held-out digits; a head"
            f" trained on all labels {average(table, 'head'):.3f}.",
            mean_at(table, "n_pairs", most, "accuracy"),
        )

    def opening(self, settings: Settings) -> Opening:
        return Opening(dataset=dataset_of("digits"), encoders=(_VISION,))


def _text_encoder(name: str) -> Encoder:
    from relcore.encoders.transformers import MiniLM

    return MiniLM() if name == "minilm" else TfidfSvd(15, min_texts=1)


def zero_shot(
    images: LatentSpace,
    texts: np.ndarray,
    test: np.ndarray,
    *,
    n_pairs: int,
    keep: int = 100,
    exponent: float = 8.0,
    random_state: int = 0,
) -> dict[str, float]:
    """Accuracy of the class whose first sentence is most similar to a held-out picture, by pictures with
    captions alone; that of a head trained on the labels of all rows not held out; that of the most frequent
    class.

    Parameters
    ----------
    texts : array (C, T, d)
        Rows of T sentences for each class, the classes sorted. The first is the query and no caption; the
        others are captions in turn.
    test : array (t,)
        Row numbers of held-out pictures.
    n_pairs : int
        Number of pictures with captions, drawn at random, with balanced classes.

    Raises
    ------
    SpaceError
        As many classes as sentences for them are needed, and as many pictures as pairs.
    """
    classes, targets = np.unique(images.labels.astype(str), return_inverse=True)
    rng = np.random.default_rng(random_state)
    train = np.setdiff1d(np.arange(len(images)), test)
    groups = [rng.permutation(train[targets[train] == number]) for number in range(len(classes))]
    longest = max(map(len, groups))
    turns = np.array([group[i] for i in range(longest) for group in groups if i < len(group)])
    if len(classes) != len(texts) or len(turns) < n_pairs:
        raise SpaceError(
            f"expected pictures of {len(texts)} classes and at least {n_pairs:,} of them not held out, got"
            f" {len(classes)} classes and {len(turns):,} pictures"
        )
    pairs = turns[:n_pairs]
    turn = 1 + np.arange(n_pairs) // len(classes) % (texts.shape[1] - 1)
    similar = zero_shot_similarities(
        images.vectors[test],
        texts[:, 0],
        images.vectors[pairs],
        texts[targets[pairs], turn],
        keep=keep,
        exponent=exponent,
    )
    head = fit_head(images.vectors[train], targets[train], len(classes))
    truth = targets[test]
    return {
        "accuracy": float(np.mean(similar.argmax(axis=1) == truth)),
        "head": float(np.mean(head.probabilities(images.vectors[test]).argmax(axis=1) == truth)),
        "chance": float(np.mean(truth == np.bincount(targets[train]).argmax())),
        "test rows": len(test),
    }


def zero_shot_similarities(
    images: np.ndarray,
    prompts: np.ndarray,
    image_anchors: np.ndarray,
    text_anchors: np.ndarray,
    *,
    keep: int = 100,
    exponent: float = 8.0,
) -> np.ndarray:
    """Similarity of each image to each prompt through paired anchors (ASIF; Norelli et al. 2023).

    An image becomes its cosines to the image anchors, a prompt its cosines to the text anchors. The `keep`
    largest cosines of each are raised to `exponent`, all others are 0. The similarity is the cosine of the
    two.

    Parameters
    ----------
    images, prompts : arrays (n, d_image), (C, d_text)
        Encoded images, and one encoded prompt per class.
    image_anchors, text_anchors : arrays (k, d_image), (k, d_text)
        Row i is a picture and its caption.
    keep : int
        The paper keeps 800 of 1.6 million.
    exponent : float

    Returns
    -------
    array (n, C) float32, 0 … 1. The predicted class is the largest of a row.
    """
    return _sparse(images, image_anchors, keep, exponent) @ _sparse(prompts, text_anchors, keep, exponent).T


def _sparse(rows: np.ndarray, anchors: np.ndarray, keep: int, exponent: float) -> np.ndarray:
    """The kept cosines of the rows to the anchors, both centred by the mean of the anchors."""
    mean = mean_row(anchors)
    cosines = np.maximum(unit_rows(rows, mean) @ unit_rows(anchors, mean).T, 0)
    if keep < len(anchors):
        least = np.partition(cosines, -keep, axis=1)[:, -keep, None]
        cosines[cosines < least] = 0
    return unit_rows(cosines**exponent)
