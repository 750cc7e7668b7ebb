"""Hostile bytes of pictures; the independent reading is what was drawn, or Pillow's own."""

import io
import struct
import zlib
from functools import partial

import numpy as np
from PIL import Image, ImageOps

from relcore.encoders.pictures import decode_image, pixel_array, png_thumbnail
from tests.hostile.cases import Case, spoiled

KINDS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM")
WHERE = "items.parquet, row 3"
_PACKER = zlib.compressobj(9)
_FIRST, _AGAIN = (_PACKER.compress(bytes(1 << 24)) + _PACKER.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
GIGABYTE = _FIRST + 63 * _AGAIN  # of zeros, in some kilobytes
DRAWN = np.random.default_rng(1).integers(0, 255, (16, 12, 3)).astype(np.uint8)


def picture(kind, pixels=DRAWN, **options):
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, kind, **options)
    return stream.getvalue()


def pixels(of):
    image = of
    if isinstance(of, bytes):
        image = ImageOps.exif_transpose(Image.open(io.BytesIO(of)))
    return np.asarray(image.convert("RGBA"))


def decoded(content):
    def read(folder):
        image = decode_image(content, WHERE)
        png_thumbnail(image)
        if image.mode not in ("I", "F"):
            pixel_array([image], "RGB", (8, 8), WHERE)
        return pixels(image)

    return read


def truth(content):
    try:
        with Image.open(io.BytesIO(content), formats=KINDS) as image:
            if image.width * image.height > 10**6:
                return None
        return pixels(content)
    except Exception:
        return None


def case(name, content, right=None, accept=False):
    return Case(name, decoded(content), {}, right, accept=accept, names=(WHERE,))


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width, height, body, *more, depth=8, colour=0):
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(more) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def cases():
    for kind in KINDS:
        content = picture(kind)
        yield case(f"control: {kind}", content, pixels(content), accept=True)
        for name, changed in spoiled(content, points=(2, 8, 16, 24, 33), n_flips=6):
            yield case(f"{kind}: {name}", changed, partial(truth, changed))
    for mode in ("1", "L", "LA", "P", "RGBA", "I;16"):
        stream = io.BytesIO()
        if mode != "I;16":
            image = Image.fromarray(DRAWN).convert("L").convert(mode)
        else:
            image = Image.fromarray(DRAWN[..., 0].astype(np.uint16))
        image.save(stream, "PNG")
        yield case(f"control: mode {mode}", stream.getvalue(), pixels(stream.getvalue()), accept=True)
    turned = Image.Exif()
    turned[0x0112] = 6
    content = picture("JPEG", exif=turned)
    yield case("control: turned by its camera", content, pixels(content), accept=True)
    yield case("nothing", b"")
    yield case("none", None)
    for name, content in {
        "text": b"hello world",
        "SVG that fetches": (
            b'<svg xmlns="http://www.w3.org/2000/svg"><image href="http://127.0.0.1:1/x.png"/></svg>'
        ),
        "PostScript that runs": (
            b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(%pipe%touch executed) (w) file\n"
        ),
        "a pickle": b"cos\nsystem\n(S'touch executed'\ntR.",
        "100,000 × 100,000, a few bytes": png(100_000, 100_000, zlib.compress(bytes(100))),
        "20,000 × 20,000, all there": png(20_000, 20_000, zlib.compress(bytes(1 << 24)), depth=1),
        "a wrong checksum": picture("PNG").replace(b"IDAT", b"IDAU"),
        "a chunk of 4 GB": b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 2**32 - 1) + b"IHDR",
        "a text that unpacks to 1 GB": png(
            5, 5, zlib.compress(bytes(30)), chunk(b"zTXt", b"k\0\0" + GIGABYTE)
        ),
        "200,000 chunks": png(5, 5, zlib.compress(bytes(30)), chunk(b"tEXt", b"k\0v") * 200_000),
        "PPM of 10¹⁸ pixels": b"P6\n1000000000 1000000000\n255\n",
        "GIF of 65,535 × 65,535": (
            b"GIF89a\xff\xff\xff\xff\x80\0\0" + bytes(6) + b",\0\0\0\0\xff\xff\xff\xff\0\x02\x02D\x01\0;"
        ),
        "BMP of a negative height": picture("BMP")[:22] + struct.pack("<i", -(2**31)) + picture("BMP")[26:],
        "TIFF that points at itself": b"II*\0\x08\0\0\0\0\0\x08\0\0\0",
    }.items():
        yield case(name, content, partial(truth, content))
    frames = [Image.fromarray(pixels).convert("P") for pixels in (DRAWN, 255 - DRAWN)]
    stream = io.BytesIO()
    frames[0].save(stream, "GIF", save_all=True, append_images=frames[1:] * 500)
    yield case("501 frames", stream.getvalue(), partial(pixels, stream.getvalue()))
    large = {"large.png": _write_large}
    yield Case("100 million pixels in three colours", _size, large, (10_000, 10_000), names=(WHERE,))


def _write_large(path):
    path.write_bytes(picture("PNG", np.zeros((10_000, 10_000, 3), np.uint8), compress_level=1))


def _size(folder):
    image = decode_image((folder / "large.png").read_bytes(), WHERE)
    png_thumbnail(image)
    return image.size
