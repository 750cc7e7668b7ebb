"""Pickles, as gensim's .kv files are, read as data: no unpickler, nothing imported, nothing called.

A pickle is a program, and unpickling runs it; an unpickler with an allow-list still calls what is on the
list. Here there is none. `pickletools.genops` splits the bytes into instructions without acting on them, and
a stack of plain Python values follows those that build values. Where the program would import a name we put a
`Name`, two strings; where it would call or fill something we put a `Made`, a record of the name and the
arguments. Arrays are rebuilt from such records with `numpy.frombuffer`, for plain numbers whose shape agrees
with their bytes. Names that vectors never need, and instructions not listed here, end the reading with an
error, so a harmful file is refused as well as harmless.
"""

from __future__ import annotations

import io
import math
import pickletools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from relcore.base import access
from relcore.base.errors import SpaceError
from relcore.base.text import visible
from relcore.files.arrays import read_npy
from relcore.files.rows import Rows, as_float32, check_size, readable, rows_to_read

_GENSIM = ("gensim.models.keyedvectors", "gensim.models.fasttext")
_NAMES = re.compile(
    r"gensim\.models\.(keyedvectors|fasttext)\..+"
    r"|numpy(\._?core\.(multiarray|numeric))?\.(_reconstruct|_frombuffer|scalar|ndarray|dtype)"
    r"|_codecs\.encode|(__builtin__|builtins)\.(set|frozenset|bytes|bytearray)",
    re.DOTALL,
)
_CONVERT = (
    "where you trust the file, convert it once: "
    'gensim.models.KeyedVectors.load(path).save_word2vec_format("vectors.bin", binary=True)'
)
_PROTOCOL = 5
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_LITERALS = {
    *("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "INT", "LONG", "BINFLOAT", "FLOAT"),
    *("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE", "BINSTRING", "SHORT_BINSTRING", "STRING"),
    *("SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8"),
}
_EMPTY = {"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_TUPLE": tuple, "EMPTY_SET": list}


class Name(NamedTuple):
    """What the pickle would import."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(frozen=True)
class Kind:
    """What a pickle is expected to hold, how to save it otherwise, and the names that it may ask for."""

    what: str
    convert: str
    names: re.Pattern[str]


@dataclass(eq=False)
class Made:
    """What the pickle would make by calling `maker(*arguments)` and filling it with `state`."""

    maker: Any
    arguments: Any
    state: Any = None


PERSISTENT = Name("", "persistent")  # makes what lies outside the pickle
_KEYED_VECTORS = Kind("gensim's KeyedVectors", _CONVERT, _NAMES)


def read_kv(path: Path, *, limit: int | None = None, max_bytes: int) -> Rows:
    """Words, vectors and counts of gensim's KeyedVectors (3.x and 4.x), with large arrays from
    `<file>.vectors.npy` beside it.

    Raises
    ------
    SpaceError
        A name or instruction that vectors do not need, a FastText file (its vectors are sums, made on
        loading), damage.
    """
    if path.stat().st_size > max_bytes:
        raise SpaceError(
            f"{path.name}: {readable(path.stat().st_size)} is more than max_bytes = {readable(max_bytes)}"
        )
    try:
        return _keyed_vectors(path, read_pickle_as_data(path.read_bytes(), path), limit, max_bytes)
    except SpaceError:
        raise
    except (ValueError, IndexError, TypeError, AttributeError, KeyError, OverflowError) as error:
        raise SpaceError(
            f"{path.name}: expected gensim's KeyedVectors, got a damaged pickle ({visible(error, 200)}); copy"
            " it again"
        ) from error


def _keyed_vectors(path: Path, root: Any, limit: int | None, max_bytes: int) -> Rows:
    if not (
        isinstance(root, Made)
        and isinstance(root.maker, Name)
        and isinstance(root.state, dict)
        and root.maker.module in _GENSIM
    ):
        raise SpaceError(
            f"{path.name}: expected gensim's KeyedVectors, got a pickle of something else; {_CONVERT}"
        )
    state = root.state
    words = state.get("index_to_key", state.get("index2word"))
    if not isinstance(words, list) or not words or not all(isinstance(word, str | int) for word in words):
        raise SpaceError(f"{path.name}: expected a list of words, got none; {_CONVERT}")
    wanted = rows_to_read(path, len(words), limit)
    vectors = _vectors(path, state, limit, max_bytes)
    if len(vectors) != wanted:
        raise SpaceError(
            f"{path.name}: expected {wanted} vectors, one per word, got {len(vectors)}; the files do not"
            " belong together"
        )
    return Rows(vectors, [str(word) for word in words[:wanted]], counts=_counts(path, state, words[:wanted]))


def _vectors(path: Path, state: dict, limit: int | None, max_bytes: int) -> np.ndarray:
    if isinstance(state.get("vectors"), Made):
        vectors = _array(path, state["vectors"])
        if vectors.ndim != 2:
            raise SpaceError(
                f"{path.name}: expected a matrix of vectors, got shape {vectors.shape}; {_CONVERT}"
            )
        check_size(path, *vectors.shape, max_bytes)
        return as_float32(vectors[:limit], path.name)
    if "vectors" in (state.get("__numpys") or ()):
        beside = path.with_name(path.name + ".vectors.npy")
        if not access.beside(path, beside) or not beside.is_file():
            raise SpaceError(
                f"{path.name}: expected its vectors in {beside.name} beside it, got no such file; copy both"
            )
        return read_npy(beside, limit=limit, max_bytes=max_bytes).vectors
    raise SpaceError(
        f"{path.name}: expected one stored vector a word, got none, as in FastText files of gensim 4;"
        f" {_CONVERT}"
    )


def _counts(path: Path, state: dict, words: list) -> np.ndarray | None:
    expandos, vocabulary = state.get("expandos"), state.get("vocab")
    if isinstance(expandos, dict) and isinstance(expandos.get("count"), Made):
        counts = _array(path, expandos["count"])
        return counts[: len(words)] if counts.ndim == 1 and counts.dtype.kind in "iu" else None
    if isinstance(vocabulary, dict) and all(isinstance(vocabulary.get(word), Made) for word in words):
        counts = [(vocabulary[word].state or {}).get("count") for word in words]
        return np.array(counts, dtype=np.int64) if all(isinstance(count, int) for count in counts) else None
    return None


def _array(path: Path, made: Made) -> np.ndarray:
    """The array that numpy's own pickle describes, from its bytes: plain numbers only."""
    if isinstance(made.state, tuple):
        _, shape, kind, fortran, content = made.state
    else:  # protocol 5: _frombuffer(content, dtype, shape, order)
        content, kind, shape, order = made.arguments
        fortran = order == "F"
    if isinstance(content, Made) and content.maker == Name(
        "_codecs", "encode"
    ):  # how Python 3 writes bytes in protocol 2
        content = content.arguments[0].encode("latin-1")
    code = kind.arguments[0] if isinstance(kind, Made) and kind.maker == Name("numpy", "dtype") else None
    if (
        not isinstance(content, bytes | bytearray)
        or not isinstance(code, str)
        or not re.fullmatch("f[248]|[iu][1248]", code)
    ):
        raise SpaceError(f"{path.name}: expected an array of plain numbers, got something else; {_CONVERT}")
    dtype = np.dtype(code).newbyteorder(">" if kind.state[1] == ">" else "<")
    if len(shape) > 2 or any(not isinstance(n, int) or n < 0 for n in shape):
        raise SpaceError(
            f"{path.name}: expected the shape of a list or a matrix, got another; the file is damaged"
        )
    if math.prod(shape) * dtype.itemsize != len(content):
        raise SpaceError(
            f"{path.name}: expected {math.prod(shape)} numbers in an array, got {len(content)} bytes; the"
            " file is damaged"
        )
    return np.frombuffer(content, dtype).reshape(shape, order="F" if fortran else "C")


def read_pickle_as_data(content: bytes, path: Path, kind: Kind = _KEYED_VECTORS) -> Any:
    """The value that a pickle (protocol 2 to 5) describes, with `Name` and `Made` where unpickling would
    import and call.
    """
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}

    def since_mark() -> list[Any]:
        start = marks.pop()
        items = stack[start:]
        del stack[start:]
        return items

    frame_end = 0
    for opcode, argument, position in pickletools.genops(io.BytesIO(content)):
        if frame_end and position >= frame_end:
            if position > frame_end:
                raise SpaceError(
                    f"{path.name}: expected a frame of the length it states, got another; copy the file again"
                )
            frame_end = 0
        match opcode.name:
            case "FRAME":  # says where it ends: a byte lost in an array would shift its numbers
                frame_end = position + 9 + argument
            case name if name in _LITERALS:
                stack.append(argument)
            case "MEMOIZE":
                memo[len(memo)] = stack[-1]
            case "BINPUT" | "LONG_BINPUT":
                memo[argument] = stack[-1]
            case "BINGET" | "LONG_BINGET":
                stack.append(memo[argument])
            case "MARK":
                marks.append(len(stack))
            case name if name in _CONSTANTS:
                stack.append(_CONSTANTS[name])
            case name if name in _EMPTY:
                stack.append(_EMPTY[name]())
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                size = int(opcode.name[-1])
                stack[-size:] = [tuple(stack[-size:])]
            case "TUPLE":
                stack.append(tuple(since_mark()))
            case "FROZENSET":
                stack.append(since_mark())
            case "APPEND":
                item = stack.pop()
                stack[-1].append(item)
            case "APPENDS" | "ADDITEMS":
                items = since_mark()
                stack[-1].extend(items)
            case "SETITEM":
                value, key = stack.pop(), stack.pop()
                _put(stack[-1], [key, value], path, kind)
            case "SETITEMS":
                items = since_mark()
                _put(stack[-1], items, path, kind)
            case "GLOBAL":
                stack.append(_name(*argument.split(" ", 1), path, kind))
            case "STACK_GLOBAL":
                name, module = stack.pop(), stack.pop()
                stack.append(_name(module, name, path, kind))
            case "REDUCE" | "NEWOBJ":
                arguments, maker = stack.pop(), stack.pop()
                stack.append({} if maker == Name("collections", "OrderedDict") else Made(maker, arguments))
            case "BINPERSID":
                stack.append(Made(PERSISTENT, stack.pop()))
            case "BUILD":
                state = stack.pop()
                if not isinstance(stack[-1], dict):  # an OrderedDict has nothing but its items
                    stack[-1].state = state
            case "STOP" if frame_end and position + 1 != frame_end:
                raise SpaceError(
                    f"{path.name}: expected a frame of the length it states, got another; copy the file again"
                )
            case "PROTO" if argument > _PROTOCOL:
                raise SpaceError(
                    f"{path.name}: expected a pickle of protocol 2 to {_PROTOCOL}, got {argument}; copy it"
                    " again"
                )
            case "PROTO" | "STOP":
                pass
            case name:
                raise SpaceError(
                    f"{path.name}: expected {kind.what}, got the pickle instruction {name}; {kind.convert}"
                )
    return stack.pop()


def _put(target: dict, items: list[Any], path: Path, kind: Kind) -> None:
    for key, value in zip(items[::2], items[1::2], strict=True):
        if not isinstance(
            key, str | int | float | bytes
        ):  # hashing nested tuples could be made to take for ever
            raise SpaceError(f"{path.name}: expected words as keys, got {type(key).__name__}; {kind.convert}")
        target[key] = value


def _name(module: Any, name: Any, path: Path, kind: Kind) -> Name:
    if not isinstance(module, str) or not isinstance(name, str):
        raise SpaceError(
            f"{path.name}: expected {kind.what}, got a name that is no text; the file is damaged"
        )
    known = Name(module, name)
    if kind.names.fullmatch(str(known)):
        return known
    if kind is _KEYED_VECTORS and module.startswith("gensim."):
        raise SpaceError(
            f"{path.name}: expected gensim's KeyedVectors, got a whole {name}; save its .wv alone. {_CONVERT}"
        )
    raise SpaceError(
        f"{path.name}: refused, the pickle asks for {str(known)[:80]!r}, which vectors never need; nothing of"
        f" it was run. Get the vectors from a source you trust, or, {kind.convert}"
    )
