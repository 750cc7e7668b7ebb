"""Word vectors as word2vec, fastText and GloVe write them: .bin, .vec and .txt, plain or gzipped, read row by row."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, count, islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from relcore.sources.rows import GrowingMatrix, Rows, check_size, rows_to_read
from relcore.spaces import SpaceError

_HEADER = re.compile(rb"(\d{1,15})[ \t]+(\d{1,9})[ \t]*\r?\n?")
_FASTTEXT_MODEL = b"\xba\x16\x4f\x2f"
_BLOCK = 1 << 20
_LONGEST_WORD = 1 << 16
_LONGEST_LINE = 1 << 24
_LINES_AT_ONCE = 2_000


def read_word2vec_binary(path: Path, *, limit: int | None = None, max_bytes: int) -> Rows:
    """A word2vec .bin: a line "n d", then a word, a space and d little-endian float32 a row; stops reading at the limit."""
    with _opened(path) as stream:
        if stream.peek(4)[:4] == _FASTTEXT_MODEL:
            raise SpaceError(
                f"{path.name}: expected word2vec vectors, got a whole fastText model; load its .vec file, "
                "or save the words' vectors in word2vec form"
            )
        n, d = _header(stream.readline(64), path)
        wanted = rows_to_read(path, n, limit)
        check_size(path, wanted, d, max_bytes)
        vectors, ids = np.empty((wanted, d), dtype=np.float32), []
        buffer, at, width = b"", 0, 4 * d
        for row in range(wanted):
            while (space := buffer.find(b" ", at)) < 0 or len(buffer) <= space + width:
                if space < 0 and len(buffer) - at > _LONGEST_WORD:
                    raise SpaceError(
                        f"{path.name}: expected a word at row {row + 1} of {n:,}, got no end of one; is it a word2vec .bin?"
                    )
                chunk = stream.read(max(_BLOCK, width))
                if not chunk:
                    raise _cut_short(path, row, n)
                buffer, at = buffer[at:] + chunk, 0
            ids.append(buffer[at:space].lstrip(b"\n").decode("utf-8", "replace"))
            vectors[row] = np.frombuffer(buffer, dtype="<f4", count=d, offset=space + 1)
            at = space + 1 + width
        if wanted == n and (buffer[at:] + stream.read(2)).strip():
            raise _goes_on(path, n)
    vectors.flags.writeable = False
    return Rows(vectors, ids)


def read_word2vec_text(path: Path, *, limit: int | None = None, max_bytes: int) -> Rows:
    """A word and d numbers a line, after a line "n d" (word2vec, fastText) or without one (GloVe); stops at the limit."""
    with _opened(path) as stream:
        first = stream.readline(_LONGEST_LINE)
        header = _HEADER.fullmatch(first)
        n, d = _header(first, path) if header else (None, len(first.split()) - 1)
        if d < 1:
            raise SpaceError(f"{path.name}, line 1: expected 'n d' or a word and its numbers, got {_shown(first)}")
        if n is not None:
            check_size(path, rows_to_read(path, n, limit), d, max_bytes)
            lines = _numbered(stream, start=2)
        else:
            lines = chain([(1, first)], _numbered(stream, start=2))
        ids, vectors = [], GrowingMatrix(path, max_bytes)
        wanted = n if limit is None else min(limit, n or limit)
        while batch := list(islice(lines, _LINES_AT_ONCE if wanted is None else min(_LINES_AT_ONCE, wanted - len(ids)))):
            words, block = _parse(batch, d, path)
            ids += words
            vectors.append(block)
        if n is not None and len(ids) < wanted:
            raise _cut_short(path, len(ids), n)
        if n is not None and wanted == n and next(lines, None):
            raise _goes_on(path, n)
    return Rows(vectors.matrix(), ids)


def read_word2vec(path: Path, *, limit: int | None = None, max_bytes: int) -> Rows:
    """Either form, told apart by what follows the first line, for names that do not say (gensim-data's .gz)."""
    with _opened(path) as stream:
        stream.readline(_LONGEST_LINE)
        sample = stream.read(4096)
    # Numbers as text are printable; among a thousand binary floats some byte is a control character.
    binary = re.search(rb"[\x00-\x08\x0e-\x1f]", sample) is not None
    return (read_word2vec_binary if binary else read_word2vec_text)(path, limit=limit, max_bytes=max_bytes)


def word2vec_shape(path: Path) -> tuple[int, int] | None:
    """(n, d) where the first line tells it, else None."""
    with _opened(path) as stream:
        header = _HEADER.fullmatch(stream.readline(64))
    return (int(header[1]), int(header[2])) if header else None


@contextmanager
def _opened(path: Path) -> Iterator[io.BufferedReader]:
    """The file's bytes, unpacked where it is gzipped."""
    try:
        with io.BufferedReader(gzip.open(path)) if path.suffix.lower() == ".gz" else path.open("rb") as stream:
            yield stream
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise SpaceError(
            f"{path.name}: the compressed file is damaged or cut short ({error}); copy or download it again"
        ) from error


def _header(line: bytes, path: Path) -> tuple[int, int]:
    header = _HEADER.fullmatch(line)
    if not header or int(header[2]) == 0:
        raise SpaceError(
            f"{path.name}: expected a first line 'n d' (rows and dimensions), got {_shown(line)}; "
            "a binary file ends in .bin, a text file in .vec or .txt"
        )
    return int(header[1]), int(header[2])


def _numbered(stream: BinaryIO, start: int) -> Iterator[tuple[int, bytes]]:
    """Line numbers and lines from here on, blank ones left out; never a line longer than memory allows."""
    for number in count(start):
        line = stream.readline(_LONGEST_LINE)
        if not line:
            return
        if line.strip():
            yield number, line


def _parse(batch: list[tuple[int, bytes]], d: int, path: Path) -> tuple[list[str], np.ndarray]:
    """Words and vectors (m, d) of m lines: all at once where words hold no spaces, else line by line, which finds the fault."""
    words, _, numbers = zip(*(line.strip(b" \t\r\n").partition(b" ") for _, line in batch), strict=True)
    block = _numbers_at_once(b"\n".join(numbers), len(batch), d)
    if block is None:
        words, rows = zip(*(_parse_line(number, line, d, path) for number, line in batch), strict=True)
        block = np.stack(rows)
    return [word.decode("utf-8", "replace") for word in words], block


def _numbers_at_once(numbers: bytes, m: int, d: int) -> np.ndarray | None:
    import pyarrow as pa
    import pyarrow.csv as csv

    names = [str(column) for column in range(d)]
    try:
        table = csv.read_csv(
            io.BytesIO(numbers),
            read_options=csv.ReadOptions(column_names=names, use_threads=False, block_size=len(numbers) + 1),
            parse_options=csv.ParseOptions(delimiter=" ", quote_char=False),
            convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, pa.float32()), null_values=[]),
        )
    except pa.ArrowInvalid:
        return None
    return np.column_stack([column.to_numpy() for column in table.columns]) if table.num_rows == m else None


def _parse_line(number: int, line: bytes, d: int, path: Path) -> tuple[bytes, np.ndarray]:
    word, *numbers = line.rsplit(None, d) or [b""]
    try:
        if len(numbers) == d and word.strip():
            return word.strip(), np.array(numbers, dtype=np.float32)
    except ValueError:
        pass
    raise SpaceError(
        f"{path.name}, line {number}: expected a word and {d} numbers, got {_shown(line)}; mend or remove the line"
    )


def _cut_short(path: Path, n_whole: int, n: int) -> SpaceError:
    fix = f", or pass limit={n_whole} to take what is there" if n_whole else ""
    return SpaceError(
        f"{path.name}: the header promises {n:,} rows, but the file ends within row {n_whole + 1:,}; "
        f"copy or download it again{fix}"
    )


def _goes_on(path: Path, n: int) -> SpaceError:
    return SpaceError(
        f"{path.name}: the header promises {n:,} rows, but more follow; correct it, or pass limit={n} to take those"
    )


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return repr(text if len(text) <= 60 else text[:59] + "…")
