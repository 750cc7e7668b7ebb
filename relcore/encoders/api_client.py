"""Requests for vectors, repeated while a provider is busy."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from time import monotonic, sleep, time
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError
from relcore.encoders.api_answers import described, most_bytes, read_rows
from relcore.encoders.api_transport import BoundedTransport, Refused
from relcore.encoders.sending import Address

PATIENCE = 600.0  # seconds for which a batch is repeated
PATIENCE_AT_FIRST = 10.0  # the same, as long as no connection has been made
_FIRST_WAIT = 0.5
_LONGEST_WAIT = 60.0
_BUSY = (408, 409, 425, 429, 500, 502, 503, 504, 529)
_REMEDIES = {
    400: "check the model, the dimensions, the length of the texts and the batch size",
    401: "check the key",
    403: "check the key and what it may use",
    404: "check the address, which often ends in /v1, and the name of the model",
    413: "lower the batch size",
    422: "check the model and its dimensions, or lower the batch size",
    429: "check the quota of the account",
}


@dataclass(frozen=True)
class _Reply:
    """What came back: the bytes of an answer, or the `reason` why there is none. `wait` is the number of
    seconds that the provider asks for."""

    content: bytes = b""
    reason: str = ""
    may_pass: bool = False  # whether the same request may succeed later
    remedy: str = ""
    wait: float | None = None
    is_connected: bool = True


@dataclass(frozen=True)
class Service:
    """A model of a provider, with the settings of its requests. `dimensions` is the number to ask for; None
    for that of the model. `api_version` is "" unless the provider is Azure."""

    address: Address
    model: str
    dimensions: int | None
    batch_size: int
    api_version: str


class ApiClient:
    """The client of a provider, with a key. `notify` is called with a line about each wait."""

    def __init__(self, service: Service, key: str, notify: Callable[[str], None]) -> None:
        import httpx2
        import openai

        self._service = service
        self._key = key
        self._notify = notify
        self._was_connected = False
        url = service.address.url
        key_header = {}
        if key and service.api_version:
            key_header = {"api-key": key}
        elif key:
            key_header = {"authorization": f"Bearer {key}"}
        transport: Any = BoundedTransport(url, most_bytes(service.batch_size), key_header)
        http = httpx2.Client(transport=transport, trust_env=False, follow_redirects=False, timeout=None)
        # Give every value that the client would otherwise take from the environment.
        settings: dict[str, Any] = {
            "api_key": "added by the transport",
            "admin_api_key": "",
            "organization": "",
            "project": "",
            "webhook_secret": "",
            "max_retries": 0,
            "http_client": http,
        }
        self._client: Any
        if service.api_version:
            self._client = openai.AzureOpenAI(azure_endpoint=url, api_version=service.api_version, **settings)
        else:
            self._client = openai.OpenAI(base_url=url, **settings)

    def rows(self, texts: Sequence[str], dimensions: int | None, where: str) -> np.ndarray:
        """The vectors (m, d) float32 of one batch of texts. `where` names the batch in errors.

        Raises
        ------
        SpaceError
            The provider refuses, stays busy for too long, or its answer is unsuitable.
        """
        start = monotonic()
        backoff = _FIRST_WAIT
        reply = self._ask(texts)
        while reply.may_pass:
            wait = reply.wait
            if wait is None:
                wait = backoff * random.uniform(0.5, 1.0)
                backoff = min(2 * backoff, _LONGEST_WAIT)
            if not self._was_connected and monotonic() + wait > start + PATIENCE_AT_FIRST:
                raise self._error(where, reply.reason, "check the address, and whether its server runs")
            if monotonic() + wait > start + PATIENCE:
                reason = f"{reply.reason} for {PATIENCE / 60:,.0f} minutes"
                if reply.wait is not None:
                    reason = f"{reply.reason}, and the request to wait {reply.wait:,.0f} seconds"
                raise self._error(where, reason, "finished batches are saved; encode again later")
            self._notify(f"{self._service.model}: {reply.reason}; waiting {wait:,.0f} s, then {where} again")
            sleep(wait)
            reply = self._ask(texts)
        if reply.reason:
            raise self._error(where, reply.reason, reply.remedy)
        message = ""
        try:
            return read_rows(reply.content, len(texts), dimensions)
        except SpaceError as error:
            message = str(error)
        raise SpaceError(self._without_key(f"{self._service.address.host}, {where}: {message}"))

    def _error(self, where: str, reason: str, remedy: str) -> SpaceError:
        host = self._service.address.host
        return SpaceError(self._without_key(f"{host}, {where}: expected vectors, got {reason}; {remedy}"))

    def _without_key(self, text: str) -> str:
        """The text without the key, which a provider may repeat in its messages."""
        if self._key:
            return text.replace(self._key, "…")
        return text

    def _ask(self, texts: Sequence[str]) -> _Reply:
        reply = self._asked_once(texts)
        self._was_connected |= reply.is_connected
        return reply

    def _asked_once(self, texts: Sequence[str]) -> _Reply:
        """One request. All exceptions of the client end here, because they hold the texts."""
        import openai

        more: dict[str, Any] = {}
        if self._service.dimensions is not None:
            more["dimensions"] = self._service.dimensions
        host = self._service.address.host
        try:
            answer = self._client.embeddings.with_raw_response.create(
                input=list(texts), model=self._service.model, encoding_format="float", **more
            )
            return _Reply(answer.http_response.content)
        except openai.APIStatusError as error:
            return self._refusal(error.status_code, error.response.headers, error.response.content)
        except openai.APITimeoutError:
            return _Reply(reason=f"no answer in time from {host}", may_pass=True)
        except openai.APIConnectionError as error:
            reason = str(error.__cause__ or error)[:200]
            return _Reply(reason=f"no connection to {host} ({reason})", may_pass=True, is_connected=False)
        except Refused as error:
            return _Reply(reason=f"another answer: {error}", remedy=error.remedy)
        except Exception as error:
            return _Reply(reason=f"the error {type(error).__name__}", remedy="check the address and the key")

    def _refusal(self, status: int, headers: Mapping[str, str], content: bytes) -> _Reply:
        if 300 <= status < 400:
            return _Reply(
                reason=f"a redirect (status {status}), which is never followed",
                remedy="give the final address of the provider",
            )
        said = described(content)
        spent = b"insufficient_quota" in content
        return _Reply(
            reason=f"status {status} with {said}",
            may_pass=status in _BUSY and not spent,
            remedy=_REMEDIES.get(status, "check the address and the model"),
            wait=_asked_wait(headers),
        )


def _asked_wait(headers: Mapping[str, str]) -> float | None:
    """The seconds that an answer asks to wait, by Retry-After, as a number or a date; None if it does not."""
    text = headers.get("retry-after", "").strip()
    if not text or len(text) > 40:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time()
        except (ValueError, OverflowError):
            return None
    if not 0 <= seconds <= 1e6:
        return None
    return seconds
