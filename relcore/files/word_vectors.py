"""The formats of word2vec, packed by gzip or not."""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, count, islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.numbers import counted
from relcore.base.text import visible
from relcore.files.formats import ARROW, Blocks, Description, Format, Request, readable

# Read word vectors of word2vec, fastText and GloVe from .bin, .vec and .txt files, plain or gzipped.

_FREE = 32 << 20  # bytes that any file may unpack to, whatever the ratio
_MOST_TIMES = 50  # maximum ratio of compression; vectors as text reach 2 to 3, a repeated byte 1,030
_HEADER = re.compile(rb"(\d{1,15})[ \t]+(\d{1,9})[ \t]*\r?\n?")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(inf|infinity|nan)", re.IGNORECASE)
_FASTTEXT_MODEL = b"\xba\x16\x4f\x2f"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLOCK = 1 << 20
_LONGEST_WORD = 1 << 16
_WORDS_AHEAD = 10
_LONGEST_LINE = 1 << 24
_MOST_BLANK = 100_000  # number of consecutive blank lines
_LINES_AT_ONCE = 2_000
_BYTES_AT_ONCE = 1 << 25
_COLUMNS_AT_ONCE = 20_000  # above this width, lines are parsed one by one: Arrow creates an object per column
Line = tuple[int, bytes]  # the number and the bytes of a line of text


class _Unpacked(io.RawIOBase):
    """The unpacked bytes of a .gz file. A decompression bomb raises an error."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._packed = path.stat().st_size

        self._stream = gzip.open(path)  # noqa: SIM115, closed with the object
        self._unpacked = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        n = self._stream.readinto(buffer)
        self._unpacked += n
        if self._unpacked > max(_FREE, _MOST_TIMES * self._packed):
            raise SpaceError(
                f"{self._path.name}: expected vectors, got {readable(self._packed)} that unpack to more than "
                f"{readable(self._unpacked)}, nearly all of it the same; where you trust the file, unpack it"
            )
        return n


def _opened(path: Path) -> io.BufferedReader:
    if path.suffix.lower() == ".gz":
        return io.BufferedReader(_Unpacked(path), 1 << 17)
    return path.open("rb")


class _WordVectors(Format):
    libraries = ARROW

    def describe(self, path: Path) -> Description:
        with _opened(path) as stream:
            first = stream.readline(_BLOCK).removeprefix(_BYTE_ORDER_MARK)
        if header := _HEADER.fullmatch(first):
            return Description({"": (int(header[1]), int(header[2]))}, "")
        d = len(first.split()) - 1
        glove = d > 1 and path.suffix.lower() != ".gz" and all(map(_NUMBER.fullmatch, first.split()[1:]))
        if glove:
            return Description({"": (None, d)}, "")
        return Description()


class Word2VecBinary(_WordVectors):
    """A word2vec .bin file. It has a line "n d", then rows, each with a word, a space and d little-endian
    float32."""

    def blocks(self, path: Path, request: Request) -> Blocks:
        with _opened(path) as stream:
            if stream.peek(4)[:4] == _FASTTEXT_MODEL:
                raise SpaceError(
                    f"{path.name}: expected word2vec vectors, got a whole fastText model; load its .vec"
                    " file, or save the words' vectors in word2vec form"
                )
            n, d = _header(stream.readline(64), path)
            wanted = request.rows(path, n, d)
            rows = _BinaryRows(stream, path, n, d)
            ids: list[str] = []
            buffer = np.empty((min(wanted, max(1, _BLOCK // (4 * d))), d), np.float32)
            while len(ids) < wanted:
                block = buffer[: wanted - len(ids)]
                for place in range(len(block)):
                    word, block[place] = rows.next()
                    ids.append(word)
                yield block
            if wanted == n:
                rows.need_end()
            else:
                rows.need_words(_WORDS_AHEAD)
        return {"ids": ids}


class _BinaryRows:
    """The n rows of a word2vec .bin file, read one after the other. `stream` is behind the first line."""

    def __init__(self, stream: BinaryIO, path: Path, n: int, d: int) -> None:
        self._stream = stream
        self._path = path
        self._n = n
        self._d = d
        self._row = 0  # number of the next row
        self._buffer = b""
        self._at = 0  # where the next row begins in the buffer
        self._line_feeds = False  # word2vec ends each row with a line feed; gensim does not

    def next(self) -> tuple[str, np.ndarray]:
        """The word of the next row, and its vector (d,)."""
        space = self._find_space()
        line_feed = self._buffer.startswith(b"\n", self._at)
        if self._row == 1:
            self._line_feeds = line_feed
        if self._row and line_feed != self._line_feeds:
            raise self._no_word(self._buffer[self._at : space])
        word = self._word(self._buffer[self._at : space])
        vector = np.frombuffer(self._buffer, dtype="<f4", count=self._d, offset=space + 1)
        self._at = space + 1 + vector.nbytes
        self._row += 1
        return word, vector

    def _find_space(self) -> int:
        """Read until the buffer holds the whole next row. Returns the place of the space behind its word."""
        width = 4 * self._d
        while True:
            space = self._buffer.find(b" ", self._at)
            if 0 <= space < len(self._buffer) - width:
                return space
            if space < 0 and len(self._buffer) - self._at > _LONGEST_WORD:
                raise self._no_word(self._buffer[self._at :])
            chunk = self._stream.read(max(_BLOCK, width))
            if not chunk:
                raise _cut_short(self._path, self._row, self._n)
            self._buffer = self._buffer[self._at :] + chunk
            self._at = 0

    def need_end(self) -> None:
        """Raise a SpaceError if more than blanks follow the last row."""
        if (self._buffer[self._at :] + self._stream.read(2)).strip():
            raise _trailing_data(self._path, self._n)

    def need_words(self, m: int) -> None:
        """Raise a SpaceError if one of the next m rows does not begin with a word. If the reading stops at a
        limit, only these words can reveal that the first line has a wrong d."""
        width = 4 * self._d
        ahead = self._buffer[self._at :] + self._stream.read(m * width)
        at = 0
        last = min(self._n, self._row + m)
        while self._row < last and (space := ahead.find(b" ", at)) >= 0:
            self._word(ahead[at:space])
            at = space + 1 + width
            self._row += 1

    def _word(self, word: bytes) -> str:
        word = word.lstrip(b"\n")
        if word and b"\n" not in word and b"\0" not in word:
            with suppress(UnicodeDecodeError):
                return word.decode()
        raise self._no_word(word)

    def _no_word(self, got: bytes) -> SpaceError:
        return SpaceError(
            f"{self._path.name}: expected a word at row {self._row + 1} of {self._n:,}, got {got[:20]!r},"
            f" which is not UTF-8 text; is it a word2vec .bin, and has it {self._d:,} dimensions, as its"
            " first line says?"
        )


class Word2VecText(_WordVectors):
    """Word vectors as text, with a word and d numbers per row. Files of word2vec and fastText begin with a
    line "n d", and files of GloVe do not.

    ASCII spaces or tabs separate fields. A word may contain such a separator (". . ." in GloVe's 840B),
    unless a number follows it: then the row would have one number too many.
    """

    def blocks(self, path: Path, request: Request) -> Blocks:
        with _opened(path) as stream:
            lines = _lines(stream, path)
            number, first = next(lines, (1, b""))
            if number == 1 and _HEADER.fullmatch(first):
                n, d = _header(first, path)
                wanted = request.rows(path, n, d)
            else:
                n = None
                wanted = request.limit
                d = len(first.split()) - 1
                if d < 1 or not all(map(_NUMBER.fullmatch, first.split()[1:])):
                    raise _no_row(
                        (number, first), path, "'n d' or a word and its numbers", "is it word2vec text?"
                    )
                lines = chain([(number, first)], lines)
            ids: list[str] = []
            rows = lines if wanted is None else islice(lines, wanted)
            while batch := _batch(rows):  # [] after the last row
                words, block = _parse(batch, d, path)
                ids += words
                yield block
            if n is not None and len(ids) < wanted:
                raise _cut_short(path, len(ids), n)
            if n is not None and wanted == n and next(lines, None):
                raise _trailing_data(path, n)
        return {"ids": ids}


class Word2Vec(_WordVectors):
    """Word vectors in a file whose only suffix is .gz. The bytes after the first line tell whether the
    vectors are stored as binary numbers or as text."""

    def blocks(self, path: Path, request: Request) -> Blocks:
        with _opened(path) as stream:
            stream.readline(_LONGEST_LINE)
            sample = stream.read(4096)
        # Numbers as text are printable, but of a thousand binary floats some byte is a control character.
        binary = re.search(rb"[\x00-\x08\x0e-\x1f]", sample) is not None
        form = Word2VecBinary() if binary else Word2VecText()
        return (yield from form.blocks(path, request))


def _header(line: bytes, path: Path) -> tuple[int, int]:
    header = _HEADER.fullmatch(line)
    if not header or int(header[2]) == 0:
        remedy = "a binary file ends in .bin, a text file in .vec or .txt"
        raise _no_row((1, line), path, "a first line 'n d' (rows and dimensions)", remedy)
    return int(header[1]), int(header[2])


def _lines(stream: BinaryIO, path: Path) -> Iterator[Line]:
    """Yield the number and the bytes of each line that is not blank."""
    n_blank = 0
    for number in count(1):
        line = stream.readline(_LONGEST_LINE + 1)
        if not line:
            return
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        n_blank = 0 if line.strip() else n_blank + 1
        if len(line) > _LONGEST_LINE or n_blank > _MOST_BLANK:
            expected = f"at most {_LONGEST_LINE:,} bytes per line and {_MOST_BLANK:,} blank lines"
            raise _no_row((number, line), path, expected, "is it word2vec text?")
        if not n_blank:
            yield number, line


def _batch(lines: Iterator[Line]) -> list[Line]:
    batch = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line[1])
        if len(batch) == _LINES_AT_ONCE or size > _BYTES_AT_ONCE:
            break
    return batch


def _parse(batch: list[Line], d: int, path: Path) -> tuple[list[str], np.ndarray]:
    # If no word contains a space, parse all lines at once. Otherwise parse them one by one, to find the
    # faulty line.
    words, _, numbers = zip(*(line.rstrip(b" \t\r\n").partition(b" ") for _, line in batch), strict=True)
    joined = b"\n".join(words)
    plain = b"" not in words and b"\r" not in joined and b"\0" not in joined
    block = None
    if plain:
        block = _numbers_at_once(b"\n".join(numbers), len(batch), d)
    if block is None:
        words, rows = zip(*(_parsed_line(line, d, path) for line in batch), strict=True)
        block = np.stack(rows)
        joined = b"\n".join(words)
    try:
        return joined.decode().split("\n"), block
    except UnicodeDecodeError as error:
        line = batch[joined.count(b"\n", 0, error.start)]
        raise _no_row(line, path, "UTF-8 text", "save it as UTF-8") from None


def _numbers_at_once(numbers: bytes, m: int, d: int) -> np.ndarray | None:
    import pyarrow as pa
    import pyarrow.csv as csv

    if d > _COLUMNS_AT_ONCE or b"\r" in numbers:
        return None
    names = [str(column) for column in range(d)]
    try:
        table = csv.read_csv(
            io.BytesIO(numbers),
            csv.ReadOptions(column_names=names, use_threads=False, block_size=len(numbers) + 1),
            csv.ParseOptions(delimiter=" ", quote_char=False),
            csv.ConvertOptions(column_types=dict.fromkeys(names, pa.float32()), null_values=[]),
        )
    except pa.ArrowInvalid:
        return None
    if table.num_rows == m:
        return np.column_stack([column.to_numpy() for column in table.columns])
    return None


def _parsed_line(line: Line, d: int, path: Path) -> tuple[bytes, np.ndarray]:
    text = line[1].rstrip(b" \t\r\n")
    if b"\r" in text or b"\0" in text:
        raise _no_row(line, path, "UTF-8 text with line feeds", "save it as UTF-8 with line feeds")
    word, *numbers = text.rsplit(None, d)
    spaced = text[:1].isspace() or any(map(_NUMBER.fullmatch, word.split()[1:]))
    if len(numbers) == d and not spaced and all(map(_NUMBER.fullmatch, numbers)):
        with suppress(ValueError), np.errstate(over="ignore"):
            return word, np.array(numbers, dtype=np.float32)
    remedy = "mend or remove the line, or mend line 1, which gives the number of dimensions"
    raise _no_row(line, path, f"a word and {counted(d, 'number')}", remedy)


def _no_row(line: Line, path: Path, expected: str, remedy: str) -> SpaceError:
    got = visible(line[1].decode("utf-8", "replace").strip(), 60)
    return SpaceError(f"{path.name}, line {line[0]}: expected {expected}, got {got!r}; {remedy}")


def _cut_short(path: Path, n_whole: int, n: int) -> SpaceError:
    fix = ""
    if n_whole:
        fix = f", or pass limit={n_whole} to take only whole rows"
    return SpaceError(
        f"{path.name}: the header promises {n:,} rows, but the file ends within row {n_whole + 1:,}; "
        f"copy or download it again{fix}"
    )


def _trailing_data(path: Path, n: int) -> SpaceError:
    return SpaceError(
        f"{path.name}: the header promises {n:,} rows, but more follow; correct the header, or pass limit={n}"
    )
