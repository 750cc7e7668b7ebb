"""The command `passport`, which makes a passport of a model, and checks vectors against one."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from relcore.base.access import expand_home
from relcore.base.errors import SpaceError, quote
from relcore.base.junit import GateCase
from relcore.base.report import Report
from relcore.base.settings import setting
from relcore.base.text import read_lines
from relcore.catalog.catalog import load
from relcore.catalog.encodings import encode
from relcore.catalog.naming import SEND_TO_HELP, SPACE_HELP, encoder_named, space_spec
from relcore.check.collection import check
from relcore.check.marks import MARKS
from relcore.commands.command import Tool, command, values_of
from relcore.commands.options import JUnit, Results
from relcore.commands.printing import written
from relcore.commands.progress import say
from relcore.encode.command import dataset_spec
from relcore.encoders.api import ApiText
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import Encoder
from relcore.encoders.onnx_texts import OnnxText
from relcore.encoders.sending import sending_to, size_of
from relcore.passport.change import CHANGES
from relcore.passport.passport import (
    SUFFIX,
    Passport,
    PassportCard,
    paired_anchors,
    picture_anchors,
)
from relcore.passport.recipes import (
    ANCHORS,
    PROMPTS,
    UNCHANGED,
    as_dataset,
    encode_texts,
    model_at_hand,
    name_recipe,
    with_pooling,
)
from relcore.runs.store import Store
from relcore.spaces.ids import RowNumbers
from relcore.spaces.space import LatentSpace, ids_of
from relcore.stores.index import find_rows, parse_place

if TYPE_CHECKING:
    from relcore.passport.recipes import TextEncoder

BUNDLED = "bundled"  # the bundled anchor texts
VERBS = {"make": 1, "check": 2}
TOOL = Tool({"verb": "check"})
_DIGEST = re.compile("sha256:[0-9a-f]{64}")
ACCEPTED = (*UNCHANGED, "rotated")


def _of_provider(name: str) -> Any:
    """The setting of a provider's encoder as an option of this command."""
    [one] = (one for one in fields(ApiText) if one.name == name)
    return field(default=one.default, metadata=one.metadata)


@dataclass
class ProviderOptions:
    """Settings of --encoder api."""

    address: str = _of_provider("address")
    dimensions: int | None = _of_provider("dimensions")
    key_variable: str = _of_provider("key_variable")
    batch_size: int = _of_provider("batch_size")
    api_version: str = _of_provider("api_version")
    price: float = _of_provider("price")


@dataclass
class PassportOptions:
    verb: str = setting(choices=tuple(VERBS), help="what to do")
    files: tuple[str, ...] = setting(metavar="FILE", nargs="+", help=f"a passport; or {SPACE_HELP}")
    vectors: str = setting(
        None,
        metavar="FILE",
        help="For make: the vectors of the texts in FILE, in the order of its lines.",
    )
    ids: Path = setting(
        None,
        metavar="FILE",
        help="File with ids of the anchors in a store, one per line. For make: the rows to take. For check:"
        " needed, in the passport's order, if the store has other ids than the passport.",
    )
    pictures: bool = setting(
        False,
        help="For make: FILE is a dataset of pictures, such as a folder or digits. The anchors are digests of"
        " their pixels. The vectors come from --vectors, by the dataset's ids or in its order, or from"
        " --encoder.",
    )
    fingerprint: tuple[str, ...] = setting(
        (),
        metavar="SPACE,SPACE,SPACE",
        help="For make: vectors of three or more domains, by which check --known recognises the model.",
    )
    encoder: str = setting(
        None,
        metavar="MODEL",
        help="For make: FILE has one text per line, and this model makes the vectors (minilm, a folder of"
        " transformers, onnx, or api:MODEL of a provider). For check FILE: this model makes the new vectors."
        " For check FILE NEW: try likely prompts, poolings and layers of this model, and name the combination"
        " that makes the new vectors.",
    )
    send_to: tuple[str, ...] = setting((), metavar="HOST", nargs="append", help=SEND_TO_HELP)
    gate: str = setting(
        "rounded",
        choices=ACCEPTED,
        help="For check: the largest change with exit code 0: same, rounded, rescaled or rotated.",
    )


@command(
    (PassportOptions, PassportCard, ProviderOptions, Results, JUnit),
    "“make SPACE” publishes all rows of a space as anchors, with a card of their model; “make bundled"
    " --encoder …” takes the 300 texts that come with Relscope, “make FOLDER --pictures” the digests of"
    f" pictures. “check FILE NEW” says how the anchors changed: {', '.join(CHANGES)}; NEW is another"
    " passport, or a space or store with the anchors' ids; without NEW, --encoder encodes the anchors' texts"
    " again. The exit code of a check is 1 after a larger"
    " change than --gate, 2 after an error.",
    (
        "make anchors.txt --encoder minilm -o minilm.safetensors",
        "check minilm.safetensors lancedb:store#notes --gate rounded",
        "check openai.safetensors --encoder api:text-embedding-3-small --send-to api.openai.com",
    ),
    output=f"For make: the passport to write, {SUFFIX}.",
    suffixes={"output": [SUFFIX]},
)
def run_passport(options: argparse.Namespace) -> Report:
    most = VERBS[options.verb]
    fewest = most
    if options.encoder is not None:
        fewest = 1  # the encoder makes the new vectors
    if not fewest <= len(options.files) <= most:
        expected = "two files, or one and --encoder"
        if most == 1:
            expected = "one file"
        raise SpaceError(f"{options.verb}: expected {expected}, got {quote(options.files)}")
    if options.verb == "check":
        with sending_to(options.send_to):
            return _checked_passport(options)
    if options.junit is not None:
        raise SpaceError(
            f"{options.verb} --junit: expected check, which judges conditions, got {options.verb}; leave"
            " --junit out"
        )
    if options.output is None:
        raise SpaceError(f"{options.verb}: expected a file or folder to write, got none; name it with -o")
    with sending_to(options.send_to):
        passport = _make_passport(options)
    if options.fingerprint:
        domains = [load(space_spec(name), again=True).vectors for name in options.fingerprint]
        passport = passport.with_fingerprint(domains)
    passport.save(options.output)
    n, d = passport.vectors.shape
    model = passport.card.model
    line = f"{n:,} anchors with {d:,} dimensions, encoded by {model or 'a model without name'}"
    return written(line, facts={"passport": asdict(passport.card)}, n=n, dimension=d, model=model)


def _make_passport(options: argparse.Namespace) -> Passport:
    card = PassportCard(**values_of(options, PassportCard))
    [source] = options.files
    ids = _ids(options)
    if options.pictures:
        space = _of_pictures(options, source)
        return Passport.of(space, replace(card, model=card.model or space.name))
    if options.encoder is None and options.vectors is None:
        if source == BUNDLED or (not ids and Path(source).suffix == ".txt"):
            raise SpaceError(
                f"make {source}: expected vectors of these texts, got none; give --encoder or --vectors"
            )
        space = _rows(source, ids)
        return Passport.of(space, replace(card, model=card.model or space.name))
    file = ANCHORS
    if source != BUNDLED:
        file = expand_home(source)
    texts = read_lines(file, "one text per line")
    if twice := [text for text, n in Counter(texts).items() if n > 1]:
        raise SpaceError(f"{source}: expected distinct texts, got {quote(twice[:3])} again; remove one")
    if options.vectors is not None:
        rows = _rows(options.vectors, ids)
        if len(rows) != len(texts):
            raise SpaceError(
                f"{options.vectors}: expected {len(texts):,} rows, one per text, got {len(rows):,}; embed the"
                " texts again"
            )
        return Passport.of(rows.with_columns(ids=texts), replace(card, model=card.model or rows.name))
    encoder = _encoder_of(options, card)
    name = card.model or _name_of(options.encoder, encoder)
    space = _encoded(options, encoder, texts, card.prompt).with_columns(name=name)
    return Passport.of(space, replace(card, model=name, pooling=getattr(encoder, "pooling", "")))


def _encoder_of(options: argparse.Namespace, card: PassportCard) -> TextEncoder:
    """The encoder that --encoder names, with the pooling of the card."""
    encoder = model_at_hand(options.encoder, last=True, service=values_of(options, ProviderOptions))
    if card.pooling:
        return with_pooling(encoder, card.pooling)
    return encoder


def _encoded(
    options: argparse.Namespace, encoder: TextEncoder, texts: Sequence[str], prompt: str
) -> LatentSpace:
    """The vectors of texts by an encoder. The ids are the texts."""
    _say_what_is_sent(options, encoder, texts, prompt)
    [vectors] = encode_texts(encoder, texts, prompt).values()
    return LatentSpace(vectors, texts, name=encoder.title)


def _say_what_is_sent(
    options: argparse.Namespace, encoder: TextEncoder, texts: Sequence[str], *prompts: str
) -> None:
    if encoder.sends_to:
        say(options, encoder.need_consent(*size_of(as_dataset(texts, *prompts))))


def _name_of(text: str, encoder: Encoder) -> str:
    """The name of the model that a user names with this text."""
    if isinstance(encoder, ApiText):
        return encoder.title
    if isinstance(encoder, OnnxText):
        return Path(encoder.model).name
    return Path(text).name


def _of_pictures(options: argparse.Namespace, source: str) -> LatentSpace:
    """The vectors of a dataset's pictures. The id of a picture is a digest of its pixels. Among equal
    pictures, only the first is kept."""
    dataset = load_dataset(dataset_spec(argparse.Namespace(dataset=source, config="", id_column=None)))
    if dataset.kind != "images":
        raise SpaceError(f"{source}: expected pictures, got {dataset.kind}; leave out --pictures")
    if options.vectors is not None:
        space = load(space_spec(options.vectors), again=True)
        if len(space) != len(dataset) or not isinstance(ids_of(space), RowNumbers):
            space = space.take(space.rows(dataset.ids))
    elif options.encoder is not None:
        space = encode(dataset, encoder_named(options.encoder, {}, dataset, set()), Store())[-1]
    else:
        raise SpaceError(
            "make --pictures: expected vectors, got none; give --vectors, or --encoder, such as pixels"
        )
    anchors = [one for _, images in dataset.blocks() for one in picture_anchors(images)]
    first = np.flatnonzero(~pd.Index(anchors).duplicated())
    return space.take(first).with_columns(ids=[anchors[row] for row in first])


def _ids(options: argparse.Namespace) -> list[str]:
    if options.ids:
        return read_lines(options.ids, "one id per line")
    return []


def _space_of(source: str, ids: Sequence[str]) -> LatentSpace:
    """The space that a user names. If it is in a vector database, only the rows with these ids are read."""
    place = parse_place(source)
    if ids and place is not None and place.kind != "npy":
        try:
            return find_rows(place, ids)
        except SpaceError:
            if place.where != source:
                raise  # rows without ids may still load as a table
    return load(space_spec(source), again=True)


def _rows(source: str, ids: Sequence[str]) -> LatentSpace:
    space = _space_of(source, ids)
    if ids:
        return space.take(space.rows(ids))
    return space


def _encoded_again(options: argparse.Namespace, passport: Passport) -> LatentSpace:
    """The anchors' vectors by --encoder now, with the prompt and the pooling of the passport's card."""
    if any(_DIGEST.fullmatch(one) for one in passport.ids):
        raise SpaceError(
            f"{options.files[0]} --encoder: expected anchors that are texts, got digests of pictures; give"
            " their new vectors as the second file"
        )
    encoder = _encoder_of(options, passport.card)
    return _encoded(options, encoder, passport.ids, passport.card.prompt)


def _checked_passport(options: argparse.Namespace) -> Report:
    passport = Passport.load(options.files[0])
    ids = _ids(options)
    if ids and len(ids) != len(passport.ids):
        raise SpaceError(
            f"{options.ids}: expected {len(passport.ids):,} ids, one per anchor, got {len(ids):,}; write them"
            " in the passport's order"
        )
    if len(options.files) == 1:
        new = _encoded_again(options, passport)
    else:
        new = _space_of(options.files[1], ids or passport.ids)
    if ids:
        new = new.take(new.rows(ids)).with_columns(ids=passport.ids)
    texts, _, rows = paired_anchors(passport, new)
    # The space holds only the anchors, even if the file is large.
    found = check(LatentSpace(rows, texts, name=new.name), passport)
    change = found.change
    assert change is not None  # a passport was given
    if options.encoder is not None and len(options.files) == 2:
        encoder = model_at_hand(options.encoder, service=values_of(options, ProviderOptions))
        _say_what_is_sent(options, encoder, texts, *PROMPTS)
        change = replace(change, named=name_recipe(encoder, texts, rows))
    fine = change.kind in ACCEPTED[: ACCEPTED.index(options.gate) + 1]
    report = change.report(passport=asdict(passport.card), alarm=not fine)
    marks = [
        f"{len(rows):,} of {found.n:,} rows have {MARKS[name]}." for name, rows in found.partial_marks.items()
    ]
    if fine:
        alarm = []
    else:
        alarm = [f"An alarm, exit code 1: the change is larger than --gate {options.gate} accepts."]
        if change.kind in ACCEPTED:
            alarm = [f"{alarm[0]} --gate {change.kind} would accept it."]
    accepted = ", ".join(ACCEPTED[: ACCEPTED.index(options.gate) + 1])
    case = GateCase(
        "anchors", "change", f"{change.sentence} Accepted by --gate: {accepted}.", failed=not fine
    )
    return replace(report, notes=[*report.notes, *marks, *alarm], cases=[case])
