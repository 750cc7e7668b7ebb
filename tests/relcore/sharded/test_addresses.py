"""Shards at addresses: what an HTTP server answers is counted, bounded and timed."""

import gzip
import re
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler
from io import BytesIO

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.sharded import places
from relcore.sharded.space import ShardedSpace
from tests import loopback
from tests.relcore.sharded.folders import whole

ROWS = np.arange(4000, dtype=np.float32).reshape(1000, 4)


def npy(rows):
    stream = BytesIO()
    np.save(stream, rows)
    return stream.getvalue()


FILES = {"part-0.npy": npy(ROWS), "part-1.npy": npy(ROWS + 1)}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        name = self.path.rpartition("/")[2]
        listing = "".join(f'<a href="{file}">{file}</a>' for file in FILES).encode()
        content = FILES[name] if name else listing
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if self.command == "HEAD":
            kind = "head"
        elif asked:
            kind = "range"
        elif name:
            kind = "file"
        else:
            kind = "listing"
        self.server.seen.append((kind, self.headers.get("Accept-Encoding")))
        if lie := self.server.lies.get(kind):
            with suppress(OSError):
                lie(self)
            self.close_connection = True
            return
        part = content
        if asked:
            part = content[int(asked[1]) : int(asked[2]) + 1]
        self.answer(206 if asked else 200, len(part))
        if self.command == "GET":
            self.wfile.write(part)

    def answer(self, status, size, **headers):
        self.send_response(status)
        for name, value in {"Content-Length": size, "Accept-Ranges": "bytes", **headers}.items():
            if value is not None:
                self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()


@contextmanager
def serving(**lies):
    with loopback.serving(_Handler, lies=lies, seen=[]) as (server, address):
        yield f"{address}/s/", server.seen


def endless(handler, status=200):
    handler.answer(status, None, Transfer_Encoding="chunked")
    for _ in range(300):
        handler.wfile.write(b"100000\r\n" + b" " * (1 << 20) + b"\r\n")


def packed(handler):
    content = gzip.compress(bytes(1 << 28))
    handler.answer(200, len(content), Content_Encoding="gzip")
    handler.wfile.write(content)


def dripping(handler, status=200):
    handler.answer(status, 10**6)
    while not handler.server.stopped.wait(0.02):
        handler.wfile.write(b" ")


def cut(handler, status=206):
    handler.answer(status, 10**4)
    handler.wfile.write(b"x" * 10)


LIES = {
    "an endless listing": {"listing": endless},
    "a packed listing": {"listing": packed},
    "a dripping part": {"range": partial(dripping, status=206)},
    "a part that is cut": {"range": cut},
    "fewer bytes than asked for": {"range": lambda handler: handler.answer(206, 0)},
    "an error": {"range": lambda handler: handler.answer(500, 0)},
}


@pytest.mark.parametrize("size", ["right", 10**15])
def test_shards_are_read_from_server_whatever_it_says_of_their_size(size):
    if size == "right":
        lies = {}
    else:
        lies = {"head": lambda handler: handler.answer(200, size)}
    with serving(**lies) as (address, seen):
        space = ShardedSpace.open(address)
        assert [(shard.name, shard.n, shard.width) for shard in space.shards] == [
            ("part-0.npy", 1000, 4),
            ("part-1.npy", 1000, 4),
        ]
        np.testing.assert_array_equal(whole(space).vectors, np.concatenate([ROWS, ROWS + 1]))
        np.testing.assert_array_equal(space.shards[1].take(np.array([7])), ROWS[7:8] + 1)
    assert {packing for _, packing in seen} == {"identity"}


@pytest.mark.parametrize("name", LIES)
def test_a_server_of_shards_is_not_believed(name, monkeypatch):
    monkeypatch.setattr(places, "_MOST_SECONDS", 1)
    with serving(**LIES[name]) as (address, seen), pytest.raises(SpaceError, match=r"127\.0\.0\.1|part-"):
        whole(ShardedSpace.open(address))
    assert len(seen) < 30
