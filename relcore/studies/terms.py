"""What a reader of a study should know: which data it uses, and the terms in its sentences and charts."""

from __future__ import annotations

import re

from relcore.studies.study import Settings, Study

_DATA = {
    "digits": (
        "1,797 pictures of handwritten digits (scikit-learn, 8 × 8 pixels). Test rows are digits that no"
        " network was trained on."
    ),
    "sentences": "Sentences of 16 English Wikipedia articles. The class of a sentence is its article.",
    "words": "The words that both bundled spaces have, Word2Vec and FastText of the same novels.",
}
_SESSION = "The two spaces of the session."
_ELSEWHERE = "Data of this study's own; see Method details."
_TERMS = {
    "relative": "a row as its similarities to the anchors",
    "whitened": "relative rows from which the similarities of anchors to each other are taken out",
    "stitched": "a classifier that was trained on the rows of one encoder reads rows of another",
    "random states": "repetitions with other random draws",
    "δ": "the least distance between anchors that are kept",
    "ω": "how often anchors are thinned, each time from another one; the results are averaged",
}


def data_in_words(study: Study, options: Settings) -> str:
    """The data of a study with these options, in a sentence or two. A study on data of its own has the help
    of its option ``data``; without one, the sentence says where they are described."""
    if options.get("spaces"):
        return _SESSION
    chosen = options.get("data", study.data)
    if isinstance(chosen, str):
        chosen = (chosen,)
    if all(name in _DATA for name in chosen):
        return " ".join(_DATA[name] for name in chosen)
    help_texts = [option.help for option in study.options if option.name == "data" and option.help]
    return " ".join(help_texts) or _ELSEWHERE


def terms_in(text: str) -> list[str]:
    """What the terms in a text mean, each as ``"stitched: a classifier …"``.

    Examples
    --------
    >>> terms_in("12 pairs over 5 random states")
    ['random states: repetitions with other random draws']
    """
    return [
        f"{term}: {meaning}" for term, meaning in _TERMS.items() if re.search(rf"\b{term}\b", text.lower())
    ]
