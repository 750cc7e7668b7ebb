"""Finding a recipe in a file takes one pass: hostile files are answered at once, and pictures are not
decoded for it.
"""

import io
import json
import struct
import zlib

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from relcore.base.errors import SpaceError
from relcore.figures.export import KEY, read_recipe

RECIPE = {"relscope": "0.1.0", "figure": "scores", "title": "a (b) \\ <c> & d"}
TEXT = json.dumps(RECIPE)


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(*chunks, side=4):
    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join([chunk(b"IHDR", head), *chunks, chunk(b"IEND", b"")])


@pytest.mark.parametrize("packed", [False, True])
def test_a_png_of_any_size_gives_its_text(packed):
    facts = PngInfo()
    facts.add_text(KEY, TEXT, zip=packed)
    written = io.BytesIO()
    Image.new("L", (3, 2)).save(written, "PNG", pnginfo=facts)
    assert read_recipe(written.getvalue()) == RECIPE
    assert read_recipe(png(chunk(b"tEXt", f"{KEY}\0{TEXT}".encode()), side=2**31 - 1)) == RECIPE


def test_a_packed_text_is_unpacked_as_far_as_a_recipe_may_go():
    bomb = KEY.encode() + b"\0\0" + zlib.compress(b"[" * (64 << 20))
    with pytest.raises(SpaceError, match="expected at most 32 MB of JSON"):
        read_recipe(png(chunk(b"zTXt", bomb)))
    with pytest.raises(SpaceError, match="cannot be read"):
        read_recipe(png(chunk(b"zTXt", KEY.encode() + b"\0\0no zlib")))


@pytest.mark.parametrize(
    "data",
    {
        "keywords": b"%PDF-1.4 " + b"/Keywords ({" * 200_000,
        "escapes": b"%PDF-1.4 /Keywords ({" + b"\\)" * 1_000_000,
        "backslashes": b"%PDF-1.4 /Keywords ({" + b"\\" * 2_000_000 + b")",
        "metadata": b"<svg>" + b'<metadata id="relscope-recipe" ' * 100_000,
        "scripts": b"<svg>" + b"<script " * 300_000 + b'id="relscope-recipe"',
        "attributes": b"<metadata " + b"x" * 2_000_000 + b'id="relscope-recipe">{}</metadata>',
        "open": b'<metadata id="relscope-recipe">' + b"{" * 2_000_000,
        "chunks": png(*[chunk(b"tEXt", b"")] * 10_000),
        "zeros": b"\x89PNG\r\n\x1a\n" + b"\0" * 2_000_000,
    }.values(),
    ids=len,
)
def test_a_long_file_without_a_recipe_is_passed_once(data):
    """Two megabytes each: a search that starts again at every place would take minutes."""
    with pytest.raises(SpaceError, match=r"got none|cannot be read"):
        read_recipe(data)
