"""Texts in an array of Python objects, such as ``np.savez(path, ids=space.ids)`` writes, without unpickling.

NumPy pickles such an array. Its opcodes are compared with those that NumPy writes for texts: nothing is
called, imported or built, and any other opcode is refused.
"""

from __future__ import annotations

import pickletools
from collections.abc import Iterator
from itertools import islice
from typing import IO, Any

_Token = tuple[str, Any]  # the name of an opcode, and its argument

# Opcodes that differ only in how long their argument may be.
_NAMES = {
    **dict.fromkeys(("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"), "TEXT"),
    **dict.fromkeys(("BININT", "BININT1", "BININT2"), "NUMBER"),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), "GET"),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT", "MEMOIZE"), "PUT"),
}
_MODULES = "numpy._core.multiarray", "numpy.core.multiarray"  # of NumPy 2 and 1
_NONE = ("NONE", None)
_MARK = ("MARK", None)
_TUPLE = ("TUPLE", None)


def object_texts(stream: IO[bytes], n: int) -> list[str]:
    """The texts (n,) whose pickle begins at the stream's position, written by `numpy.save`. Raises a
    ValueError for a pickle of anything but n texts."""
    tokens = _tokens(stream)
    protocol = next(tokens, None)
    known = [_begin(module, protocol == ("PROTO", 4), n) for module in _MODULES]
    if protocol not in (("PROTO", 3), ("PROTO", 4)) or [*islice(tokens, len(known[0]))] not in known:
        raise ValueError("a pickle of something else than texts, which is never loaded")
    texts = []
    for token in tokens:
        name, argument = token
        if name == "TEXT":
            texts.append(argument)
        elif token == _TUPLE:
            break
        elif name not in ("MARK", "APPENDS", "APPEND"):
            raise ValueError(f"a pickle with {name} among its texts, which is never loaded")
        if len(texts) > n:
            break
    if len(texts) != n or [*tokens] != [("BUILD", None), ("STOP", None)]:
        raise ValueError(f"a pickle of other than {n:,} texts")
    "".join(texts).encode()  # fails for half a surrogate pair
    return texts


def _begin(module: str, stacked: bool, n: int) -> list[_Token]:
    """What NumPy writes before n texts: an empty array, and the first parts of its state, (version, shape,
    dtype, order, texts)."""
    return [
        *_named(module, "_reconstruct", stacked),
        *_named("numpy", "ndarray", stacked),
        *(("NUMBER", 0), ("TUPLE1", None), ("SHORT_BINBYTES", b"b"), ("TUPLE3", None), ("REDUCE", None)),
        *(_MARK, ("NUMBER", 1), ("NUMBER", n), ("TUPLE1", None)),
        *_named("numpy", "dtype", stacked),
        *(("TEXT", "O8"), ("NEWFALSE", None), ("NEWTRUE", None), ("TUPLE3", None), ("REDUCE", None)),
        *(_MARK, ("NUMBER", 3), ("TEXT", "|"), _NONE, _NONE, _NONE),
        *(("NUMBER", -1), ("NUMBER", -1), ("NUMBER", 63), _TUPLE, ("BUILD", None)),
        *(("NEWFALSE", None), ("EMPTY_LIST", None)),
    ]


def _named(module: str, name: str, stacked: bool) -> list[_Token]:
    if stacked:
        return [("TEXT", module), ("TEXT", name), ("STACK_GLOBAL", None)]
    return [("GLOBAL", f"{module} {name}")]


def _tokens(stream: IO[bytes]) -> Iterator[_Token]:
    """The opcodes of a pickle with their arguments. A text that is used again is repeated. Raises a
    ValueError if anything else is used again."""
    memo: dict[int, _Token] = {}
    token: _Token = _NONE
    for opcode, argument, _ in pickletools.genops(stream):
        name = _NAMES.get(opcode.name, opcode.name)
        if name == "FRAME":
            continue
        if name == "PUT":
            number = len(memo) if argument is None else argument
            memo[number] = token
            continue
        if name == "GET":
            token = memo.get(argument, _NONE)
            if token[0] != "TEXT":
                raise ValueError("a pickle in which something else than a text is used again")
        else:
            token = (name, argument)
        yield token
