"""Embedded: the recipe inside a figure's file, found by one pass over its bytes; nothing is drawn or unpacked for it."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

from relcore.access import regular_file
from relcore.plain_json import MOST_BYTES, parse
from relcore.spaces import SpaceError

KEY = "relscope-recipe"
_LARGEST = 256 << 20
_PNG = b"\x89PNG\r\n\x1a\n"
_KEYWORDS = re.compile(rb"/Keywords \(((?:[^\\)]++|\\.)*+)\)", re.DOTALL)  # possessive: what was passed is not tried again
_ELEMENT = re.compile(rb'<(metadata|script)\b[^<>]{0,200}\bid="relscope-recipe"[^<>]{0,200}>')


def read_recipe(file: str | Path | bytes) -> dict[str, Any]:
    """The recipe inside a PDF, PNG, SVG or HTML that Relscope wrote, or a JSON recipe; a path or the bytes.

    Raises
    ------
    SpaceError
        No file or one above 256 MB, no recipe in it, or one that cannot be read.
    """
    name, data = ("the file", file) if isinstance(file, bytes) else (Path(file).name, _content(Path(file)))
    try:
        found = _find(data)
        recipe = None if found is None else parse(found, "recipe")
    except (ValueError, zlib.error) as error:
        raise SpaceError(f"{name}: expected a recipe in JSON, got one that cannot be read ({error})") from error
    if not isinstance(recipe, dict):
        raise SpaceError(f"{name}: expected a PDF, PNG, SVG, HTML or JSON with a recipe inside, got none; export it again")
    return recipe


def recipe_script(recipe: str | None) -> str:
    """The element that holds a recipe in JSON in a page; empty without one. No text of it can end the element."""
    safe = None if recipe is None else recipe.replace("<", "\\u003c")  # in JSON a "<" is as well written so
    return f'<script type="application/json" id="{KEY}">{safe}</script>\n' if safe else ""


def _content(path: Path) -> bytes:
    size = regular_file(path).stat().st_size
    if size > _LARGEST:
        most = f"at most {_LARGEST >> 20} MB"
        raise SpaceError(
            f"{path.name}: expected a figure with a recipe inside, {most}, got {size >> 20:,} MB; is it this file?"
        )
    return path.read_bytes()


def _find(data: bytes) -> str | bytes | None:
    start = data[:1024].lstrip()
    if start.startswith(_PNG):
        return next(_png_texts(data), None)
    if start.startswith(b"%PDF"):
        return _pdf_keywords(data)
    if start.startswith(b"{"):
        return data
    at = data.find(b'id="relscope-recipe"')
    element = _ELEMENT.match(data, max(data.rfind(b"<", 0, at), 0)) if at >= 0 else None
    if element is None:
        return None
    end = data.find(b"<", element.end())
    content = data[element.end() : end]
    if not data.startswith(b"</" + element[1] + b">", end):
        return None
    return unescape(content.decode()) if element[1] == b"metadata" else content


def _png_texts(data: bytes) -> Iterator[bytes]:
    """The texts of a PNG under our key, plain or packed; what it shows is not decoded, however large it says it is."""
    at, key = len(_PNG), KEY.encode() + b"\0"
    while at + 8 <= len(data):
        end = at + 8 + int.from_bytes(data[at : at + 4])
        kind, text = data[at + 4 : at + 8], at + 8 + len(key)
        if kind in (b"tEXt", b"zTXt") and data.startswith(key, at + 8):
            yield data[text:end] if kind == b"tEXt" else zlib.decompressobj().decompress(data[text + 1 : end], MOST_BYTES + 1)
        if not kind.isalpha():
            return
        at = end + 4


def _pdf_keywords(data: bytes) -> bytes | None:
    """The first string of keywords: up to the first bracket that no backslash escapes."""
    found = _KEYWORDS.match(data, max(data.find(b"/Keywords ({"), 0))
    return found and b"\\".join(part.replace(b"\\", b"") for part in found[1].split(b"\\\\"))
