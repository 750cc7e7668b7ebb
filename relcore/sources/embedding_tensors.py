"""Embedding matrices in the weights of a Hugging Face model: which tensor, the tokens of its rows, and numbers as bfloat16."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from relcore import access
from relcore.plain_json import read_file
from relcore.spaces import SpaceError
from relcore.text_lines import read_lines

# BERT, Llama and most others, GPT-2, T5, ModernBERT, Mistral's own, word2vec-like models of sentence-transformers
_OF_TOKENS = re.compile(
    r"(.*\.)?(word_embeddings|embed_tokens|wte|shared|tok_embeddings|embed_in|word_embedding|emb_layer)\.weight"
)


def token_matrix(names: Iterable[str]) -> str | None:
    """The tensor with a row for each token, by the names that models give it; None where there is none or several."""
    found = [name for name in names if _OF_TOKENS.fullmatch(name)]
    return found[0] if len(found) == 1 else None


def token_ids(path: Path, tensor: str, n: int) -> list[str] | None:
    """The tokens of the n rows of this tensor, from tokenizer.json, vocab.json or vocab.txt beside the file.

    Rows without a token, which models add to round a size, are called "[row 30522]". None where the tensor is no matrix of
    tokens, or no vocabulary is there.

    Raises
    ------
    SpaceError
        A vocabulary that cannot be read, or of another model: it has more tokens than the matrix has rows.
    """
    if not _OF_TOKENS.fullmatch(tensor):
        return None
    for name, read in (("tokenizer.json", _of_tokenizer), ("vocab.json", _of_object), ("vocab.txt", _of_lines)):
        beside = path.with_name(name)
        if beside.is_file() and access.beside(path, beside):
            return _in_order(read(beside), beside, path, n)
    return None


def bfloat16_rows(path: Path, tensor: str, start: int, stop: int, d: int) -> np.ndarray:
    """Rows start … stop − 1 of a bfloat16 tensor (n, d) as float32; `safetensors` has checked the header."""
    with path.open("rb") as stream:
        stream.seek(tensor_begin(stream, tensor) + 2 * start * d)
        halves = np.frombuffer(stream.read(2 * (stop - start) * d), "<u2")
    return (halves.astype(np.uint32) << 16).view(np.float32).reshape(-1, d)


def tensor_begin(stream: BinaryIO, tensor: str) -> int:
    """The byte of an open .safetensors at which a tensor begins; `safetensors` has checked the header."""
    length = int.from_bytes(stream.read(8), "little")
    return 8 + length + json.loads(stream.read(length))[tensor]["data_offsets"][0]


def _of_tokenizer(path: Path) -> dict[int, str]:
    found = read_file(path, "a tokenizer")
    try:
        words = found["model"]["vocab"]
        tokens = _numbered(words, path) if isinstance(words, dict) else dict(enumerate(one[0] for one in words))
        return tokens | {one["id"]: one["content"] for one in found.get("added_tokens") or ()}
    except (TypeError, KeyError, AttributeError, IndexError) as error:
        raise SpaceError(f"{path.name}: expected the vocabulary of a tokenizer, got another file; copy it again") from error


def _of_object(path: Path) -> dict[int, str]:
    return _numbered(read_file(path, "a vocabulary"), path)


def _of_lines(path: Path) -> dict[int, str]:
    return dict(enumerate(read_lines(path, "one token per line")))


def _numbered(words: Any, path: Path) -> dict[int, str]:
    if not isinstance(words, dict):
        raise SpaceError(f"{path.name}: expected tokens with their numbers, got another file; copy it again")
    return {number: token for token, number in words.items()}


def _in_order(tokens: dict[int, str], beside: Path, path: Path, n: int) -> list[str]:
    if not all(type(number) is int and isinstance(token, str) for number, token in tokens.items()):
        raise SpaceError(f"{beside.name}: expected tokens with their whole numbers, got others; copy it again")
    if tokens and (min(tokens) < 0 or max(tokens) >= n):
        raise SpaceError(
            f"{beside.name}: expected at most {n:,} tokens, one per row of {path.name}, got number {max(tokens):,}; it belongs "
            "to another model: remove it, or copy the right one there"
        )
    named = (tokens.get(row, "") for row in range(n))
    return [token if token.strip(" \t\r\n") else f"[row {row}]" for row, token in enumerate(named)]
