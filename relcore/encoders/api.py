"""`ApiText`, an encoder of texts by the models of a provider."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from relcore.base.access import is_shared
from relcore.base.errors import SpaceError, extra
from relcore.base.numbers import counted
from relcore.base.settings import Facts, setting
from relcore.encoders.dataset import Dataset
from relcore.encoders.encoder import EncodeBatch, Encoder
from relcore.encoders.model_files import require_texts
from relcore.encoders.sending import (
    Address,
    cost_note,
    expected_tokens,
    leaving_note,
    need_consent,
    operators_hosts,
    read_address,
    size_of,
)
from relcore.runs.work import Progress

if TYPE_CHECKING:
    from relcore.encoders.api_client import ApiClient

OPENAI = "https://api.openai.com/v1"
KEY = "OPENAI_API_KEY"
_MODEL = "text-embedding-3-small"
_KEYS = re.compile(r"([A-Z][A-Z0-9_]{0,80}_)?API_KEY")
_BATCH = 32
_MOST_BATCH = 2048


@dataclass(frozen=True)
class ApiText(Encoder):
    """A model behind an OpenAI-compatible address (/v1/embeddings): OpenAI, Azure, vLLM, TEI, Ollama, LM
    Studio, LiteLLM.

    Texts are sent only with consent (see `sending.sending_to`), and only to `address`. The key is read from
    an environment variable when it is needed, and stored nowhere.

    Attributes
    ----------
    address : str
        Up to and without "/embeddings": https://api.openai.com/v1, http://127.0.0.1:11434/v1.
    encode_as : "passage", "query"
        Whether the texts get `passage_prefix` or `query_prefix`.
    batch_size : int
        Number of texts of a request, and of a block in the store: a stopped encoding loses one request.
    price : float
        Dollars per million tokens, to show the cost beforehand.
    """

    kind: ClassVar = "texts"
    short: ClassVar = "api"
    by_item: ClassVar = True
    model: str = setting(
        _MODEL,
        placeholder=_MODEL,
        help="The provider's name of the model.",
    )
    address: str = setting(
        OPENAI,
        placeholder=OPENAI,
        help="The provider's address without /embeddings, such as http://127.0.0.1:11434/v1 for Ollama.",
    )
    dimensions: int | None = setting(
        None,
        low=1,
        high=16_384,
        help="Number of dimensions that a provider should return, if its model lets you choose.",
    )
    encode_as: Literal["passage", "query"] = setting(
        "passage",
        choices={"passage": "Passages", "query": "Queries"},
        help="Whether the prefix of passages or of queries is put before each text.",
    )
    passage_prefix: str = setting(
        "", verbatim=True, more=True, placeholder="passage: ", help="Put before each passage."
    )
    query_prefix: str = setting(
        "", verbatim=True, more=True, placeholder="query: ", help="Put before each query."
    )
    price: float = setting(
        0.0,
        low=0.0,
        high=10_000.0,
        help="Dollars per million tokens, to show the cost before texts are sent.",
    )
    key_variable: str = setting(
        KEY, more=True, help="The environment variable that holds the key; its name ends in API_KEY."
    )
    batch_size: int = setting(_BATCH, low=1, high=_MOST_BATCH, more=True, help="Number of texts per request.")
    api_version: str = setting(
        "", more=True, placeholder="2024-10-21", help="For Azure only: the version of its API."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "address", read_address(self.address).url)
        if not self.model.strip():
            raise SpaceError("model: expected the provider's name of a model, got none")
        # Other variables may hold secrets that are not meant for a provider.
        if not _KEYS.fullmatch(self.key_variable):
            raise SpaceError(
                "key_variable: expected the name of an environment variable that ends in API_KEY, such as"
                f" {KEY} (the name, not the key itself)"
            )

    @classmethod
    def unfit(cls, data: Facts) -> str:
        if is_shared() and not operators_hosts():
            return "This app is shared, so it sends no texts to providers."
        return ""

    @property
    def title(self) -> str:
        parts = [self.model]
        if self.dimensions is not None:
            parts.append(f"{self.dimensions} d")
        if self.encode_as == "query":
            parts.append("queries")
        return " ".join(parts)

    @property
    def place(self) -> Address:
        return read_address(self.address)

    @property
    def block_rows(self) -> int:
        return self.batch_size

    def for_key(self) -> ApiText:
        """The encoder without the settings that do not change vectors."""
        plain = replace(self, price=0.0, key_variable=KEY, batch_size=_BATCH)
        if self.encode_as == "query":
            return replace(plain, passage_prefix="")
        return replace(plain, query_prefix="")

    @property
    def sends_to(self) -> str:
        return self.place.consent

    def dollars(self, n_items: int, n_bytes: int) -> float | None:
        if not self.price:
            return None
        return self._tokens(n_items, n_bytes) * self.price / 1e6

    def _tokens(self, n_items: int, n_bytes: int) -> int:
        return expected_tokens(n_bytes + n_items * len(self._prefix.encode()), n_items)

    def need_consent(self, n_items: int, n_bytes: int) -> str:
        tokens = self._tokens(n_items, n_bytes)
        texts = f"{counted(n_items, 'text')} ({cost_note(tokens, self.price)})"
        note = leaving_note(self.place, texts, self._sent_key())
        need_consent(self.place, note)
        self._key()
        return note

    def prepare(self, dataset: Dataset, report: Progress) -> EncodeBatch:
        require_texts(dataset)
        self.need_consent(*size_of(dataset))
        with extra("api"):
            from relcore.encoders.api_client import ApiClient, Service

            def notify(message: str) -> None:
                report(0, 1, message)

            service = Service(self.place, self.model, self.dimensions, self.batch_size, self.api_version)
            return _ApiRows(self, ApiClient(service, self._key(), notify))

    @property
    def _prefix(self) -> str:
        if self.encode_as == "query":
            return self.query_prefix
        return self.passage_prefix

    def _sent_key(self) -> str:
        """The name of the environment variable whose key is sent; "" if there is none."""
        if os.environ.get(self.key_variable):
            return self.key_variable
        return ""

    def _key(self) -> str:
        """The key; "" for a server that needs none."""
        key = os.environ.get(self.key_variable, "").strip()
        if not key and self.place.url.startswith("https://api.openai.com/"):
            raise SpaceError(
                f"{self.title}: expected a key in the environment variable {self.key_variable}, got none; set"
                " it before you start Relscope"
            )
        if not key.isascii() or not key.isprintable() or " " in key:
            raise SpaceError(
                f"${self.key_variable}: expected a key of printable ASCII characters without spaces; set the"
                " variable again"
            )
        return key


class _ApiRows:
    """A function that maps texts to rows, in batches."""

    def __init__(self, encoder: ApiText, client: ApiClient) -> None:
        self._encoder = encoder
        self._client = client
        self._dimensions = encoder.dimensions

    def __call__(self, texts: list[str]) -> dict[str, np.ndarray]:
        first = getattr(texts, "first", 0)
        size = self._encoder.batch_size
        rows = []
        for start in range(0, len(texts), size):
            batch = texts[start : start + size]
            rows.append(self._batch(batch, f"texts {first + start + 1:,} to {first + start + len(batch):,}"))
        return {"": np.concatenate(rows)}

    def _batch(self, texts: list[str], where: str) -> np.ndarray:
        sent = [f"{self._encoder._prefix}{text}" for text in texts]
        if any(not text.isprintable() and _has_half_character(text) for text in sent):
            raise SpaceError(
                f"{where}: expected valid Unicode, got half of a surrogate pair; correct the text"
            )
        vectors = self._client.rows(sent, self._dimensions, where)
        self._dimensions = vectors.shape[1]
        return vectors


def _has_half_character(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
