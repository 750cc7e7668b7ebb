"""A provider of vectors on this machine, `/v1/embeddings`, which can also be busy or hostile."""

from __future__ import annotations

import hashlib
import json
import ssl
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler

import numpy as np

from tests.loopback import serving

DIMENSIONS = 24


def hashed(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """A vector that depends on the text only."""
    seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
    return np.random.default_rng(seed).normal(size=dimensions).astype(np.float32).tolist()


def embeddings(texts: Sequence[str], dimensions: int = DIMENSIONS) -> dict:
    """The answer of a provider that works as it should."""
    rows = [
        {"object": "embedding", "index": number, "embedding": hashed(text, dimensions)}
        for number, text in enumerate(texts)
    ]
    return {
        "object": "list",
        "model": "hashed",
        "data": rows,
        "usage": {"prompt_tokens": 1, "total_tokens": 1},
    }


class Provider(BaseHTTPRequestHandler):
    """Answers by `server.answer(number of the request, body)` with (status, headers, bytes), or with None for
    the usual answer. `server.asked` lists (path, headers, body) of every request."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append((self.path, dict(self.headers), body))
        answer = self.server.answer(len(self.server.asked) - 1, body)  # may be a function of this handler
        if callable(answer):
            answer(self)
            return
        if answer is None:
            content = json.dumps(embeddings(body["input"], body.get("dimensions", DIMENSIONS))).encode()
            answer = 200, {"content-type": "application/json"}, content
        status, headers, content = answer
        self.send_response(status)
        for name, value in {"content-length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST

    def log_message(self, *_):
        pass


def by_minilm(prompt: str = "") -> Callable[[int, dict], object]:
    """The answers of a provider that serves MiniLM, and puts a prompt before each text."""
    from relcore.encoders.transformers import MiniLM
    from tests.relcore.encoders.texts import texts_dataset

    encode = MiniLM().prepare(texts_dataset(["a text"]), lambda *_: None)

    def answer(_, body):
        rows = encode([f"{prompt}{text}" for text in body["input"]])["layer 6"].tolist()
        data = [{"index": number, "embedding": row} for number, row in enumerate(rows)]
        return 200, {}, json.dumps({"data": data}).encode()

    return answer


def provider(
    answer: Callable[[int, dict], object] = lambda number, body: None,
    encryption: ssl.SSLContext | None = None,
):
    """A server and its address, as `serving` gives them."""
    return serving(Provider, encryption, answer=answer, asked=[])
