"""What studies are made on: frozen encoders of labelled items, and pairs of word spaces."""

from __future__ import annotations

from collections.abc import Sequence

from relcore.encoding import encode
from relcore.plain_json import parse
from relcore.progress import Report
from relcore.sources.catalog import SpaceSpec, load
from relcore.sources.dataset import DatasetSpec
from relcore.sources.encoder import Encoder
from relcore.spaces import LatentSpace, Match, SpaceError, match
from relcore.store import Store
from relcore.studies.study import Opening, Option

LABELLED = ("digits", "sentences")
DATA = Option(
    "data",
    "Encoders of",
    LABELLED,
    "digits",
    help="Digits: an MLP, a CNN, a residual CNN and a ViT, tested on digits that none of them was trained on. Sentences of 16 "
    "Wikipedia articles: TF-IDF + SVD and MiniLM's layers 2, 4 and 6. The first run encodes them, which takes half a minute or "
    "two; the others find them in the store.",
)
SPACES = Option("spaces", "The session's two spaces", (), (), many=True, help="Instead of the two bundled word spaces.")
_WORDS = (SpaceSpec("bundled", "word2vec-novels"), SpaceSpec("bundled", "fasttext-novels"))


def dataset_of(data: str) -> DatasetSpec:
    if data == "digits":
        return DatasetSpec("digits")
    return DatasetSpec("wikipedia", limit=2000, options=(("articles", 16), ("per_article", 400)))


def encoders_of(data: str) -> tuple[Encoder, ...]:
    """Four encoders; those of sentences give one and three spaces."""
    if data == "digits":
        from relcore.sources.small_vision import SmallVision

        return tuple(SmallVision(name) for name in ("mlp", "cnn", "residual", "vit"))
    from relcore.sources.lsa import TfidfSvd
    from relcore.sources.text import MiniLM

    return TfidfSvd(), MiniLM((2, 4, 6))


def labelled_spaces(data: str, store: Store, report: Report) -> list[LatentSpace]:
    """Four spaces over the same items; encoded now where the store does not have them."""
    return [space for encoder in encoders_of(data) for space in encode(dataset_of(data), encoder, store, report)]


def test_ids_of(data: str, space: LatentSpace) -> tuple[str, ...]:
    """Items that the encoders were not trained on; () where encoders are trained without labels."""
    from relcore.sources.small_vision import held_out_rows

    return tuple(space.ids[held_out_rows(len(space))]) if data == "digits" else ()


def opening_of(data: str, anchors: Sequence[str] = ()) -> Opening:
    """The encoders of these data, for a session."""
    return Opening(dataset=dataset_of(data), encoders=encoders_of(data), anchors=tuple(anchors))


def word_specs(spaces: Sequence[str]) -> tuple[SpaceSpec, SpaceSpec]:
    """Two specs from their JSON with digests, as a session gives them; none: the bundled ones.

    Raises
    ------
    SpaceError
        Not two, or no spaces in JSON.
    """
    if not spaces:
        return _WORDS
    source, target = (spec for spec, _ in _read(spaces))
    return source, target


def word_pair(spaces: Sequence[str], store: Store) -> Match:
    """The two spaces, paired by id.

    Raises
    ------
    SpaceError
        As in `word_specs`; a space that has changed since its digest was taken.
    """
    if not spaces:
        return match(*(load(spec, store) for spec in _WORDS))
    loaded = []
    for spec, digest in _read(spaces):
        space = load(spec, store)
        if digest and space.digest != digest:
            raise SpaceError(f"{space.name!r}: expected the content {digest[:8]}, got {space.digest[:8]}: it has changed since")
        loaded.append(space)
    return match(*loaded)


def _read(spaces: Sequence[str]) -> list[tuple[SpaceSpec, str]]:
    try:
        records = [parse(text, "spaces") for text in spaces]
        found = [
            (SpaceSpec.from_json({k: v for k, v in one.items() if k != "digest"}), one.get("digest", "")) for one in records
        ]
    except (ValueError, AttributeError, TypeError) as error:
        raise SpaceError(f"spaces: expected two spaces as JSON, got something else ({error})") from error
    if len(found) != 2:
        raise SpaceError(f"spaces: expected two, a source and a target, got {len(found)}")
    return found
