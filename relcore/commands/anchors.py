"""Read the option --anchors: a number of anchors, ids, or a file of them."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from relcore.base.access import expand_home
from relcore.base.errors import SpaceError, quote
from relcore.base.text import read_lines
from relcore.represent.strategies import USUAL_ANCHORS, select_anchors, unscored_first, usual_anchors
from relcore.spaces.space import LatentSpace

_MOST_DIGITS = 18  # 18 digits fit into 64 bits


def is_number(option: str, text: str) -> bool:
    """Whether the text of an option is a number of rows: a whole number without a sign. Other texts name a
    file or ids.

    Raises
    ------
    SpaceError
        The number has more digits than any number of rows can have.
    """
    number = text.isascii() and text.isdecimal()
    if number and len(text) > _MOST_DIGITS:
        raise SpaceError(
            f"{option}: expected a number of at most {_MOST_DIGITS} digits, got {len(text):,} digits; choose"
            " fewer"
        )
    return number


def anchors_of(options: argparse.Namespace, space: LatentSpace) -> tuple[str, ...]:
    """The ids of the anchors. If --anchors lists ids, these are returned. Otherwise it is a number, by
    default `usual_anchors`, and that many anchors are chosen in this space by --strategy (see
    `unscored_first`).
    """
    anchors = number_or_ids(options.anchors, usual_anchors(len(space)))
    if not isinstance(anchors, int) or not anchors:
        return anchors or ()
    space = unscored_first(space, anchors)
    return tuple(select_anchors(space, anchors, options.strategy, random_state=options.random_state))


def number_or_ids(text: str | None, usual: int = USUAL_ANCHORS) -> int | tuple[str, ...]:
    """Read the value of --anchors: either a number of anchors, such as ``"300"``, or distinct ids. The ids
    are separated by commas, or `text` names a file with one id per line."""
    if text is None:
        return usual
    if is_number("--anchors", text):
        return int(text)
    if re.fullmatch(r"[+-]\d+(\.\d*)?", text.strip()):
        raise SpaceError(
            f"--anchors: expected a number from 0, ids, or a file of ids, got {text!r:.40}; write ids that"
            " look like numbers into a file"
        )
    if (path := _path_of(text)).is_file():
        if (ids := _ids_in(path)) is None:
            from relcore.files.links import known_pairs

            known = known_pairs(path, "--anchors")
            if apart := [pair for pair in known if pair[0] != pair[1]]:
                raise SpaceError(
                    f"--anchors: expected pairs of equal ids, got {quote(apart[0])}; pairs of different ids"
                    " are for audit --pair-list and link --pairs"
                )
            ids = [source for source, _ in known]
    elif path.suffix.lower() in (".txt", ".csv"):
        got = f"{text!r:.200}, a file that does not exist; check the spelling"
        raise SpaceError(f"--anchors: expected a number, ids, or a file of ids, got {got}")
    else:
        ids = text.split(",")
    distinct = tuple(dict.fromkeys(name for one in ids if (name := one.strip())))
    if not distinct:
        raise SpaceError(
            f"--anchors: expected at least one id, got none in {text!r:.200}; name ids of the space"
        )
    return distinct


def _path_of(anchors: str) -> Path:
    try:
        return expand_home(anchors)
    except SpaceError:
        if "," not in anchors:
            raise
        return Path()  # not a path but a list of many ids, which is longer than a path can be


def _ids_in(path: Path) -> list[str] | None:
    """The lines of a file that lists ids; None if the file lists pairs of ids instead (see
    `relcore.files.links.is_links`)."""
    from relcore.files.links import is_links

    if is_links(path):
        return None
    return read_lines(path, "one id per line")


def suspects_of(options: argparse.Namespace) -> list[str]:
    """The ids of rows that the command `audit` found wrongly paired, read from the file of --anchors; [] if
    `audit` did not write this file."""
    text = getattr(options, "anchors", None)
    if not isinstance(text, str) or not (path := _path_of(text)).is_file():
        return []
    from relcore.files.links import read_links

    if _ids_in(path) is None:
        pairs, kinds = read_links(path)
    else:
        pairs = ()
        kinds = ()
    marked = zip(pairs, kinds, strict=True)
    return [source for (source, target), kind in marked if kind == "suspect" and source == target]
